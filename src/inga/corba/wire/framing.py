"""Framing: the GIOP messages in the stream of octets of a connection.

Octets go in as they arrive, whole messages come out. A message that was sent in fragments comes out once, joined.
No memory is reserved for a length that a header announces: only octets that arrived are kept, and never more of
them than one message and the incomplete fragmented messages may have.

A message that is too large ends the connection, since only reading all of it would tell where the next one begins;
unless it is a Request or Reply of GIOP 1.2, which begin with their request id, and `passes_over` is set. Then the request id
is put into `oversized`, the octets are dropped as they arrive, and other calls over the connection go on.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from inga.corba.wire import giop
from inga.corba.wire.giop import HEADER_SIZE, Header, Kind
from inga.model.errors import WireError
from inga.model.packet import Buffer

MESSAGE_MAX = 1 << 20
"""Octets of the largest message that is accepted, all its fragments counted."""
FRAGMENTED_MAX = 8
"""How many fragmented messages may be incomplete at the same time."""
PASSED_OVER_MAX = 16
"""Times the largest message: one that announces more is not dropped octet by octet, but ends the connection."""
_DIVISIBLE = frozenset((Kind.REQUEST, Kind.REPLY, Kind.LOCATE_REQUEST, Kind.LOCATE_REPLY))
_NUMBERED_HEAD = giop.FRAGMENT_HEAD + 1
"""Octets up to the request id of a Request or Reply, and the one after it: in a Request, which reply is expected."""


class Oversized(NamedTuple):
    """A Request or Reply that is too large to be accepted."""

    header: Header
    request_id: int
    flags: int  # of a Request: which reply it expects
    why: str


@dataclass(slots=True)
class _Open:
    """A message of which fragments are still missing."""

    header: Header
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0


class Framer:
    """Cuts one connection's octets into messages. After a `WireError` the connection cannot be used any more."""

    def __init__(
        self,
        message_max: int = MESSAGE_MAX,
        fragmented_max: int = FRAGMENTED_MAX,
        *,
        passes_over: bool = False,
    ) -> None:
        self._message_max = message_max
        self.fragmented_max = fragmented_max
        self._passes_over = passes_over
        self.oversized: list[
            Oversized
        ] = []  # messages refused for their size that the owner has not handled yet; it clears the list
        self._passed_over = 0  # octets still to arrive of a message that is dropped
        self._data = bytearray()
        self._header: Header | None = None
        self._open: dict[int | None, _Open] = {}
        self._fragmented = 0

    @property
    def buffered(self) -> int:
        """Octets kept until the rest of their message arrives."""
        return len(self._data) + self._fragmented

    def feed(self, data: Buffer) -> list[bytes]:
        """Add octets; return the messages that are complete now."""
        messages: list[bytes] = []
        buffer = self._data
        buffer += data
        at = 0
        try:
            while True:
                dropped = min(self._passed_over, len(buffer) - at)
                at += dropped
                self._passed_over -= dropped
                if self._header is None:
                    if len(buffer) - at < HEADER_SIZE:
                        self._refuse_early(buffer, at)
                        break
                    self._header = giop.read_header(buffer[at : at + HEADER_SIZE])
                header = self._header
                if header.total > self._message_max:
                    why = f"a message of {header.total} octets, {self._message_max} at most"
                    if header.total > PASSED_OVER_MAX * self._message_max or not self._is_refusable(header):
                        raise WireError("too_large", why)
                    if len(buffer) - at < _NUMBERED_HEAD:
                        break
                    self._refuse(header, bytes(buffer[at : at + _NUMBERED_HEAD]), why)
                    self._passed_over, self._header = header.total, None
                    continue
                if len(buffer) - at < header.total:
                    break
                self._take(header, bytes(buffer[at : at + header.total]), messages)
                at += header.total
                self._header = None
        finally:
            del buffer[:at]
        return messages

    def forget(self, request_id: int) -> None:
        """Drop the fragments of a message that is cancelled or too large."""
        given_up = self._open.pop(request_id, None)
        if given_up is not None:
            self._fragmented -= given_up.size

    def _refuse_early(self, buffer: bytearray, at: int) -> None:
        """Raise if the few octets there are cannot begin a header, instead of waiting for the rest of it."""
        begin = bytes(buffer[at : at + 4])
        if not giop.MAGIC.startswith(begin):
            raise WireError("bad_magic", f"{begin!r} instead of {giop.MAGIC!r}")

    def _is_refusable(self, header: Header) -> bool:
        """Whether a message that is too large can be refused alone: its request id can be read without the rest."""
        return self._passes_over and header.minor >= 2 and header.kind in (Kind.REQUEST, Kind.REPLY)

    def _refuse(self, header: Header, data: bytes, why: str) -> None:
        request_id = giop.fragment_id(data, header)
        assert request_id is not None
        self.oversized.append(Oversized(header, request_id, data[_NUMBERED_HEAD - 1], why))

    def _take(self, header: Header, data: bytes, messages: list[bytes]) -> None:
        if header.kind is Kind.FRAGMENT:
            self._continue(header, data, messages)
        elif header.more:
            self._begin(header, data)
        else:
            messages.append(data)

    def _begin(self, header: Header, data: bytes) -> None:
        if header.kind not in _DIVISIBLE:
            raise WireError("malformed", f"a {header.kind.name} in fragments")
        key = giop.fragment_id(data, header)
        if key in self._open or len(self._open) >= self.fragmented_max:
            raise WireError("malformed", "a fragmented message too many")
        begun = self._open[key] = _Open(header)
        self._add(begun, data)

    def _continue(self, header: Header, data: bytes, messages: list[bytes]) -> None:
        key = giop.fragment_id(data, header)
        begun = self._open.get(key)
        if begun is None:
            return  # The message was cancelled or refused meanwhile.
        if (header.minor, header.little) != (begun.header.minor, begun.header.little):
            raise WireError("malformed", "a fragment unlike the beginning of its message")
        if begun.size + len(data) > self._message_max:
            why = f"fragments of more than {self._message_max} octets"
            if key is None or not self._is_refusable(begun.header) or len(begun.pieces[0]) < _NUMBERED_HEAD:
                raise WireError("too_large", why)
            self._refuse(begun.header, begun.pieces[0], why)
            self.forget(key)  # Fragments that still arrive belong to no open message, and are dropped.
            return
        self._add(begun, data)
        if not header.more:
            del self._open[key]
            self._fragmented -= begun.size
            messages.append(giop.join_fragments(begun.pieces))

    def _add(self, begun: _Open, data: bytes) -> None:
        # Empty fragments are kept, too: each counts as a header, or nothing would bound their number.
        begun.size += len(data) + HEADER_SIZE
        self._fragmented += len(data) + HEADER_SIZE
        begun.pieces.append(data)
