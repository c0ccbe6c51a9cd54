"""Nobody leads yet: whom newcomers ask, who founds the group, and with whom."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from inga.model.errors import UsageError
from inga.model.view import Member, View
from inga.recipes import Options, find
from inga.session.asking import HOST_FOR
from inga.session.description import described
from inga.session.gathering import (
    FACES_MAX,
    FRESH,
    GATHER_MAX,
    GRACE,
    PATIENCE,
    QUIET,
    QUIET_APART,
    Gathering,
)
from inga.session.newcomer import PLACES_TOLD, Newcomer
from inga.session.session import session_of
from inga.session.silence import STAND_INS, STANDS_IN_AFTER
from inga.stack.native import Outsider
from inga.stack.places import PLACE_MAX, PLACES_MAX, Places
from inga.stack.stack import EVERYBODY, Stack
from inga.wire.packet import OUTSIDE

from ..stack.harness import joined
from .test_changes import answer
from .test_newcomer import asked, part
from .town import Copy, Town, worded

DAVE = Member("dave", 7)
TICK = 0.01


def dave(**more: Any) -> Newcomer:
    return Newcomer("", DAVE, now=0.0, founds="vector", **more)


def hello(
    name: str, host: tuple[str, int] | None = None, address: str = "", **more: Any
) -> tuple[bytes, None]:
    """What another one says that has no view."""
    whom = [] if host is None else [[*host, ""]]
    what = {"name": name, "incarnation": 7, "address": address, "group": "00000000", "view": 0, "host": whom}
    what |= {"was": [], "spoken_in": 0, "bound": [], "part": []}
    return answer("hello", **{**what, **more})


def pass_time(newcomer: Newcomer, start: float, end: float, *others: tuple[bytes, None]) -> list[Any]:
    """Let the time pass in which others keep saying the same; whom it asks meanwhile."""
    hosts: list[Any] = []
    for step in range(round(start / TICK), round(end / TICK)):
        now = step * TICK
        newcomer.receive(others, now=now)
        while newcomer.view is None and newcomer.wake <= now:
            for _, datagram in newcomer.tick(now):
                hosts.append(Copy("dave", "", joined(datagram)).told["host"])
    return hosts


def test_who_hears_nobody_founds_a_group_of_one() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, QUIET)
    assert newcomer.view is None
    pass_time(newcomer, QUIET, QUIET + 2 * TICK)
    view = newcomer.view
    assert view is not None and (view.number, view.attempt, view.leader) == (1, 1, 7)
    assert (view.members, view.joined, view.recipe, newcomer.me) == ((DAVE,), ("dave",), "vector", 0)


def test_who_only_wants_to_be_let_in_waits() -> None:
    newcomer = Newcomer("", DAVE, now=0.0)
    pass_time(newcomer, 0.0, 5.0)
    assert newcomer.view is None


def test_whoever_is_higher_asks_the_lowest() -> None:
    newcomer = dave()
    hosts = pass_time(newcomer, 0.0, QUIET + 2 * TICK, hello("bob"), hello("cathy"))
    assert hosts[-1] == [["bob", 7, ""]] and set(map(str, hosts[:-1])) == {"[]"}
    assert newcomer.view is None


def test_the_lowest_founds_it_with_those_who_ask_it_as_soon_as_all_do() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, QUIET + 2 * TICK, hello("erin"), hello("frank"))
    assert newcomer.view is None, "they have not asked yet"
    newcomer.receive([hello("erin", DAVE.identity)], now=QUIET + 3 * TICK)
    assert newcomer.wake > QUIET + 3 * TICK
    newcomer.receive([hello("frank", DAVE.identity)], now=QUIET + 3 * TICK)
    assert newcomer.wake == QUIET + 3 * TICK, "at once"
    pass_time(newcomer, QUIET + 3 * TICK, QUIET + 4 * TICK)
    assert newcomer.view is not None and newcomer.view.names == ("dave", "erin", "frank")


def test_who_does_not_ask_in_time_is_let_in_later() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, QUIET + GRACE + 3 * TICK, hello("erin", DAVE.identity), hello("frank"))
    assert newcomer.view is not None and newcomer.view.names == ("dave", "erin")


def test_the_founder_leads_whoever_asks_it() -> None:
    """Ann has not heard dave's betters, nor has dave heard her while she was free to be one."""
    newcomer = dave()
    pass_time(newcomer, 0.0, QUIET + 3 * TICK, hello("ann", DAVE.identity))
    assert newcomer.view is not None and newcomer.view.names == ("dave", "ann")


