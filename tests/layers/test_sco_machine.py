"""The SCO machine alone: who holds it up, and what it says when."""

import pytest

from inga.layers.machine import Discarded, GaveUp
from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import mask
from inga.layers.sco.parts import Control, Heard, Released, ScoControlSent, ScoMessage, ScoSent, ScoSettings

ALICE, BOB, CATHY, DAVE = range(4)


def machine(**settings: object) -> ScoMachine:
    return ScoMachine(ALICE, 4, ScoSettings(**settings))  # type: ignore[arg-type]


def send(alice: ScoMachine, *to: int) -> None:
    alice.request(mask(to), None)
    alice.stages()


def says(member: int, accepted: int, free: int = 100, seq: int = 1) -> Control:
    """That so much of Alice's is accepted there."""
    return Control(member, seq, 1, ((ALICE, accepted),), free, False)


def test_a_message_for_nobody_else_is_heard_at_once() -> None:
    alice = machine()
    send(alice, ALICE)
    assert Heard(1) in alice.events
    assert [event.own.seq for event in alice.events if isinstance(event, Released)] == [1]


def test_what_one_who_leaves_had_not_accepted_is_heard_of_no_more() -> None:
    alice = machine()
    send(alice, BOB, CATHY)
    send(alice, BOB)
    alice.events.clear()
    alice.leave_out(BOB)
    assert [event.seq for event in alice.events if isinstance(event, Heard)] == [1, 2]
    assert [event.own.seq for event in alice.events if isinstance(event, Released)] == [2]


def test_at_the_end_of_a_view_what_waits_leaves_through_a_full_window() -> None:
    """Who could open it waits until all has left."""
    alice = machine(window=1)
    for _ in range(3):
        send(alice, BOB)
    assert len(alice.waiting) == 2
    alice.hurry()
    alice.stages()
    assert not alice.waiting and alice.seq == 4


def test_what_leaves_at_the_end_of_a_view_finds_room() -> None:
    """Members have room for two messages of each."""
    alice = machine(window_bytes=1, quota=2)
    for _ in range(4):
        alice.request(mask([BOB]), None, 10)
    alice.hurry()
    alice.stages()
    assert alice.seq == 3 and len(alice.waiting) == 2
    alice.control(says(BOB, 3))
    alice.stages()
    assert not alice.waiting


def test_a_full_window_waits_for_those_who_lack_the_oldest() -> None:
    alice = machine(window=2)
    assert alice.blockers() == []
    send(alice, BOB, CATHY, DAVE)
    send(alice, BOB)
    assert not alice.is_open
    assert alice.control(says(BOB, 2)) is None
    assert alice.control(says(DAVE, 2)) is None
    alice.stages()
    assert alice.blockers() == [CATHY]
    send(alice, DAVE)
    assert alice.waiting and alice.blockers() == [CATHY]
    alice.control(says(CATHY, 2))
    alice.stages()
    assert not alice.waiting and alice.blockers() == [BOB]


def test_bytes_on_their_way_wait_for_the_same() -> None:
    alice = machine(window_bytes=100)
    alice.request(mask([BOB, CATHY]), None, 60)
    alice.request(mask([BOB]), None, 60)
    alice.stages()
    alice.control(says(BOB, 2))
    alice.stages()
    assert alice.waiting and alice.blockers() == [CATHY]


def test_one_who_does_not_read_is_named_to_those_who_write_to_it() -> None:
    alice = machine()
    alice.control(says(CATHY, 1, free=0))
    alice.control(says(BOB, 1, free=50))
    send(alice, BOB)
    assert not alice.waiting and alice.blockers() == []
    send(alice, BOB, CATHY)
    assert alice.waiting and alice.blockers() == [CATHY]
    alice.is_behind = True
    assert alice.blockers() == [CATHY], "that Alice does not read either keeps nobody from reading her"


