"""`spark.readStream.format("inga")`: the log of an `inga tap` as a stream, or as a table; a trace as a table.

Offsets are counts of records. Tasks read the files themselves, so a log has to be where all workers can read it. The
option `maxRecordsPerTrigger` bounds the records of a micro-batch.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from inga.model.errors import UsageError
from inga.pipeline.session import equip
from inga.pipeline.storage import File, open_trace
from inga.trace import COLUMNS, read_segment
from inga.trace.log import LogFile, log_files, read_records, record_schema
from inga.trace.manifest import MANIFEST
from inga.trace.schema import KINDS, spark_schema

SCHEMA = (
    "record bigint, time timestamp, sender string, view int, src int, seq bigint, part int, "
    "deps array<int>, height bigint, concurrent boolean, data binary"
)
PARTITION_RECORDS = 65_536  # that a task reads, about, if files are small
PARTITION_BYTES = 1 << 23  # of a trace that a task reads, about


class LogSlice(InputPartition):
    """Records of some files, as one task reads them."""

    def __init__(self, files: list[LogFile], first: int, end: int) -> None:
        self.files, self.first, self.end = files, first, end


class SegmentSlice(InputPartition):
    """Segments of a trace, as one task reads them."""

    def __init__(self, files: list[File], n: int) -> None:
        self.files, self.n = files, n


class TapSource(DataSource):
    """The log of a tap, or a trace."""

    @classmethod
    def name(cls) -> str:
        return "inga"

    def schema(self) -> str:
        return spark_schema(COLUMNS) if _is_trace(self._path()) else SCHEMA

    def reader(self, schema: Any) -> "TapReader | TraceReader":
        path = self._path()
        return TraceReader(path) if _is_trace(path) else TapReader(path)

    def streamReader(self, schema: Any) -> "TapStreamReader":
        if _is_trace(path := self._path()):
            raise UsageError(
                f"{path} is a trace, which is no stream: spark.read reads it, and inga.pipeline.watch follows it"
            )
        return TapStreamReader(self._path(), self._limit())

    def _path(self) -> str:
        path = self.options.get("path")
        if not path:
            raise UsageError('say which log: spark.readStream.format("inga").load(LOG)')
        return path.removeprefix("file://").removeprefix("file:")

    def _limit(self) -> int | None:
        text = self.options.get("maxRecordsPerTrigger")
        if text is None:
            return None
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"maxRecordsPerTrigger is a whole number above 0, not {text!r}")
        return int(text)


class TapReader(DataSourceReader):
    """Reads all records that a log has now."""

    def __init__(self, path: str) -> None:
        self._path = path

    def partitions(self) -> Sequence[InputPartition]:
        files = log_files(self._path)
        return slices(files, files[0].first, files[-1].next) if files else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_slice(partition)


class TraceReader(DataSourceReader):
    """Reads the rows that a trace has now, complete or growing."""

    def __init__(self, path: str) -> None:
        self._path = path

    def partitions(self) -> Sequence[InputPartition]:
        trace = open_trace(self._path, growing=True)
        found: list[SegmentSlice] = []
        part: list[File] = []
        for file in trace.files:
            part.append(file)
            if sum(each.size for each in part) >= PARTITION_BYTES:
                found.append(SegmentSlice(part, trace.n))
                part = []
        return [*found, SegmentSlice(part, trace.n)] if part else found

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        assert isinstance(partition, SegmentSlice)
        kinds = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "binary": pa.binary()}
        wanted = pa.schema([(name, kinds[KINDS[name].spark]) for name in COLUMNS])
        for file in partition.files:
            table = read_segment(file.path, partition.n, process=file.process)
            yield from table.cast(wanted).to_batches()


class TapStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the records that a log has, and those that will be added."""

    def __init__(self, path: str, limit: int | None) -> None:
        self._path = path
        self._limit = limit
        self._target: int | None = None  # where to stop, if only the present records are wanted
        log_files(path)  # raises if it is not a log

    def initialOffset(self) -> dict[str, int]:
        files = log_files(self._path)
        return {"record": files[0].first if files else 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._limit is None else ReadMaxRows(self._limit)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        end = self._end() if self._target is None else self._target
        if isinstance(limit, ReadMaxRows):
            end = min(end, start["record"] + limit.max_rows)
        return {"record": max(end, start["record"])}

    def reportLatestOffset(self) -> dict[str, int]:
        return {"record": self._end()}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._end()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return slices(log_files(self._path), start["record"], end["record"])

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_slice(partition)

    def _end(self) -> int:
        files = log_files(self._path)
        return files[-1].next if files else 0


def _is_trace(path: str) -> bool:
    return Path(path, MANIFEST).exists()


def slices(files: list[LogFile], first: int, end: int) -> list[LogSlice]:
    """The records [first, end) for tasks: whole small files together, large ones alone."""
    wanted = [file for file in files if file.first < end and file.next > first]
    if end > first and (not wanted or wanted[0].first > first or wanted[-1].next < end):
        raise UsageError(
            f"records {first} to {end - 1} are wanted, and not all of them are in the log any more"
        )
    found: list[LogSlice] = []
    part: list[LogFile] = []
    for file in wanted:
        part.append(file)
        if part[-1].next - part[0].first >= PARTITION_RECORDS:
            found.append(LogSlice(part, first, end))
            part = []
    return [*found, LogSlice(part, first, end)] if part else found


def read_slice(partition: InputPartition) -> Iterator[Any]:
    import pyarrow as pa

    assert isinstance(partition, LogSlice)
    # Spark also compares the names of list elements, and which fields may be null.
    wanted = pa.schema([field.with_nullable(True) for field in record_schema()])
    counts = pa.field("deps", pa.list_(pa.field("element", pa.int32())))
    wanted = wanted.set(wanted.get_field_index("deps"), counts)
    for file in partition.files:
        table = read_records(file, partition.first, partition.end)
        columns = [table.column(field.name).cast(field.type) for field in wanted]
        yield from pa.table(columns, schema=wanted).to_batches()


def register(session: Any) -> None:
    """Let this session read logs of taps, and traces, as format "inga"."""
    equip(session)
    session.dataSource.register(TapSource)
