"""Groups of which one part alone goes on: those who are too few pause, say so, and come back."""

import pickle
from collections.abc import Callable

import pytest

from inga.layers.shape import Faults
from inga.model.errors import NoMajority, UsageError
from inga.model.event import Paused, Resumed
from inga.model.view import View
from inga.recipes import Options
from inga.session.newcomer import PAUSED_FOR
from inga.session.parts import ALONE_AFTER
from inga.session.session import Session
from inga.sim import Sim
from inga.sim.site import Site

from .test_parts import DETECT, NAMES, here, say_and_hear, views

LINKS = Faults(delay_min=0.001, delay_max=0.01)
HEALED = 2.0
"""Seconds within which parts that hear each other again are one."""


def group(
    members: int = 5,
    order: str = "total",
    *,
    partition: str | None = None,
    faults: Faults = LINKS,
    seed: int = 0,
) -> Sim:
    options = Options(detect=DETECT, partition=partition)
    return Sim(*NAMES[:members], order=order, seed=seed, faults=faults, options=options, record=False)


def part(sim: Sim, *parts: str) -> None:
    """Each part by the first letters of its members."""
    sites = {site.name[0]: site for site in sim.sites if not site.has_left}
    sim.network.part(*[[sites[letter] for letter in each] for each in parts])


def paused(sim: Sim) -> str:
    return "".join(site.name[0] for site in here(sim) if site.stack.paused is not None)


def session(site: Site) -> Session:
    found = site.stack.layer("session")
    assert isinstance(found, Session)
    return found


def step(sim: Sim, until: Callable[[], bool]) -> None:
    """Go on in small steps until something is so."""
    end = sim.now + 5.0
    while not until():
        sim.run(sim.now + 0.0002)
        assert sim.now < end


@pytest.mark.parametrize(
    ("order", "partition"), [("total", None), ("object", None), ("vector", "primary"), ("co", "primary")]
)
def test_the_majority_goes_on_and_the_others_pause_until_they_are_back(
    order: str, partition: str | None
) -> None:
    sim = group(order=order, partition=partition)
    sim.run(1.0)
    part(sim, "ab", "cde")
    sim.run(1.0 + 3 * DETECT)
    assert paused(sim) == "ab"
    assert {site.stack.view.names for site in sim.sites} == {NAMES, NAMES[2:]}
    for name in ("alice", "bob"):
        with pytest.raises(NoMajority, match="cathy, dave, erin") as raised:
            sim[name].stack.send(b"nobody", now=sim.now)
        assert raised.value.missing == NAMES[2:]
        assert sim[name].items == [Paused(sim[name].stack.view, NAMES[2:])]
    sim["erin"].send(b"of the majority")
    sim.run(4.0)
    assert "of the majority" in sim["cathy"].texts
    sim.network.heal()
    sim.run(4.0 + HEALED)
    assert len(views(sim)) == 1 and not paused(sim)
    assert [type(item) for item in sim["alice"].items[:3]] == [Paused, Resumed, View]
    say_and_hear(sim)


@pytest.mark.parametrize(("order", "seed"), [("object", 0), *(("total", seed) for seed in range(6))])
def test_a_cut_that_leaves_nobody_a_majority_costs_nothing(order: str, seed: int) -> None:
    """Neither when it begins nor when it ends do all find out about all at the same moment."""
    sim = group(order=order, seed=seed)
    sim.run(1.0)
    part(sim, "ab", "cd", "e")
    sim.run(1.0 + DETECT / 2)
    sim["alice"].send(b"while it lasts")
    sim.run(4.0)
    assert paused(sim) == "abcde"
    sim.network.heal()
    sim.run(4.0 + HEALED)
    assert not paused(sim)
    for site in sim.sites:
        assert site.stack.view.number == 1 and "while it lasts" in site.texts
        assert [type(item) for item in site.items] == [Paused, Resumed]
    say_and_hear(sim)


