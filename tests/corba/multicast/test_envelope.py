"""Packets of ours as requests: what is read, what is refused and under which name, who is greeted."""

from random import Random
from typing import Any

import pytest

from inga.corba.multicast.envelope import OPERATION, Envelope, oneway_requests
from inga.corba.multicast.fragments import STRANGER, MiopFragments, MiopPackets, quad_of
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.reported import Reported
from inga.corba.wire import giop, miop
from inga.corba.wire.group_request import decode_request, encode_request
from inga.corba.wire.reference import GroupIdentity, Uipmc, encode_group, encode_uipmc
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options, find
from inga.session.session import Session
from inga.session.silence import BEATS
from inga.stack.stack import Stack
from inga.wire.packet import encode

from ...session.town import Town
from ...stack.harness import Net

A, B, C = 0, 1, 2


def profile(group: int = 0, domain: str = "inga", port: int = 7400) -> giop.Tagged:
    return encode_uipmc(Uipmc("239.7.7.7", port, (encode_group(GroupIdentity(domain, group)),)))


def packet(src: int = A) -> bytes:
    """A packet of member `src`, with a message in it."""
    made = Packet(src, 1, b"\x00\x05hello")
    made.seq = 1
    data = encode(made, 0)
    assert isinstance(data, bytearray)
    return bytes(data)


def received(message: bytes, unique_id: bytes = bytes(12)) -> Stack:
    """Member B of two, after a request came to it."""
    stack = Stack(find("miop").build(Options()), B, View.of("a", "b"), rng=Random(0))
    for datagram in miop.split(message, unique_id):
        stack.receive([(datagram, None)], now=0.0)
    return stack


def octets(data: bytes) -> Any:
    return lambda encoder: encoder.octets(data)


def test_the_usual_request_is_read() -> None:
    message = oneway_requests(profile(0)).encode(7, packet())
    assert message == encode_request(7, profile(0), OPERATION, octets(packet()))
    assert not received(message).rejected


@pytest.mark.parametrize("little", [False, True])
def test_so_is_one_that_says_the_same_in_other_words(little: bool) -> None:
    """Another port, another byte order, a service context more: all that others may do."""
    contexts = (giop.Tagged(1, bytes(12)),)
    message = encode_request(
        7, profile(port=9), OPERATION, octets(packet()), contexts=contexts, little=little
    )
    stack = received(message)
    assert not stack.rejected
    fed = stack.layer("none")
    assert fed is not None


TWOWAY = giop.encode(
    giop.Request(1, giop.ProfileAddr(profile()), OPERATION, response_flags=3), octets(packet())
)
BY_KEY = giop.encode(giop.Request(1, giop.KeyAddr(b"key"), OPERATION, response_flags=0), octets(packet()))
GOOD = encode_request(1, profile(), OPERATION, octets(packet()))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"GIOP", "bad_giop"),
        (b"PIOG" + GOOD[4:], "bad_giop"),
        (GOOD[:4] + b"\2" + GOOD[5:], "bad_giop"),
        (GOOD + b"\0", "bad_giop_size"),
        (GOOD[:6] + b"\2" + GOOD[7:], "unsupported_giop"),
        (giop.encode(giop.CloseConnection()), "unsupported_giop"),
        (TWOWAY, "twoway_rejected"),
        (BY_KEY, "bad_target"),
        (encode_request(1, encode_uipmc(Uipmc("239.7.7.7", 1)), OPERATION, octets(packet())), "bad_target"),
        (encode_request(1, profile(7), OPERATION, octets(packet())), "no_such_group"),
        (encode_request(1, profile(0, "other"), OPERATION, octets(packet())), "no_such_group"),
        (encode_request(1, profile(), "shutdown"), "bad_operation"),
        (encode_request(1, profile(), OPERATION), "bad_args"),
        (encode_request(1, profile(), OPERATION, octets(packet()) and (lambda e: e.ulong(9))), "bad_args"),
        (encode_request(1, profile(), OPERATION, octets(b"")), "truncated"),
        (encode_request(1, profile(), OPERATION, octets(b"\0" * 40)), "foreign"),
    ],
)
def test_each_fault_has_its_counter(message: bytes, reason: str) -> None:
    assert dict(received(message).rejected) == {reason: 1}


