"""Where a relayed packet comes from: golden bytes, round trips, and bytes that say nothing of the kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.wire.relay import Origin, get, put

GOLDEN = [
    (Origin(0, 1, None), "00 01 00"),
    (Origin(2, 300, 0b101), "02 ac02 01 05"),
    (Origin(1, 7, 1 << 9), "01 07 02 0002"),
]


@pytest.mark.parametrize(("origin", "text"), GOLDEN)
def test_golden_origins(origin: Origin, text: str) -> None:
    data = bytes.fromhex(text)
    assert put(origin) == data
    assert get(data, 10) == origin


@given(st.integers(0, 9), st.integers(1, 2**31 - 1), st.none() | st.integers(1, 2**10 - 1))
def test_round_trip(src: int, seq: int, dst: int | None) -> None:
    assert get(put(Origin(src, seq, dst)), 10) == Origin(src, seq, dst)


@given(st.binary(max_size=20), st.integers(1, 9))
def test_anything_else_raises_wire_error_at_most(data: bytes, members: int) -> None:
    try:
        origin = get(data, members)
    except WireError:
        return
    assert origin.src < members and origin.seq > 0 and (origin.dst is None or 0 < origin.dst < 1 << members)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "truncated"),
        ("00 01", "truncated"),
        ("03 01 00", "stranger"),
        ("00 00 00", "malformed"),
        ("00 01 00 00", "length"),
        ("00 01 02 01", "length"),
        ("00 01 01 00", "malformed"),  # for nobody
        ("00 01 01 08", "malformed"),  # for a fourth of three
    ],
)
def test_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(WireError) as error:
        get(bytes.fromhex(text), 3)
    assert error.value.reason == reason
