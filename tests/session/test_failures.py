"""Views under failure: whoever dies at whatever step, those who are left go on in one view and have delivered the same."""

from collections.abc import Callable

import pytest

from inga.layers.reliable import Reliable
from inga.recipes import Options
from inga.session.closing import LENT_MAX

from ..stack.harness import NAMES, resealed
from .town import Copy, Town, worded

DETECT = 0.5
"""Seconds of silence that are forgiven."""

ABCD = NAMES[:4]
ORDERS = ("none", "fifo", "vector", "relay", "co", "sco", "total")
REPAIRED = ("none", "fifo", "vector", "co", "sco")
"""Orders in which a message goes from its sender to everybody."""

STEPS = ("flush", "flushed", "cut", "reached", "install", "installed")


def town_of(order: str = "vector", members: int = 4, **more: object) -> Town:
    """Everybody has met everybody."""
    town = Town(members, order, options=Options(detect=DETECT, greet=True, echo=False, **more))  # type: ignore[arg-type]
    town.wait(1.0)
    return town


def talk(town: Town, text: str) -> None:
    for name in town.members:
        if town.member(name).writable:
            town.send(name, f"{text}, says {name}".encode())


def step_of(source: str | None, do: str) -> Callable[[Copy], bool]:
    return lambda copy: copy.do == do and source in (None, copy.source)


def until_said(town: Town, do: str, lose: Callable[[Copy], bool] = lambda copy: False) -> None:
    """Let things happen until somebody says that; it is on its way then."""
    before = len(town.log)
    town.wait(5.0, lose, until=lambda: any(copy.do == do for copy in town.log[before:]))
    assert any(copy.do == do for copy in town.log[before:])


def last_words(town: Town, name: str, *hearers: str) -> bytes:
    """It says something that only these hear, and is no more."""
    text = f"the last words of {name}".encode()
    town.wait(0.2)
    town.send(name, text)
    town.wait(0.0, lambda copy: copy.source == name and copy.target not in hearers)
    town.crash(name)
    return text


def check(town: Town, *names: str) -> None:
    """They are one, after a while."""
    town.wait(6 * DETECT)
    for name in names:  # bare headers for the dead, whose address was doubted, may have reached everybody
        town.member(name).rejected.clear()
    town.check_together(town.member(names[0]).view.recipe, *names)


def test_nobody_dissolves_for_one_that_it_has_left_behind() -> None:
    """It still counts with its part those who have gone on without it, and has no part once it hears of that."""
    town = town_of()
    town.crash("alice")
    until_said(town, "part")
    parts = [copy for copy in town.under_way if copy.do == "part"]
    assert {copy.source for copy in parts} == {"bob"} and len(town.member("bob").view) == 3
    town.crash("bob")
    town.wait(3 * DETECT)
    assert town.names("cathy") == ("cathy", "dave")
    before = len(town.log)
    for copy in parts:
        town.arrive(copy)
    town.wait(3 * DETECT)
    assert town.names("cathy") == town.names("dave") == ("cathy", "dave")
    assert "flush" not in {copy.do for copy in town.log[before:]}


# At every step of a change


@pytest.mark.parametrize("reaches", [False, True])
@pytest.mark.parametrize("do", STEPS)
@pytest.mark.parametrize(
    "dead", [("alice",), ("cathy",), ("alice", "bob"), ("alice", "dave"), ("bob", "cathy")]
)
@pytest.mark.parametrize("order", ["vector", "co", "sco"])
def test_at_every_step(order: str, dead: tuple[str, ...], do: str, reaches: bool) -> None:
    """Of a change that somebody has asked for; what they said last comes to the others, or does not."""
    town = town_of(order)
    talk(town, "before")
    town.use("cathy", "fifo")
    talk(town, "meanwhile")
    until_said(town, do)
    if not reaches:
        town.under_way = [copy for copy in town.under_way if copy.source not in dead]
    town.crash(*dead)
    rest = [name for name in ABCD if name not in dead]
    check(town, *rest)
    failed = [name for view in town.views(rest[-1]) for name in view.failed]
    assert sorted(failed) == sorted(dead), "each in one view"


@pytest.mark.parametrize("dead", ABCD)
@pytest.mark.parametrize("do", ["flush", "flushed", "cut", "reached", "install", "welcome", "installed"])
def test_at_every_step_while_somebody_joins(do: str, dead: str) -> None:
    """It is let in all the same, by whoever leads then; at last it is in the view of the others."""
    town = town_of("fifo")
    talk(town, "before")
    town.knock("erin")
    until_said(town, do)
    town.under_way = [copy for copy in town.under_way if copy.source != dead]
    town.crash(dead)
    rest = [name for name in ABCD if name != dead]
    town.wait(12.0)
    (view,) = {town.member(name).view for name in (*rest, "erin")}
    assert view.names == (*rest, "erin")
    for name in (*rest, "erin"):
        town.member(name).rejected.clear()
    town.check_together("fifo", *rest, "erin")


