"""What certification costs, against Spark doing no more than reading the same columns.

CPU seconds of everything this process has started: the JVM and the Python workers. Both sides are warmed up
first, so start-up is in neither. The baseline reads every column that the checks read, and adds it up.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inga.certify.certificate import certify
from inga.certify.chunk import COLUMNS
from inga.lab.bench import Row
from inga.lab.traces import Recipe, make
from inga.model.errors import UsageError
from inga.pipeline.certify import SparkSource
from inga.pipeline.files import Files
from inga.pipeline.session import open_session
from inga.pipeline.storage import open_trace

REPETITIONS = 3
CHECKS = ("integrity", "complete", "fifo", "stamps", "causal")
EVENTS = {8: (1_000_000, 10_000_000, 30_000_000), 64: (1_000_000, 4_000_000)}
"""By members, what is measured. Only traces with full segments say something about growth."""

Sizes = dict[tuple[int, int], float]
"""Something measured, by members and events."""


def run(progress: Callable[[str], None], *, quick: bool = False) -> list[Row]:
    """All cases. `quick` leaves out the larger traces."""
    if not Path("/proc/self/stat").exists():
        raise UsageError("bench check needs /proc to see what the JVM and the workers use")
    session = open_session(name="inga bench", quick=False)
    rows: list[Row] = []
    costs: Sizes = {}
    peaks: Sizes = {}
    try:
        with TemporaryDirectory() as scratch:
            for members, sizes in EVENTS.items():
                for events in sizes[:1] if quick else sizes:
                    case = f"{events:,} events, n = {members}"
                    progress(case)
                    path = Path(scratch) / f"{members}-{events}"
                    make(path, Recipe(events, members))
                    scan, check = _measure(session, path)
                    costs[members, events] = check
                    peaks[members, events] = _worker_peak()
                    rows.append(Row(f"check, {case}", scan, check, "cpu s", "Spark scan of the same columns"))
            rows += _growth(costs, peaks)
    finally:
        session.stop()
    return rows


def _growth(costs: Sizes, peaks: Sizes) -> list[Row]:
    """The largest trace against the next: cost per event and memory, both 1 if they do not grow."""
    rows = []
    for members in EVENTS:
        sizes = sorted(events for n, events in costs if n == members)
        if len(sizes) < 2:
            continue
        small, large = (members, sizes[-2]), (members, sizes[-1])
        what, baseline = f"n = {members}, {large[1]:,} events", f"{small[1]:,} events"
        before, after = (1e9 * costs[size] / size[1] for size in (small, large))
        rows.append(Row(f"cost, {what}", before, after, "cpu ns per event", baseline))
        rows.append(Row(f"peak of a worker, {what}", peaks[small], peaks[large], "MB", baseline))
    return rows


def _measure(session: Any, path: Path) -> tuple[float, float]:
    """CPU seconds of a scan and of the checks: the least of some repetitions, taken in turn."""

    def check() -> None:
        source = SparkSource(Files(session, open_trace(str(path)), lambda *_: None))
        certificate = certify(source, CHECKS)
        assert certificate.verdict == "pass", certificate.to_json()

    def scan() -> None:
        from pyspark.sql import functions as F

        def summed(name: str) -> Any:
            return F.sum(F.length(name)) if name in ("step", "dst", "deps") else F.sum(name)

        rows = session.read.parquet(str(path / "events")).select(*COLUMNS)
        rows.agg(*map(summed, COLUMNS)).collect()

    scan()
    check()
    pairs = [(_cpu_of(scan), _cpu_of(check)) for _ in range(REPETITIONS)]
    return min(scan for scan, _ in pairs), min(check for _, check in pairs)


def _cpu_of(action: Callable[[], None]) -> float:
    before = cpu_seconds()
    action()
    return cpu_seconds() - before


def cpu_seconds() -> float:
    """What this process and all its descendants have used so far, also those that have ended."""
    ticks = sum(sum(map(int, fields[11:15])) for _, fields in _family())  # own and waited-for
    return ticks / os.sysconf("SC_CLK_TCK")


def _worker_peak() -> float:
    """The most memory that a Python worker ever had, in MB."""
    peaks = [0.0]
    for process, _ in _family():
        try:
            is_worker = b"pyspark.daemon" in Path(f"/proc/{process}/cmdline").read_bytes()
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:  # it ended meanwhile
            continue
        if is_worker:
            peaks += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")]
    return max(peaks)


def _family() -> Iterator[tuple[int, list[str]]]:
    """This process and its descendants, with the fields of /proc/PID/stat after the name."""
    children: dict[int, list[int]] = {}
    fields: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it may end meanwhile
                process = int(entry.name)
                fields[process] = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[process][1]), []).append(process)
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        yield process, fields[process]
        waiting += children.get(process, [])
