"""The cost of certification, against Spark that only reads the same columns.

Measured are the CPU seconds of this process and everything it has started: the JVM and the Python workers. Both sides are warmed up
first, so start-up is in neither, and are then repeated alternately; medians are reported. The baseline reads every column that
the checks read, and adds it up.

Other programs do the same work on one machine, each in a process of its own: pyarrow with the kernels of the checks and without Spark, and
DuckDB and Polars, if they are installed (`pip install 'inga[bench]'`), by a window over the rows. These two cannot read
packed vectors, so they run the check `fifo` alone, which is less than a third of the work.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from time import perf_counter, process_time
from typing import Any

from inga.certify.certificate import certify
from inga.certify.chunk import JUDGED_COLUMNS
from inga.lab.bench import BenchRow
from inga.lab.traces import TraceRecipe, make
from inga.model.errors import UsageError
from inga.pipeline.certify import FileSource
from inga.pipeline.files import files_of
from inga.pipeline.session import open_session
from inga.pipeline.storage import open_trace
from inga.trace.schema import KINDS, spark_schema

REPETITIONS = 5
CHECKS = ("integrity", "complete", "fifo", "stamps", "causal")
MEMBERS = (8, 64)
EVENTS = (1_000_000, 10_000_000)
EVENTS_LARGE = 100_000_000
SPEED = "events per cpu s"
SCAN = "Spark scan of the same columns"

Sizes = dict[tuple[int, int], float]
"""A measured number, by members and events."""


def run(
    progress: Callable[[str], None],
    *,
    quick: bool = False,
    large: bool = False,
    members: Sequence[int] = MEMBERS,
    sizes: Sequence[int] | None = None,
    repetitions: int = REPETITIONS,
    note: Callable[[str], None] = lambda text: None,
) -> list[BenchRow]:
    """Run all cases. `quick` keeps only the smallest traces, `large` adds the largest; `note` is called with the cases that could not be
    measured."""
    need_proc()
    if sizes is None:
        sizes = EVENTS[:1] if quick else (*EVENTS, EVENTS_LARGE) if large else EVENTS
    others = {name: rival for name, rival in RIVALS.items() if _is_there(name, rival, note)}
    session = open_session(name="inga bench", quick=False)
    rows: list[BenchRow] = []
    costs: Sizes = {}
    peaks: Sizes = {}
    try:
        with TemporaryDirectory() as scratch:
            for n, events in product(members, sizes):
                case = f"{events:,} events, n = {n}"
                progress(case)
                path = Path(scratch) / f"{n}-{events}"
                make(path, TraceRecipe(events, n))
                (scan, scan_wall), (check, check_wall) = _measure(session, path, repetitions)
                costs[n, events] = check
                peaks[n, events] = peak_memory(WORKER)
                rows.append(BenchRow(f"check, {case}", scan, check, "cpu s", SCAN))
                rows.append(BenchRow(f"check, {case}", scan_wall, check_wall, "s", SCAN))
                rows.append(BenchRow(f"inga check, {case}", events / scan, events / check, SPEED, SCAN))
                rows.append(
                    BenchRow(
                        f"peak of a worker, {case}", peak_memory(JAVA), peaks[n, events], "MB", "the JVM"
                    )
                )
                for name, rival in others.items():
                    if events > rival.events_max:
                        note(f"nothing for {name}, {case}: it keeps all rows in memory")
                        continue
                    progress(f"{name}, {case}")
                    cpu, peak = alone(rival.function, path)
                    rows.append(BenchRow(f"{name}, {case}", events / scan, events / cpu, SPEED, SCAN))
                    rows.append(
                        BenchRow(
                            f"{name}, peak, {case}", peaks[n, events], peak, "MB", "a worker of inga check"
                        )
                    )
                shutil.rmtree(path)  # large traces have several gigabytes
            rows += _growth(costs, peaks)
    finally:
        session.stop()
    return rows


def _growth(costs: Sizes, peaks: Sizes) -> list[BenchRow]:
    """Compare the largest trace with the second largest: ratios of cost per event and of memory, both 1 if they do not grow."""
    rows = []
    for members in sorted({n for n, _ in costs}):
        sizes = sorted(events for n, events in costs if n == members)
        if len(sizes) < 2:
            continue
        small, large = (members, sizes[-2]), (members, sizes[-1])
        what, baseline = f"n = {members}, {large[1]:,} events", f"{small[1]:,} events"
        before, after = (1e9 * costs[size] / size[1] for size in (small, large))
        rows.append(BenchRow(f"cost, {what}", before, after, "cpu ns per event", baseline))
        rows.append(BenchRow(f"peak of a worker, {what}", peaks[small], peaks[large], "MB", baseline))
    return rows


# ---- other programs, each in a process of its own


def _with_pyarrow(path: Path) -> None:
    """Run the same checks without Spark: one segment after the other."""
    certificate = certify(_source(None, path), CHECKS)
    assert certificate.verdict == "pass", certificate.to_json()


def _source(session: Any, path: Path) -> FileSource:
    return FileSource(files_of(session, open_trace(str(path)), lambda *_: None), CHECKS)


def _with_duckdb(path: Path) -> None:
    import duckdb

    query = f"""
        SELECT count(*) FROM (
            SELECT seq, max(seq) OVER (PARTITION BY process, src ORDER BY pos
                                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earlier
            FROM read_parquet('{path}/events/*.parquet') WHERE step = 'deliver'
        ) WHERE earlier > seq"""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")  # it would be printed to standard output
    late = connection.execute(query).fetchall()
    assert late == [(0,)], late


def _with_polars(path: Path) -> None:
    import polars as pl

    rows = pl.scan_parquet(path / "events" / "*.parquet").filter(pl.col("step") == "deliver")
    earlier = pl.col("seq").cum_max().shift(1).over("process", "src", order_by="pos")
    late = rows.filter(earlier > pl.col("seq")).select(pl.len()).collect().item()
    assert late == 0, late


@dataclass(frozen=True, slots=True)
class _Rival:
    package: str
    function: Callable[[Path], None]
    events_max: int = EVENTS_LARGE  # more events may need more memory than a machine has


RIVALS = {
    "one process with pyarrow": _Rival("pyarrow", _with_pyarrow),
    "DuckDB, fifo alone": _Rival("duckdb", _with_duckdb, 30_000_000),
    "Polars, fifo alone": _Rival("polars", _with_polars, 30_000_000),
}


def _is_there(name: str, rival: _Rival, note: Callable[[str], None]) -> bool:
    there = find_spec(rival.package) is not None
    if not there:
        note(f"nothing for {name}: {rival.package} is not installed (pip install 'inga[bench]')")
    return there


def alone(function: Callable[..., None], *paths: Path) -> tuple[float, float]:
    """Run a function in a process of its own. Return the CPU seconds of the second of two runs, since the first includes imports, and the
    peak of memory in MB."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(function, paths, theirs))
    process.start()
    theirs.close()
    try:
        measured: tuple[float, float] = ours.recv()
    except EOFError:
        raise UsageError(f"{function.__name__.lstrip('_')} failed on {paths[0].name}") from None
    finally:
        process.join()
    return measured


def _measured(function: Callable[..., None], paths: tuple[Path, ...], answer: Any) -> None:
    function(*paths)
    before = process_time()
    function(*paths)
    answer.send((process_time() - before, _peak_of("self")))


Spent = tuple[float, float]
"""CPU seconds, and seconds of wall-clock time."""


def _measure(session: Any, path: Path, repetitions: int) -> tuple[Spent, Spent]:
    """Measure a scan and the checks."""
    scanning, checking = partial(scan, session, path, JUDGED_COLUMNS), partial(check, session, path)
    found = in_turn({SCAN: scanning, "check": checking}, repetitions)
    return found[SCAN], found["check"]


def check(session: Any, path: Path) -> None:
    """Certify a trace without violations."""
    certificate = certify(_source(session, path), CHECKS)
    assert certificate.verdict == "pass", certificate.to_json()


def scan(session: Any, path: Path, columns: Sequence[str]) -> None:
    """Let Spark read columns of a trace, and add them up."""
    from pyspark.sql import functions as F

    def summed(name: str) -> Any:
        is_number = KINDS[name].spark in ("int", "bigint")
        return F.sum(name) if is_number else F.sum(F.length(name))

    rows = session.read.schema(spark_schema(columns)).parquet(str(path / "events"))
    rows.agg(*map(summed, columns)).collect()


def in_turn(
    actions: Mapping[str, Callable[[], None]],
    repetitions: int,
    *,
    warmups: Mapping[str, Callable[[], None]] | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> dict[str, Spent]:
    """Return the medians of what each action spends; all actions run in turn, `repetitions` times. Start-up is not included: before, each
    action runs once, or its entry in `warmups` does. `progress` is called with what runs now."""
    for name, action in (warmups or actions).items():
        progress(f"{name}, warming up")
        action()
    spent: dict[str, list[Spent]] = {name: [] for name in actions}
    for turn in range(1, repetitions + 1):
        for name, action in actions.items():
            progress(f"{name}, {turn} of {repetitions}")
            spent[name].append(_spent(action))
    return {name: _medians(each) for name, each in spent.items()}


def _spent(action: Callable[[], None]) -> Spent:
    with _metered() as cpu:
        before, started = cpu.seconds(), perf_counter()
        action()
        wall = perf_counter() - started
        return cpu.seconds() - before, wall


def _medians(spent: list[Spent]) -> Spent:
    return median(cpu for cpu, _ in spent), median(wall for _, wall in spent)


SAMPLE_SECONDS = 0.2


class CpuMeter:
    """The CPU time of this process and its descendants, including those that have ended: of each, its CPU time when it was last seen.

    The times of children that parents have waited for would not do: when Spark ends an idle daemon, no process waits for its workers.
    """

    def __init__(self) -> None:
        self._used: dict[tuple[int, str], int] = {}  # ticks, by process id and start time
        self._lock = Lock()

    def seconds(self) -> float:
        """Return the CPU seconds so far of all processes that were seen."""
        with self._lock:
            for process, fields in _family():
                self._used[process, fields[19]] = int(fields[11]) + int(fields[12])
            return sum(self._used.values()) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _metered() -> Iterator[CpuMeter]:
    """Return a meter that also samples in the background, often enough to count processes that end meanwhile."""
    meter, ended = CpuMeter(), Event()

    def look() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            meter.seconds()

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield meter
    finally:
        ended.set()
        thread.join()


WORKER, JAVA = b"pyspark.daemon", b"org.apache.spark"
"""Parts of the command lines by which processes are recognized."""


def need_proc() -> None:
    if not Path("/proc/self/stat").exists():
        raise UsageError("this needs /proc to see what the JVM and the workers use: run it on Linux")


def forget_peaks() -> None:
    """Reset the peaks of memory, so that later ones are measured from here on."""
    for process, _ in _family():
        with suppress(OSError):  # it may end meanwhile, or we may lack the permission
            Path(f"/proc/{process}/clear_refs").write_text("5")


def peak_memory(kind: bytes) -> float:
    """Return the largest peak of resident memory of a process of a kind, in MB."""
    return max(_peaks(kind), default=0.0)


def peak_of_all() -> float:
    """Return the sum of the memory peaks of this process and its descendants, in MB: at most so much did they use together."""
    return sum(_peaks(b""))


def peak_of_driver() -> float:
    """Return the peak of this process's resident memory, in MB."""
    return _peak_of("self")


def _peaks(kind: bytes) -> list[float]:
    found = []
    for process, _ in _family():
        with suppress(OSError):  # it may end meanwhile
            if kind in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(_peak_of(process))
    return found


def _peak_of(process: int | str) -> float:
    """Return the peak of a process's resident memory, in MB. That of `getrusage` would include the process that forked it."""
    status = Path(f"/proc/{process}/status").read_text()
    return max(
        (int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), default=0.0
    )


def _family() -> Iterator[tuple[int, list[str]]]:
    """Yield this process and its descendants, with the fields of /proc/PID/stat after the name."""
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
