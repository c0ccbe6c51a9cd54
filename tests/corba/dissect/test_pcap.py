"""Capture files: both formats, every link layer, datagrams in pieces, and files that are none."""

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.dissect.pcap import (
    COOKED,
    COOKED_2,
    ETHERNET,
    FRAME_MAX,
    HEADER,
    UdpDatagram,
    UnreadFrame,
    datagrams,
    packets,
    record,
)
from inga.model.errors import WireError

SOURCE, TARGET = ("127.0.0.1", 40000), ("225.6.7.8", 12345)
SOURCE6, TARGET6 = ("::1", 40000), ("ff01::10", 12345)


def ethernet(
    payload: bytes = b"hello", source: tuple[str, int] = SOURCE, target: tuple[str, int] = TARGET
) -> bytes:
    """An Ethernet frame, without the record before it."""
    return record(0, source, target, payload)[16:]


def ip(
    payload: bytes = b"hello", source: tuple[str, int] = SOURCE, target: tuple[str, int] = TARGET
) -> bytes:
    return ethernet(payload, source, target)[14:]


def pcap(*frames: bytes, link: int = ETHERNET, order: str = "<", nanoseconds: bool = False) -> bytes:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for number, frame in enumerate(frames):
        out += struct.pack(order + "IIII", number, 500, len(frame), len(frame)) + frame
    return out


def block(kind: int, contents: bytes, order: str = "<") -> bytes:
    contents += bytes(-len(contents) % 4)
    length = struct.pack(order + "I", len(contents) + 12)
    return struct.pack(order + "I", kind) + length + contents + length


def pcapng(*blocks: bytes, order: str = "<", link: int = ETHERNET, options: bytes = b"") -> bytes:
    section = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    interface = block(1, struct.pack(order + "HHI", link, 0, 0) + options, order)
    return section + interface + b"".join(blocks)


def enhanced(frame: bytes, at: int = 0, order: str = "<", interface: int = 0) -> bytes:
    head = struct.pack(order + "IIIII", interface, at >> 32, at & 0xFFFFFFFF, len(frame), len(frame))
    return block(6, head + frame + bytes(-len(frame) % 4), order)


def only(data: bytes) -> UdpDatagram:
    (found,) = datagrams(data)
    return found


# Our own


def test_what_is_written_is_read() -> None:
    data = HEADER + record(1.5, SOURCE, TARGET, b"one") + record(2.25, SOURCE6, TARGET6, b"")
    assert list(datagrams(data)) == [
        UdpDatagram(1, 1.5, SOURCE, TARGET, b"one", False),
        UdpDatagram(2, 2.25, SOURCE6, TARGET6, b"", False),
    ]


@given(st.binary(max_size=2000), st.integers(1, 65535), st.integers(0, 2**32 - 1), st.booleans())
def test_any_payload_is_read_again(payload: bytes, port: int, microseconds: int, six: bool) -> None:
    source, target = (("fe80::1", port), TARGET6) if six else (("10.1.2.3", port), ("10.3.2.1", 9))
    found = only(HEADER + record(microseconds / 1e6, source, target, payload))
    assert (found.source, found.target, found.payload) == (source, target, payload)
    assert found.at == pytest.approx(microseconds / 1e6, abs=1e-6)


def ones_complement(data: bytes) -> int:
    words = struct.unpack(f">{len(data) // 2}H", data + bytes(len(data) % 2))
    total = sum(words)
    return (total & 0xFFFF) + (total >> 16)


@pytest.mark.parametrize("payload", [b"", b"odd", b"even"])
def test_checksums(payload: bytes) -> None:
    """A header with its own checksum sums up to all ones."""
    header, udp = ip(payload)[:20], ip(payload)[20:]
    assert ones_complement(header) == 0xFFFF
    pseudo = header[12:20] + struct.pack(">HH", 17, len(udp))
    assert ones_complement(pseudo + udp + bytes(len(udp) % 2)) == 0xFFFF


def test_multicast_has_a_hardware_address_of_its_own() -> None:
    assert ethernet()[:6].hex() == "01005e060708"
    assert ethernet(target=("239.255.1.2", 1))[:6].hex() == "01005e7f0102"
    assert ethernet(source=SOURCE6, target=TARGET6)[:6].hex() == "333300000010"
    with pytest.raises(ValueError, match="cannot send to"):
        record(0, SOURCE, TARGET6, b"")


# Others'


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_in_either_byte_order(order: str, nanoseconds: bool) -> None:
    first, second = datagrams(pcap(ethernet(), ethernet(b"two"), order=order, nanoseconds=nanoseconds))
    assert (first.payload, second.payload) == (b"hello", b"two")
    assert second.at == pytest.approx(1 + 500 / (1e9 if nanoseconds else 1e6), abs=1e-10)


def vlan(frame: bytes, tags: int = 1) -> bytes:
    return frame[:12] + b"\x81\x00\x00\x05" * tags + frame[12:]


