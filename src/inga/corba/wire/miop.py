"""MIOP 1.0: a GIOP message as fragments, one to a datagram; and the control packets of ReMIOP.

    0   4  magic "MIOP"
    4   1  version, a nibble each: 1.0
    5   1  flags: 1 little-endian, 2 stop (the last fragment), 80 ReMIOP control
    6   2  length of the payload
    8   4  number of the fragment, from 0
    12  4  number of fragments of the message; 0 = the sender does not know
    16  4  length U of the unique id, at most 252
    20  U  unique id, the same in all fragments of a message
           zeros up to a multiple of 8, then the payload

Numbers are in the byte order that flag 1 says. Implementations disagree whether the length counts the header and whether
there are zeros; `decode` accepts all three forms in use. Our unique ids contain the sender and the number of its packet
that is the first fragment, which is all that ReMIOP needs to request a lost packet: data packets stay plain MIOP.

A control packet is fragment 0 of 2 of a message that is never completed, so that receivers without ReMIOP ignore it. Its
payload:

    u32     0 NACK: its entries are missing packets; 1 STATE: its entries are numbers up to which nothing is missing
    string  the sender of the control packet, as a dotted quad
    u32     entries, then for each: string sender, u64 number

After Bessani, Fraga and Lung, "Extending the UMIOP Specification for Reliable Multicast in CORBA", section 5.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from struct import Struct
from typing import NamedTuple

from inga.corba.wire.cdr import Decoder, Encoder
from inga.model.errors import WireError
from inga.model.packet import Buffer

MAGIC = b"MIOP"
VERSION = 0x10
LITTLE = 0x01
STOP = 0x02
CONTROL = 0x80

HEAD = 20
"""Octets before the unique id."""
ID_MAX = 252
ID_SIZE = 12
"""Octets of our own ids: four more than a multiple of 8, so that the header needs no padding."""
HEADER = HEAD + ID_SIZE
LENGTH_MAX = 0xFFFF
COUNT_MAX = 1 << 16
"""The most fragments of a message; a packet that announces more is refused."""
PAYLOAD_MAX = 1440
"""Octets that are left of an Ethernet frame after IP, UDP and our header."""

SENDER_MAX = (1 << 32) - 1
NUMBER_MAX = (1 << 49) - 1
"""The largest packet number that a unique id has room for."""

CONTROL_ID = b"ReMIOP-ctrl\0"
CONTROL_COUNT = 2
NACK = 0
STATE = 1
ENTRIES_MAX = 40
"""Entries of a control packet: with the longest quads they just fit a datagram of 1,472 octets."""

QUAD_MAX = len("255.255.255.255")

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"
"""The characters of text ids, six bits each. An id begins with one of the first four, so it never looks like a numbered id."""

_BIG_HEAD = Struct(">4sBBHIII")
_LITTLE_HEAD = Struct("<4sBBHIII")


@dataclass(slots=True)
class MiopPacket:
    """One MIOP packet. The payload is borrowed from the datagram it came in."""

    unique_id: bytes
    number: int
    count: int
    flags: int
    payload: Buffer

    @property
    def is_last(self) -> bool:
        return bool(self.flags & STOP)

    @property
    def is_little(self) -> bool:
        return bool(self.flags & LITTLE)

    @property
    def is_control(self) -> bool:
        return bool(self.flags & CONTROL)


class ControlPacket(NamedTuple):
    """A NACK, which requests packets, or a STATE, which says up to which numbers its sender has all packets."""

    kind: int
    sender: int
    entries: tuple[tuple[int, int], ...]


def encode(
    unique_id: bytes,
    number: int,
    count: int,
    payload: Buffer,
    *,
    flags: int = 0,
    length_includes_header: bool = False,
) -> bytes:
    """One fragment as a datagram; `flags` are LITTLE, STOP and CONTROL."""
    header = HEAD + len(unique_id)
    padding = -header % 8
    length = len(payload)
    if length_includes_header:
        length += header + padding
    head = _LITTLE_HEAD if flags & LITTLE else _BIG_HEAD
    fixed = head.pack(MAGIC, VERSION, flags, length, number, count, len(unique_id))
    return b"".join((fixed, unique_id, bytes(padding), payload))


def split(
    message: Buffer,
    unique_id: bytes,
    *,
    payload_max: int = PAYLOAD_MAX,
    little: bool = False,
    length_includes_header: bool = False,
) -> list[bytes]:
    """A message as datagrams, all but the last of them full.

    With `length_includes_header` they have PolyORB's form: the length counts the header, and the stop flag means
    that there are several fragments. PolyORB takes ids for text: use one of `text_id`.
    """
    view = memoryview(message)
    size = len(view)
    count = -(-size // payload_max)
    assert 0 < count <= COUNT_MAX
    order = LITTLE if little else 0
    write = partial(encode, length_includes_header=length_includes_header)
    fragments = []
    for number in range(count):
        stop = count > 1 if length_includes_header else number == count - 1
        payload = view[number * payload_max : (number + 1) * payload_max]
        fragments.append(write(unique_id, number, count, payload, flags=order | STOP if stop else order))
    return fragments


def decode(data: Buffer, count_max: int = COUNT_MAX) -> MiopPacket:
    """Decode the fragment in a datagram. Any other datagram raises WireError, whose reason is the counter to increment.

    The counters: short, bad_magic, bad_version, bad_id_length, bad_length, empty, bad_control_header,
    bad_number, too_large.
    """
    size = len(data)
    if size < HEAD:
        raise WireError("short", f"{size} octets")
    flags = data[5]
    head = _LITTLE_HEAD if flags & LITTLE else _BIG_HEAD
    magic, version, _, length, number, count, id_size = head.unpack_from(data)
    if magic != MAGIC:
        raise WireError("bad_magic")
    if version != VERSION:
        raise WireError("bad_version", f"{version >> 4}.{version & 15}")
    end = HEAD + id_size
    if id_size > ID_MAX or end > size:
        raise WireError("bad_id_length", f"{id_size} octets")
    start = (end + 7) & ~7
    if length != size - start and length != size:
        if length != size - end:
            raise WireError("bad_length", f"{length}, in a datagram of {size} octets")
        start = end
    if start >= size:
        raise WireError("empty")
    unique_id = bytes(data[HEAD:end])
    if flags & CONTROL or unique_id == CONTROL_ID:
        _check_control_header(flags, number, count, unique_id)
    elif count and number >= count:
        raise WireError("bad_number", f"{number} of {count}")
    elif count > count_max or number >= count_max:
        raise WireError("too_large", f"{number} of {count}")
    return MiopPacket(unique_id, number, count, flags, memoryview(data)[start:])


def _check_control_header(flags: int, number: int, count: int, unique_id: bytes) -> None:
    if not flags & CONTROL or flags & STOP or number or count != CONTROL_COUNT or unique_id != CONTROL_ID:
        raise WireError("bad_control_header", f"{number} of {count}, flags {flags:02x}")


# Unique ids


def numbered_id(sender: int, base: int) -> bytes:
    """The id of the message whose first fragment is the sender's packet `base`.

    Each octet has seven bits, since some receivers treat ids as text. The low half of the number comes first, since
    other receivers compare eight octets only.
    """
    assert 1 << 24 <= sender <= SENDER_MAX and 0 <= base <= NUMBER_MAX
    return _sender_part(sender) + bytes(
        (
            base >> 14 & 0x7F,
            base >> 7 & 0x7F,
            base & 0x7F,
            base >> 42,
            base >> 35 & 0x7F,
            base >> 28 & 0x7F,
            base >> 21 & 0x7F,
        )
    )


@lru_cache(maxsize=256)
def _sender_part(sender: int) -> bytes:
    high = 0x40 | sender >> 28
    return bytes((high, sender >> 21 & 0x7F, sender >> 14 & 0x7F, sender >> 7 & 0x7F, sender & 0x7F))


def read_id(unique_id: bytes) -> tuple[int, int] | None:
    """Sender and base of a numbered id; None for a foreign one."""
    if len(unique_id) != ID_SIZE or unique_id[0] & 0xF0 != 0x40 or not unique_id.isascii():
        return None
    a, b, c, d, e, f, g, h, i, j, k, m = unique_id
    sender = (a & 0x0F) << 28 | b << 21 | c << 14 | d << 7 | e
    if sender < 1 << 24:
        return None
    return sender, i << 42 | j << 35 | k << 28 | m << 21 | f << 14 | g << 7 | h


def text_id(sender: int, base: int) -> bytes:
    """An id for receivers that expect text ending in NUL; for all others it is a foreign id.

    It contains only the lowest 30 bits of `base`.
    """
    bits = sender << 30 | base & (1 << 30) - 1
    return "".join(_ALPHABET[bits >> shift & 63] for shift in range(60, -1, -6)).encode() + b"\0"


@lru_cache(maxsize=1024)
def quad(sender: int) -> str:
    """A sender number as a dotted quad, as in control packets."""
    return f"{sender >> 24}.{sender >> 16 & 255}.{sender >> 8 & 255}.{sender & 255}"


def read_quad(text: str) -> int | None:
    """The sender number of a dotted quad as `quad` writes it; None for any other text."""
    return _read_quad(text) if len(text) <= QUAD_MAX else None  # the cache holds no longer texts


@lru_cache(maxsize=1024)
def _read_quad(text: str) -> int | None:
    parts = text.split(".")
    if len(parts) != 4:
        return None
    try:  # one by one: compiled code mistakes an error inside `map` for its end
        a, b, c, d = int(parts[0]), int(parts[1]), int(parts[2]), int(parts[3])
    except ValueError:
        return None
    if not (0 < a < 256 and 0 <= b < 256 and 0 <= c < 256 and 0 <= d < 256):
        return None
    sender = a << 24 | b << 16 | c << 8 | d
    return sender if quad(sender) == text else None


# Control packets


def encode_control(control: ControlPacket, *, little: bool = False) -> bytes:
    """One control packet as a datagram."""
    assert len(control.entries) <= ENTRIES_MAX
    body = Encoder(little=little)
    body.ulong(control.kind)
    body.string(quad(control.sender))
    body.ulong(len(control.entries))
    for sender, number in control.entries:
        body.string(quad(sender))
        body.ulonglong(number)
    return encode(CONTROL_ID, 0, CONTROL_COUNT, body.out, flags=CONTROL | LITTLE if little else CONTROL)


def decode_control(fragment: MiopPacket, me: int = 0) -> ControlPacket:
    """Decode a control packet. `me` is our own sender number: a packet of ours that was looped back is refused.

    Any other packet raises WireError, whose reason is the counter: bad_cdr, bad_control, own_control.
    """
    body = Decoder(fragment.payload, little=fragment.is_little, text="latin-1")
    try:
        kind, sender = body.ulong(), _get_sender(body)
        if kind not in (NACK, STATE):
            raise WireError("bad_control", f"kind {kind}")
        if (count := body.ulong()) > ENTRIES_MAX:
            raise WireError("bad_control", f"{count} entries")
        entries = tuple((_get_sender(body), body.ulonglong()) for _ in range(count))
    except WireError as error:
        raise error if error.reason == "bad_control" else WireError("bad_cdr", str(error)) from None
    if body.remaining:
        raise WireError("bad_control", f"{body.remaining} octets too many")
    if sender == me:
        raise WireError("own_control")
    return ControlPacket(kind, sender, entries)


def _get_sender(body: Decoder) -> int:
    sender = read_quad(body.string())
    if sender is None:
        raise WireError("bad_control", "a sender that is no dotted quad")
    return sender