@pytest.mark.parametrize("do", ["flush", "flushed", "cut", "reached", "install", "welcome"])
def test_a_newcomer_dies_on_the_way(do: str) -> None:
    """Those who wait for it find out that it is gone."""
    town = town_of("vector")
    talk(town, "before")
    town.knock("erin")
    until_said(town, do)
    town.crash("erin")
    check(town, *ABCD)


def test_the_leader_installs_and_dies_and_nobody_has_heard_of_it() -> None:
    """It alone was in that view: the others go on to another one of the same number."""
    town = town_of("fifo")
    town.use("alice", "vector")
    town.wait(1.0, step_of("alice", "install"), until=lambda: town.member("alice").view.number == 2)
    mine = town.member("alice").view
    town.under_way = [copy for copy in town.under_way if copy.source != "alice"]
    town.crash("alice")
    check(town, "bob", "cathy", "dave")
    (view,) = town.views("cathy")
    assert (view.number, view.failed) == (2, ("alice",)) and view.text != mine.text


def test_one_has_followed_the_leader_that_died_and_takes_the_others_along() -> None:
    """Bob is in the next view; the others have reached the cut, and hear of it from him."""
    town = town_of("fifo")
    town.use("alice", "vector")
    town.wait(
        1.0,
        lambda copy: copy.do == "install" and copy.target != "bob",
        until=lambda: town.member("bob").view.number == 2,
    )
    town.under_way = [copy for copy in town.under_way if copy.source != "alice"]
    town.crash("alice")
    check(town, "bob", "cathy", "dave")
    assert [(view.number, view.failed) for view in town.views("dave")] == [(2, ()), (3, ("alice",))]


def test_attempts_of_one_that_died_do_not_outweigh_those_of_the_next() -> None:
    """Alice has begun many times, and cathy alone has heard of it: bob's first attempt counts for her all the same."""
    town = town_of("fifo")

    def lose(copy: Copy) -> bool:
        return copy.do == "flush" and copy.source == "alice" and copy.target != "cathy"

    town.use("alice", "vector")
    town.wait(0.1, lose)
    for _ in range(3):
        town.changes("alice").gone(3)  # as if somebody had left, over and over
        town.turn("alice")
        town.wait(0.05, lose)
    assert town.changes("cathy").closing is not None and town.changes("cathy").attempt >= 3
    assert town.changes("bob").attempt == 0
    town.crash("alice")
    check(town, "bob", "cathy", "dave")


# What they have said


@pytest.mark.parametrize("hearer", ["alice", "bob", "cathy"])
@pytest.mark.parametrize("order", REPAIRED)
def test_what_one_has_of_the_dead_all_get(order: str, hearer: str) -> None:
    town = town_of(order)
    talk(town, "before")
    text = last_words(town, "dave", hearer)
    check(town, "alice", "bob", "cathy")
    for name in ("alice", "bob", "cathy"):
        assert town.texts(name).count(text) == 1
        view, sender, _ = next(each for each in town.heard(name) if each[2] == text)
        assert (view, sender) == (1, "dave")
    assert sum(town.member(name).counts["lent"] for name in ABCD[:3]) >= 2


@pytest.mark.parametrize("order", REPAIRED)
def test_what_nobody_has_of_the_dead_is_lost_for_all(order: str) -> None:
    town = town_of(order)
    talk(town, "before")
    text = last_words(town, "dave")
    check(town, "alice", "bob", "cathy")
    assert not any(text in town.texts(name) for name in ("alice", "bob", "cathy"))


@pytest.mark.parametrize("order", REPAIRED)
def test_several_messages_some_with_one_and_some_with_another(order: str) -> None:
    """Each of them lacks something; in order, without a hole, as far as any of them goes."""
    town = town_of(order)
    talk(town, "before")
    town.wait(0.2)
    texts = [f"word {number}".encode() for number in range(6)]
    for number, text in enumerate(texts):
        hearer = ("alice", "bob", "cathy")[number % 3]
        if town.member("dave").writable:
            town.send("dave", text)
            town.under_way = [copy for copy in town.under_way if copy.target == hearer]
            town.wait(0.0, lambda copy: copy.target == "dave")
    town.crash("dave")
    check(town, "alice", "bob", "cathy")
    for name in ("alice", "bob", "cathy"):
        words = [text for text in town.texts(name) if text.startswith(b"word")]
        assert words and sorted(words) == texts[: len(words)]
        assert order == "none" or words == sorted(words)


