"""Count the messages at each height, as one group has to be surveyed before it is sorted in parts.

Parts are ranges of heights. A part has to know how many messages are in the parts before it, and the highest number of each
sender in them; and to choose where parts begin, one has to know how many messages are between two heights. One pass over the
table yields both, without moving its rows: tasks count by sender and by height, and their counts are added up. Heights are rounded
down to multiples of a power of two that leaves few enough lines. They are close together, since a message is higher by one than
the messages it follows, so that each multiple has about as many messages; a few heights that are far off take a line each and no
more. Parts begin at such multiples, so that the counts of each part are exact.

Copies count once. The files of a trace are in the order in which messages were sent, so that the numbers of a sender ascend, and
stretches of numbers that do not overlap have no message twice. If they overlap, or there are too many, Spark drops copies first.

Rejected: percentiles of the heights, then a sort by three columns to count, which takes another pass and a shuffle. Also rejected:
leading bits of heights. Half of a table is between half of the last height and the last height, and few bits do not distinguish
heights in that half.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from inga.certify.chunk import Bools, Ints
from inga.pipeline.restore import read_heights, read_owner, read_places, vector_slices

PART_MESSAGES = 1 << 20  # messages of one group for which one task is enough
PARTS_MAX = 64
HEIGHT_MAX = 1 << 52  # beyond it heights count as this one
LINES_MAX = 1 << 13  # of a survey, unless there are many senders
HEIGHTS_PER_PART = 4  # at least, so that parts can be about equally large
STRETCHES_MAX = 1 << 16
GAPS_MAX = 64  # the widest gaps in the numbers of a batch, at which stretches end
PENDING_MAX = 1 << 18  # rows that are counted at once


class ColumnNames(NamedTuple):
    """The names of columns."""

    src: str
    seq: str
    deps: str
    own: str | None


class PartSummary(NamedTuple):
    """What later parts have to know about a part."""

    messages: int
    came: Ints  # the highest number by sender
    named: int  # the highest number that messages name of the member that received them


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
        """The survey of messages, in the order in which they are found."""
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
        """The sum of surveys, with few lines; there is at least one."""

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
        """The summaries of the first part, and of those that begin at these heights."""
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
    """Survey a table with heights in one pass; in two, if there may be copies in it."""
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
    """The sum of surveys that would not all fit in memory; None if there are none."""
    pending: list[Survey] = []
    lines, enough = 0, PENDING_MAX
    for each in surveys:
        pending.append(each)
        lines += max(len(each.src), len(each.stretches))
        if lines > enough:
            pending = [Survey.sum(pending)]
            lines = len(pending[0].src)
            enough = max(PENDING_MAX, 2 * lines)  # with many senders, one sum may have more lines
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
    """Heights as multiples of a unit: of this one, doubled until there are at most `heights_max` different heights."""
    different = np.unique(height // unit)
    while len(different) > heights_max:
        unit *= 2
        different = np.unique(different // 2)
    return unit, height // unit * unit


def _stretches(src: Ints, seq: Ints) -> Ints:
    """Numbers of a sender that ascend as they are found. A stretch ends at a wide gap: a batch may have the first file of a sender
    and the third, while another has the second."""
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
    """Stretches in ascending order, with adjacent ones merged; and whether some overlap."""
    stretches = stretches[np.lexsort((stretches[:, 1], stretches[:, 0]))]
    src, low, high = stretches.T
    same: Bools = src[1:] == src[:-1]
    overlap = bool((same & (low[1:] <= high[:-1])).any())
    starts = np.flatnonzero(np.append(True, ~(same & (low[1:] == high[:-1] + 1))))[: len(src)]
    ends = np.append(starts[1:], len(src))[: len(starts)] - 1
    return np.stack([src[starts], low[starts], high[ends]], axis=1), overlap
