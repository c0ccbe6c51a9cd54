"""Numbering, each sender's order, no order at all, and what all order layers share: subsets and echo."""

import pytest

from inga.layers.fifo import EARLY_MAX, Fifo, Unordered, Unreliable
from inga.model.packet import Packet
from inga.recipes import Options
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row

from ..stack.harness import Net, Probe

ORDERS = ("none", "fifo", "vector")
LOSSLESS = Options(lossless=True)


def numbered(seq: int, *, src: int = 1, body: bytes = b"\0x", dst: int | None = None) -> Packet:
    packet = Packet(src, 1, body, dst)
    packet.seq = seq
    return packet


def seqs(packets: list[Packet]) -> list[int]:
    return [packet.seq for packet in packets]


def test_none_passes_each_once_as_it_comes() -> None:
    probe = Probe(Unordered())
    assert seqs(probe.feed(numbered(3), numbered(1), numbered(3))) == [3, 1]
    assert seqs(probe.feed(numbered(1), numbered(2), numbered(1, src=2))) == [2, 1]
    assert probe.stack.held == 0


def test_fifo_holds_until_the_earlier_ones_have_come() -> None:
    probe = Probe(Fifo())
    assert probe.feed(numbered(3), numbered(2), numbered(5)) == []
    assert probe.stack.held > 0
    assert seqs(probe.feed(numbered(1))) == [1, 2, 3]
    assert seqs(probe.feed(numbered(3), numbered(5), numbered(1))) == []
    assert seqs(probe.feed(numbered(4))) == [4, 5]
    assert probe.stack.held == 0


def test_fifo_is_per_sender(layer: type[Fifo] = Fifo) -> None:
    probe = Probe(layer())
    got = probe.feed(numbered(2), numbered(1, src=2), numbered(2, src=2), numbered(1))
    assert [(packet.src, packet.seq) for packet in got] == [(2, 1), (2, 2), (1, 1), (1, 2)]


class OneCountForAll(Fifo):
    """Numbers are expected one after the other, whoever they are of."""

    def _place(self, packet: Packet) -> tuple[int, int]:
        return 0, packet.seq


def test_one_count_for_all_senders_is_noticed() -> None:
    with pytest.raises(AssertionError):
        test_fifo_is_per_sender(OneCountForAll)


@pytest.mark.parametrize("layer", [Unordered, Fifo])
def test_a_packet_without_a_number_is_counted(layer: type[Unordered]) -> None:
    probe = Probe(layer())
    assert probe.feed(numbered(0)) == []
    assert probe.stack.rejected == {"malformed": 1}


def test_fifo_drains_by_sender_and_number() -> None:
    probe = Probe(Fifo())
    probe.feed(numbered(4), numbered(2, src=2), numbered(2))
    drained = probe.layer.drain()
    assert [(packet.src, packet.seq) for packet in drained] == [(1, 2), (1, 4), (2, 2)]
    assert probe.stack.held == 0


def test_what_is_held_is_weighed() -> None:
    probe = Probe(Fifo())
    probe.feed(numbered(2, body=b"x" * 1000), numbered(3, body=b"x" * 500))
    assert 1500 <= probe.stack.held <= 1510
    probe.feed(numbered(1))
    assert probe.stack.held == 0


# Subsets and echo, in every order


@pytest.mark.parametrize("order", ORDERS)
def test_one_send_is_one_number_whoever_it_is_for(order: str) -> None:
    net = Net(4, order)
    for text, to in ((b"all", None), (b"bob", 0b0010), (b"cathy and dave", 0b1100), (b"all again", None)):
        net.send(0, text, to=to)
        net.settle()
    assert net.texts(1) == ["all", "bob", "all again"]
    assert net.texts(2) == net.texts(3) == ["all", "cathy and dave", "all again"]
    assert [batch.seq for batch in net.batches[1]] == [1, 2, 4]
    assert [batch.seq for batch in net.batches[2]] == [1, 3, 4]
    net.quiet()


