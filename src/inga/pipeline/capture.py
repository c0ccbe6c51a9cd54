"""`inga order`, from a path to a path: read a capture, restore its order, write the result exactly once.

A capture is a trace, or a table of messages as Parquet or lines of JSON. The output of a stream is one directory per
micro-batch, `OUT/batch=7`, which appears only when it is complete and is never written twice: if the driver is killed
before Spark has recorded the batch, the same batch is computed again, but its directory is kept. It is the same batch
since its offsets, state and time are in the checkpoint, and `Restorer` does not depend on the order of its input rows.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from inga.model.errors import TraceError, UsageError
from inga.model.text import suggest
from inga.pipeline.files import TaskProgress
from inga.pipeline.ordering import causal_order, keep_state_on_disk
from inga.pipeline.restore import Base
from inga.pipeline.session import LOCAL, is_connect, using
from inga.pipeline.storage import is_remote
from inga.trace import local_path, read_manifest
from inga.trace.manifest import MANIFEST
from inga.trace.schema import RECEIPTS, spark_schema

KINDS = ("trace", "parquet", "json")
STEPS = ("send", "deliver", *(step for step in RECEIPTS if step != "deliver"))
TRACE_COLUMNS = ("process", "pos", "time", "view", "src", "seq", "deps", "height", "n", "note")
TRACE_SCHEMA = spark_schema(("step", *TRACE_COLUMNS))
SUFFIXES = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
FILES_PER_BATCH = 64
POLL_SECONDS = 0.2
CHECKPOINT = "_checkpoint"
REASON_MAX = 500  # characters


@dataclass(frozen=True, slots=True)
class Capture:
    """The messages to put in order: a trace or a table, and which of its rows."""

    path: str
    kind: str
    group: str | None = None
    step: str = "send"  # of a trace: which rows stand for messages
    process: int | None = None  # of a trace: only the rows of this process

    @property
    def own(self) -> str | None:
        """The column with the process that received the messages, None for sends: its own messages need not be among them."""
        return "process" if self.kind == "trace" and self.step != "send" else None


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """How many messages of a capture were put in order."""

    rows: int
    concurrent: int
    gaps: int
    seconds: float


def open_capture(
    path: str,
    *,
    kind: str | None = None,
    group: str | None = None,
    step: str = "send",
    process: str | None = None,
) -> Capture:
    """Find out what a path contains, and check the options, before Spark is started."""
    found = kind or _kind_of(path)
    if not is_remote(path):
        path = str(local_path(path).absolute())  # Spark has a working directory of its own
    if found != "trace":
        if process is not None or step != "send":
            raise UsageError("--step and --process choose rows of a trace; for a table, choose them before")
        return Capture(path, found, group)
    if step not in STEPS:
        raise UsageError(f"no step {step!r} to order by{suggest(step, STEPS)}")
    if group is not None:
        raise UsageError("a trace is one group; --group is for tables")
    index = None
    if process is not None:
        names = read_manifest(path).processes
        if process not in names:
            raise UsageError(f"{path} has no process {process!r}{suggest(process, names)}")
        index = names.index(process)
    # A send is in a trace once; a receipt once per process, and each process has an order of its own.
    return Capture(path, found, None if step == "send" or process else "process", step, index)


def _kind_of(path: str) -> str:
    if is_remote(path):
        raise UsageError(f"{path} is elsewhere: say what it is with --kind {'|'.join(KINDS)}")
    place = local_path(path)
    if not place.exists():
        raise UsageError(f"{path} does not exist, so there is nothing to order")
    if place.is_dir() and (place / MANIFEST).exists():
        read_manifest(place)  # raises if it is not a trace
        return "trace"
    names = [place.name] if place.is_file() else [each.name for each in place.iterdir()]
    kinds = {SUFFIXES[Path(name).suffix] for name in names if Path(name).suffix in SUFFIXES}
    if len(kinds) != 1:
        what = "both Parquet and JSON" if kinds else "no trace, and no Parquet or JSON"
        raise UsageError(f"{path} holds {what}: name a trace, or a table of messages")
    return kinds.pop()


def order_capture(
    capture: Capture,
    out: str,
    *,
    base: Base = (),
    master: str = LOCAL,
    session: Any = None,
) -> CaptureResult:
    """Put a finished capture in order. The output is written completely, or not at all."""
    started = perf_counter()
    _check_free(out)
    hidden = out if is_remote(out) else _hidden(out)
    try:
        with using(session, master) as spark, _understood(spark):
            rows, concurrent, gaps = _write_counted(ordered_table(spark, capture, base), hidden)
        if hidden != out:
            os.rename(local_path(hidden), local_path(out))
    finally:
        if hidden != out:
            shutil.rmtree(local_path(hidden), ignore_errors=True)
    return CaptureResult(rows, concurrent, gaps, perf_counter() - started)


def ordered_table(spark: Any, capture: Capture, base: Base = ()) -> Any:
    """The messages of a finished capture in causal order, as a DataFrame."""
    return causal_order(_table(spark, capture), capture.group, base=base, own=capture.own)


def order_stream(
    capture: Capture,
    out: str,
    *,
    base: Base = (),
    give_up: float | None = None,
    once: bool = False,
    poll: float = 1.0,
    checkpoint: str | None = None,
    master: str = LOCAL,
    progress: TaskProgress = lambda what, done, total: None,
    session: Any = None,
) -> CaptureResult:
    """Put a capture in order while it grows, until interrupted; with `once`, only the messages written so far.

    Started again with the same output, it continues where it ended, however it ended.
    """
    started = perf_counter()
    checkpoint = checkpoint or f"{out.rstrip('/')}/{CHECKPOINT}"
    _check_mine(out, checkpoint)
    with using(session, master) as spark, _understood(spark):
        if is_connect(spark):
            raise UsageError(
                "inga order --stream writes with this process's own hands, so not over Spark Connect"
            )
        keep_state_on_disk(spark)
        ordered = causal_order(
            _stream(spark, capture), capture.group, base=base, give_up=give_up, own=capture.own
        )
        writer = ordered.writeStream.foreachBatch(_sink(out)).option("checkpointLocation", checkpoint)
        if once and give_up is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{max(1, round(poll * 1000))} milliseconds")
        _follow(writer.start(), once, give_up, progress)
        rows, concurrent, gaps = _count(spark, out)
    return CaptureResult(rows, concurrent, gaps, perf_counter() - started)


# ---- reading


def _table(spark: Any, capture: Capture) -> Any:
    if capture.kind == "trace":
        return _messages(
            spark.read.schema(TRACE_SCHEMA).parquet(f"{capture.path.rstrip('/')}/events"), capture
        )
    return spark.read.format(capture.kind).load(capture.path)


def _stream(spark: Any, capture: Capture) -> Any:
    reader = spark.readStream.option("maxFilesPerTrigger", FILES_PER_BATCH)
    if capture.kind == "trace":
        return _messages(reader.schema(TRACE_SCHEMA).parquet(f"{capture.path.rstrip('/')}/events"), capture)
    if not is_remote(capture.path) and local_path(capture.path).is_file():
        raise UsageError(f"{capture.path} is a file; a stream grows by files in a directory")
    known = spark.read.format(capture.kind).load(capture.path).schema
    return reader.format(capture.kind).schema(known).load(capture.path)


def _messages(rows: Any, capture: Capture) -> Any:
    from pyspark.sql import functions as F

    is_message = F.col("step") == capture.step
    if capture.process is not None:
        is_message &= F.col("process") == capture.process
    return rows.where(is_message).select(*TRACE_COLUMNS)


@contextmanager
def _understood(spark: Any) -> Iterator[None]:
    """Turn an error of Spark into one sentence. Spark's own log of failures and interruptions, pages long, is not shown."""
    context = None if is_connect(spark) else spark.sparkContext  # a server keeps a log of its own
    if context is not None:
        context.setLogLevel("OFF")
    try:
        yield
    except (TraceError, UsageError):
        raise
    except Exception as error:
        raise _explained(error) from error
    finally:
        if context is not None:
            context.setLogLevel("ERROR")


