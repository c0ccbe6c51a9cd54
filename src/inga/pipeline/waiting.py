"""How long messages were held at one process, and for which other message.

A message is held from its first `hold` to the first row that lets it through, `deliver` or `accept`. Of all messages that precede
it, the last that was let through meanwhile is the one that held it: one that its vector names, or an earlier one of the same
sender if the named one was for others. A message that was let through without its causes waited for none of those that came later.

The files of a process are read in order. Between files, these are kept: the messages that are still held, a flag for each message
that was let through, and the messages that were let through since the oldest held one was put aside.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import Bools, Ints, matrix_of
from inga.pipeline.spread import COARSE, FINE, Spread
from inga.pipeline.storage import File, read_file

NUMBER_BITS = 40  # of a number in a key that begins with its sender; higher numbers count as the highest
PAGE_BITS = 16
RECENT_MAX = 1 << 20  # rows; a message that waits for longer was let through for another reason than a cause
STEPS_BACK = 32  # within which the message that held another is nearly always found

THROUGH = ("deliver", "accept")


def message_key(src: Any, seq: Any) -> Any:
    """One number for a sender and a number of its messages."""
    return (src << NUMBER_BITS) + seq


class Blame(NamedTuple):
    """Messages that held others: how many, for how long in all, and the longest, in nanoseconds."""

    key: Ints
    held: Ints
    total: Ints
    longest: Ints

    def plus(self, other: "Blame") -> "Blame":
        key, where = np.unique(np.concatenate([self.key, other.key]), return_inverse=True)
        held, total, longest = (np.zeros(len(key), np.int64) for _ in range(3))
        np.add.at(held, where, np.concatenate([self.held, other.held]))
        np.add.at(total, where, np.concatenate([self.total, other.total]))
        np.maximum.at(longest, where, np.concatenate([self.longest, other.longest]))
        return Blame(key, held, total, longest)

    def worst(self, count: int) -> "Blame":
        order = np.lexsort((self.key, -self.total))[:count]
        return Blame(*(column[order] for column in self))


@dataclass(frozen=True, slots=True)
class Waits:
    """What a process waited for: how long, as one line; how long for messages of each sender; for which messages."""

    in_all: Spread
    by_sender: Spread
    blame: Blame


class HeldMessages(NamedTuple):
    """Messages that are held, by key: where and when they were put aside."""

    key: Ints
    pos: Ints
    time: Ints

    def take(self, which: Any) -> "HeldMessages":
        return HeldMessages(*(column[which] for column in self))


class Passed(NamedTuple):
    """Messages in the order in which they were let through."""

    pos: Ints
    src: Ints
    seq: Ints


NONE = np.zeros(0, np.int64)


def waiting(files: Iterable[tuple[File, bytes | None]], n: int, listed_max: int) -> Waits:
    """The waits of one process, whose files come in order. Lists at most `listed_max` messages that held others."""
    held, recent, through = HeldMessages(NONE, NONE, NONE), Passed(NONE, NONE, NONE), _Through()
    spreads = [(Spread.of(FINE, NONE, NONE), Spread.of(COARSE, NONE, NONE))]
    blame = Blame(NONE, NONE, NONE, NONE)
    for file, content in files:
        rows = _Rows.of(read_file(file, n, ("pos", "time", "step", "src", "seq", "deps"), content), n)
        firsts = through.add(rows.key, rows.is_through)
        held = _put_aside(held, rows, firsts, through)
        released, put, held = _released(held, rows, firsts)
        ms = rows.time[released] - put.time
        sender = rows.key[released] >> NUMBER_BITS
        spreads.append((Spread.of(FINE, np.zeros(len(ms), np.int64), ms), Spread.of(COARSE, sender, ms)))
        spreads = [(Spread.sum([one for one, _ in spreads]), Spread.sum([other for _, other in spreads]))]
        before = len(recent.pos)
        recent = Passed(*map(np.concatenate, zip(recent, rows.passed(firsts), strict=True)))
        by = _held_by(recent, before + np.searchsorted(firsts, released), put.pos, rows.deps[released])
        stamped = (by >= 0) & rows.stamped[released]
        one = np.ones(int(stamped.sum()), np.int64)
        key = message_key(recent.src[by[stamped]], recent.seq[by[stamped]])
        blame = blame.plus(Blame(key, one, ms[stamped], ms[stamped]))
        oldest = int(held.pos.min()) if len(held.pos) else int(rows.pos.max(initial=0)) + 1
        begin = max(int(np.searchsorted(recent.pos, oldest)), len(recent.pos) - RECENT_MAX)
        recent = Passed(*(column[begin:] for column in recent))
    return Waits(*spreads[0], blame.worst(listed_max))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a file that put messages aside or let them through."""

    pos: Ints
    time: Ints
    key: Ints
    is_through: Bools
    deps: NDArray[np.int32]
    stamped: Bools

    @classmethod
    def of(cls, table: Any, n: int) -> "_Rows":
        import pyarrow as pa
        import pyarrow.compute as pc

        about = pc.is_in(table.column("step").cast(pa.string()), pa.array([*THROUGH, "hold"]))
        known = pc.and_(pc.is_valid(table.column("src")), pc.is_valid(table.column("seq")))
        table = table.filter(pc.and_(about, known)).combine_chunks()
        src, seq, pos, time = (
            np.asarray(table.column(name).to_numpy(), np.int64) for name in ("src", "seq", "pos", "time")
        )
        steps = table.column("step").cast(pa.string())
        deps, stamped = matrix_of(table.column("deps"), n)
        through = pc.not_equal(steps, "hold").to_numpy()
        return cls(
            pos, time, message_key(src, np.clip(seq, 0, (1 << NUMBER_BITS) - 1)), through, deps, stamped
        )

    def passed(self, rows: Ints) -> Passed:
        return Passed(
            self.pos[rows], self.key[rows] >> NUMBER_BITS, self.key[rows] & ((1 << NUMBER_BITS) - 1)
        )


