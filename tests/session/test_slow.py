"""When a member says that another one holds it up, and when it looks again. What becomes of that: tests/sim/test_slow.py."""

from typing import Any

import pytest

from inga.model.errors import NoMajority
from inga.recipes import Options
from inga.session.alarms import NEVER
from inga.session.slow import AGAIN, DENY_WITHIN, Slow
from inga.wire.told import Told

from .town import Town

PATIENCE = 5.0


def slow_of(policy: str) -> tuple[Town, Slow]:
    town = Town(3, "fifo", options=Options(slow=policy, patience=PATIENCE, detect=1.0))
    town.log.clear()
    return town, town.session("alice").slow


def said(town: Town) -> list[dict[str, object]]:
    town.turn("alice")
    return [copy.told for copy in town.log if copy.do == "slow"]


@pytest.mark.parametrize("policy", ["expel", "skip"])
def test_nobody_is_accused_before_patience_is_over(policy: str) -> None:
    town, slow = slow_of(policy)
    stack = town.member("alice")
    stack.advance(PATIENCE - 0.5)
    assert slow.complain({1}, 0.0) == PATIENCE and said(town) == []
    stack.advance(PATIENCE)
    assert slow.complain({1}, 0.0) == PATIENCE + AGAIN
    assert [told["members"] for told in said(town)] == [[1], [1]], "to both others"
    assert slow.complain(set(), 0.0) == PATIENCE + AGAIN and len(said(town)) == 2, "nobody is named"


def test_where_slow_members_are_waited_for_nobody_ever_is() -> None:
    town, slow = slow_of("wait")
    town.member("alice").advance(10 * PATIENCE)
    assert slow.complain({1}, 0.0) == NEVER and said(town) == []


@pytest.mark.parametrize("how", ["paused", "without a view"])
def test_who_is_cut_off_blames_nobody(how: str) -> None:
    """It cannot hear what others would say to that."""
    town, slow = slow_of("expel")
    stack = town.member("alice")
    stack.advance(2 * PATIENCE)
    stack.paused = NoMajority("without bob", ("bob",)) if how == "paused" else None
    stack.is_homeless = how != "paused"
    assert slow.complain({1}, 0.0) == NEVER and said(town) == []
    for second in (0.0, 1.0, 2.0, 3.0):
        stack.advance(2 * PATIENCE + second)
        slow.on_slow(1, Told({"members": [2]}))
    assert not stack.left
    stack.paused, stack.is_homeless = None, False
    slow.be_patient()
    slow.on_slow(1, Told({"members": [2]}))
    assert not stack.left, "what was said before does not count"
    for second in (4.0, 5.0, 6.0):
        stack.advance(2 * PATIENCE + second)
        slow.on_slow(1, Told({"members": [2]}))
    assert stack.left == {2}


def test_what_one_was_accused_of_once_does_not_count_when_another_is() -> None:
    """Cathy could not be done without as bob was silent, and reads by now; nobody has complained of her since."""
    town = Town(3, "total", options=Options(slow="expel", patience=PATIENCE, detect=1.0))
    slow, stack = town.session("alice").slow, town.member("alice")
    for second in (0.0, 1.0, 2.0, 3.0):
        stack.advance(2 * PATIENCE + second)
        slow.on_slow(1, Told({"members": [2]}))
    assert not stack.left and stack.me == 0
    town.now = stack.now + 60.0
    for name in town.at:
        town.tick(name)
    town.wait(1.0)
    slow.on_slow(2, Told({"members": [1]}))
    assert not stack.left


def test_who_has_not_drawn_a_state_does_not_accuse_the_one_that_lacks_it() -> None:
    slow: dict[str, Any] = {"slow": "expel", "patience": PATIENCE, "detect": 60.0}
    town = Town(1, each={"alice": Options(gives="state", **slow)}, options=Options(wants="state", **slow))
    town.knock("bob", 7, wants="state")
    town.wait(0.5)
    transfer = town.session("alice").transfer
    (outgoing,) = transfer.due(town.member("alice").view)
    town.member("alice").advance(2 * PATIENCE)
    town.session("alice").slow.complain({1}, 0.0)
    assert said(town) == []
    transfer.put(outgoing, b"state")
    transfer.end(outgoing)
    town.session("alice").slow.complain({1}, 0.0)
    assert [told["members"] for told in said(town)] == [[1]]


def test_of_one_that_is_gone_there_were_as_many_messages_as_have_come_anywhere() -> None:
    """Of these, a member that was too slow has missed what it does not have."""
    town, _ = slow_of("skip")
    for text in (b"one", b"two"):
        town.send("cathy", text)
        town.lose(lambda copy: (copy.source, copy.target) == ("cathy", "bob"))
    town.settle()
    town.crash("cathy")
    town.wait(5.0, until=lambda: town.names("alice") == ("alice", "bob"))
    told = [copy.told["whole"] for copy in town.log if copy.do == "cut"]
    assert told and all(whole == [0, 0, 2] for whole in told)
    assert town.texts("bob") == [b"one", b"two"], "which alice lends"


def test_who_complains_looks_again_and_begins_anew_with_each_view() -> None:
    town, slow = slow_of("expel")
    stack = town.member("alice")
    stack.advance(2 * PATIENCE)
    assert slow.complain({1}, 0.0) == stack.now + AGAIN
    assert slow.complain({1}, stack.now - PATIENCE / 2) == stack.now + PATIENCE / 2
    for second in (0.0, 1.0, 2.0):
        stack.advance(3 * PATIENCE + second)
        slow.on_slow(1, Told({"members": [2]}))
    slow.view()
    stack.advance(3 * PATIENCE + 3.0)
    slow.on_slow(1, Told({"members": [2]}))
    assert not stack.left, "that place may be another member's in the next view"


def test_accusations_long_apart_do_not_add_up() -> None:
    """Whoever was accused for a while and then no more held up the group no more."""
    town, slow = slow_of("expel")
    stack = town.member("alice")
    for second in (0.0, 1.0, 2.0, 2.0 + 2 * DENY_WITHIN):
        stack.advance(PATIENCE + second)
        stack.heard[1] = stack.heard[2] = stack.now
        slow.on_slow(1, Told({"members": [2]}))
        assert not stack.left
    stack.advance(stack.now + DENY_WITHIN)
    slow.on_slow(1, Told({"members": [2]}))
    assert stack.left == {2}
