"""Trials in virtual time in which something befalls members: `inga sim --crash K --return K --pause K --partition ...`."""

import pytest

from inga.sim.network import Network
from inga.sim.trials import simulate_trial
from inga.trial.result import Result
from inga.trial.trial import Trial

ORDERS = ("none", "fifo", "causal", "co", "sco", "total", "object")


def played(order: str, **more: object) -> Result:
    given = {"members": 5, "messages": 100, "rate": 20.0, "detect": 0.5, **more}
    return simulate_trial(Trial(order, **given))  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ORDERS)
def test_two_crash_and_one_of_them_comes_back(order: str) -> None:
    result = played(order, crash=2, back=1, seed=3)
    assert result.violations == 0, result.witnesses
    course = result.course
    assert course is not None and not course.unsettled and len(course.stopped) == 3
    seconds = {what.split(maxsplit=1)[1]: each for what, each in course.settled.items()}
    assert 0.5 <= seconds["killed"] <= 1.5 and seconds["starts again"] < 0.5
    assert course.longest_stop <= 0.5 + 1.0


@pytest.mark.parametrize("order", ["causal", "sco", "total"])
def test_one_stands_still(order: str) -> None:
    result = played(order, pause=1, pause_for=2.0)
    assert result.violations == 0, result.witnesses
    assert result.course is not None and not result.course.unsettled and result.course.views >= 3


def test_one_stands_still_for_so_short_that_nobody_minds() -> None:
    result = played("causal", pause=1, pause_for=0.3, detect=1.0)
    assert result.course is not None and result.course.views == 1 and not result.course.unsettled
    assert result.delivered == result.expected


@pytest.mark.parametrize("order", ORDERS)
def test_the_network_is_cut(order: str) -> None:
    result = played(order, partition="alice,bob/cathy,dave,erin@1+2", seed=2)
    assert result.violations == 0, result.witnesses
    course = result.course
    assert course is not None and not course.unsettled and course.views >= 4
    cut, healed = course.settled.values()
    assert 0.5 <= cut <= 1.5 and healed <= 2.0


def test_a_network_that_never_heals_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Network.part
    monkeypatch.setattr(Network, "part", lambda self, *parts: part(self, *parts) if parts else None)
    result = played("causal", partition="alice,bob/cathy,dave,erin@1+2")
    assert result.course is not None and result.course.unsettled == ["the network is whole again"]


@pytest.mark.parametrize(
    ("order", "what"),
    [
        ("total", {"crash": 2, "back": 1}),
        ("object", {"pause": 1, "pause_for": 2.0}),
        ("object", {"partition": "alice,bob/cathy,dave,erin@1+2"}),
    ],
)
def test_objects_have_one_state_afterwards(order: str, what: dict[str, object]) -> None:
    result = played(order, objects=2, rate=10.0, messages=50, **what)
    assert result.violations == 0, result.witnesses
    assert result.course is not None and not result.course.unsettled
    assert result.to_json()["committed"] > 50


def test_one_that_was_stopped_and_may_not_come_back_is_told_so() -> None:
    story: list[str] = []
    trial = Trial(
        "causal", members=3, messages=100, rate=20.0, detect=0.5, pause=1, pause_for=2.0, rejoin=False
    )
    course = simulate_trial(trial, say=story.append).course
    assert course is not None and not course.unsettled and course.views == 2
    assert any("told that it is excluded after" in line for line in story)
    assert not any(" back after " in line for line in story)


@pytest.mark.parametrize(
    ("order", "policy"), [("causal", "expel"), ("co", "expel"), ("sco", "skip"), ("total", "skip")]
)
def test_one_that_reads_nothing_is_left_out(order: str, policy: str) -> None:
    """With `skip` it comes back, and knows what it missed."""
    story: list[str] = []
    how = {"members": 3, "messages": 400, "size": 2000, "rate": 40.0}
    trial = Trial(order, slow="bob", slow_policy=policy, patience=1.0, **how)  # type: ignore[arg-type]
    result = simulate_trial(trial, say=story.append)
    assert result.violations == 0, result.witnesses
    course = result.course
    assert course is not None and not course.unsettled
    assert course.views == {"expel": 2, "skip": 3}[policy]
    assert 1.0 < course.settled["bob reads nothing"] < trial.stall_for
    assert ("bob reads again" in course.settled) == (policy == "skip")
    assert sum("bob is told what it missed: " in line for line in story) == (policy == "skip")


def test_a_slow_reader_slows_the_others_down() -> None:
    """Nothing is lost; who sends waits for the one that reads slowly."""
    fast = simulate_trial(Trial(members=3, messages=600, size=500, rate=300.0))
    slow = simulate_trial(Trial(members=3, messages=600, size=500, rate=300.0, slow="bob"))
    assert slow.violations == 0 and slow.delivered == slow.expected
    assert slow.seconds > 1.2 * fast.seconds
