"""Virtual time and randomness: a heap of events and one seed, so that a run is the same on every machine."""

from collections.abc import Callable
from heapq import heappush
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inga.sim.site import Site


class Timeline:
    """The events to come. Events of the same time happen in the order in which they were pushed."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.rng = Random(seed)  # the only one: everything random is drawn from it in the order of events
        self.heap: list[tuple[float, int, Callable[[Any, Any], None], Site, Any]] = []
        self._pushed = 0

    def push(self, at: float, act: Callable[[Any, Any], None], site: "Site", argument: Any = None) -> None:
        """Call `act(site, argument)` at that time, unless the site has left by then."""
        self._pushed += 1
        heappush(self.heap, (at, self._pushed, act, site, argument))
