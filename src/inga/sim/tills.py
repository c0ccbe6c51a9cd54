"""The objects that members of the swarm host, and the calls to them. The copies of an object are compared with each other, and with
the results that callers got.

The objects are tallies, as in trials of objects, with copies at all members or at some; and one pad, whose state is as
large as a caller wants it. A call begins as soon as possible: not during a view change, nor before its caller is admitted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from inga.model.errors import IngaError
from inga.model.view import View
from inga.objects.declare import Abort, ObjectClass, method
from inga.objects.invoke import Root
from inga.session.pieces import piece_size
from inga.sim.site import LOOKS_AGAIN, Site
from inga.trial.calls import ClientRequest, tally_class
from inga.trial.people import member_names

if TYPE_CHECKING:
    from inga.sim.simulator import Sim

FILL = "fill"
"""The kind of call to the pad. The other kinds are those of clients in a trial, and call tallies."""

KINDS = ("add", "add", "add", "put", "put", "look", "oneway", "both", "both", "abort", FILL)
"""The kinds of calls to draw from. Some are compatible, and some are not."""

PAD = "pad"

_Found = tuple[str, str]
"""A finding: its kind, and a description."""


class Pad(ObjectClass):
    """An object whose state has the size that the last call of `fill` gave it."""

    def initial(self) -> bytes:
        return b""

    @method()
    async def fill(self, ctx: Any, size: int, mark: int) -> None:
        ctx.effect(lambda state: bytes([mark % 256]) * size)


@dataclass(slots=True)
class _Asked:
    """One request: the site that makes it, the identity of its member when the call began, and the transaction."""

    site: Site
    request: ClientRequest
    identity: tuple[str, int] | None = None
    root: Root | None = None


class Tills:
    """All objects of a run and the calls to them, and their judge."""

    def __init__(self, copies: tuple[tuple[int, ...], ...], *, is_lossy: bool) -> None:
        """`copies`: for each tally the members that have a copy; if none are listed, all have. `is_lossy`: of parts that go on by
        themselves the state of one is kept, and the results of calls in the others are lost."""
        people = member_names(1 + max((who for each in copies for who in each), default=0))
        self._where = {
            f"tally{number + 1}": [people[who] for who in each] for number, each in enumerate(copies)
        }
        self._is_lossy = is_lossy
        self._asked: list[_Asked] = []

    @property
    def declared(self) -> dict[str, Any]:
        """The objects as an argument of `inga.join`."""
        tally = tally_class()
        found: dict[str, Any] = {
            name: (tally, where) if where else tally for name, where in self._where.items()
        }
        return {**found, PAD: Pad}

    def watch(self, sim: "Sim") -> None:
        """Judge the objects of this run from now on."""
        self._sim = sim
        sim.onlookers.append(self)

    def ask(self, site: Site, kind: str, one: int, other: int, amount: int) -> None:
        """Let a member make a call: as soon as it can."""
        names = list(self._where)
        mark = len(self._asked) + 1
        request = ClientRequest(kind, names[one % len(names)], names[other % len(names)], amount, mark)
        asked = _Asked(site, request)
        self._asked.append(asked)
        self._begin(asked)

    def _begin(self, asked: _Asked) -> None:
        site, request = asked.site, asked.request
        if site.has_left or site.leaves_by is not None:
            return
        if site.newcomer is not None or not site.objects.may_begin:
            self._sim.at(self._sim.now + LOOKS_AGAIN, site, partial(self._begin, asked))
            return
        asked.identity = site.stack.member.identity
        body = partial(_fill, request, piece_size(site.stack)) if request.kind == FILL else request.body
        asked.root = site.begin(body)

    # Findings

    def waits(self) -> Iterator[_Found]:
        """Yield the calls of present members that have not ended."""
        for asked in self._asked:
            if asked.site.is_member and (asked.root is None or not asked.root.done):
                what = "begin" if asked.root is None else "end"
                yield "stuck: call", f"{asked.request.kind} of {asked.site.name} did not {what}"

    def faults(self) -> Iterator[_Found]:
        """Yield the objects whose copies differ from each other or do not match the results of calls, and unexpected errors."""
        added, doubtful = dict.fromkeys(self._where, 0), dict.fromkeys(self._where, 0)
        for asked in self._asked:
            error = None if asked.root is None else asked.root.error
            if asked.root is None or isinstance(error, Abort):
                continue
            if error is not None and not isinstance(error, IngaError):
                yield "call", f"{asked.request.kind} of {asked.site.name} ended with {error!r}"
            counts = added if self._is_told(asked) else doubtful
            for name, amount in asked.request.adds.items():
                counts[name] += amount
        for name in (*self._where, PAD):
            states = self._states(name)
            if len(set(states.values())) > 1:
                yield "copies", f"copies of {name} differ: {states!s:.200}"
            elif states and name != PAD and not self._was_lost(name):
                total, low = next(iter(states.values()))[1], added[name]
                if not low <= total <= low + doubtful[name]:
                    text = (
                        f"{name} has {total}, callers were told of {low}, and {doubtful[name]} are in doubt"
                    )
                    yield "sum", text

    def _is_told(self, asked: _Asked) -> bool:
        """Whether the caller knows that this call was committed, and is still the same member."""
        root, site = asked.root, asked.site
        assert root is not None
        if self._is_lossy or not root.done or root.error is not None or asked.request.kind == "oneway":
            return False
        return site.is_member and site.stack.member.identity == asked.identity

    def _states(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for site in self._sim.sites:
            if site.is_member:
                hosted = site.objects.hosted.get(name)
                if hosted is not None and site.stack.me in hosted.at:
                    state = site.state(name)
                    found[site.name] = state if name == PAD else tuple(state)
        return found

    def _was_lost(self, name: str) -> bool:
        """Whether in some view change no member that had a copy went on to the next view. A newcomer of the earlier view does not
        count as one, since it may not have had the state yet, unless all members with a copy were newcomers."""

        def holders(view: View, newcomers: tuple[str, ...] = ()) -> set[tuple[str, int]]:
            where = self._where[name] or view.names
            return {
                each.identity for each in view.members if each.name in where and each.name not in newcomers
            }

        for before, view in self._sim.ledger.steps:
            had = holders(before, before.joined) or holders(before)
            if had and not had & holders(view):
                return True
        return False


async def _fill(request: ClientRequest, piece: int, ctx: Any) -> None:
    """Fill the pad with a state about as large as some pieces of the wire: up to 9 octets less, as its encoding adds some."""
    pieces, more = divmod(request.amount, 10)
    await ctx.call(PAD, FILL, max(0, pieces * piece - more), request.mark)
