"""MIOP as layers: messages cut into packets and joined again, and packets as datagrams.

    fragments   a message <-> a collection of packets that share a unique id
    (strategy)  handles lost packets: `remiop`, `acks`, or none
    packets     a packet <-> a datagram, nothing else on the wire

All three handle every packet that leaves or arrives, whatever layer it belongs to. Between them, a `Packet` stands
for one MIOP packet: `body` is the whole datagram, `piece` says what it is (a `Piece`, or the `ControlPacket` of a
strategy), `lsn` is its number where it has one, `src` the index of its sender, or STRANGER.

Our unique ids contain the sender and the number of the first packet, so the packets of a sender are one sequence
without gaps. Other ids are foreign: no strategy touches those packets.

After Bessani, Fraga and Lung, "Extending the UMIOP Specification for Reliable Multicast in CORBA", Figure 6.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from inga.corba.wire import miop
from inga.corba.wire.miop import ControlPacket
from inga.layers.numbers import check_number, check_seconds, check_switch
from inga.layers.settings import NoSettings, settle
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.packet import DATA, Buffer, Packet
from inga.model.view import View
from inga.stack.layer import Layer
from inga.stack.stack import Stack
from inga.stack.waits import earlier
from inga.wire.packet import OUTSIDE, kind_of, view_of

STRANGER = -1
"""The index of a sender that is no member of the view."""

DATAGRAM = 1472
"""Octets of a datagram that an Ethernet frame carries, and that other receivers have room for."""

COLLECTIONS_MAX = 64
OCTETS_MAX = 16 << 20
"""Octets in incomplete messages, and in one message."""
RING = 1024
"""Finished messages that are remembered, so that their late packets are recognised."""

QUAD_NET = 127 << 24
"""Members of a group are numbered within 127.0.0.0/8: they may all live on one machine."""


def quad_of(group: int, member: int) -> int:
    """The sender number of a member: 127, then 16 bits of the group or of the agreed view, then the member's index + 1.
    It tells apart groups that share a multicast address, with a chance of error of one in 65,536."""
    return QUAD_NET | ((group & 0xFFFF) << 8) + member + 1 & 0xFFFFFF


def first_number(tag: int) -> int:
    """The number of each member's first packet in an agreed view: packets of other views have other numbers."""
    return max(tag, 1) << 16


@dataclass(slots=True)
class Piece:
    """The header of a data packet, and how often it was repaired here."""

    unique_id: bytes
    sender: int  # 0: a foreign id
    base: int  # number of the first packet of its collection
    index: int  # place in the collection
    count: int  # packets of the collection; 0 = unknown
    is_last: bool
    start: int  # where the payload begins
    nacks: int = 0  # how often this member has scheduled a repair of it
    spared_until: float = 0.0  # it was repaired just now, and is not repaired again before

    @property
    def number(self) -> int:
        return self.base + self.index


