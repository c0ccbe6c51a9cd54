"""Total order: one member says what comes next, and everybody keeps to it, also when it is gone."""

from itertools import pairwise
from typing import Any

import pytest

from inga.layers.bundle import HEAD, LENGTH
from inga.layers.sequenced import SEQUENCER, WAITS, Sequenced
from inga.layers.shape import Faults
from inga.model.errors import NoMajority, UsageError
from inga.model.packet import Packet
from inga.model.stamp import Delta
from inga.recipes import Options, find
from inga.sim import Sim
from inga.stack.layer import Layer
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row
from inga.trial.workload import Workload
from inga.wire.sequence import RUNS_MAX, get_known, get_runs, put_known, put_runs

from ..stack.harness import Net, Probe

LOSSLESS = Options(lossless=True)
A, B, C, D = range(4)
PEOPLE = "alice bob cathy dave erin".split()
ROUGH = Faults(loss=0.1, duplicate=0.1, reorder=0.4, delay_min=0.001, delay_max=0.03)


def packet(src: int, seq: int, ext: bytes | None = None, **rest: Any) -> Packet:
    """One that came: of the sequencer, or of another member that had nothing of the sequencer if nothing else is said."""
    made = Packet(src, 1, b"%d.%d" % (src, seq))
    made.seq, made.ext = seq, ext if ext is not None or src == A else put_known(0)
    for name, value in rest.items():
        setattr(made, name, value)
    return made


def names(src: int, seq: int, *runs: tuple[int, int], **rest: Any) -> Packet:
    return packet(src, seq, put_runs(list(runs)), **rest)


def places(packets: list[Packet]) -> list[tuple[int, int]]:
    return [(each.src, each.seq) for each in packets]


def end_turn(probe: Probe) -> list[Packet]:
    """What leaves at the end of the turn."""
    count = len(probe.bottom.sent)
    probe.stack.ready(now=0.0)
    return probe.bottom.sent[count:]


def probe(me: int, members: int = 4, **more: Any) -> Probe:
    return Probe(Sequenced(**{"echo": True, **more}), me=me, members=members)


# In a rough world


@pytest.mark.parametrize("subset", [None, 1, 2])
def test_all_that_a_rough_world_can_do(subset: int | None) -> None:
    for seed in range(12):
        members = 3 + seed % 3
        sim = Sim(
            *PEOPLE[:members],
            order="total",
            seed=seed,
            faults=ROUGH,
            options=Options(echo=seed % 2 == 1),
            datagram_max=300,
            record=False,
        )
        sim.load(Workload(members, 25, size=400 if seed % 4 == 0 else 40, subset=subset))
        sim.run()
        sim.check()
        assert sim.oracle.related > 100
        assert not any(site.stack.rejected or site.stack.held for site in sim.sites)


class AsItComes(Sequenced):
    """The sequencer places what comes without a thought for causes, the latest first of what comes at once; and nobody waits for
    what a sender had of the sequencer."""

    def _needs(self, packet: Packet) -> Delta:
        return super()._needs(packet) if packet.src == SEQUENCER else ()

    def _released(self, out: list[Packet]) -> None:
        by_sender: dict[int, list[Packet]] = {}
        for packet in out:
            by_sender.setdefault(packet.src, []).append(packet)
        turned = [packet for each in reversed(list(by_sender.values())) for packet in each]
        super()._released(turned if self.me == SEQUENCER else out)


def test_one_order_for_all_is_causal_whatever_that_order_is() -> None:
    """Whoever answers has delivered the question, so the question has its place, and the answer gets a later one: nobody has to look
    for causes. Only what is acted on before it has its place, or what is lost with members, can be answered too early."""
    for seed in range(6):
        members = 3 + seed % 3

        def build(options: Options) -> list[Layer]:
            layers = find("total").build(options)
            return [AsItComes(echo=x.echo) if type(x) is Sequenced else x for x in layers]

        sim = Sim(
            *PEOPLE[:members],
            order="total",
            seed=seed,
            faults=ROUGH,
            build=build,
            datagram_max=300,
            record=False,
        )
        assert any(isinstance(layer, AsItComes) for layer in sim.sites[0].stack.layers)
        sim.load(Workload(members, 25))
        sim.run()
        assert {"total", "causal", "fifo"} <= set(sim.guarantees)
        sim.check()
        assert sim.oracle.related > 100


