"""Who is here and who has left: greetings, goodbyes that get lost, questions, strangers, addresses."""

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from inga.model.errors import Gap
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options, find
from inga.session.presence import DIFFERENCES_MAX, GOODBYES_MAX, GREETING_MAX, NAMES_MAX
from inga.session.pressure import ASK_AFTER
from inga.session.session import Session
from inga.stack.stack import Stack, joined
from inga.wire.packet import OUTSIDE, encode
from inga.wire.told import said

from ..stack.harness import SESSION, Flight, Net, resealed

ORDERS = ("none", "fifo", "vector", "relay", "co", "sco", "total")
BLOCKING = ("fifo", "vector", "co", "sco")
"""Orders in which nobody can go on sending while somebody lacks something."""


def meeting(members: int = 3, order: str = "vector", **more: Any) -> Net:
    """Members that greet, at the beginning."""
    net = Net(members, order, options=Options(greet=True, **more))
    for member in range(members):
        net.turn(member)
    return net


def words(net: Net, flights: Iterable[Flight]) -> list[dict[str, Any]]:
    """What is said in words, in the order it was said."""
    packets = net.packets(flight for flight in flights if flight.kind == SESSION)
    return [json.loads(packet.ext or b"") for packet in packets]


def says(net: Net, do: str) -> Callable[[Flight], bool]:
    return lambda flight: bool([word for word in words(net, [flight]) if word["do"] == do])


def outside(src: int, do: str, to: int | None = None, **what: Any) -> bytes:
    """A packet that belongs to no view, as anybody might make it."""
    packet = Packet(src, OUTSIDE, kind=Session.id, dst=None if to is None else 1 << to)
    packet.ext = said(do, **what)
    return joined(encode(packet, 0))


def here(name: str, **more: Any) -> dict[str, Any]:
    who = {"incarnation": 1, "birth": 0, "group": "00000000"}
    known = {**who, "asks": True, "order": "vector", "members": [], "bases": {}}
    return {"name": name, **known, **more}


# Greetings


@pytest.mark.parametrize("order", ORDERS)
def test_everybody_greets_until_everybody_was_met(order: str) -> None:
    net = meeting(order=order)
    assert net.wake == [0.0, 0.0, 0.0]
    net.wait(10.0, lose=lambda flight: 2 in (flight.source, flight.target))
    assert net.stacks[0].met == {1} and net.stacks[1].met == {0}
    assert None not in net.wake, "they still wait for cathy, and she for them"
    net.quiet()
    assert [stack.met for stack in net.stacks] == [{1, 2}, {0, 2}, {0, 1}]


def test_greetings_grow_rare() -> None:
    net = meeting(2)
    times = []
    for _ in range(12):
        assert net.wake[0] is not None
        net.now = net.wake[0]
        times.append(net.now)
        net.tick(0)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert all(0.9 * earlier <= later for earlier, later in pairwise(pauses) if later < 1)
    assert 0.02 <= pauses[0] <= 0.025
    assert all(GREETING_MAX <= pause <= 1.25 * GREETING_MAX for pause in pauses[-4:])
    assert {word["do"] for word in words(net, net.under_way)} == {"here"}


def test_who_asks_is_answered_by_those_who_greet_no_more() -> None:
    """Cathy hears nothing for a while; everybody has met her, and is silent."""
    net = meeting()
    net.wait(3.0, lose=lambda flight: flight.target == 2)
    assert [stack.met for stack in net.stacks] == [{1, 2}, {0, 2}, set()]
    assert net.wake[:2] == [None, None]
    net.quiet()
    assert net.stacks[2].met == {0, 1}


def test_an_answer_asks_for_nothing() -> None:
    net = meeting()
    net.quiet()
    answers = [
        flight for flight in net.log if says(net, "here")(flight) and not words(net, [flight])[0]["asks"]
    ]
    assert answers
    before = len(net.log)
    for flight in answers:
        net.inject(flight.target, flight.data)
    assert len(net.log) == before
    net.inject(0, outside(1, "here", **here("bob")))
    (answer,) = net.log[before:]
    assert (answer.source, answer.target) == (0, 1) and not words(net, [answer])[0]["asks"]


def test_greetings_of_one_who_is_no_member_are_refused() -> None:
    net = meeting()
    for src, name in ((1, "dave"), (3, "erin"), (60_000, "")):
        net.inject(0, outside(src, "here", **here(name)))
    assert net.stacks[0].rejected == {"stranger": 3} and net.stacks[0].met == set()
    assert net.under_way == []