@pytest.mark.parametrize("order", ["vector", "total", "object", "co", "sco", "remiop", "remiop+total"])
def test_what_was_lost_before_a_long_pause_is_repaired_after_it(order: str) -> None:
    """Whoever lacks something asks for it all the time, and blames nobody, however long the cut lasts."""
    patience = {"patience": 5.0} if order in ("co", "sco") else {}
    options = Options(
        detect=DETECT,
        partition="primary",
        protocol={"repeats": 5} if order.startswith("remiop") else patience,
        reliable={"patience": 5.0} if order in ("vector", "total", "object") else {},
    )
    faults = Faults(loss=0.4, delay_min=0.001, delay_max=0.01)
    sim = Sim(*NAMES[:5], order=order, faults=faults, options=options, datagram_max=1472, record=False)
    sim.run(1.0)
    for number in range(8):
        for site in sim.sites:
            site.send(f"{site.name} {number} {'x' * 4000}".encode())
        sim.run(1.0 + 0.002 * (number + 1))
    part(sim, "ab", "cd", "e")
    sim.run(30.0)
    assert paused(sim) == "abcde" and not any(site.has_left for site in sim.sites)
    sim.network.heal()
    sim.run(60.0)
    assert not paused(sim)
    for site in sim.sites:
        assert site.stack.view.number == 1
        for other in sim.sites:
            heard = sorted(text.split()[1] for text in site.texts if text.startswith(other.name))
            assert heard == [str(number) for number in range(8)] or (other is site and not heard)


def test_a_cut_is_not_held_against_anybody_as_slowness() -> None:
    """Senders waited all the time that it lasted, with full windows."""
    options = Options(detect=DETECT, slow="expel", patience=1.0, flow={"window": 4000})
    sim = Sim(
        *NAMES[:3], order="total", seed=1, faults=LINKS, options=options, record=False, datagram_max=2000
    )
    sim.run(1.0)
    part(sim, "a", "b", "c")
    for site in sim.sites:
        while site.stack.writable:
            site.send(bytes(500))
    sim.run(8.0)
    assert paused(sim) == "abc"
    sim.network.heal()
    while paused(sim):
        sim.run(sim.now + 0.01)
    assert all(session(site).pressure._blaming_since > 8.0 for site in sim.sites), "waits count from here"
    sim.run(14.0)
    assert {site.stack.view.text for site in sim.sites} == {sim["alice"].stack.view.text}
    assert sim["alice"].stack.view.number == 1
    say_and_hear(sim)


def test_those_who_are_heard_again_make_a_majority_which_goes_on_without_the_rest() -> None:
    sim = group()
    part(sim, "ab", "cd", "e")
    sim.run(2.0)
    part(sim, "abcd", "e")
    sim.run(2.0 + HEALED)
    assert paused(sim) == "e" and views(sim) == {sim["alice"].stack.view.text, sim["erin"].stack.view.text}
    assert sim["alice"].stack.view.names == NAMES[:4]
    sim.network.heal()
    sim.run(sim.now + HEALED)
    say_and_hear(sim)