class _Through:
    """Which messages were let through: a flag for each number, in pages that exist where there are some."""

    def __init__(self) -> None:
        self._pages: dict[int, Bools] = {}

    def add(self, key: Ints, is_through: Bools) -> Ints:
        """The rows that let a message through for the first time, in order."""
        rows = np.flatnonzero(is_through)
        keys, first = np.unique(key[rows], return_index=True)
        is_new = np.ones(len(keys), np.bool_)
        for flags, which, offset in self._paged(keys):
            is_new[which] = ~flags[offset]
            flags[offset] = True
        found: Ints = np.sort(rows[first[is_new]])
        return found

    def has(self, keys: Ints) -> Bools:
        """Which messages were let through; keys are in ascending order."""
        found = np.zeros(len(keys), np.bool_)
        for flags, which, offset in self._paged(keys):
            found[which] = flags[offset]
        return found

    def _paged(self, keys: Ints) -> Iterator[tuple[Bools, slice, Ints]]:
        """The pages of keys in ascending order, which keys are on each, and where."""
        page, offset = keys >> PAGE_BITS, keys & ((1 << PAGE_BITS) - 1)
        ends = np.append(np.flatnonzero(np.diff(page)) + 1, len(page)).tolist() if len(page) else []
        for begin, end in pairwise([0, *ends]):
            flags = self._pages.setdefault(int(page[begin]), np.zeros(1 << PAGE_BITS, np.bool_))
            yield flags, slice(begin, end), offset[begin:end]


def _put_aside(held: HeldMessages, rows: _Rows, firsts: Ints, through: _Through) -> HeldMessages:
    """The messages held after these rows, as if none of them had let a message through: each with its first row. A copy that
    arrives after the message itself was let through does not wait."""
    puts = np.flatnonzero(~rows.is_through)
    keys, first = np.unique(rows.key[puts], return_index=True)
    at = puts[first]
    order = np.argsort(rows.key[firsts])
    place, is_here = _find(rows.key[firsts][order], keys)
    over = through.has(keys) & ~is_here
    over[is_here] = firsts[order][place[is_here]] < at[is_here]
    over |= _find(held.key, keys)[1]
    new = HeldMessages(keys, rows.pos[at], rows.time[at]).take(~over)
    both = HeldMessages(*map(np.concatenate, zip(held, new, strict=True)))
    return both.take(np.argsort(both.key))


def _released(held: HeldMessages, rows: _Rows, firsts: Ints) -> tuple[Ints, HeldMessages, HeldMessages]:
    """The rows that let held messages through; these messages, in the same order; the messages that are still held."""
    place, is_held = _find(held.key, rows.key[firsts])
    stays = np.ones(len(held.key), np.bool_)
    stays[place[is_held]] = False
    return firsts[is_held], held.take(place[is_held]), held.take(stays)


def _find(known: Ints, keys: Ints) -> tuple[Ints, Bools]:
    """Where keys are among some in ascending order, and whether they are."""
    place = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
    return place, known[place] == keys if len(known) else np.zeros(len(keys), np.bool_)


def _held_by(recent: Passed, at: Ints, after: Ints, deps: NDArray[np.int32]) -> Ints:
    """For each message at these places: the place of the last one before it that precedes it and came after a position; -1 if
    there is none."""
    found = np.full(len(at), -1, np.int64)
    left = np.arange(len(at))
    for back in range(1, STEPS_BACK + 1):
        place = at[left] - back
        left = left[(place >= 0) & (recent.pos[np.maximum(place, 0)] > after[left])]
        place = at[left] - back
        is_cause = recent.seq[place] <= deps[left, recent.src[place]]
        found[left[is_cause]] = place[is_cause]
        left = left[~is_cause]
        if not len(left):
            return found
    for each in left.tolist():  # few: no cause of theirs is among the last STEPS_BACK messages
        begin, end = int(np.searchsorted(recent.pos, after[each], side="right")), int(at[each]) - STEPS_BACK
        causes = np.flatnonzero(recent.seq[begin:end] <= deps[each, recent.src[begin:end]])
        if len(causes):
            found[each] = begin + causes[-1]
    return found
