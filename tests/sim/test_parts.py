"""Groups that fall apart and find together again, and members that come back by themselves."""

import pytest

from inga.layers.shape import Faults
from inga.model.view import View
from inga.recipes import Options
from inga.session.asking import HOST_FOR
from inga.session.parts import ALONE_AFTER, ALONE_AFTER_MAX, PART
from inga.session.silence import OUT_OF_REACH
from inga.sim import Sim
from inga.sim.site import Site
from inga.sim.swarm import Action, Plan

NAMES = ("alice", "bob", "cathy", "dave", "erin")
DETECT = 0.5
LINKS = Faults(delay_min=0.001, delay_max=0.01)


def group(order: str = "vector", *, rejoin: bool = False, seed: int = 0, **more: object) -> Sim:
    options = Options(detect=DETECT, rejoin=rejoin, partition="all")
    return Sim(*NAMES, order=order, seed=seed, faults=LINKS, options=options, record=False, **more)  # type: ignore[arg-type]


def here(sim: Sim) -> list[Site]:
    return [site for site in sim.sites if site.is_member]


def views(sim: Sim) -> set[str]:
    return {site.stack.view.text for site in here(sim)}


def say_and_hear(sim: Sim) -> None:
    """All are in one view, and each is heard by all."""
    assert len(views(sim)) == 1
    assert set(here(sim)[0].stack.view.names) == {site.name for site in here(sim)}
    for site in here(sim):
        site.send(f"{site.name} is back".encode())
    sim.run(sim.now + 2.0)
    for site in here(sim):
        said = {text for text in site.texts if text.endswith("is back")}
        assert said >= {f"{other.name} is back" for other in here(sim) if other is not site}
    sim.check()


@pytest.mark.parametrize("order", ["none", "fifo", "vector", "co", "sco", "object", "total"])
def test_both_parts_go_on_and_the_smaller_joins_the_larger(order: str) -> None:
    sim = group(order)
    sim.network.part(sim.sites[:2], sim.sites[2:])
    sim.run(2.0)
    assert {site.stack.view.names for site in sim.sites} == {NAMES[:2], NAMES[2:]}
    sim["alice"].send(b"of the small part")
    sim["erin"].send(b"of the large part")
    sim.run(3.0)
    assert "of the small part" in sim["bob"].texts and "of the large part" in sim["cathy"].texts
    sim.network.heal()
    sim.run(3.0 + 2.0 + 4 * PART)
    view = sim["alice"].stack.view
    assert view.names[:3] == NAMES[2:] and set(view.names) == set(NAMES)
    assert not {"of the small part"} & set(sim["cathy"].texts)
    say_and_hear(sim)


@pytest.mark.parametrize("order", ["vector", "co", "sco", "total"])
def test_the_view_in_which_parts_come_together_names_them(order: str) -> None:
    """In one view, however they ask; who comes back without its part is no part."""
    sim = group(order, rejoin=True)
    sim.network.part(sim.sites[:2], sim.sites[2:])
    sim.run(2.0)
    sim.network.heal()
    sim.run(5.0)
    merged = [view.merged for view in sim["alice"].items if isinstance(view, View)]
    assert merged == [(), (NAMES[2:], merged[1][1])] and set(merged[1][1]) == set(NAMES[:2])
    assert [view.merged for view in sim["erin"].items if isinstance(view, View)] == merged
    sim["bob"].pause(3 * DETECT)
    sim.run(10.0)
    view = sim["bob"].stack.view
    assert view.joined == ("bob",) and view.merged == ()
    say_and_hear(sim)


def test_members_of_the_smaller_part_are_new_members() -> None:
    sim = group()
    before = {site.name: site.stack.member for site in sim.sites}
    sim.network.part(sim.sites[:2], sim.sites[2:])
    sim.run(2.0)
    sim.network.heal()
    sim.run(6.0)
    now = {member.name: member for member in sim["erin"].stack.view.members}
    assert {name for name in NAMES if now[name] != before[name]} == {"alice", "bob"}


