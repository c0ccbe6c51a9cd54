"""What members keep does not grow with the number of messages, is given back, and nobody waits for nothing."""

from collections import Counter, deque
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from inga.corba import orders
from inga.corba.multicast.acks import Acknowledged
from inga.corba.multicast.fragments import MiopFragments, the
from inga.corba.multicast.remiop import WAIT_MAX, ReMiop
from inga.corba.multicast.reported import HEARD, Reported
from inga.corba.wire import miop
from inga.model.compiled import state_of
from inga.recipes import Options
from inga.session.alarms import STALE_MIN, Alarms
from inga.sim.memory import leaks
from inga.stack.stack import Stack

from ...stack.harness import Flight, Net
from .test_remiop import Members, Open, is_control, number

A, B, C = 0, 1, 2

ORDERS = ["miop+acks", "remiop", "remiop+vector", "remiop+co"]
SIZE = 16


def containers(stack: Stack) -> Counter[str]:
    """Entries of everything that can grow, by the class and the attribute that has it."""
    found: Counter[str] = Counter()
    seen = {id(stack)}

    def walk(place: str, thing: Any) -> None:
        if id(thing) in seen:
            return
        seen.add(id(thing))
        if isinstance(thing, (list, dict, set, deque)):
            found[place] += len(thing)
            for each in thing.values() if isinstance(thing, dict) else thing:
                walk(place, each)
        elif type(thing).__module__.startswith("inga.") and not isinstance(thing, type | Stack):
            state = state_of(thing)
            for name in state.keys() - {"stack", "above", "below"}:
                walk(f"{type(thing).__name__}.{name}", state[name])

    for layer in stack.layers:
        walk(layer.name, layer)
    return found


class Busy(Net):
    """Three members that go on sending, over links that lose."""

    def __init__(self, order: str) -> None:
        super().__init__(3, order, options=Options(protocol={"size": SIZE}))
        self.chance = Random(1)

    def talk(self, messages: int) -> Counter[str]:
        """The most entries there were at any time."""
        most: Counter[str] = Counter()
        for at in range(messages):
            if self.stacks[at % 3].writable:
                self.send(at % 3, b"%d" % at)
            self.wait(0.01, lose=lambda flight: self.chance.random() < 0.1)
            if at % 50 == 0:
                for stack in self.stacks:
                    most |= containers(stack)
            self.log.clear()
            for batches in self.batches:
                batches.clear()
        return most


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_grows_with_the_number_of_messages(order: str) -> None:
    net = Busy(order)
    net.talk(1200)
    before, after = net.talk(600), net.talk(2400)
    grown = {place: (before[place], most) for place, most in after.items() if most > before[place] + 600}
    assert not grown
    net.quiet()
    for stack in net.stacks:
        assert not list(leaks(stack))
        strategy = the(Reported, stack)
        assert len(strategy._own) <= SIZE
        assert all(len(stream.buffer) <= SIZE and not stream.missing for stream in strategy._streams.values())


class Forgetful(ReMiop):
    """Keeps the times of requests for packets that have come."""

    def _receive(self, packet: Any, piece: Any) -> bool:
        self._pending[packet.lsn, 0] = set()
        return super()._receive(packet, piece)


def test_a_container_that_grows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders.REMIOP, "strategy", Forgetful)
    with pytest.raises(AssertionError, match=r"Forgetful\._pending"):
        test_nothing_grows_with_the_number_of_messages("remiop")


def heaps(strategy: Reported) -> list[int]:
    return [len(alarms._heap) for alarms in state_of(strategy).values() if isinstance(alarms, Alarms)]


def test_requests_that_others_answer_leave_no_timers_behind() -> None:
    """Every other packet is lost once and repaired at once: a timer far ahead is set and cleared for each."""
    net = Members(2, tnack=0.0, trepair=0.0, chance=0.0)
    for at in range(1000):
        net.say(A, b"%d" % at, but=[B] if at % 2 else [])
        net.wait(0.001)
        assert max(heaps(net.strategy(B))) <= STALE_MIN + 2
    assert net.stacks[B].counts["nack"] > 400


# Timers


def loses_data_to(member: int) -> Any:
    return lambda flight: flight.target == member and not is_control(flight)


def requests_in(net: Members, seconds: float) -> list[float]:
    """When bob asks, while everything that is sent to him is lost."""
    times, before = [], len(net.asked(B))
    for _ in range(round(seconds / 0.01)):
        net.wait(0.01, lose=loses_data_to(B))
        times += [net.now] * (len(net.asked(B)) - before)
        before = len(net.asked(B))
    return times


