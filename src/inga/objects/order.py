"""What precedes what, at one place: identifiers of instances and sends, stamps and vectors.

    start     an instance takes the next number of the object's clock, and the past of whatever it conflicts with
    send      the message takes the past of its instance, which then includes the message
    deliver   the instance's past includes the message and its past
    commit    the past of the instance is that of whatever conflicts with it from now on
    abort     nothing of it is kept

A past is a vector: for each place, how many of its messages are known to come before. So m1 precedes m2 only if the
vector of m2 counts m1. Stamps grow along with it, and order requests that nothing else orders.

From Timura, Tanaka, Takizawa, section 4, corrected: docs/protocols/obg.md.
"""

from collections.abc import Sequence
from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.invocation import CallId, Message, Numbers, Path, SendId, StartId
from inga.objects.declare import Call
from inga.objects.instance import Instance
from inga.objects.roster import ConflictRelation


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """The logical clock of a member: at least as large as every stamp it has seen."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def see(self, stamp: int) -> None:
        if stamp > self.value:
            self.value = stamp

    def next(self) -> int:
        self.value += 1
        return self.value


@mypyc_attr(allow_interpreted_subclasses=True)
class Precedence:
    """The clocks and vectors of one place."""

    def __init__(self, place: int, width: int, relation: ConflictRelation, clock: Clock) -> None:
        self.place = place
        self.width = width
        self.relation = relation
        self.clock = clock
        self.starts = 0  # the object's clock of instances, the papers' oid
        self.ev = 0  # messages sent
        self.cohort: StartId | None = None
        self.running = 0
        self.past: dict[str, list[int]] = {}  # of what has committed, for each method that conflicts at all

    def root(self, path: Path | None = None, op: str = "") -> Instance:
        """An instance that no request starts. Its path says how old it counts; without one, its own start does."""
        start = self._next_start()
        path = (tuple(start),) if path is None else path
        return self._begin(Instance(self.place, start, path, start, None), op)

    def start(self, request: Message, op: str, path: Path, base: CallId) -> Instance:
        """The instance that a request starts."""
        self._catch_up(request)
        instance = self._begin(Instance(self.place, self._next_start(), path, base, request), op)
        self.deliver(instance, request)
        return instance

    def send(
        self, instance: Instance, kind: str, dst: tuple[int, ...], sq: Numbers = (), **rest: Any
    ) -> Message:
        """Make a message of the instance. Its number in the instance counts from 0, its stamp and `ev` from 1."""
        self.ev += 1
        message = Message(
            kind,
            self.place,
            dst,
            SendId(instance.start, instance.sends),
            self.clock.next(),
            self.ev,
            tuple(instance.vector),
            sq,
            instance.cohort,
            **rest,
        )
        instance.sends += 1
        instance.vector[self.place] = self.ev
        return message

    def deliver(self, instance: Instance, message: Message) -> None:
        """The instance gets a message."""
        raise_to(instance.vector, message.vector)
        if instance.vector[message.src] < message.ev:
            instance.vector[message.src] = message.ev
        self._catch_up(message)

    def commit(self, instance: Instance, op: str) -> None:
        """The instance has had an effect, which whatever conflicts with it comes after."""
        if self.relation.of(op):
            raise_to(self.past.setdefault(op, [0] * self.width), instance.vector)
        self.running -= 1

    def abort(self) -> None:
        """An instance has ended without effect."""
        self.running -= 1

    def _next_start(self) -> StartId:
        self.starts += 1
        return StartId(self.starts, self.place)

    def _begin(self, instance: Instance, op: str = "") -> Instance:
        if not self.running or self.cohort is None:
            self.cohort = instance.start
        instance.cohort = self.cohort
        instance.vector = [0] * self.width
        for rival in self.relation.of(op):
            if rival in self.past:
                raise_to(instance.vector, self.past[rival])
        self.running += 1
        return instance

    def _catch_up(self, message: Message) -> None:
        if message.id.start.clock > self.starts:
            self.starts = message.id.start.clock


def raise_to(vector: list[int], other: Sequence[int]) -> None:
    """Make it the larger of both, entry by entry."""
    for at, count in enumerate(other):
        if count > vector[at]:
            vector[at] = count


def precedes(one: Message, other: Message) -> bool:
    """Whether `one` may precede `other` significantly, as far as counters tell. If this says no, it does not. If it says
    yes, it was sent before: a vector that counts a message counts all that its place had sent until then, those of
    instances that have aborted or conflict with nothing too. To wait because of such a yes is needless, but it ends."""
    return one.ev <= other.vector[one.src]


def call_of(request: Message) -> Call:
    """What a request asks for, as relations are asked about it."""
    return Call(request.op, request.args, dict(request.named))