def test_of_two_parts_of_one_size_that_with_the_lower_name_stays() -> None:
    sim = group()
    sim["erin"].leave()
    sim.run(1.0)
    sim.network.part(sim.sites[:2], sim.sites[2:4])
    sim.run(3.0)
    assert {site.stack.view.names for site in here(sim)} == {NAMES[:2], NAMES[2:4]}
    sim.network.heal()
    sim.run(8.0)
    assert sim["dave"].stack.view.names[:2] == NAMES[:2]
    say_and_hear(sim)


@pytest.mark.parametrize("seed", range(5))
def test_a_group_in_pieces_becomes_one(seed: int) -> None:
    sim = group(seed=seed)
    sim.network.part(*[[site] for site in sim.sites])
    sim.run(2.0)
    assert {site.stack.view.names for site in sim.sites} == {(name,) for name in NAMES}
    sim.network.heal()
    sim.run(2.0 + 2 * ALONE_AFTER + 10 * PART)
    say_and_hear(sim)


def test_where_nobody_is_lost_nobody_looks_for_parts() -> None:
    sim = group()
    sim["erin"].leave()
    sim.run(5.0)
    assert sim["alice"].stack.layer("session").parts.wake == float("inf")  # type: ignore[union-attr]
    sim["dave"].crash()
    sim.run(10.0)
    assert sim["alice"].stack.layer("session").parts.wake < 12.0  # type: ignore[union-attr]
    sim.join("dave")
    sim.run(15.0)
    assert sim["alice"].stack.layer("session").parts.wake == float("inf")  # type: ignore[union-attr]
    say_and_hear(sim)


def test_who_was_stopped_too_long_is_told() -> None:
    sim = group()
    sim["bob"].pause(3 * DETECT)
    sim.run(5.0)
    assert sim["bob"].is_excluded
    assert sim["alice"].stack.view.failed == ("bob",)
    say_and_hear(sim)


@pytest.mark.parametrize("order", ["vector", "co", "sco", "total"])
def test_who_was_stopped_too_long_comes_back_if_asked_to(order: str) -> None:
    sim = group(order, rejoin=True)
    sim["bob"].pause(3 * DETECT)
    sim.run(5.0)
    assert not sim["bob"].is_excluded
    assert sim["bob"].stack.view.joined == ("bob",)
    say_and_hear(sim)


def test_a_short_pause_costs_nobody_the_membership() -> None:
    sim = group()
    sim["bob"].pause(DETECT / 2)
    sim.run(5.0)
    assert sim["bob"].stack.view.number == 1
    say_and_hear(sim)


def test_one_bad_link_is_no_failure() -> None:
    """Alice and bob do not hear each other; all others hear both."""
    sim = group()
    sim.network.cut = {(0, 1), (1, 0)}
    sim.run(10.0)
    assert {site.stack.view.number for site in sim.sites} == {1}


def test_who_is_let_in_nowhere_goes_on_alone() -> None:
    sim = group(rejoin=True)
    bob = sim["bob"]
    session = bob.stack.layer("session")
    sim.network.part([bob], [site for site in sim.sites if site is not bob])
    session.changes.leave_home()  # type: ignore[union-attr]
    bob.pump()
    sim.run(ALONE_AFTER + 2 * HOST_FOR)
    assert bob.stack.view.names == ("bob",) and bob.stack.writable
    sim.network.heal()
    sim.run(ALONE_AFTER + 8.0)
    say_and_hear(sim)


def test_who_was_stopped_while_it_asks_to_be_let_in_does_not_go_on_alone_for_that() -> None:
    """Nobody has let it wait: it has not asked."""
    sim = group(rejoin=True)
    bob = sim["bob"]
    bob.stack.layer("session").changes.leave_home()  # type: ignore[union-attr]
    bob.stack.tick(bob.stack.now + 10 * ALONE_AFTER)
    assert bob.stack.is_homeless and bob.stack.views.next is None
    bob.pump()
    sim.run(15.0)
    assert all(len(item.names) > 1 for item in bob.items if isinstance(item, View))
    say_and_hear(sim)


