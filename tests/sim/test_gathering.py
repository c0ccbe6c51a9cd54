"""Groups that nobody has described beforehand: whoever starts finds the others, whatever the network does."""

from collections.abc import Callable
from random import Random

import pytest

from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.recipes import Options
from inga.session.asking import HOST_FOR, Asking
from inga.session.gathering import GATHER_MAX, GRACE, QUIET
from inga.session.parts import Parts
from inga.session.session import Session
from inga.sim import Sim
from inga.sim.judge import judge
from inga.sim.swarm import Plan

from .test_handover import Account
from .test_parts import here, say_and_hear, views

DETECT = 0.5
CALM = Faults(delay_min=0.001, delay_max=0.01)
ROUGH = Faults(loss=0.25, duplicate=0.1, reorder=0.1, delay_min=0.001, delay_max=0.03)
OFTEN = {"heartbeat_max": 0.1}
"""Who has sent its last message says so until all have it: unless told, less and less often, six times in two seconds. Where a
quarter of all is lost that is too little once in some thousand messages, and how messages are repaired is not asked here."""
SOON = 2.0
"""Seconds in which all who started are in one view."""


def gathering(seed: int = 0, faults: Faults = CALM, order: str = "vector", **more: object) -> Sim:
    options = Options(detect=DETECT, greet=True, reliable=OFTEN)
    return Sim(order=order, seed=seed, faults=faults, options=options, record=False, gather=True, **more)  # type: ignore[arg-type]


def start(sim: Sim, count: int, within: float = 0.0) -> float:
    """So many start, at random times; when the last of them does."""
    rng = Random(sim.seed)
    starts = [(f"m{number}", within * rng.random()) for number in range(count)]
    rng.shuffle(starts)
    for name, at in starts:
        sim.join(name, at=at)
    return max(at for _, at in starts)


def is_whole(sim: Sim) -> bool:
    there = [site for site in sim.sites if not site.has_left]
    return len(here(sim)) == len(there) and len(views(sim)) == 1 and len(there[0].stack.view) == len(there)


def run_until_whole(sim: Sim, since: float) -> float:
    """Seconds until all who are there are in one view."""
    end = since
    while not (end > since and is_whole(sim)):
        end += 0.01
        sim.run(end)
        assert end < since + 20.0, "no view that has all of them"
    return end - since


def test_who_is_alone_founds_a_group_of_one_soon() -> None:
    sim = gathering()
    start(sim, 1)
    assert run_until_whole(sim, 0.0) <= QUIET + 0.02
    assert sim["m0"].stack.view.number == 1 and sim["m0"].stack.writable


@pytest.mark.parametrize("order", ["none", "fifo", "vector", "co", "sco", "relay", "object", "total"])
def test_all_who_start_at_once_are_in_the_first_view(order: str) -> None:
    sim = gathering(order=order)
    start(sim, 8)
    assert run_until_whole(sim, 0.0) <= QUIET + 0.1
    assert {site.stack.view.number for site in sim.sites} == {1}
    assert sim.sites[0].stack.view.names == tuple(f"m{number}" for number in range(8))
    say_and_hear(sim)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_the_network_does_they_are_one_group_soon(seed: int) -> None:
    sim = gathering(seed, ROUGH)
    assert run_until_whole(sim, start(sim, 8, within=(seed % 3) * 0.5)) <= SOON
    say_and_hear(sim)


def test_who_comes_while_others_gather_does_not_keep_them_for_ever() -> None:
    sim = gathering()
    last = 15 * QUIET / 2
    for number in range(15):
        sim.join(f"m{number}", at=number * QUIET / 2)
    sim.run(GATHER_MAX + GRACE + 0.05)
    assert here(sim) and sim.now < last, "somebody comes in before nobody is new any more"
    assert run_until_whole(sim, last) <= SOON
    say_and_hear(sim)


@pytest.mark.parametrize("seed", range(12))
def test_the_one_that_is_to_found_the_group_dies_on_the_way(seed: int) -> None:
    sim = gathering(seed, ROUGH if seed % 2 else CALM)
    start(sim, 6)
    chosen = sim["m0"]
    sim.at(QUIET + seed * 0.005, chosen, chosen.crash)
    sim.run(QUIET + 0.1)
    # It is given up like a leader that does not answer; if some are in its view already, its silence is noticed first.
    assert run_until_whole(sim, QUIET + 0.1) <= HOST_FOR + GATHER_MAX + 4 * DETECT
    assert "m0" not in here(sim)[0].stack.view.names
    say_and_hear(sim)


