"""The swarm: what it has found stays mended, fixed seeds and fresh ones are clean, and the judge notices what is wrong."""

import os
import shlex
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from random import randrange

import pytest

from inga.layers.bundle import Bundle
from inga.layers.reliable import Reliable
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.sim import Sim
from inga.sim.hunt import Alternating, Failure, OneOrder, Swarm, search, search_for, try_swarm
from inga.sim.judge import UNWATCHED, judge
from inga.sim.memory import leaks
from inga.sim.shrink import shrink_plan
from inga.sim.site import LINGER
from inga.sim.swarm import CARRIED, CHANGING, FEATURES, GATHER_MAX, HOSTING, ORDERS, Action, Plan, plan

SEEDS = Path(__file__).with_name("seeds.txt")


PARTS = 8
FIXED, FRESH = 140, 30
"""Seeds of each part."""

BASE = int(os.environ.get("INGA_SEED") or randrange(1 << 32, 1 << 40))
"""Where fresh seeds begin. A failure names its own; INGA_SEED repeats them all."""


@pytest.mark.parametrize("text", [line for line in SEEDS.read_text().splitlines() if line.startswith("{")])
def test_what_is_mended_stays_mended(text: str) -> None:
    assert judge(Plan.parse(text)) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_fixed_seeds(part: int) -> None:
    try_seeds(range(part * FIXED, (part + 1) * FIXED))


@pytest.mark.parametrize("part", range(PARTS))
def test_fresh_seeds(part: int) -> None:
    try_seeds(range(BASE + part * FRESH, BASE + (part + 1) * FRESH))


def try_seeds(seeds: range) -> None:
    for seed in seeds:
        why = try_swarm(seed)
        assert why is None, f"{why}\nshrink it: inga hunt --runs 1 --seed {seed}"


@pytest.mark.interpreted
def test_a_failure_is_shrunk_to_the_same_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bundle, "_may_leave", lambda layer: False)
    _, failure = search(Swarm(("fifo",)), 50)
    assert failure is not None
    (text,) = shlex.split(failure.command)[3:]
    small = Plan.parse(text)
    assert any(failure.why.startswith(f"{kind}: ") for kind in kinds(small))
    assert small == Plan("fifo", small.members, failure.seed, small.actions)


# What a seed is


def test_a_seed_is_the_same_plan_everywhere_and_can_be_told() -> None:
    for seed in range(300):
        drawn = plan(seed)
        assert drawn == plan(seed) and Plan.parse(str(drawn)) == drawn
        drawn.sim()  # nothing in it is refused


def test_everything_is_drawn_sometimes() -> None:
    drawn = [plan(seed) for seed in range(3000)]
    assert {each.order for each in drawn} == set(ORDERS)
    for name in (field.name for field in fields(Plan)):
        assert len({getattr(each, name) for each in drawn}) > 1, f"{name} is never varied"
    done = {action.do for each in drawn for action in each.actions}
    events = "send send_first send_many answer join leave use gate pause stop_reading read_slowly crash return part call"
    assert done == set(events.split())
    used = {(each.order, action.argument) for each in drawn for action in each.actions if action.do == "use"}
    assert {(old, new) for old in CHANGING for new in CHANGING} <= used
    sends = [action for each in drawn for action in each.actions if action.do == "send"]
    assert any(action.argument[1] == (action.who,) for action in sends), "nobody talks to itself"
    assert len(FEATURES) == len(set(FEATURES))
    assert (
        {each.order for each in drawn if each.gather}
        == {each.order for each in drawn if each.severed}
        == {*CHANGING}
    )
    assert {each.order for each in drawn if each.objects} == {*HOSTING}
    assert {each.order for each in drawn if each.state} == {*CHANGING, *CARRIED}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"order": "fifo"}', '{"order": "fifo", "members": 2, "x": 1}']
)
def test_what_is_no_plan(text: str) -> None:
    with pytest.raises(UsageError, match="no plan"):
        Plan.parse(text)


def test_hunts_of_one_order() -> None:
    assert search_for(None) == Swarm()
    assert search_for("causal") == Alternating(Swarm(("vector",)), OneOrder("vector"))
    assert search_for("tree") == OneOrder("tree")
    assert {plan(seed, ("sco",)).order for seed in range(20)} == {"sco"}


