"""Vector clocks of imported events: do they count each event once, never go back, and include the clocks of the events they name?

The `deps` of an event name the event before it, by its own entry, and for every other process the last event
that it knows of. All requirements on clocks follow from two rules:

    a process uses each own value once
    every event that is named exists, and its clock is not above the `deps` that name it

Only entries that differ from those of the event before have to be looked up: the others were looked up there. So each
chunk queries others about few events. Of several vectors that name one event only the lowest entries matter, so
merged queries to a chunk are not larger than the chunk. That is the only shuffle.

Rows keep the order of the file. If own values are out of order there, but none is repeated, the clocks are
believed and not the file, with a warning.
"""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import EVENT, Bools, Chunk, Ints
from inga.certify.combine import Line
from inga.certify.evidence import Evidence, Source
from inga.certify.roots import Bad, Cause
from inga.certify.work import RowKey

REPEATED, HOLE, FORGOTTEN, UNKNOWN_EVENT, BELOW = 1, 2, 3, 4, 5
"""What can be wrong with an event and another event that it names; REPEATED is about the event alone."""

NOWHERE, LOST = -1, -2
"""In place of a segment, for events that are not in the trace: LOST if they may be in missing rows."""

PLACES_SHOWN = 5  # in a warning, or of a cycle
EVENTS_AT_ONCE = 1 << 22  # entries of the clocks of wrong events that are compared with others at once


@dataclass(frozen=True, slots=True)
class Routes:
    """Where the events of each process are: ranges of own values, and for each the segment that had these values first.

    `low`, `high` and `segment` are sorted by `low`, and ranges do not overlap.
    """

    low: list[Ints]
    high: list[Ints]
    segment: list[Ints]
    complete: list[bool]  # whether no event after the last range can be missing
    may_lack: bool = (
        False  # whether incomplete processes may lack earlier events too, as lines of a log were left out
    )

    def find(self, process: int, values: Ints) -> Ints:
        """The segment of each of these events, or NOWHERE or LOST."""
        low, high, segment = self.low[process], self.high[process], self.segment[process]
        beyond = NOWHERE if self.complete[process] else LOST
        if not len(low):
            return np.full(len(values), beyond)
        at = np.searchsorted(low, values, side="right") - 1
        is_there = (at >= 0) & (values <= high[at])
        within = beyond if self.may_lack else NOWHERE
        return np.where(is_there, segment[at], np.where(values > high[-1], beyond, within))


@dataclass(frozen=True, slots=True)
class Late:
    """A place in the file where own values go back, although none is repeated."""

    process: int
    pos: int
    seq: int


def lay_out(lines: Sequence[Line], complete: list[bool], may_lack: bool = False) -> tuple[Routes, list[Late]]:
    """From the summaries: where each event is, and where file order contradicts the clocks."""
    routes = Routes([], [], [], complete, may_lack)
    late: list[Late] = []
    for process, line in enumerate(lines):
        covered = _Covered()
        highest = 0
        for link in line:
            for low, count, pos in link.summary.runs.tolist():
                new = covered.add(low, low + count - 1, link.segment)
                if low <= highest and new == count:
                    late.append(Late(process, pos, low))
                highest = max(highest, low + count - 1)
        for part, values in zip((routes.low, routes.high, routes.segment), covered.arrays(), strict=True):
            part.append(values)
    return routes, late


class _Covered:
    """Ranges of numbers, each with its first owner."""

    def __init__(self) -> None:
        self._stretches: list[tuple[int, int, int]] = []  # sorted, without overlap

    def add(self, low: int, high: int, owner: int) -> int:
        """Give a range to an owner, except for numbers that have one; return how many were new."""
        stretches = self._stretches
        if not stretches or low > stretches[-1][1]:  # the usual case
            stretches.append((low, high, owner))
            return high - low + 1
        at = max(bisect_right(stretches, (low, high, owner)) - 1, 0)
        at += stretches[at][1] < low
        gaps = []
        while low <= high:
            end = stretches[at][0] - 1 if at < len(stretches) else high
            if low <= min(end, high):
                gaps.append((low, min(end, high), owner))
            low = stretches[at][1] + 1 if at < len(stretches) else high + 1
            at += 1
        for gap in gaps:
            insort(stretches, gap)
        return sum(end - begin + 1 for begin, end, _ in gaps)

    def arrays(self) -> tuple[Ints, Ints, Ints]:
        table = np.array(self._stretches, np.int64).reshape(-1, 3)
        return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy()


