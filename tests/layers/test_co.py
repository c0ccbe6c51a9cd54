"""CO in a stack: levels, bundles and pieces, flow, repair, leaving, and datagrams that cannot be right."""

import pickle
from random import Random
from typing import Any

import pytest

from inga.layers.co.layer import Co
from inga.layers.co.machine import FULL_EVERY, CoMachine
from inga.layers.co.parts import AHEAD_MAX
from inga.model.errors import Gap, UsageError
from inga.model.packet import DATA, Packet
from inga.recipes import Options, find
from inga.session.pressure import WARN_AFTER
from inga.stack.stack import joined
from inga.trace.memory import MemoryTrace
from inga.wire.co import CoExtension, pack, unpack
from inga.wire.packet import encode

from ..stack.harness import Net

CO = Co.id


def group(members: int = 3, *, deliver: str | None = None, takes: bool = True, **more: Any) -> Net:
    options = Options(
        deliver=deliver,
        echo=more.pop("echo", None),
        greet=more.pop("greet", False),
        queue_max=more.pop("queue_max", 16 << 20),
        protocol={key: more.pop(key) for key in list(more) if key in TUNABLE},
    )
    return Net(members, "co", options=options, takes=takes, **more)


TUNABLE = "window capacity units confirm_every confirm_delay nack_delay patience".split()


def co(net: Net, member: int) -> CoMachine:
    layer = net.stacks[member].layer("co")
    assert isinstance(layer, Co)
    return layer.machine


def data(net: Net) -> list[Packet]:
    return net.packets(flight for flight in net.log if flight.kind == DATA)


# The recipe


