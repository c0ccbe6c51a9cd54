"""Who joins gets the state of an application as it was at the cut, and all that was delivered after it: not more, not less."""

from collections.abc import Iterator

import pytest

from inga.layers.shape import Faults
from inga.model.delivery import Batch
from inga.model.errors import UsageError
from inga.recipes import Options
from inga.session.history import HISTORY_MAX, KIND
from inga.session.transfer import AHEAD
from inga.sim import Sim
from inga.sim.site import Site
from inga.trace.memory import MemoryTrace

NAMES = ("alice", "bob", "cathy")
ORDERS = ("none", "fifo", "vector", "co", "sco", "relay", "object", "total")
DETECT = 0.5


class Town:
    """A group whose sites have what they took as their state: that is given to those who join."""

    def __init__(
        self,
        order: str,
        *,
        loss: float = 0.0,
        seed: int = 0,
        filling: int = 0,
        failing: tuple[str, ...] = (),
        gives: tuple[str, ...] = NAMES,
        delay_min: float = 0.001,
    ) -> None:
        self.filling = b"." * filling  # goes with each state, to make it large
        self.failing = failing
        self.begun: dict[str, list[str]] = {}  # with what each newcomer began
        self.asked: list[str] = []  # who gave a state
        self.sim = Sim(
            *NAMES,
            order=order,
            seed=seed,
            faults=Faults(loss, delay_min=delay_min, delay_max=0.01),
            options=Options(detect=DETECT, echo=True),
            record=False,
            give=self.give if gives else None,
            take=self.take,
        )

    def give(self, site: Site):  # type: ignore[no-untyped-def]
        self.asked.append(site.name)
        if site.name in self.failing:
            raise ValueError("torn")
        for text in self.state(site):
            yield text.encode() + b"\n"
        for at in range(0, len(self.filling), 1000):
            yield self.filling[at : at + 1000]

    def take(self, site: Site, data: bytes) -> None:
        assert site.name not in self.begun
        assert data.endswith(self.filling)
        self.begun[site.name] = data[: len(data) - len(self.filling)].decode().splitlines()
        site.taken.clear()  # what it had before, if it was here before

    def state(self, site: Site) -> list[str]:
        return self.begun.get(site.name, []) + [f"{d.sender} {bytes(d.data).decode()}" for d in site.taken]

    def talk(self, seconds: float, step: float = 0.02) -> None:
        """Everybody says something all the time."""
        sim, start = self.sim, self.sim.now
        for turn in range(int(seconds / step)):
            sim.at(start + turn * step, sim.sites[0], lambda turn=turn: self._say(turn))

    def _say(self, turn: int) -> None:
        for site in self.sim.sites:
            if site.is_member:
                site.send(str(turn).encode())

    def run(self) -> None:
        """Let everything be said, and arrive."""
        self.sim.run(2.5)
        self.sim.calm()
        self.sim.run(6.0)

    def check(self, *newcomers: str, ordered: bool = False) -> None:
        """All who are here have the same, and newcomers had it from another."""
        here = [site for site in self.sim.sites if site.is_member]
        assert not any(site.queue for site in here)
        states = [self.state(site) for site in here]
        if not ordered:
            states = [sorted(state) for state in states]
        assert all(state == states[0] for state in states) and states[0]
        for name in newcomers:
            assert self.begun[name]
        self.sim.check()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("loss", "seed"), [(0.0, 0), (0.2, 1), (0.2, 2)])
def test_a_newcomer_has_all_that_the_others_have(order: str, loss: float, seed: int) -> None:
    town = Town(order, loss=loss, seed=seed)
    town.talk(0.5)
    town.sim.join("dave", 0.2)
    town.run()
    town.check("dave", ordered=order == "total")
    assert len(town.asked) == 1


@pytest.mark.parametrize("order", ORDERS)
def test_two_at_once_are_served_by_two(order: str) -> None:
    town = Town(order)
    town.talk(0.5)
    town.sim.join("dave", 0.2)
    town.sim.join("erin", 0.2)
    town.run()
    town.check("dave", "erin", ordered=order == "total")
    assert len(set(town.asked)) == 2


@pytest.mark.parametrize("order", ["fifo", "co", "total"])
@pytest.mark.parametrize("after", range(0, 120, 8))
def test_the_one_who_gives_may_fail_at_any_time(order: str, after: int) -> None:
    """Cathy is chosen first: she is furthest from leading. What comes after her is the state at another cut, and nothing
    half is ever seen."""
    town = Town(order, seed=after, filling=5 * AHEAD)
    town.talk(0.6)
    town.sim.join("dave", 0.2)
    town.sim.at(0.2 + after / 1000, town.sim["cathy"], town.sim["cathy"].crash)
    town.run()
    town.check("dave", ordered=order == "total")
    assert not town.sim["cathy"].is_member


