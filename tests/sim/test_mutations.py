"""Break the code once on purpose: each of these mutations must be seen by the check it is there for.

Beside each stands the same check of the right rule, on the same seeds: it is the mutation that is seen.
"""

from random import Random

import pytest

from inga.layers.shape import Faults
from inga.recipes import Options, find
from inga.sim import Sim
from inga.sim.board import wander
from inga.sim.explore import Explorer
from inga.trial.oracle import Oracle
from inga.trial.workload import Workload

from .mutants import on_board, whole

PEOPLE = "alice bob cathy dave".split()
PROMISES = (*find("causal").guarantees, "flags")
SEEDS = range(12)
PLAIN = Faults(delay_min=0.001, delay_max=0.01, reorder=0.2)


def simulate(
    mutant: str | None,
    seed: int,
    *,
    faults: Faults = PLAIN,
    options: Options | None = None,
) -> Sim:
    """A whole group in virtual time; without a mutant, the right one."""
    sim = Sim(
        *PEOPLE,
        seed=seed,
        faults=faults,
        options=options,
        build=None if mutant is None else whole(mutant),
        record=False,
    )
    sim.load(Workload(4, 10))
    sim.run(until=60.0)
    return sim


def broken_in_virtual_time(mutant: str | None, **more: Faults | Options) -> int:
    """How many seeds break a promise."""
    broken = 0
    for seed in SEEDS:
        sim = simulate(mutant, seed, **more)  # type: ignore[arg-type]
        try:
            sim.check()
        except AssertionError:
            broken += 1
    return broken


def broken_on_the_board(scheme: str, duplicates: float = 0.1) -> tuple[int, Oracle]:
    """How many random schedules break a promise, as `inga hunt` plays them; and the last verdict."""
    broken = 0
    for seed in range(60):
        rng = Random(seed)
        oracle = wander(rng, 2 + seed % 3, 8, on_board(scheme), duplicates=duplicates).oracle
        broken += oracle.count(PROMISES) > 0
    return broken, oracle


def test_the_right_rules_break_nothing() -> None:
    assert broken_in_virtual_time(None) == 0
    assert broken_in_virtual_time("scan") == 0
    assert broken_on_the_board("causal")[0] == 0
    assert broken_on_the_board("scan")[0] == 0


def test_strict_successor() -> None:
    assert Explorer(2, 2, on_board("causal")).run().violations == 0
    assert Explorer(2, 2, on_board("strict")).run().violations > 0
    assert broken_on_the_board("strict")[0] > 30
    assert broken_in_virtual_time("strict") == len(SEEDS)
    with pytest.raises(AssertionError, match="never took"):
        simulate("strict", 1).check()


def test_stamp_is_a_live_reference() -> None:
    """Seen as soon as something waits between the stamp and the wire: here, in a narrow window."""
    narrow = Options(flow={"window": 1500})
    assert broken_in_virtual_time(None, options=narrow) == 0
    assert broken_in_virtual_time("live", options=narrow) == len(SEEDS)


def test_stamp_from_released_counts() -> None:
    assert Explorer(2, 2, on_board("causal"), queues=True).run().violations == 0
    assert Explorer(2, 2, on_board("released"), queues=True).run().violations > 0
    broken, _ = broken_on_the_board("released")
    assert broken > 20
    assert broken_in_virtual_time("released") == len(SEEDS)
    with pytest.raises(AssertionError, match="flags"):
        simulate("released", 1).check()


def test_no_tail_loss_heartbeat() -> None:
    lossy = Faults(loss=0.3, delay_min=0.001, delay_max=0.01)
    assert broken_in_virtual_time(None, faults=lossy) == 0
    assert broken_in_virtual_time("no-heartbeat", faults=lossy) > len(SEEDS) // 2


def test_duplicate_counted() -> None:
    assert broken_on_the_board("twice", duplicates=0.0)[0] == 0, "without duplicates there is no difference"
    assert broken_on_the_board("twice", duplicates=0.2)[0] > 30
    assert broken_on_the_board("causal", duplicates=0.2)[0] == 0


def test_duplicate_counted_in_acknowledgements() -> None:
    """The same mistake one layer lower: what is acknowledged and was never received is lost."""
    doubling = Faults(loss=0.2, duplicate=0.3, delay_min=0.001, delay_max=0.01)
    assert broken_in_virtual_time(None, faults=doubling) == 0
    assert broken_in_virtual_time("counts-twice", faults=doubling) == len(SEEDS)


@pytest.mark.parametrize("scheme", ["head-only", "incomparable", "fifo-only"])
def test_other_wrong_rules(scheme: str) -> None:
    assert broken_on_the_board(scheme)[0] > 10


def test_own_copy_through_the_receive_test() -> None:
    """Nothing is ever delivered to a site that has sent something."""
    broken, oracle = broken_on_the_board("own-copy")
    assert broken > 50
    assert oracle.violations["complete"] > 0
