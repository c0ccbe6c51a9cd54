"""`inga stamp` on files: cuts are placed and verified, then two passes over slices of the trace.

In both passes a task gets a slice, that is some segments of every process, and reads what it needs of them. The first
returns symbols for the events at the edges to the driver; the second writes one segment for each process and slice.
`inga.certify.slice` says why that is enough.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np

from inga.certify import slice as slicing
from inga.certify.chunk import JUDGED_COLUMNS, from_table
from inga.certify.slice import (
    MESSAGE_COLUMNS,
    Beginning,
    Cuts,
    Outline,
    Slice,
    SliceEdges,
    SlicePlan,
    Steps,
    Symbols,
    Unstampable,
    steps_in,
    steps_of,
)
from inga.model.errors import TraceError, UsageError
from inga.model.steps import GROUP, MESSAGE
from inga.pipeline.files import Files, TaskProgress, files_of
from inga.pipeline.session import LOCAL, using
from inga.pipeline.storage import File, StoredTrace, is_remote, open_trace, read_file
from inga.trace import COLUMNS, Manifest, local_path, read_processes, schema
from inga.trace.columns import fixed_binary
from inga.trace.directory import naming_full
from inga.trace.manifest import MANIFEST
from inga.trace.writer import segment_name, write_segment

RECEIVE = "receive"
"""The step that counts as the receipt if the trace has no rows of its receipt step."""

STEP_COLUMNS = (*(name for name in JUDGED_COLUMNS if name != "deps"), "time")
"""The columns that are read first, and validated. Existing vectors, which are most of a trace, are not read. Later passes read
only `MESSAGE_COLUMNS`, as the others were validated by then."""

KEPT_COLUMNS = tuple(name for name in COLUMNS if name != "deps")
OURS = frozenset((*MESSAGE, *GROUP))  # steps whose vectors are computed anew, or omitted


@dataclass(frozen=True, slots=True)
class StampResult:
    """What was done. `moved` counts how often a cut had to be moved."""

    trace: str
    out: str
    events: int
    messages: int
    processes: int
    slices: int
    moved: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def stamp_trace(
    path: str,
    out: str,
    *,
    master: str | None = LOCAL,
    progress: TaskProgress = lambda what, done, total: None,
    session: Any = None,
    counts_max: int = slicing.COUNTS_MAX,
) -> StampResult:
    """Write the trace again with vectors. `counts_max`: entries of vectors that a task may keep in memory."""
    started = perf_counter()
    for each in (path, out):
        if is_remote(each):
            raise UsageError(f"inga stamp reads and writes directories that all machines share, not {each}")
    trace, target = open_trace(path), local_path(out).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists already: choose a directory that does not, or is empty")
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is not a directory, so {target.name} cannot be made in it")
    hidden = target.with_name(f".{target.name}.{uuid4().hex}.partial")
    try:
        with naming_full(target), using(session, master) as spark:
            work = _Work(files_of(spark, trace, progress), counts_max)
            try:
                work.run(hidden)
            except Unstampable as error:
                raise TraceError(
                    error.tell([each.name for each in trace.processes], _place(trace, error))
                ) from None
        if target.exists():
            target.rmdir()
        os.replace(hidden, target)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    events = sum(each.events for each in work.outlines.values())
    return StampResult(
        path, str(target), events, work.messages, trace.n, len(work.cuts.upto), work.moved,
        perf_counter() - started,
    )  # fmt: skip


class _Work:
    def __init__(self, files: Files, counts_max: int) -> None:
        self._files = files
        self._trace = files.trace
        self._counts_max = counts_max
        self._receipt = files.trace.receipt
        self.outlines: dict[int, Outline] = {}
        self.messages = 0
        self.moved = 0
        self.cuts = Cuts(np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int64))

    def run(self, target: Path) -> None:
        self._outline()
        self._cut()
        work = self._slices()
        wanted = self._crossings()
        chain = SliceEdges(self._trace.n)
        n, receipt = self._trace.n, self._receipt

        def first(piece: tuple["_Task", set[tuple[int, int]]]) -> Symbols:
            task, messages = piece
            return slicing.symbols(Slice.of(task.steps(n, receipt), n), messages)

        sent = [
            (task, {each for each in wanted if _is_sent_in(self.cuts, each, task.number)}) for task in work
        ]
        begins = [chain.add(found) for found in self._tasks("slices read", first, sent)]
        self._describe(target)
        step = self._trace.receipt

        def second(piece: tuple["_Task", Beginning]) -> None:
            _write(piece[0], n, receipt, step, piece[1], target)

        self._tasks("slices written", second, list(zip(work, begins, strict=True)))

    # ---- cuts

    def _outline(self) -> None:
        self.outlines = self._outlined(self._receipt)
        if not any(each.receipts for each in self.outlines.values()):
            self._receipt = RECEIVE
            self.outlines = self._outlined(self._receipt)
        if not any(each.sent for each in self.outlines.values()):
            raise TraceError(f"{self._trace.path} has no send, so there is nothing to stamp.")

    def _outlined(self, receipt: str) -> dict[int, Outline]:
        n = self._trace.n

        def work(file: File, content: bytes | None, question: None) -> Outline:
            return slicing.outline(*_read(file, n, receipt), n)

        return dict(
            self._files.map("segments read", work, [(at, None) for at in range(len(self._trace.files))])
        )

    def _cut(self) -> None:
        n, receipt = self._trace.n, self._receipt
        plan = SlicePlan(sorted(self.outlines.items()), n, self._counts_max)

        def place(file: File, content: bytes | None, question: Any) -> Any:
            return slicing.place(*_read(file, n, receipt), question)

        def retreat(file: File, content: bytes | None, question: Any) -> Any:
            return slicing.retreat(_read_steps(file, n, receipt), question)

        for at, found in self._files.map("cuts placed", place, plan.to_place()):
            plan.placed(self.outlines[at].process, found)
        moved = True
        while moved:
            answers = self._files.map("cuts verified", retreat, plan.to_verify())
            changes = [plan.retreated(self.outlines[at].process, found) for at, found in answers]
            moved = any(changes)
        self.cuts, self.moved = plan.cuts(), plan.moved
        self.messages = int(self.cuts.sent[-1].sum())

    def _crossings(self) -> set[tuple[int, int]]:
        n, receipt, cuts = self._trace.n, self._receipt, self.cuts

        def work(file: File, content: bytes | None, question: None) -> Any:
            return slicing.crossings(_read_steps(file, n, receipt), cuts)

        wanted: set[tuple[int, int]] = set()
        for _, (src, seq) in self._files.map("messages placed", work, [(at, None) for at in self.outlines]):
            wanted |= set(zip(src.tolist(), seq.tolist(), strict=True))
        return wanted

    # ---- slices

    def _slices(self) -> list["_Task"]:
        """For each slice the segments it needs, and the number of the segment that it will write for each process."""
        n, numbers, found = self._trace.n, np.zeros(self._trace.n, np.int64), []
        for number, upto in enumerate(self.cuts.upto):
            after = self.cuts.upto[number - 1] if number else np.zeros(n, np.int64)
            files = [
                self._trace.files[at]
                for at, each in sorted(self.outlines.items())
                if each.events and each.first <= upto[each.process] and each.last > after[each.process]
            ]
            found.append(_Task(number, files, after, upto, numbers.copy()))
            numbers += upto > after
        return found

    def _tasks(self, what: str, function: Callable[[Any], Any], work: Sequence[Any]) -> list[Any]:
        return self._files.run(what, function, work, sum(file.size for file in self._trace.files))

    def _describe(self, target: Path) -> None:
        """Copy the manifest and the process files."""
        (target / "events").mkdir(parents=True)
        source = Path(self._trace.path)
        Manifest.parse((source / MANIFEST).read_bytes(), str(source / MANIFEST)).write(target)
        for file in read_processes(source):
            if (source / "processes" / f"{file.process}.json").exists():
                file.write(target)


@dataclass(frozen=True, slots=True)
class _Task:
    """One slice, and the segments that have its rows."""

    number: int
    files: list[File]
    after: Any  # by process: the last position before it
    upto: Any
    segments: Any  # by process: the number of the segment that is written

    def steps(self, n: int, receipt: str) -> Iterator[Steps]:
        for file in self.files:
            low, high = int(self.after[file.process]), int(self.upto[file.process])
            yield _read_steps(file, n, receipt).between(low, high)


def _place(trace: StoredTrace, error: Unstampable) -> str:
    """The file that has a row, or the line of the log that it was imported from."""
    for file in trace.files:
        if file.process == error.process:
            table = read_file(file, trace.n, ("process", "pos", "ref"))
            at = error.pos - table.column("pos")[0].as_py() if table.num_rows else -1
            if 0 <= at < table.num_rows:
                return table.column("ref")[at].as_py() or file.name if trace.manifest.is_import else file.name
    return ""


def _is_sent_in(cuts: Cuts, message: tuple[int, int], number: int) -> bool:
    source, seq = message
    before = cuts.sent[number - 1, source] if number else 0
    return bool(before < seq <= cuts.sent[number, source])


def _read(file: File, n: int, receipt: str) -> tuple[Steps, Any]:
    """The steps of a segment, and the times of all its rows."""
    table = read_file(file, n, STEP_COLUMNS)
    chunk = from_table(table, file.process, n, receipt, where=file.path)
    return steps_of(chunk), np.asarray(table.column("time").to_numpy(), np.int64)


def _read_steps(file: File, n: int, receipt: str) -> Steps:
    """Only the steps of a segment, which was validated when it was read first."""
    return steps_in(read_file(file, n, MESSAGE_COLUMNS), file.process, receipt)


def _write(task: _Task, n: int, receipt: str, step: str, begin: Beginning, target: Path) -> None:
    """The second pass over a slice."""
    part = Slice.of(task.steps(n, receipt), n)
    lines, _ = slicing.vectors(part, begin.start, begin.outside)
    heights = lines.sum(axis=1, dtype=np.int64) + 1
    for process in np.flatnonzero(task.upto > task.after).tolist():
        rows = slice(int(part.begins[process]), int(part.begins[process + 1]))
        table = _rows(task, process, n)
        at = part.pos[rows] - int(task.after[process]) - 1
        which = part.line[rows]
        table = _with_vectors(table, at, lines[which], heights[which])
        if receipt != step:
            table = _renamed(table, receipt, step)
        write_segment(table, target / "events" / segment_name(process, int(task.segments[process])))


def _rows(task: _Task, process: int, n: int) -> Any:
    """All columns of a process's rows in a slice; vectors only if some of its rows may keep theirs."""
    import pyarrow as pa

    low, high = int(task.after[process]) + 1, int(task.upto[process])
    parts = []
    for file in task.files:
        if file.process == process:
            table = read_file(file, n, KEPT_COLUMNS)
            if not OURS.issuperset(_steps_in(table)):
                table = read_file(file, n, COLUMNS)
            first = table.column("pos")[0].as_py()
            start = max(low - first, 0)
            parts.append(table.slice(start, max(high - first + 1 - start, 0)))
    return pa.concat_tables(parts, promote_options="default").unify_dictionaries()