# The sequencer


def test_the_sequencer_delivers_what_comes_and_names_it_on_its_next_packet() -> None:
    first = probe(A)
    assert places(first.feed(packet(B, 1), packet(C, 1), packet(C, 2))) == [(B, 1), (C, 1), (C, 2)]
    first.stack.send(b"mine", now=0.0)
    assert places(first.top.got)[-1] == (A, 1), "its own at the send"
    (sent,) = first.bottom.sent
    assert get_runs(sent.ext or b"", 4) == [(B, 1), (C, 2)]
    assert not end_turn(first), "nothing is left to be named"
    first.stack.send(b"again", now=0.0)
    assert first.bottom.sent[-1].ext is None


def test_what_nothing_else_names_is_named_at_the_end_of_the_turn() -> None:
    first = probe(A)
    first.feed(packet(B, 1))
    first.feed(packet(B, 2), packet(C, 1), packet(B, 3))
    (sent,) = end_turn(first)
    assert get_runs(sent.ext or b"", 4) == [(B, 2), (C, 1), (B, 3)]
    assert (sent.seq, sent.count, sent.body) == (1, 0, b"")
    assert not end_turn(first)
    assert first.layer.sent() == [1] * 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("rides", [True, False])
def test_more_runs_than_one_packet_names_go_ahead_on_others(rides: bool) -> None:
    first = probe(A)
    count = 2 * RUNS_MAX + 1
    first.feed(*(packet(B + each % 2, each // 2 + 1) for each in range(count)))
    if rides:
        first.stack.send(b"mine", now=0.0)
    end_turn(first)
    named = [get_runs(sent.ext or b"", 4) for sent in first.bottom.sent]
    assert list(map(len, named)) == [RUNS_MAX, RUNS_MAX, 1]
    assert [run for runs in named for run in runs] == [(B + each % 2, each // 2 + 1) for each in range(count)]
    assert [sent.count for sent in first.bottom.sent] == [0, 0, int(rides)]
    second = probe(D)
    second.feed(*(packet(B + each % 2, each // 2 + 1) for each in range(count)))
    assert places(second.feed(*first.bottom.sent))[:3] == [(B, 1), (C, 1), (B, 2)]
    assert len(second.top.got) == count + rides


def test_runs_leave_room_for_a_full_bundle() -> None:
    """A bundle of the sequencer is never cut for the names that it carries."""
    net = Net(3, "total", options=Options(lossless=True, echo=False), datagram_max=1472)
    for number in range(RUNS_MAX):
        net.send(B + number % 2, b"%d" % number)
    stack = net.stacks[A]
    stack.receive([(flight.data, None) for flight in net.to(A)], now=0.0)
    stack.send(b"." * (stack.wire.payload_max - HEAD - LENGTH), now=0.0)
    net.under_way.clear()
    net.turn(A)
    (sent,) = net.packets(net.to(B))
    assert len(get_runs(sent.ext or b"", 3)) == RUNS_MAX and sent.frag is None


# The others


def test_others_wait_until_the_sequencer_says_what_comes_next() -> None:
    other = probe(B)
    assert other.feed(packet(C, 1), packet(D, 1), packet(C, 2)) == []
    assert other.layer.awaited() == {A}  # type: ignore[attr-defined]
    assert places(other.feed(names(A, 1, (D, 1), (C, 1)))) == [(D, 1), (C, 1), (A, 1)]
    assert places(other.feed(packet(A, 2))) == [(A, 2)], "it names nothing"
    assert places(other.feed(names(A, 3, (C, 2), count=0))) == [(C, 2)], "it has no messages"


def test_what_is_named_and_not_here_is_waited_for() -> None:
    other = probe(B)
    assert other.feed(names(A, 1, (C, 2)), packet(A, 2)) == []
    assert other.layer.awaited() == {A, C}  # type: ignore[attr-defined]  # A: its second waits for its first
    assert other.feed(packet(C, 1)) == []
    assert places(other.feed(packet(C, 2))) == [(C, 1), (C, 2), (A, 1), (A, 2)]
    assert (other.stack.held, other.layer.awaited()) == (0, set())  # type: ignore[attr-defined]


def test_a_packet_waits_for_what_its_sender_had_of_the_sequencer() -> None:
    """Else its causes might be missing, and it would not be dropped with them."""
    other = probe(B)
    assert other.feed(packet(C, 1, put_known(2)), packet(A, 1)) == [other.top.got[0]]
    assert not other.layer.has([1, 0, 1, 0]), "it is not released"  # type: ignore[attr-defined]
    other.feed(packet(A, 2))
    assert other.layer.has([2, 0, 1, 0])  # type: ignore[attr-defined]


def test_own_messages_have_their_place_too() -> None:
    other = probe(B)
    other.stack.send(b"mine", now=0.0)
    other.stack.send(b"for others", 0b0100, now=0.0)
    assert [get_known(sent.ext or b"") for sent in other.bottom.sent] == [0, 0]
    other.feed(packet(C, 1))
    assert places(other.feed(names(A, 1, (C, 1), (B, 1)))) == [(C, 1), (B, 1), (A, 1)]
    other.stack.send(b"later", now=0.0)
    assert get_known(other.bottom.sent[-1].ext or b"") == 1
    assert places(other.feed(names(A, 2, (B, 3)))) == [(B, 2), (B, 3), (A, 2)]


def test_without_echo_own_messages_only_keep_their_place() -> None:
    other = probe(B, echo=False)
    other.stack.send(b"mine", now=0.0)
    other.stack.send(b"for me too", 0b0110, now=0.0)
    assert places(other.feed(packet(C, 1), names(A, 1, (B, 2), (C, 1)))) == [(B, 2), (C, 1), (A, 1)]


def test_what_is_for_others_has_a_place_and_is_not_delivered() -> None:
    other = probe(B)
    assert other.feed(packet(C, 1, dst=0b1000, bare=True, body=b""), packet(C, 2, dst=0b0010)) == []
    assert places(other.feed(names(A, 1, (C, 2), dst=0b0100, bare=True, body=b""))) == [(C, 2)]
    first = probe(A)
    assert first.feed(packet(C, 1, dst=0b1000, bare=True, body=b"")) == []
    assert get_runs(end_turn(first)[0].ext or b"", 4) == [(C, 1)]


def test_duplicates_are_dropped() -> None:
    other = probe(B)
    other.feed(packet(C, 1))
    assert other.feed(packet(C, 1)) == []
    assert places(other.feed(names(A, 1, (C, 1)), names(A, 1, (C, 1)))) == [(C, 1), (A, 1)]
    assert not other.stack.rejected


# What cannot be right


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (packet(C, 0), "malformed"),
        (packet(C, 1, b""), "truncated"),
        (packet(C, 1, b"\x01\x01"), "malformed"),
        (packet(A, 1, b""), "malformed"),
        (packet(A, 1, b"\x02"), "malformed"),
        (packet(A, 1, b"\x02\x80"), "truncated"),
        (names(A, 1, (A, 1)), "stranger"),
        (names(A, 1, (4, 1)), "stranger"),
        (names(A, 1, (C, 0)), "malformed"),
        (names(A, 1, (C, 1), (C, 2)), "malformed"),
        (names(A, 1, (C, 2), (D, 1), (C, 2)), "malformed"),
        (names(A, 1, *[(C + each % 2, each // 2 + 1) for each in range(RUNS_MAX + 1)]), "malformed"),
        (names(A, 1, (B, 1)), "forged"),  # we have sent nothing
    ],
)
def test_what_cannot_be_is_rejected_and_nothing_else_is(wrong: Packet, reason: str) -> None:
    other = probe(B)
    other.feed(packet(C, 1) if wrong.src == A else packet(D, 1))
    assert other.feed(wrong) == []
    assert other.stack.rejected == {reason: 1}
    named = (C, 1) if wrong.src == A else (D, 1)
    assert places(other.feed(names(A, 1, named))) == [named, (A, 1)]


def test_the_sequencer_takes_nothing_of_who_claims_to_have_more_of_it_than_there_is() -> None:
    first = probe(A)
    assert first.feed(packet(C, 1, put_known(1))) == []
    assert first.stack.rejected == {"forged": 1}


def test_a_place_is_given_once() -> None:
    other = probe(B)
    other.feed(packet(C, 1), packet(C, 2), names(A, 1, (C, 2)))
    assert places(other.feed(packet(D, 1), names(A, 2, (C, 1), (D, 1)))) == [(D, 1), (A, 2)]
    assert other.stack.rejected == {"forged": 1}


def test_a_packet_that_is_empty_and_not_of_the_sequencer_is_nothing() -> None:
    other = probe(B)
    assert places(other.feed(packet(C, 1, count=0, body=b""), names(A, 1, (C, 1)))) == [(A, 1)]


# Windows and memory


def test_what_waits_for_its_place_keeps_no_window_closed() -> None:
    """Cathy has much that waits for its place: did it count as unread, the sequencer's window would be closed, and the names
    that she waits for could not leave."""
    options = Options(flow={"window": 4000, "queue_max": 1024})
    net = Net(3, "total", options=options, datagram_max=1472)
    for number in range(4):
        net.send(B, b"%d" % number + b"." * 500)
    net.arrive(*net.to(C, kind=0))
    assert net.stacks[C].held == WAITS and net.texts(C) == []
    reports = net.packets(net.to(A, source=C))
    assert reports and all(each.room is None for each in reports), "she has room"
    net.quiet()
    assert [text[:1] for text in net.texts(C)] == ["0", "1", "2", "3"]
    assert all(stack.held == 0 for stack in net.stacks)


def test_what_those_sent_for_whom_the_sequencer_waits_is_held_until_it_is_named() -> None:
    """Bob does not hear alice, the sequencer, whose window closes; what he sends meanwhile is counted, and not for ever."""
    net = Net(3, "total", options=Options(flow={"window": 4000}), datagram_max=1472)
    order = net.stacks[A].layer("sequenced")
    assert isinstance(order, Sequenced)
    while net.stacks[A].writable:
        net.send(A, b"." * 500)
    for _ in range(3):
        net.send(B, b"." * 500)
    net.wait(0.1, lose=lambda flight: (flight.source, flight.target) == (A, B))
    assert order._of_blockers > 0
    net.quiet()
    assert order._of_blockers == 0
    assert all(stack.held == 0 for stack in net.stacks)


def test_senders_do_not_outrun_the_names() -> None:
    """Cathy hears nothing of the sequencer: what waits there and at dave's for her is bounded by closing bob's window."""
    options = Options(flow={"window": 4000, "queue_max": 20_000})
    net = Net(4, "total", datagram_max=1472, options=options)
    deaf = True
    sent = 0

    def send() -> None:
        nonlocal sent
        while net.stacks[B].writable and sent < 400:
            net.send(B, b"%03d" % sent + b"." * 500)
            sent += 1
        net.wait(0.02, lose=lambda flight: deaf and (flight.source, flight.target) == (A, C))

    for _ in range(400):
        send()
    assert sent < 100 and net.stacks[A].held < 30_000
    for member in (B, C, D):
        order = net.stacks[member].layer("sequenced")
        assert isinstance(order, Sequenced) and sum(map(len, order._waiting)) < 100
    deaf = False
    for _ in range(4000):
        if sent == 400:
            break
        send()
    net.quiet()
    for member in range(4):
        assert [text[:3] for text in net.texts(member)] == [f"{number:03d}" for number in range(400)]
        assert net.stacks[member].held == 0


def test_what_is_not_named_counts_only_while_somebody_does_not_hear_names() -> None:
    order = Sequenced(echo=True)
    first = Probe(order, me=A, members=4)
    order._has_window = True
    first.feed(packet(B, 1))
    assert order.held == 0
    (sent,) = end_turn(first)
    assert order.held == len(b"1.1") and sent.receipt is not None
    first.feed(packet(B, 2))
    assert order.held == len(b"1.1" + b"1.2")
    sent.receipt.reach("confirmed")
    assert order.held == 0


def test_who_does_not_read_is_waited_for_and_not_the_sequencer() -> None:
    """Its names wait because of her, and senders do already."""
    options = Options(flow={"window": 8000, "queue_max": 1024})
    net = Net(4, "total", datagram_max=1472, options=options, takes=False)
    for _ in range(200):
        for sender in (A, B, D):
            if net.stacks[sender].writable:
                net.send(sender, b"." * 500)
        net.wait(0.01)
        for member in (A, B, D):
            net.take(member, *net.batches[member])
            net.batches[member].clear()
    assert [net.stacks[member].chain.blockers() for member in (A, B, D)] == [{C}] * 3


def test_who_does_not_read_cannot_send_without_end() -> None:
    """Cathy closes all windows but her own. The sequencer names nothing while its own is closed, so that bob would have to
    keep whatever she sends."""
    options = Options(flow={"window": 4000, "queue_max": 8000})
    net = Net(3, "total", datagram_max=1472, options=options, takes=False)
    sent = 0
    for _ in range(400):
        for sender in range(3):
            if net.stacks[sender].writable:
                net.send(sender, b"." * 500)
                sent += sender == C
        net.wait(0.01)
        for member in (A, B):
            net.take(member, *net.batches[member])
            net.batches[member].clear()
    order = net.stacks[B].layer("sequenced")
    assert isinstance(order, Sequenced) and sum(map(len, order._waiting)) < 60
    assert sent < 80 and net.stacks[C].chain.blockers() == {A}


def test_a_sequencer_without_a_majority_waits_like_the_others() -> None:
    first = probe(A)
    first.stack.views.pause(NoMajority("too few", ("dave",)))
    assert first.feed(packet(B, 1)) == [] == end_turn(first)
    first.stack.views.pause(None)
    (sent,) = end_turn(first)
    assert get_runs(sent.ext or b"", 4) == [(B, 1)] and places(first.top.got) == [(B, 1)]


def test_a_person_is_told_that_the_sequencer_is_waited_for() -> None:
    net = Net(3, "total")
    net.send(B, b"hello")
    net.wait(6.0, lose=lambda flight: flight.source == A)
    assert net.told[C] == ["delivery has waited 5 s for alice"]


def test_while_its_window_is_closed_names_gather() -> None:
    first = probe(A)
    first.feed(packet(B, 1))
    first.stack.views.pause(NoMajority("too few", ("dave",)))
    assert not end_turn(first) and not first.stack.settled
    first.feed(packet(C, 1))
    first.stack.views.pause(None)
    (sent,) = end_turn(first)
    assert get_runs(sent.ext or b"", 4) == [(B, 1), (C, 1)] and first.stack.settled


def test_packets_that_wait_are_no_longer_in_the_readers_buffer() -> None:
    other = probe(B)
    buffer = bytearray(b"." * 100)
    other.feed(packet(C, 1, body=memoryview(buffer)))
    buffer[:] = b"x" * 100
    assert other.feed(names(A, 1, (C, 1)))[0].body == b"." * 100


# The end of a view


def test_from_the_closing_on_the_sequencer_names_nothing_new() -> None:
    first, other = probe(A), probe(B)
    came = [packet(C, 1), packet(D, 1)]
    first.feed(came[1])
    other.feed(*came)
    first.stack.views.close()
    (sent,) = first.bottom.sent
    assert get_runs(sent.ext or b"", 4) == [(D, 1)], "what it has delivered is named first"
    first.stack.views.close()
    assert first.feed(packet(C, 1), packet(B, 1)) == [] == end_turn(first)
    assert first.layer.has([1, 1, 1, 1]), "it is here all the same"  # type: ignore[attr-defined]
    other.stack.send(b"mine", now=0.0)
    other.feed(sent)
    for each in (first, other):
        each.layer.closed()  # type: ignore[attr-defined]
    assert places(first.top.got) == places(other.top.got) == [(D, 1), (B, 1), (C, 1)]
    assert first.stack.held == other.stack.held == 0


def test_the_rest_is_in_causal_order() -> None:
    """Bob's packet was an answer to dave's, as its sender had the sequencer's that named it. Dave has sent much before."""
    other = probe(C)
    other.feed(*(packet(D, number) for number in (1, 2, 3)))
    other.feed(
        packet(A, 1), packet(B, 1, put_known(1)), packet(B, 2, put_known(1)), packet(D, 4, put_known(1))
    )
    other.layer.closed()  # type: ignore[attr-defined]
    assert places(other.top.got) == [(A, 1), (D, 1), (D, 2), (D, 3), (B, 1), (B, 2), (D, 4)]


@pytest.mark.parametrize("more", [True, False])
def test_a_view_that_goes_on_after_all_gets_its_names(more: bool) -> None:
    first, other = probe(A), probe(B)
    came = [packet(C, 1), packet(D, 1)]
    first.stack.views.close()
    first.feed(*came)
    first.stack.views.reopen()
    if more:  # in the same turn
        came.append(packet(D, 2))
        first.feed(came[-1])
    (sent,) = end_turn(first)
    assert places(first.top.got) == [(C, 1), (D, 1), (D, 2)][: 2 + more]
    other.feed(*(packet(each.src, each.seq) for each in came), sent)
    assert places(other.top.got) == places(first.top.got)


def test_who_leaves_keeps_nothing() -> None:
    other = probe(B)
    other.feed(packet(C, 1))
    other.layer.goodbye()  # type: ignore[attr-defined]
    assert other.stack.held == 0 and not other.layer.awaited()  # type: ignore[attr-defined]


# The sequencer is gone


def gone(net: Net, member: int) -> None:
    """It fails, and the others notice."""
    net.wait(5.0, lose=lambda flight: member in (flight.source, flight.target))


@pytest.mark.parametrize("knowing", [(), (B,), (B, C)])
def test_its_last_names_may_have_come_to_one(knowing: tuple[int, ...]) -> None:
    """Cathy's came before bob's at the sequencer, the other way round by (sender, number)."""
    net = Net(4, "total", options=Options(detect=0.5, echo=True))
    net.wait(1.0)
    net.send(C, b"c")
    net.arrive(*[flight for flight in net.under_way if flight.kind == 0])
    named = [flight for flight in net.under_way if flight.source == A and flight.kind == 0]
    assert {flight.target for flight in named} == {B, C, D}
    net.lose(lambda flight: flight in named)
    net.send(B, b"b")
    net.arrive(*[flight for flight in net.under_way if flight.kind == 0 and flight.target != A])
    net.arrive(*[flight for flight in named if flight.target in knowing])
    assert [net.texts(member) for member in (B, C)] == [["c"] * (B in knowing), ["c"] * (C in knowing)]
    gone(net, A)
    expected = ["c", "b"] if knowing else ["b", "c"]
    assert [net.texts(member) for member in (B, C, D)] == [expected] * 3
    assert all(net.names(member) == ("bob", "cathy", "dave") for member in (B, C, D))
    net.send(D, b"after")
    net.wait(1.0, lose=lambda flight: A in (flight.source, flight.target))
    assert [net.texts(member)[-1] for member in (B, C, D)] == ["after"] * 3


def test_what_follows_something_lost_is_dropped() -> None:
    other = probe(B)
    assert other.feed(packet(C, 1), packet(C, 3), names(A, 1, (C, 2))) == []
    other.layer.bereft(C)  # type: ignore[attr-defined]
    other.layer.bereft(A)  # type: ignore[attr-defined]
    assert other.layer.seen(C) == 3 and not other.layer.has([0, 0, 2, 0])  # type: ignore[attr-defined]
    other.layer.closed()  # type: ignore[attr-defined]
    assert places(other.top.got) == [(C, 1)] and len(other.layer.inbox.items()) == 1  # type: ignore[attr-defined]


def test_when_it_leaves_the_next_member_goes_on() -> None:
    net = Net(3, "total")
    net.send(B, b"before")
    net.quiet()
    net.stacks[A].goodbye(now=net.now)
    net.turn(A)
    net.wait(1.0)
    net.send(C, b"after")
    net.send(B, b"of the new sequencer")
    net.quiet()
    assert net.texts(B)[:1] == net.texts(C)[:1] == ["before"] and net.texts(B) == net.texts(C)


def test_what_was_named_of_one_who_is_gone_and_nobody_has_keeps_nobody() -> None:
    """Dave's packet reached the sequencer alone, which named it, and both are gone."""
    net = Net(4, "total", options=Options(detect=0.5))
    net.wait(1.0)
    net.send(D, b"lost")
    net.arrive(*[flight for flight in net.under_way if flight.kind == 0 and flight.target == A])
    net.lose(lambda flight: flight.source == D)
    net.settle()
    net.wait(5.0, lose=lambda flight: {A, D} & {flight.source, flight.target} != set())
    # Half of a group, without its first member, does not go on by itself.
    assert net.texts(B) == net.texts(C) == []


# What else there is


def test_what_comes_twice_has_a_row_that_says_so() -> None:
    rows: list[Row] = []
    other = Probe(Sequenced(), me=B, members=4, trace=MemoryTrace(B, 4, rows))
    other.feed(packet(A, 1), packet(A, 1), packet(A, 3), packet(A, 3))
    told = [(row.step, row.src, row.seq) for row in rows if row.step in ("receive", "duplicate")]
    assert [step for step in told if step[0] == "duplicate"] == [("duplicate", A, 1), ("duplicate", A, 3)]


def test_rows_tell_what_waits_and_what_is_for_nobody() -> None:
    rows: list[Row] = []
    traces = [MemoryTrace(me, 3, rows) for me in range(3)]
    net = Net(3, "total", options=Options(lossless=True, echo=False), traces=traces, traced=True)
    net.send(B, b"hello")
    net.settle()
    told = [(row.step, row.process, row.src, row.seq, row.dst, row.n) for row in rows if row.src is not None]
    assert told == [
        ("send", B, B, 1, None, 1),
        ("receive", A, B, 1, None, None),
        ("deliver", A, B, 1, None, 1),
        ("send", A, A, 1, 0, 0),
        ("take", A, B, 1, None, 1),
        ("receive", C, B, 1, None, None),
        ("hold", C, B, 1, None, 1),
        ("receive", B, A, 1, None, None),
        ("receive", C, A, 1, None, None),
        ("deliver", C, B, 1, None, 1),
        ("take", C, B, 1, None, 1),
    ]
    assert next(row.deps for row in rows if row.step == "send" and row.src == A) == (0, 0, 0), "not taken yet"


def test_there_is_one_row_of_what_waits_twice() -> None:
    """For what its sender had of the sequencer, then for its place."""
    rows: list[Row] = []
    other = Probe(Sequenced(), me=B, members=4, trace=MemoryTrace(B, 4, rows))
    other.feed(packet(C, 1, put_known(1)), packet(D, 1), packet(A, 1))
    assert [(row.src, row.n) for row in rows if row.step == "hold"] == [(C, 1), (D, 1)]
    assert other.layer.held == WAITS  # type: ignore[attr-defined]


def test_what_comes_next_is_not_taken_back_while_members_come_and_go() -> None:
    sim = Sim("alice", "bob", "cathy", order="total", seed=10, faults=ROUGH, record=False)
    for number in range(30):
        sim[PEOPLE[1 + number % 2 if number > 20 else number % 3]].send(b"%d" % number)
        if number == 10:
            sim.join("dave")
        if number == 20:
            sim["alice"].leave()
        sim.run(sim.now + 0.01)
    sim.run()
    sim.check()
    bob = sim["bob"].texts
    assert sim["cathy"].texts == bob and len(bob) == 30
    assert sim["dave"].texts == bob[-len(sim["dave"].texts) :]


def test_it_has_no_gate_and_no_options_of_its_own() -> None:
    with pytest.raises(UsageError, match="has no gate: what it holds has no place yet that members agree on"):
        probe(A).stack.gate("open", now=0.0)
    for option in ("over", "delta", "window"):
        with pytest.raises(
            UsageError, match=f"'total' has no option '{option}' without objects; it has none of its own"
        ):
            find("total").build(Options(protocol={option: 1}))
    for refused in ({"matrix": True}, {"on_concurrent": "error"}):
        with pytest.raises(UsageError, match=r"is an option of order .*; order 'total' has none"):
            find("total").build(Options(**refused))  # type: ignore[arg-type]


def test_objects_have_an_order_of_their_own() -> None:
    assert [layer.name for layer in find("total").build(LOSSLESS)] == ["bundle", "sequenced", "fragment"]
    assert "object" in [layer.name for layer in find("total").build(Options(objects={"hits": object}))]
    engines = {
        order: (find(order).engine(False), find(order).engine(True))
        for order in ("total", "remiop+total", "vector")
    }
    assert engines == {"total": (False, True), "remiop+total": (True, True), "vector": (False, False)}


def test_relations_are_known_only_while_the_group_is_traced() -> None:
    for traced in (False, True):
        net = Net(2, "total", options=LOSSLESS, traced=traced)
        net.send(A, b"a")
        net.settle()
        net.send(B, b"b")
        net.settle()
        deps = [batch.deps for batch in net.batches[A]]
        assert deps == ([(0, 0), (1, 0)] if traced else [None, None])
        assert all(one.seq <= other.seq for one, other in pairwise(net.batches[A]))