def test_nothing_is_founded_beside_a_group_that_is_paused() -> None:
    """Its members would give it up, and all that they have, for a group that goes on and has nothing."""
    town = Town(2, "total", options=Options(detect=1.0, greet=True, open=True))
    town.wait(2.0)
    town.crash("alice")
    town.wait(5.0)
    before = town.member("bob").view
    dave = town.knock("dave")
    dave._founds = "total"
    town.wait(10.0)
    assert dave.view is None and str(dave.refused).startswith("'dave' cannot join: paused: without alice")
    assert town.member("bob").view is before and not town.member("bob").is_homeless


def test_once_nobody_says_any_more_that_it_is_paused_a_group_is_founded() -> None:
    newcomer = dave()
    paused = answer("paused", name="dave", incarnation=7, why="paused: without alice")
    pass_time(newcomer, 0.0, 1.0, paused)
    assert newcomer.view is None and newcomer.refused is None
    pass_time(newcomer, 1.0, 1.0 + FRESH + 0.2)
    assert newcomer.view is not None and newcomer.refused is None


@pytest.mark.parametrize("whom", ["dave", "erin"])
def test_who_is_told_to_wait_founds_nothing_for_a_while_and_is_never_refused_for_that(whom: str) -> None:
    newcomer, soon = dave(), answer("soon", name=whom, incarnation=7)
    pass_time(newcomer, 0.0, 10.0, soon)
    assert newcomer.refused is None and (newcomer.view is None) == (whom == "dave")
    if whom == "dave":
        pass_time(newcomer, 10.0, 9.9 + FRESH)
        assert newcomer.view is None
        pass_time(newcomer, 9.9 + FRESH, 10.2 + FRESH)
        assert newcomer.view is not None and newcomer.refused is None


def test_a_new_face_is_reason_to_wait_but_not_for_ever() -> None:
    newcomer, now = dave(), 0.0
    while newcomer.view is None:
        pass_time(newcomer, now, now + QUIET - 4 * TICK, hello(f"x{now:.2f}"))
        now += QUIET - 4 * TICK
        assert now < GATHER_MAX + GRACE + QUIET
    assert now >= GATHER_MAX


def test_who_is_asked_does_not_let_others_wait_although_more_come() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, TICK, hello("erin", DAVE.identity))
    pass_time(newcomer, TICK, GRACE + 2 * TICK, hello("erin", DAVE.identity), hello("zoe"))
    assert newcomer.view is not None and newcomer.view.names == ("dave", "erin")


def test_whom_others_ask_and_we_have_not_heard_is_asked() -> None:
    """It may lead a view, or be about to; to found another one would be worse."""
    newcomer = dave()
    hosts = pass_time(newcomer, 0.0, QUIET + 2 * TICK, hello("erin", ("zoe", 3)))
    assert hosts[-1] == [["zoe", 3, ""]]


def test_a_leader_is_asked_at_once() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, 2 * TICK, hello("bob"))
    newcomer.receive([part("zoe")], now=2 * TICK)
    assert asked(newcomer, 2 * TICK)["host"] == [["zoe", 1, ""]]


def test_one_that_is_not_heard_any_more_does_not_count() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, 2 * TICK, hello("bob"))
    hosts = pass_time(newcomer, 2 * TICK, QUIET + 3 * TICK)
    assert hosts[-1] == [["bob", 7, ""]]
    end = QUIET + HOST_FOR + GATHER_MAX
    assert FRESH < GATHER_MAX
    hosts = pass_time(newcomer, QUIET + 3 * TICK, end)
    assert hosts[-1] == [] and newcomer.view is None, "bob may lead a view and be late"
    pass_time(newcomer, end, end + 8 * TICK)
    assert newcomer.view is not None and newcomer.view.names == ("dave",)


def test_one_that_was_given_up_and_leads_a_view_by_now_is_asked() -> None:
    """It went, or did not answer; then it was let in elsewhere, or has founded the group, and says so."""
    newcomer, zoe = dave(), hello("zoe", ("ann", 7))
    newcomer.receive([answer("goodbye", name="ann", incarnation=7)], now=0.0)
    assert set(map(str, pass_time(newcomer, 0.0, QUIET, zoe))) == {"[]"}
    newcomer.receive([part("ann", 7)], now=QUIET)
    assert pass_time(newcomer, QUIET, QUIET + 5 * TICK, zoe)[-1] == [["ann", 7, ""]]
    assert newcomer.view is None