def test_order_repair_and_flow_are_one_layer() -> None:
    names = [layer.name for layer in find("co").build(Options())]
    assert names == ["bundle", "fragment", "co", "session", "shape"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"window": 0}, "window is a whole number from 1 to 4096, not 0"),
        ({"window": 2.5}, "window is a whole number"),
        ({"window": True}, "window is a whole number"),
        ({"units": 0}, "units is a whole number"),
        ({"capacity": 0}, "capacity is a whole number"),
        ({"confirm_every": "often"}, "confirm_every is a whole number from 0 to 4096, not 'often'"),
        ({"self_knowledge": "printed"}, "no option 'self_knowledge'; there are window"),
        ({"machine": None}, "no option 'machine'"),
        ({"poll": 0}, "poll is a number of seconds above 0, not 0"),
        ({"nack_delay": -1}, "nack_delay is a number of seconds"),
        ({"deliver": "causal"}, "no option 'deliver'"),
        ({"velocity": 1}, "no option 'velocity'; there are window, capacity"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        find("co").build(Options(protocol=options))


def test_a_capacity_of_less_than_a_message_each_is_refused() -> None:
    with pytest.raises(UsageError, match="capacity is at least 3, a message of each member, not 2"):
        group(3, capacity=2)
    with pytest.raises(UsageError, match="capacity is at least 6, a message of each member, not 5"):
        group(3, capacity=5, units=2)
    net = group(3, capacity=6, units=2)
    for member in range(3):
        net.send(member, b"x")
    net.quiet()
    assert [len(net.texts(member)) for member in range(3)] == [2, 2, 2]


# Levels


@pytest.mark.parametrize("level", ["causal", "confirmed", "acknowledged"])
def test_deliveries_wait_for_their_level(level: str) -> None:
    net = group(deliver=level)
    net.send(0, b"hello")
    got = {}
    net.settle()  # data only: time stands still, so nobody confirms
    got["on arrival"] = [len(net.texts(m)) for m in range(3)]
    net.wait(0.006)  # one round of confirmations
    got["confirmed"] = [len(net.texts(m)) for m in range(3)]
    net.quiet()
    got["acknowledged"] = [len(net.texts(m)) for m in range(3)]
    everywhere, nowhere = [0, 1, 1], [0, 0, 0]
    reached = ["causal", "confirmed", "acknowledged"].index(level)
    assert got["on arrival"] == (everywhere if reached == 0 else nowhere)
    assert got["confirmed"] == (everywhere if reached <= 1 else nowhere)
    assert got["acknowledged"] == everywhere


def test_a_receipt_reaches_one_level_after_the_other() -> None:
    net = group()
    receipt = net.send(0, b"hello")
    levels = ("causal", "confirmed", "acknowledged")
    assert [receipt.has(level) for level in levels] == [True, False, False]
    net.settle()
    net.wait(0.006)
    assert [receipt.has(level) for level in levels] == [True, True, False]
    net.quiet()
    assert [receipt.has(level) for level in levels] == [True, True, True]
    assert net.stacks[0].chain.levels == levels


def test_an_echo_comes_at_the_level_too() -> None:
    net = group(deliver="acknowledged", echo=True)
    net.send(0, b"hello")
    assert net.texts(0) == []
    net.quiet()
    assert [net.texts(m) for m in range(3)] == [["hello"]] * 3


def test_a_subset_gets_the_body_and_all_get_the_number() -> None:
    net = group(4)
    net.send(0, b"for two", to=0b0110)
    net.send(0, b"for me and three", to=0b1001)
    net.quiet()
    assert [net.texts(m) for m in range(4)] == [
        ["for me and three"],
        ["for two"],
        ["for two"],
        ["for me and three"],
    ]
    assert [co(net, m).expected[0] for m in range(4)] == [3] * 4


def test_a_group_of_one() -> None:
    net = group(1, echo=True)
    receipt = net.send(0, b"alone")
    assert receipt.has("acknowledged")
    assert net.texts(0) == ["alone"]
    net.quiet()
    assert net.log == []


def test_what_was_accepted_is_a_cause_whether_or_not_it_was_taken() -> None:
    net = group(takes=False, deliver="causal")
    net.send(0, b"question")
    net.settle()
    net.send(1, b"unrelated, as far as its author knows")
    net.settle()
    assert [batch.deps for batch in net.batches[2]] == [(0, 0, 0), (1, 0, 0)]


# Bundles and pieces


def test_a_closed_window_makes_bundles() -> None:
    net = group(window=1)
    net.send(0, b"1")
    for text in (b"2", b"3", b"4"):
        net.send(0, text)  # each in a turn of its own
    assert len([packet for packet in data(net) if packet.src == 0]) == 2  # copies for two others
    net.quiet()
    assert net.texts(1) == ["1", "2", "3", "4"]
    assert [len(batch) for batch in net.batches[1]] == [1, 3]


def test_a_full_bundle_closes_the_door_until_the_window_opens() -> None:
    net = group(window=1, datagram_max=512)
    stack = net.stacks[0]
    sent = 0
    while stack.writable and sent < 1000:
        net.send(0, bytes(100))
        sent += 1
    assert 1 < sent < 20
    net.quiet()
    assert stack.writable and len(net.texts(1)) == sent


def test_pieces_are_messages_of_the_protocol() -> None:
    rows: list[Any] = []
    traces = [MemoryTrace(me, 2, rows=rows) for me in range(2)]
    net = group(2, datagram_max=512, traces=traces, deliver="confirmed")
    large = bytes(range(256)) * 5
    net.send(0, b"before")
    net.send(0, large)
    net.send(0, b"after")
    net.quiet()
    assert [bytes(p) for b in net.batches[1] for p in b.payloads] == [b"before", large, b"after"]
    for step in ("send", "accept", "confirm", "acknowledge", "deliver"):
        process = 0 if step == "send" else 1
        counts = [row.n for row in rows if row.step == step and row.process == process]
        assert counts == [1, 0, 0, 0, 1, 1] or counts == [1, 0, 0, 1, 1], step
        assert all(row.deps is not None for row in rows if row.step == step)
    whole = net.batches[1][1]
    assert whole.seq == max(b.seq for b in net.batches[1]) - 1


# On the wire


def test_vectors_travel_as_what_rose_and_in_full_now_and_then() -> None:
    net = group(2, window=100)
    for _ in range(2 * FULL_EVERY + 1):
        net.send(0, b"x")
    said = [(packet.seq, unpack(packet.ext or b"", packet.src, 2)) for packet in data(net)]
    assert [seq for seq, section in said if section.expected is not None] == [
        1,
        1 + FULL_EVERY,
        1 + 2 * FULL_EVERY,
    ]


def test_what_cannot_be_read_yet_tells_only_its_number() -> None:
    net = group(nack_delay=0.001)
    net.send(1, b"b")
    net.arrive(*net.to(0))
    for text in (b"1", b"2", b"3"):
        net.send(0, text)
    one, two, three = net.to(2, DATA, 0)
    net.lose(lambda flight: True)
    net.send(1, b"b2")
    net.arrive(*net.to(0))
    net.send(0, b"4")
    four = net.to(2, DATA, 0)[-1]
    net.lose(lambda flight: True)
    net.arrive(four)  # names b2, but by how much above what 3 named
    assert co(net, 2).known_sent[:2] == [5, 1]
    assert list(co(net, 2).early[0]) == [4]
    net.arrive(three)
    net.arrive(two)
    assert co(net, 2).known_sent[:2] == [5, 1]
    net.arrive(one)  # in full, and what follows can be read: b is missing, and so is b2
    assert co(net, 2).known_sent[:2] == [5, 3]
    assert co(net, 2).missing(1) == ((1, 3),)
    net.quiet()
    assert [text for text in net.texts(2) if text != "b2"] == ["b", "1", "2", "3", "4"]
    assert net.texts(2).index("b2") < net.texts(2).index("4")


def test_a_repeated_message_is_the_same_bytes() -> None:
    net = group()
    for m in (0, 1, 2, 0, 1):
        net.send(m, b"hello")
        net.lose(lambda flight: flight.target == 2 and flight.kind == DATA)
        net.settle()
    net.wait(1.0)
    copies: dict[tuple[int, int], set[bytes]] = {}
    for flight in net.log:
        if flight.kind == DATA:
            packet = flight.packet(3)
            copies.setdefault((packet.src, packet.seq), set()).add(flight.data)
    assert len(copies) == 5 and all(len(each) == 1 for each in copies.values())
    assert net.stacks[0].counts["repair"]


def inject(net: Net, member: int, packet: Packet) -> None:
    net.inject(member, joined(encode(packet, net.stacks[0].group)))


def made(src: int, kind: int = DATA, *, seq: int = 0, section: CoExtension | None = None) -> Packet:
    packet = Packet(src, 1, b"\0x", kind=kind)
    packet.seq, packet.ext = seq, None if section is None else pack(section)
    return packet


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (made(1, seq=1), "truncated"),
        (made(1, section=CoExtension(3, (1, 1, 1))), "malformed"),  # no number
        (made(1, seq=1, section=CoExtension(3, (1, 2, 1))), "forged"),  # not its own number
        (made(1, seq=1, section=CoExtension(3, (2, 1, 1))), "forged"),  # we sent nothing
        (made(1, seq=1, section=CoExtension(3, (1, 1, AHEAD_MAX + 2))), "forged"),
        (made(1, seq=1, section=CoExtension(3, rises=((0, 1),))), "forged"),
        (made(1, seq=3, section=CoExtension(3, (7, 3, 1))), "forged"),  # early
        (made(1, seq=AHEAD_MAX + 1, section=CoExtension(3, (1, AHEAD_MAX + 1, 1))), "seq"),
        (made(1, CO), "truncated"),
        (made(1, CO, section=CoExtension(3, (1, 1, 1))), "malformed"),  # neither nack nor confirmation
        (made(1, CO, section=CoExtension(3, (1, 1, 1), confirmed=(1, 1, 1))), "malformed"),  # no number
        (
            made(1, CO, seq=1, section=CoExtension(3, rises=(), confirmed=(1, 1, 1))),
            "malformed",
        ),  # rises since when?
        (made(1, CO, seq=1, section=CoExtension(3, (2, 1, 1), confirmed=(1, 1, 1))), "forged"),
        (made(1, CO, seq=AHEAD_MAX + 1, section=CoExtension(3, (1, 1, 1), confirmed=(1, 1, 1))), "forged"),
        (made(1, CO, section=CoExtension(3, (2, 1, 1), runs=((1, 2),))), "forged"),
        (made(1, 9), "kind"),
    ],
)
def test_what_cannot_be_right_is_counted_and_harms_nobody(packet: Packet, reason: str) -> None:
    net = group()
    inject(net, 0, packet)
    assert dict(net.stacks[0].rejected) == {reason: 1}
    net.send(1, b"still here")
    net.send(0, b"me too")
    net.quiet()
    assert [net.texts(0), net.texts(1), sorted(net.texts(2))] == [
        ["still here"],
        ["me too"],
        ["me too", "still here"],
    ]


