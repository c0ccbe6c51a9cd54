"""Who holds the group up: told once for each time it happens, on time, and only of those who do."""

from collections.abc import Iterable

import pytest

from inga.model.errors import Gap, NoMajority
from inga.recipes import Options
from inga.session.pressure import ASK_AFTER, ASKS_MAX, WARN_AFTER, Unread
from inga.session.session import Session, session_of
from inga.stack.layer import Layer
from inga.stack.stack import Stack

from ..stack.harness import NAMES, SESSION, Net, Top


class Narrow(Layer):
    """A window and a hold queue that do as the test says."""

    name = "narrow"
    is_open = True
    is_passable = True
    waiting = 0
    outstanding = 7
    begun = 0
    held = 0

    def __init__(self) -> None:
        self.slow: set[int] = set()
        self.missing: set[int] = set()

    def blockers(self) -> Iterable[int]:
        return self.slow

    def awaited(self) -> Iterable[int]:
        return self.missing

    def close(self, *slow: int) -> None:
        self.is_open, self.slow = False, set(slow)
        self.stack.review()

    def open(self) -> None:
        self.is_open = True
        self.stack.review()


class Room:
    """One member of three with such a layer, in the test's time."""

    def __init__(self) -> None:
        self.net = Net(3, build=lambda: [Top(), Narrow(), Session()])
        self.stack: Stack = self.net.stacks[0]
        narrow = self.stack.layer("narrow")
        assert isinstance(narrow, Narrow)
        self.narrow = narrow

    def wait(self, seconds: float) -> None:
        """Nobody answers anything."""
        self.net.turn(0)
        end = self.net.now + seconds
        while self.net.wake[0] is not None and self.net.wake[0] <= end:
            self.net.now = max(self.net.now, self.net.wake[0])
            self.net.tick(0)
        self.net.now = self.stack.now = end
        self.net.under_way.clear()

    def heard(self) -> list[str]:
        said, self.net.notices = self.net.notices, []
        return said


@pytest.fixture
def room() -> Room:
    return Room()


# Sending


def test_who_lets_us_wait_is_named_once_and_on_time(room: Room) -> None:
    room.narrow.close(2)
    room.wait(WARN_AFTER - 0.001)
    assert room.heard() == []
    room.wait(0.001)
    assert room.heard() == ["sending has waited 5 s for cathy"]
    room.wait(1000.0)
    assert room.heard() == []


def test_nobody_is_to_blame_for_the_time_in_which_we_were_stopped(room: Room) -> None:
    """Whoever has answered meanwhile may still wait to be read."""
    room.narrow.close(2)
    room.wait(0.5)
    room.net.now += 60.0
    room.wait(WARN_AFTER - 0.001)
    assert room.heard() == []
    room.wait(0.001)
    assert room.heard() == ["sending has waited 5 s for cathy"]


@pytest.mark.parametrize("after", [ASK_AFTER, WARN_AFTER])
def test_no_alarm_is_set_for_a_moment_that_has_come(room: Room, after: float) -> None:
    """It would go off again and again, and time would stand still."""
    room.narrow.close(2)
    pressure, at = session_of(room.stack).pressure, room.stack.now + after
    room.net.now = room.stack.now = at
    for _ in range(ASKS_MAX + 1):
        pressure.tick(at)
        assert pressure.wake > at


def test_each_wait_is_told(room: Room) -> None:
    for _ in range(3):
        room.narrow.close(1, 2)
        room.wait(WARN_AFTER)
        assert room.heard() == ["sending has waited 5 s for bob, cathy"]
        room.narrow.open()
        room.wait(100.0)
        assert room.heard() == []


@pytest.mark.parametrize("seconds", [0.5, WARN_AFTER, 1000.0])
@pytest.mark.parametrize("what", ["sending", "delivery", "both"])
def test_who_waits_no_more_has_no_timer(room: Room, what: str, seconds: float) -> None:
    for _ in range(2):
        if what != "delivery":
            room.narrow.close(1)
        if what != "sending":
            room.narrow.held, room.narrow.missing = 100, {2}
        room.wait(seconds)
        room.narrow.open()
        room.narrow.held = 0
        room.net.turn(0)
        assert room.net.wake[0] is None