def test_hunts_of_forged_groups() -> None:
    assert search_for(None, forged=True) == Swarm(CHANGING, forged=True)
    assert search_for("causal", forged=True) == Swarm(("vector",), forged=True)
    with pytest.raises(UsageError, match="groups in the order remiop cannot be secured"):
        search_for("remiop", forged=True)
    drawn = [plan(seed, CHANGING, forged=True) for seed in range(200)]
    assert all(each.secured and each.forged for each in drawn if each.members <= GATHER_MAX)
    assert any(each.members <= GATHER_MAX for each in drawn)
    assert replace(drawn[0], secured=False, forged=0) == replace(
        plan(0, CHANGING), secured=False, forged=0
    )  # nothing else is another


def test_hunts_of_groups_with_states_and_objects() -> None:
    assert search_for(None, states=True) == Swarm((*CHANGING, *CARRIED), states=True)
    assert search_for("total", states=True, objects=True) == Swarm(("total",), states=True, objects=True)
    assert search_for(None, forged=True, objects=True) == Swarm(("object", "total"), True, objects=True)
    with pytest.raises(UsageError, match="groups in the order co cannot have objects"):
        search_for("co", objects=True)
    drawn = [plan(seed, HOSTING, states=True, objects=True) for seed in range(200)]
    assert all(each.objects for each in drawn if each.members <= GATHER_MAX)
    assert any(each.state for each in drawn) and any(each.history for each in drawn)
    assert {do for each in drawn for _, do, _ in each.reluctant} == {"once", "always", "pauses"}
    assert all(each.state for each in drawn if each.reluctant)


class Odd:
    """A search in which every odd seed fails."""

    def try_seed(self, seed: int) -> str | None:
        return "it is odd" if seed % 2 else None

    def explain(self, seed: int, why: str) -> Failure:
        return Failure(seed, why, "inga hunt")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_hunt_that_keeps_going_names_all_that_fail(jobs: int) -> None:
    failed: list[tuple[int, str]] = []
    done, failure = search(Odd(), 450, 6, jobs=jobs, found=lambda seed, why: failed.append((seed, why)))
    assert (done, failure) == (450, None)
    assert sorted(failed) == [(seed, "it is odd") for seed in range(7, 456, 2)]
    done, failure = search(Odd(), 450, 6)
    assert (done, failure) == (2, Failure(7, "it is odd", "inga hunt"))


# What the judge notices


TALK = (Action(0.1, 0, "send", (40, None, 3)), Action(0.2, 1, "send", (40, None, 1)))


def test_a_plain_run_is_clean() -> None:
    assert judge(Plan("vector", 3, actions=TALK)) == []


def kinds(plan: Plan) -> list[str]:
    return [found.kind for found in judge(plan)]


@pytest.mark.interpreted
def test_a_group_that_is_not_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its acknowledgements come, and it answers them."""
    original = Reliable.control

    def control(layer: Reliable, packet: Packet) -> None:
        original(layer, packet)
        layer._tell(None)

    monkeypatch.setattr(Reliable, "control", control)
    assert kinds(Plan("fifo", 2, actions=TALK, delay=0.5)) == ["unquiet"]


@pytest.mark.interpreted
def test_a_message_that_stays_in_its_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bundle, "_may_leave", lambda layer: False)
    assert "stuck: deliver" in kinds(Plan("vector", 2, actions=TALK))


@pytest.mark.interpreted
def test_receipts_that_are_not_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet is forgotten when the first has it, and its receipt says that everybody has."""
    monkeypatch.setattr(Reliable, "_repair", lambda layer, member, runs: None)
    original = Reliable._acknowledged

    def hasty(layer: Reliable, packet: object) -> None:
        for _, receipt in layer._receipts:
            receipt.reach("confirmed")
        original(layer, packet)  # type: ignore[arg-type]

    monkeypatch.setattr(Reliable, "_acknowledged", hasty)
    # Judged before anybody gives up.
    monkeypatch.setattr("inga.sim.judge.UNWATCHED", UNWATCHED._replace(calm=20.0))
    found = kinds(Plan("fifo", 3, seed=2, actions=TALK, loss=0.5))
    assert "receipt: confirmed" in found


@pytest.mark.interpreted
def test_memory_that_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Reliable._settle

    def forgetful(layer: Reliable) -> None:
        packets = dict(layer._sent)
        original(layer)
        layer._sent.update(packets)

    monkeypatch.setattr(Reliable, "_settle", forgetful)
    assert kinds(Plan("vector", 2, actions=TALK)) == ["memory: Reliable._sent"]


@pytest.mark.interpreted
def test_an_exception_names_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(layer: Reliable, src: int) -> None:
        raise KeyError(src)

    monkeypatch.setattr(Reliable, "_note_hole", broken)
    assert kinds(Plan("fifo", 2, seed=1, actions=TALK, loss=0.5)) == ["KeyError in broken"]


