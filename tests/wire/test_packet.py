"""The packet encoding: golden bytes for each section, round trips, and bytes that are no packet."""

from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.model.stamp import Stamp
from inga.wire.packet import (
    COUNT_MAX,
    FRAGMENTS_MAX,
    GATHERED_FROM,
    MESSAGES_MAX,
    Covers,
    decode,
    encode,
    group_id,
)
from inga.wire.runs import RUNS_MAX

GROUP = 0x0A0B0C0D
MEMBERS = 4
ME = 3

SECTIONS = "seq stamp lsn ack room runs frag trace dst ext urgent bare lent partial count".split()


class in_any_view(dict[int, int]):
    """So many members, whatever the view."""

    def __init__(self, members: int) -> None:
        self.members = members

    def get(self, view: int, default: Any = None) -> Any:
        return self.members


def packet(src: int = 1, view: int = 1, body: bytes = b"", kind: int = 0, **sections: Any) -> Packet:
    made = Packet(src, view, body, kind=kind)
    for name, value in sections.items():
        assert name in SECTIONS
        setattr(made, name, value)
    return made


def written(made: Packet, *, bare: bool = False, covers: Covers = "nothing") -> bytes:
    data = encode(made, GROUP, bare=bare, covers=covers)
    return b"".join(data) if isinstance(data, list) else bytes(data)


def read(data: Any, members: int = MEMBERS, me: int = ME, *, checked: bool = False) -> Packet | None:
    """Without a check, so that whatever the bytes say is looked at."""
    return decode(data, GROUP, in_any_view(members), me, checked=checked)


def contents(made: Packet) -> dict[str, Any]:
    """Everything of a packet that travels."""
    names = ["src", "view", "kind", *SECTIONS]
    return {**{name: getattr(made, name) for name in names}, "body": bytes(made.body)}


