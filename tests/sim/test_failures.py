"""Members that fail in virtual time: the others find out, have the same of them, and go on; the name may come back."""

from collections.abc import Callable
from itertools import combinations

import pytest
from pytest import MonkeyPatch

from inga.layers.shape import Faults
from inga.recipes import Options
from inga.session.changes import _ANSWERS
from inga.session.porter import CARRIES_AFTER
from inga.session.session import Session
from inga.sim import Sim
from inga.sim.forger import SECRET, guards
from inga.stack.stack import Stack
from inga.trial.workload import Workload

ORDERS = ("none", "fifo", "vector", "co", "sco", "object", "total")
NAMES = ("alice", "bob", "cathy", "dave")
DETECT = 0.5
ROUGH = Faults(loss=0.2, duplicate=0.1, reorder=0.3, delay_min=0.001, delay_max=0.02)


def group(order: str, seed: int = 0, *, detect: float | None = DETECT, faults: Faults = ROUGH) -> Sim:
    options = Options(detect=detect, partition="all")
    return Sim(*NAMES, order=order, seed=seed, faults=faults, options=options, record=False)


def views(sim: Sim, *names: str) -> set[tuple[str, ...]]:
    return {sim[name].stack.view.names for name in names}


def go_on(sim: Sim, *names: str) -> None:
    """All of these are in one view, and each is heard by all others."""
    assert views(sim, *names) == {names}
    for name in names:
        sim[name].send(f"{name} goes on".encode())
    sim.run(sim.now + 2.0)
    for name in names:
        heard = {text for text in sim[name].texts if text.endswith("goes on")}
        assert heard >= {f"{other} goes on" for other in names if other != name}
    sim.check()


@pytest.mark.parametrize(
    ("order", "crashed"),
    [
        *((order, crashed) for order in ORDERS for crashed in (("alice",), ("dave",), ("alice", "cathy"))),
        *((order, NAMES[:3]) for order in ORDERS),
    ],
)
def test_those_who_are_left_go_on_with_the_same(order: str, crashed: tuple[str, ...]) -> None:
    """In the middle of a workload, over bad links, the leader among them, until one is left."""
    for seed in range(3):
        sim = group(order, seed)
        sim.load(Workload(4, 40))
        sim.run(0.15)
        for name in crashed:
            sim[name].crash()
        sim.calm()
        sim.run(6.0)
        rest = tuple(name for name in NAMES if name not in crashed)
        go_on(sim, *rest)
        assert not any(site.is_excluded for site in sim.sites)


def test_one_who_fails_is_missed_after_as_long_as_the_group_forgives() -> None:
    sim = group("vector", faults=Faults(delay_min=0.001, delay_max=0.002))
    sim.run(3.0)
    sim["dave"].crash()
    sim.run(3.0 + DETECT / 2)
    assert views(sim, "alice", "bob", "cathy") == {NAMES}
    sim.run(3.0 + 2 * DETECT)
    assert views(sim, "alice", "bob", "cathy") == {NAMES[:3]}


def test_who_forgives_any_silence_waits() -> None:
    sim = group("vector", detect=None)
    sim["dave"].crash()
    sim["alice"].send(b"anybody?")
    sim.run(100.0)
    assert views(sim, "alice", "bob", "cathy") == {NAMES} and sim["bob"].texts == ["anybody?"]


def test_one_bad_link_is_no_death() -> None:
    """Alice and dave do not hear each other, but bob and cathy hear both."""
    sim = group("vector")
    for silent in (("alice", "dave"), ("dave", "alice")):
        a, b = (sim[name].index for name in silent)
        sim.network.cut.add((a, b))
    sim.run(10.0)
    assert views(sim, *NAMES) == {NAMES}
    sim.network.heal()
    go_on(sim, *NAMES)


@pytest.mark.parametrize("order", ORDERS)
def test_a_name_comes_back_as_somebody_new(order: str) -> None:
    """It is heard from its first message on, and gets nothing that was sent before it came back."""
    sim = group(order)
    sim["bob"].send(b"before")
    sim.run(1.0)
    sim["bob"].crash()
    sim.run(4.0)
    sim["cathy"].send(b"meanwhile")
    sim.run(5.0)
    back = sim.join("bob")
    sim.run(7.0)
    assert sim["bob"] is back and back.stack.member.incarnation > 1
    go_on(sim, "alice", "cathy", "dave", "bob")
    assert "meanwhile" not in back.texts and "before" not in back.texts
    assert sim["alice"].texts.count("before") == 1


