"""When a bundle closes, what shares it, and what waits for company."""

from random import Random

import pytest

from inga.layers.bundle import MESSAGE_BYTES_MAX, MESSAGES_MAX, Bundle
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options
from inga.stack.stack import Stack
from inga.wire import bundle as wire

from ..stack.harness import NAMES, Bottom, Net, Probe


class Loose:
    """A bundle layer on the ground, whose numbers and acknowledgements the test makes up."""

    def __init__(self, *, members: int = 3, datagram_max: int = 60 * 1024, **options: bool) -> None:
        self.bundle, self.bottom = Bundle(**options), Bottom()
        view = View.of(*[*NAMES, *map(str, range(members))][:members])
        self.stack = Stack([self.bundle, self.bottom], 0, view, rng=Random(0), datagram_max=datagram_max)

    def send(self, *messages: bytes, to: int | None = None) -> None:
        self.stack.send_many(list(messages), to, now=0.0)

    @property
    def left(self) -> list[list[bytes]]:
        """The messages of each bundle that has left."""
        return [[bytes(m) for m in wire.split(packet.body)] for packet in self.bottom.sent]

    def number(self) -> None:
        """As `reliable` would."""
        for lsn, packet in enumerate(self.bottom.sent, 1):
            packet.lsn = lsn


def test_sends_of_one_turn_share_a_packet() -> None:
    loose = Loose()
    loose.send(b"one")
    loose.send(b"two", b"three")
    assert loose.left == []
    loose.stack.ready()
    assert loose.left == [[b"one", b"two", b"three"]]
    assert loose.bottom.sent[0].count == 3
    assert loose.bottom.sent[0].dst is None


def test_messages_of_one_bundle_share_a_receipt() -> None:
    loose = Loose()
    first = loose.stack.send(b"one", now=0.0)
    assert loose.stack.send(b"two", now=0.0) is first
    assert loose.stack.send(b"to bob", 0b010, now=0.0) is not first
    loose.stack.ready()
    assert loose.bottom.sent[0].receipt is first


def test_another_destination_closes_the_bundle() -> None:
    loose = Loose(gather=False)
    loose.send(b"to all")
    loose.send(b"to bob", to=0b010)
    loose.send(b"to bob too", to=0b010)
    loose.send(b"to cathy", to=0b100)
    loose.send(b"to all again")
    loose.stack.ready()
    assert loose.left == [[b"to all"], [b"to bob", b"to bob too"], [b"to cathy"], [b"to all again"]]
    assert [packet.dst for packet in loose.bottom.sent] == [None, 0b010, 0b100, None]


def shared(packet: Packet) -> dict[int, list[bytes]]:
    """What each destination gets of a packet in shares."""
    assert packet.shares is not None
    return {member: wire.split(share.body) for member, share in packet.shares.items()}  # type: ignore[misc]


def test_one_bundle_holds_messages_for_several_sets() -> None:
    loose = Loose(mixes=True)
    loose.send(b"to all")
    loose.send(b"to bob", to=0b010)
    loose.send(b"to cathy", b"to cathy too", to=0b100)
    loose.send(b"to bob and me", to=0b011)
    assert loose.left == []
    loose.stack.ready()
    (packet,) = loose.bottom.sent
    assert packet.dst == 0b111 and packet.count == 5 and loose.left[0][1:3] == [b"to bob", b"to cathy"]
    assert shared(packet) == {
        0: [b"to bob and me"],
        1: [b"to all", b"to bob", b"to bob and me"],
        2: [b"to all", b"to cathy", b"to cathy too"],
    }
    assert loose.bundle.tally()[:2] == ([2, 3, 3], 1)


def test_messages_for_one_set_are_no_shares() -> None:
    loose = Loose(mixes=True, gather=False)
    loose.send(b"to bob", to=0b010)
    loose.send(b"to bob too", to=0b010)
    loose.stack.ready()
    loose.send(b"to all")
    loose.stack.ready()
    assert [packet.shares for packet in loose.bottom.sent] == [None, None]
    assert [packet.dst for packet in loose.bottom.sent] == [0b010, None]


def test_a_large_message_is_in_no_shares() -> None:
    loose = Loose(mixes=True, datagram_max=512)
    for to in (0b010, 0b100):
        loose.send(b"small", to=to)
        loose.send(b"x" * 1000, to=to)
        loose.send(b"small", to=to)
    loose.stack.flush()
    found = [(packet.dst, len(packet.body), packet.shares is None) for packet in loose.bottom.sent]
    assert [each for each in found if each[1] > 500] == [(0b010, 1001, True), (0b100, 1001, True)]
    assert shared(loose.bottom.sent[2]) == {1: [b"small"], 2: [b"small"]}