def test_a_word_tells_that_its_sender_is_here_unless_it_is_forged() -> None:
    net = group()
    said = CoExtension(3, (1, 1, 1), confirmed=(1, 1, 1))
    inject(net, 0, made(1, CO, seq=1, section=said))
    inject(net, 0, made(2, CO, seq=1, section=said._replace(expected=(9, 1, 1))))
    assert net.stacks[0].met == {1}


def test_a_forged_early_message_is_dropped_when_it_can_be_read() -> None:
    net = group()
    inject(net, 0, made(1, seq=2, section=CoExtension(3, rises=((0, 5),))))
    assert list(co(net, 0).early[1]) == [2]
    net.send(1, b"true")
    net.settle()
    assert net.stacks[0].rejected["forged"] == 1
    assert not co(net, 0).early[1] and co(net, 0).held == [0, 1, 0]


@pytest.mark.parametrize("seed", range(20))
def test_mutilated_packets_of_a_group_never_crash_it(seed: int) -> None:
    """Changed, doubled and foreign bytes between true ones; no member raises, whatever becomes of order."""
    random = Random(seed)
    net = group(3, deliver="causal")
    for _ in range(60):
        net.send(random.randrange(3), b"x")
        for flight in [*net.under_way]:
            broken = bytearray(flight.data)
            for _ in range(random.randrange(4)):
                broken[random.randrange(20, len(broken))] = random.randrange(256)
            net.inject(flight.target, bytes(broken))
        net.under_way.clear()
        net.now += 0.01
        net.tick(random.randrange(3))
        for stack in net.stacks:
            stack.writable = True