@mypyc_attr(allow_interpreted_subclasses=True)
class MiopPackets(Layer):
    """The lowest layer: datagrams in, packets out. It also maps members to sender numbers."""

    name = "miop"
    transparent = True

    def __init__(self, *, sender: int | None = None) -> None:
        """`sender`: our own number in an open group. Without it all members of the view, and only they, have numbers,
        by their indices."""
        self._sender = sender

    def view(self, view: View) -> None:
        me, group = self.stack.me, self.stack.wire.tag if view.attempt else self.stack.group
        self.is_public = self._sender is not None
        if self._sender is not None:
            self.senders = [self._sender]
        else:
            self.senders = [quad_of(group, member) for member in range(len(view))]
        self.sender = self.senders[me]  # our own number
        self.members = {sender: member for member, sender in enumerate(self.senders)}

    def read(self, batch: Iterable[tuple[Buffer, Hashable]]) -> list[Packet]:
        packets = []
        for data, address in batch:
            try:
                packets.append(self._packet(data, address))
            except WireError as error:
                self._read_otherwise(error.reason, data, address)
        return packets

    def _packet(self, data: Buffer, address: Hashable) -> Packet:
        fragment, view = miop.decode(data), self.stack.view.number
        if fragment.is_control:
            control = miop.decode_control(fragment, self.sender)
            packet = Packet(self.members.get(control.sender, STRANGER), view, data)
            packet.piece, packet.where = control, address
            return packet
        unique_id = fragment.unique_id
        sender, base = miop.read_id(unique_id) or (0, 0)
        if sender not in self.members and self._is_ahead(sender):
            self.stack.wire.keep_ahead(data, sender, address)
        start = len(data) - len(fragment.payload)
        packet = Packet(self.members.get(sender, STRANGER), view, memoryview(data))
        packet.piece = Piece(
            unique_id, sender, base, fragment.number, fragment.count, fragment.is_last, start
        )
        if sender:
            packet.lsn = base + fragment.number
        else:
            packet.where = address  # a numbered packet may be a repair, sent by another member
        return packet

    def _is_ahead(self, sender: int) -> bool:
        """Whether a sender may be a member of the next view that has already installed it."""
        tag = self.stack.wire.next_tag
        return tag is not None and sender >> 8 == quad_of(tag, 0) >> 8

    def _read_otherwise(self, reason: str, data: Buffer, address: Hashable) -> None:
        """Read a datagram that is not MIOP: processes that are not in the group's view use inga's own wire format. Count any other."""
        stack = self.stack
        if kind_of(data, stack.lobby) is not None and view_of(data) == OUTSIDE:
            stack.chain.split(stack.wire.read([(data, address)]))
        else:
            stack.reject(reason)

    def down(self, batch: list[Packet]) -> None:
        stack = self.stack
        counts = stack.counts
        for packet in stack.wire.sayable(batch):
            body = packet.body
            counts["data" if packet.kind == DATA else "control"] += 1
            counts["bytes"] += len(body)
            stack.transmit(packet.to, body)


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class MiopFragmentsSettings:
    """The settings of `fragments`. A strategy that may repair more packets, or for longer, raises the limits."""

    datagram: int = DATAGRAM  # octets of the largest datagram
    collect: float = 1.0  # seconds without a packet after which an incomplete message is dropped
    collections_max: int = COLLECTIONS_MAX  # incomplete messages
    octets_max: int = OCTETS_MAX  # octets in them
    polyorb: bool = False  # packets have the form that PolyORB reads; then they have no numbers

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        check_number("datagram", said.datagram, miop.HEADER + 8, 65507)
        check_number("collections_max", said.collections_max, 1, 1 << 20)
        check_number("octets_max", said.octets_max, 1, 1 << 40)
        check_seconds("collect", said.collect)
        check_switch("polyorb", said.polyorb)


@mypyc_attr(allow_interpreted_subclasses=True)
class MiopFragments(Layer):
    """Messages above, packets below."""

    name = "fragments"
    transparent = True
    settings: ClassVar[type[MiopFragmentsSettings]] = MiopFragmentsSettings

    def __init__(self, *, first: int = 1, **said: Any) -> None:
        """`first` is the number of our first packet."""
        self.first = first
        self._settings = settle(MiopFragmentsSettings, self.name, said)
        self.datagram = self._settings.datagram

    def view(self, view: View) -> None:
        stack = self.stack
        self._miop = the(MiopPackets, stack)
        self._payload_max = min(self.datagram, stack.datagram_max, 65507) - miop.HEADER
        first = first_number(stack.wire.tag) if view.attempt else self.first
        self.next = first  # number of our next packet
        self._unnumbered = first  # the same, for messages whose packets have no numbers
        strategy = next((layer for layer in stack.layers if isinstance(layer, Strategy)), None)
        self.unrepaired = Reassembly(  # for messages that no strategy repairs
            self._count,
            collect=self._settings.collect,
            collections_max=self._settings.collections_max,
            octets_max=self._settings.octets_max,
        )
        self.reassembly = self.unrepaired
        if strategy is not None:
            # Messages that may still be repaired are not dropped.
            under_way = strategy.size * max(1, len(view) - 1)
            self.reassembly = Reassembly(
                self._count,
                collect=max(self._settings.collect, strategy.patience),
                collections_max=max(self._settings.collections_max, under_way),
                octets_max=max(self._settings.octets_max, under_way * self._payload_max),
                awaits=strategy.awaits,
            )

    def down(self, batch: list[Packet]) -> None:
        out: list[Packet] = []
        for message in batch:
            out += self._cut(message)
        self.below(out)

    def up(self, batch: list[Packet]) -> None:
        out = []
        now = self.stack.now
        for packet in batch:
            piece = packet.piece
            if type(piece) is not Piece:
                continue  # a control packet of a strategy that we do not run; plain receivers ignore it
            # Nobody repairs packets from members of another view for us.
            is_repaired = piece.sender and (packet.src != STRANGER or self._miop.is_public)
            reassembly = self.reassembly if is_repaired else self.unrepaired
            message = reassembly.add(piece, memoryview(packet.body)[piece.start :], now)
            if message is not None:
                whole = Packet(packet.src, packet.view, message)  # a strategy may keep the packet itself
                whole.piece, whole.where = piece, packet.where
                out.append(whole)
        if out:
            self.above(out)

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        return earlier(self.reassembly.wake, self.unrepaired.wake)

    def tick(self, now: float) -> None:
        self.reassembly.expire(now)
        self.unrepaired.expire(now)

    def gone(self, member: int) -> None:
        if not self.stack.views.follow:  # else the others may still lend us packets of it
            self.reassembly.forget(self._miop.senders[member])

    def packet_max(self) -> int:
        return self._payload_max

    @property
    def message_max(self) -> int:
        """Octets of the largest message that can be sent."""
        return min(OCTETS_MAX, self._payload_max * miop.COUNT_MAX)

    def _cut(self, message: Packet) -> list[Packet]:
        # Packets that belong to no view wait for nobody, and nobody repairs them.
        is_numbered = message.view != OUTSIDE and not self._settings.polyorb
        base, sender = self.next if is_numbered else self._unnumbered, self._miop.sender
        unique_id = (miop.numbered_id if is_numbered else miop.text_id)(sender, base)
        datagrams = miop.split(
            message.body,
            unique_id,
            payload_max=self._payload_max,
            length_includes_header=self._settings.polyorb,
        )
        count = len(datagrams)
        if is_numbered:
            self.next = base + count
        else:
            self._unnumbered, sender = base + 1, 0
        start = len(datagrams[0]) - min(len(message.body), self._payload_max)
        packets = []
        for index, datagram in enumerate(datagrams):
            packet = Packet(message.src, message.view, datagram, kind=message.kind)
            packet.at, packet.to = message.at, message.to
            packet.piece = Piece(unique_id, sender, base, index, count, index == count - 1, start)
            packet.lsn = base + index if is_numbered else 0
            packets.append(packet)
        packets[-1].receipt = message.receipt
        return packets

    def _count(self, reason: str) -> None:
        if reason == "dup":
            self.stack.counts["dup"] += 1  # a duplicate is no error
        else:
            self.stack.reject(reason)


