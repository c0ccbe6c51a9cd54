"""Causal order by vector time stamps: nothing is delivered before its cause.

    send     count it, stamp it with what the application has taken, pass it down
    receive  release it when it is the next of its sender and its causes are released; else hold it
    take     the application has it now: it becomes a cause of what is sent from here on

The inbox counts what was released and decides; the clock counts what was taken and stamps. At the
take, and only there, it is known whether a packet is concurrent with something the application knew.

From Dewan's "Causality" lectures, with the standard delivery test: docs/protocols/causality.md.
"""

from inga.causality.clock import SiteClock
from inga.causality.frontier import Frontier
from inga.causality.inbox import DUPLICATE, FORGED, HELD, Inbox
from inga.layers.order import Order
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.stamp import Deps
from inga.model.view import View

POLICIES = ("deliver", "error", "ignore")
"""What to do with a concurrent message: flag it, let the iteration raise, or compute no flags."""


class Causal(Order):
    """Stamps, holds, and sees concurrency."""

    name = "causal"
    requires = frozenset({"reliable"})
    provides = frozenset({"fifo", "causal"})

    def __init__(self, *, echo: bool = False, on_concurrent: str = "deliver") -> None:
        super().__init__(echo=echo)
        if on_concurrent not in POLICIES:
            raise UsageError(f"on_concurrent is one of {', '.join(POLICIES)}, not {on_concurrent!r}")
        self.on_concurrent = on_concurrent
        self._subsets = False  # some packets were not for everybody, so pasts must be joined whole

    def view(self, view: View) -> None:
        n = len(view)
        self.clock = SiteClock(self.stack.me, n)
        self.inbox: Inbox[Packet] = Inbox(self.stack.me, n)
        self.frontier = Frontier() if self.on_concurrent != "ignore" else None
        self._past = [[0] * n for _ in range(n)]  # of each sender's last released packet

    def down(self, batch: list[Packet]) -> None:
        for packet in batch:
            packet.seq, packet.deps, packet.stamp = self.clock.stamp()
            self.inbox.own(packet.seq)
            if self.frontier is not None:
                packet.branch, packet.merged = self.frontier.add(packet.src, packet.seq, packet.deps)
            self._sent(packet)
        self._echo(batch)
        self.below(batch)

    def up(self, batch: list[Packet]) -> None:
        out: list[Packet] = []
        offer = self.inbox.offer
        trace = self.stack.trace
        full = trace is not None and trace.full
        for packet in batch:
            stamp = packet.stamp
            if stamp is None or not packet.seq:
                self.stack.reject("malformed", packet)
                continue
            if full:
                self._received(packet, "receive")
            answer = offer(packet.src, packet.seq, stamp.delta, packet, out)
            if answer == HELD:
                self._hold(packet)
            elif answer == DUPLICATE:
                self._received(packet, "duplicate")
            elif answer == FORGED:
                self.stack.reject("forged", packet)
        if out:
            self._rebuild(out)
            self._release(out)

    def taken(self, packets: list[Packet]) -> None:
        clock, me = self.clock, self.stack.me
        for packet in packets:
            if packet.src == me:
                continue
            assert packet.deps is not None and packet.stamp is not None
            if self._subsets:
                clock.join(packet.deps)
            clock.take(packet.src, packet.seq)
            if self.frontier is not None:
                self._flag(packet, packet.deps, packet.stamp.height)
            self._took(packet)

    @property
    def holding(self) -> int:
        return self.inbox.held

    def drain(self) -> list[Packet]:
        return self._dismissed(self.inbox.drain())

    def _rebuild(self, out: list[Packet]) -> None:
        """Full pasts from deltas: each sender's packets are released in its order."""
        for packet in out:
            src = packet.src
            past = self._past[src]
            assert packet.stamp is not None
            for k, number in packet.stamp.delta:
                past[k] = number
            past[src] = packet.seq - 1
            packet.deps = tuple(past)
            if packet.dst is not None:
                self._subsets = True

    def _flag(self, packet: Packet, deps: Deps, height: int) -> None:
        """After the take the packet's past is part of ours: equal sizes mean equal sets."""
        assert self.frontier is not None
        packet.branch, packet.merged = self.frontier.add(packet.src, packet.seq, deps)
        packet.concurrent = height != self.clock.height
        if packet.concurrent:
            packet.known = tuple(self.clock.vector)
        trace = self.stack.trace
        if trace is not None and trace.full:
            where = (self.stack.now, packet.view, packet.src, packet.seq)
            if packet.concurrent:
                trace.row("concurrent", *where)
            if packet.merged:
                trace.row("merge", *where, n=packet.branch)
