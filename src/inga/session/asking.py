"""One without a view asks to be let into one: a newcomer, or a member that the others have left behind.

It says whom it asks, so that no two parts of a group take it in. Who knows nobody to ask is answered by every leader,
and asks the first that it hears; one that lets it wait is given up for whoever answers next.
"""

from typing import Any, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.model.view import Member
from inga.session.description import named

HOST_FOR = 0.5
"""Seconds for which one leader is asked, before anybody else is."""


class Was(NamedTuple):
    """What one that is without a view was before."""

    member: Member
    tag: int  # of the view that it was in
    bound: tuple[int, ...]  # who led changes of it to which it had agreed
    part: tuple[str, ...]  # all with whom it left that view, if all did


@mypyc_attr(allow_interpreted_subclasses=True)
class Asking:
    """Whom we ask, and since when."""

    __slots__ = ("_host", "_since")

    def __init__(self, host: tuple[str, int] | None, now: float) -> None:
        self._host = host
        self._since = now

    @property
    def host(self) -> tuple[str, int] | None:
        return self._host

    def gives_up(self, now: float) -> bool:
        """Whether whoever was asked has let us wait for too long: nobody is asked from now on."""
        if self._host is None or now - self._since < HOST_FOR:
            return False
        self._host = None
        return True

    def forgive(self, late: float) -> None:
        """We were away for so many seconds: whoever is asked has not let us wait meanwhile."""
        self._since += late

    def heard(self, leader: tuple[str, int], now: float) -> bool:
        """A leader says that it is there; whether we ask it from now on."""
        if self._host is not None:
            return False
        self._host, self._since = leader, now
        return True

    def hello(
        self,
        member: Member,
        group: str,
        view: int,
        now: float,
        wants: str,
        was: "Was | None" = None,
    ) -> dict[str, Any]:
        """What one says that wants to be let in; `view` is the number of the last one that it was in, `wants` the kind of
        state that it lacks, `was` what it has given up there."""
        self.gives_up(now)
        return {
            **named(member),
            "address": member.address,
            "group": group,
            "view": view,
            "wants": wants,
            "host": [] if self._host is None else [(*self._host, "")],
            "was": [] if was is None else [was.member.signed],
            "spoken_in": 0 if was is None else was.tag,
            "bound": [] if was is None else list(was.bound),
            "part": [] if was is None else list(was.part),
        }
