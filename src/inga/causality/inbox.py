"""Now or later: the one place that decides by vectors whether an item may be released.

An item is released when it is the next of its sender and everything its stamp names is released
(the standard test). Otherwise it is kept under the first count it waits for, so that a release wakes
just those that asked for it: no scan, and no head of the line that can block.

    released   passed the test, appended to the caller's list
    held       waits under one (member, count)
    duplicate  released or held before; dropped
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from inga.model.stamp import Delta

T = TypeVar("T")

RELEASED, HELD, DUPLICATE, FORGED = range(4)
"""Answers of `offer`. FORGED: it names sends of this site that this site never made."""


class Inbox(Generic[T]):
    """The hold queue of one site. Knows no packets: senders, numbers, deltas and opaque items."""

    def __init__(self, me: int, members: int) -> None:
        self.me = me
        self.vector = [0] * members  # released per sender, and own sends
        self._held: list[dict[int, tuple[Delta, T]]] = [{} for _ in range(members)]
        self._waiting: list[dict[int, list[tuple[int, int]]]] = [{} for _ in range(members)]
        self.held = 0

    def own(self, seq: int) -> None:
        """This site has sent its packet `seq`: known the moment it is stamped."""
        self.vector[self.me] = seq

    def offer(self, src: int, seq: int, delta: Delta, item: T, out: list[T]) -> int:
        """Append to `out` what this arrival releases: perhaps nothing, perhaps many."""
        vector = self.vector
        ready = vector[src] + 1
        if seq != ready:
            if seq < ready or seq in self._held[src]:
                return DUPLICATE
            self._hold(src, seq, delta, item, src, seq - 1)
            return HELD
        for k, count in delta:
            if vector[k] < count:
                if k == self.me:
                    return FORGED
                if seq in self._held[src]:
                    return DUPLICATE
                self._hold(src, seq, delta, item, k, count)
                return HELD
        vector[src] = seq
        out.append(item)
        woken = self._waiting[src].pop(seq, None)
        if woken is not None:
            self._wake(woken, out)
        return RELEASED

    def missing(self) -> list[tuple[int, int, int]]:
        """(member, count, items) for each count that held items wait for: what holds what."""
        return [
            (k, count, len(waiters))
            for k, bucket in enumerate(self._waiting)
            for count, waiters in sorted(bucket.items())
        ]

    def items(self) -> list[T]:
        """Everything held, by sender and number."""
        return [item for held in self._held for _, (_, item) in sorted(held.items())]

    def drain(self) -> list[T]:
        """Give up everything held, by sender and number."""
        items = self.items()
        for held, waiting in zip(self._held, self._waiting, strict=True):
            held.clear()
            waiting.clear()
        self.held = 0
        return items

    def discard(self, src: int, above: int) -> None:
        """Nothing of `src` beyond that number will ever be released: forget what is held of it."""
        for seq in [seq for seq in self._held[src] if seq > above]:
            del self._held[src][seq]
            self.held -= 1
        for bucket in self._waiting:
            for count, waiters in list(bucket.items()):
                bucket[count] = [each for each in waiters if each[0] != src or each[1] <= above]
                if not bucket[count]:
                    del bucket[count]

    def grow(self, members: int) -> None:
        """A view was extended by newcomers."""
        for _ in range(members - len(self.vector)):
            self.vector.append(0)
            self._held.append({})
            self._waiting.append({})

    def adopt(self, bases: Sequence[int]) -> None:
        """Start as a newcomer does: what the others had sent before is not for us."""
        self.vector[:] = bases

    def _hold(self, src: int, seq: int, delta: Delta, item: T, k: int, count: int) -> None:
        self._held[src][seq] = (delta, item)
        self._waiting[k].setdefault(count, []).append((src, seq))
        self.held += 1

    def _wake(self, woken: list[tuple[int, int]], out: list[T]) -> None:
        """Re-examine those that waited for a count just reached; each release may wake more."""
        vector = self.vector
        while woken:
            src, seq = woken.pop()
            delta, item = self._held[src][seq]
            for k, count in (*delta, (src, seq - 1)):
                if vector[k] < count:
                    self._waiting[k].setdefault(count, []).append((src, seq))
                    break
            else:
                del self._held[src][seq]
                self.held -= 1
                vector[src] = seq
                out.append(item)
                woken.extend(self._waiting[src].pop(seq, ()))
