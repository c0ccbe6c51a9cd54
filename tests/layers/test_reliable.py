"""Gaps, questions, repairs, heartbeats, receipts: with every datagram and every moment in hand."""

from itertools import pairwise
from random import Random

import pytest

from inga.layers.reliable import CROWD, LSN_WINDOW, REPLAYED, Reliable, ReliableSettings
from inga.model.errors import Gap
from inga.model.packet import DATA, Packet
from inga.model.receipt import Receipt
from inga.recipes import Options
from inga.sim.simulator import Sim
from inga.stack.budget import ANSWERS, ANSWERS_MAX
from inga.stack.stack import joined
from inga.wire.packet import encode

from ..stack.harness import RELIABLE, Flight, Net

DELAY = ReliableSettings().nack_delay
BEAT = ReliableSettings().heartbeat
REPORT = ReliableSettings().report_delay


def lossy(members: int = 2, **more: float) -> Net:
    """A group in which every send is a packet of its own, so that several are under way."""
    net = Net(members, options=Options(reliable=more))
    for stack in net.stacks:
        stack.layers[0].gather = False  # type: ignore[attr-defined]
    return net


def layer(net: Net, member: int) -> Reliable:
    found = net.stacks[member].layer("reliable")
    assert isinstance(found, Reliable)
    return found


def nacks(net: Net) -> list[Packet]:
    return [packet for packet in net.packets(net.log) if packet.runs]


# Holes


def test_a_gap_is_asked_for_and_repaired_with_the_same_bytes() -> None:
    net = lossy(3)
    for text in (b"one", b"two", b"three"):
        net.send(0, text)
    one, two, three = net.to(1)
    net.under_way.remove(two)
    net.arrive(one, three)
    net.arrive(*net.to(2))
    assert net.texts(1) == ["one"]
    net.under_way.clear()
    before = len(net.log)
    assert net.wake[1] == DELAY
    net.now = DELAY
    net.tick(1)
    (question,) = net.under_way
    assert (question.source, question.target, question.kind) == (1, 0, RELIABLE)
    assert net.packets([question])[0].runs == ((2, 3),)
    net.arrive(question)
    (repair,) = net.under_way
    assert repair == two, "the same bytes, to the one who asked"
    net.arrive(repair)
    assert net.texts(1) == ["one", "two", "three"]
    assert len(net.log) - before == 2
    assert net.stacks[0].counts["repair"] == net.stacks[1].counts["nack"] == 1
    net.quiet()


def test_a_packet_that_was_only_overtaken_is_not_asked_for() -> None:
    net = lossy()
    net.send(0, b"one")
    net.send(0, b"two")
    one, two = net.to(1)
    net.arrive(two)
    assert net.wake[1] == DELAY
    net.now = DELAY / 2
    net.arrive(one)
    net.quiet()
    assert nacks(net) == []
    assert net.texts(1) == ["one", "two"]


def test_several_holes_are_one_question() -> None:
    net = lossy()
    for number in range(10):
        net.send(0, b"%d" % number)
    flights = net.to(1)
    net.under_way.clear()
    net.arrive(*(flights[i] for i in (0, 3, 4, 8)))
    net.under_way.clear()
    net.now = DELAY
    net.tick(1)
    (question,) = nacks(net)
    assert question.runs == ((2, 4), (6, 9))


def test_a_question_is_repeated_with_growing_pauses() -> None:
    net = lossy(nack_again=0.01, nack_again_max=0.1, patience=2.0)
    net.send(0, b"one")
    net.send(0, b"two")
    _, two = net.to(1)
    net.under_way.clear()
    net.arrive(two)
    times = []
    while net.errors[1] is None:
        net.under_way.clear()
        assert net.wake[1] is not None
        net.now = net.wake[1]
        asked = net.stacks[1].counts["nack"]
        net.tick(1)
        if net.stacks[1].counts["nack"] > asked:
            times.append(net.now)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert 0.01 <= pauses[0] <= 0.015
    assert 0.02 <= pauses[1] <= 0.03
    assert 0.04 <= pauses[2] <= 0.06
    assert all(0.1 <= pause <= 0.15 for pause in pauses[4:])
    assert len(pauses) > 10


