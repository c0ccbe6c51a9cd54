"""Vectors for a trace that has none, slice by slice.

A vector depends on all earlier events, so computing vectors event by event cannot be done in parallel. So the trace is
divided into slices by *cuts*: a cut is a position at each process such that nothing is received before it that was sent
after it.

    place    cuts at the same time at all processes; an inconsistent cut is moved back until it is consistent
    symbols  all slices in parallel: what an event has seen of the slice, and which earlier pasts it includes: the past with
             which a process enters the slice, and the messages from earlier slices that a process has received so far
    driver   slice after slice, symbols are replaced by vectors, but only for the events at the edges: the last one of
             each process, and messages that are received in a later slice
    vectors  all slices in parallel again, each with its initial vectors

`walk` does both passes over rows: symbols are vectors too, of twice the width. For each process, one entry says how many of
its receipts from outside are included (1: only the past it entered with), and another how many of its messages.

One vector is kept for each message, however many rows carry it: memory grows with the messages sent and not with the number
of receivers. Vectors are copied row by row when rows are written, process by process.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import DELIVER, Bools, Chunk, Ints, arrow_mask, numbers_in, one_array
from inga.certify.chunk import RECEIPT as RECEIVED
from inga.certify.chunk import SEND as SENT
from inga.model.errors import TraceError

SEND, RECEIPT, COPY = 1, 2, 3
"""What a row is: a send, a receipt that makes a message a cause, another row that carries a message's vector."""

COUNTS_MAX = 1 << 24  # entries of vectors that a slice may take, about; eight bytes each
ROW_COUNTS = 6  # what a row takes besides vectors, in entries of vectors


