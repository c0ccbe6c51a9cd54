"""Writing a trace: rows in, Parquet segments out.

    row()      appends its arguments to a list, and does nothing else
    chunk      a full list goes to a thread, which converts it to columns
    segment    after enough chunks or enough time: one Parquet file, renamed into place when it is complete

A crash loses the open segment and nothing else. The process file is rewritten with each segment, so it
always says how far the finished segments reach.
"""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Queue
from types import TracebackType
from typing import Any, Literal, Self

from inga.model.errors import TraceError, UsageError
from inga.trace.columns import to_batches
from inga.trace.manifest import ProcessFile
from inga.trace.numbering import Numbering
from inga.trace.rows import NOW, VIEW, WIDTH, RowCells, Rows
from inga.trace.schema import KINDS, load_pyarrow, nanoseconds, schema

SEGMENT_ROWS = 262_144
SEGMENT_SECONDS = 5.0
SEGMENT_DEPS_MAX = 128 * 2**20  # bytes: with more than 128 processes a segment has fewer rows
CHUNK_ROWS = 8_192  # Python objects take several times the room of columns, so few are kept
CHUNK_COUNTS_MAX = 2**20  # entries of all vectors of a chunk
CHUNKS_WAITING_MAX = 32  # as many rows as one segment; beyond it `row` waits for the disk

_COMPRESSION = "zstd"
_DELTA_ENCODED = [name for name, kind in KINDS.items() if kind.encoding == "delta"]
_DICTIONARY_ENCODED = [name for name, kind in KINDS.items() if kind.encoding == "dictionary"]


