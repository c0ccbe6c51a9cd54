"""One pass over a chunk: order inside it, a summary of it, fingerprints of what was sent and delivered.

Three questions are answered row by row, each from a running maximum along the process:

    causal   was something that this message precedes delivered before it?
    fifo     was a later message of the same sender delivered before it?
    stamps   is the vector of this send the join of all that the process had sent and received?

A running maximum over a process is the maximum of its chunks' maxima, so chunks can be scanned in any
order and in parallel. What a chunk needs to know of those before it is a `Carry`; without one, a scan finds what
is wrong inside the chunk, and its summary tells `combine` whether a second look with the carry is needed.

For stamps without a carry, the chunk's first send cannot be judged, so it is only described. All later ones
can: own sends are part of the join, and the first send, if it is right, contains all that came before.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from inga.certify.chunk import (
    ACCEPT,
    CONFIRM,
    DELIVER,
    EVENT,
    EVERYBODY,
    NEVER_YET,
    RECEIPT,
    REQUEST,
    SEND,
    START,
    Bools,
    Chunk,
    InstalledView,
    Ints,
)
from inga.certify.fingerprint import Keys, Words, hashes

NEVER = np.iinfo(np.int64).max
"""The lowest number where there is no message."""

BLOCK_ROWS = 4096  # rows in a block of running maxima, at most: as many as fit the processor's cache,
BLOCK_COUNTS = 1 << 22  # and entries of vectors in it, if these are wide
COMPILED_COUNTS_MIN = 1 << 18  # entries of vectors in a chunk from which loading numba pays


@dataclass(frozen=True, slots=True)
class Carry:
    """What the rows before a chunk pass on to it, by process."""

    required: Ints  # the highest number that anything delivered depends on
    delivered: Ints  # the highest number delivered
    known: Ints  # the join of what was sent and received

    @classmethod
    def none(cls, n: int) -> "Carry":
        return cls(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64))

    def after(self, summary: "Summary") -> "Carry":
        return Carry(
            np.maximum(self.required, summary.required),
            np.maximum(self.delivered, summary.delivered_high),
            np.maximum(self.known, summary.known),
        )


@dataclass(slots=True)
class Tally:
    """Counts and sums of hashes of one view: what was delivered here, and what was sent from here."""

    delivered: Ints  # by source; the own entry counts echoes
    delivered_sum: Words
    addressed: Ints  # sends to a set, by destination
    addressed_sum: Words
    accepted: Ints  # by source
    accepted_sum: Words
    everybody: int = 0  # sends to all others
    everybody_sum: int = 0
    sent: int = 0  # all sends
    sent_sum: int = 0

    @classmethod
    def empty(cls, n: int) -> "Tally":
        def zeros(kind: Any) -> Any:
            return np.zeros(n, kind)

        return cls(*(zeros(kind) for _ in range(3) for kind in (np.int64, np.uint64)))

    def add(self, other: "Tally") -> None:
        self.delivered += other.delivered
        self.delivered_sum += other.delivered_sum
        self.addressed += other.addressed
        self.addressed_sum += other.addressed_sum
        self.accepted += other.accepted
        self.accepted_sum += other.accepted_sum
        self.everybody += other.everybody
        self.everybody_sum = (self.everybody_sum + other.everybody_sum) % 2**64
        self.sent += other.sent
        self.sent_sum = (self.sent_sum + other.sent_sum) % 2**64


@dataclass(slots=True)
class Summary:
    """All that is kept of a chunk: a few vectors, however many rows it has."""

    process: int
    first: int
    events: int
    sends: int
    deliveries: int
    payloads: int
    width: int
    left: bool
    settled: bool
    crashed: bool
    flushed: int
    unstamped_deliveries: int  # rows without deps
    unstamped_known: int  # the same among sends and receipts
    required: Ints
    delivered_low: Ints  # NEVER where nothing was delivered
    delivered_high: Ints
    known: Ints
    received_high: Ints
    sent_low: int
    sent_high: int
    repeats: bool  # the number of some send is not above the one before
    first_send: int  # its position, 0 if there is none
    first_seq: int
    first_deps: Ints
    first_known: Ints  # what the process had learnt in this chunk before it
    late_causal: int
    late_fifo: int
    wrong_stamps: int
    confirms: int = 0  # rows that say that all destinations have a message
    chatter: int = 0  # rows of control traffic, if times were read
    chatter_last: int = NEVER_YET  # their last time
    progress_last: int = NEVER_YET  # the last time a message made progress
    time_low: int = NEVER  # the earliest and the latest time of a row, if times were read
    time_high: int = NEVER_YET
    times_back: int = 0  # rows with an earlier time than one before them, in this chunk
    runs: Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))  # of imported events: `runs_of`
    unstamped_events: int = 0  # imported ones without a clock
    views: tuple[InstalledView, ...] = ()  # the view rows
    starts: int = 0  # requests that an object began with, if methods were read
    started_high: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # by source
    requested_low: int = NEVER  # of the requests that were made here
    requested_high: int = 0
    echoed_ahead: int = 0  # the highest own number that was delivered here before this chunk has sent it
    labels: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))  # `labels_of`
    tallies: dict[int, Tally] = field(default_factory=dict)  # by view
    segments: int = 1  # more if this is a fold: `inga.certify.fold`
    settled_high: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # of a fold: `fold.forgotten`

    @property
    def last(self) -> int:
        return self.first + self.events - 1


@dataclass(frozen=True, slots=True)
class Flags:
    """Which rows of a chunk break which property."""

    late_causal: Bools
    late_fifo: Bools
    wrong_stamp: Bools


def scan(chunk: Chunk, keys: Keys, carry: Carry | None = None) -> tuple[Summary, Flags]:
    """Look at every row once. Without a carry, rows before the chunk count as none."""
    if chunk.deps.size >= COMPILED_COUNTS_MIN and (compiled := _compiled()) is not None:
        return compiled.scan(chunk, keys, carry)  # type: ignore[no-any-return]
    return scan_numpy(chunk, keys, carry)


@cache
def _compiled() -> Any:
    try:
        from inga.certify import compiled
    except ImportError:  # numba is optional
        return None
    return compiled


def scan_numpy(chunk: Chunk, keys: Keys, carry: Carry | None = None) -> tuple[Summary, Flags]:
    """`scan` with numpy alone."""
    start = carry or Carry.none(chunk.n)
    summary = describe(chunk)
    flags = Flags(*(np.zeros(len(chunk), np.bool_) for _ in range(3)))
    _scan_deliveries(chunk, start, summary, flags)
    _scan_known(chunk, start, summary, flags, judge_first=carry is not None)
    tally(chunk, hashes(chunk, keys), summary)
    count(summary, flags)
    return summary, flags


# ---- parts that the compiled scan shares


def describe(chunk: Chunk) -> Summary:
    """A summary with everything that needs no running maximum."""
    n = chunk.n
    sends, deliveries = (chunk.kind & SEND) != 0, (chunk.kind & DELIVER) != 0
    known = chunk.is_known()
    numbers = chunk.seq[sends]

    def zeros() -> Ints:
        return np.zeros(n, np.int64)

    clocked = chunk.clocked
    starts, started_high = (chunk.kind & START) != 0, zeros()
    np.maximum.at(started_high, chunk.src[starts], chunk.seq[starts])
    requested = chunk.seq[((chunk.kind & REQUEST) != 0) & (chunk.src == chunk.process)]
    return Summary(
        process=chunk.process,
        first=chunk.first,
        events=chunk.events,
        sends=len(numbers),
        deliveries=int(deliveries.sum()),
        payloads=chunk.payloads,
        width=chunk.width,
        left=chunk.left,
        settled=chunk.settled,
        crashed=chunk.crashed,
        flushed=chunk.flushed,
        unstamped_deliveries=int((deliveries & ~chunk.stamped).sum()),
        unstamped_known=int((known & ~chunk.stamped).sum()),
        required=zeros(),
        delivered_low=np.full(n, NEVER),
        delivered_high=zeros(),
        known=zeros(),
        received_high=zeros(),
        sent_low=int(numbers.min(initial=NEVER)),
        sent_high=int(numbers.max(initial=0)),
        repeats=bool((numbers[1:] <= numbers[:-1]).any()),
        first_send=0,
        first_seq=0,
        first_deps=zeros(),
        first_known=zeros(),
        late_causal=0,
        late_fifo=0,
        wrong_stamps=0,
        confirms=int(((chunk.kind & CONFIRM) != 0).sum()),
        chatter=0 if clocked is None else len(clocked.time),
        chatter_last=NEVER_YET if clocked is None else clocked.last,
        progress_last=NEVER_YET if clocked is None else clocked.progress,
        time_low=NEVER if clocked is None else int(clocked.times.min(initial=NEVER)),
        time_high=NEVER_YET if clocked is None else int(clocked.times.max(initial=NEVER_YET)),
        times_back=0 if clocked is None else int(clocked.is_back().sum()),
        runs=runs_of(chunk),
        unstamped_events=int((((chunk.kind & EVENT) != 0) & ~chunk.stamped).sum()),
        views=chunk.views,
        starts=int(starts.sum()),
        started_high=started_high,
        requested_low=int(requested.min(initial=NEVER)),
        requested_high=int(requested.max(initial=0)),
        echoed_ahead=_echoed_ahead(chunk, sends, deliveries),
        labels=labels_of(chunk, sends | deliveries),
    )


def _echoed_ahead(chunk: Chunk, sends: Bools, deliveries: Bools) -> int:
    echoes = np.flatnonzero(deliveries & (chunk.src == chunk.process))
    if not len(echoes):
        return 0
    sent = np.maximum.accumulate(np.where(sends, chunk.seq, 0))[echoes]
    numbers = chunk.seq[echoes]
    return int(numbers[numbers > sent].max(initial=0))


def labels_of(chunk: Chunk, rows: Bools) -> Ints:
    """The lowest and the highest view that rows belong to: of the rows before the first view that the process installed in this
    chunk, and of those after each view."""
    if not chunk.views and (view := _one_view(chunk)) is not None and rows.any():
        return np.array([[view, view]])
    labels, pos = chunk.view[rows].astype(np.int64), chunk.pos[rows]
    ends = [*np.searchsorted(pos, [view.pos for view in chunk.views]).tolist(), len(pos)]
    parts = [labels[low:high] for low, high in zip([0, *ends], ends, strict=False)]
    return np.array([(part.min(initial=NEVER), part.max(initial=NEVER_YET)) for part in parts])


def _one_view(chunk: Chunk) -> int | None:
    """The view that all rows belong to, as in most chunks."""
    if not len(chunk.view):
        return None
    view = int(chunk.view[0])
    return view if (chunk.view == view).all() else None


def runs_of(chunk: Chunk) -> Ints:
    """The own values of a chunk's imported events as ranges: first value, how many, position of the first."""
    rows = np.flatnonzero((chunk.kind & EVENT) != 0)
    if not len(rows):
        return np.empty((0, 3), np.int64)
    values = chunk.seq[rows]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1] + 1))
    counts = np.diff(np.append(starts, len(values)))
    return np.stack([values[starts], counts, chunk.pos[rows[starts]]], axis=1)


