"""The cost of each command of the pipeline, against Spark that only reads the columns that the command reads.

Measured are the CPU seconds of this process and everything it has started, wall-clock seconds, and the memory peaks of Spark's workers,
of the JVM, of the driver and of all processes together. Commands and baselines are warmed up first, by a smaller trace if theirs is
large, and are then repeated alternately; medians are reported. In large groups few members send, as is usual: what vectors contain does not
grow with members that only receive, and the cost for each entry of a vector is compared with that in the next smaller group.

Commands that need no Spark (`report` by `--engine local`, `export` as lines of JSON, `import` of a log for ShiViz) run in a process of
their own, twice; the CPU of the second run is reported, and the memory peak of the process.
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
CROWD = 256  # members; in groups of so many or more, only `TALKERS` send
TALKERS = 16
SCAN = "Spark scan of the same columns"
WORKER_MAX = 500  # MB
ALL_MAX = 8192  # MB, of all processes together
ALONE_EVENTS_MAX = 10_000_000  # of a trace for one process: a log of so many has gigabytes
WARMUP_EVENTS = 1_000_000  # of a trace that is large enough to start all workers and compile hot code

CommandCosts = dict[tuple[str, int, int], float]
"""CPU seconds, by command, members and events."""

COLUMNS_READ = {
    "check": JUDGED_COLUMNS,
    "metrics": MEASURED_COLUMNS,
    "stamp": COLUMNS,
    "order": ("step", *TRACE_COLUMNS),
    "report": COLUMNS,
    "export": COLUMNS,
    "import": COLUMNS,  # it writes these columns instead of reading them
}
"""By command: the columns of a trace that it reads."""


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
    """Run all cases; `large` adds the larger traces. Traces that already exist in the directory `traces` are not made again; all are kept
    there."""
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
                    shutil.rmtree(path)  # large traces have several gigabytes
    finally:
        session.stop()
    return [*rows, *_entries(costs)]


def made(directory: Path, events: int, n: int, progress: SayProgress) -> Path:
    """Return the path of a trace of that size, and make the trace unless it exists."""
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
    """A command, and the trace that it processes."""

    command: str
    path: Path
    small: Path  # a trace that is large enough to warm up
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
    """Measure one command on one trace: rows, and its CPU seconds."""
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
    """Measure the same for a command that runs in a process of its own."""
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
    """Compare large groups with the next smaller one: the ratio of CPU per entry of vectors, 1 if only entries cost anything."""
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


# ---- commands: each is given a trace, and a path for its output


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
"""The commands that need no Spark; they read a trace, or a log of one."""