def test_a_name_can_come_back_before_anybody_missed_it() -> None:
    """Whoever asks for a name that a member has makes the others listen for that member; it does not answer."""
    sim = group("vector")
    sim.run(1.0)
    sim["bob"].crash()
    sim.join("bob")
    sim.run(5.0)
    go_on(sim, "alice", "cathy", "dave", "bob")


def test_a_name_that_is_taken_is_refused() -> None:
    sim = group("vector")
    sim.run(1.0)
    bob, twin = sim["bob"], sim.join("bob")
    sim.run(5.0)
    assert twin.has_left and twin.newcomer is not None
    assert "there is a member 'bob' already" in str(twin.newcomer.refused)
    assert bob.is_member and views(sim, "alice", "cathy", "dave") == {NAMES}


def test_of_two_of_one_name_one_gets_in() -> None:
    sim = group("vector")
    twins = [sim.join("erin"), sim.join("erin")]
    sim.run(5.0)
    assert sorted(twin.is_member for twin in twins) == [False, True]
    assert views(sim, "alice", "bob") == {(*NAMES, "erin")}


@pytest.mark.parametrize("order", ["vector", "co", "object", "total"])
def test_a_change_survives_those_who_fail_during_it(order: str) -> None:
    """Every pair fails within one change, one of them as soon as somebody has begun to close the view."""
    for first, second in combinations(NAMES, 2):
        sim = group(order)
        sim.load(Workload(4, 40))
        sim.run(0.15)
        sim[first].crash()
        sim.calm()
        rest = [name for name in NAMES if name not in (first, second)]
        while not any(sim[name].stack.closing for name in rest):
            sim.run(sim.now + 0.001)
            assert sim.now < 5.0
        sim[second].crash()
        sim.run(8.0)
        go_on(sim, *rest)


# Without these, it would not be so


def lends_nothing(patch: MonkeyPatch) -> None:
    patch.setitem(_ANSWERS, "want", lambda changes, src, told: None)


def asks_nobody_for_it(patch: MonkeyPatch) -> None:
    """Whoever lacks something of one that is gone goes on without it."""
    original = Stack.gone

    def gone(stack: Stack, member: int, *, failed: bool = False) -> None:
        original(stack, member, failed=failed)
        lender = stack.chain.lender
        if lender is not None:
            lender.lacking = lambda member, dealt: {}

    patch.setattr(Stack, "gone", gone)


@pytest.mark.interpreted
@pytest.mark.parametrize("order", ["fifo", "vector"])
@pytest.mark.parametrize("take_out", [lends_nothing, asks_nobody_for_it])
def test_it_shows_if_what_the_dead_sent_is_not_handed_round(
    order: str, take_out: Callable[[MonkeyPatch], None], monkeypatch: MonkeyPatch
) -> None:
    take_out(monkeypatch)
    shown = 0
    for seed in range(5):
        sim = group(order, seed)
        sim.load(Workload(4, 40))
        sim.run(0.15)
        sim["alice"].crash()
        sim.calm()
        sim.run(3.0)
        sim.finish()
        shown += bool(sim.oracle.violations["survivors"]) or views(sim, "bob") == {NAMES}
    assert shown


# A way that is bad for ever


def severed(order: str, *ways: tuple[str, str], greet: bool, is_secured: bool = False) -> Sim:
    options = Options(detect=DETECT, partition="all", greet=greet)
    guard = guards(SECRET, 0) if is_secured else None
    sim = Sim(*NAMES, order=order, options=options, record=False, guard=guard)
    for source, target in ways:
        sim.network.sever(sim[source], sim[target])
    return sim


BOTH_WAYS = (("bob", "cathy"), ("cathy", "bob"))
BOTH = [("erin", "alice"), ("alice", "erin")]