class TraceWriter(Rows):
    """The trace of one process. `row` may be called from one thread only.

    `n` processes are known at the start; `origin` seconds are added to every time, for drivers whose
    clock does not start at the epoch.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        process: int,
        name: str,
        n: int,
        *,
        full: bool = True,
        receipt: str | None = None,
        segment_rows: int = SEGMENT_ROWS,
        segment_seconds: float = SEGMENT_SECONDS,
        clock: Literal["virtual", "wall"] = "wall",
        origin: float = 0.0,
        background: bool = True,
    ) -> None:
        if segment_rows < 1:
            raise UsageError(f"A segment needs at least one row, not {segment_rows}.")
        if not 0 <= process < n:
            raise UsageError(f"Process {process} is not one of {n} processes.")
        super().__init__(full, receipt, limit=0)  # cells before the next hand-over; stays 0 after a failure
        self._numbering = Numbering.of(n)
        self._segment_rows = segment_rows
        # Virtual seconds tell neither how much a crash would lose nor how large a file gets.
        self._segment_seconds = segment_seconds if clock == "wall" else float("inf")
        self._handed_over = 0  # rows before those in `_cells`
        self._in_segment = 0  # how many of these are in the open segment
        self._opened: float | None = None  # time of the first row of the open segment
        self._last_view = -1
        self._failure: TraceError | None = None
        self._closed = False
        self._segments = _Segments(Path(directory), process, name, nanoseconds(origin))
        self._jobs: Queue[_Job | None] | None = None
        if background:
            self._jobs = Queue(CHUNKS_WAITING_MAX)
            self._thread = threading.Thread(
                target=self._work, args=(self._jobs,), name=f"trace of {name}", daemon=True
            )
            self._thread.start()
        self._set_limit()

    # ---- events

    @property
    def pos(self) -> int:
        """Position of the last row."""
        return self._handed_over + len(self._cells) // WIDTH

    def poll(self, now: float) -> None:
        """End the open segment if it is old. For drivers whose members may write no rows for a long time."""
        self._raise_failure()
        opened = self._opened
        if opened is None and self._cells:
            opened = self._cells[NOW]
        if opened is not None and now - opened >= self._segment_seconds:
            self._hand_over(seal=True)

    def grow(self, n: int) -> None:
        """From now on there are n processes: members joined the view in force, with the next indices.

        Call it before the first row of the extended view. Vectors become longer, so a new segment begins.
        """
        self._renumber(self._numbering.grow(n))

    def cut(self, view: int, seqs: Sequence[int] | int, indices: Sequence[int] | None = None) -> None:
        """A view was closed after `seqs[member]` messages of each member; later views count from 0. If `seqs` is one number,
        every process goes on counting from that number.

        Call it before the first row of a later view. `indices[member]` is the process of each member of
        the next view; without it the members stay. Rows that still concern a packet of an earlier view
        have that view's number. A process that joins a running trace begins with one cut: the sum of
        all cuts so far, by process.
        """
        last = max(self._cells[VIEW::WIDTH], default=self._last_view)
        if last > view:
            raise UsageError(f"The cut of view {view} comes too late: there are rows of view {last}.")
        self._renumber(self._numbering.cut(view, seqs, indices))

    def disclaim(self, *checks: str) -> None:
        """Record that the run no longer claims these checks, because of an event at this process.

        The process file is not rewritten before the next segment: rows that are not in a file yet need no excuse.
        """
        self._segments.disclaim(checks)

    def close(self, complete: bool = True, *, crashed: bool = False) -> None:
        """Write the remaining rows and the process file. `complete` claims that no row of the process is lost."""
        if self._closed:
            return
        self._closed = True
        self._limit = 0
        try:
            if self._failure is None:
                self._hand_over(seal=True)
        finally:
            if self._jobs is not None:
                self._jobs.put(None)
                self._thread.join()
        self._raise_failure()
        self._segments.end(complete, crashed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(complete=error is None)

    # ---- from rows to chunks

    def _hand_over(self, seal: bool = False) -> None:
        cells, self._cells = self._cells, []
        self._raise_failure()
        if self._closed and not seal:
            raise UsageError(
                "the trace is closed: write rows before close(), or inside of `with TraceWriter(...)`"
            )
        if cells:
            if self._opened is None:
                self._opened = cells[NOW]
            self._last_view = max(self._last_view, cells[VIEW - WIDTH])
            rows = len(cells) // WIDTH
            self._handed_over += rows
            self._in_segment += rows
            old = cells[NOW - WIDTH] - self._opened >= self._segment_seconds
            seal = seal or old or self._in_segment >= self._rows_max()
        if self._in_segment:
            self._do((cells, self._numbering, seal))
        if seal:
            self._in_segment, self._opened = 0, None
        self._set_limit()

    def _renumber(self, numbering: Numbering) -> None:
        if numbering.n != self._numbering.n:
            self._hand_over(seal=True)
        self._numbering = numbering
        self._set_limit()

    def _rows_max(self) -> int:
        return min(self._segment_rows, max(SEGMENT_DEPS_MAX // (4 * self._numbering.n), 1))

    def _set_limit(self) -> None:
        chunk = max(min(CHUNK_ROWS, CHUNK_COUNTS_MAX // self._numbering.n), 1)
        self._limit = min(chunk, self._rows_max() - self._in_segment) * WIDTH
        if self._failure is not None or self._closed:
            self._limit = 0

    # ---- from chunks to files, here or in the thread

    def _do(self, job: "_Job") -> None:
        if self._jobs is not None:
            self._jobs.put(job)
        else:
            self._attempt(job)
            self._raise_failure()

    def _work(self, jobs: "Queue[_Job | None]") -> None:
        while (job := jobs.get()) is not None:
            if self._failure is None:  # after a failure the queue is only emptied, so that no `put` blocks
                self._attempt(job)

    def _attempt(self, job: "_Job") -> None:
        try:
            self._segments.add(*job)
        except Exception as error:  # of any kind: the writer's caller must learn of it
            self._failure = self._segments.describe(error)
            self._failure.__cause__ = error
            self._limit = 0

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


_Job = tuple[RowCells, Numbering, bool]


class _Segments:
    """The files of one process: converts chunks to columns, and writes columns as segments."""

    def __init__(self, directory: Path, process: int, name: str, origin: int) -> None:
        load_pyarrow()  # here, so that a missing package is reported at once
        self._directory = directory
        self._events = directory / "events"
        self._origin = origin
        self._record = ProcessFile(process, name)
        self._number = 0
        self._batches: list[Any] = []
        self._next = 1  # position of the next row
        try:
            self._events.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceError(f"{self._events} cannot be made: {error.strerror}.") from error
        if any(self._events.glob(f"{process}-*.parquet")):
            raise UsageError(f"{directory} already has rows of process {process}: choose another directory.")
        self._record.write(directory)

    def add(self, cells: RowCells, numbering: Numbering, seal: bool) -> None:
        if cells:
            process = self._record.process
            if self._record.first_view is None:
                self._record.first_view = cells[VIEW]
            layout = schema(numbering.n)
            self._batches += to_batches(cells, process, self._next, numbering, layout, self._origin)
            self._next += len(cells) // WIDTH
        if seal and self._batches:
            self._write(schema(numbering.n))

    def disclaim(self, checks: Sequence[str]) -> None:
        # Not written here: the thread that writes segments may be writing the same file.
        self._record.disclaims = sorted({*self._record.disclaims, *checks})

    def end(self, complete: bool, crashed: bool) -> None:
        self._record.complete, self._record.crashed = complete, crashed
        self._record.write(self._directory)

    def describe(self, error: Exception) -> TraceError:
        if isinstance(error, TraceError):
            return error
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        reason = (reason.splitlines() or [type(error).__name__])[0]
        return TraceError(f"{self._path()} cannot be written: {reason}.")

    def _path(self) -> Path:
        return self._events / segment_name(self._record.process, self._number)

    def _write(self, layout: Any) -> None:
        pa = load_pyarrow()
        table = pa.Table.from_batches(self._batches, layout)
        write_segment(table, self._path())
        self._batches = []
        self._number += 1
        self._record.last_pos = self._next - 1
        self._record.write(self._directory)


def segment_name(process: int, number: int) -> str:
    return f"{process}-{number:05}.parquet"


def write_segment(table: Any, path: Path) -> None:
    """Write a segment and rename it into place when it is complete, so that it exists whole or not at all."""
    hidden = path.with_name(f".{path.name}.tmp")
    try:
        load_pyarrow().parquet.write_table(
            table,
            hidden,
            row_group_size=max(table.num_rows, 1),
            compression=_COMPRESSION,
            use_dictionary=_DICTIONARY_ENCODED,
            column_encoding=dict.fromkeys(_DELTA_ENCODED, "DELTA_BINARY_PACKED"),
            write_statistics=["process", "pos"],
            write_page_checksum=True,
        )
        os.replace(hidden, path)
    except BaseException:
        with suppress(OSError):
            hidden.unlink()
        raise