def test_one_that_says_goodbye_does_not_count_either() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, QUIET, hello("bob"))
    newcomer.receive([answer("goodbye", name="bob", incarnation=7, group="00000000")], now=QUIET)
    pass_time(newcomer, QUIET, QUIET + 3 * TICK)
    assert newcomer.view is not None and newcomer.view.names == ("dave",)


def test_one_that_has_lost_its_view_founds_nothing() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, QUIET + 3 * TICK, hello("bob", view=3, address="b:1"))
    assert newcomer.view is not None and newcomer.view.names == ("dave",)
    assert list(newcomer.places) == ["b:1"]


def test_of_two_of_one_name_one_is_a_founder() -> None:
    newcomer = dave()
    others = hello("erin", DAVE.identity), hello("erin", DAVE.identity, incarnation=9)
    pass_time(newcomer, 0.0, QUIET + 3 * TICK, *others, hello("dave", DAVE.identity, incarnation=8))
    assert newcomer.view is not None
    assert [person.identity for person in newcomer.view.members] == [("dave", 7), ("erin", 7)]


def test_those_who_mean_another_group_are_not_met() -> None:
    newcomer = dave()
    pass_time(newcomer, 0.0, QUIET + 3 * TICK, hello("bob", group="00000001"))
    assert newcomer.view is not None and newcomer.view.names == ("dave",)


def test_whom_the_driver_objects_to_is_no_founder() -> None:
    """Where each is reached at its address, one that gives none that can be would make the view useless."""
    newcomer = dave(accepts=lambda person: None if person.address == "there:1" else "nowhere")
    erin = hello("erin", DAVE.identity, "there:1", places=[])
    others = erin, hello("frank", DAVE.identity, "")
    pass_time(newcomer, 0.0, QUIET + 3 * TICK, *others)
    assert newcomer.view is not None and newcomer.view.names == ("dave", "erin")


# Places


def reached(newcomer: Newcomer, now: float) -> list[Any]:
    return [to for to, _ in newcomer.tick(now)]


def test_who_is_reached_at_an_address_tells_others_where_there_may_be_more() -> None:
    newcomer = Newcomer("", Member("dave", 7, "d:1"), now=0.0, founds="vector", places=Places(["s:1"], "d:1"))
    assert reached(newcomer, 0.0) == [EVERYBODY, Outsider("s:1")]
    newcomer.receive([hello("bob", None, "b:1", places=["c:1", "d:1", "s:1"])], now=0.0)
    assert reached(newcomer, TICK) == [EVERYBODY, Outsider("s:1"), Outsider("c:1"), Outsider("b:1")]
    ((_, datagram), *_) = newcomer.tick(2 * TICK)
    assert Copy("dave", "", joined(datagram)).told["places"] == ["s:1", "c:1", "b:1"]


def test_a_leader_says_where_it_is() -> None:
    newcomer = dave()
    leader = answer("part", name="zoe", incarnation=1, group="00000000", size=3, address="z:1")
    newcomer.receive([leader], now=0.0)
    assert reached(newcomer, 0.0) == [EVERYBODY, Outsider("z:1")]


def test_somebody_may_be_at_a_new_place() -> None:
    gathering = Gathering(0.0)
    assert gathering.due(DAVE, 0.0) == QUIET
    gathering.expect(0.1)
    assert gathering.due(DAVE, 0.1) == pytest.approx(0.1 + QUIET)


def test_whom_others_ask_in_vain() -> None:
    """Others ask one that is not there any more. Each gives it up at another time, and hears meanwhile that it is asked."""
    gathering, zoe, ann = Gathering(0.0), Member("zoe", 3), ("ann", 7)
    now = 0.0
    for _ in range(PATIENCE):
        now += GATHER_MAX
        gathering.saw(DAVE, zoe, ann, now)
        assert gathering.chosen(DAVE, now) == ann
        gathering.begin_again(ann, now)
    now += GATHER_MAX
    gathering.saw(DAVE, zoe, ann, now)
    assert gathering.chosen(DAVE, now) == DAVE.identity
    gathering.saw(DAVE, Member(*ann), ("bob", 1), now)
    assert gathering.chosen(DAVE, now + GATHER_MAX) == DAVE.identity, "long ago"
    gathering.saw(DAVE, zoe, ann, now + GATHER_MAX)
    assert gathering.chosen(DAVE, now + GATHER_MAX) == ann, "it was heard, and may be there again"
    gathering.gone(ann)
    assert gathering.chosen(DAVE, now + GATHER_MAX) == DAVE.identity