class _Collection:
    """The packets of one incomplete message."""

    __slots__ = ("count", "last", "octets", "slots", "touched")

    def __init__(self) -> None:
        self.count = 0
        self.last: int | None = None  # index of the last packet, from the stop flag, if the count is unknown
        self.slots: dict[int, bytes] = {}
        self.octets = 0
        self.touched = 0.0

    def first_missing(self) -> int:
        return next(index for index in range(len(self.slots) + 1) if index not in self.slots)

    def is_complete(self) -> bool:
        if self.count:
            return len(self.slots) == self.count
        return self.last is not None and len(self.slots) == self.last + 1


@mypyc_attr(allow_interpreted_subclasses=True)
class Reassembly:
    """Joins packets to messages. Packets arrive in any order, perhaps twice, perhaps never.

    `count` is called with the reason of each anomaly: dup, inconsistent, too_large, expired, evicted. No memory is
    allocated for an announced length. `awaits` says whether a packet, by sender and number, may still arrive when its message
    would expire: a sender may have to wait in the middle of a message, for as long as another member is silent.
    """

    def __init__(
        self,
        count: Callable[[str], None],
        *,
        collect: float = 1.0,
        collections_max: int = COLLECTIONS_MAX,
        octets_max: int = OCTETS_MAX,
        message_max: int = OCTETS_MAX,
        ring: int = RING,
        awaits: Callable[[int, int], bool] | None = None,
    ) -> None:
        self._count = count
        self._awaits = awaits
        self.collect = collect
        self.collections_max = collections_max
        self.octets_max = octets_max
        self.message_max = message_max
        self.ring = ring
        self.octets = 0  # in all open collections
        self._open: dict[bytes, _Collection] = {}  # the least recently used one first
        self._done: dict[bytes, None] = {}  # the ids of the last `ring` finished messages

    @property
    def wake(self) -> float | None:
        """When `expire` has something to do."""
        if not self._open:
            return None
        return next(iter(self._open.values())).touched + self.collect

    @property
    def open(self) -> int:
        return len(self._open)

    def add(self, piece: Piece, payload: Buffer, now: float) -> Buffer | None:
        """Add a packet; return the message if it is complete now."""
        key = piece.unique_id
        if key in self._done:
            self._count("dup")
            return None
        collection = self._open.get(key)
        if collection is None:
            if piece.index == 0 and (piece.count == 1 or (not piece.count and piece.is_last)):
                self._remember(key)
                return payload
            collection = _Collection()
        elif not self._fits(collection, piece):
            return None
        if collection.octets + len(payload) > self.message_max:
            self._count("too_large")
            return None
        if piece.count:
            collection.count = piece.count
        elif piece.is_last and not self._ends(key, collection, piece.index):
            return None
        collection.slots[piece.index] = bytes(payload)
        collection.octets += len(payload)
        collection.touched = now
        self.octets += len(payload)
        self._open.pop(key, None)
        self._open[key] = collection
        if collection.is_complete():
            self._drop(key)
            self._remember(key)
            return b"".join([collection.slots[index] for index in range(len(collection.slots))])
        while len(self._open) > self.collections_max or self.octets > self.octets_max:
            self._drop(next(iter(self._open)))
            self._count("evicted")
        return None

    def expire(self, now: float) -> None:
        """Drop messages that got no packet for too long, unless their packets are still awaited."""
        while (wake := self.wake) is not None and wake <= now:
            key = next(iter(self._open))
            if self._may_end(key):
                collection = self._open[key] = self._open.pop(key)
                collection.touched = now
            else:
                self._drop(key)
                self._count("expired")

    def _may_end(self, key: bytes) -> bool:
        """Whether the first missing packet of a message is still awaited."""
        said = miop.read_id(key)
        if self._awaits is None or said is None:
            return False
        sender, base = said
        return self._awaits(sender, base + self._open[key].first_missing())

    def forget(self, sender: int) -> None:
        """Drop the incomplete messages of a departed sender."""
        for key in [key for key in self._open if (miop.read_id(key) or (0, 0))[0] == sender]:
            self._drop(key)

    def _fits(self, collection: _Collection, piece: Piece) -> bool:
        """Whether a packet agrees with those before it, and is new."""
        if piece.index in collection.slots:
            self._count("dup")
            return False
        differs = piece.count != collection.count and (
            collection.count or piece.count <= max(collection.slots) or collection.last is not None
        )
        beyond = collection.last is not None and (piece.index > collection.last or piece.is_last)
        if differs or beyond:
            self._count("inconsistent")
            return False
        return True

    def _ends(self, key: bytes, collection: _Collection, last: int) -> bool:
        """Note the last packet of a message of unknown length, from the stop flag; False if that contradicts its other packets."""
        if any(index > last for index in collection.slots):
            self._drop(key)
            self._count("inconsistent")
            return False
        collection.last = last
        return True

    def _drop(self, key: bytes) -> None:
        self.octets -= self._open.pop(key).octets

    def _remember(self, key: bytes) -> None:
        self._done[key] = None
        if len(self._done) > self.ring:
            del self._done[next(iter(self._done))]


