"""Views that change: every step lost, doubled or late; refusals, leaving, malformed words, pickles."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from inga.layers.bundle import Bundle
from inga.layers.fifo import Unordered
from inga.layers.flow import Flow
from inga.layers.reliable import Reliable
from inga.layers.shape import Faults
from inga.model.delivery import Batch
from inga.model.errors import UsageError, WouldBlock
from inga.model.view import Member, View
from inga.recipes import Options
from inga.recipes import recipe as registry
from inga.session.door import NAME_MAX
from inga.session.newcomer import NOBODY, Newcomer
from inga.session.pressure import WARN_AFTER
from inga.session.questions import PAUSE_MAX
from inga.session.session import Session
from inga.stack.layer import Layer
from inga.stack.stack import Stack
from inga.wire.packet import OUTSIDE

from ..stack.harness import NAMES
from .town import Copy, Town, of_session, worded

ORDERS = ("none", "fifo", "vector")
ABC = NAMES[:3]
ABCD = NAMES[:4]


def chatter(town: Town, tag: str) -> None:
    """Everybody who may says something."""
    for name in town.members:
        if town.member(name).writable:
            town.send(name, f"{tag} {name}".encode())


def is_data_of_bob(copy: Copy) -> bool:
    return copy.source == "bob" and copy.data[3] == 0


def talk(town: Town, rounds: int = 20, seconds: float = 0.02) -> None:
    """For a while, so that changes happen between messages."""
    for number in range(rounds):
        chatter(town, str(number))
        town.wait(seconds / rounds)


def the_first(do: str, times: int) -> Callable[[Copy], bool]:
    """The first so many copies that say so."""
    left = times

    def is_one(copy: Copy) -> bool:
        nonlocal left
        if copy.do != do or not left:
            return False
        left -= 1
        return True

    return is_one


# Another recipe


@pytest.mark.parametrize("asker", ABC)
@pytest.mark.parametrize("before", ORDERS)
@pytest.mark.parametrize("after", ORDERS)
def test_use(asker: str, before: str, after: str) -> None:
    town = Town(3, before)
    talk(town)
    outcome = town.use(asker, after)
    talk(town)
    town.quiet()
    assert outcome == [None]
    town.check(after, *ABC)
    assert town.member("alice").view.number == (1 if before == after else 2)


STEPS_OF_USE = "use flush flushed cut reached install installed".split()


@pytest.mark.parametrize("do", STEPS_OF_USE)
@pytest.mark.parametrize("times", [1, 2, 5])
def test_use_with_a_step_lost(do: str, times: int) -> None:
    town = Town(3, "vector")
    talk(town)
    lose = the_first(do, times)
    outcome = town.use("cathy", "fifo")
    town.wait(5.0, lose)
    assert outcome == [None]
    assert not lose(Copy("", "", of_session(0, 1, b'{"do":"%s"}' % do.encode()))), "so many were lost"
    town.check("fifo", *ABC)


@pytest.mark.parametrize("do", STEPS_OF_USE)
def test_use_with_a_step_that_comes_again_later(do: str) -> None:
    """In the new view, and in the middle of the next change."""
    town = Town(3, "vector")
    town.use("cathy", "fifo")
    town.quiet()
    old = [copy for copy in town.log if copy.do == do]
    assert old
    for copy in old:
        town.arrive(copy)
    outcome = town.use("bob", "none")
    for copy in old:
        town.arrive(copy)
    town.quiet()
    for copy in old:
        town.arrive(copy)
    assert outcome == [None]
    town.check("none", *ABC)


def test_nothing_is_sent_between_flush_and_install() -> None:
    town = Town(3)
    town.use("alice", "fifo")
    town.wait(0.0, lambda copy: copy.do == "cut")
    for name in ABC:
        assert town.member(name).closing
        with pytest.raises(WouldBlock):
            town.member(name).send(b"too late", now=town.now)
    town.quiet()
    town.check("fifo", *ABC)


def test_the_view_stands_between_the_messages_of_before_and_after() -> None:
    town = Town(3)
    for number in range(3):
        talk(town)
        town.use(NAMES[number], ("fifo", "none", "vector")[number])
        talk(town)
    town.check("vector", *ABC)
    for name in ABC:
        seen = [1]
        for item in town.items[name]:
            if isinstance(item, View):
                assert item.number == seen[-1] + 1
                seen.append(item.number)
            else:
                assert item.view == seen[-1]
        assert seen == [1, 2, 3, 4]


def test_use_of_the_order_in_force() -> None:
    town = Town(3, "fifo")
    assert town.use("bob", "fifo") == [None]
    assert not town.under_way and town.changes("bob").settled
    town.check("fifo", *ABC)


def test_use_of_the_order_in_force_while_it_is_being_changed() -> None:
    """Whoever asks for it gets it: after the change that is under way, or at once if that is refused."""
    town = Town(3, "vector")
    town.use("alice", "fifo")
    town.wait(1.0, lambda copy: copy.do == "install", until=lambda: town.member("alice").view.number == 2)
    assert town.member("bob").view.recipe == "vector"
    outcome = town.use("bob", "vector")
    assert outcome == []
    town.quiet()
    assert outcome == [None] and town.member("bob").view.number == 3
    town.check("vector", *ABC)
    refuse_at(town, "cathy")
    town.use("alice", "none")
    town.wait(0.0, lambda copy: copy.do == "cannot")
    outcome = town.use("bob", "vector")
    assert outcome == [] and town.member("bob").closing
    town.quiet()
    assert outcome == [None]
    town.check("vector", *ABC)


def test_one_wish_at_a_time() -> None:
    town = Town(3)
    town.use("bob", "fifo")
    with pytest.raises(UsageError, match="has asked for a change of order that is still under way"):
        town.changes("bob").propose("none", lambda why: None)
    town.quiet()
    town.check("fifo", *ABC)


def test_two_propose_at_once() -> None:
    town = Town(3)
    outcomes = [town.use("cathy", "fifo"), town.use("bob", "none"), town.use("alice", "fifo")]
    town.quiet()
    assert outcomes == [[None]] * 3
    town.check(town.member("alice").view.recipe, *ABC)
    assert town.member("alice").view.number in (3, 4), "all were tried, one after another"


@pytest.mark.parametrize("seed", range(25))
def test_changes_in_a_storm(seed: int) -> None:
    rng = Random(seed)
    town = Town(rng.randint(2, 4), rng.choice(ORDERS), seed=seed)
    names = town.members
    outcomes = []
    for _ in range(3):
        chatter(town, "before")
        askers = [name for name in rng.sample(names, rng.randint(1, 2)) if town.changes(name).settled]
        outcomes += [town.use(name, rng.choice(ORDERS)) for name in askers]
        town.storm(loss=0.3, doubled=0.3, turns=rng.randint(10, 400))
        chatter(town, "after")
    town.quiet()
    assert outcomes == [[None]] * len(outcomes)
    town.check(town.member("alice").view.recipe, *names)


def test_alone() -> None:
    town = Town(1)
    town.send("alice", b"to nobody")
    outcome = town.use("alice", "fifo")
    town.quiet()
    assert outcome == [None]
    town.check("fifo", "alice")


# Refusals


def refuse_at(town: Town, name: str) -> None:
    """That member does not know the orders the others know."""

    def build(recipe: str) -> list[Layer]:
        raise UsageError(f"no order {recipe!r}")

    town.changes(name)._build = build


@pytest.mark.parametrize("asker", ABC)
@pytest.mark.parametrize("stranger", ABC)
@pytest.mark.parametrize("lost", ["", "cannot", "refused", "flushed", "use"])
def test_an_order_unknown_to_one_member(asker: str, stranger: str, lost: str) -> None:
    """Refused, with who and why; everybody goes on sending, whatever is lost."""
    if asker == stranger:
        return
    town = Town(3)
    refuse_at(town, stranger)
    lose = the_first(lost, 2)
    talk(town)
    outcome = town.use(asker, "fifo")
    town.wait(5.0, lose)
    assert outcome == [f"{stranger}: no order 'fifo'"]
    town.check("vector", *ABC)


def test_unknown_to_the_asker_itself() -> None:
    town = Town(3)
    with pytest.raises(UsageError, match="no order 'nonsense'"):
        town.use("bob", "nonsense")
    town.check("vector", *ABC)


def test_a_refusal_that_comes_late_does_not_end_the_next_attempt() -> None:
    """Otherwise members would go on sending while the leader reckons with what they had sent."""
    town = Town(3)
    build = town.changes("cathy")._build
    refuse_at(town, "cathy")
    assert town.use("bob", "fifo") == []
    town.quiet()
    refusals = [copy for copy in town.log if copy.do in ("refused", "cannot")]
    assert {copy.do for copy in refusals} == {"refused", "cannot"}
    town.changes("cathy")._build = build
    outcome = town.use("bob", "fifo")
    for _ in range(6):
        for copy in refusals:
            town.arrive(copy)
        if town.under_way:
            town.arrive(town.under_way[0])
    town.quiet()
    assert outcome == [None]
    town.check("fifo", *ABC)


def test_who_missed_the_refusal_follows_the_next_attempt_only() -> None:
    """The same number, another recipe: nobody may install the old one."""
    town = Town(3)
    refuse_at(town, "cathy")
    lost: list[Copy] = []

    def lose(copy: Copy) -> bool:
        if copy.target == "bob" and copy.do == "refused":
            lost.append(copy)
            return True
        return False

    first = town.use("alice", "fifo")
    town.wait(0.0, lose)
    assert first == ["cathy: no order 'fifo'"] and town.member("bob").closing and lost
    town.changes("cathy")._build = town.changes("bob")._build
    second = town.use("alice", "none")
    town.wait(5.0, lose)
    assert second == [None]
    town.check("none", *ABC)


def test_who_missed_all_refusals_is_told_of_the_last_one() -> None:
    """It follows the first attempt, and answers that; nobody else speaks of it any more."""
    town = Town(3)
    refuse_at(town, "cathy")

    def lose(copy: Copy) -> bool:
        return copy.target == "bob" and copy.do in ("refused", "flush") and bool(town.member("bob").closing)

    for attempt in (1, 2):
        outcome = town.use("alice", "fifo")
        town.wait(0.0, lose)
        assert outcome == ["cathy: no order 'fifo'"], attempt
    closing = town.changes("bob").closing
    assert closing is not None and closing.key["attempt"] == 1
    town.wait(2.0)
    assert not town.member("bob").closing
    town.check("vector", *ABC)


def test_a_wish_is_not_ended_by_the_refusal_of_anothers() -> None:
    town = Town(3)
    build = town.changes("cathy")._build

    def picky(recipe: str) -> list[Layer]:
        if recipe == "fifo":
            raise UsageError("not that")
        return build(recipe)

    town.changes("cathy")._build = picky
    bad, good = town.use("bob", "fifo"), town.use("alice", "none")
    town.quiet()
    assert (bad, good) == (["cathy: not that"], [None])
    town.check("none", *ABC)


def test_orders_that_a_running_group_cannot_change_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_recipes", dict(registry._recipes))
    registry.register("bound", lambda options: [Bundle(), Unordered(), Flow(), Reliable()])
    town = Town(2)
    with pytest.raises(UsageError, match="cannot change to the order 'bound'"):
        town.use("alice", "bound")
    with pytest.raises(UsageError, match="is there to learn from"):
        Town(2, options=Options(unsafe=False)).use("alice", "strict")
    town.use("alice", "strict")
    town.quiet()
    town.use("bob", "vector")
    town.quiet()
    town.check("vector", "alice", "bob")


# Leaving in the middle


@pytest.mark.parametrize("leaver", ABCD)
@pytest.mark.parametrize("do", ["flush", "flushed", "cut", "reached"])
@pytest.mark.parametrize("deaf", ["", *ABCD])
def test_leaving_in_the_middle_of_a_change(leaver: str, do: str, deaf: str) -> None:
    """Before anybody has installed: it begins again without that member, and those who stay go on."""
    if deaf == leaver:
        return
    town = Town(4)
    outcome = town.use("bob", "fifo")
    # Until some have that step behind them.
    town.wait(1.0, lambda copy: copy.do == do and copy.target == "dave", until=lambda: _was_said(town, do))
    town.leave(leaver)
    goodbyes = [copy for copy in town.under_way if copy.source == leaver and b"goodbye" in copy.data]
    for copy in goodbyes:
        if copy.target != deaf:
            town.arrive(copy)
    town.wait(0.5)
    for copy in goodbyes:
        town.arrive(copy)
    town.wait(5.0)
    if leaver != "bob":
        assert outcome == [None]
    rest = [name for name in ABCD if name != leaver]
    town.check(town.member(rest[0]).view.recipe, *rest)
    for name in rest:
        assert [item.left for item in town.items[name] if isinstance(item, View) and item.left] == [(leaver,)]


def _was_said(town: Town, do: str) -> bool:
    return any(copy.do == do for copy in town.log) and not any(c.do == do for c in town.under_way)


@pytest.mark.parametrize("leaver", ABC)
def test_after_somebody_left(leaver: str) -> None:
    """The others have new indices, change the order, and let somebody in."""
    town = Town(3)
    talk(town)
    town.leave(leaver)
    town.quiet()
    rest = [name for name in ABC if name != leaver]
    view = town.member(rest[0]).view
    assert (view.names, view.left, view.failed, view.joined) == (tuple(rest), (leaver,), (), ())
    assert [town.member(name).me for name in rest] == [0, 1]
    outcome = town.use(rest[1], "fifo")
    town.knock("dave")
    town.quiet()
    assert outcome == [None]
    town.check("fifo", *rest, "dave")
    assert town.member("dave").view.processes == (*(ABC.index(name) for name in rest), 3)


def test_who_leaves_is_not_asked_whether_it_has_installed_the_view() -> None:
    town = Town(3, "fifo")
    town.use("alice", "vector")
    town.wait(
        1.0,
        lambda copy: copy.do == "installed",
        until=lambda: all(town.member(name).view.number == 2 for name in NAMES[:3]),
    )
    town.member("cathy").goodbye(now=town.now)
    town.turn("cathy")
    town.wait(1.0, lambda copy: copy.do == "installed", until=lambda: bool(town.member("alice").left))
    start = len(town.log)
    town.wait(0.5, lambda copy: copy.source == "bob" and copy.target == "alice")
    asked = {copy.target for copy in town.log[start:] if copy.source == "alice" and copy.do == "install"}
    assert asked == {"bob"}


def test_the_last_one_goes_on_alone() -> None:
    town = Town(3)
    for leaver in ("alice", "cathy"):
        talk(town)
        town.leave(leaver)
        town.wait(1.0)
    town.check("vector", "bob")
    town.knock("dave")
    town.quiet()
    town.check("vector", "bob", "dave")


def test_who_leaves_asks_for_nothing() -> None:
    town = Town(3)
    town.member("bob").goodbye(now=town.now)
    assert town.use("bob", "fifo") == ["this member leaves the group"]
    town.quiet()
    assert [town.member(name).view.number for name in ABC] == [2, 1, 2]


def test_the_leader_leaves_right_after_it_installed() -> None:
    town = Town(3)
    outcome = town.use("bob", "fifo")
    town.wait(
        1.0,
        lambda copy: copy.source == "alice" and copy.do == "install",
        until=lambda: town.member("alice").view.number == 2,
    )
    town.leave("alice")
    town.wait(3.0)
    assert outcome == [None]
    town.check("fifo", "bob", "cathy")
    seen = [item for item in town.items["cathy"] if isinstance(item, View)]
    assert [(view.number, view.recipe, view.left) for view in seen[-1:]] == [(3, "fifo", ("alice",))]


@pytest.mark.parametrize("leaver", ABC)
def test_leaving_at_the_moment_of_the_installation(leaver: str) -> None:
    """The view is decided on and not yet installed: it never is, and nothing but goodbye is said."""
    town = Town(3)
    talk(town)
    outcome = town.use(leaver, "fifo")
    stack = town.member(leaver)
    while stack.views.next is None:
        copy = town.under_way.pop(0)
        if copy.target == leaver:
            stack.receive([(copy.data, copy.source)], now=town.now)
            if stack.views.next is None:
                town.turn(leaver)
        else:
            town.arrive(copy)
    stack.goodbye(now=town.now)
    before = len(town.log)
    rest = [name for name in ABC if name != leaver]
    town.turn(leaver)
    town.wait(3.0)
    chatter(town, "on")
    town.wait(3.0)
    assert outcome == ["this member leaves the group"]
    assert {copy.do for copy in town.log[before:] if copy.source == leaver} == {"goodbye"}
    assert stack.view.number == 1 and stack.has_left and town.wake[leaver] is None
    assert len({town.member(name).view.number for name in rest}) == 1
    for name in rest:
        assert town.member(name).writable and town.changes(name).settled
        assert {text for text in town.texts(name) if text.startswith(b"on")} == {
            f"on {other}".encode() for other in rest if other != name
        }


# A member more


def joined_in(town: Town, *names: str) -> bool:
    return all(isinstance(town.at[name], Stack) for name in names)


@pytest.mark.parametrize("order", [*ORDERS, "relay", "co", "sco", "object", "total", "broadcast"])
def test_join(order: str) -> None:
    town = Town(3, order, options=Options(echo=False, greet=True))
    town.quiet()
    talk(town)
    town.knock("dave")
    talk(town)
    town.quiet()
    town.check(order, *ABCD)
    assert town.member("dave").view.joined == ("dave",)
    first = town.items["dave"][0]
    assert isinstance(first, View) and first.names == ABCD
    for name in ABC:
        views = [item for item in town.items[name] if isinstance(item, View)]
        assert [(view.number, view.joined) for view in views] == [(2, ("dave",))]


STEPS_OF_JOIN = "hello flush flushed cut reached install welcome installed".split()


@pytest.mark.parametrize("do", STEPS_OF_JOIN)
@pytest.mark.parametrize("times", [1, 3, 8])
def test_join_with_a_step_lost(do: str, times: int) -> None:
    town = Town(3)
    talk(town)
    town.knock("dave")
    lose = the_first(do, times)
    town.wait(5.0, lose)
    assert not lose(Copy("", "", of_session(0, 1, b'{"do":"%s"}' % do.encode()))), "so many were lost"
    assert joined_in(town, "dave")
    town.check("vector", *ABCD)


@pytest.mark.parametrize("do", STEPS_OF_JOIN)
def test_join_with_a_step_that_comes_again_later(do: str) -> None:
    town = Town(3)
    town.knock("dave")
    town.quiet()
    old = [copy for copy in town.log if copy.do == do]
    assert old
    talk(town)
    town.knock("erin")
    town.wait(0.004)
    for copy in old:
        town.arrive(copy)
    town.wait(5.0)
    for copy in old:
        town.arrive(copy)
    town.check("vector", *NAMES[:5])


def test_what_comes_before_the_welcome_is_kept() -> None:
    town = Town(3)
    talk(town)
    town.knock("dave")

    def lose(copy: Copy) -> bool:
        return copy.do == "welcome"

    town.wait(0.5, lose, until=lambda: town.member("cathy").view.number == 2)
    chatter(town, "new")
    town.wait(0.5, lose)
    assert isinstance(town.at["dave"], Newcomer) and not town.items["dave"]
    town.wait(5.0)
    town.check("vector", *ABCD)
    new = [text for text in town.texts("dave") if text.startswith(b"new")]
    assert sorted(new) == [b"new alice", b"new bob", b"new cathy"]


def test_questions_that_all_hear_are_not_asked_again_for_every_answer() -> None:
    """The newcomer hears nothing for a second. Others hear what is meant for it, and do not answer."""
    town = Town(4)
    town.knock("erin")
    town.wait(1.0, lambda copy: copy.target == "erin" and copy.do in ("welcome", "install"))
    asked = [copy for copy in town.log if copy.do in ("welcome", "install") and copy.target == "erin"]
    answers = [copy for copy in town.log if copy.do == "installed"]
    assert 10 < len(asked) < 60, "over and over, and ever more rarely"
    assert len(answers) <= 3 * 4
    town.quiet()
    town.check("vector", *NAMES[:5])


def test_answers_do_not_put_off_what_has_to_be_repeated() -> None:
    """Packets of membership come all the time; the flush that was lost is repeated all the same."""
    town = Town(3)
    outcome = town.use("alice", "fifo")
    town.under_way.clear()
    for _ in range(100):
        town.now += 0.001
        town.inject("alice", worded(1, 1, "install", number=9))
        wake = town.wake["alice"]
        if wake is not None and wake <= town.now:
            town.tick("alice")
    assert any(copy.do == "flush" for copy in town.under_way)
    town.quiet()
    assert outcome == [None]
    town.check("fifo", *ABC)


def test_a_name_that_is_taken() -> None:
    town = Town(3)
    newcomer = town.knock("bob", place="another bob")
    town.wait(0.2)
    assert str(newcomer.refused) == "'bob' cannot join: there is a member 'bob' already"
    town.crash("another bob")
    town.check("vector", *ABC)


def test_two_of_one_name_at_once() -> None:
    """The second waits as long as nobody knows whether the first is there, and is refused then."""
    town = Town(3)
    first = town.knock("dave", incarnation=1)

    def lose(copy: Copy) -> bool:
        return copy.do == "welcome"

    town.wait(0.001, lose)
    second = town.knock("dave", incarnation=2, place="another dave")
    town.wait(0.5, lose)
    assert first.view is None and second.refused is None
    town.wait(1.0)
    assert str(second.refused) == "'dave' cannot join: there is a member 'dave' already"
    assert first.refused is None and joined_in(town, "dave")
    town.crash("another dave")
    town.check("vector", *ABCD)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "a name has 1 to 255"), ("x" * (NAME_MAX + 1), "a name has 1 to 255")],
)
def test_names_nobody_can_have(name: str, reason: str) -> None:
    town = Town(2)
    newcomer = town.knock(name, place="somebody")
    town.wait(0.2)
    assert reason in str(newcomer.refused)


def test_what_the_driver_objects_to() -> None:
    town = Town(2)
    town.changes("alice")._door._accepts = lambda member: f"{member.name} is not on the list"
    newcomer = town.knock("dave")
    town.wait(0.2)
    assert str(newcomer.refused) == "'dave' cannot join: dave is not on the list"


@pytest.mark.parametrize("order", ["remiop", "remiop+total"])
def test_orders_nobody_can_join(order: str) -> None:
    town = Town(2, order)
    newcomer = town.knock("dave")
    town.wait(0.5)
    assert f"its order {order!r} works with a fixed group only" in str(newcomer.refused)
    assert all(town.changes(name).settled for name in ("alice", "bob"))


@pytest.mark.parametrize("seed", range(10))
def test_newcomers_at_once(seed: int) -> None:
    town = Town(2, "vector", seed=seed)
    talk(town)
    for name in ("cathy", "dave", "erin"):
        town.knock(name)
    town.storm(loss=0.2, doubled=0.2, turns=Random(seed).randint(20, 500))
    chatter(town, "between")
    town.quiet()
    town.check("vector", *town.member("alice").view.names)
    assert sorted(town.member("erin").view.names) == sorted(NAMES[:5])


@pytest.mark.parametrize("seed", range(15))
def test_newcomers_and_another_order(seed: int) -> None:
    """Either way round, under loss."""
    rng = Random(seed)
    town = Town(3, "vector", seed=seed)
    talk(town)
    outcomes = []
    if seed % 2:
        outcomes.append(town.use(rng.choice(ABC), "fifo"))
    town.knock("dave")
    town.storm(loss=0.3, doubled=0.2, turns=rng.randint(1, 60))
    asker = rng.choice(ABC)
    if town.changes(asker).settled:
        outcomes.append(town.use(asker, "none"))
    town.knock("erin")
    town.storm(loss=0.3, doubled=0.2, turns=rng.randint(1, 200))
    chatter(town, "between")
    town.quiet()
    assert outcomes == [[None]] * len(outcomes)
    recipe = town.member("alice").view.recipe
    town.check(recipe, *town.member("alice").view.names)
    assert len(town.member("alice").view) == 5


def test_a_newcomer_changes_the_order_and_leads_nothing() -> None:
    town = Town(2)
    town.knock("cathy")
    town.quiet()
    outcome = town.use("cathy", "fifo")
    town.quiet()
    assert outcome == [None]
    town.knock("dave")
    town.quiet()
    town.check("fifo", *ABCD)


def test_who_does_not_answer_is_out_of_reach_unless_we_were_not_there_to_ask() -> None:
    town = Town(3, "fifo")
    town.use("alice", "vector")
    alice, change = town.member("alice"), town.changes("alice")._change
    assert change is not None
    alice.advance(100.0)  # stopped for a while
    change.work()
    assert change.out_of_reach(1.0) == set()
    for _ in range(10):
        alice.advance(alice.now + 1.5 * PAUSE_MAX)  # a little late
        change.work()
    assert change.out_of_reach(15 * PAUSE_MAX) == {1, 2}


def test_who_waits_is_named() -> None:
    town = Town(3)
    town.use("alice", "fifo")
    town.wait(WARN_AFTER + 1, lambda copy: copy.target == "cathy" and copy.do == "flush")
    assert town.notices == ["a change of the view has waited 5 s for cathy"]
    town.quiet()
    town.check("fifo", *ABC)


# Messages under way


WINDOW = 3000


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [10, 700, 20_000])
def test_what_waits_for_the_window_when_a_member_joins(order: str, size: int) -> None:
    """The view is closed when it has left and everybody has it; it is nothing to the newcomer."""
    town = Town(3, order, options=Options(flow={"window": WINDOW}), datagram_max=1400)
    sent = 0
    while town.member("bob").writable:
        town.send("bob", b"%03d" % sent + b"." * size)
        sent += 1
    assert town.member("bob").layer("flow").waiting  # type: ignore[union-attr]
    town.knock("dave")
    town.wait(1.0, is_data_of_bob)
    assert not joined_in(town, "dave") and town.member("bob").closing
    town.wait(10.0, until=lambda: joined_in(town, "dave"))
    assert joined_in(town, "dave")
    town.quiet()
    town.check(order, *ABCD)
    assert not any(len(text) == size + 3 for text in town.texts("dave"))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [10, 20_000])
def test_what_waits_for_the_window_when_the_view_is_closed(order: str, size: int) -> None:
    town = Town(3, order, options=Options(flow={"window": WINDOW}), datagram_max=1400)
    receipts = []
    while town.member("bob").writable:
        receipts.append(town.send("bob", b"." * size))
    outcome = town.use("cathy", "vector" if order == "none" else "none")
    town.wait(0.05, lambda copy: copy.source == "bob" and copy.data[3] == 0)
    assert outcome == [] and town.member("bob").closing
    town.quiet()
    assert outcome == [None]
    assert all(receipt.has("confirmed") for receipt in receipts)
    town.check("vector" if order == "none" else "none", *ABC)


def test_a_refusal_leaves_a_closed_window_closed() -> None:
    town = Town(3, options=Options(flow={"window": WINDOW}), datagram_max=1400)
    refuse_at(town, "cathy")
    town.send("bob", b"." * 20_000)
    assert not town.member("bob").writable
    outcome = town.use("alice", "fifo")
    town.wait(0.01, is_data_of_bob)
    assert outcome == ["cathy: no order 'fifo'"]
    assert not town.member("bob").writable and not town.member("bob").closing
    town.quiet()
    town.check("vector", *ABC)


def test_receipts_of_the_old_view() -> None:
    """All acknowledgements are lost; that everybody reached the cut says as much."""
    town = Town(3)
    receipts = [town.send(name, name.encode()) for name in ABC]
    town.use("alice", "fifo")
    town.wait(
        0.5, lambda copy: copy.data[3] == Reliable.id, until=lambda: town.member("alice").view.number == 2
    )
    town.wait(0.5, lambda copy: copy.data[3] == Reliable.id)
    assert all(receipt.has("confirmed") for receipt in receipts)
    town.check("fifo", *ABC)


def test_messages_of_a_closed_view_may_be_taken_late() -> None:
    """What the application has not read yet belongs to the layers that delivered it."""
    town = Town(3, takes=False)
    for number in range(5):
        town.send("alice", b"%d" % number)
    town.use("bob", "fifo")
    town.quiet()
    town.send("bob", b"in the new view")
    town.quiet()
    assert town.member("cathy").queued > 0
    for name in ABC:
        town.take(name)
        town.turn(name)
        assert town.member(name).queued == 0
    town.takes = True
    town.quiet()
    town.use("cathy", "vector")
    town.quiet()
    town.check("vector", *ABC)


def test_what_is_read_of_a_closed_view_is_told_to_nobody() -> None:
    """In the view in force, members know from the beginning that there is room."""
    town = Town(2, "sco", options=Options(queue_max=1000), takes=False)
    for _ in range(3):
        town.send("bob", b"x" * 400)
        town.wait(0.2)
    town.use("bob", "fifo")
    town.wait(1.0)
    alice = town.member("alice")
    assert alice.view.number == 2 and alice.queued > 1000
    before = dict(alice.counts)
    town.take("alice")
    assert alice.counts == before and not alice.queued


def test_delayed_copies_of_a_closed_view_are_dropped() -> None:
    """Doubles that a rough network still holds: counted in the next view, they would hide what is new."""
    faults = Faults(duplicate=1.0, reorder=0.7, delay_min=0.0, delay_max=0.05)
    for seed in range(4):
        town = Town(3, "vector", options=Options(faults=faults), seed=seed)
        for number in range(3):
            talk(town, 5, 0.1)
            town.use(NAMES[number], ("fifo", "none", "vector")[number])
            talk(town, 5, 0.1)
        town.quiet()
        town.check("vector", *ABC)


def test_a_step_of_the_old_view_does_not_count_in_the_new() -> None:
    """The numbers of counters begin anew: late acknowledgements confirm nothing."""
    town = Town(2)
    town.send("alice", b"one")
    town.wait(0.2)
    old = [copy for copy in town.log if copy.data[3] != Session.id]
    town.use("alice", "fifo")
    town.quiet()
    receipt = town.send("alice", b"two")
    town.under_way.clear()
    for copy in old:
        town.arrive(copy)
    town.under_way.clear()
    assert not receipt.has("confirmed")
    assert town.member("bob").counts["stale"] > 0
    town.check("fifo", "alice", "bob")


# Malformed words


GARBAGE: list[bytes] = [
    b"",
    b"{",
    b"\xff\xfe",
    b"null",
    b"[]",
    b'"use"',
    b"17",
    b"{}",
    b'{"do":null}',
    b'{"do":[]}',
    b'{"do":"dance"}',
    b'{"do":"' + b"x" * 5000 + b'"}',
    b'{"do":"flush","number":' + b"9" * 5000 + b"}",
    b"[" * 100_000,
    b'{"do":' * 20_000,
]
BAD_VALUES: list[Any] = [
    None,
    True,
    -1,
    1 << 31,
    1 << 70,
    1.5,
    "2",
    [],
    {},
    [[]],
    [1] * 3,
    [[1, "a", ""]],
    "x" * 5000,
]
NEXT: dict[str, Any] = {
    "number": 2,
    "attempt": 1,
    "leader": 1,
    "recipe": "fifo",
    "traced": False,
    "members": [["alice", 1, ""], ["bob", 1, ""], ["cathy", 1, ""], ["dave", 7, ""]],
    "processes": [0, 1, 2, 3],
    "total": 4,
    "joined": ["dave"],
    "left": [],
    "failed": [],
    "merged": [],
}
"""The next view, as somebody might forge it."""

WORDS: dict[str, dict[str, Any]] = {
    "use": {"recipe": "fifo", "wish": 1},
    "flush": {**NEXT, "gone": [], "slow": []},
    "flushed": {
        "number": 2,
        "attempt": 1,
        "round": 1,
        "sent": [0] * 3,
        "count": 0,
        "seen": [0] * 3,
        "held": {},
        "said": [0] * 3,
        "whole": 0,
        "heard": [0] * 3,
        "gives": "",
        "lacks": "",
    },
    "cut": {
        "number": 2,
        "attempt": 1,
        "round": 1,
        "sent": [0] * 3,
        "counts": [0] * 3,
        "most": [0] * 3,
        "dealt": {},
        "whole": [0] * 3,
        "missed": {},
        "lack": [],
        "give": [],
        "released": [],
    },
    "want": {"src": 2, "runs": []},
    "fetch": {"offset": 0, "pieces": 1, "all": False},
    "state": {"offset": 0, "ask": False, "all": False},
    "complete": {},
    "stateless": {"why": "so", "nobody": True},
    "reached": {"number": 2, "attempt": 1, "round": 1, "count": 0, "released": [0] * 3, "holds": False},
    "install": {"number": 2},
    "installed": {"number": 2},
    "cannot": {"number": 2, "attempt": 1, "why": "so"},
    "refused": {"number": 2, "attempt": 1, "asker": 1, "wish": 1, "why": "so"},
}
MAY_BE = {
    "sent": ([1, 1, 1],),
    "seen": ([1, 1, 1],),
    "counts": ([1, 1, 1],),
    "most": ([1, 1, 1],),
    "released": ([], [1, 1, 1]),
    "runs": ([],),
    "said": ([1, 1, 1],),
    "heard": ([1, 1, 1],),
    "whole": ([1, 1, 1],),
    "missed": ({},),
    "slow": ([], [1, 1, 1]),
    "merged": ([], [[]]),
    "gone": ([], [1, 1, 1]),
    "cuts": ([], [1, 1, 1]),
    "joined": ([],),
    "left": ([],),
    "failed": ([],),
    "held": ({},),
    "dealt": ({},),
    "lack": ([],),
    "give": ([],),
    "offset": (1 << 31,),
    "all": (True,),
    "holds": (True,),
    "ask": (True,),
    "nobody": (True,),
    "traced": (True,),
    "recipe": ("2",),
}
"""Values that are wrong perhaps, but nothing that one can see."""


@pytest.mark.parametrize("source", [0, 2])
def test_garbage(source: int) -> None:
    town = Town(3)
    for content in GARBAGE:
        town.inject("bob", of_session(source, 1, content))
    assert town.member("bob").rejected == {"malformed": len(GARBAGE)}
    town.member("bob").rejected.clear()
    town.check("vector", *ABC)


def spoiled(do: str, what: dict[str, Any]) -> Iterator[bytes]:
    """Each word without one of its fields, and with each bad value in it."""
    for key in what:
        for value in (*BAD_VALUES, ...):
            wrong = {k: v for k, v in what.items() if k != key} | ({} if value is ... else {key: value})
            if value not in MAY_BE.get(key, ()) and not (value == "2" and isinstance(what[key], str)):
                yield json.dumps({"do": do, **wrong}).encode()


def test_words_of_the_wrong_kind() -> None:
    """Rejected and counted by whoever gets them, as the leader, as a follower, and in the middle of a change."""
    for in_the_middle in (False, True):
        for target, source in (("alice", 1), ("bob", 0)):
            town = Town(3)
            outcome = [None]
            if in_the_middle:
                outcome = town.use("cathy", "fifo")
                town.wait(0.0, lambda copy: copy.do == "cut")
            for content in [each for do, what in WORDS.items() for each in spoiled(do, what)]:
                before = town.member(target).rejected["malformed"]
                town.inject(target, of_session(source, 1, content))
                assert town.member(target).rejected["malformed"] == before + 1, content[:200]
            town.member(target).rejected.clear()
            town.quiet()
            assert outcome == [None]
            town.check("fifo" if in_the_middle else "vector", *ABC)


@pytest.mark.parametrize("do", ["flushed", "cut"])
def test_counts_of_another_size(do: str) -> None:
    town = Town(3)
    outcome = town.use("alice", "fifo")
    target, source = ("alice", 1) if do == "flushed" else ("bob", 0)
    for key in ("sent", "seen") if do == "flushed" else ("sent", "counts", "most"):
        for counts in ([], [0, 0], [0] * 4, [[0] * 3] * 3):
            town.inject(target, worded(source, 1, do, **{**WORDS[do], key: counts}))
            assert town.member(target).rejected.pop("malformed") == 1
    key = "held" if do == "flushed" else "dealt"
    for tables in ({"x": []}, {"-1": []}, {"2": [[1, 2]]}, {"2": [[1, 2, 0, 0]]}, {"2": 5}, {"2": [5]}):
        town.inject(target, worded(source, 1, do, **{**WORDS[do], key: tables}))
        assert town.member(target).rejected.pop("malformed") == 1, tables
    town.quiet()
    assert outcome == [None]
    town.check("fifo", *ABC)


def test_what_is_dealt_of_one_that_is_here_is_refused() -> None:
    """Else nobody would wait for it to send that itself."""
    town = Town(3)
    outcome = town.use("alice", "fifo")
    town.wait(0.0, lambda copy: copy.do == "cut")
    town.inject("bob", worded(0, 1, "cut", **{**WORDS["cut"], "dealt": {"2": [[0, 1, 2]]}}))
    assert town.member("bob").rejected.pop("malformed") == 1
    town.quiet()
    assert outcome == [None]
    town.check("fifo", *ABC)


@pytest.mark.parametrize("host", [[], [["zoe", 1, ""], ["yan", 1, ""]]])
def test_nobody_dissolves_a_view_for_nobody_or_for_several(host: list[list[Any]]) -> None:
    town = Town(3)
    outcome = town.use("alice", "fifo")
    town.wait(0.0, lambda copy: copy.do == "install")
    town.inject("bob", worded(0, 1, "dissolve", number=2, attempt=1, host=host))
    assert town.member("bob").rejected.pop("malformed") == 1
    assert not town.session("bob").parts.is_homeless
    town.quiet()
    assert outcome == [None]
    town.check("fifo", *ABC)


def test_who_does_not_lead_cannot_close_the_view() -> None:
    town = Town(3)
    for do in ("flush", "cut", "refused", "install"):
        town.inject("bob", worded(2, 1, do, **WORDS[do]))
    assert not town.member("bob").closing and town.member("bob").view.number == 1
    town.check("vector", *ABC)


def with_members(*names: str, **more: Any) -> dict[str, Any]:
    people = [[name, 7 if name == "dave" else 1, ""] for name in names]
    places = {"processes": list(range(len(people))), "total": len(people)}
    return {**WORDS["flush"], "members": people, **places, **more}


@pytest.mark.parametrize(
    "what",
    [
        with_members("alice", "bob"),  # without one that is not gone
        with_members("alice", "bob", "cathy", gone=[2]),  # with one that is
        with_members("alice", "cathy", "bob"),
        with_members("alice", "bob", "cathy", "bob"),
        with_members("alice", "bob", "cathy", gone=[3]),
        with_members("alice", "bob", "cathy", processes=[0, 1, 1]),
        with_members("alice", "bob", "cathy", total=2),
        with_members(),
    ],
    ids=str,
)
def test_views_that_do_not_follow(what: dict[str, Any]) -> None:
    town = Town(3)
    town.inject("bob", worded(0, 1, "flush", **what))
    assert town.member("bob").rejected.pop("malformed") == 1
    assert not town.member("bob").closing
    town.check("vector", *ABC)


@pytest.mark.parametrize("number", [0, 1])
def test_a_flush_for_a_view_that_is_past(number: int) -> None:
    town = Town(3)
    town.inject("bob", worded(0, 1, "flush", **{**WORDS["flush"], "number": number}))
    assert not town.member("bob").closing
    town.check("vector", *ABC)


@pytest.mark.parametrize("kind", [1, 2, 3, 9])
def test_outsiders_reach_nothing_but_the_door(kind: int) -> None:
    """Whatever kind of packet says it comes from no view: not even goodbye in the name of a member."""
    from inga.model.packet import Packet
    from inga.stack.stack import joined
    from inga.wire.packet import encode

    town = Town(3)
    for source in (0, 2, 60_000, NOBODY):
        packet = Packet(source, OUTSIDE, kind=kind)
        packet.ext, packet.urgent, packet.lsn = b"goodbye", True, 5
        packet.runs = ((1, 2),)
        town.inject("bob", joined(encode(packet, 0)))
    for do, what in WORDS.items():
        town.inject("bob", worded(NOBODY, OUTSIDE, do, **what))
    assert sum(town.member("bob").rejected.values()) == 4 + len(WORDS)
    assert not town.member("bob").left and not town.member("bob").closing
    town.member("bob").rejected.clear()
    town.check("vector", *ABC)


HELLO: dict[str, Any] = {
    "host": [["alice", 1, ""]],
    "name": "dave",
    "incarnation": 7,
    "address": "",
    "group": "00000000",
    "view": 0,
    "was": [["dave", 6, ""]],
    "spoken_in": 0,
    "bound": [0],
    "wants": "",
    "part": [],
}


def test_garbage_at_the_door() -> None:
    town = Town(2)
    right = [
        b'"host": []',
        b'"was": []',
        b'"part": []',
        b'"bound": []',
        b'"bound": [1, 1, 1]',
        b'"spoken_in": 2147483648',
    ]
    wrong = [
        each
        for each in spoiled("hello", {**HELLO, "part": ["dave"]})
        if not any(empty in each for empty in right)
    ]
    for content in wrong:
        town.inject("alice", of_session(NOBODY, OUTSIDE, content))
        assert town.member("alice").rejected["malformed"] == wrong.index(content) + 1, content[:200]
    for content in GARBAGE:
        town.inject("alice", of_session(NOBODY, OUTSIDE, content))
    assert sum(town.member("alice").rejected.values()) == len(wrong) + len(GARBAGE)
    town.member("alice").rejected.clear()
    town.check("vector", "alice", "bob")


def answer(do: str, **what: Any) -> tuple[bytes, None]:
    """What a newcomer is told, or seems to be."""
    return worded(0, OUTSIDE, do, **what), None


def test_a_newcomer_is_not_misled() -> None:
    """Garbage, wrong types and answers to others leave it asking."""
    newcomer = Newcomer("", Member("dave", 7), now=0.0)
    right: dict[str, Any] = {**NEXT, "cuts": [0, 0, 0], "group": "00000000"}
    for content in (*GARBAGE, *spoiled("welcome", right)):
        newcomer.receive([(of_session(0, OUTSIDE, content), None)], now=0.0)
        newcomer.receive([(of_session(0, 1, content), None)], now=0.0)
        assert newcomer.refused is None and newcomer.view is None, content[:200]
    newcomer.receive(
        [
            answer("welcome", **{**right, "members": [*right["members"][:3], ["dave", 8, ""]]}),
            answer("welcome", **{**right, "group": "00000001"}),
            answer("closed", name="dave", incarnation=8, why="so"),
            answer("closed", name="erin", incarnation=7, why="so"),
            answer("closed", name="dave", incarnation=7, why=5),
            answer("again", name="dave", incarnation=8),
            answer("again", name="erin", incarnation=7),
            (worded(0, 1, "welcome", **right), None),
            (b"", None),
            (b"in", None),
            (b"x" * 100, None),
        ],
        now=0.0,
    )
    assert newcomer.view is None and newcomer.refused is None and newcomer.member == Member("dave", 7)
    newcomer.receive([answer("welcome", **right)], now=0.0)
    assert newcomer.view is not None and newcomer.me == 3 and newcomer.cuts == [0, 0, 0]
    newcomer.receive([answer("welcome", **{**right, "number": 3})], now=0.0)
    assert newcomer.view.number == 2, "once is enough"


# Pickles


@pytest.mark.parametrize("seed", range(12))
def test_a_pickle_in_the_middle_of_changes(seed: int) -> None:
    rng = Random(seed)
    town = Town(3, rng.choice(ORDERS), seed=seed, takes=False)
    orders = []
    for _ in range(3):
        chatter(town, "before")
        asker = rng.choice(ABC)
        if town.changes(asker).settled:
            orders.append(rng.choice(ORDERS))
            town.use(asker, orders[-1])
        for _ in range(3):
            town.storm(loss=0.2, doubled=0.2, turns=rng.randint(1, 40))
            town.revive()
            name = rng.choice(ABC)
            town.take(name)
            town.turn(name)
    town.knock("dave")
    for _ in range(10):
        town.storm(loss=0.2, doubled=0.2, turns=15)
        town.revive()
    town.takes = True
    for name in town.members:
        town.take(name)
        town.turn(name)
    town.quiet()
    town.check(town.member("alice").view.recipe, *ABCD)


def test_a_pickled_stack_knows_what_is_unread_of_a_closed_view() -> None:
    """Taken by the new layers, numbers of the old view would count as causes in the new one."""
    town = Town(2, takes=False)
    for number in range(5):
        town.send("alice", b"%d" % number)
        town.wait(0.1)
    town.use("bob", "fifo")
    town.quiet()
    town.use("bob", "vector")
    town.quiet()
    town.revive()
    town.take("bob")
    town.send("bob", b"after reading")
    town.quiet()
    (batch,) = town.untaken["alice"]
    assert isinstance(batch, Batch) and batch.deps == (0, 0)
