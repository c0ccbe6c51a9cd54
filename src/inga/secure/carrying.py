"""Relayed datagrams: two processes do not hear each other directly, and a member that hears both forwards their datagrams.

    carry      over a channel, to the relaying member: forward this datagram to that process
    carried    over a channel, from the relaying member: that process has sent this

Datagrams that are relayed are those that would have been sent directly: handshake messages, or what one end of a channel has sealed
for the other. So the two processes authenticate each other as any others do, and the relaying member can drop or
delay their datagrams, as a bad cable can, and do nothing else.

A member relays between a process that asks for admission and the leader, for as long as the session wants it, and up to a number of
datagrams a second. A relayed datagram is not relayed again.

    0   2  magic  "iC"
    2   1  kind              carry or carried
    3   16 process           the destination, or the sender
    19  .  the datagram
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.secure.handshake import ID
from inga.secure.sealing import Forged
from inga.secure.whereabouts import as_text
from inga.stack.budget import Supply
from inga.stack.native import Direct
from inga.stack.stack import Address, Datagram, joined

if TYPE_CHECKING:
    from inga.secure.guard import Channel

CARRY, CARRIED = 1, 2

HANDED = b"iC"
"""The first octets of everything that is relayed."""

_HEAD = Struct(f">2sB{ID}s")

CARRIES_FOR = 5.0
"""Seconds for which a relay path is valid after its last use: a newcomer repeats its request ten times a second."""

ERRANDS_MAX = 64
"""Newcomers for which a member relays, the latest ones."""

CARRIED_A_SECOND, CARRIED_MAX = 200.0, 64.0
"""Datagrams that are relayed between one newcomer and the leader, a second and at once: as many control messages as are accepted of one address."""

HANDED_A_SECOND, HANDED_MAX = 1000.0, 256.0
"""Datagrams that are accepted of one relaying member, a second and at once. It may relay for several processes."""


@dataclass(frozen=True)
class WayRound:
    """A relay path, used in place of an address: the relaying process, and the process at its end."""

    by: bytes
    process: bytes

    def __str__(self) -> str:
        return f"{self.process.hex()} by {self.by.hex()}"


class Handed(NamedTuple):
    """A message to or from the relaying member."""

    kind: int
    process: bytes
    datagram: bytes

    def encode(self) -> bytes:
        return _HEAD.pack(HANDED, self.kind, self.process) + self.datagram

    @classmethod
    def read(cls, data: bytes) -> "Handed":
        if len(data) < _HEAD.size:
            raise Forged("truncated")
        magic, kind, process = _HEAD.unpack_from(data)
        if magic != HANDED or kind not in (CARRY, CARRIED):
            raise Forged("malformed")
        return cls(kind, process, data[_HEAD.size :])


class WaysRound:
    """Relays datagrams of others, and accepts relayed ones; part of the guard."""

    def __init__(
        self,
        process: bytes,
        channels: "Mapping[bytes, Channel]",
        by_name: "Mapping[str, Channel]",
        by_address: "Mapping[str, Channel]",
        say_at: "Callable[[Hashable, Channel, bytes], None]",
        knock: Callable[[Address], None],
    ) -> None:
        """`process` is our own number. The mappings find channels by process, name and address; `say_at` sends over a channel, `knock` sends a knock."""
        self._process = process
        self._channels = channels
        self._by_name = by_name
        self._by_address = by_address
        self._say_at = say_at
        self._knock = knock
        self._errands = Errands()
        self.inside: list[tuple[Buffer, Hashable]] = []  # datagrams just relayed to us

    def introduce(self, address: Hashable, leader: str, now: float) -> str:
        """The process at that address asks for admission by `leader`, which may not hear it: relay between the two for a
        while. Return the number of the process, by which the leader finds it; the empty string if there is no channel to it."""
        channel = None if address is None else self._by_address.get(as_text(address))
        if channel is None:
            return ""
        self._errands.begin(channel.id, leader, now)
        return channel.id.hex()

    def introduced(self, by: str, process: str, now: float) -> None:
        """Member `by` says that `process` asks for admission, and relays between us: authenticate it."""
        porter, who = self._by_name.get(by), _process(process)
        if porter is None or who in (porter.id, self._process):
            return
        if not _takes(porter, now):
            raise WireError("budget", "somebody is introduced too often")
        way, channel = WayRound(porter.id, who), self._channels.get(who)
        if channel is not None:  # so that it knows of this path
            self._say_at(way, channel, b"")
        if channel is None or not channel.is_heard(now):
            self._knock(Direct(way))

    def hear(self, channel: "Channel", plain: bytes, now: float) -> None:
        """Handle a datagram to relay, or a relayed one."""
        handed = Handed.read(plain)
        if handed.kind == CARRIED:
            if not _takes(channel, now):
                raise Forged("flood")
            self.inside.append((handed.datagram, WayRound(channel.id, handed.process)))
            return
        target = self._channels.get(handed.process)
        if target is None:
            raise Forged("impostor")
        self._errands.spend((channel.id, channel.name), (target.id, target.name), now)
        self._say_at(target.address, target, handed._replace(kind=CARRIED, process=channel.id).encode())

    def go_round(self, words: list[tuple[Address, Datagram]], now: float) -> list[tuple[Address, Datagram]]:
        """Return these datagrams to send, with those for relayed processes addressed to the relaying members."""
        found: list[tuple[Address, Datagram]] = []
        for to, datagram in words:
            if not isinstance(to, Direct) or not isinstance(to.address, WayRound):
                found.append((to, datagram))
            elif (porter := self._channels.get(to.address.by)) is not None:
                handed = Handed(CARRY, to.address.process, joined(datagram))
                found.append((porter.to, porter.sending.seal(handed.encode(), now)))
        return found


class Errands:
    """The pairs of processes between which a member relays."""

    def __init__(self) -> None:
        self._errands: dict[bytes, _Errand] = {}  # by the process that asks, the latest last

    def begin(self, process: bytes, leader: str, now: float) -> None:
        """That process asks for admission by the member of that name: relay between them for a while."""
        errand = self._errands.pop(process, None) or _Errand()
        errand.leader, errand.until = leader, now + CARRIES_FOR
        self._errands[process] = errand
        if len(self._errands) > ERRANDS_MAX:
            del self._errands[next(iter(self._errands))]

    def spend(self, source: tuple[bytes, str], target: tuple[bytes, str], now: float) -> None:
        """Account for one more datagram between these two, each by process and name; Forged if we do not relay between them, or too much was sent."""
        for (process, _), (_, name) in ((source, target), (target, source)):
            errand = self._errands.get(process)
            if errand is not None and errand.leader == name and now < errand.until:
                if not errand.words.take(now):
                    raise Forged("flood")
                return
        raise Forged("impostor")


class _Errand:
    """The relaying for one process that asks for admission."""

    __slots__ = ("leader", "until", "words")

    def __init__(self) -> None:
        self.leader = ""
        self.until = 0.0
        self.words = Supply(CARRIED_A_SECOND, CARRIED_MAX)


def _takes(porter: "Channel", now: float) -> bool:
    """Whether one more datagram relayed by this process is accepted."""
    if porter.handed is None:
        porter.handed = Supply(HANDED_A_SECOND, HANDED_MAX)
    return porter.handed.take(now)


def _process(text: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != ID:
        raise WireError("malformed", "no process")
    return found
