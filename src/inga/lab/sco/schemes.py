"""Schemes by which the destinations of a message learn that all of them have it, as a small event simulation.

    C0  each destination answers the sender at once; when all have answered, the sender confirms to them at once
    C1  the same, but answers and confirmations wait for a data message to the same member, at most k
    D0  each destination reports to the sender and all other destinations at once
    D1  the same, but waiting as in C1: what the SCO protocol does
    F0  as C0, led by one process for all messages: a sender passes its message to that controller, which forwards it
    F1  the same, but waiting as in C1

The figures of the paper show the first four. Its other form of centralized control, the fixed controller, is F0 and F1 here; that
process is not a member and has no messages of its own, so that the numbers do not depend on which member it would be.

Every member sends `a` data messages per time unit at a phase of its own, each to `d` random others. A PDU is one
copy to one receiver, takes `r`, is never lost, and carries everything that its sender owes its receiver. Measured are
PDUs per data message, the time from a send until a destination knows that all have the message, and the PDUs per time unit that the
busiest process sends and receives.

From "Selective causally ordered group communication", section 4.
"""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from inga.model.errors import UsageError
from inga.trial.world import Agenda

SCHEMES = ("C0", "C1", "D0", "D1")
"""The schemes in the paper's figures."""
CONTROLLED = ("F0", "F1")
"""The schemes with a fixed controller."""
ROUND = 4.0
"""The time that a PDU takes, r."""


@dataclass(frozen=True, slots=True)
class SchemeLoad:
    """The load of a simulation: n members, d destinations, deferral k, duration, seed, a messages per member and time unit."""

    scheme: str
    members: int = 10
    destinations: int = 5
    delay: float = 4.0  # k
    time: float = 1000.0  # in which messages count
    seed: int = 0
    rate: int = 1  # a

    def __post_init__(self) -> None:
        known = SCHEMES + CONTROLLED
        if self.scheme not in known:
            raise UsageError(f"no scheme {self.scheme!r}; there are {', '.join(known)}")
        if not 1 <= self.destinations < self.members:
            raise UsageError(f"{self.destinations} destinations among {self.members - 1} others")
        if self.rate < 1:
            raise UsageError(f"members send at least one message per time unit, not {self.rate}")


class SchemeCosts(NamedTuple):
    """Per data message: PDUs, and the mean time from its send until a destination knows that all have it. `busiest`: PDUs per time
    unit that the busiest process sends and receives."""

    pdus: float
    delay: float
    busiest: float = 0.0


class Sending(Agenda):
    """The load of section 4: which member sends when, and to which others. Phases and destinations follow from the seed."""

    def __init__(self, load: SchemeLoad) -> None:
        super().__init__()
        self.load = load
        # Time before and after the measured part: no message takes longer than four rounds with two waits.
        self._settling = 4 * ROUND + 2 * load.delay
        self.rng = Random(f"{load.seed}")  # the same load for every scheme
        self.sent = 0  # data messages within the measured time
        self.pdus = 0
        self.handled = [0] * (load.members + 1)  # PDUs sent and received by each; a controller is the last
        self.knowing: list[float] = []  # delays

    def run(self) -> SchemeCosts:
        load = self.load
        for member in range(load.members):
            self.at(self.rng.random() / load.rate, self._emit, member)
        self.play(load.time + 2 * self._settling)
        busiest = max(self.handled) / load.time
        return SchemeCosts(self.pdus / self.sent, sum(self.knowing) / len(self.knowing), busiest)

    @property
    def counts(self) -> bool:
        """Whether this moment is within the measured time."""
        return self._settling <= self.now < self._settling + self.load.time

    def count_pdu(self, member: int, to: int) -> None:
        self.pdus += self.counts
        self.handled[member] += self.counts
        self.handled[to] += self.counts

    def _emit(self, member: int) -> None:
        others = [m for m in range(self.load.members) if m != member]
        to = [others.pop(int(self.rng.random() * len(others))) for _ in range(self.load.destinations)]
        self.sent += self.counts
        self.send(member, to)
        self.at(self.now + 1.0 / self.load.rate, self._emit, member)

    def send(self, member: int, to: list[int]) -> None:
        """Send a data message; each subclass does this in its own way."""
        raise NotImplementedError


class Item:
    """A data message, and how many destinations are known to have it."""

    __slots__ = ("answers", "at", "counts", "known_by", "sender", "to")

    def __init__(self, sender: int, to: list[int], at: float, counts: bool) -> None:
        self.sender = sender
        self.to = to
        self.at = at
        self.counts = counts
        self.answers = 0  # C and F: how many answers the sender or controller has
        self.known_by = dict.fromkeys(to, 1)  # D: of how many destinations each one knows that they have it


class Model(Sending):
    """All schemes, without any protocol: what members owe each other, when it leaves, and what its receivers learn."""

    def __init__(self, load: SchemeLoad) -> None:
        super().__init__(load)
        self._wait = load.delay if load.scheme in ("C1", "D1", "F1") else 0.0
        self._controller = load.members if load.scheme in CONTROLLED else None
        self._led = load.scheme in ("C0", "C1", *CONTROLLED)  # by the sender, or by the controller
        self._owed: dict[tuple[int, int], list[tuple[str, Item]]] = {}
        self._since: dict[tuple[int, int], float] = {}

    def send(self, member: int, to: list[int]) -> None:
        item = Item(member, to, self.now, self.counts)
        for other in to if self._controller is None else [self._controller]:
            self._transmit(member, other, item)

    def _transmit(self, member: int, to: int, item: Item | None = None) -> None:
        """Send a PDU with everything that is owed."""
        self.count_pdu(member, to)
        owed = self._owed.pop((member, to), [])
        self._since.pop((member, to), None)
        self.at(self.now + ROUND, self._arrive, member, to, item, owed)

    def _owe(self, member: int, to: int, what: str, item: Item) -> None:
        key = (member, to)
        self._owed.setdefault(key, []).append((what, item))
        if not self._wait:
            self._transmit(member, to)
        elif key not in self._since:
            self._since[key] = self.now
            self.at(self.now + self._wait, self._give_up, key, self.now)

    def _give_up(self, key: tuple[int, int], since: float) -> None:
        """Send what is owed, as no data message was sent in the meantime."""
        if self._since.get(key) == since:
            self._transmit(*key)

    def _arrive(self, src: int, me: int, item: Item | None, owed: list[tuple[str, Item]]) -> None:
        for what, about in owed:
            if what == "answer":
                self._answered(me, about)
            elif what == "confirmation":
                self._know(about)
            elif me in about.known_by:  # else we are the message's sender
                self._heard(me, about)
        if item is not None:
            self._accept(me, item)

    def _accept(self, me: int, item: Item) -> None:
        if me == self._controller:
            for other in item.to:
                self._transmit(me, other, item)
            return
        if self._led:
            self._owe(me, item.sender if self._controller is None else self._controller, "answer", item)
            return
        if item.known_by[me] == len(item.to):
            self._know(item)
        for other in (item.sender, *item.to):
            if other != me:
                self._owe(me, other, "report", item)

    def _answered(self, me: int, item: Item) -> None:
        item.answers += 1
        if item.answers == len(item.to):
            for other in item.to:
                self._owe(me, other, "confirmation", item)

    def _heard(self, me: int, item: Item) -> None:
        item.known_by[me] += 1
        if item.known_by[me] == len(item.to):
            self._know(item)

    def _know(self, item: Item) -> None:
        if item.counts:
            self.knowing.append(self.now - item.at)
