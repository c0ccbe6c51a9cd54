"""The messages in a stream: cut anywhere, in fragments, and what is refused before it is there."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.wire import giop
from inga.corba.wire.framing import PASSED_OVER_MAX, Framer
from inga.corba.wire.giop import (
    CancelRequest,
    CloseConnection,
    GiopFragment,
    KeyAddr,
    LocateRequest,
    Reply,
    Request,
    encode,
    fragments,
)
from inga.model.errors import WireError


def request(number: int, size: int = 8, *, minor: int = 2, little: bool = False) -> bytes:
    return encode(
        Request(number, KeyAddr(b"key"), "put"),
        lambda out: out.string("x" * size),
        minor=minor,
        little=little,
    )


def fed(framer: Framer, data: bytes, cuts: list[int]) -> list[bytes]:
    """What comes out if the octets arrive in pieces that end at `cuts`."""
    found, at = [], 0
    for cut in (*sorted(cuts), len(data)):
        found += framer.feed(data[at:cut])
        at = max(at, cut)
    return found


@given(st.lists(st.integers(0, 60), max_size=5), st.data())
def test_messages_come_out_whole_however_they_are_cut(sizes: list[int], data: st.DataObject) -> None:
    messages = [request(number, size, minor=number % 3) for number, size in enumerate(sizes)]
    stream = b"".join(messages)
    framer = Framer()
    assert fed(framer, stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=9))) == messages
    assert framer.buffered == 0


@given(st.lists(st.integers(0, 300), min_size=1, max_size=4), st.integers(32, 64), st.data())
def test_fragments_of_several_messages_may_be_mixed(
    sizes: list[int], limit: int, data: st.DataObject
) -> None:
    messages = [request(number, size) for number, size in enumerate(sizes)]
    queues = [fragments(each, limit) for each in messages]
    mixed = b""
    while any(queues):
        mixed += data.draw(st.sampled_from([each for each in queues if each])).pop(0)
    framer = Framer()
    assert sorted(framer.feed(mixed)) == sorted(messages)
    assert framer.buffered == 0


def test_a_message_of_1_1_in_fragments() -> None:
    whole = request(1, 50, minor=1)
    first = bytearray(whole[:40])
    first[6] |= giop.MORE
    first[8:12] = (28).to_bytes(4, "big")
    last = encode(GiopFragment(None), whole[40:], minor=1)
    assert Framer().feed(bytes(first) + last) == [whole]


def test_what_is_kept_counts() -> None:
    framer = Framer()
    pieces = fragments(request(1, 200), 64)
    assert framer.feed(pieces[0]) == []
    assert framer.buffered >= len(pieces[0])
    assert framer.feed(pieces[1][:5]) == []
    assert framer.buffered >= len(pieces[0]) + 5
    framer.feed(pieces[1][5:])
    framer.forget(1)
    assert framer.buffered == 0
    assert framer.feed(b"".join(pieces[2:])) == []  # of a request that was cancelled
    framer.forget(7)


def feed_and_fail(data: bytes, message_max: int = 1000) -> str:
    with pytest.raises(WireError) as caught:
        Framer(message_max).feed(data)
    return caught.value.reason


def test_refused_as_soon_as_it_shows() -> None:
    assert feed_and_fail(b"H") == "bad_magic"
    assert feed_and_fail(b"GIOX") == "bad_magic"
    assert feed_and_fail(b"GET / HTTP/1.1\r\n") == "bad_magic"
    assert feed_and_fail(b"GIOP\x02\x00\x00\x00\x00\x00\x00\x00") == "bad_version"
    huge = giop.MAGIC + bytes((1, 2, 0, 0)) + b"\xff\xff\xff\xff"
    assert feed_and_fail(huge) == "too_large"
    assert feed_and_fail(request(1, 1000)) == "too_large"
    assert Framer(1000).feed(huge[:8]) == []


def test_fragments_have_bounds_too() -> None:
    pieces = fragments(request(1, 1000), 64)
    assert feed_and_fail(b"".join(pieces), 1000) == "too_large"
    begun = b"".join(fragments(request(number, 100), 64)[0] for number in range(9))
    assert feed_and_fail(begun) == "malformed"
    assert feed_and_fail(2 * pieces[0]) == "malformed"
    other = fragments(request(1, 1000, little=True), 64)
    assert feed_and_fail(pieces[0] + other[1]) == "malformed"
    assert feed_and_fail(encode(CloseConnection(), more=True)) == "malformed"
    assert feed_and_fail(encode(CancelRequest(1), more=True)) == "malformed"


@pytest.mark.parametrize("size", [600, 900, 1100])
def test_the_bound_is_that_of_the_whole_message(size: int) -> None:
    framer = Framer(1000)
    taken = 0
    for piece in fragments(request(1, size), 256):
        if taken + len(piece) > 1000:
            with pytest.raises(WireError, match="too_large"):
                framer.feed(piece)
            break
        framer.feed(piece)
        taken += len(piece) + 12  # what an entry in a list costs is counted so
    assert (taken < size) == (size > 600)


def test_empty_fragments_are_not_free() -> None:
    framer = Framer(1000)
    framer.feed(encode(Reply(1), b"12345678", more=True))
    empty = encode(GiopFragment(1), b"", more=True)
    with pytest.raises(WireError, match="too_large"):
        for _ in range(1000):
            framer.feed(empty)


@pytest.mark.parametrize(
    "message", [request(7, 2000), request(7, 2000, little=True), encode(Reply(7), bytes(2000))]
)
@pytest.mark.parametrize("step", [1, 5, 16, 17, 1000, 10_000])
def test_a_call_that_is_too_large_is_passed_over(message: bytes, step: int) -> None:
    framer = Framer(1000, passes_over=True)
    data = request(1) + message + request(2)
    messages = []
    for at in range(0, len(data), step):
        messages += framer.feed(data[at : at + step])
        assert framer.buffered <= 1000
    assert messages == [request(1), request(2)]
    assert [(each.header.kind, each.request_id) for each in framer.oversized] == [
        (giop.read_header(message).kind, 7)
    ]
    assert f"{len(message)} octets, 1000 at most" in framer.oversized[0].why


def test_fragments_that_are_too_much_are_passed_over() -> None:
    framer = Framer(1000, passes_over=True)
    pieces = fragments(request(7, 2000), 256)
    assert framer.feed(b"".join(pieces) + request(2)) == [request(2)]
    assert [(each.request_id, each.flags) for each in framer.oversized] == [(7, 3)]
    assert framer.buffered == 0


@pytest.mark.parametrize(
    "message",
    [
        request(7, 2000, minor=1),
        encode(LocateRequest(7, KeyAddr(bytes(2000)))),
        encode(CancelRequest(7))[:8] + (2000).to_bytes(4),
        request(7)[:8] + (PASSED_OVER_MAX * 1000).to_bytes(4),
    ],
)
def test_what_cannot_be_passed_over_is_refused(message: bytes) -> None:
    with pytest.raises(WireError, match="too_large"):
        Framer(1000, passes_over=True).feed(message)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_any_octets_are_messages_or_a_wire_error(data: bytes, cuts: list[int]) -> None:
    framer = Framer(500)
    with contextlib.suppress(WireError):
        fed(framer, giop.MAGIC + data, cuts)
    assert framer.buffered <= len(data) + 4 + 12