def test_a_lost_question_and_a_lost_repair() -> None:
    net = lossy()
    net.send(0, b"one")
    net.send(0, b"two")
    net.under_way.remove(net.to(1)[0])
    lost = []

    def lose(flight: Flight) -> bool:
        """The first question, then the first repair."""
        wanted = (1, RELIABLE) if not lost else (0, 0)
        found = len(lost) < 2 and (flight.source, flight.kind) == wanted
        found = found and (flight.kind == 0 or bool(net.packets([flight])[0].runs))
        lost.extend([flight] * found)
        return found

    net.arrive(net.to(1)[0])
    net.wait(5.0, lose)
    assert [flight.kind for flight in lost] == [RELIABLE, 0]
    assert net.texts(1) == ["one", "two"]
    net.quiet()


def test_a_repair_on_its_way_is_not_sent_again() -> None:
    net = lossy()
    net.send(0, b"one")
    net.under_way.clear()
    question = Packet(1, 1, kind=RELIABLE)
    question.runs = ((1, 2),)
    asked = joined(encode(question, net.stacks[0].group))
    net.inject(0, asked, asked)
    net.inject(0, asked)
    assert len(net.to(1, kind=0)) == 1, "two questions at one time, one answer"
    net.now += DELAY
    net.inject(0, asked)
    assert len(net.to(1, kind=0)) == 1, "nobody asks again so soon"
    net.now += ReliableSettings().nack_again / 2
    net.inject(0, asked)
    assert len(net.to(1, kind=0)) == 2
    assert net.stacks[0].counts["repair"] == 2


def test_repairs_for_one_question_have_a_bound() -> None:
    net = lossy(repairs_max=5)
    for number in range(20):
        net.send(0, b"%d" % number)
    last = net.to(1)[-1]
    net.under_way.clear()
    net.arrive(last)
    net.under_way.clear()
    net.now = DELAY
    net.tick(1)
    net.arrive(*net.to(0))
    assert len(net.to(1, kind=0)) == 5
    net.quiet()
    assert net.texts(1) == [str(number) for number in range(20)]


def test_repairs_are_remembered_until_all_have_what_was_repaired_or_are_gone() -> None:
    net = lossy(3)
    net.send(0, b"one")
    net.under_way.clear()
    for member in (1, 2):
        question = Packet(member, 1, kind=RELIABLE)
        question.runs = ((1, 2),)
        net.inject(0, joined(encode(question, net.stacks[0].group)))
    assert layer(net, 0)._repaired.keys() == {(1, 1), (2, 1)}
    layer(net, 0).gone(2)
    assert layer(net, 0)._repaired.keys() == {(1, 1)}
    net.quiet()
    assert not layer(net, 0)._repaired


def test_only_what_is_not_everywhere_is_kept_for_repair() -> None:
    net = lossy(3)
    net.send(0, b"one")
    net.settle()
    net.wait(1.0)
    question = Packet(1, 1, kind=RELIABLE)
    question.runs = ((1, 2),)
    net.inject(0, joined(encode(question, net.stacks[0].group)))
    assert net.under_way == [], "whoever asks for it has it already"
    assert layer(net, 0)._sent == {}


# Ends


def test_a_lost_last_packet_is_found_by_the_heartbeat() -> None:
    net = Net(3)
    net.send(0, b"one")
    net.lose(lambda flight: flight.target == 1)
    net.settle()
    assert net.texts(1) == [] and net.texts(2) == ["one"]
    net.wait(REPORT)
    assert net.wake == [BEAT, None, None]
    net.now = BEAT
    net.tick(0)
    (beat,) = net.to(1)
    assert (net.packets([beat])[0].lsn, net.packets([beat])[0].asks) == (1, True)
    net.wait(0.1)
    assert net.texts(1) == ["one"]
    net.quiet()


def test_a_lost_acknowledgement_is_asked_for() -> None:
    net = Net(2)
    receipt = net.send(0, b"one")
    net.arrive(*net.to(1))
    assert net.lose(lambda flight: flight.source == 1)
    assert not receipt.has("confirmed")
    net.wait(1.0)
    assert receipt.has("confirmed")
    assert len([flight for flight in net.log if flight.kind == 0]) == 1, "nothing needed repair"
    net.quiet()


