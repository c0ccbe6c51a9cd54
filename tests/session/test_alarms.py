"""Timers by key, and waits that grow: what is due when, and how much is kept."""

from random import Random

from inga.session.alarms import STALE_MIN, Alarms, Backoff


def test_an_alarm_is_due_once_at_its_last_time() -> None:
    alarms = Alarms()
    alarms.set((1, 0), 5.0)
    alarms.set((2, 0), 3.0)
    alarms.set((1, 0), 2.0)
    assert alarms.next == 2.0
    assert list(alarms.due(4.0)) == [(1, 0), (2, 0)]
    assert alarms.next is None and not list(alarms.due(9.0))


def test_a_cleared_alarm_is_never_due() -> None:
    alarms = Alarms()
    alarms.set((1, 0), 1.0)
    alarms.clear((1, 0))
    assert (1, 0) not in alarms and alarms.next is None and not list(alarms.due(2.0))


def test_whoever_is_due_may_set_itself_again() -> None:
    alarms = Alarms()
    alarms.set((1, 0), 1.0)
    came = []
    for key in alarms.due(3.0):
        came.append(key)
        alarms.set(key, len(came) + 1.0)
    assert came == [(1, 0)] * 3 and alarms.next == 4.0


def test_alarms_far_ahead_that_come_to_nothing_leave_nothing_behind() -> None:
    alarms = Alarms()
    alarms.set((0, 0), 10.0)
    for number in range(10_000):
        alarms.set((1, number), 1000.0 + number)
        alarms.clear((1, number))
        alarms.set((2, 0), 2000.0 + number)
        assert len(alarms._heap) <= STALE_MIN + 2 * 3
    assert alarms.next == 10.0
    assert list(alarms.due(1e6)) == [(0, 0), (2, 0)]


def test_any_course_of_events_gives_what_a_plain_dictionary_gives() -> None:
    """Alarms in any order, with as many old entries as it takes to rebuild the heap now and then."""
    rng = Random(1)
    alarms, plain = Alarms(), dict[tuple[int, int], float]()
    rebuilt = 0
    now = 0.0
    for _ in range(20_000):
        key = rng.randrange(2), rng.randrange(40)
        before = len(alarms._heap)
        if rng.random() < 0.3:
            alarms.clear(key)
            plain.pop(key, None)
        elif rng.random() < 0.9:
            due = now + rng.randrange(1, 500)
            alarms.set(key, due)
            plain[key] = due
        else:
            now += rng.randrange(20)
            assert sorted(alarms.due(now)) == sorted(key for key, due in plain.items() if due <= now)
            plain = {key: due for key, due in plain.items() if due > now}
            before = 0
        rebuilt += len(alarms._heap) < before
        assert alarms.next == min(plain.values(), default=None)
    assert rebuilt > 10


def test_a_wait_doubles_up_to_its_limit_and_begins_anew() -> None:
    wait = Backoff(1.0, 5.0, jitter=0.0)
    for _ in range(2):
        assert [wait.next(Random(0)) for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
        wait.reset()
    assert wait.start() == 1.0
    assert [wait.next(Random(0)) for _ in range(3)] == [2.0, 4.0, 5.0]
