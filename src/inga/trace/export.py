"""A trace as lines of JSON, one object per step, under our names or those of a paper.

Beside the columns of its row, a step shows what every step records in the lecture:

    vector    the site's vector after a step that changes it: own sends, and deliveries per sender
    stamp     the message's time stamp: its past, with the message's number as the sender's own entry
    position  its place in the hold queue; 1 if it leaves again at once

Rows are processed one at a time, so memory does not grow with the trace; of messages, `Stamps` keeps the stamps.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

from inga.model.text import json_line
from inga.trace.aliases import BUFFERED, CHANGES, rename
from inga.trace.manifest import ProcessFile
from inga.trace.reader import TracePath, read_processes, rows
from inga.trace.schema import Row
from inga.trace.stamps import Stamps, stamp

LINES = 1000
"""How many lines are written at once."""

ExportedStep = dict[str, Any]


def steps(
    trace: Iterable[Row], stamps: Stamps, names: Sequence[str], alias: str | None = None
) -> Iterator[ExportedStep]:
    """The steps of a trace as objects. Rows must come by process, and those of each process in `pos` order."""
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
    """Update the site's vector for a row; return whether the row is of a step that shows the vector."""
    if row.step in ("view", "join"):
        if row.deps is not None:  # a newcomer starts with the messages that the others had sent
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
    """How much an export has written."""

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
    """Write a trace to `out`; `progress` is called with the number of rows that are done."""
    processes = read_processes(trace)
    names = [file.name for file in processes]
    count = Counted(rows(trace))
    with Stamps.read(trace) as stamps:
        lines = map(_line, steps(count, stamps, names, alias))
        return write_lines(lines, out, processes, count, progress)


def write_lines(
    lines: Iterator[str],
    out: TextIO,
    processes: Sequence[ProcessFile],
    count: "Counted",
    progress: Callable[[int], None],
) -> Exported:
    """Write the lines that an export makes of the counted rows, `LINES` at a time."""
    written = 0
    while batch := list(islice(lines, LINES)):
        out.writelines(batch)
        written += len(batch)
        progress(count.rows)
    incomplete = tuple(file.name for file in processes if not file.complete)
    return Exported(len(processes), count.rows, written, incomplete)


class Counted:
    """An iterable of rows that counts how many have been read from it."""

    def __init__(self, source: Iterable[Row]) -> None:
        self._source = source
        self.rows = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._source:
            self.rows += 1
            yield row


def _line(step: ExportedStep) -> str:
    return json_line(step) + "\n"
