"""Members that hold up the others because their applications do not read: waited for, expelled, or made to skip."""

from collections.abc import Iterator

import pytest

from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.event import Missed
from inga.model.view import Member, View
from inga.recipes import Options, find
from inga.session.presence import Presence
from inga.session.session import Session
from inga.session.slow import DENY_WITHIN
from inga.session.transfer import Transfer
from inga.sim import Sim
from inga.sim.site import Site
from inga.sim.states import SiteGives
from inga.trial.workload import Workload

NAMES = ("alice", "bob", "cathy", "dave")
ORDERS = ("none", "fifo", "vector", "sco", "object", "total")
PATIENCE = 2.0
SLOW_UNTIL = 20.0
"""When the one that does not read reads again."""

EXPELLED = PATIENCE + DENY_WITHIN + 3.0
"""By when it is expelled."""


def group(order: str, slow: str, reader: str = "dave", *, seed: int = 0) -> Sim:
    """One application does not read, and all send more than it has room for."""
    options = Options(detect=0.5, slow=slow, patience=PATIENCE, queue_max=2000, flow={"window": 4000})
    links = Faults(delay_min=0.001, delay_max=0.01)
    sim = Sim(*NAMES, order=order, seed=seed, faults=links, options=options, record=False)
    sim[reader].stop_reading(SLOW_UNTIL)
    sim.load(Workload(150, 40, size=300))
    return sim


def session(site: Site) -> Session:
    found = site.stack.layer("session")
    assert isinstance(found, Session)
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_who_is_waited_for_is_known_and_for_how_long(order: str) -> None:
    """Under `total`, with this seed: with about half of them somebody waits for the sequencer, which waits for dave."""
    sim = group(order, "wait", seed=1)
    sim.run(EXPELLED)
    for name in NAMES[:3]:
        waits = session(sim[name]).pressure.waits
        assert waits.keys() == {"dave"} and EXPELLED - 1.0 < waits["dave"] <= EXPELLED
        assert sim[name].stack.view.names == NAMES
    sim.run(SLOW_UNTIL + 5.0)
    assert session(sim["alice"]).pressure.waits["dave"] < SLOW_UNTIL + 1.0
    sim.check()


@pytest.mark.parametrize("reader", ["alice", "dave"])
@pytest.mark.parametrize("order", ORDERS)
def test_who_does_not_read_is_expelled_and_told_why(order: str, reader: str) -> None:
    """It, and nobody else, whether it leads or not; the others go on."""
    sim = group(order, "expel", reader)
    sim.run(PATIENCE)
    assert all(site.stack.view.names == NAMES for site in sim.sites)
    sim.run(EXPELLED)
    rest = tuple(name for name in NAMES if name != reader)
    assert [site.name for site in sim.sites if site.is_excluded] == [reader]
    assert "too slow" in str(sim[reader].stack._error)
    assert {sim[name].stack.view.names for name in rest} == {rest}
    sim.run(EXPELLED + 5.0)
    for name in rest:
        heard = [delivery.sender for delivery in sim[name].taken]
        assert all(heard.count(other) == 40 for other in rest if other != name)
    sim.check()


@pytest.mark.parametrize("order", ORDERS)
def test_who_skips_comes_back_and_is_told_exactly_what_it_missed(order: str) -> None:
    sim = group(order, "skip")
    dave = sim["dave"]
    sim.run(EXPELLED)
    assert sim["alice"].stack.view.names == NAMES[:3] and not dave.is_excluded
    sim.run(SLOW_UNTIL - 0.1)
    assert sim["alice"].stack.view.names == NAMES[:3], "it is let in before it reads"
    sim.run(SLOW_UNTIL + 5.0)
    assert sim["alice"].stack.view.names == NAMES and dave.stack.view.joined == ("dave",)
    (missed,) = [item for item in dave.items if isinstance(item, Missed)]
    assert isinstance(dave.items[-1], View) and missed in dave.items[-3:-1]
    heard = [delivery.sender for delivery in dave.taken]
    assert missed.messages == {name: 40 - heard.count(name) for name in NAMES[:3]}
    sim["alice"].send(b"welcome back")
    sim.run(SLOW_UNTIL + 7.0)
    assert dave.texts[-1] == "welcome back"
    sim.check()


