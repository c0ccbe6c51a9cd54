"""How much of what many can ask for is anybody's: a budget for each of them, so that nobody pays for another."""

from collections.abc import Hashable

from inga.stack.budget import Supply

SHARES_MAX = 4096
"""Those whose budgets are remembered, the latest that asked. Another begins with a full one, as one long forgotten would."""


class Shares:
    """Budgets by what they belong to, each made when it is first asked for."""

    def __init__(self, rate: float, most: float) -> None:
        """`rate` a second for each, and `most` at once."""
        self._rate, self._most = rate, most
        self._supplies: dict[Hashable, Supply] = {}  # the one that asked last stands last

    def take(self, whose: Hashable, now: float) -> bool:
        """Take one of somebody's, if it is there."""
        supply = self._supplies.pop(whose, None) or Supply(self._rate, self._most)
        self._supplies[whose] = supply
        if len(self._supplies) > SHARES_MAX:
            del self._supplies[next(iter(self._supplies))]
        return supply.take(now)