def count(summary: Summary, flags: Flags) -> None:
    summary.late_causal = int(flags.late_causal.sum())
    summary.late_fifo = int(flags.late_fifo.sum())
    summary.wrong_stamps = int(flags.wrong_stamp.sum())


def tally(chunk: Chunk, words: Words, summary: Summary) -> None:
    """Add up the hashes of sends, deliveries and acceptances, view by view; a view without any has no tally."""
    rows = (chunk.kind & (SEND | DELIVER | ACCEPT)) != 0
    one = _one_view(chunk) if rows.any() else None
    views = [one] if one is not None else np.unique(chunk.view[rows]).tolist()
    for view in views:
        inside = slice(None) if len(views) == 1 else chunk.view == view
        summary.tallies[view] = _tally_view(chunk, words, inside)


def _tally_view(chunk: Chunk, words: Words, inside: Any) -> Tally:
    n, tally = chunk.n, Tally.empty(chunk.n)
    kind, src, dst, words = chunk.kind[inside], chunk.src[inside], chunk.dst[inside], words[inside]
    delivered = (kind & DELIVER) != 0
    _add_by(src[delivered], words[delivered], tally.delivered, tally.delivered_sum)
    accepted = (kind & ACCEPT) != 0
    if accepted.any():
        _add_by(src[accepted], words[accepted], tally.accepted, tally.accepted_sum)
    sent = (kind & SEND) != 0
    tally.sent, tally.sent_sum = _count_and_sum(words[sent])
    to_all = sent & (dst == EVERYBODY)
    tally.everybody, tally.everybody_sum = _count_and_sum(words[to_all])
    to_set = sent & (dst != EVERYBODY)
    if to_set.any():
        # Sums per set first: groups address few different sets.
        counts, sums = np.zeros(len(chunk.sets), np.int64), np.zeros(len(chunk.sets), np.uint64)
        _add_by(dst[to_set], words[to_set], counts, sums)
        for destination in range(n):
            chosen = chunk.sets[:, destination]
            tally.addressed[destination] = counts[chosen].sum()
            tally.addressed_sum[destination] = sums[chosen].sum(dtype=np.uint64)
    return tally


