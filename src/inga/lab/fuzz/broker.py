"""CORBA: values of every IDL type, GIOP messages and streams of them, MIOP and ReMIOP, references, captures."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from struct import pack
from typing import Any, Literal

from inga.corba.broker.dispatch import Broker, ServantCall
from inga.corba.broker.idl import (
    Char,
    Float,
    IdlType,
    Long,
    LongLong,
    Octet,
    Short,
    ULong,
    ULongLong,
    UShort,
    WChar,
    WString,
    idl_type,
    interface,
)  # fmt: skip
from inga.corba.dissect import pcap
from inga.corba.dissect.described import describe, text_of
from inga.corba.dissect.dissector import dissect, line
from inga.corba.wire import giop, miop
from inga.corba.wire import reference as references
from inga.corba.wire.cdr import Decoder as CdrDecoder
from inga.corba.wire.cdr import Encoder
from inga.corba.wire.framing import Framer
from inga.corba.wire.giop import KeyAddr, LocateStatus, ProfileAddr, ReferenceAddr, Status, Tagged
from inga.corba.wire.group_request import GroupRequest, Oneway, decode_request, encode_request
from inga.corba.wire.reference import GroupIdentity, Iiop, Reference, Uipmc
from inga.lab.fuzz.decoder import FuzzedDecoder
from inga.lab.fuzz.mutate import Field, Form, FuzzSample, fields_of, sample, tokens, words
from inga.lab.fuzz.native import arrivals
from inga.model.errors import UsageError, WireError

# ---- CDR


class Colour(enum.Enum):
    RED, GREEN, BLUE = range(3)


@dataclasses.dataclass
class Inner:
    flag: bool
    number: LongLong
    colour: Colour


@dataclasses.dataclass
class Outer:
    name: str
    parts: list[Inner]
    data: bytes
    wide: WString
    where: Reference | None
    ratio: float


@cache
def _types() -> list[tuple[IdlType, Any]]:
    """Return every IDL type with a value of it."""
    inner = Inner(True, -(1 << 62), Colour.BLUE)
    outer = Outer("name", [inner, inner], b"octets", "wide \U0001f600", _references()[0], 0.5)
    hints: list[tuple[Any, Any]] = [
        (bool, True), (Octet, 200), (Short, -2), (UShort, 65535), (Long, -70000), (ULong, 1 << 31), (int, -1),
        (ULongLong, 1 << 63), (float, 1.5), (Float, 0.25), (str, "text \u00e9"), (WString, "wide"), (Char, "c"), (WChar, "w"),
        (bytes, b"12345"), (list[str], ["", "a", "bc"]), (list[list[Long]], [[1], [], [2, 3]]), (list[bool], [True] * 5),
        (Colour, Colour.GREEN), (Inner, inner), (Outer, outer), (list[Outer], [outer, outer]), (Reference | None, None),
    ]  # fmt: skip
    return [(idl_type(hint), value) for hint, value in hints]


def _values() -> list[FuzzSample]:
    """Make samples: one octet for the type, one for the byte order, then the value."""
    found = []
    for number, (kind, value) in enumerate(_types()):
        for little in (False, True):
            out = Encoder(little=little)
            kind.put(out, value)
            found.append(sample(bytes((number, little)) + out.data(), _cdr_fields))
    return found


def _cdr_fields(data: bytes) -> list[Field]:
    form = Form.LITTLE if data[1] else Form.BIG
    return words(data, form, 2) + words(data, form, 2, 2)


def _read_typed(octets: bytes) -> tuple[int, Any]:
    number = octets[0] % len(_types()) if octets else 0
    body = CdrDecoder(octets[2:], little=bool(octets[1] & 1 if len(octets) > 1 else 0))
    found = _types()[number][0].get(body)
    body.finish()
    return number, found


def _typed_again(result: tuple[int, Any]) -> tuple[int, Any]:
    number, found = result
    out = Encoder()
    _types()[number][0].put(out, found)
    return _read_typed(bytes((number, 0)) + out.data())


def _plain(value: Any) -> Any:
    """Convert a value for comparison, so that NaN equals NaN."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [_plain(getattr(value, each.name)) for each in dataclasses.fields(value)]
    return [*map(_plain, value)] if isinstance(value, list | tuple) else fields_of(value)


# ---- GIOP


