"""A receiver that is too slow for a while, and its effect on the rate of a ReMIOP sender, in virtual time.

One member sends as fast as it may. Datagrams to one of the receivers pass through a queue that is emptied at a
limited speed, as by a slow reader with a small socket buffer: those that do not fit are lost. Before and after that time there is
no such queue.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from inga.corba.multicast.remiop import ReMiop
from inga.model.errors import UsageError
from inga.recipes import Options
from inga.sim.network import Network
from inga.sim.simulator import DELAY, Sim
from inga.sim.site import Site
from inga.trial.people import member_names
from inga.trial.workload import Workload


class Sample(NamedTuple):
    """A sample of the run; rates are in bits a second, over the time since the previous sample."""

    seconds: float
    rate: float  # at which the sender is allowed to send
    sent: float  # first transmissions
    received: float  # packets that the slow receiver has without a gap
    lag: int  # packets the slow receiver is behind
    is_slow: bool


@dataclass(frozen=True, slots=True)
class SlowReceiver:
    """The experiment. Times in seconds, speeds in bits a second."""

    members: int = 3
    rmin: float = 100_000
    rmax: float = 1_100_000
    size: int = 100
    speed: float = 400_000  # of the slow receiver
    queue: int = 20  # packets its buffer holds
    slow_from: float = 10.0
    slow_until: float = 30.0
    end: float = 45.0
    every: float = 0.5
    state_interval: float = 0.5
    message: int = 1200  # octets
    seed: int = 1

    def __post_init__(self) -> None:
        if self.members < 2:
            raise UsageError(f"a slow receiver takes at least two members, not {self.members}")
        if not 0 <= self.slow_from <= self.slow_until <= self.end:
            raise UsageError(
                f"the slow time lies within that of the experiment, not from {self.slow_from} to {self.slow_until}"
            )

    def run(self) -> list[Sample]:
        """Run the experiment, and return samples over time. The same experiment always has the same result."""
        sim = self._sim()
        strategy = sim.sites[0].stack.layer("remiop")
        receiver = sim.sites[-1].stack.layer("remiop")
        assert isinstance(strategy, ReMiop) and isinstance(receiver, ReMiop)
        messages = int(2 * self.end * self.rmax / (8 * self.message))
        sim.sites[0].load(Workload(self.members, messages, self.message, messages / self.end), 0.0)
        samples = []
        bits = 8 * 1472
        sent = received = 0
        for step in range(1, int(self.end / self.every) + 1):
            at = step * self.every
            sim.run(until=at)
            now_sent, now_received = strategy.sent, receiver.has_of(0)
            samples.append(
                Sample(
                    at,
                    strategy.rate.now,
                    (now_sent - sent) * bits / self.every,
                    (now_received - received) * bits / self.every,
                    now_sent - now_received,
                    self.is_slow(at),
                )
            )
            sent, received = now_sent, now_received
        return samples

    def _sim(self) -> Sim:
        names_of_own = ("rmin", "rmax", "size", "state_interval")
        own: dict[str, Any] = {name: getattr(self, name) for name in names_of_own}
        options = Options(protocol=own)
        sim = Sim(*member_names(self.members), order="remiop", seed=self.seed, options=options, record=False)
        sim.network = _Queued(self, sim)
        return sim

    def is_slow(self, at: float) -> bool:
        return self.slow_from < at <= self.slow_until


class _Queued(Network):
    """A network in which links to the last member end in a shared queue while that is slow."""

    def __init__(self, experiment: SlowReceiver, sim: Sim) -> None:
        super().__init__(sim.timeline, sim.sites, DELAY)
        self._experiment = experiment
        self._free_at = 0.0  # when the queue is empty

    def copy(self, site: Site, target: Site, data: bytes) -> None:
        experiment, now = self._experiment, self._timeline.now
        if target is not self._sites[-1] or not experiment.is_slow(now):
            super().copy(site, target, data)
            return
        service = 8 * len(data) / experiment.speed
        begins = max(now, self._free_at)
        if begins - now > experiment.queue * 8 * 1472 / experiment.speed:
            self.lost += 1
            return
        self._free_at = begins + service
        self._timeline.push(self._free_at, Site.arrive, target, (data, site.name))