def test_what_is_held_awaits_what_is_missing_and_whose_word_is() -> None:
    alice = machine()
    alice.receive(ScoMessage(BOB, mask([ALICE, DAVE]), 2, 2, ()))
    alice.stages()
    assert [alice.awaited(level) for level in ("received", "accepted", "confirmed")] == [[], [BOB], [BOB]]
    alice.receive(ScoMessage(BOB, mask([ALICE]), 1, 1, ((CATHY, 1),)))
    alice.stages()
    assert alice.awaited("accepted") == []
    assert alice.awaited("causal") == [CATHY], "whether Cathy's was for us only she can say"
    alice.control(Control(CATHY, 2, 1, (), 100, False))
    alice.stages()
    assert alice.awaited("causal") == []
    assert alice.awaited("confirmed") == [DAVE]
    alice.leave_out(DAVE)
    alice.stages()
    assert alice.awaited("confirmed") == [] and not alice.held_in_all


def test_our_own_share_of_the_buffers_waits_for_the_word_of_the_others() -> None:
    alice = machine(quota=1, throttle=False)
    send(alice, ALICE, BOB, CATHY)
    alice.control(says(CATHY, 2))
    send(alice, ALICE, CATHY)
    assert alice.waiting and alice.blockers() == [BOB]


# What comes


def comes(alice: ScoMachine, *numbers: int) -> None:
    """Of Bob's messages to Alice."""
    for number in numbers:
        assert alice.receive(ScoMessage(BOB, mask([ALICE]), number, number, ())) is None
        alice.stages()


def test_a_later_message_gives_its_buffer_to_an_earlier_one() -> None:
    """Otherwise those that wait for it would keep it out for ever."""
    alice = machine(quota=1, throttle=False)
    comes(alice, 2, 1)
    assert [(event.reason, event.message.seq) for event in alice.events if isinstance(event, Discarded)] == [
        ("overrun", 2)
    ]
    assert alice.counted(BOB) == 1


# What it says, and when


def told(alice: ScoMachine) -> int:
    """How often it has spoken since this was last asked."""
    events, alice.events = alice.events, []
    return sum(isinstance(event, ScoControlSent) for event in events)


def pauses(alice: ScoMachine, times: int) -> list[float]:
    """How long it waits before it speaks once more, and once more."""
    found = []
    for _ in range(times):
        start, alice.events = alice.now, []
        while not told(alice):
            assert alice.wake is not None
            alice.tick(alice.wake)
        found.append(alice.now - start)
    return found


def test_of_one_who_has_said_nothing_nothing_is_missing() -> None:
    alice = machine()
    comes(alice, 2)
    assert [len(alice.missing(member)) for member in (BOB, CATHY)] == [1, 0]


@pytest.mark.parametrize("lsn", [1, 3])
def test_what_comes_twice_is_told_of_early_or_not(lsn: int) -> None:
    alice = machine()
    comes(alice, 1)
    comes(alice, 3)
    assert not any(isinstance(event, Discarded) for event in alice.events)
    comes(alice, lsn)
    (discarded,) = [event for event in alice.events if isinstance(event, Discarded)]
    assert (discarded.reason, discarded.message.lsn) == ("duplicate", lsn)


def test_who_sends_again_is_told_again_that_it_came() -> None:
    """Our confirmation may have been lost."""
    alice = machine()
    for _ in range(2):
        alice.events = []
        comes(alice, 1)
        alice.tick(alice.now + alice.settings.confirm_delay)
        assert [event.to for event in alice.events if isinstance(event, ScoControlSent)] == [BOB]


def test_after_a_new_hole_questions_come_as_fast_as_at_first() -> None:
    alice = machine(nack_delay=0.0, nack_again=1.0)
    comes(alice, 2)
    assert pauses(alice, 3) == [1.0, 2.0, 4.0]
    comes(alice, 4)
    assert told(alice) == 1
    assert pauses(alice, 2) == [1.0, 2.0]


def test_the_room_of_others_is_asked_for_with_growing_pauses_in_every_episode() -> None:
    alice = machine(poll_after=1.0, resend_after=1000.0)
    for episode in range(2):
        alice.control(says(CATHY, episode + 1, free=0))
        send(alice, CATHY)
        assert told(alice) == 0 and alice.waiting
        assert pauses(alice, 6) == [1.0, 1.0, 2.0, 4.0, 8.0, 8.0]
        alice.control(says(CATHY, episode + 1))
        alice.stages()
        assert not alice.waiting
        alice.control(says(CATHY, episode + 2))
        alice.stages()


