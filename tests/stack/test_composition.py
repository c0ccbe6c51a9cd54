"""How layers are put together: needs, ids, skipping, and what a stack says of a wrong recipe."""

from random import Random

import pytest

from inga.layers.bundle import Bundle
from inga.layers.causal import Causal
from inga.layers.fifo import Fifo
from inga.layers.flow import Flow
from inga.layers.fragment import Fragment
from inga.layers.reliable import Reliable
from inga.layers.shape import Faults, Shape
from inga.model.errors import UsageError, WouldBlock
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options, find, names, register
from inga.stack.layer import Layer
from inga.stack.stack import Stack, joined
from inga.wire.packet import COUNT_MAX

from .harness import Net, resealed

VIEW = View.of("alice", "bob", "cathy")


def stack(*layers: Layer, me: int = 0, view: View = VIEW, beneath: tuple[str, ...] = ()) -> Stack:
    return Stack(layers, me, view, rng=Random(0), beneath=beneath)


# Needs


def test_a_missing_service_names_the_layers_that_could_supply_it() -> None:
    with pytest.raises(UsageError) as caught:
        stack(Bundle(), Causal(), Fragment())
    assert str(caught.value).startswith("layer 'causal' needs reliable from below; ")
    assert "reliable" in str(caught.value).split(";")[1]
    assert str(caught.value).endswith("could supply it")


def test_a_service_above_does_not_count() -> None:
    with pytest.raises(UsageError, match="'causal' needs reliable"):
        stack(Bundle(), Reliable(), Causal())


class Clairvoyant(Layer):
    name = "clairvoyant"
    requires = frozenset({"foresight", "reliable"})


class Oracular(Layer):
    name = "oracular"
    provides = frozenset({"foresight"})


def test_each_missing_service_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"'clairvoyant' needs foresight from below; oracular could supply it"
    ):
        stack(Bundle(), Clairvoyant(), Reliable())
    with pytest.raises(UsageError, match=r"needs foresight, reliable from below"):
        stack(Bundle(), Clairvoyant())
    assert stack(Bundle(), Clairvoyant(), Oracular(), Reliable()).layer("clairvoyant") is not None


def test_what_nobody_supplies_is_an_error_all_the_same() -> None:
    class Wanting(Layer):
        name = "wanting"
        requires = frozenset({"peace"})

    with pytest.raises(UsageError, match=r"'wanting' needs peace from below$"):
        stack(Bundle(), Wanting())


def test_the_network_itself_may_provide_a_service() -> None:
    assert stack(Bundle(), Causal(), beneath=("reliable",)).chain.levels == ()


def test_two_layers_of_one_id_are_refused() -> None:
    with pytest.raises(UsageError, match="id"):
        stack(Bundle(), Reliable(), Reliable())


def test_a_stack_needs_an_entrance() -> None:
    with pytest.raises(UsageError, match="bundle"):
        stack(Causal(), Reliable())


def test_a_transparent_layer_stands_at_the_bottom() -> None:
    with pytest.raises(UsageError, match="'shape'"):
        stack(Bundle(), Shape(Faults()), Causal(), Reliable())


# Skipping


class Idle(Layer):
    """Overrides nothing: costs nothing."""

    name = "idle"


class Downward(Layer):
    name = "downward"

    def down(self, batch: list[Packet]) -> None:
        self.below(batch)


class Upward(Layer):
    name = "upward"

    def up(self, batch: list[Packet]) -> None:
        self.above(batch)


def test_layers_that_do_not_override_a_direction_are_skipped() -> None:
    bundle, fragment = Bundle(), Fragment()
    idle, downward, upward, lowest = Idle(), Downward(), Upward(), Idle()
    made = stack(bundle, idle, downward, upward, fragment, lowest)

    assert bundle.below == downward.down  # past idle
    assert downward.below == fragment.down  # past upward
    assert fragment.below == made.emit  # past the lowest idle one
    assert idle.below == downward.down
    assert lowest.below == made.emit

    assert fragment.above == upward.up
    assert upward.above == bundle.up  # past downward and idle
    assert bundle.above == made.deliver  # the end of the way
    assert lowest.above == fragment.up
    assert downward.above == idle.above == bundle.up


class FlipsSent(Layer):
    """A filter of what is sent, and of nothing else."""

    name = "flips sent"

    def down(self, batch: list[Packet]) -> None:
        for packet in batch:
            packet.body = bytes(255 - octet for octet in bytes(packet.body))
        self.below(batch)


class FlipsReceived(Layer):
    """A filter of what is received, and of nothing else."""

    name = "flips received"

    def up(self, batch: list[Packet]) -> None:
        for packet in batch:
            packet.body = bytes(255 - octet for octet in bytes(packet.body))
        self.above(batch)


