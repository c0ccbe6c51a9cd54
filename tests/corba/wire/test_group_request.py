"""Requests to a group, as MIOP carries them: the published vectors and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.wire import giop, group_request, miop
from inga.corba.wire.cdr import Encoder
from inga.corba.wire.giop import KeyAddr, ProfileAddr, ReferenceAddr, Request, Tagged
from inga.corba.wire.group_request import Oneway, decode_request, encode_request, read_octets
from inga.corba.wire.reference import (
    TAG_UIPMC,
    GroupIdentity,
    Uipmc,
    encode_group,
    encode_uipmc,
    read,
)
from inga.model.errors import WireError

VECTORS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "scenarios" / "miop" / "vectors.json").read_text()
)
URL = "corbaloc:miop:1.0@1.0-TestDomain-1/225.6.7.8:12345"
PROFILE = read(URL).profiles[0]
GROUP = GroupIdentity("TestDomain", 1)
PACKET_REASONS = {
    "short",
    "bad_magic",
    "bad_version",
    "bad_id_length",
    "bad_length",
    "empty",
    "bad_control_header",
    "bad_number",
    "too_large",
    "bad_control",
}
REASONS = {"bad_giop", "bad_giop_size", "unsupported_giop", "twoway_rejected", "bad_target", "bad_cdr"}


KNOWN = {None, *REASONS, *PACKET_REASONS}


def message(name: str) -> bytes:
    """The GIOP message that the packets of a vector carry."""
    return b"".join(miop.decode(bytes.fromhex(each)).payload for each in VECTORS[name])


def profile(little: bool, ref_version: int = 0) -> Tagged:
    named = encode_group(GroupIdentity("TestDomain", 1, ref_version), little=little)
    return encode_uipmc(Uipmc("225.6.7.8", 12345, (named,)), little=little)


@pytest.mark.parametrize(
    "name, number, operation, argument, little, ref_version",
    [
        ("V1", 1, "greeting_oneway", "hello group", False, 0),
        ("V2", 2, "greeting_oneway", "hello group", True, 7),
        ("V3", 3, "put", "x" * 300, False, 0),
        ("V4", 4, "shutdown", None, False, 0),
        ("V7", 1, "greeting_oneway", "hello group", False, 0),
    ],
)
def test_the_vectors(
    name: str, number: int, operation: str, argument: str | None, little: bool, ref_version: int
) -> None:
    request = decode_request(message(name))
    assert request[:4] == (number, GroupIdentity("TestDomain", 1, ref_version), operation, ())
    if argument is not None:
        assert request.arguments.string() == argument
    request.arguments.finish()

    def body(encoder: Encoder) -> None:
        if argument is not None:
            encoder.string(argument)

    made = encode_request(number, profile(little, ref_version), operation, body, little=little)
    assert made == message(name)


def test_any_service_context_is_taken() -> None:
    """JacORB sends code sets."""
    contexts = (Tagged(1, bytes(12)), Tagged(77, b"?"))
    request = decode_request(encode_request(5, PROFILE, "ping", contexts=contexts))
    assert request.contexts == contexts


def changed(at: int, octets: str) -> bytes:
    new, data = bytes.fromhex(octets), message("V1")
    return data[:at] + new + data[at + len(new) :]


def with_target(target: giop.TargetAddress) -> bytes:
    return giop.encode(Request(1, target, "ping", response_flags=0))


@pytest.mark.parametrize(
    "data, counter",
    [
        (b"", "bad_giop"),
        (b"GIOP\1\2\0\0\0\0\0", "bad_giop"),
        (changed(0, "67"), "bad_giop"),
        (changed(4, "02"), "bad_giop"),
        (message("V1")[:-1], "bad_giop_size"),
        (changed(8, "ffffffff"), "bad_giop_size"),
        (changed(6, "02"), "unsupported_giop"),
        (changed(7, "01"), "unsupported_giop"),
        (changed(7, "08"), "unsupported_giop"),
        (changed(16, "03"), "twoway_rejected"),
        (changed(16, "01"), "twoway_rejected"),
        (changed(20, "0003"), "bad_target"),
        (with_target(KeyAddr(b"key")), "bad_target"),
        (with_target(ReferenceAddr(0, "", (PROFILE,))), "bad_target"),
        (with_target(ProfileAddr(Tagged(0, PROFILE.data))), "bad_target"),
        (with_target(ProfileAddr(Tagged(TAG_UIPMC, b""))), "bad_target"),
        (with_target(ProfileAddr(encode_uipmc(Uipmc("225.6.7.8", 12345)))), "bad_target"),
        (with_target(ProfileAddr(encode_uipmc(Uipmc("225.6.7.8", 1, (Tagged(39, b"\0\1"),))))), "bad_target"),
        (giop.encode(Request(1, KeyAddr(b"key"), "ping", 0), minor=1), "bad_target"),
        (changed(28, "ffffffff"), "bad_cdr"),
        (changed(100, "00000000"), "bad_cdr"),
        (changed(100, "0000000f"), "bad_cdr"),
        (changed(120, "7fffffff"), "bad_cdr"),
    ],
)
def test_what_is_refused_and_by_which_counter(data: bytes, counter: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_request(data)
    assert caught.value.reason == counter


PACKETS = [(name, part) for name in VECTORS if name <= "V7" for part in range(len(VECTORS[name]))]


def outcome(packet: bytes) -> str | None:
    """What a receiver makes of one packet, down to the request: a counter, or None if it takes it."""
    try:
        fragment = miop.decode(packet)
        if fragment.is_control:
            miop.decode_control(fragment)
        elif fragment.count < 2:
            decode_request(fragment.payload)
    except WireError as error:
        return error.reason
    return None


@pytest.mark.parametrize("name, part", PACKETS)
def test_every_truncation_and_every_changed_octet_is_counted_or_taken(name: str, part: int) -> None:
    packet = bytes.fromhex(VECTORS[name][part])
    found = {outcome(packet[:size]) for size in range(len(packet))}
    for at in range(len(packet)):
        before, after = packet[:at], packet[at + 1 :]
        found |= {outcome(before + bytes((octet,)) + after) for octet in range(256)}
    assert found <= KNOWN


@given(st.integers(0, (1 << 32) - 1), st.binary(max_size=300), st.booleans())
def test_the_quick_way_is_the_same(number: int, octets: bytes, little: bool) -> None:
    oneway = Oneway(PROFILE, "inga", little=little)
    made = oneway.encode(number, octets)
    slow = encode_request(number, PROFILE, "inga", lambda body: body.octets(octets), little=little)
    assert made == slow and len(made) == oneway.overhead + len(octets)
    assert oneway.decode(made) == (number, octets)
    request = decode_request(made)
    assert (request.request_id, request.group, request.operation) == (number, GROUP, "inga")
    assert read_octets(request.arguments) == octets


@given(st.binary(max_size=30), st.integers(0, 160), st.integers(0, 255))
def test_the_quick_way_takes_nothing_else(octets: bytes, at: int, octet: int) -> None:
    oneway = Oneway(PROFILE, "inga")
    made = oneway.encode(7, octets)
    other = bytearray(made)
    other[at % len(made)] = octet
    if (quick := oneway.decode(bytes(other))) is None:
        return
    request = decode_request(bytes(other))
    assert quick == (request.request_id, read_octets(request.arguments))


@pytest.mark.parametrize("body", [b"", b"\0\0\0\1", b"\0\0\0\1xy"])
def test_arguments_that_are_not_octets(body: bytes) -> None:
    request = decode_request(encode_request(1, PROFILE, "inga", body))
    with pytest.raises(WireError) as caught:
        read_octets(request.arguments)
    assert caught.value.reason == "bad_args"


@given(st.binary(max_size=60))
def test_any_octets(octets: bytes) -> None:
    for data in (octets, message("V1")[:24] + octets, message("V4")[:100] + octets):
        try:
            decode_request(data)
        except WireError as error:
            assert error.reason in REASONS


def test_a_large_profile_is_read_and_not_remembered() -> None:
    """Anybody can send them, and hundreds would be kept."""
    padded = Uipmc("225.6.7.8", 99, (encode_group(GROUP), Tagged(99, bytes(60_000))))
    decode_request(encode_request(1, PROFILE, "tell"))
    before = group_request._known_group_in.cache_info()
    assert decode_request(encode_request(1, encode_uipmc(padded), "tell")).group == GROUP
    assert group_request._known_group_in.cache_info() == before
