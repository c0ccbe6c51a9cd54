"""Break the code once on purpose: each of these mutations must be seen by the check it is there for.

Beside each stands the same check of the right rule, on the same seeds: it is the mutation that is seen.
The wrong rules of the ladder are put in the place of the right one as whole layers.
"""

from random import Random

import pytest

from inga.layers.shape import Faults, Shape
from inga.recipes import Options, find
from inga.sim import Sim
from inga.sim.board import Board, wander
from inga.sim.explore import Explorer
from inga.sim.schedule import Schedule
from inga.sim.shrink import breaks, shrink_schedule
from inga.trial.oracle import Oracle
from inga.trial.workload import Workload

from .mutants import on_board, whole
from .walks import wander_to_some

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
    assert broken_in_virtual_time("broadcast") == 0
    assert broken_on_the_board("causal")[0] == 0
    assert broken_on_the_board("broadcast")[0] == 0


@pytest.mark.hunt
@pytest.mark.parametrize("first", range(0, 100_000, 1000))
def test_a_hundred_thousand_random_schedules(first: int) -> None:
    """Up to six sites and 25 messages, with duplicates and queues; what breaks a promise is named as short as it gets."""
    for seed in range(first, first + 1000):
        board = wander(Random(seed), 2 + seed % 5, 1 + seed % 25, on_board("causal"), duplicates=0.2)
        assert not board.oracle.count(PROMISES), shortest(board, "causal")


def shortest(board: Board, scheme: str) -> str:
    """The least of a schedule that still breaks a promise."""

    def fails(schedule: Schedule) -> bool:
        return breaks(schedule, on_board(scheme), find("causal").guarantees)

    return str(shrink_schedule(Schedule(tuple(board.played)), fails))


def test_what_breaks_a_promise_is_named_as_short_as_it_gets() -> None:
    boards = (wander(Random(seed), 3, 12, on_board("strict")) for seed in range(60))
    broken = next(board for board in boards if board.oracle.count(PROMISES))
    assert shortest(broken, "strict").count("!") == 2


def test_strict_successor() -> None:
    assert Explorer(2, 2, on_board("causal")).run().violations == 0
    assert Explorer(2, 2, on_board("strict")).run().violations > 0
    assert broken_on_the_board("strict")[0] > 30
    assert broken_in_virtual_time("strict") == len(SEEDS)
    with pytest.raises(AssertionError, match="never took"):
        simulate("strict", 1).check()


def delayed(order: str, seed: int) -> int:
    """Violations of a run in which everything waits for 50 ms between its stamp and the wire."""
    sim = Sim(*PEOPLE, order=order, seed=seed, record=False, datagram_max=256)
    for site in sim.sites:
        shape = Shape()
        site.stack.views.replace("shape", shape)
        for other in site.stack.others:
            shape.delay(other, 0.05)
    sim.load(Workload(4, 10, size=120, rate=1000))  # each fills a bundle, so that none waits for another
    sim.run(until=60.0)
    return sim.finish().count(sim.guarantees)


def test_stamp_is_a_live_reference() -> None:
    """Seen as soon as something waits between the stamp and the wire."""
    for seed in SEEDS:
        assert delayed("vector", seed) == delayed("broadcast", seed) == 0
        assert delayed("live-vector", seed) > 0


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


WRONG_RULES = {
    "pairwise": "the causes of other senders are not looked at",
    "realtime": "the waiting time ends before the cause has come",
    "scalar": "one counter for all senders",
    "last-sender": "only the last receipt is named, and compared for equality",
    "last-sender-atleast": "only the last receipt is named",
    "last-sender-own": "only the last event is named",
    "strict": "counts that must be equal",
    "head-only": "only the head of the buffer is tested, duplicates stay in it",
    "at-once-replace": "incomparable, so delivered; the local stamp is replaced",
    "at-once-keep": "incomparable, so delivered; the local stamp is kept",
    "at-once-count": "incomparable, so delivered; and counted",
    "tree": "a leaf for each message that follows none",
    "own-copy": "the own copy goes through the receive test",
}


@pytest.mark.parametrize("scheme", WRONG_RULES)
def test_a_wrong_rule_in_the_place_of_the_right_one(scheme: str) -> None:
    """Random schedules with duplicates: many of them break a promise of causal order."""
    assert broken_on_the_board(scheme)[0] > 10, WRONG_RULES[scheme]


@pytest.mark.parametrize("scheme", ["history", "broadcast"])
def test_the_exact_rungs_break_nothing(scheme: str) -> None:
    assert broken_on_the_board(scheme)[0] == 0
    assert broken_in_virtual_time(scheme) == 0


def test_own_copy_through_the_receive_test() -> None:
    """Nothing is ever delivered to a site that has sent something."""
    broken, oracle = broken_on_the_board("own-copy")
    assert broken > 50
    assert oracle.violations["complete"] > 0


def broken_with_subsets(scheme: str) -> int:
    broken = 0
    for seed in range(40):
        oracle = wander_to_some(Random(seed), 2 + seed % 4, 8, on_board(scheme)).oracle
        broken += oracle.count(PROMISES) > 0
    return broken


@pytest.mark.parametrize("scheme", ["history-blind", "broadcast"])
def test_subsets_that_the_stamp_does_not_know_of(scheme: str) -> None:
    assert broken_with_subsets("history") == broken_with_subsets("vector") == 0
    assert broken_with_subsets(scheme) > 20
