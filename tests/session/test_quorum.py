"""One that is alone in its view, and hears of others that are paused in the view before."""

from typing import Any

import pytest

from inga.model.view import Member
from inga.recipes import Options

from .test_changes import answer
from .town import Copy, Town

DETECT = 0.5
"""Seconds of silence that are forgiven."""


def of_alice(copy: Copy) -> bool:
    return "alice" in (copy.source, copy.target)


def alone() -> Town:
    """Alice has installed the second view, and was cut off before anybody heard of it."""
    town = Town(3, options=Options(detect=DETECT, greet=True, partition="primary"))
    town.wait(1.0)
    alice = town.member("alice")
    town.use("alice", "fifo")
    town.wait(5.0, lambda copy: copy.do in ("install", "installed"), until=lambda: alice.view.number == 2)
    town.wait(4 * DETECT, of_alice)
    assert alice.paused is not None and not town.session("alice").parts.is_homeless
    return town


def say_lost(town: Town, name: str, **more: Any) -> None:
    """That member says to alice that it is paused in the first view and expects no other."""
    told = {"address": "", "group": town.session("alice").digest, "view": 1, "next": 0, "attempt": 1}
    told |= {"name": name, "incarnation": 1, "spoken_in": town.session("alice").quorum._before}
    town.inject("alice", answer("lost", **{**told, "company": False, **more})[0], source=name)
    town.wait(0.0, of_alice)


def test_one_that_nobody_can_follow_any_more_gives_both_views_up() -> None:
    """And says so of the one that the others are in, so that they do not count it there."""
    town = alone()
    before = town.session("alice").quorum._before
    say_lost(town, "bob")
    assert not town.session("alice").parts.is_homeless, "cathy may be in this view"
    say_lost(town, "cathy")
    assert town.session("alice").parts.is_homeless
    town.wait(0.1, of_alice)
    said = [copy.told for copy in town.log if (copy.do, copy.source) == ("hello", "alice")]
    assert said and said[-1]["was"] == [["alice", 1, ""]] and said[-1]["spoken_in"] == before


@pytest.mark.parametrize(
    "more",
    [{"next": "ours"}, {"attempt": 0}, {"spoken_in": 7}, {"incarnation": 2}],
    ids=["expects this view", "had not agreed to it yet", "is in another view", "is another member"],
)
def test_one_that_others_may_follow_stays(more: dict[str, Any]) -> None:
    """If it gave up, those who install this view late could go on there, and the rest in the one before."""
    town = alone()
    if "next" in more:
        alice = town.member("alice")
        more = {"next": alice.wire.tag_of(alice.view)}
    say_lost(town, "bob")
    say_lost(town, "cathy", **more)
    assert not town.session("alice").parts.is_homeless
    say_lost(town, "cathy")
    assert town.session("alice").parts.is_homeless


def test_one_that_has_heard_another_in_its_view_stays() -> None:
    town = alone()
    alice = town.member("alice")
    alice.heard[alice.view.index(Member("cathy", 1))] = town.now
    say_lost(town, "bob")
    say_lost(town, "cathy")
    assert not town.session("alice").parts.is_homeless


def cut(copy: Copy) -> bool:
    return True


def ahead(town: Town, order: str, number: int) -> None:
    """Alice has installed the next view, and the network was cut everywhere before anybody heard of it."""
    alice = town.member("alice")
    town.use("alice", order)
    town.wait(
        5.0, lambda copy: copy.do in ("install", "installed"), until=lambda: alice.view.number == number
    )
    town.wait(4 * DETECT, cut)
    assert all(town.member(name).paused is not None for name in town.at)
    assert [town.member(name).view.number for name in ("alice", "bob")] == [number, number - 1]


def apart(order: str = "fifo") -> Town:
    town = Town(3, options=Options(detect=DETECT, greet=True, partition="primary"))
    town.wait(1.0)
    ahead(town, order, 2)
    return town


def test_words_of_the_view_before_do_not_count_in_the_next_one() -> None:
    """Bob was paused in the first view, and comes after all. In the third alice is alone again: what bob said was of another
    view, and he may be in this one."""
    town = apart()
    say_lost(town, "bob")
    assert town.session("alice").quorum._behind == {1}
    town.wait(3.0)
    assert {town.member(name).view.number for name in town.at} == {2} and town.member("alice").paused is None
    ahead(town, "vector", 3)
    say_lost(town, "cathy")
    assert not town.session("alice").parts.is_homeless
    say_lost(town, "bob")
    assert town.session("alice").parts.is_homeless


def torn() -> Town:
    """Alice is alone in the second view. Bob is paused in the first and does not come any more: it has begun to go on without
    alice. Cathy is in the first as well."""
    town = Town(3, options=Options(detect=DETECT, greet=True, partition="primary"))
    town.wait(1.0)
    alice = town.member("alice")
    town.use("alice", "fifo")
    town.wait(5.0, lambda copy: copy.do in ("install", "installed"), until=lambda: alice.view.number == 2)
    town.session("bob").exclude({0})
    return town