def test_a_packet_under_anothers_number_is_refused() -> None:
    message = oneway_requests(profile(0)).encode(1, packet(A))
    assert not received(message, miop.numbered_id(quad_of(0, A), 1)).rejected
    stack = Stack(find("miop").build(Options()), C, View.of("a", "b", "c"), rng=Random(0))
    stack.receive([(miop.split(message, miop.numbered_id(quad_of(0, B), 1))[0], None)], now=0.0)
    assert dict(stack.rejected) == {"stranger": 1}


def test_no_single_octet_and_no_cut_does_any_harm() -> None:
    rng = Random(1)
    whole = miop.split(GOOD, miop.numbered_id(quad_of(0, A), 1))[0]
    tried = [whole[:size] for size in range(0, len(whole), 7)]
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.randrange(8)
        tried.append(bytes(changed))
    for order in ("remiop+vector", "miop+acks"):
        stack = Stack(find(order).build(Options()), B, View.of("a", "b"), rng=Random(0))
        for number, datagram in enumerate(tried):
            stack.receive([(datagram, None)], now=number / 1000)
            assert stack.ready().error is None
        assert sum(stack.rejected.values()) > 40


# Who is here


def greeting(announced: bool = True, **options: Any) -> list[Any]:
    strategy = ReMiop(announced=announced, state_interval=0.05, tnack=0.01, trepair=0.01, **options)
    return [
        *find("miop").build(Options())[:2],
        Session(greet=True),
        Envelope(),
        MiopFragments(first=options.get("first", 1)),
        strategy,
        MiopPackets(),
    ]


def test_everybody_learns_where_everybody_begins() -> None:
    net = Net(3, build=greeting)
    for member in range(3):
        net.turn(member)
    net.wait(1.0)
    for member, stack in enumerate(net.stacks):
        strategy = stack.layer("remiop")
        assert isinstance(strategy, Reported)
        others = [strategy.miop.senders[other] for other in range(3) if other != member]
        assert all(strategy._streams[sender].baseline == 1 for sender in others)
    net.quiet()


def test_who_heard_nothing_goes_on_asking_and_is_answered() -> None:
    """All greetings to B are lost for a while; the others have stopped greeting long since."""
    net = Net(3, build=greeting)
    for member in range(3):
        net.turn(member)
    net.wait(3.0, lose=lambda flight: flight.target == B)
    strategy = net.stacks[B].layer("remiop")
    assert isinstance(strategy, Reported) and not strategy._streams
    net.wait(5.0)
    assert len(strategy._streams) == 2


def test_a_goodbye_ends_all_waiting() -> None:
    net = Net(2, build=lambda: greeting(size=2))
    for member in range(2):
        net.turn(member)
    net.wait(1.0)
    for _ in range(6):
        net.send(A, b"x")
        net.lose(lambda flight: flight.target == B)
    assert not net.stacks[A].passable
    net.stacks[B].goodbye(now=net.now)
    net.turn(B)
    net.settle()
    assert net.stacks[A].passable and net.stacks[A].left == {B}


def test_in_the_form_of_polyorb_greetings_and_messages_have_ids_of_their_own() -> None:
    net = Net(2, "miop", options=Options(greet=True, protocol={"polyorb": True}))
    for member in range(2):
        net.turn(member)
    net.wait(1.0)
    for number in range(4):
        net.send(A, b"%d" % number)
    net.wait(1.0)
    assert net.texts(B) == ["0", "1", "2", "3"] and not net.stacks[B].counts["dup"]


def test_what_is_for_some_goes_to_all_and_is_read_by_some() -> None:
    net = Net(3, "remiop")
    net.send(A, b"psst", to=1 << B)
    assert len({flight.data for flight in net.log if flight.source == A}) == 1
    net.settle()
    assert net.texts(B) == ["psst"] and net.texts(C) == []
    request = decode_request(miop.decode(net.log[0].data).payload)
    assert request.operation == OPERATION and STRANGER not in net.stacks[B].addresses


def test_what_the_session_says_to_all_shows_that_a_member_is_there() -> None:
    """An idle member says so as often as it has to, not whenever it looks for others."""
    town = Town(3, "remiop", options=Options(detect=1.0))
    town.wait(10.0)
    said = [copy for copy in town.log if (copy.source, copy.target) == ("alice", "bob")]
    assert 9 * BEATS <= len(said) <= 11 * BEATS