def test_short_waits_do_not_add_up(room: Room) -> None:
    for _ in range(10):
        room.narrow.close(1)
        room.wait(WARN_AFTER - 0.1)
        room.narrow.open()
        room.narrow.close(1)
    assert room.heard() == []


def test_our_own_application_is_named_when_it_is_the_one(room: Room) -> None:
    room.narrow.close()
    room.wait(WARN_AFTER)
    assert room.heard() == ["sending has waited 5 s: our own application does not read"]
    assert not [flight for flight in room.net.log if flight.kind == SESSION], "nobody else is asked about it"


def test_who_has_left_is_not_blamed(room: Room) -> None:
    room.narrow.close(1, 2)
    room.stack.left.add(2)
    room.wait(WARN_AFTER)
    assert room.heard() == ["sending has waited 5 s for bob"]


# Delivery


def test_delivery_that_stands_still_is_told(room: Room) -> None:
    room.narrow.held, room.narrow.missing = 100, {1}
    room.wait(WARN_AFTER - 0.001)
    assert room.heard() == []
    room.wait(0.001)
    assert room.heard() == ["delivery has waited 5 s for bob"]
    room.wait(100.0)
    assert room.heard() == []
    room.narrow.held = 0
    room.wait(1.0)
    room.narrow.held, room.narrow.missing = 100, {2}
    room.wait(WARN_AFTER)
    assert room.heard() == ["delivery has waited 5 s for cathy"]


def test_delivery_that_moves_is_no_wait(room: Room) -> None:
    """Something is always held, and something is always delivered."""
    room.narrow.held, room.narrow.missing = 100, {1}
    for _ in range(400):
        room.stack.delivered += 1
        room.wait(WARN_AFTER - 0.5)
    assert room.heard() == []
    room.wait(WARN_AFTER)
    assert room.heard() == ["delivery has waited 5 s for bob"], "also after half an hour of that"


def test_calls_that_begin_are_no_wait(room: Room) -> None:
    """Objects may be called without a pause, and hold something all the while, and nothing is ever delivered."""
    room.narrow.held, room.narrow.missing = 100, {1}
    for _ in range(4):
        room.wait(WARN_AFTER - 1)
        room.narrow.begun += 1
    assert room.heard() == []


def test_what_is_held_for_one_who_left_is_nobodys_fault(room: Room) -> None:
    room.narrow.held, room.narrow.missing = 100, {1}
    room.stack.left.add(1)
    room.wait(100.0)
    assert room.heard() == [] and room.net.wake[0] is None
    room.narrow.held, room.narrow.missing = 200, {1, 2}
    room.wait(WARN_AFTER)
    assert room.heard() == ["delivery has waited 5 s for cathy"], "more is held, and for another"


def test_one_wait_is_told_on_time_although_another_has_lasted_long(room: Room) -> None:
    """Questions about the other have become rare."""
    room.narrow.held, room.narrow.missing = 100, {1}
    room.wait(300.0)
    assert room.heard() == ["delivery has waited 5 s for bob"]
    room.narrow.close(2)
    room.wait(WARN_AFTER)
    assert room.heard() == ["sending has waited 5 s for cathy"]


@pytest.mark.parametrize("what", ["sending", "delivery"])
def test_a_pause_is_not_part_of_what_others_have_let_us_wait(room: Room, what: str) -> None:
    """Whoever was cut off could not hear them. It is told as if the wait had begun with the end of the pause."""
    if what == "sending":
        room.narrow.close(1)
    else:
        room.narrow.held, room.narrow.missing = 100, {1}
    room.wait(1.0)
    room.stack.views.pause(NoMajority("without bob", ("bob",)))
    room.wait(100.0)
    assert room.heard() == []
    room.stack.views.pause(None)
    session_of(room.stack).pressure.be_patient()
    room.wait(WARN_AFTER - 0.1)
    assert room.heard() == []
    room.wait(0.2)
    assert room.heard() == [f"{what} has waited 5 s for bob"]