def test_a_second_loss_is_asked_for_as_soon_as_the_first() -> None:
    waits = []
    net = Members(2, chance=0.0, tnack=0.05, trepair=0.05, state_interval=100)
    for _ in range(2):
        net.say(A, b"lost", but=[B])
        net.say(A, b"shows it")
        start = net.now
        waits.append([round(at - start, 2) for at in requests_in(net, 3.0)])
        net.wait(5.0)
        assert len(net.got(B)) == 2 * len(waits)
    assert waits[1] == pytest.approx(waits[0], abs=0.02) and len(waits[0]) == 4


@pytest.mark.parametrize("repeats", [0, 3])
def test_requests_for_one_packet_are_counted_alone(repeats: int) -> None:
    """At the limit it is given up; the next one that is lost has all its requests again."""
    net = Members(2, repeats=repeats, on_gap="skip", tnack=0.0, trepair=0.0, chance=0.0)
    for times in (1, 2):
        net.say(A, b"lost", but=[B])
        net.say(A, b"shows it")
        net.wait(30, lose=loses_data_to(B))
        assert len(net.asked(B)) == times * (repeats + 1)


def test_a_repeated_message_waits_as_short_as_the_first_after_an_answer() -> None:
    net = Members(2, strategy=Acknowledged, resend=0.05)
    gaps = []
    for at in range(2):
        net.log.clear()
        net.send(A, b"%d" % at)
        net.lose(lambda flight: flight.target == B)
        start = net.now
        while len([flight for flight in net.log if flight.source == A]) < 5:
            net.wait(0.001, lose=lambda flight: flight.target == B)
        gaps.append(net.now - start)
        net.quiet()
    assert gaps[1] == pytest.approx(gaps[0])


def test_progress_makes_repetitions_come_as_soon_as_at_first() -> None:
    """Of two packets that nobody acknowledged for long one is; the other is repeated soon after that."""
    net = Members(2, strategy=Acknowledged, resend=0.05, ack_delay=0.0)
    net.send(A, b"1")
    net.send(A, b"2")
    net.wait(5.0, lose=lambda flight: flight.target == B)
    sender = the(Reported, net.stacks[A])
    while sender._everywhere < 1:
        net.wait(0.01, lose=lambda flight: flight.target == B and number(flight) == 2)
    net.log.clear()
    net.wait(0.06, lose=lambda flight: flight.target == B)
    assert [number(flight) for flight in net.log if flight.source == A] == [2]


@pytest.mark.parametrize("strategy", [ReMiop, Acknowledged])
def test_when_all_is_said_nobody_has_a_timer(strategy: type[Reported]) -> None:
    net = Members(3, strategy=strategy)
    for burst in range(3):
        for at in range(5):
            net.say(A, b"%d" % at, but=[B] if at % 2 else [])
        net.quiet()
        assert len(net.got(B)) == 5 * (burst + 1)
        assert all(the(Reported, stack).wake is None for stack in net.stacks)


def test_reports_end_with_the_talk_and_begin_with_it() -> None:
    net = Members(2, state_interval=0.5)
    said = []
    for _ in range(2):
        net.say(A, b"x")
        net.quiet()
        said.append(len(net.controls(miop.STATE, B)))
        net.now += 100
    assert said[1] == 2 * said[0] and said[0] in (10, 11)


def asking(net: Members, seconds: float) -> list[float]:
    """Pauses between what alice says, who is not answered."""
    times = []
    end = net.now + seconds
    while net.now < end:
        net.log.clear()
        net.wait(0.05, lose=lambda flight: flight.source != A)
        times += [net.now] * bool(net.controls(miop.STATE, A))
    return [later - at for at, later in pairwise(times)]


def test_questions_for_reports_become_rare_and_do_not_end() -> None:
    net = Members(2, state_interval=0.25)
    for _ in range(2):
        net.say(A, b"x")
        pauses = asking(net, HEARD + 100 * WAIT_MAX)
        assert pauses[0] < 0.5 and all(WAIT_MAX <= pause <= 1.25 * WAIT_MAX + 0.1 for pause in pauses[-80:])
    net.quiet()
    assert net.strategy(A).settled


def test_two_who_ask_answer_each_other() -> None:
    """Both were not answered for a while, so that each waits to ask again when the other's question comes."""
    net = Members(2)
    net.send(A, b"x")
    net.send(B, b"y")
    net.settle()
    net.wait(3 * HEARD, lose=lambda flight: True)
    assert not net.strategy(A).settled and not net.strategy(B).settled
    net.wait(2 * 1.25 * WAIT_MAX)
    assert net.strategy(A).settled and net.strategy(B).settled
    net.quiet()


