"""The hold queue: the one place that decides by vectors whether an item is released now or later.

An item is released when it is the next of its sender and everything that its stamp names is released
(the standard test). Otherwise it is held under the first count it waits for, so that a release examines
only the items that wait for it: there is no scan, and no blocked item blocks those behind it. Counts only rise, so an
item whose count is reached goes on with the next entry of its stamp: each entry is examined once.

    released   passed the test; appended to the caller's list
    held       waits under one (member, count)
    duplicate  released or held before; dropped
    late       its number was given up before it arrived; appended, out of order

In a recorded stream there is no membership, and nobody repairs a gap. For streams there are `for_stream`, `grow` for members that
become known when an item first names them, `begin`, `give_up`, and `dumps` and `loads`, which keep an inbox as bytes between two parts
of a stream.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from inga.model.compiled import mypyc_attr
from inga.model.stamp import Delta

T = TypeVar("T")

Rest: TypeAlias = Iterator[tuple[int, int]]
"""The entries of a stamp that are not examined yet."""

Waiter: TypeAlias = tuple[int, int, Rest]
"""A held item: its sender, its number, and the entries of its stamp that are not examined yet."""

RELEASED, HELD, DUPLICATE, FORGED, LATE = range(5)
"""Results of `offer`. FORGED: the stamp names packets of this member that it has not sent."""

NOBODY = -1
"""In place of this member's index: the reader of a stream has sent nothing into it."""

PASSED_MAX = 1024  # runs of given-up numbers that are remembered per sender
FORMAT = 2  # of the bytes that `dumps` returns


