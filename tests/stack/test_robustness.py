"""No datagram can hurt: whatever is received is counted and dropped, or absorbed, and nothing is raised.

Garbage (random, cut, foreign, replayed) does no harm at all: the group's own messages still all arrive.
Forged packets, well-formed and false, may do harm, since nothing is signed here; they may not crash us.
"""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.model.stamp import Stamp
from inga.stack.stack import Stack, joined
from inga.trace.memory import MemoryTrace
from inga.trace.writer import TraceWriter
from inga.wire.packet import HEAD, encode

from .datagrams import GROUP, MEMBERS, busy_net, captured, forged, garbage, readable, spoiled, talk
from .harness import NAMES, Flight, Net, resealed

ORDERS = ("none", "fifo", "vector")
WIRE_REASONS = (
    "truncated",
    "foreign",
    "version",
    "check",
    "group",
    "stranger",
    "malformed",
    "length",
    "view",
)


def receive(net: Net, member: int, *datagrams: bytes) -> None:
    """Take them, and account for each that the decoder refuses."""
    stack = net.stacks[member]
    before = refused(stack)
    unreadable = 0
    for data in datagrams:
        try:
            unreadable += not readable(data, net, member) and data[10:12] != member.to_bytes(2, "big")
        except WireError:
            unreadable += 1
    net.inject(member, *datagrams)
    assert net.errors[member] is None
    # Layers may refuse a readable one for its contents, so there may be more.
    assert refused(stack) >= before + unreadable


def refused(stack: Stack) -> int:
    """Of the next view, which somebody else may have installed already, datagrams wait."""
    return sum(stack.rejected[reason] for reason in (*WIRE_REASONS, "sealed")) + stack.counts["ahead"]


def headed(rest: bytes, sections: int, kind: int, source: int, body: int) -> bytes:
    """A head of our own group, then anything."""
    group = Net(2, group=GROUP).stacks[0].group
    return HEAD.pack(0x696E, 1, kind, group, sections, source, 1, body) + rest


any_bytes = st.binary(max_size=100) | st.builds(
    headed,
    st.binary(max_size=60),
    st.integers(0, 2**16 - 1),
    st.sampled_from((0, 0, 1, 2, 7)),
    st.integers(0, MEMBERS),
    st.integers(0, 20) | st.integers(0, 2**32 - 1),
)


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=150)
@given(batches=st.lists(st.lists(any_bytes, max_size=5), max_size=6))
def test_any_bytes_are_counted_and_dropped_or_absorbed(order: str, batches: list[list[bytes]]) -> None:
    net = busy_net(order)
    net.send(0, b"before")
    for batch in batches:
        receive(net, 1, *batch)
        net.now += 0.01
        net.tick(1)


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_mutations_of_every_kind_of_datagram(order: str, seed: int, count: int) -> None:
    rng, flights = Random(seed), captured(order)
    net = busy_net(order)
    group = net.stacks[0].group
    for _ in range(count):
        data = spoiled(rng, flights) if rng.random() < 0.5 else forged(rng, flights, group)
        receive(net, rng.randrange(MEMBERS), data)


