"""A trace as a log that ShiViz reads with its default expression: a line with host and clock, a line with text.

Imported events keep their clocks. In our own runs every row is an event, and its clock is computed from the messages
that its process knows: for each other process, the row that sent the last message known here.

    known    per process, the number of the last message in the past of a row: a message, with its past, is known
             from the step on that makes it a cause here, as in the stamps
    clock    the position of that message's send, among the rows of its sender

Rows are processed one at a time; `Stamps` keeps the stamps of messages and the positions of their sends.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from inga.model.errors import UsageError
from inga.model.steps import FOREIGN
from inga.model.text import printable
from inga.trace.aliases import rename
from inga.trace.export import Counted, Exported, write_lines
from inga.trace.reader import TracePath, read_manifest, read_pieces, read_processes, rows, segments
from inga.trace.schema import Row, load_pyarrow
from inga.trace.stamps import Stamps

(EVENT,) = FOREIGN


def write_shiviz(
    trace: TracePath,
    out: TextIO,
    alias: str | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Exported:
    """Write a trace to `out`; `progress` is called with the number of rows that are done."""
    processes = read_processes(trace)
    names = host_names([file.name for file in processes])
    counted = Counted(rows(trace))
    if _has_clocks(trace):
        return write_lines(_foreign(counted, names), out, processes, counted, progress)
    with Stamps.read(trace) as stamps:
        if stamps.unstamped:
            raise UsageError(f"{trace} has messages without vectors, so there are no clocks to write")
        events = _own(counted, names, stamps, read_manifest(trace).receipt, alias)
        return write_lines(events, out, processes, counted, progress)


def host_names(names: Sequence[str]) -> list[str]:
    """Host names that ShiViz can tell from clocks: without spaces, and all different."""
    found: list[str] = []
    for name in names:
        host = printable(re.sub(r"\s", "_", name))
        while host in found:
            host += "'"
        found.append(host)
    return found


def _has_clocks(trace: TracePath) -> bool:
    """Whether the trace has imported events with clocks. The first part of the rows that has events decides."""
    compute = load_pyarrow().compute
    n = len(read_manifest(trace).processes)
    for segment in segments(trace, empty_ok=True):
        known: Any = {"process": segment.process, "columns": ("process", "step", "deps")}
        for part in read_pieces(segment.path, n, **known):
            events = part.filter(compute.equal(part.column("step"), EVENT))
            if events.num_rows:
                return bool(events.column("deps").null_count < events.num_rows)
    return False


def _foreign(trace: Iterable[Row], names: Sequence[str]) -> Iterator[str]:
    for row in trace:
        if row.step == EVENT and row.deps is not None and row.seq is not None:
            clock = list(row.deps)
            clock[row.process] = row.seq
            yield _lines(names, row.process, clock, row.note or "")


def _own(
    trace: Iterable[Row],
    names: Sequence[str],
    stamps: Stamps,
    receipt: str,
    alias: str | None,
) -> Iterator[str]:
    process, known, clock = -1, [0] * len(names), [0] * len(names)
    for row, steps in rename(trace, alias):
        if row.process != process:
            process, known, clock = row.process, [0] * len(names), [0] * len(names)
        past: Sequence[int] | None = row.deps if row.step == "view" else None
        if row.step == receipt and row.src != process:
            past = stamps.find(row.src, row.seq)
        for other, seq in enumerate(past or ()):
            if seq > known[other]:
                known[other] = seq
                clock[other] = max(clock[other], stamps.sent_at(other, seq))
        clock[process] = row.pos
        yield _lines(names, process, clock, f"{', '.join(steps)}{_about(row, names)}")


def _about(row: Row, names: Sequence[str]) -> str:
    words = []
    if row.src is not None and row.seq is not None:
        words.append(f"message {row.seq} of {names[row.src]}")
    if row.dst is not None:
        words.append("to " + " ".join(name for at, name in enumerate(names) if row.dst >> at & 1))
    if row.peer is not None:
        words.append(f"peer {names[row.peer]}")
    if row.note:
        words.append(row.note)
    return ": " + ", ".join(words) if words else ""


def _lines(names: Sequence[str], process: int, clock: Sequence[int], text: str) -> str:
    counts = {name: count for name, count in zip(names, clock, strict=True) if count}
    line = "\t".join(map(printable, " ".join(text.splitlines()).split("\t")))
    return f"{names[process]} {json.dumps(counts, ensure_ascii=False)}\n{line}\n"