@pytest.mark.parametrize("members", [3, 40])
def test_shares_and_what_they_say_fit_a_datagram(members: int) -> None:
    rng = Random(members)
    loose = Loose(mixes=True, members=members, datagram_max=2048)
    for number in range(500):
        loose.send(b"%d" % number, to=rng.randrange(1, 1 << members))
    loose.stack.flush()
    room = loose.stack.wire.body_max
    for packet in loose.bottom.sent:
        assert packet.shares is not None and packet.shares
        assert max(len(share.body) + len(share.places) for share in packet.shares.values()) <= room
    assert 1 < len(loose.bottom.sent) < 200


@pytest.mark.parametrize("count", [2, 100, MESSAGES_MAX + 1])
def test_many_messages_for_others_after_a_nearly_full_bundle_still_fit(count: int) -> None:
    """The room that is left is less than another set of destinations takes."""
    for spare in range(16):
        loose = Loose(mixes=True, members=40, datagram_max=2048)
        bundle = loose.bundle
        loose.send(b"x" * (bundle._size_max - bundle._each - spare), to=0b010)
        loose.send(*[b"y" * 100] * count, to=0b100)
        loose.stack.flush()
        sent = loose.bottom.sent
        assert sum(packet.count for packet in sent) == count + 1
        assert max(len(packet.body) for packet in sent) <= loose.stack.wire.body_max


@pytest.mark.parametrize("mixes", [False, True])
def test_many_messages_of_one_call_after_one_larger_than_a_datagram_leave_it_alone(mixes: bool) -> None:
    loose = Loose(mixes=mixes, datagram_max=512)
    loose.send(b"x" * 5000)
    loose.send(*[b"y"] * (2 * MESSAGES_MAX))
    loose.stack.flush()
    assert loose.left[0] == [b"x" * 5000]
    assert max(map(len, loose.left)) <= MESSAGES_MAX
    assert max(len(packet.body) for packet in loose.bottom.sent[1:]) <= loose.stack.wire.body_max
    assert sum(packet.count for packet in loose.bottom.sent) == 2 * MESSAGES_MAX + 1


def test_destinations_are_remembered_no_longer_than_a_bundle_is_open() -> None:
    """In a large group there are very many sets."""
    for mixes in (False, True):
        loose = Loose(mixes=mixes, members=12)
        for number in range(600):
            loose.send(b"x", to=1 + number)
        loose.stack.flush()
        assert not loose.bundle._sets


def test_a_bundle_has_a_largest_number_of_sets() -> None:
    loose = Loose(mixes=True, members=12)
    for number in range(600):
        loose.send(b"x", to=1 + number)
    loose.stack.flush()
    assert [packet.count for packet in loose.bottom.sent] == [256, 256, 88]
    assert [packet.partial for packet in loose.bottom.sent] == [False, False, True]


def test_a_full_bundle_leaves_at_once() -> None:
    loose = Loose(datagram_max=512)
    for number in range(100):
        loose.send(b"message %03d" % number)
    full = loose.left
    assert len(full) == 3
    assert all(not packet.partial for packet in loose.bottom.sent), "nobody waits for a full one"
    loose.stack.ready()
    assert [m for bundle in loose.left for m in bundle] == [b"message %03d" % n for n in range(100)]


@pytest.mark.parametrize(
    "sizes", [(1, 2), (3, 3), (0, 5), (1, 1, 2), (100, 7), (50, 50, 50, 51), (70, 69), (90, 52)]
)
def test_a_bundle_of_several_always_fits_a_datagram(sizes: tuple[int, ...]) -> None:
    """At the limit, byte by byte: no bundle of several needs to be cut."""
    for datagram_max in range(256, 256 + 2 * sum(sizes) + 40):
        loose = Loose(datagram_max=datagram_max, gather=False)
        for _ in range(60):
            for size in sizes:
                loose.send(b"x" * size)
        loose.stack.ready()
        assert max(len(packet.body) for packet in loose.bottom.sent) <= loose.stack.wire.body_max
        assert sum(packet.count for packet in loose.bottom.sent) == 60 * len(sizes)


