"""The requests that wait at one place, and what each of them waits for.

    free      it conflicts with nothing, and so is never in this queue
    clear     no request with a smaller key can still arrive; the papers' stable
    first     no conflicting request with a smaller key waits
    ready     no conflicting instance runs, except its own ancestors

A request that is not clear waits in a heap. One that is clear waits for a single thing, the nearest request before it
that conflicts with it, or an instance; it is examined again when that is gone. So the cost of a request does not
depend on how many others wait.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush

from inga.model.compiled import mypyc_attr
from inga.model.invocation import Message, OrderKey, Path
from inga.objects.declare import Call
from inga.objects.instance import Instance
from inga.objects.roster import ConflictRelation


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueEntry:
    """A waiting request, or a waiting undo."""

    __slots__ = ("call", "entered", "key", "message", "out", "path", "size", "undoes", "waiters")

    def __init__(
        self,
        message: Message,
        call: Call,
        path: Path,
        entered: float,
        undoes: Instance | None = None,
    ) -> None:
        self.message = message
        self.call = call  # decides what it conflicts with
        self.key: OrderKey = message.key
        self.path = path
        self.entered = entered
        self.undoes = undoes  # the committed instance that is to be undone
        self.waiters: list[QueueEntry] = []  # entries that wait for this one
        self.size = 0  # bytes, while they count as waiting
        self.out = True  # not in the queue: skipped wherever it is still listed

    def __lt__(self, other: "QueueEntry") -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        """By identity, as equality is: a compiled class that defines an order has no hash unless it defines one, too."""
        return id(self)


@mypyc_attr(allow_interpreted_subclasses=True)
class Queue:
    """The requests that wait and the instances that run at one place, as far as they can conflict with others."""

    def __init__(self, relation: ConflictRelation) -> None:
        self.relation = relation
        self._waiting: dict[str, list[QueueEntry]] = {}  # by method, in the order of keys
        self._running: dict[str, list[Instance]] = {}  # by method
        self._unclear: list[tuple[OrderKey, QueueEntry]] = []
        self._look: list[QueueEntry] = []  # clear entries that have to be examined
        self._size = 0
        self._behind: dict[Instance, list[QueueEntry]] = {}  # entries that wait for an instance

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[QueueEntry]:
        return (entry for entries in self._waiting.values() for entry in entries)

    @property
    def unclear(self) -> OrderKey | None:
        """The smallest key that is not clear."""
        while self._unclear and self._unclear[0][1].out:
            heappop(self._unclear)
        return self._unclear[0][0] if self._unclear else None

    def add(self, entry: QueueEntry) -> None:
        entry.out = False
        self._size += 1
        insort(self._waiting.setdefault(entry.call.op, []), entry)
        heappush(self._unclear, (entry.key, entry))

    def remove(self, entry: QueueEntry) -> None:
        """Remove a request that will not run."""
        if not entry.out:
            self._take_out(entry)
            self._look += entry.waiters
            entry.waiters = []

    def next_startable(self, frontier: OrderKey) -> QueueEntry | None:
        """Remove and return an entry that may start, if there is any. Entries with keys below the frontier are clear."""
        while self._unclear and self._unclear[0][0] < frontier:
            self._look.append(heappop(self._unclear)[1])
        while self._look:
            entry = self._look.pop()
            if entry.out:
                continue
            obstacle = self._nearest(entry) or self._runs(entry)
            if obstacle is None:
                self._take_out(entry)
                return entry
            if isinstance(obstacle, QueueEntry):
                obstacle.waiters.append(entry)
            else:
                self._behind.setdefault(obstacle, []).append(entry)
        return None

    def started(self, instance: Instance, entry: QueueEntry | None) -> None:
        """An instance runs: entries that waited for its request now wait for the instance. A descendant of it may be among
        them, called by a faster copy of our object: that one does not wait."""
        if self.relation.of(instance.call.op):
            self._running.setdefault(instance.call.op, []).append(instance)
        if entry is not None:
            for waiter in entry.waiters:
                if instance.is_ancestor_of(waiter.path):
                    self._look.append(waiter)
                else:
                    self._behind.setdefault(instance, []).append(waiter)
            entry.waiters = []

    def ended(self, instance: Instance) -> None:
        running = self._running.get(instance.call.op)
        if running is not None and instance in running:
            running.remove(instance)
        self._look += self._behind.pop(instance, ())

    def oldest(self) -> Path | None:
        """The path of the oldest running instance that waits for answers, and so may wait for ever."""
        waiting = (each.path for running in self._running.values() for each in running if each.unanswered)
        return min(waiting, default=None)

    def blockers(self) -> dict[QueueEntry, set[Instance]]:
        """For each request the running instances that it waits for, directly or by way of other waiting requests."""
        found: dict[QueueEntry, set[Instance]] = {}
        for entry in sorted(self):
            blockers = found[entry] = set(self._all_running(entry))
            for op in self.relation.of(entry.call.op):
                for other in self._waiting.get(op, ()):
                    if other.key >= entry.key:
                        break
                    if self.relation.between(other.call, entry.call):
                        blockers |= found[other]
        return found

    def _take_out(self, entry: QueueEntry) -> None:
        entries = self._waiting[entry.call.op]
        del entries[bisect_left(entries, entry)]
        if not entries:
            del self._waiting[entry.call.op]
        entry.out = True
        self._size -= 1

    def _nearest(self, entry: QueueEntry) -> QueueEntry | None:
        """The last waiting request before it that conflicts with it."""
        nearest: QueueEntry | None = None
        for op in self.relation.of(entry.call.op):
            entries = self._waiting.get(op)
            if not entries:
                continue
            for at in range(bisect_left(entries, entry) - 1, -1, -1):
                other = entries[at]
                if nearest is not None and other.key < nearest.key:
                    break
                if self.relation.between(other.call, entry.call):
                    nearest = other
        return nearest

    def _runs(self, entry: QueueEntry) -> Instance | None:
        return next(self._all_running(entry), None)

    def _all_running(self, entry: QueueEntry) -> Iterator[Instance]:
        for op in self.relation.of(entry.call.op):
            for instance in self._running.get(op, ()):
                if self.relation.between(instance.call, entry.call) and not instance.is_ancestor_of(
                    entry.path
                ):
                    yield instance
