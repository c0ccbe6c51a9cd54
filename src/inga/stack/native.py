"""The native wire: datagrams to packets and back, for the views in force, those to come, and for no view at all."""

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
    """One that is no member, known by the address from which it wrote, or by the place where it said that it is."""

    address: Hashable


class Direct(NamedTuple):
    """The same, where only it is to get what is sent, by whatever way there is to it."""

    address: Hashable


AHEAD_MAX = 1024
"""Datagrams of a view that is not installed here yet; what is more is repaired."""

UNKNOWN = -1
"""The tag of no packet."""

PAST_MAX = 4
"""Closed views that are remembered, to help those who have not heard that they are."""


@mypyc_attr(allow_interpreted_subclasses=True)
class NativeWire:
    """The lowest end of a stack. What cannot be read is counted, never raised."""

    def __init__(self, stack: "Stack") -> None:
        self.stack = stack
        self.ahead = Backlog(AHEAD_MAX)  # of views not installed here yet
        self.tag = stack.group  # by which packets of the view in force are known
        self.next_tag: int | None = None  # the same of the view that may follow, if a change is under way
        self.past: dict[int, View] = {}  # closed views by their tags, the newest last
        # In a first view, which members know before they have met: which process each is, as far as that is known.
        # Another one of the same name is not it, and nothing it says is taken for the first one's word.
        self.births: list[int | None] | None = None
        self.spoke_at = stack.now  # when something of ours left last that was for everybody
        # Told of all that is sent to members, while some of them have to be reached in another way as well.
        self.also: Callable[[Address, Datagram], None] | None = None

    def read(self, batch: Iterable[tuple[Buffer, Hashable]], *, is_hearsay: bool = False) -> list[Packet]:
        """What datagrams hold that is of a view in force, or of no view at all. With `is_hearsay` others repair them as they
        were, so that they say nothing about whether their sender is still there, and are read also when it is not: what
        brought them has looked after that."""
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
                    # It said that nothing more is to be expected, or others did: only they hand it round.
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
        """Encode what leaves, once for all who get the same."""
        stack = self.stack
        counts, transmit = stack.counts, stack.transmit if self.also is None else self._transmit_also
        for packet in self.sayable(batch):
            if packet.kind == DATA:
                counts["data"] += 1
            else:
                counts["control"] += 1
                # Where a member's address is unknown it goes to everybody, and only one is meant. Indices mean
                # nothing outside a view.
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
        """Some members have to be reached in another way as well: tell this one of all that is sent; or nobody any more."""
        self.also = tell

    def spoke(self) -> None:
        """Something of ours left that was for everybody, by whatever wire."""
        self.spoke_at = self.stack.now

    def sayable(self, batch: list[Packet]) -> list[Packet]:
        """What of this may be said: who is in no view says only what belongs to none."""
        return [packet for packet in batch if packet.view == OUTSIDE] if self.stack.is_homeless else batch

    def _transmit_also(self, to: "Address", datagram: "Datagram") -> None:
        self.stack.transmit(to, datagram)
        if self.also is not None:
            self.also(to, datagram)

    def answer(self, packet: Packet, address: Hashable) -> None:
        """Send something to one who is no member: by this wire, which all can read, whatever wire its group has. To
        everybody if nobody knows where it is, or where all share one address as on other wires."""
        stack = self.stack
        to = None if address is None or stack.chain.hook("read") is not None else Outsider(address)
        stack.counts["control"] += 1
        stack.transmit(to, self.encode(packet))

    def encode(self, packet: Packet, *, bare: bool = False) -> Buffer | list[Buffer]:
        """A packet's bytes, as packets of this group are known and checked."""
        return encode(packet, self.group_of(packet), bare=bare, covers=self.stack.covers)

    def group_of(self, packet: Packet) -> int:
        """What a packet carries to be known by: what belongs to no view is for all who know the group's name."""
        if packet.view == OUTSIDE:
            return self.stack.lobby
        if self.births is None or packet.lent:  # who gets it need not have met the one that is gone
            return self.tag
        return self.tag ^ (self.births[packet.src] or 0)

    def _tag_from(self, data: Buffer) -> int:
        """By what a packet in a first view is known, if it is of the member that it says."""
        assert self.births is not None
        if len(data) < HEAD.size:
            return UNKNOWN
        _, _, _, _, sections, src, _, _ = HEAD.unpack_from(data)
        if sections & LENT:
            return self.tag
        birth = self.births[src] if src < len(self.births) else None
        return UNKNOWN if birth is None else self.tag ^ birth

    def tag_of(self, view: View) -> int:
        """By what packets of a view are known."""
        return view_tag(self.stack.identity, view)

    def prepare(self, view: View, secret: bytes) -> None:
        """In a secured group: that view, with this secret, may follow."""
        guard, me = self.stack.guard, view.index(self.stack.member)
        assert guard is not None and me is not None
        guard.expect(self.tag_of(view), view, me, secret)

    def is_past(self, tag: int) -> bool:
        """Whether that is the tag of a view that is closed here."""
        return any(self.tag_of(view) == tag for view in self.past.values())

    def enter(self, view: View) -> None:
        """This view is in force from now on."""
        self.tag = self.tag_of(view)
        if self.stack.guard is not None:
            self.stack.guard.enter(self.tag, view, self.stack.me, self.stack.now)
        datagram_max = self.stack.datagram_max
        # The largest body that fits one datagram beside its header and a vector or two.
        self.body_max = datagram_max - min(HEADER_MAX + 6 * len(view), datagram_max // 2)

    @property
    def payload_max(self) -> int:
        """The same, of what the application may put into it: the order may add to a body."""
        body_max, overhead = self.body_max, self.stack.chain.hook("overhead")
        return body_max if overhead is None else max(body_max - overhead(len(self.stack.view)), body_max // 2)

    def is_elsewhere(self, packet: Packet) -> bool:
        """Whether it comes from another address than its sender's, as far as that is known."""
        known = self.stack.addresses.get(packet.src)
        return known is not None and packet.where is not None and packet.where != known

    def close(self, view: View) -> None:
        """That view ends: what still comes of it is late."""
        for birth in {0} if self.births is None else {birth for birth in self.births if birth is not None}:
            self.past[self.tag ^ birth] = view
        while len({view.number for view in self.past.values()}) > PAST_MAX:
            del self.past[next(iter(self.past))]
        self.next_tag = self.births = self.also = None

    def catch_up(self) -> None:
        """Read what came too early for the views before this one."""
        if self.ahead:
            waiting, self.ahead = self.ahead, Backlog(AHEAD_MAX)
            self.take(waiting)

    def take(self, batch: Iterable[tuple[Buffer, Hashable]]) -> None:
        """Read datagrams that were opened before, or that a member has handed on."""
        read = self.stack.chain.hook("read") or self._read_opened
        if packets := read(batch):
            self.stack.chain.lowest(packets)

    def seal(self, guard: Guard) -> None:
        """Seal what is about to leave. What the guard says to those who are reached by others goes there, too."""
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
            # Whoever was in a first view can say any tag in it, but no number of a view that follows.
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
        """A datagram is of the next view: it is read once that is installed."""
        if not self.ahead.keep(data, source, address):
            self.stack.reject("early")

    def _note_ahead(self, number: int) -> None:
        """Who speaks in the next view has installed it."""
        self.stack.counts["ahead"] += 1
        for watch in self.stack.chain.hooks("ahead"):
            watch(number)

    def _read_late(self, view: View, data: Buffer, address: Hashable) -> None:
        """A packet of a view that is closed here: it took its time, or its sender does not know."""
        stack = self.stack
        stack.counts["stale"] += 1
        for late in stack.chain.hooks("late"):
            late(view, source_of(data), address)

    def _read_of_another_view(self, data: Buffer, address: Hashable) -> None:
        stack, number = self.stack, view_of(data)
        if number < stack.view.number:
            stack.counts["stale"] += 1  # of a view that is closed
        elif number == stack.view.number + 1:
            self._keep_for_next(data, address)
        else:
            stack.reject("view")

    def _read_outside(self, data: Buffer) -> Packet | None:
        """Somebody says something that belongs to no view: a member that greets or leaves, or a stranger."""
        stack = self.stack
        try:
            # A sender that means another group of this name may have our index in its group.
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