# magic version kind | group | sections src | view | body length | sections in the order of their bits | body
GOLDEN = {
    "nothing": (packet(), "696e0400 0a0b0c0d 00000001 00000001 00000000"),
    "head": (
        packet(src=2, view=0x01020304, body=b"hi", kind=7),
        "696e0407 0a0b0c0d 00000002 01020304 00000002 6869",
    ),
    "seq": (packet(seq=300), "696e0400 0a0b0c0d 00010001 00000001 00000000 ac02"),
    "stamp without changes": (
        packet(seq=1, stamp=Stamp((), 1)),
        "696e0400 0a0b0c0d 00030001 00000001 00000000 01 0100",
    ),
    "stamp": (
        packet(seq=2, stamp=Stamp(((0, 3), (3, 130)), 200)),
        "696e0400 0a0b0c0d 00030001 00000001 00000000 02 c80102 0003 028201",
    ),
    "lsn": (packet(lsn=128), "696e0400 0a0b0c0d 00040001 00000001 00000000 8001"),
    "ack": (packet(ack=(0, 1, 200, 3)), "696e0400 0a0b0c0d 00080001 00000001 00000000 0001c80103"),
    "room": (packet(room=(4, 3, 2, 1)), "696e0400 0a0b0c0d 00100001 00000001 00000000 04030201"),
    "runs": (
        packet(kind=1, runs=((3, 5), (9, 10), (10, 300))),
        "696e0401 0a0b0c0d 00200001 00000001 00000000 03 0302 0401 00a202",
    ),
    "frag": (packet(frag=(1, 3), body=b"x"), "696e0400 0a0b0c0d 00400001 00000001 00000001 0103 78"),
    "trace": (packet(trace=(9, 8, 7, 6)), "696e0400 0a0b0c0d 00800001 00000001 00000000 09080706"),
    "dst": (packet(dst=0b1101), "696e0400 0a0b0c0d 01000001 00000001 00000000 010d"),
    "dst of nobody": (packet(dst=0), "696e0400 0a0b0c0d 01000001 00000001 00000000 00"),
    "ext": (packet(ext=b"abc"), "696e0400 0a0b0c0d 02000001 00000001 00000000 03616263"),
    "urgent": (packet(urgent=True), "696e0400 0a0b0c0d 04000001 00000001 00000000"),
    "bare": (packet(bare=True, dst=0b1), "696e0400 0a0b0c0d 09000001 00000001 00000000 0101"),
    "partial": (packet(partial=True), "696e0400 0a0b0c0d 10000001 00000001 00000000"),
    "count": (packet(count=300, body=b"x"), "696e0400 0a0b0c0d 20000001 00000001 00000001 ac02 78"),
    "count of a piece": (packet(count=0), "696e0400 0a0b0c0d 20000001 00000001 00000000 00"),
    "lent": (packet(seq=1, lent=True), "696e0400 0a0b0c0d 40010001 00000001 00000000 01"),
    "lent, and nobody has the body": (
        packet(lent=True, bare=True, dst=0b1001),
        "696e0400 0a0b0c0d 49000001 00000001 00000000 0109",
    ),
    "all": (
        packet(
            src=2,
            view=3,
            seq=5,
            stamp=Stamp(((1, 4),), 9),
            lsn=6,
            ack=(1, 2, 3, 4),
            room=(5, 6, 7, 8),
            runs=((1, 2),),
            frag=(0, 2),
            trace=(4, 3, 2, 1),
            dst=0b11,
            ext=b"",
            urgent=True,
            partial=True,
            lent=True,
            count=2,
            body=b"body",
        ),
        "696e0400 0a0b0c0d 77ff0002 00000003 00000004"
        " 05 09010104 06 01020304 05060708 010101 0002 04030201 0103 00 02 626f6479",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_packets(name: str) -> None:
    made, text = GOLDEN[name]
    data = bytes.fromhex(text)
    assert written(made, bare=made.bare).hex(" ", -4) == data.hex(" ", -4)
    found = read(data)
    assert found is not None
    assert contents(found) == contents(made)


@pytest.mark.parametrize("dst", [1 << MEMBERS, 0xFF, 0b10001])
def test_destinations_that_are_no_members(dst: int) -> None:
    """The octets of a set have room for more than there are members, and who answers one of these would look for it."""
    with pytest.raises(WireError, match="malformed"):
        read(written(packet(dst=dst)))


def test_a_destination_set_of_several_bytes() -> None:
    made = packet(dst=1 << 9 | 1)
    data = bytes.fromhex("696e0400 0a0b0c0d 01000001 00000001 00000000 020102")
    assert written(made) == data
    found = read(data, 12, ME)
    assert found is not None and found.dst == 1 << 9 | 1


def test_a_destination_set_has_no_more_octets_than_the_view_needs() -> None:
    data = bytes.fromhex("696e0400 0a0b0c0d 01000001 00000001 00000000 020100")
    found = read(data, 9, ME)
    assert found is not None and found.dst == 1
    with pytest.raises(WireError, match="malformed"):
        read(data, 8, ME)


@st.composite
def packets(draw: st.DrawFn) -> tuple[Packet, int, int]:
    """A packet with any of its sections, the number of members, and who reads it."""
    members = draw(st.integers(2, 40))
    src = draw(st.integers(0, members - 1))
    me = draw(st.integers(0, members - 1).filter(lambda m: m != src))
    count = st.integers(0, 2**64 - 1)
    seq = st.integers(0, COUNT_MAX)
    vector = st.tuples(*[count] * members)
    others = st.sets(st.integers(0, members - 1).filter(lambda m: m != src), max_size=members - 1)
    changes = draw(st.none() | others)
    fragments = draw(st.integers(2, FRAGMENTS_MAX))
    gaps = draw(st.none() | st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 2**40)), max_size=9))
    made = packet(
        src,
        draw(st.integers(0, 2**32 - 1)),
        draw(st.binary(max_size=200)),
        draw(st.integers(0, 255)),
        seq=draw(seq),
        stamp=None
        if changes is None
        else Stamp(tuple((k, 1 + draw(count) // 2) for k in sorted(changes)), draw(count)),
        lsn=draw(count),
        ack=draw(st.none() | vector),
        room=draw(st.none() | vector),
        runs=None if gaps is None else runs_of(gaps),
        frag=draw(st.none() | st.tuples(st.integers(0, fragments - 1), st.just(fragments))),
        trace=draw(st.none() | st.tuples(*[seq] * members)),
        dst=draw(st.none() | st.integers(0, 2**members - 1)),
        ext=draw(st.none() | st.binary(max_size=20)),
        count=draw(st.integers(0, MESSAGES_MAX)),
        urgent=draw(st.booleans()),
        partial=draw(st.booleans()),
        lent=draw(st.booleans()),
    )
    return made, members, me


def runs_of(gaps: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    runs, low = [], 0
    for gap, length in gaps:
        runs.append((low + gap, low + gap + length))
        low = runs[-1][1]
    return tuple(runs)


@given(packets(), st.booleans())
def test_round_trip(case: tuple[Packet, int, int], bare: bool) -> None:
    made, members, me = case
    if bare:
        made.dst = (made.dst or 0) & ~(1 << me)
    found = read(written(made, bare=bare), members, me)
    assert found is not None
    if bare:
        made.bare, made.body = True, b""
    assert contents(found) == contents(made)


@given(packets(), st.data())
def test_every_cut_and_every_addition_is_noticed(case: tuple[Packet, int, int], data: st.DataObject) -> None:
    made, members, me = case
    whole = written(made)
    cut = data.draw(st.integers(0, len(whole) - 1))
    for wrong in (whole[:cut], whole + data.draw(st.binary(min_size=1, max_size=9))):
        with pytest.raises(WireError):
            read(wrong, members, me)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_truncation_of_a_golden_packet_is_a_wire_error(name: str) -> None:
    data = bytes.fromhex(GOLDEN[name][1])
    for end in range(len(data)):
        with pytest.raises(WireError):
            read(memoryview(data)[:end])


@pytest.mark.parametrize("name", GOLDEN)
def test_every_changed_byte_of_a_golden_packet_is_a_wire_error_or_a_packet(name: str) -> None:
    data = bytearray.fromhex(GOLDEN[name][1])
    outcomes = {"error": 0, "packet": 0}
    for at, right in enumerate(data):
        for value in range(256):
            data[at] = value
            if value != right:
                outcomes[outcome(data)] += 1
        data[at] = right
    # Both happen, so both were looked at: a view number can be anything, a magic number cannot.
    assert outcomes["error"] >= 3 * 255
    assert outcomes["packet"] >= 4 * 255


def outcome(data: bytearray) -> str:
    try:
        found = read(data)
    except WireError:
        return "error"
    if found is not None:  # None: it claims to be our own
        assert_sound(found)
        again = read(written(found, bare=found.bare))
        assert again is not None
        assert contents(again) == contents(found)
    return "packet"


def assert_sound(found: Packet) -> None:
    """What layers rely on without looking."""
    assert 0 <= found.src < MEMBERS and found.src != ME
    for vector in (found.ack, found.room, found.trace):
        assert vector is None or len(vector) == MEMBERS
    assert max(found.seq, *(found.trace or (0,)), 0) <= COUNT_MAX, "else a trace could not hold it"
    if found.bare:
        assert not found.body and found.dst is not None and (found.lent or not found.dst >> ME & 1)
    if found.stamp is not None:
        named = [k for k, _ in found.stamp.delta]
        assert named == sorted(set(named)) and found.src not in named
        assert all(k < MEMBERS for k in named)
    assert 0 <= found.count <= MESSAGES_MAX
    if found.frag is not None:
        assert 0 <= found.frag[0] < found.frag[1] and 2 <= found.frag[1] <= FRAGMENTS_MAX
    for low, high in found.runs or ():
        assert low < high


@given(st.binary(max_size=80))
def test_any_bytes_are_a_wire_error_or_a_packet(data: bytes) -> None:
    assert outcome(bytearray(data)) in ("error", "packet")
    behind_a_good_head = bytes.fromhex("696e0400 0a0b0c0d") + data
    assert outcome(bytearray(behind_a_good_head)) in ("error", "packet")


def changed(at: int, value: int) -> bytes:
    data = bytearray(written(packet(body=b"body")))
    data[at] = value
    return bytes(data)


def sections(bits: int, rest: str) -> bytes:
    """A packet of source 1 with these section bits and bytes, whether they fit or not."""
    return bytes.fromhex(f"696e0400 0a0b0c0d {bits:04x}0001 00000001 00000000 {rest}")


@pytest.mark.parametrize(
    ("reason", "data"),
    [
        ("truncated", b""),
        ("truncated", written(packet())[:19]),
        ("foreign", changed(0, 0x49)),
        ("sealed", changed(1, 0x53)),
        ("foreign", b"GET / HTTP/1.1\r\nHost: example\r\n\r\n"),
        ("version", changed(2, 2)),
        ("group", changed(7, 0)),
        ("stranger", changed(11, MEMBERS)),
        ("malformed", sections(1 << 0, "00")),  # seq 0
        ("malformed", sections(1 << 0, "8080808008")),  # seq 2**31
        ("malformed", sections(1 << 7, "00 00 8080808008 00")),  # and a vector that names it
        ("malformed", sections(1 << 11, "")),  # a bare header of what is for everybody
        ("malformed", sections(1 << 11 | 1 << 8, "0108")),  # and of what is for us
        ("malformed", bytes.fromhex("696e0400 0a0b0c0d 09000001 00000001 00000001 0101 78")),  # with a body
        ("malformed", sections(1 << 1, "0904 0001 0001 0001 0001")),  # more changes than other members
        ("malformed", sections(1 << 1, "0901 0101")),  # a change of the sender's own count
        ("malformed", sections(1 << 1, "0901 0401")),  # a change of member 4
        ("malformed", sections(1 << 1, "0902 0001 0301")),  # and behind another
        ("malformed", sections(1 << 13, "01")),  # one message, which goes without saying
        ("malformed", sections(1 << 13, "818004")),  # 2**16 + 1 messages
        ("malformed", sections(1 << 5, "01 0300")),  # an empty run
        ("malformed", sections(1 << 5, bytes([0x81, RUNS_MAX >> 7]).hex())),  # 1025 runs
        ("malformed", sections(1 << 6, "0303")),  # fragment 3 of 3
        ("malformed", sections(1 << 6, "0001")),  # one fragment is none
        ("malformed", sections(1 << 6, "00 818040")),  # 2**20 + 1 fragments
        ("malformed", sections(1 << 8, "020101")),  # a set of 16 for 4 members
        ("malformed", sections(1 << 8, "01")),  # a set that is not there
        ("truncated", sections(1 << 9, "0461")),
        ("truncated", sections(1 << 3, "010203")),
        ("truncated", sections(1 << 2, "80")),
        ("length", changed(19, 3)),
        ("length", changed(19, 5)),
        ("length", written(packet(body=b"body")) + b"!"),
    ],
)
def test_what_is_wrong_has_a_reason(reason: str, data: bytes) -> None:
    with pytest.raises(WireError) as caught:
        read(data)
    assert caught.value.reason == reason


def test_our_own_packet_is_nobodys() -> None:
    assert read(written(packet(src=ME, seq=1, body=b"mine"))) is None


def test_groups_are_told_apart_by_name() -> None:
    assert group_id("lunch") == 0x89F10ADB
    assert group_id("lunch") != group_id("dinner")


# Borrowed memory


def test_a_body_is_borrowed_until_kept() -> None:
    buffer = bytearray(written(packet(seq=1, body=b"x" * 65)))
    found = read(memoryview(buffer))
    assert found is not None and isinstance(found.body, memoryview)
    kept = read(memoryview(buffer))
    assert kept is not None
    kept.keep()
    buffer[-65:] = b"y" * 65  # the reader's buffer is used again
    assert bytes(found.body) == b"y" * 65
    assert kept.body == b"x" * 65


def test_a_small_body_is_not_worth_borrowing() -> None:
    buffer = bytearray(written(packet(seq=1, body=b"x" * 64)))
    found = read(memoryview(buffer))
    assert found is not None
    buffer[-64:] = b"y" * 64
    assert found.body == b"x" * 64


@pytest.mark.parametrize("size", [GATHERED_FROM - 1, GATHERED_FROM])
def test_a_large_body_is_left_for_the_socket_to_gather(size: int) -> None:
    body = bytes(size)
    for covers in ("nothing", "header", "all"):
        data = encode(packet(body=body), GROUP, covers=covers)  # type: ignore[arg-type]
        assert isinstance(data, list) == (size >= GATHERED_FROM)
        if isinstance(data, list):
            assert data[1] is body
        found = read(b"".join(data) if isinstance(data, list) else data, checked=covers != "nothing")
        assert found is not None and found.body == body


# The check


@pytest.mark.parametrize(
    ("covers", "text"),
    [
        ("header", "696e0400 0a0b0c0d 00010001 00000001 00000002 05 {check} 6869"),
        ("all", "696e0400 0a0b0c0d 80010001 00000001 00000002 05 6869 {check}"),
    ],
)
def test_the_check_is_behind_what_it_covers(covers: Covers, text: str) -> None:
    covered = bytes.fromhex(text.split("{")[0])
    data = bytes.fromhex(text.format(check=crc32(covered).to_bytes(4, "little").hex()))
    made = packet(seq=5, body=b"hi")
    assert written(made, covers=covers) == data
    found = read(data, checked=True)
    assert found is not None and contents(found) == contents(made)


@pytest.mark.parametrize("covers", ["header", "all"])
@given(packets())
def test_round_trip_with_a_check(covers: Covers, case: tuple[Packet, int, int]) -> None:
    made, members, me = case
    found = read(written(made, covers=covers), members, me, checked=True)
    assert found is not None and contents(found) == contents(made)


@pytest.mark.parametrize("covers", ["header", "all"])
@pytest.mark.parametrize("name", GOLDEN)
def test_every_flipped_bit_that_is_covered_is_noticed(name: str, covers: Covers) -> None:
    made = GOLDEN[name][0]
    data = bytearray(written(made, bare=made.bare, covers=covers))
    covered = len(data) - (0 if covers == "all" or made.bare else len(made.body))
    for bit in range(8 * covered):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WireError) as caught:
            read(data, checked=True)
        assert caught.value.reason == ("foreign" if bit < 16 else "version" if bit < 24 else "check")
        data[bit // 8] ^= 1 << bit % 8


def test_a_packet_without_a_check_is_none_where_checks_are_wanted() -> None:
    with pytest.raises(WireError) as caught:
        read(written(packet(seq=1, body=b"hello")), checked=True)
    assert caught.value.reason == "check"


@pytest.mark.parametrize(
    ("of_data", "of_control"), [("urgent", "asks"), ("partial", "denies")], ids=["first", "second"]
)
def test_a_flag_has_another_name_on_packets_that_are_no_data(of_data: str, of_control: str) -> None:
    """And is the same one on the wire."""
    one, other = Packet(1, 1, kind=7), Packet(1, 1, kind=7)
    setattr(one, of_data, True)
    setattr(other, of_control, True)
    octets = b"".join(map(bytes, encode(one, GROUP)))
    assert octets == b"".join(map(bytes, encode(other, GROUP)))
    assert getattr(one, of_control) and getattr(other, of_data)