def test_who_has_come_back_and_is_cut_off_later_comes_back_like_all_others() -> None:
    """Although its application does not read then: it was not too slow this time, and is not told that it missed anything."""
    sim = group("fifo", "skip")
    dave = sim["dave"]
    sim.run(SLOW_UNTIL + 5.0)
    assert dave.stack.view.names == NAMES
    sim.network.part([dave], sim.sites[:3])
    sim.run(sim.now + 5.0)
    dave.stop_reading(sim.now + 60.0)
    dave.send(b"to nobody")
    sim.network.heal()
    sim.run(sim.now + 5.0)
    assert sim["alice"].stack.view.names == NAMES
    sim.run(sim.now + 60.0)
    assert len([item for item in dave.items if isinstance(item, Missed)]) == 1
    sim.check()


def test_a_member_with_the_index_of_one_that_was_too_slow_comes_back_after_a_partition() -> None:
    """Alice, the first of all, was too slow; then bob is the first. He is cut off, and not told that he was too slow, which would
    end him."""
    sim = group("total", "expel", "alice")
    alice, bob, *rest = sim.sites
    sim.run(EXPELLED)
    assert alice.is_excluded and bob.stack.view.names == NAMES[1:]
    sim.network.part([bob], rest)
    sim.run(sim.now + 3.0)
    assert all(site.stack.view.names == NAMES[2:] for site in rest)
    sim.network.heal()
    sim.run(sim.now + 5.0)
    assert all(site.stack.view.names == (*NAMES[2:], "bob") for site in (bob, *rest))
    sim.check()