@pytest.mark.parametrize("order", ORDERS)
def test_others_get_the_header_without_the_body(order: str) -> None:
    net = Net(3, order, options=LOSSLESS)
    net.send(0, b"a secret for bob", to=0b010)
    (to_bob,), (to_cathy,) = net.to(1), net.to(2)
    assert b"secret" in to_bob.data
    assert b"secret" not in to_cathy.data
    (header,) = net.packets([to_cathy])
    assert (header.bare, header.dst, header.seq) == (True, 0b010, 1)


@pytest.mark.parametrize("order", ["fifo", "vector"])
def test_a_bare_header_fills_its_place(order: str) -> None:
    net = Net(3, order, options=LOSSLESS)
    net.send(0, b"for bob", to=0b010)
    net.send(0, b"for all")
    header, message = net.to(2)
    net.arrive(message)
    assert net.texts(2) == []
    net.arrive(header)
    assert net.texts(2) == ["for all"]


@pytest.mark.parametrize("order", ORDERS)
def test_echo_comes_at_the_send(order: str) -> None:
    net = Net(2, order, options=Options(echo=True))
    net.send(0, b"one")
    assert net.texts(0) == ["one"]
    (batch,) = net.batches[0]
    assert (batch.sender, batch.seq) == ("alice", 1)
    assert not batch.concurrent and batch.concurrent_with == []
    net.send(0, b"to bob", to=0b10)
    net.settle()
    assert net.texts(0) == net.texts(1) == ["one", "to bob"]
    net.quiet()


@pytest.mark.parametrize("order", ORDERS)
def test_who_names_oneself_hears_oneself(order: str) -> None:
    net = Net(3, order)
    net.send(0, b"to all")
    net.settle()
    net.send(0, b"to bob and me", to=0b011)
    net.settle()
    net.send(0, b"to me", to=0b001)
    net.quiet()
    assert net.texts(0) == ["to bob and me", "to me"]
    assert net.texts(1) == ["to all", "to bob and me"]
    assert net.texts(2) == ["to all"]
    net.send(0, b"on")
    net.quiet()
    assert net.texts(1)[-1] == net.texts(2)[-1] == "on"


@pytest.mark.parametrize("order", ORDERS)
def test_taking_an_echo_moves_no_clock(order: str) -> None:
    net = Net(2, order, options=Options(echo=True, lossless=True), traced=True)
    for text in (b"one", b"two", b"three"):
        net.send(0, text)
    net.settle()
    assert [batch.deps for batch in net.batches[1]] == [(0, 0), (1, 0), (2, 0)]


# What a trace gets


def traced(order: str, *, full: bool = True) -> tuple[Net, list[Row]]:
    rows: list[Row] = []
    net = Net(
        3,
        order,
        options=LOSSLESS,
        traces=[MemoryTrace(me, 3, rows, full=full) for me in range(3)],
        traced=True,
        takes=False,
    )
    return net, rows


def at(rows: list[Row], process: int) -> list[tuple[str, int | None, int | None]]:
    return [(row.step, row.src, row.seq) for row in rows if row.process == process]


@pytest.mark.parametrize("order", ["fifo", "vector"])
def test_rows_of_a_message_in_the_order_of_events(order: str) -> None:
    net, rows = traced(order)
    net.send(0, b"one")
    net.send(0, b"two")
    first, second = net.to(1)
    net.arrive(second, first, second)
    net.take(1, net.batches[1][0])
    assert at(rows, 0) == [("send", 0, 1), ("send", 0, 2)]
    assert at(rows, 1) == [
        ("receive", 0, 2),
        ("hold", 0, 2),
        ("receive", 0, 1),
        ("deliver", 0, 1),
        ("deliver", 0, 2),
        ("receive", 0, 2),
        ("duplicate", 0, 2),
        ("take", 0, 1),
    ]


