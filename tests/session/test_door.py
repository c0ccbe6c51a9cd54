"""Who asks to be let in: names that are taken, members that return, former members, and those who ask no more."""

import pytest

from inga.layers.shape import Faults
from inga.model.view import Member
from inga.recipes import Options
from inga.session.door import ASKS_WITHIN, FORMER_MAX, REFUSED_MAX, SPEAKS_FOR, Door
from inga.session.newcomer import NOBODY, Newcomer
from inga.session.presence import Presence
from inga.sim import Sim
from inga.stack.stack import Stack
from inga.wire.packet import OUTSIDE

from ..stack.harness import NAMES
from .test_changes import HELLO
from .town import Copy, Town, worded

ABC = NAMES[:3]
DETECT = 0.5
FAST = Faults(delay_min=0.001, delay_max=0.01)


def door_of(town: Town, name: str = "alice") -> Door:
    return town.changes(name)._door


def hello(**more: object) -> bytes:
    return worded(NOBODY, OUTSIDE, "hello", **{**HELLO, **more})


def alice_presence(town: Town) -> Presence:
    return town.session("alice").presence


def is_member(town: Town, place: str) -> bool:
    return isinstance(town.at[place], Stack)


def listening(members: int = 3, order: str = "fifo") -> Town:
    """A town in which silence is not forgiven for long, and everybody has met everybody."""
    town = Town(members, order, options=Options(detect=DETECT, greet=True, echo=False))
    town.wait(1.0)
    return town


# Who answers


def test_who_asks_nobody_is_told_by_the_leader_alone_whom_to_ask() -> None:
    town = Town(3)
    town.knock("dave")
    for name in ABC:
        town.inject(name, hello(host=[]), source="dave")
    (copy,) = [copy for copy in town.log if copy.do]
    told = copy.told
    assert (copy.source, told["do"], told["name"], told["size"]) == ("alice", "part", "alice", 3)
    assert not door_of(town).newcomers(), "it has not asked to be let in"


@pytest.mark.parametrize("host", [["bob", 1, ""], ["alice", 2, ""], ["zoe", 1, ""]])
def test_who_asks_another_is_left_to_that_one(host: list[object]) -> None:
    """There may be two parts of the group, of which only one is to let it in."""
    town = Town(3)
    for name in ABC:
        town.inject(name, hello(host=[host]))
        assert not door_of(town, name).newcomers()
    assert town.log == []


def test_who_means_another_group_is_told_what_it_is() -> None:
    town = Town(2)
    newcomer = Newcomer("another", Member("dave", 7), now=0.0, lobby="")
    town.at["dave"], town.wake["dave"] = newcomer, 0.0
    town.wait(0.5)
    assert "another order, other founders or other objects: order 'vector', founded by alice, bob" in str(
        newcomer.refused
    )


# Names


@pytest.mark.parametrize("name", ABC)
def test_a_name_that_is_taken_is_refused_and_its_member_stays(name: str) -> None:
    town = Town(3)
    newcomer = town.knock(name, place="elsewhere")
    town.wait(0.5)
    assert str(newcomer.refused) == f"{name!r} cannot join: there is a member {name!r} already"
    town.crash("elsewhere")
    town.check("vector", *ABC)
    assert len(town.views("bob")) == 0, "for nothing the view was closed"


def test_late_packets_of_a_dead_process_do_not_keep_its_successor_out() -> None:
    """They were on their way, or somebody sends now what was lost then. Only an answer to a question asked now shows that it lives."""
    town = listening()
    late: list[Copy] = []

    def keep(copy: Copy) -> bool:
        is_late = copy.source == "bob" and copy.target == "alice"
        late.extend([copy] * is_late)
        return is_late

    alice = town.member("alice")
    town.session("cathy").presence.ask_whether_here(1)
    town.turn("cathy")
    town.wait(0.4, keep)  # `alive`, among others
    answers = [copy for copy in town.log if copy.do == "here" and copy.source == "bob"]
    assert late and answers
    town.crash("bob")
    newcomer = town.knock("bob")
    while ("bob", 1) not in alice_presence(town)._challenges:
        town.wait(0.001)
    before = alice.heard[1]
    for copy in (*late, *answers):
        town.inject("alice", copy.data, source="bob")
    assert alice.heard[1] == town.now > before and ("bob", 1) in alice_presence(town)._challenges
    town.wait(2.0)
    assert newcomer.refused is None and is_member(town, "bob")
    town.check("fifo", "alice", "cathy", "bob")


