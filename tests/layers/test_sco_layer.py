"""The layer: what it says on the wire, and what it does with packets that cannot be right."""

from random import Random

import pytest

from inga.layers.sco.layer import NOTE_BYTES, Sco
from inga.layers.sco.ordering import LSN_WINDOW
from inga.model.delivery import Batch
from inga.model.errors import UsageError
from inga.model.packet import DATA, Packet
from inga.model.stamp import Stamp
from inga.model.view import View
from inga.recipes import Options, find
from inga.session.pressure import WARN_AFTER
from inga.sim.board import replay
from inga.stack.stack import Stack, joined
from inga.wire import bundle
from inga.wire.packet import encode, group_id
from inga.wire.selective import pack

from ..stack.harness import Probe

VIEW = View.of("alice", "bob", "cathy")
GROUP = group_id("")


def member(me: int, **protocol: object) -> Stack:
    options = Options(protocol=dict(protocol), deliver="causal")
    return Stack(find("sco").build(options), me, VIEW, rng=Random(0))


def machine(stack: Stack) -> "object":
    layer = stack.layer("sco")
    assert isinstance(layer, Sco)
    return layer.machine


def copies(stack: Stack) -> list[tuple[int | None, bytes]]:
    return [(to, joined(data)) for to, data in stack.ready().send]


def test_a_copy_carries_what_changed_on_its_link() -> None:
    alice, bob = member(0), member(1)
    alice.send(b"one", 0b110, now=1.0)
    first = copies(alice)
    assert [to for to, _ in first] == [1, 2]
    bob.receive([(data, None) for to, data in first if to == 1], now=1.0)
    bob.send(b"two", 0b101, now=1.0)
    bob.flush()
    bob.send(b"three", 0b001, now=1.0)
    bob.flush()
    layer = bob.layer("sco")
    assert isinstance(layer, Sco)
    outstanding = layer.machine._outstanding[0]
    assert [copy.delta for copy in outstanding] == [((0, 1),), ()], "the second says nothing new"
    assert [copy.ack for copy in outstanding] == [((0, 2),), ()]


@pytest.mark.parametrize("large", [0b010, 0b100])
def test_shares_of_a_packet_are_charged_as_the_largest_of_them(large: int) -> None:
    """The window bounds what is under way to any one destination."""
    alice = member(0)
    for dst in (0b010, 0b100):
        alice.send(b"x" * (5000 if dst == large else 5), dst, now=1.0)
    alice.flush()
    layer = alice.layer("sco")
    assert isinstance(layer, Sco)
    (own,) = layer.machine.unreleased.values()
    assert own.size > 5000


def packet(**fields: object) -> bytes:
    made = Packet(1, 1, bundle.join([b"x"]), 0b001)
    made.seq, made.lsn, made.stamp, made.ext = 1, 1, Stamp((), 0), pack(5, 1, ())
    for name, value in fields.items():
        setattr(made, name, value)
    return joined(encode(made, GROUP))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stamp": None}, "malformed"),
        ({"lsn": 0}, "malformed"),
        ({"ext": None}, "truncated"),
        ({"ext": b"\x05"}, "truncated"),
        ({"lsn": 9000}, "lsn"),
        ({"ext": pack(5, 1, ((0, 7),))}, "forged"),  # more of us than we have sent
        ({"stamp": Stamp(((0, 3),), 0)}, "forged"),  # caused by what we never said
    ],
)
def test_packets_that_cannot_be_right(fields: dict[str, object], reason: str) -> None:
    alice = member(0)
    alice.receive([(packet(**fields), None)], now=1.0)
    assert alice.rejected == {reason: 1}
    assert not alice.ready().deliver
    alice.receive([(packet(), None)], now=1.0)
    assert [bytes(p) for batch in alice.ready().deliver for p in batch.payloads] == [b"x"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "fields",
    [
        {"ext": b"\xff"},
        {"ext": pack(5, 1, ()), "seq": 1, "lsn": 9000},
        {"ext": pack(5, 1, ((0, 9),)), "seq": 1, "lsn": 1},
        {"ext": pack(5, 1, ()), "lsn": 1},
        {"ext": pack(5, 1, ((0, 9),)), "runs": ((1, 1 << 40),)},
    ],
)
def test_control_that_cannot_be_right(fields: dict[str, object]) -> None:
    alice = member(0)
    made = Packet(1, 1, kind=Sco.id)
    for name, value in fields.items():
        setattr(made, name, value)
    alice.receive([(joined(encode(made, GROUP)), None)], now=1.0)
    assert sum(alice.rejected.values()) == 1


def test_a_word_tells_that_its_sender_is_here_unless_it_is_forged() -> None:
    alice = member(0)
    for src, acks in ((1, ()), (2, ((0, 9),))):
        word = Packet(src, 1, kind=Sco.id)
        word.seq, word.lsn, word.ext = 1, 1, pack(5, 1, acks)
        alice.receive([(joined(encode(word, GROUP)), None)], now=1.0)
    assert alice.met == {1}