def _messages() -> list[tuple[giop.GiopMessage, int]]:
    """Return every kind of message, with the oldest minor version that has it."""
    contexts = (Tagged(giop.CODE_SETS, b"\0\0\0\0\x05\1\0\1\0\1\1\t"), Tagged(9, b"x"))
    reference = _references()[0]
    return [
        (giop.Request(1, KeyAddr(b"desk"), "add", 3, contexts), 0),
        (giop.Request(2, KeyAddr(b"desk"), "tell", 0), 0),
        (giop.Request(3, ProfileAddr(reference.profiles[0]), "_is_a"), 2),
        (giop.Request(4, ReferenceAddr(0, reference.type_id, reference.profiles), "add", 1), 2),
        *(
            (giop.Reply(5, status, contexts), 0 if status <= Status.LOCATION_FORWARD else 2)
            for status in Status
        ),
        (giop.LocateRequest(6, KeyAddr(b"desk")), 0),
        *(
            (giop.LocateReply(7, status), 0 if status <= LocateStatus.OBJECT_FORWARD else 2)
            for status in LocateStatus
        ),
        (giop.CancelRequest(8), 0),
        (giop.CloseConnection(), 0),
        (giop.MessageError(), 0),
    ]


@cache
def _giop_messages() -> tuple[bytes, ...]:
    found = []
    for message, oldest in _messages():
        for minor in range(oldest, giop.MINOR_MAX + 1):
            for little in (False, True):
                body = _body if isinstance(message, giop.Request | giop.Reply) else None
                found.append(giop.encode(message, body, minor=minor, little=little))
    long = giop.encode(giop.Request(9, KeyAddr(b"desk"), "add"), lambda out: out.octets(bytes(90)))
    return (*found, *giop.fragments(long, 64))


def _body(out: Encoder) -> None:
    out.ulong(2)
    out.long(-1)
    out.long(7)


def _words(out: Encoder) -> None:
    out.string("a")
    out.wstring("b")


def _giop_fields(data: bytes, start: int = 0) -> list[Field]:
    """Find the fields of the header, then aligned numbers in its byte order."""
    form = Form.LITTLE if data[start + 6] & 1 else Form.BIG
    header = [Field(start + at, start + at + 1, Form.BIG) for at in range(4, 8)]
    return header + [
        Field(at, at + size, form) for size in (4, 2) for at in range(start + 8, len(data) - size + 1, size)
    ]


def _mend_giop(data: bytearray, octets: bytes) -> None:
    if len(data) >= giop.HEADER_SIZE:
        data[8:12] = (len(data) - giop.HEADER_SIZE).to_bytes(4, "little" if data[6] & 1 else "big")


def _read_giop(octets: bytes) -> tuple[giop.Header, giop.GiopMessage, bytes]:
    header, message, body = giop.decode(octets)
    return header, message, body.rest()


def _giop_again(result: tuple[giop.Header, giop.GiopMessage, bytes]) -> Any:
    header, message, body = result
    write: Callable[[Encoder], None] = lambda out: out.raw(body)  # noqa: E731
    return _read_giop(giop.encode(message, write, minor=header.minor, little=header.little, more=header.more))


def _giop_same(result: tuple[giop.Header, giop.GiopMessage, bytes]) -> Any:
    header, message, body = result
    return dataclasses.replace(header, size=0), message, body  # padding may be longer than it needs to be


def _streams() -> list[FuzzSample]:
    """Make samples: one octet for how many octets arrive at a time, then several messages."""
    rng, known = Random(2), _giop_messages()
    return [
        sample(
            bytes((rng.choice((1, 5, 16, 255)),)) + b"".join(rng.choices(known, k=rng.randrange(1, 5))),
            _stream_fields,
        )
        for _ in range(40)
    ] + [sample(b"\x40" + b"".join(known[-2:]), _stream_fields)]


def _stream_fields(data: bytes) -> list[Field]:
    fields, at = [], data.find(giop.MAGIC)
    while at >= 0:
        following = data.find(giop.MAGIC, at + 4)
        part = data if following < 0 else data[:following]
        fields += _giop_fields(part, at)
        fields.append(Field(at, len(part), Form.OCTETS))
        at = following
    return fields


MESSAGE_MAX = 4096


def _read_stream(octets: bytes) -> list[bytes]:
    framer = Framer(MESSAGE_MAX, passes_over=bool(octets) and octets[0] & 1 == 1)
    step = octets[0] + 1 if octets else 1
    messages = []
    for at in range(1, len(octets), step):
        messages += framer.feed(octets[at : at + step])
        assert framer.buffered <= (framer.fragmented_max + 1) * MESSAGE_MAX + step
    return messages


