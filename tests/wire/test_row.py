"""Rows of numbers: round trips, golden bytes, and anything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.wire import row


@given(st.lists(st.integers(0, row.COUNT_MAX)), st.binary(max_size=3), st.binary(max_size=3))
def test_round_trip(numbers: list[int], before: bytes, after: bytes) -> None:
    out = bytearray(before)
    row.put(out, numbers)
    assert row.get(bytes(out) + after, len(before)) == (tuple(numbers), len(out))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), "00 00000000"),
        ((1, 255), "00 00000002 01 ff"),
        ((1, 256), "01 00000002 0001 0100"),
        ((65536,), "02 00000001 00010000"),
        ((1 << 32,), "03 00000001 0000000100000000"),
    ],
)
def test_golden_bytes(numbers: tuple[int, ...], text: str) -> None:
    out = bytearray()
    row.put(out, numbers)
    assert out == bytes.fromhex(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "truncated"),
        ("00 000000", "truncated"),
        ("00 00000002 01", "truncated"),
        ("01 00000001 01", "truncated"),
        ("00 ffffffff 01", "truncated"),
        ("03 ffffffff 01", "truncated"),
        ("04 00000000", "malformed"),
        ("03 00000001 4000000000000000", "malformed"),
    ],
)
def test_what_is_no_row(text: str, reason: str) -> None:
    with pytest.raises(WireError) as refused:
        row.get(bytes.fromhex(text), 0)
    assert refused.value.reason == reason
