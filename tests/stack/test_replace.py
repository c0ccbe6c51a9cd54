"""Other layers while running: what the old one held goes through the new one, or stays where it was."""

import pytest

from inga.layers.bundle import Bundle
from inga.layers.causal import Causal
from inga.layers.fifo import Fifo, Unordered
from inga.layers.shape import Faults, Shape
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.recipes import Options
from inga.stack.layer import Layer

from .harness import Net

SLOW = Faults(delay_min=1.0, delay_max=1.0)


class Demanding(Layer):
    """Cannot stand anywhere."""

    name = "demanding"
    requires = frozenset({"the moon"})


def test_an_unknown_name_lists_those_that_are_there() -> None:
    net = Net(2, "fifo")
    with pytest.raises(
        UsageError, match=r"no layer 'causal' here, only bundle, fifo, fragment, flow, reliable"
    ):
        net.stacks[0].views.replace("causal", Causal())


def test_an_open_bundle_leaves_before_its_layer_does() -> None:
    net = Net(2)
    net.stacks[0].send(b"one", now=0.0)
    old = net.stacks[0].layer("bundle")
    new = Bundle()
    net.stacks[0].views.replace("bundle", new)
    assert net.stacks[0].layer("bundle") is new is not old
    net.stacks[0].send(b"two", now=0.0)
    net.turn(0)
    net.quiet()
    assert net.texts(1) == ["one", "two"]
    assert [batch.seq for batch in net.batches[1]] == [1, 2]


def test_delayed_packets_go_through_the_new_layer_in_order() -> None:
    net = Net(2, options=Options(faults=SLOW))
    for text in (b"one", b"two", b"three"):
        net.send(0, text)
        net.arrive(*net.to(1))
    assert net.texts(1) == []
    net.stacks[1].views.replace("shape", Shape(Faults()))
    net.turn(1)
    assert net.texts(1)[:1] == ["one"]
    net.wait(3.0)  # acknowledgements are still slow on their way to alice
    assert net.texts(1) == ["one", "two", "three"]
    assert net.wake[1] is None


def test_a_replaced_order_hands_over_what_it_held(order: type[Fifo] = Fifo) -> None:
    net = Net(
        2, "fifo", options=Options(lossless=True), build=lambda: [Bundle(gather=False), order(), Ground()]
    )
    for text in (b"one", b"two", b"three"):
        net.send(0, text)
    first, second, third = net.to(1)
    net.arrive(third, second)
    assert net.texts(1) == []
    assert net.stacks[1].held > 0
    net.stacks[1].views.replace("fifo", Unordered())
    net.turn(1)
    assert net.texts(1) == ["two", "three"]
    assert net.stacks[1].held == 0
    net.arrive(first)
    assert net.texts(1) == ["two", "three", "one"]


class KeepsWhatItHeld(Fifo):
    """Whoever takes its place gets nothing of it."""

    def drain(self) -> list[Packet]:
        return []


def test_an_order_that_keeps_what_it_held_is_noticed() -> None:
    with pytest.raises(AssertionError):
        test_a_replaced_order_hands_over_what_it_held(KeepsWhatItHeld)


class Ground(Layer):
    """Claims that nothing is lost, as in these tests nothing is."""

    name = "ground"
    provides = frozenset({"reliable"})


@pytest.mark.parametrize("order", [Fifo, Causal])
def test_a_refused_replacement_changes_nothing(order: type[Fifo] | type[Causal]) -> None:
    net = Net(2, build=lambda: [Bundle(gather=False), order(), Ground()])
    for text in (b"one", b"two", b"three"):
        net.send(0, text)
    first, second, third = net.to(1)
    net.arrive(second, third)
    before = net.stacks[1].held
    old = net.stacks[1].layer(order.name)
    with pytest.raises(UsageError, match="the moon"):
        net.stacks[1].views.replace(order.name, Demanding())
    assert net.stacks[1].layer(order.name) is old
    assert net.stacks[1].held == before > 0
    net.arrive(first)
    assert net.texts(1) == ["one", "two", "three"]
    assert net.stacks[1].held == 0


def test_what_a_new_order_holds_is_counted_once() -> None:
    """`held` closes the flow window: what stays in it for ever would close it for ever."""
    net = Net(2, build=lambda: [Bundle(gather=False), Causal(), Ground()])
    net.send(0, b"one")
    net.send(0, b"two")
    first, second = net.to(1)
    net.arrive(second)
    before = net.stacks[1].held
    net.stacks[1].views.replace("causal", Causal())
    assert net.stacks[1].held == before
    net.arrive(first)
    assert net.texts(1) == ["one", "two"]
    assert net.stacks[1].held == 0
