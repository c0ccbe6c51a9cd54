"""A founder that starts when the others have filled their windows; and strangers that mean another group."""

from random import Random
from typing import Any

import pytest

from inga.corba.multicast.remiop import WAIT_MAX
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.stack import Stack

from ...stack.harness import NAMES, Flight, Net

A, B, C = 0, 1, 2

LARGE = 5000
"""Characters of a message that takes a few packets: small ones wait for company while the window is closed."""

RELIABLE = ["miop+acks", "remiop", "remiop+vector", "remiop+co", "remiop+object", "remiop+total"]


class Late(Net):
    """Alice and bob are here and greet; cathy comes when she is told to."""

    def __init__(self, order: str, **protocol: Any) -> None:
        self.options = Options(greet=True, protocol=protocol, start=1000)
        super().__init__(3, order, options=self.options)
        self.order = order
        self.is_here = False
        for member in (A, B):
            self.turn(member)

    def pass_time(self, seconds: float, loss: float = 0.0) -> None:
        chance = Random(1)

        def lost(flight: Flight) -> bool:
            return (flight.target == C and not self.is_here) or chance.random() < loss

        self.wait(seconds, lose=lost)

    def come(self) -> None:
        layers = find(self.order).build(self.options)
        self.stacks[C] = Stack(layers, C, self.view, rng=self.rng, now=self.now)
        self.is_here = True
        self.turn(C)

    def fill(self, member: int) -> list[str]:
        """Send until the window is closed."""
        sent = []
        while self.stacks[member].writable:
            sent.append(f"{NAMES[member]} {len(sent)}".ljust(LARGE))
            self.send(member, sent[-1].encode())
            self.pass_time(0.001)
            assert len(sent) < 100
        return sent


@pytest.mark.parametrize("loss", [0.0, 0.2])
@pytest.mark.parametrize("order", RELIABLE)
def test_a_founder_that_comes_after_the_windows_are_full(order: str, loss: float) -> None:
    net = Late(order, size=8)
    net.pass_time(1.0)
    sent = {member: net.fill(member) for member in (A, B)}
    net.pass_time(5.0)
    waiting = [net.stacks[member].chain.waiting for member in (A, B)]
    net.pass_time(600.0)
    assert not net.stacks[A].writable and not net.stacks[B].writable and not net.texts(C)
    assert waiting == [net.stacks[member].chain.waiting for member in (A, B)], (
        "nothing piles up behind the window"
    )
    net.come()
    net.pass_time(60.0, loss)
    assert net.stacks[A].writable and net.stacks[B].writable
    net.send(C, b"at last")
    net.pass_time(30.0, loss)
    echoes = find(order).echo
    for member in (A, B, C):
        others = [text for each, texts in sent.items() if each != member or echoes for text in texts]
        assert sorted(net.texts(member)) == sorted(others + ["at last"] * (member != C or echoes))
    net.quiet()


@pytest.mark.parametrize("order", RELIABLE)
def test_a_founder_that_comes_late_gets_the_little_that_was_sent(order: str) -> None:
    """No window is closed, and for minutes all questions for reports were in vain."""
    net = Late(order)
    net.pass_time(1.0)
    net.send(A, b"early")
    net.pass_time(20.0 + 50 * WAIT_MAX)
    net.come()
    net.pass_time(30.0)
    assert net.texts(C) == ["early"]
    net.quiet()


@pytest.mark.parametrize("order", RELIABLE)
def test_packets_before_a_greeting_do_not_end_the_greeting(order: str) -> None:
    """Whatever else cathy says arrives, and none of her greetings: the others go on asking for one."""
    net = Late(order)
    net.come()

    def is_greeting(flight: Flight) -> bool:
        return flight.source == C and b'"do":"here"' in flight.data

    for number in range(4):
        net.send(C, b"%d" % number)
        net.wait(1.0, lose=is_greeting)
    net.wait(5.0, lose=is_greeting)
    net.wait(30.0)
    for number in range(4, 40):
        net.send(C, b"%d" % number)
        net.wait(5.0)
    for member in (A, B):
        assert sorted(map(int, net.texts(member))) == list(range(40))
    net.quiet()


# Members that mean another group by the same name


def stranger(order: str, *names: str, me: str) -> Stack:
    config = {"order": order, "members": list(names)}
    recipe = find(order)
    return Stack(
        recipe.build(Options(greet=True, config=config)),
        names.index(me),
        View.of(*names, recipe=order),
        rng=Random(0),
        group=f"lunch {order} {names}",
        lobby="lunch",
    )


def talk(*stacks: Stack, seconds: float = 5.0) -> list[list[str]]:
    """Everything that one sends, all others hear; what each is told for its person."""
    notices: list[list[str]] = [[] for _ in stacks]
    now = 0.0
    while now < seconds:
        for index, stack in enumerate(stacks):
            stack.tick(now)
            ready = stack.ready()
            notices[index] += ready.notices
            for _, datagram in ready.send:
                data = b"".join(datagram) if isinstance(datagram, list) else bytes(datagram)
                for other in stacks:
                    if other is not stack:
                        other.receive([(data, None)], now=now)
        now += 0.01
    return notices


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("remiop", "alice", "bob"), ("remiop+vector", "alice", "bob")),
        (("remiop", "alice", "bob"), ("remiop", "bob", "alice")),
        (("remiop", "alice", "bob"), ("remiop", "alice", "bob", "cathy")),
        (("miop", "alice", "bob"), ("remiop+co", "alice", "bob")),
        (("remiop", "alice", "bob"), ("vector", "alice", "bob")),
        (("co", "alice", "bob"), ("miop+acks", "bob", "alice")),
    ],
)
def test_both_are_told_once_what_differs(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    alice, bob = stranger(*one, me="alice"), stranger(*other, me="bob")
    told_alice, told_bob = talk(alice, bob)
    assert len(told_alice) == len(told_bob) == 1
    assert told_alice[0].startswith("bob is in a group of this name, but with ")
    assert told_bob[0].startswith("alice is in a group of this name, but with ")
    for text, theirs in ((told_alice[0], other), (told_bob[0], one)):
        assert f"order '{theirs[0]}'" in text if one[0] != other[0] else ", ".join(theirs[1:]) in text
    assert not alice.met and not bob.met


def test_who_comes_when_the_others_have_met_is_told_too() -> None:
    alice, bob = (stranger("remiop", "alice", "bob", me=name) for name in ("alice", "bob"))
    cathy = stranger("remiop+vector", "alice", "bob", "cathy", me="cathy")
    talk(alice, bob)
    assert alice.met == {1} and bob.met == {0}
    told = talk(alice, bob, cathy)
    assert [len(each) for each in told] == [1, 1, 2]
