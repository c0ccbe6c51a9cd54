"""FIFO order, in which each sender's packets are released in the order in which it sent them; and no order at all, in
which nothing is held.

While the group is traced, packets carry a full vector, which is merged when the application takes a message.
The orders do not use it, but it tells readers of the trace which message caused which.
"""

from inga.causality.arrivals import Arrivals
from inga.causality.clock import SiteClock
from inga.layers.order import Order
from inga.model.compiled import mypyc_attr
from inga.model.packet import Packet
from inga.model.view import View

EARLY_MAX = 4096
"""How many packets after a gap are remembered per sender where nothing is repaired."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Unordered(Order):
    """Numbers packets, and passes on each once, in order of arrival."""

    name = "none"
    requires = frozenset({"reliable"})

    def view(self, view: View) -> None:
        super().view(view)
        n = len(view)
        self._seq = 0
        self._arrived = [Arrivals() for _ in range(n)]
        self._clock = SiteClock(self.me, n) if view.traced else None

    def sent(self) -> list[int]:
        return [self._numbered] * len(self._arrived)

    def has(self, counts: list[int]) -> bool:
        me = self.me
        return all(
            arrived.expected > count
            for member, (arrived, count) in enumerate(zip(self._arrived, counts, strict=True))
            if member != me
        )

    def bereft(self, member: int) -> None:
        self._arrived[member].give_up()

    @property
    def _numbered(self) -> int:
        return self._seq if self._clock is None else self._clock.vector[self.me]

    def down(self, batch: list[Packet]) -> None:
        for packet in batch:
            self._number(packet)
            self._sent(packet)
        self._echo(batch)
        self.below(batch)

    def up(self, batch: list[Packet]) -> None:
        out: list[Packet] = []
        for packet in batch:
            if not packet.seq:
                self.stack.reject("malformed", packet)
                continue
            packet.deps = packet.trace
            self._offer(packet, out)
        if out:
            self._release(out)

    def taken(self, packets: list[Packet]) -> None:
        me, clock = self.me, self._clock
        for packet in packets:
            if packet.src == me:
                continue
            if clock is not None:
                if packet.deps is not None:
                    clock.join(packet.deps)
                clock.take(packet.src, packet.seq)
            self._took(packet)

    def _number(self, packet: Packet) -> None:
        if self._clock is None:
            self._seq = packet.seq = self._seq + 1
        else:
            packet.seq, packet.deps, _ = self._clock.stamp()
            packet.trace = packet.deps

    def _offer(self, packet: Packet, out: list[Packet]) -> None:
        self._received(packet, "receive")
        src, number = self._place(packet)
        if self._arrived[src].add(number):
            out.append(packet)
        else:
            self._received(packet, "duplicate")

    def _place(self, packet: Packet) -> tuple[int, int]:
        """The member to whose sequence the packet belongs, and its number in it."""
        return packet.src, packet.seq


@mypyc_attr(allow_interpreted_subclasses=True)
class Unreliable(Unordered):
    """No order over a network that loses packets: a missing number is neither waited for nor remembered for ever."""

    requires = frozenset()

    def _offer(self, packet: Packet, out: list[Packet]) -> None:
        super()._offer(packet, out)
        arrived = self._arrived[packet.src]
        if len(arrived.early) > EARLY_MAX:
            arrived.add(arrived.expected)  # give up the oldest missing number


@mypyc_attr(allow_interpreted_subclasses=True)
class Fifo(Unordered):
    """Holds a packet until all earlier ones of its sender are released."""

    name = "fifo"
    provides = frozenset({"fifo"})

    def view(self, view: View) -> None:
        super().view(view)
        self._held: list[dict[int, Packet]] = [{} for _ in range(len(view))]
        self._is_open = False

    def gate(self, is_open: bool) -> None:
        self._is_open = is_open
        if is_open:
            self._release(self._let_go())

    def bereft(self, member: int) -> None:
        """Drop held packets of that member, since packets of it before them are missing and will never arrive."""
        super().bereft(member)
        self._dismissed(list(self._held[member].values()))
        self._held[member].clear()

    def awaited(self) -> list[int]:
        return [src for src, held in enumerate(self._held) if held]

    def _offer(self, packet: Packet, out: list[Packet]) -> None:
        src, seq = self._place(packet)
        arrived = self._arrived[src]
        self._received(packet, "receive")
        if not arrived.add(seq):
            self._received(packet, "duplicate")
            return
        held = self._held[src]
        if seq >= arrived.expected and not self._is_open:
            held[seq] = packet
            self._hold(packet, len(held))
            return
        out.append(packet)
        if held:
            # Packets that passed an open gate before their turn are not held.
            out.extend(held.pop(later) for later in range(seq + 1, arrived.expected) if later in held)

    def drain(self) -> list[Packet]:
        return self._dismissed(self._let_go())

    def _let_go(self) -> list[Packet]:
        packets = [packet for held in self._held for _, packet in sorted(held.items())]
        for held in self._held:
            held.clear()
        return packets
