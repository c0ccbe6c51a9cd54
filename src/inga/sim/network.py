"""The links between members: they lose, duplicate, delay and reorder datagrams, and count the traffic."""

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
        """The longest delay of a copy that is not reordered, in seconds; if it is set, every such copy takes exactly that long."""
        return self.faults.delay_max

    @delay.setter
    def delay(self, seconds: float) -> None:
        self.faults = Faults(self.faults.loss, self.faults.duplicate, self.faults.reorder, seconds, seconds)

    def fates(self, rng: Rng) -> list[float]:
        """Return the delays after which the copies of a datagram sent now arrive: none if it is lost, two if it is duplicated."""
        return self.faults.fates(rng)


class Network:
    """Links from every site to every other."""

    def __init__(self, timeline: Timeline, sites: list[Site], faults: Faults) -> None:
        """`sites` is the simulator's own list: sites that are added there later can be reached too."""
        self.bytes = 0
        self.sent_at = 0.0  # when a member last sent a datagram
        self.sent = 0  # datagrams of members, to members or to everybody
        self.lost = 0  # copies
        self.cut: set[tuple[int, int]] = set()  # links that are cut at present: all copies on them are lost
        self._severed: set[tuple[int, int]] = set()  # links that are cut for ever
        self.links = [[Link(faults) for _ in sites] for _ in sites]
        self.listeners: list[Callable[[Site, Site, bytes], None]] = []  # called with every copy: attackers
        self._timeline = timeline
        self._sites = sites
        self._faults = faults  # of links to and from newcomers

    def grow(self) -> None:
        """Connect the site that was added last."""
        for row in self.links:
            row.append(Link(self._faults))
        self.links.append([Link(self._faults) for _ in self._sites])

    def calm(self) -> None:
        """End all faults but the delays and the severed links: from now on nothing is lost, duplicated or reordered."""
        self.heal()
        for row in self.links:
            for link in row:
                link.faults = _calmed(link.faults)
        self._faults = _calmed(self._faults)

    def part(self, *parts: Sequence[Site]) -> None:
        """Cut the network into these parts: from now on nothing passes between them."""
        of = {site.index: number for number, part in enumerate(parts) for site in part}
        self.cut = {(a, b) for a in of for b in of if of[a] != of[b]}

    def sever(self, source: Site, target: Site) -> None:
        """Cut the link from one site to another for ever; `heal` and `calm` do not restore it."""
        self._severed.add((source.index, target.index))

    def heal(self) -> None:
        self.cut.clear()

    def transmit(self, site: Site, address: Address, datagram: Datagram) -> None:
        """Send a datagram of a member, to one other or to everybody, newcomers included."""
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
        """Send a datagram of a newcomer."""
        for target in self._targets(site, address):
            if target is not site:
                self.copy(site, target, joined(datagram))

    def _targets(self, site: Site, address: Address) -> list[Site]:
        """Return the sites that an address reaches. If members have no addresses of their own, that is one member if the address
        is an index, else everybody."""
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
        """Send one copy of a datagram over a link. Its fate is decided now, when it leaves."""
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
