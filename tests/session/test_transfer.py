"""States of applications, by hand: who gives one may be asked again, whatever became of those it gave to before."""

import pytest

from inga.recipes import Options
from inga.session.handover import REMINDS
from inga.session.pieces import ANSWER_MAX, PIECES, PIECES_MAX
from inga.session.transfer import AHEAD, REFUSES_FOR, OutgoingState, Transfer
from inga.stack.budget import ANSWERS_MAX, UNIT

from .test_forged import words
from .town import Copy, Town


def town() -> Town:
    """Alice alone, who gives a state; whoever else there is takes one."""
    made = Town(1, each={"alice": Options(gives="state")}, options=Options(wants="state"))
    made.quiet()
    return made


def transfer(town: Town, name: str) -> Transfer:
    return town.session(name).transfer


def come(town: Town, name: str, incarnation: int = 7) -> list[OutgoingState]:
    """Somebody joins; what alice is to draw for it."""
    town.knock(name, incarnation, wants="state")
    town.wait(0.5)
    assert transfer(town, name).lacks
    return transfer(town, "alice").due(town.member("alice").view)


def give(town: Town, outgoing: OutgoingState) -> None:
    transfer(town, "alice").put(outgoing, b"state")
    transfer(town, "alice").end(outgoing)
    town.turn("alice")


def test_a_flood_of_questions_for_a_state() -> None:
    """Each is answered with as much as is sent again for one request at most; whoever has a part gets the next one."""
    group = town()
    (outgoing,) = come(group, "bob")
    transfer(group, "alice").put(outgoing, bytes(AHEAD))
    group.turn("alice")
    group.under_way.clear()
    alice, before = group.member("alice"), len(group.log)
    question = {"pieces": PIECES_MAX, "all": False}
    group.inject("alice", *[words(alice, 1, "fetch", offset=0, **question)] * 4000, source="bob")
    given = sum(len(copy.data) for copy in group.log[before:])
    assert given < 2 * UNIT * ANSWERS_MAX and alice.rejected["budget"] > 3000
    group.under_way.clear()
    group.wait(10.0)
    give(group, outgoing)
    group.wait(10.0)
    assert not transfer(group, "bob").lacks


@pytest.mark.interpreted
def test_a_flood_of_questions_for_the_state_of_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Town(2)
    group.quiet()
    alice, before, state = group.member("alice"), len(group.log), bytes(10 * ANSWER_MAX)
    monkeypatch.setattr(group.session("alice").handover, "_state", lambda topic: state)

    def ask(offset: int) -> bytes:
        return words(alice, 1, "ask", topic="page", offset=offset, pieces=PIECES_MAX, among=[])

    group.inject("alice", *[ask(0)] * 4000, source="bob")
    given = sum(len(copy.data) for copy in group.log[before:])
    assert given < 2 * UNIT * ANSWERS_MAX and alice.rejected["budget"] > 3000
    group.under_way.clear()
    group.inject("alice", ask(ANSWER_MAX), source="bob")
    assert len(group.under_way) == PIECES, "what follows is given all the same"


def test_a_newcomer_leaves_while_its_state_is_drawn() -> None:
    """The application awaited something meanwhile, and then gives much at once: that is no failure, nor held against it."""
    group = town()
    (outgoing,) = come(group, "bob")
    assert outgoing.asked
    group.leave("bob")
    group.wait(3.0)
    alice = transfer(group, "alice")
    assert outgoing.is_gone
    alice.put(outgoing, bytes(AHEAD))
    alice.end(outgoing)
    assert not outgoing.drawn
    alice.refuse(outgoing, "ConnectionError: for one that is gone")
    assert alice.report()["gives"] == "state"
    (another,) = come(group, "cathy")
    give(group, another)
    group.wait(1.0)
    incoming = transfer(group, "cathy").incoming
    assert incoming is not None and incoming.taken() == [b"state"]


def test_a_refusal_is_forgotten_once_a_state_has_come() -> None:
    """Much later the same member comes back, and nobody gives a state: it begins without, and quotes nobody."""
    group = town()
    (outgoing,) = come(group, "bob")
    transfer(group, "alice").refuse(outgoing, "busy")
    transfer(group, "alice")._refuses_until = 0.0
    group.turn("alice")
    group.wait(2.0)
    assert any("no state from alice: busy" in notice for notice in group.notices)
    (again,) = transfer(group, "alice").due(group.member("alice").view)
    give(group, again)
    group.wait(1.0)
    bob = transfer(group, "bob")
    assert not bob.lacks and bob._refusal is None


