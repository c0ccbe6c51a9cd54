"""How many messages lie at which heights: what has to be known before one group is sorted in parts.

Parts are ranges of heights. What a part has to know of those before it is how many messages there were and the highest number
of each sender; and where parts are to begin is a matter of how many messages lie between two heights. One look at the
table tells both, without moving its rows: tasks count by sender and by height, rounded down to multiples of a power of two that
leaves few enough lines, and lines of tasks add up. Heights lie close together, since every message has one more than what precedes it,
so that multiples of one number hold about as many messages each; a few that are far off take a line each and no more.
Parts begin at such multiples, so that what is known of each of them is exact.

What is there twice counts once. The files of a trace are in the order in which messages were sent, so that the numbers of a sender
ascend, and stretches of them that do not overlap have no message twice. Where that cannot be said, Spark finds copies first.

Rejected: percentiles of the heights, then a sort by three columns to count. That is a look more and a shuffle. And leading bits
of heights: half of a table lies between the last height and the half of it, and few bits do not tell that half apart.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from inga.certify.chunk import Bools, Ints
from inga.pipeline.restore import read_heights, read_owner, read_places, vector_slices

PART_MESSAGES = 1 << 20  # of one group, for which one task is enough
PARTS_MAX = 64
HEIGHT_MAX = 1 << 52  # beyond it heights count as this one
LINES_MAX = 1 << 13  # of a survey, unless there are many senders
HEIGHTS_PER_PART = 4  # at least, so that parts can be about as large as they should be
STRETCHES_MAX = 1 << 16
GAPS_MAX = 64  # in the numbers of a batch, at which stretches end: the widest
PENDING_MAX = 1 << 18  # rows that are counted in one go


class ColumnNames(NamedTuple):
    """What columns are called."""

    src: str
    seq: str
    deps: str
    own: str | None


class PartSummary(NamedTuple):
    """What later parts have to know of one."""

    messages: int
    came: Ints  # by sender
    named: int  # the highest number of the one whom messages came to that was named


@dataclass(frozen=True, slots=True)
class Survey:
    """Counts by height and sender, in ascending order, and stretches of numbers, each of one sender."""

    unit: int  # heights are multiples of it, a power of two
    height: Ints
    src: Ints
    messages: Ints
    high: Ints  # the highest number
    named: Ints
    stretches: Ints  # lines of sender, first and last number
    may_have_copies: bool = False

    @classmethod
    def of(cls, height: Ints, src: Ints, seq: Ints, named: Ints) -> "Survey":
        """Of messages in the order in which they are found."""
        ones = np.ones(len(src), np.int64)
        return cls(
            1,
            np.clip(height, 0, HEIGHT_MAX),
            src,
            ones,
            seq,
            named,
            _stretches(src, seq),
        )

    @classmethod
    def sum(cls, parts: Sequence["Survey"]) -> "Survey":
        """All of them together, with few lines; there is at least one."""

        def column(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        stretches, overlap = _joined(column("stretches"))
        may_have_copies = overlap or any(part.may_have_copies for part in parts)
        if len(stretches) > STRETCHES_MAX:
            may_have_copies = True
        if may_have_copies:
            stretches = stretches[:0]
        src = column("src")
        heights_max = max(LINES_MAX // max(1, len(np.unique(src))), HEIGHTS_PER_PART * PARTS_MAX)
        unit, height = _coarser(max(part.unit for part in parts), column("height"), heights_max)
        order = np.lexsort((src, height))
        height, src = height[order], src[order]
        starts = np.flatnonzero(np.append(True, (np.diff(height) != 0) | (np.diff(src) != 0)))[: len(src)]
        messages, high, named = (column(name)[order] for name in ("messages", "high", "named"))
        if len(src):
            messages = np.add.reduceat(messages, starts)
            high, named = np.maximum.reduceat(high, starts), np.maximum.reduceat(named, starts)
        return cls(unit, height[starts], src[starts], messages, high, named, stretches, may_have_copies)

    def bounds(self) -> list[int]:
        """Heights at which parts begin; none if one part is enough."""
        before = np.cumsum(self.messages) - self.messages
        total = int(self.messages.sum())
        parts = min(-(-total // PART_MESSAGES), PARTS_MAX)
        heights, first = np.unique(self.height, return_index=True)
        wanted = np.searchsorted(before[first], [total * part / parts for part in range(1, parts)])
        return sorted({int(heights[at]) for at in wanted if 0 < at < len(heights)})

    def summaries(self, bounds: list[int]) -> list[PartSummary]:
        """Of the parts that begin there, and of the first."""
        part = np.searchsorted(bounds, self.height, side="right")
        members = int(self.src.max(initial=-1)) + 1
        found = []
        for at in range(len(bounds) + 1):
            here = part == at
            came = np.zeros(members, np.int64)
            np.maximum.at(came, self.src[here], self.high[here])
            found.append(
                PartSummary(int(self.messages[here].sum()), came, int(self.named[here].max(initial=0)))
            )
        return found


def survey(messages: Any, names: ColumnNames) -> Survey:
    """Look at a table with heights once; or twice, if there may be copies in it."""
    columns = ["height", names.src, names.seq]
    if names.own is not None:
        columns += [names.deps, names.own]
    messages = messages.select(*columns)
    found = _look(messages, names)
    if found.may_have_copies and len(found.bounds()):
        found = _look(messages.dropDuplicates(columns[:3]), names)
    return found


def _look(messages: Any, names: ColumnNames) -> Survey:
    def look(batches: Iterator[Any]) -> Iterator[Any]:
        read = (_read(batch, names) for batch in batches if batch.num_rows)
        if (found := summed(read)) is not None:
            yield _packed(found)

    packed = messages.mapInArrow(look, "unit long, lines binary, stretches binary, copies boolean").collect()
    none = np.zeros(0, np.int64)
    found = summed(map(_unpacked, packed))
    return Survey.sum([Survey.of(none, none, none, none)]) if found is None else found


def summed(surveys: Iterable[Survey]) -> Survey | None:
    """The sum of many, of which there is never room for all; None of none."""
    pending: list[Survey] = []
    lines, enough = 0, PENDING_MAX
    for each in surveys:
        pending.append(each)
        lines += max(len(each.src), len(each.stretches))
        if lines > enough:
            pending = [Survey.sum(pending)]
            lines = len(pending[0].src)
            enough = max(PENDING_MAX, 2 * lines)  # of many senders a sum alone may have more lines
    return Survey.sum(pending) if pending else None


def _read(batch: Any, names: ColumnNames) -> Survey:
    src, seq = read_places(batch.column(names.src), batch.column(names.seq))
    height = read_heights(batch.column("height"), 0)
    named = np.zeros(len(src), np.int64)
    if names.own is not None:
        own = read_owner(batch.column(names.own)[0].as_py())
        parts = [
            part[:, own].copy() if own < part.shape[1] else np.zeros(len(part), np.int64)
            for part in vector_slices(batch.column(names.deps))
        ]
        named = np.where(src == own, seq - 1, np.concatenate(parts))
    return Survey.of(height, src, seq, named)


def _packed(found: Survey) -> Any:
    lines = np.stack([found.height, found.src, found.messages, found.high, found.named])
    arrays = [
        pa.array([found.unit], pa.int64()),
        pa.array([zlib.compress(lines.tobytes(), 1)], pa.binary()),  # to a fifth and less: lines are sorted
        pa.array([zlib.compress(found.stretches.tobytes(), 1)], pa.binary()),  # 1.5 MB to 300 kB
        pa.array([found.may_have_copies]),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["unit", "lines", "stretches", "copies"])


def _unpacked(row: Any) -> Survey:
    height, src, messages, high, named = np.frombuffer(zlib.decompress(row.lines), np.int64).reshape(5, -1)
    stretches = np.frombuffer(zlib.decompress(row.stretches), np.int64).reshape(-1, 3)
    return Survey(row.unit, height, src, messages, high, named, stretches, row.copies)


def _coarser(unit: int, height: Ints, heights_max: int) -> tuple[int, Ints]:
    """Heights as multiples of that unit, or of the least that leaves so many different ones."""
    different = np.unique(height // unit)
    while len(different) > heights_max:
        unit *= 2
        different = np.unique(different // 2)
    return unit, height // unit * unit


def _stretches(src: Ints, seq: Ints) -> Ints:
    """Numbers of a sender that ascend as they are found. Where many are left out a stretch ends: a batch may hold the first file of
    a sender and the third, while another holds the second."""
    order = np.argsort(src, kind="stable")
    src, seq = src[order], seq[order]
    steps = np.diff(seq)
    goes_on = (np.diff(src) == 0) & (steps > 0)
    gaps = steps[goes_on & (steps > 1)]
    goes_on &= steps <= (np.partition(gaps, -GAPS_MAX)[-GAPS_MAX] if len(gaps) > GAPS_MAX else 1)
    starts = np.flatnonzero(np.append(True, ~goes_on))[: len(src)]
    ends = np.append(starts[1:], len(src))[: len(starts)] - 1
    return np.stack([src[starts], seq[starts], seq[ends]], axis=1)


def _joined(stretches: Ints) -> tuple[Ints, bool]:
    """Stretches in ascending order, with those that lie side by side as one; and whether some overlap."""
    stretches = stretches[np.lexsort((stretches[:, 1], stretches[:, 0]))]
    src, low, high = stretches.T
    same: Bools = src[1:] == src[:-1]
    overlap = bool((same & (low[1:] <= high[:-1])).any())
    starts = np.flatnonzero(np.append(True, ~(same & (low[1:] == high[:-1] + 1))))[: len(src)]
    ends = np.append(starts[1:], len(src))[: len(starts)] - 1
    return np.stack([src[starts], low[starts], high[ends]], axis=1), overlap