LINKS = {
    "ethernet": (ETHERNET, ethernet()),
    "vlan": (ETHERNET, vlan(ethernet())),
    "two vlans": (ETHERNET, vlan(ethernet(), 2)),
    "padded": (ETHERNET, ethernet() + bytes(13)),
    "cooked": (COOKED, bytes(14) + b"\x08\x00" + ip()),
    "cooked 2": (COOKED_2, b"\x08\x00" + bytes(18) + ip()),
    "raw": (101, ip()),
    "raw 4": (228, ip()),
    "loopback": (0, b"\2\0\0\0" + ip()),
    "openbsd loopback": (108, b"\0\0\0\2" + ip()),
}


@pytest.mark.parametrize("name", LINKS)
def test_link_layers(name: str) -> None:
    link, frame = LINKS[name]
    for data in (pcap(frame, link=link), pcapng(enhanced(frame), link=link)):
        found = only(data)
        assert (found.source, found.target, found.payload) == (SOURCE, TARGET, b"hello")


@pytest.mark.parametrize("link, before", [(ETHERNET, None), (COOKED, bytes(14) + b"\x86\xdd"), (229, b"")])
def test_link_layers_with_ipv6(link: int, before: bytes | None) -> None:
    whole = ethernet(source=SOURCE6, target=TARGET6)
    frame = whole if before is None else before + whole[14:]
    assert only(pcap(frame, link=link)).target == TARGET6


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng(order: str) -> None:
    found = only(pcapng(enhanced(ethernet(), 3_000_001, order), order=order))
    assert (found.frame, found.payload) == (1, b"hello")
    assert found.at == pytest.approx(3.000001, abs=1e-9)


def test_pcapng_blocks_of_other_kinds_and_of_old() -> None:
    simple = block(3, struct.pack("<I", len(ethernet())) + ethernet())
    old = block(2, struct.pack("<HHIIII", 0, 0, 0, 7, len(ethernet()), len(ethernet())) + ethernet())
    unknown = block(0x40000BAD, b"whatever")
    found = list(datagrams(pcapng(unknown, simple, old, unknown)))
    assert [each.frame for each in found] == [1, 2]
    assert {each.payload.tobytes() for each in found if isinstance(each.payload, memoryview)} == {b"hello"}


def test_pcapng_with_its_own_units_of_time_and_two_sections() -> None:
    resolution = struct.pack("<HHB3x", 9, 1, 9) + struct.pack("<HHq", 14, 8, 100) + bytes(4)
    powers = struct.pack("<HHB3x", 9, 1, 0x80 | 10)
    data = pcapng(enhanced(ethernet(), 5_000_000_000), options=resolution) + pcapng(
        enhanced(ethernet(), 2048, ">"), options=powers.replace(b"\x09\0\1\0", b"\0\x09\0\1"), order=">"
    )
    assert [each.at for each in datagrams(data)] == [105.0, 2.0]


def test_what_comes_after_the_end_of_options_is_none() -> None:
    end, resolution = struct.pack("<HH", 0, 0), struct.pack("<HHB3x", 9, 1, 3)
    assert only(pcapng(enhanced(ethernet(), 5_000), options=resolution + end)).at == 5.0
    assert only(pcapng(enhanced(ethernet(), 5_000), options=end + resolution)).at == 0.005


