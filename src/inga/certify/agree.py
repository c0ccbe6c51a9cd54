"""Do all processes have any two messages in the same order? The kernels of `total` and `object`.

Messages are distributed to *parts*, by their sender and number alone, so that all copies of a message are in one
part. Parts are bounded by what one process, the reference, had seen at the end of each of its segments. Inside a
part every pair of processes is compared exactly, by a running maximum: at a process q, a message is *late* if q
had a message before it that a process p, listed earlier than q, had after it.

Between parts, only those messages matter that lie across: at some process, after the beginning of a later part
or before the end of an earlier one. Two messages of different parts that are not both across are in the order of
their parts everywhere. Those that are across are collected and compared by themselves. docs/checks.md has the
proof.

For `object` two messages are compared only if their methods conflict, at both processes.

In a partitioned network, each part of the group decides by itself in which order it delivers the rest of the last common
view. A message of that view counts as a different message in each part of the group, so that these are not compared with each
other. For `total` the same applies to a process that failed together with the first member of its view, which determines the order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import DELIVER, START, Bools, Chunk, Ints
from inga.certify.combine import Line
from inga.certify.membership import Camps
from inga.certify.scan import NEVER

ACROSS_MAX = 1 << 21  # messages across parts that are compared; beyond that a check stays open
CAMP = (
    1 << 40
)  # above all message numbers: this times a process's camp is added to them, so that camps are not compared
LATE_MAX = 1 << 16  # late rows that a part lists; if it has more, it may have to be compared again


@dataclass(frozen=True, slots=True)
class Rules:
    """Which messages are compared: `conflicts[process, one, other]`, by codes of methods.

    Without methods (`total`) there is one code, and it conflicts with itself.
    """

    kind: int  # of the rows that are compared
    methods: tuple[str, ...]
    conflicts: Bools
    camps: Camps | None = (
        None  # by process and view, if not all processes are compared: `camps` or `orders` of `Membership`
    )

    @classmethod
    def total(cls, n: int, camps: Camps | None) -> "Rules":
        return cls(DELIVER, (), np.ones((n, 1, 1), np.bool_), camps)

    @classmethod
    def objects(
        cls, names: Sequence[str], declared: dict[str, list[list[str]]], camps: Camps | None
    ) -> "Rules":
        """The rules of a manifest, which lists the pairs of methods that conflict per process."""
        methods = sorted({name for pairs in declared.values() for pair in pairs for name in pair})
        conflicts = np.zeros((len(names), len(methods), len(methods)), np.bool_)
        for process, name in enumerate(names):
            for one, other in pairs_at(name, declared):
                at = methods.index(one), methods.index(other)
                conflicts[process, at[0], at[1]] = conflicts[process, at[1], at[0]] = True
        return cls(START, tuple(methods), conflicts, camps)

    def rows(self, chunk: Chunk) -> tuple[Ints, NDArray[np.int32]]:
        """The rows of a chunk that are compared with others, and their codes."""
        rows = np.flatnonzero(chunk.kind & self.kind)
        if not self.methods:
            return rows, np.zeros(len(rows), np.int32)
        assert chunk.method is not None, "methods are read if somebody compares them"
        known = {name: code for code, name in enumerate(self.methods)}
        codes = np.array([known.get(name, -1) for name in chunk.methods] or [-1], np.int32)
        found = codes[chunk.method[rows]]
        return rows[found >= 0], found[found >= 0]  # undeclared methods conflict with nothing


def pairs_at(process: str, declared: dict[str, list[list[str]]]) -> list[list[str]]:
    """The pairs of methods that a manifest lists for a process. A process that joined later is not in the manifest: a copy
    of an object has the pairs of the object's other copies, a member those of the other members."""
    if process not in declared:
        alike = (name for name in declared if _object_at(name) == _object_at(process))
        process = next(alike, process)
    return declared.get(process, [])


def _object_at(process: str) -> str:
    return process.rpartition("/")[2] if "/" in process else ""


