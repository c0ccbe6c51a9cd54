"""MIOP packets and ReMIOP control packets: the published vectors, and everything that is neither."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.wire import miop
from inga.corba.wire.miop import (
    ControlPacket,
    MiopPacket,
    decode,
    decode_control,
    encode,
    encode_control,
    split,
)
from inga.model.errors import WireError
from inga.model.packet import Buffer

VECTORS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "scenarios" / "miop" / "vectors.json").read_text()
)
PACKETS = [
    bytes.fromhex(each) for name in ("V1", "V2", "V3", "V4", "V5", "V6", "V7") for each in VECTORS[name]
]
LOCALHOST = 0x7F000001

REASONS = {
    "short",
    "bad_magic",
    "bad_version",
    "bad_id_length",
    "bad_length",
    "empty",
    "bad_control_header",
    "bad_number",
    "too_large",
    "bad_cdr",
    "bad_control",
    "own_control",
}


def vector(name: str, part: int = 0) -> bytes:
    return bytes.fromhex(VECTORS[name][part])


def changed(data: bytes, at: int, octets: str) -> bytes:
    new = bytes.fromhex(octets)
    return data[:at] + new + data[at + len(new) :]


def reason(data: bytes, me: int = 0) -> str | None:
    """The counter a datagram raises; None if it is a good one."""
    try:
        fragment = decode(data)
        if fragment.is_control:
            decode_control(fragment, me)
    except WireError as error:
        return error.reason
    return None


# The vectors


@pytest.mark.parametrize(
    "name, base, count, flags, size",
    [("V1", 1, 1, 0x02, 144), ("V2", 2, 1, 0x03, 144), ("V7", 6, 0, 0x02, 144)],
)
def test_single_packets(name: str, base: int, count: int, flags: int, size: int) -> None:
    fragment = decode(vector(name))
    assert (fragment.number, fragment.count, fragment.flags) == (0, count, flags)
    assert len(fragment.payload) == size
    assert miop.read_id(fragment.unique_id) == (LOCALHOST, base)
    assert encode(fragment.unique_id, 0, count, fragment.payload, flags=flags) == vector(name)


@pytest.mark.parametrize("name", ["V1", "V2"])
def test_a_message_that_fits_is_one_packet(name: str) -> None:
    fragment = decode(vector(name))
    assert split(fragment.payload, fragment.unique_id, little=fragment.is_little) == [vector(name)]


def test_three_packets_of_one_message() -> None:
    packets = [vector("V3", part) for part in range(3)]
    fragments = [decode(each) for each in packets]
    assert [each.number for each in fragments] == [0, 1, 2]
    assert [each.flags for each in fragments] == [0, 0, miop.STOP]
    assert [len(each.payload) for each in fragments] == [160, 160, 97]
    message = b"".join(each.payload for each in fragments)
    assert split(message, miop.numbered_id(LOCALHOST, 3), payload_max=160) == packets


WRONG_HEADERS: dict[str, Callable[[int, int, int], tuple[int, int, int]]] = {
    "numbers from 1": lambda number, count, flags: (number + 1, count, flags),
    "one too few": lambda number, count, flags: (number, count - 1, flags),
    "no packet is the last": lambda number, count, flags: (number, count, flags & ~miop.STOP),
}
"""What a writer might put on a packet instead of its number, how many there are, and flags."""


@pytest.mark.parametrize("wrong", WRONG_HEADERS)
def test_a_writer_of_wrong_headers_is_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(
        unique_id: bytes, number: int, count: int, payload: Buffer, *, flags: int, **more: Any
    ) -> bytes:
        number, count, flags = WRONG_HEADERS[wrong](number, count, flags)
        return right(unique_id, number, count, payload, flags=flags, **more)

    right = miop.encode
    monkeypatch.setattr(miop, "encode", encode)
    with pytest.raises(AssertionError):
        test_three_packets_of_one_message()


def test_a_foreign_id() -> None:
    fragment = decode(vector("V4"))
    assert fragment.unique_id == bytes(range(12))
    assert miop.read_id(fragment.unique_id) is None
    assert split(fragment.payload, fragment.unique_id) == [vector("V4")]


@pytest.mark.parametrize(
    "name, control",
    [
        ("V5", ControlPacket(miop.NACK, 0x7F000002, ((LOCALHOST, 4), (LOCALHOST, 5)))),
        ("V6", ControlPacket(miop.STATE, 0x7F000002, ((LOCALHOST, 5), (0x7F000003, 1 << 32)))),
    ],
)
def test_control_packets(name: str, control: ControlPacket) -> None:
    fragment = decode(vector(name))
    assert fragment.is_control and not fragment.is_last
    assert decode_control(fragment) == control
    assert encode_control(control, little=fragment.is_little) == vector(name)


@pytest.mark.parametrize(
    "sender, base, octets",
    [(LOCALHOST, 1, "477800000100000100000000"), (miop.SENDER_MAX, miop.NUMBER_MAX, "4f" + "7f" * 11)],
)
def test_unique_ids(sender: int, base: int, octets: str) -> None:
    assert miop.numbered_id(sender, base).hex() == octets
    assert miop.read_id(bytes.fromhex(octets)) == (sender, base)


@pytest.mark.parametrize(
    "at, octets, counter",
    [
        (4, "20", "bad_version"),
        (6, "ffff", "bad_length"),
        (6, "0010", "bad_length"),
        (16, "fffffff0", "bad_id_length"),
        (6, "00b0", None),
        (8, "0000000500000003", "bad_number"),
    ],
)
def test_a_changed_packet(at: int, octets: str, counter: str | None) -> None:
    assert reason(changed(vector("V1"), at, octets)) == counter


# What is accepted


def test_a_length_that_counts_the_header() -> None:
    message = bytes(decode(vector("V1")).payload)
    assert decode(changed(vector("V1"), 6, "00b0")).payload == message


@pytest.mark.parametrize("size", [0, 1, 4, 10, 12, 16, 252])
@pytest.mark.parametrize("form", ["padded", "counted", "unpadded"])
def test_ids_of_any_length_in_every_form(size: int, form: str) -> None:
    unique_id = bytes(range(size))
    data = encode(unique_id, 3, 9, b"payload", length_includes_header=form == "counted")
    if form == "unpadded":
        data = data[: 20 + size] + b"payload"
    fragment = decode(data)
    assert (fragment.unique_id, fragment.number, fragment.count) == (unique_id, 3, 9)
    assert fragment.payload == b"payload"


def test_unknown_flags_are_ignored() -> None:
    assert decode(changed(vector("V1"), 5, "7e")).payload == decode(vector("V1")).payload


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer(kind: type) -> None:
    assert decode(kind(vector("V2"))).payload == vector("V2")[32:]


def test_as_polyorb_wants_it() -> None:
    """The length counts everything, the flag says that there are several, and the id is text."""
    unique_id = miop.text_id(LOCALHOST, 5)
    single = split(b"x" * 100, unique_id, length_includes_header=True)
    pair = split(b"x" * 1500, unique_id, length_includes_header=True)
    assert [decode(each).flags for each in single + pair] == [0, miop.STOP, miop.STOP]
    for each in single + pair:
        assert struct.unpack_from(">H", each, 6)[0] == len(each)
    assert unique_id.endswith(b"\0") and unique_id[:-1].decode("ascii").isprintable() and len(unique_id) == 12
    assert b"".join(decode(each).payload for each in pair) == b"x" * 1500


@given(st.integers(1 << 24, miop.SENDER_MAX), st.integers(0, miop.NUMBER_MAX))
def test_text_ids_are_foreign_and_differ(sender: int, base: int) -> None:
    unique_id = miop.text_id(sender, base)
    assert miop.read_id(unique_id) is None and unique_id != miop.CONTROL_ID
    assert unique_id not in (miop.text_id(sender ^ 1, base), miop.text_id(sender, base ^ 1))


@given(st.integers(1 << 24, miop.SENDER_MAX), st.integers(0, miop.NUMBER_MAX))
def test_numbered_ids_come_back(sender: int, base: int) -> None:
    unique_id = miop.numbered_id(sender, base)
    assert miop.read_id(unique_id) == (sender, base)
    assert len(unique_id) == 12 and unique_id.isascii() and unique_id != miop.CONTROL_ID


@given(st.integers(0, miop.NUMBER_MAX), st.integers(1, (1 << 21) - 1))
def test_eight_octets_tell_two_million_packets_apart(base: int, further: int) -> None:
    """TIDorb looks at no more."""
    other = min(base + further, miop.NUMBER_MAX)
    assert (miop.numbered_id(LOCALHOST, base)[:8] == miop.numbered_id(LOCALHOST, other)[:8]) == (
        other == base
    )


@pytest.mark.parametrize(
    "unique_id",
    ["40" + "00" * 11, "5000000000000000000000ff", "477800000100000180000000", "4778000001000001000000", ""],
    ids=["sender 0.0.0.0", "first octet", "eighth bit", "eleven octets", "none"],
)
def test_ids_that_are_not_numbered(unique_id: str) -> None:
    assert miop.read_id(bytes.fromhex(unique_id)) is None


@given(st.integers(1 << 24, miop.SENDER_MAX))
def test_quads_come_back(sender: int) -> None:
    assert miop.read_quad(miop.quad(sender)) == sender


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.2.3",
        "1.2.3.4.5",
        "0.1.2.3",
        "256.1.1.1",
        "1.2.3.-4",
        "1.2.3.04",
        "1. 2.3.4",
        "a.b.c.d",
        "1.2.3.4 ",
        "0.0.0.d",
        "0007.00.00.0.",
        "1.2.x.4.5",
    ],
)
def test_what_is_no_quad(text: str) -> None:
    assert miop.read_quad(text) is None


def test_a_long_text_is_not_remembered() -> None:
    """Anybody can send them, and a thousand would be kept."""
    miop.read_quad("1.2.3.4")
    before = miop._read_quad.cache_info()
    assert miop.read_quad("1" * 60_000) is None
    assert miop._read_quad.cache_info() == before


@given(
    st.binary(max_size=252).filter(lambda unique_id: unique_id != miop.CONTROL_ID),
    st.integers(0, 65535),
    st.integers(0, 65535),
    st.sampled_from([0, 1, 2, 3]),
    st.binary(min_size=1, max_size=50),
)
def test_fragments_come_back(unique_id: bytes, number: int, more: int, flags: int, payload: bytes) -> None:
    count = min(number + 1 + more, miop.COUNT_MAX)
    data = encode(unique_id, number, count, payload, flags=flags)
    assert decode(data) == MiopPacket(unique_id, number, count, flags, payload)


@given(st.binary(min_size=1, max_size=400), st.integers(1, 64), st.booleans(), st.booleans())
def test_a_split_message_is_whole_again(
    message: bytes, payload_max: int, little: bool, counted: bool
) -> None:
    packets = split(
        message,
        miop.numbered_id(LOCALHOST, 1),
        payload_max=payload_max,
        little=little,
        length_includes_header=counted,
    )
    fragments = [decode(each) for each in packets]
    assert b"".join(each.payload for each in fragments) == message
    assert {len(each.payload) for each in fragments[:-1]} <= {payload_max}
    assert [(each.number, each.count) for each in fragments] == [
        (k, len(packets)) for k in range(len(packets))
    ]
    if not counted:
        assert [each.is_last for each in fragments] == [k == len(packets) - 1 for k in range(len(packets))]


controls = st.builds(
    ControlPacket,
    st.sampled_from([miop.NACK, miop.STATE]),
    st.integers(1 << 24, miop.SENDER_MAX),
    st.lists(
        st.tuples(st.integers(1 << 24, miop.SENDER_MAX), st.integers(0, (1 << 64) - 1)),
        max_size=miop.ENTRIES_MAX,
    ).map(tuple),
)


@given(controls, st.booleans())
def test_control_packets_come_back(control: ControlPacket, little: bool) -> None:
    data = encode_control(control, little=little)
    assert decode_control(decode(data)) == control
    assert len(data) <= 1472


# What is not


@pytest.mark.parametrize(
    "data, counter",
    [
        (b"", "short"),
        (vector("V1")[:19], "short"),
        (changed(vector("V1"), 0, "47"), "bad_magic"),
        (changed(vector("V1"), 4, "11"), "bad_version"),
        (changed(vector("V1"), 16, "000000fd"), "bad_id_length"),
        (encode(bytes(252), 0, 1, b"x")[:270], "bad_id_length"),
        (vector("V1")[:-1], "bad_length"),
        (vector("V1") + b"\0", "bad_length"),
        (encode(bytes(12), 0, 1, b""), "empty"),
        (encode(bytes(9), 0, 1, b"", length_includes_header=True), "empty"),
        (encode(bytes(12), 3, 3, b"x"), "bad_number"),
        (encode(bytes(12), 0, 65537, b"x"), "too_large"),
        (encode(bytes(12), 65536, 0, b"x"), "too_large"),
        (encode(bytes(12), 65535, 65536, b"x"), None),
        (changed(vector("V1"), 5, "82"), "bad_control_header"),
        (changed(vector("V5"), 5, "00"), "bad_control_header"),
        (changed(vector("V5"), 5, "82"), "bad_control_header"),
        (changed(vector("V5"), 11, "01"), "bad_control_header"),
        (changed(vector("V5"), 15, "03"), "bad_control_header"),
        (changed(vector("V5"), 20, "53"), "bad_control_header"),
        (changed(vector("V5"), 32, "00000002"), "bad_control"),
        (changed(vector("V5"), 40, "78"), "bad_control"),
        (changed(vector("V5"), 40, "30"), "bad_control"),
        (changed(vector("V5"), 40, "ff"), "bad_control"),
        (changed(vector("V5"), 52, "00000029"), "bad_control"),
        (changed(vector("V5"), 52, "00000001"), "bad_control"),
        (changed(vector("V5"), 52, "00000003"), "bad_cdr"),
        (changed(vector("V5"), 36, "00000000"), "bad_cdr"),
        (changed(vector("V5"), 36, "00000009"), "bad_cdr"),
        (changed(vector("V5"), 36, "ffffffff"), "bad_cdr"),
        (encode(miop.CONTROL_ID, 0, 2, b"\0\0\0", flags=miop.CONTROL), "bad_cdr"),
    ],
)
def test_malformed_packets_raise_their_counter(data: bytes, counter: str | None) -> None:
    assert reason(data) == counter


def test_nobody_listens_to_itself() -> None:
    assert reason(vector("V5"), me=0x7F000002) == "own_control"
    assert reason(vector("V5"), me=LOCALHOST) is None


def test_every_truncation_is_counted() -> None:
    for data in PACKETS:
        for size in range(len(data)):
            cut = reason(data[:size])
            # As long as the payload was announced to be: it could be the whole length, so GIOP must notice.
            assert cut in REASONS or (cut is None and size == len(data) - 32)


@given(st.sampled_from(PACKETS), st.data())
def test_several_changed_octets(packet: bytes, data: st.DataObject) -> None:
    new = bytearray(packet)
    for at in data.draw(st.lists(st.integers(0, len(packet) - 1), max_size=8)):
        new[at] = data.draw(st.integers(0, 255))
    assert reason(bytes(new)) in REASONS | {None}


@given(st.binary(max_size=80))
def test_any_octets(octets: bytes) -> None:
    assert reason(octets) in REASONS | {None}
    assert reason(b"MIOP\x10\x80" + octets) in REASONS | {None}
