"""The CO machine alone: who holds it up, and what it gives back."""

from itertools import count

import pytest

from inga.layers.co.machine import CoMachine
from inga.layers.co.parts import CoControlSent, CoMessage, CoNack, Confirmation, CoSent, CoSettings, SentAgain

ALICE, BOB, CATHY = range(3)


class Trio:
    """Three machines, and whose words do not get through."""

    def __init__(self, machine: type[CoMachine] = CoMachine, **settings: object) -> None:
        self.machines = [machine(me, 3, CoSettings(**settings)) for me in range(3)]  # type: ignore[arg-type]
        self.silent: set[int] = set()  # nothing gets to them, nor from them
        self.now = 0.0

    def send(self, member: int, times: int = 1) -> None:
        for number in range(times):
            self.machines[member].request(number)
        self.machines[member].stages()
        self.settle()

    def settle(self) -> None:
        """Let all that is said arrive."""
        while any(machine.events for machine in self.machines):
            for machine in self.machines:
                events, machine.events = machine.events, []
                for event in events:
                    self._pass_on(machine.me, event)

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        for _ in count():
            wakes = [(m.wake, m.me) for m in self.machines if m.wake is not None]
            self.now, member = min(wakes, default=(end, ALICE))
            if self.now >= end:
                self.now = end
                return
            self.machines[member].tick(self.now)
            self.settle()

    def _pass_on(self, source: int, event: object) -> None:
        match event:
            case CoSent(message):
                for target in range(3):
                    self._arrive(source, target, message)
            case SentAgain(to, messages):
                for message in messages:
                    self._arrive(source, to, message)
            case CoControlSent(to, word):
                for target in range(3) if to is None else (to,):
                    self._arrive(source, target, word)
            case _:
                pass

    def _arrive(self, source: int, target: int, what: CoMessage | Confirmation | CoNack) -> None:
        if source == target or {source, target} & self.silent:
            return
        machine = self.machines[target]
        machine.now = self.now
        if isinstance(what, CoMessage):
            machine.receive(CoMessage(what.src, what.seq, what.vector, what.rises, what.free))
        elif isinstance(what, Confirmation):
            assert machine.confirmed(what) is None
        else:
            assert machine.asked(what) is None
        machine.stages()


def test_a_full_window_waits_for_those_who_have_accepted_least() -> None:
    trio = Trio(window=2)
    trio.silent = {CATHY}
    trio.send(ALICE, 3)
    trio.wait(1.0)
    alice = trio.machines[ALICE]
    assert not alice.is_open and len(alice.waiting) == 1
    assert alice.blockers() == [CATHY]
    trio.silent = set()
    trio.wait(2.0)
    assert alice.is_open and alice.blockers() == [] and alice.is_idle


def test_a_full_window_is_the_fault_of_others_whatever_is_read_here() -> None:
    trio = Trio(window=2)
    trio.silent = {CATHY}
    trio.send(ALICE, 3)
    trio.wait(1.0)
    trio.machines[ALICE].is_behind = True
    assert trio.machines[ALICE].blockers() == [CATHY]


def test_bytes_on_their_way_wait_for_the_same() -> None:
    trio = Trio(window_bytes=100)
    trio.silent = {BOB}
    alice = trio.machines[ALICE]
    for _ in range(2):
        alice.request(None, 60)
    alice.stages()
    trio.wait(1.0)
    assert len(alice.waiting) == 1 and alice.blockers() == [BOB]


def test_a_member_that_does_not_read_is_named_by_others_and_names_nobody() -> None:
    trio = Trio()
    cathy = trio.machines[CATHY]
    cathy.is_behind = True
    for member in (ALICE, BOB):
        trio.send(member)
    trio.wait(1.0)
    assert all(machine.is_idle for machine in trio.machines)
    assert [machine.is_open for machine in trio.machines] == [False] * 3
    assert [machine.blockers() for machine in trio.machines] == [[CATHY], [CATHY], []]
    trio.send(ALICE)
    assert not trio.machines[ALICE].is_idle, "what waits has not left"
    cathy.caught_up()
    trio.wait(1.0)
    assert all(machine.is_idle for machine in trio.machines)
    assert [machine.is_open for machine in trio.machines] == [True] * 3
    assert all(machine.wake is None for machine in trio.machines)