def test_a_datagram_for_others_is_dropped_unread() -> None:
    alice = member(0)
    alice.receive([(packet(dst=None, lsn=0, ext=pack(5, 1, (), ((2, 1),))), None)], now=1.0)
    alice.receive([(packet(dst=0b101, lsn=0, ext=pack(5, 1, (), ((2, 1),))), None)], now=1.0)
    alice.receive([(packet(dst=0b100), None)], now=1.0)
    assert not alice.rejected
    assert not alice.ready().deliver


def test_garbage_of_our_kind_never_raises() -> None:
    rng = Random(1)
    alice = member(0)
    good = packet(ext=pack(5, 1, ((1, 2),)), runs=((1, 3),))
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(3, len(data))] = rng.randrange(256)
        alice.receive([(bytes(data), None)], now=1.0)
        alice.tick(1.0)
    assert alice.rejected


def test_what_is_never_repaired_ends_the_group() -> None:
    alice = member(0, patience=2.0)
    alice.receive([(packet(seq=2, lsn=2), None)], now=1.0)
    now, error = 1.0, None
    while error is None and now < 60.0:
        now = max(now + 0.01, alice.ready().wake or now)
        alice.tick(now)
        error = alice.ready().error
    assert str(error) == "bob did not repair what was lost within 2 s"


def test_a_person_is_told_who_holds_us_up() -> None:
    alice = member(0, window=1)
    notices: list[str] = []
    now = 0.0
    for number in range(2):
        if alice.writable:
            alice.send(b"%d" % number, 0b010, now=now)
            alice.flush()
    while now < 2 * WARN_AFTER:
        now = max(now + 0.01, alice.ready().wake or now)
        alice.tick(now)
        notices += alice.ready().notices
    assert notices == ["sending has waited 5 s for bob"]


def test_only_what_has_not_come_is_sent_again() -> None:
    """Any message says what has come of the link in the other direction, accepted or not."""
    alice = member(0, resend_after=1.0)
    for text in (b"one", b"two"):
        alice.send(text, 0b010, now=1.0)
        alice.flush()
    copies(alice)
    alice.receive([(packet(ext=pack(5, 2, ())), None)], now=1.0)
    alice.tick(2.0)
    again = [data for _, data in copies(alice) if b"one" in data or b"two" in data]
    assert len(again) == 1 and b"two" in again[0]


def test_a_delivery_knows_its_past() -> None:
    alice = member(0)
    for number in (1, 2):
        alice.receive([(packet(seq=number, lsn=number), None)], now=1.0)
    past = [batch.packet.deps for batch in alice.ready().deliver if isinstance(batch, Batch)]
    assert past == [(0, 0, 0), (0, 1, 0)]


@pytest.mark.parametrize(("me", "answers"), [(0, []), (2, [1])])
def test_one_destination_answers_a_partial_bundle_at_once(me: int, answers: list[int]) -> None:
    """The next after its sender: that one has somebody to wait for, and more would be of no use."""
    stack = member(me)
    partial = packet(dst=0b101, lsn=0, ext=pack(5, 1, (), ((me, 1),)), partial=True)
    stack.receive([(partial, None)], now=1.0)
    assert [to for to, _ in copies(stack)] == answers