def _explained(error: Exception) -> Exception:
    from pyspark.errors import AnalysisException

    text = str(error)
    said = re.search(r"inga\.model\.errors\.TraceError: (.+)", text)
    if said:
        return TraceError(said[1])
    unreadable = re.search(r"reading file (\S+?)\.?(\s|$)", text)
    if "FAILED_READ_FILE" in text and unreadable:
        return TraceError(f"{unreadable[1].removeprefix('file:')} is not a readable file.")
    if isinstance(error, AnalysisException):
        return UsageError(text.splitlines()[0])
    return error


# ---- writing


def _check_free(out: str) -> None:
    if not is_remote(out):
        place = local_path(out)
        if place.exists():
            raise UsageError(f"{out} exists already: name a new directory")
        if not place.absolute().parent.is_dir():
            raise UsageError(f"there is no directory {place.absolute().parent} to write {place.name} to")


def _check_mine(out: str, checkpoint: str) -> None:
    """Raise `UsageError` if the output exists without the checkpoint of a stream that wrote it."""
    if is_remote(out) or not local_path(out).exists():
        return
    if any(local_path(out).iterdir()) and (is_remote(checkpoint) or not local_path(checkpoint).exists()):
        raise UsageError(
            f"{out} exists already, and not from a stream that could go on: name a new directory"
        )


