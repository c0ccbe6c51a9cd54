"""Timers of a layer, of which the stack sees only the next, and waits with exponential backoff.

An alarm is identified by a key. Setting one costs a push onto a heap; setting it again leaves the old entry behind,
which is ignored when its time comes. An alarm that turns out to be needed later than it was set can be left alone:
its handler sees that it fired too soon, and sets it again. When most entries are stale the heap is rebuilt;
alarms far ahead that are set and cleared for every message would otherwise fill it.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf

from inga.model.compiled import mypyc_attr
from inga.stack.stack import Rng
from inga.stack.waits import grown

NEVER = inf
"""A time that is never reached: the alarm is not set."""

AlarmKey = tuple[int, int]
"""What an alarm is for, and the member that it concerns."""

WAIT_MAX = 8.0
"""The longest wait of a repetition, in multiples of the first."""

STALE_MIN = 64
"""Entries that the heap may have beyond twice the number of alarms: a heap so small is not worth rebuilding."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Backoff:
    """The wait before each repetition of one thing: twice as long each time, up to a limit, plus a random
    part, so that members that began together do not repeat in step."""

    __slots__ = ("_jitter", "_most", "_next", "first")

    def __init__(self, first: float, most: float, jitter: float = 0.25) -> None:
        self.first = first
        self._most = most
        self._jitter = jitter
        self._next = first

    def start(self) -> float:
        """Return the wait before the first repetition, and restart the backoff."""
        self._next = grown(self.first, self._most)
        return self.first

    def reset(self) -> None:
        """The last question was answered: the next wait is the first again."""
        self._next = self.first

    def next(self, rng: Rng) -> float:
        """Return the wait before another repetition."""
        wait = self._next * (1 + self._jitter * rng.random())
        self._next = grown(self._next, self._most)
        return wait


class Alarms:
    """The alarms of one layer: the time of each, by its key."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, AlarmKey]] = []
        self._set: dict[AlarmKey, float] = {}
        # The next wait of each repetition that was scheduled by `again`.
        self._waits: dict[AlarmKey, float] = {}

    def set(self, key: AlarmKey, due: float) -> None:
        if self._set.get(key) != due:
            self._set[key] = due
            heap = self._heap
            heappush(heap, (due, key))
            if len(heap) > STALE_MIN and len(heap) > STALE_MIN + 2 * len(self._set):
                heap[:] = [(at, each) for each, at in self._set.items()]
                heapify(heap)

    def sooner(self, key: AlarmKey, due: float) -> None:
        """Set it, unless it is set to an earlier time."""
        if due < self._set.get(key, NEVER):
            self.set(key, due)

    def again(self, key: AlarmKey, now: float, wait: float) -> None:
        """Set it to repeat a question that brought no progress; the wait grows each time."""
        last = self._waits.get(key, wait)
        self.set(key, now + last)
        self._waits[key] = grown(last, WAIT_MAX * wait)

    def wait(self, key: AlarmKey, first: float) -> float:
        """Return how long the next repetition waits."""
        return self._waits.get(key, first)

    def progress(self, key: AlarmKey) -> None:
        """There was progress: repetitions begin with the first wait again."""
        self._waits.pop(key, None)

    def clear(self, key: AlarmKey) -> None:
        self._set.pop(key, None)
        if self._waits:
            self._waits.pop(key, None)

    def __contains__(self, key: AlarmKey) -> bool:
        return key in self._set

    def due(self, now: float) -> Iterator[AlarmKey]:
        """Yield the keys of alarms that are due, each once, and clear them; a handler may set its alarm again meanwhile."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            time, key = heappop(heap)
            if self._set.get(key) == time:
                del self._set[key]
                yield key

    @property
    def is_set(self) -> bool:
        """Whether any alarm is set."""
        return bool(self._set)

    @property
    def next(self) -> float | None:
        """The earliest time at which an alarm is due."""
        heap, times = self._heap, self._set
        if not times:
            heap.clear()
        while heap:
            due, key = heap[0]
            if times.get(key) == due:
                return due
            heappop(heap)
        return None