@pytest.mark.parametrize(
    ("sent", "received", "heard"),
    [
        (None, None, ["hello"]),
        (FlipsSent, FlipsReceived, ["hello"]),
        (FlipsSent, None, []),
        (None, FlipsReceived, []),
    ],
)
def test_filters_of_what_is_sent_and_of_what_is_received_are_chosen_apart(
    sent: type[Layer] | None, received: type[Layer] | None, heard: list[str]
) -> None:
    """Each is a layer that has the other direction skipped; that they fit each other is for whoever chooses them."""

    def build() -> list[Layer]:
        top, order, *rest = find("vector").build(Options())
        return [top, *(chosen() for chosen in (sent, received) if chosen is not None), order, *rest]

    net = Net(2, build=build)
    net.send(0, b"hello")
    net.settle()
    assert net.texts(1) == heard
    assert bool(net.stacks[1].rejected) is not bool(heard)


def test_hooks_are_called_only_where_there_are_any() -> None:
    bundle, causal, reliable, flow = Bundle(), Causal(), Reliable(), Flow()
    made = stack(bundle, Idle(), causal, Fragment(), flow, reliable)
    assert made._takers == [bundle.taken, causal.taken, flow.taken]  # top to bottom
    assert made._turners == [bundle.turn, reliable.turn]
    assert made._timed == [flow, reliable]
    assert made.chain._kinds == {1: reliable, 2: flow}


def test_control_packets_pass_no_layer_but_their_own() -> None:
    """Nothing above ever sees them, so nothing above can hold them."""
    seen: list[int] = []

    class Spy(Layer):
        name = "spy"

        def up(self, batch: list[Packet]) -> None:
            seen.extend(packet.kind for packet in batch)
            self.above(batch)

    net = Net(2, build=lambda: [Bundle(), Spy(), Causal(), Fragment(), Flow(), Reliable()])
    net.send(0, b"one")
    net.quiet()
    assert {flight.kind for flight in net.log} >= {0, 1}
    assert seen == [0]


def test_a_kind_nobody_knows_is_counted() -> None:
    net = Net(2)
    net.send(0, b"x")
    data = bytearray(net.under_way[0].data)
    data[3] = 99
    net.inject(1, resealed(data))
    assert net.stacks[1].rejected == {"kind": 1}
    assert net.texts(1) == []


# Doing


def test_the_flow_window_closes_the_door() -> None:
    net = Net(2, options=Options(flow={"window": 1}))
    net.send(0, b"one")
    assert not net.stacks[0].writable
    with pytest.raises(WouldBlock, match="window"):
        net.stacks[0].send(b"two", now=net.now)
    net.quiet()
    assert net.stacks[0].writable
    net.send(0, b"two")
    net.quiet()
    assert net.texts(1) == ["one", "two"]


@pytest.mark.parametrize("to", [0, -1, 0b1000, 1 << 40])
def test_a_destination_that_is_no_member_is_refused(to: int) -> None:
    """Such a packet would be malformed for everybody, so its number would be missing for ever."""
    net = Net(3)
    with pytest.raises(UsageError, match="destination"):
        net.stacks[0].send(b"x", to, now=0.0)
    net.send(0, b"fine")
    net.quiet()
    assert net.texts(1) == net.texts(2) == ["fine"]


def test_a_stack_offers_the_levels_of_its_layers() -> None:
    assert Net(2).stacks[0].chain.levels == ("confirmed",)


def test_a_body_and_its_header_fit_a_datagram() -> None:
    for size in (256, 512, 1472, 60 * 1024):
        made = Stack([Bundle()], 0, VIEW, rng=Random(0), datagram_max=size)
        assert size // 2 <= made.wire.body_max < size


@pytest.mark.parametrize("members", [2, 20, 100])
def test_a_vector_of_large_numbers_fits_beside_them(members: int) -> None:
    view = View.of(*map(str, range(members)))
    made = Stack([Bundle()], 0, view, rng=Random(0), datagram_max=1472)
    packet = Packet(0, 1, bytes(made.wire.body_max))
    packet.seq = packet.lsn = COUNT_MAX
    packet.ack = (COUNT_MAX,) * members
    assert len(joined(made.wire.encode(packet))) <= 1472


# Recipes


def test_causal_is_another_name_for_vector() -> None:
    assert find("causal") is find("vector")
    assert {"none", "fifo", "vector", "causal"} <= set(names())


def test_an_order_that_is_none_lists_those_that_are() -> None:
    with pytest.raises(
        UsageError,
        match=r"no order 'causl'; did you mean 'causal'\?",
    ):
        find("causl")


def test_registered_names_are_not_taken_over() -> None:
    for name in ("causal", "vector", "none"):
        with pytest.raises(UsageError, match="already"):
            register(name, lambda options: [])


@pytest.mark.parametrize("order", ["none", "fifo", "vector", "relay"])
def test_every_recipe_builds_with_every_option(order: str) -> None:
    for options in (
        Options(),
        Options(echo=True, coarse=True),
        Options(faults=Faults(loss=0.1), reliable={"patience": 1.0}, flow={"window": 9}),
    ):
        made = stack(*find(order).build(options))
        assert isinstance(made.layer("shape"), Shape) == (options.faults is not None)
    made = stack(*find(order).build(Options(lossless=True)), beneath=("reliable",))
    assert made.layer("reliable") is None and made.layer("flow") is None


def test_fifo_and_causal_say_what_they_provide() -> None:
    assert Fifo.provides == {"fifo"}
    assert Causal.provides == {"fifo", "causal"}
