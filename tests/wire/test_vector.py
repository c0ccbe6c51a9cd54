"""Vectors by their rises: what was put is got, whatever rose."""

from hypothesis import given
from hypothesis import strategies as st

from inga.wire.vector import get_delta, get_vector, put_delta

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


def test_a_full_vector() -> None:
    assert get_vector(bytes.fromhex("ff 01 c801 03"), 1, 3) == ((1, 200, 3), 5)
