"""What members have of one that is gone: said in rows, dealt out, asked for, also by those who lie about it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.layers.lending import deal, holdings, lacking
from inga.model.errors import WireError
from inga.stack.hooks import SPREAD_MAX, Holdings

MOST = 14
"""The highest number in these tests."""


def numbers(rows: Holdings) -> dict[int, int]:
    """Numbers in holdings, and whether they are bare."""
    found: dict[int, int] = {}
    for low, high, bare in rows:
        for number in range(low, high):
            assert number not in found, "said twice"
            found[number] = bare
    return found


@pytest.mark.parametrize(
    ("expected", "early", "bare", "rows"),
    [
        (1, [], [], []),
        (4, [], [], [[1, 4, 0]]),
        (1, [2], [], [[2, 3, 0]]),
        (3, [7, 5, 6], [], [[1, 3, 0], [5, 8, 0]]),
        (4, [], [2], [[1, 2, 0], [2, 3, 1], [3, 4, 0]]),
        (4, [], [1, 3], [[1, 2, 1], [2, 3, 0], [3, 4, 1]]),
        (2, [4], [4], [[1, 2, 0], [4, 5, 1]]),
        (2, [], [5], [[1, 2, 0]]),  # a header of what we do not have says nothing
    ],
)
def test_holdings(expected: int, early: list[int], bare: list[int], rows: Holdings) -> None:
    assert holdings(expected, early, bare) == rows


@given(st.integers(1, MOST), st.sets(st.integers(1, MOST), max_size=MOST), st.sets(st.integers(1, MOST)))
def test_holdings_say_what_there_is(expected: int, early: set[int], bare: set[int]) -> None:
    early = {number for number in early if number > expected}  # what is expected is not there
    have = {*range(1, expected), *early}
    assert numbers(holdings(expected, early, bare)) == {number: int(number in bare) for number in have}


def test_all_get_what_any_has() -> None:
    held = {0: [[1, 3, 0]], 1: [[1, 2, 0], [4, 6, 0]], 3: [[1, 4, 0]]}
    assert deal(held) == {0: [[3, 3, 4], [1, 4, 6]], 1: [[0, 2, 3], [3, 3, 4]], 3: [[1, 4, 6]]}


def test_where_nobody_lacks_anything_nothing_is_dealt() -> None:
    assert deal({0: [[1, 9, 0]], 1: [[1, 9, 0]]}) == {0: [], 1: []}
    assert deal({0: [], 1: []}) == {0: [], 1: []}
    assert deal({2: [[1, 5, 0], [7, 9, 0]]}) == {2: []}, "what the only one left lacks nobody has"


def test_a_body_is_better_than_a_bare_header() -> None:
    """Whoever is asked first in the order of indices."""
    assert deal({0: [[1, 2, 1]], 1: [[1, 2, 0]], 2: []})[2] == [[1, 1, 2]]
    assert deal({0: [[1, 2, 0]], 1: [[1, 2, 1]], 2: []})[2] == [[0, 1, 2]]


def test_a_bare_header_is_better_than_nothing() -> None:
    """The message is lost, and counted all the same, or what comes after it could never be released."""
    assert deal({0: [[1, 2, 1], [2, 3, 0]], 1: []}) == {0: [], 1: [[0, 1, 3]]}


def test_who_has_the_header_gets_no_body() -> None:
    """It is not for that member."""
    assert deal({0: [[1, 2, 1]], 1: [[1, 2, 0]]}) == {0: [], 1: []}


@st.composite
def holders(draw: st.DrawFn) -> dict[int, Holdings]:
    members = draw(st.sets(st.integers(0, 6), min_size=1, max_size=4))
    found = {}
    for member in sorted(members):
        expected = draw(st.integers(1, MOST))
        early = draw(st.sets(st.integers(expected + 1, MOST + 2), max_size=4))
        bare = draw(st.sets(st.integers(1, MOST + 2), max_size=4))
        found[member] = holdings(expected, early, bare)
    return found


@given(holders())
def test_after_that_all_have_the_same_and_nobody_gives_what_it_has_not(held: dict[int, Holdings]) -> None:
    have = {member: numbers(rows) for member, rows in held.items()}
    whole = set().union(*have.values())
    for member, dealt in deal(held).items():
        got = []
        for holder, low, high in dealt:
            got += range(low, high)
            for number in range(low, high):
                bodies = [other for other in have if have[other].get(number) == 0]
                assert have[holder].get(number) == (0 if bodies else 1)
        assert len(got) == len(set(got)) and not have[member].keys() & set(got)
        assert have[member].keys() | set(got) == whole


# What somebody might say to do harm


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2 + SPREAD_MAX, 0]],
        [[1, 1 << 31, 0]],
        [[(1 << 31) - 1, 1 << 31, 0]],
        [[1, 2, 2]],
        [[1, 2, 1 << 30]],
    ],
)
def test_holdings_that_nobody_can_have(rows: Holdings) -> None:
    with pytest.raises(WireError, match="malformed"):
        deal({0: [], 1: rows})


def test_what_all_have_is_no_burden_however_much_it_is() -> None:
    """Groups run for a long time: only what some lack is looked at one by one."""
    far = 1 << 31
    assert deal({0: [[1, far, 0]], 1: [[1, far - 2, 0]]}) == {0: [], 1: [[0, far - 2, far]]}


@pytest.mark.parametrize("rows", [[[5, 2, 0]], [[0, 0, 0]], [[3, 3, 1]], [[0, 2, 0]]])
def test_rows_that_say_nothing_or_too_much_do_no_harm(rows: Holdings) -> None:
    dealt = deal({0: [[1, 3, 0]], 1: rows, 2: []})
    assert dealt[2] == [[0, 1, 3]], "and never a number below the first"


def has(*numbers: int) -> Callable[[int], bool]:
    return lambda number: number in numbers


def test_what_is_lacking_by_holder() -> None:
    dealt = [[0, 1, 5], [2, 5, 6], [0, 6, 9]]
    assert lacking(dealt, has()) == {0: ((1, 5), (6, 9)), 2: ((5, 6),)}
    assert lacking(dealt, has(2, 5, 6)) == {0: ((1, 2), (3, 5), (7, 9))}
    assert lacking(dealt, has(*range(1, 9))) == {}
    assert lacking([], has()) == {}


def test_what_is_dealt_by_one_who_lies_is_looked_at_up_to_a_bound() -> None:
    looked = 0

    def look(number: int) -> bool:
        nonlocal looked
        looked += 1
        return True

    assert lacking([[0, 1, 1 << 31]] * 200, look) == {}
    assert looked == SPREAD_MAX


def test_beyond_a_gap_that_nobody_fills_nothing_is_dealt_where_packets_are_taken_without_gaps() -> None:
    """Number 5 is nowhere: the member that has 6 lets it go, so that it cannot lend it."""
    held = {0: [[1, 5, 0], [6, 8, 0]], 1: [[1, 4, 0]], 2: [[1, 4, 0], [7, 8, 0]]}
    assert deal(held, is_gapless=True) == {0: [], 1: [[0, 4, 5]], 2: [[0, 4, 5]]}
    assert deal(held) == {0: [], 1: [[0, 4, 5], [0, 6, 8]], 2: [[0, 4, 5], [0, 6, 7]]}
    filled = {**held, 1: [[1, 4, 0], [5, 6, 0]]}
    assert deal(filled, is_gapless=True)[2] == [[0, 4, 5], [1, 5, 6], [0, 6, 7]]
