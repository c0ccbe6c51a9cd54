"""Reading a trace, and refusing invalid files.

Any defect of the files is a `TraceError` of one sentence that names the file and the defect. A
trace that is merely unfinished is not invalid: a member that was killed has fewer rows, and its process file
does not say `complete`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from inga.model.errors import TraceError, UsageError
from inga.trace.columns import to_rows, widen
from inga.trace.manifest import MANIFEST, Manifest, ProcessFile
from inga.trace.schema import COLUMNS, REQUIRED, Row, load_pyarrow, schema, unpack_dst

TracePath = str | os.PathLike[str]

_SEGMENT = re.compile(r"(\d+)-(\d+)\.parquet")
_PROCESS = re.compile(r"(\d+)\.json")


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One file of rows. Sorts by process, then by number."""

    process: int
    number: int
    path: Path


def local_path(path: TracePath) -> Path:
    """The path of a trace on this machine; `file:` addresses are accepted, too."""
    text = os.fspath(path)
    if text.startswith("file:"):
        return Path(unquote(urlsplit(text).path))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        raise UsageError(f"{text} is not on this machine, and only Spark can read it.")
    return Path(text)


# ---- manifest and process files

ABSENT_MAX = 64
"""The most consecutive process numbers beyond the manifest without a file. Such processes failed before they could begin."""


@dataclass(frozen=True, slots=True)
class Description:
    """The metadata of a trace, read once."""

    manifest: (
        Manifest  # with the names of processes that joined later, without the guarantees that were given up
    )
    known: dict[int, ProcessFile]  # by index: the processes that have a file
    named: int  # how many processes the manifest file itself names

    @property
    def n(self) -> int:
        return len(self.manifest.processes)

    def processes(self) -> list[ProcessFile]:
        """The processes by index. One without a file has no rows. If the manifest names it, it is incomplete; a process that
        was to join failed before it could have written rows, so it is complete and crashed."""
        return [
            self.known[index]
            if index in self.known
            else ProcessFile(index, name, complete=index >= self.named, crashed=index >= self.named)
            for index, name in enumerate(self.manifest.processes)
        ]


def read_manifest(path: TracePath) -> Manifest:
    """The manifest, with the names of processes that joined after it was written, and without the
    guarantees that some process gave up."""
    return read_description(path).manifest


def read_processes(path: TracePath) -> list[ProcessFile]:
    """What is known about each process, by index. A process without a file has no rows; if the manifest names it, it is
    incomplete."""
    return read_description(path).processes()


def read_description(path: TracePath) -> Description:
    """Read the manifest and the process files, and merge them."""
    directory = local_path(path)
    manifest = Manifest.parse(_read(directory, MANIFEST), str(directory / MANIFEST))
    named = len(manifest.processes)
    known = {file.process: file for file in _process_files(directory)}
    for index in sorted(known):
        where, name = directory / "processes" / f"{index}.json", known[index].name
        missing = index - len(manifest.processes)
        if missing > ABSENT_MAX:
            raise TraceError(
                f"{where}: process {index} is out of range, as nothing names process {index - 1}."
            )
        if missing >= 0:
            manifest.processes += [f"process {each}" for each in range(index - missing, index)]
            manifest.processes.append(name)
        elif manifest.processes[index] != name:
            raise TraceError(
                f'{where} calls process {index} "{name}", but {MANIFEST} calls it '
                f'"{manifest.processes[index]}".'
            )
    given_up = {check for file in known.values() for check in file.disclaims}
    manifest.guarantees = [check for check in manifest.guarantees if check not in given_up]
    return Description(manifest, known, named)


def _read(directory: Path, name: str) -> bytes:
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        raise TraceError(f"{directory} {what}, so it is not a trace.")
    try:
        return (directory / name).read_bytes()
    except FileNotFoundError:
        empty = not any(directory.iterdir())
        what = "is empty" if empty else f"has no {name}"
        raise TraceError(f"{directory} {what}, so it is not a trace.") from None
    except OSError as error:
        raise TraceError(f"{directory / name} cannot be read: {error.strerror}.") from error


def _process_files(directory: Path) -> Iterator[ProcessFile]:
    for path in _visible(directory / "processes"):
        match = _PROCESS.fullmatch(path.name)
        if match is None:
            raise TraceError(f"{path} is not named after the index of a process.")
        file = ProcessFile.parse(_read(path.parent, path.name), str(path))
        if file.process != int(match[1]):
            raise TraceError(f"{path} describes process {file.process}.")
        yield file


