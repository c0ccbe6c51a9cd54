"""Questions to one chunk: the functions that tasks apply, wherever they run."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import ACCEPT, CHATTER, CONFIRM, DELIVER, SEND, Chunk, Ints
from inga.certify.compare import Deliveries, Range, Sends, deliveries_of, sends_of
from inga.certify.fingerprint import Keys, Words
from inga.certify.scan import Carry, Summary, scan


@dataclass(frozen=True, slots=True)
class RowKey:
    """Enough of a row to find it again."""

    process: int
    pos: int
    src: int
    seq: int


@dataclass(frozen=True, slots=True)
class Broken:
    """Rows of a chunk that break one property: how many per sender, and the first ones."""

    counts: Ints
    rows: list[RowKey]


@dataclass(frozen=True, slots=True)
class Findings:
    """What a second scan found, by check."""

    broken: dict[str, Broken]
    restarts: list[RowKey] = field(default_factory=list)  # sends that count again from an earlier number


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows to compare: the chunk's sends, its deliveries from `sources`, or both."""

    numbers: Range
    sends: bool
    sources: list[int]


@dataclass(frozen=True, slots=True)
class FoundRows:
    """What `Wanted` asked for of one chunk: its sends, and its deliveries by source."""

    process: int
    sends: Sends | None
    deliveries: dict[int, Deliveries]


def summarise(chunk: Chunk, keys: Keys) -> Summary:
    """The first scan of a chunk."""
    return scan(chunk, keys)[0]


def rescan(chunk: Chunk, question: tuple[Keys, Carry, int, int]) -> Findings:
    """The second scan, with the carry and the highest number sent before; lists at most `listed_max` rows per check."""
    keys, carry, sent_before, listed_max = question
    _, flags = scan(chunk, keys, carry)
    rows = {
        "causal": np.flatnonzero(flags.late_causal),
        "fifo": np.flatnonzero(flags.late_fifo),
        "stamps": np.flatnonzero(flags.wrong_stamp),
    }
    broken = {check: _broken(chunk, which, listed_max) for check, which in rows.items()}
    sends = np.flatnonzero(chunk.kind & SEND)
    # Only own sends count: vectors of others may name messages that the process has not sent yet.
    highest = np.maximum.accumulate(np.append(sent_before, chunk.seq[sends]))[:-1]
    return Findings(broken, _listed(chunk, sends[chunk.seq[sends] <= highest], 1))


def collect(chunk: Chunk, question: tuple[Keys, Wanted]) -> FoundRows:
    """The rows that have to be compared one by one."""
    keys, wanted = question
    return FoundRows(
        chunk.process,
        sends_of(chunk, keys, wanted.numbers) if wanted.sends else None,
        {source: deliveries_of(chunk, keys, source, wanted.numbers) for source in wanted.sources},
    )


@dataclass(frozen=True, slots=True)
class FirstCopies:
    """Messages as one process got them: the first delivery of each number, if it has a vector."""

    process: int
    seq: Ints
    pos: Ints
    word: Words


def copies(chunk: Chunk, question: tuple[Keys, int, Range]) -> FirstCopies:
    """The first deliveries in a chunk of some messages of one source."""
    keys, source, numbers = question
    delivered = deliveries_of(chunk, keys, source, numbers)
    firsts = np.unique(delivered.seq, return_index=True)[1]
    rows = firsts[delivered.stamped[firsts]]
    return FirstCopies(chunk.process, delivered.seq[rows], delivered.pos[rows], delivered.word[rows])


