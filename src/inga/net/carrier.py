"""Carriers of datagrams: IP multicast, UDP fan-out, TCP frames. All may lose datagrams; `reliable` repairs.

A carrier reads in bounded bursts into buffers that it reuses, hands each burst to the stack at once,
and transmits to one member or to all.
"""

import asyncio
import socket
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import cast

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.packet import Buffer
from inga.model.stats import Traffic
from inga.net import sieve
from inga.net.address import LOOPBACK_DATAGRAM, HostPort, Interface, Via, why_not
from inga.net.flood import FloodWatch, PlainSenders
from inga.net.hosts import Hosts
from inga.net.log import report
from inga.stack.guard import Guard
from inga.stack.native import Direct, Outsider
from inga.stack.stack import Address, Datagram

ArrivedDatagrams = list[tuple[Buffer, Hashable]]
Deliver = Callable[[ArrivedDatagrams], None]

BURST = 16
"""Datagrams that are read before other tasks of the event loop run."""

SINGLES = 8
"""Failed attempts in a row to read a second datagram before datagrams are read one by one, and how many are then read so before the
next attempt."""

DATAGRAM_BYTES = 65536
RECEIVE_BUFFER = 8 << 20
"""Bytes requested of the kernel, which grants what its limits allow."""

BACKLOG_MAX = 1 << 20
"""The most bytes that wait for a full socket; beyond that, datagrams are dropped, and repaired later."""

SO_RCVBUFFORCE, SO_SNDBUFFORCE = 33, 32


@mypyc_attr(allow_interpreted_subclasses=True)
class Carrier(ABC):
    """Sockets of one member."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.sent = 0  # datagrams sent
        self.bytes_out = 0
        self.received = 0  # datagrams received
        self.bytes_in = 0
        self.datagram_max = LOOPBACK_DATAGRAM
        self.granted = RECEIVE_BUFFER  # bytes of receive buffer, as the kernel counts them
        self.is_loopback = False  # whether datagrams never leave this machine
        self.guard: Guard | None = None  # knows which addresses may send large datagrams

    @abstractmethod
    async def open(self, deliver: Deliver) -> None:
        """Open sockets in the running loop, and hand bursts to `deliver` from now on."""

    @abstractmethod
    def transmit(self, to: Address, datagram: Datagram) -> None:
        """Send a datagram to a member, to another process, or to all members."""

    def knows(self, me: int, places: list[str]) -> None:
        """The view has changed: `me` is our index, `places` are the addresses of all members by index, as they announce them."""
        raise NotImplementedError  # a multicast carrier learns addresses from datagrams

    def learns(self, addresses: dict[int, Hashable]) -> None:
        """Take the stack's table of addresses of members of the view in force, by index. The stack keeps changing it."""
        return

    @property
    def dropped(self) -> int:
        """The number of datagrams dropped by the kernel: there was no room, or a filter of ours dropped them (see `sieve`)."""
        return 0

    @property
    def traffic(self) -> Traffic:
        """The traffic of the sockets so far."""
        dropped = self.counts["dropped"] + self.dropped
        return Traffic(self.received, self.sent, self.bytes_in, self.bytes_out, dropped)

    @abstractmethod
    def close(self) -> None:
        """Close everything; nothing is delivered afterwards."""


class ReadingPace:
    """How many datagrams are read from a socket at once: a burst, or one if they have arrived one by one lately.

    To find that there is no other datagram raises an exception, which takes longer than to read one. So after some failed attempts
    only one is read at a time, but for one attempt in a while; as soon as that succeeds, bursts are read again."""

    def __init__(self) -> None:
        self.most = BURST
        self._vain = 0  # attempts in a row that found one datagram only
        self._singles = 0  # datagrams to be read one by one before the next attempt

    def note(self, came: int) -> None:
        """Note that `came` datagrams were read."""
        if self.most == 1:
            self._singles -= 1
            if not self._singles:
                self.most = BURST
        elif came > 1:
            self._vain = 0
        elif self._vain < SINGLES:
            self._vain += 1
        else:
            self.most, self._singles = 1, SINGLES