def _count_and_sum(words: Words) -> tuple[int, int]:
    return len(words), int(words.sum(dtype=np.uint64))


def _add_by(index: Any, words: Words, counts: Ints, sums: Words) -> None:
    counts += np.bincount(index, minlength=len(counts))
    np.add.at(sums, index, words)


# ---- running maxima with numpy


def _scan_deliveries(chunk: Chunk, carry: Carry, summary: Summary, flags: Flags) -> None:
    rows = np.flatnonzero(chunk.kind & DELIVER)
    if not len(rows):
        return
    src, seq = chunk.src[rows], chunk.seq[rows]
    flags.late_fifo[rows] = _is_below_earlier(src, seq, carry.delivered)
    np.minimum.at(summary.delivered_low, src, seq)
    np.maximum.at(summary.delivered_high, src, seq)
    running, width = carry.required, _block_rows(chunk)
    for first in range(0, len(rows), width):
        block = slice(first, first + width)
        vectors = _joined(chunk, rows[block], seq[block] - 1)
        summary.required = np.maximum(summary.required, vectors.max(axis=0))
        before, running = _running_maximum(vectors, running)
        flags.late_causal[rows[block]] = before[np.arange(len(before)), src[block]] >= seq[block]


def _scan_known(chunk: Chunk, carry: Carry, summary: Summary, flags: Flags, *, judge_first: bool) -> None:
    rows = np.flatnonzero(chunk.is_known())
    if not len(rows):
        return
    is_receipt = (chunk.kind[rows] & RECEIPT) != 0
    np.maximum.at(summary.received_high, chunk.src[rows[is_receipt]], chunk.seq[rows[is_receipt]])
    running, width = carry.known, _block_rows(chunk)
    for first in range(0, len(rows), width):
        block = rows[first : first + width]
        vectors = _joined(chunk, block, chunk.seq[block])
        summary.known = np.maximum(summary.known, vectors.max(axis=0))
        before, running = _running_maximum(vectors, running)
        sends = np.flatnonzero(chunk.kind[block] & SEND)
        if not len(sends):
            continue
        expected, which = before[sends], block[sends]
        wrong = (chunk.deps[which] != expected).any(axis=1)
        wrong |= chunk.seq[which] != expected[:, chunk.process] + 1
        if not summary.first_send:
            at = which[0]
            summary.first_send, summary.first_seq = int(chunk.pos[at]), int(chunk.seq[at])
            summary.first_deps, summary.first_known = chunk.deps[at].astype(np.int64), expected[0].copy()
            wrong[0] &= judge_first
        flags.wrong_stamp[which] = wrong & chunk.stamped[which]