@pytest.mark.parametrize("decides", ["alice", "bob", "both"])
@pytest.mark.parametrize("fate", ["dies", "leaves", "comes back"])
def test_where_one_that_counts_is_gone_and_has_not_given_up_a_person_decides(fate: str, decides: str) -> None:
    """Cathy could also be in either view, and cut off: who gave up could make two groups. So both stay paused, although they
    hear each other. A goodbye is no better, as cathy has agreed to the second view; nor is another process of that name."""
    town = torn()
    town.wait(4 * DETECT, cut)
    if fate == "leaves":
        town.member("cathy").goodbye(now=town.now)
        town.turn("cathy")
        town.wait(1.0)
    town.crash("cathy")
    if fate == "comes back":
        town.knock("cathy")
    town.wait(20.0)
    both = ("alice", "bob")
    assert town.session("alice").quorum._behind == {1}
    assert [town.member(name).view.number for name in both] == [2, 1]
    assert all(town.member(name).paused is not None and not town.member(name).is_homeless for name in both)
    for name in both if decides == "both" else (decides,):
        town.session(name).go_on()
        town.turn(name)
    town.wait(20.0)
    (view,) = {town.member(name).view for name in both}
    assert sorted(view.names) == ["alice", "bob"] and all(town.member(name).paused is None for name in both)


def test_one_that_has_agreed_to_go_on_stays() -> None:
    """Whoever leads that may have installed the next view with it."""
    town = alone()
    town.session("alice").quorum.promise(1)
    say_lost(town, "bob")
    say_lost(town, "cathy")
    assert not town.session("alice").parts.is_homeless


def test_who_was_paused_before_is_asked_anew_in_another_view() -> None:
    town = alone()
    say_lost(town, "bob")
    town.session("alice").quorum.view()
    assert not town.session("alice").quorum._behind


def of_bob(copy: Copy) -> bool:
    return "bob" in (copy.source, copy.target)


def overtaken() -> tuple[Town, int]:
    """Bob agreed to the second view, and did not hear that it came about: alice seems gone, and he has begun to go on without
    her. In the second view she fails, and cathy is there with dave. And the tag of that view."""
    town = Town(4, options=Options(detect=DETECT, greet=True, partition="primary"))
    town.wait(1.0)
    alice = town.member("alice")
    town.use("alice", "fifo")
    hears_nothing = ("install", "installed")
    town.wait(
        5.0,
        lambda copy: copy.target == "bob" and copy.do in hears_nothing,
        until=lambda: alice.view.number == 2,
    )
    town.wait(0.05, of_bob)
    assert town.member("cathy").view.number == town.member("dave").view.number == 2
    town.crash("alice")
    town.session("bob").exclude({0})
    town.wait(4 * DETECT, of_bob)
    for name in ("bob", "cathy"):
        assert town.member(name).paused is not None and not town.session(name).parts.is_homeless
    return town, alice.wire.tag_of(alice.view)


def test_one_that_others_lack_gives_up_for_the_view_that_it_had_agreed_to() -> None:
    """There it is not counted any more, and the others go on without alice and let it in again."""
    town, tag = overtaken()
    assert town.session("bob").quorum.promised == {0} and town.member("bob").wire.next_tag != tag
    town.wait(10.0)
    assert town.names("cathy") == town.names("dave") == ("cathy", "dave", "bob")
    assert town.names("bob") == ("cathy", "dave", "bob") and town.member("bob").member.incarnation > 1
    town.check_together("fifo", "cathy", "dave", "bob")


@pytest.mark.parametrize(
    "why", ["expects it", "agreed to another", "alone", "another view", "another member"]
)
def test_one_that_may_be_followed_or_counted_elsewhere_does_not_give_up(why: str) -> None:
    town, tag = overtaken()
    bob, quorum = town.member("bob"), town.session("bob").quorum
    told = {"address": "", "group": town.session("bob").digest, "view": 2, "next": 0, "attempt": 0}
    told |= {"name": "cathy", "incarnation": 1, "spoken_in": tag, "company": True}
    right = answer("lost", **told)[0]
    match why:
        case "expects it":
            bob.wire.next_tag = tag
        case "agreed to another":
            quorum.promised.add(2)
        case "alone":
            told["company"] = False
        case "another view":
            told["spoken_in"] = tag ^ 1
        case "another member":
            told["incarnation"] = 2
    town.inject("bob", answer("lost", **told)[0], source="cathy")
    assert not bob.is_homeless
    if why == "agreed to another":
        # Cathy says that she has given up, and not gone into a view that bob had agreed to with her.
        gone = {
            "name": "cathy",
            "incarnation": 9,
            "address": "",
            "group": told["group"],
            "view": 2,
            "wants": "",
            "host": [],
        }
        gone |= {"was": [["cathy", 1, ""]], "spoken_in": tag, "bound": [], "part": []}
        town.inject("bob", answer("hello", **gone)[0], source="cathy")
        assert quorum.promised == {0}
        told["name"] = "dave"
        right = answer("lost", **told)[0]
    elif why == "expects it":
        bob.wire.next_tag = None
    town.inject("bob", right, source="cathy")
    assert bob.is_homeless
