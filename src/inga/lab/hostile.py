"""A stranger that disturbs a group as quickly as one core can. It hears what the group multicasts, knows the wire, and has no keys.

    random      bytes that are no packet
    flipped     what was heard, with some bits changed
    replayed    what was heard, as it was
    reflected   what was heard, sent back to whoever sent it
    view        what was heard, as if it were of another view
    group       what was heard, as if it were of another group
    nack        requests for repair in the name of whoever was heard

It belongs to nobody: its datagrams come from an address of its own. Groups that multicast are heard where they meet; of others
it has to be given an address book, and some datagrams to begin with.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from time import monotonic

from inga.layers.reliable import Reliable
from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.net.address import HostPort, Via, parse_via
from inga.net.carrier import DATAGRAM_BYTES, RECEIVE_BUFFER
from inga.stack.stack import joined
from inga.wire.packet import INDEX_MAX, MAGIC, decode, encode, reseal, source_of, tag_of, view_of

HEARD_MAX = 256
"""Datagrams that are remembered, the latest."""

BATCH, TIMES = 64, 8
"""Datagrams that are made at once, and how often all of them are sent before it listens again: making them takes longer."""

RUN = 64
"""Packets that are asked for at once: as many as are sent again for one request."""

HeardDatagram = tuple[bytes, HostPort]
"""A datagram, and where it came from, or goes to."""

Spoil = Callable[[Random, HeardDatagram, int], bytes | None]
"""Makes something of what was heard, in a group of so many members; None: nothing can be made of it."""


def random_bytes(rng: Random, heard: HeardDatagram, members: int) -> bytes:
    return rng.randbytes(len(heard[0]))


def flipped(rng: Random, heard: HeardDatagram, members: int) -> bytes:
    data = bytearray(heard[0])
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def as_it_was(rng: Random, heard: HeardDatagram, members: int) -> bytes:
    return heard[0]


def of_another_view(rng: Random, heard: HeardDatagram, members: int) -> bytes:
    """The next one, the one before, or any."""
    number = max(0, view_of(heard[0]) + rng.choice((1, 1, -1, rng.randrange(1 << 16))))
    return _changed(heard[0], 12, number)


def of_another_group(rng: Random, heard: HeardDatagram, members: int) -> bytes:
    return _changed(heard[0], 4, rng.getrandbits(32))


def request(rng: Random, heard: HeardDatagram, members: int) -> bytes | None:
    """As if whoever was heard lacked what others sent: its tag is on what it said."""
    data = heard[0]
    try:
        packet = decode(data, tag_of(data), {view_of(data): members}, INDEX_MAX)
    except WireError:
        return None
    if packet is None or not packet.lsn:
        return None
    nack = Packet(source_of(data), packet.view, kind=Reliable.id)
    nack.runs = ((max(1, packet.lsn - RUN), packet.lsn + 1),)
    return joined(encode(nack, tag_of(data)))


SPOILS: dict[str, Spoil] = {
    "random": random_bytes,
    "flipped": flipped,
    "replayed": as_it_was,
    "reflected": as_it_was,
    "view": of_another_view,
    "group": of_another_group,
    "nack": request,
}


class Stranger:
    """Listens, makes something of what it hears, and sends that to everybody."""

    def __init__(
        self,
        kind: str,
        members: int,
        *,
        via: str | None = None,
        interface: str = "127.0.0.1",
        places: Iterable[HostPort] = (),
        heard: Iterable[HeardDatagram] = (),
        seed: int = 0,
    ) -> None:
        """`kind`: one of SPOILS. `via`: where the group multicasts, if it does; `places`: addresses of members; `heard`:
        what it has heard before."""
        self.kind = kind
        self._spoil = SPOILS[kind]
        self._members = members
        self._rng = Random(seed)
        self._heard = deque(heard, HEARD_MAX)
        self._places = list(places)
        self._ear: socket.socket | None = None
        self._mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        self._mouth.bind((interface, 0))
        if via is not None:
            place = parse_via(via)
            self._places.append((place.group, place.port))
            self._ear = _ear(place, interface)
        self.sent = 0

    def __enter__(self) -> "Stranger":
        return self

    def __exit__(self, *exc: object) -> None:
        self._mouth.close()
        if self._ear is not None:
            self._ear.close()

    def flood(self, is_over: Callable[[], bool]) -> None:
        """Send until it is over; while nothing was heard, only listen."""
        while not is_over():
            self._listen()
            if not self._heard and self.kind != "random":
                continue
            for data, target in TIMES * self._made():
                try:
                    self._mouth.sendto(data, target)
                    self.sent += 1
                except OSError:  # nobody there, or no room: the next one
                    continue

    def flood_for(self, seconds: float) -> int:
        """Send for so long; how many were sent."""
        end = monotonic() + seconds
        self.flood(lambda: monotonic() >= end)
        return self.sent

    def _made(self) -> list[HeardDatagram]:
        """What is sent next, and where to."""
        made: list[HeardDatagram] = []
        for _ in range(BATCH):
            heard = self._rng.choice(self._heard) if self._heard else (bytes(100), ("", 0))
            data = self._spoil(self._rng, heard, self._members)
            if data is not None:
                made += [
                    (data, place) for place in ([heard[1]] if self.kind == "reflected" else self._places)
                ]
        return made

    def _listen(self) -> None:
        if self._ear is None:
            return
        with suppress(BlockingIOError):
            for _ in range(BATCH):
                data, address = self._ear.recvfrom(DATAGRAM_BYTES)
                if address != self._mouth.getsockname():
                    self._heard.append((data, address))


def _ear(place: Via, interface: str) -> socket.socket:
    """Where the group meets."""
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.setblocking(False)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER // 8)
    ear.bind((place.group, place.port))
    member = socket.inet_aton(place.group) + socket.inet_aton(interface)
    ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    return ear


def _changed(data: bytes, at: int, number: int) -> bytes:
    """With another number of 4 bytes there, and a check that fits; of what is sealed nobody can make that."""
    changed = bytearray(data)
    changed[at : at + 4] = (number & 0xFFFFFFFF).to_bytes(4, "big")
    if data[:2] == MAGIC.to_bytes(2, "big"):
        reseal(changed)
    return bytes(changed)
