"""The rules of ReMIOP one by one: every datagram and every moment is in the hands of the test."""

import itertools
from random import Random
from struct import unpack_from
from typing import Any

import pytest

from inga.corba.multicast import reported
from inga.corba.multicast.fragments import MiopFragments, MiopPackets, Piece, Reassembly, quad_of
from inga.corba.multicast.rate import Rate
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.reported import NEW_LIFE
from inga.corba.multicast.requests import Requests
from inga.corba.wire import miop
from inga.corba.wire.miop import STATE, ControlPacket
from inga.model.errors import Gap, UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.stack.stack import Stack
from inga.trace.memory import MemoryTrace

from ...stack.harness import Flight, Net, Top
from .members import Fixed, Members, is_control, number

A, B, C = 0, 1, 2


# Asking


def test_a_hole_is_asked_for_after_a_moment() -> None:
    net = Members(tnack=0.05)
    net.say(A, b"1")
    net.say(A, b"2", but=[B])
    assert net.wake[B] is not None and not net.rows(B, "gap")
    net.say(A, b"3")
    assert net.rows(B, "gap") == [(A, 1)]
    assert net.got(B) == [b"1", b"3"], "what comes is passed on at once"
    assert not net.asked()
    net.wait(0.024)
    assert not net.asked()
    net.wait(0.002)
    assert net.asked(B) == [[2]]
    assert net.controls(miop.NACK)[0].sender == net.senders[B]
    net.wait(0.1)
    assert net.got(B) == [b"1", b"3", b"2"]


def test_the_moment_is_whole_milliseconds_up_to_the_limit() -> None:
    net = Members(2, tnack=0.05)
    strategy = net.strategy(A)
    for share, milliseconds in ((0.0, 0), (0.5, 25), (0.999999, 50)):
        net.stacks[A].rng = Fixed(share)
        assert strategy._chance(0.05) == milliseconds / 1000
    net.stacks[A].rng = Fixed(0.99)
    assert strategy._chance(0.0) == 0


def test_packets_after_the_highest_are_no_gap() -> None:
    net = Members(datagram=40)
    net.send(A, b"123456781234567812345678")
    first, *rest = net.to(B)
    assert [number(first), *map(number, rest)] == [1, 2, 3]
    net.arrive(first)
    assert not net.strategy(B)._streams[net.senders[A]].missing
    net.arrive(rest[1])
    assert list(net.strategy(B)._streams[net.senders[A]].missing) == [2]


def test_one_request_is_pending_and_later_holes_join_it() -> None:
    net = Members(tnack=0.05)
    for message, but in ((b"1", [B]), (b"2", []), (b"3", [B]), (b"4", [])):
        net.say(A, message, but=but)
        net.now += 0.001
    net.wait(0.05)
    assert net.asked(B) == [[1, 3]]


def test_a_row_names_what_is_asked_for_in_ranges() -> None:
    net = Members(2)
    for message, but in ((b"1", [B]), (b"2", []), (b"3", [B]), (b"4", [B]), (b"5", [])):
        net.say(A, message, but=but)
    net.wait(0.05)
    assert [row.note for row in net.traces[B].rows if row.step == "nack"] == ["1, 3-4"]


def test_as_in_the_figure_every_packet_after_a_hole_asks_anew() -> None:
    net = Members(tnack=0.05, one_nack=False)
    for message, but in ((b"1", [B]), (b"2", []), (b"3", [B]), (b"4", [])):
        net.say(A, message, but=but)
        net.now += 0.001
    net.wait(0.05, lose=lambda flight: not is_control(flight))
    asked = net.asked(B)
    assert len(asked) > 1 and asked[0] == [1] and [1, 3] in asked


def test_long_requests_are_split() -> None:
    net = Members(2)
    net.say(A, *[b"x"] * 50, but=[B])
    net.say(A, b"last")
    net.wait(0.05, lose=lambda flight: flight.target == B)
    assert [len(ids) for ids in net.asked(B)] == [40, 10]


# Suppression


def test_who_hears_another_ask_need_not() -> None:
    net = Members(tnack=0.05)
    net.say(A, b"1", but=[B, C])
    net.stacks[B].rng, net.stacks[C].rng = Fixed(0.1), Fixed(0.9)
    net.say(A, b"2")
    net.wait(0.05, lose=lambda flight: not is_control(flight))
    assert net.asked(B) == [[1]] and not net.asked(C)
    assert net.rows(C, "nack_suppressed") == [(A, 1)]
    assert net.stacks[C].counts["nack_suppressed"] == 1
    assert not net.strategy(C)._pending, "nothing is left of it, however often that happens"


