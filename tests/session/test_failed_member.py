"""A member that fails while others talk says goodbye like any other, over links that lose every third copy.

It has sent nothing itself: what a failed member sent and only some of the others have is a matter of views with failures.
"""

from functools import partial

import pytest

from inga.layers.shape import Faults
from inga.model.errors import Gap
from inga.recipes import Options
from inga.sim.simulator import Sim

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


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", ["fifo", "vector", "co", "sco"])
def test_it_blocks_nobody(order: str, seed: int) -> None:
    sim = Sim(*NAMES, order=order, seed=seed, faults=LOSSY, options=Options(flow={"window": 3000}))
    alice, bob, cathy = (sim[name] for name in NAMES)
    for number in range(40):
        for site in (alice, bob):
            sim.at(number / 1000, site, partial(site.send, b"%d" % number + b"." * 400))

    def fail() -> None:
        sim.oracle.crash(cathy.index)
        cathy.waiting.clear()
        cathy.stack.fail(Gap("the disk is full"))

    sim.at(0.01 + 0.01 * seed, cathy, fail)
    run_on(sim)
    assert cathy.stack.has_left
    for site in (alice, bob):
        assert site.stack.left == {cathy.index} and site.stack.writable and not site.waiting
        site.send(f"the end, says {site.name}".encode())
    run_on(sim)
    assert bob.texts[-1] == "the end, says alice" and alice.texts[-1] == "the end, says bob"
    assert alice.stack.settled and bob.stack.settled
    sim.check()
