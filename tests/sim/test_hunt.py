"""Hunting and shrinking: a broken recipe is found, and what is left of the failure is small."""

import pytest

from inga.recipes import Recipe, find
from inga.recipes import recipe as registry
from inga.sim.board import replay
from inga.sim.hunt import case, explain, hunt, try_seed
from inga.sim.schedule import Schedule
from inga.sim.shrink import breaks, shrink_case, shrink_schedule
from inga.trial.trial import Trial

from .mutants import on_board, whole

PROMISES = find("causal").guarantees


@pytest.fixture
def boastful(monkeypatch: pytest.MonkeyPatch) -> str:
    """A recipe that is fifo and promises causal order."""
    recipe = Recipe("boastful", whole("fifo"), PROMISES, "take", "causal")
    monkeypatch.setitem(registry._recipes, "boastful", recipe)
    return "boastful"


@pytest.mark.parametrize("order", ["none", "fifo", "causal"])
def test_nothing_is_found_where_nothing_is(order: str) -> None:
    assert hunt(order, 300) == (300, None)


def test_a_seed_is_the_same_group_everywhere() -> None:
    assert case("causal", 42) == case("causal", 42)
    assert case("causal", 42) != case("causal", 44)
    groups = [case("causal", seed) for seed in range(0, 400, 2)]
    for name in ("members", "loss", "dup", "reorder", "subset", "window", "datagram", "echo", "size"):
        assert len({getattr(group, name) for group in groups}) > 1, f"{name} is never varied"


def test_a_broken_promise_is_found_and_shrunk(boastful: str) -> None:
    done, failure = hunt(boastful, 400)
    assert failure is not None and done < 400
    assert failure.schedule is not None
    schedule = Schedule.parse(failure.schedule)
    assert breaks(schedule, on_board("fifo"), PROMISES)
    assert len({event.message for event in schedule.events}) <= 3
    assert replay(failure.schedule, "causal", sites=3).oracle.violations.total() == 0
    assert try_seed(boastful, failure.seed) is not None


def test_an_explanation_can_be_said_again(boastful: str) -> None:
    seed = next(seed for seed in range(1, 400, 2) if try_seed(boastful, seed))
    why = try_seed(boastful, seed)
    assert why is not None
    failure = explain(boastful, seed, why)
    assert failure.seed == seed and failure.why == why
    assert failure.schedule is not None and failure.schedule in failure.command


LONG = "A!1 C!7 1>B 7>B B!2 1>>B A!3 2>C 7>A C!4 3>B 4>A 2>A B!5 5>C 1>C 3>C 5>A 4>B A!6 6>B 6>C"


def test_a_schedule_is_shrunk_until_nothing_can_be_left_out() -> None:
    def fails(schedule: Schedule) -> bool:
        return breaks(schedule, on_board("fifo"), ("causal",), sites=3)

    small = shrink_schedule(Schedule.parse(LONG), fails)
    assert fails(small)
    assert str(small) == "A!1 1>B B!2 2>C"
    for at in range(len(small.events)):
        assert not fails(Schedule(small.events[:at] + small.events[at + 1 :]))


def test_only_what_fails_can_be_shrunk() -> None:
    with pytest.raises(AssertionError, match="failing"):
        shrink_schedule(Schedule.parse(LONG), lambda schedule: False)


def test_a_case_is_shrunk_to_what_matters() -> None:
    large = Trial(members=6, messages=20, loss=0.3, dup=0.2, reorder=0.1, subset=2, size=900, seed=3)
    small = shrink_case(large, lambda each: each.loss > 0 and each.messages >= 3)
    assert (small.members, small.messages, small.loss) == (2, 3, 0.3)
    assert (small.dup, small.reorder, small.subset, small.size) == (0.0, 0.0, None, Trial().size)
    assert small.seed == 3