def test_only_what_the_other_asked_for_is_left_out() -> None:
    net = Members(tnack=0.05)
    net.say(A, b"1", but=[B, C])
    net.say(A, b"2", but=[C])
    net.stacks[B].rng, net.stacks[C].rng = Fixed(0.1), Fixed(0.9)
    net.say(A, b"3")
    net.wait(0.05, lose=lambda flight: not is_control(flight))
    assert net.asked(B) == [[1]] and net.asked(C) == [[2]]


def test_what_another_asked_for_and_nobody_brought_is_asked_for_after_all() -> None:
    net = Members(tnack=0.05, trepair=0.05)
    net.say(A, b"1", but=[B, C])
    net.stacks[B].rng, net.stacks[C].rng = Fixed(0.1), Fixed(0.9)
    net.say(A, b"2")
    heard = 0.005

    def lost(flight: Flight) -> bool:
        return not is_control(flight) or (flight.source == B and net.now > 0.1)

    net.wait(heard + 0.2, lose=lost)
    assert net.stacks[C].counts["nack_suppressed"] == 1 and not net.asked(C)
    net.wait(0.051, lose=lost)
    assert net.asked(C) == [[1]]


# Repairing


def test_any_member_repairs_bit_for_bit() -> None:
    """The sender is gone, and the one who lost a packet gets it from the other."""
    net = Members(trepair=0.05)
    net.say(A, b"1", but=[C])
    original = next(flight.data for flight in net.log if flight.source == A)
    net.say(A, b"2")
    net.wait(0.2, lose=lambda flight: flight.source == A)
    repairs = [flight for flight in net.log if flight.source == B and not is_control(flight)]
    assert {flight.data for flight in repairs} == {original}
    assert {flight.target for flight in repairs} == {A, C}, "it is multicast"
    assert net.got(C) == [b"2", b"1"]
    assert net.rows(B, "repair") == [(A, 1)], "who repaired, and whose packet"
    assert net.stacks[B].counts["repair_of_others"] == 1


def test_a_repair_that_is_heard_makes_ones_own_unnecessary() -> None:
    net = Members(4, tnack=0.0, trepair=0.05)
    net.say(A, b"1", but=[C])
    net.stacks[A].rng, net.stacks[B].rng, net.stacks[3].rng = Fixed(0.2), Fixed(0.6), Fixed(0.9)
    net.say(A, b"2")
    net.wait(0.2)
    assert [net.stacks[member].counts["repair"] for member in range(4)] == [1, 0, 0, 0]
    assert net.rows(B, "repair_suppressed") == net.rows(3, "repair_suppressed") == [(A, 1)]


def test_who_asks_for_what_was_repaired_just_now_has_not_seen_it_yet() -> None:
    net = Members(2, tnack=0.05, trepair=0.05, repeats=0)
    net.say(A, b"1", but=[B])
    nack = miop.encode_control(miop.ControlPacket(miop.NACK, net.senders[B], ((net.senders[A], 1),)))
    for pause, repairs in ((0.03, 1), (0.03, 1), (0.1, 1), (0.03, 2)):
        net.inject(A, nack)
        net.wait(pause)
        assert net.stacks[A].counts["repair"] == repairs
    net = Members(2, tnack=0.05, trepair=0.05, repeats=0, spare=0)
    net.say(A, b"1", but=[B])
    for repairs in (1, 2, 3):
        net.inject(A, nack)
        net.wait(0.03)
        assert net.stacks[A].counts["repair"] == repairs


def test_repairs_leave_a_few_at_a_time() -> None:
    net = Members(2, tnack=0.0, trepair=0.0, burst=3, state_interval=100)
    net.say(A, *[b"x"] * 10, but=[B])
    net.say(A, b"last")
    net.tick(B)
    net.settle()
    counts = []
    while net.stacks[A].counts["repair"] < 10:
        net.now += 0.001
        net.tick(A)
        counts.append(net.stacks[A].counts["repair"])
    assert counts == [3, 6, 9, 10]


@pytest.mark.parametrize("od", [0, 2])
def test_a_member_repairs_a_packet_at_most_once_more_than_the_omission_degree(od: int) -> None:
    net = Members(2, tnack=0.0, trepair=0.0, od=od, repeats=6, on_gap="skip")
    net.say(A, b"1", but=[B])
    net.say(A, b"2")
    net.wait(20, lose=lambda flight: flight.target == B and not is_control(flight))
    assert net.stacks[A].counts["repair"] == od + 1
    assert net.stacks[A].counts["od_exceeded"] == 6 - od


