"""Total order: the first member of a view is its sequencer, and everybody delivers in the order in which it does.

    send      number it, and say how many of the sequencer's packets we had by then
    sequence  deliver what comes in the order of each sender, our own at the send; say in which order that was, on our next
              packet, or at the end of the turn on one without messages
    receive   what the sequencer has not named yet waits; its packet lets go of what it names, then comes itself
    close     the sequencer names nothing more; at the end everybody has the same packets and the same names, and
              the rest is delivered in an order that needs no words

The order is causal, and no packet carries a vector for that: what a member has delivered the sequencer had named, and
so delivered, before. A packet of the sequencer waits for what it names, and one of another member for the packet of the
sequencer that its sender had, so that with members that fail no effect stays without its cause.

docs/protocols/total.md has the rules, and what is promised where members fail.
"""

from collections import deque
from functools import partial

from inga.causality.inbox import DUPLICATE, FORGED, HELD, Inbox
from inga.layers.fifo import Unordered
from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.stamp import Delta
from inga.model.view import View
from inga.wire.sequence import RUN_BYTES, RUNS_MAX, NamedRun, get_known, get_runs, put_known, put_runs

SEQUENCER = 0
"""Its index in every view: the member that has been there longest."""

WAITS = 1
"""Bytes that count as held while packets wait for their place, so that it is noticed. Were it more, a member behind would
close the sequencer's window, and wait for ever for names that cannot leave."""


class Sequenced(Unordered):
    """Names places, if this member is the sequencer; waits for them, if it is not."""

    name = "sequenced"
    provides = frozenset({"fifo", "causal", "total"})
    partition = "primary"
    no_gate = "what it holds has no place yet that members agree on"

    def view(self, view: View) -> None:
        super().view(view)
        n = len(view)
        self.held = 0
        self.inbox: Inbox[Packet] = Inbox(self.me, n)
        self._placed = [0] * n  # of each member's packets: up to which number they have a place
        # Packets of each member that have none yet, our own among them.
        self._waiting: list[deque[Packet]] = [deque() for _ in range(n)]
        self._waits = 0  # how many these are
        self._runs: list[NamedRun] = []  # what we, the sequencer, have delivered and not named
        self._unnamed = 0  # bytes of it
        self._of_blockers = 0  # of these, bytes of members for which our own window waited
        self._on_way = 0  # bytes of what we have named to some, and not all are known to have heard
        self._has_window = self.stack.layer("flow") is not None

    def overhead(self, members: int) -> int:
        return RUNS_MAX * RUN_BYTES

    def has(self, counts: list[int]) -> bool:
        return all(map(int.__ge__, self.inbox.vector, counts))

    def awaited(self) -> set[int]:
        missing = {member for member, _, _ in self.inbox.missing()}
        return missing | {SEQUENCER} - {self.me} if self._waits else missing

    def bereft(self, member: int) -> None:
        """A missing packet of that member will never come, so packets held behind it are dropped."""
        self._dismissed(self.inbox.discard(member, self.inbox.before_hole(member)))

    @property
    def settled(self) -> bool:
        """Whether everybody can have what we have delivered in the same order."""
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
        """What keeps the place of a packet of ours: the packet itself if we want it, else one that is not for us."""
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
        """What has to be here before a packet; of its own sender, that is everything before it."""
        if not packet.seq:
            raise WireError("malformed", "a packet without a number")
        if packet.src == SEQUENCER:
            return tuple(dict(self._named_by(packet)).items())
        known = get_known(packet.ext or b"")
        return ((SEQUENCER, known),) if known else ()

    def _named_by(self, packet: Packet) -> list[NamedRun]:
        return [] if packet.ext is None else get_runs(packet.ext, len(self._placed))

    def _released(self, out: list[Packet]) -> None:
        """These have come, and all that they need: deliver those whose place is known, and what they give a place to."""
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
        """A packet of the sequencer has come: what it names comes next, then itself."""
        for sender, upto in self._named_by(packet):
            count = upto - self._placed[sender]
            if count <= 0:
                self.stack.reject("forged", packet)  # it has a place already
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
        """Of our own we get what we want, whomever it is for."""
        if packet.src == self.me:
            return packet.bare
        return not packet.count or super()._is_bare(packet)

    # As the sequencer

    def turn(self) -> None:
        """Name what nothing of ours has named in this turn. Where the window is closed that waits: there will be more of
        it, on fewer packets."""
        if self.me != SEQUENCER or not self.stack.writable:
            return
        ready: list[Packet] = []
        self._resume(ready)
        self._deliver(ready)
        while self._runs:
            self._name_on_its_own()

    def _resume(self, ready: list[Packet]) -> None:
        """The view was to be closed, and goes on after all: what came meanwhile gets its places."""
        for packet in self._rest():
            self._place_next(packet, ready)

    def _place_next(self, packet: Packet, ready: list[Packet]) -> None:
        """A packet of another member comes next, as we say so."""
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
        """Send a packet without messages, which names places."""
        packet = Packet(self.me, self.stack.view.number)
        packet.count = 0
        self._name_on(packet)
        if self.stack.trace is not None:
            self._row("send", packet, 0, dst=0)
        self.below([packet])

    def _name_on(self, packet: Packet) -> None:
        """Number a packet of ours, and let it name what has been delivered since the last one."""
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
        """So many bytes more of what others keep until they have heard our names for it. While somebody does not hear
        them, senders wait for us: nothing else bounds what the others keep. Who has heard them and does not read closes all
        windows but its own: only what it sends itself needs our help."""
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
        """We say how many packets we have sent, and nothing is sent after them: what we have delivered is named now."""
        if self.me == SEQUENCER:
            while self._runs:
                self._name_on_its_own()

    def closed(self) -> None:
        """Everybody has what we have: deliver the rest."""
        self._deliver(self._rest())

    def goodbye(self) -> None:
        """We leave: what waits here is delivered by the others."""
        self._dismissed(self.inbox.drain())
        self._rest()

    def _rest(self) -> list[Packet]:
        """All that waits, effects after their causes: the sender of an effect had its cause, and so a packet of
        the sequencer that names it, which the sender of the cause did not have."""
        if not self._waits:
            return []
        rest = [packet for waiting in self._waiting for packet in waiting]
        for waiting in self._waiting:
            waiting.clear()
        self._waits = 0
        self.held -= WAITS
        return sorted(rest, key=lambda packet: (get_known(packet.ext or b""), packet.src, packet.seq))
