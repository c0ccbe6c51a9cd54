"""The stamp of a matrix order: golden bytes, round trips, and bytes that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.model.stamp import Cells, Deps
from inga.wire.matrix import get, put

GOLDEN: list[tuple[Deps, Cells, str]] = [
    ((0, 0), ((0, 1, 1),), "00 00  01  01 01"),
    ((0, 0, 0), (), "00 00 00  00"),
    ((2, 0, 1), ((0, 1, 3), (0, 2, 200), (2, 1, 1)), "02 00 01  03  01 03  00 c801  04 01"),
]


@pytest.mark.parametrize(("deps", "cells", "text"), GOLDEN)
def test_golden_stamps(deps: Deps, cells: Cells, text: str) -> None:
    data = bytes.fromhex(text)
    assert put(deps, cells) == data
    assert get(data + b"lunch?", len(deps)) == (deps, cells, len(data))


@st.composite
def stamps(draw: st.DrawFn) -> tuple[Deps, Cells]:
    members = draw(st.integers(1, 6))
    counts = st.integers(0, 2**31 - 1)
    deps = draw(st.tuples(*[counts] * members))
    pairs = st.tuples(st.integers(0, members - 1), st.integers(0, members - 1))
    chosen = draw(st.dictionaries(pairs.filter(lambda pair: pair[0] != pair[1]), counts.filter(bool)))
    return deps, tuple(sorted((k, j, value) for (k, j), value in chosen.items()))


@given(stamps(), st.binary(max_size=20))
def test_round_trip(stamp: tuple[Deps, Cells], body: bytes) -> None:
    deps, cells = stamp
    data = put(deps, cells) + body
    assert get(memoryview(data), len(deps)) == (deps, cells, len(data) - len(body))


@given(st.binary(max_size=60), st.integers(1, 5))
def test_anything_else_raises_wire_error_at_most(data: bytes, members: int) -> None:
    try:
        deps, cells, at = get(data, members)
    except WireError:
        return
    assert len(deps) == members and at <= len(data)
    assert get(put(deps, cells), members)[:2] == (deps, cells)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "truncated"),
        ("00", "truncated"),
        ("00 00", "truncated"),
        ("00 00 01 01", "truncated"),
        ("8080808010 00 00", "malformed"),  # a count above 31 bits
        ("00 00 03", "malformed"),  # more cells than there are
        ("00 00 01 00 01", "malformed"),  # from a member to itself
        ("00 00 01 04 01", "malformed"),  # beyond the last cell
        ("00 00 01 01 00", "malformed"),  # a cell that says nothing
    ],
)
def test_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(WireError) as error:
        get(bytes.fromhex(text), 2)
    assert error.value.reason == reason
