"""Frames over TCP: a 4-byte length, then what would be a datagram.

Members are known by where they listen. Of two the one with the lower address connects, and connects again when the
connection breaks; a newcomer calls everybody until it is known. A connection begins with a frame that says where the
caller listens. A frame that finds too much queued is dropped, and `reliable` repairs it: TCP is one more lossy link, that
only happens to lose little.

Anybody can call. Who has not said where it listens has a few hundred bytes and seconds for it, and makes room for the next
caller when there are many; who says so has a buffer that grows with what it sends, and a turn as long as everybody's. Who
says that it listens where another does that is connected has to wait until that connection ends. In a secured group a
greeting counts for nothing: what is for somebody goes over the connection over which something came last that was sealed,
and until then over all that were called so.
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
"""Bytes of the first frame."""

GREETED_WITHIN = 5.0
"""Seconds within which it has to come."""

STRANGERS_MAX, STRANGERS_OF_HOST_MAX = 256, 64
"""Callers that have not greeted yet, in all and from one host: the oldest makes room. A member greets at once."""

OUTSIDERS_MAX = 128
"""Callers that have greeted and are no members, or not yet; the same."""

CALLED_MAX = PLACES_MAX
"""Places that are called though no member of the view is there, as many as are remembered: of more, the first that is not
connected makes room. Strangers can name them."""

DOUBLES_MAX = 4
"""Connections with one member: one is used, the others wait until that ends."""

BUFFER_MIN, BUFFER_MAX = 16 * 1024, 4 * LOOPBACK_DATAGRAM
"""Bytes read in one turn: at first, and once there is much to read."""

FRAMES_TURN = 256
"""Frames read before others in the loop get a turn, however small they are."""

DEAD_AFTER = 10
"""Seconds without an acknowledgement after which the kernel ends a connection."""

LENGTH = struct.Struct(">I")

RECONNECT, RECONNECT_MAX = 0.05, 2.0
"""Seconds before a connection is tried again, at first and at most; and a random part of them."""


class CallersPlace(tuple[str, int]):
    """Where a caller says that it listens. Whoever shares something out among hosts goes by the one that calls."""

    caller: str


class TcpCarrier(Carrier):
    """One listening socket, and one connection with each other member."""

    def __init__(self, me: int, places: list[str], hosts: Hosts, *, late: bool = False) -> None:
        """`hosts` know where we are. `late`: the others run already, and do not know us yet."""
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
        """Look where members are, as far as that is known, and connect with those who do not connect with us."""
        before, self._members = self._members, [self._hosts.find(place) for place in self._places]
        self._members[self._me] = self.place  # where we listen, whatever our name means by now
        for place in [each for each in self._connectors if each in before and each not in self._members]:
            self._give_up(place)
        for member in self._members:
            if member is not None and (member > self.place or self._late):
                self._call_on(member)

    def _call_on(self, place: HostPort) -> None:
        """Keep a connection with one."""
        if place not in self._connectors and place != self.place and not self._closed:
            assert self._deliver is not None
            if place not in self._members:
                self._make_room()
            task = asyncio.get_running_loop().create_task(self._connect(place, self._deliver))
            self._connectors[place] = task

    def _make_room(self) -> None:
        """Another place is to be called where no member is."""
        members = {*self._members}
        outside = [place for place in self._connectors if place not in members]
        if len(outside) >= CALLED_MAX:
            self._give_up(next((place for place in outside if place not in self.connections), outside[0]))

    def _give_up(self, place: HostPort) -> None:
        """Keep no connection with one any more."""
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
        """Somebody calls: who has called long ago and not said who it is makes room."""
        strangers = [each for each in self._all if each.place is None]
        hosts = Counter(each.host for each in strangers)
        crowd = [each for each in strangers if each.host == connection.host]
        if hosts[connection.host] >= STRANGERS_OF_HOST_MAX:
            crowd[0].refuse("too many callers of one host that do not greet")
        elif len(strangers) >= STRANGERS_MAX:
            strangers[0].refuse("too many callers that do not greet")
        self._all[connection] = None

    def greeted(self, connection: "_Connection", place: HostPort) -> None:
        """A caller says where it listens. That another said so before counts for more, as long as that is there."""
        same = [each for each in self._all if each.place == place and each is not self.connections.get(place)]
        outsiders = [each for each in self._all if each.place not in (None, *self._members)]
        if len(same) + 1 >= DOUBLES_MAX:
            same[0].refuse("too many callers that are one member")
        elif place not in self._members and len(outsiders) >= OUTSIDERS_MAX:
            outsiders[0].refuse("too many callers that are no members")
        connection.place = place
        self.connections.setdefault(place, connection)

    def lost(self, connection: "_Connection") -> None:
        """A connection has ended: another with the same member takes its place."""
        self._all.pop(connection, None)
        place = connection.place
        if place is not None and self.connections.get(place) is connection:
            del self.connections[place]
            for other in self._all:
                if other.place == place:
                    self.connections.setdefault(place, other)

    def proved(self, connection: "_Connection") -> None:
        """Something came over it that a guard has opened."""
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
        """Keep one connection to a member."""
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
                except asyncio.CancelledError:  # given up; what it is told may go over another one by now
                    connection.close()
                    raise
            if loop.time() - started > RECONNECT_MAX:  # it was a good one
                pause.reset()
            await asyncio.sleep(pause.next(self._rng))


class _Connection(asyncio.BufferedProtocol):
    """Both directions of one connection."""

    def __init__(self, carrier: TcpCarrier, deliver: Deliver, place: HostPort | None) -> None:
        self._carrier = carrier
        self._deliver = deliver
        self.place = place  # of the one at the other end, once it is known
        self.host = ""  # from which it calls
        self.is_proven = False  # something was sealed that came over it
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray(LENGTH.size + GREETING_MAX if place is None else BUFFER_MIN)
        self._filled = 0
        self._is_paused = False  # it has had its turn, and there is more to read
        self._patience: asyncio.TimerHandle | None = None
        self.lost: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's, but have all their methods.
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
        self._carrier.connections[self.place] = self  # whom we have called is where it listens

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
        """Read the frames that have come, as many as make a turn."""
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
        """The first frame of whoever calls us says where it listens."""
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
        """Move what was not read to the front. A buffer that was full is doubled, as long as there may be that much to read:
        nobody gets more memory than it fills."""
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
        """Hang up."""
        self._carrier.counts["refused"] += 1
        is_first = self._carrier.counts["refused"] == 1  # a person need not read what a stranger can repeat
        report(
            "tcp.refused", "a TCP connection was closed: %s", why, level=None if is_first else logging.DEBUG
        )
        self._carrier.lost(self)
        self._filled = 0
        self.close()


def _end_when_dead(sock: socket.socket | None) -> None:
    """Let the kernel find out that nobody is at the other end any more (Linux; elsewhere it takes longer)."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with suppress(OSError, AttributeError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * DEAD_AFTER)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAD_AFTER)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, DEAD_AFTER // 4))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
