"""Round trips in virtual time, for rates at which one of them takes a minute."""

from inga.lab.remiop.trips import ANSWER, ANSWER_BYTES, MEMBERS, REQUEST, Setup, Trip, summed_up
from inga.layers.shape import Faults
from inga.model.delivery import Delivery
from inga.recipes import Options
from inga.sim.simulator import Sim

LAN = Faults(delay_min=0.0002, delay_max=0.0002)
"""A local network of the paper's time: a fifth of a millisecond, nothing lost, nothing overtakes."""


def simulate(trial: Setup, rounds: int, seed: int = 1) -> Trip:
    """Some round trips, one after the other, in one group."""
    sim = Sim(
        *MEMBERS,
        order=trial.stack,
        options=Options(protocol=trial.protocol),
        faults=LAN,
        seed=seed,
        record=False,
    )
    asker, *others = sim.sites
    answered: list[float] = []

    def answer(delivery: Delivery) -> bytes | None:
        return ANSWER * ANSWER_BYTES if delivery.data[:1] == REQUEST else None

    def listen(delivery: Delivery) -> None:
        if delivery.data[:1] == ANSWER:
            answered.append(sim.now)

    for site in others:
        site.react = answer
    asker.react = listen
    taken: list[float | None] = []
    for _ in range(rounds):
        answered.clear()
        started = sim.now
        asker.send(REQUEST * trial.bytes)
        asker.send(ANSWER * ANSWER_BYTES)
        sim.run()
        whole = len(answered) == len(others)
        taken.append(1000 * (max(answered) - started) if whole else None)
    counts = [site.stack.counts for site in sim.sites]
    nacks, repairs = (sum(each[name] for each in counts) for name in ("nack", "repair"))
    return summed_up(trial, taken, 0, nacks, repairs)