def test_greetings_are_known_by_their_names() -> None:
    """Who greets may be in another view, where it has another index."""
    net = meeting()
    net.inject(0, outside(1, "here", **here("cathy")))
    assert net.stacks[0].met == {2}
    assert [flight.target for flight in net.under_way] == [2]
    net.inject(0, outside(1, "here", **here("alice")))
    assert net.stacks[0].met == {2} and not net.stacks[0].rejected, "that was ourselves"


def test_processes_of_members_that_are_gone_are_forgotten() -> None:
    """A group lives longer than its members: what is known of each is known as long as it is one."""
    net = meeting()
    net.quiet()
    net.inject(0, outside(1, "here", **here("bob", birth=5)))
    presence = net.stacks[0].layer("session").presence  # type: ignore[union-attr]
    assert presence._births == {("bob", 1): 5}
    net.stacks[1].goodbye(now=net.now)
    net.turn(1)
    net.quiet()
    assert net.stacks[0].view.names == ("alice", "cathy")
    assert ("bob", 1) not in presence._births


def test_our_own_greeting_and_goodbye_come_back_to_us() -> None:
    """As on a multicast address that loops; it is no reason to meet ourselves, or to think that we were put out."""
    net = meeting()
    net.now = 0.0
    net.tick(0)
    net.inject(0, net.to(1)[0].data)
    assert net.stacks[0].met == set() and not net.stacks[0].rejected
    net.under_way.clear()
    net.stacks[0].goodbye(now=0.0)
    net.turn(0)
    net.inject(0, net.to(1)[0].data)
    assert net.errors[0] is None and net.stacks[0].left == set()


# Goodbyes


@pytest.mark.parametrize("lost", [0, 1, 5, 20])
@pytest.mark.parametrize("order", ORDERS)
def test_a_goodbye_is_repeated_until_everybody_knows(order: str, lost: int) -> None:
    net = Net(3, order)
    net.stacks[2].goodbye(now=0.0)
    net.turn(2)

    def lose(flight: Flight) -> bool:
        """The first so many to each."""
        so_far = [each for each in net.log if (each.source, each.target) == (2, flight.target)]
        return flight.source == 2 and len(so_far) <= lost

    net.wait(20.0, lose=lose)
    assert net.names(0) == net.names(1) == ("alice", "bob")
    assert net.stacks[2].has_left
    assert net.wake == [None, None, None]
    goodbyes = [flight for flight in net.log if says(net, "goodbye")(flight)]
    assert len([flight for flight in goodbyes if (flight.source, flight.target) == (2, 0)]) == lost + 1


def test_a_goodbye_ends_when_nobody_acknowledges_it() -> None:
    net = Net(2)
    net.stacks[1].goodbye(now=0.0)
    net.turn(1)
    net.wait(100.0, lose=says(net, "farewell"))
    assert net.names(0) == ("alice",), "it was heard"
    assert len([flight for flight in net.log if says(net, "goodbye")(flight)]) == GOODBYES_MAX
    assert net.wake == [None, None] and not net.stacks[1].has_left


def test_who_was_never_met_is_told_and_not_waited_for() -> None:
    net = meeting()
    net.wait(1.0, lose=lambda flight: 2 in (flight.source, flight.target))
    net.stacks[0].goodbye(now=net.now)
    net.turn(0)
    assert len(net.to(2)) == 1
    net.wait(1.0, lose=lambda flight: 2 in (flight.source, flight.target))
    assert net.stacks[0].has_left and net.wake[0] is None


def test_goodbyes_of_all_at_once() -> None:
    net = Net(3)
    for member in range(3):
        net.stacks[member].goodbye(now=0.0)
        net.turn(member)
    net.quiet()
    assert all(stack.has_left for stack in net.stacks)


def test_a_goodbye_of_another_life_or_group_counts_for_nothing() -> None:
    net = Net(3)
    for wrong in ({"incarnation": 2}, {"group": "12345678"}, {"name": "dave"}):
        known = {"name": "bob", "incarnation": 1, "group": "00000000", "view": 1, "itself": True}
        net.inject(0, outside(1, "goodbye", **{**known, **wrong}))
    assert net.stacks[0].left == set() and net.under_way == []


@pytest.mark.parametrize("order", BLOCKING)
def test_a_member_that_failed_blocks_nobody(order: str) -> None:
    """It has not confirmed what was sent; the first of its goodbyes are lost."""
    net = Net(3, order, options=Options(flow={"window": 3000}))
    receipts = block(net)
    net.stacks[2].fail(Gap("the disk is full"))
    net.turn(2)
    net.lose(lambda flight: flight.source == 2)
    net.wait(5.0)
    check_goes_on(net, receipts)


