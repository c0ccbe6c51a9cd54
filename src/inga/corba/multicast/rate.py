"""The sending rate of ReMIOP, between two bounds: it follows the slowest receiver.

    lag     packets sent that a receiver does not have yet, when its report arrives; the largest of a period counts
    period  a tenth of the buffer's size in packets sent for the first time

    lag <= size/5   one level up
    lag <= size/2   one level down
    otherwise       all the way down

There are ten levels between the bounds. Rates are in bits a second, of whole datagrams.

From Bessani, Fraga and Lung, section 4.2, equation 1: the sign of a step is (-1) to the ceiling of
(lag - size/5) / size, which is even up to a fifth of the size and odd from there to a half.
"""

from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError

LEVELS = 10
RATE_MAX = 10**12


def next_rate(rate: float, lag: int, size: int, slowest: float, fastest: float) -> float:
    """The rate after a period with that lag."""
    if 2 * lag > size:
        return slowest
    step = (fastest - slowest) / LEVELS
    wanted = rate + step if 5 * lag <= size else rate - step
    return min(max(wanted, slowest), fastest)


@mypyc_attr(allow_interpreted_subclasses=True)
class Rate:
    """The rate of one sender, and when its next packet may leave."""

    def __init__(self, slowest: Any, fastest: Any, size: int) -> None:
        """Bounds in bits a second; invalid ones raise UsageError. `size`: of the buffer, in packets."""
        _check_rate("rmin", slowest)
        _check_rate("rmax", fastest)
        if slowest > fastest:
            raise UsageError(f"rmin is at most rmax, so not {slowest!r} with rmax {fastest!r}")
        self.slowest: float = slowest
        self.fastest: float = fastest
        self.size = size
        self.now: float = (slowest + fastest) / 2
        self.period = max(1, size // LEVELS)  # packets between two adjustments
        self.lag: int | None = None  # the largest reported in this period
        self.free_at = 0.0  # when the packets sent so far have used up their time
        self._sent = 0  # in this period

    def report(self, lag: int) -> None:
        """A receiver has reported that it is `lag` packets behind."""
        lag = max(0, lag)
        if self.lag is None or lag > self.lag:
            self.lag = lag

    def due(self, asked: float) -> float:
        """When a packet that was ready at the time `asked` may leave. The first one after a pause leaves at once."""
        return max(asked, self.free_at)

    def spend(self, due: float, octets: int) -> bool:
        """A packet of so many octets leaves; return whether the rate has changed."""
        self.free_at = due + 8 * octets / self.now
        self._sent += 1
        if self._sent < self.period:
            return False
        self._sent = 0
        lag, self.lag = self.lag, None
        if lag is None:
            return False  # no report has arrived
        before, self.now = self.now, next_rate(self.now, lag, self.size, self.slowest, self.fastest)
        return self.now != before


def _check_rate(name: str, bits: object) -> None:
    if isinstance(bits, bool) or not isinstance(bits, (int, float)) or not 1 <= bits <= RATE_MAX:
        raise UsageError(f"{name} is a rate from 1 to {RATE_MAX} bits a second, not {bits!r}")