def test_every_few_messages_are_confirmed_at_once() -> None:
    alice = machine(confirm_every=3, confirm_delay=1.0)
    answers = []
    for number in range(1, 10):
        comes(alice, number)
        answers.append(told(alice))
    assert answers == [0, 0, 1] * 3


def test_a_copy_that_came_twice_is_held_once() -> None:
    alice = machine()
    comes(alice, 2, 2)
    assert alice.held[BOB] == 1
    comes(alice, 1)
    assert alice.held_in_all == 0


def test_what_is_asked_for_in_vain_is_given_up_after_patience_and_not_before() -> None:
    alice = machine(nack_delay=0.0, nack_again=1.0, patience=3.0)
    comes(alice, 2)
    while GaveUp(BOB) not in alice.events:
        assert alice.wake is not None
        alice.tick(alice.wake)
    assert alice.now == 7.0, "after 1 and 3 seconds there was hope"


def test_who_has_answered_may_be_asked_again_at_once() -> None:
    alice = machine(probe_after=0.5, poll_after=8.0)
    for number in (1, 2):
        alice.receive(ScoMessage(BOB, mask([ALICE]), number, number, ((CATHY, number),)))
        alice.stages()
        told(alice)
        alice.tick(alice.now + 0.5)
        assert [
            event.to for event in alice.events if isinstance(event, ScoControlSent) and event.what.poll
        ] == [CATHY]  # type: ignore[union-attr]
        alice.control(Control(CATHY, number + 1, 1, (), 100, False))
        alice.stages()
        assert not alice.held_in_all


def test_nobody_is_asked_before_its_silence_has_held_something_up_for_a_while() -> None:
    alice = machine(probe_after=0.5)
    alice.now = 10.0
    for number, cause in ((1, CATHY), (2, DAVE)):
        alice.receive(ScoMessage(BOB, mask([ALICE]), number, number, ((cause, 1),)))
    alice.stages()
    alice.now = 10.25
    alice.control(Control(CATHY, 2, 1, (), 100, False))  # now the second waits for Dave
    alice.stages()
    asked = []
    while not asked:
        told(alice)
        assert alice.wake is not None
        alice.tick(alice.wake)
        asked = [event.to for event in alice.events if isinstance(event, ScoControlSent) and event.what.poll]  # type: ignore[union-attr]
    assert (alice.now, asked) == (10.75, [DAVE])


def test_when_orphans_are_dropped_nobody_waits_for_them_any_more() -> None:
    """Bob's message follows one of Cathy's that is lost with her, and he is gone, too. Dave, who is here, never had it, but
    knows of it."""
    alice = machine()
    alice.receive(ScoMessage(BOB, mask([ALICE]), 1, 1, ((CATHY, 1),), noted=((ALICE, ((CATHY, 1),)),)))
    alice.receive(ScoMessage(DAVE, mask([ALICE]), 1, 1, ((BOB, 1), (CATHY, 1))))
    for gone in (BOB, CATHY):
        alice.leave_out(gone)
        alice.forgo(gone)
    alice.stages()
    assert not any(alice.ordered)
    alice.drop_orphans()
    alice.stages()
    assert (alice.ordered[BOB], alice.ordered[DAVE]) == (0, 1) and alice.is_settled


@pytest.mark.parametrize("multicast_from", [0, 2])
def test_one_that_only_seems_gone_sees_that_it_lacks_what_was_not_sent_to_it(multicast_from: int) -> None:
    """It may hear the next message that is for all: with the number of one that it never had, it would take that in its place."""
    alice = machine(multicast_from=multicast_from)
    everybody = (ALICE, BOB, CATHY, DAVE)
    send(alice, *everybody)
    alice.leave_out(BOB)
    send(alice, *everybody)  # Bob does not hear this one
    send(alice, CATHY)  # nor is he to hear this one
    send(alice, CATHY, DAVE)
    send(alice, *everybody)  # but he may hear this one
    told = [(event.own.seq, dict(event.own.lsns)) for event in alice.events if isinstance(event, ScoSent)]
    if multicast_from:
        assert [(seq, lsns[BOB], lsns[CATHY]) for seq, lsns in told if BOB in lsns] == [
            (1, 1, 1),
            (2, 2, 2),
            (5, 3, 5),
        ]
    assert alice.lsn == [4, 4, 6, 5]