def test_the_place_of_the_second_cut_is_that_of_the_view_without_the_first_who_gave() -> None:
    town = Town("vector", filling=5 * AHEAD)
    town.talk(1.5)
    dave = town.sim.join("dave", 0.2)
    town.sim.run(0.3)
    assert town.asked == ["cathy"] and dave.is_member and not town.begun
    assert any(isinstance(item, Batch) for _, item in dave.queue)
    town.sim["cathy"].crash()
    town.run()
    town.check("dave")
    assert town.asked == ["cathy", "bob"]
    assert {delivery.view for delivery in dave.taken} == {3}  # what was delivered in 2 came with the state


@pytest.mark.parametrize("order", ["vector", "sco", "total"])
def test_the_one_who_gives_may_leave(order: str) -> None:
    town = Town(order, filling=5 * AHEAD)
    town.talk(0.6)
    town.sim.join("dave", 0.2)
    town.sim.at(0.25, town.sim["cathy"], town.sim["cathy"].leave)
    town.run()
    town.check("dave", ordered=order == "total")


@pytest.mark.parametrize("order", ["vector", "total"])
def test_another_order_meanwhile_does_not_begin_it_again(order: str) -> None:
    town = Town(order, filling=5 * AHEAD)
    town.talk(0.8)
    dave = town.sim.join("dave", 0.2)
    town.sim.at(0.3, town.sim["bob"], lambda: town.sim["bob"].use("co"))
    town.run()
    town.check("dave")
    assert town.asked == ["cathy"] and dave.stack.view.recipe == "co"
    assert {2, 3} <= {delivery.view for delivery in dave.taken}  # in which it waited for the state, too


def test_it_goes_on_while_a_view_is_closed() -> None:
    town = Town("vector", filling=16 * AHEAD, delay_min=0.01)
    dave = town.sim.join("dave", 0.2)
    town.sim.run(0.4)
    transfer, come = dave.states.transfer, set()  # type: ignore[union-attr]
    assert transfer.lacks and transfer.incoming.offset
    town.sim["bob"].use("co")
    while dave.stack.view.number == 2:
        town.sim.run(town.sim.now + 0.001)
        if dave.stack.closing:
            come.add(transfer.incoming.offset)
    assert transfer.lacks and len(come) > 1


@pytest.mark.parametrize("after", range(0, 120, 24))
def test_the_newcomer_may_fail_at_any_time(after: int) -> None:
    """Nobody waits for it longer than for any other."""
    town = Town("vector", filling=5 * AHEAD)
    town.talk(2.0)
    dave = town.sim.join("dave", 0.2)
    town.sim.at(0.2 + after / 1000, dave, dave.crash)
    town.run()
    town.check()
    assert len(town.sim["cathy"].taken) == len(town.sim["bob"].taken) > 200


def test_it_is_drawn_as_it_is_asked_for_and_the_application_waits_there() -> None:
    town = Town("vector", filling=8 * AHEAD)
    town.talk(0.6)
    town.sim.join("dave", 0.2)
    cathy, most, waited = town.sim["cathy"], 0, False
    while town.sim.now < 2.0:
        town.sim.run(town.sim.now + 0.001)
        transfer = cathy.states.transfer  # type: ignore[union-attr]
        for outgoing in transfer.outgoing.values():
            most = max(most, len(outgoing.drawn))
            waited = waited or (outgoing.is_open and len(cathy.queue) > 10)
    assert AHEAD <= most < AHEAD + 1000 and waited
    town.run()
    town.check("dave")


def test_one_that_gives_none_is_not_chosen() -> None:
    town = Town("vector")
    for name in ("bob", "cathy"):
        town.sim[name].states.transfer.gives = ""  # type: ignore[union-attr]
    town.talk(0.5)
    town.sim.join("dave", 0.2)
    town.run()
    town.check("dave")
    assert town.asked == ["alice"]


def test_where_nobody_gives_any_a_newcomer_begins_without() -> None:
    town = Town("vector", gives=())
    town.talk(0.5)
    dave = town.sim.join("dave", 0.2)
    town.run()
    assert not town.begun and dave.taken and not dave.queue and dave.stack.writable
    town.sim.check()


def test_one_that_cannot_give_it_after_all_is_followed_by_another() -> None:
    town = Town("vector", failing=("cathy",))
    town.talk(0.5)
    dave = town.sim.join("dave", 0.2)
    town.run()
    town.check("dave")
    assert town.asked == ["cathy", "bob"] and dave.stack.view.number == 3


