"""How a newcomer asks for a state: more at once as long as all comes, less when something is lost."""

from random import Random

from inga.session.pieces import (
    AGAIN,
    AGAIN_MAX,
    ANSWER_MAX,
    PIECE,
    PIECES,
    PIECES_MAX,
    FetchPace,
    answer_size,
)

RNG = Random(1)


def answered(pace: FetchPace, now: float, after: float = 0.001) -> float:
    pace.came(now + after, is_last=True)
    return now + after


def test_each_answer_that_came_whole_is_followed_by_a_question_for_twice_as_many() -> None:
    pace, now, asked = FetchPace(), 0.0, list[int]()
    for _ in range(12):
        asked.append(pace.ask(now))
        now = answered(pace, now)
    assert asked[:4] == [PIECES, 2 * PIECES, 4 * PIECES, 8 * PIECES]
    assert asked[-2:] == [PIECES_MAX, PIECES_MAX]


def test_a_question_that_is_repeated_is_for_half_as_many_and_proves_nothing() -> None:
    pace = FetchPace()
    for place in range(4):
        pace.ask(place)
        answered(pace, place)
    assert pace.ask(5.0) == 16 * PIECES
    assert [pace.ask(5.1), pace.ask(5.2)] == [8 * PIECES, 4 * PIECES]
    answered(pace, 5.2)
    assert pace.ask(6.0) == 4 * PIECES, "it came, but not at the first time"
    answered(pace, 6.0)
    assert pace.ask(7.0) == 8 * PIECES
    for _ in range(9):
        least = pace.ask(7.1)
    assert least == PIECES


def test_what_came_in_part_is_repeated_all_the_same() -> None:
    pace = FetchPace()
    pace.ask(0.0)
    answered(pace, 0.0)
    assert pace.ask(1.0) == 2 * PIECES
    pace.came(1.01, is_last=False)
    assert pace.ask(2.0) == PIECES


def waits(pace: FetchPace, count: int = 1) -> list[float]:
    return [pace.wait(RNG) for _ in range(count)]


def test_a_question_is_repeated_after_twice_the_time_that_the_last_one_took() -> None:
    pace = FetchPace()
    pace.ask(0.0)
    assert AGAIN <= waits(pace)[0] <= 1.25 * AGAIN
    pace.came(0.1, is_last=False)
    assert 0.2 <= waits(pace)[0] <= 0.25
    pace.came(0.3, is_last=True)  # the rest: it is about the first
    assert 0.2 <= waits(pace)[0] <= 0.25
    first, second, third = waits(pace, 3)
    assert 0.4 <= first <= AGAIN_MAX <= second <= 1.25 * AGAIN_MAX and third <= 1.25 * AGAIN_MAX
    pace.ask(1.0)
    pace.came(1.001, is_last=True)
    assert AGAIN <= waits(pace)[0] <= 1.25 * AGAIN, "it has become fast again"
    pace.ask(2.0)
    pace.came(9.0, is_last=True)
    assert waits(pace)[0] <= 1.25 * AGAIN_MAX


def test_an_answer_is_not_larger_than_buffers() -> None:
    assert answer_size(PIECES, PIECE) == answer_size(2 * PIECES, PIECE) == ANSWER_MAX
    assert answer_size(3, 100) == 300