def _steps_in(table: Any) -> list[str]:
    found: list[str] = table.column("step").unique().to_pylist()
    return found


def _with_vectors(table: Any, at: Any, lines: Any, heights: Any) -> Any:
    """The table with the vectors of messages in these rows. Rows that are not about messages keep their vectors: the clocks of
    imported events, and what precedes the requests of objects."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n = lines.shape[1]
    present = None
    if len(at) < table.num_rows:
        present = np.zeros(table.num_rows, np.bool_)
        present[at] = True
        lines, heights = _spread(lines, at, present), _spread(heights, at, present)
    made = {
        "height": pa.array(heights, mask=None if present is None else ~present),
        "deps": fixed_binary(lines.astype("<i4", copy=False), present),
    }
    columns = {name: table.column(name) for name in table.column_names}
    if "deps" in columns:  # which is read if some rows keep it
        is_ours = pc.is_in(columns["step"].cast(pa.string()), pa.array(sorted(OURS)))
        made = {name: pc.if_else(is_ours, values, columns[name]) for name, values in made.items()}
    columns |= made
    layout = schema(n)
    return pa.table([columns[name] for name in layout.names], schema=layout)


def _spread(values: Any, at: Any, present: Any) -> Any:
    """Values at the present rows, with zeros at the others."""
    found = np.zeros((len(present), *values.shape[1:]), values.dtype)
    found[at] = values
    return found


def _renamed(table: Any, old: str, new: str) -> Any:
    """The table with another name for one step."""
    import pyarrow as pa
    import pyarrow.compute as pc

    steps = table.column("step").cast(pa.string())
    steps = pc.if_else(pc.equal(steps, old), new, steps)
    return table.set_column(
        table.column_names.index("step"), table.schema.field("step"), steps.dictionary_encode()
    )