def test_without_an_omission_degree_there_is_no_limit() -> None:
    net = Members(2, tnack=0.0, trepair=0.0, repeats=30, on_gap="skip")
    net.say(A, b"1", but=[B])
    net.say(A, b"2")
    net.wait(100, lose=lambda flight: flight.target == B and not is_control(flight))
    assert net.stacks[A].counts["repair"] == 31


def test_what_is_kept_outlives_the_readers_buffer() -> None:
    net = Members(2)
    net.send(A, b"kept")
    (flight,) = net.to(B)
    shared = bytearray(flight.data)
    net.stacks[B].receive([(memoryview(shared), None)], now=net.now)
    shared[:] = bytes(len(shared))
    (packet,) = net.strategy(B)._streams[net.senders[A]].buffer.values()
    assert b"kept" in bytes(packet.body)


def test_what_fell_out_of_the_buffer_is_not_repaired() -> None:
    net = Members(2, size=3, wait=False, on_gap="skip")
    net.say(A, *[b"%d" % k for k in range(1, 6)])
    assert list(net.strategy(A)._own) == [3, 4, 5]
    assert list(net.strategy(B)._streams[net.senders[A]].buffer) == [3, 4, 5]
    for wanted, repairs in ((2, 0), (3, 1)):
        nack = miop.encode_control(miop.ControlPacket(miop.NACK, net.senders[B], ((net.senders[A], wanted),)))
        net.inject(A, nack)
        net.wait(0.1)
        assert net.stacks[A].counts["repair"] == repairs


# Giving up


def test_requests_are_repeated_each_after_twice_the_wait() -> None:
    net = Members(2, chance=0.0, tnack=0.05, trepair=0.05, repeats=6, on_gap="skip", state_interval=100)
    net.say(A, b"1", but=[B])
    net.say(A, b"2")
    at = []
    before = 0
    for _ in range(1000):
        net.wait(0.01, lose=lambda flight: flight.target == B and not is_control(flight))
        if len(net.asked(B)) > before:
            before = len(net.asked(B))
            at.append(net.now)
    assert len(at) == 7
    assert [round(b - a, 1) for a, b in itertools.pairwise(at)] == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert net.stacks[B].counts["unrecoverable"] == 1
    assert net.rows(B, "gave_up") == [(A, 1)]
    assert net.errors[B] is None


def test_repetition_can_be_switched_off() -> None:
    net = Members(2, repeats=0)
    net.say(A, b"1", but=[B])
    net.say(A, b"2")
    net.wait(60, lose=lambda flight: flight.target == B and not is_control(flight))
    assert len(net.asked(B)) == 1


def test_a_group_fails_of_a_packet_that_is_lost_for_good() -> None:
    net = Members(2, repeats=2, tnack=0.0, trepair=0.0)
    net.say(A, b"1", but=[B])
    net.say(A, b"2")
    net.wait(5, lose=lambda flight: flight.target == B and not is_control(flight))
    assert isinstance(net.errors[B], Gap)
    assert str(net.errors[B]) == "packet 1 of alice is lost for good: nobody who has it repaired it"


def test_holes_older_than_the_buffer_are_not_asked_for() -> None:
    net = Members(2, size=3, wait=False, on_gap="skip", tnack=0.0)
    trace = net.stacks[B].trace = MemoryTrace(B, 2)
    net.say(A, b"1")
    net.say(A, *[b"x"] * 6, but=[B])
    net.say(A, b"8")
    net.wait(0.01, lose=lambda flight: flight.target == B)
    assert net.asked(B) == [[6, 7]]
    assert net.stacks[B].counts["unrecoverable"] == 4
    assert [row.n for row in trace.rows if row.step == "gap"] == [2]


def test_a_message_is_given_up_with_its_last_packet() -> None:
    net = Members(2, datagram=40, repeats=3, on_gap="skip", tnack=0.0, trepair=0.0)
    fragments = net.stacks[B].layer("fragments")
    assert isinstance(fragments, MiopFragments)
    net.send(A, b"1234567812345678")
    net.wait(4.0, lose=lambda flight: not is_control(flight) and number(flight) == 2)
    assert net.stacks[B].counts["unrecoverable"] == 1
    assert net.now - net.stacks[B].heard[A] < 1.0, "its sender is there, but has nothing more to say"
    assert fragments.reassembly.open == 0


# Where a stream begins


