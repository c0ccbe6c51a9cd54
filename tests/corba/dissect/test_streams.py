"""GIOP over TCP in captures: segments in any order, messages in any number of them, streams that are others'."""

import json
import struct
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.cli.main import main
from inga.corba.dissect.pcap import HEADER, SocketAddress, TcpSegment
from inga.corba.dissect.streams import EARLY_MAX, MESSAGE_MAX, STREAMS_MAX, Streams
from inga.corba.wire import giop
from inga.corba.wire.giop import CloseConnection, KeyAddr, LocateReply, Reply, Request, Status

CLIENT, SERVER = ("127.0.0.1", 50000), ("127.0.0.1", 2809)
START = 0xFFFFFFF0
"""The first octet's number: numbers begin anew soon after."""


def request(number: int, size: int = 10, *, more: bool = False) -> bytes:
    return giop.encode(Request(number, KeyAddr(b"NameService"), "list"), b"x" * size, more=more)


def segment(
    payload: bytes, at: int, frame: int = 1, *, begins: bool = False, source: SocketAddress = CLIENT
) -> TcpSegment:
    return TcpSegment(frame, 0.0, source, SERVER, (START + at) % (1 << 32), begins, payload, False)


def in_segments(octets: bytes, size: int) -> list[TcpSegment]:
    return [segment(octets[at : at + size], at, 1 + at // size) for at in range(0, len(octets), size)]


def messages(segments: list[TcpSegment], streams: Streams | None = None) -> list[bytes]:
    streams = streams or Streams()
    return [whole.octets for each in segments for whole in streams.take(each)]


MESSAGES = [request(1), request(2, 300), request(3, 0), giop.encode(CloseConnection())]
STREAM = b"".join(MESSAGES)


@pytest.mark.parametrize("size", [1, 7, 12, 64, len(STREAM)])
def test_messages_in_any_number_of_segments(size: int) -> None:
    streams = Streams()
    streams.take(segment(b"", -1, begins=True))
    assert messages(in_segments(STREAM, size), streams) == MESSAGES


@given(st.integers(12, 80), st.integers(0, 1000), st.lists(st.integers(0, 400), max_size=5))
def test_segments_in_any_order_and_sent_again(size: int, seed: int, again: list[int]) -> None:
    streams = Streams()
    streams.take(segment(b"", -1, begins=True))
    segments = in_segments(STREAM, size)
    segments += [segment(STREAM[at : at + 3 * size], at) for at in again if at < len(STREAM)]
    Random(seed).shuffle(segments)
    assert messages(segments, streams) == MESSAGES


def test_a_stream_that_was_under_way_already() -> None:
    assert messages(in_segments(STREAM, 64)) == MESSAGES
    assert messages(in_segments(STREAM, 64)[1:]) == []


def test_frames_are_those_that_carried_it() -> None:
    streams = Streams()
    found = [whole for each in in_segments(STREAM, 60) for whole in streams.take(each)]
    ends = [sum(map(len, MESSAGES[:k])) for k in range(len(MESSAGES) + 1)]
    for k, whole in enumerate(found):
        assert whole.frames == list(range(1 + ends[k] // 60, 2 + (ends[k + 1] - 1) // 60))


def test_messages_that_giop_cut() -> None:
    whole = request(7, 500)
    pieces = giop.fragments(whole, 128)
    other = request(8)
    stream = b"".join([pieces[0], other, *pieces[1:]])
    assert messages(in_segments(stream, 50)) == [other, whole]
    assert messages([segment(pieces[-1], 0)]) == [pieces[-1]]


def test_streams_of_others_are_left_alone() -> None:
    streams = Streams()
    assert not messages([segment(b"GET / HTTP/1.1", 0), segment(STREAM, 14)][:1], streams)
    streams.take(segment(b"", -1, begins=True))
    assert not messages([segment(b"SSH-2.0-OpenSSH_9.2", 0), segment(STREAM, 19)], streams)
    streams = Streams()
    assert (
        messages([segment(MESSAGES[0] + b"nonsense" * 3, 0), segment(STREAM, 200)], streams) == MESSAGES[:1]
    )


def test_what_is_too_large_or_never_comes_is_given_up() -> None:
    huge = giop.encode(CloseConnection())[:8] + struct.pack(">I", MESSAGE_MAX)
    assert not messages([segment(huge, 0), segment(STREAM, 12)])
    first, more = request(1, more=True), giop.encode(giop.GiopFragment(1), bytes(1 << 20), more=True)
    stream, at = [segment(first, 0)], len(first)
    for _ in range(18):
        stream.append(segment(more, at))
        at += len(more)
    assert not messages([*stream, segment(STREAM, at)])


def test_a_segment_that_was_not_captured_is_passed_over() -> None:
    """What waits for it begins anew where a message does: at the end, or when too much waits."""
    hole = len(MESSAGES[0])
    missing = 3 * [request(9, 100)]
    at = hole + len(b"".join(missing))
    streams = Streams()
    assert messages([segment(MESSAGES[0], 0)], streams) == MESSAGES[:1]
    later = [segment(STREAM[k : k + 50], at + k, 2 + k) for k in range(0, len(STREAM), 50)]
    assert not messages(later[1:], streams) and not messages(later[:1], streams)
    assert [whole.octets for whole in streams.flush()] == MESSAGES
    assert not streams.flush()
    streams = Streams()
    many = [segment(request(k), at + k * len(request(0)), k) for k in range(EARLY_MAX + 3)]
    assert messages([segment(MESSAGES[0], 0), *many], streams) == [
        MESSAGES[0],
        *map(request, range(EARLY_MAX + 3)),
    ]
    nothing = Streams()
    nothing.take(segment(b"", -1, begins=True))
    assert (
        not messages([segment(b"x", 10 + k) for k in range(EARLY_MAX + 3)], nothing) and not nothing.flush()
    )


def test_many_streams_at_once() -> None:
    streams = Streams()
    for port in range(1, STREAMS_MAX + 10):
        assert len(streams.take(segment(MESSAGES[0], 0, source=("127.0.0.1", port)))) == 1


@given(st.lists(st.tuples(st.integers(0, 60), st.binary(max_size=20), st.booleans()), max_size=20))
def test_any_segments(parts: list[tuple[int, bytes, bool]]) -> None:
    streams = Streams()
    for at, payload, begins in parts:
        streams.take(segment(payload, at, begins=begins))
        streams.take(segment(b"GIOP" + payload, at))


def tcp(payload: bytes, sequence: int, flags: int = 0x18, *, back: bool = False) -> bytes:
    """A frame of a capture: bare IP."""
    source, target = (SERVER, CLIENT) if back else (CLIENT, SERVER)
    header = struct.pack(">HHIIBBHHH", source[1], target[1], sequence, 0, 0x50, flags, 1000, 0, 0)
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0, b"\x7f\0\0\1", b"\x7f\0\0\1"
    )
    frame = ip + header + payload
    return struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame


def test_iiop_in_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = request(4)
    frames = [
        tcp(b"", 99, 0x02),
        tcp(ask[:20], 100),
        tcp(ask[20:], 120),
        tcp(giop.encode(Reply(4, Status.SYSTEM_EXCEPTION), b"abcd"), 500, back=True),
        tcp(giop.encode(LocateReply(5)), 600, back=True),
    ]
    path = tmp_path / "iiop.pcap"
    path.write_bytes(HEADER[:20] + struct.pack("<I", 101) + b"".join(frames))
    assert main(["dissect", str(path)]) == 0
    captured = capsys.readouterr()
    way, back = "127.0.0.1:50000 > 127.0.0.1:2809", "127.0.0.1:2809 > 127.0.0.1:50000"
    assert captured.out.splitlines() == [
        f"     3    0.000000  {way}  GIOP 1.2 request 4: list to key NameService, body of 10 octets, from 2 segments",
        f"     4    0.000000  {back}  GIOP 1.2 reply 4: system_exception, body of 4 octets",
        f"     5    0.000000  {back}  GIOP 1.2 locate_reply 5: object_here",
    ]
    assert captured.err == "0 datagrams, 5 TCP segments: 3 iiop\n"
    assert main(["dissect", str(path), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in content["messages"]] == ["request", "reply", "locate_reply"]
    assert content["messages"][0]["frames"] == [2, 3] and not content["packets"]
    asked = content["messages"][0]
    assert (asked["from"], asked["to"]) == ("127.0.0.1:50000", "127.0.0.1:2809") and "refused" not in asked
    assert asked["target"] == {"by": "key", "key": b"NameService".hex()}
