"""Budgets for work that many processes can ask for: one for each of them, so that none uses up another's."""

from collections.abc import Hashable

from inga.stack.budget import Supply

SHARES_MAX = 4096
"""Budgets that are remembered, those used last. Any other one begins full, as a forgotten one would be by then."""


SHARE = 8
"""While the common budget is short, one host gets one part in this many of it."""


class SupplyOfEach:
    """Budgets by their owners, each made when it is first used."""

    def __init__(self, rate: float, most: float) -> None:
        """Each owner gets `rate` a second, and `most` at once."""
        self._rate, self._most = rate, most
        self._supplies: dict[Hashable, Supply] = {}  # the one used last is the last entry

    def take(self, whose: Hashable, now: float) -> bool:
        """Take one unit of an owner's budget, if it has one."""
        supply = self._supplies.pop(whose, None) or Supply(self._rate, self._most)
        self._supplies[whose] = supply
        if len(self._supplies) > SHARES_MAX:
            del self._supplies[next(iter(self._supplies))]
        return supply.take(now)


class FairSupply:
    """A budget common to all addresses. Once half of it is spent each host is limited to its share, so that no host uses up the rest."""

    def __init__(self, rate: float, most: float) -> None:
        self._all = Supply(rate, most)
        self._of_host = SupplyOfEach(rate / SHARE, most / SHARE)

    def is_busy(self, now: float) -> bool:
        """Whether half is spent. Then it pays to verify source addresses first."""
        return not self._all.has(now, self._all.most / 2)

    def take(self, address: Hashable, now: float) -> bool:
        """Take one unit for a sender at that address, if there is one for it."""
        if self.is_busy(now) and not self._of_host.take(_host(address), now):
            return False
        return self._all.take(now)


def _host(address: Hashable) -> Hashable:
    # Over TCP: the host that called, since the address at which it claims to listen may be another host's.
    caller: Hashable = getattr(address, "caller", None)
    if caller is not None:
        return caller
    if isinstance(address, tuple):
        host: Hashable = address[0]
        return host
    return str(address).rpartition(":")[0] or address