def test_whom_was_asked_in_vain_is_forgotten_some_time() -> None:
    gathering = Gathering(0.0)
    for number in range(2 * FACES_MAX):
        gathering.gone(("ann", number))
    assert len(gathering._in_vain) == FACES_MAX and ("ann", 2 * FACES_MAX - 1) in gathering._in_vain


def test_a_place_that_others_name_is_waited_for() -> None:
    newcomer = Newcomer("", Member("dave", 7, "d:1"), now=0.0, founds="vector")
    ann = hello("ann", None, "a:1", places=[])
    pass_time(newcomer, 0.0, 0.3, ann)
    hosts = pass_time(newcomer, 0.3, QUIET_APART + 5 * TICK, hello("ann", None, "a:1", places=["x:1"]))
    assert set(map(str, hosts)) == {"[]"}
    hosts = pass_time(newcomer, QUIET_APART + 5 * TICK, 0.3 + QUIET_APART + 3 * TICK, ann)
    assert hosts[-1] == [["ann", 7, ""]]


def test_places_are_bounded_and_seeds_stay() -> None:
    places = Places(["s:1", "me:1", "s:1"], "me:1")
    for number in range(2 * PLACES_MAX):
        assert places.learn(f"x:{number}")
    assert not any(map(places.learn, ("", "me:1", "s:1", "x" * (PLACE_MAX + 1))))
    known = list(places)
    assert known[0] == "s:1" and len(known) == PLACES_MAX + 1 and known[-1] == f"x:{2 * PLACES_MAX - 1}"
    assert not places.learn(known[1]) and list(places)[-1] == known[1], "named again, and so the newest"


def test_only_some_places_are_told() -> None:
    newcomer = Newcomer("", Member("dave", 7, "d:1"), now=0.0)
    for number in range(2 * PLACES_TOLD):
        newcomer.places.learn(f"x:{number}")
    ((_, datagram), *_) = newcomer.tick(0.0)
    assert len(Copy("dave", "", joined(datagram)).told["places"]) == PLACES_TOLD


# Members that are reached one by one


def addressed(town: Town) -> None:
    """Let members have addresses: their names."""
    for name in town.members:
        stack = town.member(name)
        people = tuple(replace(person, address=person.name) for person in stack.view.members)
        stack.view = replace(stack.view, members=people)


def spoken(town: Town, do: str, source: str, target: str) -> list[dict[str, Any]]:
    return [copy.told for copy in town.log if (copy.do, copy.source, copy.target) == (do, source, target)]


def test_any_member_tells_a_newcomer_whom_to_ask() -> None:
    """One that knows a single address may not know the leader's."""
    town = Town(3)
    addressed(town)
    town.at["dave"] = dave()
    town.inject("bob", hello("dave", None, "dave")[0], source="dave")
    (part,) = spoken(town, "part", "bob", "dave")
    assert (part["name"], part["incarnation"], part["address"], part["size"]) == ("alice", 1, "alice", 3)
    town.inject("bob", hello("erin")[0], source="dave")
    assert len(spoken(town, "part", "bob", "dave")) == 1, "by multicast the leader hears it itself"


@pytest.mark.parametrize("detect", [1.0, None])
def test_the_next_in_line_tell_newcomers_to_wait_for_a_leader_that_was_not_heard_just_now(
    detect: float | None,
) -> None:
    """By multicast, where the leader would answer by itself. Where any silence is forgiven there is nothing to wait for."""
    town = Town(3, options=Options(detect=detect))
    town.at["dave"] = dave()
    names = town.member("alice").view.names
    for silence in (STANDS_IN_AFTER / 2, 2 * STANDS_IN_AFTER):
        town.log.clear()
        town.now += silence
        for name in names[1:]:
            town.inject(name, hello("dave")[0], source="dave")
        answers = [copy.source for copy in town.log if (copy.do, copy.target) == ("soon", "dave")]
        is_asked = detect is not None and silence > STANDS_IN_AFTER
        assert answers == list(names[1:] if is_asked else ())
        assert all(soon["name"] == "dave" for name in answers for soon in spoken(town, "soon", name, "dave"))
        assert not [copy for copy in town.log if copy.do == "part"], (
            "whom alice does not hear is carried to her"
        )
    town.log.clear()
    town.inject("bob", hello("dave", view=1)[0], source="dave")
    assert not town.log, "one that was a member founds nothing"