def blocks(chunk: Chunk, question: tuple[list[int], int, int]) -> Ints:
    """In which ranges of `width` numbers, counted from `first`, a chunk has rows of some sources."""
    sources, first, width = question
    numbers = chunk.seq[np.isin(chunk.src, sources) & (chunk.seq >= first)]
    found: Ints = np.unique((numbers - first) // width)
    return found


@dataclass(frozen=True, slots=True)
class Fates:
    """What became of some messages of one source at one process: their numbers, by step."""

    process: int
    sends: Sends | None
    delivered: Ints
    accepted: Ints
    confirmed: Ints
    delivered_in: NDArray[np.int32]  # the view of each delivery,
    delivered_at: Ints  # and its position


def fates(chunk: Chunk, question: tuple[Keys, int, Range]) -> Fates:
    """The rows of one source that say how far its messages got."""
    keys, source, numbers = question
    mine = (chunk.src == source) & numbers.rows(chunk.seq)

    def having(bit: int) -> Ints:
        numbers: Ints = chunk.seq[mine & ((chunk.kind & bit) != 0)]
        return numbers

    sends = sends_of(chunk, keys, numbers) if chunk.process == source else None
    delivered = np.flatnonzero(mine & ((chunk.kind & DELIVER) != 0))
    where = chunk.view[delivered], chunk.pos[delivered]
    return Fates(chunk.process, sends, chunk.seq[delivered], having(ACCEPT), having(CONFIRM), *where)


@dataclass(frozen=True, slots=True)
class Strays:
    """Rows of one step and source that belong to one view, while another was in force: how many, and the first."""

    step: str
    source: int
    view: int
    in_force: int
    count: int
    rows: list[RowKey]


def strays(chunk: Chunk, question: tuple[int, int]) -> list[Strays]:
    """Sends and deliveries that belong to another view than the one in force, given the view before the chunk, -1 if none;
    lists at most `listed_max` of each kind."""
    before, listed_max = question
    rows = np.flatnonzero(chunk.kind & (SEND | DELIVER))
    views = np.array([before, *(view.number for view in chunk.views)])
    in_force = views[np.searchsorted([view.pos for view in chunk.views], chunk.pos[rows])]
    is_stray = (in_force != -1) & (in_force != chunk.view[rows])
    rows, in_force = rows[is_stray], in_force[is_stray]
    kinds = np.stack([chunk.kind[rows] & SEND, chunk.src[rows], chunk.view[rows], in_force], axis=1)
    found = []
    for kind in np.unique(kinds, axis=0):
        mine = rows[(kinds == kind).all(axis=1)]
        is_send, source, view, actual = kind.tolist()
        step, listed = "send" if is_send else "deliver", _listed(chunk, mine, listed_max)
        found.append(Strays(step, source, view, actual, len(mine), listed))
    return found


@dataclass(frozen=True, slots=True)
class Noise:
    """Control traffic after a deadline: how much, and the first of it."""

    count: int
    first: list[tuple[int, int, str]]  # position, time, what it was


def noise(chunk: Chunk, question: tuple[int, int]) -> Noise:
    """Control rows later than a time in nanoseconds; lists at most `listed_max`."""
    deadline, listed_max = question
    clocked = chunk.clocked
    assert clocked is not None, "only chunks with times are asked"
    late = np.flatnonzero(clocked.time > deadline)
    first = [
        (int(clocked.pos[at]), int(clocked.time[at]), CHATTER[clocked.what[at]]) for at in late[:listed_max]
    ]
    return Noise(len(late), first)


@dataclass(frozen=True, slots=True)
class Backwards:
    """Rows with an earlier time than one before them: how many, and the first: position, and by how much."""

    count: int
    first: list[tuple[int, int]]


def backwards(chunk: Chunk, question: tuple[int, int]) -> Backwards:
    """Where times go back, given the latest time before the chunk; lists at most `listed_max`."""
    before, listed_max = question
    clocked = chunk.clocked
    assert clocked is not None, "only chunks with times are asked"
    rows = np.flatnonzero(clocked.is_back(before))
    highest = np.maximum.accumulate(np.append(before, clocked.times))[:-1]
    first = [
        (clocked.first + at, int(highest[at]) - int(clocked.times[at])) for at in rows[:listed_max].tolist()
    ]
    return Backwards(len(rows), first)


def _broken(chunk: Chunk, rows: Ints, listed_max: int) -> Broken:
    """Exact counts, the first few rows, and at least one row of every sender that is counted."""
    firsts = np.unique(chunk.src[rows], return_index=True)[1]
    shown = np.union1d(firsts, np.arange(min(listed_max, len(rows))))
    return Broken(np.bincount(chunk.src[rows], minlength=chunk.n), _listed(chunk, rows[shown], len(shown)))


def _listed(chunk: Chunk, rows: Ints, listed_max: int) -> list[RowKey]:
    return [
        RowKey(chunk.process, int(chunk.pos[row]), int(chunk.src[row]), int(chunk.seq[row]))
        for row in rows[:listed_max]
    ]
