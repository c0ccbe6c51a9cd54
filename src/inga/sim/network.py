"""The links between members: what they lose, double, delay and reorder, and how much went over them."""

from collections.abc import Callable, Sequence

from inga.layers.shape import Faults
from inga.sim.site import Site
from inga.sim.timeline import Timeline
from inga.stack.native import Direct, Outsider
from inga.stack.stack import Address, Datagram, Rng, joined


class Link:
    """One direction between two members."""

    __slots__ = ("faults",)

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    @property
    def delay(self) -> float:
        """Seconds that a copy takes at most; set, it is what every copy takes."""
        return self.faults.delay_max

    @delay.setter
    def delay(self, seconds: float) -> None:
        self.faults = Faults(self.faults.loss, self.faults.duplicate, self.faults.reorder, seconds, seconds)

    def fates(self, rng: Rng) -> list[float]:
        """The delays after which copies of a datagram arrive that is sent now: none if it is lost."""
        return self.faults.fates(rng)


class Network:
    """Links from every site to every other."""

    def __init__(self, timeline: Timeline, sites: list[Site], faults: Faults) -> None:
        """`sites` is the simulator's own list: whoever is added there is reached from here."""
        self.bytes = 0
        self.sent_at = 0.0  # when the last datagram was
        self.sent = 0  # datagrams of members, to members or to everybody
        self.lost = 0  # copies
        self.cut: set[tuple[int, int]] = set()  # links over which nothing passes
        self._severed: set[tuple[int, int]] = set()  # the same, for ever
        self.links = [[Link(faults) for _ in sites] for _ in sites]
        self.listeners: list[Callable[[Site, Site, bytes], None]] = []  # strangers who hear everything
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
        self.heal()
        for row in self.links:
            for link in row:
                link.faults = _calmed(link.faults)
        self._faults = _calmed(self._faults)

    def part(self, *parts: Sequence[Site]) -> None:
        """From now on nothing passes between these."""
        of = {site.index: number for number, part in enumerate(parts) for site in part}
        self.cut = {(a, b) for a in of for b in of if of[a] != of[b]}

    def sever(self, source: Site, target: Site) -> None:
        """Nothing passes this way any more, however calm it becomes."""
        self._severed.add((source.index, target.index))

    def heal(self) -> None:
        self.cut.clear()

    def transmit(self, site: Site, address: Address, datagram: Datagram) -> None:
        """A datagram of a member, to one other or to everybody; also to those that are about to join."""
        data = joined(datagram)
        view = site.stack.view
        targets = self._targets(site, address)
        self.bytes += len(data)
        self.sent_at = now = self._timeline.now
        self.sent += not isinstance(address, Outsider | Direct)
        trace = site.stack.trace
        full = trace is not None and trace.full
        for target in targets:
            if target is site:
                continue
            if full and target.newcomer is None and (peer := view.index(target.stack.member)) is not None:
                assert trace is not None
                trace.row("datagram_out", now, view.number, peer=peer, n=len(data))
            self.copy(site, target, data)

    def ask(self, site: Site, address: Address, datagram: Datagram) -> None:
        """A datagram of one that is about to join."""
        for target in self._targets(site, address):
            if target is not site:
                self.copy(site, target, joined(datagram))

    def _targets(self, site: Site, address: Address) -> list[Site]:
        """Who is meant. Where all share one address, that is everybody, unless it is a member."""
        sim = site.sim
        if not sim.has_addresses:
            return (
                [sim.site_of(site.stack.view.members[address])] if isinstance(address, int) else self._sites
            )
        if isinstance(address, Outsider | Direct):
            places = [str(address.address)]
        else:
            members = () if site.newcomer is not None else site.stack.view.members
            places = [each.address for each in (members if address is None else [members[address]])]
        return [found for place in places if (found := sim.at_address(place)) is not None]

    def copy(self, site: Site, target: Site, data: bytes) -> None:
        """What becomes of one copy is decided when it leaves."""
        for listen in self.listeners:
            listen(site, target, data)
        timeline = self._timeline
        way = site.index, target.index
        if way in self.cut or way in self._severed:
            self.lost += 1
            return
        fates = self.links[site.index][target.index].fates(timeline.rng)
        if not fates:
            self.lost += 1
        for delay in fates:
            timeline.push(timeline.now + delay, Site.arrive, target, (data, site.name))


def _calmed(faults: Faults) -> Faults:
    return Faults(delay_min=faults.delay_min, delay_max=faults.delay_max)
