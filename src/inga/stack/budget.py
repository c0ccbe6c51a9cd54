"""What others can make us do, within bounds: so much for each of them, and nobody pays for another.

Whoever asks is answered, and whoever can write a packet can ask in anybody's name as quickly as the network carries it.
So answers come out of a budget: it fills with time up to a bound, and each answer takes from it. Budgets are far above what
a member needs that loses nearly half of all that is sent to it; what they refuse is counted, and asked for again.
"""

ANSWERS, ANSWERS_MAX = 20_000.0, 4096.0
"""Answers to one member, a second and at once: packets sent again, counters that were asked for. At most 64 packets are
sent again for one request, and a member repeats a request after 5 ms at the earliest."""

UNIT = 8 * 1024
"""Bytes: a larger answer counts more than once."""


class Supply:
    """A supply that fills with time: `rate` a second, up to `most`, which is there at the beginning."""

    __slots__ = ("_left", "most", "rate", "used_at")

    def __init__(self, rate: float = ANSWERS, most: float = ANSWERS_MAX) -> None:
        self.rate = rate
        self.most = most
        self._left = most
        self.used_at = 0.0  # when somebody wanted of it last

    def take(self, now: float, cost: float = 1.0) -> bool:
        """Take so much, if it is there."""
        left = min(self.most, self._left + self.rate * (now - self.used_at))
        self.used_at = now
        if left < cost:
            self._left = left
            return False
        self._left = left - cost
        return True

    def give_back(self, cost: float) -> None:
        """So much was taken for something that was wanted."""
        self._left = min(self.most, self._left + cost)

    def has(self, now: float, cost: float) -> bool:
        """Whether so much is there."""
        return min(self.most, self._left + self.rate * (now - self.used_at)) >= cost


def cost_of(size: int) -> float:
    """Of an answer of so many bytes."""
    return 1 + size // UNIT