def test_heartbeats_grow_rare_while_nobody_answers() -> None:
    net = Net(2)
    net.send(0, b"one")
    times = []
    for _ in range(12):
        net.under_way.clear()
        assert net.wake[0] is not None
        net.now = net.wake[0]
        times.append(net.now)
        net.tick(0)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert all(0.9 * earlier <= later for earlier, later in pairwise(pauses) if later < 1)
    assert 0.04 <= pauses[0] <= 0.05
    assert all(1.0 <= pause <= 1.25 for pause in pauses[-4:])


def test_a_duplicate_is_acknowledged_again() -> None:
    """The acknowledgement may have been lost."""
    net = Net(2)
    net.send(0, b"one")
    (flight,) = net.to(1)
    net.arrive(flight)
    net.under_way.clear()
    net.inject(1, flight.data)
    (answer,) = net.under_way
    assert net.packets([answer])[0].ack == (1, 0)
    assert net.texts(1) == ["one"]


def test_many_arrivals_in_one_turn_are_one_acknowledgement() -> None:
    net = lossy()
    for number in range(10):
        net.send(0, b"%d" % number)
    data = [flight.data for flight in net.to(1)]
    net.under_way.clear()
    net.stacks[1].receive([(each, None) for each in data], now=0.0)
    net.stacks[1].want_report()
    net.turn(1)
    (answer,) = net.under_way
    assert net.packets([answer])[0].ack == (10, 0)


def test_an_acknowledgement_rides_on_data_of_the_same_turn() -> None:
    net = Net(2)
    net.send(0, b"question")
    (flight,) = net.to(1)
    net.under_way.clear()
    net.stacks[1].receive([(flight.data, None)], now=0.0)
    net.stacks[1].send(b"answer", now=0.0)
    net.turn(1)
    (packet,) = net.packets(net.to(0))
    assert packet.kind == 0
    assert packet.ack == (1, 0)


def reports(net: Net) -> list[tuple[int, float]]:
    """Who has sent its counters, as far as others can tell."""
    return sorted({(flight.source, net.now) for flight in net.under_way if flight.kind == RELIABLE})


@pytest.mark.parametrize("sender", range(4))
def test_of_partial_bundles_one_member_reports_the_second_at_once_and_the_others_soon(sender: int) -> None:
    net = Net(4)
    net.send(sender, b"one")
    net.arrive(*list(net.under_way))
    others = [member for member in range(4) if member != sender]
    assert reports(net) == [], "nobody waits for it yet"
    assert [net.wake[member] for member in others] == [REPORT] * 3
    net.send(sender, b"two")
    net.arrive(*list(net.under_way))
    following = (sender + 1) % 4
    assert reports(net) == [(following, 0.0)]
    net.wait(REPORT)
    assert {flight.source for flight in net.log if flight.kind == RELIABLE} == set(others)
    net.quiet()


def test_a_report_makes_the_next_partial_bundle_a_first_one() -> None:
    net = Net(3)
    for text in (b"one", b"two", b"three"):
        net.send(0, text)
        net.arrive(*net.to(1))
        net.send(1, b"which carries it")
        net.arrive(*net.to(0))
    assert reports(net) == []


def test_the_only_receiver_reports_at_once() -> None:
    """Its report is all that a receipt waits for."""
    net = Net(2)
    receipt = net.send(0, b"one")
    net.settle()
    assert receipt.has("confirmed") and net.now == 0.0


def test_a_question_that_all_answer_costs_no_packet_but_theirs() -> None:
    net = Net(4)
    for _ in range(10):
        for member in (0, 1, 2, 3):
            net.send(member, b"a question, or an answer")
            net.arrive(*list(net.under_way))
        net.now += REPORT / 10
    assert {flight.kind for flight in net.log} == {DATA}
    assert len(net.log) == 10 * 4 * 3


def test_who_left_does_not_report() -> None:
    net = Net(4)
    net.send(0, b"one")
    net.send(0, b"two")
    net.lose(lambda flight: flight.target == 1)
    for member in (2, 3):
        net.stacks[member].gone(1)
    net.arrive(*list(net.under_way))
    assert reports(net) == [(2, 0.0)]