def test_a_member_that_speaks_and_cannot_be_asked_keeps_its_name() -> None:
    town = listening()
    newcomer = town.knock("bob", place="elsewhere")

    def lose(copy: Copy) -> bool:
        return copy.do == "here" and copy.target == "bob"

    town.wait(SPEAKS_FOR - 0.1, lose)
    assert newcomer.refused is None and town.names("alice") == ABC
    town.wait(1.0, lose)
    assert str(newcomer.refused) == "'bob' cannot join: there is a member 'bob' already"
    town.crash("elsewhere")
    town.check("fifo", *ABC)


def test_what_a_member_has_answered_in_one_view_is_forgotten_in_the_next() -> None:
    town = listening()
    presence = alice_presence(town)
    town.knock("bob", place="elsewhere")
    town.wait(0.5)
    town.crash("elsewhere")
    assert presence._answered.keys() == {("bob", 1)} and not presence._challenges
    presence.ask_whether_here(2)
    town.knock("dave")
    town.wait(1.0)
    assert town.names("alice") == (*ABC, "dave")
    assert not presence._answered and not presence._challenges


def test_two_of_one_name_in_one_turn() -> None:
    """The next view has the first of them; the other is refused as soon as that one was heard."""
    town = Town(2)
    for place, incarnation in (("here", 1), ("there", 2)):
        town.knock("dave", incarnation, place)
    town.wait(2.0)
    refused = [place for place in ("here", "there") if not is_member(town, place)]
    assert refused == ["there"] and town.names("alice") == ("alice", "bob", "dave")
    newcomer = town.at["there"]
    assert isinstance(newcomer, Newcomer)
    assert str(newcomer.refused) == "'dave' cannot join: there is a member 'dave' already"


def test_names_that_wait_are_in_a_view_once() -> None:
    town = Town(2)
    door = door_of(town)
    town.inject("bob", hello())  # who does not lead
    for incarnation in (7, 8):
        for name in ("dave", "erin", "bob", "alice"):
            told = hello(name=name, incarnation=incarnation)
            town.member("alice").receive([(told, None)], now=town.now)
    assert [person.identity for person, _ in door.newcomers()] == [("dave", 7), ("erin", 7)]


# Members that return


@pytest.mark.parametrize("away", [0.2, 0.4])
@pytest.mark.parametrize("order", ["fifo", "total"])
def test_one_returns_although_the_leader_was_away_meanwhile(order: str, away: float) -> None:
    """What came while it was stopped, the last words of the dead among it, it reads at once when it goes on."""
    sim = Sim(*ABC, order=order, faults=FAST, options=Options(detect=DETECT), record=False)
    sim.run(1.0)
    sim["alice"].pause(away)
    sim.run(1.02)
    sim["bob"].crash()
    bob = sim.join("bob", 1.05)
    sim.run(8.0)
    assert bob.is_member and sim["alice"].stack.view.names == ("alice", "cathy", "bob")


@pytest.mark.parametrize("dead", ABC)
@pytest.mark.parametrize("order", ["none", "fifo", "vector", "co", "sco", "total"])
def test_one_that_died_returns_under_its_name(order: str, dead: str) -> None:
    """At once: it waits until the others know that it was gone, and is another incarnation."""
    town = listening(3, order)
    for name in ABC:
        town.send(name, b"before")
    town.wait(0.3)
    town.crash(dead)
    newcomer = town.knock(dead, incarnation=2)
    town.wait(DETECT / 2)
    assert newcomer.refused is None and not is_member(town, dead)
    town.wait(4.0)
    rest = [name for name in ABC if name != dead]
    for name in ABC:
        town.member(name).rejected.clear()
    town.check_together(order, *rest, dead)
    view = town.member(rest[0]).view
    assert view.members[2].identity == (dead, 2) and view.processes == (*map(ABC.index, rest), 3)
    failed = [name for view in town.views(rest[0]) for name in view.failed]
    joined = [name for view in town.views(rest[0]) for name in view.joined]
    assert (failed, joined) == ([dead], [dead])
    assert b"before" not in town.texts(dead), "of another life"


def test_over_and_over() -> None:
    town = listening()
    for life in range(2, 8):
        town.crash("bob")
        town.knock("bob", incarnation=life)
        town.wait(3.0)
        assert is_member(town, "bob") and town.member("alice").view.total == life + 2
    town.check_together("fifo", "alice", "cathy", "bob")


def test_who_returns_where_silence_is_forgiven_waits_until_the_old_one_is_given_up() -> None:
    """And is not refused, for nobody answers by that name."""
    town = Town(3)
    town.crash("bob")
    newcomer = town.knock("bob", incarnation=2)
    town.wait(30.0)
    assert newcomer.refused is None and not is_member(town, "bob")
    assert any(copy.do == "here" and copy.source == "alice" for copy in town.log), "she has looked for him"
    town.session("alice").exclude({1})
    town.turn("alice")
    town.wait(3.0)
    assert is_member(town, "bob") and town.names("cathy") == ("alice", "cathy", "bob")


