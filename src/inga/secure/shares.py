"""How much of what many can ask for is anybody's: a budget for each of them, so that nobody pays for another."""

from collections.abc import Hashable

from inga.stack.budget import Supply

SHARES_MAX = 4096
"""Those whose budgets are remembered, the latest that asked. Another begins with a full one, as one long forgotten would."""


SHARE = 8
"""One host gets this part of what there is for all, while there is not enough for all."""


class SupplyOfEach:
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


class FairSupply:
    """A budget for all. Once half of it is spent each host has its share, so that one of them does not use it up."""

    def __init__(self, rate: float, most: float) -> None:
        self._all = Supply(rate, most)
        self._of_host = SupplyOfEach(rate / SHARE, most / SHARE)

    def is_busy(self, now: float) -> bool:
        """Whether half is spent. Then it is worth to ask whether somebody is where it says."""
        return not self._all.has(now, self._all.most / 2)

    def take(self, address: Hashable, now: float) -> bool:
        """A turn for somebody who speaks from there."""
        if self.is_busy(now) and not self._of_host.take(_host(address), now):
            return False
        return self._all.take(now)


def _host(address: Hashable) -> Hashable:
    caller: Hashable = getattr(address, "caller", None)  # where it says that it is may be another host
    if caller is not None:
        return caller
    if isinstance(address, tuple):
        host: Hashable = address[0]
        return host
    return str(address).rpartition(":")[0] or address
