"""What a run cost and how long things took, as small tables.

    delays    from a send to each level of acceptance, in all, per member and per link
    steps     how often each step occurred, in all, per member and per link
    holds     how long messages waited for others, in all, per member and per link
    held_by   for which message they waited last
    windows   how long members were not allowed to send
    rates     sends, deliveries, control and repair, windows that close and permitted rates over time

Times are milliseconds. In `delays`, `steps` and `holds` a null stands for all members.

Tasks read the files and return summaries; rows are never exchanged. There are two passes, and a third where messages were held:

    glance    of each file: steps, windows, the span of its times, when its messages were sent, what it received
    look      some files of about the same time together, with the times of sends that they need: delays and rates
    waiting   the files of one process in order: holds (`inga.pipeline.waiting`)

There are few sends among all rows, as each has many receivers. Their times, eight bytes each, are all that goes through the driver.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import Bools, Ints
from inga.model.errors import TraceError
from inga.pipeline.files import Files
from inga.pipeline.spread import COARSE, FINE, Spread
from inga.pipeline.storage import File, StoredTrace, read_file
from inga.pipeline.waiting import NUMBER_BITS, Waits, message_key, waiting
from inga.trace.schema import load_pyarrow

LEVELS = ("receive", "accept", "causal", "confirm", "acknowledge", "deliver", "take")
FAMILIES = {
    "sends": ("send",),
    "deliveries": ("deliver",),
    "holds": ("hold",),
    "control": ("control", "poll", "nack"),
    "repair": ("repair",),
    "closed": ("window_closed",),
    "events": ("event",),
}
"""Columns of `rates`, and the steps that each counts."""

HELD_BY_MAX = 1000  # messages that held others, the worst first
BUCKETS = 60  # parts of the time of a run
APART_MAX = 2**63 - 1  # nanoseconds between two times, so that they can be subtracted
MEASURED_COLUMNS = ("process", "pos", "time", "step", "src", "seq", "deps", "peer", "n")

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
INDEX_BITS = 20  # of a process's index in the name of a line: more than indices have
INDEX_MAX = (1 << INDEX_BITS) - 1
UNITS_MAX = 64  # so that answers are small compared with what is read
FILES_MIN = 8
NOBODY = -1


def measure(files: Files, comparable: bool) -> dict[str, Any]:
    """All tables as pyarrow tables, by name; delays only if times of different processes are `comparable`."""
    trace = files.trace
    if not trace.files:
        raise TraceError(f"{trace.path} has no finished segment, so there is nothing to measure.")
    n = trace.n

    def at_first(file: File, content: bytes | None, question: None) -> Glance:
        return glance(file, content, n, comparable)

    numbers = range(len(trace.files))
    glances = dict(files.map("segments read", at_first, [(at, None) for at in numbers]))
    seen = [glances[at] for at in numbers]
    begin = min((each.begin for each in seen if each.rows), default=0)
    end = max((each.end for each in seen if each.rows), default=0)
    if end - begin > APART_MAX:
        raise TraceError(f"{trace.path} has times from {begin} to {end} ns: that is more than 292 years.")
    times = TimeParts(begin, max((end - begin) // BUCKETS + 1, 1))
    units = _units(trace, seen, times, comparable)
    looks = files.units("delays and rates", look, units)
    held = sorted({each.process for each in seen if each.held})
    one_by_one = [([at for at in numbers if seen[at].process == process], n) for process in held]
    waits = files.units("messages that were held", _waiting, one_by_one)
    tables = {
        "steps": _steps(seen),
        "holds": _holds(held, waits),
        "held_by": _held_by(held, waits),
        "windows": _windows(seen),
        "rates": _rates(looks, times),
    }
    return {**tables, "delays": _delays(looks)} if comparable else tables


# ---- the first pass: each file


@dataclass(frozen=True, slots=True)
class SendRuns:
    """When the messages of a file were sent: runs of consecutive numbers, and the times of all of them."""

    start: Ints
    length: Ints
    time: Ints


@dataclass(frozen=True, slots=True)
class FileTraffic:
    """What was sent, and by sender the lowest and the highest number that arrived; if none did, the lowest is above the highest."""

    sends: SendRuns
    lowest: Ints
    highest: Ints


@dataclass(frozen=True, slots=True)
class Closed:
    """Closed windows in a file: how often, for how long, and what has to be joined with the files before and after."""

    count: int
    total: int
    longest: int
    first: int | None  # the time of the first change
    last: int | None  # since when the window is closed, if it is at the end of the file


@dataclass(frozen=True, slots=True)
class Glance:
    """What is known of a file after the first pass."""

    process: int
    rows: int
    begin: int
    end: int
    steps: dict[
        tuple[str, int], tuple[int, int | None]
    ]  # by step and peer, or NOBODY: how many rows, and the sum of their `n`
    windows: Closed
    held: bool
    traffic: FileTraffic | None = None  # if delays are measured


@dataclass(frozen=True, slots=True)
class _Rows:
    """The columns of a file that were read."""

    names: list[str]
    step: NDArray[np.int32]
    time: Ints
    table: Any

    def which(self, *steps: str) -> Bools:
        codes = [code for code, name in enumerate(self.names) if name in steps]
        found: Bools = np.isin(self.step, codes)
        return found

    def column(self, name: str) -> tuple[Ints, Bools]:
        """The numbers of a column, and which rows have one."""
        column = self.table.column(name).combine_chunks()
        return (
            np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), np.int64),
            np.asarray(column.is_valid().to_numpy(zero_copy_only=False)),
        )


def _read(file: File, content: bytes | None, n: int, columns: tuple[str, ...]) -> _Rows:
    table = read_file(file, n, ("step", "time", *columns), content).combine_chunks()
    steps = table.column("step").combine_chunks()
    return _Rows(
        steps.dictionary.to_pylist(),
        np.asarray(steps.indices.to_numpy(zero_copy_only=False), np.int32),
        np.asarray(table.column("time").to_numpy(), np.int64),
        table,
    )


def glance(file: File, content: bytes | None, n: int, comparable: bool) -> Glance:
    rows = _read(file, content, n, ("peer", "n", "src", "seq") if comparable else ("peer", "n"))
    count = len(rows.time)
    begin, end = (int(rows.time.min()), int(rows.time.max())) if count else (0, 0)
    common = (file.process, count, begin, end, _count(rows, n), _closed(rows), bool(rows.which("hold").any()))
    if not comparable:
        return Glance(*common)
    (src, _), (seq, known) = rows.column("src"), rows.column("seq")
    sent = known & rows.which("send")
    came = known & rows.which(*LEVELS) & (src != file.process)
    lowest, highest = np.full(n, 1 << NUMBER_BITS), np.full(n, -1)
    np.minimum.at(lowest, src[came], seq[came])
    np.maximum.at(highest, src[came], seq[came])
    return Glance(*common, FileTraffic(_sends(seq[sent], rows.time[sent]), lowest, highest))


def _count(rows: _Rows, n: int) -> dict[tuple[str, int], tuple[int, int | None]]:
    peer, has_peer = rows.column("peer")
    number, has_number = rows.column("n")
    place = rows.step.astype(np.int64) * (n + 1) + np.where(has_peer, peer, n)
    size = len(rows.names) * (n + 1)
    counts, numbered = np.bincount(place, minlength=size), np.bincount(place[has_number], minlength=size)
    totals = np.zeros(size, np.int64)
    np.add.at(totals, place, number)
    found = {}
    for at in np.flatnonzero(counts).tolist():
        step, whom = divmod(at, n + 1)
        total = int(totals[at]) if numbered[at] else None
        found[rows.names[step], NOBODY if whom == n else whom] = int(counts[at]), total
    return found


def _closed(rows: _Rows) -> Closed:
    changes = np.flatnonzero(rows.which("window_closed", "window_opened"))
    if not len(changes):
        return Closed(0, 0, 0, None, None)
    time, closes = rows.time[changes], rows.which("window_closed")[changes]
    lengths = np.diff(time)[closes[:-1]]
    return Closed(
        int(closes.sum()), int(lengths.sum()), int(lengths.max(initial=0)), int(time[0]),
        int(time[-1]) if closes[-1] else None,
    )  # fmt: skip


def _sends(seq: Ints, time: Ints) -> SendRuns:
    starts = np.flatnonzero(np.append(True, np.diff(seq) != 1)) if len(seq) else np.zeros(0, np.int64)
    return SendRuns(seq[starts], np.diff(np.append(starts, len(seq))), time)


# ---- the second pass: files of about the same time


@dataclass(frozen=True, slots=True)
class TimeParts:
    """Equal parts of the time of a run."""

    begin: int
    width: int


class SentTimes:
    """When messages were sent, by sender and number."""

    def __init__(self, runs: Iterable[tuple[int, int, Ints]]) -> None:
        """From runs of (sender, first number, times)."""
        ordered = sorted(runs, key=lambda run: run[:2])
        self._first = np.array([message_key(src, start) for src, start, _ in ordered], np.int64)
        self._length = np.array([len(times) for _, _, times in ordered], np.int64)
        self._base = np.cumsum(self._length) - self._length
        self._time = np.concatenate([np.zeros(0, np.int64), *(times for _, _, times in ordered)])

    def of(self, src: Ints, seq: Ints) -> tuple[Ints, Bools]:
        """Times, and whether they are known."""
        if not len(self._first):
            return np.zeros(len(src), np.int64), np.zeros(len(src), np.bool_)
        key = message_key(src, np.clip(seq, 0, (1 << NUMBER_BITS) - 1))
        run = np.maximum(np.searchsorted(self._first, key, side="right") - 1, 0)
        offset = key - self._first[run]
        known = (offset >= 0) & (offset < self._length[run])
        return self._time[np.where(known, self._base[run] + offset, 0)], known


@dataclass(frozen=True, slots=True)
class Question:
    """What the second pass needs besides the files."""

    n: int
    times: TimeParts
    sent: SentTimes | None  # if delays are measured


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What is known of some files after the second pass."""

    rates: dict[
        int, Ints
    ]  # by process: a line for each part of time, a column for each of FAMILIES, and one for rates
    allowed: dict[
        tuple[int, int], tuple[int, int | None]
    ]  # by process and part of time: the position of the last `rate` row, and its rate
    by_member: Spread | None
    by_link: Spread | None


