"""What each destination gets of a packet, and what it is told about that: golden bytes, round trips, arbitrary input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.wire import bundle, shares

MEMBERS = 12
sets = st.integers(1, (1 << MEMBERS) - 1)


@given(st.lists(sets, min_size=1, max_size=40))
def test_everybody_gets_its_own_in_the_order_sent(chosen: list[int]) -> None:
    payloads = [b"%d" % number for number in range(len(chosen))]
    found = shares.share_out(payloads, chosen, MEMBERS)
    for member in range(MEMBERS):
        mine = [(place, dst) for place, dst in enumerate(chosen) if dst >> member & 1]
        assert (member in found) is bool(mine)
        if mine:
            body, messages, places = found[member]
            assert bundle.split(body) == [payloads[place] for place, _ in mine]
            assert messages == len(mine)
            assert shares.get(places, MEMBERS) == mine


def test_golden_bytes() -> None:
    made = shares.put([(0, 0b11), (3, 0b110), (258, 0b11)], MEMBERS)
    assert made.hex() == "01 0002 0300 0600 0000 0003 0102 00 01 00".replace(" ", "")
    assert len(made) == shares.HEAD.size + 2 * shares.set_size(MEMBERS) + 3 * shares.EACH


@given(st.binary(max_size=40))
def test_anything_else_is_refused(data: bytes) -> None:
    try:
        placed = shares.get(data, MEMBERS)
    except WireError as error:
        assert error.reason in ("malformed", "truncated")
    else:
        assert placed
        assert all(0 <= dst < 1 << MEMBERS for _, dst in placed)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "00 0000",
        "00 0000 0300 0000 01",  # a set that is not there
        "00 0000 0010 0000 00",  # a destination that is no member
        "00 0001 0300 0001 0001 00 00",  # two messages in one place
        "00 0000 0300 0000 00 00",
    ],
)
def test_bad_shares(data: str) -> None:
    with pytest.raises(WireError):
        shares.get(bytes.fromhex(data), MEMBERS)