# Repair and flow


def test_the_last_message_is_repaired_too() -> None:
    net = group()
    net.send(0, b"last")
    net.lose(lambda flight: True)
    net.quiet()
    assert net.texts(1) == net.texts(2) == ["last"]


def test_a_hole_that_nobody_fills_is_a_gap() -> None:
    net = group(patience=2.0)
    net.send(0, b"lost")
    net.send(0, b"found")
    net.lose(lambda flight: flight.target == 2 and flight.packet(3).seq == 1)
    net.wait(30.0, lambda flight: flight.target == 2 and flight.source == 0 and flight.kind == DATA)
    assert isinstance(net.errors[2], Gap)
    assert "alice did not repair what was lost within 2 s" in str(net.errors[2])


def test_who_does_not_read_makes_senders_wait_and_then_go_on() -> None:
    net = group(2, takes=False, queue_max=1000, window=4)
    sent = 0
    for _ in range(200):
        if net.stacks[0].writable:
            net.send(0, bytes(60_000))
            sent += 1
        net.wait(0.1)
    assert sent < 40 and len(net.batches[1]) < 20
    assert not net.stacks[0].passable
    assert net.stacks[0].chain.waiting and not net.stacks[0].settled, "there is something to stay for"
    read = 0
    while read < len(net.batches[1]):
        net.take(1, net.batches[1][read])
        read += 1
        net.wait(2.0)
    assert read == sent
    assert net.stacks[0].passable


def test_a_person_is_told_who_holds_us_up() -> None:
    net = group(window=1, datagram_max=512)
    for _ in range(12):
        if net.stacks[0].writable:
            net.send(0, bytes(150))
    net.wait(2 * WARN_AFTER, lambda flight: 2 in (flight.source, flight.target))
    assert sorted(net.notices) == [
        "delivery has waited 5 s for cathy",  # bob's, which he holds
        "sending has waited 5 s for cathy",
    ]


def test_room_that_comes_back_is_told() -> None:
    """With buffers for one message each, everybody must hear that they are empty again."""
    net = group(3, capacity=3)
    for _ in range(5):
        for m in range(3):
            net.send(m, b"x")
    net.quiet()
    assert all(co(net, m).free_buffers == [3, 3, 3] for m in range(3))


# Coming and going


def test_members_greet_until_all_are_heard() -> None:
    net = group(greet=True)
    net.wake = [stack.ready().wake for stack in net.stacks]
    net.wait(5.0, lambda flight: 2 in (flight.source, flight.target))
    assert net.wake[0] is not None
    net.quiet()
    assert net.log


def goodbye(net: Net, member: int) -> None:
    net.stacks[member].goodbye(now=net.now)
    net.turn(member)
    net.wake[member] = None


def test_nobody_waits_for_one_who_has_left() -> None:
    net = group()
    for stack in net.stacks:
        stack.addresses.update(dict.fromkeys(stack.others))
    receipt = net.send(0, b"before")
    assert not net.stacks[0].settled
    net.quiet()
    assert net.stacks[2].settled and receipt.has("acknowledged")
    goodbye(net, 2)
    net.lose(lambda flight: flight.target == 2)
    again = net.send(0, b"after")
    net.wait(5.0, lambda flight: flight.target == 2)
    assert again.has("acknowledged") and net.texts(1) == ["before", "after"]


