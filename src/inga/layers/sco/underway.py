"""Notes: which messages may still be in flight to other members. Data messages carry them, so that receivers need not ask.

A stamp names preceding messages, but not their destinations. So a data message also notes which messages in its past
may not have arrived at which destination. Its receiver waits for those that are noted for itself, and for no others.

Invariant: for each message x to a member k in our past there is a message y to k in our past, which is x or follows x, such that
k has accepted y, or y is noted here for k. That suffices: k orders no message that y precedes before y, nor y before x. The
invariant holds when a message of ours to k replaces all notes for k, and when the notes of two members are joined: a message that
one of them knows and has not noted is struck out of the notes of the other, since then a later message is noted in its place, or
k has accepted one.

The rules for what need not be noted are those of Kshemkalyani and Singhal, "Necessary and sufficient conditions on
information for causal message ordering and their optimal implementation". That an accepted message stands for those that precede it is
SCO's own.
"""

from collections.abc import Iterable, Sequence

from inga.layers.sco.parts import ScoMessage
from inga.model.compiled import mypyc_attr
from inga.model.stamp import Noted

Notes = dict[int, dict[int, int]]
"""By destination, then by source: the number of the newest message that may be in flight."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Underway:
    """The notes of one member. After it has accepted a message without notes it knows too little, and takes and sends no notes any
    more: then receivers ask."""

    def __init__(self, me: int, most: int) -> None:
        """A message carries at most `most` notes; if there are more, or `most` is 0, it carries none."""
        self._me = me
        self._most = most
        self._notes: Notes | None = {} if most else None

    def noted(self) -> Noted | None:
        """The notes for our next message; None: it carries none."""
        notes = self._notes
        if notes is None or sum(map(len, notes.values())) > self._most:
            return None
        return tuple([(member, tuple(sorted(notes[member].items()))) for member in sorted(notes)])

    def sent(self, seq: int, to: Iterable[int]) -> None:
        """Note a message of ours for its destinations. It replaces all their other notes, since these messages precede it."""
        if self._notes is not None:
            for member in to:
                self._notes[member] = {self._me: seq}

    def accepted(self, message: ScoMessage, clock: Sequence[int]) -> None:
        """Join the notes of a message with its full stamp that we accept. `clock` is our past without it."""
        notes = self._notes
        if notes is None:
            return
        if message.noted is None:
            self._notes = None
            return
        past, src = message.deps, message.src
        theirs = {member: dict(numbers) for member, numbers in message.noted if member != self._me}
        joined: Notes = {}
        for member in notes.keys() | theirs.keys():
            mine, other = notes.get(member, NOTHING), theirs.get(member, NOTHING)
            both = {h: seq for h, seq in mine.items() if seq > past[h] or other.get(h, 0) >= seq}
            for h, seq in other.items():
                if clock[h] <= seq <= past[h] or both.get(h, 0) < seq <= mine.get(h, 0):
                    both[h] = seq
            if both:
                joined[member] = both
        bits = message.dst & ~(1 << self._me | 1 << src)
        while bits:
            member = (bits & -bits).bit_length() - 1
            bits &= bits - 1
            later = {h: seq for h, seq in joined.get(member, NOTHING).items() if seq > past[h]}
            joined[member] = {**later, src: message.seq}
        self._notes = joined

    def has_accepted(self, member: int, source: int, upto: int) -> None:
        """A member has accepted all messages of a source below `upto`: strike out a note of one of these."""
        notes = self._notes
        if notes and (mine := notes.get(member)) and mine.get(source, upto) < upto:
            del mine[source]
            if not mine:
                del notes[member]

    def leave_out(self, member: int) -> None:
        """Strike out all notes for a departed member."""
        if self._notes:
            self._notes.pop(member, None)


NOTHING: dict[int, int] = {}