@dataclass(frozen=True, slots=True)
class Placed:
    """Positions of some messages at one process. A `key` is number times processes plus sender: `message_of`."""

    process: int
    key: Ints
    pos: Ints
    code: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Clash:
    """A late row with the row that it contradicts: `process` has `other` first, `against` has `key` first."""

    process: int
    key: int
    pos: int
    other: int
    other_pos: int
    against: int
    against_pos: int  # of `key`
    against_other_pos: int
    methods: tuple[str, ...] = ()  # of `other` and `key`, if they have any


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of comparing processes within a part."""

    part: int
    first: Ints  # position of the first message, by process; NEVER if there is none
    last: Ints  # of the last one
    late: dict[tuple[int, int], Ints]  # (process, against): keys
    counts: dict[tuple[int, int], int]
    clashes: list[Clash]


def boundaries(lines: Sequence[Line], kind: int) -> Ints:
    """The highest number of each sender that the reference had seen at the end of each of its segments but the last: a line
    per segment."""
    reference = max(lines, key=lambda line: sum(_weight(link.summary, kind) for link in line), default=[])
    seen = np.zeros(len(lines), np.int64)
    highs = []
    for link in reference[:-1]:
        summary = link.summary
        there = summary.delivered_high if kind == DELIVER else summary.started_high
        seen = np.maximum(seen, np.maximum(there, summary.known))
        highs.append(seen)
    return np.array(highs, np.int64).reshape(-1, len(lines))


def _weight(summary: Any, kind: int) -> int:
    return int(summary.deliveries if kind == DELIVER else summary.starts)


def spread(chunk: Chunk, question: tuple[Rules, Ints]) -> list[tuple[int, Placed]]:
    """The rows of a chunk that are compared, by part."""
    rules, highs = question
    rows, codes = rules.rows(chunk)
    parts = part_of(highs, chunk.src[rows], chunk.seq[rows])
    found = []
    for part in np.unique(parts).tolist():
        mine = parts == part
        found.append((part, _placed(chunk, rules, rows[mine], codes[mine])))
    return found


def part_of(highs: Ints, src: Any, seq: Ints) -> Ints:
    parts = np.zeros(len(seq), np.int64)
    for source in np.unique(src).tolist():
        mine = src == source
        parts[mine] = np.searchsorted(highs[:, source], seq[mine], side="left")
    return parts


def message_of(key: int, n: int) -> tuple[int, int]:
    """Sender and number."""
    return key % n, key // n % CAMP


def _placed(chunk: Chunk, rules: Rules, rows: Ints, codes: NDArray[np.int32]) -> Placed:
    numbers = chunk.seq[rows]
    if rules.camps is not None:
        numbers = numbers + CAMP * rules.camps.of(chunk.process, chunk.view[rows])
    keys = numbers * chunk.n + chunk.src[rows]
    return Placed(chunk.process, keys, chunk.pos[rows], codes)


def judge(
    part: int,
    found: list[Placed],
    rules: Rules,
    listed_max: int,
    *,
    counted: dict[int, Ints] | None = None,
    asked: Ints | None = None,
) -> Judged:
    """Compare all pairs of processes over the messages of one part.

    `counted`: keys that were counted as late before, by process; they are left out. `asked`: if given, no other keys are reported.
    """
    n = len(rules.conflicts)
    here = sorted({each.process for each in found})  # a column each; most may have no message of this part
    rules = replace(rules, conflicts=rules.conflicts[here])
    keys = np.unique(np.concatenate([np.empty(0, np.int64), *(each.key for each in found)]))
    positions = np.zeros((len(keys), len(here)), np.int64)  # 0 if a process does not have the message
    codes = np.zeros(len(keys), np.int32)
    orders: list[Ints] = []
    first, last = np.full(n, NEVER), np.zeros(n, np.int64)
    for column, process in enumerate(here):
        mine = sorted((each for each in found if each.process == process), key=lambda each: int(each.pos[0]))
        key = np.concatenate([np.empty(0, np.int64), *(each.key for each in mine)])
        pos = np.concatenate([np.empty(0, np.int64), *(each.pos for each in mine)])
        code = np.concatenate([np.empty(0, np.int32), *(each.code for each in mine)])
        # Only the first delivery of a message counts: repeated ones are reported by `integrity`.
        firsts = np.sort(np.unique(key, return_index=True)[1])
        at = np.searchsorted(keys, key[firsts])
        positions[at, column], codes[at] = pos[firsts], code[firsts]
        orders.append(at)
        if len(pos):
            first[process], last[process] = pos[0], pos[-1]
    judged = Judged(part, first, last, {}, {}, [])
    for column, order in enumerate(orders):
        if column and len(order):
            rows = keys[order], positions[order], codes[order]
            late = _late(rules, column, *rows[1:])
            if counted is not None and here[column] in counted:
                late[np.isin(rows[0], counted[here[column]])] = False
            if asked is not None:
                late[~np.isin(rows[0], asked)] = False
            _note(judged, rules, column, *rows, late, listed_max, LATE_MAX if asked is None else len(order))
    return _named(judged, here)


def _named(judged: Judged, processes: list[int]) -> Judged:
    """The same, with processes in place of their columns."""

    def named(pair: tuple[int, int]) -> tuple[int, int]:
        return processes[pair[0]], processes[pair[1]]

    late = {named(pair): keys for pair, keys in judged.late.items()}
    counts = {named(pair): count for pair, count in judged.counts.items()}
    clashes = [
        replace(each, process=processes[each.process], against=processes[each.against])
        for each in judged.clashes
    ]
    return replace(judged, late=late, counts=counts, clashes=clashes)


def _late(rules: Rules, process: int, positions: Ints, codes: Any) -> Bools:
    """Which rows are late, in the order of this process, against each process before it, so that each pair is compared once."""
    there = positions[:, :process]
    late = np.zeros(there.shape, np.bool_)
    for other in range(rules.conflicts.shape[1]):
        earlier = np.where((codes == other)[:, None], there, 0)
        before = np.zeros_like(earlier)
        np.maximum.accumulate(earlier[:-1], axis=0, out=before[1:])
        # Methods conflict at both processes: conflicts[process] and conflicts[against], for the code of each row.
        minded = rules.conflicts[process, codes, other][:, None] & rules.conflicts[:process, codes, other].T
        late |= minded & (there > 0) & (there < before)
    return late


def _note(
    judged: Judged,
    rules: Rules,
    process: int,
    keys: Ints,
    positions: Ints,
    codes: Any,
    late: Bools,
    listed_max: int,
    late_max: int,
) -> None:
    """Count late rows under the first process that disagrees, and list some."""
    rows = np.flatnonzero(late.any(axis=1))
    against = late[rows].argmax(axis=1)
    for peer in np.unique(against).tolist():
        mine = rows[against == peer]
        judged.counts[process, peer] = len(mine)
        judged.late[process, peer] = keys[mine[:late_max]]
        judged.clashes.extend(
            _clash(rules, process, peer, row, keys, positions, codes) for row in mine[:listed_max].tolist()
        )


def _clash(rules: Rules, process: int, peer: int, row: int, keys: Ints, positions: Ints, codes: Any) -> Clash:
    """A late row, with the last row before it that the other process has after it."""
    pair = rules.conflicts[process, codes[row]] & rules.conflicts[peer, codes[row]]
    other = int(np.flatnonzero((positions[:row, peer] > positions[row, peer]) & pair[codes[:row]])[-1])
    methods = (rules.methods[codes[other]], rules.methods[codes[row]]) if rules.methods else ()
    return Clash(
        process, int(keys[row]), int(positions[row, process]), int(keys[other]), int(positions[other, process]),
        peer, int(positions[row, peer]), int(positions[other, peer]), methods,
    )  # fmt: skip


# ---- across parts


@dataclass(frozen=True, slots=True)
class Edges:
    """By part and process: where all earlier parts end, and where the first of the later ones begins."""

    ended: Ints
    begun: Ints

    @classmethod
    def of(cls, judged: Sequence[Judged], parts: int, n: int) -> "Edges":
        first, last = np.full((parts, n), NEVER), np.zeros((parts, n), np.int64)
        for each in judged:
            first[each.part], last[each.part] = each.first, each.last
        ended, begun = np.zeros_like(last), np.full_like(first, NEVER)
        ended[1:] = np.maximum.accumulate(last, axis=0)[:-1]
        begun[:-1] = np.minimum.accumulate(first[::-1], axis=0)[::-1][1:]
        return cls(ended, begun)

    def processes(self, judged: Sequence[Judged]) -> set[int]:
        """The processes at which parts overlap."""
        found: set[int] = set()
        for each in judged:
            over = (each.first < self.ended[each.part]) | (each.last > self.begun[each.part])
            found |= set(np.flatnonzero(over).tolist())
        return found


def across(chunk: Chunk, question: tuple[Rules, Ints, Edges]) -> Ints:
    """The keys of a chunk's rows that lie in the range of another part."""
    rules, highs, edges = question
    rows, codes = rules.rows(chunk)
    parts = part_of(highs, chunk.src[rows], chunk.seq[rows])
    pos, here = chunk.pos[rows], chunk.process
    over = (pos < edges.ended[parts, here]) | (pos > edges.begun[parts, here])
    keys: Ints = np.unique(_placed(chunk, rules, rows[over], codes[over]).key)
    return keys


