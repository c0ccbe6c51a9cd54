"""Objects that members of the swarm host, and what is asked of them: the copies are compared with each other, and with
what callers were told.

Each is a tally, as in trials of objects, with copies at all members or at some; and one is a pad, whose state is as
large as a caller wants it. A call begins as soon as it can: while the view changes, or before one is let in, none does.
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
"""What is asked of the pad; of tallies what clients of a trial ask."""

KINDS = ("add", "add", "add", "put", "put", "look", "oneway", "both", "both", "abort", FILL)
"""Some are compatible, and some are not."""

PAD = "pad"

_Found = tuple[str, str]
"""Of which kind, and in words."""


class Pad(ObjectClass):
    """As large as somebody said last."""

    def initial(self) -> bytes:
        return b""

    @method()
    async def fill(self, ctx: Any, size: int, mark: int) -> None:
        ctx.effect(lambda state: bytes([mark % 256]) * size)


@dataclass(slots=True)
class _Asked:
    """One request: whose, as whom it began it, and what came of it."""

    site: Site
    request: ClientRequest
    identity: tuple[str, int] | None = None
    root: Root | None = None


class Tills:
    """All objects of a run, and who asks for what."""

    def __init__(self, copies: tuple[tuple[int, ...], ...], *, is_lossy: bool) -> None:
        """`copies`: of each tally the members that have one, or none: then all have. `is_lossy`: of parts that go on by
        themselves one is kept, and what the others told is lost."""
        people = member_names(1 + max((who for each in copies for who in each), default=0))
        self._where = {
            f"tally{number + 1}": [people[who] for who in each] for number, each in enumerate(copies)
        }
        self._is_lossy = is_lossy
        self._asked: list[_Asked] = []

    @property
    def declared(self) -> dict[str, Any]:
        """As `inga.join` has them."""
        tally = tally_class()
        found: dict[str, Any] = {
            name: (tally, where) if where else tally for name, where in self._where.items()
        }
        return {**found, PAD: Pad}

    def watch(self, sim: "Sim") -> None:
        """From now on."""
        self._sim = sim
        sim.onlookers.append(self)

    def ask(self, site: Site, kind: str, one: int, other: int, amount: int) -> None:
        """A member asks for something."""
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

    # What is wrong

    def waits(self) -> Iterator[_Found]:
        """Whose calls have not ended."""
        for asked in self._asked:
            if asked.site.is_member and (asked.root is None or not asked.root.done):
                what = "begin" if asked.root is None else "end"
                yield "stuck: call", f"{asked.request.kind} of {asked.site.name} did not {what}"

    def faults(self) -> Iterator[_Found]:
        """Copies that differ from each other, or from what callers were told."""
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
        """Whether it was told that this has been committed, and is still the same member."""
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
        """Whether nobody who had a copy when a view began went on to the next: who joined in it may not have been told
        its state yet, unless there was nobody to tell it."""

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
    """Around the bounds of so many pieces: what tells its length is in them, too."""
    pieces, more = divmod(request.amount, 10)
    await ctx.call(PAD, FILL, max(0, pieces * piece - more), request.mark)