def block(net: Net) -> list[Any]:
    """Alice and bob send until they may not, since cathy hears nothing."""
    receipts: list[Any] = []
    for _ in range(300):
        free = [member for member in (0, 1) if net.stacks[member].writable]
        receipts += [net.send(member, b"." * 900) for member in free]
        net.wait(0.001, lose=lambda flight: flight.target == 2)
    assert not net.stacks[0].writable and not net.stacks[1].writable
    return receipts


def check_goes_on(net: Net, receipts: list[Any]) -> None:
    for member in (0, 1):
        assert net.names(member) == ("alice", "bob") and net.stacks[member].writable, member
        receipts.append(net.send(member, b"and so on"))
    net.wait(5.0)
    assert all(receipt.has("confirmed") for receipt in receipts)
    assert all(net.texts(member)[-1] == "and so on" for member in (0, 1))
    assert net.stacks[0].settled and net.stacks[1].settled
    assert not net.stacks[0].held and not net.stacks[1].held


@pytest.mark.parametrize("order", BLOCKING)
def test_a_goodbye_that_is_lost_for_good_is_known_to_a_third(order: str) -> None:
    """Not one of cathy's goodbyes reaches alice. After a moment she asks about those she waits for."""
    net = Net(3, order, options=Options(flow={"window": 3000}))
    receipts = block(net)

    def lose(flight: Flight) -> bool:
        return flight.source == 2 and flight.target == 0

    net.stacks[2].goodbye(now=net.now)
    net.turn(2)
    net.wait(ASK_AFTER / 2, lose=lose)
    assert (net.names(0), net.names(1)) == (("alice", "bob", "cathy"), ("alice", "bob"))
    net.wait(4 * ASK_AFTER, lose=lose)
    assert net.names(0) == ("alice", "bob")
    check_goes_on(net, receipts)


def test_who_is_asked_about_one_that_is_there_says_nothing() -> None:
    net = Net(3)
    net.inject(0, outside(1, "who", people=[["cathy", 1, ""], ["dave", 1, ""]]))
    assert net.under_way == []
    net.stacks[0].gone(2)
    net.turn(0)
    net.under_way.clear()  # the end of the view
    net.inject(0, outside(1, "who", people=[["cathy", 2, ""]]))
    assert net.under_way == [], "another of that name"
    net.inject(0, outside(1, "who", people=[["cathy", 1, ""]]))
    assert {flight.target for flight in net.under_way} == {1, 2}, "it may have another index than we know"
    word = words(net, net.under_way)[0]
    assert (word["do"], word["name"], word["itself"]) == ("goodbye", "cathy", False)


# Members who mean different groups


class Stranger:
    """A member of what it takes for the group."""

    def __init__(self, name: str, members: tuple[str, ...], order: str = "vector", group: str = "") -> None:
        self.stack = Stack(
            find(order).build(Options(greet=True, config={"order": order})),
            members.index(name),
            View.of(*members, recipe=order),
            rng=Random(0),
            group=group or f"{order} {members}",
            lobby="lunch",
        )
        self.notices: list[str] = []
        self.now = 0.0

    def tick(self) -> list[bytes]:
        """Until it says something."""
        while True:
            ready = self.stack.ready()
            self.notices += ready.notices
            if ready.send or ready.wake is None:
                return [joined(data) for _, data in ready.send]
            self.now = max(self.now, ready.wake)
            self.stack.tick(self.now)

    def hear(self, datagrams: list[bytes]) -> list[bytes]:
        self.stack.receive([(data, "somewhere") for data in datagrams], now=self.now)
        ready = self.stack.ready()
        self.notices += ready.notices
        return [joined(data) for _, data in ready.send]


@pytest.mark.parametrize(
    ("other", "there", "here"),
    [
        (
            Stranger("bob", ("alice", "bob"), "fifo"),
            "order 'fifo', here it is 'vector'",
            "order 'vector', here",
        ),
        (
            Stranger("bob", ("alice", "bob", "cathy")),
            "the members alice, bob, cathy; here they are alice, bob",
            "the members alice, bob; here they are alice, bob, cathy",
        ),
        (
            Stranger("bob", ("bob", "alice")),
            "the members bob, alice; here they are alice, bob",
            "the members alice, bob; here they are bob, alice",
        ),
        (
            Stranger("bob", ("alice", "bob"), group="other"),
            "other objects or options than here",
            "other objects",
        ),
    ],
    ids=["order", "members", "places", "options"],
)
def test_who_means_another_group_is_told_what_differs_once(other: Stranger, there: str, here: str) -> None:
    alice = Stranger("alice", ("alice", "bob"))
    for _ in range(5):
        answers = alice.hear(other.tick())
        other.hear(answers)
        alice.hear(other.hear(alice.tick()))
    (noticed,) = alice.notices
    assert noticed == f"bob is in a group of this name, but with {there}: no message passes between the two"
    (noticed,) = other.notices
    assert noticed.startswith(f"alice is in a group of this name, but with {here}")
    assert alice.stack.met == other.stack.met == set()


