"""A trace as lines of JSON, one object per step, under our names or those of a paper.

Beside the columns of its row, a step shows what the lecture lets every step record:

    vector    the site's vector after a step that changes it: own sends, and deliveries per sender
    stamp     the message's time stamp: its past, with the sender's own entry being its number
    position  its place in the hold queue; 1 if it leaves again at once

Rows go by one after the other. Kept in memory are the stamps of all messages, as bytes, because most
rows name a message and only some carry its past.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

from inga.model.stamp import Deps
from inga.model.text import json_line
from inga.trace.aliases import BUFFERED, CHANGES, rename
from inga.trace.manifest import ProcessFile
from inga.trace.reader import TracePath, read_manifest, read_processes, read_segment, rows, segments
from inga.trace.schema import Row, load_pyarrow, pack_deps, unpack_deps

LINES = 1000
"""Lines written at once."""

ExportedStep = dict[str, Any]


class Stamps:
    """The stamps of the messages of a trace, by sender and number."""

    def __init__(self, processes: int) -> None:
        self._n = processes
        self._packed = [bytearray() for _ in range(processes)]  # one vector after the other, by `seq`

    def add(self, src: int, seq: int, deps: bytes) -> None:
        """A message was sent with this past. What a broken trace leaves out stays unknown."""
        packed, width = self._packed[src], 4 * self._n
        at = (seq - 1) * width
        if 0 < seq <= len(packed) // width:
            packed[at : at + width] = deps
        elif 0 < seq <= len(packed) // width + GAP_MAX:
            packed += b"\xff" * (at - len(packed))
            packed += deps

    def find(self, src: int | None, seq: int | None) -> list[int] | None:
        """The stamp of a message, if its send is known."""
        if src is None or seq is None:
            return None
        width = 4 * self._n
        packed = bytes(self._packed[src][(seq - 1) * width : seq * width]) if seq > 0 else b""
        if not packed or packed[:4] == b"\xff" * 4:
            return None
        return stamp(unpack_deps(packed), src, seq)

    @classmethod
    def of(cls, sent: Iterable[Row], processes: int) -> "Stamps":
        """From rows, wherever they come from."""
        stamps = cls(processes)
        for row in sent:
            if row.step == "send" and row.src is not None and row.seq is not None and row.deps is not None:
                stamps.add(row.src, row.seq, pack_deps(row.deps, processes))
        return stamps

    @classmethod
    def read(cls, trace: TracePath) -> "Stamps":
        """From the files of a trace, of which only the columns that matter are read."""
        compute = load_pyarrow().compute
        processes = len(read_manifest(trace).processes)
        stamps = cls(processes)
        columns = ("process", "step", "src", "seq", "deps")
        for segment in segments(trace, empty_ok=True):
            part = read_segment(segment.path, processes, process=segment.process, columns=columns)
            part = part.filter(compute.equal(part.column("step"), "send"))
            for src, seq, deps in zip(*(part.column(name).to_pylist() for name in columns[2:]), strict=True):
                if src is not None and seq is not None and deps is not None:
                    stamps.add(src, seq, deps)
        return stamps


GAP_MAX = 1 << 16
"""Missing sends before one that is there, beyond which a number is taken for nonsense."""


def stamp(deps: Deps, src: int, seq: int) -> list[int]:
    """A message's time stamp, as the lecture writes it: its past, itself included."""
    vector = list(deps)
    vector[src] = seq
    return vector


def steps(
    trace: Iterable[Row], stamps: Stamps, names: Sequence[str], alias: str | None = None
) -> Iterator[ExportedStep]:
    """What happened, step by step. Rows come by process, and of each process in `pos` order."""
    process, vector = -1, [0] * len(names)
    for row, found in rename(trace, alias):
        if row.process != process:
            process, vector = row.process, [0] * len(names)
        shown = list(vector) if _change(row, vector) else None  # a copy, taken after the change
        message = _stamp_of(row, stamps)
        for name in found:
            yield _step(row, name, names, shown, message, len(found) > 1)


def _stamp_of(row: Row, stamps: Stamps) -> list[int] | None:
    if row.deps is not None and row.src is not None and row.seq is not None:
        return stamp(row.deps, row.src, row.seq)
    return stamps.find(row.src, row.seq)


def _change(row: Row, vector: list[int]) -> bool:
    """Bring the site's vector up to date; whether this is a step that shows it."""
    if row.step in ("view", "join"):
        if row.deps is not None:  # who joins starts with what the others had sent
            vector[:] = map(max, vector, row.deps)
        return True
    if row.src is None or row.seq is None:
        return False
    if row.step == "send" or (row.step == "deliver" and row.src != row.process):
        vector[row.src] = max(vector[row.src], row.seq)
        return True
    return False


def _step(
    row: Row,
    name: str,
    names: Sequence[str],
    vector: list[int] | None,
    message: list[int] | None,
    is_one_of_several: bool,
) -> ExportedStep:
    shows_vector = name in CHANGES
    if row.step == "branch" and shows_vector:
        vector = message  # a branch begins as a copy of the stamp that opened it
    content: ExportedStep = {
        "process": row.process,
        "name": names[row.process],
        "pos": row.pos,
        "time": row.time,
        "step": name,
        "view": row.view,
        "src": row.src,
        "seq": row.seq,
        "vector": vector if shows_vector or not is_one_of_several else None,
        "stamp": None if shows_vector else message,
        "position": row.n if row.step == "hold" else 1 if name == BUFFERED else None,
        "dst": None if row.dst is None else [i for i in range(len(names)) if row.dst >> i & 1],
        "deps": row.deps,
        "height": row.height,
        "peer": row.peer,
        "n": None if row.step == "hold" else row.n,
        "op": row.op,
        "ref": row.ref,
        "note": row.note,
    }
    return {key: value for key, value in content.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    processes: int
    rows: int
    steps: int
    incomplete: tuple[str, ...]  # processes whose last rows are missing


def write_jsonl(
    trace: TracePath,
    out: TextIO,
    alias: str | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Exported:
    """Write a trace to `out`; `progress` hears how many rows are done."""
    processes = read_processes(trace)
    names = [file.name for file in processes]
    count = Counted(rows(trace))
    lines = map(_line, steps(count, Stamps.read(trace), names, alias))
    return write_lines(lines, out, processes, count, progress)


def write_lines(
    lines: Iterator[str],
    out: TextIO,
    processes: Sequence[ProcessFile],
    count: "Counted",
    progress: Callable[[int], None],
) -> Exported:
    """Write what an export makes of the counted rows, some lines at a time."""
    written = 0
    while batch := list(islice(lines, LINES)):
        out.writelines(batch)
        written += len(batch)
        progress(count.rows)
    incomplete = tuple(file.name for file in processes if not file.complete)
    return Exported(len(processes), count.rows, written, incomplete)


class Counted:
    """Rows that count themselves as they go by."""

    def __init__(self, source: Iterable[Row]) -> None:
        self._source = source
        self.rows = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._source:
            self.rows += 1
            yield row


def _line(step: ExportedStep) -> str:
    return json_line(step) + "\n"