@pytest.mark.parametrize("matrix", [False, True])
def test_an_answer_to_what_only_two_had(matrix: bool) -> None:
    """Bob has answered dave; both die, and cathy has the answer alone: what comes first comes with it or not at all."""
    town = town_of(matrix=matrix)
    talk(town, "before")
    town.wait(0.2)
    town.send("dave", b"question")
    town.wait(0.01, lambda copy: copy.source == "dave" and copy.target != "bob")
    assert b"question" in town.texts("bob")
    town.send("bob", b"answer")
    town.wait(0.0, lambda copy: copy.source == "bob" and copy.target != "cathy")
    town.crash("bob", "dave")
    check(town, "alice", "cathy")
    for name in ("alice", "cathy"):
        assert b"answer" not in town.texts(name), "nobody has the question"


def speak(town: Town, name: str, text: bytes, to: str = "", heard_by: tuple[str, ...] = ()) -> None:
    """It says something to one, or to all, and does not wait for company; at these it arrives."""
    stack = town.member(name)
    stack.send(text, 1 << stack.view.names.index(to) if to else None, now=town.now)
    stack.flush()
    town.turn(name)
    town.wait(0.0, lambda copy: copy.source == name and copy.target not in heard_by)


@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.parametrize("hears_of_it", [False, True])
@pytest.mark.parametrize("dies", ["", "alice", "bob"])
def test_what_one_said_to_all_after_it_said_something_to_one(
    matrix: bool, hears_of_it: bool, dies: str
) -> None:
    """Dave dies, and with him what was for cathy alone. What he said then alice has delivered, perhaps with a header of the
    other: so cathy gets it, and bob, also when the change begins again. It lacks nothing that was for everybody."""
    town = town_of(matrix=matrix)
    talk(town, "before")
    town.wait(0.2)
    speak(town, "dave", b"for cathy", to="cathy", heard_by=("alice",) * hears_of_it)
    speak(town, "dave", b"for all", heard_by=("alice", "cathy"))
    assert (b"for all" in town.texts("alice")) == (matrix or hears_of_it)
    town.crash("dave")
    if dies:
        is_agreed = matrix and (lambda: any(copy.do == "cut" and copy.told["released"] for copy in town.log))
        town.wait(5.0, until=is_agreed or (lambda: any(copy.do == "cut" for copy in town.log)))
        town.wait(0.0, lambda copy: copy.do == "cut" and copy.target == "cathy")
        town.crash(dies)
    rest = [name for name in ("alice", "bob", "cathy") if name != dies]
    check(town, *rest)
    for name in rest:
        assert (b"for all" in town.texts(name)) == (matrix or hears_of_it)
        assert b"for cathy" not in town.texts(name)


def test_what_another_that_is_gone_said_after_it_was_told_of_something_for_one() -> None:
    """Nothing says that dave has said something to cathy but what bob answered to his next word; alice has delivered it."""
    town = town_of(matrix=True)
    talk(town, "before")
    town.wait(0.2)
    speak(town, "dave", b"for cathy", to="cathy")
    speak(town, "dave", b"for bob", to="bob", heard_by=("bob",))
    speak(town, "bob", b"answer", heard_by=("alice", "cathy"))
    town.crash("bob", "dave")
    assert b"answer" in town.texts("alice") and b"answer" not in town.texts("cathy")
    check(town, "alice", "cathy")
    assert b"answer" in town.texts("cathy")


def test_what_nobody_could_deliver_is_dropped_where_it_follows_what_one_lacks() -> None:
    """Cathy lacks what was for her, and everybody what was for all: what dave said between the two comes, the rest does not."""
    town = town_of(matrix=True)
    talk(town, "before")
    town.wait(0.2)
    speak(town, "dave", b"for cathy", to="cathy")
    speak(town, "dave", b"comes", heard_by=("bob", "cathy"))
    speak(town, "dave", b"lost")
    speak(town, "dave", b"follows", heard_by=("bob", "cathy"))
    town.crash("dave")
    check(town, "alice", "bob", "cathy")
    for name in ("alice", "bob", "cathy"):
        assert b"comes" in town.texts(name)
        assert not {b"for cathy", b"lost", b"follows"} & {*town.texts(name)}


