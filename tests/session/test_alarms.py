"""Timers by key, and waits that grow while nothing comes of them and shrink again when something does."""

import pytest

from inga.session.alarms import WAIT_MAX, Alarms, Backoff
from inga.stack.waits import BACK_OFF

A, B = (0, 0), (0, 1)


class Chance:
    """The same chance every time."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


NONE, MOST = Chance(0.0), Chance(1.0)


# Waits that grow


def test_a_wait_doubles_up_to_its_limit() -> None:
    wait = Backoff(1.0, 6.0)
    assert [wait.next(NONE) for _ in range(6)] == [1.0, 2.0, 4.0, 6.0, 6.0, 6.0]


def test_start_is_the_first_wait_and_the_next_is_twice_as_long() -> None:
    wait = Backoff(1.0, 6.0)
    for _ in range(5):
        wait.next(NONE)
    assert wait.start() == 1.0
    assert [wait.next(NONE) for _ in range(4)] == [2.0, 4.0, 6.0, 6.0]


def test_reset_begins_with_the_first_wait_again() -> None:
    wait = Backoff(1.0, 6.0)
    for _ in range(5):
        wait.next(NONE)
    wait.reset()
    assert [wait.next(NONE) for _ in range(2)] == [1.0, 2.0]


def test_start_does_not_exceed_the_limit() -> None:
    wait = Backoff(1.0, 1.5)
    assert wait.start() == 1.0
    assert [wait.next(NONE) for _ in range(2)] == [1.5, 1.5]


@pytest.mark.parametrize(("jitter", "longest"), [(0.0, 1.0), (0.25, 1.25), (0.5, 1.5)])
def test_chance_only_makes_a_wait_longer_and_does_not_add_up(jitter: float, longest: float) -> None:
    wait = Backoff(1.0, 4.0, jitter)
    assert [wait.next(MOST) for _ in range(4)] == [longest, 2 * longest, 4 * longest, 4 * longest]
    wait.reset()
    assert wait.next(NONE) == 1.0


# Timers


def test_each_is_due_once_and_in_its_order() -> None:
    alarms = Alarms()
    alarms.set(A, 2.0)
    alarms.set(B, 1.0)
    assert alarms.next == 1.0 and A in alarms and B in alarms
    assert list(alarms.due(0.9)) == []
    assert list(alarms.due(2.0)) == [B, A]
    assert list(alarms.due(9.0)) == [] and alarms.next is None and A not in alarms


def test_one_that_is_set_anew_is_due_at_its_new_time_alone() -> None:
    alarms = Alarms()
    for due in (1.0, 5.0, 3.0):
        alarms.set(A, due)
    assert alarms.next == 3.0
    assert list(alarms.due(2.0)) == []
    assert list(alarms.due(9.0)) == [A]


def test_sooner_never_puts_off() -> None:
    alarms = Alarms()
    alarms.sooner(A, 3.0)
    alarms.sooner(A, 5.0)
    assert alarms.next == 3.0
    alarms.sooner(A, 1.0)
    assert alarms.next == 1.0


def test_one_may_set_itself_again_while_it_is_served() -> None:
    alarms = Alarms()
    alarms.set(A, 1.0)
    served = []
    for key in alarms.due(1.0):
        served.append(key)
        alarms.set(A, 2.0)
    assert served == [A] and alarms.next == 2.0


def test_repetitions_wait_longer_each_time_until_there_is_progress() -> None:
    alarms = Alarms()
    waits = []
    for _ in range(6):
        alarms.again(A, 10.0, 1.0)
        assert alarms.next is not None
        waits.append(alarms.next - 10.0)
        list(alarms.due(100.0))
    assert waits == [1.0, BACK_OFF, BACK_OFF**2, WAIT_MAX, WAIT_MAX, WAIT_MAX]
    assert alarms.wait(A, 1.0) == WAIT_MAX and alarms.wait(B, 1.0) == 1.0
    alarms.progress(A)
    assert alarms.wait(A, 1.0) == 1.0
    alarms.again(A, 10.0, 1.0)
    assert alarms.next == 11.0


def test_what_is_cleared_leaves_nothing() -> None:
    alarms = Alarms()
    for number in range(1000):
        alarms.again((0, number), 0.0, 1.0)
        alarms.clear((0, number))
    assert alarms.next is None and (0, 1) not in alarms
    assert (alarms._set, alarms._waits, alarms._heap) == ({}, {}, [])
    alarms.again(A, 0.0, 1.0)
    assert alarms.next == 1.0, "the wait has not grown"


def test_clearing_one_leaves_the_others() -> None:
    alarms = Alarms()
    alarms.set(A, 1.0)
    alarms.set(B, 2.0)
    alarms.clear(A)
    alarms.clear(A)
    assert alarms.next == 2.0 and list(alarms.due(9.0)) == [B]


def test_one_that_is_put_off_for_ever_does_not_pile_up() -> None:
    """The heap forgets an old entry once its time has come, so it holds no more than is to come."""
    alarms = Alarms()
    for step in range(10_000):
        now = step / 1000
        alarms.set(A, now + 0.1)
        list(alarms.due(now))
    assert len(alarms._heap) <= 101
