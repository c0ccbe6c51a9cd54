"""The second strategy: senders repeat what was not acknowledged."""

from typing import Any

import pytest

from inga.corba.multicast.acks import _ACKNOWLEDGE, Acknowledged
from inga.corba.multicast.fragments import MiopFragments, MiopPackets, Piece, quad_of
from inga.corba.wire import miop
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.stack.stack import Stack

from ...stack.harness import Net, Top
from .remiop_world import found
from .test_remiop import Fixed, is_control, number

A, B, C = 0, 1, 2


def members(count: int = 3, **options: Any) -> Net:
    def build() -> list[Any]:
        return [Top(), MiopFragments(), Acknowledged(**options), MiopPackets()]

    return Net(count, build=build)


def data(net: Net, source: int) -> list[int]:
    return [number(flight) for flight in net.log if flight.source == source and not is_control(flight)]


def test_what_comes_is_acknowledged_once_for_many() -> None:
    net = members(2, ack_delay=0.005)
    for _ in range(5):
        net.send(A, b"x")
    net.settle()
    net.wait(0.01)
    said = [miop.decode_control(miop.decode(flight.data)) for flight in net.log if flight.source == B]
    assert [control.entries for control in said] == [((quad_of(0, A), 5),)]
    net.quiet()
    assert data(net, A) == [1, 2, 3, 4, 5]


def test_acknowledgements_come_before_senders_repeat_themselves() -> None:
    net = members(2)
    net.send(A, b"x")
    net.quiet()
    assert data(net, A) == [1]


def test_whoever_leaves_repeats_nothing() -> None:
    net = members(2)
    net.send(A, b"x")
    net.stacks[A].goodbye(now=net.now)
    net.turn(A)
    net.wait(60.0, lose=lambda flight: True)
    assert data(net, A) == [1]


def test_what_one_lacks_is_sent_to_all_again_and_then_later() -> None:
    net = members(3, resend=0.05, ack_delay=0.001)
    net.send(A, b"1")
    for pause, times in ((0.04, 1), (0.02, 2), (0.05, 2), (0.08, 3)):
        net.wait(pause, lose=lambda flight: flight.target == C)
        assert data(net, A).count(1) == 2 * times
    net.quiet()
    assert [bytes(packet.body) for packet in net.stacks[C].layers[0].got] == [b"1"]  # type: ignore[attr-defined]


def test_a_receipt_waits_for_all() -> None:
    net = members(3)
    receipt = net.send(A, b"1")
    net.wait(0.2, lose=lambda flight: flight.source == C)
    assert not receipt.has("confirmed")
    net.quiet()
    assert receipt.has("confirmed")


def test_a_reader_far_behind_acknowledges_what_it_has_as_soon_as_it_reads_again() -> None:
    net = members(2, queue_max=100)
    net.stacks[B].queued = 100
    receipt = net.send(A, b"1")
    net.wait(0.01)
    net.stacks[B].queued = 40
    assert not receipt.has("confirmed")
    net.stacks[B].taken([], now=net.now)
    net.turn(B)
    net.settle()
    assert receipt.has("confirmed") and data(net, A) == [1], "it need not be sent again for that"


def test_where_anybody_may_speak_nobody_knows_whom_to_wait_for() -> None:
    layers = [Top(), MiopFragments(), Acknowledged(), MiopPackets(sender=quad_of(0, 0))]
    with pytest.raises(UsageError, match="acks need to know the members"):
        Stack(layers, 0, View.of("a"), rng=Fixed(0.0))


def test_a_sender_that_does_not_wait_has_no_use_for_it() -> None:
    with pytest.raises(UsageError, match="acks wait for the members"):
        Acknowledged(wait=False)


class NoRepeats(Acknowledged):
    """What was lost stays lost."""

    def _repeat(self, now: float) -> None:
        pass


class SilentDuplicates(Acknowledged):
    """Whoever repeats a packet is not told again that it has come."""

    def _receive(self, packet: Packet, piece: Piece) -> bool:
        was_due = _ACKNOWLEDGE in self._alarms
        is_new = super()._receive(packet, piece)
        if not is_new and not was_due:
            self._alarms.clear(_ACKNOWLEDGE)
        return is_new


@pytest.mark.parametrize("broken", [NoRepeats, SilentDuplicates])
def test_mutation(broken: type[Acknowledged]) -> None:
    message = found(broken, range(60))
    assert message is not None and message.startswith("10")
