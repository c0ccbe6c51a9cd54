"""What is said in a trial: the same for the same seed, in the wanted measure, and sensible."""

from random import Random

import pytest

from inga.model.errors import UsageError
from inga.trial.workload import ANSWERS, HEADER, Workload, number_of


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"members": 0}, "0 members"),
        ({"messages": -1}, "-1 messages"),
        ({"size": HEADER - 1}, "--size"),
        ({"rate": 0.0}, "rate"),
        ({"subset": 0}, "--subset 0"),
        ({"subset": 4}, "3 others"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Workload(**{"members": 4, "messages": 5, **wrong})


def test_a_seed_fixes_the_plan() -> None:
    workload = Workload(4, 200, subset=2)

    def plan(seed: int) -> list[object]:
        rng = Random(seed)
        return [*workload.plan(rng), *(workload.destinations(rng, 1) for _ in range(50))]

    assert plan(7) == plan(7)
    assert plan(7) != plan(8)


def test_gaps_and_answers_in_the_wanted_measure() -> None:
    plan = list(Workload(4, 5000, rate=50.0).plan(Random(1)))
    assert len(plan) == 5000
    gaps = [gap for gap, _ in plan]
    assert min(gaps) >= 0
    assert 0.019 < sum(gaps) / 5000 < 0.021
    assert 0.61 < sum(gap < 0.02 for gap in gaps) / 5000 < 0.65, "exponential: 1 - 1/e"
    assert ANSWERS - 0.03 < sum(answers for _, answers in plan) / 5000 < ANSWERS + 0.03


def test_destinations_are_others_and_as_many_as_asked() -> None:
    workload, rng = Workload(5, 1, subset=2), Random(1)
    chosen = {workload.destinations(rng, 3) for _ in range(300)}
    assert all(mask is not None and mask.bit_count() == 2 and not mask >> 3 & 1 for mask in chosen)
    assert len(chosen) == 6, "all pairs of the four others"
    assert Workload(5, 1).destinations(rng, 3) is None


def test_a_message_carries_its_number() -> None:
    for size in (HEADER, 64):
        payload = Workload(2, 1, size).payload(70_000)
        assert len(payload) == size
        assert number_of(payload) == number_of(memoryview(payload)) == 70_000
