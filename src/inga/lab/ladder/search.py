"""The search for the smallest counterexample: every schedule of few messages among few sites, until one breaks a scheme."""

from collections.abc import Sequence

from inga.sim.board import lossless
from inga.sim.explore import Explorer

BOUNDS = ((1, 2), (2, 2), (2, 3), (3, 2), (3, 3))
"""(messages, sites), smallest first. Broadcasts only, without duplicates."""

QUICK_BOUNDS = BOUNDS[:-1]


def smallest(scheme: str, bounds: Sequence[tuple[int, int]] = BOUNDS) -> tuple[int, int, int, str, str]:
    """Return (messages, sites, schedules tried, the first that breaks the scheme, the reason); an empty schedule if none does."""
    schedules = 0
    for messages, sites in bounds:
        report = Explorer(sites, messages, lossless(scheme)).run()
        schedules += report.schedules
        if report.first is not None:
            return messages, sites, schedules, str(report.first), report.why
    messages, sites = bounds[-1]
    return messages, sites, schedules, "", "nothing is wrong within these bounds"
