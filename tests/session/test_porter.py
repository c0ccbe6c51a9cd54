"""Who asks to be let in and is heard by others than the leader: when its words are carried, and whose are not."""

from typing import Any

import pytest

from inga.model.packet import Packet
from inga.model.view import Member
from inga.recipes import Options
from inga.session.door import ASKS_WITHIN
from inga.session.newcomer import NOBODY
from inga.session.porter import CALLERS_MAX, CARRIES_AFTER, CARRIES_EVERY, CARRIES_PARTS_EVERY, Carried
from inga.session.session import Session
from inga.stack.stack import joined
from inga.wire.packet import OUTSIDE, encode
from inga.wire.told import said

from .test_changes import HELLO
from .test_door import hello
from .town import Copy, Town, of_session


def town_of_three() -> Town:
    """And dave is outside."""
    town = Town(3)
    town.knock("dave")
    return town


def words(town: Town, do: str) -> list[Copy]:
    """Each once, however many places it goes to: where a member is, is not known before it was met."""
    return list({copy.data: copy for copy in town.log if copy.do == do}.values())


def ask(town: Town, *at: float, **more: object) -> list[float]:
    """Bob alone hears somebody ask at these moments. When he knocks for it."""
    knocks = []
    for moment in at:
        town.now = moment
        town.log.clear()
        town.inject("bob", hello(**more), source="dave")
        knocks += [moment] * len(words(town, "knock"))
    return knocks


def every(pause: float, until: float) -> list[float]:
    return [pause * number for number in range(round(until / pause) + 1)]


def test_who_asks_in_vain_for_a_while_is_carried_now_and_then() -> None:
    knocks = ask(town_of_three(), *every(1 / 16, 1.5))
    assert knocks == pytest.approx(
        [CARRIES_AFTER, CARRIES_AFTER + CARRIES_EVERY, CARRIES_AFTER + 2 * CARRIES_EVERY]
    )


def test_a_knock_has_the_words_themselves_and_nobody_but_the_leader_heeds_it() -> None:
    town = town_of_three()
    assert ask(town, *every(0.5, CARRIES_AFTER), host=[])
    (knock,) = words(town, "knock")
    assert bytes(knock.packet().body) == said("hello", **{**HELLO, "host": []})
    town.inject("cathy", knock.data)
    assert words(town, "reply") == []


def test_who_has_given_up_meanwhile_begins_anew() -> None:
    assert ask(town_of_three(), 0.0, ASKS_WITHIN, ASKS_WITHIN + CARRIES_AFTER / 2) == []
    assert ask(town_of_three(), 0.0, ASKS_WITHIN - 0.01) != []


@pytest.mark.parametrize(
    "more",
    [{"host": [["zoe", 1, ""]]}, {"host": [["alice", 2, ""]]}, {"group": "00000001"}],
    ids=["another part", "another alice", "another group"],
)
def test_who_asks_another_is_not_carried(more: dict[str, Any]) -> None:
    assert ask(town_of_three(), *every(0.5, 2.0), **more) == []
    assert ask(town_of_three(), *every(0.5, 2.0), host=[]) != [], "who asks nobody is"


def test_the_leader_carries_nobody() -> None:
    town = town_of_three()
    for moment in every(0.5, 2.0):
        town.now = moment
        town.inject("alice", hello(host=[]), source="dave")
    assert words(town, "knock") == [] != words(town, "part")


def test_answers_go_back_the_same_way() -> None:
    town = town_of_three()
    assert ask(town, *every(0.5, CARRIES_AFTER), host=[])
    (knock,) = words(town, "knock")
    town.inject("alice", knock.data)
    (reply,) = words(town, "reply")
    assert reply.source == "alice"
    town.inject("bob", reply.data)
    (last,) = words(town, "part")
    assert (last.source, last.target, last.told["name"]) == ("bob", "dave", "alice")


def carrying(source: int, do: str, content: bytes, **what: Any) -> bytes:
    """What a member says, with words of another in it."""
    packet = Packet(source, 1, content, kind=Session.id)
    packet.ext = said(do, **what)
    return joined(encode(packet, 0))


def reply(source: int, name: str = "dave") -> bytes:
    content = said("closed", name="dave", incarnation=7, why="not today")
    return carrying(source, "reply", content, name=name, incarnation=7)


def test_nobody_but_the_leader_answers_and_nobody_but_who_asked_is_answered() -> None:
    town = town_of_three()
    ask(town, 0.0)
    town.inject("bob", reply(2), reply(0, "erin"))
    assert words(town, "closed") == []
    town.inject("bob", reply(0))
    assert [copy.source for copy in words(town, "closed")] == ["bob"]


def test_nothing_but_hello_is_carried() -> None:
    town = town_of_three()
    town.inject("alice", carrying(1, "knock", said("goodbye", name="cathy", incarnation=1)))
    assert town.member("alice").rejected["malformed"] == 1
    assert town.names("alice") == ("alice", "bob", "cathy") and not town.member("alice").left