@interface("IDL:fuzz/Desk:1.0")
class Desk:
    """An object whose operations take and return values of many types."""

    def add(self, values: list[Long]) -> Long:
        return sum(values) % 1000

    def tell(self, text: str, wide: WString) -> str:
        return text + wide

    def turn(self, what: Outer) -> Outer:
        return what


@cache
def _broker() -> Broker:
    made = Broker()
    made.adapter("RootPOA").activate(Desk(), b"desk")
    return made


@cache
def _key() -> bytes:
    return _broker().adapter("RootPOA").key(b"desk")


def _requests() -> list[FuzzSample]:
    outer = _types()[20]
    bodies: dict[str, Callable[[Encoder], None]] = {
        "add": _body,
        "tell": _words,
        "turn": lambda out: outer[0].put(out, outer[1]),
        "_is_a": lambda out: out.string("IDL:fuzz/Desk:1.0"),
        "_non_existent": lambda out: None,
        "none": _body,
    }
    contexts = (Tagged(giop.CODE_SETS, b"\0\0\0\0\x05\1\0\1\0\1\1\t"),)
    return [
        sample(
            giop.encode(
                giop.Request(1, KeyAddr(_key()), name, 3, contexts), body, minor=minor, little=little
            ),
            _giop_fields,
        )
        for name, body in bodies.items()
        for minor in range(3)
        for little in (False, True)
    ] + [sample(giop.encode(giop.LocateRequest(2, KeyAddr(_key()))), _giop_fields)]


def _serve(octets: bytes) -> Any:
    """Process a message as a server does that received it over a connection."""
    decoded = giop.decode(octets)
    if isinstance(decoded.message, giop.LocateRequest):
        return _broker().locate(decoded)
    if not isinstance(decoded.message, giop.Request):
        return None
    call = _broker().request(decoded)
    if not isinstance(call, ServantCall):
        return call
    try:
        result = call.call()
    except Exception as error:  # raised by the object itself
        return call.failed(error)
    return call.returned(result)


# ---- MIOP


PROFILE = references.encode_uipmc(
    Uipmc("225.6.7.8", 12345, (references.encode_group(GroupIdentity("fuzz", 7, 1)),))
)


def _group_requests() -> list[FuzzSample]:
    made = [
        encode_request(3, PROFILE, "tell", lambda out: out.octets(b"hello"), little=little, contexts=contexts)
        for little in (False, True)
        for contexts in ((), (Tagged(1, b"123"),))
    ]
    return [sample(each, _giop_fields) for each in (*made, Oneway(PROFILE, "inga").encode(9, b"argument"))]


def _read_group_request(octets: bytes) -> tuple[GroupRequest, Any]:
    request = decode_request(octets)
    known = Oneway(PROFILE, "inga").decode(octets)
    return request, None if known is None else bytes(known[1])


def _datagrams() -> list[FuzzSample]:
    """Make samples: MIOP packets with both forms of ids, control packets, and datagrams of groups in virtual time."""
    message = encode_request(3, PROFILE, "tell", lambda out: out.octets(bytes(200)))
    found = []
    for little in (False, True):
        for counts in (False, True):
            name = miop.text_id(1 << 30, 5) if counts else miop.numbered_id(1 << 30, 5)
            found += miop.split(message, name, payload_max=100, little=little, length_includes_header=counts)
        entries = ((0x01020304, 9), (0xFFFFFFFF, 1 << 40))
        found += [
            miop.encode_control(miop.ControlPacket(kind, 0x7F000001, entries[:count]), little=little)
            for kind in (miop.NACK, miop.STATE)
            for count in range(3)
        ]
    found += [each.datagram for each in arrivals() if each.datagram.startswith(miop.MAGIC)][:40]
    return [sample(each, _miop_fields) for each in found]


def _miop_fields(data: bytes) -> list[Field]:
    form = Form.LITTLE if data[5] & 1 else Form.BIG
    head = [Field(4, 5, Form.BIG), Field(5, 6, Form.BIG), Field(6, 8, form)]
    return head + [Field(at, at + 4, form) for at in range(8, min(len(data), 400) - 3, 4)]