@pytest.mark.parametrize("order", ORDERS)
def test_thousands_of_mutated_datagrams_among_genuine_traffic(order: str) -> None:
    """In many short lives, since a forged packet soon brings a group to a standstill."""
    rng, flights = Random(99), captured(order)
    rejected: Counter[str] = Counter()
    delivered = 0
    for life in range(60):
        traces = [MemoryTrace(me, MEMBERS) for me in range(MEMBERS)] if life % 2 else None
        net = busy_net(order, traced=bool(traces), traces=traces, seed=life)
        group = net.stacks[0].group
        for number in range(75):
            talk(net, rng, b"%d" % number)
            for flight in rng.sample(net.under_way, min(5, len(net.under_way))):
                net.arrive(flight)
            if number % (1 + life % 4) == 0:
                receive(
                    net,
                    rng.randrange(MEMBERS),
                    spoiled(rng, flights),
                    forged(rng, flights, group),
                    forged(rng, (*flights, *net.log[-50:]), group),
                )
            net.now += 0.005 * rng.random()
            net.tick(rng.randrange(MEMBERS))
        for stack in net.stacks:
            rejected += stack.rejected
        delivered += sum(map(len, net.batches))
    assert set(WIRE_REASONS) <= set(rejected), "every kind of nonsense was among them"
    assert {"lsn", "kind", "fragments"} <= set(rejected), "and false packets that layers refuse"
    assert delivered > 500, "and genuine ones"


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_garbage_does_no_harm(order: str, seed: int) -> None:
    """A long conversation over a bad network, with garbage all along: every message still arrives."""
    rng, flights = Random(seed), captured(order)
    net = busy_net(order, seed=seed)
    sent: list[tuple[int, bytes, int | None]] = []
    kinds = set()
    for number in range(60):
        sent += said(net, rng, number)
        for flight in rng.sample(net.under_way, len(net.under_way) // 2):
            net.arrive(flight)
        net.lose(lambda flight: rng.random() < 0.1)
        for _ in range(4):
            target = rng.randrange(MEMBERS)
            what, data = garbage(rng, flights, net, target)
            kinds.add(what)
            receive(net, target, data)
        net.wait(0.01 * rng.random(), lose=lambda flight: rng.random() < 0.1)
    net.quiet()
    assert len(kinds) == 11
    for member in range(MEMBERS):
        expected = [
            text.decode()
            for sender, text, to in sent
            if sender != member and (to is None or to >> member & 1)
        ]
        assert sorted(net.texts(member)) == sorted(expected)
    assert len(sent) > 20


def said(net: Net, rng: Random, number: int) -> list[tuple[int, bytes, int | None]]:
    """What `talk` made somebody say."""
    member = rng.randrange(MEMBERS)
    if not net.stacks[member].writable:
        return []
    to = rng.choice((None, None, 1 << (member + 1) % MEMBERS))
    text = b"%d" % number + b"." * rng.choice((0, 0, 50, 700))
    net.send(member, text, to=to)
    return [(member, text, to)]


# One by one, by hand


@pytest.mark.parametrize("order", ORDERS)
def test_each_kind_of_garbage_has_its_counter(order: str) -> None:
    net = Net(2, order, group=GROUP)
    net.send(0, b"lunch?")
    (flight,) = net.to(1)
    good = flight.data

    def with_bytes(at: int, value: bytes) -> bytes:
        return resealed(good[:at] + value + good[at + len(value) :])

    for reason, data in {
        "truncated": b"",
        "foreign": b"GET / HTTP/1.1\r\n\r\n....",
        "version": with_bytes(2, b"\x63"),
        "group": with_bytes(4, Net(2, group="dinner").stacks[0].group.to_bytes(4, "big")),
        "stranger": with_bytes(10, b"\x00\x09"),
        "view": with_bytes(12, b"\x00\x00\x00\x03"),
        "length": resealed(good[:-1]),
        "check": good[:-1],
        "kind": with_bytes(3, b"\x63"),
    }.items():
        net.inject(1, data)
        assert net.stacks[1].rejected.pop(reason) == 1
        assert not net.stacks[1].rejected
    net.inject(0, good)  # alice hears herself, which is no news and no harm
    assert not net.stacks[0].rejected
    net.inject(1, good, good)
    net.inject(1, good)
    assert net.texts(1) == ["lunch?"]
    assert not net.stacks[1].rejected


@pytest.mark.parametrize("backwards", [False, True])
def test_memory_lent_for_a_moment_is_not_kept(backwards: bool) -> None:
    """The reader's buffer is used again as soon as `receive` returns."""
    net = Net(2, datagram_max=60_000, takes=False)
    net.stacks[0].layers[0].gather = False  # type: ignore[attr-defined]  # each in a packet of its own
    texts = [b"%d" % i * size for i, size in enumerate((1, 80, 200, 17_000, 130_000, 3))]
    for text in texts:
        net.send(0, text)
    net.quiet()
    flights = [flight for flight in net.log if flight.target == 1]
    fresh = Net(2, datagram_max=60_000, takes=False).stacks[1]
    buffer = bytearray(70_000)
    delivered = []
    if backwards:  # so that nearly everything is held or in pieces for a while
        flights.reverse()
    for flight in flights:
        buffer[: len(flight.data)] = flight.data
        fresh.receive([(memoryview(buffer)[: len(flight.data)], None)], now=0.0)
        buffer[:] = b"\xff" * len(buffer)
        delivered += fresh.ready().deliver
    assert [bytes(data) for batch in delivered for data in batch.payloads] == texts


def test_a_header_meant_for_others_does_not_eat_a_message() -> None:
    """Cathy's bare copy of a message to bob, come to bob by mistake."""
    net = Net(3)
    net.send(0, b"psst", to=0b010)
    (bare,), (full,) = net.to(2), net.to(1)
    net.inject(1, bare.data)
    net.arrive(full)
    assert net.texts(1) == ["psst"]
    assert net.stacks[1].rejected == {"malformed": 1}


@pytest.mark.parametrize("order", ORDERS)
def test_a_body_meant_for_others_is_not_delivered(order: str) -> None:
    """Bob's copy of a message to bob, come to cathy by mistake: it counts as the header it contains."""
    net = Net(3, order)
    net.send(0, b"psst", to=0b010)
    (full,) = net.to(1)
    net.inject(2, full.data)
    net.quiet()
    net.send(0, b"to all")
    net.quiet()
    assert net.texts(2) == ["to all"]
    assert net.texts(1) == ["psst", "to all"]


@pytest.mark.parametrize("order", ORDERS)
def test_forged_numbers_do_not_spoil_the_trace(order: str, tmp_path: Path) -> None:
    """Columns have a width; what a stranger claims need not fit it."""
    writers = [TraceWriter(tmp_path, me, NAMES[me], 2, background=False) for me in range(2)]
    net = Net(2, order, traces=writers, traced=True, group=GROUP)
    number = 2**64 - 1
    for seq in (2**31, 2**63, number):
        for vector in ((1, 1), (number, number)):
            packet = Packet(0, 1, b"\0x")
            packet.lsn, packet.seq, packet.trace = 1, seq, vector
            packet.urgent, packet.stamp = True, Stamp((), 1)
            net.inject(1, joined(encode(packet, net.stacks[0].group)))
    packet = Packet(0, 1, b"\0x")
    packet.lsn, packet.seq, packet.trace = 2, 1, (0, number)
    net.inject(1, joined(encode(packet, net.stacks[0].group)))
    net.send(1, b"mine")
    net.send(0, b"hers")
    net.settle()
    for writer in writers:
        writer.close()
    assert sorted(path.name for path in (tmp_path / "events").iterdir())[:2] == [
        "0-00000.parquet",
        "1-00000.parquet",
    ]


def test_where_a_member_is_is_learnt_from_valid_packets_only() -> None:
    net = Net(3, group=GROUP)
    net.send(0, b"x")
    data = net.to(1)[0].data
    stack = net.stacks[1]
    stack.receive(
        [(data[:-1], "mallory"), (b"", "mallory"), (data[:10] + b"\0\x01" + data[12:], "me")], now=0.0
    )
    assert stack.addresses == {}
    stack.receive([(data, None)], now=0.0)
    assert stack.addresses == {}, "a simulated network has no addresses"
    stack.receive([(data, "mallory")], now=0.0)
    assert stack.addresses == {}, "what was said before can be said again by anybody"
    net.settle()
    net.send(0, b"y")
    fresh = net.to(1)[0].data
    stack.receive([(fresh, ("10.0.0.1", 7400))], now=0.0)
    assert stack.addresses == {0: ("10.0.0.1", 7400)}
    assert Flight(0, 1, fresh).kind == 0