@pytest.mark.parametrize("name", ["window", "quota", "multicast_from"])
def test_no_more_is_under_way_than_a_link_can_number(name: str) -> None:
    member(0, **{name: LSN_WINDOW // 2})
    with pytest.raises(UsageError, match=name):
        member(0, **{name: LSN_WINDOW // 2 + 1})


# What must not keep the next bundle waiting


def sent_to(stack: Stack) -> list[int | None]:
    return [to for to, _ in copies(stack)]


def test_a_message_to_oneself_alone_lets_the_next_one_go() -> None:
    alice = member(0)
    alice.send(b"to me", 0b001, now=1.0)
    assert sent_to(alice) == []
    alice.send(b"to bob", 0b010, now=1.0)
    assert sent_to(alice) == [1]


def test_one_who_leaves_with_the_last_bundle_unheard_lets_the_next_one_go() -> None:
    alice = member(0)
    alice.send(b"to bob", 0b010, now=1.0)
    assert sent_to(alice) == [1]
    alice.send(b"to bob, too", 0b010, now=1.0)
    assert sent_to(alice) == [1]
    alice.send(b"to cathy", 0b100, now=1.0)
    assert sent_to(alice) == [], "in company, once bob has the first"
    alice.gone(1)
    assert [to for to, data in copies(alice) if data[3] == DATA] == [2]


# Where a member is


def heard_by_all(alice: Stack, others: list[Stack]) -> None:
    """What alice says goes to everybody, as it does by multicast to those of whom nobody knows where they are."""
    said = [data for _, data in copies(alice)]
    for other in others:
        other.receive([(data, "alice's") for data in said], now=2.0)


def taken(stack: Stack) -> list[bytes]:
    return [
        bytes(data) for batch in stack.ready().deliver if isinstance(batch, Batch) for data in batch.payloads
    ]


def test_a_copy_that_reaches_everybody_is_read_by_the_one_it_is_for() -> None:
    """Copies of one message have another number on each link, and these links are not in step."""
    alice, bob, cathy = (member(me) for me in range(3))
    for text, dst in ((b"bob", 0b010), (b"both", 0b110), (b"cathy", 0b100)):
        alice.send(text, dst, now=1.0)
        alice.flush()
        heard_by_all(alice, [bob, cathy])
    for other, wanted in ((bob, [b"bob", b"both"]), (cathy, [b"both", b"cathy"])):
        assert not other.rejected and not other.counts["nack"]
        assert taken(other) == wanted


def test_whether_more_is_to_come_is_asked_at_once_where_nothing_is_lost() -> None:
    """Only alice knows that what she said to bob is not for cathy."""
    assert replay("A!1:B 1>B B!2:C 2>C", "sco").taken == [[], [1], [2]]


# What the stack is told


def test_only_what_is_new_says_where_a_member_is() -> None:
    alice = member(0)
    alice.receive([(packet(lsn=9000), "anywhere")], now=1.0)
    assert alice.met == set()
    alice.receive([(packet(), "home")], now=1.0)
    alice.receive([(packet(), "elsewhere")], now=1.0)
    assert alice.met == {1} and alice.addresses == {1: "home"}


def test_what_is_held_is_counted_until_it_is_delivered() -> None:
    alice = member(0)
    alice.receive([(packet(seq=2, lsn=2), None)], now=1.0)
    assert alice.held and alice.chain.awaited() == {1}
    alice.receive([(packet(), None)], now=1.0)
    assert not alice.held and alice.chain.awaited() == set()


def test_what_is_said_to_be_released_is_the_number_of_the_newest() -> None:
    """Whatever follows it here, and nobody has released, is dropped when its sender is gone."""
    alice, bob = member(0), member(1)
    for text in (b"one", b"two"):
        alice.send(text, now=0.0)
        heard_by_all(alice, [bob])
    order = bob.layer("sco")
    assert isinstance(order, Sco)
    assert [order.released(source) for source in (0, 2)] == [2, 0]


def test_a_window_stays_full_where_no_view_follows() -> None:
    """One leaves, the group goes on as it is, and nobody hurries."""
    alice = Probe(Sco(window=1))
    for text in (b"one", b"two", b"three"):
        alice.top.send([text], 0b110)
    sent = {packet.body for packet in alice.bottom.sent}
    alice.stack.gone(2)
    assert sent == {packet.body for packet in alice.bottom.sent} == {b"one"}
    assert not alice.stack.writable


def test_a_change_that_begins_again_is_agreed_on_again() -> None:
    """All conform to the death of dave. Then bob and cathy die, and what she said follows something of his that nobody has: we have
    reached the end before all conform once more, or nobody would ever say to what."""
    bob, cathy, dave = 1, 2, 3
    options = Options(deliver="causal")
    alice = Stack(find("sco").build(options), 0, View.of("alice", "bob", "cathy", "dave"), rng=Random(0))
    order = alice.layer("sco")
    assert isinstance(order, Sco)
    noted = ((0, ((bob, 1),)),)
    follows = packet(src=cathy, stamp=Stamp(((bob, 1),), 0), ext=pack(5, 1, (), noted=noted))
    alice.receive([(follows, None)], now=1.0)
    assert not alice.rejected and order.holds()

    def die(*members: int) -> None:
        for member in members:
            alice.gone(member, failed=True)
        for member in sorted(alice.left):
            order.bereft(member)

    die(dave)
    order.conform([0, 0, 0, 0])
    sent = [0, 0, 1, 0]
    assert not order.has(sent), "bob may still say it"
    die(bob, cathy)
    assert order.has(sent) and order.holds()
    order.conform([0, 0, 0, 0])
    assert order.has(sent) and not order.holds()


@pytest.mark.parametrize(
    ("members", "said", "notes"),
    [(100, 256, 1472 // 8 // NOTE_BYTES), (3, 256, 6), (100, 5, 5)],
    ids=["an eighth of a datagram", "one for each pair", "as chosen"],
)
def test_notes_have_room_for_so_many(members: int, said: int, notes: int) -> None:
    layers = find("sco").build(Options(protocol={"noted_max": said}))
    stack = Stack(layers, 0, View.of(*map(str, range(members))), rng=Random(0), datagram_max=1472)
    order = stack.layer("sco")
    assert isinstance(order, Sco)
    assert order.machine.settings.noted_max == notes
    assert order.overhead(members) == notes * NOTE_BYTES
