"""The SCO machine alone: who holds it up."""

from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import mask
from inga.layers.sco.parts import Control, Heard, Released, ScoMessage, ScoSettings

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
