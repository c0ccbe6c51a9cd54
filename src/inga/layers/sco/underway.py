"""What a member knows of messages that may still be under way to others: it tells, so that nobody has to ask.

A stamp names messages that precede, but not for whom they were. So a data message also says which messages in its past
may not have come to which destination. Its receiver waits for those of them that are for itself, and for no others.

For each message x to a member k in our past there is a message y to k in our past that is x or comes after it, such
that k has accepted y, or y is noted here for k. That is enough: k orders nothing of which y is a cause before y, nor y
before x. It stays true when a message of ours to k takes the place of all that is noted for k, and
when two members' notes are joined: what one of them knows of and has not noted is not noted by the other any more, since
then there is something later in its place, or k has it.

The rules of what need not be noted are those of Kshemkalyani and Singhal, "Necessary and sufficient conditions on
information for causal message ordering and their optimal implementation"; that acceptance guards what precedes is
SCO's own.
"""

from collections.abc import Iterable, Sequence

from inga.layers.sco.parts import ScoMessage
from inga.model.compiled import mypyc_attr
from inga.model.stamp import Noted

Notes = dict[int, dict[int, int]]
"""By destination, then by source: the number of the newest message that may be under way."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Underway:
    """The notes of one member. Who was told nothing by somebody knows too little, and notes and tells nothing any more: then
    receivers ask."""

    def __init__(self, me: int, most: int) -> None:
        """`most` messages are told of; with more, or 0, none."""
        self._me = me
        self._most = most
        self._notes: Notes | None = {} if most else None

    def noted(self) -> Noted | None:
        """What goes with the next message."""
        notes = self._notes
        if notes is None or sum(map(len, notes.values())) > self._most:
            return None
        return tuple([(member, tuple(sorted(notes[member].items()))) for member in sorted(notes)])

    def sent(self, seq: int, to: Iterable[int]) -> None:
        """A message of ours is under way: whatever else is for these members precedes it."""
        if self._notes is not None:
            for member in to:
                self._notes[member] = {self._me: seq}

    def accepted(self, message: ScoMessage, clock: Sequence[int]) -> None:
        """A message with its whole stamp came, and joins our past, which was `clock` before."""
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
        """A member has accepted everything of a source below that number."""
        notes = self._notes
        if notes and (mine := notes.get(member)) and mine.get(source, upto) < upto:
            del mine[source]
            if not mine:
                del notes[member]

    def leave_out(self, member: int) -> None:
        """Nothing is under way to a member that is gone."""
        if self._notes:
            self._notes.pop(member, None)


NOTHING: dict[int, int] = {}
