"""A trial of objects: the requests of members to replicated objects, and the judge of the outcome.

Every object is a `Tally`: a sum, whose additions commute, and a chain, in which every put leaves its mark, so that
copies that execute puts in different orders end in different states. Members add, put, look, call one-way, and make transactions
over two objects, some of which they abort.

The judge has information from three sources: which requests clients know to be committed, the order in which copies
began requests, and the final states of copies. It requires

    complete   every call ended, and the sum of each object is what was committed
    object     two requests that conflict began in the same order at all copies
    replicas   all copies of an object ended in the same state
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from inga.model.errors import UsageError
from inga.objects.declare import Abort, ObjectClass, method
from inga.stack.stack import Rng
from inga.trial.oracle import WITNESSES_MAX
from inga.trial.result import Result
from inga.trial.workload import RATE, exponential

CONFLICTS = (("add", "look"), ("look", "put"), ("put", "put"))
"""The methods of a tally that really conflict, whatever a class declares."""

CHAIN = (1_000_003, (1 << 61) - 1)
"""The factor and the modulus by which a put is chained to those before it."""

StartedCall = tuple[str, int, int, str]
"""A request that began at a copy: the object, the requester, the number of its request, and the method."""


def tally_class(wrong: tuple[str, str] | None = None) -> type[ObjectClass]:
    """The class of a trial's objects; `wrong` are two methods that are declared compatible although they conflict."""
    if wrong is not None and tuple(sorted(wrong)) not in CONFLICTS:
        known = ", ".join("/".join(pair) for pair in CONFLICTS)
        raise UsageError(f"only what conflicts can be declared wrongly: {known}, not {'/'.join(wrong)}")

    def friends(op: str, *names: str) -> tuple[str, ...]:
        if wrong is None or op not in wrong:
            return names
        return (*names, wrong[1] if wrong[0] == op else wrong[0])

    class Tally(ObjectClass):
        def initial(self) -> tuple[int, int]:
            return 0, 0

        @method(compatible=friends("add", "add", "take", "put"), undo="take")
        async def add(self, ctx: Any, amount: int) -> None:
            ctx.effect(lambda s: (s[0], s[1] + amount))

        @method(compatible=("add", "take", "put"), undo="add")
        async def take(self, ctx: Any, amount: int) -> None:
            ctx.effect(lambda s: (s[0], s[1] - amount))

        @method(compatible=friends("put", "add"))
        async def put(self, ctx: Any, mark: int) -> None:
            ctx.effect(lambda s: ((s[0] * CHAIN[0] + mark) % CHAIN[1], s[1]))

        @method(compatible=friends("look", "look"), identity=True)
        async def look(self, ctx: Any) -> list[int]:
            return list(self.state)

    return Tally


@dataclass(frozen=True, slots=True)
class CallLoad:
    """The requests to `objects` objects, each with a copy at every member."""

    members: int
    requests: int  # per member
    objects: int
    rate: float = RATE  # requests per second and member, in virtual time

    def __post_init__(self) -> None:
        if self.objects < 1:
            raise UsageError("a trial of objects needs at least one: --objects 1")

    @property
    def names(self) -> list[str]:
        """The names of the objects."""
        return [f"tally{number + 1}" for number in range(self.objects)]

    def plan(self, rng: Rng, me: int) -> Iterator[tuple[float, "ClientRequest"]]:
        """Yield for each request of one member the gap before it in seconds, and the request."""

        def pick(*choices: Any) -> Any:
            return choices[int(rng.random() * len(choices))]

        for number in range(self.requests):
            gap = exponential(rng) / self.rate
            kind = pick("add", "add", "add", "put", "put", "look", "oneway", "both", "both", "abort")
            one, other = pick(*self.names), pick(*self.names)
            yield (
                gap,
                ClientRequest(kind, one, other, 1 + int(rng.random() * 9), me * self.requests + number + 1),
            )


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One request of a client, or a transaction over two objects."""

    kind: str
    one: str
    other: str
    amount: int
    mark: int

    @property
    def adds(self) -> dict[str, int]:
        """The amounts that are added if the request commits, by object."""
        if self.kind in ("add", "oneway"):
            return {self.one: self.amount}
        return {self.other: self.amount} if self.kind == "both" else {}

    async def body(self, ctx: Any) -> None:
        """The body of the client's transaction that makes this request."""
        if self.kind == "add":
            await ctx.call(self.one, "add", self.amount)
        elif self.kind == "put":
            await ctx.call(self.one, "put", self.mark)
        elif self.kind == "look":
            await ctx.call(self.one, "look")
        elif self.kind == "oneway":
            ctx.oneway(self.one, "add", self.amount)
        else:
            await ctx.all(ctx.start(self.one, "put", self.mark), ctx.start(self.other, "add", self.amount))
            if self.kind == "abort":
                raise Abort("as planned")

    @property
    def starts(self) -> int:
        """How many instances of methods the request starts, at each copy."""
        return 2 if self.kind in ("both", "abort") else 1