def test_a_late_report_rides_on_data_that_leaves_before() -> None:
    net = Net(3)
    net.send(0, b"one")
    net.arrive(*net.to(2))
    assert net.wake[2] == REPORT
    net.send(2, b"two")
    (packet,) = net.packets(net.to(0))
    assert (packet.kind, packet.ack) == (0, (1, 0, 0))
    net.under_way.clear()
    net.now = REPORT
    net.tick(2)
    assert net.under_way == []


# Whom reports go to, and when


def asked(net: Net, flights: list[Flight]) -> list[set[int]]:
    """Of each heartbeat, once for all its copies: who is to answer."""
    beats = {flight.data: net.packets([flight])[0] for flight in flights if flight.kind == RELIABLE}
    members = range(len(net.stacks))
    return [
        {m for m in members if beat.ext is None or int.from_bytes(beat.ext, "little") >> m & 1}
        for beat in beats.values()
        if beat.asks
    ]


def answers(net: Net, since: int) -> set[tuple[int, int]]:
    return {(flight.source, flight.target) for flight in net.log[since:] if flight.kind == RELIABLE}


def test_a_report_that_one_is_owed_goes_to_that_one() -> None:
    net = Net(4)
    receipt = net.send(0, b"one")
    net.settle()
    net.wait(REPORT)
    assert answers(net, 0) == {(1, 0), (2, 0), (3, 0)}
    assert receipt.has("confirmed")
    net.quiet()


def test_who_was_told_because_it_asked_is_owed_nothing_more() -> None:
    net = Net(4)
    net.send(0, b"one")
    net.arrive(*net.to(1))
    reliable = layer(net, 1)
    assert reliable._owed == {0}
    reliable._tell(0)
    assert not reliable._owed and reliable.wake is None


def test_a_report_that_two_are_owed_goes_to_all() -> None:
    net = Net(4)
    for sender in (0, 1):
        net.send(sender, b"hello")
    net.settle()
    net.wait(REPORT)
    assert {(2, other) for other in (0, 1, 3)} <= answers(net, 0)
    net.quiet()


def test_a_heartbeat_asks_those_of_whom_no_acknowledgement_came() -> None:
    net = Net(4)
    receipt = net.send(0, b"one")
    net.settle()
    net.wait(REPORT, lose=lambda flight: flight.source == 2)
    net.now = BEAT
    net.tick(0)
    assert asked(net, net.under_way) == [{2}]
    assert {flight.target for flight in net.under_way} == {1, 2, 3}, "all hear how much there is"
    since = len(net.log)
    net.settle()
    assert answers(net, since) == {(2, 0)}
    assert receipt.has("confirmed")
    net.quiet()


LARGE = 8 * CROWD

LATE = 8 * REPORT
"""When members of a group of that size report."""


def test_in_a_large_group_reports_wait_longer() -> None:
    net = Net(LARGE)
    net.send(0, b"one")
    net.settle()
    assert net.wake[1:] == [LATE] * (LARGE - 1)


def test_in_a_large_group_the_first_heartbeat_shows_what_was_lost_and_asks_nobody() -> None:
    net = Net(LARGE)
    receipt = net.send(0, b"one")
    net.lose(lambda flight: flight.target == 5)
    net.settle()
    net.now = BEAT
    net.tick(0)
    assert asked(net, net.under_way) == [set()]
    since = len(net.log)
    net.settle()
    assert net.log[since:] == [] and net.wake[5] == BEAT + DELAY
    net.wait(DELAY)
    assert net.texts(5) == ["one"]
    assert not receipt.has("confirmed")
    net.wait(LATE)
    assert receipt.has("confirmed")
    assert asked(net, net.log) == [set()], "nobody had to be asked"
    net.quiet()


def test_in_a_large_group_too_those_are_asked_whose_acknowledgements_do_not_come() -> None:
    net = Net(LARGE)
    receipt = net.send(0, b"one")
    net.settle()
    net.wait(LATE, lose=lambda flight: flight.source == 7)
    assert not receipt.has("confirmed")
    net.wait(BEAT + LATE)
    assert receipt.has("confirmed")
    assert asked(net, net.log) == [set(), {7}]
    net.quiet()