def part(name: str, size: int, **more: object) -> bytes:
    """What somebody says that leads another part, or for whom another says so."""
    said_of_it = {"incarnation": 7, "address": "", "group": HELLO["group"], "spoken_in": 99}
    return of_session(NOBODY, OUTSIDE, said("part", name=name, size=size, **{**said_of_it, **more}))


def parts(
    town: Town, *at: float, size: int, who: str = "bob", **more: object
) -> list[tuple[float, str, str]]:
    """Somebody hears at these moments that dave leads another part. Of whom it says then that he is there, and to whom."""
    found = []
    for moment in at:
        town.now = moment
        town.log.clear()
        town.inject(who, part("dave", size, **more), source="dave")
        found += [(moment, copy.told["name"], copy.target) for copy in town.log if copy.do == "part"]
    return found


AGAIN = [CARRIES_AFTER, CARRIES_AFTER + CARRIES_PARTS_EVERY]


def test_a_larger_part_that_the_leader_may_not_hear_is_told_to_it() -> None:
    found = parts(town_of_three(), *every(1 / 8, 1.5), size=4)
    assert [(at, name) for at, name, to in found if to == "alice"] == [(at, "dave") for at in AGAIN]


def test_a_smaller_part_that_may_not_hear_the_leader_is_told_of_it() -> None:
    found = parts(town_of_three(), *every(1 / 8, 1.5), size=2)
    assert found == [(at, "alice", "dave") for at in AGAIN]
    found = parts(town_of_three(), *every(1 / 8, 1.5), size=2, address="10.0.0.1:7777")
    assert [each for each in found if each[1] == "alice"] == [(at, "alice", "dave") for at in AGAIN]


def test_a_part_of_which_is_heard_just_now_is_not_carried() -> None:
    """Leaders that hear each other are one part before that; nor is one that is heard hardly ever."""
    for size in (2, 4):
        assert parts(town_of_three(), *every(1 / 8, CARRIES_AFTER - 1 / 8), size=size) == []
        assert parts(town_of_three(), 0.0, ASKS_WITHIN, 2 * ASKS_WITHIN, size=size) == []
        assert parts(town_of_three(), *every(0.5, 2.0), size=size, group="00000001") == []


def test_leaders_of_other_parts_are_not_too_many() -> None:
    town = town_of_three()
    for number in range(CALLERS_MAX + 2):
        town.inject("bob", part("dave", 4, incarnation=number))
    leaders = town.session("bob").porter._leaders
    assert len(leaders) == CALLERS_MAX and ("dave", 1) not in leaders and ("dave", 2) in leaders


def test_those_who_ask_are_not_too_many() -> None:
    town = town_of_three()
    for number in range(CALLERS_MAX + 2):
        town.inject("bob", of_session(NOBODY, OUTSIDE, said("hello", **{**HELLO, "incarnation": number})))
    callers = town.session("bob").porter._callers
    assert len(callers) == CALLERS_MAX and ("dave", 1) not in callers and ("dave", 2) in callers


def test_answers_go_as_words_were_carried_as_long_as_that_way_is_there() -> None:
    """One that is heard need not hear us."""
    town = Town(3)
    view, porter = town.member("alice").view, town.session("alice").porter
    carried, other = (Carried(view.members[by], "dave", 7) for by in (1, 2))
    assert porter.better("dave:1", "dave:2") == "dave:2"
    assert porter.better("dave:1", carried) == carried
    assert porter.better(carried, "dave:1") == carried and porter.better(carried, other) == carried
    town.session("alice").exclude({1})
    assert porter.better(carried, "dave:1") == "dave:1"
    stranger = Carried(Member("zoe", 1), "dave", 7)
    assert porter.better(stranger, other) == other


def test_answers_go_another_way_while_the_one_who_carried_words_is_suspected() -> None:
    """It may be gone, although nobody has excluded it yet."""
    town = Town(3, options=Options(detect=1.0))
    porter, view = town.session("alice").porter, town.member("alice").view
    silence, carried = town.session("alice").silence, Carried(view.members[1], "dave", 7)
    town.wait(2.0)
    town.wait(2.0, lambda copy: copy.source == "bob", until=lambda: silence.suspects == {1})
    assert not town.member("alice").left, "it is suspected only"
    assert porter.better(carried, "dave:1") == "dave:1"


def test_who_asks_on_as_another_incarnation_is_carried_at_once() -> None:
    """It was let in and excluded again, since it did not hear that."""
    town, later = town_of_three(), CARRIES_AFTER + 0.01
    assert ask(town, *every(0.5, CARRIES_AFTER)) == [CARRIES_AFTER]
    assert ask(town, later, incarnation=8) == [later]
    assert ask(town, later + 2 * ASKS_WITHIN, incarnation=12) == []