def _hidden(out: str) -> str:
    place = local_path(out).absolute()
    return str(place.with_name(f".{place.name}.{os.getpid()}"))


def _sink(out: str) -> Callable[[Any, int], None]:
    """A function that writes a micro-batch to its directory, once."""

    def write(batch: Any, number: int) -> None:
        try:
            put(batch, f"batch={number}")
        except Exception as error:
            # Java searches the text of this error for signs of an interruption; pages of text exhaust its stack.
            found = _explained(error)
            raise (found if found is not error else RuntimeError(str(error)[:REASON_MAX])) from None

    def put(batch: Any, name: str) -> None:
        if is_remote(out):
            batch.write.mode("overwrite").parquet(f"{out.rstrip('/')}/{name}")
            return
        place, hidden = local_path(out) / name, local_path(out) / f"_{name}"
        if place.exists():
            # Its rows were written before, but Spark did not record the state after them: it is computed again.
            batch.foreachPartition(_exhaust)
            return
        shutil.rmtree(hidden, ignore_errors=True)
        try:
            batch.write.parquet(str(hidden))
            if not _is_empty(hidden):
                os.rename(hidden, place)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)

    return write


def _exhaust(rows: Any) -> None:
    for _ in rows:
        pass


def _is_empty(folder: Path) -> bool:
    import pyarrow.parquet as pq

    return not any(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def _write_counted(ordered: Any, out: str) -> tuple[int, int, int]:
    """Write a table, and count its rows in the same pass."""
    from pyspark.sql import Observation

    seen = Observation()
    ordered.observe(seen, *_counts()).write.parquet(out)
    return seen.get["rows"], seen.get["concurrent"], seen.get["gap"]


def _counts() -> list[Any]:
    from pyspark.sql import functions as F

    flags = [F.coalesce(F.sum(F.col(name).cast("bigint")), F.lit(0)) for name in ("concurrent", "gap")]
    return [F.count(F.lit(1)).alias("rows"), flags[0].alias("concurrent"), flags[1].alias("gap")]


def _count(spark: Any, out: str) -> tuple[int, int, int]:
    from pyspark.errors import AnalysisException

    with suppress(AnalysisException):  # nothing was written yet
        rows, concurrent, gaps = spark.read.parquet(out).agg(*_counts()).first()
        return int(rows), int(concurrent), int(gaps)
    return 0, 0, 0


# ---- waiting


def _follow(query: Any, once: bool, give_up: float | None, progress: TaskProgress) -> None:
    """Wait until the query ends, has nothing more to do, or is interrupted."""
    rows, seen, last_input = 0, -1, None
    try:
        while query.isActive:
            sleep(POLL_SECONDS)
            for each in query.recentProgress:
                if each.batchId <= seen:
                    continue
                seen, rows = each.batchId, rows + each.numInputRows
                when = datetime.fromisoformat(each.timestamp).timestamp()
                if each.numInputRows or last_input is None:
                    last_input = when
                elif once and give_up is not None and when >= last_input + give_up:
                    return
            progress("rows read", rows, 0)
        if query.exception() is not None:
            raise query.exception()
    finally:
        query.stop()
