"""The native wire: datagrams to packets and back, for views in force, for views to come, and for no view at all."""

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from inga.model.compiled import mypyc_attr, restore, state_of
from inga.model.errors import WireError
from inga.model.packet import DATA, HEADER_MAX, Buffer, Packet
from inga.model.view import View
from inga.stack.backlog import Backlog
from inga.stack.guard import Guard
from inga.wire.packet import (
    HEAD,
    INDEX_MAX,
    LENT,
    OUTSIDE,
    decode,
    encode,
    source_of,
    tag_of,
    view_of,
    view_tag,
)

if TYPE_CHECKING:
    from inga.stack.stack import Address, Datagram, Stack


class Outsider(NamedTuple):
    """A process that is not a member, known by the address from which it sent, or by the address that it announced."""

    address: Hashable


class Direct(NamedTuple):
    """The same, for a datagram that only this process is to get, over whatever path there is to it."""

    address: Hashable


AHEAD_MAX = 1024
"""The most datagrams kept of a view that is not installed here yet; the rest is dropped, and repaired later."""

UNKNOWN = -1
"""A tag that no packet has."""

PAST_MAX = 4
"""Closed views that are remembered, to inform members that still send in them."""


@mypyc_attr(allow_interpreted_subclasses=True)
class NativeWire:
    """The lowest end of a stack. An invalid datagram is counted; nothing is raised."""

    def __init__(self, stack: "Stack") -> None:
        self.stack = stack
        self.ahead = Backlog(AHEAD_MAX)  # datagrams of views that are not installed here yet
        self.tag = stack.group  # the tag of packets of the view in force
        self.next_tag: int | None = None  # the tag of the view that may follow, if a change is in progress
        self.past: dict[int, View] = {}  # closed views by their tags, the newest last
        # In a first view with listed members: the birth of each member's process, as far as it is known. Packets of
        # another process of the same name are not accepted as the member's.
        self.births: list[int | None] | None = None
        self.spoke_at = stack.now  # when we last sent something to all members
        # Called with everything that is sent to members, while some of them have to be reached by a detour as well.
        self.also: Callable[[Address, Datagram], None] | None = None

    def read(self, batch: Iterable[tuple[Buffer, Hashable]], *, is_hearsay: bool = False) -> list[Packet]:
        """The packets in these datagrams that belong to a view in force, or to no view. `is_hearsay`: other members may have repaired
        them unchanged, so they do not show that their sender is alive. They are read even if it is gone, since the layer that
        received them has checked which of its packets are due."""
        guard = self.stack.guard
        opened = batch if guard is None else guard.open(batch, self.stack.now)
        return self._read_opened(opened, is_hearsay=is_hearsay)

    def _read_opened(
        self, batch: Iterable[tuple[Buffer, Hashable]], *, is_hearsay: bool = False
    ) -> list[Packet]:
        packets: list[Packet] = []
        stack = self.stack
        tag, births, sizes, me, left = self.tag, self.births, stack.sizes, stack.me, stack.left
        checked = stack.covers != "nothing"
        heard, now = stack.heard, stack.now
        for data, address in batch:
            try:
                of = tag if births is None else self._tag_from(data)
                packet = decode(data, of, sizes, me, checked=checked)
            except WireError as error:
                packet = self._read_otherwise(error.reason, data, address)
            if packet is None:
                continue
            if packet.view != OUTSIDE:
                is_gone = packet.src in left
                if packet.lent is not is_gone and not (is_hearsay and is_gone):
                    # Its sender is gone, so only lent packets of it are read; or it is lent, and its sender is not gone.
                    stack.counts["late"] += 1
                    if packet.src in stack.failed and not packet.lent:
                        self._read_late(stack.view, data, address)
                    continue
                if not packet.lent and not is_hearsay:
                    heard[packet.src] = now
            packet.where = address
            packets.append(packet)
        return packets

    def write(self, batch: list[Packet]) -> None:
        """Encode outgoing packets, once for all members that get the same bytes, and transmit them."""
        stack = self.stack
        counts, transmit = stack.counts, stack.transmit if self.also is None else self._transmit_also
        for packet in self.sayable(batch):
            if packet.kind == DATA:
                counts["data"] += 1
            else:
                counts["control"] += 1
                # If the address of this member is unknown, the datagram goes to everybody, so it names its destination.
                # Outside a view it does not, since indices mean nothing there.
                if packet.to is not None and packet.dst is None and packet.view != OUTSIDE:
                    packet.dst = 1 << packet.to
            counts["bytes"] += len(packet.body)
            if packet.encoded is None:
                packet.encoded = [self.encode(packet), None]
            full, bare = packet.encoded
            if packet.dst is None:
                if packet.to is None:
                    self.spoke()
                transmit(packet.to, full)
                if packet.to is None and packet.view == OUTSIDE:
                    for place in stack.places.beside(stack.view):
                        transmit(Outsider(place), full)
                continue
            for member in stack.others if packet.to is None else (packet.to,):
                if packet.dst >> member & 1:
                    transmit(member, full)
                    continue
                if bare is None:
                    bare = packet.encoded[1] = self.encode(packet, bare=True)
                transmit(member, bare)

    def tell_also(self, tell: "Callable[[Address, Datagram], None] | None") -> None:
        """Call `tell` with every datagram from now on, since some members have to be reached by a detour as well; None: stop."""
        self.also = tell

    def spoke(self) -> None:
        """Note that we have sent something to all members, in whatever wire format."""
        self.spoke_at = self.stack.now

    def sayable(self, batch: list[Packet]) -> list[Packet]:
        """Those of these packets that we may send: while we are in no view, only packets that belong to no view."""
        return [packet for packet in batch if packet.view == OUTSIDE] if self.stack.is_homeless else batch

    def _transmit_also(self, to: "Address", datagram: "Datagram") -> None:
        self.stack.transmit(to, datagram)
        if self.also is not None:
            self.also(to, datagram)

    def answer(self, packet: Packet, address: Hashable) -> None:
        """Send a packet to a process that is not a member. The native wire is used even in groups with another wire format, since
        every process can read it. The packet goes to everybody if the address is unknown, or if the group has another wire
        format, where all share one address."""
        stack = self.stack
        to = None if address is None or stack.chain.hook("read") is not None else Outsider(address)
        stack.counts["control"] += 1
        stack.transmit(to, self.encode(packet))

    def encode(self, packet: Packet, *, bare: bool = False) -> Buffer | list[Buffer]:
        """The bytes of a packet, with the group's tag and checksum."""
        return encode(packet, self.group_of(packet), bare=bare, covers=self.stack.covers)

    def group_of(self, packet: Packet) -> int:
        """The tag of a packet. A packet that belongs to no view carries the lobby, for all that know the group's name."""
        if packet.view == OUTSIDE:
            return self.stack.lobby
        if self.births is None or packet.lent:  # receivers may not know the departed member's birth
            return self.tag
        return self.tag ^ (self.births[packet.src] or 0)

    def _tag_from(self, data: Buffer) -> int:
        """The tag that a packet in a first view must have if it comes from the member that it claims as its source."""
        assert self.births is not None
        if len(data) < HEAD.size:
            return UNKNOWN
        _, _, _, _, sections, src, _, _ = HEAD.unpack_from(data)
        if sections & LENT:
            return self.tag
        birth = self.births[src] if src < len(self.births) else None
        return UNKNOWN if birth is None else self.tag ^ birth

    def tag_of(self, view: View) -> int:
        """The tag of packets of that view."""
        return view_tag(self.stack.identity, view)

    def prepare(self, view: View, secret: bytes) -> None:
        """In a secured group: tell the guard that this view, with this secret, may follow."""
        guard, me = self.stack.guard, view.index(self.stack.member)
        assert guard is not None and me is not None
        guard.expect(self.tag_of(view), view, me, secret)

    def is_past(self, tag: int) -> bool:
        """Whether `tag` is the tag of a view that is closed here."""
        return any(self.tag_of(view) == tag for view in self.past.values())

    def enter(self, view: View) -> None:
        """`view` is in force from now on."""
        self.tag = self.tag_of(view)
        if self.stack.guard is not None:
            self.stack.guard.enter(self.tag, view, self.stack.me, self.stack.now)
        datagram_max = self.stack.datagram_max
        # The largest body that fits one datagram beside its header and a vector or two.
        self.body_max = datagram_max - min(HEADER_MAX + 6 * len(view), datagram_max // 2)

    @property
    def payload_max(self) -> int:
        """The largest body that the application may fill: `body_max`, less what the order adds."""
        body_max, overhead = self.body_max, self.stack.chain.hook("overhead")
        return body_max if overhead is None else max(body_max - overhead(len(self.stack.view)), body_max // 2)

    def is_elsewhere(self, packet: Packet) -> bool:
        """Whether a packet came from another address than its sender's, if both are known."""
        known = self.stack.addresses.get(packet.src)
        return known is not None and packet.where is not None and packet.where != known

    def close(self, view: View) -> None:
        """A view ends: packets of it that still arrive are late."""
        for birth in {0} if self.births is None else {birth for birth in self.births if birth is not None}:
            self.past[self.tag ^ birth] = view
        while len({view.number for view in self.past.values()}) > PAST_MAX:
            del self.past[next(iter(self.past))]
        self.next_tag = self.births = self.also = None

    def catch_up(self) -> None:
        """Read the datagrams that arrived before this view was installed."""
        if self.ahead:
            waiting, self.ahead = self.ahead, Backlog(AHEAD_MAX)
            self.take(waiting)

    def take(self, batch: Iterable[tuple[Buffer, Hashable]]) -> None:
        """Read datagrams that the guard has opened before, or that a member has forwarded in the open."""
        read = self.stack.chain.hook("read") or self._read_opened
        if packets := read(batch):
            self.stack.chain.lowest(packets)

    def seal(self, guard: Guard) -> None:
        """Seal outgoing datagrams. The guard's own messages also go by the detour to members that need one."""
        stack = self.stack
        sealed = guard.seal(stack.to_send, stack.now)
        if self.also is not None and guard.words:
            stack.to_send = []
            for _, datagram in guard.words:
                self.also(None, datagram)
            sealed += guard.seal(stack.to_send, stack.now)
        stack.to_send = sealed

    def _read_otherwise(self, reason: str, data: Buffer, address: Hashable) -> Packet | None:
        if reason in ("view", "group") and view_of(data) == OUTSIDE:
            return self._read_outside(data)
        if reason == "view":
            self._read_of_another_view(data, address)
        elif reason == "group" and (tag := tag_of(data)) == self.next_tag:
            # A member of a first view can choose its birth, and so make any tag, but not the number of a later view.
            if view_of(data) > self.stack.view.number:
                self._keep_for_next(data, address)
            else:
                self.stack.reject(reason)
        elif reason == "group" and tag in self.past:
            self._read_late(self.past[tag], data, address)
        else:
            self.stack.reject(reason)
        return None

    def _keep_for_next(self, data: Buffer, address: Hashable) -> None:
        if self.stack.chain.hook("read") is None:
            self.keep_ahead(data, source_of(data), address)
        self._note_ahead(view_of(data))

    def keep_ahead(self, data: Buffer, source: int, address: Hashable) -> None:
        """Keep a datagram of the next view until that is installed."""
        if not self.ahead.keep(data, source, address):
            self.stack.reject("early")

    def _note_ahead(self, number: int) -> None:
        """A packet of the next view has arrived, so its sender has installed that view."""
        self.stack.counts["ahead"] += 1
        for watch in self.stack.chain.hooks("ahead"):
            watch(number)

    def _read_late(self, view: View, data: Buffer, address: Hashable) -> None:
        """A packet of a view that is closed here: it was delayed, or its sender does not know that the view is closed."""
        stack = self.stack
        stack.counts["stale"] += 1
        for late in stack.chain.hooks("late"):
            late(view, source_of(data), address)

    def _read_of_another_view(self, data: Buffer, address: Hashable) -> None:
        stack, number = self.stack, view_of(data)
        if number < stack.view.number:
            stack.counts["stale"] += 1  # a packet of a closed view
        elif number == stack.view.number + 1:
            self._keep_for_next(data, address)
        else:
            stack.reject("view")

    def _read_outside(self, data: Buffer) -> Packet | None:
        """Read a packet that belongs to no view: of a member that greets or leaves, or of a stranger."""
        stack = self.stack
        try:
            # The sender may be in another group of this name and have our index there, so our own index is not given.
            checked = stack.covers != "nothing"
            packet = decode(data, stack.lobby, {OUTSIDE: INDEX_MAX}, INDEX_MAX, checked=checked)
        except WireError as error:
            stack.reject(error.reason)
            return None
        if packet is None:
            return None
        if stack.chain.hook_of_kind(packet.kind, "outside") is None:
            stack.reject("stranger")
            return None
        return packet

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in state_of(self).items() if name != "stack"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state)
