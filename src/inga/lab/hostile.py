"""Attackers that flood a group as fast as one core can. They receive what the group multicasts, and know the wire format.

    random      bytes that are not a packet
    flipped     recorded datagrams, with some bits changed
    replayed    recorded datagrams, unchanged
    reflected   recorded datagrams, sent back to their senders
    view        recorded datagrams, with the number of another view
    group       recorded datagrams, with the tag of another group
    nack        requests for repair in the name of recorded senders
    forged      forged packets in the name of members whose names and incarnations are known: control messages such as goodbyes or
                proposals of another order, some about processes that do not exist, and messages with numbers far ahead
    knocks      handshake messages made with another secret
    former      packets of a former member of a secured group that has kept all its keys: forged packets and large messages, sealed
                with the keys of its last view, as any of its members, and over its channels; knocks; and recorded datagrams.
                They come from the port that it used as a member, whose large datagrams members let in. See `Former`

All but the last have no keys.

An attacker sends from an address of its own. It receives the packets of groups that multicast at the group's address; for other
groups the addresses of members and some datagrams to begin with are given to it.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random
from time import monotonic
from typing import Any

from inga.layers.reliable import Reliable
from inga.model.errors import WireError
from inga.model.packet import DATA, Packet
from inga.net.address import HostPort, Via, parse_via
from inga.net.carrier import DATAGRAM_BYTES, RECEIVE_BUFFER
from inga.secure.credentials import SECRET
from inga.secure.guard import Channel, GroupGuard
from inga.secure.handshake import ANSWER, CONFIRM, COOKIE, KNOCK, PADDED, TALKS
from inga.secure.sealing import EPOCH_DATAGRAMS, VERSION, SendingKey, derive
from inga.secure.sealing import MAGIC as SEALED_MAGIC
from inga.secure.views import ViewKeys
from inga.stack.stack import Datagram, joined
from inga.trial import forging
from inga.wire.packet import INDEX_MAX, MAGIC, decode, encode, reseal, source_of, tag_of, view_of

HEARD_MAX = 256
"""How many recorded datagrams are kept: the latest."""

BATCH, TIMES = 64, 8
"""Datagrams that are made at once, and how often all of them are sent before the attacker receives again: making them takes longer
than sending."""

RUN = 64
"""Packets that one nack requests: as many as a member sends again for one."""

LARGE_DATAGRAM = 32 * 1024
"""Octets of datagrams that are meant to fill receive buffers."""

HeardDatagram = tuple[bytes, HostPort]
"""A datagram, and the address that it came from or goes to."""

Spoil = Callable[[Random, HeardDatagram, int], bytes | None]
"""Makes a hostile datagram of a recorded one, in a group of so many members; None: this one cannot be used."""


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
    """Return the datagram with the number of the next view, the previous one, or any."""
    number = max(0, view_of(heard[0]) + rng.choice((1, 1, -1, rng.randrange(1 << 16))))
    return _changed(heard[0], 12, number)


def of_another_group(rng: Random, heard: HeardDatagram, members: int) -> bytes:
    return _changed(heard[0], 4, rng.getrandbits(32))


def request(rng: Random, heard: HeardDatagram, members: int) -> bytes | None:
    """Return a nack that is forged in the name of the recorded packet's sender, with the tag of that packet."""
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


NamedProcess = tuple[str, int]
"""A member's name and incarnation, which every greeting of a plain group shows."""


def forged(
    rng: Random, source: int, view: int, tag: int, people: Sequence[NamedProcess], group: str
) -> Datagram:
    """Return a random packet that would harm a group that believed it."""

    def about_somebody(do: str) -> Datagram:
        name, incarnation = rng.choice([*people, ("ghost", 1)])
        return forging.outside_word(do, name, incarnation, group, view)

    return forging.anything(rng, source, view, tag, 1000, about_somebody)


def word(rng: Random, group: str) -> bytes:
    """Return a random handshake message, as of a process that has another secret."""
    kind = rng.choice((KNOCK, COOKIE, ANSWER, CONFIRM))
    head = TALKS.pack(SEALED_MAGIC, VERSION, kind, SECRET, derive(b"", "group", group)[:4])
    return head + rng.randbytes(PADDED[SECRET] - len(head))


SPOILS: dict[str, Spoil] = {
    "random": random_bytes,
    "flipped": flipped,
    "replayed": as_it_was,
    "reflected": as_it_was,
    "view": of_another_view,
    "group": of_another_group,
    "nack": request,
}

FORGED, KNOCKS, FORMER = "forged", "knocks", "former"
KINDS = (*SPOILS, FORGED, KNOCKS, FORMER)


