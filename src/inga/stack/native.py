"""The native wire: datagrams to packets and back, for the views in force, those to come, and for no view at all."""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from inga.model.errors import WireError
from inga.model.packet import DATA, HEADER_MAX, Buffer, Packet
from inga.model.view import View
from inga.wire.packet import INDEX_MAX, OUTSIDE, decode, encode, view_of

if TYPE_CHECKING:
    from inga.stack.stack import Stack


class Outsider(NamedTuple):
    """A sender that is no member, known by the address from which it wrote."""

    address: Hashable


AHEAD_MAX = 1024
"""Datagrams of a view that is not installed here yet; what is more is repaired."""


class NativeWire:
    """The lowest end of a stack. What cannot be read is counted, never raised."""

    def __init__(self, stack: "Stack") -> None:
        self.stack = stack
        self.ahead: list[tuple[bytes, Hashable]] = []  # of views not installed here yet

    def read(self, batch: Iterable[tuple[Buffer, Hashable]]) -> list[Packet]:
        """What datagrams hold that is of a view in force, or of no view at all."""
        packets: list[Packet] = []
        stack = self.stack
        group, sizes, me, left = stack.group, stack.sizes, stack.me, stack.left
        for data, address in batch:
            try:
                packet = decode(data, group, sizes, me)
            except WireError as error:
                packet = self._read_otherwise(error.reason, data, address)
            if packet is None:
                continue
            if packet.src in left and packet.view != OUTSIDE:  # it said that nothing more is to be expected
                stack.counts["late"] += 1
                continue
            packet.where = address
            packets.append(packet)
        return packets

    def write(self, batch: list[Packet]) -> None:
        """Encode what leaves, once for all who get the same."""
        stack = self.stack
        counts, transmit = stack.counts, stack.transmit
        for packet in batch:
            if packet.kind == DATA:
                counts["data"] += 1
            else:
                counts["control"] += 1
                # Where a member's address is unknown it goes to everybody, and only one is meant. A newcomer is
                # told of its view in the one before, which has no place for it.
                members = stack.sizes.get(packet.view, INDEX_MAX)
                if packet.to is not None and packet.dst is None and packet.to < members:
                    packet.dst = 1 << packet.to
            counts["bytes"] += len(packet.body)
            if packet.encoded is None:
                packet.encoded = [encode(packet, self.group_of(packet)), None]
            full, bare = packet.encoded
            if packet.dst is None:
                transmit(packet.to, full)
                continue
            for member in stack.others if packet.to is None else (packet.to,):
                if packet.dst >> member & 1:
                    transmit(member, full)
                    continue
                if bare is None:
                    bare = packet.encoded[1] = encode(packet, stack.group, bare=True)
                transmit(member, bare)

    def answer(self, packet: Packet, address: Hashable) -> None:
        """Send something to one who is no member: by this wire, which all can read, whatever wire its group has. To
        everybody if nobody knows where it is, or where all share one address as on other wires."""
        stack = self.stack
        to = None if address is None or stack.chain.hook("read") is not None else Outsider(address)
        stack.counts["control"] += 1
        stack.transmit(to, encode(packet, self.group_of(packet)))

    def group_of(self, packet: Packet) -> int:
        """What a packet carries to be known by: what belongs to no view is for all who know the group's name."""
        return self.stack.lobby if packet.view == OUTSIDE else self.stack.group

    def enter(self, view: View) -> None:
        """This view is in force from now on."""
        datagram_max = self.stack.datagram_max
        # The largest body that fits one datagram beside its header and a vector or two.
        self.body_max = datagram_max - min(HEADER_MAX + 6 * len(view), datagram_max // 2)

    @property
    def payload_max(self) -> int:
        """The same, of what the application may put into it: the order may add to a body."""
        body_max, overhead = self.body_max, self.stack.chain.hook("overhead")
        return body_max if overhead is None else max(body_max - overhead(len(self.stack.view)), body_max // 2)

    def catch_up(self) -> None:
        """Read what came too early for the views before this one."""
        if self.ahead:
            waiting, self.ahead = self.ahead, []
            self.stack.receive(waiting, now=self.stack.now)

    def _read_otherwise(self, reason: str, data: Buffer, address: Hashable) -> Packet | None:
        if reason in ("view", "group") and view_of(data) == OUTSIDE:
            return self._read_outside(data)
        if reason == "view":
            self._read_of_another_view(data, address)
        else:
            self.stack.reject(reason)
        return None

    def _read_of_another_view(self, data: Buffer, address: Hashable) -> None:
        stack, number = self.stack, view_of(data)
        watchers = stack.chain.hooks("ahead")
        if number < stack.view.number:
            stack.counts["stale"] += 1  # of a view that is closed
        elif number == stack.view.number + 1 and (watchers or not stack.views.fixed):
            stack.counts["ahead"] += 1
            if len(self.ahead) < AHEAD_MAX:
                self.ahead.append((bytes(data), address))
            for watch in watchers:
                watch(number)
        else:
            stack.reject("view")

    def _read_outside(self, data: Buffer) -> Packet | None:
        """Somebody says something that belongs to no view: a member that greets or leaves, or a stranger."""
        stack = self.stack
        try:
            # A sender that means another group of this name may have our index in its group.
            packet = decode(data, stack.lobby, {OUTSIDE: INDEX_MAX}, INDEX_MAX)
        except WireError as error:
            stack.reject(error.reason)
            return None
        if packet is None or packet.is_for_others(stack.me):
            return None
        if stack.chain.hook_of_kind(packet.kind, "outside") is None:
            stack.reject("stranger")
            return None
        return packet

    def __getstate__(self) -> dict[str, Any]:
        return {"ahead": self.ahead, "body_max": self.body_max}