def _mend_miop(data: bytearray, octets: bytes) -> None:
    if len(data) >= miop.HEAD:
        order: Literal["little", "big"] = "little" if data[5] & 1 else "big"
        start = miop.HEAD + int.from_bytes(data[16:20], order)
        data[6:8] = ((len(data) - (start + 7 & ~7)) % (1 << 16)).to_bytes(2, order)


def _read_miop(octets: bytes) -> Any:
    fragment = miop.decode(octets)
    if fragment.is_control:
        return fragment.is_little, miop.decode_control(fragment)
    miop.read_id(fragment.unique_id)
    return fragment.unique_id, fragment.number, fragment.count, fragment.flags, bytes(fragment.payload)


def _miop_again(result: Any) -> Any:
    if len(result) == 2:
        return _read_miop(miop.encode_control(result[1], little=result[0]))
    name, number, count, flags, payload = result
    return _read_miop(miop.encode(name, number, count, payload, flags=flags))


# ---- references


@cache
def _references() -> tuple[Reference, ...]:
    group = GroupIdentity("fuzz", 7, 1)
    desk = Iiop(
        "host.example",
        2809,
        b"desk/\0\xff",
        components=(Tagged(giop.CODE_SETS, b"\0\0\0\0\x05\1\0\1\0\0\0\0"),),
    )
    return (
        references.group_reference(
            "IDL:fuzz/Desk:1.0", group, "225.6.7.8", 12345, group_iiop=desk, gateway=desk
        ),
        references.group_reference("", group, "ff02::10", 12345),
        Reference("IDL:x:1.0", (references.encode_iiop(desk), Tagged(1, b"\0\0\0\0"), Tagged(99, b"other"))),
        Reference("", ()),
    )


def _reference_texts() -> list[FuzzSample]:
    found = [references.to_ior(each, little=little) for each in _references() for little in (False, True)]
    found += [references.to_corbaloc(each) for each in _references()[:3]]
    found += [
        "corbaloc::host:1234/Name", "corbaloc:iiop:1.1@host,iiop:[::1]:99/a%20b%ff", "corbaloc:iiop:h/k",
        "corbaloc:miop:1.0@1.0-dom-7-3/225.0.0.1:99;iiop:h:1/k,iiop:1.2@h:2/k2", "corbaloc:miop:1.0-d-1/[ff02::1]:5",
    ]  # fmt: skip
    return [sample(each.encode(), tokens) for each in found]


def _iors() -> list[FuzzSample]:
    found = []
    for each in _references():
        for little in (False, True):
            out = Encoder.encapsulation(little=little)
            references.put_reference(out, each)
            found.append(sample(out.data(), _encapsulated_fields))
    return found


def _encapsulated_fields(data: bytes) -> list[Field]:
    form = Form.LITTLE if data[0] else Form.BIG
    return words(data, form) + words(data, form, 0, 2)


def _read_reference(octets: bytes) -> Reference:
    """Read a reference as an argument of a command line, which may have octets that are not valid text."""
    found = references.read(octets.decode("utf-8", "surrogateescape"))
    assert text_of(describe(found))
    return found


def _read_ior(octets: bytes) -> Reference:
    return _read_reference(b"IOR:" + octets.hex().encode())


def _reference_again(found: Reference) -> Reference:
    """Encode a reference as an IOR and read that. If it has a URL, check that the URL can be read and gives the same URL again."""
    try:
        url = references.to_corbaloc(found)
    except (UsageError, WireError):
        pass
    else:
        assert references.to_corbaloc(references.read(url)) == url
    return references.read(references.to_ior(found, little=True))


# ---- captures


def _captures() -> list[FuzzSample]:
    """Make samples: captures in both formats, with all link layers, both versions of IP, MIOP in datagrams and GIOP in TCP segments."""
    source, target, source6, target6 = ("127.0.0.1", 4000), ("225.6.7.8", 99), ("::1", 4000), ("ff01::10", 99)
    payloads = [each.octets for each in _datagrams()[:12]]
    frames = [pcap.record(1.5, source, target, each)[16:] for each in payloads[:8]]
    frames += [pcap.record(1.5, source6, target6, each)[16:] for each in payloads[8:]]
    frames += [_pieces(frames[0], offset, more) for offset, more in ((0, True), (1, True), (2, False))]
    stream = b"".join(_giop_messages()[:6] + _giop_messages()[-2:])
    frames += [_segment(frames[0], at, stream[at : at + 60]) for at in range(0, len(stream), 60)]
    frames.append(_segment(frames[0], (1 << 32) - 1, b"", flags=2))
    found = []
    for link, before, skipped in (
        (pcap.ETHERNET, b"", 0), (pcap.COOKED, bytes(14) + b"\x08\0", 14), (pcap.COOKED_2, b"\x08\0" + bytes(18), 14),
        (0, bytes(4), 14), (101, b"", 14),
    ):  # fmt: skip
        octets = [before + each[skipped:] for each in frames]
        for order in "<>":
            found.append(_pcap(octets, link, order))
            found.append(_pcapng(octets, link, order))
    return [sample(each, _capture_fields) for each in found] + [
        sample(_pcap(frames[at : at + 1], 1, "<"), _capture_fields) for at in range(len(frames))
    ]