class UdpCarrier(Carrier):
    """The common part of multicast and fan-out: reading bursts, writing, waiting for a full socket."""

    def __init__(self) -> None:
        super().__init__()
        self._buffers = [memoryview(bytearray(DATAGRAM_BYTES)) for _ in range(BURST)]
        self._readers: dict[socket.socket, HostPort | None] = {}  # each with the address that it ignores
        self._own: socket.socket | None = None
        self._admitted: frozenset[str] | None = None  # addresses that may send large datagrams; None: all
        self.addresses: dict[int, Hashable] = {}  # the stack's table: addresses of members that were met
        self._strangers = PlainSenders()
        self._watch: FloodWatch | None = None
        self._has_sifted = False  # the filters in force are those for a flood
        self._backlog: deque[tuple[Datagram, HostPort]] = deque()
        self._backlog_bytes = 0
        self._dropped = 0  # the kernel's count when the sockets were closed
        self._closed = False
        self._loop = asyncio.get_running_loop()

    def learns(self, addresses: dict[int, Hashable]) -> None:
        self.addresses = addresses
        self._strangers.renumber()

    def _listen(self, sock: socket.socket, deliver: Deliver, deaf_to: HostPort | None = None) -> None:
        self._readers[sock] = deaf_to
        self._sift()
        self._loop.add_reader(sock, self._drain, sock, deliver, ReadingPace())

    def _drain(self, sock: socket.socket, deliver: Deliver, pace: "ReadingPace") -> None:
        """Read the datagrams that have arrived, up to a burst; if any are left, the loop calls this again."""
        burst: ArrivedDatagrams = []
        total = 0
        receive = sock.recvfrom_into
        for buffer in self._buffers if pace.most == BURST else self._buffers[: pace.most]:
            try:
                size, address = receive(buffer)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:  # nobody listened at the destination of an earlier unicast
                self.counts[f"receive errno {error.errno}"] += 1
                continue
            burst.append((buffer[:size], address))
            total += size
        if burst:
            self.received += len(burst)
            self.bytes_in += total
            pace.note(len(burst))
            deliver(burst)
            if not self._closed:
                self._look(burst)

    def _look(self, burst: ArrivedDatagrams) -> None:
        """Check whether the kernel should let in more, or less, and change the filters if so."""
        watch = self._watch
        if watch is None:
            watch = FloodWatch(self._strangers if self.guard is None else self.guard.senders)
            self._watch = watch
        now = self._loop.time()
        if self.guard is None:
            self._strangers.note(cast(HostPort, burst[0][1]), len(burst), now)
        elif self.guard.places is not self._admitted:
            self._sift()
        if now >= watch.next_look:
            if self.guard is None:
                self._strangers.locate(self.addresses, now)
            if watch.look(now):
                self._sift()

    def _sift(self) -> None:
        """Attach filters with which the kernel drops datagrams that we need not read."""
        self._admitted = None if self.guard is None else self.guard.places
        strict = None if self._watch is None else self._watch.strict
        for sock, own in self._readers.items():
            if own is not None or self._admitted is not None or strict is not None or self._has_sifted:
                sieve.attach(sock, own, self._admitted, strict)
        self._has_sifted = strict is not None

    @property
    def dropped(self) -> int:
        return self._dropped if self._closed else sum(map(sieve.dropped, self._readers))

    def _write(self, datagram: Datagram, address: HostPort) -> None:
        sock = self._own
        if sock is None or self._closed:
            return
        if self._backlog:
            self._wait(datagram, address)
            return
        try:
            self._send(sock, datagram, address)
        except (BlockingIOError, InterruptedError):
            self._wait(datagram, address)
        except OSError as error:
            self.counts[f"send errno {error.errno}"] += 1

    def _send(self, sock: socket.socket, datagram: Datagram, address: HostPort) -> None:
        if type(datagram) is list:
            self.bytes_out += sock.sendmsg(datagram, (), 0, address)
        else:
            self.bytes_out += sock.sendto(datagram, address)  # type: ignore[arg-type]
        self.sent += 1

    def _wait(self, datagram: Datagram, address: HostPort) -> None:
        size = _size(datagram)
        if self._backlog_bytes + size > BACKLOG_MAX:
            self.counts["dropped"] += 1
            return
        if not self._backlog:
            assert self._own is not None
            self._loop.add_writer(self._own, self._flush)
        self._backlog.append((datagram, address))
        self._backlog_bytes += size

    def _flush(self) -> None:
        assert self._own is not None
        while self._backlog:
            datagram, address = self._backlog[0]
            try:
                self._send(self._own, datagram, address)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self.counts[f"send errno {error.errno}"] += 1
            self._backlog.popleft()
            self._backlog_bytes -= _size(datagram)
        self._loop.remove_writer(self._own)

    def close(self) -> None:
        if self._closed:
            return
        self._dropped = sum(map(sieve.dropped, self._readers))
        self._closed = True
        for sock in self._readers:
            if not self._loop.is_closed():
                self._loop.remove_reader(sock)
                self._loop.remove_writer(sock)
            sock.close()