@pytest.mark.parametrize("order", REPAIRED)
def test_who_has_it_dies_while_it_is_asked_for_it(order: str) -> None:
    """Bob and cathy have dave's last words, and bob is asked; alice gets them from cathy then."""
    town = town_of(order)
    talk(town, "before")
    text = last_words(town, "dave", "bob", "cathy")
    town.wait(5.0, until=lambda: any(copy.do == "want" for copy in town.log))
    (asked,) = {copy.target for copy in town.under_way if copy.do == "want"}
    assert asked == "bob"
    town.crash("bob")
    check(town, "alice", "cathy")
    assert all(text in town.texts(name) for name in ("alice", "cathy"))


@pytest.mark.parametrize("order", REPAIRED)
def test_the_only_one_that_has_it_dies_before_it_gives_it_away(order: str) -> None:
    town = town_of(order)
    talk(town, "before")
    text = last_words(town, "dave", "bob")
    town.wait(5.0, lambda copy: copy.do == "want", until=lambda: any(copy.do == "want" for copy in town.log))
    town.under_way = [copy for copy in town.under_way if copy.do != "want"]
    town.crash("bob")
    check(town, "alice", "cathy")
    assert not any(text in town.texts(name) for name in ("alice", "cathy"))


@pytest.mark.parametrize("order", REPAIRED)
def test_what_is_lent_may_be_lost_on_the_way(order: str) -> None:
    town = town_of(order)
    talk(town, "before")
    text = last_words(town, "dave", "alice")
    lost: list[Copy] = []

    def lose(copy: Copy) -> bool:
        if len(lost) < 5 and (copy.do == "want" or copy.is_lent):
            lost.append(copy)
            return True
        return False

    town.wait(3.0, lose)
    assert len(lost) == 5
    check(town, "alice", "bob", "cathy")
    assert all(text in town.texts(name) for name in ("alice", "bob", "cathy"))


@pytest.mark.parametrize("order", ["vector", "total"])
def test_what_waits_for_words_of_one_that_dies_in_a_change_waits_until_they_are_lent(order: str) -> None:
    """Cathy leaves; dave cannot follow, since he lacks what bob said and alice answered. Then bob dies, too."""
    town = town_of(order)

    def is_deaf(copy: Copy) -> bool:
        return {copy.source, copy.target} == {"bob", "dave"}

    town.send("bob", b"lunch?")
    town.wait(0.1, is_deaf)
    town.take("alice")
    town.send("alice", b"yes")
    town.wait(0.1, is_deaf)
    town.leave("cathy")
    town.wait(0.2, is_deaf)
    town.crash("bob")
    town.wait(10 * DETECT)
    assert town.texts("dave") == [b"lunch?", b"yes"]
    assert town.names("dave") == ("alice", "dave")


def test_a_lot_is_lent_piece_by_piece() -> None:
    town = Town(4, "none", options=Options(detect=DETECT, greet=True), datagram_max=1400)
    town.wait(1.0)
    lost = LENT_MAX + 10
    town.send("dave", b"." * 1300 * lost)
    town.wait(0.0, lambda copy: copy.source == "dave" and copy.target != "bob")
    town.crash("dave")
    town.wait(2.0, until=lambda: any(copy.do == "want" and copy.source == "alice" for copy in town.log))
    (request,) = [copy for copy in town.under_way if copy.do == "want" and copy.source == "alice"]
    before = len(town.under_way)
    town.arrive(request)
    assert [copy.is_lent for copy in town.under_way[before - 1 :]] == [True] * LENT_MAX
    check(town, "alice", "bob", "cathy")
    assert town.member("bob").counts["lent"] >= 2 * lost
    assert all(b"." * 1300 * lost in town.texts(name) for name in ("alice", "bob", "cathy"))


# Words that cannot be right


def closing_without_dave(order: str = "fifo") -> Town:
    town = town_of(order)
    town.wait(0.2)
    town.crash("dave")
    town.wait(3.0, lambda copy: copy.do == "flushed", until=lambda: town.member("bob").closing)
    town.under_way.clear()
    return town


@pytest.mark.parametrize(
    "rows", [[[1, 1 << 30, 0]], [[1, 2, 7]], [[(1 << 31) - 2, (1 << 31) - 1, 1]]], ids=str
)
def test_holdings_that_nobody_can_have_do_not_stop_the_leader(rows: list[list[int]]) -> None:
    """Told once, they are looked at with what all others say; then all are asked again."""
    town = closing_without_dave()
    change = town.changes("alice")._change
    assert change is not None
    words = {"round": 1, "sent": [0] * 4, "count": 0, "seen": [0] * 4, "held": {"3": rows}}
    words |= {"said": [0] * 4, "whole": 0, "heard": [0] * 4}
    words |= {"gives": "", "lacks": ""}
    town.inject("alice", worded(1, 1, "flushed", **change.key, **words))
    town.inject("alice", worded(2, 1, "flushed", **change.key, **{**words, "held": {"3": []}}))
    assert town.member("alice").rejected["malformed"] >= 1
    check(town, "alice", "bob", "cathy")