@dataclass(frozen=True, slots=True)
class Steps:
    """The rows that matter among some positions of one process."""

    process: int
    first: int
    events: int
    pos: Ints
    kind: NDArray[np.int8]
    src: NDArray[np.int32]
    seq: Ints

    def between(self, after: int, upto: int) -> "Steps":
        """The rows after one position, up to another. They are copied, so that the other rows can be freed."""
        low, high = np.searchsorted(self.pos, [after + 1, upto + 1])
        part = slice(int(low), int(high))
        first, last = max(self.first, after + 1), min(self.first + self.events - 1, upto)
        return Steps(
            self.process, first, max(last - first + 1, 0), self.pos[part].copy(), self.kind[part].copy(),
            self.src[part].copy(), self.seq[part].copy(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outline:
    """What is kept of a segment to place cuts."""

    process: int
    first: int
    events: int
    since: int  # time of its first row
    until: int  # latest time of its rows
    sent: int  # the highest number sent, 0 if none
    received: Ints  # the highest number received of each process
    receipts: int  # rows that make a message a cause
    sent_low: int  # the lowest number sent, 0 if none
    sends: int  # rows
    sent_first: int  # the position of the first of them, 0 if there is none

    @property
    def last(self) -> int:
        return self.first + self.events - 1


@dataclass(frozen=True, slots=True)
class Cuts:
    """`upto[k, p]`: the last position of process p in slice k; `sent[k, p]`: its highest number by then."""

    upto: Ints
    sent: Ints


MESSAGE_COLUMNS = ("pos", "step", "src", "seq")
"""What `steps_in` needs of a trace."""


def steps_in(table: Any, process: int, receipt: str) -> Steps:
    """The rows of a segment that was validated before, when it was read as a chunk."""
    steps = one_array(table.column("step"))
    kinds = {"deliver": COPY, receipt: RECEIPT, "send": SEND}
    codes = steps.indices.to_numpy(zero_copy_only=False)
    kind = np.array([kinds.get(name, 0) for name in steps.dictionary.to_pylist()] or [0], np.int8)[codes]
    events = table.num_rows
    first = table.column("pos")[0].as_py() if events else 0
    if not kind.all():
        table, kind = table.filter(arrow_mask(kind != 0)), kind[kind != 0]
    return Steps(
        process, first, events, numbers_in(table, "pos", np.int64), kind, numbers_in(table, "src", np.int32),
        numbers_in(table, "seq", np.int64),
    )  # fmt: skip


def steps_of(chunk: Chunk) -> Steps:
    """The rows of a chunk; its reader was told which step is a receipt."""
    kind = np.select(
        [(chunk.kind & SENT) != 0, (chunk.kind & RECEIVED) != 0, (chunk.kind & DELIVER) != 0],
        [SEND, RECEIPT, COPY],
        0,
    ).astype(np.int8)
    rows = np.flatnonzero(kind)
    return Steps(
        chunk.process, chunk.first, chunk.events, chunk.pos[rows], kind[rows], chunk.src[rows],
        chunk.seq[rows],
    )  # fmt: skip


# ---- asked of segments


class Unstampable(TraceError):
    """A row that makes vectors impossible. Kernels know only indices of processes; `tell` describes the row with their names."""

    def __init__(self, process: int, pos: int, src: int, seq: int, what: str) -> None:
        # No text for the base class: unpickling an exception calls its class with the arguments that the base class got.
        super().__init__(process, pos, src, seq, what)
        self.process, self.pos, self.src, self.seq, self.what = process, pos, src, seq, what

    def tell(self, names: Sequence[str], place: str = "") -> str:
        """The error in one sentence; `place` is the file that has the row, or the line of the log that it comes from."""
        where = f"at position {self.pos:,}" + (f" ({place})" if place else "")
        return f"{names[self.process]} has message {self.seq} of {names[self.src]} {where}, {self.what}."

    def __str__(self) -> str:
        return self.tell([f"process {at}" for at in range(max(self.process, self.src) + 1)])


UNSENT = "but no row says that it was sent: what precedes it is not known"
CIRCLE = "before it can have been sent: the trace goes round in a circle"
AGAIN = "which counts its messages again from an earlier number, so that vectors cannot tell them apart"


def outline(steps: Steps, times: Ints, n: int) -> Outline:
    rows = np.flatnonzero(steps.kind == SEND)
    sends = steps.seq[rows]
    if (again := np.diff(sends) <= 0).any():
        at = rows[int(np.argmax(again)) + 1]
        raise Unstampable(steps.process, int(steps.pos[at]), steps.process, int(steps.seq[at]), AGAIN)
    received = np.zeros(n, np.int64)
    got = steps.kind != SEND
    np.maximum.at(received, steps.src[got], steps.seq[got])
    since, until = (int(times[0]), int(times.max())) if len(times) else (0, 0)
    sent_low, sent = (int(sends[0]), int(sends[-1])) if len(sends) else (0, 0)
    receipts = int((steps.kind == RECEIPT).sum())
    sent_first = int(steps.pos[rows[0]]) if len(sends) else 0
    return Outline(
        steps.process, steps.first, steps.events, since, until, sent, received, receipts, sent_low, len(sends),
        sent_first,
    )  # fmt: skip


def place(steps: Steps, times: Ints, moments: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """For cuts, given as (cut, time): the last position up to that time, and the highest number sent by then."""
    running = np.maximum.accumulate(times)
    found = []
    for cut, time in moments:
        count = int(np.searchsorted(running, time, side="right"))
        found.append((cut, steps.first + count - 1, _sent_by(steps, steps.first + count - 1)))
    return found


def retreat(steps: Steps, cuts: Sequence[tuple[int, int, Ints]]) -> list[tuple[int, int, int]]:
    """For cuts, given as (cut, position, numbers sent before it): the position before the first receipt of a message sent after
    the cut, and the highest number sent up to there. Cuts before which there is no such receipt are omitted."""
    found = []
    for cut, upto, sent in cuts:
        late = (steps.kind != SEND) & (steps.pos <= upto) & (steps.seq > sent[steps.src])
        if late.any():
            pos = int(steps.pos[int(np.argmax(late))]) - 1
            found.append((cut, pos, _sent_by(steps, pos)))
    return found


def _sent_by(steps: Steps, pos: int) -> int:
    return int(steps.seq[(steps.kind == SEND) & (steps.pos <= pos)].max(initial=0))


def crossings(steps: Steps, cuts: Cuts) -> tuple[Ints, Ints]:
    """Senders and numbers of messages that arrive here in a later slice than they were sent in."""
    got = steps.kind != SEND
    unsent = got & (steps.seq > cuts.sent[-1][steps.src])
    if unsent.any():
        at = int(np.argmax(unsent))
        raise Unstampable(steps.process, int(steps.pos[at]), int(steps.src[at]), int(steps.seq[at]), UNSENT)
    found = [np.zeros((0, 2), np.int64)]
    bounds = np.searchsorted(steps.pos, cuts.upto[:, steps.process], side="right").tolist()
    for before, (low, high) in zip(cuts.sent, pairwise(bounds), strict=False):
        src, seq = steps.src[low:high], steps.seq[low:high]
        early = np.flatnonzero(got[low:high] & (seq <= before[src]))
        found.append(np.stack([src[early], seq[early]], axis=1))
    pairs = np.unique(np.concatenate(found), axis=0)
    return pairs[:, 0], pairs[:, 1]


# ---- cuts


class SlicePlan:
    """Where to cut: into as many slices as keep each small, at the same time at all processes, moved back where necessary."""

    def __init__(self, outlines: Sequence[tuple[int, Outline]], n: int, counts_max: int = COUNTS_MAX) -> None:
        self._outlines = dict(outlines)
        self._n = n
        highest = [0] * n
        for each in sorted(self._outlines.values(), key=lambda each: (each.process, each.first)):
            if each.sent and each.sent_low <= highest[each.process]:
                raise Unstampable(each.process, each.sent_first, each.process, each.sent_low, AGAIN)
            highest[each.process] = max(highest[each.process], each.sent)
        ordered = sorted(self._outlines.values(), key=lambda each: each.until)
        rows = np.cumsum([each.events for each in ordered]) if ordered else np.zeros(1, np.int64)
        slices = max(-(-self._counts(n) // counts_max), 1)
        shares = [int(rows[-1]) * cut // slices for cut in range(1, slices)]
        moments = {ordered[int(np.searchsorted(rows, share))].until for share in shares}
        if slices > 1 and len(moments) < slices - 1 and ordered:
            # Too few segments to take times from: equal spans will do.
            low, high = min(each.since for each in ordered), ordered[-1].until
            moments = {low + (high - low) * cut // slices for cut in range(1, slices)}
        self.moments = sorted(moments)
        self.upto = np.zeros((len(self.moments), n), np.int64)
        self.sent = np.zeros((len(self.moments), n), np.int64)
        self.moved = 0  # how often cuts were moved back, for people and tests

    def _counts(self, n: int) -> int:
        """Entries of vectors for the whole trace: a line of symbols for each message, or for each row of the longest process."""
        longest = np.zeros(n, np.int64)
        for each in self._outlines.values():
            longest[each.process] += each.events
        sends = sum(each.sends for each in self._outlines.values())
        return max(2 * n * sends + ROW_COUNTS * int(longest.sum()), 2 * n * int(longest.max(initial=0)))

    def to_place(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """Questions for `place`: only the segment in which a cut falls need be read."""
        asked = []
        for segment, each in self._outlines.items():
            inside = []
            for cut, time in enumerate(self.moments):
                if each.until <= time:
                    self._advance(cut, each.process, each.last, each.sent)
                elif each.since <= time:
                    inside.append((cut, time))
            if inside:
                asked.append((segment, inside))
        return asked

    def placed(self, process: int, found: Sequence[tuple[int, int, int]]) -> None:
        for cut, upto, sent in found:
            self._advance(cut, process, upto, sent)

    def _advance(self, cut: int, process: int, upto: int, sent: int) -> None:
        self.upto[cut, process] = max(self.upto[cut, process], upto)
        self.sent[cut, process] = max(self.sent[cut, process], sent)

    def to_verify(self) -> list[tuple[int, list[tuple[int, int, Ints]]]]:
        """Questions for `retreat`: the segments that may have receipts, before a cut, of messages sent after it."""
        asked = []
        for segment, each in self._outlines.items():
            suspect = [
                (cut, int(self.upto[cut, each.process]), self.sent[cut].copy())
                for cut in range(len(self.moments))
                if each.first <= self.upto[cut, each.process] and (each.received > self.sent[cut]).any()
            ]
            if suspect:
                asked.append((segment, suspect))
        return asked

    def retreated(self, process: int, found: Sequence[tuple[int, int, int]]) -> bool:
        """Move cuts back; return whether any was moved. Cuts only go back, so this ends."""
        moved = False
        for cut, upto, _ in found:
            if upto < self.upto[cut, process]:
                self.upto[cut, process] = upto
                before = [
                    each.sent
                    for each in self._outlines.values()
                    if each.process == process and each.last <= upto
                ]
                self.sent[cut, process] = max([0, *before])
                moved = True
        for cut, upto, sent in found:
            if upto == self.upto[cut, process]:
                self.sent[cut, process] = max(self.sent[cut, process], sent)
        self.moved += moved
        return moved

    def cuts(self) -> Cuts:
        """All cuts, and the end of the trace as the last."""
        end, sent = np.zeros(self._n, np.int64), np.zeros(self._n, np.int64)
        for each in self._outlines.values():
            end[each.process] = max(end[each.process], each.last)
            sent[each.process] = max(sent[each.process], each.sent)
        upto, numbers = np.vstack([self.upto, end]), np.vstack([self.sent, sent])
        return Cuts(np.maximum.accumulate(upto, axis=0), np.maximum.accumulate(numbers, axis=0))


# ---- one slice


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of all processes in a slice, one process after the other, and which message each is about."""

    begins: Ints  # by process: its first row; one more entry with the number of rows
    pos: Ints
    kind: NDArray[np.int8]
    src: NDArray[np.int32]
    seq: Ints
    line: NDArray[
        np.int32
    ]  # which line of the messages' vectors: those sent here come first, those from outside follow
    sends: int  # messages that are sent here
    stranger_src: NDArray[np.int32]  # the messages from outside
    stranger_seq: Ints

    @classmethod
    def of(cls, given: Iterable[Steps], n: int) -> "Slice":
        """Join the rows of all processes. There are millions, so each column of the parts is freed once it is joined."""
        parts = sorted(given, key=lambda part: (part.process, part.first))
        sizes = np.zeros(n, np.int64)
        for part in parts:
            sizes[part.process] += len(part.pos)
        begins = np.concatenate([[0], np.cumsum(sizes)])
        columns = {name: [getattr(part, name) for part in parts] for name in ("pos", "kind", "src", "seq")}
        parts.clear()

        def column(name: str, kind: Any) -> Any:
            return np.concatenate([np.empty(0, kind), *columns.pop(name)])

        pos, kind = column("pos", np.int64), column("kind", np.int8)
        src, seq = column("src", np.int32), column("seq", np.int64)
        line, sends = _sent_lines(begins, kind, src, seq)
        outside = np.flatnonzero(line < 0)
        strangers, which = np.unique(seq[outside] * n + src[outside], return_inverse=True)
        line[outside] = sends + which
        return cls(begins, pos, kind, src, seq, line, sends, (strangers % n).astype(np.int32), strangers // n)

    @property
    def n(self) -> int:
        return len(self.begins) - 1

    def strangers(self) -> Ints:
        """The rows about a message from outside."""
        return np.flatnonzero(self.line >= self.sends)


def _sent_lines(begins: Ints, kind: Any, src: Any, seq: Ints) -> tuple[NDArray[np.int32], int]:
    """The line of each row's message, -1 if it is not sent in this slice; and how many messages are."""
    n = len(begins) - 1
    numbers = [seq[low:high][kind[low:high] == SEND] for low, high in pairwise(begins.tolist())]
    counts = np.array([len(each) for each in numbers])
    before = np.cumsum(counts) - counts  # lines of the processes before
    lines = np.empty(len(seq), np.int32)
    if all((np.diff(each) == 1).all() for each in numbers):
        # No process skipped a number, the usual case: lines follow from numbers, without a search.
        lowest = np.array([each[0] if len(each) else 0 for each in numbers])
        for low, high in pairwise(begins.tolist()):
            sources = src[low:high]
            at = seq[low:high] - lowest[sources]
            is_here = (at >= 0) & (at < counts[sources])
            lines[low:high] = np.where(is_here, at + before[sources], -1)
    else:
        sent = np.concatenate(numbers) * n + np.repeat(np.arange(n), counts)
        order = np.argsort(sent)
        key = seq * n + src
        at = np.minimum(np.searchsorted(sent, key, sorter=order), len(sent) - 1)
        lines[:] = np.where(sent[order[at]] == key, order[at], -1)
    return lines, int(counts.sum())


def vectors(part: Slice, start: Ints, outside: Ints) -> tuple[NDArray[np.int32], Ints]:
    """The vector of each message, by `Slice.line`, and what each process knows at the end.

    `start[p]` is what p knew before the slice, `outside` the vectors of messages from outside.
    """
    lines = np.zeros((part.sends + len(outside), part.n), np.int32)
    lines[part.sends :] = outside
    return lines, _walked(part, start, lines, np.zeros(len(part.kind), np.int64), np.arange(part.n))


@dataclass(frozen=True, slots=True)
class Symbols:
    """What the events of a slice include of what the slice begins with."""

    strangers: list[
        tuple[NDArray[np.int32], Ints, Bools]
    ]  # by process, rows about messages from outside: senders, numbers, and which rows are receipts
    ends: Ints  # by process: the symbols of all that it knows at the end
    crossing: dict[tuple[int, int], NDArray[np.int32]]  # of messages that later slices receive
    outside_src: NDArray[np.int32]  # of messages from outside, each once
    outside_seq: Ints


def symbols(part: Slice, wanted: set[tuple[int, int]]) -> Symbols:
    """The first pass over a slice; `wanted` are the messages that later slices receive."""
    n, strangers = part.n, part.strangers()
    start = np.zeros((n, 2 * n), np.int64)
    start[np.arange(n), np.arange(n)] = 1
    places = np.zeros(len(part.kind), np.int64)
    by_process = []
    for process in range(n):
        low, high = np.searchsorted(strangers, part.begins[process : process + 2])
        rows = strangers[low:high]
        places[rows] = np.arange(2, len(rows) + 2)
        by_process.append((part.src[rows], part.seq[rows], part.kind[rows] == RECEIPT))
    lines = np.zeros((part.sends, 2 * n), np.int32)
    ends = _walked(part, start, lines, places, np.arange(n, 2 * n))
    sends = np.flatnonzero(part.kind == SEND)
    keys = np.array([seq * n + src for src, seq in wanted], np.int64)
    sends = sends[np.isin(part.seq[sends] * n + part.src[sends], keys)]
    messages = zip(part.src[sends].tolist(), part.seq[sends].tolist(), strict=True)
    crossing = dict(zip(messages, lines[part.line[sends]], strict=True))
    return Symbols(by_process, ends, crossing, part.stranger_src, part.stranger_seq)


def _walked(part: Slice, start: Ints, lines: NDArray[np.int32], places: Ints, own: Ints) -> Ints:
    """Fill in the lines of messages that are sent in the slice; return what each process knows at the end."""
    clocks = start.copy()
    ready = np.arange(part.sends + len(part.stranger_seq)) >= part.sends
    done = _walker()(part.begins, part.kind, part.src, part.seq, part.line, ready, places, own, clocks, lines)
    stuck = np.flatnonzero(done < part.begins[1:])
    if len(stuck):
        row = int(done[stuck[0]])
        raise Unstampable(int(stuck[0]), int(part.pos[row]), int(part.src[row]), int(part.seq[row]), CIRCLE)
    return clocks


def walk(begins, kind, src, seq, line, ready, places, own, clocks, lines):  # type: ignore[no-untyped-def]
    """Go through the rows of a slice, at each process as far as possible; return how far each process came.

    A row about a message waits until the line of that message is ready: the row of its send fills it in. A row with a place is
    about a message from outside, of which the first pass records only how many of those the process has received.
    """
    n, width = len(begins) - 1, clocks.shape[1]
    at = begins[:-1].copy()
    moved = True
    while moved:
        moved = False
        for process in range(n):
            row = at[process]
            while row < begins[process + 1]:
                which = line[row]
                if kind[row] == 1:  # SEND
                    for entry in range(width):
                        lines[which, entry] = clocks[process, entry]
                    clocks[process, own[process]] = seq[row]
                    ready[which] = True
                elif not ready[which]:
                    break
                elif kind[row] == 2:  # RECEIPT
                    if places[row]:
                        clocks[process, process] = places[row]
                    else:
                        for entry in range(width):
                            clocks[process, entry] = max(clocks[process, entry], lines[which, entry])
                        sender = own[src[row]]
                        clocks[process, sender] = max(clocks[process, sender], seq[row])
                row += 1
                moved = True
            at[process] = row
    return at


@cache
def _walker() -> Any:
    """Compiled if numba is there: a plain loop otherwise."""
    try:
        import numba
    except ImportError:
        return walk
    try:
        return numba.njit(cache=True, nogil=True)(walk)
    except RuntimeError:  # there is no place for a cache, as when the package is a zip file
        return numba.njit(nogil=True)(walk)


# ---- from slice to slice


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a slice begins with."""

    start: Ints
    outside: Ints  # the vectors of its messages from outside


class SliceEdges:
    """Computes the vectors at the edges of slices: the only step that takes one slice after the other."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._start = np.zeros((n, n), np.int64)
        self._messages: dict[tuple[int, int], Ints] = {}

    def add(self, found: Symbols) -> Beginning:
        """Add the next slice in order; return what it begins with."""
        n = self._n
        names = list(zip(found.outside_src.tolist(), found.outside_seq.tolist(), strict=True))
        lines = np.array([self._messages[name] for name in names], np.int64).reshape(len(names), n)
        begin = Beginning(self._start, lines)
        joined = lines.copy()
        here = np.arange(len(names)), found.outside_src
        joined[here] = np.maximum(joined[here], found.outside_seq)
        symbols = np.vstack([found.ends, *found.crossing.values()])
        exact = symbols[:, n:].copy()
        key = found.outside_seq * n + found.outside_src
        for process, (src, seq, received) in enumerate(found.strangers):
            # The past of what a process received from outside, up to each place that some symbol names.
            upto = np.unique(symbols[:, process])
            past, begun = self._start[process], 0
            for place in upto[upto > 0].tolist():
                new = np.flatnonzero(received[begun : place - 1]) + begun
                if len(new):
                    which = np.searchsorted(key, seq[new] * n + src[new])
                    past = np.maximum(past, joined[which].max(axis=0))
                begun = place - 1
                who = symbols[:, process] == place
                exact[who] = np.maximum(exact[who], past)
        self._start = exact[:n]
        self._messages |= dict(zip(found.crossing, exact[n:], strict=True))
        return begin
