"""The native packet encoding: a fixed head, then only the sections in use, in the order of their bits, then the body.

    0   2  magic  "in"
    2   1  version
    3   1  kind              0 = data, else the id of a layer
    4   4  tag               hash of the group's name and options, and of the view
    8   2  sections          bit set, below
    10  2  source            index in the view
    12  4  view number
    16  4  body length       reveals a truncated datagram

Numbers in the head are big-endian; numbers in sections are varints.

A checksum of 4 bytes, a little-endian CRC-32, follows the bytes that it covers: head and sections, or (bit `COVERED`) the body,
too. It is verified before any other field is trusted, so that a corrupted datagram counts as lost.
It keeps out no attacker: anybody who can write packets can write checksums. Sealed datagrams need none.
"""

from collections.abc import Mapping
from struct import Struct
from typing import Literal
from zlib import crc32

from inga.model.errors import WireError
from inga.model.packet import Buffer, Packet
from inga.model.stamp import Stamp
from inga.model.view import View
from inga.wire import varint
from inga.wire.changes import get_changes, put_changes
from inga.wire.runs import get_runs, put_runs
from inga.wire.vector import get_vector, put_vector

MAGIC = 0x696E
SEALED_MAGIC = 0x6953
"""The first bytes of datagrams of a secured group: see `secure.sealing`. A process without a key can at least recognize them."""
VERSION = 4
HEAD = Struct(">HBBIHHII")
VIEW_AT = 12
"""The offset of the view number in the head."""

SEQ = 1 << 0  # seq
STAMP = 1 << 1  # height, then see `changes`
LSN = 1 << 2  # lsn
ACK = 1 << 3  # one number per member, see `vector`
ROOM = 1 << 4  # one number per member
RUNS = 1 << 5  # see `runs`
FRAG = 1 << 6  # index, count
TRACE = 1 << 7  # one number per member
DST = 1 << 8  # length, little-endian bit set
EXT = 1 << 9  # length, bytes
URGENT = 1 << 10
BARE = 1 << 11
PARTIAL = 1 << 12
COUNT = 1 << 13  # messages in the body, if not one
LENT = 1 << 14  # another member sends it in place of its sender, which is gone
COVERED = 1 << 15  # the checksum follows the body and covers it, too

Covers = Literal["nothing", "header", "all"]
"""The part of a packet that its checksum covers; "nothing": there is no checksum."""

CHECK = Struct("<I")
RIGHT = 0x2144DF1C
"""The CRC-32 of any bytes followed by their own CRC-32."""

GATHERED_FROM = 16 * 1024
"""Bodies of at least this size are not copied behind their headers: the socket gathers both."""

OUTSIDE = 0
"""The view number of packets that belong to no view: greetings, goodbyes, and packets of processes that are not members yet."""

INDEX_MAX = 1 << 16
MESSAGES_MAX = 1 << 16
"""The most messages in one packet."""
COUNT_MAX = (1 << 31) - 1
"""The largest `seq`, and so the largest entry of a vector: the largest that a trace can hold."""
FRAGMENTS_MAX = 1 << 20


def group_id(name: str) -> int:
    """The number by which packets of a group are told from those of other groups."""
    return crc32(name.encode())


def view_tag(identity: str, view: View) -> int:
    """The tag of packets of a view: in a first view with listed members the group's id, in every other a hash that identifies the
    view, so that no packet of one part of a group is misread in another part."""
    return group_id(f"{identity}\n{view.text}" if view.attempt else identity)


def encode(
    packet: Packet, group: int, *, bare: bool = False, covers: Covers = "all"
) -> Buffer | list[Buffer]:
    """The packet's bytes; `bare` leaves out the body, for members to whom it is not addressed."""
    sections = 0
    out = bytearray(20)
    put = varint.put
    if packet.seq:
        sections |= SEQ
        put(out, packet.seq)
    if packet.stamp is not None:
        sections |= STAMP
        put(out, packet.stamp.height)
        put_changes(out, packet.stamp.delta)
    if packet.lsn:
        sections |= LSN
        put(out, packet.lsn)
    if packet.ack is not None:
        sections |= ACK
        put_vector(out, packet.ack)
    if packet.room is not None:
        sections |= ROOM
        put_vector(out, packet.room)
    if packet.runs is not None:
        sections |= RUNS
        put_runs(out, packet.runs)
    if packet.frag is not None:
        sections |= FRAG
        put(out, packet.frag[0])
        put(out, packet.frag[1])
    if packet.trace is not None:
        sections |= TRACE
        put_vector(out, packet.trace)
    if packet.dst is not None:
        sections |= DST
        size = (packet.dst.bit_length() + 7) // 8
        put(out, size)
        out += packet.dst.to_bytes(size, "little")
    if packet.ext is not None:
        sections |= EXT
        put(out, len(packet.ext))
        out += packet.ext
    if packet.count != 1:
        sections |= COUNT
        put(out, packet.count)
    if packet.urgent:
        sections |= URGENT
    if packet.partial:
        sections |= PARTIAL
    if packet.lent:
        sections |= LENT
    body: Buffer = packet.body
    if bare or packet.bare:
        sections |= BARE
        body = b""
    is_covered = covers == "all"
    if is_covered:
        sections |= COVERED
    HEAD.pack_into(out, 0, MAGIC, VERSION, packet.kind, group, sections, packet.src, packet.view, len(body))
    if covers == "header":
        out += CHECK.pack(crc32(out))
    if len(body) >= GATHERED_FROM:
        return [out, body, CHECK.pack(crc32(body, crc32(out)))] if is_covered else [out, body]
    out += body
    if is_covered:
        out += CHECK.pack(crc32(out))
    return out