def test_who_has_left_returns() -> None:
    town = Town(3)
    town.leave("bob")
    town.knock("bob", incarnation=2)
    town.quiet()
    town.check("vector", "alice", "cathy", "bob")


def test_who_has_left_does_not_return_as_the_same() -> None:
    """It would be taken for one that still has everything it had: it is asked to come as another."""
    town = Town(3)
    town.leave("bob")
    town.quiet()
    newcomer = town.knock("bob", incarnation=1)
    town.quiet()
    assert newcomer.member == Member("bob", 2)
    town.check("vector", "alice", "cathy", "bob")
    assert town.member("alice").view.members[2].identity == ("bob", 2)


# Newcomers that die, or seem to


def test_a_newcomer_that_never_hears_its_welcome_is_excluded_and_comes_again() -> None:
    town = listening()
    newcomer = town.knock("dave")

    def lose(copy: Copy) -> bool:
        return copy.do == "welcome"

    town.wait(4 * DETECT, lose, until=lambda: any(view.failed for view in town.views("bob")))
    assert [(view.joined, view.failed) for view in town.views("bob")] == [(("dave",), ()), ((), ("dave",))]
    assert newcomer.view is None and newcomer.member.incarnation == 7
    town.wait(3.0)
    assert newcomer.member.incarnation == 8
    for name in (*ABC, "dave"):
        town.member(name).rejected.clear()
    town.check_together("fifo", *ABC, "dave")


@pytest.mark.parametrize("members", [2, 3])
@pytest.mark.parametrize("loses", [0, 3])
def test_a_newcomer_that_never_hears_its_welcome_since_the_leader_dies_is_told_by_those_who_pause(
    members: int, loses: int
) -> None:
    """Without it they are no majority of the view that has it in it. It is told until it hears that."""
    town = Town(members, "total", options=Options(detect=DETECT, greet=True))
    town.wait(1.0)
    town.knock("zoe")
    names = NAMES[:members]
    town.wait(
        1.0,
        lambda copy: copy.do == "welcome",
        until=lambda: all(town.names(name) == (*names, "zoe") for name in names),
    )
    town.crash("alice")
    town.lose(lambda copy: copy.source == "alice")
    lost: list[Copy] = []

    def lose(copy: Copy) -> bool:
        if copy.do != "welcome" or len(lost) >= loses:
            return False
        lost.append(copy)
        return True

    town.wait(10.0, lose)
    rest = (*names[1:], "zoe")
    assert is_member(town, "zoe") and {town.names(name) for name in rest} == {rest}
    town.check_together("total", *rest)


def test_who_comes_back_and_never_hears_its_welcome_is_told_by_those_who_pause() -> None:
    """It was cut off, and the leader that has let it in dies."""
    town = Town(3, "total", options=Options(detect=DETECT, greet=True))
    town.wait(1.0)
    town.wait(4.0, lambda copy: "cathy" in (copy.source, copy.target))
    assert town.names("alice") == ("alice", "bob")
    town.wait(
        4.0, lambda copy: copy.do == "welcome", until=lambda: town.names("bob") == ("alice", "bob", "cathy")
    )
    town.crash("alice")
    town.lose(lambda copy: copy.source == "alice")
    town.wait(10.0)
    assert {town.names(name) for name in ("bob", "cathy")} == {("bob", "cathy")}
    town.check_together("total", "bob", "cathy")


def test_one_that_was_here_many_times_asks_once_which_incarnation_is_free() -> None:
    town = listening()
    for incarnation in range(1, 41):
        door_of(town).part_with(Member("dave", incarnation))
    newcomer = town.knock("dave")
    town.wait(1.0)
    assert newcomer.member.incarnation == 41 and newcomer.view is not None
    assert len({copy.data for copy in town.log if copy.do == "again"}) == 1


def test_who_asks_no_more_is_not_let_in() -> None:
    """The view is being closed for something else, which takes its time; meanwhile dave has given up."""
    town = Town(3)
    town.use("bob", "fifo")
    town.wait(0.01, lambda copy: copy.do == "flushed")
    assert town.member("bob").closing
    town.knock("dave")
    town.wait(0.2, lambda copy: copy.do == "flushed")
    assert [person.name for person, _ in door_of(town).newcomers()] == ["dave"]
    town.crash("dave")
    town.wait(ASKS_WITHIN, lambda copy: copy.do == "flushed")
    assert door_of(town).newcomers() == []
    town.quiet()
    town.check("fifo", *ABC)


