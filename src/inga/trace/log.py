"""The log of a tap: the messages that were delivered to one silent member, for later readers.

    LOG/log.json                                    the format, and the group's name
    LOG/records/FIRST-NEXT.parquet                  records FIRST, FIRST + 1, ... NEXT - 1, counted from 0

A file is renamed into place when its bytes are on disk, and never changed. So the file names alone are the
index: a reader knows which file has which record, never sees half a record, and an offset is a count.
"""

import fcntl
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from inga.model.errors import TraceError, UsageError
from inga.trace.manifest import load_json, write_json
from inga.trace.schema import load_pyarrow

HEAD = "log.json"
FORMAT = 1
_FILE = re.compile(r"(\d{12})-(\d{12})\.parquet")


class LoggedMessage(NamedTuple):
    """One message of the application, as it was delivered to the tap."""

    time: int  # nanoseconds since 1970
    sender: str
    view: int
    src: int
    seq: int
    part: int  # messages that shared a packet share `seq`; the first has part 0
    deps: tuple[int, ...] | None
    height: int
    concurrent: bool
    data: bytes


@dataclass(frozen=True, slots=True, order=True)
class LogFile:
    """Records `first` to `next` - 1."""

    first: int
    next: int
    path: str


def record_schema() -> Any:
    """The columns of a log."""
    pa = load_pyarrow()
    return pa.schema(
        [
            pa.field("record", pa.int64(), nullable=False),
            pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
            pa.field("sender", pa.string(), nullable=False),
            pa.field("view", pa.int32(), nullable=False),
            pa.field("src", pa.int32(), nullable=False),
            pa.field("seq", pa.int64(), nullable=False),
            pa.field("part", pa.int32(), nullable=False),
            pa.field("deps", pa.list_(pa.int32())),
            pa.field("height", pa.int64(), nullable=False),
            pa.field("concurrent", pa.bool_(), nullable=False),
            pa.field("data", pa.binary(), nullable=False),
        ]
    )


def log_files(path: str | os.PathLike[str]) -> list[LogFile]:
    """The files of a log, in the order of their records. Raises `TraceError` if records between them are missing."""
    directory = Path(path)
    _check_head(directory)
    files = []
    for each in (directory / "records").iterdir():
        match = _FILE.fullmatch(each.name)
        if match:
            files.append(LogFile(int(match[1]), int(match[2]), str(each)))
    files.sort()
    expected = 0
    for at, file in enumerate(files):
        if file.first > expected and at == 0:
            pass  # the oldest files may have been deleted
        elif file.first != expected or file.next <= file.first:
            raise TraceError(f"{path}: record {expected} is missing before {Path(file.path).name}.")
        expected = file.next
    return files


def _check_head(directory: Path) -> dict[str, Any]:
    where = directory / HEAD
    try:
        head = load_json(where.read_bytes(), str(where))
    except FileNotFoundError:
        raise TraceError(f"{directory} has no {HEAD}, so it is not the log of a tap.") from None
    except OSError as error:
        raise TraceError(f"{where} cannot be read: {error.strerror}.") from None
    if head.get("format") != FORMAT:
        raise TraceError(f"{where}: the format is {head.get('format')!r}, and only {FORMAT} is known here.")
    return head


class LogWriter:
    """Appends to a log. Only one writer at a time can have it open: a second one is refused."""

    def __init__(self, path: str | os.PathLike[str], group: str) -> None:
        self.directory = Path(path)
        if self.directory.exists() and any(self.directory.iterdir()):
            known = _check_head(self.directory).get("group")
            if known != group:
                raise UsageError(f"{path} is the log of group {known!r}: name another directory")
        load_pyarrow()
        self._records = self.directory / "records"
        self._records.mkdir(parents=True, exist_ok=True)
        self._lock = self._claim()
        if not (self.directory / HEAD).exists():
            write_json(self.directory / HEAD, {"format": FORMAT, "group": group})
        for unfinished in self._records.glob(".*.tmp"):
            unfinished.unlink()
        files = log_files(self.directory)
        self.next = files[-1].next if files else 0  # number of the next record

    def append(self, records: Sequence[LoggedMessage]) -> None:
        """Append records as one file, so that readers see all of them or none."""
        if not records:
            return
        pa = load_pyarrow()
        columns = [list(column) for column in zip(*records, strict=True)]
        numbers = range(self.next, self.next + len(records))
        columns[0] = [time // 1000 for time in columns[0]]
        schema = record_schema()
        arrays = [
            pa.array(values, pa.int64()).cast(field.type)
            if field.name == "time"
            else pa.array(values, field.type)
            for values, field in zip([list(numbers), *columns], schema, strict=True)
        ]
        end = self.next + len(records)
        place = self._records / f"{self.next:012}-{end:012}.parquet"
        hidden = self._records / f".{place.name}.tmp"
        with hidden.open("wb") as file:
            pa.parquet.write_table(pa.table(arrays, schema=schema), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.rename(hidden, place)
        _sync(self._records)
        self.next = end

    def close(self) -> None:
        self._lock.close()

    def _claim(self) -> IO[bytes]:
        lock = (self.directory / ".lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise UsageError(f"another tap writes to {self.directory}") from None
        return lock


def read_records(file: LogFile, first: int, end: int) -> Any:
    """The records of a file whose numbers are in [first, end), as a pyarrow table."""
    pa = load_pyarrow()
    try:
        table = pa.parquet.read_table(file.path, schema=record_schema(), page_checksum_verification=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
        raise TraceError(f"{file.path} cannot be read: {reason}.") from error
    if table.num_rows != file.next - file.first:
        raise TraceError(f"{file.path} promises {file.next - file.first} records and has {table.num_rows}.")
    begin = max(first, file.first)
    return table.slice(begin - file.first, min(end, file.next) - begin)


def _sync(directory: Path) -> None:
    """Flush a directory to disk, so that the names in it survive a power failure, too."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