Said = TypeVar("Said")
"""The settings of a strategy."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Strategy(Layer, Generic[Said]):
    """Handles lost packets: the layer between fragments and packets, for `remiop`, `acks` or your own.

    A strategy passes packets of ours down when they may leave, and packets of others up when they are new; the strategies
    of the members talk to each other by `ControlPacket`s. It declares how many packets of a sender it may still
    repair (`size`), and for how long (`patience`, in seconds), so that no incomplete message is dropped before.
    """

    transparent = True
    settings: ClassVar[type[Any]] = NoSettings
    size: int = 0
    patience: float = 0.0

    def __init__(
        self,
        *,
        first: int = 1,
        announced: bool = False,
        queue_max: int = 16 << 20,
        confirms: bool = True,
        **said: Any,
    ) -> None:
        """`first`: the number of each member's first packet, unless members announce theirs (`announced`). `queue_max`: unread
        bytes above which our reports stand still. `confirms`: this layer confirms receipts, not the order above it.
        The rest are `settings`."""
        self.first = first
        self.announced = announced
        self.queue_max = queue_max
        self.confirms = confirms
        self._settings: Said = settle(self.settings, self.name, said)

    def introduce(self) -> dict[str, int]:
        return {"first": self.first} if self.announced else {}

    def awaits(self, sender: int, number: int) -> bool:
        """Whether a missing packet may still arrive although `patience` is over."""
        return False

    def introduced(self, member: int, what: dict[str, int]) -> None:
        """A member has announced the number of its first packet: all its packets from there on are to be received."""


Kind = TypeVar("Kind", bound=Layer)


def the(kind: type[Kind], stack: Stack) -> Kind:
    """The layer of that kind, which every stack that speaks MIOP has once."""
    return next(layer for layer in stack.layers if isinstance(layer, kind))


def peer_of(src: int) -> int | None:
    """A sender as trace rows name it: None for a stranger."""
    return None if src == STRANGER else src


def control_packet(src: int, view: int, control: ControlPacket) -> Packet:
    """A control packet of a strategy, as a `Packet`."""
    packet = Packet(src, view, miop.encode_control(control), kind=CONTROL_KIND)
    packet.piece = control
    return packet


CONTROL_KIND = 255
"""The kind of a strategy's control packets. It is not on the wire, and only keeps them from being counted as data."""


def refuse_large(size: int, limit: int) -> None:
    """Raise if a message is too large for receivers to join."""
    if size > limit:
        raise UsageError(f"a request of {size} octets: at most {limit} can be sent by MIOP")
