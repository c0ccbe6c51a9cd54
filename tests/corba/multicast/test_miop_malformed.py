"""Malformed packets at a whole receiver: each raises its counter by one, and nothing else happens."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from inga.corba.multicast.fragments import MiopFragments, MiopPackets
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.requests import Requests
from inga.corba.wire import miop
from inga.model.view import View
from inga.stack.stack import Stack

VECTORS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "scenarios" / "miop" / "vectors.json").read_text()
)
PACKETS = {
    f"{name} {part}": bytes.fromhex(each)
    for name in ("V1", "V2", "V3", "V4", "V5", "V6", "V7")
    for part, each in enumerate(VECTORS[name])
}
HELLO, NACK = PACKETS["V1 0"], PACKETS["V5 0"]
ME = 0x7F000009
SECOND = 0x7F000002
"""Who sent the control packets of the vectors."""


def receiver(sender: int = ME, message_max: int | None = None) -> Stack:
    """One that takes requests from anybody, by ReMIOP."""
    layers = [Requests(), MiopFragments(), ReMiop(on_gap="skip"), MiopPackets(sender=sender)]
    stack = Stack(layers, 0, View.of(miop.quad(sender)), rng=Random(0))
    if message_max is not None:
        fragments = stack.layer("fragments")
        assert isinstance(fragments, MiopFragments)
        fragments.unrepaired.message_max = message_max
    return stack


def changed(data: bytes, at: int, octets: str) -> bytes:
    new = bytes.fromhex(octets)
    return data[:at] + new + data[at + len(new) :]


def fragment(number: int, count: int, stop: bool = False) -> bytes:
    return miop.encode(b"some other id", number, count, b"payload", flags=miop.STOP if stop else 0)


def takes_requests(stack: Stack) -> bool:
    """Whether a good packet still gets through."""
    stack.receive([(PACKETS["V4 0"], None)], now=100.0)
    return len(stack.ready().deliver) == 1


@pytest.mark.parametrize(
    "counter, packets",
    [
        ("short", [HELLO[:19]]),
        ("bad_magic", [changed(HELLO, 0, "4e")]),
        ("bad_version", [changed(HELLO, 4, "20")]),
        ("bad_id_length", [changed(HELLO, 16, "fffffff0")]),
        ("bad_id_length", [changed(HELLO, 16, "000000fd")]),
        ("bad_length", [changed(HELLO, 6, "ffff")]),
        ("bad_length", [changed(HELLO, 6, "0010")]),
        ("empty", [miop.encode(bytes(12), 0, 1, b"")]),
        ("bad_number", [changed(HELLO, 8, "0000000500000003")]),
        ("too_large", [changed(HELLO, 12, "00010001")]),
        ("inconsistent", [fragment(0, 3), fragment(1, 4)]),
        ("inconsistent", [fragment(0, 0), fragment(2, 0), fragment(1, 0, stop=True)]),
        ("bad_control_header", [changed(HELLO, 5, "82")]),
        ("bad_control_header", [changed(NACK, 5, "00")]),
        ("bad_control", [changed(NACK, 32, "00000002")]),
        ("bad_control", [changed(NACK, 52, "00000029")]),
        ("bad_control", [changed(NACK, 40, "30")]),
        ("bad_cdr", [changed(NACK, 36, "00000000")]),
        ("bad_giop", [changed(HELLO, 32, "67")]),
        ("bad_giop_size", [changed(HELLO, 40, "00000085")]),
        ("unsupported_giop", [changed(HELLO, 39, "01")]),
        ("twoway_rejected", [changed(HELLO, 48, "03")]),
        ("bad_target", [changed(HELLO, 52, "0003")]),
        ("bad_target", [changed(HELLO, 56, "00000000")]),
        ("bad_cdr", [changed(HELLO, 132, "00000000")]),
    ],
)
def test_each_has_its_counter(counter: str, packets: list[bytes]) -> None:
    stack = receiver()
    for number, packet in enumerate(packets):
        stack.receive([(packet, None)], now=number / 1000)
    assert stack.rejected == Counter({counter: 1})
    ready = stack.ready()
    assert not ready.deliver and ready.error is None
    assert takes_requests(stack)


def test_a_message_larger_than_the_limit() -> None:
    stack = receiver(message_max=10)
    stack.receive([(fragment(0, 3), None), (fragment(1, 3), None)], now=0.0)
    assert stack.rejected == Counter({"too_large": 1}) and takes_requests(stack)


def test_duplicates_are_no_error() -> None:
    stack = receiver()
    stack.receive([(HELLO, None), (HELLO, None)], now=0.0)
    assert not stack.rejected and len(stack.ready().deliver) == 1


def test_our_own_control_packets_are_ignored() -> None:
    stack = receiver(SECOND)
    stack.receive([(NACK, None)], now=0.0)
    assert stack.rejected == Counter({"own_control": 1})


@pytest.mark.parametrize("name", PACKETS)
def test_a_changed_vector_raises_one_counter_or_none(name: str) -> None:
    packet = PACKETS[name]
    variants = [packet[:size] for size in range(len(packet))]
    for at, octet in enumerate(packet):
        others = {0, 255, *(octet ^ 1 << bit for bit in range(8))} - {octet}
        variants += [packet[:at] + bytes((other,)) + packet[at + 1 :] for other in sorted(others)]
    stack, refused = receiver(), 0
    for number, variant in enumerate(variants):
        stack.receive([(variant, None)], now=number / 1000)
        assert stack.ready().error is None
        refused, before = sum(stack.rejected.values()), refused
        assert refused - before in (0, 1)
    assert refused > len(packet) / 2