def test_numbers_are_leaks_too_when_there_are_many() -> None:
    sim = Sim("alice", "bob", record=False)
    layer = sim["alice"].stack.layer("reliable")
    assert isinstance(layer, Reliable) and list(leaks(sim["alice"].stack)) == []
    layer._repaired = {(1, number): 0.0 for number in range(14)}
    assert list(leaks(sim["alice"].stack)) == []
    layer._repaired[1, 14] = 0.0
    assert [place for place, _ in leaks(sim["alice"].stack)] == ["Reliable._repaired"]


# Shrinking


def test_a_plan_is_shrunk_to_what_matters() -> None:
    def fails(each: Plan) -> bool:
        return (
            any(action.do == "use" and action.who < each.members for action in each.actions) and each.loss > 0
        )

    big = next(each for each in map(plan, range(10_000)) if fails(each) and len(each.actions) > 8)
    small = shrink_plan(big, fails)
    assert fails(small) and small.members == 1 and len(small.actions) == 1
    assert small == Plan(big.order, 1, big.seed, small.actions, loss=big.loss)


def test_destinations_move_with_members() -> None:
    """What is left of a plan without one of its members is about the same others."""

    def fails(each: Plan) -> bool:
        return any(
            action.do == "send" and action.argument[1] == (each.members - 1,) for action in each.actions
        )

    actions = (Action(0.1, 0, "send", (40, (1, 3), 8)), Action(0.2, 2, "send", (300, (3,), 4)))
    small = shrink_plan(Plan("fifo", 4, actions=actions), fails)
    assert small == Plan("fifo", 2, actions=(Action(0.1, 0, "send", (40, (1,), 1)),))


# What a simulation can do for it


def pair(order: str = "vector") -> Sim:
    return Sim("alice", "bob", order=order, record=False)


def test_names_are_different() -> None:
    with pytest.raises(UsageError, match="names of their own"):
        Sim("alice", "bob", "alice")


def test_one_who_leaves_is_waited_for_no_longer() -> None:
    sim = Sim("alice", "bob", "cathy", record=False)
    for name in ("alice", "bob", "cathy"):
        sim[name].send(b"here")
    sim.run()
    sim["bob"].leave()
    sim.run()
    assert sim["bob"].has_left and not sim.gave_up
    sim["alice"].send(b"without bob")
    sim.run()
    sim.check()
    assert sim["cathy"].texts[-1] == "without bob" and "without bob" not in sim["bob"].texts
    assert sim["alice"].stack.view.names == sim["cathy"].stack.view.names == ("alice", "cathy")
    assert sim["alice"].stack.view.left == ("bob",) and not sim["alice"].stack.view.failed


def test_one_who_leaves_waits_for_others_to_have_everything() -> None:
    sim = pair()
    sim["bob"].send(b"hello")
    sim["bob"].pause(1.0)
    sim["alice"].send(b"last words")
    sim["alice"].leave()
    sim.run()
    assert sim["bob"].texts == ["last words"] and not sim.gave_up
    sim.check()


def test_one_who_leaves_gives_up_in_the_end() -> None:
    sim = pair()
    sim["alice"].send(b"anybody?")
    sim["bob"].pause(2 * LINGER)
    sim["alice"].leave()
    sim.run()
    assert sim.gave_up == [sim["alice"]]
    sim.check()  # what it sent may be lost


def test_nothing_happens_at_a_member_that_pauses() -> None:
    sim = pair()
    sim["bob"].pause(1.0)
    sim["alice"].send(b"hello")
    sim.run(until=0.9)
    assert sim["bob"].texts == []
    sim.run()
    assert sim["bob"].texts == ["hello"]


def test_an_application_that_does_not_read() -> None:
    sim = pair()
    sim["bob"].stop_reading(1.0)
    sim["alice"].send(b"hello")
    sim.run(until=0.9)
    assert sim["bob"].texts == [] and len(sim["bob"].queue) == 1
    sim.run()
    assert sim["bob"].texts == ["hello"]


def test_a_network_becomes_calm() -> None:
    def lossy() -> Iterator[float]:
        return (sim.link(a, b).faults.loss for a in ("alice", "bob") for b in ("alice", "bob"))

    sim = Plan("fifo", 2, loss=0.5).sim()
    assert set(lossy()) == {0.5}
    sim.calm()
    assert set(lossy()) == {0.0}
