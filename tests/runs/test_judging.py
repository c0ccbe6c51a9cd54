"""Diaries of live members, judged: who was to take a message depends on the view in which it was sent."""

from array import array

from inga.runs.live import judge_diaries
from inga.runs.member import IN_VIEW
from inga.trial.workload import Workload

WORKLOAD = Workload(members=2, messages=2)
VIEWS = {1: [0, 1], 2: [0, 1, 2]}

# Three workers number their messages in turn: 1 and 4 are alice's, 2 and 5 are bob's, 3 and 6 are cathy's.


def broken(*diaries: list[int]) -> list[str]:
    return judge_diaries(WORKLOAD, 1, [array("q", each) for each in diaries], views=VIEWS).witnesses


def test_a_newcomer_takes_what_was_sent_since_its_first_view() -> None:
    alice = [1, -2, IN_VIEW + 2, 4, -3]
    bob = [2, -1, -4, -3]
    cathy = [IN_VIEW + 2, 3, -4]
    assert broken(alice, bob, cathy) == []


def test_a_newcomer_does_not_take_what_was_sent_before() -> None:
    assert broken([1], [-1], [-1]) == ["integrity: site 2 took message 1, which is not for it"]


def test_a_newcomer_that_misses_something_of_its_view() -> None:
    assert broken([IN_VIEW + 2, 1], [-1], []) == ["complete: site 2 never took message 1"]


def test_nothing_of_a_view_comes_after_something_of_the_next() -> None:
    found = broken([1, IN_VIEW + 2, 4], [-4, -1], [-4])
    assert "views: site 1 took message 1 after one of a later order" in found


def test_a_message_that_nobody_sent() -> None:
    assert broken([], [-1], []) == ["integrity: site 1 took message 1, which nobody sent"]
