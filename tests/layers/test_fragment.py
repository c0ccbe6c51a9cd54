"""Large packets in pieces: sizes around the limit, any order, duplicates, and pieces that do not fit."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.layers.fragment import ASSEMBLIES_MAX, LOSSY_MAX, Fragment, LossyFragment, Pieces
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.stamp import Stamp
from inga.recipes import Options

from ..stack.harness import Net, Probe


def cut(size: int, **more: object) -> list[Packet]:
    """A packet of so many bytes sent down: the pieces."""
    probe = Probe(Fragment(), datagram_max=512)
    packet = Packet(0, 1, bytes(i % 251 for i in range(size)), more.pop("dst", None))  # type: ignore[arg-type]
    packet.seq, packet.stamp, packet.trace = 7, Stamp(((1, 2),), 3), (1, 2, 3)
    packet.receipt, packet.partial = Receipt(), True
    probe.layer.down([packet])
    return probe.bottom.sent


LIMIT = Probe(Fragment(), datagram_max=512).stack.wire.body_max


@pytest.mark.parametrize(
    ("size", "pieces"),
    [(0, 1), (1, 1), (LIMIT - 1, 1), (LIMIT, 1), (LIMIT + 1, 2), (2 * LIMIT, 2), (2 * LIMIT + 1, 3)],
)
def test_sizes_around_the_limit(size: int, pieces: int) -> None:
    sent = cut(size)
    assert len(sent) == pieces
    assert all(len(packet.body) <= LIMIT for packet in sent)
    assert b"".join(bytes(packet.body) for packet in sent) == bytes(i % 251 for i in range(size))
    assert [packet.frag for packet in sent] == (
        [None] if pieces == 1 else [(i, pieces) for i in range(pieces)]
    )
    (whole,) = Probe(Fragment(), me=1).feed(*sent)
    assert bytes(whole.body) == bytes(i % 251 for i in range(size))
    assert whole.frag is None


def test_only_the_first_piece_carries_the_stamp_and_only_the_last_the_receipt() -> None:
    sent = cut(3 * LIMIT)
    assert [packet.stamp is not None for packet in sent] == [True, False, False]
    assert [packet.trace is not None for packet in sent] == [True, False, False]
    assert [packet.receipt is not None for packet in sent] == [False, False, True]
    assert [packet.partial for packet in sent] == [False, False, True]
    assert {packet.seq for packet in sent} == {7}


@pytest.mark.parametrize(
    ("ext", "size"), [(0, LIMIT + 1), (5, LIMIT), (LIMIT, 1), (3 * LIMIT + 7, 2 * LIMIT)]
)
def test_what_is_attached_is_cut_like_the_body(ext: int, size: int) -> None:
    probe = Probe(Fragment(), datagram_max=512)
    packet = Packet(0, 1, bytes(i % 251 for i in range(size)))
    packet.seq, packet.ext = 7, bytes(i % 13 for i in range(ext))
    probe.layer.down([packet])
    sent = probe.bottom.sent
    assert all(len(piece.ext or b"") + len(piece.body) <= LIMIT for piece in sent)
    for pieces in (sent, sent[::-1]):
        (whole,) = Probe(Fragment(), me=1).feed(*pieces)
        assert (whole.ext, bytes(whole.body)) == (packet.ext, packet.body)


@pytest.mark.parametrize(
    ("ext", "carriers"), [(None, 0), (0, 1), (5, 1), (LIMIT - 1, 1), (LIMIT, 1), (LIMIT + 1, 2)]
)
def test_pieces_that_nothing_is_attached_to_do_not_say_so(ext: int | None, carriers: int) -> None:
    probe = Probe(Fragment(), datagram_max=512)
    packet = Packet(0, 1, bytes(2 * LIMIT), None)
    packet.ext = None if ext is None else bytes(ext)
    probe.layer.down([packet])
    carrying = [piece.ext is not None for piece in probe.bottom.sent]
    assert carrying == [True] * carriers + [False] * (len(carrying) - carriers)


def test_where_nothing_is_repaired_the_oldest_makes_room() -> None:
    probe = Probe(LossyFragment())
    first, second = [], []
    for number in range(1, LOSSY_MAX + 2):
        for index, pieces in enumerate((first, second)):
            piece = Packet(1, 1, b"x")
            piece.seq, piece.frag = number, (index, 2)
            pieces.append(piece)
    assert probe.feed(*first) == []
    assert [packet.seq for packet in probe.feed(*second[::-1])] == list(range(LOSSY_MAX + 1, 1, -1))


def test_pieces_go_where_the_packet_goes() -> None:
    sent = cut(2 * LIMIT, dst=0b100)
    assert [packet.dst for packet in sent] == [0b100, 0b100]


def test_small_packets_pass_between_the_pieces() -> None:
    probe = Probe(Fragment(), datagram_max=512)
    small, large = Packet(0, 1, b"small"), Packet(0, 1, b"x" * 1000)
    probe.layer.down([small, large, small])
    assert probe.bottom.sent[0] is small and probe.bottom.sent[-1] is small
    assert len(probe.bottom.sent) > 4


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_pieces_in_any_order(order: tuple[int, ...]) -> None:
    sent = cut(3 * LIMIT)
    probe = Probe(Fragment(), me=1)
    for index in order[:-1]:
        assert probe.feed(sent[index]) == []
    (whole,) = probe.feed(sent[order[-1]])
    assert whole.body == bytes(i % 251 for i in range(3 * LIMIT))
    assert (whole.seq, whole.stamp, whole.trace) == (7, Stamp(((1, 2),), 3), (1, 2, 3))


def piece(index: int, count: int, body: bytes, *, src: int = 1, seq: int = 1) -> Packet:
    packet = Packet(src, 1, body)
    packet.seq, packet.frag = seq, (index, count)
    return packet


@given(st.data())
def test_packets_of_several_senders_in_pieces_all_mixed_up(data: st.DataObject) -> None:
    wanted = {}
    pieces = []
    for src in (1, 2):
        for seq in range(1, data.draw(st.integers(1, 3)) + 1):
            count = data.draw(st.integers(2, 5))
            bodies = [data.draw(st.binary(max_size=3)) for _ in range(count)]
            wanted[src, seq] = b"".join(bodies)
            pieces += [piece(i, count, body, src=src, seq=seq) for i, body in enumerate(bodies)]
    probe = Probe(Fragment())
    found = {}
    for each in data.draw(st.permutations(pieces)):
        for whole in probe.feed(each):
            assert (whole.src, whole.seq) not in found
            found[whole.src, whole.seq] = whole.body
    assert found == wanted


def test_a_piece_twice_is_counted_and_dropped() -> None:
    probe = Probe(Fragment())
    probe.feed(piece(0, 2, b"a"), piece(0, 2, b"A"))
    assert probe.stack.rejected == {"fragments": 1}
    (whole,) = probe.feed(piece(1, 2, b"b"))
    assert whole.body == b"ab"


def test_pieces_that_disagree_about_the_count_are_dropped() -> None:
    probe = Probe(Fragment())
    probe.feed(piece(0, 2, b"a"), piece(1, 3, b"x"), piece(2, 3, b"x"))
    assert probe.stack.rejected == {"fragments": 2}
    (whole,) = probe.feed(piece(1, 2, b"b"))
    assert whole.body == b"ab"


def test_unfinished_packets_have_a_bound() -> None:
    probe = Probe(Fragment())
    for seq in range(1, ASSEMBLIES_MAX + 11):
        probe.feed(piece(0, 2, b"a", seq=seq))
    assert probe.stack.rejected == {"fragments": 10}
    assert probe.feed(piece(0, 2, b"a", src=2), piece(1, 2, b"b", src=2))[0].body == b"ab"
    assert probe.feed(piece(1, 2, b"b", seq=5))[0].body == b"ab"


@pytest.mark.parametrize("order", ["none", "fifo", "vector"])
def test_large_messages_to_some(order: str) -> None:
    """Those who are not addressed get headers of the pieces, and count one packet."""
    net = Net(3, order, datagram_max=512)
    net.send(0, b"x" * 3000, to=0b010)
    net.settle()
    net.send(0, b"y" * 3000)
    net.quiet()
    assert [len(text) for text in net.texts(1)] == [3000, 3000]
    assert net.texts(2) == ["y" * 3000]
    to_cathy = [packet for packet in net.packets(f for f in net.log if f.target == 2) if packet.frag]
    assert {len(packet.body) for packet in to_cathy if packet.seq == 1} == {0}
    assert net.stacks[2].rejected == {}


def test_a_lost_piece_is_repaired_alone() -> None:
    net = Net(2, datagram_max=512)
    net.send(0, b"x" * 3000)
    pieces = net.to(1)
    assert len(pieces) > 6
    net.under_way.remove(pieces[3])
    net.quiet()
    assert net.texts(1) == ["x" * 3000]
    sent = [flight for flight in net.log if flight.kind == 0]
    assert len(sent) == len(pieces) + 1
    assert sent[-1].data == pieces[3].data


def test_a_message_of_many_pieces_and_a_small_window() -> None:
    net = Net(3, options=Options(flow={"window": 2000}), datagram_max=512)
    net.send(0, b"x" * 50_000)
    net.quiet()
    assert [len(text) for text in net.texts(1)] == [50_000]
    assert net.texts(2) == net.texts(1)


# Above an order that numbers every piece


def numbered(first: int, size: int) -> list[Packet]:
    """Pieces of one packet, as such an order hands them up: each with a number and a past of its own."""
    pieces = cut(size)
    for seq, piece in enumerate(pieces, first):
        piece.seq, piece.deps = seq, (seq - 1, 0, 0)
    return pieces


def test_a_joined_packet_takes_the_place_of_its_last_piece() -> None:
    probe = Probe(Pieces(), me=1)
    one, two = numbered(5, 3 * LIMIT), numbered(8, 2 * LIMIT)
    assert probe.feed(*one[:2]) == []
    small = Packet(2, 1, b"small")
    assert probe.feed(small) == [small]
    first, second = probe.feed(one[2], *two)
    assert (first.seq, first.deps, first.frag) == (7, (6, 0, 0), None)
    assert (second.seq, len(second.body)) == (9, 2 * LIMIT)
    assert bytes(first.body) == bytes(i % 251 for i in range(3 * LIMIT))


def test_only_the_last_piece_completes_messages() -> None:
    probe = Probe(Pieces(), datagram_max=512)
    packet = Packet(0, 1, bytes(3 * LIMIT))
    packet.count = 1
    probe.layer.down([packet])
    assert [piece.count for piece in probe.bottom.sent] == [0, 0, 1]


def test_unfinished_packets_are_held_but_for_the_oldest_of_each() -> None:
    """All of the oldest was sent if there is a later one: whoever waits for room does not wait for itself."""
    layer = Fragment()
    probe = Probe(layer)
    pieces = []
    for number in (1, 2, 3):
        piece = Packet(1, 1, bytes(100 * number))
        piece.seq, piece.frag = number, (0, 3)
        pieces.append(piece)
    assert probe.feed(*pieces) == [] and layer.held == probe.stack.held == 200 + 300
    another = Packet(1, 1, bytes(50))
    another.seq, another.frag = 3, (2, 3)
    assert probe.feed(another) == [] and layer.held == 200 + 300 + 50
    assert list(layer.awaited()) == [1]
    assert (layer.seen(1), layer.seen(2)) == (3, 0), "the newest of which anything has come"
    layer.bereft(1)
    assert layer.held == 0 and list(layer.awaited()) == []
