"""Nothing lost, nothing twice: gaps found by number, asked for, and repaired by the sender.

    send       number it, keep it until everybody has it
    receive    pass on what is new, in whatever order it comes; a hole is asked for after a moment
    asked      send the same bytes again, to the one who asked
    silence    while somebody lacks something, say from time to time how far we got: that reveals
               a lost last packet, and a lost acknowledgement
    greeting   with `greet`, the same from the start, until every member was heard of
    goodbye    a member that leaves says so, and nobody waits for it any more
    reports    when an urgent packet or some layer wants it, all our counters leave at the end of
               the turn, on data if some leaves, else in a packet of their own; for a partial
               bundle one member does so, the others within a moment

When everybody has everything, nobody sends anything.
"""

from collections import deque
from typing import ClassVar

from inga.causality.arrivals import Arrivals
from inga.model.errors import Gap
from inga.model.packet import Packet, Runs
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.stack.layer import Layer
from inga.wire.packet import RUNS_MAX

LSN_WINDOW = 8192
"""How far ahead of a hole packets are taken: twice what flow control lets a sender have on its way."""

GOODBYE = b"goodbye"


class Reliable(Layer):
    """Acknowledges, asks and repairs. Times are in seconds."""

    name = "reliable"
    id = 1
    provides = frozenset({"reliable"})
    levels: ClassVar[tuple[str, ...]] = ("confirmed",)
    grows = True

    def __init__(
        self,
        *,
        nack_delay: float = 0.001,
        nack_again: float = 0.01,
        nack_again_max: float = 0.5,
        heartbeat: float = 0.02,
        heartbeat_max: float = 1.0,
        report_delay: float = 0.005,
        repairs_max: int = 64,
        patience: float = 60.0,
        greet: bool = False,
    ) -> None:
        self.nack_delay = nack_delay  # a packet may only have been overtaken
        self.nack_again = nack_again  # first repetition, doubled each time
        self.nack_again_max = nack_again_max
        self.heartbeat = heartbeat  # first, doubled each time
        self.heartbeat_max = heartbeat_max
        self.report_delay = report_delay  # how long an acknowledgement waits for data to ride on
        self.repairs_max = repairs_max  # packets sent again for one request
        self.patience = patience  # without progress, after which a hole is lost for good
        self.greet = greet  # say from the start that we are here, until everybody was heard

    def view(self, view: View) -> None:
        n = len(view)
        # as a sender
        self._last = 0  # lsn of our newest packet
        self._sent: dict[int, Packet] = {}  # not yet everywhere
        self._everywhere = 0  # lsn up to which everybody has everything
        self._somewhere = 0  # lsn up to which somebody has
        self._acked = [0] * n  # per member
        self._receipts: deque[tuple[int, Receipt]] = deque()
        self._repaired: dict[tuple[int, int], float] = {}  # (member, lsn) -> when
        self._unheard = set(self.stack.others()) if self.greet else set()
        self._beat_at: float | None = self.stack.now if self._unheard else None
        self._beat_wait = self.heartbeat
        # as a receiver
        self._arrived = [Arrivals() for _ in range(n)]
        self._known = [0] * n  # highest lsn each member is known to have used
        self._nack_at: dict[int, float] = {}  # members with holes -> when to ask
        self._nack_wait = [self.nack_again] * n
        self._report_at: float | None = None  # when a report is due that nothing has carried so far
        self._progress = [0.0] * n
        self._rearm()

    def extend(self, view: View) -> None:
        stack = self.stack
        for newcomer in range(len(self._acked), len(view)):
            self._acked.append(self._last)
            self._arrived.append(Arrivals())
            self._known.append(0)
            self._nack_wait.append(self.nack_again)
            self._progress.append(stack.now)
            if self.greet:
                self._unheard.add(newcomer)
        if self._unheard and self._beat_at is None:
            self._beat_wait = self.heartbeat
            self._beat_at = stack.now + self._beat_wait
            self._rearm()

    def base(self) -> dict[str, int]:
        return {"lsn": self._last}

    def adopt(self, bases: dict[str, list[int]]) -> None:
        for member, base in enumerate(bases["lsn"]):
            self._arrived[member].expected = base + 1
            self._known[member] = base

    def closed(self) -> None:
        for _, receipt in self._receipts:
            receipt.reach("confirmed")
        self._receipts.clear()

    # Sending

    def down(self, batch: list[Packet]) -> None:
        stack = self.stack
        alone = stack.alone
        for packet in batch:
            self._last = packet.lsn = self._last + 1
            if alone:
                if packet.receipt is not None:
                    packet.receipt.reach("confirmed")
                continue
            self._sent[packet.lsn] = packet
            if packet.receipt is not None:
                self._receipts.append((packet.lsn, packet.receipt))
        if alone:
            self._settle()
            return
        # What waited while the view was extended is of the view before, where our counters do not fit.
        if (stack.report or self._report_at is not None) and batch[-1].view == stack.view.number:
            self._report_on(batch[-1])
        self._beat_wait = self.heartbeat
        self._beat_at = stack.now + self._beat_wait
        self._rearm()
        self.below(batch)

    def turn(self) -> None:
        if self.stack.report and not self.stack.alone:
            self._tell(None)

    def tick(self, now: float) -> None:
        if self._report_at is not None and self._report_at <= now:
            self._tell(None)
        if self._beat_at is not None and self._beat_at <= now:
            self._beat(now)
        for member, due in sorted(self._nack_at.items()):
            if due <= now:
                self._ask(member, now)
        self._rearm()

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        out = []
        holes = False
        if self._unheard:
            self._unheard.difference_update([packet.src for packet in batch])
        for packet in batch:
            src, lsn = packet.src, packet.lsn
            if packet.ack is not None:
                self._acknowledged(packet)
            arrived = self._arrived[src]
            if not lsn or lsn >= arrived.expected + LSN_WINDOW:
                self.stack.reject("lsn", packet)
                continue
            if packet.urgent:
                self.stack.report = True
            elif packet.partial:
                self._owe(src)
            if lsn > self._known[src]:
                self._known[src] = lsn
            if not arrived.add(lsn):
                self._row("duplicate", src, n=lsn)
                continue
            out.append(packet)
            if self._known[src] >= arrived.expected or src in self._nack_at:
                holes = True
                self._progress[src] = self.stack.now
                self._note_hole(src)
        if holes:
            self._rearm()
        if out:
            self.above(out)

    def _owe(self, src: int) -> None:
        """A partial bundle came: one of us answers at once, for its sender waits for somebody; the
        others wait for company, or for a moment."""
        stack = self.stack
        following = (src + 1) % len(stack.view)
        while following in stack.left:
            following = (following + 1) % len(stack.view)
        if following == stack.me:
            stack.report = True
        elif self._report_at is None:
            self._report_at = stack.now + self.report_delay
            self._rearm()

    def control(self, packet: Packet) -> None:
        self._unheard.discard(packet.src)
        if packet.ext == GOODBYE:
            self.stack.gone(packet.src)
            return
        if packet.ack is not None:
            self._acknowledged(packet)
        if packet.runs is not None:
            self._repair(packet.src, packet.runs)
        if packet.urgent:
            self._heartbeat_from(packet.src, packet.lsn)

    def _heartbeat_from(self, src: int, lsn: int) -> None:
        """A member says how far it got: learn of holes at the end, and answer."""
        arrived = self._arrived[src]
        if lsn >= arrived.expected + LSN_WINDOW:
            self.stack.reject("lsn")
            return
        if lsn > self._known[src]:
            self._known[src] = lsn
        if self._known[src] >= arrived.expected:
            self._note_hole(src)
            self._rearm()
        self._tell(src)

    # Leaving

    def goodbye(self) -> None:
        """Tell everybody that we leave; what they still lack of us is lost."""
        packet = self._packet(None)
        packet.ext = GOODBYE
        self._beat_at = self._report_at = None
        self._nack_at.clear()
        self._rearm()
        self.stack.emit([packet])

    @property
    def settled(self) -> bool:
        """Whether everybody who was ever heard has all we sent. Somebody must have been heard: who
        came just now may be there and not have answered yet."""
        peers = self.stack.peers()
        heard = [m for m in peers if m in self.stack.addresses]
        if peers and not heard:
            return not self._last
        return all(self._acked[m] >= self._last for m in heard)

    def gone(self, member: int) -> None:
        self._unheard.discard(member)
        self._nack_at.pop(member, None)
        self._settle()
        self._rearm()

    # As the one who lacks something

    def _note_hole(self, src: int) -> None:
        now = self.stack.now
        arrived = self._arrived[src]
        if self._known[src] < arrived.expected or src in self.stack.left:
            self._nack_at.pop(src, None)
            return
        if src not in self._nack_at:
            self._nack_at[src] = now + self.nack_delay
            self._progress[src] = now
            self._row("gap", src, n=self._known[src] + 1 - arrived.expected - len(arrived.early))
        self._nack_wait[src] = self.nack_again

    def _ask(self, src: int, now: float) -> None:
        runs = self._arrived[src].missing(self._known[src] + 1)[:RUNS_MAX]
        if not runs:
            del self._nack_at[src]
            return
        if now - self._progress[src] > self.patience:
            name = self.stack.view.names[src]
            self.stack.fail(Gap(f"{name} did not repair what was lost within {self.patience:g} s"))
            self._row("gave_up", src)
            return
        packet = self._packet(src)
        packet.runs = runs
        self.stack.counts["nack"] += 1
        self._row("nack", src, n=sum(high - low for low, high in runs))
        self.stack.emit([packet])
        wait = self._nack_wait[src]
        self._nack_at[src] = now + wait * (1 + 0.5 * self.stack.rng.random())
        self._nack_wait[src] = min(2 * wait, self.nack_again_max)

    # As the one who has it

    def _repair(self, member: int, runs: Runs) -> None:
        now, repaired = self.stack.now, self._repaired
        batch: list[Packet] = []
        for low, high in runs:
            for lsn in range(max(low, self._everywhere + 1), min(high, self._last + 1)):
                if len(batch) >= self.repairs_max:
                    break
                packet = self._sent.get(lsn)
                if packet is None:
                    continue
                if now - repaired.get((member, lsn), -1.0) < self.nack_delay:
                    self._row("repair_suppressed", member, n=lsn)
                    continue
                repaired[member, lsn] = now
                self._row("repair", member, n=lsn)
                batch.append(packet.copy_to(member))
        if batch:
            self.stack.counts["repair"] += len(batch)
            self.stack.emit(batch)

    def _acknowledged(self, packet: Packet) -> None:
        assert packet.ack is not None
        stack = self.stack
        if stack.me >= len(packet.ack):
            return  # from before we joined
        lsn = min(packet.ack[stack.me], self._last)
        if lsn <= self._acked[packet.src]:
            return
        self._acked[packet.src] = lsn
        self._settle()
        if lsn > self._somewhere:
            self._somewhere = lsn
            stack.heard(lsn)

    def _settle(self) -> None:
        """Forget what everybody has."""
        everywhere = min([self._acked[m] for m in self.stack.peers()], default=self._last)
        if everywhere > self._everywhere:
            for done in range(self._everywhere + 1, everywhere + 1):
                self._sent.pop(done, None)
            self._everywhere = everywhere
            while self._receipts and self._receipts[0][0] <= everywhere:
                self._receipts.popleft()[1].reach("confirmed")
            if self._repaired:
                self._repaired = {key: at for key, at in self._repaired.items() if key[1] > everywhere}
        if everywhere >= self._last and not self._unheard:
            self._beat_at = None
            self._rearm()
        if everywhere > self._somewhere:  # also when nobody is left who could say so
            self._somewhere = everywhere
            self.stack.heard(everywhere)

    def _beat(self, now: float) -> None:
        lagging = [m for m in self.stack.peers() if self._acked[m] < self._last or m in self._unheard]
        if not lagging:
            self._beat_at = None
            return
        # To everybody, even if only one lags: on the way of data it cannot overtake data.
        packet = self._packet(None)
        packet.lsn = self._last
        packet.urgent = True
        self._row("control", None, note="heartbeat")
        self.stack.emit([packet])
        self._beat_wait = min(2 * self._beat_wait, self.heartbeat_max)
        self._beat_at = now + self._beat_wait * (1 + 0.25 * self.stack.rng.random())

    # Counters

    def _tell(self, member: int | None) -> None:
        """Send our counters in a packet of their own."""
        self._row("control", member, note="ack")
        packet = self._packet(member)
        if member is None:
            self._report_on(packet)
        self.stack.emit([packet])

    def _packet(self, to: int | None) -> Packet:
        packet = Packet(self.stack.me, self.stack.view.number, kind=self.id)
        packet.to = to
        packet.ack = self._counters()
        self.stack.ride(packet)
        return packet

    def _report_on(self, packet: Packet) -> None:
        self.stack.report = False
        self._report_at = None
        if packet.ack is None:
            packet.ack = self._counters()
            self.stack.ride(packet)

    def _counters(self) -> tuple[int, ...]:
        return tuple([arrived.expected - 1 for arrived in self._arrived])

    def _rearm(self) -> None:
        wake = self._beat_at
        if self._report_at is not None and (wake is None or self._report_at < wake):
            wake = self._report_at
        for due in self._nack_at.values():
            if wake is None or due < wake:
                wake = due
        self.wake = wake

    def _row(self, step: str, peer: int | None, *, n: int | None = None, note: str | None = None) -> None:
        trace = self.stack.trace
        if trace is not None and trace.full:
            trace.row(step, self.stack.now, self.stack.view.number, peer=peer, n=n, note=note)