def test_not_everybody_in_a_large_group_answers_for_its_leader() -> None:
    view = View.of(*(f"m{number}" for number in range(STAND_INS + 3)))
    answering = []
    for me in range(1, len(view)):
        stack = Stack(find("vector").build(Options(detect=1.0)), me, view, rng=Random(0), now=0.0)
        stack.begin()
        stack.advance(2 * STANDS_IN_AFTER)
        if session_of(stack).silence.stands_in(0):
            answering.append(me)
    assert answering == list(range(1, STAND_INS + 1))


def other_part(size: int, **more: Any) -> bytes:
    what = {"name": "zoe", "incarnation": 1, "group": "00000000", "size": size, "spoken_in": 5, **more}
    return answer("part", **what)[0]


def test_a_member_hands_on_what_it_hears_of_another_part() -> None:
    town = Town(3)
    addressed(town)
    town.inject("bob", other_part(2, address="zoe:1"))
    (part,) = spoken(town, "part", "bob", "alice")
    assert (part["name"], part["size"], part["address"], part["spoken_in"]) == ("zoe", 2, "zoe:1", 5)
    assert list(town.member("bob").places) == ["zoe:1"]
    town.inject("bob", other_part(2))
    assert len(spoken(town, "part", "bob", "alice")) == 1, "by multicast the leader hears it itself"


def test_the_leader_of_a_larger_part_answers_a_smaller_one_at_once() -> None:
    """Also one that it has never lost: those who did may be gone."""
    for is_open in (False, True):
        town = Town(3, options=Options(open=is_open))
        town.inject("alice", other_part(2))
        assert spoken(town, "part", "alice", "bob")
        town.inject("alice", other_part(4))
        town.wait(1.0)
        assert town.session("alice").parts.is_homeless, "the smaller joins the larger"


@pytest.mark.parametrize("name", ["alice", "bob"], ids=["would lead", "would follow"])
def test_a_founder_that_has_met_nobody_gives_up_for_any_part(name: str) -> None:
    """However small that is: otherwise those who have met would give theirs up for one that lets nobody in."""
    town = Town(3, options=Options(greet=True))
    town.inject(name, other_part(1))
    town.wait(0.1, lambda copy: name in (copy.source, copy.target))
    assert town.session(name).parts.is_homeless
    hosts = [copy.told["host"] for copy in town.log if (copy.do, copy.source) == ("hello", name)]
    assert hosts and all(host == [["zoe", 1, ""]] for host in hosts)
    met = Town(3, options=Options(greet=True))
    met.wait(1.0)
    met.inject(name, other_part(1))
    met.wait(0.1)
    assert not met.session(name).parts.is_homeless, "who has met others stays with them"


@pytest.mark.parametrize("order", ["what is to come", "", "miop"])
def test_one_that_comes_back_to_an_order_that_it_cannot_follow_is_told_and_leaves(order: str) -> None:
    """As one of an earlier version does; and whatever is said to it, nothing is raised."""
    town = Town(3, options=Options(greet=True))
    town.inject("bob", other_part(1))
    town.wait(0.1, lambda copy: "bob" in (copy.source, copy.target))
    bob, digest = town.member("bob"), town.session("bob").digest
    view = View(2, (Member("zoe", 1), bob.member), order, processes=(0, 1), total=2)
    words = worded(0, OUTSIDE, "welcome", **described(view), cuts=[0, 0], group=digest, missed={})
    bob.receive([(words, "zoe")], now=town.now)
    ready = bob.ready(now=town.now)
    assert isinstance(ready.error, UsageError) and str(ready.error).startswith("'bob' cannot come back: ")
    assert bob.leaving and any(b'"goodbye"' in joined(datagram) for _, datagram in ready.send)


