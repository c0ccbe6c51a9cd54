"""The common part of all order layers: echo, packets to subsets of the group, held packets, and trace rows.

A packet to a subset has one number and one stamp like any other. All members get its header, so that counts
have no gaps; only its destinations get the body. At all others it is *bare*: counted, but not delivered.
"""

from collections.abc import Iterable
from typing import ClassVar

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.stack.layer import Layer


@mypyc_attr(allow_interpreted_subclasses=True)
class Order(Layer):
    """The base class of orders. A subclass numbers packets on their way down, and holds them on their way up."""

    held = 0  # bytes of packets that wait for earlier ones
    no_gate: ClassVar[str] = "it holds nothing"  # why the order has no gate, if it has none

    def __init__(self, *, echo: bool = False) -> None:
        self.echo = echo
        self.held = 0

    def view(self, view: View) -> None:
        # Our index in this view, kept here because the application may take packets after the view was closed.
        self.me = self.stack.me
        self._highest = [0] * len(view)  # the highest number of each member that was released or held

    def seen(self, member: int) -> int:
        """The highest number among the packets of a member that have arrived, released or not."""
        return self._highest[member]

    def gate(self, is_open: bool) -> None:
        """Open or close the gate. While it is open, this member holds no packets: it delivers them on arrival and goes on counting.
        Other members are not affected."""
        raise UsageError(f"order {self.stack.view.recipe or self.name!r} has no gate: {self.no_gate}")

    def overhead(self, members: int) -> int:
        """Bytes that the layer adds to a packet besides the stamp."""
        return 0

    def awaited(self) -> Iterable[int]:
        """The members whose missing packets held packets wait for."""
        return ()

    def sent(self) -> list[int]:
        """How many packets of ours each member has to get."""
        raise NotImplementedError

    def has(self, counts: list[int]) -> bool:
        """Whether so many packets of each member were released here."""
        raise NotImplementedError

    def _sent(self, packet: Packet) -> None:
        """Write the row of a packet of ours that was numbered and is about to leave."""
        if self.stack.trace is not None:
            self._row("send", packet, packet.count, dst=packet.dst)

    def _echo(self, batch: list[Packet]) -> None:
        """Deliver our own packets to our own application at the send, if it gets them. They do not advance its clock."""
        me = self.me
        wanted = [
            packet for packet in batch if self.echo or (packet.dst is not None and packet.dst >> me & 1)
        ]
        copies = []
        for packet in wanted:
            copy = packet.copy_to(me)
            copy.encoded = None
            copies.append(copy)
        if copies:
            self._delivered(copies)
            self.above(copies)

    def _received(self, packet: Packet, step: str, position: int | None = None) -> None:
        """Write a row of a full trace: a copy reached this layer."""
        stack = self.stack
        trace = stack.trace
        if trace is not None and trace.full:
            note = "bare" if self._is_bare(packet) else None
            trace.row(step, stack.now, packet.view, packet.src, packet.seq, n=position, note=note)

    def _hold(self, packet: Packet, position: int) -> None:
        packet.keep()
        if packet.seq > self._highest[packet.src]:
            self._highest[packet.src] = packet.seq
        packet.size = len(packet.body) + 1  # never 0, which means that the packet is not held
        self.held += packet.size
        self._received(packet, "hold", position)

    def _dismissed(self, packets: list[Packet]) -> list[Packet]:
        """Stop counting these packets as held: another layer takes them over, or they are dropped."""
        for packet in packets:
            self.held -= packet.size
            packet.size = 0
        return packets

    def _release(self, out: list[Packet]) -> None:
        """Pass up the packets that are for us, in the order of `out`."""
        mine, highest = [], self._highest
        for packet in out:
            if packet.seq > highest[packet.src]:
                highest[packet.src] = packet.seq
            if packet.size:
                self.held -= packet.size
                packet.size = 0
            if not self._is_bare(packet):
                mine.append(packet)
        if mine:
            self._delivered(mine)
            self.above(mine)

    def _delivered(self, batch: list[Packet]) -> None:
        if self.stack.trace is not None:
            for packet in batch:
                self._row("deliver", packet, packet.count)

    def _took(self, packet: Packet) -> None:
        if self.stack.trace is not None and not self.stack.leaving:  # a trace ends with our goodbye
            self._row("take", packet, 0 if packet.payloads is None else len(packet.payloads))

    def _row(self, step: str, packet: Packet, messages: int, *, dst: int | None = None) -> None:
        """Write a trace row about a packet, with its vector."""
        stack = self.stack
        if stack.trace is not None:
            where = (step, stack.now, packet.view, packet.src, packet.seq)
            stack.trace.row(*where, dst=dst, deps=packet.deps, n=messages)

    def _is_bare(self, packet: Packet) -> bool:
        return packet.bare or (packet.dst is not None and not packet.dst >> self.me & 1)