def test_who_comes_back_is_told_once_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the welcome comes twice before the application has its turn."""
    arrive = Site.arrive

    def twice(site: Site, datagram: tuple[bytes, str]) -> None:
        if site.newcomer is None:
            site.stack.receive([datagram], now=sim.now)
        arrive(site, datagram)

    monkeypatch.setattr(Site, "arrive", twice)
    sim = group("vector", "skip")
    dave = sim["dave"]
    sim.run(SLOW_UNTIL + 5.0)
    assert dave.stack.view.joined == ("dave",)
    assert len([item for item in dave.items if isinstance(item, Missed)]) == 1
    sim.check()


def test_who_was_giving_a_state_when_it_was_excluded_comes_back() -> None:
    """Its application waits at the view for one that gets the state, and who does not ask it any more."""
    sim = giving("skip", draws=stands_still)
    alice, cathy, dave = sim["alice"], sim["cathy"], sim.join("dave", 0.2)
    sim.run(EXPELLED)
    assert session(cathy).parts.reads_first
    sim.run(SLOW_UNTIL + 10.0)
    assert not cathy.stack.is_homeless and not dave.stack.is_homeless
    assert {*alice.stack.view.names} == {*NAMES}


def giving(
    slow: str, order: str = "vector", delay: float = 0.01, draws: SiteGives | None = None, pieces: int = 4000
) -> Sim:
    """Alice talks all the time, and whoever joins gets a state of many pieces: from cathy, if she can give it."""
    sim = Sim(
        *NAMES[:3],
        order=order,
        seed=1,
        faults=Faults(delay_min=delay / 10, delay_max=delay),
        options=Options(detect=1.0, slow=slow, patience=PATIENCE, queue_max=2000, flow={"window": 4000}),
        datagram_max=2000,
        record=False,
        give=draws or (lambda site: [bytes(1000)] * pieces),
        take=lambda site, state: site.items.append(Missed({"octets": len(state)})),
    )
    alice = sim["alice"]
    for turn in range(1500):
        sim.at(0.02 * turn, alice, lambda: alice.stack.writable and alice.send(bytes(300)))
    return sim


def stands_still(site: Site) -> Iterator[bytes]:
    """Draws some of a state, and then for a long time nothing more, if it is cathy who does."""
    for place in range(4000):
        if site.name == "cathy" and place == 200:
            site.stop_reading(SLOW_UNTIL)
        yield bytes(1000)


def trickles(site: Site) -> Iterator[bytes]:
    """Draws a little now and then."""
    for _ in range(40):
        site.stop_reading(PATIENCE / 8)
        yield bytes(1000)


def at_once(site: Site) -> Iterator[bytes]:
    """Draws all of it in one chunk, and then waits until that is nearly gone."""
    yield bytes(6_000_000)


def exclusions(sim: Sim) -> set[str]:
    """Who was ever excluded."""
    return {name for before, view in sim.ledger.steps for name in view.failed}


@pytest.mark.parametrize("slow", ["expel", "skip"])
@pytest.mark.parametrize(
    ("order", "delay", "draws"),
    [("vector", 0.1, None), ("fifo", 0.1, None), ("total", 0.1, at_once), ("vector", 0.01, trickles)],
)
def test_a_state_that_moves_holds_nobody_up_however_long_it_takes(
    order: str, delay: float, draws: SiteGives | None, slow: str
) -> None:
    """The applications of both wait for it, and read nothing meanwhile."""
    sim = giving(slow, order, delay, draws, pieces=6000)
    dave = sim.join("dave", 0.2)
    sim.run(EXPELLED)
    assert session(dave).transfer.lacks and session(sim["alice"]).pressure.waits, (
        "it is no state that takes long"
    )
    sim.run(30.0)
    assert exclusions(sim) == set()
    assert [item.messages for item in dave.items if isinstance(item, Missed)] == [
        {"octets": 40_000 if draws is trickles else 6_000_000}
    ]


def test_of_a_state_that_is_not_drawn_the_one_is_to_blame_who_does_not_draw_it() -> None:
    """And not the newcomer, which gets it of another."""
    sim = giving("expel", draws=stands_still)
    dave = sim.join("dave", 0.2)
    sim.run(SLOW_UNTIL)
    assert exclusions(sim) == {"cathy"}
    assert not session(dave).transfer.lacks


def test_who_reads_slowly_and_gives_a_state_holds_nobody_up_who_lacks_it() -> None:
    """Cathy reads something now and then, and dave waits until she is where he joined. She waits for him herself, and knows."""
    sim = giving("expel", pieces=40)
    cathy = sim["cathy"]
    cathy.react = lambda delivery: cathy.stop_reading(0.9 * PATIENCE / 2)
    for turn in range(1000):
        sim.at(0.02 * turn, cathy, lambda: cathy.stack.writable and cathy.send(bytes(300)))
    dave = sim.join("dave", 1.0)
    sim.run(1.0 + EXPELLED)
    assert session(dave).transfer.lacks and "dave" in session(cathy).pressure.waits
    sim.run(40.0)
    assert exclusions(sim) == set() and not session(dave).transfer.lacks


def test_who_does_not_come_to_the_view_at_which_it_gives_a_state_is_to_blame() -> None:
    """The newcomer does not even know who gives it one."""
    sim = giving("expel", pieces=40)
    sim.at(0.1, sim["cathy"], lambda: sim["cathy"].stop_reading(SLOW_UNTIL))
    dave = sim.join("dave", 0.2)
    sim.run(SLOW_UNTIL)
    assert exclusions(sim) == {"cathy"} and not session(dave).transfer.lacks


def test_of_a_state_that_does_not_come_who_lacks_it_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever large datagrams meet on their way: all that was drawn ahead is asked for again and again."""
    monkeypatch.setattr(Transfer, "on_state", lambda *_: None)
    sim = giving("expel")
    dave = sim.join("dave", 0.2)
    sim.run(EXPELLED + 1.0)
    assert exclusions(sim) == {"dave"} and session(sim["cathy"]).transfer.outgoing == {}
    assert dave.stack.view.number < sim["alice"].stack.view.number


