"""Capture files: reads the UDP datagrams and TCP segments of one, and writes datagrams to one.

Two formats are read, pcap and pcapng, of the usual link layers: Ethernet (with VLAN tags),
Linux cooked captures, loopback, and bare IP. What is written is pcap with Ethernet frames, which every program can read.

    pcap     24 octets header, then per frame: seconds, fraction, octets kept, octets on the wire; the octets
    pcapng   blocks: type, length, contents, length again; a section block says the byte order, interface
             blocks the link layer and the unit of time, packet blocks hold the frames

A datagram that IP cut into fragments is joined again, if all of them were captured.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from struct import Struct, unpack_from
from struct import error as StructError
from typing import Final, NamedTuple

from inga.model.errors import WireError
from inga.model.packet import Buffer

SocketAddress = tuple[str, int]

ETHERNET, COOKED, COOKED_2 = 1, 113, 276
_NULL, _LOOP = 0, 108
_BARE: Final = frozenset((12, 14, 101, 228, 229))
"""Link layers whose frames begin with the IP header; BSD and Linux number them differently."""
LINKS: Final = _BARE | {_NULL, _LOOP, ETHERNET, COOKED, COOKED_2}
"""The link layers that are read."""

_ETHER_IPV4, _ETHER_IPV6 = 0x0800, 0x86DD
_ETHER_VLAN: Final = frozenset((0x8100, 0x88A8, 0x9100))
_TCP, _UDP, _FRAGMENT = 6, 17, 44
_SYN = 0x02
_SKIPPED_HEADERS: Final = frozenset((0, 43, 60))
"""IPv6 headers between the address and UDP: hop by hop, routing, destination."""

FRAME_MAX = 1 << 18
"""Octets of a frame, the limit of other readers, too: a larger length means that the file is damaged."""
JOINED_MAX = 256
"""Fragmented datagrams that are incomplete at the same time; beyond, the oldest is dropped."""

_PCAP_ORDERS = {b"\xa1\xb2\xc3\xd4": (">", 1e6), b"\xd4\xc3\xb2\xa1": ("<", 1e6)} | {
    b"\xa1\xb2\x3c\x4d": (">", 1e9),
    b"\x4d\x3c\xb2\xa1": ("<", 1e9),
}
_SECTION = 0x0A0D0D0A
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_RESOLUTION, _OFFSET = 9, 14


class CapturedFrame(NamedTuple):
    """A captured frame; `is_cut` says that the capture lacks the end of it."""

    number: int
    at: float
    link: int
    octets: Buffer
    is_cut: bool


class UdpDatagram(NamedTuple):
    """A UDP datagram; `frame` is the number of the (last) frame that carried it, from 1."""

    frame: int
    at: float
    source: SocketAddress
    target: SocketAddress
    payload: Buffer
    is_cut: bool


class TcpSegment(NamedTuple):
    """A TCP segment; `sequence` is the number of its first octet, `begins` says that a stream begins (SYN)."""

    frame: int
    at: float
    source: SocketAddress
    target: SocketAddress
    sequence: int
    begins: bool
    payload: Buffer
    is_cut: bool


class UnreadFrame(NamedTuple):
    """A frame of an unknown link layer; `link` is its number in the registry of tcpdump."""

    frame: int
    link: int


class _Packet(NamedTuple):
    """An IP packet: its contents, and the fields of its header that are needed."""

    source: str
    target: str
    protocol: int
    contents: Buffer
    is_cut: bool
    piece: tuple[int, int, bool] | None
    """Of a fragment: identification, offset, and whether more follow; None for a whole packet."""


# Reading


def packets(data: Buffer) -> Iterator[UdpDatagram | TcpSegment | UnreadFrame]:
    """The UDP datagrams and TCP segments of a capture file, in its order, and its frames of unknown link layers.

    Other frames are skipped. A file that is no capture, or ends within a frame, raises WireError("capture")
    once everything before is read.
    """
    joiner = _Joiner()
    for frame in frames(data):
        if frame.link not in LINKS:
            yield UnreadFrame(frame.number, frame.link)
            continue
        try:
            packet = _ip(_network(frame), frame.is_cut)
            if packet is not None and packet.piece is not None:
                packet = joiner.join(packet)
            if packet is not None and packet.protocol in _TRANSPORTS:
                yield _TRANSPORTS[packet.protocol](frame, packet)
        except (IndexError, StructError):
            continue  # Not IP, or shorter than its headers say.


def datagrams(data: Buffer) -> Iterator[UdpDatagram]:
    """The UDP datagrams alone."""
    return (each for each in packets(data) if isinstance(each, UdpDatagram))


def _datagram(frame: CapturedFrame, packet: _Packet) -> UdpDatagram:
    source, target, length, _ = unpack_from(">HHHH", packet.contents)
    payload = packet.contents[8 : length if length >= 8 else None]
    is_cut = packet.is_cut and len(payload) < length - 8
    return UdpDatagram(
        frame.number, frame.at, (packet.source, source), (packet.target, target), payload, is_cut
    )


def _segment(frame: CapturedFrame, packet: _Packet) -> TcpSegment:
    source, target, sequence, _, offset, flags = unpack_from(">HHIIBB", packet.contents)
    return TcpSegment(
        frame.number,
        frame.at,
        (packet.source, source),
        (packet.target, target),
        sequence,
        bool(flags & _SYN),
        packet.contents[(offset >> 4) * 4 :],
        packet.is_cut,
    )


_TRANSPORTS: Final[dict[int, Callable[[CapturedFrame, _Packet], UdpDatagram | TcpSegment]]] = {
    _UDP: _datagram,
    _TCP: _segment,
}


def frames(data: Buffer) -> Iterator[CapturedFrame]:
    """The frames of a capture file of either format."""
    view = memoryview(data)
    magic = bytes(view[:4])
    if magic in _PCAP_ORDERS:
        return _pcap(view, *_PCAP_ORDERS[magic])
    if magic == b"\x0a\x0d\x0d\x0a":
        return _pcapng(view)
    raise WireError("capture", "this is no capture file: neither pcap nor pcapng")


def _pcap(view: memoryview, order: str, units: float) -> Iterator[CapturedFrame]:
    if len(view) < 24:
        raise _ends("in its header")
    link = unpack_from(order + "I", view, 20)[0] & 0xFFFF
    head = Struct(order + "IIII")
    at, number = 24, 0
    while at < len(view):
        number += 1
        if at + 16 > len(view):
            raise _ends(f"in frame {number}")
        seconds, fraction, kept, size = head.unpack_from(view, at)
        at += 16
        if kept > FRAME_MAX:
            raise WireError("capture", f"frame {number} says it has {kept} octets: the file is damaged")
        if at + kept > len(view):
            raise _ends(f"in frame {number}")
        yield CapturedFrame(number, seconds + fraction / units, link, view[at : at + kept], kept < size)
        at += kept


def _pcapng(view: memoryview) -> Iterator[CapturedFrame]:
    order = ""
    links: list[tuple[int, int, float, int]] = []
    at = number = 0
    while at < len(view):
        if at + 12 > len(view):
            raise _ends("in a block")
        if bytes(view[at : at + 4]) == b"\x0a\x0d\x0d\x0a":
            order = _section_order(view, at)
            links = []
        kind, length = unpack_from(order + "II", view, at)
        if length < 12 or length % 4:
            raise WireError("capture", f"a block says it has {length} octets: the file is damaged")
        if at + length > len(view):
            raise _ends("in a block")
        block = view[at + 8 : at + length - 4]
        at += length
        if kind == _INTERFACE:
            links.append(_interface(block, order))
        elif kind in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
            number += 1
            yield _packet_block(block, kind, order, links, number)


def _section_order(view: memoryview, at: int) -> str:
    magic = bytes(view[at + 8 : at + 12])
    if magic not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
        raise WireError("capture", "the section header of this pcapng file is damaged")
    return ">" if magic[0] == 0x1A else "<"


def _interface(block: memoryview, order: str) -> tuple[int, int, float, int]:
    """Link layer, octets kept of a frame, units in a second, seconds to add."""
    if len(block) < 8:
        raise _ends("in an interface block")
    link, _, kept = unpack_from(order + "HHI", block)
    units, offset = 1e6, 0
    at = 8
    while at + 4 <= len(block):
        code, size = unpack_from(order + "HH", block, at)
        value = block[at + 4 : at + 4 + size]
        if code == 0 or len(value) < size:
            break
        if code == _RESOLUTION and size:
            units = 2.0 ** (value[0] & 127) if value[0] & 128 else 10.0 ** value[0]
        elif code == _OFFSET and size == 8:
            offset = unpack_from(order + "q", value)[0]
        at += 4 + size + -size % 4
    return link, kept, units, offset


def _packet_block(
    block: memoryview, kind: int, order: str, links: list[tuple[int, int, float, int]], number: int
) -> CapturedFrame:
    try:
        if kind == _SIMPLE_PACKET:
            which, high, low, start = 0, 0, 0, 4
            size = unpack_from(order + "I", block)[0]
            kept = min(size, links[0][1] or size, len(block) - 4)
        elif kind == _PACKET:
            which, high, low, kept, size = unpack_from(order + "IIIII", block)
            start = 20
        else:
            which, _, high, low, kept, size = unpack_from(order + "HHIIII", block)
            start = 20
        link, _, units, offset = links[which]
    except (IndexError, StructError):
        raise WireError("capture", f"frame {number} names no interface: the file is damaged") from None
    if start + kept > len(block):
        raise WireError("capture", f"frame {number} is longer than its block: the file is damaged")
    return CapturedFrame(
        number, (high << 32 | low) / units + offset, link, block[start : start + kept], kept < size
    )


def _ends(where: str) -> WireError:
    return WireError("capture", f"the file ends {where}: the capture was cut short")


# Link layers and IP


def _network(frame: CapturedFrame) -> Buffer:
    """The IP packet in a frame; empty if the frame carries something else."""
    octets, link = frame.octets, frame.link
    if link in _BARE:
        return octets
    if link in (_NULL, _LOOP):
        return octets[4:]
    if link == ETHERNET:
        at = 12
        while (kind := _u16(octets, at)) in _ETHER_VLAN:
            at += 4
        at += 2
    elif link == COOKED:
        kind, at = _u16(octets, 14), 16
    else:
        assert link == COOKED_2
        kind, at = _u16(octets, 0), 20
    return octets[at:] if kind in (_ETHER_IPV4, _ETHER_IPV6) else b""


def _ip(octets: Buffer, is_cut: bool) -> _Packet | None:
    if not len(octets):
        return None
    return _ipv4(octets, is_cut) if octets[0] >> 4 == 4 else _ipv6(octets, is_cut)


def _ipv4(octets: Buffer, is_cut: bool) -> _Packet | None:
    header, total = (octets[0] & 15) * 4, _u16(octets, 2)
    if header < 20 or len(octets) < header:
        return None
    # Length 0: the network card fills it in, after the packet was captured.
    contents = octets[header : total or None]
    placed = _u16(octets, 6)
    piece = None
    if placed & 0x3FFF:
        piece = _u16(octets, 4), (placed & 0x1FFF) * 8, bool(placed & 0x2000)
    source, target = (".".join(map(str, octets[at : at + 4])) for at in (12, 16))
    return _Packet(source, target, octets[9], contents, is_cut, piece)


def _ipv6(octets: Buffer, is_cut: bool) -> _Packet | None:
    if octets[0] >> 4 != 6 or len(octets) < 40:
        return None
    kind, at = octets[6], 40
    piece = None
    end = 40 + _u16(octets, 4)
    while kind in _SKIPPED_HEADERS or kind == _FRAGMENT:
        following = octets[at]
        if kind == _FRAGMENT:
            placed, name = unpack_from(">HI", bytes(octets[at + 2 : at + 8]).ljust(6, b"\0"))
            piece = name, placed & 0xFFF8, bool(placed & 1)
            at += 8
        else:
            at += (octets[at + 1] + 1) * 8
        kind = following
    source, target = (str(IPv6Address(bytes(octets[start : start + 16]))) for start in (8, 24))
    return _Packet(source, target, kind, octets[at:end], is_cut, piece)


@dataclass(slots=True)
class _Pieces:
    """The fragments of one datagram."""

    seen: dict[int, tuple[Buffer, bool]] = field(
        default_factory=dict
    )  # by offset: contents, and whether more follow
    whole: list[Buffer] = field(default_factory=list)  # contents without a gap, from the beginning
    end: int = 0  # octets in these


class _Joiner:
    """Joins fragments to datagrams."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, int, int], _Pieces] = {}

    def join(self, packet: _Packet) -> _Packet | None:
        """Add a fragment; return the whole packet if it is complete now. Each fragment is appended once, however many there are."""
        assert packet.piece is not None
        name, offset, more = packet.piece
        key = packet.source, packet.target, packet.protocol, name
        pieces = self._open.setdefault(key, _Pieces())
        piece = packet.contents, more
        if (
            pieces.seen.setdefault(offset, piece) != piece
        ):  # another datagram with the same identification: these are reused
            pieces = self._open[key] = _Pieces({offset: piece})
        if len(self._open) > JOINED_MAX:
            del self._open[next(iter(self._open))]
        while (found := pieces.seen.get(pieces.end)) is not None:
            contents, more = found
            pieces.whole.append(contents)
            pieces.end += len(contents)
            if not more:
                self._open.pop(key, None)
                return packet._replace(contents=b"".join(pieces.whole), piece=None)
            if not len(contents):
                break
        return None


