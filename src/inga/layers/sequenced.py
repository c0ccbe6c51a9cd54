"""Total order: the first member of a view is its sequencer, and all members deliver in the sequencer's order.

    send      number the packet, and put on it how many of the sequencer's packets we had by then
    sequence  the sequencer delivers packets as they arrive, in the order of each sender, and its own at the send; it names them in
              that order on its next packet, or at the end of the turn on a packet without messages
    receive   packets wait until the sequencer has named them; a packet of the sequencer delivers those that it names, then itself
    close     the sequencer names nothing more; at the end all members have the same packets and the same names, and
              deliver the rest in an order that each of them computes alike

The order is causal, and no packet carries a vector for that: whatever a member has delivered, the sequencer had named, and so
delivered, before. A packet of the sequencer waits for the packets that it names, and a packet of another member for the packets of
the sequencer that its sender had, so that no effect is delivered without its cause when members fail.

docs/protocols/total.md has the rules, and what is promised where members fail.
"""

from collections import deque
from functools import partial

from inga.causality.inbox import DUPLICATE, FORGED, HELD, Inbox
from inga.layers.fifo import Unordered
from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.stamp import Delta
from inga.model.view import View
from inga.wire.sequence import RUN_BYTES, RUNS_MAX, NamedRun, get_known, get_runs, put_known, put_runs

SEQUENCER = 0
"""The sequencer's index in every view: the member that has been in the group longest."""

