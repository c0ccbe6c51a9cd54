"""Frames over TCP: a 4-byte length, then what would be a datagram.

Members are known by where they listen. Of two the one with the lower address connects, and connects again when the
connection breaks; a newcomer calls everybody until it is known. A connection begins with a frame that says where the
caller listens. A frame that finds too much queued is dropped, and `reliable` repairs it: TCP is one more lossy link, that
only happens to lose little.
"""

import asyncio
import struct
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import cast

from inga.model.errors import UsageError
from inga.net.address import LOOPBACK_DATAGRAM, parse_host_port
from inga.net.carrier import BACKLOG_MAX, ArrivedDatagrams, Carrier, Deliver, outside
from inga.net.log import log
from inga.stack.native import Outsider
from inga.stack.stack import Address, Datagram

FRAME_MAX = 1 << 20
HELLO = b"inga"
GREETING_MAX = 300
"""Bytes of the first frame."""

LENGTH = struct.Struct(">I")

RECONNECT, RECONNECT_MAX = 0.05, 2.0
"""Seconds before a connection is tried again, doubled each time."""

HostPort = tuple[str, int]
"""Where a member listens: host and port."""


class TcpCarrier(Carrier):
    """One listening socket, and one connection with each other member."""

    datagram_max = LOOPBACK_DATAGRAM

    def __init__(self, me: int, addresses: list[HostPort], *, late: bool = False) -> None:
        """`late`: the others run already, and do not know us yet."""
        super().__init__()
        self.place = addresses[me]
        self.is_loopback = self.place[0].startswith("127.")
        self._members = addresses
        self._late = late
        self._server: asyncio.Server | None = None
        self._connectors: dict[HostPort, asyncio.Task[None]] = {}
        self._deliver: Deliver | None = None
        self.connections: dict[HostPort, _Connection] = {}
        self._all: set[_Connection] = set()
        self._closed = False

    async def open(self, deliver: Deliver) -> None:
        loop = asyncio.get_running_loop()
        host, port = self.place
        try:
            self._server = await loop.create_server(lambda: _Connection(self, deliver, None), host, port)
        except OSError as error:
            raise UsageError(f"cannot listen at {host}:{port}: {error.strerror}") from None
        self._deliver = deliver
        self._call(self._members)

    def knows(self, me: int, addresses: list[HostPort]) -> None:
        self._members, self._late = addresses, False
        for place in [each for each in self._connectors if each not in addresses]:
            self._connectors.pop(place).cancel()
            if place in self.connections:
                self.connections[place].close()
        self._call(addresses)

    def _call(self, places: Iterable[HostPort]) -> None:
        """Connect with those who do not connect with us."""
        for place in places:
            if place > self.place or self._late:
                self._call_on(place)

    def _call_on(self, place: HostPort) -> None:
        """Keep a connection with one."""
        if place not in self._connectors and place != self.place and not self._closed:
            assert self._deliver is not None
            task = asyncio.get_running_loop().create_task(self._connect(place, self._deliver))
            self._connectors[place] = task

    def transmit(self, to: Address, datagram: Datagram) -> None:
        if isinstance(to, Outsider):
            place = outside(to)
            if place is not None:
                if place not in self.connections:
                    self._call_on(place)
                self._write(place, datagram)
        elif to is not None:
            self._write(self._members[to], datagram)
        else:
            for place in self._members:
                if place != self.place:
                    self._write(place, datagram)

    def close(self) -> None:
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._connectors.values():
            if not task.get_loop().is_closed():
                task.cancel()
        for connection in list(self._all):
            connection.close()

    def _write(self, place: HostPort, datagram: Datagram) -> None:
        connection = self.connections.get(place)
        if connection is None:
            self.counts["unconnected"] += 1
        elif not connection.write(datagram):
            self.counts["dropped"] += 1

    async def _connect(self, place: HostPort, deliver: Deliver) -> None:
        """Keep one connection to a member."""
        loop = asyncio.get_running_loop()
        wait = RECONNECT
        while not self._closed:
            started = loop.time()
            with suppress(OSError):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self, deliver, place), *place
                )
                await connection.lost
            if loop.time() - started > RECONNECT_MAX:  # it was a good one
                wait = RECONNECT
            await asyncio.sleep(wait)
            wait = min(2 * wait, RECONNECT_MAX)


