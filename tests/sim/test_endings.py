"""Members that end in the swarm: the judge notices those that should have gone on."""

from collections.abc import Callable
from typing import Any

import pytest

from inga.model.errors import Excluded
from inga.model.view import Member
from inga.session.door import Door
from inga.session.session import Session
from inga.sim.judge import judge
from inga.sim.simulator import INCARNATIONS
from inga.sim.swarm import Action, Plan

TALK = tuple(Action(0.02 * turn, turn % 3, "send", (40, None, 1)) for turn in range(12))
FLOOD = tuple(Action(0.1 * turn, turn % 3, "send", (300, None, 20)) for turn in range(9))
RETURNS = (Action(0.3, 2, "crash"), Action(2.3, 2, "return"))
PAUSES = (Action(0.3, 2, "pause", 1.5),)
STOPS_READING = (*FLOOD, Action(0.0, 2, "stop_reading", 4.5))
HASTY = {"slow": "skip", "patience": 0.2, "queue": 2000, "window": 2000}


def kinds(*actions: Action, **settings: Any) -> list[str]:
    plan = Plan("fifo", 3, actions=tuple(sorted((*TALK, *actions))), **{"detect": 0.5, **settings})
    return [found.kind for found in judge(plan)]


def ends(why: Callable[[Session], str]) -> Callable[..., None]:
    """A session that gives up where it should come back."""

    def excluded(session: Session, *_: Any, **__: Any) -> None:
        session.stack.fail(Excluded(why(session)))

    return excluded


def refuse_those_who_return(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Door._objection

    def objection(door: Door, newcomer: Member, caller: Any) -> str | None:
        is_back = newcomer.incarnation > INCARNATIONS
        return f"there is a member {newcomer.name!r} already" if is_back else original(door, newcomer, caller)

    monkeypatch.setattr(Door, "_objection", objection)


def test_plain_runs_are_clean() -> None:
    assert kinds(*RETURNS) == []
    assert kinds(*PAUSES, rejoin=True) == []
    assert kinds(*STOPS_READING, **HASTY) == []


@pytest.mark.interpreted
def test_who_returns_and_is_refused_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_those_who_return(monkeypatch)
    assert kinds(*RETURNS) == ["refused"]


@pytest.mark.interpreted
def test_datagrams_of_the_dead_may_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever hears them cannot know that they are from before."""
    refuse_those_who_return(monkeypatch)
    assert kinds(Action(0.3, 2, "crash"), Action(0.8, 2, "return"), delay=0.1) == []
    assert kinds(Action(0.3, 2, "crash"), Action(0.8, 2, "return"), delay=0.01) == ["refused"]


def test_who_is_left_of_a_majority_may_let_nobody_in() -> None:
    """Bob returns, and cathy, who is alone, tells him so."""
    gone = (Action(0.3, 0, "crash"), Action(0.3, 1, "crash"), Action(2.5, 1, "return"))
    assert kinds(*gone, partition="primary") == []


@pytest.mark.interpreted
def test_who_was_silent_and_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "excluded", ends(lambda session: "the others go on"))
    assert kinds(*PAUSES) == []
    assert kinds(*PAUSES, rejoin=True) == ["ended"]


@pytest.mark.interpreted
def test_who_was_slow_and_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "excluded", ends(lambda session: session.slow.why))
    assert kinds(*STOPS_READING, **{**HASTY, "slow": "expel"}) == []
    assert kinds(*STOPS_READING, **HASTY) == ["ended"]