def test_messages_of_one_call_may_differ_in_size() -> None:
    loose = Loose(datagram_max=512)
    texts = [b"x" * size for size in (3, 300, 200, 5, 301)]
    loose.stack.send_many(texts, now=0.0)
    loose.stack.ready()
    assert [text for bundle in loose.left for text in bundle] == texts
    assert all(len(packet.body) <= 512 for packet in loose.bottom.sent)
    with pytest.raises(UsageError, match="at most"):
        loose.stack.send_many([b"", bytes(MESSAGE_BYTES_MAX + 1)], now=0.0)


def test_a_message_larger_than_a_datagram_goes_alone() -> None:
    loose = Loose(datagram_max=512)
    loose.send(b"small")
    loose.send(b"x" * 5000)
    loose.send(b"small too")
    loose.stack.ready()
    assert list(map(len, loose.left)) == [1, 1, 1]


def test_a_bundle_has_a_largest_number_of_messages() -> None:
    loose = Loose()
    loose.send(*[b""] * (MESSAGES_MAX + 1))
    loose.stack.ready()
    assert [packet.count for packet in loose.bottom.sent] == [MESSAGES_MAX, 1]


def test_one_by_one_messages_fill_a_bundle_up_to_the_same_number() -> None:
    loose = Loose()
    for _ in range(MESSAGES_MAX + 1):
        loose.stack.send(b"", now=0.0)
    loose.stack.ready()
    assert [packet.count for packet in loose.bottom.sent] == [MESSAGES_MAX, 1]


def test_a_message_can_be_too_large() -> None:
    loose = Loose()
    with pytest.raises(UsageError, match="at most"):
        loose.stack.send(bytes(MESSAGE_BYTES_MAX + 1), now=0.0)
    loose.stack.ready()
    assert loose.left == []


def test_a_take_closes_the_bundle() -> None:
    """The next send has another past."""
    loose = Loose()
    loose.send(b"before")
    loose.stack.taken([Packet(1, 1)], now=0.0)
    loose.send(b"after")
    assert loose.left == [[b"before"]]


def test_a_coarse_bundle_outlives_a_take() -> None:
    loose = Loose(coarse=True)
    loose.send(b"before")
    loose.stack.taken([Packet(1, 1)], now=0.0)
    loose.send(b"after")
    loose.stack.ready()
    assert loose.left == [[b"before", b"after"]]


# Company


def test_a_third_partial_bundle_waits_for_the_acknowledgement_of_the_first() -> None:
    loose = Loose()
    for text in (b"one", b"two", b"three", b"four"):
        loose.send(text)
        loose.stack.ready()
    assert loose.left == [[b"one"], [b"two"]]
    assert all(packet.partial for packet in loose.bottom.sent), "they ask for an acknowledgement"
    loose.number()
    loose.stack.ready()
    assert loose.left == [[b"one"], [b"two"]], "numbered is not acknowledged"
    loose.stack.chain.acknowledged(1)
    assert loose.left == [[b"one"], [b"two"], [b"three", b"four"]]
    loose.number()
    loose.send(b"five")
    loose.stack.ready()
    assert len(loose.left) == 3, "again two are under way"
    loose.stack.chain.acknowledged(3)
    loose.send(b"six")
    loose.stack.ready()
    assert loose.left[3:] == [[b"five"], [b"six"]]


def test_a_bundle_that_nothing_waits_for_is_not_kept() -> None:
    loose = Loose()
    for text in (b"one", b"two"):
        loose.send(text)
        loose.stack.ready()
    loose.number()
    assert loose.bundle._earlier is loose.bottom.sent[0]
    loose.stack.chain.acknowledged(1)
    assert loose.bundle._earlier is None


def test_without_gathering_every_turn_makes_a_packet() -> None:
    loose = Loose(gather=False)
    for text in (b"one", b"two"):
        loose.send(text)
        loose.stack.ready()
    assert loose.left == [[b"one"], [b"two"]]
    assert not any(packet.partial for packet in loose.bottom.sent)


def test_full_bundles_wait_for_nobody() -> None:
    loose = Loose(datagram_max=512)
    loose.send(b"one")
    loose.stack.ready()
    for _ in range(20):
        loose.send(b"x" * 100)
    assert len(loose.left) > 3


def test_in_a_group_the_rule_costs_one_round_trip() -> None:
    net = Net(2)
    net.send(0, b"one")
    net.send(0, b"two")
    net.send(0, b"three")
    net.send(0, b"four")
    assert len(net.to(1)) == 2
    net.settle()
    assert net.texts(1) == ["one", "two", "three", "four"]
    assert [len(batch) for batch in net.batches[1]] == [1, 1, 2]
    assert net.now == 0.0


