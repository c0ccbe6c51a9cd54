"""Counts of useless datagrams by source address: for the filter in the kernel that keeps out more of them in a flood.

Useless are datagrams that cannot be opened, those of closed views, and those of processes that are not members of our view.
Handshake messages of all senders are counted separately, since any process may have a reason to send them.
"""

from collections.abc import Hashable

from inga.secure.whereabouts import Whereabouts
from inga.stack.guard import Useless

PLACES_MAX = 1024
"""Addresses that are counted one by one; datagrams from all others are counted together."""


class SecuredSenders:
    """The addresses of senders that a secured process knows, and counts of useless datagrams since they were last read."""

    def __init__(self, whereabouts: Whereabouts, words_begin: bytes) -> None:
        self._whereabouts = whereabouts
        self._by_place: dict[Hashable, int] = {}
        self._elsewhere = 0
        self.words = 0
        self.words_begin: bytes | None = words_begin

    @property
    def members(self) -> frozenset[str]:
        """The addresses from which members of the view in force send, as `host:port`."""
        return self._whereabouts.of_members

    @property
    def visitors(self) -> frozenset[str]:
        """The addresses from which other authenticated processes send."""
        return self._whereabouts.all - self._whereabouts.of_members

    def note(self, address: Hashable) -> None:
        """Count a useless datagram from that address."""
        by_place = self._by_place
        count = by_place.get(address, 0)
        if count or len(by_place) < PLACES_MAX:
            by_place[address] = count + 1
        else:
            self._elsewhere += 1

    def useless(self) -> Useless:
        """Return the counts since the last call, and reset them."""
        counted = Useless(self._by_place, self._elsewhere, self.words)
        self._by_place, self._elsewhere, self.words = {}, 0, 0
        return counted
