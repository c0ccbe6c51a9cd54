"""The messages in a stream of octets: GIOP as it comes over a connection.

Octets go in as they arrive, whole messages come out. A message that was sent in fragments comes out once, put
together. Nothing is set aside for what a header merely announces: only octets that came are kept, and never more of
them than one message and the open fragments may have.

A message that is too large ends the connection, since nothing tells where the next one begins without reading all of it;
unless it is a Request or Reply of GIOP 1.2, which begin with their number, and `passes_over` is set. Then the number is
put into `oversized`, the octets are dropped as they come, and other calls over the connection go on.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from inga.corba.wire import giop
from inga.corba.wire.giop import HEADER_SIZE, Header, Kind
from inga.model.errors import WireError
from inga.model.packet import Buffer

MESSAGE_MAX = 1 << 20
"""Octets of the largest message that is taken, fragments together."""
FRAGMENTED_MAX = 8
"""How many messages may come in fragments at the same time."""
PASSED_OVER_MAX = 16
"""Times the largest message: what announces more is not read to its end."""
_DIVISIBLE = frozenset((Kind.REQUEST, Kind.REPLY, Kind.LOCATE_REQUEST, Kind.LOCATE_REPLY))
_NUMBERED_HEAD = giop.FRAGMENT_HEAD + 1
"""Up to the number of a Request or Reply, and the octet of a Request that says whether an answer is expected."""


class Oversized(NamedTuple):
    """A Request or Reply that is larger than what is taken."""

    header: Header
    request_id: int
    flags: int  # of a Request: which answer it expects
    why: str


@dataclass(slots=True)
class _Open:
    """A message of which fragments are still to come."""

    header: Header
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0


class Framer:
    """Cuts one connection's octets into messages. After a `WireError` the connection is of no more use."""

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
        ] = []  # passed over and not yet told to anybody; whoever does clears it
        self._passed_over = 0  # octets still to come of a message that nobody gets
        self._data = bytearray()
        self._header: Header | None = None
        self._open: dict[int | None, _Open] = {}
        self._fragmented = 0

    @property
    def buffered(self) -> int:
        """Octets kept until the rest of their message comes."""
        return len(self._data) + self._fragmented

    def feed(self, data: Buffer) -> list[bytes]:
        """The messages that are complete now."""
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
        """The request was given up before all of it came."""
        given_up = self._open.pop(request_id, None)
        if given_up is not None:
            self._fragmented -= given_up.size

    def _refuse_early(self, buffer: bytearray, at: int) -> None:
        """What cannot become a header is not waited for."""
        begin = bytes(buffer[at : at + 4])
        if not giop.MAGIC.startswith(begin):
            raise WireError("bad_magic", f"{begin!r} instead of {giop.MAGIC!r}")

    def _is_refusable(self, header: Header) -> bool:
        """Whether one call can be told apart that is too large."""
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
            return  # Of a request that was cancelled meanwhile.
        if (header.minor, header.little) != (begun.header.minor, begun.header.little):
            raise WireError("malformed", "a fragment unlike the beginning of its message")
        if begun.size + len(data) > self._message_max:
            why = f"fragments of more than {self._message_max} octets"
            if key is None or not self._is_refusable(begun.header) or len(begun.pieces[0]) < _NUMBERED_HEAD:
                raise WireError("too_large", why)
            self._refuse(begun.header, begun.pieces[0], why)
            self.forget(key)  # Those that still come belong to nothing, and are dropped.
            return
        self._add(begun, data)
        if not header.more:
            del self._open[key]
            self._fragmented -= begun.size
            messages.append(giop.join_fragments(begun.pieces))

    def _add(self, begun: _Open, data: bytes) -> None:
        # An empty fragment is kept too: count what a list costs, or nothing would bound their number.
        begun.size += len(data) + HEADER_SIZE
        self._fragmented += len(data) + HEADER_SIZE
        begun.pieces.append(data)