class MulticastCarrier(UdpCarrier):
    """Two sockets: the group's, shared and receive-only, and one of our own that sends everything
    and receives datagrams for us alone. Members' addresses are learned from their datagrams."""

    def __init__(self, via: Via, interface: Interface) -> None:
        super().__init__()
        self._target = (via.group, via.port)
        self._interface = interface
        self._echoes = 0  # our own multicasts: our filter drops their echoes, and the kernel counts these
        self.datagram_max = interface.datagram_max
        self.is_loopback = interface.address.startswith("127.")

    async def open(self, deliver: Deliver) -> None:
        interface = socket.inet_aton(self._interface.address)
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        shared = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            own.setblocking(False)
            own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
            own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            own.bind((self._interface.address, 0))
            shared.setblocking(False)
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            shared.bind(self._target)
            member = socket.inet_aton(self._target[0]) + interface
            shared.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        except OSError as error:
            own.close()
            shared.close()
            where = f"{self._target[0]}:{self._target[1]} on {self._interface.address}"
            raise UsageError(f"cannot receive multicast at {where}: {why_not(error)}") from None
        self._own = own  # only now: without its interface the socket would multicast by the default route
        self.granted = min(_enlarge(shared), _enlarge(own))
        report(
            "multicast.opened",
            "multicast %s:%d by %s (%s)",
            *self._target,
            self._interface.address,
            self._interface.reason,
        )
        self._listen(shared, deliver, deaf_to=own.getsockname())
        self._listen(own, deliver)

    @property
    def dropped(self) -> int:
        return max(0, super().dropped - self._echoes)

    def _send(self, sock: socket.socket, datagram: Datagram, address: HostPort) -> None:
        super()._send(sock, datagram, address)
        self._echoes += address == self._target

    def transmit(self, to: Address, datagram: Datagram) -> None:
        # A member that we have not heard yet has no known address, nor has a process that is not a member: multicast to all.
        address: Hashable = self._target
        if isinstance(to, int):
            address = self.addresses.get(to, address)
        elif isinstance(to, Direct):
            address = to.address
        self._write(datagram, cast(HostPort, address))


class UnicastCarrier(UdpCarrier):
    """One socket at a known address; a datagram for all is sent once to each member."""

    def __init__(self, me: int, places: list[str], hosts: Hosts) -> None:
        """`hosts` has resolved our own address."""
        super().__init__()
        self._me = me
        self._places = places
        self._hosts = hosts
        self._members: list[HostPort | None] = []
        self._find()
        own = self._members[me]
        assert own is not None
        self._place = own
        self.is_loopback = own[0].startswith("127.")
        if any(place is None or not place[0].startswith("127.") for place in self._members):
            self.datagram_max = 1500 - 28

    async def open(self, deliver: Deliver) -> None:
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.setblocking(False)
        try:
            own.bind(self._place)
        except OSError as error:
            own.close()
            host, port = self._place
            raise UsageError(f"cannot listen at {host}:{port}: {why_not(error)}") from None
        self._own = own
        self.granted = _enlarge(own)
        self._listen(own, deliver)
        self._hosts.follow(self._find)
        self._find()

    def knows(self, me: int, places: list[str]) -> None:
        self._me, self._places = me, places
        self._hosts.keep(places)
        self._find()

    def _find(self) -> None:
        """Look up the addresses of the members, as far as they are resolved."""
        self._members = [self._hosts.find(place) for place in self._places]

    def transmit(self, to: Address, datagram: Datagram) -> None:
        if to is not None:
            self._write_to(self._members[to] if isinstance(to, int) else outside(to, self._hosts), datagram)
            return
        for member, place in enumerate(self._members):
            if member != self._me:
                self._write_to(place, datagram)

    def _write_to(self, place: HostPort | None, datagram: Datagram) -> None:
        if place is not None:
            self._write(datagram, place)
        else:
            self.counts["unresolved"] += 1

    def close(self) -> None:
        self._hosts.close()
        super().close()


def outside(to: Outsider | Direct, hosts: Hosts) -> HostPort | None:
    """The address of a process that is not a member: the source of its datagrams, or a `host:port` to be resolved."""
    return hosts.find(to.address) if isinstance(to.address, str) else cast(HostPort, to.address)


def _size(datagram: Datagram) -> int:
    return sum(map(len, datagram)) if isinstance(datagram, list) else len(datagram)


def _enlarge(sock: socket.socket) -> int:
    """Request large buffers, beyond the kernel's limits if we have the right to; return the size granted for receiving."""
    for forced, plain in ((SO_RCVBUFFORCE, socket.SO_RCVBUF), (SO_SNDBUFFORCE, socket.SO_SNDBUF)):
        try:
            sock.setsockopt(socket.SOL_SOCKET, forced, RECEIVE_BUFFER // 2)
        except OSError:
            sock.setsockopt(socket.SOL_SOCKET, plain, RECEIVE_BUFFER // 2)
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