class Open(Net):
    """Requests of anybody to anybody: strangers to each other."""

    def __init__(self, members: int = 2, datagram: int = 40, **options: Any) -> None:
        super().__init__(members, build=lambda: [Top(), MiopPackets()])
        self.senders = [(127 << 24) + 100 + member for member in range(members)]
        for member, sender in enumerate(self.senders):
            options = {"on_gap": "skip", "first": 7 * NEW_LIFE} | options
            layers = [
                Top(),
                MiopFragments(datagram=datagram, first=options["first"]),
                ReMiop(**options),
                MiopPackets(sender=sender),
            ]
            self.stacks[member] = Stack(layers, 0, View.of(miop.quad(sender)), rng=Fixed(0.0))

    def turn(self, member: int) -> None:
        ready = self.stacks[member].ready()
        self.wake[member] = ready.wake
        for _, datagram in ready.send:
            for target in range(len(self.stacks)):
                if target != member:
                    self.under_way.append(Flight(member, target, bytes(datagram)))  # type: ignore[arg-type]
                    self.log.append(self.under_way[-1])

    def asked(self, member: int) -> list[list[int]]:
        said = [flight for flight in self.log if flight.source == member and is_control(flight)]
        controls = [miop.decode_control(miop.decode(flight.data)) for flight in said]
        first = 7 * NEW_LIFE
        return [[n - first for _, n in each.entries] for each in controls if each.kind == miop.NACK]


LONG = bytes(range(24))  # three packets


@pytest.mark.parametrize(
    ("baseline", "asked"), [("collection", [3]), ("packet", []), ("start", [0, 1, 2, 3])]
)
def test_the_baseline_of_a_stranger(baseline: str, asked: list[int]) -> None:
    net = Open(baseline=baseline)
    net.send(A, LONG)
    net.send(A, LONG)
    flights = net.to(B)
    net.lose(lambda flight: True)
    net.arrive(flights[4], flights[5])
    net.wait(0.01, lose=lambda flight: not is_control(flight))
    assert net.asked(B) == ([asked] if asked else [])
    if asked:
        net.wait(0.5)
        assert len(net.stacks[B].layers[0].got) == (2 if baseline == "start" else 1)  # type: ignore[attr-defined]


def test_somebody_of_whom_nothing_came_at_all() -> None:
    """With the start as baseline, its own report shows that there is something."""
    for baseline, came in (("start", 1), ("collection", 0)):
        net = Open(baseline=baseline)
        net.send(A, LONG)
        net.lose(lambda flight: True)
        net.wait(2)
        assert len(net.stacks[B].layers[0].got) == came  # type: ignore[attr-defined]


def test_a_sender_that_was_started_again_is_a_new_one() -> None:
    net = Open()
    net.send(A, b"before")
    net.settle()
    again = Open(first=9 * NEW_LIFE)
    again.send(A, b"after")
    net.inject(B, again.to(B)[0].data)
    net.wait(1)
    assert net.stacks[B].counts["new_life"] == 1
    assert not net.asked(B) and not net.stacks[B].counts["unrecoverable"]
    assert len(net.stacks[B].layers[0].got) == 2  # type: ignore[attr-defined]


def test_members_who_announce_their_first_number() -> None:
    net = Members(2, announced=True, state_interval=0.1)
    net.say(A, b"1", but=[B])
    net.say(A, b"2")
    net.wait(0.5)
    assert not net.got(B) and not net.controls(miop.STATE, B), "it cannot say how far it is"
    assert net.strategy(A)._everywhere == 0
    net.strategy(B).introduced(A, {"first": 1})
    net.turn(B)
    net.wait(1.0)
    assert sorted(net.got(B)) == [b"1", b"2"]
    assert net.strategy(A)._everywhere == 2


# The end of what was said


def test_a_lost_last_packet_shows_in_the_senders_report() -> None:
    net = Members(2, state_interval=0.5)
    net.say(A, b"1")
    net.say(A, b"2", but=[B])
    net.wait(0.3)
    assert not net.asked()
    net.wait(0.6)
    assert net.asked(B) == [[2]]
    assert net.got(B) == [b"1", b"2"]


def test_a_lost_last_packet_shows_in_anybodys_report() -> None:
    net = Members(3, state_interval=0.5)
    net.say(A, b"1")
    net.say(A, b"2", but=[C])
    net.wait(1.0, lose=lambda flight: flight.source == A)
    assert net.got(C) == [b"1", b"2"]
    assert net.stacks[B].counts["repair_of_others"] == 1


def test_the_tail_can_be_switched_off() -> None:
    net = Members(2, tail=False)
    net.say(A, b"1", b"2", but=[B])
    net.wait(60)
    assert not net.got(B) and not net.asked()


