"""A member that fails while all talk says goodbye like any other, over links that lose every third copy."""

from functools import partial

import pytest

from inga.layers.shape import Faults
from inga.model.errors import Gap
from inga.recipes import Options
from inga.sim.simulator import Sim
from inga.sim.site import Site

LOSSY = Faults(loss=0.3, delay_min=0.001, delay_max=0.005)
NAMES = ("alice", "bob", "cathy")


def run_on(sim: Sim) -> None:
    """The rest of the run: the simulator raises whenever the member that failed does something."""
    while True:
        try:
            sim.run()
        except Gap:
            continue
        return


def say(site: Site, text: bytes) -> None:
    """Something, unless it has failed."""
    if not site.stack.leaving:
        site.send(text)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", ["fifo", "vector", "co", "sco"])
def test_it_blocks_nobody(order: str, seed: int) -> None:
    sim = Sim(*NAMES, order=order, seed=seed, faults=LOSSY, options=Options(flow={"window": 3000}))
    alice, bob, cathy = (sim[name] for name in NAMES)
    cathy.pause_max = 0.0  # what it has not begun to read when it fails, its order says nothing of
    for number in range(40):
        for site in sim.sites:
            sim.at(number / 1000, site, partial(say, site, b"%d" % number + b"." * 400))

    def fail() -> None:
        sim.oracle.crash(cathy.index)
        cathy.waiting.clear()
        cathy.stack.fail(Gap("the disk is full"))

    sim.at(0.01 + 0.01 * seed, cathy, fail)
    run_on(sim)
    assert cathy.stack.has_left
    for site in (alice, bob):
        assert site.stack.view.names == ("alice", "bob") and site.stack.writable and not site.waiting
        site.send(f"the end, says {site.name}".encode())
    run_on(sim)
    assert bob.texts[-1] == "the end, says alice" and alice.texts[-1] == "the end, says bob"
    assert alice.stack.settled and bob.stack.settled
    sim.check()