WAITS = 1
"""Bytes that count as held while any packets wait for their places, so that the session notices that delivery waits. If such packets
counted in full, a member with many of them would close the sequencer's window, and wait for ever for names that cannot leave."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Sequenced(Unordered):
    """Gives packets their places by naming them, if this member is the sequencer; otherwise waits for the names."""

    name = "sequenced"
    provides = frozenset({"fifo", "causal", "total"})
    partition = "primary"
    no_gate = "what it holds has no place yet that members agree on"

    def view(self, view: View) -> None:
        super().view(view)
        n = len(view)
        self.held = 0
        self.inbox: Inbox[Packet] = Inbox(self.me, n)
        self._placed = [0] * n  # by member, the number up to which its packets have places
        # Packets of each member, also our own, that have no place yet.
        self._waiting: list[deque[Packet]] = [deque() for _ in range(n)]
        self._waits = 0  # number of packets in `_waiting`
        self._runs: list[NamedRun] = []  # as the sequencer: packets that we have delivered and not named yet
        self._unnamed = 0  # bytes of these packets
        self._of_blockers = 0  # of these, bytes of members that kept our window closed
        self._on_way = 0  # bytes of packets that we have named, until all members are known to have the names
        self._has_window = self.stack.layer("flow") is not None

    def overhead(self, members: int) -> int:
        return RUNS_MAX * RUN_BYTES

    def has(self, counts: list[int]) -> bool:
        return all(map(int.__ge__, self.inbox.vector, counts))

    def awaited(self) -> set[int]:
        missing = {member for member, _, _ in self.inbox.missing()}
        return missing | {SEQUENCER} - {self.me} if self._waits else missing

    def bereft(self, member: int) -> None:
        """Drop packets of that member held behind a missing one, which will never arrive."""
        self._dismissed(self.inbox.discard(member, self.inbox.before_hole(member)))

    @property
    def settled(self) -> bool:
        """Whether we, as the sequencer, have named all that we have delivered, so that the others can deliver it in the same order."""
        return not self._runs

    # Sending

    def down(self, batch: list[Packet]) -> None:
        if self.me == SEQUENCER:
            for packet in batch:
                while len(self._runs) > RUNS_MAX:
                    self._name_on_its_own()
                self._name_on(packet)
                self._sent(packet)
                self._echo([packet])
                self.below([packet])
            return
        for packet in batch:
            self._number(packet)
            self.inbox.own(packet.seq)
            packet.ext = put_known(self._placed[SEQUENCER])
            self._sent(packet)
            self._wait(self._own_copy(packet))
        self.below(batch)

    def _own_copy(self, packet: Packet) -> Packet:
        """The packet that waits here for the place of a packet of ours: a copy, if our application gets it,
        otherwise an empty packet."""
        if self.echo or (packet.dst is not None and packet.dst >> self.me & 1):
            copy = packet.copy_to(self.me)
            copy.encoded = None
            return copy
        place = Packet(self.me, packet.view)
        place.seq, place.ext, place.bare = packet.seq, packet.ext, True
        return place

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        out: list[Packet] = []
        offer = self.inbox.offer
        for packet in batch:
            try:
                needs = self._needs(packet)
            except WireError as error:
                self.stack.reject(error.reason, packet)
                continue
            self._received(packet, "receive")
            packet.deps = packet.trace
            answer = offer(packet.src, packet.seq, needs, packet, out)
            if answer == HELD:
                self._hold(packet, self.inbox.held)
            elif answer == DUPLICATE:
                self._received(packet, "duplicate")
            elif answer == FORGED:
                self.stack.reject("forged", packet)
        if out:
            self._released(out)

    def _needs(self, packet: Packet) -> Delta:
        """The packets of other members that have to be released before this one. (Earlier packets of its own sender
        always have to be.)"""
        if not packet.seq:
            raise WireError("malformed", "a packet without a number")
        if packet.src == SEQUENCER:
            return tuple(dict(self._named_by(packet)).items())
        known = get_known(packet.ext or b"")
        return ((SEQUENCER, known),) if known else ()

    def _named_by(self, packet: Packet) -> list[NamedRun]:
        return [] if packet.ext is None else get_runs(packet.ext, len(self._placed))

    def _released(self, out: list[Packet]) -> None:
        """Process packets that the inbox has released: deliver those that have a place, and packets to which they give one."""
        ready: list[Packet] = []
        stack = self.stack
        names = self.me == SEQUENCER and not stack.closing and stack.paused is None
        if names:
            self._resume(ready)
        for packet in out:
            if packet.seq > self._highest[packet.src]:
                self._highest[packet.src] = packet.seq
            was_held = packet.size
            self.held -= was_held
            packet.size = 0
            if packet.src == SEQUENCER:
                self._follow(packet, ready)
            elif names:
                self._place_next(packet, ready)
            else:
                self._wait(packet)
                if not was_held:
                    self._received(packet, "hold", self.inbox.held + self._waits)
        self._deliver(ready)

    def _wait(self, packet: Packet) -> None:
        if not self._is_bare(packet):
            self.stack.store(packet)
        if not self._waits:
            self.held += WAITS
        self._waits += 1
        self._waiting[packet.src].append(packet)

    def _follow(self, packet: Packet, ready: list[Packet]) -> None:
        """Give places to the packets that a packet of the sequencer names, then to that packet itself."""
        for sender, upto in self._named_by(packet):
            count = upto - self._placed[sender]
            if count <= 0:
                self.stack.reject("forged", packet)  # the packets that it names have places already
                continue
            waiting = self._waiting[sender]
            ready += [waiting.popleft() for _ in range(count)]
            self._placed[sender] = upto
            self._waits -= count
            if not self._waits:
                self.held -= WAITS
        self._placed[SEQUENCER] = packet.seq
        ready.append(packet)

    def _deliver(self, ready: list[Packet]) -> None:
        mine = [packet for packet in ready if not self._is_bare(packet)]
        if mine:
            self._delivered(mine)
            self.above(mine)

    def _is_bare(self, packet: Packet) -> bool:
        """Whether a packet is not delivered here. Our own packets were marked by `_own_copy`, whatever their destinations."""
        if packet.src == self.me:
            return packet.bare
        return not packet.count or super()._is_bare(packet)

    # As the sequencer

    def turn(self) -> None:
        """As the sequencer, name the packets that no packet of ours has named in this turn. If the window is closed, they wait:
        then fewer packets will name more of them."""
        if self.me != SEQUENCER or not self.stack.writable:
            return
        ready: list[Packet] = []
        self._resume(ready)
        self._deliver(ready)
        while self._runs:
            self._name_on_its_own()

    def _resume(self, ready: list[Packet]) -> None:
        """Give places to packets that arrived while the view was about to close, since it goes on after all."""
        for packet in self._rest():
            self._place_next(packet, ready)

    def _place_next(self, packet: Packet, ready: list[Packet]) -> None:
        """As the sequencer, give a packet of another member the next place."""
        src, runs = packet.src, self._runs
        if runs and runs[-1][0] == src:
            runs[-1] = (src, packet.seq)
        else:
            runs.append((src, packet.seq))
        self._placed[src] = packet.seq
        if self._has_window:
            size = len(packet.body) or packet.size
            is_blocker = not self.stack.writable and src in self.stack.chain.blockers()
            self._owe(0, size, size if is_blocker else 0)
        ready.append(packet)

    def _name_on_its_own(self) -> None:
        """Send a packet without messages that names delivered packets."""
        packet = Packet(self.me, self.stack.view.number)
        packet.count = 0
        self._name_on(packet)
        if self.stack.trace is not None:
            self._row("send", packet, 0, dst=0)
        self.below([packet])

    def _name_on(self, packet: Packet) -> None:
        """Number a packet of ours, and let it name packets that were delivered and not named yet: at most RUNS_MAX runs."""
        self._number(packet)
        self.inbox.own(packet.seq)
        self._placed[SEQUENCER] = packet.seq
        runs, self._runs = self._runs[:RUNS_MAX], self._runs[RUNS_MAX:]
        if not runs:
            return
        packet.ext = put_runs(runs)
        size = self._unnamed
        if size:
            self._owe(size, -size, -self._of_blockers)
            packet.receipt = packet.receipt or Receipt()
            packet.receipt.when("confirmed", partial(self._owe, -size, 0, 0))

    def _owe(self, on_way: int, unnamed: int, of_blockers: int) -> None:
        """Change the numbers of bytes that other members keep until they have our names for them. While some member does not have
        names that we have sent, all these bytes count as held here, so that senders wait for us: nothing else bounds what the
        members without the names keep. A member that has the names and does not read closes all windows but its own: then only the
        bytes that it sends itself count here."""
        before = self._counted
        self._on_way += on_way
        self._unnamed += unnamed
        self._of_blockers += of_blockers
        self.held += self._counted - before

    @property
    def _counted(self) -> int:
        return self._on_way + self._unnamed if self._on_way else self._of_blockers

    # The end of the view

    def closing(self) -> None:
        """As the sequencer, name now what we have delivered. After this we announce how many packets we have sent, and send no more."""
        if self.me == SEQUENCER:
            while self._runs:
                self._name_on_its_own()

    def closed(self) -> None:
        """All members have the same packets: deliver the rest."""
        self._deliver(self._rest())

    def goodbye(self) -> None:
        """We leave: drop the packets that wait here. The other members deliver them."""
        self._dismissed(self.inbox.drain())
        self._rest()

    def _rest(self) -> list[Packet]:
        """Remove all packets without a place and return them, effects after their causes. The sender of an effect had its cause,
        and so a packet of the sequencer that names the cause, which the sender of the cause did not have yet."""
        if not self._waits:
            return []
        rest = [packet for waiting in self._waiting for packet in waiting]
        for waiting in self._waiting:
            waiting.clear()
        self._waits = 0
        self.held -= WAITS
        return sorted(rest, key=lambda packet: (get_known(packet.ext or b""), packet.src, packet.seq))
