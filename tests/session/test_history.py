"""What a member gives a newcomer of the last messages, as octets: nothing but messages with an age is read."""

from math import inf, nan

import pytest

from inga.model.errors import WireError
from inga.session.history import read_history
from inga.wire.packet import COUNT_MAX
from inga.wire.value import put

ROW = ["alice", 0, 1, 5, b"hello", 2.5]


def encoded(rows: object) -> bytes:
    out = bytearray()
    put(out, rows)
    return bytes(out)


def test_a_message_is_as_old_as_its_giver_says() -> None:
    (kept,) = read_history(encoded([ROW]), 10.0)
    assert (kept.sender, kept.src, kept.view, kept.seq, kept.data, kept.at) == (
        "alice",
        0,
        1,
        5,
        b"hello",
        7.5,
    )
    assert read_history(encoded([]), 10.0) == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, b"alice"),
        (1, -1),
        (1, COUNT_MAX + 1),
        (2, -1),
        (3, COUNT_MAX + 1),
        (3, True),
        (4, "hello"),
        (5, -0.5),
        (5, inf),
        (5, nan),
        (5, 2),
    ],
)
def test_what_is_no_message(place: int, value: object) -> None:
    row = [*ROW[:place], value, *ROW[place + 1 :]]
    with pytest.raises(WireError, match="no history"):
        read_history(encoded([ROW, row]), 10.0)


@pytest.mark.parametrize("rows", [ROW, [ROW[:5]], [[*ROW, 1]], {}, None])
def test_what_is_no_list_of_messages(rows: object) -> None:
    with pytest.raises(WireError, match="no history"):
        read_history(encoded(rows), 10.0)


def test_nothing_follows() -> None:
    with pytest.raises(WireError, match="no history"):
        read_history(encoded([ROW]) + b"\0", 10.0)