@pytest.mark.parametrize(("cut", "goes_on"), [("ab", "a"), ("abcd", "ab")])
def test_half_of_them_go_on_if_the_first_is_there(cut: str, goes_on: str) -> None:
    sim = group(len(cut))
    part(sim, cut[: len(cut) // 2], cut[len(cut) // 2 :])
    sim.run(2.0)
    assert paused(sim) == cut.removeprefix(goes_on)
    assert sim["alice"].stack.view.names == NAMES[: len(goes_on)]


def test_who_has_said_goodbye_does_not_count() -> None:
    """Of five two leave and one fails: two are left of three. Without the goodbyes they would be two of five."""
    sim = group()
    sim.run(1.0)
    sim["alice"].crash()
    sim["bob"].leave()
    sim["cathy"].leave()
    sim.run(4.0)
    assert sim["dave"].stack.view.names == ("dave", "erin")
    assert sim["dave"].stack.view.left == ("bob", "cathy") and sim["dave"].stack.view.failed == ("alice",)


def test_goodbyes_during_a_pause() -> None:
    sim = group()
    part(sim, "ab", "cd", "e")
    sim.run(2.0)
    sim["bob"].leave()
    sim["dave"].leave()
    sim.run(4.0)
    assert set(paused(sim)) == set("ace")
    sim.network.heal()
    sim.run(4.0 + HEALED)
    assert sim["alice"].stack.view.names == ("alice", "cathy", "erin")
    say_and_hear(sim)


def test_a_majority_that_died_is_waited_for_until_a_person_decides() -> None:
    sim = group()
    sim.run(1.0)
    for name in NAMES[:3]:
        sim[name].crash()
    sim.run(10.0)
    assert paused(sim) == "de" and sim["dave"].stack.view.number == 1
    again = sim.join("alice")
    sim.run(16.0)
    assert again.has_left and again.newcomer is not None
    assert "no majority of alice, bob, cathy, dave, erin" in str(again.newcomer.refused)
    sim["erin"].go_on()
    sim.run(17.0)
    assert views(sim) == {sim["dave"].stack.view.text} and sim["dave"].stack.view.names == ("dave", "erin")
    sim.join("alice")
    sim.run(19.0)
    assert sim["alice"].stack.view.names == ("dave", "erin", "alice")
    say_and_hear(sim)


def test_a_stack_that_is_paused_can_be_put_away() -> None:
    sim = group(2, "vector", partition="primary")
    part(sim, "a", "b")
    sim.run(2.0)
    copy = pickle.loads(pickle.dumps(sim["bob"].stack))
    with pytest.raises(NoMajority, match="without alice") as raised:
        copy.send(b"", now=2.0)
    assert raised.value.missing == ("alice",)


def test_there_is_nothing_to_decide_where_nobody_is_missing() -> None:
    sim = group()
    with pytest.raises(UsageError, match="not paused"):
        sim["alice"].go_on()


def test_who_is_without_a_view_waits_until_it_is_let_in_or_a_person_decides() -> None:
    """Where one part alone goes on, nobody goes on alone."""
    sim = group(3)
    sim.run(1.0)
    part(sim, "ab", "c")
    sim.run(3.0)
    sim["alice"].stack.layer("session").parts._lost.clear()  # type: ignore[union-attr]
    sim.network.heal()
    step(sim, lambda: session(sim["cathy"]).parts.is_homeless)
    part(sim, "ab", "c")
    sim["alice"].crash()
    sim["bob"].crash()
    sim.run(20.0)
    assert paused(sim) == "c" and session(sim["cathy"]).parts.is_homeless
    sim["cathy"].go_on()
    sim.run(21.0)
    assert sim["cathy"].stack.view.names == ("cathy",) and sim["cathy"].stack.writable


def test_two_parts_that_have_begun_to_go_on_without_each_other() -> None:
    """Alice excludes cathy and erin, and before that is done dave dies: nobody has a majority, and those who were excluded
    are heard again. They give their membership up, which is as good as a goodbye."""
    sim = group()
    sim.run(1.0)
    part(sim, "abd", "ce")
    step(sim, lambda: sim["alice"].stack.closing)
    sim["dave"].crash()
    sim.run(sim.now + 3 * DETECT)
    assert set(paused(sim)) == set("abce") and sim["alice"].stack.failed == {2, 4}
    sim.network.heal()
    sim.run(sim.now + 2 * HEALED)
    assert set(sim["alice"].stack.view.names) == {"alice", "bob", "cathy", "erin"}
    say_and_hear(sim)


def split(sim: Sim) -> set[tuple[str, ...]]:
    """Views of members that can go on."""
    return {site.stack.view.names for site in here(sim) if site.stack.paused is None}


def test_few_who_have_installed_a_view_with_many_newcomers_do_not_go_on_alone() -> None:
    """Alice and six newcomers are seven of twelve; the others, who do not know of them, five of six."""
    sim = group(faults=Faults(delay_min=0.002, delay_max=0.002))
    sim.run(1.0)
    sim.join("frank")
    step(sim, lambda: sim["alice"].stack.closing)
    sim["erin"].pause(DETECT / 4)  # which keeps the view closed until all have asked
    newcomers = [sim.join(name) for name in ("tom", "ulla", "vera", "will", "xenia", "yves")]
    few = [sim["alice"], *newcomers]
    many = [site for site in sim.sites if site not in few]
    step(sim, lambda: all(site.newcomer is None and site.stack.view.number == 2 for site in many))
    step(sim, lambda: all(session(site).quorum.promised for site in many))
    sim.network.part(few, many)  # what they have agreed to is under way to her
    sim.run(sim.now + 8 * DETECT)
    assert len(sim["alice"].stack.view) == 12 and sim["bob"].stack.view.number == 3
    assert split(sim) == {("bob", "cathy", "dave", "erin", "frank")}
    sim.network.heal()
    sim.run(sim.now + 3 * HEALED)
    say_and_hear(sim)


def test_one_that_has_agreed_to_a_change_has_not_left() -> None:
    """Alice and bob, half of four with the first, go on. Bob's goodbye, as it comes to cathy and dave alone, must not make
    them two of three."""
    sim = group(4)
    sim.run(1.0)
    part(sim, "ab", "cd")
    step(sim, lambda: bool(session(sim["bob"]).quorum.promised))
    part(sim, "a", "bcd")
    sim["bob"].stack.goodbye(now=sim.now)
    sim["bob"].pump()
    sim.run(sim.now + 0.02)
    sim["bob"].crash()
    sim.run(sim.now + 8 * DETECT)
    assert split(sim) == {("alice",)} and paused(sim) == "cd"
    sim.network.heal()
    sim.run(sim.now + 2 * HEALED)
    say_and_hear(sim)


@pytest.mark.parametrize("seed", range(8))
def test_a_newcomer_in_a_view_that_nobody_else_has_installed_finds_the_group(seed: int) -> None:
    """Its leader has let it in and failed, and then it says nothing for a while; those who are left never lost it, and would
    never say that they are there."""
    sim = group(seed=seed)
    sim.run(1.0)
    alice, *others = sim.sites
    frank = sim.join("frank")
    step(sim, lambda: all(site.stack.closing for site in others))
    closings = [session(site).changes for site in others]
    step(sim, lambda: all(changes.closing is not None and changes.closing.reached for changes in closings))
    assert alice.stack.view.number == 1
    sim.network.cut = {(one.index, site.index) for site in others for one in (alice, frank)}
    step(sim, lambda: frank.is_member)
    alice.crash()
    step(sim, lambda: all("alice" not in site.stack.view.names for site in others))
    sim.join("alice")
    step(sim, lambda: all("alice" in site.stack.view.names for site in others))
    assert all("frank" not in site.stack.view.names for site in others)
    sim.network.heal()
    step(sim, lambda: frank.stack.paused is not None)
    sim.run(sim.now + HEALED)
    assert "frank" in others[0].stack.view.names
    say_and_hear(sim)


def test_a_newcomer_is_turned_away_by_one_that_is_let_in_nowhere_itself() -> None:
    """Alice went on without bob, and died before she let him in again: nobody will ever be let in."""
    sim = Sim(
        "alice",
        "bob",
        order="vector",
        options=Options(detect=0.5, partition="primary", rejoin=True),
        record=False,
    )
    alice, bob = sim["alice"], sim["bob"]
    sim.run(0.5)
    sim.network.part([alice], [bob])
    sim.run(2.0)
    sim.network.heal()
    parts = bob.stack.layer("session").parts  # type: ignore[union-attr]
    while not parts.is_homeless:
        sim.run(sim.now + 0.001)
    alice.crash()
    cathy = sim.join("cathy")
    sim.run(sim.now + ALONE_AFTER)
    assert not cathy.has_left, "bob might be let in, and she with him"
    sim.run(sim.now + PAUSED_FOR + 1.0)
    assert cathy.has_left


@pytest.mark.parametrize("order", ["total", "remiop"])
def test_who_is_in_no_view_is_silent_in_the_one_that_it_left(order: str) -> None:
    """Else it would be taken for a member that is there, for which changes wait, and not be let in under its name."""
    sim = group(3, order, partition="primary")
    for site in sim.sites:
        for _ in range(10):
            site.send(b"hello")
    sim.run(0.1)
    cathy = sim["cathy"]
    session(cathy).changes.leave_home()
    cathy.pump()
    sim.run(sim.now + 2 * DETECT)
    assert not session(cathy).parts.is_homeless and len(cathy.stack.view) == 3
    say_and_hear(sim)


def test_one_that_follows_another_leader_gives_up_if_ours_comes_first() -> None:
    """Alice goes on without bob, and cathy without alice, who counts on her. Dave is dead: alice is too few without cathy,
    and cathy by herself."""
    sim = group(4)
    sim.run(1.0)
    sim["dave"].crash()
    for name, gone in (("alice", 1), ("bob", 0), ("cathy", 0)):
        session(sim[name]).exclude({gone})
        sim[name].pump()
    sim.run(sim.now + 2 * DETECT + HEALED)
    assert split(sim) == {("alice", "cathy", "bob")}
    say_and_hear(sim)


@pytest.mark.parametrize("seed", range(4))
def test_the_leader_dies_as_soon_as_one_is_in_the_new_view(seed: int) -> None:
    """That it led the change is proof enough that it does not go on in the view before."""
    sim = group(2, faults=Faults(delay_min=0.001, delay_max=0.001), seed=seed)
    sim.join("cathy")
    step(sim, lambda: len(sim["bob"].stack.view) == 3)
    sim["alice"].crash()
    sim.run(sim.now + 4 * DETECT)
    assert paused(sim) == ""
    assert [site.stack.view.names for site in here(sim)] == [("bob", "cathy")] * 2
    say_and_hear(sim)
