"""The judge of trials with objects: runs made by hand, one for each way to break a promise."""

from random import Random
from typing import Any

import pytest

from inga.model.errors import UsageError
from inga.obg import check_compatible
from inga.trial.calls import CONFLICTS, CallJudge, CallLoad, tally_class

ADD, PUT, LOOK = ("tally1", 0, 1, "add"), ("tally1", 0, 2, "put"), ("tally1", 1, 1, "look")
LATER = ("tally1", 1, 2, "put")


def judged(first: Any, second: Any, states: Any = ((0, 0), (0, 0)), adds: Any = None) -> CallJudge:
    judge = CallJudge(CallLoad(2, 3, 1))
    judge.told(adds or {})
    judge.saw("alice", first, {"tally1": states[0]})
    judge.saw("bob", second, {"tally1": states[1]})
    judge.finish()
    return judge


def test_what_is_right_is_not_blamed() -> None:
    assert not judged([ADD, PUT, LATER], [PUT, ADD, LATER], ((7, 3), (7, 3)), {"tally1": 3}).violations


@pytest.mark.parametrize(("one", "other"), [(PUT, LATER), (ADD, LOOK), (LOOK, PUT)])
def test_conflicting_requests_in_two_orders(one: Any, other: Any) -> None:
    judge = judged([one, other], [other, one])
    assert judge.violations == {"object": 1}
    assert f"bob began {other[3]} {other[1:3]} before {one[3]} {one[1:3]} at tally1" in judge.witnesses[0]


def test_something_in_between_hides_nothing() -> None:
    assert judged([PUT, ADD, LATER], [ADD, LATER, PUT]).violations == {"object": 1}


def test_copies_that_end_differently_and_sums_that_are_wrong() -> None:
    assert judged([], [], ((1, 0), (2, 0))).violations == {"replicas": 1}
    assert judged([], [], ((0, 4), (0, 4)), {"tally1": 5}).violations == {"complete": 2}
    judge = judged([], [])
    judge.unanswered("alice", "put")
    assert judge.violations == {"complete": 1} and "put of alice never ended" in judge.witnesses[0]


def test_the_plan_has_everything_in_it_and_is_the_same_every_time() -> None:
    load = CallLoad(3, 60, 2)
    one, other = ([asked for _, asked in load.plan(Random(1), 0)] for _ in range(2))
    assert one == other
    assert {asked.kind for asked in one} == {"add", "put", "look", "oneway", "both", "abort"}
    assert {asked.one for asked in one} == {"tally1", "tally2"}
    assert len({asked.mark for asked in one}) == 60


CALLS = [("add", 2), ("add", 5), ("take", 2), ("put", 3), ("put", 4), ("look",)]


def test_a_tally_is_declared_as_it_is() -> None:
    assert check_compatible(tally_class(), [(0, 0), (5, 2)], CALLS) == []
    assert {tuple(pair) for pair in tally_class().conflicts.pairs} - {("look", "take")} == set(CONFLICTS)


@pytest.mark.parametrize("wrong", CONFLICTS)
def test_what_is_declared_wrongly_is_found_by_trying(wrong: tuple[str, str]) -> None:
    found = check_compatible(tally_class(wrong), [(0, 0), (5, 2)], CALLS, show=None)
    assert {tuple(sorted(call.op for call in each.calls)) for each in found} == {wrong}


def test_only_what_conflicts_can_be_declared_wrongly() -> None:
    with pytest.raises(UsageError, match="only what conflicts can be declared wrongly: add/look"):
        tally_class(("add", "put"))
    with pytest.raises(UsageError, match="needs at least one"):
        CallLoad(2, 1, 0)
