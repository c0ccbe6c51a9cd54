"""What each command of the pipeline costs, against Spark doing no more than reading the columns that the command reads.

CPU seconds of everything this process has started, seconds by the clock, and the most memory that a worker of Spark had in
each command, and of all processes together. All are warmed up first, by a smaller trace if theirs is large, and take turns; medians count. In
large groups few members talk, as they do: what vectors say does not grow with those who listen, and the cost for each of their entries is compared
with that of 64 members.

Commands that need no Spark (`report` by `--engine local`, `export` as lines of JSON, `import` of a log for ShiViz) have a process of their own, in which
each is done twice; the second time counts, and the peak of the process.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from inga.certify.chunk import JUDGED_COLUMNS
from inga.lab.bench import BenchRow, SayProgress
from inga.lab.bench_check import (
    JAVA,
    WORKER,
    alone,
    check,
    forget_peaks,
    in_turn,
    need_proc,
    peak_memory,
    peak_of_all,
    peak_of_driver,
    scan,
)
from inga.lab.bench_report import make_page
from inga.lab.traces import TraceRecipe, make
from inga.pipeline.capture import TRACE_COLUMNS, open_capture, order_capture
from inga.pipeline.jobs import measure_trace
from inga.pipeline.measuring import MEASURED_COLUMNS
from inga.pipeline.session import open_session
from inga.pipeline.stamping import stamp_trace
from inga.trace import COLUMNS, write_jsonl, write_shiviz
from inga.trace.directory import whole_directory
from inga.trace.importers import import_log

REPETITIONS = 3
MEMBERS = (8, 64, 1_000)
EVENTS = (1_000_000,)
EVENTS_LARGE = (1_000_000, 10_000_000, 100_000_000)
CROWD = 256  # members, from which on few of them talk
TALKERS = 16
SCAN = "Spark scan of the same columns"
WORKER_MAX = 500  # MB
ALL_MAX = 8192  # MB, of everything together
ALONE_EVENTS_MAX = 10_000_000  # of a trace for one process: as a log it has gigabytes
WARMUP_EVENTS = 1_000_000  # of a trace that is enough to start workers and compile what is run

CommandCosts = dict[tuple[str, int, int], float]
"""CPU seconds, by command, members and events."""

COLUMNS_READ = {
    "check": JUDGED_COLUMNS,
    "metrics": MEASURED_COLUMNS,
    "stamp": COLUMNS,
    "order": ("step", *TRACE_COLUMNS),
    "report": COLUMNS,
    "export": COLUMNS,
    "import": COLUMNS,  # which it does not read but writes
}
"""By command: what it reads of a trace."""


def run(
    progress: SayProgress,
    *,
    large: bool = False,
    members: Sequence[int] = MEMBERS,
    sizes: Sequence[int] | None = None,
    repetitions: int = REPETITIONS,
    commands: Sequence[str] = tuple(COLUMNS_READ),
    traces: Path | None = None,
) -> list[BenchRow]:
    """All cases: `large` adds the larger traces. Traces that are found in a directory are not made again, and stay there."""
    need_proc()
    sizes = sizes or (EVENTS_LARGE if large else EVENTS)
    rows: list[BenchRow] = []
    costs: CommandCosts = {}
    session = open_session(name="inga bench", quick=False)
    try:
        with TemporaryDirectory() as scratch:
            place = Path(scratch)
            for n, events in product(members, sizes):
                path = made(traces or place, events, n, progress)
                small = made(place, WARMUP_EVENTS, n, progress) if events > WARMUP_EVENTS else path
                for name in commands:
                    if name in ALONE and events > ALONE_EVENTS_MAX:
                        progress(f"{name}: nothing of more than {ALONE_EVENTS_MAX:,} events")
                        continue
                    measure = _measure_alone if name in ALONE else _measure
                    measured, cost = measure(
                        session, _Case(name, path, small, events, n, place), repetitions, progress
                    )
                    costs[name, n, events] = cost
                    rows += measured
                if traces is None:
                    shutil.rmtree(path)  # a large one is several gigabytes
    finally:
        session.stop()
    return [*rows, *_entries(costs)]


def made(directory: Path, events: int, n: int, progress: SayProgress) -> Path:
    """A trace of that size, unless it is there."""
    path = directory / f"{n}-{events}"
    if path.exists():
        return path
    share = 0

    def say(rows: int) -> None:
        nonlocal share
        if rows * 10 // events > share:
            share = min(rows * 10 // events, 10)
            progress(f"{events:,} events, n = {n}: {share * 10} % of the trace are made")

    progress(f"{events:,} events, n = {n}: making the trace")
    with whole_directory(path) as hidden:
        make(hidden, TraceRecipe(events, n, talkers=min(n, TALKERS) if n >= CROWD else None), progress=say)
    return path


@dataclass(frozen=True, slots=True)
class _Case:
    """A command, and the trace it is to go through."""

    command: str
    path: Path
    small: Path  # a trace that is enough to warm up
    events: int
    n: int
    scratch: Path

    def __str__(self) -> str:
        return f"{self.command}, {self.events:,} events, n = {self.n}"

    def actions(self, session: Any, path: Path) -> dict[str, Callable[[], None]]:
        return {
            SCAN: partial(scan, session, path, COLUMNS_READ[self.command]),
            self.command: partial(ACTIONS[self.command], session, path, self.scratch / "out"),
        }


def _measure(
    session: Any, case: _Case, repetitions: int, progress: SayProgress
) -> tuple[list[BenchRow], float]:
    """One command on one trace: rows, and its CPU seconds."""
    forget_peaks()
    found = in_turn(
        case.actions(session, case.path),
        repetitions,
        warmups=case.actions(session, case.small),
        progress=lambda what: progress(f"{case}: {what}"),
    )
    (scan_cpu, scan_wall), (cpu, wall) = found[SCAN], found[case.command]
    peaks = [
        BenchRow(f"peak of a worker, {case}", WORKER_MAX, peak_memory(WORKER), "MB", "what it may have"),
        BenchRow(f"peak of the JVM, {case}", ALL_MAX, peak_memory(JAVA), "MB", "what all may have"),
        BenchRow(f"peak of the driver, {case}", ALL_MAX, peak_of_driver(), "MB", "what all may have"),
        BenchRow(f"sum of all peaks, {case}", ALL_MAX, peak_of_all(), "MB", "what all may have"),
    ]
    return [
        BenchRow(str(case), scan_cpu, cpu, "cpu s", SCAN),
        BenchRow(str(case), scan_wall, wall, "s", SCAN),
        *peaks,
    ], cpu


def _measure_alone(
    session: Any, case: _Case, repetitions: int, progress: SayProgress
) -> tuple[list[BenchRow], float]:
    """The same of a command that has a process of its own."""
    scanning = {SCAN: partial(scan, session, case.path, COLUMNS_READ[case.command])}
    scan_cpu, _ = in_turn(scanning, repetitions, progress=lambda what: progress(f"{case}: {what}"))[SCAN]
    source, out = case.path, case.scratch / "out"
    if case.command == "import":
        source = case.scratch / "log"
        with source.open("w", encoding="utf-8") as log:
            write_shiviz(case.path, log)
    found = []
    for turn in range(1, repetitions + 1):
        progress(f"{case}: {turn} of {repetitions}")
        found.append(alone(ALONE[case.command], source, out))
    cpu, peak = median(each for each, _ in found), max(each for _, each in found)
    if source != case.path:
        source.unlink()
    return [
        BenchRow(str(case), scan_cpu, cpu, "cpu s", SCAN),
        BenchRow(f"peak of the process, {case}", ALL_MAX, peak, "MB", "what all may have"),
    ], cpu


def _entries(costs: CommandCosts) -> list[BenchRow]:
    """Large groups against the next smaller: the cost for each entry of a vector, 1 if only entries cost."""
    rows = []
    for (name, n, events), cost in costs.items():
        smaller = max((m for c, m, e in costs if (c, e) == (name, events) and m < n), default=None)
        if n >= CROWD and smaller is not None:
            before = 1e9 * costs[name, smaller, events] / (events * smaller)
            after = 1e9 * cost / (events * n)
            rows.append(
                BenchRow(
                    f"{name}, {events:,} events, n = {n}", before, after, "cpu ns per entry", f"n = {smaller}"
                )
            )
    return rows


# ---- commands: of a trace, with a place for what they write


def _check(session: Any, path: Path, out: Path) -> None:
    check(session, path)


def _metrics(session: Any, path: Path, out: Path) -> None:
    found = measure_trace(str(path), session=session)
    assert found.tables["delays"].num_rows, "clocks of made traces are one"


def _stamp(session: Any, path: Path, out: Path) -> None:
    with _cleared(out):
        stamp_trace(str(path), str(out), session=session)


def _order(session: Any, path: Path, out: Path) -> None:
    with _cleared(out):
        outcome = order_capture(open_capture(str(path)), str(out), session=session)
    assert outcome.gaps == 0, outcome


def _report(trace: Path, out: Path) -> None:
    make_page(trace, out)
    out.unlink()


def _export(trace: Path, out: Path) -> None:
    with out.open("w", encoding="utf-8") as lines:
        write_jsonl(trace, lines)
    out.unlink()


def _import(log: Path, out: Path) -> None:
    with _cleared(out):
        import_log("shiviz", log, out)


@contextmanager
def _cleared(out: Path) -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(out, ignore_errors=True)


ACTIONS: dict[str, Callable[[Any, Path, Path], None]] = {
    "check": _check,
    "metrics": _metrics,
    "stamp": _stamp,
    "order": _order,
}

ALONE: dict[str, Callable[[Path, Path], None]] = {"report": _report, "export": _export, "import": _import}
"""Those that need no Spark, and read a trace or a log of one."""
