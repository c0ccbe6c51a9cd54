"""Causal order by vector time stamps: nothing is delivered before its cause.

    send     count the packet, stamp it with what the application has taken, pass it down
    receive  release the packet when it is the next of its sender and its causes are released; otherwise hold it
    take     the application has begun the packet: it is a cause of all packets sent from now on
    gate     while it is open, nothing is held: a packet that arrives before its causes is delivered and remembered, and
             counted when its turn comes

The inbox counts released packets and decides; the clock counts taken packets and makes stamps. Whether a packet is
concurrent with one that the application knew is certain only when it is taken.

From Dewan's "Causality" lectures, with the standard delivery test: docs/protocols/causality.md.
"""

from typing import ClassVar

from inga.causality.clock import SiteClock
from inga.causality.frontier import Frontier
from inga.causality.inbox import DUPLICATE, FORGED, HELD, Inbox
from inga.layers.order import Order
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.stamp import Deps, Stamp, is_past
from inga.model.view import View

POLICIES = ("deliver", "error", "ignore")
"""What to do with concurrent messages: flag them, let the iteration raise, or compute no flags."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Causal(Order):
    """Stamps packets, holds them until their causes are released, and detects concurrency."""

    name = "causal"
    requires = frozenset({"reliable"})
    provides = frozenset({"fifo", "causal"})
    flags: ClassVar[bool] = True

    def __init__(self, *, echo: bool = False, on_concurrent: str = "deliver") -> None:
        super().__init__(echo=echo)
        if on_concurrent not in POLICIES:
            raise UsageError(f"on_concurrent is one of {', '.join(POLICIES)}, not {on_concurrent!r}")
        self.on_concurrent = on_concurrent
        # The newest known packet of each sender, if an error may have to show it.
        self._latest: dict[int, Packet] = {}
        self._subsets = False  # packets to subsets were released, so the clock must join whole pasts

    def view(self, view: View) -> None:
        super().view(view)
        n = len(view)
        self.clock = SiteClock(self.me, n)
        self.inbox: Inbox[Packet] = Inbox(self.me, n)
        self.frontier = Frontier() if self.on_concurrent != "ignore" else None
        self._past = [[0] * n for _ in range(n)]  # the vector of each sender's last released packet
        self._is_open = False
        # Packets that passed an open gate before their turn, and whether they were taken.
        self._early: dict[tuple[int, int], bool] = {}
        # For a full trace: packets that were found to be concurrent before they were taken, and whether they were found to open a
        # branch, too; and packets that were delivered and are not taken yet.
        self._noticed: dict[tuple[int, int], bool] = {}
        self._unread: set[tuple[int, int]] = set()

    def extend(self, view: View) -> None:
        n = len(view)
        self.clock.grow(n)
        self.inbox.grow(n)
        for past in self._past:
            past += [0] * (n - len(past))
        self._past += [[0] * n for _ in range(n - len(self._past))]
        self._highest += [0] * (n - len(self._highest))

    def base(self) -> dict[str, int]:
        return {"seq": self.clock.vector[self.me]}

    def adopt(self, bases: dict[str, list[int]]) -> None:
        self.clock.adopt(bases["seq"])
        self.inbox.adopt(bases["seq"])

    def sent(self) -> list[int]:
        return [self.clock.vector[self.me]] * len(self.clock.vector)

    def has(self, counts: list[int]) -> bool:
        return all(map(int.__ge__, self.inbox.vector, counts))

    def awaited(self) -> set[int]:
        return {member for member, _, _ in self.inbox.missing()}

    def bereft(self, member: int) -> None:
        """Drop packets of that member held behind a missing one, which will never arrive."""
        for packet in self._dismissed(self.inbox.discard(member, self.inbox.before_hole(member))):
            self._early.pop((packet.src, packet.seq), None)

    def forgo(self) -> None:
        """Release held packets of present members, and held packets that precede these. All that are still held follow
        packets which no member has.

        There are such packets only if some member's gate was open: its application may have answered a packet of a departed
        member that follows a lost one. All other members have dropped that packet, and get the answer without it."""
        left, held, named = self.stack.left, self.inbox.items(), [0] * len(self.inbox.vector)
        for packet in held:
            if packet.src not in left and packet.stamp is not None:
                for k, count in packet.stamp.delta:
                    named[k] = max(named[k], count)
        self._release_bereft(
            [packet for packet in held if packet.src not in left or packet.seq <= named[packet.src]]
        )

    def _release_bereft(self, packets: list[Packet]) -> None:
        """Release packets although causes of them are missing, in the order of their heights: a cause has a smaller
        height than its effect."""
        ordered = sorted(packets, key=lambda packet: packet.stamp.height if packet.stamp else 0)
        out: list[Packet] = []
        self.inbox.force([(packet.src, self._number(packet)) for packet in ordered], out)
        self._pass_on(out)

    def _number(self, packet: Packet) -> int:
        """The number by which the inbox counts the packet."""
        return packet.seq

    def past(self, sender: int) -> tuple[int, ...]:
        """The causal past that the last released packet of a sender names."""
        return tuple(self._past[sender])

    # Packets

    def down(self, batch: list[Packet]) -> None:
        for packet in batch:
            packet.seq, packet.deps, packet.stamp = self.clock.stamp()
            self.inbox.own(packet.seq)
            if self.frontier is not None:
                packet.branch, packet.merged = self.frontier.add(packet.src, packet.seq, packet.deps)
            self._sent(packet)
            if self.on_concurrent == "error":
                self._latest[packet.src] = packet.copy_to(packet.src)
        self._echo(batch)
        self.below(batch)

    def up(self, batch: list[Packet]) -> None:
        out: list[Packet] = []
        offer = self.inbox.offer
        full = self._is_told_everything()
        for packet in batch:
            stamp = packet.stamp
            if stamp is None or not packet.seq:
                self.stack.reject("malformed", packet)
                continue
            if full:
                self._received(packet, "receive")
                self._pass_on(out)
                out = []
                self._notice_arrival(packet, stamp)
            answer = offer(packet.src, packet.seq, stamp.delta, packet, out)
            if answer == HELD:
                if self._is_open:
                    self._pass_on(out)
                    out = []
                    self._let_through([packet])
                else:
                    self._hold(packet, self.inbox.held)
            elif answer == DUPLICATE:
                self._received(packet, "duplicate")
            elif answer == FORGED:
                self.stack.reject("forged", packet)
        if out:
            self._pass_on(out)

    def taken(self, packets: list[Packet]) -> None:
        clock, me = self.clock, self.me
        for packet in packets:
            if packet.src == me:
                continue
            deps = packet.deps
            if deps is None:  # it passed an open gate before its turn: its causes are not known yet
                clock.take(packet.src, packet.seq)
                self._early[packet.src, packet.seq] = True
                self._noticed.pop((packet.src, packet.seq), None)
                self._took(packet)
                continue
            assert packet.stamp is not None
            if self._subsets:
                clock.join(deps)
            clock.take(packet.src, packet.seq)
            if self.frontier is not None:
                self._flag(packet, deps, packet.stamp.height)
                if self.on_concurrent == "error":
                    self._latest[packet.src] = packet
            self._took(packet)

    def recall(self, member: int, seq: int) -> Packet | None:
        packet = self._latest.get(member)
        return packet if packet is not None and packet.seq == seq else None

    def drain(self) -> list[Packet]:
        return self._dismissed(
            [packet for packet in self.inbox.drain() if (packet.src, packet.seq) not in self._early]
        )

    # The gate

    def gate(self, is_open: bool) -> None:
        """Open or close the gate.

        A packet that passes an open gate is counted only when its turn comes, so that no effect of it is released at a
        closed gate before its causes. Our stamps name the highest number taken of each sender, and that
        packet's own stamp names its causes that have not arrived here yet."""
        self._is_open = is_open
        if not is_open:
            return
        held = [packet for packet in self.inbox.items() if (packet.src, packet.seq) not in self._early]
        held.sort(key=lambda packet: (packet.stamp.height if packet.stamp else 0, packet.src))
        if held:
            self._let_through(held)

    def _let_through(self, packets: list[Packet]) -> None:
        for packet in packets:
            packet.keep()  # it stays in the inbox until its turn comes
            self._early[packet.src, packet.seq] = False
        self._release(packets)

    def _count_early(self, out: list[Packet]) -> list[Packet]:
        """Return those of the packets whose turn has come that have not passed an open gate before. The others were delivered
        then: now that their causes are known, the clock and the frontier take these in, if the application has taken them."""
        rest = []
        for packet in out:
            was_taken = self._early.pop((packet.src, packet.seq), None)
            if was_taken is None:
                rest.append(packet)
            elif was_taken:
                assert packet.deps is not None
                self.clock.join(packet.deps)
                if self.frontier is not None:
                    self.frontier.add(packet.src, packet.seq, packet.deps)
            elif self._notes_unread and not self._is_bare(packet):
                self._unread.add((packet.src, packet.seq))
        return rest

    # Steps

    def _pass_on(self, out: list[Packet]) -> None:
        if not out:
            return
        self._rebuild(out)
        if self._early:
            out = self._count_early(out)
        if self._notes_unread:
            for packet in out:
                if not self._is_bare(packet):
                    self._notice_release(packet)
        self._release(out)

    def _rebuild(self, out: list[Packet]) -> None:
        """Rebuild full vectors from deltas, which is possible because each sender's packets are released in their order."""
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
        """Determine whether a packet that was just taken is concurrent with a known one, and its branches.

        After a take the packet's past is part of ours, so equal heights mean equal sets of known packets: then it is
        concurrent with nothing. If a later packet of its sender passed an open gate and was taken before it, this does not hold, and
        vectors are compared."""
        frontier = self.frontier
        assert frontier is not None
        parted = bool(frontier.ends)
        branches = frontier.opened
        packet.branch, packet.merged = frontier.add(packet.src, packet.seq, deps)
        if self.clock.vector[packet.src] > packet.seq:
            packet.concurrent = self._is_concurrent(packet.src, deps)
        else:
            packet.concurrent = height != self.clock.height
        if packet.concurrent:
            packet.known = tuple(self.clock.vector)
        trace = self.stack.trace
        if trace is not None and trace.full:
            where = (self.stack.now, packet.view, packet.src, packet.seq)
            self._unread.discard((packet.src, packet.seq))
            noticed = self._noticed.pop((packet.src, packet.seq), None)
            if packet.concurrent and noticed is None:
                trace.row("concurrent", *where)
            if parted and frontier.opened > branches and not noticed:
                trace.row("branch", *where, n=packet.branch)
            if packet.merged:
                trace.row("merge", *where, n=packet.branch)

    def _is_concurrent(self, src: int, deps: Deps) -> bool:
        """Whether the application knows a packet of a member other than `src` that this past does not name."""
        return any(
            known > (deps[k] if k < len(deps) else 0) for k, known in enumerate(self.clock.vector) if k != src
        )

    # Rows of a full trace about packets that are not taken yet. A packet that is not for us is never taken, so it gets no such row.

    def _is_told_everything(self) -> bool:
        trace = self.stack.trace
        return trace is not None and trace.full

    @property
    def _notes_unread(self) -> bool:
        """Whether to remember which packets were delivered and are not taken yet: a full trace with flags needs it."""
        return self.frontier is not None and self._is_told_everything()

    def _notice_arrival(self, packet: Packet, stamp: Stamp) -> None:
        """On arrival, write the rows that are certain already. The packet's past is known if its sender's previous
        packet was released."""
        if self._is_bare(packet) or not self._has_past(packet):
            return
        past = list(self._past[packet.src])
        for k, number in stamp.delta:
            past[k] = number
        past[packet.src] = packet.seq - 1
        deps = tuple(past)
        if self._notice_concurrent(packet, deps) and all(map(int.__le__, deps, self.clock.vector)):
            self._notice_branch(packet, deps)

    def _notice_release(self, packet: Packet) -> None:
        """On release, write the rows that are certain by now. All packets that precede this one have been released, or are with it."""
        deps = packet.deps
        assert deps is not None
        if self._notice_concurrent(packet, deps) and not any(is_past(deps, *each) for each in self._unread):
            self._notice_branch(packet, deps)
        self._unread.add((packet.src, packet.seq))

    def _notice_concurrent(self, packet: Packet, deps: Deps) -> bool:
        """Whether a packet is known to be concurrent with a packet that the application has taken; the first time, write a row. A
        packet that is not may still become concurrent before it is taken."""
        key = (packet.src, packet.seq)
        if key in self._noticed:
            return True
        if self.frontier is None or not self._is_concurrent(packet.src, deps):
            return False
        self._noticed[key] = False
        self._received(packet, "concurrent")
        return True

    def _notice_branch(self, packet: Packet, deps: Deps) -> None:
        """Write a row if the packet opens a branch. The caller has checked that all packets which precede it were taken; otherwise
        one of these might still become an open end that it follows. Packets that are taken between now and its own take, and are no
        causes of it, cannot become such an end."""
        key, frontier = (packet.src, packet.seq), self.frontier
        if frontier is None or self._noticed[key] or self._is_open or self._early:
            return
        if not any(is_past(deps, src, seq) for _, src, seq in frontier.ends):
            self._noticed[key] = True
            self._received(packet, "branch")

    def _has_past(self, packet: Packet) -> bool:
        """Whether the packet's full past can be computed: its sender's previous packet, to which its delta
        refers, was released last."""
        return packet.seq == self.inbox.vector[packet.src] + 1