def _u16(octets: Buffer, at: int) -> int:
    return octets[at] << 8 | octets[at + 1]


# Writing

HEADER = Struct("<IHHiIII").pack(0xA1B2C3D4, 2, 4, 0, 0, FRAME_MAX, ETHERNET)
"""The beginning of a capture file: little-endian, microseconds, Ethernet."""

_HARDWARE = bytes.fromhex("020000000001")


def record(at: float, source: SocketAddress, target: SocketAddress, payload: Buffer) -> bytes:
    """The record of one datagram, to follow the header: an Ethernet frame, with checksums."""
    sender, receiver = ip_address(source[0]), ip_address(target[0])
    if sender.version != receiver.version:
        raise ValueError(f"{source[0]} cannot send to {target[0]}")
    udp = _udp(sender.packed, receiver.packed, source[1], target[1], bytes(payload))
    if sender.version == 4:
        kind = _ETHER_IPV4
        ip = Struct(">BBHHHBBH4s4s").pack(
            0x45, 0, 20 + len(udp), 0, 0x4000, 1, _UDP, 0, sender.packed, receiver.packed
        )
        ip = ip[:10] + _checksum(ip).to_bytes(2) + ip[12:]
        group = bytes.fromhex("01005e") + bytes((receiver.packed[1] & 127,)) + receiver.packed[2:]
    else:
        kind = _ETHER_IPV6
        ip = Struct(">IHBB16s16s").pack(6 << 28, len(udp), _UDP, 1, sender.packed, receiver.packed)
        group = bytes.fromhex("3333") + receiver.packed[-4:]
    hardware = group if receiver.is_multicast else _HARDWARE
    frame = hardware + _HARDWARE + kind.to_bytes(2) + ip + udp
    microseconds = round(at * 1e6)
    head = Struct("<IIII").pack(*divmod(microseconds, 1_000_000), len(frame), len(frame))
    return head + frame


def _udp(sender: bytes, receiver: bytes, source: int, target: int, payload: bytes) -> bytes:
    length = 8 + len(payload)
    head = Struct(">HHH").pack(source, target, length & 0xFFFF)
    pseudo = sender + receiver + length.to_bytes(4) + _UDP.to_bytes(4)
    checksum = _checksum(pseudo + head + bytes(2) + payload) or 0xFFFF
    return head + checksum.to_bytes(2) + payload


def _checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total: int = sum(unpack_from(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
