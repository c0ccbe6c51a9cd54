"""To how much the session listens: words are small, but each makes somebody read, think and answer.

Members have a budget each. So has everybody else by the address it writes from, and so have addresses that nobody has seen
before, in all: who floods the group from one address, or from invented ones, is heard no more often than a few newcomers,
and takes nothing from those who were heard before.
"""

from collections.abc import Collection, Hashable

from inga.session.pieces import PIECE_MIN
from inga.stack.budget import Supply, cost_of

WORDS = 5000.0
"""Words of a member that are heard, a second and at once, besides pieces of states that we have asked for."""

OUTSIDE_WORDS, OUTSIDE_WORDS_MAX = 200.0, 64.0
"""Words of one address that belong to no view, a second and at once. A newcomer repeats itself after 5 ms at first."""

ADDRESSES, ADDRESSES_MAX = 500.0, 1024.0
"""Addresses that were not heard before, a second and at once."""

SOURCES_MAX = 4096
"""Addresses that are remembered, the latest."""

REMEMBERED_FOR = 60.0
"""Seconds after which an address is forgotten that nothing came from: its budget has been full for long."""


class Hearing:
    """Who may still be heard; part of the session."""

    def __init__(self) -> None:
        self._members: list[Supply] = []
        self._repeats: list[Supply] = []  # of each member: parts of states that it gets again
        self._sources: dict[Hashable, Supply] = {}
        self._strange = Supply(ADDRESSES, ADDRESSES_MAX)

    def view(self, members: int) -> None:
        self._members = [Supply(WORDS, WORDS) for _ in range(members)]
        self._repeats = [Supply() for _ in range(members)]

    def hears(self, member: int, now: float) -> bool:
        """Whether one more word of a member is heard."""
        return self._members[member].take(now)

    def wanted(self, member: int, pieces: Collection[int]) -> None:
        """Pieces of a state were new, so many octets each, and we had asked for them: they cost nothing. Small ones do, of which a
        state could have any number."""
        self._members[member].give_back(sum(octets >= PIECE_MIN for octets in pieces))

    def repeats(self, member: int, size: int, now: float) -> bool:
        """Whether a member is given so many bytes of a state once more."""
        return self._repeats[member].take(now, cost_of(size))

    def hears_from(self, address: Hashable, now: float) -> bool:
        """Whether one more word from an address is heard; all are, if the driver knows none."""
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
        """Who was silent for long; whoever was heard last stands last."""
        while self._sources:
            oldest = next(iter(self._sources))
            if now - self._sources[oldest].used_at < REMEMBERED_FOR:
                return
            del self._sources[oldest]