def decode(
    data: Buffer, group: int, sizes: Mapping[int, int], me: int, *, checked: bool = True
) -> Packet | None:
    """The packet in a datagram, its body borrowed from `data`. None: it is our own packet, looped back by the network.

    `sizes` has the number of members of each view in force. `checked`: packets have checksums. An invalid datagram raises WireError
    with the reason: truncated, foreign, sealed, version, check, group, view, stranger, malformed, length.
    """
    if len(data) < 20:
        raise WireError("truncated", f"{len(data)} bytes are no packet")
    magic, version, kind, group_, sections, src, view, size = HEAD.unpack_from(data)
    if magic != MAGIC:
        if magic == SEALED_MAGIC:
            raise WireError("sealed", "a datagram of a secured group")
        raise WireError("foreign", "not an inga packet")
    if version != VERSION:
        raise WireError("version", f"version {version}")
    if checked and crc32(data if sections & COVERED else data[: len(data) - size]) != RIGHT:
        raise WireError("check", "bits have changed on the way")
    if group_ != group:
        raise WireError("group", "a packet of another group")
    members = sizes.get(view)
    if members is None:
        raise WireError("view", f"a packet of view {view}")
    if src == me:
        return None
    if src >= members:
        raise WireError("stranger", f"source {src} of {members} members")
    packet = Packet(src, view, b"", None, kind)
    at = _get_sections(packet, sections, data, members) if sections else 20
    if checked and not sections & COVERED:
        at += 4
    end = at + size
    if end + (4 if checked and sections & COVERED else 0) != len(data):
        raise WireError("length", f"{len(data)} bytes, with a body of {size} from {at} on")
    if packet.bare and (size or packet.dst is None or (packet.dst >> me & 1 and not packet.lent)):
        raise WireError("malformed", "a bare header for one who gets the body")
    if size:
        packet.body = memoryview(data)[at:end] if size > 64 else bytes(data[at:end])
    return packet


def reseal(data: bytearray) -> None:
    """Give a packet whose bytes were changed a valid checksum: for tests, and for simulated attackers."""
    *_, sections, _, _, size = HEAD.unpack_from(data)
    end = len(data) - 4 - (0 if sections & COVERED else size)
    CHECK.pack_into(data, end, crc32(memoryview(data)[:end]))


def view_of(data: Buffer) -> int:
    """The number of the view in which a packet was sent. Only for datagrams with a whole head, as `decode` has checked."""
    view: int = HEAD.unpack_from(data)[6]
    return view


def tag_of(data: Buffer) -> int:
    """The tag of a packet; the same restriction as for `view_of`."""
    tag: int = HEAD.unpack_from(data)[3]
    return tag


def source_of(data: Buffer) -> int:
    """The index of a packet's sender; the same restriction as for `view_of`."""
    source: int = HEAD.unpack_from(data)[5]
    return source


def kind_of(data: Buffer, group: int) -> int | None:
    """The kind of a packet with the tag `group`; None for all other datagrams."""
    if len(data) < 20:
        return None
    magic, version, kind, group_, *_ = HEAD.unpack_from(data)
    return kind if (magic, version, group_) == (MAGIC, VERSION, group) else None


def _get_sections(packet: Packet, sections: int, data: Buffer, members: int) -> int:
    get = varint.get
    at = 20
    if sections & SEQ:
        packet.seq, at = get(data, at)
        if not 0 < packet.seq <= COUNT_MAX:
            raise WireError("malformed", f"seq {packet.seq}")
    if sections & STAMP:
        height, at = get(data, at)
        delta, at = get_changes(data, at, packet.src, members)
        packet.stamp = Stamp(delta, height)
    if sections & LSN:
        packet.lsn, at = get(data, at)
    if sections & ACK:
        packet.ack, at = get_vector(data, at, members)
    if sections & ROOM:
        packet.room, at = get_vector(data, at, members)
    if sections & RUNS:
        packet.runs, at = get_runs(data, at)
    if sections & FRAG:
        index, at = get(data, at)
        count, at = get(data, at)
        if not 0 <= index < count <= FRAGMENTS_MAX or count < 2:
            raise WireError("malformed", f"fragment {index} of {count}")
        packet.frag = (index, count)
    if sections & TRACE:
        packet.trace, at = get_vector(data, at, members)
        if max(packet.trace) > COUNT_MAX:
            raise WireError("malformed", f"a vector that counts to {max(packet.trace)}")
    if sections & DST:
        size, at = get(data, at)
        if size > (members + 7) // 8 or at + size > len(data):
            raise WireError("malformed", "a destination set larger than the view")
        packet.dst = int.from_bytes(data[at : at + size], "little")
        if packet.dst >> members:
            raise WireError("malformed", "a destination that is no member")
        at += size
    if sections & EXT:
        size, at = get(data, at)
        if at + size > len(data):
            raise WireError("truncated", "in an extension")
        packet.ext = bytes(data[at : at + size])
        at += size
    if sections & COUNT:
        packet.count, at = get(data, at)
        if packet.count > MESSAGES_MAX or packet.count == 1:
            raise WireError("malformed", f"{packet.count} messages")
    packet.urgent = bool(sections & URGENT)
    packet.partial = bool(sections & PARTIAL)
    packet.bare = bool(sections & BARE)
    packet.lent = bool(sections & LENT)
    return at