@pytest.mark.parametrize("partition", ["all", "primary"])
@pytest.mark.parametrize("what", ["a tick", "closed", "again", "another welcome", "go on alone"])
def test_what_comes_in_one_burst_with_a_welcome_does_not_undo_it(what: str, partition: str) -> None:
    """We are in the view once the burst has been read; nobody is asked any more, and we stay who was let in."""
    town = Town(3, options=Options(greet=True, partition=partition))
    town.inject("bob", other_part(1))
    town.wait(0.1, lambda copy: "bob" in (copy.source, copy.target))
    bob, session = town.member("bob"), town.session("bob")
    me = bob.member

    def welcome(name: str, tag: int) -> tuple[bytes, str]:
        view = View(2, (Member(name, 1), me), "vector", processes=(0, 1), total=2, attempt=tag)
        told = described(view) | {"cuts": [0, 0], "group": session.digest, "missed": {}}
        return worded(0, OUTSIDE, "welcome", **told), name

    town.log.clear()
    bob.receive([welcome("zoe", 1)], now=town.now)
    who = {"name": me.name, "incarnation": me.incarnation, "group": session.digest}
    match what:
        case "a tick":
            session.parts.tick(town.now + 100.0)
        case "go on alone":
            session.changes.go_on_alone()
        case "another welcome":
            bob.receive([welcome("yan", 2)], now=town.now)
        case _:
            told = answer(what, **who, why="there is another", free=9)
            bob.receive([told], now=town.now)
    town.turn("bob")
    assert bob.view.names == ("zoe", "bob") and bob.view.members[1] == me and bob.member == me
    assert bob._error is None and not bob.leaving
    town.wait(0.1, lambda copy: True)
    assert not spoken(town, "hello", "bob", "alice")


def test_one_that_goes_on_alone_does_not_say_that_parts_came_together() -> None:
    """Although they had, in the view before."""
    town = Town(2, options=Options(greet=True))
    bob, session = town.member("bob"), town.session("bob")
    bob.view = replace(bob.view, merged=(("bob",), ("alice",)))
    town.inject("bob", other_part(1))
    town.wait(0.0, lambda copy: "bob" in (copy.source, copy.target))
    assert session.parts.is_homeless
    session.changes.go_on_alone()
    town.turn("bob")
    assert bob.view.names == ("bob",) and bob.view.failed == ("alice",) and bob.view.merged == ()


@pytest.mark.parametrize(
    ("number", "is_ours", "is_answered"),
    [(0, False, True), (1, False, True), (1, True, False), (2, False, False)],
    ids=["an older view", "another of the same number", "ours", "a later one"],
)
def test_who_is_paused_is_told_by_those_who_have_gone_on(
    number: int, is_ours: bool, is_answered: bool
) -> None:
    """Ours is view 1. There may be two of one number, and who is in another than we are is without us."""
    town = Town(3)
    stack = town.member("bob")
    tag = stack.wire.tag_of(stack.view)
    town.at["dave"] = dave()
    who = {"name": "dave", "incarnation": 1, "address": ""}
    lost = who | {
        "group": "00000000",
        "view": number,
        "spoken_in": tag if is_ours else tag ^ 1,
        "next": 0,
        "attempt": 0,
        "company": False,
    }
    town.inject("bob", answer("lost", **lost)[0], source="dave")
    told = [(each["name"], each["size"], each["spoken_in"]) for each in spoken(town, "part", "bob", "dave")]
    assert told == ([("alice", 3, tag)] if is_answered else [])


def test_a_leader_says_for_ever_that_it_is_there_where_nobody_has_named_the_members() -> None:
    town = Town(2, options=Options(open=True))
    town.wait(20.0)
    said = len(spoken(town, "part", "alice", "bob"))
    assert 20 <= said <= 41 and not spoken(town, "part", "bob", "alice")
    town = Town(2)
    town.wait(20.0)
    assert not spoken(town, "part", "alice", "bob")


def test_what_is_for_all_who_know_the_group_goes_to_places_too() -> None:
    town = Town(2, options=Options(open=True))
    town.at["elsewhere"] = dave()
    addressed(town)
    for place in ("elsewhere", "bob"):
        town.member("alice").places.learn(place)
    town.log.clear()
    town.wait(2.0)
    # The town lets everybody hear what is for everybody: once for that, and once more for the place.
    assert (
        len(spoken(town, "part", "alice", "elsewhere")) == 2 * len(spoken(town, "part", "alice", "bob")) > 0
    )


def test_where_one_was_that_has_failed_is_not_forgotten() -> None:
    town = Town(3, options=Options(detect=0.5))
    addressed(town)
    town.crash("cathy")
    town.wait(3.0)
    assert town.names("alice") == ("alice", "bob")
    assert list(town.member("alice").places) == ["cathy"]


def test_where_one_was_that_has_left_is() -> None:
    town = Town(3)
    addressed(town)
    town.leave("cathy")
    town.wait(3.0)
    assert town.names("alice") == ("alice", "bob") and not list(town.member("alice").places)