def _units(
    trace: StoredTrace, seen: Sequence[Glance], times: TimeParts, comparable: bool
) -> list[tuple[list[int], Question]]:
    """Files that share a task: those of about the same time need the times of the same sends."""
    ordered = sorted(range(len(seen)), key=lambda at: (seen[at].begin, at))
    size = 1 if trace.is_remote else max(-(-len(seen) // UNITS_MAX), min(FILES_MIN, len(seen)))
    parts = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    if not comparable:
        return [(part, Question(trace.n, times, None)) for part in parts]
    traffic = [each.traffic for each in seen if each.traffic is not None]
    runs = _runs([each.process for each in seen], traffic)
    units = []
    for part in parts:
        lowest = np.min([traffic[at].lowest for at in part], axis=0)
        highest = np.max([traffic[at].highest for at in part], axis=0)
        units.append((part, Question(trace.n, times, SentTimes(_between(runs, lowest, highest)))))
    return units


def _runs(processes: Sequence[int], traffic: Sequence[FileTraffic]) -> dict[int, list[tuple[int, Ints]]]:
    """The runs of sends by sender: first numbers and times."""
    found: dict[int, list[tuple[int, Ints]]] = {}
    for process, each in zip(processes, traffic, strict=True):
        times = np.split(each.sends.time, np.cumsum(each.sends.length)[:-1])
        found.setdefault(process, []).extend(zip(each.sends.start.tolist(), times, strict=False))
    return found


def _between(
    runs: dict[int, list[tuple[int, Ints]]], lowest: Ints, highest: Ints
) -> Iterable[tuple[int, int, Ints]]:
    """The runs of sends, cut to the numbers from `lowest` to `highest` of each sender."""
    for src, mine in runs.items():
        low, high = int(lowest[src]), int(highest[src])
        for start, times in mine:
            first, last = max(low - start, 0), min(high - start + 1, len(times))
            if first < last:
                yield src, start + first, times[first:last]


def look(files: Iterable[tuple[File, bytes | None]], question: Question) -> SecondLook:
    rates: dict[int, Ints] = {}
    allowed: dict[tuple[int, int], tuple[int, int | None]] = {}
    spreads: list[tuple[Spread, Spread]] = []
    for file, content in files:
        rows = _read(file, content, question.n, () if question.sent is None else ("src", "seq"))
        part = (rows.time - question.times.begin) // question.times.width
        rates[file.process] = rates.get(file.process, 0) + _counted(rows, part)
        if rows.which("rate").any():
            _say(allowed, file, _read(file, content, question.n, ("pos", "n")), part)
        if question.sent is not None:
            spreads.append(_delayed(file.process, rows, question.sent))
            if len(spreads) > FILES_MIN:
                spreads = [_summed(spreads)]
    return SecondLook(rates, allowed, *(_summed(spreads) if spreads else (None, None)))


def _counted(rows: _Rows, part: Ints) -> Ints:
    """Rows by part of time and family, with one more column for `rate` rows."""
    family = np.full(len(rows.names) + 1, len(FAMILIES) + 1)
    for at, steps in enumerate([*FAMILIES.values(), ("rate",)]):
        family[[code for code, name in enumerate(rows.names) if name in steps]] = at
    columns = len(FAMILIES) + 2
    counts = np.bincount(part * columns + family[rows.step], minlength=BUCKETS * columns)
    return counts.reshape(BUCKETS, columns)[:, :-1]


def _say(allowed: dict[tuple[int, int], tuple[int, int | None]], file: File, rows: _Rows, part: Ints) -> None:
    """Record the last rate in each part of time."""
    (pos, _), (number, known) = rows.column("pos"), rows.column("n")
    for at in np.flatnonzero(rows.which("rate")).tolist():
        key = file.process, int(part[at])
        if key not in allowed or allowed[key][0] < pos[at]:
            allowed[key] = int(pos[at]), int(number[at]) if known[at] else None


def _delayed(process: int, rows: _Rows, sent: SentTimes) -> tuple[Spread, Spread]:
    """How long messages took to reach each step at this process: by step, and by step and sender."""
    (src, _), (seq, known) = rows.column("src"), rows.column("seq")
    level = np.full(len(rows.names) + 1, NOBODY)
    for code, name in enumerate(rows.names):
        level[code] = LEVELS.index(name) if name in LEVELS else NOBODY
    level = level[rows.step]
    came = np.flatnonzero(known & (level != NOBODY) & (src != process))
    times, is_sent = sent.of(src[came], seq[came])
    came = came[is_sent]
    ns = rows.time[came] - times[is_sent]
    member = _line(level[came], process, INDEX_MAX)
    return Spread.of(FINE, member, ns), Spread.of(COARSE, _line(level[came], process, src[came]), ns)


def _summed(spreads: Sequence[tuple[Spread, Spread]]) -> tuple[Spread, Spread]:
    return Spread.sum([each for each, _ in spreads]), Spread.sum([each for _, each in spreads])


def _line(step: Any, process: Any, src: Any) -> Any:
    """The name of a line of a spread; INDEX_MAX stands for all, and so comes last."""
    return (step << 2 * INDEX_BITS) + (process << INDEX_BITS) + src


def _waiting(files: Iterable[tuple[File, bytes | None]], n: int) -> Waits:
    return waiting(files, n, HELD_BY_MAX)


# ---- tables


def _steps(seen: Sequence[Glance]) -> Any:
    pa = load_pyarrow()
    found: dict[tuple[str, int | None, int | None], list[Any]] = {}
    for each in seen:
        for (step, peer), (count, total) in each.steps.items():
            lines: list[tuple[str, int | None, int | None]] = [(step, None, None), (step, each.process, None)]
            # A step without peer has no link: it is in the member's line already.
            lines += [(step, each.process, peer)] if peer != NOBODY else []
            for line in lines:
                sums = found.setdefault(line, [0, None])
                sums[0] += count
                sums[1] = sums[1] if total is None else (sums[1] or 0) + total
    ordered = sorted(found, key=lambda line: [(part is not None, part) for part in line])
    columns = [[line[at] for line in ordered] for at in range(3)]
    columns += [[found[line][at] for line in ordered] for at in range(2)]
    layout = {
        "step": pa.string(),
        "process": pa.int32(),
        "peer": pa.int32(),
        "count": pa.int64(),
        "n": pa.int64(),
    }
    return pa.table(columns, schema=pa.schema(layout))


def _delays(looks: Sequence[SecondLook]) -> Any:
    by_member = Spread.sum([each.by_member for each in looks if each.by_member is not None])
    by_link = Spread.sum([each.by_link for each in looks if each.by_link is not None])
    in_all = by_member.renamed(by_member.line | (INDEX_MAX << INDEX_BITS))
    return _spreads([in_all, by_member, by_link], [LEVELS[at] for at in range(len(LEVELS))])


def _holds(held: Sequence[int], waits: Sequence[Waits]) -> Any:
    parts = [
        (each.in_all.renamed(_line(0, np.full(len(each.in_all.line), process), INDEX_MAX)),
         each.by_sender.renamed(_line(0, process, each.by_sender.line)))
        for process, each in zip(held, waits, strict=True)
    ]  # fmt: skip
    if not parts:
        none = Spread.of(FINE, np.zeros(0, np.int64), np.zeros(0, np.int64))
        return _spreads([none], None)
    by_member, by_link = _summed(parts)
    in_all = by_member.renamed(by_member.line | (INDEX_MAX << INDEX_BITS))
    return _spreads([in_all, by_member, by_link], None)


def _spreads(parts: Sequence[Spread], steps: Sequence[str] | None) -> Any:
    """A table with a line for each of the spreads: counts, means and percentiles, in milliseconds."""
    pa = load_pyarrow()

    def column(function: Callable[[Spread], Any]) -> Any:
        return np.concatenate([function(part) for part in parts])

    line = column(lambda part: part.line)
    step, process, src = line >> 2 * INDEX_BITS, (line >> INDEX_BITS) & INDEX_MAX, line & INDEX_MAX
    names = np.array([*(steps or ()), ""])[np.minimum(step, len(steps or ()))]
    is_part = (src != INDEX_MAX, process != INDEX_MAX)
    order = np.lexsort((np.where(is_part[0], src, -1), np.where(is_part[1], process, -1), names))
    count = column(lambda part: part.count)
    found = {
        "process": pa.array(process[order], pa.int32(), mask=~is_part[1][order]),
        "src": pa.array(src[order], pa.int32(), mask=~is_part[0][order]),
        "count": pa.array(count[order]),
        "mean": pa.array((column(lambda part: part.total) / 1e6 / count)[order]),
        "min": pa.array(column(lambda part: part.low)[order] / 1e6),
        **{
            name: pa.array(column(partial(Spread.percentile, share=share))[order] / 1e6)
            for name, share in SHARES.items()
        },
        "max": pa.array(column(lambda part: part.high)[order] / 1e6),
    }
    if steps is not None:
        found = {"step": pa.array(names[order].tolist(), pa.string()), **found}
    return pa.table(found)


def _held_by(held: Sequence[int], waits: Sequence[Waits]) -> Any:
    pa = load_pyarrow()

    def column(name: str) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *(getattr(each.blame, name) for each in waits)])

    process = np.repeat(np.array(held, np.int64), [len(each.blame.key) for each in waits])
    key, total = column("key"), column("total")
    order = np.lexsort((key, process, -total))[:HELD_BY_MAX]
    return pa.table(
        {
            "process": pa.array(process[order], pa.int32()),
            "src": pa.array(key[order] >> NUMBER_BITS, pa.int32()),
            "seq": pa.array(key[order] & ((1 << NUMBER_BITS) - 1)),
            "held": pa.array(column("held")[order]),
            "ms": pa.array(total[order] / 1e6),
            "ms_max": pa.array(column("longest")[order] / 1e6),
        }
    )