@pytest.mark.parametrize("order", ORDERS)
def test_if_nobody_can_give_it_a_newcomer_is_told(order: str) -> None:
    """As its view is installed: only then do layers above the session know of it, to say goodbye."""
    town = Town(order, failing=NAMES)
    town.talk(0.5)
    town.sim.join("dave", 0.2)
    with pytest.raises(UsageError, match=r"no state for one who joins, from alice: .*torn"):
        town.sim.run(5.0)
    assert town.asked == ["cathy", "bob", "alice"]


@pytest.mark.parametrize("order", ["fifo", "co", "sco", "total"])
def test_a_refusal_while_a_view_is_closed_does_not_keep_it_closed(order: str) -> None:
    """The newcomer gets its state at a later cut, so this one must not wait until it has read what it has."""
    torn: list[str] = []

    def give(site: Site) -> Iterator[bytes]:
        for _ in range(3000):
            if sim["alice"].stack.closing and not torn:
                torn.append(site.name)
                raise ValueError("torn")
            yield bytes(1000)

    began: list[str] = []
    sim = Sim(
        *NAMES,
        order=order,
        faults=Faults(delay_min=0.001, delay_max=0.01),
        options=Options(detect=DETECT, queue_max=2000, flow={"window": 4000}),
        datagram_max=2000,
        record=False,
        give=give,
        take=lambda site, data: began.append(site.name),
    )
    for turn in range(200):
        for site in sim.sites:
            sim.at(0.005 * turn, site, lambda site=site: site.say(300, None))
    dave, erin = sim.join("dave", 0.2), sim.join("erin", 0.5)
    while not torn and sim.now < 5.0:
        sim.run(sim.now + 0.01)
    assert torn and sim["alice"].stack.closing and dave.queue
    sim.run(20.0)
    assert sorted(began) == ["dave", "erin"] and erin.stack.view.names == (*NAMES, "dave", "erin")
    sim.check()


def test_a_state_that_is_begun_anew_is_asked_for_as_at_first() -> None:
    """What was asked of one that has died has not come, which says nothing of the next one."""
    sim = Sim(
        *NAMES,
        order="vector",
        faults=Faults(delay_min=0.02, delay_max=0.02),
        options=Options(detect=DETECT),
        datagram_max=2000,
        record=False,
        give=lambda site: [bytes(1000)] * 3000,
        take=lambda site, data: None,
    )
    dave = sim.join("dave", 0.2)
    while dave.newcomer is not None or not dave.stack.layer("session").transfer.incoming.offset:  # type: ignore[union-attr]
        sim.run(sim.now + 0.01)
    transfer = dave.stack.layer("session").transfer  # type: ignore[union-attr]
    before, giver = transfer.incoming, transfer._donor[0]
    sim[giver].crash()
    while transfer.incoming is before and sim.now < 10.0:
        sim.run(sim.now + 0.001)
    assert transfer.lacks and not transfer._pace._is_repeated
    sim.run(20.0)
    assert not transfer.lacks


@pytest.mark.parametrize("order", ["vector", "total"])
def test_after_a_cut_of_the_network_those_of_the_smaller_part_take_the_state_of_the_larger(
    order: str,
) -> None:
    town = Town(order)
    town.talk(3.0, 0.05)
    town.sim.run(0.3)
    town.sim.network.part(town.sim.sites[:2], town.sim.sites[2:])
    town.sim.run(2.0)
    assert town.state(town.sim["cathy"]) != town.state(town.sim["bob"])
    town.sim.network.heal()
    town.run()
    town.check("cathy", ordered=order == "total")


# The last messages instead of a state


@pytest.mark.parametrize(("history", "note"), [(None, "state"), (7, KIND)])
def test_a_trace_says_who_gave_how_much(history: int | None, note: str) -> None:
    state: list[bytes] = []
    sim = Sim(
        *NAMES,
        record=False,
        traces=[MemoryTrace(me, len(NAMES)) for me in range(len(NAMES))],
        give=(lambda site: [site.name.encode() * 9000]) if history is None else None,
        take=(lambda site, data: state.append(data)) if history is None else None,
        history=history,
    )
    dave = MemoryTrace(len(NAMES), len(NAMES) + 1)
    sim.trace_newcomers(lambda *newcomer: dave)
    talk(sim, 0.3)
    sim.join("dave", 0.2)
    sim.run(4.0)
    (row,) = [row for row in dave.rows if row.step == "state"]
    assert (row.view, row.note) == (2, note) and row.peer in range(len(NAMES)) and row.n
    if history is None:
        assert state == [NAMES[row.peer].encode() * 9000] and row.n == len(state[0])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("echo", [True, False])