class Stranger:
    """An attacker without keys: records datagrams, makes hostile ones of them, and sends these to all members."""

    _times = TIMES

    def __init__(
        self,
        kind: str,
        people: Sequence[NamedProcess],
        *,
        group: str = "",
        via: str | None = None,
        interface: str = "127.0.0.1",
        port: int = 0,
        places: Iterable[HostPort] = (),
        heard: Iterable[HeardDatagram] = (),
        seed: int = 0,
    ) -> None:
        """`kind`: one of KINDS. `people`: the members of the group `group`. `via`: where the group multicasts, if it does;
        `places`: addresses of members; `heard`: datagrams recorded before. `port`: from which it sends; 0: any."""
        self.kind = kind
        self._people = people
        self._group = group
        self._rng = Random(seed)
        self._heard = deque(heard, HEARD_MAX)
        self._places = list(places)
        self._ear: socket.socket | None = None
        self._mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        self._mouth.bind((interface, port))
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
        """Send until `is_over`; only receive as long as no datagram was recorded, if the kind needs one."""
        while not is_over():
            self._listen()
            if not self._heard and self.kind != "random":
                continue
            for data, target in self._times * self._made():
                try:
                    self._mouth.sendto(data, target)
                    self.sent += 1
                except OSError:  # no receiver, or no room in the send buffer: try the next one
                    continue

    def flood_for(self, seconds: float) -> int:
        """Send for so long, and return how many datagrams were sent."""
        end = monotonic() + seconds
        self.flood(lambda: monotonic() >= end)
        return self.sent

    def _made(self) -> list[HeardDatagram]:
        """Return the datagrams to send next, with their destinations."""
        made: list[HeardDatagram] = []
        for _ in range(BATCH):
            heard = self._rng.choice(self._heard) if self._heard else (bytes(100), ("", 0))
            data = self._spoiled(heard)
            if data is not None:
                made += [
                    (data, place) for place in ([heard[1]] if self.kind == "reflected" else self._places)
                ]
        return made

    def _spoiled(self, heard: HeardDatagram) -> bytes | None:
        if self.kind == KNOCKS:
            return word(self._rng, self._group)
        if self.kind != FORGED:
            return SPOILS[self.kind](self._rng, heard, len(self._people))
        data, source = heard[0], self._rng.randrange(len(self._people))
        # View and tag of sealed datagrams cannot be read: these are then arbitrary numbers.
        return bytes(
            joined(forged(self._rng, source, view_of(data), tag_of(data), self._people, self._group))
        )

    def _listen(self) -> None:
        if self._ear is None:
            return
        with suppress(BlockingIOError):
            for _ in range(BATCH):
                data, address = self._ear.recvfrom(DATAGRAM_BYTES)
                if address != self._mouth.getsockname():
                    self._heard.append((data, address))


class Former(Stranger):
    """An attacker that was a member of a secured group, has left, and has kept all its keys.

    Members know its port as that of an authenticated process, so their kernels let its large datagrams in; and since it goes
    on sending over its channels, members keep these. Every datagram is sealed anew, with a counter of its own: members drop
    repetitions before they open them, which costs them less.
    """

    _times = 1

    def __init__(self, kept: "KeptKeys", people: Sequence[NamedProcess], **told: Any) -> None:
        """`kept`: the keys, channels and port that it had. All else is as for `Stranger`."""
        super().__init__(FORMER, people, port=kept.port, **told)
        self._kept = kept

    def _made(self) -> list[HeardDatagram]:
        made: list[HeardDatagram] = []
        now, kept, rng = monotonic(), self._kept, self._rng
        for _ in range(BATCH // 4):
            everywhere = [self._old(now)]
            everywhere.append(rng.randbytes(rng.choice((100, LARGE_DATAGRAM))))
            if self._heard:
                everywhere.append(rng.choice(self._heard)[0])
            made += [(data, place) for data in everywhere for place in self._places]
            if kept.channels:
                channel, place = rng.choice(kept.channels)
                made.append((_sealed(channel.sending, self._word(), now), place))
        made += [(kept.guard._handshake.knock(now), place) for place in self._places]
        return made

    def _old(self, now: float) -> bytes:
        """Return a forged packet or a large message, as any member of its last view, sealed with that member's key."""
        kept, rng = self._kept, self._rng
        source = rng.randrange(len(kept.view.view))
        if rng.random() < 0.5:
            packet = forged(rng, source, kept.view.view.number, kept.view.tag, self._people, self._group)
        else:
            large = Packet(source, kept.view.view.number, bytes(LARGE_DATAGRAM), kind=DATA)
            large.seq = large.lsn = 10**6
            packet = encode(large, kept.view.tag, covers="nothing")
        return _sealed(kept.sending[source], packet, now)

    def _word(self) -> Datagram:
        """Return a forged control message about a process, for a channel."""
        name, incarnation = self._rng.choice([*self._people, ("ghost", 1)])
        do = self._rng.choice(forging.OUTSIDE_WORDS)
        return forging.outside_word(do, name, incarnation, self._group, self._kept.view.view.number)


class KeptKeys:
    """The keys, channels and port of a member of a secured group, copied before it leaves."""

    def __init__(self, guard: GroupGuard, port: int) -> None:
        """`port`: the one from which the member has sent."""
        assert guard._keys is not None
        # In a first view each member makes a key of its own, and no member could derive all of them.
        assert not guard._keys.is_first
        self.guard = guard
        self.port = port
        self.view: ViewKeys = guard._keys
        self.channels: list[tuple[Channel, HostPort]] = [
            (channel, channel.address)
            for channel in guard._channels.values()
            if isinstance(channel.address, tuple)
        ]
        self.sending = [
            SendingKey(self.view.secret_of(i), monotonic(), guard._kind) for i in range(len(self.view.view))
        ]
        for key in self.sending:
            # Higher than any member has counted, so that none of these datagrams is a repetition.
            key._counter = EPOCH_DATAGRAMS // 2


def _sealed(key: SendingKey, packet: Datagram, now: float) -> bytes:
    return bytes(joined(key.seal(joined(packet), now)))


def _ear(place: Via, interface: str) -> socket.socket:
    """Return a socket that receives the group's multicasts."""
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.setblocking(False)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER // 8)
    ear.bind((place.group, place.port))
    member = socket.inet_aton(place.group) + socket.inet_aton(interface)
    ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    return ear


def _changed(data: bytes, at: int, number: int) -> bytes:
    """Return the datagram with another 4-byte number at that place, and a valid checksum. Sealed datagrams only change: their
    authentication cannot be forged."""
    changed = bytearray(data)
    changed[at : at + 4] = (number & 0xFFFFFFFF).to_bytes(4, "big")
    if data[:2] == MAGIC.to_bytes(2, "big"):
        reseal(changed)
    return bytes(changed)
