"""A network that misbehaves on purpose, in just the measure it was asked to."""

from dataclasses import replace
from random import Random

import pytest

from inga.layers.shape import Faults, Shape
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.recipes import Options, find

from ..stack.harness import RELIABLE, Net, Probe


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"loss": -0.1}, "loss is a probability"),
        ({"loss": 1.5}, "loss is a probability"),
        ({"duplicate": 2}, "duplicate is a probability"),
        ({"reorder": -1}, "reorder is a probability"),
        ({"loss": 1}, "nothing ever arrives"),
        ({"delay_min": 2.0, "delay_max": 1.0}, "MIN:MAX"),
        ({"delay_min": -1.0, "delay_max": 1.0}, "MIN:MAX"),
    ],
)
def test_faults_that_make_no_sense_are_refused(wrong: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Faults(**wrong)


def fates(faults: Faults, copies: int = 4000) -> list[list[float]]:
    rng = Random(1)
    return [faults.fates(rng) for _ in range(copies)]


def test_a_perfect_link_draws_no_numbers() -> None:
    rng = Random(1)
    before = rng.getstate()
    assert Faults().fates(rng) == [0.0]
    assert Faults(delay_min=2.0, delay_max=2.0).fates(rng) == [2.0]
    assert rng.getstate() == before


def test_loss_and_duplication_in_the_wanted_measure() -> None:
    lost = sum(not delays for delays in fates(Faults(loss=0.4)))
    assert 0.37 < lost / 4000 < 0.43
    doubled = sum(len(delays) == 2 for delays in fates(Faults(duplicate=0.2)))
    assert 0.18 < doubled / 4000 < 0.22


def test_delays_lie_between_their_bounds() -> None:
    delays = [delay for each in fates(Faults(delay_min=1.0, delay_max=3.0)) for delay in each]
    assert 1.0 <= min(delays) < 1.05 and 2.95 < max(delays) <= 3.0


def test_a_reordered_copy_is_delayed_by_up_to_twice_the_maximum() -> None:
    delays = [d for each in fates(Faults(reorder=0.5, delay_min=1.0, delay_max=3.0)) for d in each]
    assert 7.0 < max(delays) <= 9.0
    late = sum(delay > 3.0 for delay in delays)
    assert 0.3 < late / 4000 < 0.5


def test_a_seed_fixes_everything() -> None:
    faults = Faults(0.3, 0.3, 0.3, 0.001, 0.01)
    assert fates(faults) == fates(faults)


# The layer


def shaped(faults: Faults) -> tuple[Probe, Shape]:
    """The shape layer must stand lowest: here nothing but the top is above it."""
    layer = Shape(faults)
    probe = Probe(Transparent())
    probe.stack.bind([probe.top, layer])
    layer.view(probe.stack.view)
    return probe, layer


class Transparent(Shape):
    """Only a place holder."""

    name = "placeholder"
    transparent = False

    def __init__(self) -> None:
        super().__init__(Faults())


def test_packets_come_when_they_are_due_and_not_before() -> None:
    probe, layer = shaped(Faults(delay_min=1.0, delay_max=1.0))
    layer.up([Packet(1, 1, b"one")])
    probe.stack.now = 0.5
    layer.up([Packet(1, 1, b"two")])
    assert probe.top.got == [] and layer.wake == 1.0
    layer.tick(1.0)
    assert [packet.body for packet in probe.top.got] == [b"one"]
    assert layer.wake == 1.5
    layer.tick(2.0)
    assert [packet.body for packet in probe.top.got] == [b"one", b"two"]
    assert layer.wake is None


def test_delayed_memory_is_kept() -> None:
    probe, layer = shaped(Faults(delay_min=1.0, delay_max=1.0))
    buffer = bytearray(b"x" * 100)
    layer.up([Packet(1, 1, memoryview(buffer))])
    buffer[:] = b"y" * 100
    layer.tick(1.0)
    assert probe.top.got[0].body == b"x" * 100


def test_loss_hits_control_packets_as_well_as_data() -> None:
    faults = Faults(loss=0.3, duplicate=0.2, reorder=0.2, delay_min=0.001, delay_max=0.005)
    net = Net(3, options=Options(faults=faults), seed=4)
    for number in range(40):
        net.send(number % 3, b"%d" % number)
        net.wait(0.01)
    net.quiet()
    for member in range(3):
        assert sorted(map(int, net.texts(member))) == [n for n in range(40) if n % 3 != member]
    assert sum(stack.counts["repair"] for stack in net.stacks) > 5


# Delays by peer


def test_a_delay_for_one_holds_up_no_other(layer: type[Shape] = Shape) -> None:
    net = Net(3, options=Options(faults=Faults()))
    net.stacks[0].views.replace("shape", layer(Faults()))
    shape = net.stacks[0].layer("shape")
    assert isinstance(shape, Shape)
    shape.delay(2, 20.0)
    net.send(0, b"one")
    net.wait(1.0, lose=lambda flight: flight.source == 0 and flight.kind == RELIABLE)
    assert net.texts(1) == ["one"] and net.texts(2) == []
    net.wait(20.0)
    assert net.texts(2) == ["one"]


class DelaysNobody(Shape):
    def delay(self, member: int, seconds: float, jitter: float = 0.0, keep_order: bool = False) -> None:
        pass


class DelaysEverybody(Shape):
    def delay(self, member: int, seconds: float, jitter: float = 0.0, keep_order: bool = False) -> None:
        for other in self.stack.others:
            super().delay(other, seconds, jitter, keep_order)


@pytest.mark.parametrize("layer", [DelaysNobody, DelaysEverybody])
def test_a_delay_of_others_is_noticed(layer: type[Shape]) -> None:
    with pytest.raises(AssertionError):
        test_a_delay_for_one_holds_up_no_other(layer)


def test_a_delay_may_be_asked_for_while_there_is_no_place_for_faults() -> None:
    net = Net(2)
    net.stacks[0].delay(1, 20.0, 0.0, False, now=0.0)
    net.send(0, b"one")
    net.wait(1.0, lose=lambda flight: flight.source == 0 and flight.kind == RELIABLE)
    assert net.texts(1) == []
    net.wait(20.0)
    assert net.texts(1) == ["one"]


def test_a_delay_of_zero_ends_it() -> None:
    net = Net(2, options=Options(faults=Faults()))
    shape = net.stacks[0].layer("shape")
    assert isinstance(shape, Shape)
    shape.delay(1, 20.0)
    shape.delay(1, 0)
    shape.delay(1, 0)
    net.send(0, b"one")
    net.settle()
    assert net.texts(1) == ["one"]
    with pytest.raises(UsageError, match="negative"):
        shape.delay(1, -1.0)


@pytest.mark.parametrize("keep_order", [True, False])
def test_jitter_reorders_unless_told_not_to(keep_order: bool) -> None:
    net = Net(2, "none", options=Options(faults=Faults()), seed=2)
    net.stacks[0].layers[0].gather = False  # type: ignore[attr-defined]
    shape = net.stacks[0].layer("shape")
    assert isinstance(shape, Shape)
    shape.delay(1, 1.0, jitter=1.0, keep_order=keep_order)
    for number in range(20):
        net.send(0, b"%02d" % number)
    net.wait(0.9)
    assert net.texts(1) == []
    net.quiet()
    assert sorted(net.texts(1)) == [f"{n:02}" for n in range(20)]
    assert (net.texts(1) == sorted(net.texts(1))) == keep_order


def test_a_delayed_question_is_still_a_question() -> None:
    """Everything a packet says survives the delay: bob asks late, and is answered."""
    net = Net(2, options=Options(faults=Faults()))
    shape = net.stacks[1].layer("shape")
    assert isinstance(shape, Shape)
    shape.delay(0, 0.5)
    net.send(0, b"one")
    net.lose(lambda flight: True)
    net.quiet(100.0)
    assert net.texts(1) == ["one"]


def test_what_was_delayed_leaves_when_the_layer_is_replaced() -> None:
    net = Net(2, options=Options(faults=Faults()))
    shape = net.stacks[0].layer("shape")
    assert isinstance(shape, Shape)
    shape.delay(1, 20.0)
    net.send(0, b"one")
    assert net.under_way == []
    net.stacks[0].views.replace("shape", Shape(Faults()))
    net.turn(0)
    net.settle()
    assert net.texts(1) == ["one"]


def test_what_is_delayed_beyond_the_end_of_its_view_is_not_read() -> None:
    """Its numbers mean something else there: an old acknowledgement would lose a new packet for good."""
    options = Options(faults=Faults(delay_min=1.0, delay_max=1.0))
    net = Net(2, options=options)
    net.send(0, b"old")
    net.arrive(*net.to(1))
    stack = net.stacks[1]
    following = replace(stack.view, number=2, recipe="fifo", attempt=1)
    stack.views.install(following, find("fifo").build(options), [1, 0])
    net.turn(1)
    assert stack.view.number == 2 and stack.layer("fifo") is not None
    shape = stack.layer("shape")
    assert shape is not None and shape.wake is None, "there is nothing to wake up for"
    for _ in range(3):
        net.now += 1.0
        net.tick(1)
    assert net.texts(1) == []
    assert stack.layer("reliable")._arrived[0].expected == 1  # type: ignore[union-attr]


def test_a_delay_is_for_a_member_whatever_its_index() -> None:
    """Alice leaves, so that the others have other indices; what was delayed on its way in the old view is not sent."""
    net = Net(4)
    shape = Shape()
    net.stacks[1].views.replace("shape", shape)
    shape.delay(3, 10.0)
    net.send(1, b"before")
    net.wait(1.0)
    assert net.texts(2) == ["before"] and net.texts(3) == []
    net.stacks[0].goodbye(now=net.now)
    net.turn(0)
    net.wait(60.0)
    assert net.names(1) == net.names(2) == net.names(3) == ("bob", "cathy", "dave")
    net.send(1, b"after")
    net.wait(9.0)
    assert net.texts(2) == ["before", "after"] and net.texts(3) == ["before"]
    net.wait(2.0)
    assert net.texts(3) == ["before", "after"]
    net.quiet()


def test_a_delay_is_counted_from_the_send_call() -> None:
    """What waited for the window as long as the delay leaves with no further one."""
    net = Net(2, options=Options(flow={"window": 3000}), datagram_max=1400)
    shape = Shape()
    net.stacks[0].views.replace("shape", shape)
    shape.delay(1, 10.0)
    while net.stacks[0].writable:
        net.send(0, b"." * 1000)
    sent = net.stacks[0].counts["data"]
    assert net.stacks[0].layer("flow").waiting  # type: ignore[union-attr]
    net.wait(9.9)
    assert net.texts(1) == []
    net.wait(0.2)
    assert len(net.texts(1)) > sent, "those that waited came at the same time as those that did not"
    net.quiet()


def test_what_belongs_to_no_view_has_the_same_fate() -> None:
    """A goodbye is as late, or as lost, as anything else."""
    net = Net(2, options=Options(faults=Faults(delay_min=1.0, delay_max=1.0)))
    net.stacks[0].goodbye(now=0.0)
    net.turn(0)
    net.arrive(*net.to(1))
    assert net.stacks[1].left == set() and net.wake[1] == 1.0
    net.now = 1.0
    net.tick(1)
    assert net.names(1) == ("bob",)
    net = Net(2, options=Options(faults=Faults(loss=0.5)), seed=2)
    net.stacks[0].goodbye(now=0.0)
    net.turn(0)
    net.wait(10.0)
    assert net.names(1) == ("bob",) and net.stacks[0].has_left
    assert net.stacks[0].counts["lost"] + net.stacks[1].counts["lost"] > 0
