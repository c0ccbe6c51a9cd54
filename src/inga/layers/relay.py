"""Causal order without stamps: everything passes one member, and nothing overtakes on the way.

    send      to the relay, numbered by us; at the relay, to everybody concerned, numbered by its stream
    relay     pass on what comes, in the order of each sender; its stream is one for all
    receive   the relay's stream in its order: what is for us, under its sender's name and number

Whoever answers a message got it from the relay, which had passed it on before: so it comes before the
answer in the stream, and everywhere. This holds although senders apply their own messages at once,
and only as long as links keep order: both ways are held by number.

From Dewan's "Causality" lectures: docs/protocols/relay.md.
"""

from functools import partial
from typing import ClassVar

from inga.layers.fifo import Fifo
from inga.layers.reliable import Reliable
from inga.model.errors import Gap, UsageError, WireError
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.wire import relay as wire
from inga.wire.relay import Origin


class Hop(Reliable):
    """Repair from hop to hop. That the relay has a message says nothing of its destinations."""

    levels: ClassVar[tuple[str, ...]] = ()


class Relay(Fifo):
    """Sends to the relay; is the relay, if it is this member's turn to be."""

    name = "relay"
    provides = frozenset({"fifo", "causal"})

    def __init__(self, *, echo: bool = False, relay: int = 0) -> None:
        """`relay`: index of the member that passes everything on; the same at every member."""
        super().__init__(echo=echo)
        self.relay = relay
        self._on_way = 0  # bytes passed on that somebody still lacks

    def view(self, view: View) -> None:
        super().view(view)
        if not 0 <= self.relay < len(view):
            raise UsageError(
                f"member {self.relay} cannot relay for a group of {len(view)}; name one of those"
            )
        self._stream = 0  # packets the relay has sent, its own and those of others
        self.stack.held -= self._on_way
        self._on_way = 0

    # Sending

    def down(self, batch: list[Packet]) -> None:
        if self.relay in self.stack.left:
            name = self.stack.view.names[self.relay]
            self.stack.fail(
                Gap(f"{name}, who passed on all messages, has left: nothing can be sent any more")
            )
            return
        super().down(batch)

    def _echo(self, batch: list[Packet]) -> None:
        """Our own application gets them now; then they are made ready for their first hop."""
        super()._echo(batch)
        me = self.stack.me
        for packet in batch:
            packet.ext = wire.put(Origin(me, packet.seq, packet.dst))
            packet.receipt = None
            if me == self.relay:
                packet.seq = self._number()
            else:
                packet.dst = 1 << self.relay

    def gone(self, member: int) -> None:
        if member == self.relay:
            name = self.stack.view.names[member]
            self.stack.notice(f"{name} has left, who passed on all messages: nothing can be sent any more")

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        ours = [packet for packet in batch if self._unfold(packet)]
        if ours:
            super().up(ours)

    def _unfold(self, packet: Packet) -> bool:
        """Give it back its sender's name and number; whether it is any of our business."""
        if packet.unfolded is not None:
            return True  # another layer has held it
        me, link = self.stack.me, (packet.src, packet.seq)
        if self.relay not in (me, packet.src):
            if not packet.bare:
                self.stack.reject("relay", packet)  # somebody takes us, or another, for the relay
            return False
        if not packet.seq:
            self.stack.reject("malformed", packet)
            return False
        try:
            origin = wire.get(packet.ext or b"", len(self.stack.view))
        except WireError as error:
            self.stack.reject(error.reason, packet)
            return False
        if me == self.relay and (origin[:2] != link or packet.bare):
            self.stack.reject("forged", packet)
            return False
        packet.unfolded = link
        packet.src, packet.seq, packet.dst = origin
        packet.bare = packet.bare or packet.src == me
        return True

    def _place(self, packet: Packet) -> tuple[int, int]:
        place: tuple[int, int] = packet.unfolded
        return place

    def _received(self, packet: Packet, step: str, *, n: int | None = None) -> None:
        if packet.src != self.stack.me:  # what we sent ourselves is nothing new
            super()._received(packet, step, n=n)

    def _release(self, out: list[Packet]) -> None:
        if self.stack.me == self.relay:
            self._pass_on(out)
        super()._release(out)

    # As the relay

    def _pass_on(self, batch: list[Packet]) -> None:
        """Send it to its destinations, in the order in which it stands here."""
        me = self.stack.me
        others = ((1 << len(self.stack.view)) - 1) & ~(1 << me)
        out = []
        for packet in batch:
            targets = (others if packet.dst is None else packet.dst & others) & ~(1 << packet.src)
            if not targets:
                continue
            packet.keep()
            # What is for everybody goes to everybody: its sender knows its own.
            copy = Packet(me, packet.view, packet.body, None if packet.dst is None else targets)
            copy.seq = self._number()
            copy.ext, copy.trace = packet.ext, packet.trace
            self._count(copy)
            out.append(copy)
        if out:
            self.below(out)

    def _number(self) -> int:
        self._stream += 1
        return self._stream

    def _count(self, packet: Packet) -> None:
        """What we pass on takes our memory until everybody has it: senders must not outrun that."""
        if self.stack.layer("flow") is None:
            return
        size = len(packet.body)
        self.stack.held += size
        self._on_way += size
        packet.receipt = Receipt()
        packet.receipt.when("confirmed", partial(self._passed_on, size))

    def _passed_on(self, size: int) -> None:
        self.stack.held -= size
        self._on_way -= size
