"""One numbering for a whole run, although views renumber members and protocols restart their counts.

A protocol uses the numbering of its view: a member's index is its position there, and after a view was
closed, `seq` and the vectors count from 0 again. A trace has one list of processes and one `seq` per sender
for the whole run. A `Frame` translates from the first to the second:

    process   = indices[member]
    seq       = seq in the view + offsets[process]        offsets: messages sent in the closed views before
    deps[h]   = offsets[h], plus the view's entry if h is a member

So all messages of a closed view precede every message that is sent later, including those of members that
are gone. The `view` of a row determines its frame: a row about a packet of an earlier view keeps
that view's number, whenever it is written.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from inga.model.errors import UsageError
from inga.model.stamp import Deps

STRIDE = 1 << 20
"""In a group with objects: the most messages of one process in a view. Each view counts from its own multiple of this number."""


class Census:
    """Numbers the processes of a trace, for the whole run. First come those that the manifest names: the founders, then their
    copies of objects; then each member that joined later, followed by its copies."""

    def __init__(self, names: Sequence[str], founders: int) -> None:
        self.names = list(names)
        self._founders = founders
        self._copies = {name: at for at, name in enumerate(names) if at >= founders}
        self._objects = list(dict.fromkeys(copy.rpartition("/")[2] for copy in self._copies))
        self._reserved = founders  # the lowest number that a future member can get

    def number(self, process: int, name: str = "") -> int:
        if process < self._founders:
            return self._copies[f"{self.names[process]}/{name}"] if name else process
        return self.size(process) + (1 + self._objects.index(name) if name else 0)

    def size(self, total: int) -> int:
        return len(self.names) + max(total - self._founders, 0) * (1 + len(self._objects))

    def numbers(self, process: int) -> list[int]:
        """All processes of the trace that belong to a member: itself, and its copies of objects."""
        names = [name for name in self._objects if process >= self._founders or self._has(process, name)]
        return [self.number(process), *(self.number(process, name) for name in names)]

    def reserve(self, count: int, least: int) -> Sequence[int]:
        """Reserve numbers for newcomers, from `least` on. No other call on this object returns them."""
        first = max(self._reserved, least)
        self._reserved = first + count
        return range(first, first + count)

    def _has(self, founder: int, name: str) -> bool:
        return f"{self.names[founder]}/{name}" in self._copies

    def past(self, view: int) -> int | None:
        return STRIDE * (view - 1) if self._objects else None


@dataclass(frozen=True, slots=True)
class Frame:
    """The numbering of the views after a closed view, up to the next cut. The first frame changes nothing."""

    after: int  # the closed view; -1 in the first frame
    indices: tuple[int, ...]  # process of each member
    offsets: tuple[int, ...]  # per process, the messages it sent in closed views

    @property
    def is_plain(self) -> bool:
        return self.after < 0

    def process(self, member: int | None) -> int | None:
        return None if member is None else self.indices[member]

    def seq(self, member: int | None, seq: int | None) -> int | None:
        return seq if member is None or seq is None else seq + self.offsets[self.indices[member]]

    def mask(self, members: int | None) -> int | None:
        if members is None:
            return None
        return sum(1 << process for member, process in enumerate(self.indices) if members >> member & 1)

    def deps(self, deps: Deps | None) -> Deps | None:
        if deps is None:
            return None
        counts = list(self.offsets)
        for member, count in enumerate(deps):
            counts[self.indices[member]] += count
        return tuple(counts)

    def height(self, height: int | None) -> int | None:
        return None if height is None else height + sum(self.offsets)


@dataclass(frozen=True, slots=True)
class Numbering:
    """The frames of a run so far, for n processes. Immutable: a segment keeps the one it began with."""

    n: int
    frames: tuple[Frame, ...]

    @classmethod
    def of(cls, n: int) -> "Numbering":
        if n < 1:
            raise UsageError(f"A trace needs at least one process, not {n}.")
        return cls(n, (Frame(-1, tuple(range(n)), (0,) * n),))

    def frame(self, view: int) -> Frame:
        """The frame of a view: the last one whose closed view precedes it."""
        if len(self.frames) == 1:
            return self.frames[0]
        return self.frames[max(bisect_left(self.frames, view, key=lambda frame: frame.after) - 1, 0)]

    def grow(self, n: int) -> "Numbering":
        """The numbering after processes were added, as members with the same indices joined the view in force."""
        if n < self.n:
            raise UsageError(f"A trace of {self.n} processes cannot shrink to {n}: indices are never reused.")
        *closed, last = self._widened(n)
        joined = tuple(range(self.n, n))
        return Numbering(n, (*closed, Frame(last.after, last.indices + joined, last.offsets)))

    def cut(self, view: int, seqs: Sequence[int] | int, indices: Sequence[int] | None = None) -> "Numbering":
        """The numbering after a view was closed with `seqs[member]` messages of each of its members. If those counts are not
        known, `seqs` is one number, from which every process goes on.

        `indices` are the processes of the members of the next view, in order; without it they stay.
        """
        last = self.frames[-1]
        if view <= last.after:
            raise UsageError(f"View {view} is closed already: the last cut was that of view {last.after}.")
        if not isinstance(seqs, int) and len(seqs) > len(last.indices):
            raise UsageError(
                f"The cut of view {view} has {len(seqs)} counts for {len(last.indices)} members."
            )
        kept = last.indices if indices is None else tuple(indices)
        if not kept or len(set(kept)) < len(kept) or min(kept) < 0:
            raise UsageError(f"The members after view {view} cannot be the processes {list(kept)}.")
        n = max(self.n, max(kept) + 1)
        if isinstance(seqs, int):
            return Numbering(n, (*self._widened(n), Frame(view, kept, (seqs,) * n)))
        offsets = list(last.offsets) + [0] * (n - self.n)
        for member, count in enumerate(seqs):
            offsets[last.indices[member]] += count
        return Numbering(n, (*self._widened(n), Frame(view, kept, tuple(offsets))))

    def _widened(self, n: int) -> list[Frame]:
        zeros = (0,) * (n - self.n)
        return [Frame(frame.after, frame.indices, frame.offsets + zeros) for frame in self.frames]
