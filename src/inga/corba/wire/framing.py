"""The messages in a stream of octets: GIOP as it comes over a connection.

Octets go in as they arrive, whole messages come out. A message that was sent in fragments comes out once, put
together. Nothing is set aside for what a header merely announces: only octets that came are kept, and never more of
them than one message and the open fragments may have.
"""

from dataclasses import dataclass, field

from inga.corba.wire import giop
from inga.corba.wire.giop import HEADER_SIZE, Header, Kind
from inga.model.errors import WireError

MESSAGE_MAX = 1 << 20
"""Octets of the largest message that is taken, fragments together."""
FRAGMENTED_MAX = 8
"""How many messages may come in fragments at the same time."""
_DIVISIBLE = frozenset((Kind.REQUEST, Kind.REPLY, Kind.LOCATE_REQUEST, Kind.LOCATE_REPLY))


@dataclass(slots=True)
class _Open:
    """A message of which fragments are still to come."""

    minor: int
    little: bool
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0


class Framer:
    """Cuts one connection's octets into messages. After a `WireError` the connection is of no more use."""

    def __init__(self, message_max: int = MESSAGE_MAX, fragmented_max: int = FRAGMENTED_MAX) -> None:
        self._message_max = message_max
        self._fragmented_max = fragmented_max
        self._data = bytearray()
        self._header: Header | None = None
        self._open: dict[int | None, _Open] = {}
        self._fragmented = 0

    @property
    def buffered(self) -> int:
        """Octets kept until the rest of their message comes."""
        return len(self._data) + self._fragmented

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now."""
        messages: list[bytes] = []
        buffer = self._data
        buffer += data
        at = 0
        try:
            while True:
                if self._header is None:
                    if len(buffer) - at < HEADER_SIZE:
                        self._refuse_early(buffer, at)
                        break
                    self._header = self._accepted(giop.read_header(buffer[at : at + HEADER_SIZE]))
                header = self._header
                if len(buffer) - at < header.total:
                    break
                self._take(header, bytes(buffer[at : at + header.total]), messages)
                at += header.total
                self._header = None
        finally:
            del buffer[:at]
        return messages

    def forget(self, request_id: int) -> None:
        """The request was given up before all of it came."""
        given_up = self._open.pop(request_id, None)
        if given_up is not None:
            self._fragmented -= given_up.size

    def _refuse_early(self, buffer: bytearray, at: int) -> None:
        """What cannot become a header is not waited for."""
        begin = bytes(buffer[at : at + 4])
        if not giop.MAGIC.startswith(begin):
            raise WireError("bad_magic", f"{begin!r} instead of {giop.MAGIC!r}")

    def _accepted(self, header: Header) -> Header:
        if header.total > self._message_max:
            raise WireError("too_large", f"a message of {header.total} octets, {self._message_max} at most")
        return header

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
        if key in self._open or len(self._open) >= self._fragmented_max:
            raise WireError("malformed", "a fragmented message too many")
        begun = self._open[key] = _Open(header.minor, header.little)
        self._add(begun, data)

    def _continue(self, header: Header, data: bytes, messages: list[bytes]) -> None:
        key = giop.fragment_id(data, header)
        begun = self._open.get(key)
        if begun is None:
            return  # Of a request that was cancelled meanwhile.
        if (header.minor, header.little) != (begun.minor, begun.little):
            raise WireError("malformed", "a fragment unlike the beginning of its message")
        self._add(begun, data)
        if not header.more:
            del self._open[key]
            self._fragmented -= begun.size
            messages.append(giop.joined(begun.pieces))

    def _add(self, begun: _Open, data: bytes) -> None:
        if begun.size + len(data) > self._message_max:
            raise WireError("too_large", f"fragments of more than {self._message_max} octets")
        # An empty fragment is kept too: count what a list costs, or nothing would bound their number.
        begun.size += len(data) + HEADER_SIZE
        self._fragmented += len(data) + HEADER_SIZE
        begun.pieces.append(data)