@pytest.mark.parametrize(
    ("order", "ways"), [*((order, BOTH_WAYS) for order in (*ORDERS, "relay")), ("vector", BOTH_WAYS[:1])]
)
def test_two_that_never_hear_each_other_are_members_like_all(
    order: str, ways: tuple[tuple[str, str], ...]
) -> None:
    """Neither of them leads. They deliver, somebody joins, a third dies: nobody waits, and nobody is excluded."""
    sim = severed(order, *ways, greet=order in ("vector", "total"))
    for name in NAMES:
        sim[name].send(f"{name} is here".encode())
    sim.run(4 * DETECT)
    for name in NAMES:
        assert {f"{other} is here" for other in NAMES if other != name} <= {*sim[name].texts}
    erin = sim.join("erin")
    sim.run(sim.now + DETECT)
    assert erin.is_member and views(sim, *NAMES) == {(*NAMES, "erin")}
    sim["bob"].send(b"and on")
    sim["dave"].crash()
    sim.run(sim.now + 6 * DETECT)
    go_on(sim, "alice", "bob", "cathy", "erin")
    assert not any(site.is_excluded for site in sim.sites)


def test_the_one_in_between_dies() -> None:
    """And then another one hears both."""
    sim = severed("vector", *BOTH_WAYS, greet=False)
    sim.run(3 * DETECT)
    session = sim["bob"].stack.layer("session")
    assert isinstance(session, Session)
    third = NAMES[session.detours._by[2]]
    sim[third].crash()
    sim.run(sim.now + 6 * DETECT)
    go_on(sim, *(name for name in NAMES if name != third))


def test_two_that_never_hear_each_other_take_leave() -> None:
    sim = severed("vector", *BOTH_WAYS, greet=True)
    sim.run(3 * DETECT)
    sim["bob"].leave()
    sim.run(sim.now + 4 * DETECT)
    assert sim["bob"].has_left and sim["cathy"].stack.view.left == ("bob",)
    go_on(sim, "alice", "cathy", "dave")


@pytest.mark.parametrize("order", ["vector", "co", "total"])
def test_who_leaves_does_not_wait_for_one_that_the_others_have_told(order: str) -> None:
    """In a view so new that nobody knows a way round yet. The others say farewell from the next, in which cathy is, too."""
    sim = severed(order, *BOTH_WAYS, greet=False)
    sim.run(3 * DETECT)
    sim.join("erin")
    while sim["bob"].stack.view.number == 1:
        sim.run(sim.now + 0.005)
    sim["bob"].leave()
    sim.run(sim.now + DETECT)
    assert sim["bob"].has_left
    sim.run(sim.now + DETECT)
    assert sim["cathy"].stack.view.left == ("bob",)
    go_on(sim, "alice", "cathy", "dave", "erin")


@pytest.mark.parametrize("ways", [BOTH, BOTH[:1], BOTH[1:]], ids=["both ways", "not heard", "hears not"])
@pytest.mark.parametrize(
    ("order", "is_secured"), [*((order, False) for order in (*ORDERS, "relay")), ("vector", True)]
)
def test_who_does_not_reach_the_leader_is_let_in_all_the_same(
    order: str, ways: list[tuple[str, str]], is_secured: bool
) -> None:
    """The others hear it, and carry what it says and what it is told; then it is a member like all."""
    if is_secured:
        pytest.importorskip("cryptography")
    sim = severed(order, greet=True, is_secured=is_secured)
    erin = sim.join("erin", DETECT)
    for source, target in ways:
        sim.network.sever(sim[source], sim[target])
    sim.run(DETECT + CARRIES_AFTER + 2 * DETECT)
    assert erin.is_member and views(sim, *NAMES) == {(*NAMES, "erin")}
    sim.run(sim.now + 4 * DETECT)
    go_on(sim, *NAMES, "erin")
    assert views(sim, *NAMES) == {(*NAMES, "erin")} and erin.stack.view.number == 2, "at the first attempt"


