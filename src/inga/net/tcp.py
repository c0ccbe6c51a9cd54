"""Frames over TCP: a 4-byte length, then the bytes of a datagram.

Members are identified by the addresses at which they listen. Of two members the one with the lower address connects, and reconnects
when the connection breaks; a newcomer connects to all until it is known. A connection begins with a greeting: a frame with the
address at which the caller listens. If too much is queued on a connection, a frame is dropped, and `reliable` repairs it: TCP is one
more lossy link, which loses little.

Anybody can connect. A caller that has not greeted has a few hundred bytes and five seconds to do so, and is closed to make room for
others when there are many. One that has greeted has a buffer that grows with what it sends, and as long a turn as any other. A caller
that greets with the address of another connection has to wait until that connection ends. In a secured group a greeting proves
nothing: datagrams for an address go over the connection on which a sealed datagram arrived last, and until there is one, over all
connections that have greeted with that address.
"""

import asyncio
import logging
import socket
import struct
from collections import Counter
from collections.abc import Hashable
from contextlib import suppress
from random import Random
from typing import cast

from inga.model.errors import UsageError
from inga.net.address import LOOPBACK_DATAGRAM, HostPort, is_address, parse_host_port, why_not
from inga.net.carrier import BACKLOG_MAX, ArrivedDatagrams, Carrier, Deliver, outside
from inga.net.hosts import Hosts
from inga.net.log import report
from inga.session.alarms import Backoff
from inga.stack.native import Direct, Outsider
from inga.stack.places import PLACES_MAX
from inga.stack.stack import Address, Datagram

FRAME_MAX = 1 << 20
HELLO = b"inga"
GREETING_MAX = 300
"""The most bytes of the first frame, the greeting."""

GREETED_WITHIN = 5.0
"""Seconds within which the greeting has to arrive."""

STRANGERS_MAX, STRANGERS_OF_HOST_MAX = 256, 64
"""The most callers that have not greeted yet, in all and from one host: the oldest makes room. A member greets at once."""

OUTSIDERS_MAX = 128
"""The most callers that have greeted and are not members, or not yet: the oldest makes room."""

CALLED_MAX = PLACES_MAX
"""The most addresses of processes outside the view to which we connect, as many as are remembered: the first that is not
connected makes room. Strangers can name such addresses."""

DOUBLES_MAX = 4
"""The most connections for one address: one is used, the others wait until that ends."""

BUFFER_MIN, BUFFER_MAX = 16 * 1024, 4 * LOOPBACK_DATAGRAM
"""Bytes of a connection's buffer: at first, and when there is much to read."""

FRAMES_TURN = 256
"""Frames that are read before other tasks of the event loop run, however small they are."""

DEAD_AFTER = 10
"""Seconds without a TCP acknowledgement after which the kernel ends a connection."""

LENGTH = struct.Struct(">I")

RECONNECT, RECONNECT_MAX = 0.05, 2.0
"""Seconds before a connection is tried again, at first and at most; a random part is added."""


class CallersPlace(tuple[str, int]):
    """The address at which a caller claims to listen. Budgets for each host use `caller`, the host from which it connects."""

    caller: str


