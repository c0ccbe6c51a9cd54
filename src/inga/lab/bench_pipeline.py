"""What each command of the pipeline costs, against Spark doing no more than reading the columns that the command reads.

CPU seconds of everything this process has started, seconds by the clock, and the most memory that a worker of Spark had in
each command. All are warmed up first and take turns; medians count. In large groups few members talk, as they do: what
vectors say does not grow with those who listen, and the cost for each of their entries is compared with that of 64 members.
"""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inga.certify.chunk import JUDGED_COLUMNS
from inga.lab.bench import BenchRow, SayProgress
from inga.lab.bench_check import WORKER, check, forget_peaks, in_turn, need_proc, peak_memory, scan
from inga.lab.traces import TraceRecipe, make
from inga.pipeline.capture import TRACE_COLUMNS, open_capture, order_capture
from inga.pipeline.jobs import measure_trace
from inga.pipeline.measuring import MEASURED_COLUMNS
from inga.pipeline.session import open_session
from inga.pipeline.stamping import stamp_trace
from inga.trace import COLUMNS

REPETITIONS = 3
MEMBERS = (8, 64, 1_000)
EVENTS = (1_000_000,)
EVENTS_LARGE = (1_000_000, 10_000_000, 100_000_000)
CROWD = 256  # members, from which on few of them talk
TALKERS = 16
SCAN = "Spark scan of the same columns"
WORKER_MAX = 500  # MB

CommandCosts = dict[tuple[str, int, int], float]
"""CPU seconds, by command, members and events."""

COLUMNS_READ = {
    "check": JUDGED_COLUMNS,
    "metrics": MEASURED_COLUMNS,
    "stamp": COLUMNS,
    "order": ("step", *TRACE_COLUMNS),
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
) -> list[BenchRow]:
    """All cases: `large` adds the larger traces."""
    need_proc()
    sizes = sizes or (EVENTS_LARGE if large else EVENTS)
    rows: list[BenchRow] = []
    costs: CommandCosts = {}
    session = open_session(name="inga bench", quick=False)
    try:
        with TemporaryDirectory() as scratch:
            for n, events in product(members, sizes):
                path = Path(scratch) / f"{n}-{events}"
                progress(f"{events:,} events, n = {n}")
                make(path, TraceRecipe(events, n, talkers=min(n, TALKERS) if n >= CROWD else None))
                for name in commands:
                    progress(f"{name}, {events:,} events, n = {n}")
                    measured, cost = _measure(session, path, name, events, n, repetitions)
                    costs[name, n, events] = cost
                    rows += measured
                shutil.rmtree(path)  # a large one is several gigabytes
    finally:
        session.stop()
    return [*rows, *_entries(costs)]


def _measure(
    session: Any, path: Path, name: str, events: int, n: int, repetitions: int
) -> tuple[list[BenchRow], float]:
    """One command on one trace: rows, and its CPU seconds."""
    forget_peaks()
    scanning = partial(scan, session, path, COLUMNS_READ[name])
    found = in_turn({SCAN: scanning, name: partial(ACTIONS[name], session, path)}, repetitions)
    (scan_cpu, scan_wall), (cpu, wall) = found[SCAN], found[name]
    case = f"{name}, {events:,} events, n = {n}"
    return [
        BenchRow(case, scan_cpu, cpu, "cpu s", SCAN),
        BenchRow(case, scan_wall, wall, "s", SCAN),
        BenchRow(f"peak of a worker, {case}", WORKER_MAX, peak_memory(WORKER), "MB", "what it may have"),
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


# ---- commands


def _metrics(session: Any, path: Path) -> None:
    found = measure_trace(str(path), session=session)
    assert found.tables["delays"].num_rows, "clocks of made traces are one"


def _stamp(session: Any, path: Path) -> None:
    _with_output(path, lambda out: stamp_trace(str(path), out, session=session))


def _order(session: Any, path: Path) -> None:
    outcome = _with_output(path, lambda out: order_capture(open_capture(str(path)), out, session=session))
    assert outcome.gaps == 0, outcome


def _with_output(path: Path, action: Callable[[str], Any]) -> Any:
    out = path.with_name("out")
    try:
        return action(str(out))
    finally:
        shutil.rmtree(out, ignore_errors=True)


ACTIONS: dict[str, Callable[[Any, Path], None]] = {
    "check": check,
    "metrics": _metrics,
    "stamp": _stamp,
    "order": _order,
}
