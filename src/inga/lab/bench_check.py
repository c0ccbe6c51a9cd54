"""What certification costs, against Spark doing no more than reading the same columns.

CPU seconds of everything this process has started: the JVM and the Python workers. Both sides are warmed up
first, so start-up is in neither. The baseline reads every column that the checks read, and adds it up.
"""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inga.certify.certificate import BUILT, certify
from inga.certify.chunk import COLUMNS
from inga.lab.bench import Row
from inga.lab.traces import Recipe, make
from inga.model.errors import UsageError
from inga.pipeline.certify import SparkSource
from inga.pipeline.session import open_session
from inga.pipeline.storage import open_trace

REPETITIONS = 3
EVENTS = (1_000_000, 10_000_000)
MEMBERS = (8, 64)


def run(progress: Callable[[str], None], *, quick: bool = False) -> list[Row]:
    """All cases. `quick` leaves out the larger traces."""
    if not Path("/proc/self/stat").exists():
        raise UsageError("bench check needs /proc to see what the JVM and the workers use")
    session = open_session(name="inga bench", quick=False)
    rows: list[Row] = []
    costs: dict[tuple[int, int], float] = {}
    try:
        with TemporaryDirectory() as scratch:
            for members in MEMBERS:
                for events in EVENTS[:1] if quick else EVENTS:
                    if members == 64 and events == EVENTS[-1] and not quick:
                        events //= 5  # vectors are eight times as wide
                    case = f"{events:,} events, n = {members}"
                    progress(case)
                    path = Path(scratch) / f"{members}-{events}"
                    make(path, Recipe(events, members))
                    scan, check = _measure(session, path)
                    costs[members, events] = check
                    rows.append(Row(f"check, {case}", scan, check, "cpu s", "Spark scan of the same columns"))
            rows += _growth(costs)
    finally:
        session.stop()
    return rows


def _growth(costs: dict[tuple[int, int], float]) -> list[Row]:
    """Cost per event of the larger trace against that of the smaller: 1 is linear."""
    rows = []
    for members in MEMBERS:
        sizes = sorted(events for n, events in costs if n == members)
        if len(sizes) > 1:
            small, large = (1e9 * costs[members, events] / events for events in (sizes[0], sizes[-1]))
            what = f"check, n = {members}, {sizes[-1]:,} events"
            rows.append(Row(what, small, large, "cpu ns per event", f"{sizes[0]:,} events"))
    return rows


def _measure(session: Any, path: Path) -> tuple[float, float]:
    """CPU seconds of a scan and of the checks: the least of some repetitions, taken in turn."""

    def check() -> None:
        source = SparkSource(session, open_trace(str(path)), lambda *_: None)
        certificate = certify(source, BUILT)
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
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
        used[int(entry.name)] = sum(map(int, fields[11:15]))  # own and waited-for, user and system
    total, waiting = 0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += used.get(process, 0)
        waiting += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")
