"""Now or later: the one place that decides by vectors whether an item may be released.

An item is released when it is the next of its sender and everything its stamp names is released
(the standard test). Otherwise it is kept under the first count it waits for, so that a release wakes
just those that asked for it: no scan, and no head of the line that can block. Counts only rise, so who is
woken goes on where it stopped: each entry of a stamp is looked at once.

    released   passed the test, appended to the caller's list
    held       waits under one (member, count)
    duplicate  released or held before; dropped
    late       given up before, and came after all; appended, out of order

A recorded stream has no membership and nobody who could repair it. For it there are `for_stream`, members
that become known by being named (`grow`), `begin`, `give_up`, and a blob to be kept between two parts of the
stream (`dumps`, `loads`).
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from inga.model.compiled import mypyc_attr
from inga.model.stamp import Delta

T = TypeVar("T")

Rest: TypeAlias = Iterator[tuple[int, int]]
"""The part of a stamp that is still to be looked at."""

Waiter: TypeAlias = tuple[int, int, Rest]
"""What is held, by sender and number."""

RELEASED, HELD, DUPLICATE, FORGED, LATE = range(5)
"""Answers of `offer`. FORGED: it names sends of this site that this site never made."""

NOBODY = -1
"""In place of a member's index: who reads a stream has sent nothing into it."""

PASSED_MAX = 1024  # runs of numbers given up, remembered per sender
FORMAT = 2  # of what `dumps` makes


@mypyc_attr(allow_interpreted_subclasses=True)
class Inbox(Generic[T]):
    """The hold queue of one site. Knows no packets: senders, numbers, deltas and opaque items."""

    def __init__(self, me: int, members: int) -> None:
        self.me = me
        self.vector = [0] * members  # released per sender, and own sends
        self._held: list[dict[int, tuple[Delta, T]]] = [{} for _ in range(members)]
        self._waiting: list[dict[int, list[Waiter]]] = [{} for _ in range(members)]
        self.held = 0
        self._passed: dict[int, list[tuple[int, int]]] = {}  # given up: first and last numbers, ascending

    @classmethod
    def for_stream(cls, base: Sequence[int] = ()) -> "Inbox[T]":
        """For a reader of a stream: `base` are the counts per sender that were over before it began."""
        inbox = cls(NOBODY, len(base))
        inbox.adopt(base)
        return inbox

    def own(self, seq: int) -> None:
        """This site has sent its packet `seq`: known the moment it is stamped."""
        self.vector[self.me] = seq

    def offer(self, src: int, seq: int, delta: Delta, item: T, out: list[T]) -> int:
        """Append to `out` what this arrival releases: perhaps nothing, perhaps many."""
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
        """Nothing of `src` before that number is to be waited for; if it comes all the same, it is late."""
        self._pass(src, seq - 1, out)

    def give_up(self, is_overdue: Callable[[T], bool], out: list[T]) -> None:
        """Release what is overdue without what it lacks, but after all that is held and precedes it.

        For stamps that name the whole past, as those of streams do.
        """
        overdue: set[tuple[int, int]] = set()
        bound = [0] * len(self.vector)  # what the overdue name, per sender
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
        """Release these, by sender and number, in this order, without what they lack."""
        for src, seq in wanted:
            if seq in self._held[src]:  # else woken by one before it
                self._force(src, seq, out)

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

    def before_hole(self, src: int) -> int:
        """The number of `src` up to which everything has come, released or not."""
        seq = self.vector[src]
        while seq + 1 in self._held[src]:
            seq += 1
        return seq

    def discard(self, src: int, above: int) -> list[T]:
        """Nothing of `src` beyond that number will ever be released: forget what is held of it, and say what that is."""
        items = [self._held[src].pop(seq)[1] for seq in sorted(self._held[src]) if seq > above]
        self.held -= len(items)
        for bucket in self._waiting:
            for count, waiters in list(bucket.items()):
                bucket[count] = [each for each in waiters if each[0] != src or each[1] <= above]
                if not bucket[count]:
                    del bucket[count]
        return items

    def grow(self, members: int) -> None:
        """A view was extended by newcomers."""
        for _ in range(members - len(self.vector)):
            self.vector.append(0)
            self._held.append({})
            self._waiting.append({})

    def adopt(self, bases: Sequence[int]) -> None:
        """Start as a newcomer does: what the others had sent before is not for us."""
        self.vector[:] = bases

    def dumps(self) -> bytes:
        """All there is to know, as bytes for `loads`: a state store's, never a stranger's."""
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
        """A number that is over: was it released, or given up?"""
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
        """Go on as if everything of `k` up to that count had been released."""
        done = self.vector[k]
        if count <= done:
            return
        # Causes are released before their effects, so only stamps that contradict each other leave any here.
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
        """Take out what is held, and from where it waits."""
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
        """Go on with those that waited for a count just reached; each release may wake more.

        Who waited for its sender's item before it has seen nothing of its stamp yet, and all others had that item before
        they looked: whoever is woken is the next of its sender.
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