def test_who_is_let_in_nowhere_again_and_again_waits_longer_each_time() -> None:
    """Bob hears the others, who do not hear him: each time he hears of them he asks them to let him in."""
    sim = group(rejoin=True)
    bob, others = sim["bob"], [site for site in sim.sites if site is not sim["bob"]]
    sim.network.part([bob], others)
    sim.run(2.0)
    assert bob.stack.view.names == ("bob",)
    sim.network.cut = {(bob.index, other.index) for other in others}
    parts = bob.stack.layer("session").parts  # type: ignore[union-attr]
    waits, since = [], 0.0
    while len(waits) < 4:
        was, now = parts.is_homeless, sim.now + 0.1
        sim.run(now)
        if parts.is_homeless and not was:
            since = now
        elif was and not parts.is_homeless:
            waits.append(now - since)
    for wait, after in zip(waits, (1, 2, 4, 8), strict=True):
        assert after * ALONE_AFTER - 0.2 <= wait <= after * ALONE_AFTER * 1.25 + 0.5
    sim.network.heal()
    sim.run(sim.now + ALONE_AFTER_MAX)
    say_and_hear(sim)
    assert parts._alone_after._next == ALONE_AFTER, "and it begins anew"


def test_every_view_has_a_name_of_its_own() -> None:
    seen: dict[str, View] = {}
    sim = group()
    sim.network.part(sim.sites[:2], sim.sites[2:])
    sim.run(2.0)
    for site in sim.sites:
        view = site.stack.view
        assert seen.setdefault(view.text, view).members == view.members
    assert len(seen) == 2 and len({site.stack.wire.tag for site in sim.sites}) == 2


@pytest.mark.parametrize("order", ["none", "vector", "co", "sco", "total"])
@pytest.mark.parametrize("deaf", ["both", "leader", "member"])
def test_one_bad_link_does_not_keep_a_view_closed(order: str, deaf: str) -> None:
    """All others hear both, so that neither is taken for dead; what the leader of a change and a member have to say to each
    other goes by one of them."""
    sim = group(order)
    sim.run(0.5)
    alice, erin = sim["alice"].index, sim["erin"].index
    sim.network.cut = {
        "both": {(alice, erin), (erin, alice)},
        "leader": {(erin, alice)},
        "member": {(alice, erin)},
    }[deaf]
    sim.run(4.0)
    assert sim["bob"].stack.view.names == NAMES
    sim["dave"].leave()
    sim.run(4.0 + (OUT_OF_REACH + 1) * DETECT)
    assert views(sim) == {sim["alice"].stack.view.text}
    assert sim["alice"].stack.view.names == (*NAMES[:3], "erin")
    say_and_hear(sim)


def test_a_leader_that_was_stopped_does_not_hold_that_against_the_others() -> None:
    """It has begun a change, and asked nobody since: the others have gone on, and it does not go on without them."""
    sim = group("vector")
    alice = sim["alice"]
    sim.run(0.5)
    sim["dave"].leave()
    while not alice.stack.closing:
        sim.run(sim.now + 0.001)
    alice.pause(60.0)
    sim.run(sim.now + 62.0)
    assert {site.stack.view.names for site in here(sim)} == {("bob", "cathy", "erin")}
    assert not alice.is_member and alice.stack.view.names == NAMES


@pytest.mark.parametrize("order", ["co", "sco", "remiop+total"])
def test_who_is_in_no_view_counts_no_repairs(order: str) -> None:
    """Its layers still answer those of the view that it left, and nothing of it leaves: what is counted is what was sent."""
    sends = [(0.0012, 1, 40, 3), (0.0165, 4, 40, 1), (0.018, 3, 30_000, 1)]
    actions = tuple(Action(at, who, "send", (size, None, many)) for at, who, size, many in sends)
    plan = Plan(
        order,
        5,
        8000089862,
        (actions[0], Action(0.0093, 4, "part", 0.7), *actions[1:]),
        delay=0.1,
        datagram=512,
        option=(("window", 1),),
        detect=DETECT,
        partition="primary",
    )
    sim = plan.sim()
    counted: dict[str, int] = {}
    looks = 0
    while sim.now < 10.0:
        sim.run(sim.now + 0.01)
        for site in sim.sites:
            if site.stack.is_homeless:
                repairs = site.stack.counts["repair"]
                assert counted.setdefault(site.name, repairs) == repairs
                looks += 1
            else:
                counted.pop(site.name, None)
    assert looks > 50
