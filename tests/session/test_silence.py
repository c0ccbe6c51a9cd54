"""Who is not heard: suspected, asked about, and excluded once nobody hears it; and who must not be."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from inga.model.errors import Excluded
from inga.model.packet import Packet
from inga.recipes import Options
from inga.session.session import Session
from inga.session.silence import BEATS, LOOKS
from inga.stack.stack import joined
from inga.wire.packet import encode
from inga.wire.told import Told, said

from ..stack.harness import NAMES
from .town import Copy, Town, of_session, worded

DETECT = 1.0
SOON = DETECT / LOOKS
"""How often we look while somebody is suspected: a decision takes a few looks."""

ABC = NAMES[:3]
ABCD = NAMES[:4]


def town_of(members: int = 3, order: str = "fifo", detect: float | None = DETECT, **more: Any) -> Town:
    return Town(members, order, options=Options(detect=detect, **more))


def between(*links: tuple[str, str]) -> Callable[[Copy], bool]:
    """Nothing passes over these links, from source to target."""
    return lambda copy: (copy.source, copy.target) in links


def both_ways(one: str, other: str) -> Callable[[Copy], bool]:
    return between((one, other), (other, one))


def said_by(town: Town, name: str, do: str) -> list[Copy]:
    """Each once, however many hear it."""
    first = next(other for other in town.at if other != name)
    return [copy for copy in town.log if (copy.source, copy.target, copy.do) == (name, first, do)]


# Beats


def test_an_idle_member_speaks_a_few_times_within_what_is_forgiven() -> None:
    town = town_of()
    town.wait(10.0)
    for name in ABC:
        assert 9.0 * BEATS <= len(said_by(town, name, "alive")) <= 10.0 * BEATS + 1
    assert not [copy for copy in town.log if copy.do in ("suspect", "heard", "flush")]


def test_who_says_something_to_all_need_not_say_that_it_is_there() -> None:
    town = town_of()
    for _ in range(100):
        town.send("alice", b"and on")
        town.wait(DETECT / BEATS / 2)
    assert said_by(town, "alice", "alive") == []
    assert all(town.names(name) == ABC for name in ABC)


def test_silence_costs_nothing_where_it_is_forgiven() -> None:
    town = town_of(detect=None)
    town.wait(10.0)
    assert town.log == []
    town.crash("cathy")
    town.wait(1000.0)
    assert town.names("alice") == ABC and town.log == []


def test_who_is_alone_listens_to_nobody() -> None:
    town = town_of(1)
    assert town.wake == {"alice": None}


# Failures


@pytest.mark.parametrize("order", ["none", "fifo", "vector", "relay", "co", "sco", "object", "total"])
@pytest.mark.parametrize("dead", ABC)
def test_who_is_not_heard_is_excluded(order: str, dead: str) -> None:
    """In time, by whoever leads without it; what was sent meanwhile is delivered, and no send waits for the dead."""
    town = town_of(3, order, greet=True)
    town.wait(2.0)
    town.crash(dead)
    rest = [name for name in ABC if name != dead]
    start = town.now
    receipts = [town.send(name, b"one") for name in rest]
    town.wait(2.0, until=lambda: all(town.names(name) == tuple(rest) for name in rest))
    assert DETECT - DETECT / BEATS <= town.now - start <= DETECT + 3 * SOON
    view = town.member(rest[0]).view
    assert (view.failed, view.left, view.joined, view.number) == ((dead,), (), (), 2)
    assert f"{dead} has failed: not heard for 1 s" in town.notices
    assert {copy.source for copy in town.log if copy.do == "flush"} == {rest[0]}
    town.wait(1.0)
    assert order in ("relay", "object", "total") or all(receipt.has("confirmed") for receipt in receipts)
    for name in rest:  # bare headers for the dead, whose address was doubted, have reached everybody
        town.member(name).rejected.pop("malformed", None)
    town.check_together(order, *rest)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_silence_is_noticed_at_the_next_look_not_at_the_next_beat(share: float) -> None:
    town = town_of()
    town.wait(2.0 + share * DETECT / BEATS)
    town.send("bob", b"the last word")
    town.settle()
    town.crash("bob")
    start = town.now
    town.wait(2.0, until=lambda: bool(town.session("alice").silence.suspects))
    assert DETECT <= town.now - start <= DETECT + SOON


@pytest.mark.parametrize("dead", [("alice", "bob"), ("bob", "dave"), ("alice", "dave"), ("cathy", "dave")])
def test_two_at_once_are_one_change(dead: tuple[str, str]) -> None:
    town = town_of(4)
    town.wait(2.0)
    town.crash(*dead)
    rest = tuple(name for name in ABCD if name not in dead)
    town.check_together("fifo", *rest)
    (view,) = town.views(rest[0])
    assert view.failed == dead


def test_one_after_another_until_one_is_left() -> None:
    town = town_of(4)
    for dead in ("bob", "alice", "dave"):
        town.wait(2.0)
        town.crash(dead)
        town.wait(2.0)
    assert [view.failed for view in town.views("cathy")] == [("bob",), ("alice",), ("dave",)]
    assert town.member("cathy").writable and town.member("cathy").me == 0
    town.send("cathy", b"to nobody")


def test_the_last_two_of_which_one_is_gone() -> None:
    """There is nobody to ask."""
    town = town_of(2)
    town.wait(2.0)
    town.crash("alice")
    town.wait(2.0)
    assert town.names("bob") == ("bob",)


# Who must not be excluded


@pytest.mark.parametrize("pair", [("alice", "bob"), ("alice", "cathy"), ("bob", "cathy")])
def test_one_bad_link_is_nobodys_death(pair: tuple[str, str]) -> None:
    """The third hears both, and says so; from then on they hear each other by it."""
    town = town_of()
    town.wait(2.0)
    town.wait(20.0, both_ways(*pair))
    assert all(town.names(name) == ABC for name in ABC)
    third = next(name for name in ABC if name not in pair)
    vouched = [copy for copy in town.log if copy.source == third and copy.do == "heard"]
    assert [copy.target for copy in vouched] == list(pair), "once each"
    passed = [copy for copy in town.log if copy.source == third and copy.do == "passed"]
    assert len(passed) >= 2 * 18 * BEATS
    town.send(pair[0], b"by the third")
    town.wait(0.1, both_ways(*pair))
    assert b"by the third" in town.texts(pair[1])
    town.wait(3 * DETECT)
    assert all(town.member(name).wire.also is None for name in pair), "heard straight again"
    town.check("fifo", *ABC)


def test_hearsay_is_not_passed_on() -> None:
    """Else two that were told so by each other would vouch for a dead one for ever."""
    town = town_of(4)
    town.wait(2.0)
    town.wait(
        DETECT + SOON, between(("dave", "alice")), until=lambda: said_by(town, "alice", "suspect") != []
    )
    town.under_way.clear()
    town.inject("alice", worded(1, 1, "heard", member=3))
    assert town.session("alice").silence.suspects == set(), "that is enough for alice"
    town.inject("alice", worded(2, 1, "suspect", members=[3], waived=[]))
    assert not [copy for copy in town.under_way if copy.do == "heard"], "but nothing she has seen herself"


def test_a_bad_link_does_not_save_the_dead() -> None:
    town = town_of(4)
    town.wait(2.0)
    town.crash("bob")
    town.wait(3.0, both_ways("cathy", "dave"))
    assert {town.names(name) for name in ("alice", "cathy", "dave")} == {("alice", "cathy", "dave")}


def test_a_founder_that_others_have_met_is_no_absent_one() -> None:
    """Alice dies before bob and cathy, who do not hear each other, could know of each other by the rest."""
    town = town_of(5, greet=True)
    town.wait(0.1, both_ways("bob", "cathy"))
    town.crash("alice")
    town.wait(5 * DETECT, both_ways("bob", "cathy"))
    rest = NAMES[1:5]
    assert {town.names(name) for name in rest} == {rest}
    assert all(town.member(name).view.number == 2 for name in rest)


def test_a_founder_that_nobody_has_met_keeps_nobody_up() -> None:
    town = town_of(4, greet=True)
    town.crash("bob")
    town.wait(0.1)
    town.crash("alice")
    town.wait(2 * DETECT)
    assert {town.names(name) for name in ("cathy", "dave")} == {("cathy", "dave")}


@pytest.mark.parametrize("goes", ["crash", "leave"])
def test_without_founders_that_nobody_has_met_there_may_be_no_majority(goes: str) -> None:
    """Then those who are left pause, also when they have parted with the one that is gone before they could be sure."""
    town = town_of(6, "total", greet=True)
    town.crash("cathy", "dave", "erin")
    town.wait(0.1)
    if goes == "crash":
        town.crash("alice")
    else:
        town.leave("alice")
    town.wait(4 * DETECT)
    for name in ("bob", "frank"):
        paused = town.member(name).paused
        assert paused is not None and {"cathy", "dave", "erin"} <= set(paused.missing)
        assert "frank" not in paused.missing


def test_who_has_parted_with_one_before_it_pauses_tells_the_others() -> None:
    """Bob takes alice for dead when dave may still come. When he cannot go on without both, no view follows by which cathy
    would hear of it."""
    town = town_of(4, "total", greet=True)
    town.crash("dave")
    town.wait(0.1)
    town.crash("alice")
    town.wait(
        4 * DETECT, lambda copy: copy.source == "bob" and copy.do == "suspect" and town.now < 1.5 * DETECT
    )
    assert "alice" in [town.member("bob").view.names[member] for member in town.member("bob").failed]
    for name in ("bob", "cathy"):
        paused = town.member(name).paused
        assert paused is not None and paused.missing == ("alice", "dave")


def test_who_was_taken_for_dead_and_says_goodbye_does_not_count_any_more() -> None:
    """Bob goes on without alice, and then cathy and dave die before the view has changed: two are left of five. When alice says
    that she leaves it is two of four, bob first among them."""
    town = town_of(5, "total", greet=True)
    town.wait(0.1)

    def is_hidden(copy: Copy) -> bool:
        return "alice" in (copy.source, copy.target)

    town.crash("cathy")
    town.wait(10.0, is_hidden, until=lambda: bool(town.member("bob").failed))
    town.crash("dave")
    town.wait(4 * DETECT, is_hidden)
    assert all(town.member(name).paused is not None for name in ("bob", "erin"))
    town.leave("alice")
    town.wait(4 * DETECT)
    assert {town.names(name) for name in ("bob", "erin")} == {("bob", "erin")}


def test_one_way_in_which_a_member_is_not_heard() -> None:
    """Alice does not hear cathy, who hears alice: suspected, cathy says that she is there, and bob has heard it."""
    town = town_of()
    town.wait(2.0)
    town.wait(10.0, between(("cathy", "alice")))
    assert all(town.names(name) == ABC for name in ABC)


def test_who_is_suspected_says_at_once_that_it_is_there() -> None:
    town = town_of()
    town.inject("bob", worded(0, 1, "suspect", members=[1], waived=[]))
    assert {(copy.do, copy.target) for copy in town.under_way} == {("alive", "alice"), ("alive", "cathy")}


def test_who_hears_a_suspect_tells_the_one_who_asked() -> None:
    town = town_of()
    town.wait(1.1)
    town.inject("bob", worded(0, 1, "suspect", members=[2], waived=[]))
    assert {copy.do for copy in town.under_way} == {"heard"}
    assert {copy.told["member"] for copy in town.under_way} == {2}


def test_who_does_not_hear_it_either_votes_with_the_one_who_asked() -> None:
    """A moment earlier than by itself; but it is not for bob to begin, as long as he hears alice."""
    town = town_of()
    town.wait(2.0)
    town.wait(0.6 * DETECT, lambda copy: copy.source == "cathy")
    town.inject("bob", worded(0, 1, "suspect", members=[2], waived=[]))
    assert town.session("bob").silence.suspects == {2}
    assert not town.under_way and not town.member("bob").left
    for name in ("alice", "bob"):
        town.inject(name, worded(2, 1, "alive"))
    town.wait(2 * SOON, lambda copy: copy.do == "heard")
    assert town.session("bob").silence._votes == {}, "there she is"
    assert town.names("bob") == ABC


def test_a_vote_of_one_that_is_gone_does_not_count() -> None:
    town = town_of(4)
    town.wait(2.0)
    town.wait(0.6 * DETECT, lambda copy: copy.source == "dave")
    town.inject("alice", worded(1, 1, "suspect", members=[3], waived=[]))
    silence = town.session("alice").silence
    assert silence._votes == {3: {0, 1}}
    town.member("alice").gone(1)
    assert silence._votes == {3: {0}}


# Our own clock


def test_a_machine_that_was_stopped_does_not_take_the_others_for_dead() -> None:
    """All of them sleep for a minute, as in a computer whose lid is closed."""
    town = town_of()
    town.wait(2.3)
    town.under_way.clear()
    town.now += 60.0
    town.wait(10.0)
    assert all(town.names(name) == ABC for name in ABC)
    assert not [copy for copy in town.log if copy.do == "suspect"]
    town.check("fifo", *ABC)


def test_who_was_stopped_for_long_still_knows_whom_it_has_heard_in_its_view() -> None:
    """That counts for who may go on, and nothing of it was unsaid meanwhile."""
    town = town_of()
    town.wait(2.0)
    silence = town.session("alice").silence
    assert silence.has_spoken(1) and silence.has_spoken(2)
    town.now += 100.0
    town.tick("alice")
    assert silence.forgiven > 90.0 and silence.has_spoken(1) and silence.has_spoken(2)
    silence.view()
    assert not silence.has_spoken(1) and not silence.has_spoken(2)


def test_a_machine_that_is_late_forgives_as_much_more() -> None:
    """Alice comes to look half a second late, every time: then it takes so much longer until she is sure."""
    town = town_of(2)
    town.wait(2.0)
    town.crash("bob")
    town.wake["alice"] = None
    stack, start = town.member("alice"), town.now
    while town.names("alice") != ("alice",):
        wake = stack.ready().wake
        assert wake is not None and town.now - start < 20.0
        town.now = wake + 0.5
        town.tick("alice")
    assert town.now - start > 2 * DETECT


def test_who_was_stopped_and_reads_first_that_another_is_suspected_does_not_vote_with_it() -> None:
    """What comes of cathy still waits to be read: drivers read what has come before they look at the clock."""
    town = town_of()
    town.wait(2.0)
    town.now += 0.8 * DETECT
    town.inject("alice", worded(1, 1, "suspect", members=[2], waived=[]))
    assert not town.member("alice").left and town.session("alice").silence.suspects == set()
    town.wait(5.0)
    assert all(town.names(name) == ABC for name in ABC)


def test_who_was_stopped_and_hears_that_another_is_there_believes_that_no_longer_than_ever() -> None:
    """All sleep for an hour while alice is about to say that she hears cathy; then cathy dies."""
    town = town_of()
    town.wait(2.0)
    town.wait(2 * DETECT, between(("cathy", "bob")), until=lambda: said_by(town, "bob", "suspect") != [])
    town.under_way.clear()
    town.now += 3600.0
    town.inject("bob", worded(0, 1, "heard", member=2))
    town.crash("cathy")
    town.wait(4 * DETECT)
    assert {town.names(name) for name in ("alice", "bob")} == {("alice", "bob")}


def test_a_leader_that_was_stopped_and_reads_first_what_one_says_goes_on_without_nobody() -> None:
    """A change has waited for cathy, who is heard; then all sleep for a minute, and bob is heard first."""
    town = town_of()
    town.wait(2.0)
    town.use("alice", "vector")
    town.wait(3 * DETECT, lambda copy: copy.source == "cathy" and copy.do == "reached")
    town.under_way.clear()
    town.now += 60.0
    town.inject("alice", worded(1, 1, "alive"), worded(1, 1, "install", number=1))
    assert not town.member("alice").left
    town.wait(3 * DETECT)
    town.check("vector", *ABC)


def test_who_was_stopped_has_not_waited_meanwhile_for_word_of_founders_that_it_has_not_met() -> None:
    town = town_of(4, greet=True)
    town.wait(2 * DETECT, both_ways("alice", "dave"), until=lambda: said_by(town, "alice", "unmet") != [])
    town.under_way.clear()
    town.now += 60.0
    town.tick("alice")
    assert not town.session("alice").silence.is_sure


def test_who_was_stopped_goes_round_for_one_that_has_not_said_meanwhile_that_it_needs_that() -> None:
    town = town_of()
    town.wait(2.0)
    town.wait(3 * DETECT, between(("alice", "bob")))
    assert town.member("alice").wire.also is not None
    town.now += 60.0
    town.tick("alice")
    assert town.member("alice").wire.also is not None


def test_who_goes_on_after_a_pause_and_is_stopped_waits_as_long_for_the_others() -> None:
    """The cut has ended, and three of five have heard each other; then all sleep for a minute."""
    town = town_of(5, "total", greet=True)
    town.wait(2.0)
    town.wait(3 * DETECT, lambda copy: True)
    assert all(town.member(name).paused is not None for name in NAMES[:5])
    first = {*ABC}
    town.wait(
        DETECT,
        lambda copy: not {copy.source, copy.target} <= first,
        until=lambda: all(town.member(name).paused is None for name in ABC),
    )
    town.under_way.clear()
    town.now += 60.0
    for name in ABC:
        town.tick(name)
    town.wait(5.0)
    assert all(town.names(name) == NAMES[:5] and not town.views(name) for name in NAMES[:5])


def test_a_short_silence_is_forgiven() -> None:
    town = town_of()
    for _ in range(10):
        town.wait(2.0)
        town.wait(0.7 * DETECT, lambda copy: "bob" in (copy.source, copy.target))
    assert not [copy for copy in town.log if copy.do == "flush"]


# Who was excluded and is alive


@pytest.mark.parametrize("silent", ABC)
def test_who_is_excluded_is_told_and_stops(silent: str) -> None:
    town = town_of()
    town.wait(2.0)
    rest = tuple(name for name in ABC if name != silent)
    town.wait(
        3.0,
        lambda copy: copy.source == silent,
        until=lambda: all(town.names(name) == rest for name in rest),
    )
    assert all(town.names(name) == rest for name in rest)
    for name in rest:
        town.send(name, b"without you")
    town.wait(3.0)
    assert isinstance(town.errors.get(silent), Excluded)
    assert b"without you" not in town.texts(silent)
    assert [view.names for view in town.views(silent)] == []
    town.crash(silent)
    town.check_together("fifo", *rest)


def test_parts_that_do_not_hear_each_other_go_on_by_themselves_and_find_together() -> None:
    town = town_of(4, rejoin=True)
    town.wait(2.0)
    parts = [{"alice", "cathy"}, {"bob", "dave"}]

    def lose(copy: Copy) -> bool:
        return not any({copy.source, copy.target} <= part for part in parts)

    town.wait(3.0, lose)
    assert [town.names(name) for name in ABCD] == [("alice", "cathy"), ("bob", "dave")] * 2
    for name in ABCD:
        town.send(name, f"apart {name}".encode())
    town.wait(1.0, lose)
    assert [town.texts(name)[-1:] for name in ABCD] == [
        [f"apart {name}".encode()] for name in ("cathy", "dave", "alice", "bob")
    ]
    town.wait(6.0)
    (view,) = {town.member(name).view for name in ABCD}
    assert sorted(view.names) == list(ABCD)
    for name in ABCD:
        town.send(name, f"together {name}".encode())
    town.wait(2.0)
    for name in ABCD:
        assert {f"together {other}".encode() for other in ABCD if other != name} <= {*town.texts(name)}


def handed_on(by: int, member: int, datagram: bytes) -> bytes:
    """What one says that passes on the datagram of another."""
    packet = Packet(by, 1, datagram, kind=Session.id)
    packet.ext = said("passed", member=member, needs=False)
    return joined(encode(packet, 0))


def test_what_was_handed_on_is_not_unpacked_any_further() -> None:
    """Else datagrams within datagrams within datagrams could be as deep as somebody pleases."""
    town = town_of(4)
    town.send("dave", b"of dave")
    (straight,) = [copy.data for copy in town.under_way if copy.target == "alice"]
    town.lose(lambda copy: True)
    once = handed_on(2, 3, straight)
    town.inject("alice", handed_on(1, 2, once))
    assert town.texts("alice") == []
    town.inject("alice", once)
    assert town.texts("alice") == [b"of dave"]


# Words


@pytest.mark.parametrize("do", ["suspect", "heard"])
def test_words_of_the_wrong_kind(do: str) -> None:
    town = town_of()
    wrong: list[object] = [None, True, "2", 1.5, {}, [[]], ["2"], [None], [-1], [1 << 40]]
    for value in [*wrong, *([-1, 1 << 31] if do == "heard" else [7])]:
        content = json.dumps(
            {"do": do, "waived": [], "members" if do == "suspect" else "member": value}
        ).encode()
        town.inject("bob", of_session(0, 1, content))
        assert town.member("bob").rejected.pop("malformed") == 1, value
    assert not town.under_way and not town.session("bob").silence.suspects


def test_those_who_never_were_here_are_nobodys_concern() -> None:
    town = town_of()
    town.inject("bob", worded(0, 1, "suspect", members=[3, 99], waived=[]), worded(0, 1, "heard", member=99))
    assert not town.under_way and town.session("bob").silence._votes == {}


def test_looks_grow_frequent_only_while_somebody_is_suspected() -> None:
    town = town_of()
    town.wait(2.0)
    times: list[float] = []
    town.wait(5.0, until=lambda: bool(times.append(town.now)))  # type: ignore[func-returns-value]
    calm = [later - earlier for earlier, later in pairwise(sorted(set(times))) if later - earlier > 1e-9]
    assert min(calm) >= SOON / 4, "somebody looks, but nobody all the time"


def test_a_way_round_ends_with_the_one_it_leads_to_and_with_the_view() -> None:
    town = Town(3, options=Options(detect=DETECT, greet=True))
    town.wait(1.0)
    session = town.session("alice")
    detours, stack = session.detours, town.member("alice")

    def goes_round() -> bool:
        before = len(town.log)
        session.say(None, stack.view.number, "alive", {})
        town.turn("alice")
        town.under_way.clear()
        return any(copy.do == "pass" for copy in town.log[before:])

    heard = next(copy.data for copy in town.log if (copy.source, copy.do) == ("cathy", "alive"))
    packet = Packet(1, stack.view.number, heard)
    stack.now = town.now
    stack.heard[2] = town.now - 2 * DETECT
    detours.on_passed(packet, Told({"member": 2, "needs": True}))
    assert goes_round() and not detours.hears(2, DETECT)
    detours.gone(2)
    assert not goes_round()
    detours.on_passed(packet, Told({"member": 2, "needs": True}))
    detours.view()
    assert not goes_round() and detours.hears(2, DETECT), "it may be another one that has this place now"
    detours.begin(2, 1)
    detours.review(DETECT)
    assert not goes_round(), "nobody has said in this view that it needs that"