@dataclass(slots=True)
class CallResult(Result):
    """The outcome of a trial of objects. `delivered` and `expected` count instances that began, at all copies."""

    objects: int = 0
    committed: int = 0
    aborted: int = 0  # as planned, or not
    doubtful: int = 0  # requests whose outcome no client knows, since a member failed

    @property
    def summary(self) -> list[str]:
        """The outcome in words."""
        pdus = self.pdus
        return [
            f"{self.order}: {self.members} members, {self.objects} objects with a copy at each, seed {self.seed}: "
            f"{self.sent:,} requests, {self.committed:,} committed, {self.aborted:,} aborted"
            + (f", {self.doubtful:,} in doubt" if self.doubtful else "")
            + (f"; {self.delivered:,} of {self.expected:,} instances began" if self.expected else "")
            + f" in {self.seconds:.3f} s",
            f"datagrams: {pdus['data']:,} data, {pdus['control']:,} control, {pdus['repair']:,} repairs",
        ]


class CallJudge:
    """Judges a trial by what clients and copies report."""

    def __init__(self, load: CallLoad) -> None:
        self.violations: Counter[str] = Counter()
        self.witnesses: list[str] = []
        self._load = load
        self._added: Counter[str] = Counter()
        self._doubtful: Counter[str] = Counter()
        self._states: dict[str, dict[str, Any]] = {name: {} for name in load.names}
        self._began: dict[str, dict[str, list[StartedCall]]] = {name: {} for name in load.names}
        self.started = 0

    def told(self, adds: Mapping[str, int]) -> None:
        """Record a request that its client knows to be committed."""
        self._added.update(adds)

    def doubted(self, adds: Mapping[str, int]) -> None:
        """Record a request that may have been committed or not: its client crashed, or the group changed meanwhile."""
        self._doubtful.update(adds)

    def unanswered(self, member: str, asked: str) -> None:
        """Record a request whose client never got an outcome."""
        self.blame("complete", f"{asked} of {member} never ended")

    def saw(self, member: str, began: Sequence[StartedCall], states: Mapping[str, Any]) -> None:
        """Record which requests began at a member's copies, in order, and the final states of these copies."""
        for name, state in states.items():
            self._states[name][member] = tuple(state)
        for each in began:
            if each[0] in self._began:
                self.started += 1
                self._began[each[0]].setdefault(member, []).append((each[0], each[1], each[2], each[3]))

    def finish(self) -> None:
        for name in self._load.names:
            self._compare(name)
            for (one, first), (other, second) in combinations(sorted(self._began[name].items()), 2):
                self._compare_orders(name, one, first, other, second)

    def result(self, **measured: Any) -> CallResult:
        """The findings as a result, together with what was measured."""
        return CallResult(
            members=self._load.members,
            objects=self._load.objects,
            delivered=self.started,
            violations=self.violations.total(),
            unpromised={},
            related=0,
            witnesses=self.witnesses,
            **measured,
        )

    def blame(self, guarantee: str, witness: str) -> None:
        """Count a violation, and remember the first few in words."""
        self.violations[guarantee] += 1
        if len(self.witnesses) < WITNESSES_MAX:
            self.witnesses.append(f"{guarantee}: {witness}")

    def _compare(self, name: str) -> None:
        states = self._states[name]
        for member, state in states.items():
            low, doubtful = self._added[name], self._doubtful[name]
            if not low <= state[1] <= low + doubtful:
                or_more = f" to {low + doubtful}" if doubtful else ""
                text = f"{name} at {member} has the sum {state[1]}, committed was {low}{or_more}"
                self.blame("complete", text)
        if len(set(states.values())) > 1:
            self.blame("replicas", f"copies of {name} end differently: {states}")

    def _compare_orders(
        self, name: str, one: str, first: Sequence[StartedCall], other: str, second: Sequence[StartedCall]
    ) -> None:
        """Find requests of the second copy that began there after a conflicting one which began later at the first copy."""
        places = {each[1:3]: at for at, each in enumerate(first)}
        last: dict[str, tuple[int, StartedCall]] = {}  # by method: the one that came latest at the first copy
        for each in second:
            at = places.get(each[1:3])
            if at is None:
                continue
            for op, (later, message) in last.items():
                if later > at and tuple(sorted((op, each[3]))) in CONFLICTS:
                    text = f"{other} began {op} {message[1:3]} before {each[3]} {each[1:3]} at {name}, {one} after it"
                    self.blame("object", text)
                    break
            if each[3] not in last or last[each[3]][0] < at:
                last[each[3]] = (at, each)
