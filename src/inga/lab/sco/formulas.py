"""The schemes of the figures in closed form.

With x = d/(n-1), the probability that one data message goes to a given member, a wait ends with the next one that
does. An obligation may join an older one, which the formulas of the delays neglect: they are up to 6 % too high.

    still_waiting(s)   no data message to a given member for s units
    wait(k), wait_of(m, k)   the mean wait, and the mean of the longest of m
"""

from collections.abc import Callable
from math import floor

from inga.lab.sco.schemes import ROUND, SchemeCosts, SchemeLoad
from inga.model.errors import UsageError

STEPS = 64
"""The number of steps per unit in numerical integration."""


def closed_form(load: SchemeLoad) -> SchemeCosts:
    """Return PDUs and delay of a scheme of the figures. The computation counts time in intervals between two messages of a member, of
    which a unit has `rate`."""
    n, d, k, r = load.members, load.destinations, load.delay * load.rate, ROUND * load.rate
    share = d / (n - 1)

    def still_waiting(s: float) -> float:
        return float((1 - share) ** floor(s) * (1 - share * (s - floor(s))))

    def wait_of(m: int) -> float:
        return _integral(lambda s: 1 - (1 - still_waiting(s)) ** m, k)

    def pdus(owed: float) -> float:
        """`owed` obligations per interval arise from one member to another."""
        return d + (n - 1) * still_waiting(k) / (1 / owed + wait_of(1))

    def costs(pdus: float, intervals: float) -> SchemeCosts:
        return SchemeCosts(pdus, intervals / load.rate)

    match load.scheme:
        case "C0":
            return costs(3 * d, 3 * r)
        case "D0":
            return costs(d + d * d, r if d == 1 else 2 * r)
        case "C1":
            return costs(pdus(2 * d / (n - 1)), 3 * r + wait_of(d) + wait_of(1))
        case "D1":
            return costs(pdus(d * d / (n - 1)), r if d == 1 else 2 * r + wait_of(d - 1))
        case _:
            raise UsageError(f"there is no closed form of {load.scheme}")


def _integral(f: Callable[[float], float], to: float) -> float:
    """Integrate by Simpson's rule, one unit at a time: the functions have kinks at whole numbers."""
    total, start = 0.0, 0.0
    while start < to:
        end = min(start + 1.0, to)
        step = (end - start) / STEPS
        inner = 1e-12  # so that the last value of a unit is its own, not that of the next unit
        values = [f(min(start + i * step, end - inner)) for i in range(STEPS + 1)]
        total += step / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))
        start = end
    return total