def in_pieces(packet: bytes, size: int) -> list[bytes]:
    """An IPv4 packet as its fragments."""
    header, contents = packet[:20], packet[20:]
    pieces = []
    for at in range(0, len(contents), size):
        part = contents[at : at + size]
        more = 0x2000 if at + size < len(contents) else 0
        placed = struct.pack(">HH", 77, more | at // 8)
        pieces.append(header[:2] + struct.pack(">H", 20 + len(part)) + placed + header[8:] + part)
    return pieces


@pytest.mark.parametrize("turn", [1, -1])
def test_datagrams_that_ip_cut_are_joined(turn: int) -> None:
    payload = bytes(range(256)) * 10
    pieces = in_pieces(ip(payload), 1000)[::turn]
    found = only(pcap(*pieces, link=101))
    assert found.payload == payload and found.frame == len(pieces) == 3


@pytest.mark.parametrize("turn", [1, -1])
def test_what_was_joined_is_forgotten(turn: int) -> None:
    """Identifications come again."""
    payloads = [bytes([number]) * 2500 for number in range(3)]
    pieces = [piece for payload in payloads for piece in in_pieces(ip(payload), 1000)[::turn]]
    assert [each.payload for each in datagrams(pcap(*pieces, link=101))] == payloads


def test_datagrams_that_ipv6_cut_are_joined() -> None:
    payload = bytes(1900)
    packet = ip(payload, SOURCE6, TARGET6)
    pieces = []
    for at, more in ((0, 1), (1000, 0)):
        part = packet[40:][at : at + 1000] if more else packet[40:][at:]
        head = struct.pack(">BBHI", 17, 0, at | more, 99)
        pieces.append(packet[:4] + struct.pack(">HB", 8 + len(part), 44) + packet[7:40] + head + part)
    assert only(pcap(*pieces, link=229)).payload == payload


def test_ipv6_with_headers_in_between() -> None:
    packet = ip(b"hello", SOURCE6, TARGET6)
    hop = struct.pack(">BB6x", 17, 0)
    packet = packet[:4] + struct.pack(">HB", len(packet) - 40 + 8, 0) + packet[7:40] + hop + packet[40:]
    assert only(pcap(packet, link=229)).payload == b"hello"


def test_a_missing_piece_is_not_made_up() -> None:
    pieces = in_pieces(ip(bytes(3000)), 1000)
    assert not list(datagrams(pcap(*pieces[1:], *pieces[1:], link=101)))


def test_what_is_not_udp_is_passed_over() -> None:
    tcp = bytearray(ip())
    tcp[9] = 6
    arp = ethernet()[:12] + b"\x08\x06" + bytes(28)
    frames = [bytes(tcp), b"", b"\x45", b"\x60", ip()[:25], b"\x95" + ip()[1:], b"\x41" + ip()[1:]]
    assert not list(datagrams(pcap(*frames, link=101)))
    assert not list(datagrams(pcap(arp, b"", bytes(13))))
    assert not list(datagrams(pcap(ip(), link=147)))
    assert list(packets(pcap(ip(), ip(), link=147))) == [UnreadFrame(1, 147), UnreadFrame(2, 147)]


@pytest.mark.parametrize(
    ("captured", "padding", "promised", "is_cut"),
    [
        (60, 0, 100, True),
        (141, 0, 100, True),
        (142, 0, 100, False),
        (150, 20, 100, False),  # only padding is missing
        (142, 0, 200, False),  # whole, and its sender does not tell the truth
        (150, 20, 200, True),  # who knows
    ],
)
def test_a_frame_that_was_not_captured_whole(
    captured: int, padding: int, promised: int, is_cut: bool
) -> None:
    frame = bytearray(ethernet(bytes(100)) + bytes(padding))
    frame[38:40] = (8 + promised).to_bytes(2)
    found = only(HEADER + struct.pack("<IIII", 0, 0, captured, len(frame)) + frame[:captured])
    assert found.is_cut is is_cut and len(found.payload) == min(captured, 142) - 42


# No captures


@pytest.mark.parametrize(
    "data, why",
    [
        (b"", "no capture file"),
        (b"GIF89a and more", "no capture file"),
        (HEADER[:20], "ends in its header"),
        (HEADER + bytes(10), "ends in frame 1"),
        (pcap(ethernet(), ethernet())[:-1], "ends in frame 2"),
        (HEADER + struct.pack("<IIII", 0, 0, FRAME_MAX + 1, FRAME_MAX + 1), "damaged"),
        (pcapng()[:20], "ends in a block"),
        (pcapng(enhanced(ethernet()))[:-5], "ends in a block"),
        (pcapng(b"\x06\0\0\0\x0d\0\0\0" + bytes(20)), "damaged"),
        (pcapng(block(1, bytes(4))), "ends in an interface block"),
        (pcapng(enhanced(ethernet(), interface=4)), "names no interface"),
        (pcapng(block(6, bytes(8))), "names no interface"),
        (pcapng(block(6, struct.pack("<IIIII", 0, 0, 0, 500, 500))), "longer than its block"),
        (b"\x0a\x0d\x0d\x0a\x1c\0\0\0zzzz" + bytes(16), "section header"),
    ],
)
def test_files_that_are_no_captures_or_damaged(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why) as caught:
        list(datagrams(data))
    assert caught.value.reason == "capture"


WHOLE = [pcap(ethernet(), ip()), pcapng(enhanced(ethernet()), options=struct.pack("<HHB3x", 9, 1, 9))]


@pytest.mark.parametrize("data", WHOLE, ids=["pcap", "pcapng"])
def test_every_truncation_and_changed_octet_is_read_or_refused(data: bytes) -> None:
    variants = [data[:size] for size in range(len(data))]
    for at in range(len(data)):
        variants += (data[:at] + bytes((octet,)) + data[at + 1 :] for octet in (0, 1, 0x45, 0x7F, 0x80, 0xFF))
    for variant in variants:
        try:
            list(datagrams(variant))
        except WireError as error:
            assert error.reason == "capture"


@given(
    st.sampled_from([b"", HEADER, pcapng()]), st.binary(max_size=200), st.sampled_from([0, 1, 101, 113, 276])
)
def test_any_octets(before: bytes, octets: bytes, link: int) -> None:
    for data in (before + octets, pcap(octets, link=link)):
        try:
            for found in datagrams(data):
                ip_address(found.source[0])
        except WireError as error:
            assert error.reason == "capture"