def test_a_report_beyond_belief_is_counted() -> None:
    net = Members(2)
    net.inject(
        B, miop.encode_control(miop.ControlPacket(miop.STATE, net.senders[A], ((net.senders[A], 1 << 40),)))
    )
    assert net.stacks[B].rejected["state"] == 1
    net.wait(5)
    assert not net.asked()


# Reports


def test_reports_go_on_for_five_seconds_and_say_all() -> None:
    net = Members(3, state_interval=0.5)
    net.say(A, b"1")
    net.say(B, b"2")
    net.quiet()
    a, b, _ = net.senders
    for member in range(3):
        said = net.controls(miop.STATE, member)
        assert len(said) in (10, 11)
        assert sorted(said[-1].entries) == [(a, 1), (b, 1)]


def test_after_many_packets_a_report_comes_early() -> None:
    net = Members(2, size=64, state_interval=100)
    net.say(A, *[b"x"] * 8)
    assert [control.entries for control in net.controls(miop.STATE, B)] == [((net.senders[A], 8),)]
    net = Members(2, size=64, state_interval=100, state_every=0)
    net.say(A, *[b"x"] * 30)
    assert not net.controls(miop.STATE, B)


def test_a_report_stops_at_the_first_hole() -> None:
    net = Members(2, state_interval=0.1, tnack=1.0)
    net.say(A, b"1")
    net.say(A, b"2", but=[B])
    net.say(A, b"3")
    net.wait(0.12)
    assert net.controls(miop.STATE, B)[0].entries == ((net.senders[A], 1),)


def test_a_reader_far_behind_reports_no_progress() -> None:
    net = Members(2, state_interval=0.1, queue_max=100)
    net.say(A, b"1")
    net.wait(0.12)
    net.stacks[B].queued = 100
    net.say(A, b"2")
    net.wait(0.12)
    net.stacks[B].queued = 40
    net.stacks[B].taken([], now=net.now)
    net.turn(B)
    numbers = [control.entries[0][1] for control in net.controls(miop.STATE, B)]
    assert numbers[-2:] == [1, 2]


def test_who_lags_is_asked_and_answers_though_all_is_quiet() -> None:
    """All reports of B are lost for as long as there is talk: A goes on asking, and B answers."""
    net = Members(2, state_interval=0.5)
    net.say(A, b"1")
    net.wait(5.4, lose=lambda flight: flight.source == B)
    assert net.wake[B] is None and net.strategy(A)._everywhere == 0
    said = len(net.controls(miop.STATE, B))
    net.quiet()
    assert len(net.controls(miop.STATE, B)) == said + 1
    assert net.strategy(A)._everywhere == 1


def test_receipts_are_confirmed_by_reports() -> None:
    net = Members(3, state_interval=0.1)
    receipt = net.send(A, b"1")
    net.settle()
    assert not receipt.has("confirmed")
    net.wait(0.12, lose=lambda flight: flight.source == C)
    assert not receipt.has("confirmed")
    net.wait(0.2)
    assert receipt.has("confirmed")


# The window and the rate


def test_nobody_outruns_the_buffers_of_those_who_lack_something() -> None:
    net = Members(2, size=4, state_interval=0.1)
    for _ in range(4):
        net.send(A, b"x")
    assert net.stacks[A].writable and not net.stacks[A].passable
    net.send(A, b"x")
    assert not net.stacks[A].writable
    assert net.rows(A, "window_closed") == [(None, 4)]
    net.lose(lambda flight: number(flight) == 1)
    net.settle()
    assert net.strategy(A).waiting == 1, "the first is not reported yet"
    net.wait(1.0)
    assert len(net.got(B)) == 5 and net.stacks[A].writable


def test_packets_keep_to_the_rate() -> None:
    net = Members(2, rmin=100_000, rmax=100_000, slack=0, datagram=1472)
    net.send(A, bytes(1440 * 4))
    times = {1: 0.0}
    while len(times) < 4:
        wake = net.wake[A]
        assert wake is not None
        net.now = wake
        before = len(net.log)
        net.tick(A)
        for flight in net.log[before:]:
            if not is_control(flight):
                times[number(flight)] = net.now
    assert [times[k] for k in (1, 2, 3, 4)] == pytest.approx([0, 0.11776, 0.23552, 0.35328])


def test_who_keeps_to_the_rate_has_not_said_everything() -> None:
    net = Members(2, rmin=1000, rmax=1000, state_interval=0.1)
    net.send(A, b"1")
    net.send(A, b"2")
    net.wait(0.2)
    assert net.got(B) == [b"1"] and net.strategy(A).outstanding == 0
    assert not net.strategy(A).settled
    net.quiet()
    assert net.strategy(A).settled