class TcpCarrier(Carrier):
    """One listening socket, and one connection with each other member."""

    def __init__(self, me: int, places: list[str], hosts: Hosts, *, late: bool = False) -> None:
        """`hosts` has resolved our own address. `late`: the others are running already, and do not know us yet."""
        super().__init__()
        own = hosts.find(places[me])
        assert own is not None
        self.place = own
        self.is_loopback = self.place[0].startswith("127.")
        self._me = me
        self._places = places
        self._hosts = hosts
        self._members: list[HostPort | None] = []
        self._late = late
        self._server: asyncio.Server | None = None
        self._connectors: dict[HostPort, asyncio.Task[None]] = {}
        self._deliver: Deliver | None = None
        self.connections: dict[HostPort, _Connection] = {}
        self._all: dict[_Connection, None] = {}  # the oldest first
        self._closed = False
        self._rng = Random()

    async def open(self, deliver: Deliver) -> None:
        loop = asyncio.get_running_loop()
        host, port = self.place
        try:
            self._server = await loop.create_server(lambda: _Connection(self, deliver, None), host, port)
        except OSError as error:
            raise UsageError(f"cannot listen at {host}:{port}: {why_not(error)}") from None
        self._deliver = deliver
        self._hosts.follow(self._find)
        self._find()

    def knows(self, me: int, places: list[str]) -> None:
        self._me, self._places, self._late = me, places, False
        self._hosts.keep(places)
        self._find()
        for place in [each for each in self._connectors if each not in self._members]:
            self._give_up(place)

    def _find(self) -> None:
        """Look up the addresses of members, as far as they are resolved, and connect to those that do not connect to us."""
        before, self._members = self._members, [self._hosts.find(place) for place in self._places]
        self._members[self._me] = self.place  # where we listen, even if our name has another address by now
        for place in [each for each in self._connectors if each in before and each not in self._members]:
            self._give_up(place)
        for member in self._members:
            if member is not None and (member > self.place or self._late):
                self._call_on(member)

    def _call_on(self, place: HostPort) -> None:
        """Keep a connection to an address."""
        if place not in self._connectors and place != self.place and not self._closed:
            assert self._deliver is not None
            if place not in self._members:
                self._make_room()
            task = asyncio.get_running_loop().create_task(self._connect(place, self._deliver))
            self._connectors[place] = task

    def _make_room(self) -> None:
        """Make room for a connection to another address outside the view."""
        members = {*self._members}
        outside = [place for place in self._connectors if place not in members]
        if len(outside) >= CALLED_MAX:
            self._give_up(next((place for place in outside if place not in self.connections), outside[0]))

    def _give_up(self, place: HostPort) -> None:
        """End the connection to an address, and do not reconnect."""
        self._connectors.pop(place).cancel()
        if place in self.connections:
            self.connections[place].close()

    def transmit(self, to: Address, datagram: Datagram) -> None:
        if isinstance(to, Outsider | Direct):
            place = outside(to, self._hosts)
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
        self._hosts.close()
        if self._server is not None:
            self._server.close()
        for task in self._connectors.values():
            if not task.get_loop().is_closed():
                task.cancel()
        for connection in list(self._all):
            connection.close()

    def came(self, connection: "_Connection") -> None:
        """A caller has connected: if there are too many that have not greeted, the oldest of them makes room."""
        strangers = [each for each in self._all if each.place is None]
        hosts = Counter(each.host for each in strangers)
        crowd = [each for each in strangers if each.host == connection.host]
        if hosts[connection.host] >= STRANGERS_OF_HOST_MAX:
            crowd[0].refuse("too many callers of one host that do not greet")
        elif len(strangers) >= STRANGERS_MAX:
            strangers[0].refuse("too many callers that do not greet")
        self._all[connection] = None

    def greeted(self, connection: "_Connection", place: HostPort) -> None:
        """A caller has greeted with its address. An earlier connection with that address stays the one in use until it ends."""
        same = [each for each in self._all if each.place == place and each is not self.connections.get(place)]
        outsiders = [each for each in self._all if each.place not in (None, *self._members)]
        if len(same) + 1 >= DOUBLES_MAX:
            same[0].refuse("too many callers that are one member")
        elif place not in self._members and len(outsiders) >= OUTSIDERS_MAX:
            outsiders[0].refuse("too many callers that are no members")
        connection.place = place
        self.connections.setdefault(place, connection)

    def lost(self, connection: "_Connection") -> None:
        """A connection has ended: another one with the same address takes its place."""
        self._all.pop(connection, None)
        place = connection.place
        if place is not None and self.connections.get(place) is connection:
            del self.connections[place]
            for other in self._all:
                if other.place == place:
                    self.connections.setdefault(place, other)

    def proved(self, connection: "_Connection") -> None:
        """A sealed datagram has arrived over this connection, so it is used for its address from now on."""
        connection.is_proven = True
        if connection.place is not None and connection in self._all:
            self.connections[connection.place] = connection

    def _write(self, place: HostPort | None, datagram: Datagram) -> None:
        if place is None:
            self.counts["unresolved"] += 1
            return
        connection = self.connections.get(place)
        if connection is None:
            self.counts["unconnected"] += 1
            return
        if self.guard is not None and not connection.is_proven:
            for other in [each for each in self._all if each.place == place and each is not connection]:
                other.write(datagram)
        if not connection.write(datagram):
            self.counts["dropped"] += 1
        else:
            self.sent += 1

    async def _connect(self, place: HostPort, deliver: Deliver) -> None:
        """Connect to an address, and reconnect whenever the connection ends."""
        loop = asyncio.get_running_loop()
        pause = Backoff(RECONNECT, RECONNECT_MAX)
        while not self._closed:
            started = loop.time()
            with suppress(OSError):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self, deliver, place), *place
                )
                try:
                    await connection.lost
                except asyncio.CancelledError:  # given up; `connections` may have another one for it by now
                    connection.close()
                    raise
            if loop.time() - started > RECONNECT_MAX:  # the connection has lasted
                pause.reset()
            await asyncio.sleep(pause.next(self._rng))