def places(chunk: Chunk, question: tuple[Rules, Ints]) -> Placed:
    """Where a chunk has some messages."""
    rules, keys = question
    rows, codes = rules.rows(chunk)
    placed = _placed(chunk, rules, rows, codes)
    wanted = np.isin(placed.key, keys)
    return Placed(placed.process, placed.key[wanted], placed.pos[wanted], placed.code[wanted])


class Agreement:
    """The whole comparison: one pass that brings rows together by part, and two over messages that lie across parts."""

    def __init__(self, lines: Sequence[Line], rules: Rules, source: Any, listed_max: int) -> None:
        self._lines = lines
        self._rules = rules
        self._source = source
        self._listed_max = listed_max
        self.open: str | None = None  # why it cannot be decided

    def clashes(self) -> Iterator[tuple[tuple[int, int], int, list[Clash]]]:
        """For each two processes that disagree: the pair, how many rows are late, and the first of them."""
        rules, listed_max = self._rules, self._listed_max
        highs = boundaries(self._lines, rules.kind)
        questions = [
            (link.segment, (rules, highs))
            for line in self._lines
            for link in line
            if _weight(link.summary, rules.kind)
        ]

        def join(part: int, found: list[Placed]) -> Judged:
            return judge(part, found, rules, listed_max)

        judged = self._source.gather("parts compared", spread, questions, join)
        counts: dict[tuple[int, int], int] = {}
        shown: dict[tuple[int, int], list[Clash]] = {}
        for each in (*sorted(judged, key=lambda each: each.part), *self._across(judged, highs)):
            for pair, count in each.counts.items():
                counts[pair] = counts.get(pair, 0) + count
            for clash in each.clashes:
                shown.setdefault((clash.process, clash.against), []).append(clash)
        for pair in sorted(counts):
            yield pair, counts[pair], sorted(shown[pair], key=lambda clash: clash.pos)[:listed_max]

    def _across(self, judged: list[Judged], highs: Ints) -> list[Judged]:
        """The messages that are late only if those of several parts are compared."""
        edges = Edges.of(judged, len(highs) + 1, len(self._lines))
        overlapping = edges.processes(judged)
        links = [link for line in self._lines for link in line if _weight(link.summary, self._rules.kind)]
        asked = [
            (link.segment, (self._rules, highs, edges))
            for link in links
            if link.summary.process in overlapping
        ]
        if not asked:
            return []
        keys = np.empty(0, np.int64)
        for _, some in self._source.map("parts held against each other", across, asked):
            keys = np.union1d(keys, some)
            if len(keys) > ACROSS_MAX:
                self.open = f"more than {ACROSS_MAX:,} messages are far from where others have them"
                return []
        questions = [(link.segment, (self._rules, keys)) for link in links]
        found = [placed for _, placed in self._source.map("messages across parts read", places, questions)]
        across_parts = [placed for placed in found if len(placed.key)]
        spreading = [(link.segment, (self._rules, highs)) for link in links]
        counted = self._counted(judged, spreading, keys)
        return [judge(-1, across_parts, self._rules, self._listed_max, counted=counted)]

    def _counted(self, judged: list[Judged], questions: list[tuple[int, Any]], keys: Ints) -> dict[int, Ints]:
        """By process, the messages that are late within their own part already, so that each row is counted once."""
        if any(len(each.late[pair]) < count for each in judged for pair, count in each.counts.items()):
            rules = self._rules

            def join(part: int, found: list[Placed]) -> Judged:
                return judge(part, found, rules, 0, asked=keys)

            judged = self._source.gather("parts compared again", spread, questions, join)
        known: dict[int, Ints] = {}
        for each in judged:
            for (process, _), late in each.late.items():
                known[process] = np.union1d(known.get(process, np.empty(0, np.int64)), late)
        return known
