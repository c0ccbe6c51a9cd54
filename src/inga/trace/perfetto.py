"""A trace as JSON for Perfetto (ui.perfetto.dev) and Chrome: a track for each process.

    slices    sends, arrivals, deliveries; how long a message was held, a window closed
    arrows    from a send to its deliveries
    instants  everything else

Rows are processed one at a time; the viewer sorts them by time. Times are microseconds since the first row.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from inga.model.steps import FOREIGN, MESSAGE
from inga.model.text import json_line
from inga.trace.aliases import rename
from inga.trace.export import Counted, Exported, write_lines
from inga.trace.reader import TracePath, read_manifest, read_processes, read_segment, rows, segments
from inga.trace.schema import Row

SLICE_MAX, SLICE_MIN = 1.0, 0.001
"""The length of a step's slice in microseconds: shorter than the maximum if another step follows sooner, so that slices do not
overlap."""

ENDS_HOLD = frozenset(("deliver", "accept", "duplicate", "gave_up"))

(EVENT,) = FOREIGN

Entry = dict[str, Any]


def write_perfetto(
    trace: TracePath,
    out: TextIO,
    alias: str | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Exported:
    """Write a trace to `out`; `progress` is called with the number of rows that are done."""
    processes = read_processes(trace)
    names = [file.name for file in processes]
    counted = Counted(rows(trace))
    entries = _Tracks(names, _origin(trace)).entries(counted, alias)
    out.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    out.write(",\n".join(json_line(entry) for entry in _titles(names)))
    lines = (",\n" + json_line(entry) for entry in entries)
    exported = write_lines(lines, out, processes, counted, progress)
    out.write("\n]}\n")
    return exported


def _origin(trace: TracePath) -> int:
    """The time of the earliest first row of all processes."""
    n = len(read_manifest(trace).processes)
    firsts = []
    for segment in segments(trace, empty_ok=True):
        if segment.number == 0:
            part = read_segment(segment.path, n, process=segment.process, columns=("process", "time"))
            firsts += part.column("time").slice(0, 1).to_pylist()
    return min(firsts, default=0)


def _titles(names: Sequence[str]) -> Iterator[Entry]:
    for process, name in enumerate(names):
        yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}
        yield {
            "ph": "M",
            "name": "process_sort_index",
            "pid": process,
            "tid": 0,
            "args": {"sort_index": process},
        }
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": 0, "args": {"name": "steps"}}


class _Tracks:
    def __init__(self, names: Sequence[str], origin: int) -> None:
        self._names = names
        self._origin = origin
        self._process = -1
        self._held: set[tuple[int, int]] = set()  # messages held at the current process
        self._is_closed = False  # whether its window is closed
        self._free = 0.0  # where its last slice ends

    def entries(self, trace: Iterable[Row], alias: str | None) -> Iterator[Entry]:
        renamed = rename(trace, alias)
        row, steps = next(renamed, (None, ()))
        while row is not None:
            following, its_steps = next(renamed, (None, ()))
            if row.process != self._process:
                yield from self._end()
                self._process = row.process
            # Rows with the same time are drawn one after the other.
            start = max((row.time - self._origin) / 1000, self._free)
            until = start + SLICE_MAX
            if following is not None and following.process == row.process:
                until = min(until, (following.time - self._origin) / 1000)
            length = max(until - start, SLICE_MIN)
            self._free = start + length
            yield from self._entries(row, ", ".join(steps), start, length)
            row, steps = following, its_steps
        yield from self._end()

    def _entries(self, row: Row, name: str, time: float, length: float) -> Iterator[Entry]:
        place: Entry = {"pid": row.process, "tid": 0, "ts": time}
        message = None if row.src is None or row.seq is None else (row.src, row.seq)
        if row.step == EVENT:
            title = row.note or name
        else:
            title = name if message is None else f"{name} {self._names[message[0]]} {message[1]}"
        arguments = self._arguments(row)
        if row.step in MESSAGE and message is not None:
            yield {"ph": "X", "cat": "message", "name": title, **place, "dur": length, "args": arguments}
            yield from self._arrows(row, message, place)
            yield from self._holds(row, message, place)
        else:
            yield {"ph": "i", "s": "t", "cat": "step", "name": title, **place, "args": arguments}
        if row.step in ("window_closed", "window_opened"):
            is_closing = row.step == "window_closed"
            if is_closing != self._is_closed:
                self._is_closed = is_closing
                yield self._window("b" if is_closing else "e", time)

    def _arguments(self, row: Row) -> Entry:
        found: Entry = {"pos": row.pos, "view": row.view, "deps": row.deps, "n": row.n, "ref": row.ref}
        found |= {"peer": None if row.peer is None else self._names[row.peer], "note": row.note}
        return {key: value for key, value in found.items() if value is not None}

    def _arrows(self, row: Row, message: tuple[int, int], place: Entry) -> Iterator[Entry]:
        arrow: Entry = {"cat": "message", "name": "message", **place}
        if row.step == "send":
            for other in range(len(self._names)):
                is_meant = other != row.process if row.dst is None else row.dst >> other & 1
                if is_meant:
                    yield {"ph": "s", "id": self._arrow(message, other), **arrow}
        elif row.step == "deliver" and row.src != row.process:
            yield {"ph": "f", "bp": "e", "id": self._arrow(message, row.process), **arrow}

    def _arrow(self, message: tuple[int, int], target: int) -> int:
        n = len(self._names)
        return (message[1] * n + message[0]) * n + target

    def _holds(self, row: Row, message: tuple[int, int], place: Entry) -> Iterator[Entry]:
        if row.step == "hold" and message not in self._held:
            self._held.add(message)
            yield self._hold("b", message, place["ts"])
        elif row.step in ENDS_HOLD and message in self._held:
            self._held.discard(message)
            yield self._hold("e", message, place["ts"])

    def _hold(self, phase: str, message: tuple[int, int], time: float) -> Entry:
        name = f"hold {self._names[message[0]]} {message[1]}"
        return self._span(phase, "hold", name, self._arrow(message, self._process), time)

    def _window(self, phase: str, time: float) -> Entry:
        return self._span(phase, "window", "window closed", self._process, time)

    def _span(self, phase: str, kind: str, name: str, number: int, time: float) -> Entry:
        return {
            "ph": phase, "cat": kind, "name": name, "id": f"{kind} {number}", "pid": self._process, "tid": 0,
            "ts": time,
        }  # fmt: skip

    def _end(self) -> Iterator[Entry]:
        """End the bars of messages that are still held, and of a closed window, at the end of a process's rows."""
        for message in sorted(self._held):
            yield self._hold("e", message, self._free)
        if self._is_closed:
            yield self._window("e", self._free)
        self._held, self._is_closed, self._free = set(), False, 0.0
