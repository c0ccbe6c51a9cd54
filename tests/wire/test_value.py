"""Plain values as bytes: what goes in comes out, and nothing else is read."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import UsageError, WireError
from inga.wire import value, varint

KEYS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.binary())
VALUES: Any = st.recursive(
    st.one_of(KEYS, st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.one_of(KEYS, st.tuples(KEYS)), inner)
    ),
    max_leaves=8,
)


def round_trip(given: Any) -> Any:
    assert repr(value.copied(given)) == repr(given)
    out = bytearray(b"\x07")
    value.put(out, given)
    found, at = value.get(bytes(out), 1)
    assert at == len(out)
    return found


@given(VALUES)
def test_round_trip(given: Any) -> None:
    found = round_trip(given)
    assert found == given
    assert repr(found) == repr(given)  # types too: True is not 1, a list is no tuple


@pytest.mark.parametrize(
    "number",
    [0, -1, 127, 128, -128, -129, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30, -(10**30)],
)
def test_numbers_of_any_size(number: int) -> None:
    assert round_trip(number) == number


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (2**63 - 1, value.PLUS),
        (2**63, value.BIG_PLUS),
        (-(2**63), value.MINUS),
        (-(2**63) - 1, value.BIG_MINUS),
    ],
)
def test_numbers_of_eight_octets_have_the_form_that_every_version_writes(number: int, kind: int) -> None:
    out = bytearray()
    value.put(out, number)
    assert (out[0], len(out)) == (kind, 10), "no leading zeros"


def test_floats_keep_their_bits() -> None:
    assert math.isnan(round_trip(math.nan))
    assert round_trip(-0.0).hex() == (-0.0).hex()


def test_golden_bytes() -> None:
    out = bytearray()
    value.put(out, {"a": [None, True, -3, 300, 1.5, b"\x00"], (): "é"})
    assert out.hex(" ") == (
        "0a 02 06 01 61 08 06 00 02 04 02 03 ac 02 05 3f f8 00 00 00 00 00 00 07 01 00 09 00 06 02 c3 a9"
    )


class Own(int):
    """Somebody's own number."""


@pytest.mark.parametrize(
    "bad",
    [object(), {1, 2}, [object()], {"a": {1}}, Own(1), bytearray(b"x"), 1 << 9000],
    ids=lambda bad: type(bad).__name__,
)
def test_what_cannot_be_sent(bad: Any) -> None:
    with pytest.raises(UsageError):
        value.copied(bad)


def test_too_deep() -> None:
    deep: Any = []
    for _ in range(value.DEPTH_MAX + 1):
        deep = [deep]
    with pytest.raises(UsageError, match="deep"):
        value.copied(deep)
    with pytest.raises(WireError):
        value.get(bytes([value.LIST, 1]) * 2000 + b"\x00", 0)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "0d",
        "03",
        "0605616263",
        "0703",
        "0a0108000000",
        "05aabb",
        "0602fffe",
        "08ffffffffff7f",
        "0b8108" + "01" * 1025,
    ],
)
def test_malformed(bad: str) -> None:
    with pytest.raises(WireError):
        value.get(bytes.fromhex(bad), 0)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_nothing_else(data: bytes) -> None:
    try:
        found, at = value.get(data, 0)
    except WireError:
        return
    assert at <= len(data)
    value.copied(found)


def test_a_copy_shares_nothing_that_can_change() -> None:
    inner: list[Any] = [1]
    given = {"a": (inner, {"b": inner})}
    found = value.copied(given)
    inner.append(2)
    given["c"] = ([], {})
    assert found == {"a": ([1], {"b": [1]})}


def pairs(count: int, key: Any) -> bytes:
    """A dictionary as somebody else may send it, with these keys and None for every value."""
    out = bytearray([value.DICT])
    varint.put(out, count)
    for number in range(count):
        value.put(out, key(number))
        value.put(out, None)
    return bytes(out)


@pytest.mark.parametrize(
    "key",
    [
        lambda number: number * (2**61 - 1),  # all of one hash
        lambda number: -number << 40,
        lambda number: number / 4,
        lambda number: (number * (2**61 - 1), "x"),
    ],
)
def test_keys_that_can_be_made_to_collide_are_few(key: Any) -> None:
    """The bound itself is right on both sides, one more is refused on both."""
    most = {key(number): None for number in range(value.OTHER_KEYS_MAX)}
    assert round_trip(most) == most
    with pytest.raises(UsageError, match="1024 keys that are neither text nor bytes: send a list of pairs"):
        value.copied({**most, key(value.OTHER_KEYS_MAX): None})
    more = pairs(value.OTHER_KEYS_MAX + 1, key)
    with pytest.raises(WireError, match="too many keys that may collide"):
        value.get(more, 0)


def test_keys_that_repeat_count_too() -> None:
    """Whoever sends one key again and again is refused before all of them are read."""
    with pytest.raises(WireError, match="too many keys that may collide"):
        value.get(pairs(value.OTHER_KEYS_MAX + 1, lambda number: 0), 0)


@pytest.mark.parametrize("key", [str, lambda number: b"%d" % number])
def test_text_and_bytes_may_be_as_many_as_they_like(key: Any) -> None:
    """Their hashes have a secret."""
    many = {key(number): number for number in range(4 * value.OTHER_KEYS_MAX)}
    assert round_trip({**many, 1: 2}) == {**many, 1: 2}
