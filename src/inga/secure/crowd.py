"""What came of late that was of no use to anybody, by where it came from: for whoever can keep more of it out.

Counted are datagrams that are not opened, those of views that are over, and what processes say that are in no view of ours.
Words of handshakes are counted apart, whoever says them, since anybody may have a reason to.
"""

from collections.abc import Hashable

from inga.stack.guard import Useless

PLACES_MAX = 1024
"""Addresses that are counted one by one; of more, only how much came."""


class Crowd:
    """Counts, until somebody asks."""

    __slots__ = ("_by_place", "_elsewhere", "words")

    def __init__(self) -> None:
        self._by_place: dict[Hashable, int] = {}
        self._elsewhere = 0
        self.words = 0

    def note(self, address: Hashable) -> None:
        """One came from there."""
        by_place = self._by_place
        count = by_place.get(address, 0)
        if count or len(by_place) < PLACES_MAX:
            by_place[address] = count + 1
        else:
            self._elsewhere += 1

    def take(self) -> Useless:
        """What was counted since this was asked last."""
        counted = Useless(self._by_place, self._elsewhere, self.words)
        self._by_place, self._elsewhere, self.words = {}, 0, 0
        return counted
