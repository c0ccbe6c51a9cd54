"""Where a trace is stored, and how a task reads a segment.

Rows are never moved: a task gets files. On a file system that all machines share, it opens them itself; from a
remote one (`hdfs:`, `s3a:`) Spark transfers whole files to it as bytes.
"""

import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inga.certify.chunk import JUDGED_COLUMNS, Chunk, from_table
from inga.certify.combine import Process, check_claims, last_silent
from inga.model.errors import TraceError
from inga.trace import Manifest, local_path, read_segment
from inga.trace.manifest import MANIFEST
from inga.trace.reader import Description, read_description, segments_of
from inga.trace.schema import load_pyarrow

QUIET_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class File:
    """A segment as a task gets it."""

    process: int
    path: str
    size: int
    name: str  # relative to the trace


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """What is known of a trace before its rows are read."""

    path: str
    manifest: Manifest
    processes: list[Process]
    files: list[File]
    is_remote: bool

    @property
    def n(self) -> int:
        return len(self.processes)

    @property
    def receipt(self) -> str:
        return self.manifest.receipt

    @property
    def quiet_seconds(self) -> float:
        """How long control traffic may go on after the last progress of a message: as the run says, or a second."""
        said = self.manifest.options.get("quiet_seconds", QUIET_SECONDS)
        if isinstance(said, bool) or not isinstance(said, (int, float)) or not 0 < said < 1e6:
            raise TraceError(f"{self.path}/{MANIFEST}: quiet_seconds is a number of seconds, not {said!r}.")
        return float(said)


def open_trace(path: str, session: Any = None, *, growing: bool = False) -> StoredTrace:
    """Read the manifest and the process files, and list the segments. Only a remote trace needs a session for that."""
    if session is None or not is_remote(path):
        directory = local_path(path).absolute()
        found = read_description(directory)
        files = [
            File(s.process, str(s.path), s.path.stat().st_size, f"events/{s.path.name}")
            for s in _segments(directory, found)
        ]
        if not growing:  # else a newcomer may not have written anything yet
            _check_claims(found, files)
        return StoredTrace(
            str(directory), found.manifest, _processes(found, str(directory)), files, is_remote=False
        )
    with TemporaryDirectory() as scratch:
        sizes = _copy_outline(path, Path(scratch), session)
        try:
            found = read_description(scratch)
            outline = _segments(Path(scratch), found)
        except TraceError as error:
            raise TraceError(str(error).replace(scratch, path)) from None
        files = [File(s.process, *sizes[s.path.name], f"events/{s.path.name}") for s in outline]
    return StoredTrace(path, found.manifest, _processes(found, path), files, is_remote=True)


def _check_claims(found: Description, files: list[File]) -> None:
    """Raise `TraceError` if vectors have no room for processes that wrote nothing, before arrays are made as wide as the manifest
    says."""

    def is_complete(process: int) -> bool:
        return process in found.known and found.known[process].complete

    wrote = {file.process for file in files}
    silent = last_silent(found.n, wrote, is_complete)
    if silent is None:
        return
    widest = 0
    for file in files:
        with suppress(OSError, ValueError, KeyError):  # errors are reported when the file is read
            widest = max(widest, _width(file.path))
        if widest > silent:
            break
    check_claims(found.n, widest, wrote, is_complete)


def is_remote(path: str) -> bool:
    return not path.startswith("file:") and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def _processes(found: Description, shown: str) -> list[Process]:
    files = found.processes()
    views = [file.first_view for file in files[: found.named] if file.first_view is not None]
    for file in files[found.named :]:
        # A process that joined later has a later first view; the manifest must name all others.
        if file.first_view is not None and views and file.first_view <= min(views):
            raise TraceError(
                f"{shown}/{MANIFEST} names {found.named} processes, but process {file.process} "
                f'("{file.name}") was there from the start.'
            )
    return [Process(file.name, file.first_view, file.last_pos, file.complete, file.crashed) for file in files]


def _segments(directory: Path, found: Description) -> Any:
    is_whole = len(found.known) == found.n and all(file.complete for file in found.known.values())
    return segments_of(directory, found.n, empty_ok=not is_whole)


def _copy_outline(path: str, scratch: Path, session: Any) -> dict[str, tuple[str, int]]:
    """Copy the small files of a remote trace, and make empty files in place of its segments; return their paths and sizes."""
    for folder, pattern in (("", MANIFEST), ("processes", "*.json")):
        for row in _listed(session, "/".join(filter(None, (path.rstrip("/"), folder, pattern)))):
            target = scratch / folder / row.path.rpartition("/")[2]
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(bytes(row.content))
    sizes = {}
    for row in _listed(session, f"{path.rstrip('/')}/events/*.parquet", "path", "length"):
        name = row.path.rpartition("/")[2]
        sizes[name] = (row.path, row.length)
        (scratch / "events").mkdir(exist_ok=True)
        (scratch / "events" / name).touch()
    return sizes


def _listed(session: Any, pattern: str, *columns: str) -> list[Any]:
    from pyspark.errors import PySparkException

    try:
        files = session.read.format("binaryFile").load(pattern)
        rows: list[Any] = files.select(*(columns or ("path", "content"))).collect()
    except PySparkException as error:
        if "PATH_NOT_FOUND" in str(error):
            return []
        raise TraceError(f"{pattern} cannot be read: {str(error).splitlines()[0]}") from error
    return rows


# ---- in a task


def read_file(file: File, n: int, columns: tuple[str, ...], content: bytes | None = None) -> Any:
    """The validated table of a segment; `content` is its bytes, if Spark transferred them."""
    if content is None:
        _check_presence(file)
        return read_segment(file.path, n, process=file.process, columns=columns)
    return read_segment(BytesIO(content), n, process=file.process, columns=columns, name=file.path)


def read_chunk(
    file: File, n: int, receipt: str, content: bytes | None = None, columns: tuple[str, ...] = JUDGED_COLUMNS
) -> Chunk:
    table = read_file(file, n, columns, content)
    width = _width(file.path if content is None else BytesIO(content))
    return from_table(table, file.process, n, receipt, where=file.path, width=width)


def _check_presence(file: File) -> None:
    """On a cluster without a shared file system this machine may have no such file, or an old one."""
    try:
        size = os.stat(file.path).st_size
    except OSError as error:
        raise TraceError(
            f"{file.path} cannot be read on host {socket.gethostname()}: {error.strerror}."
        ) from None
    if size != file.size:
        raise TraceError(f"{file.path} has {size} bytes on host {socket.gethostname()}, not {file.size}.")


def _width(source: Any) -> int:
    """How many processes the vectors of a segment have room for, from its footer."""
    pa = load_pyarrow()
    kind = pa.parquet.read_schema(source).field("deps").type
    return kind.byte_width // 4 if pa.types.is_fixed_size_binary(kind) else 0
