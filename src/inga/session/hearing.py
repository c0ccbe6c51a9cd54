"""Rate limits for control messages: each is small, but has to be parsed, processed and answered.

Each member has a budget, and so has each other address. All addresses that were not seen before share one more budget.
So a process that floods the group from one address, or from invented ones, is heard no more often than a few newcomers,
and uses up nothing of the budgets of members and of known addresses.
"""

from collections.abc import Collection, Hashable

from inga.session.pieces import PIECE_MIN
from inga.stack.budget import Supply, cost_of

WORDS = 5000.0
"""Control messages of one member that are accepted, a second and at once, besides pieces of states that we have requested."""

OUTSIDE_WORDS, OUTSIDE_WORDS_MAX = 200.0, 64.0
"""Control messages of one address that belong to no view, a second and at once. A newcomer first repeats its request after 5 ms."""

ADDRESSES, ADDRESSES_MAX = 500.0, 1024.0
"""New addresses that are accepted, a second and at once."""

SOURCES_MAX = 4096
"""Addresses that are remembered; the one heard least recently is dropped first."""

REMEMBERED_FOR = 60.0
"""Seconds of silence after which an address is forgotten: its budget is full again long before that."""


class Hearing:
    """The budgets for control messages; part of the session."""

    def __init__(self) -> None:
        self._members: list[Supply] = []
        self._repeats: list[Supply] = []  # of each member: pieces of states that it requests again
        self._sources: dict[Hashable, Supply] = {}
        self._strange = Supply(ADDRESSES, ADDRESSES_MAX)

    def view(self, members: int) -> None:
        self._members = [Supply(WORDS, WORDS) for _ in range(members)]
        self._repeats = [Supply() for _ in range(members)]

    def hears(self, member: int, now: float) -> bool:
        """Whether one more control message of a member is accepted."""
        return self._members[member].take(now)

    def wanted(self, member: int, pieces: Collection[int]) -> None:
        """Refund the cost of new pieces of a state that we had requested; `pieces` are their sizes in octets. Pieces smaller than `PIECE_MIN`
        are not refunded, since a state could have any number of them."""
        self._members[member].give_back(sum(octets >= PIECE_MIN for octets in pieces))

    def repeats(self, member: int, size: int, now: float) -> bool:
        """Whether so many bytes of a state may be sent to a member once more."""
        return self._repeats[member].take(now, cost_of(size))

    def hears_from(self, address: Hashable, now: float) -> bool:
        """Whether one more control message from an address is accepted; always, if the driver knows no address."""
        if address is None:
            return True
        self._forget(now)
        budget = self._sources.pop(address, None)
        if budget is None:
            if not self._strange.take(now):
                return False
            budget = Supply(OUTSIDE_WORDS, OUTSIDE_WORDS_MAX)
            if len(self._sources) >= SOURCES_MAX:
                del self._sources[next(iter(self._sources))]
        self._sources[address] = budget
        return budget.take(now)

    def _forget(self, now: float) -> None:
        """Forget addresses that were silent for long; they are in the order in which they were last heard."""
        while self._sources:
            oldest = next(iter(self._sources))
            if now - self._sources[oldest].used_at < REMEMBERED_FOR:
                return
            del self._sources[oldest]