@pytest.mark.parametrize("after", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("failed", [1, 2])
@pytest.mark.parametrize(("order", "members"), [("vector", 2), ("vector", 4), ("total", 2), ("total", 4)])
def test_one_that_fails_and_is_started_again_at_once_founds_nothing(
    order: str, members: int, failed: int, after: float
) -> None:
    """Before the others know that it is gone. They would give up their group, and what they have, for one that has nothing."""
    sim = gathering(order=order)
    start(sim, members)
    sim.run(3.0)
    staying = sim.sites[0].stack.view.names[min(failed, members - 1) :]
    for name in sim.sites[0].stack.view.names[:failed]:
        if name not in staying:
            sim[name].crash()
            sim.join(name, at=3.0 + after)
    sim.run(12.0)
    for site in sim.sites:
        if site.name in staying:
            assert site.stack.member.incarnation == 1 and not site.stack.is_homeless
    if len(staying) > members / 2 or order == "vector":
        assert is_whole(sim) and sim[staying[0]].stack.view.names[: len(staying)] == staying
        say_and_hear(sim)
    else:
        assert {site.name for site in here(sim)} == {*staying}, "the rest is refused, as these are paused"


def test_two_groups_founded_out_of_sight_of_each_other_become_one() -> None:
    sim = gathering()
    start(sim, 5)
    low, high = [sim[f"m{n}"] for n in (0, 1)], [sim[f"m{n}"] for n in (2, 3, 4)]
    sim.network.part(low, high)
    sim.run(1.0)
    assert {site.stack.view.names for site in low} == {("m0", "m1")}
    assert {site.stack.view.names for site in high} == {("m2", "m3", "m4")}
    sim.network.heal()
    assert run_until_whole(sim, 1.0) <= SOON
    assert here(sim)[0].stack.view.names[:3] == ("m2", "m3", "m4"), "the smaller joins the larger"
    say_and_hear(sim)


def test_one_that_comes_back_is_a_new_member() -> None:
    sim = gathering()
    start(sim, 3)
    sim.run(1.0)
    sim["m1"].crash()
    again = sim.join("m1", at=1.0)
    sim.run(1.0 + 4 * DETECT)
    assert again.is_member and again.stack.view.names == ("m0", "m2", "m1")
    say_and_hear(sim)


def test_a_name_is_for_one_process() -> None:
    sim = gathering()
    first, second = sim.join("ann"), sim.join("ann")
    other = sim.join("bob")
    sim.run(3.0)
    assert [site.is_member for site in (first, second, other)] == [True, False, True]
    assert second.newcomer is not None and "there is a member 'ann' already" in str(second.newcomer.refused)
    assert other.stack.view.names == ("ann", "bob")


@pytest.mark.parametrize("order", ["object", "total"])
def test_objects_have_a_copy_at_whoever_is_there(order: str) -> None:
    sim = gathering(order=order, objects={"cash": Account})
    start(sim, 3)
    sim.run(1.0)
    for number in range(3):
        sim[f"m{number}"].call("cash", "add", 5)
    sim.run(2.0)
    late = sim.join("late")
    sim.run(3.0)
    late.call("cash", "add", 5)
    sim.run(4.0)
    assert [site.state("cash") for site in sim.sites] == [120] * 4


def test_who_gathers_is_not_named() -> None:
    with pytest.raises(UsageError, match="not named beforehand"):
        Sim("alice", gather=True, record=False)
    with pytest.raises(UsageError, match="at least one member"):
        Sim()


# At addresses


@pytest.mark.parametrize("seeds", [["m0"], ["m5", "nobody"], ["m0", "m1", "m2", "m3", "m4", "m5"]])
def test_who_knows_where_one_is_finds_all(seeds: list[str]) -> None:
    sim = gathering(1, ROUGH, seeds=seeds)
    assert run_until_whole(sim, start(sim, 6, within=0.3)) <= 2 * SOON
    say_and_hear(sim)


def test_who_knows_nobody_is_alone() -> None:
    sim = gathering(seeds=["nobody"])
    start(sim, 2)
    sim.run(5.0)
    assert {site.stack.view.names for site in sim.sites} == {("m0",), ("m1",)}


def test_seeds_are_for_those_who_gather() -> None:
    with pytest.raises(UsageError, match="for those who gather"):
        Sim("alice", seeds=["alice"])


def test_one_that_thinks_better_of_it_is_not_let_in() -> None:
    sim = gathering()
    start(sim, 3)
    sim.run(QUIET / 2)
    sim["m0"].leave()
    assert run_until_whole(sim, QUIET / 2) <= QUIET
    assert {site.stack.view.names for site in here(sim)} == {("m1", "m2")}


# Rules taken out, which the swarm notices


def never_gives_up(patch: pytest.MonkeyPatch) -> None:
    """Who was asked and died is asked for ever."""
    patch.setattr(Asking, "gives_up", lambda asking, now: False)


def faces_stay(patch: pytest.MonkeyPatch) -> None:
    """One that was there once is waited for."""
    patch.setattr("inga.session.gathering.FRESH", float("inf"))


def nobody_looks_for_others(patch: pytest.MonkeyPatch) -> None:
    """Groups founded apart do not say that they are there."""
    original = Parts.__init__

    def closed(parts: Parts, session: Session, *, rejoin: bool, is_open: bool) -> None:
        original(parts, session, rejoin=rejoin, is_open=False)

    patch.setattr(Parts, "__init__", closed)


GONE = '{"order": "fifo", "members": 3, "actions": [[0.31, 0, "crash", null]], "detect": 0.5, "gather": true}'
CUT = '{"order": "fifo", "members": 3, "actions": [[0.0, 1, "part", 1.0], [0.01, 1, "join", null]], "detect": 0.5, "gather": true}'


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("take_out", "plan", "kind"),
    [
        (never_gives_up, GONE, "stuck: join"),
        (faces_stay, GONE.replace("0.31", "0.2"), "stuck: join"),
        (nobody_looks_for_others, CUT, "stuck: view"),
    ],
)
def test_the_swarm_notices_a_rule_that_is_gone(
    take_out: Callable[[pytest.MonkeyPatch], None], plan: str, kind: str
) -> None:
    gathers = Plan.parse(plan)
    assert judge(gathers) == []
    with pytest.MonkeyPatch.context() as patch:
        take_out(patch)
        assert kind in [found.kind for found in judge(gathers)]


@pytest.mark.parametrize(
    "state", [{"history": 10}, {"give": lambda site: [b"state"], "take": lambda site, data: None}]
)
def test_those_who_found_a_group_wait_for_no_state(state: dict[str, object]) -> None:
    """There was nobody before them who could have one. They used to wait for each other, for ever."""
    sim = gathering(order="total", **state)
    start(sim, 3)
    run_until_whole(sim, 0.0)
    sim["m1"].send(b"hello")
    sim.run(until=5.0)
    assert [site.texts for site in sim.sites if site.name != "m1"] == [["hello"], ["hello"]]