def _visible(folder: Path) -> list[Path]:
    """The files of a folder without hidden ones, which are unfinished, and without `_SUCCESS` and the like, which Spark writes."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))


# ---- segments


def segments(path: TracePath, *, empty_ok: bool = False) -> list[Segment]:
    """The segments of all processes, by process and number. A trace without any is an error, unless `empty_ok`."""
    return segments_of(path, len(read_manifest(path).processes), empty_ok=empty_ok)


def segments_of(path: TracePath, n: int, *, empty_ok: bool = False) -> list[Segment]:
    """The same for a trace that is known to have `n` processes."""
    directory, found = local_path(path), []
    for path in _visible(directory / "events"):
        match = _SEGMENT.fullmatch(path.name)
        if match is None:
            raise TraceError(f"{path} is not named PROCESS-SEGMENT.parquet.")
        found.append(Segment(int(match[1]), int(match[2]), path))
    found.sort()
    if not found and not empty_ok:
        raise TraceError(f"{directory / 'events'} holds no finished segment, so there is nothing to read.")
    for process, files in groupby(found, key=lambda segment: segment.process):
        for expected, segment in enumerate(files):
            if process >= n:
                raise TraceError(f"{segment.path}: process {process} is out of range, as the trace has {n}.")
            if segment.number > expected:
                raise TraceError(
                    f"{segment.path}: segment {expected} of process {process} is missing before it."
                )
            if segment.number < expected:
                raise TraceError(
                    f"{segment.path}: segment {segment.number} of process {process} is there twice."
                )
    return found


ROWS_AT_ONCE = 8_192  # rows in memory as Python objects, which take several times as much memory as columns
COUNTS_AT_ONCE = 1 << 20  # entries of the vectors of these rows


def rows(path: TracePath, process: int | None = None) -> Iterator[Row]:
    """The rows of one process, or of all, one process after the other, in `pos` order. The memory needed does not grow with the
    trace, nor with its segments."""
    for part in _tables(path, process, in_pieces=True):
        yield from to_rows(part)


def table(path: TracePath, process: int | None = None) -> Any:
    """The same as a pyarrow table with the columns of `schema(processes)`."""
    pa = load_pyarrow()
    empty = schema(len(read_manifest(path).processes)).empty_table()
    return pa.concat_tables([empty, *_tables(path, process)])


def _tables(path: TracePath, process: int | None, in_pieces: bool = False) -> Iterator[Any]:
    directory = local_path(path)
    processes = read_description(directory).processes()
    n = len(processes)
    if process is not None and not 0 <= process < n:
        raise UsageError(f"{directory} has no process {process}: it has {n}.")
    found = segments_of(directory, n, empty_ok=any(file.complete for file in processes))
    for file in processes:
        if process is not None and file.process != process:
            continue
        pos = 0
        for segment in found:
            if segment.process == file.process:
                known: Any = {"process": segment.process, "first": pos + 1}
                whole = read_pieces if in_pieces else _in_one_piece
                for part in whole(segment.path, n, **known):
                    pos += part.num_rows
                    yield part
        # While the run goes on, a segment may be newer than the process file, never the other way round.
        if pos < file.last_pos or (file.complete and pos > file.last_pos):
            raise TraceError(
                f"{directory / 'events'}: the rows of process {file.process} end at position {pos}, but its "
                f"process file says {file.last_pos}."
            )


def read_segment(
    source: Any,
    n: int,
    *,
    process: int | None = None,
    first: int | None = None,
    columns: Sequence[str] = COLUMNS,
    name: str | None = None,
) -> Any:
    """Read and check one segment: a table with the types of `schema(n)`.

    `source` is a path, or a buffer or file object with the bytes of a segment from elsewhere;
    `name` is its name in errors. `process` and `first` are the process and the first position that the
    file must have, if the caller knows.
    """
    where = str(source) if name is None else name
    with _readable(where), _opened(source, n, columns, where) as file:
        # Vectors are nearly all of the data: more threads would take more memory, and no less time.
        part = file.read(columns=list(columns), use_threads=False)
        part.validate(full=True)
        if part.num_rows != file.metadata.num_rows:
            raise TraceError(f"{where} promises {file.metadata.num_rows} rows and has {part.num_rows}.")
    part = part.select(list(columns))
    _check_values(part, n, process, first, where)
    return _in_our_types(part, n)


def read_pieces(
    path: Path,
    n: int,
    *,
    process: int | None = None,
    first: int | None = None,
    columns: Sequence[str] = COLUMNS,
) -> Iterator[Any]:
    """The same a few thousand rows at a time, for callers that go through a segment row by row. A defect near the end is
    found after the beginning has been yielded."""
    pa = load_pyarrow()
    where, done = str(path), 0
    rows_max = max(min(ROWS_AT_ONCE, COUNTS_AT_ONCE // n), 1)
    with _readable(where), _opened(path, n, columns, where) as file:
        for batch in file.iter_batches(rows_max, columns=list(columns)):
            batch.validate(full=True)
            part = pa.Table.from_batches([batch]).select(list(columns))
            if first is None and "pos" in columns and part.num_rows:
                first = part.column("pos")[0].as_py()
            _check_values(part, n, process, None if first is None else first + done, where)
            done += part.num_rows
            yield _in_our_types(part, n)
        if done != file.metadata.num_rows:
            raise TraceError(f"{where} promises {file.metadata.num_rows} rows and has {done}.")


def _in_one_piece(path: Path, n: int, **known: Any) -> Iterator[Any]:
    yield read_segment(path, n, **known)


@contextmanager
def _opened(source: Any, n: int, columns: Sequence[str], where: str) -> Iterator[Any]:
    """Open a Parquet file, and check that it has these columns in types that can be read."""
    with load_pyarrow().parquet.ParquetFile(source, page_checksum_verification=True) as file:
        layout = file.schema_arrow  # kept, since each access builds it anew
        for column in columns:
            _check_type(layout, column, n, where)
        yield file


@contextmanager
def _readable(where: str) -> Iterator[None]:
    """Turn any error of reading a file into a `TraceError` of one sentence."""
    pa = load_pyarrow()
    try:
        yield
    except FileNotFoundError:
        raise TraceError(f"{where} does not exist.") from None
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: names that are not UTF-8
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
        raise TraceError(f"{where} is not a readable Parquet file: {reason}.") from error


def _check_type(found: Any, column: str, n: int, where: str) -> None:
    pa = load_pyarrow()
    if column not in found.names:
        raise TraceError(f"{where} has no column {column}.")
    kind, wanted = found.field(column).type, schema(n).field(column).type
    if column == "deps" and pa.types.is_fixed_size_binary(kind):
        _check_width(kind.byte_width, n, where)
    elif column in ("deps", "dst"):
        # Spark cannot write binary of fixed width, so a trace that Spark has written has variable width.
        if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise TraceError(f"{where}: column {column} must be binary, not {kind}.")
    else:
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        plain = pa.string() if pa.types.is_large_string(plain) else plain
        if plain != (wanted.value_type if pa.types.is_dictionary(wanted) else wanted):
            shown = "string" if column == "step" else wanted
            raise TraceError(f"{where}: column {column} must be {shown}, not {kind}.")


def _check_width(width: int, n: int, where: str) -> None:
    if width % 4:
        raise TraceError(f"{where}: deps of {width} bytes is not a multiple of 4.")
    if width > 4 * n:
        raise TraceError(f"{where}: deps of {width} bytes is longer than 4 x {n} processes.")


def _check_values(part: Any, n: int, process: int | None, first: int | None, where: str) -> None:
    import numpy as np

    pa = load_pyarrow()
    for column in set(part.column_names) & set(REQUIRED):
        if part.column(column).null_count:
            raise TraceError(f"{where}: column {column} has a null.")
    if not part.num_rows:
        return
    for column in ("process", "src", "peer"):
        if column in part.column_names:
            bounds = pa.compute.min_max(part.column(column)).as_py()
            for bound in bounds.values():
                if bound is not None and not 0 <= bound < n:
                    raise TraceError(
                        f"{where}: {column} {bound} is out of range, as the trace has {n} processes."
                    )
            if column == "process" and process is not None and set(bounds.values()) != {process}:
                raise TraceError(f"{where} has rows of process {bounds['min']} to {bounds['max']}.")
    if "pos" in part.column_names:
        positions = part.column("pos").to_numpy()
        start = int(positions[0]) if first is None else first
        wrong = positions != np.arange(start, start + len(positions))
        if wrong.any():
            at = int(wrong.argmax())
            raise TraceError(f"{where}: position {start + at} is missing, {positions[at]} is in its place.")
    if "deps" in part.column_names and not pa.types.is_fixed_size_binary(part.schema.field("deps").type):
        for width in pa.compute.unique(pa.compute.binary_length(part.column("deps"))).to_pylist():
            _check_width(width or 0, n, where)
    if "dst" in part.column_names:
        for value in pa.compute.unique(part.column("dst")).to_pylist():
            if value is not None and unpack_dst(value) >> n:
                raise TraceError(
                    f"{where}: dst names process {unpack_dst(value).bit_length() - 1}, which is out of range."
                )


def _in_our_types(part: Any, n: int) -> Any:
    """Convert a part to the types of `schema(n)`: vectors padded to n processes, steps as a dictionary, no other writer's types."""
    pa = load_pyarrow()
    wanted = pa.schema([schema(n).field(column) for column in part.column_names])
    columns = []
    for field in wanted:
        column = part.column(field.name)
        if field.name == "deps":
            column = widen(column, n)
        elif column.type != field.type:
            column = column.cast(field.type)
        columns.append(column)
    return pa.table(columns, schema=wanted)