def test_a_newcomer_reads_the_last_messages_first(order: str, echo: bool) -> None:
    sim = Sim(*NAMES, order=order, options=Options(echo=echo), record=False, history=7)
    said = talk(sim, 0.3)
    dave = sim.join("dave", 0.2)
    sim.run(4.0)
    replayed = [delivery.replayed for delivery in dave.taken]
    assert replayed == [True] * 7 + [False] * (len(replayed) - 7)
    texts = dave.texts
    assert len(set(texts)) == len(texts) and 7 < len(texts) < len(said)
    missing = set(said) - set(texts)
    other = sim["cathy"].texts
    if echo:  # the same, in the same order, with nothing left out between
        assert other[: -len(texts)] == [each for each in other if each in missing]
        if order == "total":
            assert other[-len(texts) :] == texts
    sim.check()


def test_messages_of_the_last_seconds() -> None:
    sim = Sim(*NAMES, options=Options(echo=True), record=False, history=0.5)
    talk(sim, 2.0, 0.1)
    dave = sim.join("dave", 1.55)
    sim.run(4.0)
    turns = {
        int(text.split()[1])
        for text, delivery in zip(dave.texts, dave.taken, strict=True)
        if delivery.replayed
    }
    assert turns == {11, 12, 13, 14, 15}


def test_what_was_for_some_is_not_replayed_to_others() -> None:
    for order in ("vector", "sco"):
        sim = Sim(*NAMES, order=order, record=False, history=10)
        sim["alice"].send(b"for bob", ["bob"])
        sim["alice"].send(b"for all")
        sim.run(0.5)
        dave = sim.join("dave")
        sim.run(2.0)
        assert dave.texts == ["for all"]


def test_a_history_has_a_bound_in_octets() -> None:
    sim = Sim(*NAMES, options=Options(echo=True), record=False, history=1000)
    for _ in range(6):
        sim["alice"].send(b"." * (HISTORY_MAX // 4))
        sim.run()
    dave = sim.join("dave")
    sim.run(sim.now + 5.0)
    assert len(dave.taken) == 3


def test_a_newcomer_hands_on_what_it_got() -> None:
    sim = Sim("alice", options=Options(echo=True, detect=DETECT), record=False, history=3)
    for number in range(5):
        sim["alice"].send(b"%d" % number)
    sim.run(0.5)
    bob = sim.join("bob")
    sim.run(1.0)
    bob.send(b"5")
    sim.run(1.5)
    sim["alice"].crash()
    sim.run(3.0)
    cathy = sim.join("cathy")
    sim.run(5.0)
    assert bob.texts == ["2", "3", "4", "5"] and cathy.texts == ["3", "4", "5"]


def test_one_that_comes_back_hands_on_what_it_got_there() -> None:
    """Not what it had before as well. It is the last in the view, and so the first to be chosen."""
    sim = Sim(*NAMES, options=Options(echo=True, detect=DETECT), record=False, history=50)
    talk(sim, 0.3)
    sim.run(0.5)
    sim.network.part(sim.sites[:2], sim.sites[2:])
    sim.run(2.0)
    sim.network.heal()
    sim.run(5.0)
    assert sim["alice"].stack.view.names == ("alice", "bob", "cathy")
    dave = sim.join("dave")
    sim.run(7.0)
    assert len(set(dave.texts)) == len(dave.texts) == 45


def talk(sim: Sim, seconds: float, step: float = 0.02) -> list[str]:
    """Everybody says something all the time; what is said."""
    said: list[str] = []

    def say(turn: int) -> None:
        for site in sim.sites:
            if site.is_member:
                said.append(f"{site.name} {turn}")
                site.send(said[-1].encode())

    for turn in range(int(seconds / step)):
        sim.at(turn * step, sim.sites[0], lambda turn=turn: say(turn))
    return said


@pytest.mark.parametrize("seed", range(6))
def test_one_that_is_refused_has_it_from_another_that_is_about_to(seed: int) -> None:
    """Two come at once, as the view waits until bob, who has died, is missed. Alice raises for one of them, and gives the other a
    large state."""
    went: list[str] = []

    def give(site: Site) -> Iterator[bytes]:
        went.append(site.name)
        if len(went) == 1:
            raise ValueError("torn")
        yield b"." * (3 * AHEAD)

    begun: dict[str, int] = {}
    faults = Faults(delay_min=0.001, delay_max=0.02)
    sim = Sim(
        "alice",
        "bob",
        order="fifo",
        seed=seed,
        faults=faults,
        options=Options(detect=DETECT),
        record=False,
        give=give,
        take=lambda site, data: begun.update({site.name: len(data)}),
    )
    sim.run(0.1)
    sim["bob"].crash()
    sim.join("cathy"), sim.join("dave")
    sim.run(4.0)
    assert begun == {"cathy": 3 * AHEAD, "dave": 3 * AHEAD}
    assert went[:2] == ["alice", "alice"] or "bob" in went
    assert all(site.stack.writable for site in sim.sites)
    assert not any(
        site.states.transfer._later or site.states.transfer.lacks for site in sim.sites if site.states
    )
