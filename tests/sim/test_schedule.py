"""The schedule language: what is written is what is read, and what makes no sense is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import UsageError
from inga.sim import Board
from inga.sim.board import lossless, replay
from inga.sim.recorder import Recorder
from inga.sim.schedule import Arrive, Event, Schedule, Send, Take, Wait

sites = st.integers(0, 25)
numbers = st.integers(0, 999)
events = st.one_of(
    st.builds(Send, sites, numbers, st.none() | st.integers(1, 2**26 - 1)),
    st.builds(Arrive, numbers, sites, st.booleans()),
    st.builds(Take, sites, numbers),
    st.builds(Wait, sites),
)


def number_sent(event: Event) -> object:
    """A message is sent once; everything else may happen as often as it likes."""
    return event.message if isinstance(event, Send) else object()


@given(st.lists(events, unique_by=number_sent))
def test_round_trip(run: list[Event]) -> None:
    schedule = Schedule(tuple(run))
    assert Schedule.parse(str(schedule)) == schedule


def test_every_kind_of_event() -> None:
    text = "A!1 B!2:AC 1>B 2>>C C?2 B."
    schedule = Schedule.parse(text)
    assert schedule.events == (
        Send(0, 1, None),
        Send(1, 2, 0b101),
        Arrive(1, 1, False),
        Arrive(2, 2, True),
        Take(2, 2),
        Wait(1),
    )
    assert str(schedule) == text
    assert schedule.sites == 3


def test_space_is_free() -> None:
    assert Schedule.parse("  A!1\n\t1>B ") == Schedule.parse("A!1 1>B")
    assert Schedule.parse("").events == ()
    assert Schedule.parse("").sites == 0


def test_sites_are_those_named_anywhere() -> None:
    assert Schedule.parse("A!1:D").sites == 4
    assert Schedule.parse("1>C").sites == 3
    assert Schedule.parse("E?1").sites == 5


@pytest.mark.parametrize(
    "word",
    [
        "A",
        "1",
        "a!1",
        "A!",
        "!1",
        "A!1:",
        "A!1:bc",
        "1>",
        ">B",
        "1>>>B",
        "A?",
        "?1",
        "A!1,1>B",
        "AB!1",
        "1>BC",
    ],
)
def test_what_is_no_event_is_named(word: str) -> None:
    with pytest.raises(UsageError, match="is no event") as caught:
        Schedule.parse(f"A!1 {word} 1>B")
    assert repr(word) in str(caught.value)


@pytest.mark.parametrize("text", ["A!1 A!1", "A!1 1>B B!1", "A!01 A!1:B"])
def test_a_message_is_sent_once(text: str) -> None:
    with pytest.raises(UsageError, match="message 1 is sent twice"):
        Schedule.parse(text)


def test_views_gates_and_crashes_are_words_too() -> None:
    text = "A!1 C+ A= B= 1>B C!2 B|open B|shut A- B= C="
    assert str(Schedule.parse(text)) == text
    assert Schedule.parse(text).sites == 2, "who joins is not there from the start"


def test_who_joins_stands_behind_the_others() -> None:
    assert str(Schedule.parse("J+ A!1:BJ B!2:J")) == "C+ A!1:BC B!2:C"
    with pytest.raises(UsageError, match="nobody joins twice"):
        Schedule.parse("J+ J+")


# Playing


def test_a_schedule_that_ends_early_is_completed() -> None:
    board = replay("A!1 A!2 B!3")
    assert board.taken == [[3], [1, 2]]
    assert board.oracle.violations.total() == 0


def test_takes_wait_until_they_are_due() -> None:
    """B reads 1 only after it has sent 2, so 2 does not follow 1."""
    board = replay("A!1 1>B B!2 B?1 B!3")
    assert board.taken == [[2, 3], [1]]
    assert board.oracle.related == 2, "1 caused 3, 2 caused 3, and nothing else"


def test_what_stands_before_a_later_take_is_taken_freely() -> None:
    board = replay("A!1 A!2 A!3 1>B 2>B 3>B B!4 B?2 B!5", sites=2)
    assert board.taken[1] == [1, 2, 3]
    assert board.oracle.related == (0 + 1 + 2) + 1 + 4, "4 follows 1; 5 follows all"


def test_moves_that_cannot_be_made_are_left_out() -> None:
    board = replay("1>B B?1 A!1 7>>B 1>B 1>B B?9")
    assert board.taken == [[], [1]]


def test_duplicates_arrive_and_are_not_taken() -> None:
    assert replay("A!1 1>B 1>>B 1>>B").taken == [[], [1]]


def test_subsets() -> None:
    board = replay("A!1:B A!2:C A!3")
    assert board.taken == [[], [1, 3], [2, 3]]
    assert board.oracle.violations.total() == 0


@pytest.mark.parametrize("order", ["none", "fifo", "causal"])
def test_who_names_oneself_takes_it_at_once(order: str) -> None:
    board = replay("A!1:AB A!2 1>B", order)
    assert board.taken == [[1], [1, 2]]
    assert board.oracle.violations.total() == 0


def test_a_waiting_time_ends_when_it_is_said_to() -> None:
    """Without a word about it, all waiting times end when everything has come."""
    assert replay("A!1 A!2 2>B B.", "realtime").taken == [[], [2, 1]]
    assert replay("A!1 A!2 2>B", "realtime").taken == [[], [1, 2]]
    assert replay("A!1 B. A. 1>B B. B. A!2", "causal").taken == [[], [1, 2]], "nobody waits for time here"


def test_waiting_times_stay_in_what_was_played() -> None:
    board = replay("A. A!1 A!2 2>B B.", "realtime")
    assert str(Schedule(tuple(board.played))) == "A!1 A!2 2>B B. 1>B B."


def test_what_was_played_can_be_played_again() -> None:
    text = "A!1 1>B B!2 1>>C 2>C B?1 A!3"
    board = replay(text)
    again = Board(3, lossless("causal"))
    again.play(Schedule(tuple(board.played)))
    assert again.taken == board.taken


# Recording


def test_packets_are_retold_as_messages() -> None:
    """Rows know packets: a bundle of two arrives as two messages, and a second copy as duplicates."""
    recorder = Recorder()
    for message in (1, 2, 3):
        recorder.send(0, message, None)
    recorder.packed(0, 1, 2)
    recorder.packed(0, 2, 1)
    recorder.arrived(1, 0, 2)
    recorder.arrived(1, 0, 1)
    recorder.take(1, 1)
    recorder.arrived(1, 0, 1)
    recorder.arrived(1, 0, 99)  # a packet nobody sent is none of ours
    schedule = Schedule(tuple(recorder.events))
    assert str(schedule) == "A!1 A!2 A!3 3>B 1>B 2>B B?1 1>>B 2>>B"
