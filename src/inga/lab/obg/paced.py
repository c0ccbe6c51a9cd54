"""δ for each pair of members in proportion to the delay between them, as the paper has it, compared with one δ for the group.

Members are at random places in a square, and the delay of a packet grows with the distance. Every δ a member shows another one
its clock, and requests packets that it lacks; packets that are not acknowledged within 2δ are sent again. As in the paper,
members do not request clocks, so δ decides how long requests wait. An acknowledgement takes the delay there, up to δ, and the
delay back: if δ is less than two delays, copies are repeated that were not lost. So δ is a little more than two delays: of the
pair, of the longest of all pairs, or of a mean pair.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import dist, sqrt
from random import Random
from statistics import fmean
from typing import NamedTuple

from inga.lab.experiments import Table
from inga.lab.obg.data import give_engine
from inga.lab.obg.load import DELAY, Load
from inga.lab.obg.played import ObjectSimulation
from inga.model.invocation import Message, Spoken
from inga.objects.actions import Observer, Transmit
from inga.objects.declare import ObjectClass
from inga.objects.engine import Engine
from inga.objects.invoke import Host
from inga.objects.links import NACK_MAX, REPAIRS_MAX, Links, Peer
from inga.objects.options import EngineOptions
from inga.objects.roster import Roster

GRAIN = 0.5
"""Time units between two checks for which members a δ has passed."""

FACTOR = 2.25
"""δ as a multiple of the delay."""

BY_PAIR, LONGEST, MEAN = "each pair its own", "one, for the longest", "one, for the mean"
PACES = (BY_PAIR, LONGEST, MEAN)


@dataclass(frozen=True)
class PaceTask:
    """One simulation."""

    pace: str
    n: int
    loss: float = 0.0
    seed: int = 0


class PaceMeans(NamedTuple):
    """Means of one simulation; counts are per request."""

    wait: float
    control: float
    repeated: float  # copies sent again
    lost: float


class PairLinks(Links):
    """The links of a member, with a δ for each other member."""

    deltas: dict[int, float]

    def tick(self, now: float, laggards: Iterable[int]) -> None:
        for member, peer in self.peers.items():
            if now >= peer.again:
                peer.again = now + self.deltas[member]
                self._repeat(now, member, peer)

    def _repeat(self, now: float, member: int, peer: Peer) -> None:
        self._ask(now, member, peer, range(peer.expected, min(peer.top + 1, peer.expected + NACK_MAX)))
        patience = 2 * self.deltas[member]
        old = [number for number, (_, at) in peer.copies.items() if now - at >= patience]
        for number in old[:REPAIRS_MAX]:
            self._repair(now, member, peer, number)
        self.beat(member)

    def _progress(self, peer: Peer) -> None:
        self.stirred = self.weighed = True


class PacedEngine(Engine):
    """An engine with `PairLinks`."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        options: EngineOptions,
        deltas: dict[int, float],
        *,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(me, roster, options, observer=observer)
        local = self.local
        links = PairLinks(me, roster, local.clock, options, local._send, local._evs)
        links.deltas = deltas
        self.links = local.links = links


class PacedSimulation(ObjectSimulation):
    """The load with half of the methods compatible with all, between members at random distances."""

    def __init__(self, pace: PaceTask) -> None:
        rng = Random(f"places {pace.n} {pace.seed}")
        places = [(rng.random(), rng.random()) for _ in range(pace.n)]
        low, high = DELAY
        self._delays_of = [
            [low + (high - low) * dist(one, other) / sqrt(2) for other in places] for one in places
        ]
        self._pace = pace
        self._losses = Random(f"losses {pace.n} {pace.seed}")
        self._lost = 0
        super().__init__(Load("methods", pace.n, 50, "object", pace.seed, looked_at=1))

    def _make_hosts(self, classes: dict[str, type[ObjectClass]]) -> list[Host]:
        n = self._pace.n
        options = EngineOptions(delta=GRAIN, grace=1000.0, announce=False)
        hosts = []
        for me in range(n):
            host = Host(me, self._roster, classes, options)
            give_engine(host, PacedEngine(me, self._roster, options, self._deltas(me), observer=self))
            hosts.append(host)
        return hosts

    def _deltas(self, me: int) -> dict[int, float]:
        n, pace = self._pace.n, self._pace.pace
        all_pairs = [self._delays_of[i][j] for i in range(n) for j in range(i)]
        group = max(all_pairs) if pace == LONGEST else fmean(all_pairs)
        return {
            other: FACTOR * (self._delays_of[me][other] if pace == BY_PAIR else group)
            for other in range(n)
            if other != me
        }

    def collect(self, member: int) -> float | None:
        kept: list[Transmit] = []
        for members, packet in self._to_send:
            come = tuple(each for each in members if self._losses.random() >= self._pace.loss)
            self._lost += (len(members) - len(come)) * isinstance(packet, Message)
            kept.append(Transmit(come, packet))
        self._to_send = kept
        return super().collect(member)

    def paced(self) -> PaceMeans:
        """Run the simulation, and return its means."""
        found, count = self.run(), len(self._load.requests)
        repeated = sum(host.engine.links.repaired for host in self._hosts)
        return PaceMeans(found.wait, found.control, repeated / count, self._lost / count)

    def _delay(self, member: int, target: int, packet: Spoken) -> float:
        return self._delays_of[member][target]


def paces(quick: bool) -> list[PaceTask]:
    """Return all simulations with different δ."""
    sizes, seeds = ((5,), 1) if quick else ((3, 5, 8), 4)
    return [
        PaceTask(pace, n, loss, seed)
        for n in sizes
        for loss in (0.0, 0.1)
        for pace in PACES
        for seed in range(seeds)
    ]


def tabulate_paces(found: dict[PaceTask, PaceMeans]) -> Table:
    """Return the means over seeds as a table."""
    groups: dict[tuple[int, float, str], list[PaceMeans]] = {}
    for pace, means in found.items():
        groups.setdefault((pace.n, pace.loss, pace.pace), []).append(means)
    rows = [
        [n, f"{loss:.0%}", pace, *(round(fmean(column), 2) for column in zip(*group, strict=True))]
        for (n, loss, pace), group in groups.items()
    ]
    return Table(["n", "loss", "delta", "wait", "control", "repeated", "lost"], rows)
