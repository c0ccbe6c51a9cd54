"""Diaries of members to which something befell, judged. Written by hand: one line of a diary is one entry."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from inga.model.view import Member, View
from inga.runs.diaries import judge_calls, judge_talk, read_diary
from inga.session.description import described
from inga.trial.calls import ClientRequest
from inga.trial.trial import Trial

TRIAL = Trial(members=3, messages=3)


def view(
    number: int, *members: str, me: str, recipe: str = "vector", left: tuple[str, ...] = ()
) -> dict[str, Any]:
    """`bob2` is bob's second incarnation."""
    people = tuple(Member(each.rstrip("2"), 2 if each.endswith("2") else 1) for each in members)
    mine = (me.rstrip("2"), 2 if me.endswith("2") else 1)
    seen = View(number, people, recipe, left=left, leader=1, attempt=number)
    return {**json.loads(json.dumps(described(seen))), "me": mine}


def came(number: int, *members: str, me: str) -> dict[str, Any]:
    """The application came to a view, and sends in it."""
    return {"view": view(number, *members, me=me)}


def sends(number: int, *members: str, me: str) -> dict[str, Any]:
    return {"in": view(number, *members, me=me)}


ALL, REST = ("alice", "bob", "cathy"), ("alice", "bob")


def broken(*diaries: list[Any], dead: tuple[int, ...] = ()) -> dict[str, int]:
    return dict(judge_talk(TRIAL, diaries, set(dead)).broken)


def cathy_says_one_thing_and_is_killed() -> list[Any]:
    return [came(1, *ALL, me="cathy"), sends(1, *ALL, me="cathy"), [3, None]]


def survivor(me: str, *taken: int) -> list[Any]:
    return [came(1, *ALL, me=me), *(-each for each in taken), came(2, *REST, me=me)]


def test_what_a_dead_member_said_reaches_all_who_are_left_or_none() -> None:
    cathy = cathy_says_one_thing_and_is_killed()
    assert broken(survivor("alice", 3), survivor("bob", 3), cathy, dead=(2,)) == {}
    assert broken(survivor("alice"), survivor("bob"), cathy, dead=(2,)) == {}
    assert broken(survivor("alice", 3), survivor("bob"), cathy, dead=(2,)) == {"survivors": 1}


def test_one_that_is_there_in_the_end_takes_everything() -> None:
    alice = [came(1, *ALL, me="alice"), sends(1, *ALL, me="alice"), [1, None]]
    others = [[came(1, *ALL, me=me), -1] for me in ("bob", "cathy")]
    assert broken(alice, *others) == {}
    assert broken(alice, others[0], others[1][:1]) == {"complete": 1}
    assert broken(alice, others[0], others[1][:1], dead=(2,)) == {}, (
        "of one that was killed nothing is expected"
    )


def test_something_is_sent_in_a_view_before_the_application_has_come_to_it() -> None:
    alice = [came(1, *ALL, me="alice"), sends(2, *REST, me="alice"), [1, None], came(2, *REST, me="alice")]
    bob = [came(1, *ALL, me="bob"), came(2, *REST, me="bob"), -1]
    cathy = [came(1, *ALL, me="cathy")]
    assert broken(alice, bob, cathy, dead=(2,)) == {}
    assert broken(alice, bob[:-1], cathy, dead=(2,)) == {"complete": 1}


def test_one_that_comes_back_by_itself_is_another_member() -> None:
    """What the others said meanwhile is not for it, and what it lost before nobody holds against it."""
    new = ("alice", "bob", "cathy2")
    alice = [
        *survivor("alice"),
        sends(2, *REST, me="alice"),
        [1, None],
        came(3, *new, me="alice"),
        sends(3, *new, me="alice"),
        [4, None],
    ]
    bob = [*survivor("bob"), -1, came(3, *new, me="bob"), -4]
    cathy = [came(1, *ALL, me="cathy"), sends(1, *ALL, me="cathy"), [3, None], came(3, *new, me="cathy2")]
    assert broken(alice, bob, [*cathy, -4]) == {}
    assert broken(alice, bob, cathy) == {"complete": 1}
    assert broken(alice, bob, [*cathy, -1, -4]) == {"integrity": 1}, "which was not for it"


def test_what_is_part_of_a_state_is_not_to_be_taken() -> None:
    """Cathy comes back in view 3, and before it has a state there is view 4. What was sent in view 3 is in the state at view
    4, and its application sees neither; but it may have said something in view 3 itself."""
    new = ("alice", "bob", "cathy2")
    alice = [
        *survivor("alice"),
        came(3, *new, me="alice"),
        sends(3, *new, me="alice"),
        [1, None],
        -6,
        came(4, *new, me="alice"),
        sends(4, *new, me="alice"),
        [4, None],
    ]
    bob = [*survivor("bob"), came(3, *new, me="bob"), -1, -6, came(4, *new, me="bob"), -4]
    cathy = [came(1, *ALL, me="cathy"), sends(3, *new, me="cathy2"), [6, None]]
    state, last = {"state": [2, 7]}, came(4, *new, me="cathy2")
    assert broken(alice, bob, [*cathy, state, last, -4]) == {}
    assert broken(alice, bob, [*cathy, last, -4]) == {"complete": 1}
    assert broken(alice, bob, [*cathy, state, last]) == {"complete": 1}, "which came after it"


def test_a_message_that_nobody_sent() -> None:
    assert broken([came(1, *ALL, me="alice"), -9], [], []) == {"integrity": 1}


def test_a_diary_that_was_cut(tmp_path: Path) -> None:
    file = tmp_path / "0.diary"
    file.write_bytes(b"[1, null]\n-2\n[3, nu")
    assert read_diary(file) == [[1, None], -2]
    assert read_diary(tmp_path / "never written") == []


CALLS = Trial("total", members=2, messages=4, objects=1, seed=5)


@pytest.mark.parametrize(("outcome", "low", "high"), [("committed", 1, 1), (None, 0, 1), ("aborted", 0, 0)])
def test_what_clients_know_of_their_calls(outcome: str | None, low: int, high: int) -> None:
    """The sums of objects are what was committed, or more if nobody knows of some calls."""
    plan: list[ClientRequest] = [each for _, each in CALLS.load.plan(Random("5/0"), 0)]
    number = next(at for at, each in enumerate(plan) if each.adds and each.kind != "oneway")
    (amount,) = plan[number].adds.values()
    config = {"trial": {"order": "total", "members": 2, "messages": 4, "objects": 1, "seed": 5}, "me": 0}
    for times in (0, 1):
        states = {name: {"tally1": [0, times * amount]} for name in CALLS.people}
        tally = judge_calls(CALLS, [config], [[[number, None], [number, outcome]]], states, lossy=False)
        assert bool(tally.judge.violations["complete"]) != (low <= times <= high)
    differing = {"alice": {"tally1": [1, amount]}, "bob": {"tally1": [2, amount]}}
    found = judge_calls(CALLS, [config], [[[number, "committed"]]], differing, lossy=False)
    assert found.judge.violations["replicas"] == 1
