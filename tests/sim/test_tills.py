"""Objects in the swarm: the judge notices copies that differ, sums that nobody was told of, and calls that never end."""

from typing import Any

import pytest

from inga.objects.invoke import Host
from inga.objects.late import LateCopies
from inga.objects.state import State
from inga.sim.judge import judge
from inga.sim.shrink import shrink_plan
from inga.sim.swarm import HOSTING, Action, Plan
from inga.sim.tills import FILL, KINDS

CALLS = tuple(
    Action(0.04 * turn, turn % 3, "call", (kind, turn, turn + 1, 1 + turn)) for turn, kind in enumerate(KINDS)
)
JOIN = Action(0.25, 3, "join")


def kinds(order: str = "object", *more: Action, **settings: Any) -> list[str]:
    plan = Plan(order, 3, actions=(*CALLS, *more), **{"objects": ((), (0, 1)), **settings})
    return [found.kind for found in judge(plan)]


@pytest.mark.parametrize("order", HOSTING)
def test_a_plain_run_is_clean(order: str) -> None:
    assert kinds(order, JOIN, detect=0.5) == []


@pytest.mark.parametrize("order", ["object", "total"])
@pytest.mark.parametrize("who", [0, 1, 2])
def test_members_that_die_and_return(order: str, who: int) -> None:
    """The second object has copies at two members, one of which may be the one that dies."""
    going = (Action(0.3, who, "crash"), Action(2.3, who, "return"))
    assert kinds(order, JOIN, *going, detect=0.5) == []


def test_the_only_copy_may_be_lost() -> None:
    assert kinds("object", Action(0.3, 2, "crash"), detect=0.5, objects=((2,),)) == []


@pytest.mark.interpreted
def test_a_copy_that_applies_a_commit_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    original, applied = State.apply, 0

    def apply(state: State, value: Any, effects: Any, name: Any = None) -> None:
        nonlocal applied
        applied += bool(effects)
        again = bool(effects) and applied == 5
        original(state, state.after([*effects, *effects]) if again else value, effects, name)

    monkeypatch.setattr(State, "apply", apply)
    assert "copies" in kinds()


@pytest.mark.interpreted
def test_a_commit_that_no_copy_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    original = State.apply

    def apply(state: State, value: Any, effects: Any, name: Any = None) -> None:
        original(state, state.value, (), name)

    monkeypatch.setattr(State, "apply", apply)
    assert kinds() == ["sum"]


@pytest.mark.interpreted
def test_a_newcomer_whose_copies_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    original = LateCopies.take_over
    monkeypatch.setattr(LateCopies, "take_over", lambda late, name, state: original(late, name, None))
    assert "copies" in kinds("object", Action(0.6, 3, "join"))


@pytest.mark.interpreted
def test_calls_that_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "receive", lambda host, now, heard: [])
    assert "stuck: call" in kinds()


def test_a_plan_with_objects_is_shrunk() -> None:
    def fails(plan: Plan) -> bool:
        return any(each.do == "call" and each.argument[0] == FILL for each in plan.actions) and bool(
            plan.objects
        )

    small = shrink_plan(Plan("object", 3, actions=(*CALLS, JOIN), objects=((1, 2), ())), fails)
    assert small.members == 1 and len(small.actions) == 1 and small.objects == ((),)