def test_a_refusal_is_forgotten_when_one_comes_back() -> None:
    """As another incarnation, without having had a state at all."""
    group = town()
    (outgoing,) = come(group, "bob")
    transfer(group, "alice").refuse(outgoing, "busy")
    group.turn("alice")
    bob = transfer(group, "bob")
    bob._identity = ("bob", 1)
    group.wait(2.0)
    assert "bob" not in group.errors
    assert "we begin without the state of the group: nobody here gives one" in group.notices


def test_a_state_that_breaks_off_is_followed_by_another() -> None:
    """Some of it is on its way already: who asks for the rest hears that there is none."""
    group = town()
    (outgoing,) = come(group, "bob")
    alice = transfer(group, "alice")
    alice.put(outgoing, bytes(AHEAD))
    alice.refuse(outgoing, "torn")
    alice._refuses_until = 0.0
    group.turn("alice")
    group.wait(2.0)
    assert any("no state from alice: torn" in notice for notice in group.notices)
    (again,) = alice.due(group.member("alice").view)
    give(group, again)
    group.wait(1.0)
    incoming = transfer(group, "bob").incoming
    assert incoming is not None and incoming.is_whole and incoming.taken() == [b"state"]


def test_one_that_has_just_said_what_it_lacks_waits_for_the_next_view() -> None:
    """Nobody gives a state in this one, but somebody may be chosen already who gives it in the next, and waits to be asked."""
    group = town()
    come(group, "bob")
    bob, stack = transfer(group, "bob"), group.member("bob")
    bob._unserved, bob._donor = {stack.member.identity}, None
    stack.views.close()
    assert bob.report()["lacks"] == "state"
    bob.tick(group.now)
    assert bob.lacks
    stack.views.reopen()  # there is no next view after all
    bob.tick(group.now)
    group.turn("bob")
    assert not bob.lacks
    assert "we begin without the state of the group: nobody here gives one" in group.notices


def says_that_it_has_all(copy: Copy) -> bool:
    return copy.do == "fetch" and bool(copy.told["all"])


def test_who_does_not_say_that_it_has_all_is_asked_again_and_again() -> None:
    """Its word is lost, and the answers to the first questions are, too."""
    group = town()
    (outgoing,) = come(group, "bob")
    give(group, outgoing)
    alice = transfer(group, "alice")
    group.wait(5 * REMINDS, says_that_it_has_all)
    assert not transfer(group, "bob").lacks and alice.outgoing
    group.wait(10 * REMINDS)
    assert not alice.outgoing and not outgoing.drawn


@pytest.mark.parametrize("goes", ["bob", "alice"])
def test_nothing_is_kept_for_one_that_is_gone(goes: str) -> None:
    """Nor when the one that gives is in no view any more: the next one may be far, and its application is not waited for."""
    group = town()
    (outgoing,) = come(group, "bob")
    alice = transfer(group, "alice")
    alice.put(outgoing, bytes(10))
    assert alice.undrawn == {1}
    stack = group.member("alice")
    if goes == "alice":
        group.changes("alice").leave_home()
    else:
        alice.gone(1)
    assert not alice.outgoing and outgoing.is_gone and not outgoing.drawn
    assert not alice.undrawn and not alice.due(stack.view)


def test_one_that_has_refused_is_chosen_again_after_a_while() -> None:
    group = town()
    (outgoing,) = come(group, "bob")
    alice = transfer(group, "alice")
    alice.refuse(outgoing, "busy")
    assert alice.report()["gives"] == ""
    group.member("alice").now += REFUSES_FOR
    assert alice.report()["gives"] == "state"


def test_what_was_drawn_leaves_as_soon_as_no_more_is_drawn_ahead() -> None:
    """Bob has asked for it, and would ask again only after a while."""
    group = town()
    (outgoing,) = come(group, "bob")
    alice = transfer(group, "alice")
    alice.put(outgoing, bytes(AHEAD))
    group.turn("alice")
    assert not outgoing.is_hungry
    assert any(copy.do == "state" for copy in group.under_way)