@mypyc_attr(allow_interpreted_subclasses=True)
class Inbox(Generic[T]):
    """The hold queue of one member. It deals with senders, numbers, deltas and opaque items, not with packets."""

    def __init__(self, me: int, members: int) -> None:
        self.me = me
        self.vector = [0] * members  # released items per sender, and our own sends
        self._held: list[dict[int, tuple[Delta, T]]] = [{} for _ in range(members)]
        self._waiting: list[dict[int, list[Waiter]]] = [{} for _ in range(members)]
        self.held = 0
        self._passed: dict[int, list[tuple[int, int]]] = {}  # runs of given-up numbers, ascending

    @classmethod
    def for_stream(cls, base: Sequence[int] = ()) -> "Inbox[T]":
        """An inbox for a reader of a stream. `base` has the number of items per sender that precede the stream."""
        inbox = cls(NOBODY, len(base))
        inbox.adopt(base)
        return inbox

    def own(self, seq: int) -> None:
        """This member has sent its packet `seq`. Called as soon as the packet is stamped."""
        self.vector[self.me] = seq

    def offer(self, src: int, seq: int, delta: Delta, item: T, out: list[T]) -> int:
        """Take an item that arrived, and append to `out` all items that this releases: none, this one, or several."""
        vector = self.vector
        ready = vector[src] + 1
        if seq != ready:
            if seq < ready:
                return self._again(src, seq, item, out)
            if seq in self._held[src]:
                return DUPLICATE
            self._hold(src, seq, delta, item, src, seq - 1, iter(delta))
            return HELD
        rest = iter(delta)
        for k, count in rest:
            if vector[k] < count:
                if k == self.me:
                    return FORGED
                if seq in self._held[src]:
                    return DUPLICATE
                self._hold(src, seq, delta, item, k, count, rest)
                return HELD
        vector[src] = seq
        out.append(item)
        woken = self._waiting[src].pop(seq, None)
        if woken is not None:
            self._wake(woken, out)
        return RELEASED

    def begin(self, src: int, seq: int, out: list[T]) -> None:
        """Do not wait for items of `src` before that number. If one arrives nevertheless, it is late."""
        self._pass(src, seq - 1, out)

    def give_up(self, is_overdue: Callable[[T], bool], out: list[T]) -> None:
        """Release overdue items although causes of them are missing, each after all held items that precede it.

        Stamps have to name the whole past, as those of streams do.
        """
        overdue: set[tuple[int, int]] = set()
        bound = [0] * len(self.vector)  # per sender, the highest number that overdue items name
        for src, held in enumerate(self._held):
            for seq, (delta, item) in held.items():
                if is_overdue(item):
                    overdue.add((src, seq))
                    for k, count in (*delta, (src, seq - 1)):
                        bound[k] = max(bound[k], count)
        wanted = [
            (seq + sum(count for _, count in delta), src, seq)  # heights: causes are lower than effects
            for src, held in enumerate(self._held)
            for seq, (delta, _) in held.items()
            if seq <= bound[src] or (src, seq) in overdue
        ]
        self.force([(src, seq) for _, src, seq in sorted(wanted)], out)

    def force(self, wanted: Iterable[tuple[int, int]], out: list[T]) -> None:
        """Release these items, given by sender and number, in this order, although causes of them are missing."""
        for src, seq in wanted:
            if seq in self._held[src]:  # otherwise an item before it has released it
                self._force(src, seq, out)

    def missing(self) -> list[tuple[int, int, int]]:
        """For each count that held items wait for: the member, the count, and the number of items that wait for it."""
        return [
            (k, count, len(waiters))
            for k, bucket in enumerate(self._waiting)
            for count, waiters in sorted(bucket.items())
        ]

    def items(self) -> list[T]:
        """All held items, by sender and number."""
        return [item for held in self._held for _, (_, item) in sorted(held.items())]

    def drain(self) -> list[T]:
        """Remove all held items and return them, by sender and number."""
        items = self.items()
        for held, waiting in zip(self._held, self._waiting, strict=True):
            held.clear()
            waiting.clear()
        self.held = 0
        return items

    def before_hole(self, src: int) -> int:
        """The number up to which all items of `src` have arrived, released or not."""
        seq = self.vector[src]
        while seq + 1 in self._held[src]:
            seq += 1
        return seq

    def discard(self, src: int, above: int) -> list[T]:
        """Remove the held items of `src` beyond that number, which will never be released, and return them."""
        items = [self._held[src].pop(seq)[1] for seq in sorted(self._held[src]) if seq > above]
        self.held -= len(items)
        for bucket in self._waiting:
            for count, waiters in list(bucket.items()):
                bucket[count] = [each for each in waiters if each[0] != src or each[1] <= above]
                if not bucket[count]:
                    del bucket[count]
        return items

    def grow(self, members: int) -> None:
        """Make room for newcomers: a view was extended, or a stream has named further members."""
        for _ in range(members - len(self.vector)):
            self.vector.append(0)
            self._held.append({})
            self._waiting.append({})

    def adopt(self, bases: Sequence[int]) -> None:
        """Start as a newcomer: the items that each member had sent before are not for us."""
        self.vector[:] = bases

    def dumps(self) -> bytes:
        """The whole state as bytes for `loads`, which must come from our own state store and never from the
        network: they are a pickle."""
        state = (self.me, self.vector, self._held, self._waiting, self.held, self._passed)
        return pickle.dumps((FORMAT, state), pickle.HIGHEST_PROTOCOL)

    @classmethod
    def loads(cls, data: bytes) -> "Inbox[Any]":
        version, state = pickle.loads(data)
        assert version == FORMAT, f"an inbox kept in format {version}, not {FORMAT}"
        inbox: Inbox[Any] = cls(state[0], 0)
        inbox.vector, inbox._held, inbox._waiting, inbox.held, inbox._passed = state[1:]
        return inbox

    def _again(self, src: int, seq: int, item: T, out: list[T]) -> int:
        """An item arrived whose number is not expected any more. If the number was given up, append the item to
        `out` and return LATE."""
        runs = self._passed.get(src, ())
        for at, (first, last) in enumerate(runs):
            if first <= seq <= last:
                rest = [(first, seq - 1), (seq + 1, last)]
                self._passed[src][at : at + 1] = [run for run in rest if run[0] <= run[1]]
                out.append(item)
                return LATE
        return DUPLICATE

    def _force(self, src: int, seq: int, out: list[T]) -> None:
        delta, item = self._remove(src, seq)
        for k, count in (*delta, (src, seq - 1)):
            self._pass(k, count, out)
        self.vector[src] = seq
        out.append(item)
        self._wake(self._waiting[src].pop(seq, []), out)

    def _pass(self, k: int, count: int, out: list[T]) -> None:
        """Give up what is missing of `k`: go on as if all its items up to that count had been released."""
        done = self.vector[k]
        if count <= done:
            return
        # Causes are released before their effects, so held items are left here only if stamps contradict each other.
        stranded = sorted(seq for seq in self._held[k] if seq <= count)
        out.extend([self._remove(k, seq)[1] for seq in stranded])
        runs = self._passed.setdefault(k, [])
        for seq in (*stranded, count + 1):
            if seq > done + 1:
                runs.append((done + 1, seq - 1))
            done = seq
        del runs[:-PASSED_MAX]
        self.vector[k] = count
        waiting = self._waiting[k]
        reached = sorted(each for each in waiting if each <= count)
        self._wake([waiter for each in reached for waiter in waiting.pop(each)], out)

    def _remove(self, src: int, seq: int) -> tuple[Delta, T]:
        """Remove a held item, also from the count under which it waits."""
        delta, item = self._held[src].pop(seq)
        self.held -= 1
        needs: Iterable[tuple[int, int]] = (*delta, (src, seq - 1))
        for k, count in needs:
            waiters = self._waiting[k].get(count, [])
            rest = [waiter for waiter in waiters if waiter[:2] != (src, seq)]
            if len(rest) < len(waiters):
                self._waiting[k][count] = rest
                if not rest:
                    del self._waiting[k][count]
                break
        return delta, item

    def _hold(self, src: int, seq: int, delta: Delta, item: T, k: int, count: int, rest: Rest) -> None:
        self._held[src][seq] = (delta, item)
        self._waiting[k].setdefault(count, []).append((src, seq, rest))
        self.held += 1

    def _wake(self, woken: list[Waiter], out: list[T]) -> None:
        """Continue with items that waited for a count just reached; each release may wake more items.

        A woken item is always the next of its sender. If it waited for its sender's previous item, none of its stamp was examined
        before; otherwise the previous item had been released before its stamp was examined.
        """
        vector = self.vector
        while woken:
            waiter = woken.pop()
            src, seq, rest = waiter
            for k, count in rest:
                if vector[k] < count:
                    self._waiting[k].setdefault(count, []).append(waiter)
                    break
            else:
                _, item = self._held[src].pop(seq)
                self.held -= 1
                vector[src] = seq
                out.append(item)
                woken.extend(self._waiting[src].pop(seq, ()))