def _block_rows(chunk: Chunk) -> int:
    return min(BLOCK_ROWS, max(BLOCK_COUNTS // chunk.n, 1))


def _joined(chunk: Chunk, rows: Ints, own: Ints) -> Ints:
    """The vectors of these rows, each at least `own` in the entry of its sender."""
    vectors = chunk.deps[rows].astype(np.int64)
    entry = np.arange(len(rows)), chunk.src[rows]
    vectors[entry] = np.maximum(vectors[entry], own)
    return vectors


def _running_maximum(vectors: Ints, start: Ints) -> tuple[Ints, Ints]:
    """What the maximum was before each line, and what it is after the last."""
    running = np.vstack([start, vectors])
    np.maximum.accumulate(running, axis=0, out=running)
    return running[:-1], running[-1]


def _is_below_earlier(src: Any, seq: Ints, carry: Ints) -> Bools:
    """Whether a higher number of the same source came before."""
    order = np.argsort(src, kind="stable")
    below = np.zeros(len(src), np.bool_)
    ends = np.cumsum(np.bincount(src, minlength=len(carry)))
    start = 0
    for source, end in enumerate(ends.tolist()):
        mine = order[start:end]
        if end > start:
            earlier = np.maximum.accumulate(np.concatenate([carry[source : source + 1], seq[mine]]))[:-1]
            below[mine] = earlier > seq[mine]
        start = end
    return below
