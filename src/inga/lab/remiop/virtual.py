"""Round trips in virtual time, for rates at which one of them takes a minute."""

from typing import Any

from inga.corba.multicast.fragments import Strategy
from inga.corba.multicast.transport import Miop
from inga.corba.orders import REPEATS
from inga.lab.remiop.live import FRAME, QUEUE, RATE
from inga.lab.remiop.trips import ANSWER, ANSWER_BYTES, MEMBERS, REQUEST, Setup, Trip, summed_up
from inga.layers.shape import Faults
from inga.model.delivery import Delivery
from inga.recipes import Options
from inga.recipes.standard import NONE
from inga.recipes.transports import Composition
from inga.sim.network import Link
from inga.sim.simulator import Sim
from inga.stack.stack import Rng

MESSAGE_MAX = 1 << 20
"""The size in octets up to which a message is one request."""

LAN = Faults(delay_min=0.0002, delay_max=0.0002)
"""A local network of the paper's time: a delay of a fifth of a millisecond, no loss, no reordering."""


class _NarrowLink(Link):
    """A link with the rate and the queue of the narrow path; datagrams that arrive when the queue is full are lost."""

    def __init__(self, sim: Sim) -> None:
        super().__init__(LAN)
        self._sim = sim
        self._free = 0.0  # when the queue will be empty

    def fates(self, rng: Rng) -> list[float]:
        """Return the delay of a datagram, or nothing if it is lost. Every datagram counts as a full one."""
        now, each = self._sim.now, 8 * FRAME / (1000 * RATE)
        waiting = max(0.0, self._free - now)
        if waiting / each * FRAME + FRAME > QUEUE:
            return []
        self._free = now + waiting + each
        return [LAN.delay_max + waiting + each]


def simulate(
    trial: Setup,
    rounds: int,
    seed: int = 1,
    *,
    narrow: bool = False,
    strategy: type[Strategy[Any]] | None = None,
) -> Trip:
    """Run some round trips one after the other in one group. `narrow`: packets of the first member pass through the queue of the
    narrow path. `strategy` replaces ReMIOP."""
    sim = Sim(
        *MEMBERS,
        order=trial.stack,
        options=Options(echo=True, protocol=trial.protocol),
        faults=LAN,
        seed=seed,
        datagram_max=MESSAGE_MAX,
        build=None
        if strategy is None
        else Composition(trial.stack, NONE, {"": Miop(strategy, repeats=REPEATS)}),
        record=False,
    )
    asker, *others = sim.sites
    for other in others if narrow else ():
        sim.network.links[asker.index][other.index] = _NarrowLink(sim)
    answered: list[float] = []

    def answer(delivery: Delivery) -> bytes | None:
        return ANSWER * ANSWER_BYTES if delivery.data[:1] == REQUEST else None

    def listen(delivery: Delivery) -> bytes | None:
        if delivery.data[:1] == ANSWER:
            answered.append(sim.now)
        return answer(delivery)

    for site in others:
        site.react = answer
    asker.react = listen
    taken: list[float | None] = []
    for _ in range(rounds):
        answered.clear()
        started = sim.now
        asker.send(REQUEST * trial.bytes)
        sim.run()
        whole = len(answered) == len(MEMBERS)
        taken.append(1000 * (max(answered) - started) if whole else None)
    counts = [site.stack.counts for site in sim.sites]
    nacks, repairs = (sum(each[name] for each in counts) for name in ("nack", "repair"))
    return summed_up(trial, taken, sim.network.lost, nacks, repairs)
