"""Two processes that do not hear each other straight, and a member that hears both: it hands on what they say.

    carry      over a channel, to the one in between: hand this datagram on to that process
    carried    over a channel, from the one in between: that process has said this

What is handed on is what would have gone straight: a word of a handshake, or something that one end of a channel has sealed
for the other. So the two prove to each other who they are as everybody does, and the one in between can drop what they
say, or be late with it, as a bad cable can, and nothing else.

It does so for one that asks to be let in and the member that leads, as long as the session wants it to, and for so many
words a second. What was handed on once is not handed on again.

    0   2  magic  "iC"
    2   1  kind              carry or carried
    3   16 process           whom it is for, or who has said it
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
"""How everything begins that is handed on."""

_HEAD = Struct(f">2sB{ID}s")

CARRIES_FOR = 5.0
"""Seconds for which a way round is good after it was last used: one that asks does so ten times a second."""

ERRANDS_MAX = 64
"""Those who ask for whom a member hands words on, the latest."""

CARRIED_A_SECOND, CARRIED_MAX = 200.0, 64.0
"""Words that are handed on between one that asks and the leader, a second and at once: as many as are heard of an address."""

HANDED_A_SECOND, HANDED_MAX = 1000.0, 256.0
"""Words that are taken of one that hands them on, a second and at once. It may do so for several."""


@dataclass(frozen=True)
class WayRound:
    """In place of an address: the process that hands words on, and the one that says and hears them."""

    by: bytes
    process: bytes

    def __str__(self) -> str:
        return f"{self.process.hex()} by {self.by.hex()}"


class Handed(NamedTuple):
    """What is said to the one in between, or by it."""

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
    """Hands on what others say, and takes what others hand on; part of the guard."""

    def __init__(
        self,
        process: bytes,
        channels: "Mapping[bytes, Channel]",
        by_name: "Mapping[str, Channel]",
        by_address: "Mapping[str, Channel]",
        say_at: "Callable[[Hashable, Channel, bytes], None]",
        knock: Callable[[Address], None],
    ) -> None:
        """`process` is our own; the channels by processes, names and addresses, and how one speaks over them, and knocks."""
        self._process = process
        self._channels = channels
        self._by_name = by_name
        self._by_address = by_address
        self._say_at = say_at
        self._knock = knock
        self._errands = Errands()
        self.inside: list[tuple[Buffer, Hashable]] = []  # what was handed on to us just now

    def introduce(self, address: Hashable, leader: str, now: float) -> str:
        """The one that speaks from there asks to be let in by that member, which may not hear it: hand on what they say, for a
        while. The number of its process, by which that member finds it; nothing if it cannot be done."""
        channel = None if address is None else self._by_address.get(as_text(address))
        if channel is None:
            return ""
        self._errands.begin(channel.id, leader, now)
        return channel.id.hex()

    def introduced(self, by: str, process: str, now: float) -> None:
        """A process asks to be let in, says a member that hands on what we say to each other: see who it is."""
        porter, who = self._by_name.get(by), _process(process)
        if porter is None or who in (porter.id, self._process):
            return
        if not _takes(porter, now):
            raise WireError("budget", "somebody is introduced too often")
        way, channel = WayRound(porter.id, who), self._channels.get(who)
        if channel is not None:  # so that it knows of this way
            self._say_at(way, channel, b"")
        if channel is None or not channel.is_heard(now):
            self._knock(Direct(way))

    def hear(self, channel: "Channel", plain: bytes, now: float) -> None:
        """Something is to be handed on, or was."""
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
        """These words; those that others are to hand on go to them."""
        found: list[tuple[Address, Datagram]] = []
        for to, datagram in words:
            if not isinstance(to, Direct) or not isinstance(to.address, WayRound):
                found.append((to, datagram))
            elif (porter := self._channels.get(to.address.by)) is not None:
                handed = Handed(CARRY, to.address.process, joined(datagram))
                found.append((porter.to, porter.sending.seal(handed.encode(), now)))
        return found


class Errands:
    """For whom a member hands words on, and to whom."""

    def __init__(self) -> None:
        self._errands: dict[bytes, _Errand] = {}  # by the process that asks, the latest last

    def begin(self, process: bytes, leader: str, now: float) -> None:
        """That process asks to be let in, by the member of that name: hand on what they say for a while."""
        errand = self._errands.pop(process, None) or _Errand()
        errand.leader, errand.until = leader, now + CARRIES_FOR
        self._errands[process] = errand
        if len(self._errands) > ERRANDS_MAX:
            del self._errands[next(iter(self._errands))]

    def spend(self, source: tuple[bytes, str], target: tuple[bytes, str], now: float) -> None:
        """Hand on one more word between these, each by process and name; Forged if it is not for us to do."""
        for (process, _), (_, name) in ((source, target), (target, source)):
            errand = self._errands.get(process)
            if errand is not None and errand.leader == name and now < errand.until:
                if not errand.words.take(now):
                    raise Forged("flood")
                return
        raise Forged("impostor")


class _Errand:
    """One that asks."""

    __slots__ = ("leader", "until", "words")

    def __init__(self) -> None:
        self.leader = ""
        self.until = 0.0
        self.words = Supply(CARRIED_A_SECOND, CARRIED_MAX)


def _takes(porter: "Channel", now: float) -> bool:
    """Whether one more word is taken that this process hands on."""
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