def _windows(seen: Sequence[Glance]) -> Any:
    """A window that stays closed counts until the last row of its process."""
    pa = load_pyarrow()
    lines = []
    for process in sorted({each.process for each in seen if each.windows.count}):
        mine = [each for each in seen if each.process == process and each.rows]
        begin, end = min(each.begin for each in mine), max(each.end for each in mine)
        count, total, longest, since = 0, 0, 0, None
        for windows in (each.windows for each in mine):
            if since is not None and windows.first is not None:
                total, longest, since = (
                    total + windows.first - since,
                    max(longest, windows.first - since),
                    None,
                )
            count, total, longest = (
                count + windows.count,
                total + windows.total,
                max(longest, windows.longest),
            )
            since = windows.last if windows.first is not None else since
        if since is not None:
            total, longest = total + end - since, max(longest, end - since)
        share = total / (end - begin) if end > begin else 0.0
        lines.append((process, count, total / 1e6, longest / 1e6, share))
    layout = {
        "process": pa.int32(),
        "closed": pa.int64(),
        "ms": pa.float64(),
        "ms_max": pa.float64(),
        "share": pa.float64(),
    }
    return pa.table([list(each) for each in zip(*lines, strict=True)] or [[]] * 5, schema=pa.schema(layout))


def _rates(looks: Sequence[SecondLook], times: TimeParts) -> Any:
    """`allowed` is the rate in bits per second that a member was last permitted in the part of time; null if no row in it names
    a rate."""
    pa = load_pyarrow()
    counts: dict[int, Ints] = {}
    allowed: dict[tuple[int, int], tuple[int, int | None]] = {}
    for each in looks:
        for process, more in each.rates.items():
            counts[process] = counts.get(process, 0) + more
        for key, said in each.allowed.items():
            allowed[key] = max(allowed.get(key, said), said, key=lambda one: one[0])
    lines = [
        (part, process)
        for process, found in counts.items()
        for part in np.flatnonzero(found.any(axis=1)).tolist()
    ]
    lines.sort()
    columns: dict[str, Any] = {
        "from_ms": pa.array([part * times.width / 1e6 for part, _ in lines], pa.float64()),
        "length_ms": pa.array([times.width / 1e6] * len(lines), pa.float64()),
        "process": pa.array([process for _, process in lines], pa.int32()),
    }
    for at, family in enumerate(FAMILIES):
        columns[family] = pa.array([int(counts[process][part, at]) for part, process in lines], pa.int64())
    last = [allowed.get((process, part), (0, None))[1] for part, process in lines]
    return pa.table({**columns, "allowed": pa.array(last, pa.int64())})
