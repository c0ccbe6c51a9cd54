"""What came of late that was of no use to anybody, by where it came from: for whoever can keep more of it out.

Counted are datagrams that are not opened, those of views that are over, and what processes say that are in no view of ours.
Words of handshakes are counted apart, whoever says them, since anybody may have a reason to.
"""

from collections.abc import Hashable

from inga.secure.whereabouts import Whereabouts
from inga.stack.guard import Useless

PLACES_MAX = 1024
"""Addresses that are counted one by one; of more, only how much came."""


class SecuredSenders:
    """Who sends to a process: those that it knows, and others, whose datagrams are counted until somebody asks."""

    def __init__(self, whereabouts: Whereabouts, words_begin: bytes) -> None:
        self._whereabouts = whereabouts
        self._by_place: dict[Hashable, int] = {}
        self._elsewhere = 0
        self.words = 0
        self.words_begin: bytes | None = words_begin

    @property
    def members(self) -> frozenset[str]:
        """From where members of the view in force send, as `host:port`."""
        return self._whereabouts.of_members

    @property
    def visitors(self) -> frozenset[str]:
        """From where others do who have proven who they are."""
        return self._whereabouts.all - self._whereabouts.of_members

    def note(self, address: Hashable) -> None:
        """Something of no use came from there."""
        by_place = self._by_place
        count = by_place.get(address, 0)
        if count or len(by_place) < PLACES_MAX:
            by_place[address] = count + 1
        else:
            self._elsewhere += 1

    def useless(self) -> Useless:
        """What was counted since this was asked last."""
        counted = Useless(self._by_place, self._elsewhere, self.words)
        self._by_place, self._elsewhere, self.words = {}, 0, 0
        return counted
