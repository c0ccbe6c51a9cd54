"""Numbers that came, against a plain set of them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inga.causality.arrivals import Arrivals, numbers_in


def test_by_hand() -> None:
    arrivals = Arrivals()
    assert arrivals.missing(1) == ()
    assert arrivals.missing(4) == ((1, 4),)
    assert arrivals.add(3)
    assert arrivals.add(6)
    assert not arrivals.add(3)
    assert arrivals.missing(9) == ((1, 3), (4, 6), (7, 9))
    assert arrivals.missing(5) == ((1, 3), (4, 5))
    assert arrivals.add(1)
    assert arrivals.expected == 2
    assert arrivals.add(2)
    assert arrivals.expected == 4
    assert not arrivals.add(2)
    assert arrivals.early.keys() == {6}


@given(st.lists(st.integers(1, 40), max_size=120), st.integers(0, 45))
def test_like_a_set(numbers: list[int], below: int) -> None:
    arrivals = Arrivals()
    seen: set[int] = set()
    for number in numbers:
        assert arrivals.add(number, 10 * number) == (number not in seen)
        seen.add(number)
        first_missing = next(n for n in range(1, 100) if n not in seen)
        assert arrivals.expected == first_missing
        assert arrivals.early.keys() == {n for n in seen if n > first_missing}
        assert arrivals.early_bytes == sum(10 * n for n in seen if n > first_missing)
        runs = arrivals.missing(below)
        assert [n for low, high in runs for n in range(low, high)] == sorted(set(range(1, below)) - seen)
        assert all(low < high for low, high in runs)
        assert all(high < low for (_, high), (low, _) in pairwise(runs)), "maximal"


def test_numbers_of_runs_are_bounded_on_every_side() -> None:
    runs = ((2, 5), (7, 8), (10, 1 << 60))
    assert numbers_in(runs, 3, 12, 100) == [3, 4, 7, 10, 11]
    assert numbers_in(runs, 3, 12, 3) == [3, 4, 7]
    assert numbers_in(runs, 1, 1 << 60, 6) == [2, 3, 4, 7, 10, 11]
    assert numbers_in(runs, 5, 7, 9) == []