def test_who_has_answered_asks_without_answering_again() -> None:
    net = Members(2)
    net.say(A, b"x")
    net.inject(B, miop.encode_control(miop.ControlPacket(miop.STATE, net.senders[A], ((net.senders[A], 1),))))
    net.send(B, b"y")
    net.wait(HEARD + 1.0, lose=lambda flight: flight.source == A)
    net.log.clear()
    net.wait(5 * WAIT_MAX, lose=lambda flight: flight.source == A)
    assert {control.entries for control in net.controls(miop.STATE, B)} == {((net.senders[B], 1),)}


def test_progress_renews_the_questions_for_reports() -> None:
    """Of two that lag one answers in between: the other is asked as often as if it had just begun."""
    net = Members(3, state_interval=0.5)
    net.say(A, b"x")
    polled = net.strategy(A)
    net.wait(HEARD + 20, lose=lambda flight: flight.source != A)
    first = polled._polling.first
    assert polled._polling._next == WAIT_MAX > first
    for sender, pause in ((net.senders[B], WAIT_MAX), (net.senders[C], first)):
        net.inject(A, miop.encode_control(miop.ControlPacket(miop.STATE, sender, ((net.senders[A], 1),))))
        assert polled._polling._next == pause, "progress is what all have"


@pytest.mark.parametrize("speaker", [A, B])
def test_talk_renews_the_questions_for_reports(speaker: int) -> None:
    """Whoever lags has something new to report soon."""
    net = Members(3, state_interval=0.5)
    net.say(A, b"x")
    polled = net.strategy(A)
    net.wait(HEARD + 20, lose=lambda flight: flight.source != A)
    assert polled._polling._next == WAIT_MAX > polled._polling.first
    net.say(speaker, b"y", but=[C])
    assert polled._polling._next == polled._polling.first and not polled.settled


def test_while_the_window_is_closed_questions_do_not_end() -> None:
    net = Members(2, size=4)
    for _ in range(5):
        net.send(A, b"x")
    net.wait(HEARD + 100 * WAIT_MAX, lose=lambda flight: flight.target == B)
    net.quiet()
    assert len(net.got(B)) == 5


def test_where_anybody_may_come_nobody_asks_those_who_fell_silent() -> None:
    net = Open(baseline="start")
    net.send(A, b"both are here")
    net.wait(HEARD)
    net.send(A, b"nobody is here any more")
    net.wait(3 * HEARD, lose=lambda flight: True)
    assert net.wake[A] is None and net.stacks[A].settled


def test_where_anybody_may_come_one_that_fell_silent_is_waited_for_until_it_counts_no_more() -> None:
    net = Open(size=4, baseline="start", state_interval=0.5)
    net.send(A, b"1")
    net.wait(0.9)
    for _ in range(5):
        net.send(A, b"x")
    net.wait(HEARD - 0.5, lose=lambda flight: True)
    assert not net.stacks[A].writable
    net.wait(0.5, lose=lambda flight: True)
    assert net.stacks[A].writable


# Departures


def leaving(order: str, **protocol: Any) -> Net:
    net = Net(3, order, options=Options(protocol=protocol))
    for member in range(3):
        net.turn(member)
    return net


def goodbye(net: Net, member: int) -> None:
    """It says goodbye, is heard, and is not there any more."""
    net.stacks[member].goodbye(now=net.now)
    net.turn(member)
    net.wait(1.0)
    assert net.stacks[member].has_left
    net.wake[member] = None


@pytest.mark.parametrize("order", [*ORDERS, "remiop+total"])
def test_nobody_waits_for_one_that_left(order: str) -> None:
    """Alice's window is full because of cathy, who leaves without having read any of it."""
    net = leaving(order, size=8)
    receipts = []
    while net.stacks[A].writable:
        receipts.append(net.send(A, b"x" * 5000))
        net.wait(0.1, lose=lambda flight: flight.target == C)
    net.wait(10.0, lose=lambda flight: flight.target == C)
    assert not net.stacks[A].writable
    goodbye(net, C)
    net.wait(30.0, lose=lambda flight: flight.target == C)
    assert net.stacks[A].writable
    for level in net.stacks[A].chain.levels:
        assert all(receipt.has(level) for receipt in receipts)
    assert len(net.texts(B)) == len(receipts)
    net.lose(lambda flight: flight.target == C)
    assert net.wake == [None] * 3 and not net.under_way


