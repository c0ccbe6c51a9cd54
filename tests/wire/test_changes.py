"""The changes of stamps: what was put is got, in one form alone."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.model.stamp import FEW, Columns, delta_of
from inga.wire.changes import get_changes, put_changes

MEMBERS = 300
SRC = 7

others = st.integers(0, MEMBERS - 1).filter(lambda member: member != SRC)
counts = st.one_of(*(st.integers(1, (1 << bits) - 1) for bits in (7, 8, 16, 32, 64)))
changes = st.dictionaries(others, counts, max_size=40)

NINE = "010203040506" + "08090a"
"""Nine members, as a column of bytes."""


def written(delta: tuple[tuple[int, int], ...] | Columns) -> bytes:
    out = bytearray()
    put_changes(out, delta)
    return bytes(out)


@given(changes, st.sampled_from([SRC, MEMBERS - 1]))
def test_what_was_put_is_got(drawn: dict[int, int], src: int) -> None:
    """Also by a member whose index is no octet, of members whose indices are."""
    pairs = tuple(sorted((member, count) for member, count in drawn.items() if member != src))
    data = written(pairs)
    assert data == written(delta_of([k for k, _ in pairs], [count for _, count in pairs]))
    for form in (data, bytearray(data), memoryview(data)):
        got, at = get_changes(form, 0, src, MEMBERS)
        assert (tuple(got), at) == (pairs, len(data))
        assert got == pairs and pairs == got and len(got) == len(pairs) and hash(got) == hash(pairs)
        assert pickle.loads(pickle.dumps(got)) == got
        assert isinstance(got, Columns) == (len(pairs) > FEW)


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([(0, 3), (3, 130)], "02 0003 028201"),
        ([(k, k) for k in range(8, 17)], "09 00 08090a0b0c0d0e0f10 08090a0b0c0d0e0f10"),
        (
            [(k, 256 + k) for k in range(8, 17)],
            "09 01 08090a0b0c0d0e0f10" + "".join(f"01{k:02x}" for k in range(8, 17)),
        ),
        (
            [(k, 1) for k in range(250, 259)],
            "09 10" + "".join(f"{k:04x}" for k in range(250, 259)) + "01" * 9,
        ),
        ([(k, 65536) for k in range(8, 17)], "09 02 08090a0b0c0d0e0f10" + "00010000" * 9),
        ([(k, 1 << 32) for k in range(8, 17)], "09 03 08090a0b0c0d0e0f10" + "0000000100000000" * 9),
    ],
    ids=["pairs", "bytes", "wide counts", "wide members", "wider counts", "widest counts"],
)
def test_bytes(pairs: list[tuple[int, int]], text: str) -> None:
    assert written(tuple(pairs)).hex() == text.replace(" ", "")


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("truncated", "09"),
        ("truncated", "09 00 0102"),
        ("truncated", f"09 00 {NINE} 0101010101010101"),
        ("truncated", f"09 01 {NINE} {'0101' * 8} 01"),
        ("malformed", f"09 04 {NINE} {'01' * 200}"),  # no such width
        ("malformed", f"09 40 {NINE} {'01' * 200}"),
        ("malformed", f"09 8001 {NINE} {'01' * 200}"),
        ("malformed", f"09 01 {NINE} {'0001' * 9}"),  # wider than the counts
        ("malformed", f"09 10 {'0001' * 9} {'01' * 9}"),  # wider than the members
        ("malformed", f"09 00 010203040506070809 {'01' * 9}"),  # the sender itself
        ("malformed", f"09 00 010203040506080809 {'01' * 9}"),  # twice
        ("malformed", f"09 00 010203040506090809 {'01' * 9}"),  # not in order
        (
            "malformed",
            f"09 10 {''.join(f'{k:04x}' for k in (250, 251, 252, 253, 254, 255, 257, 256, 258))} {'01' * 9}",
        ),
        (
            "malformed",
            f"09 10 {''.join(f'{k:04x}' for k in range(292, 301))} {'01' * 9}",
        ),  # member 300 of 300
        ("malformed", f"09 00 {NINE} {'01' * 8}00"),  # nothing of a member
        ("malformed", f"ac02 00 {'01' * 600}"),  # as many as there are members
        ("malformed", "01 0701"),  # and as pairs: the sender itself
    ],
)
def test_any_other_form_is_refused(reason: str, text: str) -> None:
    with pytest.raises(WireError) as caught:
        get_changes(bytes.fromhex(text), 0, SRC, MEMBERS)
    assert caught.value.reason == reason


@given(st.binary(max_size=60), st.sampled_from([8, 9, 20]), st.sampled_from([SRC, 255, 256, MEMBERS - 1]))
def test_any_bytes_are_a_wire_error_or_their_own_form(data: bytes, number: int, src: int) -> None:
    data = bytes([number]) + data
    try:
        got, at = get_changes(data, 0, src, MEMBERS)
    except WireError:
        return
    named = [k for k, _ in got]
    assert named == sorted(set(named)) and src not in named and max(named) < MEMBERS
    assert number <= FEW or written(got) == data[:at]


@pytest.mark.parametrize(("members", "why"), [(FEW + 2, "a stamp of member"), (FEW + 1, "changes among")])
def test_there_are_fewer_changes_than_members_before_anything_is_read_of_them(members: int, why: str) -> None:
    """Each of the others once; how many are announced costs nothing."""
    out = bytearray([FEW + 1, 0x00, *([0] * 2 * (FEW + 1))])
    with pytest.raises(WireError, match=why):
        get_changes(bytes(out), 0, 0, members)


@pytest.mark.parametrize("src", [255, 256, MEMBERS - 1])
def test_nobody_tells_of_a_change_of_its_own(src: int) -> None:
    """The last member of nine: among those whose indices are octets, and among all others."""
    before = tuple((member, 1) for member in range(src - FEW, src))
    data = written((*before, (src, 1)))
    with pytest.raises(WireError, match="a stamp of member"):
        get_changes(data, 0, src, MEMBERS)
    others, _ = get_changes(data, 0, SRC, MEMBERS)
    assert tuple(others) == (*before, (src, 1))
