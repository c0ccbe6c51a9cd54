"""Sites that broadcast to each other, with the truth kept as explicit sets of known messages.

The clocks, inboxes and frontiers under test run along; beside each inbox runs the plain hold queue of
textbooks, a list scanned with full vectors. A list of numbers, whatever they are, is a whole run.
"""

from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from inga.causality.clock import SiteClock
from inga.causality.frontier import Frontier
from inga.causality.inbox import DUPLICATE, HELD, RELEASED, Inbox
from inga.model.stamp import Deps, Stamp

Id = tuple[int, int]  # (src, seq)

choices = st.lists(st.integers(0, 2**20), min_size=20, max_size=150)


SEEDS = range(60)


def long_run(seed: int) -> list[int]:
    """A run longer than Hypothesis likes to make: with held messages, duplicates and unread queues."""
    rng = Random(seed)
    return [rng.getrandbits(20) for _ in range(400)]


class Message(NamedTuple):
    src: int
    seq: int
    deps: Deps  # as the clock says
    stamp: Stamp  # likewise
    causes: frozenset[Id]  # the truth
    view: int = 1

    @property
    def id(self) -> Id:
        return self.src, self.seq

    @property
    def vector(self) -> list[int]:
        """Of the truth: how many of each sender are in the past, this message included."""
        counts = [0] * len(self.deps)
        for src, _ in {*self.causes, self.id}:
            counts[src] += 1
        return counts


class ScanBuffer:
    """The hold queue by brute force."""

    def __init__(self, members: int) -> None:
        self.vector = [0] * members
        self.buffer: list[Message] = []

    def offer(self, message: Message) -> tuple[int, set[Id]]:
        if message.seq <= self.vector[message.src] or message in self.buffer:
            return DUPLICATE, set()
        self.buffer.append(message)
        released = set()
        while ready := [m for m in self.buffer if self._passes(m)]:
            self.buffer.remove(ready[0])
            self.vector[ready[0].src] += 1
            released.add(ready[0].id)
        return (RELEASED if message.id in released else HELD), released

    def _passes(self, message: Message) -> bool:
        return message.seq == self.vector[message.src] + 1 and all(
            count <= mine
            for k, (count, mine) in enumerate(zip(message.vector, self.vector, strict=True))
            if k != message.src
        )


class Site:
    def __init__(
        self, index: int, members: int, clock: type[SiteClock] = SiteClock, inbox: type[Inbox[Any]] = Inbox
    ) -> None:
        self.index = index
        self.clock = clock(index, members)
        self.inbox: Inbox[Message] = inbox(index, members)
        self.scan = ScanBuffer(members)
        self.frontier = Frontier()
        self.known: set[Id] = set()
        self.queue: list[Message] = []  # released, not taken
        self.released: list[Id] = []
        self.own: set[Id] = set()


class World:
    def __init__(self, sites: int, **kinds: Any) -> None:
        """`kinds`: other clocks or inboxes."""
        self.sites = [Site(index, sites, **kinds) for index in range(sites)]
        self.messages: dict[Id, Message] = {}
        self.under_way: list[tuple[Message, Site]] = []
        self.arrived: list[tuple[Message, Site]] = []

    def run(self, choices: list[int], *, finish: bool = True) -> "World":
        for choice in choices:
            self.step(choice)
        if finish:
            self.finish(sum(choices))
        return self

    def step(self, choice: int) -> None:
        what, choice = choice % 8, choice // 8
        site = self.sites[choice % len(self.sites)]
        if what < 2:
            self.send(site)
        elif what < 5 and self.under_way:
            self.arrive(*self.under_way.pop(choice % len(self.under_way)))
        elif what < 6 and self.arrived:
            self.arrive(*self.arrived[choice % len(self.arrived)])
        elif site.queue:
            self.take(site)

    def finish(self, choice: int) -> None:
        """Let everything arrive, in some order, and be taken."""
        while self.under_way:
            choice = (choice * 6364136223846793005 + 1442695040888963407) % 2**64
            self.arrive(*self.under_way.pop((choice >> 33) % len(self.under_way)))
        for site in self.sites:
            while site.queue:
                self.take(site)

    def send(self, site: Site) -> Message:
        seq, deps, stamp = site.clock.stamp()
        message = Message(site.index, seq, deps, stamp, frozenset(site.known))
        assert message.id not in self.messages
        self.messages[message.id] = message
        site.inbox.own(seq)
        site.scan.vector[site.index] = seq
        site.known.add(message.id)
        site.own.add(message.id)
        self.added(site, message)
        self.under_way += [(message, other) for other in self.sites if other is not site]
        return message

    def arrive(self, message: Message, site: Site) -> None:
        self.arrived.append((message, site))
        out: list[Message] = []
        answer = site.inbox.offer(message.src, message.seq, message.stamp.delta, message, out)
        expected, released = site.scan.offer(message)
        assert answer == expected
        assert {m.id for m in out} == released
        assert len(out) == len(released)
        assert site.inbox.vector == site.scan.vector
        assert site.inbox.held == len(site.scan.buffer)
        assert sum(items for _, _, items in site.inbox.missing()) == site.inbox.held
        for k, count, _ in site.inbox.missing():
            assert site.inbox.vector[k] < count, "something waits for what is here"
        for each in out:  # the order within what one arrival releases counts too
            assert each.causes <= {*site.released, *site.own}
            site.released.append(each.id)
        site.queue += out

    def take(self, site: Site) -> Message:
        message = site.queue.pop(0)
        site.clock.take(message.src, message.seq)
        site.known.add(message.id)
        self.added(site, message)
        return message

    def added(self, site: Site, message: Message) -> None:
        """A message was sent or taken at the site: tests that watch the frontier override this."""