@pytest.mark.parametrize("holder", [0, 1, 3, 4, 99, 1 << 30])
def test_a_holder_that_cannot_be_asked(holder: int) -> None:
    town = closing_without_dave()
    change = town.changes("alice")._change
    assert change is not None
    words = {"round": 1, "sent": [0] * 4, "counts": [0] * 4, "most": [0] * 4, "lack": [], "give": []}
    words |= {"whole": [0] * 4, "missed": {}, "released": []}
    town.inject("bob", worded(0, 1, "cut", **change.key, **words, dealt={"3": [[holder, 1, 2]]}))
    asked = {copy.target for copy in town.under_way if copy.do == "want"}
    assert asked == ({"alice"} if holder == 0 else set())
    assert town.member("bob").closing


def test_nothing_is_lent_of_one_that_is_here() -> None:
    town = town_of("fifo")
    town.send("cathy", b"one")
    town.wait(0.0)
    town.inject(
        "bob", worded(0, 1, "want", src=2, runs=[[1, 5]]), worded(0, 1, "want", src=99, runs=[[1, 5]])
    )
    assert not any(copy.is_lent for copy in town.log)
    assert town.member("bob").counts["lent"] == 0


def test_nothing_is_taken_in_the_name_of_one_that_is_here() -> None:
    """A packet that says it is lent, of a member that could send it itself."""
    town = town_of("fifo", 3)
    town.send("cathy", b"genuine")
    (copy,) = [copy for copy in town.under_way if copy.target == "bob" and copy.data[3] == 0]
    lent = bytearray(copy.data)
    lent[8] |= 0x40
    late = town.member("bob").counts["late"]
    town.inject("bob", resealed(lent))
    assert town.member("bob").counts["late"] == late + 1 and b"genuine" not in town.texts("bob")


def test_what_the_dead_sent_itself_comes_too_late() -> None:
    """Others have said what they have of it: what only one took after that would be nobody else's."""
    town = town_of("fifo")
    talk(town, "before")
    town.wait(0.2)
    town.send("dave", b"late")
    late = [copy for copy in town.under_way if copy.target == "bob" and copy.data[3] != Reliable.id]
    town.under_way.clear()
    town.crash("dave")
    town.wait(3.0, lambda copy: copy.do == "reached", until=lambda: town.member("bob").closing)
    for copy in late:
        town.arrive(copy)
    check(town, "alice", "bob", "cathy")
    assert not any(b"late" in town.texts(name) for name in ("alice", "bob", "cathy"))


# Sends and receipts


@pytest.mark.parametrize("order", REPAIRED)
def test_nobody_waits_for_the_dead_longer_than_it_takes_to_find_out(order: str) -> None:
    town = Town(
        3,
        order,
        options=Options(detect=DETECT, greet=True, flow={"window": 3000} if order in REPAIRED[:3] else {}),
    )
    town.wait(1.0)
    town.crash("cathy")
    receipts = []
    stopped = 0.0
    end = town.now + 6 * DETECT
    while town.now < end:
        free = [name for name in ("alice", "bob") if town.member(name).writable]
        receipts += [town.send(name, b"." * 700) for name in free]
        town.wait(0.01)
        stopped = 0.0 if town.member("alice").writable else stopped + 0.01
        assert stopped < 2 * DETECT
    town.wait(2.0)
    assert len(receipts) > 50 and all(receipt.has("confirmed") for receipt in receipts)


@pytest.mark.parametrize("seed", range(12))
def test_in_a_storm(seed: int) -> None:
    """Copies are lost and doubled; two die, one after another, and one leaves."""
    town = Town(5, ORDERS[seed % 5], options=Options(detect=DETECT, greet=True, echo=False), seed=seed)
    town.wait(1.0)
    rng = town.rng
    names = list(NAMES[:5])
    for end in (town.crash, town.leave, town.crash):
        for number in range(3):
            talk(town, f"{number} of {len(names)}")
            town.wait(0.05, lambda copy: rng.random() < 0.2)
        end(names.pop(rng.randrange(len(names))))
        town.wait(0.4, lambda copy: rng.random() < 0.2)
    town.wait(10.0)
    for name in names:
        town.member(name).rejected.clear()
        texts = town.texts(name)
        assert len(texts) == len({*town.heard(name)}), "nothing twice"
    town.check_together(town.member(names[0]).view.recipe, *names)
