"""GIOP messages in the TCP streams of a capture: segments put in order, messages cut out of them.

A stream is read from its beginning, or from a segment that begins as a GIOP message does; after a segment that was not
captured, again from such a segment. A stream in which anything else appears is not GIOP, and is ignored from then on.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from inga.corba.dissect.pcap import SocketAddress, TcpSegment
from inga.corba.wire import giop
from inga.model.errors import WireError

STREAMS_MAX = 1024
"""Directions of connections that are read at the same time; beyond, the oldest is dropped."""
MESSAGE_MAX = 16 << 20
EARLY_MAX = 64
"""Segments that wait for an earlier one; if there are more, that one counts as not captured."""


class Whole(NamedTuple):
    """A message, the frames that carried it, and the last segment of it."""

    frames: list[int]
    octets: bytes
    last: TcpSegment


@dataclass(slots=True)
class _Direction:
    """One direction of a connection."""

    expected: int
    is_ours: bool = True
    early: dict[int, TcpSegment] = field(default_factory=dict)
    buffer: bytearray = field(default_factory=bytearray)
    frames: list[int] = field(default_factory=list)
    pieces: dict[int | None, list[Whole]] = field(default_factory=dict)  # fragments of incomplete messages
    sizes: Counter[int | None] = field(default_factory=Counter)  # octets of these


class Streams:
    """Takes segments in the order of a capture; returns messages as soon as they are complete."""

    def __init__(self) -> None:
        self._open: dict[tuple[SocketAddress, SocketAddress], _Direction] = {}

    def take(self, segment: TcpSegment) -> list[Whole]:
        """The messages that this segment completes."""
        key = segment.source, segment.target
        if segment.begins:
            self._follow(key, _Direction((segment.sequence + 1) % (1 << 32)))
            return []
        direction = self._open.get(key)
        if direction is None:
            if bytes(segment.payload[:4]) != giop.MAGIC:
                return []
            direction = self._follow(key, _Direction(segment.sequence))
        if not direction.is_ours or not len(segment.payload):
            return []
        if segment.is_cut:
            return []  # As if it had not been captured.
        direction.early[segment.sequence] = segment
        found = _messages(direction)
        if len(direction.early) > EARLY_MAX:
            found += _pass_over(direction)
        return found

    def flush(self) -> list[Whole]:
        """At the end of the capture: return the messages that waited for a segment that was not captured."""
        found = []
        for direction in self._open.values():
            while direction.early:
                found += _pass_over(direction)
        return sorted(found, key=lambda whole: whole.last.frame)

    def _follow(self, key: tuple[SocketAddress, SocketAddress], direction: _Direction) -> _Direction:
        self._open.pop(key, None)
        self._open[key] = direction
        if len(self._open) > STREAMS_MAX:
            del self._open[next(iter(self._open))]
        return direction


def _leave(direction: _Direction) -> None:
    """Ignore this direction from now on: it is not GIOP."""
    direction.is_ours = False
    direction.early.clear()
    direction.buffer.clear()
    direction.pieces.clear()
    direction.sizes.clear()


def _ahead(direction: _Direction, sequence: int) -> int:
    """How far a sequence number is ahead of the expected one, modulo 2^32; one behind it is very far ahead."""
    return (sequence - direction.expected) % (1 << 32)


def _messages(direction: _Direction) -> list[Whole]:
    """Consume the segments that are next in sequence, and cut the messages out of them."""
    found: list[Whole] = []
    try:
        while (segment := _following(direction)) is not None:
            # Some of it may have been in an earlier segment.
            known = -_ahead(direction, segment.sequence) % (1 << 32)
            direction.buffer += segment.payload[known:]
            direction.frames.append(segment.frame)
            direction.expected = (segment.sequence + len(segment.payload)) % (1 << 32)
            for whole in _cut(direction, segment):
                found.append(whole)  # noqa: PERF402 — those before something that is no message count
    except WireError:
        _leave(direction)
    return found


def _following(direction: _Direction) -> TcpSegment | None:
    """The next segment in sequence that has new octets, if it is there; segments without any are dropped."""
    for sequence, segment in list(direction.early.items()):
        ahead = _ahead(direction, sequence)
        if 0 < ahead < 1 << 31:
            continue
        del direction.early[sequence]
        if -ahead % (1 << 32) < len(segment.payload):
            return segment
    return None


def _pass_over(direction: _Direction) -> list[Whole]:
    """A segment was not captured: go on at the next one that begins as a message does."""
    for sequence in sorted(direction.early, key=lambda each: _ahead(direction, each)):
        if bytes(direction.early[sequence].payload[:4]) == giop.MAGIC:
            direction.expected = sequence
            direction.buffer.clear()
            direction.frames = []
            return _messages(direction)
        del direction.early[sequence]
    return []


def _cut(direction: _Direction, segment: TcpSegment) -> Iterator[Whole]:
    buffer = direction.buffer
    while len(buffer) >= giop.HEADER_SIZE:
        header = giop.read_header(buffer)
        if header.total > MESSAGE_MAX:
            raise WireError("too_large", f"{header.total} octets")
        if len(buffer) < header.total:
            return
        whole = Whole(direction.frames, bytes(buffer[: header.total]), segment)
        del buffer[: header.total]
        direction.frames = direction.frames[-1:] if buffer else []
        yield from _joined(direction, header, whole)


def _joined(direction: _Direction, header: giop.Header, whole: Whole) -> list[Whole]:
    """The message itself; of a message in GIOP fragments, nothing until the last one, then all of them joined."""
    is_piece = header.kind is giop.Kind.FRAGMENT
    if not header.more and not is_piece:
        return [whole]
    key = giop.fragment_id(whole.octets, header)
    pieces = direction.pieces.setdefault(key, [])
    if not is_piece:
        pieces.clear()
        direction.sizes[key] = 0
    elif not pieces:
        return [whole]  # Its beginning was not captured.
    pieces.append(whole)
    direction.sizes[key] += len(whole.octets)
    if header.more:
        if direction.sizes[key] > MESSAGE_MAX:
            raise WireError("too_large", "pieces without end")
        return []
    del direction.pieces[key], direction.sizes[key]
    frames = sorted({frame for each in pieces for frame in each.frames})
    return [Whole(frames, giop.join_fragments([each.octets for each in pieces]), whole.last)]