def test_the_last_one_talks_to_itself() -> None:
    net = group(2)
    goodbye(net, 1)
    net.wait(1.0)
    assert net.names(0) == ("alice",)
    receipt = net.send(0, b"echo?")
    assert receipt.has("acknowledged")
    assert net.stacks[0].settled and net.under_way == []


# Freezing


def test_a_stack_survives_pickling_in_the_middle() -> None:
    net = group()
    for m in (0, 1, 2, 0):
        net.send(m, b"hello")
        net.lose(lambda flight: flight.target == 2)
        net.settle()
    net.send(0, b"last")
    net.stacks[:] = [pickle.loads(pickle.dumps(stack)) for stack in net.stacks]
    net.quiet()
    assert all(
        sorted(net.texts(m)) == sorted((4 - [2, 1, 1][m]) * ["hello"] + ["last"] * (m > 0)) for m in range(3)
    )


# What the stack is told


@pytest.mark.parametrize("level", ["causal", "confirmed", "acknowledged"])
def test_what_is_held_is_counted_until_it_is_delivered(level: str) -> None:
    net = group(deliver=level)
    net.send(0, b"first")
    lost = net.lose(lambda flight: flight.target == 2)
    net.send(0, b"second")
    net.settle()
    assert net.stacks[2].held > len(b"second") and net.stacks[2].chain.awaited() == {0}
    assert bool(net.stacks[1].held) == (level != "causal")
    net.arrive(*lost)
    net.quiet()
    assert [(stack.held, stack.chain.awaited(), stack.chain.blockers()) for stack in net.stacks] == [
        (0, set(), set())
    ] * 3


def test_what_is_not_kept_is_not_held() -> None:
    net = group(nack_delay=0.001)
    inject(net, 0, made(1, seq=2, section=CoExtension(3, rises=((0, 5),))))
    assert net.stacks[0].held
    net.send(1, b"true")
    net.settle()
    assert net.stacks[0].rejected["forged"] == 1
    assert net.stacks[0].held == len(b"\0true") + 1, "the one that is not acknowledged yet"


def test_what_overruns_its_senders_share_is_counted_and_not_kept() -> None:
    net = group(capacity=3)
    for seq in (2, 3):
        inject(net, 0, made(1, seq=seq, section=CoExtension(3, rises=())))
    assert net.stacks[0].counts["overrun"] == 1
    assert co(net, 0).held == [0, 1, 0] and list(co(net, 0).early[1]) == [2]


def test_only_what_is_new_says_where_a_member_is() -> None:
    net = group()
    net.send(1, b"x")
    (flight,) = net.to(0, DATA)
    net.lose(lambda flight: True)
    forged = joined(encode(made(2, seq=1, section=CoExtension(3, (9, 1, 1))), net.stacks[0].group))
    net.stacks[0].receive([(forged, "anywhere")], now=0.0)
    assert net.stacks[0].met == set()
    net.stacks[0].receive([(flight.data, "home")], now=0.0)
    net.stacks[0].receive([(flight.data, "elsewhere")], now=0.0)
    assert net.stacks[0].met == {1} and net.stacks[0].addresses == {1: "home"}


def test_a_slow_reader_is_named_by_others_and_names_itself() -> None:
    net = group(takes=False, queue_max=2000, window=2, datagram_max=1472)
    net.takes = True
    told: list[list[str]] = [[], [], []]
    for _ in range(60):
        for member in range(3):
            if net.stacks[member].writable:
                net.stacks[member].send(bytes(1000), now=net.now)
            before = len(net.notices)
            net.takes = member != 2
            net.turn(member)
            told[member] += net.notices[before:]
        for member in range(3):
            net.takes = member != 2
            for flight in net.to(member):
                net.arrive(flight)
            net.takes = member != 2
            wake = net.wake[member]
            if wake is not None and wake <= net.now:
                before = len(net.notices)
                net.tick(member)
                told[member] += net.notices[before:]
        net.now += 0.5
    assert told[0] == told[1] == ["sending has waited 5 s for cathy"]
    assert told[2] == ["sending has waited 5 s: our own application does not read"]
