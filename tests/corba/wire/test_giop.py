"""GIOP: the vectors of a oneway request, every message in every version, fragments, and foreign octets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.wire import giop
from inga.corba.wire.cdr import Decoder, Encoder
from inga.corba.wire.giop import (
    CancelRequest,
    CloseConnection,
    GiopFragment,
    GiopMessage,
    KeyAddr,
    Kind,
    LocateReply,
    LocateRequest,
    LocateStatus,
    MessageError,
    ProfileAddr,
    ReferenceAddr,
    Reply,
    Request,
    Status,
    SystemFailure,
    Tagged,
    decode,
    encode,
    fragments,
    join_fragments,
    read_header,
)
from inga.model.errors import UsageError, WireError

UIPMC = 3
PROFILE = bytes.fromhex(
    "000100000000000a3232352e362e372e38003039000000010000002700000024"
    "000100000000000b54657374446f6d61696e0000000000000000000000000001"
    "00000000"
)
PROFILE_LITTLE = bytes.fromhex(
    "010100000a0000003232352e362e372e38003930010000002700000024000000"
    "010100000b00000054657374446f6d61696e0000000000000100000000000000"
    "07000000"
)
GREETING = bytes.fromhex(
    "47494f5001020000000000840000000100000000000100000000000300000044"
    "000100000000000a3232352e362e372e38003039000000010000002700000024"
    "000100000000000b54657374446f6d61696e0000000000000000000000000001"
    "00000000000000106772656574696e675f6f6e65776179000000000000000000"
    "0000000c68656c6c6f2067726f757000"
)
GREETING_LITTLE = bytes.fromhex(
    "47494f5001020100840000000200000000000000010000000300000044000000"
    "010100000a0000003232352e362e372e38003930010000002700000024000000"
    "010100000b00000054657374446f6d61696e0000000000000100000000000000"
    "07000000100000006772656574696e675f6f6e65776179000000000000000000"
    "0c00000068656c6c6f2067726f757000"
)
SHUTDOWN = bytes.fromhex(
    "47494f50010200000000006c0000000400000000000100000000000300000044"
    "000100000000000a3232352e362e372e38003039000000010000002700000024"
    "000100000000000b54657374446f6d61696e0000000000000000000000000001"
    "000000000000000973687574646f776e0000000000000000"
)


def to_group(number: int, operation: str, profile: bytes = PROFILE) -> Request:
    return Request(number, ProfileAddr(Tagged(UIPMC, profile)), operation, response_flags=0)


def write_hello(encoder: Encoder) -> None:
    encoder.string("hello group")


def test_the_oneway_request_of_a_group() -> None:
    request = to_group(1, "greeting_oneway")
    assert encode(request, write_hello) == GREETING
    header, message, body = decode(GREETING)
    assert (header.kind, header.minor, header.little, header.more) == (Kind.REQUEST, 2, False, False)
    assert message == request
    assert not request.expects_reply
    assert body.string() == "hello group"
    body.finish()


def test_the_same_in_little_endian() -> None:
    request = to_group(2, "greeting_oneway", PROFILE_LITTLE)
    assert encode(request, write_hello, little=True) == GREETING_LITTLE
    header, message, body = decode(GREETING_LITTLE)
    assert (header.little, message, body.string()) == (True, request, "hello group")


def test_a_request_without_arguments_has_no_padding() -> None:
    request = to_group(4, "shutdown")
    for nothing in (None, b"", lambda encoder: None):
        assert encode(request, nothing) == SHUTDOWN
        for size in range(1, 9):  # wherever the head ends
            named = Request(1, KeyAddr(b"k" * size), "f")
            assert encode(named, nothing) == encode(named)
            assert decode(encode(named, nothing)).body.remaining == 0
    assert decode(SHUTDOWN).message == request


def test_a_long_request_has_the_size_of_the_vector() -> None:
    assert read_header(encode(to_group(3, "put"), lambda out: out.string("x" * 300))).size == 405


def test_octets_already_made_are_a_body_where_bodies_are_aligned() -> None:
    made = Encoder()
    made.string("hello group")
    assert encode(to_group(1, "greeting_oneway"), made.data()) == GREETING
    with pytest.raises(UsageError, match=r"Only GIOP 1\.2"):
        encode(Request(1, KeyAddr(b"k"), "f"), b"1234", minor=1)


def test_a_request_of_1_0_octet_for_octet() -> None:
    data = encode(Request(5, KeyAddr(b"key"), "ping"), lambda out: out.double(1.0), minor=0)
    assert data.hex(" ", 4) == (
        "47494f50 01000000 0000002c "
        "00000000 00000005 01000000 00000003 6b657900 00000005 70696e67 00000000 00000000 "
        "3ff00000 00000000"
    )


def octet_and_double(encoder: Encoder) -> None:
    encoder.octet(7)
    encoder.double(1.0)


def test_a_body_before_1_2_goes_on_with_the_alignment_of_its_head() -> None:
    # The head ends at 12 + 4 (contexts) + 4 + 4 = 24 octets with 1.1: a reply of 12 octets, then a double.
    data = encode(Reply(1), octet_and_double, minor=1)
    assert data[24:].hex() == "07" + "00" * 7 + "3ff0000000000000"
    data = encode(Reply(1, contexts=(Tagged(9, b"abc"),)), lambda out: out.octet(7), minor=2)
    assert data[20:].hex() == "000000010000000900000003616263000000000007"


CONTEXTS = (Tagged(1, b"\0\0\0\0\5\1\0\1\0\1\1\t"), Tagged(0x4E454F00, b""))
REFERENCE = ReferenceAddr(1, "IDL:test/Hello:1.0", (Tagged(UIPMC, PROFILE), Tagged(77, b"unknown")))
FOR_ALL: list[GiopMessage] = [
    Request(7, KeyAddr(b"key"), "add", contexts=CONTEXTS),
    Request(7, KeyAddr(b""), "_is_a", response_flags=0),
    Reply(7, Status.NO_EXCEPTION, CONTEXTS),
    Reply(7, Status.USER_EXCEPTION),
    Reply(7, Status.SYSTEM_EXCEPTION),
    Reply(7, Status.LOCATION_FORWARD),
    LocateRequest(8, KeyAddr(b"key")),
    LocateReply(8, LocateStatus.OBJECT_HERE),
    LocateReply(8, LocateStatus.OBJECT_FORWARD),
    CancelRequest(9),
    CloseConnection(),
    MessageError(),
]
FROM_1_2: list[GiopMessage] = [
    to_group(1, "f"),
    Request(7, REFERENCE, "f", response_flags=1, contexts=CONTEXTS),
    LocateRequest(8, REFERENCE),
    LocateReply(8, LocateStatus.SYSTEM_EXCEPTION),
    Reply(7, Status.LOCATION_FORWARD_PERM),
    Reply(7, Status.NEEDS_ADDRESSING_MODE),
    GiopFragment(7),
]


@pytest.mark.parametrize("little", [False, True])
@pytest.mark.parametrize(
    ("message", "minor"),
    [(message, minor) for message in FOR_ALL for minor in (0, 1, 2)] + [(message, 2) for message in FROM_1_2],
)
def test_every_message_in_every_version(message: GiopMessage, minor: int, little: bool) -> None:
    def write(encoder: Encoder) -> None:
        encoder.octet(1)
        encoder.double(2.5)
        encoder.string("Grüße")

    bodiless = isinstance(message, GiopFragment)
    data = encode(message, None if bodiless else write, minor=minor, little=little)
    header, read, body = decode(data)
    assert (header.total, header.minor, header.little) == (len(data), minor, little)
    assert read == message
    if not bodiless:
        assert (body.octet(), body.double(), body.string()) == (1, 2.5, "Grüße")
    body.finish()


def test_an_operation_is_any_octets_whatever_the_text_of_its_arguments() -> None:
    data = encode(to_group(1, "café"), lambda encoder: encoder.string("café"))
    assert b"caf\xe9\0" in data and "café\0".encode() in data
    _, message, body = decode(data)
    assert isinstance(message, Request) and message.operation == body.string() == "café"


def test_what_an_older_version_cannot_say() -> None:
    for message, minor in [
        (to_group(1, "f"), 1),
        (LocateRequest(1, REFERENCE), 0),
        (GiopFragment(1), 0),
        (GiopFragment(None), 2),
        (GiopFragment(1), 1),
        (Reply(1), 3),
    ]:
        with pytest.raises(UsageError):
            encode(message, minor=minor)


def test_the_principal_of_old_requests_survives() -> None:
    request = Request(1, KeyAddr(b"k"), "f", principal=b"someone")
    assert decode(encode(request, minor=1)).message == request


def test_a_system_exception() -> None:
    failure = SystemFailure("IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0", 5, 1)
    data = encode(Reply(3, Status.SYSTEM_EXCEPTION), lambda out: giop.put_failure(out, failure))
    assert giop.get_failure(decode(data).body) == failure
    worse = encode(
        Reply(3, Status.SYSTEM_EXCEPTION), lambda out: giop.put_failure(out, SystemFailure("x", 0, 3))
    )
    with pytest.raises(WireError, match="completion"):
        giop.get_failure(decode(worse).body)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, 0x48, "bad_magic"),
        (4, 2, "bad_version"),
        (5, 3, "bad_version"),
        (7, 8, "malformed"),
        (11, 0x85, "bad_length"),
        (11, 0x83, "bad_length"),
        (21, 3, "bad_target"),  # a fourth kind of target
        (28, 0xFF, "truncated"),  # the length of the profile
        (100, 0xFF, "truncated"),  # the length of the operation
        (103, 0, "malformed"),
    ],
)
def test_a_changed_octet_is_named(at: int, value: int, reason: str) -> None:
    changed = bytearray(GREETING)
    changed[at] = value
    with pytest.raises(WireError) as caught:
        decode(bytes(changed))
    assert caught.value.reason == reason


@pytest.mark.parametrize(("minor", "more"), [(0, False), (1, True), (2, True)])
def test_no_more_follows_in_1_0_whatever_its_flags(minor: int, more: bool) -> None:
    assert read_header(giop.MAGIC + bytes((1, minor, giop.MORE, 0, 0, 0, 0, 0))).more is more


def test_a_fragment_in_1_0_and_a_status_of_later() -> None:
    with pytest.raises(WireError, match="malformed"):
        read_header(giop.MAGIC + bytes((1, 0, 0, 7, 0, 0, 0, 0)))
    for message in (Reply(1, Status.NEEDS_ADDRESSING_MODE), LocateReply(1, LocateStatus.SYSTEM_EXCEPTION)):
        with pytest.raises(WireError, match="status"):
            decode(encode(message, minor=1))
    beyond = bytearray(encode(Request(1, REFERENCE, "f")))
    beyond[27] = 2
    with pytest.raises(WireError, match="profile 2 of 2"):
        decode(beyond)


@pytest.mark.parametrize("data", [GREETING, GREETING_LITTLE, SHUTDOWN])
def test_every_truncation_is_an_error(data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(WireError):
            decode(data[:size])


def read_all(data: bytes) -> None:
    """Whatever the octets are: a message, or a `WireError`."""
    try:
        decoded = decode(data)
        giop.get_failure(decoded.body)
    except WireError:
        pass


@pytest.mark.parametrize(
    "data", [GREETING, encode(Request(7, REFERENCE, "f", contexts=CONTEXTS), write_hello)]
)
def test_every_single_change_is_a_message_or_an_error(data: bytes) -> None:
    for at in range(len(data)):
        for value in (0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1):
            read_all(data[:at] + bytes((value,)) + data[at + 1 :])


@given(st.integers(0, 7), st.integers(0, 2), st.integers(0, 3), st.binary(max_size=80))
def test_any_octets_behind_a_header(kind: int, minor: int, flags: int, rest: bytes) -> None:
    size = len(rest).to_bytes(4, "little" if flags & 1 else "big")
    read_all(giop.MAGIC + bytes((1, minor, flags, kind)) + size + rest)


@given(st.integers(0, 400), st.integers(32, 200), st.booleans())
def test_pieces_give_the_message_again(length: int, size_max: int, little: bool) -> None:
    request = Request(0x01020304, KeyAddr(b"key"), "put", contexts=CONTEXTS)
    whole = encode(request, lambda out: out.string("x" * length), little=little)
    pieces = fragments(whole, size_max)
    for number, piece in enumerate(pieces, 1):
        header = read_header(piece)
        assert header.total == len(piece) <= size_max
        assert header.more == (number < len(pieces))
        assert giop.fragment_id(piece, header) == 0x01020304
        if header.more:
            assert len(piece) % 8 == 0
    assert join_fragments(pieces) == whole


def test_pieces_of_1_1_carry_no_number() -> None:
    whole = encode(Request(1, KeyAddr(b"key"), "put"), lambda out: out.string("x" * 50), minor=1)
    first = bytearray(whole[:40])
    first[6] |= giop.MORE
    first[8:12] = (28).to_bytes(4, "big")
    last = encode(GiopFragment(None), whole[40:], minor=1)
    assert giop.fragment_id(last, read_header(last)) is None
    assert join_fragments([bytes(first), last]) == whole


def test_what_cannot_be_cut() -> None:
    large: dict[str, Any] = {"contexts": (Tagged(1, bytes(100)),)}
    with pytest.raises(UsageError, match="not sent in pieces"):
        fragments(encode(Request(1, KeyAddr(b"k"), "f", **large), minor=1), 64)
    with pytest.raises(UsageError, match="at least"):
        fragments(b"", 16)
    with pytest.raises(WireError, match="truncated"):
        giop.fragment_id(bytes(12), read_header(encode(GiopFragment(1))))


def test_a_decoder_stands_at_the_body_of_a_view() -> None:
    decoded = decode(memoryview(GREETING))
    assert isinstance(decoded.body, Decoder)
    assert decoded.body.string() == "hello group"
