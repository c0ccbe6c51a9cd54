"""What SCO adds to packets: golden bytes, round trips, and arbitrary input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.model.stamp import Delta, Noted
from inga.wire import shares
from inga.wire.selective import pack, unpack

MEMBERS = 12
pairs = st.dictionaries(st.integers(0, MEMBERS - 1), st.integers(1, 2**40)).map(
    lambda entries: tuple(sorted(entries.items()))
)


notes = st.none() | st.dictionaries(st.integers(0, MEMBERS - 1), pairs.filter(bool)).map(
    lambda entries: tuple(sorted(entries.items()))
)
places = st.sampled_from([b"", shares.put([(0, 0b11), (2, 0b110)], MEMBERS)])


@given(st.integers(0, 2**40), st.integers(1, 2**40), pairs, pairs, notes, places)
def test_what_was_packed_is_unpacked(
    free: int, have: int, acks: Delta, lsns: Delta, noted: Noted | None, places: bytes
) -> None:
    said = (free, have, acks, lsns, noted, places)
    assert unpack(pack(*said), MEMBERS) == said


def test_golden_bytes() -> None:
    assert pack(300, 5, ((0, 3), (7, 300))).hex() == "ac02 05 02 0003 06ac02".replace(" ", "")
    assert pack(0, 1, (), ((1, 2), (2, 9))).hex() == "00 01 00 02 0102 0009".replace(" ", "")
    assert pack(0, 1, (), (), ()).hex() == "00 01 00 00 01".replace(" ", "")
    noted = ((2, ((0, 7),)), (4, ((1, 5), (3, 300))))
    assert pack(0, 1, (), (), noted).hex() == "00 01 00 00 03 02 01 0007 01 02 0105 01ac02".replace(" ", "")


@given(st.binary(max_size=40))
def test_anything_else_is_refused(data: bytes) -> None:
    try:
        free, have, acks, lsns, noted, _ = unpack(data, MEMBERS)
    except WireError as error:
        assert error.reason in ("malformed", "truncated")
    else:
        pairs_of = [pair for member, numbers in noted or () for pair in ((member, 1), *numbers)]
        assert all(0 <= m < MEMBERS and number > 0 for m, number in (*acks, *lsns, *pairs_of))
        assert free >= 0 and have >= 0


@pytest.mark.parametrize(
    "data",
    [
        *("", "05", "05 01", "05 01 01 0c01", "05 01 01 0000", "05 01 00 00", "05 01 00 01 0001 00"),
        *("05 01 00 00 02 00 00", "05 01 00 00 02 0c 01 0001", "05 01 00 00 02", "05 01 00 00 01 00"),
    ],
)
def test_bad_extensions(data: str) -> None:
    with pytest.raises(WireError):
        unpack(bytes.fromhex(data), MEMBERS)