# Questions


def test_questions_grow_rare_and_end(room: Room) -> None:
    room.narrow.close(2)
    times = []
    for second in range(3600):
        before = len(room.net.log)
        room.wait(1.0)
        times += [second] * (len(room.net.log) > before)
    assert times[0] <= 1 and len(times) == ASKS_MAX
    assert max(times) > 300 and room.net.wake[0] is None
    room.narrow.open()
    room.narrow.close(2)
    before = len(room.net.log)
    room.wait(2.0)
    assert len(room.net.log) > before, "the next wait is asked about again"


def test_many_short_waits_are_all_asked_about(room: Room) -> None:
    """Something is always held, and moves after each of them."""
    room.narrow.held, room.narrow.missing = 100, {1}
    for _ in range(2 * ASKS_MAX):
        room.stack.delivered += 1
        room.net.turn(0)
        before = len(room.net.log)
        room.wait(1.5 * ASK_AFTER)
        assert len(room.net.log) > before
    assert room.heard() == []


def test_a_wait_after_a_long_one_is_told_on_time(room: Room) -> None:
    room.narrow.held, room.narrow.missing = 100, {1}
    room.wait(300.0)
    assert room.heard() == ["delivery has waited 5 s for bob"]
    room.stack.delivered += 1
    room.wait(WARN_AFTER)
    assert room.heard() == ["delivery has waited 5 s for bob"]


def test_who_leaves_or_fails_waits_for_nobody(room: Room) -> None:
    room.narrow.close(2)
    room.narrow.held, room.narrow.missing = 100, {1}
    room.wait(1.0)
    room.stack.fail(Gap("enough"))
    room.wait(100.0)
    assert room.heard() == [] and room.net.wake[0] is None


# Whole groups


@pytest.mark.parametrize("order", ["vector", "co", "sco"])
def test_a_slow_reader_is_named_and_the_healthy_are_not(order: str) -> None:
    """Alice sends, cathy does not read; bob reads everything. Cathy blames nobody but herself."""
    net = Net(3, order, options=Options(queue_max=4000, flow={"window": 6000}), takes=False)
    for _ in range(400):
        if net.stacks[0].writable:
            net.send(0, b"." * 500)
        for member in (0, 1):
            read, net.batches[member] = net.batches[member], []
            net.take(member, *read)
        for member in range(3):
            net.turn(member)
        net.wait(0.05)
        if net.told[0]:
            break
    assert net.told[0] == ["sending has waited 5 s for cathy"]
    assert not net.told[1], "bob has nobody to wait for"
    assert not [text for text in net.told[2] if "alice" in text or "bob" in text]


@pytest.mark.parametrize("order", ["fifo", "vector"])
def test_a_lost_cause_is_named(order: str) -> None:
    net = Net(3, order)
    for stack in net.stacks:
        stack.layers[0].gather = False  # type: ignore[attr-defined]
    net.send(2, b"one")
    net.lose(lambda flight: flight.target == 1)
    net.send(2, b"two")
    net.wait(
        WARN_AFTER + 0.1, lose=lambda flight: {flight.source, flight.target} == {1, 2} and flight.kind != 0
    )
    assert net.texts(1) == []
    assert net.notices == [f"delivery has waited 5 s for {NAMES[2]}"]
    net.quiet()
    assert net.texts(1) == ["one", "two"] and len(net.notices) == 1


# Unread


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 1 << 24])
def test_behind_from_the_limit_until_half_of_it(limit: int) -> None:
    unread = Unread(limit)
    assert not unread.is_behind(limit - 1)
    assert unread.is_behind(limit)
    assert not unread.is_behind(0), "never behind with nothing unread"
    assert unread.is_behind(limit + 5) and unread.behind
    assert unread.is_behind(limit // 2 + 1), "one read is not enough"
    assert not unread.is_behind(limit // 2) and not unread.behind
    assert not unread.is_behind(limit - 1)