def test_a_turn_is_not_over_because_one_more_has_what_another_has() -> None:
    net = Net(3)
    net.send(0, b"zero")
    net.send(0, b"one")
    net.arrive(*net.to(1), *net.to(2))
    net.arrive(*net.to(0))
    net.wait(0.004)
    assert net.log[-1].source == 1, "the other one waits for company"
    net.now = 0.005
    net.tick(2)
    (report,) = net.to(0)
    alice = net.stacks[0]
    alice.send(b"two", now=net.now)
    alice.receive([(report.data, None)], now=net.now)
    alice.send(b"three", now=net.now)
    net.turn(0)
    net.settle()
    assert [len(batch) for batch in net.batches[1]] == [1, 1, 2]


@pytest.mark.parametrize("size", [100, 5_000, 200_000])
def test_what_follows_a_cut_message_is_not_forgotten(size: int) -> None:
    """A packet in pieces has no number of its own that could be acknowledged."""
    net = Net(2, datagram_max=1472)
    net.send(0, b"x" * size)
    net.send(0, b"small")
    net.quiet()
    assert net.texts(1) == ["x" * size, "small"]


def test_alone_in_a_group_nothing_waits_for_others() -> None:
    net = Net(1, options=Options(echo=True), takes=False)
    receipts = [net.send(0, text) for text in (b"one", b"two", b"three")]
    net.quiet()
    assert net.texts(0) == ["one", "two", "three"]
    assert all(receipt.has("confirmed") for receipt in receipts)


def test_when_all_others_have_left_nothing_waits_for_them() -> None:
    net = Net(2, options=Options(echo=True), takes=False)
    net.send(0, b"one")
    net.send(0, b"two")
    receipt = net.send(0, b"three")
    assert net.texts(0) == ["one", "two"]
    net.stacks[0].gone(1)
    net.turn(0)
    assert net.texts(0) == ["one", "two", "three"]
    assert receipt.has("confirmed")


# Receiving


def test_a_body_that_is_no_bundle_is_counted() -> None:
    loose = Loose()
    for body in (b"", b"\x09", b"\x01\0\0\0\x02abc"):
        loose.bundle.up([Packet(1, 1, body)])
    assert loose.stack.rejected == {"malformed": 3}
    assert loose.stack.ready().deliver == []


@pytest.mark.parametrize(("count", "rejected"), [(1, 1), (2, 0), (3, 1)])
def test_a_bundle_has_as_many_messages_as_its_header_says(count: int, rejected: int) -> None:
    loose = Loose()
    packet = Packet(1, 1, wire.join([b"one", b"two"]))
    packet.count = count
    loose.bundle.up([packet])
    assert loose.stack.rejected.get("malformed", 0) == rejected
    assert len(loose.stack.ready().deliver) == 1 - rejected


def test_a_broken_body_does_not_hurt_its_neighbours() -> None:
    loose = Loose()
    loose.bundle.up([Packet(1, 1, b"\0good"), Packet(1, 1, b"bad"), Packet(2, 1, b"\0good too")])
    batches = loose.stack.ready().deliver
    assert [(batch.sender, batch.payloads) for batch in batches] == [
        ("bob", [b"good"]),
        ("cathy", [b"good too"]),
    ]
    assert loose.stack.queued == len(b"\0good") + len(b"\0good too")
    loose.stack.taken([batch.packet for batch in batches], now=0.0)
    assert loose.stack.queued == 0


def test_what_comes_up_later_is_taken_apart_at_once() -> None:
    """A borrowed body is copied message by message, and no second time when it comes up."""
    probe = Probe(Bundle(gather=False), me=1)
    buffer = bytearray(wire.join([b"one", b"two"]))
    packet = Packet(0, 1, memoryview(buffer))
    packet.count = 2
    probe.stack.store(packet)
    buffer[:] = bytes(len(buffer))  # the reader's buffer is used again
    assert packet.payloads == [b"one", b"two"] and packet.size == len(buffer)
    (up,) = probe.feed(packet)
    assert up.payloads == [b"one", b"two"]


def test_pieces_and_nonsense_are_only_copied() -> None:
    probe = Probe(Bundle(gather=False), me=1)
    piece, nonsense = (
        Packet(0, 1, memoryview(bytearray(b"part"))),
        Packet(0, 1, memoryview(bytearray(b"\xff!"))),
    )
    piece.frag = (0, 2)
    for packet in (piece, nonsense):
        probe.stack.store(packet)
    assert (piece.body, nonsense.body) == (b"part", b"\xff!")
    assert probe.feed(nonsense) == [] and probe.stack.rejected["malformed"] == 1
