"""Causal order without stamps: every message passes through one member, over links that keep their order.

    send      number the packet and send it to the relay; at the relay, number it in its stream and send it to its destinations
    relay     pass on packets in the order of each sender, as one stream for all members
    receive   take the relay's stream in its order; deliver packets for us under the name and number of their original sender

A member that answers a message got it from the relay, which had passed it on before: so the message precedes the
answer in the stream, and at every member. This holds although senders apply their own messages at once, but only
if links keep order, so in both directions a packet is held until those with smaller numbers have arrived.

From Dewan's "Causality" lectures: docs/protocols/relay.md.
"""

from functools import partial

from inga.layers.fifo import Fifo
from inga.layers.reliable import Reliable
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.wire import relay as wire
from inga.wire.relay import Origin


@mypyc_attr(allow_interpreted_subclasses=True)
class Hop(Reliable):
    """Repairs each hop. Receipts reach no level: that the relay has a message does not mean that its destinations have it."""

    levels: tuple[str, ...] = ()


@mypyc_attr(allow_interpreted_subclasses=True)
class Relay(Fifo):
    """Sends to the relay, or acts as the relay, if this member is it."""

    name = "relay"
    provides = frozenset({"fifo", "causal"})

    def __init__(self, *, echo: bool = False, relay: int = 0) -> None:
        """`relay` is the index of the member that passes on all messages; it is the same at every member."""
        super().__init__(echo=echo)
        self.relay = relay
        self._on_way = 0  # bytes passed on that some members may still lack

    def view(self, view: View) -> None:
        super().view(view)
        if view.number == 1 and not 0 <= self.relay < len(view):
            raise UsageError(
                f"member {self.relay} cannot relay for a group of {len(view)}; name one of those"
            )
        self.relay = min(self.relay, len(view) - 1)  # the group may have become smaller
        self._stream = 0  # packets that we, as the relay, have sent: our own and those of others
        self._sent_to = [0] * len(view)  # packets of ours for each member
        self._got = [0] * len(view)  # packets of each member for us

    def closed(self) -> None:
        self.held -= self._on_way
        self._on_way = 0

    def overhead(self, members: int) -> int:
        """Bytes for the original sender, its number and the destinations."""
        return 16 + members // 8

    def sent(self) -> list[int]:
        """How many packets of ours are for each other member, by way of the relay. Our own entry counts all packets."""
        counts = list(self._sent_to)
        counts[self.me] = self._numbered
        return counts

    def has(self, counts: list[int]) -> bool:
        """Whether so many packets of each member were released here. If the relay has departed, the answer is yes: packets that it had
        not passed on are lost, and all members have the others by now."""
        if self.relay in self.stack.left:
            return True
        pairs = zip(self._got, counts, strict=True)
        return all(have >= count for k, (have, count) in enumerate(pairs) if k != self.me)

    def gate(self, is_open: bool) -> None:
        if self.me == self.relay:
            raise UsageError("the relay holds for everybody, so its gate stays closed; open that of another")
        super().gate(is_open)

    # Sending

    def _echo(self, batch: list[Packet]) -> None:
        """Deliver the packets to our own application, if it gets them; then address them to the relay."""
        super()._echo(batch)
        me = self.me
        for packet in batch:
            for j in self.stack.others:
                self._sent_to[j] += packet.dst is None or packet.dst >> j & 1
            packet.ext = wire.put(Origin(me, packet.seq, packet.dst))
            packet.receipt = None
            if me == self.relay:
                packet.seq = self._next_of_stream()
            else:
                packet.dst = 1 << self.relay

    def gone(self, member: int) -> None:
        if member == self.relay:
            name = self.stack.view.names[member]
            self.stack.notice(
                "relay.gone", f"{name} is gone, who passed on all messages: those on their way to it are lost"
            )

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        super().up([original for packet in batch if (original := self._unfold(packet)) is not None])

    def _unfold(self, packet: Packet) -> Packet | None:
        """Return the packet as its original sender sent it; None if it is not for us or invalid. It is a new packet, because lower
        layers know the one that arrived by its number on the link, and may see that one again."""
        if packet.hop is not None:
            return packet  # unfolded before, by the layer that held the packet until now
        me, link = self.me, (packet.src, packet.seq)
        if self.relay not in (me, packet.src):
            if not packet.bare:
                self.stack.reject("relay", packet)  # for its sender another member is the relay
            return None
        if not packet.seq:
            self.stack.reject("malformed", packet)
            return None
        try:
            origin = wire.get(bytes(packet.ext or b""), self.stack.sizes[packet.view])
        except WireError as error:
            self.stack.reject(error.reason, packet)
            return None
        if me == self.relay and (origin[:2] != link or packet.bare):
            self.stack.reject("forged", packet)
            return None
        original = Packet(origin.src, packet.view, packet.body, origin.dst)
        original.seq, original.hop, original.count = origin.seq, link, packet.count
        original.ext, original.trace = packet.ext, packet.trace
        original.bare = packet.bare or origin.src == me
        return original

    def _place(self, packet: Packet) -> tuple[int, int]:
        assert packet.hop is not None
        return packet.hop

    def _received(self, packet: Packet, step: str, position: int | None = None) -> None:
        if packet.src != self.me:  # our own messages were echoed at the send
            super()._received(packet, step, position)

    def _release(self, out: list[Packet]) -> None:
        if self.me == self.relay:
            self._pass_on(out)
        for packet in out:
            if not self._is_bare(packet):
                self._got[packet.src] += 1
        super()._release(out)

    # As the relay

    def _pass_on(self, batch: list[Packet]) -> None:
        """Pass on packets to their destinations, in this order."""
        me, view = self.me, self.stack.view
        out = []
        for packet in batch:
            targets = (1 << len(view)) - 1 if packet.dst is None else packet.dst
            targets &= ~(1 << me | 1 << packet.src)
            if not targets:
                continue
            packet.keep()
            # A message for all goes to its sender, too, which drops it: one datagram serves all members.
            copy = Packet(me, view.number, packet.body, None if packet.dst is None else targets)
            copy.seq = self._next_of_stream()
            copy.ext, copy.count, copy.trace = packet.ext, packet.count, packet.trace
            self._count(copy)
            out.append(copy)
        if out:
            self.below(out)

    def _next_of_stream(self) -> int:
        self._stream += 1
        return self._stream

    def _count(self, packet: Packet) -> None:
        """Count a packet that we pass on as held until all members have it: it takes memory, so flow control has to
        slow down the senders."""
        if self.stack.layer("flow") is None:
            return
        size = len(packet.body)
        self.held += size
        self._on_way += size
        packet.receipt = Receipt()
        packet.receipt.when("confirmed", partial(self._passed_on, size))

    def _passed_on(self, size: int) -> None:
        size = min(size, self._on_way)
        self.held -= size
        self._on_way -= size
