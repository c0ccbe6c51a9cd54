"""The links between members: what they lose, double, delay and reorder, and how much went over them."""

from inga.layers.shape import Faults
from inga.sim.site import Site
from inga.sim.timeline import Timeline
from inga.stack.stack import Datagram, joined


class Link:
    """One direction between two members."""

    __slots__ = ("faults",)

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    @property
    def delay(self) -> float:
        return self.faults.delay_max

    @delay.setter
    def delay(self, seconds: float) -> None:
        self.faults = Faults(self.faults.loss, self.faults.duplicate, self.faults.reorder, seconds, seconds)


class Network:
    """Links from every site to every other."""

    def __init__(self, timeline: Timeline, sites: list[Site], faults: Faults) -> None:
        """`sites` is the simulator's own list: whoever is added there is reached from here."""
        self.bytes = 0
        self.sent_at = 0.0  # when the last datagram was
        self.lost = 0  # copies
        self.links = [[Link(faults) for _ in sites] for _ in sites]
        self._timeline = timeline
        self._sites = sites
        self._faults = faults  # of links to and from newcomers

    def grow(self) -> None:
        """Connect the site that came last."""
        for row in self.links:
            row.append(Link(self._faults))
        self.links.append([Link(self._faults) for _ in self._sites])

    def calm(self) -> None:
        """From now on nothing is lost, doubled or disordered."""
        for row in self.links:
            for link in row:
                link.faults = _calmed(link.faults)
        self._faults = _calmed(self._faults)

    def transmit(self, site: Site, address: int | None, datagram: Datagram) -> None:
        """A datagram of a member, to one other or to everybody; also to those that are about to join."""
        data = joined(datagram)
        targets = range(len(self._sites)) if address is None else (address,)
        self.bytes += len(data)
        self.sent_at = now = self._timeline.now
        trace = site.stack.trace
        full = trace is not None and trace.full
        for target in targets:
            if target == site.index:
                continue
            if full and target < len(site.stack.view):
                assert trace is not None
                trace.row("datagram_out", now, site.stack.view.number, peer=target, n=len(data))
            self.copy(site, self._sites[target], data)

    def copy(self, site: Site, target: Site, data: bytes) -> None:
        """What becomes of one copy is decided when it leaves."""
        timeline = self._timeline
        fates = self.links[site.index][target.index].faults.fates(timeline.rng)
        if not fates:
            self.lost += 1
        for delay in fates:
            timeline.push(timeline.now + delay, Site.arrive, target, (data, site.name))


def _calmed(faults: Faults) -> Faults:
    return Faults(delay_min=faults.delay_min, delay_max=faults.delay_max)
