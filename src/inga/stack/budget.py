"""Budgets for work that others can make us do. Each member has its own, so that a flood in one name costs the others nothing.

Requests are answered, and anybody who can write a packet can send requests in any member's name as fast as the network carries
them. So each answer takes from a budget (a token bucket), which fills with time up to a bound. Budgets are far above the needs of
a member that loses nearly half of all packets sent to it; refused requests are counted, and the member repeats them.
"""

ANSWERS, ANSWERS_MAX = 20_000.0, 4096.0
"""Answers to one member, per second and at once: repairs, and counters that it asked for. One request is answered by at most 64
repairs, and a member repeats a request after 5 ms at the earliest."""

UNIT = 8 * 1024
"""Bytes that one answer may have; a larger one counts more than once."""


class Supply:
    """A token bucket: it gains `rate` a second, up to `most`, and is full at the beginning."""

    __slots__ = ("_left", "most", "rate", "used_at")

    def __init__(self, rate: float = ANSWERS, most: float = ANSWERS_MAX) -> None:
        self.rate = rate
        self.most = most
        self._left = most
        self.used_at = 0.0  # the time of the last `take`

    def take(self, now: float, cost: float = 1.0) -> bool:
        """Take `cost`, if the supply has that much; return whether it had."""
        left = min(self.most, self._left + self.rate * (now - self.used_at))
        self.used_at = now
        if left < cost:
            self._left = left
            return False
        self._left = left - cost
        return True

    def give_back(self, cost: float) -> None:
        """Return `cost` to the supply: it was taken for something that we had asked for."""
        self._left = min(self.most, self._left + cost)

    def has(self, now: float, cost: float) -> bool:
        """Whether the supply has that much."""
        return min(self.most, self._left + self.rate * (now - self.used_at)) >= cost


def cost_of(size: int) -> float:
    """The cost of an answer of `size` bytes."""
    return 1 + size // UNIT