def test_in_a_large_group_who_waits_for_a_receipt_does_not_wait_for_late_reports() -> None:
    net = Net(LARGE)
    told: list[float] = []
    net.send(0, b"one").when("confirmed", lambda: told.append(net.now))
    net.settle()
    net.wait(LATE)
    assert told == [BEAT]


def test_in_a_large_group_who_is_about_to_leave_asks_at_once() -> None:
    net = Net(LARGE)
    net.send(0, b"one")
    net.settle()
    net.stacks[0].flush()
    net.turn(0)
    net.settle()
    assert net.now == 0.0 and net.stacks[0].settled
    net.stacks[0].flush()
    net.turn(0)
    assert net.under_way == [], "there is nothing left to ask for"


def test_what_nobody_owes_a_report_of_is_acknowledged_after_a_heartbeat() -> None:
    """Such as a full bundle."""
    net = lossy(LARGE)
    receipt = net.send(0, b"one")
    net.settle()
    assert net.wake == [BEAT] + [None] * (LARGE - 1)
    net.wait(BEAT + LATE)
    assert receipt.has("confirmed")
    assert asked(net, net.log) == [set()]
    net.quiet()


def test_who_has_reported_does_not_do_so_again_for_a_heartbeat_that_does_not_ask_it() -> None:
    net = Net(LARGE)
    net.send(0, b"one")
    net.settle()
    net.send(1, b"two, which carries a report")
    net.settle()
    net.wait(BEAT + LATE)
    reports = [packet for packet in net.packets(net.log) if packet.kind == RELIABLE and not packet.asks]
    assert {packet.src for packet in reports} == {0, *range(2, LARGE)}


def test_control_packets_per_message_do_not_grow_with_the_group() -> None:
    """A message a millisecond, of anybody."""

    def control(members: int, messages: int = 60) -> float:
        sim = Sim(*(f"member{i}" for i in range(members)), seed=1, record=False)
        rng = Random(members)
        for number in range(messages):
            sim.run(until=number / 1000)
            sim.sites[rng.randrange(members)].send(b"hello")
        sim.run()
        sim.check()
        return sim.pdus["control"] / messages

    assert control(4 * CROWD) < 2 * control(CROWD)


@pytest.mark.parametrize("members", [2, 3, 5])
def test_when_everybody_has_everything_nobody_says_anything(members: int) -> None:
    net = Net(members)
    for member in range(members):
        net.send(member, b"hello")
    net.settle()
    net.wait(REPORT)
    assert net.wake == [None] * members, "the last acknowledgement ends it, not the next heartbeat"
    said = len(net.log)
    net.wait(1e6)
    assert len(net.log) == said
    assert net.wake == [None] * members


# Receipts


def test_confirmed_means_everybody() -> None:
    net = Net(3)
    told: list[str] = []
    receipt = net.send(0, b"one")
    receipt.when("confirmed", lambda: told.append("confirmed"))
    net.arrive(*net.to(1))
    net.arrive(*net.to(0, source=1))
    assert not receipt.has("confirmed") and told == []
    net.arrive(*net.to(2))
    assert not receipt.has("confirmed")
    net.wait(REPORT)
    assert receipt.has("confirmed") and told == ["confirmed"]
    receipt.when("confirmed", lambda: told.append("at once"))
    assert told == ["confirmed", "at once"]


def test_a_receipt_of_a_message_to_some_is_confirmed_too() -> None:
    net = Net(3)
    receipt = net.send(0, b"for bob", to=0b010)
    net.quiet()
    assert isinstance(receipt, Receipt) and receipt.has("confirmed")


def test_a_receipt_of_a_cut_message_means_all_its_pieces() -> None:
    net = Net(2, datagram_max=512)
    receipt = net.send(0, b"x" * 2000)
    pieces = net.to(1)
    net.under_way.remove(pieces[2])
    net.settle()
    assert not receipt.has("confirmed")
    net.quiet()
    assert receipt.has("confirmed")


# Bounds


