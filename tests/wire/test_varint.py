"""Numbers as bytes: golden encodings, the largest, the too large and the cut off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.wire.varint import VARINT_MAX, get, put

GOLDEN = [
    (0, "00"),
    (1, "01"),
    (0x7F, "7f"),
    (0x80, "8001"),
    (300, "ac02"),
    (0x3FFF, "ff7f"),
    (0x4000, "808001"),
    (2**32, "8080808010"),
    (2**63 - 1, "ffffffffffffffff7f"),
    (2**63, "80808080808080808001"),
    (2**64 - 1, "ffffffffffffffffff01"),
]


def encoded(value: int) -> bytes:
    out = bytearray()
    put(out, value)
    return bytes(out)


@pytest.mark.parametrize(("value", "text"), GOLDEN)
def test_golden_numbers(value: int, text: str) -> None:
    assert encoded(value).hex() == text
    assert get(bytes.fromhex(text), 0) == (value, len(text) // 2)


@given(st.lists(st.integers(0, VARINT_MAX), min_size=1), st.binary(max_size=3))
def test_numbers_follow_each_other(values: list[int], front: bytes) -> None:
    data = front + b"".join(map(encoded, values))
    at = len(front)
    for value in values:
        found, at = get(memoryview(data), at)
        assert found == value
    assert at == len(data)


@pytest.mark.parametrize(("value", "text"), GOLDEN)
def test_every_cut_is_noticed(value: int, text: str) -> None:
    data = bytes.fromhex(text)
    for end in range(len(data)):
        with pytest.raises(WireError, match="truncated") as caught:
            get(data[:end], 0)
        assert caught.value.reason == "truncated"


@pytest.mark.parametrize(
    "text",
    [
        "ffffffffffffffffff02",  # 2**64 and more, in ten bytes
        "ffffffffffffffffff7f",
        "8080808080808080808001",  # eleven bytes
        "ff" * 40,
        "80" * 10 + "00",
    ],
)
def test_numbers_above_64_bits_are_malformed(text: str) -> None:
    with pytest.raises(WireError) as caught:
        get(bytes.fromhex(text), 0)
    assert caught.value.reason == "malformed"


@given(st.binary(max_size=16), st.integers(0, 20))
def test_any_bytes_are_a_number_or_a_wire_error(data: bytes, at: int) -> None:
    try:
        value, end = get(data, at)
    except WireError as error:
        assert error.reason in ("truncated", "malformed")
    else:
        assert 0 <= value <= VARINT_MAX
        assert at < end <= min(len(data), at + 10)