@pytest.mark.parametrize("is_secured", [False, True], ids=["plain", "secured"])
def test_who_comes_back_and_does_not_reach_the_new_leader(is_secured: bool) -> None:
    """Alice, who led, and cathy die; bob leads then, and nothing passes between him and cathy."""
    if is_secured:
        pytest.importorskip("cryptography")
    sim = severed("vector", *BOTH_WAYS, greet=True, is_secured=is_secured)
    sim.run(3 * DETECT)
    sim["alice"].crash()
    sim["cathy"].crash()
    sim.run(sim.now + 4 * DETECT)
    assert views(sim, "bob", "dave") == {("bob", "dave")}
    sim.join("cathy")
    sim.run(sim.now + CARRIES_AFTER + 6 * DETECT)
    go_on(sim, "bob", "dave", "cathy")


@pytest.mark.parametrize("is_secured", [False, True], ids=["plain", "secured"])
@pytest.mark.parametrize("alone", ["bob", "cathy"], ids=["the first by name", "the last"])
def test_parts_whose_leaders_never_hear_each_other_find_together(alone: str, is_secured: bool) -> None:
    """Bob and cathy lead a part each, and dave, who is in one of them, hears both."""
    if is_secured:
        pytest.importorskip("cryptography")
    sim = severed("vector", *BOTH_WAYS, greet=True, is_secured=is_secured)
    sim.run(3 * DETECT)
    sim["alice"].crash()
    rest = [name for name in ("bob", "cathy", "dave") if name != alone]
    sim.network.part([sim[alone]], [sim[name] for name in rest])
    sim.run(sim.now + 6 * DETECT)
    assert views(sim, *rest) == {tuple(rest)} and views(sim, alone) == {(alone,)}
    sim.network.heal()
    sim.run(sim.now + 6.0)
    go_on(sim, *rest, alone)


def test_a_way_that_is_good_again_is_gone_straight() -> None:
    """What is handed on comes after what comes straight, and does not hide that."""
    sim = severed("vector", greet=False)
    bob, cathy = sim["bob"], sim["cathy"]
    sim.network.cut = {(bob.index, cathy.index), (cathy.index, bob.index)}
    sim.run(3 * DETECT)
    assert all(site.stack.wire.also is not None for site in (bob, cathy))
    sim.network.heal()
    sim.run(sim.now + 3 * DETECT)
    assert all(site.stack.wire.also is None for site in sim.sites)
    go_on(sim, *NAMES)


def test_what_some_delivered_early_all_get_though_nobody_has_what_was_before() -> None:
    """`sco` at the level `received`: dave's first two messages reach nobody, the third bob alone."""
    options = Options(detect=DETECT, deliver="received")
    sim = Sim(*NAMES, order="sco", faults=Faults(delay_max=0.001), options=options, datagram_max=1472)
    sim["dave"].send(b"hello")
    sim.run(1.0)
    dave, others = sim["dave"], [sim[name] for name in NAMES[:3]]
    for text, hearer in (("first", None), ("second", None), ("third", None), ("fourth", "bob")):
        sim.network.cut = {(dave.index, other.index) for other in others if other.name != hearer}
        sim["dave"].send(text.encode().ljust(1000))  # and what was said before it leaves
        sim.run(sim.now + 0.002)
    sim["dave"].crash()

    def texts() -> list[list[str]]:
        return [sorted(text.rstrip() for text in other.texts) for other in others]

    assert texts() == [["hello"], ["hello", "third"], ["hello"]]
    sim.run(sim.now + 3.0)
    assert texts() == [["hello", "third"]] * 3
    go_on(sim, *NAMES[:3])


@pytest.mark.parametrize("order", ["vector", "co", "sco", "total"])
def test_a_goodbye_that_the_leader_missed_is_told_when_it_asks(order: str) -> None:
    """Dave's goodbye comes to all but alice, and dave is gone before he can repeat it: nobody but alice suspects him."""
    sim = group(order, faults=Faults(delay_max=0.001))
    dave = sim["dave"]
    sim.run(1.0)
    sim.network.cut = {(dave.index, sim["alice"].index)}
    dave.leave()
    sim.run(1.01)
    dave.crash()
    sim.network.heal()
    assert dave.index in sim["bob"].stack.left and dave.index not in sim["alice"].stack.left
    sim.run(1.0 + 3 * DETECT)
    go_on(sim, *NAMES[:3])