@pytest.mark.parametrize("order", ["remiop", "remiop+vector"])
def test_what_is_missing_of_one_that_left_is_not_asked_for(order: str) -> None:
    net = leaving(order, tnack=0.05)
    for _ in range(10):
        net.send(C, b"x" * 4000)
        net.lose(lambda flight: flight.target == B and number(flight) % 4 == 0)
        net.lose(lambda flight: flight.target == A and number(flight) % 5 == 0)
        net.settle()
    for member in (A, B):
        strategy = the(ReMiop, net.stacks[member])
        stream = strategy._streams[strategy.miop.senders[C]]
        assert stream.missing and stream.buffer and strategy._pending and unfinished(net.stacks[member])
    goodbye(net, C)
    net.log.clear()
    for member in (A, B):
        strategy = the(ReMiop, net.stacks[member])
        stream = strategy._streams[strategy.miop.senders[C]]
        assert not stream.missing and not stream.buffer and not strategy._pending
        assert not max(heaps(strategy)) or strategy.wake is not None
        assert not unfinished(net.stacks[member])
    net.wait(60.0)
    assert not [f for f in net.log if is_control(f) and asks(f)], "nobody asks for what it sent"
    assert net.wake == [None] * 3


def test_repairs_for_one_that_left_are_not_due_any_more() -> None:
    net = Members(3, trepair=0.05)
    net.say(C, b"1", but=[B])
    strategy = net.strategy(A)
    report_at = strategy.wake
    net.inject(A, miop.encode_control(miop.ControlPacket(miop.NACK, net.senders[B], ((net.senders[C], 1),))))
    assert strategy.wake is not None and report_at is not None and strategy.wake < report_at
    net.stacks[A].gone(C)
    assert strategy.wake == report_at


@pytest.mark.parametrize("strategy", [ReMiop, Acknowledged])
def test_late_packets_of_one_that_left_are_neither_passed_on_nor_kept(strategy: type[Reported]) -> None:
    """A goodbye has overtaken them, and what is missing between them is asked for by nobody."""
    net = Members(3, strategy=strategy)
    net.say(C, b"1")
    net.send(C, b"2")
    net.send(C, b"3")
    under_way = net.to(A)
    net.lose(lambda flight: True)
    net.stacks[A].gone(C)
    net.arrive(under_way[1])
    net.arrive(under_way[1])
    assert net.got(A) == [b"1"] and net.stacks[A].counts["late"] == 2
    stream = the(Reported, net.stacks[A])._streams[net.senders[C]]
    assert not stream.buffer and not stream.missing and not stream.arrived.early
    net.wait(30.0)
    assert not net.asked(A)
    assert net.senders[C] not in [s for control in net.controls(miop.STATE, A) for s, _ in control.entries]


def test_one_that_leaves_says_nothing_but_goodbye() -> None:
    net = leaving("remiop", size=8)
    while net.stacks[C].writable:
        net.send(C, b"x" * 5000)
    net.lose(lambda flight: True)
    net.stacks[C].goodbye(now=net.now)
    net.turn(C)
    net.log.clear()
    net.send(A, b"still talking")
    net.wait(5.0, lose=lambda flight: b"farewell" in flight.data)
    said = [flight for flight in net.log if flight.source == C]
    assert said and all(b'"do":"goodbye"' in flight.data for flight in said)
    assert the(Reported, net.stacks[C]).wake is None and not the(Reported, net.stacks[C])._waiting


def test_what_nobody_repairs_is_not_waited_for_as_long_as_what_somebody_does() -> None:
    net = Members(2)
    fragments = the(MiopFragments, net.stacks[B])
    foreign = miop.split(bytes(100), bytes(range(12)), payload_max=40)
    numbered = miop.split(bytes(100), miop.numbered_id(net.senders[A], 1), payload_max=40)
    net.inject(B, foreign[0], numbered[0])
    assert fragments.unrepaired.open == fragments.reassembly.open == 1
    net.wait(fragments.settings().collect + 0.1)
    assert (fragments.unrepaired.open, fragments.reassembly.open) == (0, 1)
    net.quiet()
    assert fragments.reassembly.open == 0


def asks(flight: Flight) -> bool:
    return miop.decode_control(miop.decode(flight.data)).kind == miop.NACK


def unfinished(stack: Stack) -> int:
    return the(MiopFragments, stack).reassembly.open