def test_reports_and_requests_set_the_rate(strategy: type[ReMiop] = ReMiop) -> None:
    paced = {"rmin": 10_000, "rmax": 110_000, "slack": 1e5}
    net = Members(2, strategy=strategy, size=100, state_interval=1000, state_every=0, **paced)
    rate = net.strategy(A).rate
    a, b = net.senders
    for _ in range(9):
        net.say(A, b"x")
    net.inject(A, miop.encode_control(miop.ControlPacket(miop.STATE, b, ((a, 1),))))
    assert rate.lag == 8
    rate.lag = 0
    net.inject(A, miop.encode_control(miop.ControlPacket(miop.NACK, b, ((a, 3), (a, 2)))))
    assert rate.lag == 8
    net.inject(A, miop.encode_control(miop.ControlPacket(miop.NACK, b, ((a, 1), (a, 10)))))
    assert rate.lag == 8, "it has the one, and the other was never sent"
    net.say(A, b"x")
    assert rate.now == 70_000 and net.rows(A, "rate") == [(None, 70_000)]
    for _ in range(50):
        net.say(A, b"x")
    net.inject(A, miop.encode_control(miop.ControlPacket(miop.STATE, b, ((a, 9),))))
    for _ in range(10):
        net.say(A, b"x")
    assert rate.now == 10_000


class DeafToReports(ReMiop):
    """What a STATE says is not passed to the rate."""

    def _hear_report(self, control: miop.ControlPacket) -> None:
        rate, self.rate = self.rate, Rate(1, 1, self.size)
        super()._hear_report(control)
        self.rate = rate


class DeafToRequests(ReMiop):
    """Nor is what a NACK says."""

    def _hear_request(self, control: miop.ControlPacket) -> None:
        rate, self.rate = self.rate, Rate(1, 1, self.size)
        super()._hear_request(control)
        self.rate = rate


class TakesNumbersForLags(ReMiop):
    """The more a receiver has, the further behind it seems to be."""

    def _hear_report(self, control: miop.ControlPacket) -> None:
        super()._hear_report(control)
        self.rate.lag = max(number for _, number in control.entries)


@pytest.mark.parametrize("broken", [DeafToReports, DeafToRequests, TakesNumbersForLags])
def test_a_rate_that_does_not_hear_is_noticed(broken: type[ReMiop]) -> None:
    with pytest.raises(AssertionError):
        test_reports_and_requests_set_the_rate(broken)


def test_repairs_are_not_paced() -> None:
    """They leave when they are due, and what is new does not leave later because of them."""
    net = Members(2, rmin=1000, rmax=1000, tnack=0.0, trepair=0.0)
    net.say(A, b"x", but=[B])
    free_at = net.strategy(A).rate.free_at
    assert free_at > 0.2
    net.wait(0.1)
    a, b = net.senders
    net.inject(A, miop.encode_control(miop.ControlPacket(miop.NACK, b, ((a, 1),))))
    net.wait(0.01)
    assert net.stacks[A].counts["repair"] == 1
    assert net.strategy(A).rate.free_at == free_at


# Others


def test_our_own_packets_come_back() -> None:
    net = Members(2)
    net.say(A, b"1")
    own = next(flight.data for flight in net.log if flight.source == A)
    net.inject(A, own)
    assert not net.got(A) and not net.strategy(A)._streams[net.senders[B]].buffer
    assert net.senders[A] not in net.strategy(A)._streams


FOREIGN = bytes(range(12))


def test_foreign_packets_are_passed_on_and_never_asked_for() -> None:
    net = Members(2)
    _first, _, third = miop.split(bytes(100), FOREIGN, payload_max=40)
    net.inject(B, third)
    net.wait(5)
    assert not net.asked()
    net = Members(2)
    for datagram in miop.split(bytes(100), FOREIGN, payload_max=40):
        net.inject(B, datagram, datagram)
    assert net.got(B) == [bytes(100)]
    net.inject(
        A, miop.encode_control(miop.ControlPacket(miop.NACK, net.senders[B], ((net.senders[B] + 7, 1),)))
    )
    net.wait(1)
    assert not net.stacks[A].counts["repair"]


def test_senders_that_are_no_members_have_no_part_in_it() -> None:
    net = Members(2)
    stranger = miop.numbered_id((127 << 24) + 99, 5)
    net.inject(B, miop.encode(stranger, 0, 1, b"hello", flags=miop.STOP))
    assert net.got(B) == [b"hello"]
    assert (127 << 24) + 99 not in net.strategy(B)._streams


def test_a_member_cannot_jump_ahead_without_end() -> None:
    net = Members(2)
    net.inject(B, miop.encode(miop.numbered_id(net.senders[A], 1 << 40), 0, 1, b"x", flags=miop.STOP))
    assert net.stacks[B].rejected["lsn"] == 1


