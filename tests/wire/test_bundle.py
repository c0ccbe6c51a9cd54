"""Bodies of many messages: the four forms, their golden bytes, round trips, and bodies that are none."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.wire.bundle import BLOCK, MESSAGES_MAX, VIEW_FROM, _equal, count, join, split

GOLDEN = [
    ([b""], "00"),
    ([b"lunch?"], "00 6c756e63683f"),
    ([b"ab", b"cd", b"ef"], "01 00000003 6162 6364 6566"),
    ([b"", b""], "02 00000002 0000 0000"),
    ([b"a", b"", b"bcd"], "02 00000003 0001 0000 0003 61 626364"),
]


@pytest.mark.parametrize(("messages", "text"), GOLDEN)
def test_golden_bodies(messages: list[bytes], text: str) -> None:
    body = bytes.fromhex(text)
    assert join(messages) == body
    assert split(body) == messages
    assert count(body) == len(messages)


def test_long_messages_have_long_lengths() -> None:
    messages = [b"a" * 0x10000, b"bc"]
    body = join(messages)
    assert body[:13].hex(" ", 4) == bytes.fromhex("03 00000002 00010000 00000002").hex(" ", 4)
    assert split(body) == messages


def test_the_longest_short_message() -> None:
    messages = [b"a" * 0xFFFF, b"bc"]
    assert join(messages)[0] == 2
    assert split(join(messages)) == messages


@pytest.mark.parametrize("number", [2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, MESSAGES_MAX])
def test_equal_messages_by_blocks(number: int) -> None:
    messages = [b"%05d" % at for at in range(number)]
    assert split(join(messages)) == messages


def test_bundles_of_any_number_of_messages_leave_little_behind() -> None:
    """The formats that are kept hold no more codes than a block has, and are no more than a block has messages."""
    _equal.cache_clear()
    for number in range(2, 20 * BLOCK):
        split(join([b"x" * 8] * number))
    assert _equal.cache_info().currsize <= BLOCK


lists = st.lists(st.binary(max_size=30), min_size=1, max_size=40)
equal = st.integers(1, 20).flatmap(lambda size: st.lists(st.binary(min_size=size, max_size=size), min_size=2))


@given(lists | equal)
@example([b"x" * 0x10000, b"", b"y" * 0x10001])
def test_round_trip(messages: list[bytes]) -> None:
    body = join(messages)
    expected = 0 if len(messages) == 1 else 2
    if len(messages) > 1 and len({len(m) for m in messages}) == 1 and messages[0]:
        expected = 1
    elif max(map(len, messages)) > 0xFFFF:
        expected = 3
    assert body[0] == expected
    assert count(body) == len(messages)
    for form in (body, bytearray(body), memoryview(body)):
        assert split(form) == messages


@pytest.mark.parametrize(
    "text",
    [
        "",  # nothing at all
        "04 00000001 61",  # no such form
        "ff",
        "01",  # no count
        "01 000000",
        "01 00000000",  # of no messages
        "02 00000000",
        "03 00000000",
        "01 00000002 616263",  # three bytes cannot be two equal messages
        "01 00000002",  # nor can none
        "01 00000003 6162",
        "02 00000002 0001",  # lengths cut off
        "02 00000002 0001 0001 61",  # a message cut off
        "02 00000002 0001 0001 616263",  # one too many
        "03 00000001 000000",
        "03 00000001 ffffffff 61",
        "02 00010001" + "0000" * 0x10001,  # more messages than a bundle may hold
        "01 ffffffff 61",
    ],
)
def test_malformed_bodies(text: str) -> None:
    with pytest.raises(WireError) as caught:
        split(bytes.fromhex(text))
    assert caught.value.reason == "malformed"


def test_as_many_messages_as_a_bundle_may_hold() -> None:
    messages = [b"x"] * MESSAGES_MAX
    assert split(join(messages)) == messages


@given(
    st.binary(max_size=60)
    | st.tuples(st.integers(0, 4), st.integers(0, 9), st.binary()).map(
        lambda parts: bytes([parts[0]]) + parts[1].to_bytes(4, "big") + parts[2]
    )
)
def test_any_bytes_are_messages_or_a_wire_error(body: bytes) -> None:
    try:
        messages = split(body)
    except WireError as error:
        assert error.reason == "malformed"
        return
    assert len(messages) == count(body)
    overhead = {0: 1, 1: 5, 2: 5 + 2 * len(messages), 3: 5 + 4 * len(messages)}[body[0]]
    assert overhead + sum(map(len, messages)) == len(body)  # each byte is used, none twice
    assert b"".join(map(bytes, messages)) == body[overhead:]


@pytest.mark.parametrize("messages", [[b"one"], [b"aa", b"bb"], [b"a", b"bcd"]])
def test_small_messages_outlive_the_buffer_they_came_in(messages: list[bytes]) -> None:
    buffer = bytearray(join(messages))
    found = split(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert found == messages


@pytest.mark.parametrize(("size", "kind"), [(VIEW_FROM - 1, bytes), (VIEW_FROM, memoryview)])
def test_a_large_message_is_a_view(size: int, kind: type) -> None:
    (found,) = split(join([b"x" * size]))
    assert type(found) is kind
    assert found == b"x" * size