class _Connection(asyncio.BufferedProtocol):
    """Both directions of one connection."""

    def __init__(self, carrier: TcpCarrier, deliver: Deliver, place: HostPort | None) -> None:
        self._carrier = carrier
        self._deliver = deliver
        self._place = place  # of the one at the other end, once it is known
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray(4 * LOOPBACK_DATAGRAM)
        self._filled = 0
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's, but have all their methods.
        self._transport = transport = cast(asyncio.Transport, transport)
        self._carrier._all.add(self)
        transport.set_write_buffer_limits(high=BACKLOG_MAX)
        if self._place is not None:
            host, port = self._carrier.place
            hello = HELLO + f"{host}:{port}".encode()
            transport.write(LENGTH.pack(len(hello)) + hello)
            self._carrier.connections[self._place] = self

    def connection_lost(self, error: Exception | None) -> None:
        self._carrier._all.discard(self)
        if self._place is not None and self._carrier.connections.get(self._place) is self:
            del self._carrier.connections[self._place]
            for other in self._carrier._all:  # who greets as a member may not be it
                if other._place == self._place:
                    self._carrier.connections[self._place] = other
        if not self.lost.done():
            self.lost.set_result(None)

    def write(self, datagram: Datagram) -> bool:
        """Queue a frame, unless too much is queued already."""
        transport = self._transport
        if transport is None or transport.get_write_buffer_size() > BACKLOG_MAX:
            return False
        if isinstance(datagram, list):
            transport.writelines([LENGTH.pack(sum(map(len, datagram))), *datagram])
        else:
            transport.write(LENGTH.pack(len(datagram)) + datagram)
        return True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def get_buffer(self, hint: int) -> memoryview:
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, count: int) -> None:
        self._filled += count
        burst: ArrivedDatagrams = []
        view = memoryview(self._buffer)
        at = 0
        while self._filled - at >= 4:
            (size,) = LENGTH.unpack_from(view, at)
            if size > FRAME_MAX:
                self._refuse(f"a frame of {size} bytes")
                return
            if self._filled - at - 4 < size:
                self._make_room(at, size + 4)
                break
            frame = view[at + 4 : at + 4 + size]
            at += 4 + size
            if self._place is None:
                if not self._greeted(frame):
                    return
            else:
                burst.append((frame, cast(Hashable, self._place)))
        if burst:
            self._deliver(burst)
        rest = self._filled - at
        if at and rest:
            self._buffer[:rest] = self._buffer[at : self._filled]
        if at:
            self._filled = rest

    def _greeted(self, frame: memoryview) -> bool:
        """The first frame of whoever calls us says where it listens."""
        try:
            if len(frame) > GREETING_MAX or frame[:4] != HELLO:
                raise UsageError("no greeting")
            self._place = parse_host_port(bytes(frame[4:]).decode(), "a caller")
        except (UsageError, UnicodeDecodeError):
            self._refuse("no greeting of a member")
            return False
        self._carrier.connections[self._place] = self
        return True

    def _make_room(self, at: int, needed: int) -> None:
        """A frame larger than the buffer: enlarge it once, within FRAME_MAX."""
        if needed > len(self._buffer):
            self._buffer = self._buffer + bytearray(needed - len(self._buffer) + 4)

    def _refuse(self, why: str) -> None:
        self._carrier.counts["refused"] += 1
        log.warning("a TCP connection was closed: %s", why)
        self.close()
        self._filled = 0