@pytest.mark.parametrize("forged", [1 << 40, 3 << 16])
def test_where_a_member_begins_is_for_that_member_to_say(forged: int) -> None:
    """Not for anybody who uses its number; nor for its own packets of an earlier life."""
    first = 9 << 16
    net = Members(2, announced=True, first=first, state_interval=0.1, tnack=0.01)
    forgery = miop.encode(miop.numbered_id(net.senders[A], forged), 0, 1, b"x", flags=miop.STOP)
    net.inject(B, forgery)
    net.say(A, b"1")
    net.strategy(B).introduced(A, {"first": first})
    net.inject(B, forgery)
    net.say(A, b"2")
    net.wait(1.0)
    assert sorted(net.got(B)) == [b"1", b"2"] and net.stacks[B].rejected["lsn"] == 1
    assert net.strategy(A)._everywhere == first + 1


class PlainMiop:
    """A receiver that knows the header of MIOP, and of ReMIOP nothing: it puts messages together by id, number and count."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.reassembly = Reassembly(lambda _: None)

    def receive(self, datagram: bytes) -> None:
        _, _, flags, _, number, count, id_size = unpack_from(">4sBBHIII", datagram)
        unique_id, payload = datagram[20 : 20 + id_size], datagram[20 + id_size + -(20 + id_size) % 8 :]
        piece = Piece(unique_id, 0, 0, number, count, bool(flags & miop.STOP), 0)
        message = self.reassembly.add(piece, payload, 0.0)
        if message is not None:
            self.got.append(bytes(message))


def test_plain_receivers_ignore_what_strategies_say() -> None:
    """Others, which keep one message in mind that is never whole; and ours, which know the flag."""
    sender = quad_of(0, 1)
    said = [miop.ControlPacket(kind, sender, ((sender, 1),)) for kind in (miop.NACK, miop.STATE, miop.NACK)]
    others = PlainMiop()
    ours = Stack([Top(), MiopFragments(), MiopPackets()], 0, View.of("a", "b"), rng=Fixed(0.0))
    for each in said:
        datagram = miop.encode_control(each)
        others.receive(datagram)
        ours.receive([(datagram, None)], now=0)
    assert not others.got and others.reassembly.open == 1
    assert not ours.rejected and ours.ready().wake is None


WRONG_CONTROL: dict[str, dict[str, Any]] = {
    "no flag": {"flags": 0},
    "of 1": {"count": 1},
    "number 1": {"number": 1},
    "an id of its own": {"unique_id": FOREIGN},
}
"""What a control packet has instead of what it should have."""


@pytest.mark.interpreted  # as a function of a compiled module is replaced
@pytest.mark.parametrize("wrong", WRONG_CONTROL)
def test_control_packets_that_are_not_ignored_are_noticed(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(unique_id: bytes, number: int, count: int, payload: bytes, *, flags: int) -> bytes:
        fields = {"unique_id": unique_id, "number": number, "count": count, "flags": flags}
        return right(payload=payload, **{**fields, **WRONG_CONTROL[wrong]})

    right = miop.encode
    monkeypatch.setattr(miop, "encode", encode)
    with pytest.raises(AssertionError):
        test_plain_receivers_ignore_what_strategies_say()


def test_anybody_may_speak_to_an_open_group(fragments: type[MiopFragments] = MiopFragments) -> None:
    """Also one that is in no view; and nobody answers."""
    for unique_id in (FOREIGN, miop.numbered_id((127 << 24) + 99, 5)):
        top = Top()
        stack = Stack([top, fragments(), MiopPackets()], 0, View.of("a", "b"), rng=Fixed(0.0))
        stack.receive([(each, None) for each in miop.split(bytes(100), unique_id, payload_max=40)], now=0)
        assert [bytes(packet.body) for packet in top.got] == [bytes(100)]
        assert not stack.ready().send


class MembersOnly(MiopFragments):
    """Listens to members of the view alone."""

    def up(self, batch: list[Packet]) -> None:
        super().up([packet for packet in batch if packet.src >= 0])


def test_a_closed_group_is_noticed() -> None:
    with pytest.raises(AssertionError):
        test_anybody_may_speak_to_an_open_group(MembersOnly)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"size": 0}, "size is a whole number"),
        ({"tnack": -1}, "tnack is a number of seconds"),
        ({"od": -1}, "od is a whole number"),
        ({"baseline": "middle"}, "baseline is collection or packet or start, not 'middle'"),
        ({"on_gap": "cry"}, "on_gap is fail or skip"),
        ({"rmin": 10, "rmax": 5}, "rmin is at most rmax"),
        ({"state_interval": 0}, "state_interval is a number of seconds above 0"),
    ],
)
def test_options_that_are_none(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ReMiop(**options)


def test_nothing_that_may_still_be_repaired_is_given_up_by_reassembly() -> None:
    net = Members(4, size=100, tnack=0.05, trepair=0.05, repeats=16, rmin=10_000, rmax=20_000)
    fragments = net.stacks[A].layer("fragments")
    assert isinstance(fragments, MiopFragments)
    give_up = sum(min(0.2 * 2**times, 2.0) + 0.05 for times in range(17))
    assert fragments.reassembly.collect == pytest.approx(give_up)
    assert fragments.reassembly.collections_max == 300
    slow = Members(2, repeats=0, rmin=1000, rmax=1000).stacks[A].layer("fragments")
    assert isinstance(slow, MiopFragments)
    assert slow.reassembly.collect == pytest.approx(4 * 8 * 1472 / 1000), "four packets at the slowest rate"
    plain = Stack([Top(), MiopFragments(), MiopPackets()], 0, View.of("a", "b"), rng=Fixed(0.0))
    alone = plain.layer("fragments")
    assert isinstance(alone, MiopFragments)
    assert (alone.reassembly.collect, alone.reassembly.collections_max) == (1.0, 64)


def test_bounds_of_what_nobody_repairs_are_as_told() -> None:
    fragments = MiopFragments(collect=2.0, collections_max=3, octets_max=100_000)
    Stack([Top(), fragments, MiopPackets()], 0, View.of("a", "b"), rng=Fixed(0.0))
    kept = fragments.reassembly
    assert (kept.collect, kept.collections_max, kept.octets_max) == (2.0, 3, 100_000)


# Requests of an ORB


def test_what_is_no_oneway_request_is_neither_sent_nor_passed_on() -> None:
    sender = (127 << 24) + 1
    stack = Stack(
        [Requests(), MiopFragments(), ReMiop(), MiopPackets(sender=sender)],
        0,
        View.of("127.0.0.1"),
        rng=Fixed(0.0),
    )
    with pytest.raises(UsageError, match="not a oneway request to a group: bad_giop"):
        stack.send(b"hello", now=0)
    stack.receive([(miop.encode(FOREIGN, 0, 1, b"not GIOP at all", flags=miop.STOP), None)], now=0)
    assert stack.rejected["bad_giop"] == 1
    assert not stack.ready().deliver


def test_a_sender_that_is_silent_for_long_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who serves for long hears very many clients. One that comes back after all is followed again, and nothing of it comes twice."""
    monkeypatch.setattr(reported, "SENDERS_MAX", 3)
    top, strategy = Top(), ReMiop(baseline="start")
    layers = [top, MiopFragments(), strategy, MiopPackets(sender=quad_of(0, 0))]
    stack = Stack(layers, 0, View.of("server"), rng=Random(0))
    clients = [quad_of(1, k) for k in range(5)]
    first, *others = clients
    life = 1 << 16

    def hear(sender: int, number: int, now: float) -> int:
        """How many messages come of this packet."""
        before = len(top.got)
        message = miop.split(b"GIOP", miop.numbered_id(sender, life + number))[0]
        stack.receive([(message, None)], now=now)
        return len(top.got) - before

    assert [hear(sender, 0, now=0.0) for sender in clients[:3]] == [1, 1, 1]
    assert hear(others[0], 1, now=1.0) == hear(others[1], 1, now=1.0) == 1
    assert hear(others[2], 0, now=2.0) == 1 and others[2] not in strategy._streams
    assert hear(others[2], 1, now=100.0) == 1 and first not in strategy._streams
    assert list(strategy._streams) == others[:3]
    assert hear(first, 0, now=200.0) == 0, "it came before"
    assert hear(first, 2, now=200.0) == 1 and list(strategy._streams[first].missing) == [life + 1]
    assert len(strategy._streams) == 3
    word = ControlPacket(STATE, others[0], ((others[0], life + 2),))
    assert others[0] not in strategy._streams
    stack.receive([(miop.encode_control(word), None)], now=300.0)
    assert list(strategy._streams[others[0]].missing) == [life + 2], "only what is new is asked for"
    assert others[1] not in strategy._streams
    word = ControlPacket(STATE, others[1], ((others[1], 9 * life),))
    stack.receive([(miop.encode_control(word), None)], now=400.0)
    assert list(strategy._streams[others[1]].missing) == [9 * life], "it was started again"