class _Connection(asyncio.BufferedProtocol):
    """Both directions of one connection."""

    def __init__(self, carrier: TcpCarrier, deliver: Deliver, place: HostPort | None) -> None:
        self._carrier = carrier
        self._deliver = deliver
        self.place = place  # the address of the other end, once it is known
        self.host = ""  # the caller's host
        self.is_proven = False  # a sealed datagram has arrived over it
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray(LENGTH.size + GREETING_MAX if place is None else BUFFER_MIN)
        self._filled = 0
        self._is_paused = False  # its turn is over, and there is more to read
        self._patience: asyncio.TimerHandle | None = None
        self.lost: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's, but have all their methods.
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=BACKLOG_MAX)
        _end_when_dead(transport.get_extra_info("socket"))
        if self.place is None:
            self.host = (transport.get_extra_info("peername") or ("",))[0]
            self._patience = self._loop.call_later(GREETED_WITHIN, self.refuse, "no greeting in time")
            self._carrier.came(self)
            return
        self._carrier._all[self] = None
        host, port = self._carrier.place
        hello = HELLO + f"{host}:{port}".encode()
        transport.write(LENGTH.pack(len(hello)) + hello)
        self._carrier.connections[self.place] = self  # the one in use: we chose the address

    def connection_lost(self, error: Exception | None) -> None:
        self._end_patience()
        self._carrier.lost(self)
        if not self.lost.done():
            self.lost.set_result(None)

    def write(self, datagram: Datagram) -> bool:
        """Queue a frame, unless too much is queued already."""
        transport = self._transport
        if transport is None or transport.get_write_buffer_size() > BACKLOG_MAX:
            return False
        if isinstance(datagram, list):
            size = sum(map(len, datagram))
            transport.writelines([LENGTH.pack(size), *datagram])
        else:
            size = len(datagram)
            transport.write(LENGTH.pack(size) + datagram)
        self._carrier.bytes_out += size
        return True

    def close(self) -> None:
        self._end_patience()
        if self._transport is not None:
            self._transport.close()

    def get_buffer(self, hint: int) -> memoryview:
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, count: int) -> None:
        self._filled += count
        self._read()

    def _read(self) -> None:
        """Read the frames that have arrived, at most `FRAMES_TURN` of them."""
        transport = self._transport
        assert transport is not None
        if transport.is_closing():
            return
        burst: ArrivedDatagrams = []
        view = memoryview(self._buffer)
        at = needed = 0
        while self._filled - at >= 4 and len(burst) < FRAMES_TURN:
            (size,) = LENGTH.unpack_from(view, at)
            if size > (GREETING_MAX if self.place is None else FRAME_MAX):
                self.refuse(f"a frame of {size} bytes")
                return
            if self._filled - at - 4 < size:
                needed = size + 4
                break
            frame = view[at + 4 : at + 4 + size]
            at += 4 + size
            if self.place is None:
                if not self._greeted(frame):
                    return
            else:
                burst.append((frame, cast(Hashable, self.place)))
        if burst:
            self._carrier.received += len(burst)
            self._carrier.bytes_in += sum([len(frame) for frame, _ in burst])
            guard = self._carrier.guard
            opened = 0 if guard is None else guard.opened
            self._deliver(burst)
            if guard is not None and guard.opened != opened:
                self._carrier.proved(self)
        self._make_room(at, needed)
        is_paused = len(burst) == FRAMES_TURN
        if is_paused is not self._is_paused and not transport.is_closing():
            self._is_paused = is_paused
            transport.pause_reading() if is_paused else transport.resume_reading()
        if is_paused:
            self._loop.call_soon(self._read)

    def _greeted(self, frame: memoryview) -> bool:
        """Read the greeting, the first frame of a caller; False: it was invalid, and the connection is closed."""
        try:
            place = parse_host_port(bytes(frame[4:]).decode(), "a caller")
            if frame[:4] != HELLO or not is_address(place[0]):
                raise UsageError("whoever calls says first at which address it listens, not something else")
        except (UsageError, UnicodeDecodeError):
            self.refuse("no greeting of a member")
            return False
        self._end_patience()
        claimed = CallersPlace(place)
        claimed.caller = self.host
        self._carrier.greeted(self, claimed)
        return True

    def _make_room(self, at: int, needed: int) -> None:
        """Move unread bytes to the front. A full buffer is doubled, up to `BUFFER_MAX` or the size of the frame that is arriving, so
        that nobody gets much more memory than it fills."""
        size, rest = len(self._buffer), self._filled - at
        most = BUFFER_MIN if size < BUFFER_MIN else min(2 * size, max(BUFFER_MAX, needed))
        if size < most and self.place is not None and (self._filled == size or size < BUFFER_MIN):
            larger = bytearray(most)
            larger[:rest] = self._buffer[at : self._filled]
            self._buffer = larger
        elif at and rest:
            self._buffer[:rest] = self._buffer[at : self._filled]
        self._filled = rest

    def _end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def refuse(self, why: str) -> None:
        """Close the connection, and log the reason."""
        self._carrier.counts["refused"] += 1
        is_first = self._carrier.counts["refused"] == 1  # a stranger can repeat it
        report(
            "tcp.refused", "a TCP connection was closed: %s", why, level=None if is_first else logging.DEBUG
        )
        self._carrier.lost(self)
        self._filled = 0
        self.close()


def _end_when_dead(sock: socket.socket | None) -> None:
    """Have the kernel detect that the other end is dead (on Linux; elsewhere that takes longer)."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with suppress(OSError, AttributeError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * DEAD_AFTER)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAD_AFTER)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, DEAD_AFTER // 4))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
