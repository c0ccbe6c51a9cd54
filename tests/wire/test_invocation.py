"""What objects say, as bytes: round trips, golden bytes, and anything else is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.model.invocation import Announce, Flush, Heartbeat, Message, Nack, SendId, Spoken, StartId
from inga.wire.invocation import decode, enclose, enclosed, encode


class Shape:
    """A group of three members with four places."""

    places = (0, 1, 2, 3)
    members = (0, 1, 2)


START = StartId(7, 1)
REQUEST = Message(
    "s", 1, (0, 2), SendId(START, 3), 300, 12, (0, 11, 2, 0), ((0, 5), (2, 1)), StartId(6, 1), (4, 0, 2, 1, 3),
    "inc", (1, "two"), (("k", None),), ((4, 0), 2, 1, 3), ((0,), (1, 3)), True, view=2,
)  # fmt: skip
ONE_WAY = REQUEST._replace(kind="o", path=((4, 0, 2, 1, 3),), hosts=(), holds=False)
RESPONSE = Message(
    "r", 2, (1,), SendId(StartId(8, 2), 0), 301, 4, (0, 12, 3, 0), ((1, 9),), StartId(8, 2), (7, 1, 0), "inc",
    value={"a": 1}, reason="child", text="no luck",
)  # fmt: skip
ABORT = Message(
    "x",
    1,
    (0, 2),
    SendId(START, 4),
    302,
    13,
    (0, 12, 4, 0),
    ((0, 6), (2, 2)),
    StartId(6, 1),
    (7, 1, 0),
    "inc",
)
COMMIT = ABORT._replace(kind="c", call=(7, 1), op="", args=(0, 2))
FLUSH = Flush(2, 303, ((0, 7), (1, 3)), (1,), (REQUEST, ABORT))
SPOKEN: list[Spoken] = [
    REQUEST,
    REQUEST._replace(kind="a"),
    ONE_WAY,
    RESPONSE,
    RESPONSE._replace(reason="", text=""),
    COMMIT,
    ABORT,
    Heartbeat(1, 300, 5, 4, (9, 2), 280, True, 77),
    Nack(2, (3, 4, 9)),
    Announce(0, 77, (1, 2)),
    FLUSH,
    Flush(0, 1, (), (2,), ()),
]


@pytest.mark.parametrize("spoken", SPOKEN, ids=lambda spoken: type(spoken).__name__)
def test_round_trip(spoken: Spoken) -> None:
    assert decode(encode(spoken), Shape) == spoken


def test_golden_bytes() -> None:
    assert encode(REQUEST).hex(" ") == (
        "00 00 00 00 00 00 12 01 01 01 02 02 04 05 00 02 00 02 01 02 01 00 02 01 03 01 00 00 00 16 00 07 00 03 01 2c "
        "00 0c 00 06 00 02 00 00 00 0b 00 02 00 00 00 05 00 01 00 04 00 00 00 02 00 01 00 03 00 04 00 00 00 02 00 01 "
        "00 03 06 03 69 6e 63 09 02 03 01 06 03 74 77 6f 0a 01 06 01 6b 00"
    )
    assert (
        encode(SPOKEN[7]).hex(" ")
        == "01 01 00 00 00 09 00 01 01 2c 00 05 00 04 01 18 00 4d 00 01 00 09 00 02"
    )
    assert encode(SPOKEN[9]).hex(" ") == "03 00 00 00 00 04 00 4d 01 02"


@pytest.mark.parametrize("spoken", SPOKEN, ids=lambda spoken: type(spoken).__name__)
def test_every_cut_and_every_changed_octet_raises_nothing_else(spoken: Spoken) -> None:
    data = encode(spoken)
    for length in range(len(data)):
        with pytest.raises(WireError):
            decode(data[:length], Shape)
    for at in range(len(data)):
        for octet in (0, 1, 2, 5, 0x7F, 0x80, 0xFF, data[at] ^ 1):
            _read(data[:at] + bytes([octet]) + data[at + 1 :])
    with pytest.raises(WireError):
        decode(data + b"\x00", Shape)


@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_else(data: bytes) -> None:
    _read(data)


@pytest.mark.interpreted  # what is of the wrong type cannot be written by compiled code
@pytest.mark.parametrize(
    "bad",
    [
        REQUEST._replace(dst=()),
        REQUEST._replace(dst=(2, 0)),
        REQUEST._replace(dst=(9,)),
        REQUEST._replace(src=2),
        REQUEST._replace(vector=(1, 2)),
        REQUEST._replace(ts=0),
        REQUEST._replace(call=(1, 2)),
        REQUEST._replace(path=((1,), 2)),
        REQUEST._replace(hosts=()),
        REQUEST._replace(hosts=((),)),
        ONE_WAY._replace(hosts=((1,),)),
        REQUEST._replace(args=[1]),
        REQUEST._replace(named=((3, 1),)),
        REQUEST._replace(sq=((9, 1),)),
        REQUEST._replace(ts=1 << 63),
        RESPONSE._replace(text=5),
        Heartbeat(9, 1, 1, 1, (), 0),
        Nack(9, ()),
        Announce(0, 1, (1, 1)),
        FLUSH._replace(suspects=(5,)),
    ],
    ids=str,
)
def test_what_nobody_of_the_group_says(bad: Any) -> None:
    with pytest.raises(WireError):
        decode(encode(bad), Shape)


@given(
    st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 1 << 70)), min_size=1, max_size=5),
    st.integers(0, 71),
)
def test_a_body_holds_what_is_for_each_member(parts: list[tuple[bytes, int]], member: int) -> None:
    body = b"".join(enclose(data, members) for data, members in parts)
    meant = [data for data, members in parts if not members or members >> member & 1]
    assert enclosed(body, member) == meant
    assert enclosed(memoryview(body), member) == meant


@pytest.mark.parametrize(
    "text", ["", "00", "01", "00 000000", "00 00000001", "02 01 00000000", "00 00000000 05"]
)
def test_what_is_no_body(text: str) -> None:
    with pytest.raises(WireError):
        enclosed(bytes.fromhex(text), 0)


def test_golden_bytes_of_a_body() -> None:
    assert (enclose(b"all") + enclose(b"two", 0x201)).hex(
        " "
    ) == "00 00 00 00 03 61 6c 6c 02 01 02 00 00 00 03 74 77 6f"


def _read(data: bytes) -> None:
    try:
        decode(data, Shape)
    except WireError:
        return