def _pieces(frame: bytes, offset: int, more: bool) -> bytes:
    """Return a frame with a fragment of an IPv4 datagram."""
    ip = bytearray(frame[14:34])
    ip[6:8] = (more << 13 | offset).to_bytes(2)
    ip[2:4] = (28).to_bytes(2)
    return frame[:14] + bytes(ip) + frame[34 + 8 * offset : 42 + 8 * offset]


def _segment(frame: bytes, sequence: int, payload: bytes, flags: int = 16) -> bytes:
    """Return a frame with a TCP segment over IPv4."""
    ip = bytearray(frame[14:34])
    ip[9] = 6
    ip[2:4] = (40 + len(payload)).to_bytes(2)
    return (
        frame[:14]
        + bytes(ip)
        + pack(">HHIIBBHHH", 99, 98, sequence % (1 << 32), 0, 0x50, flags, 9, 0, 0)
        + payload
    )


def _pcap(frames: Sequence[bytes], link: int, order: str) -> bytes:
    out = pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    return out + b"".join(pack(order + "IIII", 1, 5, len(each), len(each)) + each for each in frames)


def _pcapng(frames: Sequence[bytes], link: int, order: str) -> bytes:
    out = _block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    options = pack(order + "HHBxxxHHqHH", 9, 1, 9, 14, 8, 5, 0, 0)
    out += _block(1, pack(order + "HHI", link, 0, 0) + options, order)
    for number, each in enumerate(frames):
        if number % 3 == 2:
            out += _block(3, pack(order + "I", len(each)) + each, order)
        else:
            out += _block(6, pack(order + "IIIII", 0, 0, 99, len(each), len(each)) + each, order)
    return out


def _block(kind: int, contents: bytes, order: str) -> bytes:
    contents += bytes(-len(contents) % 4)
    length = pack(order + "I", len(contents) + 12)
    return pack(order + "I", kind) + length + contents + length


def _capture_fields(data: bytes) -> list[Field]:
    form = Form.LITTLE if data[:1] in (b"\xd4", b"\x0a") else Form.BIG
    return words(data, form) + words(data[:400], Form.BIG, 0, 2) + words(data[:400], Form.BIG, 0, 1)


def _dissect(octets: bytes) -> Any:
    _, entries = dissect(octets, 99 if len(octets) % 2 else None)
    return [line(entry, 0.0) for entry in entries]


DECODERS: Sequence[FuzzedDecoder] = (
    FuzzedDecoder("cdr", _values, _read_typed, again=_typed_again, same=_plain, weight=2000),
    FuzzedDecoder(
        "giop", lambda: [sample(each, _giop_fields) for each in _giop_messages()], _read_giop, again=_giop_again,
        same=_giop_same, mend=_mend_giop, weight=2000,
    ),
    FuzzedDecoder("giop/stream", _streams, _read_stream, weight=500, octet_seconds=1e-5),
    FuzzedDecoder("giop/server", _requests, _serve, mend=_mend_giop, weight=500),
    FuzzedDecoder("giop/group", _group_requests, _read_group_request, mend=_mend_giop, weight=1000),
    FuzzedDecoder("miop", _datagrams, _read_miop, again=_miop_again, mend=_mend_miop, weight=2000),
    FuzzedDecoder("references", _reference_texts, _read_reference, errors=(UsageError,), again=_reference_again, weight=500, octet_seconds=3e-5),
    FuzzedDecoder("references/ior", _iors, _read_ior, errors=(UsageError,), again=_reference_again, weight=500, octet_seconds=3e-5),
    FuzzedDecoder("pcap", _captures, _dissect, weight=300, seconds=0.1),
)  # fmt: skip
