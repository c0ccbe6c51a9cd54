"""How a process without a view asks for admission: a newcomer, or a member that the others have left behind.

Its request names the leader that it asks (its host), so that no two parts of a group admit it. A process that knows no leader is answered by
every leader, and asks the first one that it hears; a host that lets it wait is given up for the next leader that answers.
"""

from typing import Any, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.model.view import Member
from inga.session.description import named

HOST_FOR = 0.5
"""Seconds for which one leader is asked before another one is."""


class Was(NamedTuple):
    """The former membership of a process that has no view any more."""

    member: Member
    tag: int  # of the view that it gave up
    bound: tuple[int, ...]  # the leaders of changes of that view to which it had agreed
    part: tuple[str, ...]  # the members that left that view together with it, if all did


@mypyc_attr(allow_interpreted_subclasses=True)
class Asking:
    """Which host we ask, and since when."""

    __slots__ = ("_host", "_since")

    def __init__(self, host: tuple[str, int] | None, now: float) -> None:
        self._host = host
        self._since = now

    @property
    def host(self) -> tuple[str, int] | None:
        return self._host

    def gives_up(self, now: float) -> bool:
        """Whether the host has let us wait for too long; if so, we have no host from now on."""
        if self._host is None or now - self._since < HOST_FOR:
            return False
        self._host = None
        return True

    def forgive(self, late: float) -> None:
        """Our process was not running for so many seconds: do not hold them against the host."""
        self._since += late

    def heard(self, leader: tuple[str, int], now: float) -> bool:
        """Handle the announcement of a leader; return whether we ask it from now on."""
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
        """Return the contents of a request for admission. `view` is the number of the last view in which the process was, `wants` the
        kind of state that it lacks, `was` the membership that it gave up there."""
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
