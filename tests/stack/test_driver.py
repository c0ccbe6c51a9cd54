"""What a driver may rely on: a call is made at the time it says, and a turn ends when it is told to."""

from collections.abc import Callable

import pytest

from inga.layers.shape import Faults
from inga.recipes import Options, names
from inga.stack.stack import Stack, joined

from .harness import Net

LATER = 7.5

CALLS: dict[str, Callable[[Stack], object]] = {
    "send": lambda stack: stack.send(b"x", now=LATER),
    "send_many": lambda stack: stack.send_many([b"x"], now=LATER),
    "receive": lambda stack: stack.receive([], now=LATER),
    "tick": lambda stack: stack.tick(LATER),
    "taken": lambda stack: stack.taken([], now=LATER),
    "ready": lambda stack: stack.ready(now=LATER),
    "begin": lambda stack: stack.begin(now=LATER),
    "advance": lambda stack: stack.advance(LATER),
    "propose": lambda stack: stack.propose("fifo", lambda why: None, now=LATER),
    "gate": lambda stack: stack.gate("open", now=LATER),
    "delay": lambda stack: stack.delay(1, 0.1, 0.0, False, now=LATER),
    "goodbye": lambda stack: stack.goodbye(now=LATER),
}


@pytest.mark.parametrize("call", CALLS)
def test_it_is_as_late_as_the_driver_says(call: str) -> None:
    stack = Net(3, "vector", options=Options(faults=Faults())).stacks[0]
    CALLS[call](stack)
    assert stack.now == LATER


def test_without_a_time_it_is_as_late_as_before() -> None:
    stack = Net(3).stacks[0]
    stack.advance(LATER)
    stack.ready()
    stack.begin()
    assert stack.now == LATER


@pytest.mark.parametrize("order", names())
def test_what_waits_for_company_leaves_when_the_turn_ends(order: str) -> None:
    """While the application is still at work in a turn, what it sends may share a packet with what it sends next."""
    net = Net(3, order)
    stack = net.stacks[0]
    for text in (b"one of a bundle", b"another of it"):
        stack.send(text, now=0.0)
        assert not [data for _, data in stack.ready(turn=False).send if text in joined(data)]
    net.turn(0)
    net.quiet()
    assert net.texts(1) == net.texts(2) == ["one of a bundle", "another of it"]


def test_what_comes_in_the_middle_of_a_turn_is_handed_over_at_once() -> None:
    net = Net(3)
    net.send(1, b"hello")
    (flight,) = net.to(0)
    net.stacks[0].receive([(flight.data, None)], now=0.0)
    assert [bytes(batch.payloads[0]) for batch in net.stacks[0].ready(turn=False).deliver] == [b"hello"]  # type: ignore[union-attr]