def test_who_asks_on_is_let_in_however_long_it_takes() -> None:
    town = Town(3)
    town.use("bob", "fifo")
    town.wait(0.01, lambda copy: copy.do == "flushed")
    town.knock("dave")
    town.wait(5 * ASKS_WITHIN, lambda copy: copy.do == "flushed")
    town.quiet()
    town.check("fifo", *ABC, "dave")


# What is remembered


def test_who_was_refused_is_not_let_in_by_a_request_that_comes_late() -> None:
    town = Town(2)
    door_of(town)._accepts = lambda member: "not today"
    newcomer = town.knock("dave")
    town.wait(0.5)
    assert newcomer.refused is not None
    requests = [copy for copy in town.log if copy.do == "hello" and copy.target == "alice"]
    town.crash("dave")
    door_of(town)._accepts = None
    for copy in requests:
        town.arrive(copy)
    town.quiet()
    assert town.names("alice") == ("alice", "bob")
    town.knock("dave", incarnation=8)
    town.quiet()
    town.check("vector", "alice", "bob", "dave")


def test_refused_newcomers_are_forgotten_in_the_end() -> None:
    town = Town(2)
    door = door_of(town)
    door._accepts = lambda member: "not today"
    for number in range(REFUSED_MAX + 5):
        town.inject("alice", hello(incarnation=number))
        assert len(door._refused) == min(number + 1, REFUSED_MAX)
    assert Member("dave", 4) not in door._refused and Member("dave", 5) in door._refused


def test_a_group_does_not_grow_beyond_all_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two who come at once one is let in and the other refused; a member that comes back has its place."""
    monkeypatch.setattr("inga.session.door.MEMBERS_MAX", 4)
    town = listening()
    dave, erin = town.knock("dave"), town.knock("erin")
    town.wait(2.0)
    assert dave.refused is None and "it has 4 members" in str(erin.refused)
    assert len(town.names("alice")) == 4
    town.crash("dave")
    town.knock("dave", 8)
    town.wait(2.0)
    assert town.names("alice") == (*ABC, "dave")


def test_those_who_wait_are_not_too_many() -> None:
    town = Town(2)
    door = door_of(town)
    told = [hello(name=f"m{number}") for number in range(REFUSED_MAX + 5)]
    town.member("alice").receive([(each, None) for each in told], now=town.now)
    assert len(door.newcomers()) == REFUSED_MAX
    town.member("alice").receive([(told[0], None)], now=town.now)
    assert len(door.newcomers()) == REFUSED_MAX


def test_those_who_wait_are_not_forgotten_while_a_change_lasts() -> None:
    """As many as there can be ask again and again; nobody can be let in for longer than one question is good for."""
    town = Town(2)
    door, alice = door_of(town), town.member("alice")
    told = [hello(name=f"m{number}") for number in range(REFUSED_MAX)]
    for _ in range(4):
        alice.receive([(each, f"at {number}") for number, each in enumerate(told)], now=town.now)
        town.now += ASKS_WITHIN / 2
    assert len(door.newcomers()) == REFUSED_MAX


def test_who_asks_in_the_name_of_a_member_from_ever_other_places_is_remembered_once() -> None:
    """Wherever it says that it is: a stranger could fill the leader's memory."""
    town = Town(2)
    bob = town.member("alice").view.members[1]
    for number in range(50):
        town.now += 1.0
        told = hello(
            name="bob", incarnation=bob.incarnation, address=f"there:{number}", host=[["alice", 1, ""]]
        )
        town.inject("alice", told, source="bob")
    assert len(door_of(town)._asked_from) == 1


def test_former_members_are_forgotten_in_the_end() -> None:
    door = door_of(Town(2))
    for number in range(FORMER_MAX + 3):
        door.part_with(Member("dave", number))
    assert [door.dismiss("dave", number) for number in (0, 2, 3, FORMER_MAX + 2)] == [
        False,
        False,
        True,
        True,
    ]


def test_who_says_goodbye_again_is_answered_again() -> None:
    """The first answer may have been lost; it is in no view any more by then."""
    town = Town(3)
    stack = town.member("cathy")
    town.leave("cathy")
    goodbye = next(copy for copy in town.log if copy.do == "goodbye" and copy.target == "alice")
    town.quiet()
    assert town.names("alice") == ("alice", "bob")
    before = len(town.log)
    town.at["cathy"] = stack
    town.arrive(goodbye)
    (farewell,) = town.log[before:]
    assert (farewell.do, farewell.target) == ("farewell", "cathy")