def test_who_was_slow_itself_tells_no_other_that_it_is_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not know why, and one that was too slow would take that for the end."""
    sim = group("vector", "skip")
    first, said = sim["dave"].stack.view, list[tuple[str, str, bool]]()
    sim["cathy"].stop_reading(SLOW_UNTIL + 10.0)
    sim.run(SLOW_UNTIL + 5.0)
    assert sim["dave"].stack.view.names == ("alice", "bob", "dave")

    def say(presence: Presence, person: Member, *_: object, is_slow: bool = False) -> None:
        said.append((presence._session.stack.member.name, person.name, is_slow))

    monkeypatch.setattr(Presence, "say_excluded", say)
    for name in ("dave", "alice"):
        session(sim[name]).late(first, first.names.index("cathy"), "cathy")
    assert said == [("alice", "cathy", True)]


def test_what_was_sent_to_some_is_missed_by_those() -> None:
    sim = group("vector", "skip")
    for _ in range(7):
        sim["alice"].send(b"for dave", "dave")
        sim["alice"].send(b"for bob", "bob")
    sim.run(SLOW_UNTIL + 5.0)
    dave = sim["dave"]
    (missed,) = [item for item in dave.items if isinstance(item, Missed)]
    heard = [delivery.sender for delivery in dave.taken]
    assert missed.messages["alice"] == 40 + 7 - heard.count("alice")


def test_who_does_not_read_itself_blames_nobody() -> None:
    """Bob and dave do not read. Each waits for the other, and neither has a right to."""
    options = Options(detect=0.5, slow="expel", patience=PATIENCE, queue_max=2000, flow={"window": 4000})
    sim = Sim("bob", "dave", order="fifo", options=options, record=False)
    for site in sim.sites:
        site.stop_reading(SLOW_UNTIL)
    sim.load(Workload(150, 40, size=300))
    sim.run(SLOW_UNTIL - 1.0)
    assert not any(site.is_excluded for site in sim.sites)
    assert all(session(site).pressure.waits for site in sim.sites)
    sim.run(SLOW_UNTIL + 5.0)
    sim.check()


def test_who_reads_denies_it() -> None:
    """Cathy is wrong about dave, and says so again and again."""
    sim = group("fifo", "expel", "alice")
    sim["alice"].reads_at = 0.0
    for _ in range(10):
        session(sim["cathy"]).slow.complain({3}, -PATIENCE)
        sim["cathy"].pump()
        sim.run(sim.now + 1.0)
    assert not any(site.is_excluded for site in sim.sites)
    assert {site.stack.view.names for site in sim.sites} == {NAMES}


def test_a_majority_is_not_given_up_for_a_slow_member() -> None:
    """Of two the second cannot expel the first."""
    options = Options(detect=0.5, slow="expel", patience=PATIENCE, queue_max=2000, flow={"window": 4000})
    sim = Sim("alice", "bob", order="total", options=options, record=False)
    sim["alice"].stop_reading(SLOW_UNTIL)
    sim.load(Workload(150, 40, size=300))
    sim.run(SLOW_UNTIL + 5.0)
    assert sim["bob"].stack.view.number == 1 and not sim["alice"].is_excluded
    sim.check()


def test_who_is_slow_is_kept_while_another_may_be_dead() -> None:
    """Bob is slow, and cathy has just died: without both of them alice would be alone for ever."""
    options = Options(detect=2.0, slow="expel", patience=0.2, queue_max=2000, flow={"window": 4000})
    sim = Sim(*NAMES[:3], order="total", options=options, record=False)
    alice, bob, cathy = sim.sites
    bob.stop_reading(SLOW_UNTIL)
    for _ in range(60):
        alice.send(b"." * 300)
    sim.run(DENY_WITHIN + 0.5)
    cathy.crash()
    sim.run(DENY_WITHIN + 10.0)
    assert alice.stack.view.names == ("alice", "bob") and alice.stack.paused is None


@pytest.mark.parametrize("order", ["relay", "remiop", "remiop+vector"])
def test_orders_that_do_not_know_whom_to_blame(order: str) -> None:
    with pytest.raises(UsageError, match=r"slow is an option of order .*vector"):
        find(order).check(Options(slow="expel"))
    find(order).check(Options(slow="wait"))


def test_policies_that_there_are_not() -> None:
    with pytest.raises(UsageError, match="slow is wait, expel or skip, not 'kill'"):
        Sim("alice", options=Options(slow="kill"))
    with pytest.raises(UsageError, match="partition is primary or all, not 'most'"):
        Sim("alice", options=Options(partition="most"))
    with pytest.raises(UsageError, match="partition is an option of order"):
        find("remiop+total").check(Options(partition="primary"))
