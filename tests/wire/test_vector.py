"""Vectors by their rises: what was put is got, whatever rose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.wire.vector import get_delta, get_vector, put_delta, put_vector

vectors = st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 2**20)), min_size=2, max_size=20)


@given(vectors, st.data())
def test_rises_rebuild_the_vector(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    src = data.draw(st.integers(0, len(pairs) - 1))
    before = [count for count, _ in pairs]
    after = [count + rise for count, rise in pairs]
    out = bytearray(b"head")
    put_delta(out, tuple((k, rise) for k, (_, rise) in enumerate(pairs) if rise and k != src))
    delta, at = get_delta(out, 4, src, len(pairs))
    assert at == len(out)
    for k, rise in delta:
        before[k] += rise
    before[src] = after[src]  # which the packet's number says
    assert before == after


def test_idle_members_cost_nothing() -> None:
    out = bytearray()
    put_delta(out, ((40, 1),))  # of a hundred
    assert out.hex() == "012801"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((1, 200, 3), "01 c801 03"),
        ((1, 2, 3, 4, 5, 6, 7, 200), "01020304050607 c801"),
        ((0, 1, 2, 3, 4, 5, 6, 7, 200), "00 00 01020304050607 c8"),
        ((0, 1, 2, 3, 4, 5, 6, 7, 256), "01 0000000100020003000400050006 00070100"),
        ((0,) * 8 + (1 << 16,), f"02 {'00' * 32} 00010000"),
        ((0,) * 8 + (1 << 32,), f"03 {'00' * 64} 0000000100000000"),
    ],
)
def test_a_full_vector(numbers: tuple[int, ...], text: str) -> None:
    out = bytearray(b"\xff")
    put_vector(out, numbers)
    assert out[1:] == bytes.fromhex(text)
    assert get_vector(out, 1, len(numbers)) == (numbers, len(out))


@pytest.mark.parametrize(
    ("reason", "text"),
    [("truncated", "00" * 9), ("malformed", "04" + "01" * 99), ("malformed", "01" + "0001" * 9)],
    ids=["a number is missing", "no such width", "wider than it needs to be"],
)
def test_any_other_form_of_a_full_vector_is_refused(reason: str, text: str) -> None:
    with pytest.raises(WireError) as caught:
        get_vector(bytes.fromhex(text), 0, 9)
    assert caught.value.reason == reason