@pytest.mark.parametrize("order", ["fifo", "vector"])
def test_a_row_says_how_many_are_held(order: str) -> None:
    net, rows = traced(order)
    for message in (b"one", b"two", b"three"):
        net.send(0, message)
    net.arrive(*reversed(net.to(1)))
    assert [(row.seq, row.n) for row in rows if row.step == "hold"] == [(3, 1), (2, 2)]


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_tells_its_trace_what_caused_what(order: str) -> None:
    net, rows = traced(order)
    net.send(0, b"question")
    net.settle()
    net.send(2, b"cathy has not read it")
    net.take(1, net.batches[1][0])
    net.send(1, b"answer")
    sends = {row.src: row.deps for row in rows if row.step == "send"}
    assert sends == {0: (0, 0, 0), 1: (1, 0, 0), 2: (0, 0, 0)}
    net.settle()
    delivers = {(row.process, row.src): row.deps for row in rows if row.step == "deliver"}
    assert delivers[2, 1] == (1, 0, 0)


def test_the_vector_of_a_traced_order_is_joined_when_taken() -> None:
    """Bob tells cathy of what alice told bob alone."""
    net, rows = traced("fifo")
    net.send(0, b"for bob", to=0b010)
    net.settle()
    net.take(1, net.batches[1][0])
    net.send(1, b"for cathy", to=0b100)
    net.settle()
    net.take(2, net.batches[2][0])
    net.send(2, b"for all")
    assert [row.deps for row in rows if row.step == "send"] == [(0, 0, 0), (1, 0, 0), (1, 1, 0)]


def test_without_a_trace_fifo_carries_no_vector() -> None:
    net = Net(3, "fifo", options=LOSSLESS)
    net.send(0, b"x")
    (packet,) = net.packets(net.to(1))
    assert packet.trace is None and packet.stamp is None


def test_bare_copies_are_received_and_not_delivered() -> None:
    net, rows = traced("vector")
    net.send(0, b"for bob", to=0b010)
    net.settle()
    assert [(row.step, row.note) for row in rows if row.process == 2] == [("receive", "bare")]
    assert [row.dst for row in rows if row.step == "send"] == [0b010]


@pytest.mark.parametrize("order", ORDERS)
def test_a_lean_trace_has_sends_deliveries_and_takes(order: str) -> None:
    net, rows = traced(order, full=False)
    net.send(0, b"one")
    net.send(0, b"two")
    net.arrive(*reversed(net.to(1)))
    for batch in net.batches[1]:
        net.take(1, batch)
    assert {row.step for row in rows} == {"send", "deliver", "take"}
    assert len(rows) == 6


@pytest.mark.parametrize("order", ["fifo", "vector"])
def test_what_is_held_of_one_that_is_gone_is_dropped_and_no_room_is_kept_for_it(order: str) -> None:
    """Its first message is lost with it. What others sent is not touched."""
    net = Net(3, order, options=Options(lossless=True))
    for member in (1, 2):
        net.send(member, b"first")
        net.send(member, b"second")
    net.arrive(*net.to(0, source=1)[1:], *net.to(0, source=2)[1:])
    stack = net.stacks[0]
    both = stack.held
    assert both > 0 and net.texts(0) == []
    stack.gone(1, failed=True)
    assert 0 < stack.held < both
    net.arrive(net.to(0, source=2)[0])
    assert net.texts(0) == ["first", "second"] and stack.held == 0


def test_over_a_network_that_loses_what_never_comes_is_forgotten() -> None:
    layer = Unreliable()
    probe = Probe(layer)
    for seq in range(2, 2 * EARLY_MAX):  # the first is lost
        assert len(probe.feed(numbered(seq))) == 1
        assert len(layer._arrived[1].early) == (seq - 1 if seq <= EARLY_MAX + 1 else 0)
    assert len(layer._arrived[1].early) <= EARLY_MAX
    assert not probe.feed(numbered(5)), "which has come before"