def test_full_buffers_are_the_fault_of_those_whose_word_is_missing() -> None:
    """Bob's are full as well, since he holds what Cathy has not confirmed."""
    trio = Trio(capacity=3, window=8)
    trio.silent = {CATHY}
    trio.send(ALICE)
    trio.send(BOB)
    trio.wait(1.0)
    alice = trio.machines[ALICE]
    assert not alice.is_open and alice.free_buffers[BOB] < 3
    assert alice.blockers() == [CATHY]


def test_everybody_is_told_of_buffers_that_are_free_again() -> None:
    trio = Trio(capacity=6, window=8)
    trio.send(ALICE)
    trio.wait(1.0)
    assert [machine.free_buffers for machine in trio.machines] == [[6, 6, 6]] * 3


def test_what_is_held_awaits_the_messages_it_names_or_the_word_of_the_silent() -> None:
    trio = Trio()
    trio.silent = {ALICE}
    trio.send(CATHY)
    trio.silent = {CATHY}
    trio.send(BOB)  # names Cathy's, which Alice lacks
    alice, bob, _ = trio.machines
    for level in ("causal", "confirmed", "acknowledged"):
        assert alice.awaited(level) == [CATHY]
    assert bob.awaited("causal") == []
    assert bob.awaited("confirmed") == [ALICE, CATHY]
    trio.silent = set()
    trio.wait(1.0)
    assert [machine.awaited() for machine in trio.machines] == [[]] * 3


def test_what_is_confirmed_awaits_those_who_have_not_said_so() -> None:
    trio = Trio(confirm_delay=0.01)
    trio.send(ALICE)
    bob, alice = trio.machines[BOB], trio.machines[ALICE]
    bob.tick(0.01)  # everybody hears that Bob has it
    trio.settle()
    trio.silent = {BOB}
    trio.wait(1.0)
    assert [message.seq for message in alice.log] == [1]
    assert alice.awaited("confirmed") == []
    assert alice.awaited("acknowledged") == [BOB]


def test_one_who_has_left_is_neither_awaited_nor_blamed() -> None:
    trio = Trio(window=1)
    trio.silent = {CATHY}
    trio.send(ALICE, 2)
    trio.wait(1.0)
    assert trio.machines[ALICE].blockers() == trio.machines[ALICE].awaited() == [CATHY]
    for member in (ALICE, BOB):
        trio.machines[member].leave_out(CATHY)
        trio.machines[member].stages()
    trio.settle()
    trio.wait(1.0)
    alice = trio.machines[ALICE]
    assert alice.is_open and alice.is_idle and alice.awaited() == alice.blockers() == []


def test_every_few_messages_are_confirmed_at_the_end_of_the_turn() -> None:
    trio = Trio(confirm_every=3)
    alice, answers = trio.machines[ALICE], []
    for number in range(1, 10):
        alice.receive(CoMessage(BOB, number, None if number > 1 else (1, 1, 1), (), 100))
        alice.stages()
        alice.confirm_now()
        answers.append(sum(isinstance(event, CoControlSent) for event in alice.events))
        alice.events.clear()
    assert answers == [0, 0, 1] * 3


def test_a_source_repeats_what_is_not_known_to_have_arrived(machine: type[CoMachine] = CoMachine) -> None:
    """Cathy is there again when all is said of it, and polls are hours apart: she does not know that she lacks anything."""
    trio = Trio(machine, resend=1.0, poll=10_000.0)
    trio.silent = {CATHY}
    trio.send(ALICE)
    trio.wait(0.9)
    trio.silent = set()
    trio.wait(0.05)
    assert [each.expected[ALICE] for each in trio.machines] == [2, 2, 1]
    trio.wait(5.0)
    assert [each.expected[ALICE] for each in trio.machines] == [2, 2, 2]


class RepeatsNothing(CoMachine):
    """L4 without the time-out of the source."""

    def _on_resend(self, _: int) -> None:
        pass


def test_a_source_that_repeats_nothing_is_noticed() -> None:
    with pytest.raises(AssertionError):
        test_a_source_repeats_what_is_not_known_to_have_arrived(RepeatsNothing)


def test_a_hole_is_asked_for_before_its_sender_repeats_itself() -> None:
    alice = CoMachine(ALICE, 3)
    alice.receive(CoMessage(BOB, 2, None, (), 100))
    alice.stages()
    while not any(
        isinstance(event, CoControlSent) and isinstance(event.what, CoNack) for event in alice.events
    ):
        assert alice.wake is not None
        alice.tick(alice.wake)
    assert alice.now < alice.settings.resend / 2
