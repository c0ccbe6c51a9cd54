"""What CO adds to packets: golden bytes, round trips, and arbitrary input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.wire.co import CoExtension, pack, unpack

MEMBERS = 4
SRC = 1

GOLDEN = {
    "data": (CoExtension(500, rises=((0, 1), (2, 3))), "02 f403 0200010103"),
    "data without rises": (CoExtension(0, rises=()), "02 00 00"),
    "data in full": (CoExtension(500, (1, 33, 300, 1)), "01 f403 0121ac0201"),
    "nack": (CoExtension(500, (1, 33, 300, 1), runs=((1, 4), (6, 7))), "09 f403 0121ac0201 0201030201"),
    "confirmation": (
        CoExtension(500, (1, 34, 300, 1), confirmed=(1, 30, 290, 1)),
        "05 f403 0122ac0201 011ea20201",
    ),
}

count = st.integers(0, 2**64 - 1)
nothing = st.none()
vector = st.tuples(*[count] * MEMBERS)
rises = st.dictionaries(st.sampled_from([m for m in range(MEMBERS) if m != SRC]), st.integers(1, 2**40)).map(
    lambda entries: tuple(sorted(entries.items()))
)
sections = st.one_of(
    st.tuples(count, nothing, rises, nothing, nothing),
    st.tuples(count, vector, nothing, nothing, nothing),
    st.tuples(count, vector, nothing, vector, nothing),
    st.tuples(count, vector, nothing, nothing, st.just(((3, 5), (9, 10), (10, 300)))),
).map(CoExtension._make)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes(name: str) -> None:
    section, text = GOLDEN[name]
    assert pack(section).hex(" ") == bytes.fromhex(text).hex(" ")
    assert unpack(bytes.fromhex(text), SRC, MEMBERS) == section


@given(sections)
def test_what_was_packed_is_unpacked(section: CoExtension) -> None:
    assert unpack(pack(section), SRC, MEMBERS) == section


@given(sections, st.data())
def test_every_cut_and_every_addition_is_noticed(section: CoExtension, data: st.DataObject) -> None:
    whole = pack(section)
    cut = data.draw(st.integers(0, len(whole) - 1))
    for wrong in (whole[:cut], whole + data.draw(st.binary(min_size=1, max_size=9))):
        with pytest.raises(WireError):
            unpack(wrong, SRC, MEMBERS)


@given(st.binary(max_size=40))
def test_anything_else_is_refused(data: bytes) -> None:
    try:
        found = unpack(data, SRC, MEMBERS)
    except WireError as error:
        assert error.reason in ("malformed", "truncated")
        return
    for numbers in (found.expected, found.confirmed):
        assert numbers is None or len(numbers) == MEMBERS
    assert (found.expected is None) != (found.rises is None)
    risen = [k for k, rise in found.rises or () if rise > 0]
    assert len(risen) == len(found.rises or ()) and risen == sorted(set(risen)) and SRC not in risen
    assert all(low < high for low, high in found.runs or ())


@pytest.mark.parametrize(
    ("reason", "data"),
    [
        ("truncated", ""),
        ("truncated", "01"),
        ("truncated", "01 05 010101"),
        ("malformed", "00 05"),  # no vector
        ("malformed", "03 05 01010101 00"),  # two
        ("malformed", "11 05 01010101"),  # a part that there is not
        ("malformed", "01 05 01010101 00"),  # and more
        ("malformed", "02 05 04 0001 0001 0001 0001"),  # more rises than other members
        ("malformed", "02 05 01 0101"),  # a rise of the sender's own entry
        ("malformed", "02 05 01 0401"),  # a rise of member 4
        ("malformed", "02 05 01 0000"),  # a rise by nothing
        ("malformed", "09 05 01010101 01 0300"),  # an empty run
    ],
)
def test_what_is_wrong_has_a_reason(reason: str, data: str) -> None:
    with pytest.raises(WireError) as caught:
        unpack(bytes.fromhex(data), SRC, MEMBERS)
    assert caught.value.reason == reason