def test_who_comes_to_a_group_that_is_complete_is_told_as_well() -> None:
    """Alice and bob greet no more."""
    alice, bob = (Stranger(name, ("alice", "bob")) for name in ("alice", "bob"))
    alice.hear(bob.hear(alice.tick()))
    bob.hear(alice.hear(bob.tick()))
    assert alice.tick() == bob.tick() == []
    cathy = Stranger("cathy", ("alice", "bob", "cathy"))
    cathy.hear(alice.hear(cathy.tick()))
    assert len(cathy.notices) == 1 and "here they are alice, bob, cathy" in cathy.notices[0]


def test_differences_that_are_told_are_bounded() -> None:
    alice = Stranger("alice", ("alice", "bob"))
    for number in range(DIFFERENCES_MAX + 10):
        alice.hear(Stranger(f"z{number}", (f"z{number}", "y")).tick())
    assert len(alice.notices) == DIFFERENCES_MAX
    assert len(set(alice.notices)) == DIFFERENCES_MAX


def test_large_groups_say_how_many_they_are() -> None:
    many = tuple(f"m{number}" for number in range(NAMES_MAX + 1))
    alice = Stranger("alice", ("alice", "bob"))
    alice.hear(Stranger("m7", many).tick())
    assert f"the members {NAMES_MAX + 1} members; here they are alice, bob" in alice.notices[0]


# Where members are


@pytest.mark.parametrize("order", ORDERS)
def test_what_can_be_said_again_by_anybody_moves_no_address(order: str) -> None:
    net = Net(2, order)
    bob = net.stacks[1]

    def hear(where: str, *flights: Flight) -> None:
        bob.receive([(flight.data, where) for flight in flights], now=net.now)
        net.turn(1)

    net.send(0, b"one")
    first = net.to(1, kind=0)
    hear("home", *first)
    assert bob.addresses == {0: "home"}
    net.send(1, b"from bob")
    net.settle()
    net.wait(1.0)
    old = [flight for flight in net.log if flight.target == 1]
    assert {flight.kind for flight in old} - {0}, "its counters are among them"
    hear("mallory", *old, *first)
    assert bob.addresses == {0: "home"}, "a replay"
    unknown = bytearray(first[0].data)
    unknown[3] = 99
    rejected = bob.rejected["kind"]
    hear("mallory", Flight(0, 1, resealed(unknown)))
    assert bob.addresses == {0: "home"} and bob.rejected["kind"] == rejected + 1
    spoiled = first[0].data[:-1]
    hear("mallory", Flight(0, 1, spoiled))
    hear("mallory", Flight(0, 1, outside(0, "here", **here("alice"))))
    assert bob.addresses == {0: "home"}
    net.send(0, b"two")
    hear("new home", *net.to(1, kind=0))
    assert bob.addresses == {0: "new home"}, "it has moved"
    assert net.texts(1) == ["one", "two"] or order in ("co", "sco", "total")


@pytest.mark.parametrize("order", ORDERS)
def test_what_no_layer_accepts_teaches_no_address(order: str) -> None:
    net = Net(2, order)
    bob = net.stacks[1]
    packet = Packet(0, 1, b"nonsense", kind=0)
    unknown = Packet(0, 1, kind=99)
    for wrong in (packet, unknown):
        bob.receive([(joined(encode(wrong, bob.group)), "mallory")], now=0.0)
    assert bob.addresses == {} and bob.met == set()


def test_who_is_waited_for_is_reached_by_everybodys_address_again() -> None:
    """What we believe of its place may be false, and then nothing would ever reach it."""
    net = Net(2)
    alice = net.stacks[0]
    alice.addresses[1] = "nowhere"
    net.send(0, b"one")
    session = alice.layer("session")
    assert isinstance(session, Session)
    session.presence.ask_about({1})
    net.turn(0)
    assert alice.addresses == {}