def forged(net: Net, **fields: object) -> bytes:
    packet = Packet(1, 1, b"\0x")
    packet.seq, packet.stamp = 1, None
    for name, value in fields.items():
        setattr(packet, name, value)
    return joined(encode(packet, net.stacks[0].group))


def test_numbers_far_ahead_are_refused() -> None:
    net = Net(2, "none")
    net.inject(0, forged(net, lsn=1 + LSN_WINDOW), forged(net, lsn=2**64 - 1), forged(net, lsn=0))
    assert net.stacks[0].rejected == {"lsn": 3}
    assert net.wake[0] is None and net.texts(0) == []
    net.inject(0, forged(net, lsn=LSN_WINDOW))
    assert net.stacks[0].rejected == {"lsn": 3}
    assert net.texts(0) == ["x"]
    assert net.wake[0] == DELAY, "what lies between is missing"


def test_what_comes_again_and_again_is_acknowledged_within_a_budget() -> None:
    """Whoever sends a packet of bob's again makes alice answer bob so often at once, and then as often as it fills."""
    net, again = Net(2, "none"), int(ANSWERS_MAX // REPLAYED)
    packet = forged(net, lsn=1, urgent=True)
    for number in range(again + 3):
        net.inject(0, packet)
        assert net.stacks[0].rejected["budget"] == max(0, number - again)
    answers = len(net.to(1, kind=RELIABLE))
    assert answers == 1 + again, "the first time it was new"
    net.now += REPLAYED / ANSWERS
    net.inject(0, packet)
    net.inject(0, packet)
    assert (net.stacks[0].rejected["budget"], len(net.to(1, kind=RELIABLE))) == (3, answers + 1)


def test_a_heartbeat_from_far_ahead_is_refused() -> None:
    net = Net(2)
    net.inject(0, forged(net, kind=RELIABLE, lsn=1 + LSN_WINDOW, urgent=True))
    assert net.stacks[0].rejected == {"lsn": 1}
    assert net.under_way == [] and net.wake[0] is None


def test_an_acknowledgement_of_what_was_never_sent_is_cut_back() -> None:
    net = Net(2)
    net.inject(0, forged(net, kind=RELIABLE, ack=(2**64 - 1, 0)))
    receipt = net.send(0, b"one")
    assert not receipt.has("confirmed")
    net.under_way.clear()
    net.wait(1.0)
    assert net.texts(1) == ["one"]


def test_who_does_not_repair_in_time_is_named() -> None:
    net = lossy(patience=3.0)
    net.send(0, b"one")
    net.send(0, b"two")
    _, two = net.to(1)
    net.under_way.clear()
    net.arrive(two)
    net.wait(2.9, lose=lambda flight: True)
    assert net.errors[1] is None
    net.wait(1.0, lose=lambda flight: True)
    assert isinstance(net.errors[1], Gap)
    assert "alice" in str(net.errors[1])
    asked = len(nacks(net))
    net.wait(100.0, lose=lambda flight: True)
    assert net.wake[1] is None and len(nacks(net)) == asked, "it says goodbye, and asks no more"


def test_a_sender_that_only_says_how_far_it_got_does_not_repair_either() -> None:
    """Heartbeats are no progress: a hole that is never filled ends in a Gap."""
    net = lossy(patience=3.0)
    net.send(0, b"one")
    net.wait(30.0, lose=lambda flight: flight.kind == 0)
    assert isinstance(net.errors[1], Gap)


def test_progress_gives_new_patience() -> None:
    net = lossy(patience=3.0)
    for number in range(6):
        net.send(0, b"%d" % number)
    flights = net.to(1)
    net.under_way.clear()
    net.arrive(flights[5])
    for flight in flights[:5]:
        net.wait(2.0, lose=lambda flight: True)
        net.arrive(flight)
    assert net.errors[1] is None
    assert net.texts(1) == list("012345")


# Coming and going


def test_nobody_waits_for_one_who_said_goodbye() -> None:
    net = Net(3)
    receipt = net.send(0, b"one")
    net.arrive(*net.to(1))
    net.arrive(*net.to(0))
    net.under_way.clear()  # cathy never gets it
    net.stacks[2].goodbye(now=net.now)
    net.turn(2)
    net.wait(1.0, lose=lambda flight: flight.target == 2)
    assert receipt.has("confirmed")
    net.wait(1e3, lose=lambda flight: flight.target == 2)
    assert net.wake[:2] == [None, None]
    assert net.names(0) == net.names(1) == ("alice", "bob")


def test_what_was_missing_of_one_that_leaves_is_asked_for_no_longer() -> None:
    """The hole was there before the goodbye came."""
    net = lossy(patience=3.0)
    net.send(1, b"one")
    net.send(1, b"two")
    net.arrive(net.to(0)[1])
    net.under_way.clear()
    net.stacks[1].goodbye(now=net.now)
    net.turn(1)
    assert layer(net, 0).wake is not None
    net.arrive(*net.to(0))
    assert layer(net, 0).wake is None
    assert net.errors[0] is None


def test_what_overtook_a_goodbye_is_not_asked_for() -> None:
    """Whom should it be asked of? A hole left behind by one who is gone is no reason to fail."""
    net = lossy(patience=3.0)
    net.send(1, b"one")
    net.send(1, b"two")
    _, two = net.to(0)
    net.under_way.clear()
    net.stacks[1].goodbye(now=net.now)
    net.turn(1)
    net.arrive(*net.to(0))
    net.arrive(two)
    net.wait(100.0, lose=lambda flight: True)
    assert net.errors[0] is None
    assert net.wake[0] is None


def test_greetings_last_until_everybody_was_heard() -> None:
    net = Net(3, options=Options(greet=True))
    for member in range(3):
        net.turn(member)
    assert net.wake == [0.0, 0.0, 0.0]
    net.wait(10.0, lose=lambda flight: 2 in (flight.source, flight.target))
    assert None not in net.wake[:2]
    net.wait(10.0)
    net.quiet()


# Packets kept for others


def lent(net: Net, member: int) -> list[int]:
    """Numbers of the first member's packets that another could lend."""
    return [packet.lsn for packet in layer(net, member).lend(0, ((1, LSN_WINDOW),), member)]


def report(net: Net, source: int, target: int) -> None:
    """One tells another what it has."""
    stack = net.stacks[source]
    packet = Packet(source, stack.view.number, kind=RELIABLE)
    packet.ack = layer(net, source)._counters()
    layer(net, target).control(packet)


def test_packets_are_kept_until_everybody_has_them() -> None:
    net = lossy(4)
    for text in (b"one", b"two", b"three"):
        net.send(0, text)
    net.arrive(*net.to(1))
    assert lent(net, 1) == [1, 2, 3]
    net.arrive(*net.to(2))
    report(net, 2, 1)
    assert lent(net, 1) == [1, 2, 3], "one lacks them"
    net.arrive(*net.to(3)[:2])
    report(net, 3, 1)
    assert lent(net, 1) == [3]
    net.arrive(*net.to(3)[:1])
    report(net, 3, 1)
    assert lent(net, 1) == []


def test_packets_of_which_we_hear_last_are_not_kept() -> None:
    net = lossy(3)
    net.send(0, b"one")
    net.arrive(*net.to(2))
    report(net, 2, 1)
    net.arrive(*net.to(1)[:1])
    assert lent(net, 1) == []


def test_what_is_kept_has_a_bound() -> None:
    """At most a window of each sender, although one of three never says what it has."""
    net = lossy(3)
    packets = [Packet(0, 1) for _ in range(LSN_WINDOW + 10)]
    for lsn, packet in enumerate(packets, 1):
        packet.lsn = lsn
    layer(net, 1).above = lambda batch: None
    layer(net, 1).up(packets)
    assert len(layer(net, 1)._kept[0]) == LSN_WINDOW
    assert min(layer(net, 1)._kept[0]) == 11


def test_nothing_is_kept_for_one_that_is_gone() -> None:
    net = lossy(4)
    net.send(0, b"one")
    net.arrive(*net.to(1))
    net.arrive(*net.to(2))
    report(net, 2, 1)
    assert lent(net, 1) == [1]
    layer(net, 1).gone(3)
    assert lent(net, 1) == []
