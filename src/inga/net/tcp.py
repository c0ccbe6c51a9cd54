"""Frames over TCP: a 4-byte length, then what would be a datagram.

Of two members the one with the lower index connects, and connects again when the connection breaks. A
newcomer calls everybody until it is known. A connection begins with a frame that says who calls. A frame
that finds too much queued is dropped, and `reliable` repairs it: TCP is one more lossy link, that only happens to lose little.
"""

import asyncio
import struct
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import cast

from inga.model.errors import UsageError
from inga.net.address import LOOPBACK_DATAGRAM
from inga.net.carrier import BACKLOG_MAX, ArrivedDatagrams, Carrier, Deliver
from inga.net.log import log
from inga.stack.native import Outsider
from inga.stack.stack import Address, Datagram

FRAME_MAX = 1 << 20
HELLO = b"inga"
LENGTH = struct.Struct(">I")
NOBODY = 0xFFFF
"""Who calls before it is a member: it may say hello. Once it is one, it is called where it listens."""

RECONNECT, RECONNECT_MAX = 0.05, 2.0
"""Seconds before a connection is tried again, doubled each time."""


class TcpCarrier(Carrier):
    """One listening socket, and one connection with each other member."""

    datagram_max = LOOPBACK_DATAGRAM

    def __init__(self, me: int, addresses: list[tuple[str, int]], *, late: bool = False) -> None:
        """`late`: the others run already, and do not know us yet."""
        super().__init__()
        self._me = me
        self._members = addresses
        self._late = late
        self._server: asyncio.Server | None = None
        self._connectors: dict[int, asyncio.Task[None]] = {}
        self._deliver: Deliver | None = None
        self.connections: dict[int, _Connection] = {}
        self._all: set[_Connection] = set()
        self._closed = False

    async def open(self, deliver: Deliver) -> None:
        loop = asyncio.get_running_loop()
        host, port = self._members[self._me]
        try:
            self._server = await loop.create_server(lambda: _Connection(self, deliver, None), host, port)
        except OSError as error:
            raise UsageError(f"cannot listen at {host}:{port}: {error.strerror}") from None
        self._deliver = deliver
        self._call(range(self._me) if self._late else range(self._me + 1, len(self._members)))

    def knows(self, me: int, addresses: list[tuple[str, int]]) -> None:
        if self._late:  # now they know us, and call
            self._late = False
            for task in self._connectors.values():
                task.cancel()
            self._connectors.clear()
        self._me, self._members = me, addresses
        self._call(range(me + 1, len(addresses)))

    def _call(self, members: Iterable[int]) -> None:
        assert self._deliver is not None
        loop = asyncio.get_running_loop()
        for member in members:
            if member not in self._connectors:
                self._connectors[member] = loop.create_task(self._connect(member, self._deliver))

    def transmit(self, to: Address, datagram: Datagram) -> None:
        if isinstance(to, Outsider):
            if isinstance(to.address, _Connection):
                to.address.write(datagram)
            return
        if to is not None:
            self._write(to, datagram)
            return
        for member in range(len(self._members)):
            if member != self._me:
                self._write(member, datagram)

    def close(self) -> None:
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._connectors.values():
            if not task.get_loop().is_closed():
                task.cancel()
        for connection in list(self._all):
            connection.close()

    def _write(self, member: int, datagram: Datagram) -> None:
        connection = self.connections.get(member)
        if connection is None:
            self.counts["unconnected"] += 1
        elif not connection.write(datagram):
            self.counts["dropped"] += 1

    async def _connect(self, member: int, deliver: Deliver) -> None:
        """Keep one connection to a member of higher index."""
        loop = asyncio.get_running_loop()
        wait = RECONNECT
        while not self._closed:
            started = loop.time()
            with suppress(OSError):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self, deliver, member), *self._members[member]
                )
                await connection.lost
            if loop.time() - started > RECONNECT_MAX:  # it was a good one
                wait = RECONNECT
            await asyncio.sleep(wait)
            wait = min(2 * wait, RECONNECT_MAX)


class _Connection(asyncio.BufferedProtocol):
    """Both directions of one connection."""

    def __init__(self, carrier: TcpCarrier, deliver: Deliver, member: int | None) -> None:
        self._carrier = carrier
        self._deliver = deliver
        self._member = member
        self._calls = member is not None
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray(4 * LOOPBACK_DATAGRAM)
        self._filled = 0
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's, but have all their methods.
        self._transport = transport = cast(asyncio.Transport, transport)
        self._carrier._all.add(self)
        transport.set_write_buffer_limits(high=BACKLOG_MAX)
        if self._member is not None:
            caller = NOBODY if self._carrier._late else self._carrier._me
            hello = HELLO + caller.to_bytes(2, "big")
            transport.write(LENGTH.pack(len(hello)) + hello)
            self._carrier.connections[self._member] = self

    def connection_lost(self, error: Exception | None) -> None:
        self._carrier._all.discard(self)
        if self._member is not None and self._carrier.connections.get(self._member) is self:
            del self._carrier.connections[self._member]
            for other in self._carrier._all:  # who greets as a member may not be it
                if other._member == self._member:
                    self._carrier.connections[self._member] = other
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
            if self._member is None:
                if not self._greeted(frame):
                    return
            else:
                burst.append((frame, self._address()))
        if burst:
            self._deliver(burst)
        rest = self._filled - at
        if at and rest:
            self._buffer[:rest] = self._buffer[at : self._filled]
        if at:
            self._filled = rest

    def _address(self) -> Hashable:
        """Where an answer reaches whoever sent a frame: of one who is no member we only have its call."""
        return self if self._member == NOBODY else self._member

    def _greeted(self, frame: memoryview) -> bool:
        """The first frame of whoever calls us names it."""
        member = int.from_bytes(frame[4:6], "big")
        may_call = member < self._carrier._me or member == NOBODY or self._carrier._late
        if len(frame) != 6 or frame[:4] != HELLO or not may_call:
            self._refuse("no greeting of a member")
            return False
        self._member = member
        if member != NOBODY:
            self._carrier.connections[member] = self
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
