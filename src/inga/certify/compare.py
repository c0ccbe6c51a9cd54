"""Messages compared one by one, for the pairs whose sums disagree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import DELIVER, EVERYBODY, SEND, Bools, Chunk, Ints
from inga.certify.fingerprint import Keys, Words, hashes

UNSENT, EARLY, NOT_ADDRESSED, DUPLICATE, FORGED = 1, 2, 3, 4, 5
"""What can be wrong with a delivery. The first that applies is counted."""

REASONS = {
    UNSENT: "was never sent",
    EARLY: "it had not sent yet",
    NOT_ADDRESSED: "was not addressed to it",
    DUPLICATE: "had been delivered there before",
    FORGED: "carries another vector than it was sent with",
}


@dataclass(frozen=True, slots=True)
class Sends:
    """Sends of one source. `addressed` has a column for each process."""

    seq: Ints
    pos: Ints
    view: NDArray[np.int32]
    word: Words
    stamped: Bools
    to_all: Bools
    addressed: Bools

    def take(self, order: Ints) -> "Sends":
        return Sends(*(getattr(self, name)[order] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Deliveries at one destination from one source."""

    seq: Ints
    pos: Ints
    word: Words
    stamped: Bools


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers of a source that are compared together: from `low` up to, but without, `high`."""

    low: int
    high: int

    def rows(self, seq: Ints) -> Bools:
        return (self.low <= seq) & (seq < self.high)


def sends_of(chunk: Chunk, keys: Keys, numbers: Range) -> Sends:
    rows = np.flatnonzero(((chunk.kind & SEND) != 0) & numbers.rows(chunk.seq))
    to_all = chunk.dst[rows] == EVERYBODY
    addressed = np.zeros((len(rows), chunk.n), np.bool_)
    if len(chunk.sets):
        addressed[~to_all] = chunk.sets[chunk.dst[rows[~to_all]]]
    return Sends(
        chunk.seq[rows], chunk.pos[rows], chunk.view[rows], hashes(chunk, keys)[rows], chunk.stamped[rows],
        to_all, addressed,
    )  # fmt: skip


def deliveries_of(chunk: Chunk, keys: Keys, source: int, numbers: Range) -> Deliveries:
    mine = ((chunk.kind & DELIVER) != 0) & (chunk.src == source)
    rows = np.flatnonzero(mine & numbers.rows(chunk.seq))
    return Deliveries(chunk.seq[rows], chunk.pos[rows], hashes(chunk, keys)[rows], chunk.stamped[rows])


def join_sends(parts: list[Sends], n: int) -> Sends:
    """In order of their numbers; if one was used twice, the first send counts."""
    whole = Sends(*(np.concatenate(columns) for columns in _columns([_no_sends(n), *parts])))
    _, firsts = np.unique(whole.seq, return_index=True)
    return whole.take(firsts)


def join_deliveries(parts: list[Deliveries]) -> Deliveries:
    """In order of position, as the parts are."""
    return Deliveries(*(np.concatenate(columns) for columns in _columns([_NO_DELIVERIES, *parts])))


def _columns(parts: Sequence[Any]) -> list[list[Any]]:
    return [[getattr(part, name) for part in parts] for name in parts[0].__slots__]


def _no_sends(n: int) -> Sends:
    numbers, flags = np.empty(0, np.int64), np.empty(0, np.bool_)
    nobody = np.empty((0, n), np.bool_)
    return Sends(numbers, numbers, numbers.astype(np.int32), numbers.astype(np.uint64), flags, flags, nobody)


_NO_DELIVERIES = Deliveries(
    np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.bool_)
)


def judge_deliveries(
    sends: Sends, mine: Bools, delivered: Deliveries, *, echo: bool, known_upto: int
) -> NDArray[np.uint8]:
    """What is wrong with each delivery, 0 if nothing. An echo need not be addressed to its sender. Numbers above
    `known_upto` may have been sent in rows that are missing, so they do not count as unsent."""
    wrong = np.zeros(len(delivered.seq), np.uint8)
    at = np.searchsorted(sends.seq, delivered.seq)
    found = np.append(sends.seq, 0)[at] == delivered.seq
    at, rows = at[found], np.flatnonzero(found)
    # A row without a vector says nothing about the vector of its message: there is nothing to compare.
    compared = delivered.stamped[rows] & sends.stamped[at]
    wrong[rows[compared & (sends.word[at] != delivered.word[rows])]] = FORGED
    _, firsts = np.unique(delivered.seq, return_index=True)
    again = np.ones(len(delivered.seq), np.bool_)
    again[firsts] = False
    wrong[again] = DUPLICATE
    if echo:
        wrong[rows[sends.pos[at] > delivered.pos[rows]]] = EARLY
    else:
        wrong[rows[~mine[at]]] = NOT_ADDRESSED
    wrong[~found & (delivered.seq <= known_upto)] = UNSENT
    return wrong


def missing(sends: Sends, mine: Bools, delivered: Deliveries) -> Ints:
    """Indices of the sends that were for the destination and are not among its deliveries."""
    return np.flatnonzero(mine & ~np.isin(sends.seq, delivered.seq))
