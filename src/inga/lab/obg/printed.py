"""OBG as it is printed: the ordering rule with vectors of identifiers, and the delivery procedure.

It serves as the reference for the corrections. The vectors are those of the paper's worked examples, in which a message carries
its sender's vector from before the send, and the receiver's vector names the message after its receipt.
"""

from bisect import insort
from collections.abc import Sequence

from inga.lab.obg.data import DATA, TalkingEngine
from inga.model.invocation import ONE_WAY, REQUESTS, Message, OrderKey, SendId
from inga.objects.actions import Observer
from inga.objects.incoming import Incoming
from inga.objects.local import Local
from inga.objects.options import EngineOptions
from inga.objects.order import precedes
from inga.objects.queue import Queue, QueueEntry
from inga.objects.roster import ConflictRelation, Roster

PrintedId = tuple[int, int, int]
"""The identifier of a send: the object's clock when its instance began, the object, the number in the instance. Printed as 1i0."""

NO_ID: PrintedId = (0, 0, 0)


def id_of(send: SendId) -> PrintedId:
    """Return the identifier of a send as the paper has it."""
    return (send.start.clock, send.start.place, send.number)


class PrintedVectors:
    """Vectors of identifiers at all objects of a run: one component for each object, the largest known identifier of
    its sends. They are merged when any instance commits. A response has the identifier of its request, so none of its own."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.objects = [[NO_ID] * width for _ in range(width)]
        self.instances: dict[object, list[PrintedId]] = {}
        self.messages: dict[SendId, tuple[PrintedId, ...]] = {}

    def start(self, instance: object, place: int) -> None:
        self.instances[instance] = list(self.objects[place])

    def send(self, instance: object, message: Message) -> None:
        vector = self.instances[instance]
        self.messages[message.id] = tuple(vector)
        self._count(vector, message)

    def deliver(self, instance: object, message: Message) -> None:
        vector = self.instances[instance]
        _merge(vector, self.messages[message.id])
        self._count(vector, message)

    def commit(self, instance: object, place: int) -> None:
        _merge(self.objects[place], self.instances[instance])

    def is_less(self, one: Message, other: Message) -> bool:
        """Whether the vector of one is below that of the other: Theorem 2 as it is printed."""
        mine, theirs = self.messages[one.id], self.messages[other.id]
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))

    def precedes(
        self, one: Message, other: Message, relation: ConflictRelation, *, repaired: bool = False
    ) -> bool:
        """Whether one message precedes the other by the printed rule. `repaired`: with "one-way" where the rule says asynchronous."""
        first, second = id_of(one.id), id_of(other.id)
        if one.src == other.src:
            if one.id.start == other.id.start:
                return first < second
            some_response = one.kind not in REQUESTS or other.kind not in REQUESTS
            not_answered = one.kind == (ONE_WAY if repaired else "a")
            return one.cohort != other.cohort and first < second and (some_response or not_answered)
        mine, theirs = self.messages[one.id], self.messages[other.id]
        i, j = one.src, other.src
        return (
            first <= theirs[i]
            and mine[j] <= second
            and all(mine[k] <= theirs[k] for k in range(self.width) if k not in (i, j))
            and one.kind in REQUESTS
            and other.kind in REQUESTS
            and other.op in relation.of(one.op)
        )

    def _count(self, vector: list[PrintedId], message: Message) -> None:
        if message.kind in REQUESTS or message.kind == DATA:
            vector[message.src] = max(vector[message.src], id_of(message.id))


def _merge(vector: list[PrintedId], other: Sequence[PrintedId]) -> None:
    vector[:] = map(max, vector, other)


class PrintedQueue(Queue):
    """A queue ordered by the printed rule as far as that relates messages, else by arrival; only its top is examined."""

    def __init__(self, relation: ConflictRelation) -> None:
        super().__init__(relation)
        self.line: list[QueueEntry] = []

    def add(self, entry: QueueEntry) -> None:
        entry.out = False
        self._size += 1
        insort(self._waiting.setdefault(entry.call.op, []), entry)
        at = len(self.line)
        for place, other in enumerate(self.line):
            if self._is_before(entry.message, other.message):
                at = place
                break
        self.line.insert(at, entry)

    @property
    def unclear(self) -> OrderKey | None:
        return min((entry.key for entry in self.line), default=None)

    def _is_before(self, one: Message, other: Message) -> bool:
        if one.src == other.src:
            if one.id.start == other.id.start:
                return id_of(one.id) < id_of(other.id)
            return one.cohort != other.cohort and id_of(one.id) < id_of(other.id) and one.kind == "a"
        conflict = other.op in self.relation.of(one.op)
        return conflict and precedes(one, other) and not precedes(other, one)

    def _take_out(self, entry: QueueEntry) -> None:
        super()._take_out(entry)
        self.line.remove(entry)


class PrintedIncoming(Incoming):
    """Only the top of a queue is examined; it is stable once its sender has shown a later clock."""

    def start_one(self) -> bool:
        for hosted in self._local.hosted.values():
            queue = hosted.queue
            assert isinstance(queue, PrintedQueue)
            if queue.line and is_heard(self._local, queue.line[0]) and queue._runs(queue.line[0]) is None:
                entry = queue.line[0]
                queue._take_out(entry)
                self._dequeued(entry)
                self._start(hosted, entry)
                return True
        return False


class PrintedEngine(TalkingEngine):
    """The printed delivery procedure, with our numbers, heartbeats and answers, and our resolution of deadlocks: without
    these, runs would end too early to break an order."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        options: EngineOptions | None = None,
        *,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(me, roster, options, observer=observer)
        for hosted in self.hosted.values():
            hosted.queue = PrintedQueue(hosted.order.relation)

    def _make_incoming(self) -> Incoming:
        return PrintedIncoming(self.local, self.speech, self.early, self.endings)


def is_heard(local: Local, entry: QueueEntry) -> bool:
    """Whether the sender has shown a clock not before that of the request, with no earlier message of it missing."""
    peer = local.links.peers.get(local.roster.member_of[entry.message.src])
    return peer is None or peer.ts >= entry.message.ts