# ---- what tasks do


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a chunk that are the first with their number, sorted by number."""

    rows: NDArray[np.intp]
    seq: Ints
    deps: NDArray[np.int32]
    follows: Bools  # whether the line before has the event before
    repeated: NDArray[np.intp]  # rows of the other events

    def changed(self, process: int) -> Bools:
        """The entries to look up: those that an event does not inherit from the event on the line before."""
        found: Bools = self.deps > 0
        after = np.flatnonzero(self.follows)
        found[after] &= self.deps[after] != self.deps[after - 1]
        found[after, process] = False  # it names the line before
        return found

    def forgets(self) -> Bools:
        """Which events know less than the event before, if that is in the chunk."""
        found = np.zeros(len(self.seq), np.bool_)
        after = np.flatnonzero(self.follows)
        found[after] = (self.deps[after - 1] > self.deps[after]).any(axis=1)
        return found


def events_of(chunk: Chunk, segment: int, routes: Routes) -> Events:
    rows = np.flatnonzero(((chunk.kind & EVENT) != 0) & chunk.stamped)
    seq = chunk.seq[rows]
    firsts = np.arange(len(rows))
    if (seq[1:] <= seq[:-1]).any():
        seq, firsts = np.unique(seq, return_index=True)
    mine = routes.find(chunk.process, seq) == segment
    seq, firsts = seq[mine], firsts[mine]
    is_first = np.zeros(len(rows), np.bool_)
    is_first[firsts] = True
    kept = rows[firsts]
    follows = np.append(False, seq[1:] == seq[:-1] + 1) if len(seq) else np.zeros(0, np.bool_)
    return Events(kept, seq, chunk.deps[kept], follows, rows[~is_first])


@dataclass(frozen=True, slots=True)
class Named:
    """Events of one chunk that others name: for each, the lowest entries of the vectors that name it."""

    seq: Ints
    deps: NDArray[np.int32]
    is_suspect: bool = False  # something is wrong in the chunk itself


def ask(chunk: Chunk, question: tuple[int, Routes]) -> dict[int, Named]:
    """The events that a chunk's events name, by the segment that has them. The chunk itself is suspect if one does not exist,
    if a number is repeated or if a clock goes back."""
    segment, routes = question
    events = events_of(chunk, segment, routes)
    line, named = np.nonzero(events.changed(chunk.process))
    values = events.deps[line, named].astype(np.int64)
    target = _targets(routes, named, values)
    is_suspect = len(events.repeated) > 0 or bool((target == NOWHERE).any()) or bool(events.forgets().any())
    found: dict[int, Named] = {}
    for each in np.flatnonzero(np.bincount(target[target >= 0])).tolist():
        mine = target == each
        found[each] = _lowest(values[mine], events.deps[line[mine]])
    if is_suspect:
        nothing = Named(np.empty(0, np.int64), np.empty((0, chunk.n), np.int32), True)
        found[segment] = merge(found[segment], nothing) if segment in found else nothing
    return found


def _targets(routes: Routes, named: NDArray[np.intp], values: Ints) -> Ints:
    target = np.full(len(values), NOWHERE)
    for process in np.flatnonzero(np.bincount(named)).tolist():
        mine = named == process
        target[mine] = routes.find(process, values[mine])
    return target


def _lowest(values: Ints, deps: NDArray[np.int32], is_suspect: bool = False) -> Named:
    """The lowest entries of all vectors that name the same value."""
    order = np.argsort(values, kind="stable")
    values, deps = values[order], deps[order]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else order
    lowest = np.minimum.reduceat(deps, starts, axis=0) if len(values) else deps
    return Named(values[starts], lowest, is_suspect)


def merge(left: Named, right: Named) -> Named:
    """Join two queries to a chunk."""
    values = np.concatenate([left.seq, right.seq])
    deps = np.concatenate([left.deps, right.deps])
    return _lowest(values, deps, left.is_suspect or right.is_suspect)


@dataclass(frozen=True, slots=True)
class WrongEvents:
    """Events of a process that know more than some event that names them; `is_suspect` as in `Named`."""

    process: int
    seq: Ints
    deps: NDArray[np.int32]
    is_suspect: bool


def answer(chunk: Chunk, question: tuple[int, Routes], named: Named) -> WrongEvents:
    """The named events whose clocks are above a vector that names them."""
    segment, routes = question
    events = events_of(chunk, segment, routes)
    at = np.searchsorted(events.seq, named.seq)
    if len(named.seq) and len(events.seq):
        at = np.minimum(at, len(events.seq) - 1)
        above = (_with_own(chunk, events, at) > named.deps).any(axis=1)
        above &= events.seq[at] == named.seq  # an event without a clock is above nothing
    else:
        above = np.zeros(len(named.seq), np.bool_)
    return WrongEvents(chunk.process, named.seq[above], _with_own(chunk, events, at[above]), named.is_suspect)


def _with_own(chunk: Chunk, events: Events, at: Ints) -> NDArray[np.int32]:
    """The clocks of events: their vectors, but with the event's number as own entry."""
    clocks = events.deps[at].copy()
    clocks[:, chunk.process] = events.seq[at]
    return clocks


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with an event: the kind, and the event that it names."""

    kind: int
    pos: int
    seq: int
    named: int
    value: int


@dataclass(slots=True)
class ChunkFaults:
    """What is wrong in a chunk: counts and first examples by kind and named process.

    `open` are faults of events whose predecessor is in another chunk, and may already have named the same event.
    """

    counts: Counter[tuple[int, int]]
    first: dict[tuple[int, int], list[Fault]]
    open: list[Fault]


Above = dict[int, tuple[Ints, NDArray[np.int32]]]
"""By process, the numbers and clocks of events that know more than some event that names them."""


def judge(chunk: Chunk, question: tuple[int, Routes, Above, bool, int]) -> ChunkFaults:
    """The faults of a chunk's events, given events that are above some vector that names them; lists at most `listed_max` of a kind.

    Faults that a chunk finds by itself are included only if the question says so (`tells_own`).
    """
    segment, routes, above, tells_own, listed_max = question
    events = events_of(chunk, segment, routes)
    process, found = chunk.process, ChunkFaults(Counter(), {}, [])

    def note(kind: int, rows: Any, named: int, values: Ints) -> None:
        if len(rows):
            found.counts[kind, named] += len(rows)
            known = found.first.setdefault((kind, named), [])
            for row, value in zip(rows[:listed_max].tolist(), values[:listed_max].tolist(), strict=True):
                known.append(Fault(kind, int(chunk.pos[row]), int(chunk.seq[row]), named, value))

    if tells_own:
        note(REPEATED, events.repeated, process, chunk.seq[events.repeated])
        forgets = np.flatnonzero(events.forgets())
        note(FORGOTTEN, events.rows[forgets], process, events.seq[forgets] - 1)
    line, named = np.nonzero(events.changed(process))
    values = events.deps[line, named].astype(np.int64)
    kinds = _kinds(events, line, named, values, routes, above, tells_own)
    kinds[(named == process) & (kinds == UNKNOWN_EVENT)] = HOLE
    kinds[(named == process) & (kinds == BELOW)] = FORGOTTEN
    is_open = (kinds > 0) & (named != process) & ~events.follows[line] & (events.seq[line] > 1)
    for at in np.flatnonzero(is_open).tolist():
        row = events.rows[line[at]]
        found.open.append(
            Fault(int(kinds[at]), int(chunk.pos[row]), int(chunk.seq[row]), int(named[at]), int(values[at]))
        )
    for kind, source in sorted(set(zip(kinds.tolist(), named.tolist(), strict=True))):
        mine = np.flatnonzero((kinds == kind) & (named == source) & ~is_open)
        if kind:
            note(kind, events.rows[line[mine]], source, values[mine])
    return found


def _kinds(
    events: Events, line: Any, named: Any, values: Ints, routes: Routes, above: Above, tells_own: bool
) -> NDArray[np.uint8]:
    """What is wrong with each pair of an event and an event that it names, 0 if nothing."""
    kinds = np.zeros(len(line), np.uint8)
    for source, (seqs, clocks) in above.items():
        pairs = np.flatnonzero((named == source) & np.isin(values, seqs))
        known = clocks[np.searchsorted(seqs, values[pairs])]
        kinds[pairs[(known > events.deps[line[pairs]]).any(axis=1)]] = BELOW
    if tells_own:
        kinds[_targets(routes, named, values) == NOWHERE] = UNKNOWN_EVENT
    return kinds


def vectors(chunk: Chunk, question: tuple[int, Routes, list[int]]) -> dict[int, list[int]]:
    """The vectors of some events, by number."""
    segment, routes, wanted = question
    events = events_of(chunk, segment, routes)
    found = np.isin(events.seq, wanted)
    return dict(zip(events.seq[found].tolist(), events.deps[found].tolist(), strict=True))


def place_of(chunk: Chunk, pos: int) -> str:
    """Where the row at a position comes from: file and line, if the trace has them."""
    return line_of(chunk, pos) or f"position {pos}"


def line_of(chunk: Chunk, pos: int) -> str | None:
    """File and line that the row at a position was imported from."""
    at = int(np.searchsorted(chunk.pos, pos))
    ref: str | None = None if chunk.refs is None else chunk.refs[at].as_py()
    return ref


# ---- what the driver does


def clocks(evidence: Evidence) -> Iterator[Bad]:
    """Faults of clocks are violations; places where file order contradicts the clocks are a warning."""
    unstamped = sum(summary.unstamped_events for summary in evidence.summaries)
    if unstamped:
        evidence.leave_open("clocks", f"{unstamped:,} events have no clock")
    complete = [process.complete for process in evidence.processes]
    routes, late = lay_out(evidence.lines, complete, evidence.source.is_import)
    found = _find_faults(evidence.source, evidence.lines, routes, evidence.listed_max)
    told = _Causes(evidence, routes, found)
    if late:
        shown = [told.place(each.process, each.pos) for each in late[:PLACES_SHOWN]]
        more = ", ..." if len(late) > len(shown) else ""
        places = "1 place" if len(late) == 1 else f"{len(late):,} places"
        warning = f"file order contradicts the clocks in {places}: {', '.join(shown)}{more}"
        evidence.warnings["clocks"] = [warning]
    return told.bad()


FaultTable = dict[tuple[int, int, int], tuple[int, list[Fault]]]
"""Counts and first examples by kind, process and named process."""


def _find_faults(source: Source, lines: Sequence[Line], routes: Routes, listed_max: int) -> FaultTable:
    process_of = {
        link.segment: link.summary.process for line in lines for link in line if len(link.summary.runs)
    }
    questions = [(segment, (segment, routes)) for segment in process_of]
    answers = source.exchange("clocks compared", ask, merge, answer, questions)
    suspects = {segment for segment, wrong in answers if wrong.is_suspect}
    found: FaultTable = {}

    def add(process: int, kind: int, named: int, count: int, faults: list[Fault]) -> None:
        known, examples = found.get((kind, process, named), (0, []))
        ordered = sorted(examples + faults, key=lambda fault: fault.pos)[:listed_max]
        found[kind, process, named] = (known + count, ordered)

    for above in _rounds([wrong for _, wrong in sorted(answers, key=lambda pair: pair[0])], len(lines)):
        asked = process_of if above else suspects
        parts = source.map(
            "events looked at again",
            judge,
            [(segment, (segment, routes, above, segment in suspects, listed_max)) for segment in asked],
        )
        suspects = set()  # the faults that they found by themselves are counted now
        for segment, part in sorted(parts, key=lambda pair: pair[0]):
            process = process_of[segment]
            for (kind, named), count in part.counts.items():
                add(process, kind, named, count, part.first[kind, named])
        for process, fault in _settle(source, routes, process_of, parts):
            add(process, fault.kind, fault.named, 1, [fault])
    return found


def _rounds(wrong: list[WrongEvents], n: int) -> Iterator[Above]:
    """Wrong events, a bounded number at a time; at least one round, possibly without any, for the suspects."""
    room = max(EVENTS_AT_ONCE // n, 1)
    above: dict[int, list[WrongEvents]] = {}
    size = 0
    wrong = [part for part in wrong if len(part.seq)]
    for at, part in enumerate(wrong):
        above.setdefault(part.process, []).append(part)
        size += len(part.seq)
        if size >= room and at + 1 < len(wrong):
            yield _joined(above)
            above, size = {}, 0
    yield _joined(above)


def _joined(above: dict[int, list[WrongEvents]]) -> Above:
    found: Above = {}
    for process, parts in above.items():
        seqs = np.concatenate([part.seq for part in parts])
        order = np.argsort(seqs)
        found[process] = seqs[order], np.concatenate([part.deps for part in parts])[order]
    return found


def _settle(
    source: Source, routes: Routes, process_of: dict[int, int], parts: list[tuple[int, ChunkFaults]]
) -> Iterator[tuple[int, Fault]]:
    """The open faults whose event did not inherit the entry from the event before it."""
    faults = [(process_of[segment], fault) for segment, part in parts for fault in part.open]
    wanted: dict[int, set[int]] = {}
    for process, fault in faults:
        segment = int(routes.find(process, np.array([fault.seq - 1]))[0])
        if segment >= 0:
            wanted.setdefault(segment, set()).add(fault.seq - 1)
    questions = [(segment, (segment, routes, sorted(seqs))) for segment, seqs in wanted.items()]
    before: dict[tuple[int, int], list[int]] = {}
    for segment, known in source.map("events looked at again", vectors, questions) if questions else ():
        before |= {(process_of[segment], seq): vector for seq, vector in known.items()}
    for process, fault in faults:
        vector = before.get((process, fault.seq - 1))
        if vector is None or vector[fault.named] != fault.value:
            yield process, fault


# ---- in words

WORDS = {
    REPEATED: "uses a number again",
    HOLE: "comes after a hole: there is no",
    FORGOTTEN: "knows less than",
    UNKNOWN_EVENT: "names what the log does not have:",
    BELOW: "names, but knows less than,",
}


CYCLES_TRIED, EVENTS_TRIED = 20, 200
"""For how many events that know too little a cycle is searched, and how many events each search visits."""

EventId = tuple[int, int]
"""A process, and its own entry."""


class _Causes:
    """Groups faults by their causes."""

    def __init__(self, evidence: Evidence, routes: Routes, found: FaultTable) -> None:
        self._evidence = evidence
        self._names = evidence.names
        self._routes = routes
        self._found = found
        self._tried = 0
        self._restarts = {p: faults[0] for (kind, p, _), (_, faults) in found.items() if kind == REPEATED}
        self._holes = {p: faults[0] for (kind, p, _), (_, faults) in found.items() if kind == HOLE}
        self._ahead: dict[EventId, Cause] = {}
        for (kind, process, _), (_, faults) in found.items():
            for fault in faults if kind == FORGOTTEN else ():
                self._find_ahead(process, fault)

    def bad(self) -> Iterator[Bad]:
        for (kind, process, named), (count, faults) in sorted(self._found.items()):
            by_cause: dict[tuple[Any, ...], tuple[Cause, list[Fault]]] = {}
            for fault in faults:
                cause = self._cause(kind, process, named, fault, faults[0])
                by_cause.setdefault(cause.key, (cause, []))[1].append(fault)
            rest = count - len(faults)  # faults that are not listed count for the first cause
            for cause, mine in by_cause.values():
                rows = [RowKey(process, fault.pos, process, fault.seq) for fault in mine]
                values = [] if kind == REPEATED else [(named, fault.value) for fault in mine]
                others = dict(zip(rows, values, strict=False))
                yield Bad(
                    "clocks",
                    process,
                    process,
                    WORDS[kind],
                    len(mine) + rest,
                    rows,
                    others=others,
                    cause=cause,
                )
                rest = 0

    def place(self, process: int, pos: int) -> str:
        """Where a row comes from."""
        return place_of(self._evidence.source.read(self._evidence.link_at(process, pos).segment), pos)

    def _cause(self, kind: int, process: int, named: int, fault: Fault, first: Fault) -> Cause:
        again = next((each for each in (named, process) if each in self._restarts), None)
        if again is not None:
            return self._restart(again)
        ahead = self._ahead.get((process, fault.seq)) or self._ahead.get((named, fault.value))
        if kind == FORGOTTEN:
            ahead = self._ahead.get((process, fault.seq - 1))
        if ahead is not None:
            return ahead
        if kind == UNKNOWN_EVENT and named in self._holes:
            return self._told(HOLE, named, named, self._holes[named])
        circle = self._circle(process, fault) if kind == BELOW else []
        return self._cycle(circle) if circle else self._told(kind, process, named, first)

    def _told(self, kind: int, process: int, named: int, fault: Fault) -> Cause:
        where, name, other = self.place(process, fault.pos), self._names[process], self._names[named]
        if kind == HOLE:
            text = f"events of {name} are missing before event {fault.seq} ({where})"
        elif kind == FORGOTTEN:
            text = f"the clock of {name} goes back at event {fault.seq} ({where})"
        elif kind == UNKNOWN_EVENT:
            text = f"{name} names events of {other} that are not in the log, first {fault.value} ({where})"
        else:
            text = f"{name} names events of {other} and lacks what they know, first {fault.value} ({where})"
        return Cause(("clocks", kind, process, named), text, RowKey(process, fault.pos, process, fault.seq))

    # ---- numbers that are used again

    def _restart(self, process: int) -> Cause:
        fault, name = self._restarts[process], self._names[process]
        where = self.place(process, fault.pos)
        text = f"{name} counts again from event {fault.seq} ({where})"
        if self._is_mixed(process, fault):
            text = f"two processes seem to be called {name}: numbers of both come from event {fault.seq} on ({where})"
        return Cause(("clocks", "restart", process), text, RowKey(process, fault.pos, process, fault.seq))

    def _is_mixed(self, process: int, fault: Fault) -> bool:
        """Whether numbers go back once more, but not as far. The numbers of a process that counts again only rise from there."""
        highest = 0
        for link in self._evidence.lines[process]:
            for low, count, pos in link.summary.runs.tolist():
                if pos > fault.pos and fault.seq < low <= highest:
                    return True
                highest = low + count - 1
        return False

    # ---- clocks that count too much

    def _find_ahead(self, process: int, fault: Fault) -> None:
        """Look for the cause of a clock that goes back at an event: if the event before counts more than both its neighbours, and
        the event after these does not have its counts either, that one event is wrong."""
        event = (process, fault.seq - 1)
        found = [self._vector((process, fault.seq + step)) for step in (-2, -1, 0, 1)]
        earlier, mine, following, later = found
        if mine is None or following is None:
            return
        high = [at for at, count in enumerate(mine) if count > following[at]]
        is_kept = later is not None and all(later[at] >= mine[at] for at in high)
        is_new = earlier is None or all(earlier[at] <= following[at] for at in high)
        if high and is_new and not is_kept:
            pos = self._pos(event)
            counted = f"{mine[high[0]]} events of {self._names[high[0]]}"
            text = (
                f"event {event[1]} of {self._names[process]} counts {counted}, more than the events before and after it "
                f"({self.place(process, pos)})"
            )
            self._ahead[event] = Cause(("clocks", "ahead", *event), text, RowKey(process, pos, *event))

    # ---- cycles

    def _circle(self, process: int, fault: Fault) -> list[EventId]:
        """Events that each name the next one, from this one back to it; none if there is no such cycle."""
        self._tried += 1
        if self._tried > CYCLES_TRIED:
            return []
        start = (fault.named, fault.value)
        came_from: dict[EventId, EventId | None] = {start: None}
        highest = {fault.named: fault.value}
        waiting = [start]
        for _ in range(EVENTS_TRIED):
            if not waiting:
                break
            event = waiting.pop(0)
            vector = self._vector(event)
            if vector is None:
                continue
            if vector[process] >= fault.seq:
                return [(process, fault.seq), *_way(event, came_from)]
            for other, count in enumerate(vector):
                if other != event[0] and count > highest.get(other, 0):
                    highest[other] = count
                    came_from[other, count] = event
                    waiting.append((other, count))
        return []

    def _cycle(self, events: list[EventId]) -> Cause:
        at = events.index(min(events))
        events = events[at:] + events[:at]
        told = [
            f"event {seq} of {self._names[process]} ({self.place(process, self._pos((process, seq)))})"
            for process, seq in events[:PLACES_SHOWN]
        ]
        more = f" and {len(events) - PLACES_SHOWN} more" if len(events) > PLACES_SHOWN else ""
        text = f"a cycle: each of these events names the next as its past, and the last the first: {', '.join(told)}{more}"
        row = RowKey(events[0][0], self._pos(events[0]), *events[0])
        return Cause(("clocks", "cycle", frozenset(events)), text, row)

    # ---- single events

    def _row(self, event: EventId) -> tuple[Chunk, int] | None:
        process, seq = event
        segment = int(self._routes.find(process, np.array([seq]))[0])
        if segment < 0 or seq < 1:
            return None
        chunk = self._evidence.source.read(segment)
        rows = np.flatnonzero(((chunk.kind & EVENT) != 0) & chunk.stamped & (chunk.seq == seq))
        return (chunk, int(rows[0])) if len(rows) else None

    def _vector(self, event: EventId) -> list[int] | None:
        found = self._row(event)
        return None if found is None else found[0].deps[found[1]].tolist()

    def _pos(self, event: EventId) -> int:
        found = self._row(event)
        assert found is not None, "its clock was read before"
        return int(found[0].pos[found[1]])


def _way(event: EventId, came_from: dict[EventId, EventId | None]) -> list[EventId]:
    """The path from the first event of a search to this one."""
    way: list[EventId] = []
    at: EventId | None = event
    while at is not None:
        way.append(at)
        at = came_from[at]
    return way[::-1]
