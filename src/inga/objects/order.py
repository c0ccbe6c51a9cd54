"""Significant precedence at one place: identifiers of instances and sends, stamps and vectors.

    start     an instance takes the next number of the object's clock, and the past of all that it conflicts with
    send      the message takes the past of its instance, which then includes the message
    deliver   the instance's past then includes the message and the message's past
    commit    instances that conflict with this one and start later take over its past
    abort     the instance's past is dropped

A past is a vector: for each place, how many of its messages are known to come before. So m1 precedes m2 only if the
vector of m2 counts m1. Then m1 also has the smaller stamp. Stamps order requests that precedence does not order.

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
        self.past: dict[str, list[int]] = {}  # of committed instances, by method, if that conflicts with any

    def root(self, path: Path | None = None, op: str = "") -> Instance:
        """Begin a root: an instance that no request starts. `path` determines its age; by default its own start does."""
        start = self._next_start()
        path = (tuple(start),) if path is None else path
        return self._begin(Instance(self.place, start, path, start, None), op)

    def start(self, request: Message, op: str, path: Path, base: CallId) -> Instance:
        """Begin the instance that a request starts."""
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
        """Add a message that the instance takes, and the message's past, to the instance's past."""
        raise_to(instance.vector, message.vector)
        if instance.vector[message.src] < message.ev:
            instance.vector[message.src] = message.ev
        self._catch_up(message)

    def commit(self, instance: Instance, op: str) -> None:
        """The instance has committed: instances that conflict with it and start later come after it."""
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
    """Raise each entry of `vector` to that of `other`, where that is larger."""
    for at, count in enumerate(other):
        if count > vector[at]:
            vector[at] = count


def precedes(one: Message, other: Message) -> bool:
    """Whether `one` may significantly precede `other`, as far as counters tell. False is certain. True means at least that
    `one` happened before `other`: a vector that counts a message counts all that its place had sent until then, even for
    instances that have aborted or conflict with nothing. To wait in such a case is needless, but the wait ends."""
    return one.ev <= other.vector[one.src]


def call_of(request: Message) -> Call:
    """The call that a request makes, in the form that conflict relations take."""
    return Call(request.op, request.args, dict(request.named))
