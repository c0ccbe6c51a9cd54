"""Reliable multicast: no packet is lost or passed on twice. Receivers detect gaps by number and request repairs from the sender.

    send       number the packet, and keep it until every member has it
    receive    pass on every new packet, in order of arrival; request a missing one after a short delay
    request    send the same bytes again to the member that asks, within that member's budget; a member that asks for packets
               that were never sent was misled by another member: tell it how many there are
    silence    while any member lacks a packet, report from time to time how many we have sent, which reveals
               the loss of a last packet; name the members whose acknowledgement is missing, and these answer
    reports    if an urgent packet or another layer wants it, send all our counters at the end of
               the turn, piggybacked on data if some leaves, otherwise in a packet of their own; for a partial
               bundle within `report_delay`; for a second one of the same sender one member reports at once

`report_delay` grows with the number of members, so that a report serves more messages, and a message costs about
as many reports in a large group as in a small one. If only one sender is owed a report, it goes to that sender alone.
docs/decisions/0011-large-groups-acknowledge-later.md says why.

When all members have all packets, nobody sends anything.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import compress
from operator import gt
from typing import Any, ClassVar

from inga.causality.arrivals import Arrivals, numbers_in
from inga.causality.knowledge import ALL_RISEN, Knowledge
from inga.layers.lending import NumberedLender
from inga.layers.numbers import check_delay, check_number, check_seconds
from inga.layers.settings import settle
from inga.model.compiled import mypyc_attr
from inga.model.errors import Gap
from inga.model.packet import Packet, Runs
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.session.alarms import Alarms, Backoff
from inga.stack.budget import Supply, cost_of
from inga.stack.figures import Figures
from inga.stack.layer import Layer
from inga.wire.runs import RUNS_MAX

LSN_WINDOW = 8192
"""How far beyond the next expected number packets are accepted: twice as many as flow control lets a sender have in flight."""

EARLY_BYTES, EARLY_BYTES_MIN = 32 << 20, 1 << 20
"""The most bytes accepted beyond gaps: of all members together, in equal shares, and of each member at least. A share is
more than a window."""

LOOKS = 4
"""How many numbers of a request are examined, in multiples of `repairs_max`."""

CROWD = 8
"""In groups larger than this, acknowledgements wait longer, in proportion to the number of members."""

REPLAYED = 16.0
"""What acknowledging a duplicate again takes from its sender's budget. It is much, because anybody can replay a packet."""

_BEAT, _REPORT, _NACK = range(3)
_BEATING, _REPORTING = (_BEAT, 0), (_REPORT, 0)


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class ReliableSettings:
    """The settings of `reliable`. Times are in seconds."""

    nack_delay: float = 0.001  # a missing packet may only have been overtaken
    nack_again: float = 0.01  # wait before the first repetition, doubled each time
    nack_again_max: float = 0.5
    heartbeat: float = 0.02
    heartbeat_max: float = 1.0
    report_delay: float = (
        0.005  # how long an acknowledgement waits to be piggybacked on data; longer in large groups
    )
    repairs_max: int = 64  # packets sent again for one request, at most
    patience: float = 60.0  # time without progress after which a missing packet is given up

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        for name in ("nack_again", "nack_again_max", "heartbeat", "heartbeat_max", "patience"):
            check_seconds(name, getattr(said, name))
        check_delay("nack_delay", said.nack_delay)
        check_delay("report_delay", said.report_delay)
        check_number("repairs_max", said.repairs_max, 1, LSN_WINDOW)


@mypyc_attr(allow_interpreted_subclasses=True)
class Reliable(Layer, NumberedLender):
    """Acknowledges packets, requests missing ones and repairs."""

    name = "reliable"
    id = 1
    provides = frozenset({"reliable"})
    levels: tuple[str, ...] = ("confirmed",)
    settings: ClassVar[type[ReliableSettings]] = ReliableSettings

    def __init__(self, **said: Any) -> None:
        self._settings = settle(ReliableSettings, self.name, said)
        self.heartbeat = Backoff(self._settings.heartbeat, self._settings.heartbeat_max)

    def view(self, view: View) -> None:
        n = len(view)
        longer = max(n / CROWD, 1.0)
        self._report_delay = min(self._settings.report_delay * longer, self._settings.heartbeat_max)
        # as a sender
        self._last = 0  # lsn of our newest packet
        self._sent: dict[int, Packet] = {}  # our packets that some member may lack, by lsn
        self._everywhere = 0  # the lsn up to which every member has our packets
        self._somewhere = 0  # the lsn up to which at least one member has our packets
        self._acked = [0] * n  # the lsn up to which each member has our packets
        self._receipts: deque[tuple[int, Receipt]] = deque()
        self._round_trip: float | None = None  # seconds until all had the newest packet that they all have
        self._repaired: dict[tuple[int, int], float] = {}  # (member, lsn) -> time of the last repair
        self._answers = [Supply() for _ in range(n)]  # budgets for answers to each member
        self._is_announced = False  # a heartbeat that asks nobody has followed our newest packet
        self._beat_due = 0.0  # when the next heartbeat is wanted: at or after its alarm
        # as a receiver
        self._arrived = [Arrivals() for _ in range(n)]
        self._early_max = max(EARLY_BYTES // n, EARLY_BYTES_MIN)
        self._known = [0] * n  # highest lsn each member is known to have used
        self._nack_wait = [self._new_wait() for _ in range(n)]
        self._progress = [0.0] * n
        self._owed: set[int] = set()  # members that are owed a report
        self._told = [0] * n  # the lsn of each member that we last acknowledged to it
        self._alarms = Alarms()
        # as a lender: packets of each member that not all members are known to have
        self._kept: list[dict[int, Packet]] = [{} for _ in range(n)]
        self._reported = [(0,) * n for _ in range(n)]  # the counters that each member reported last
        self._known_by = Knowledge(n, lambda sender, reporter: sender != reporter)

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        return self._alarms.next

    def _new_wait(self) -> Backoff:
        return Backoff(self._settings.nack_again, self._settings.nack_again_max, 0.5)

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
        if stack.report_wanted or _REPORTING in self._alarms:
            self._report_on(batch[-1])
        self._is_announced = False
        self._beat_due = stack.now + self.heartbeat.start()
        if _BEATING not in self._alarms:
            self._alarms.set(_BEATING, self._beat_due)
        self.below(batch)

    def turn(self) -> None:
        if self.stack.report_wanted and not self.stack.alone:
            self._tell(None)

    def tick(self, now: float) -> None:
        for kind, member in self._alarms.due(now):
            if kind == _REPORT:
                is_one = len(self._owed) == 1 and len(self.stack.peers) > 1
                self._tell(next(iter(self._owed)) if is_one else None)
            elif kind == _BEAT:
                self._beat(now)
            else:
                self._ask(member, now)

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        out = []
        meet = self.stack.meet
        for packet in batch:
            src, lsn = packet.src, packet.lsn
            if packet.ack is not None:
                self._acknowledged(packet)
            arrived = self._arrived[src]
            if not lsn or lsn >= arrived.expected + LSN_WINDOW:
                self.stack.reject("lsn", packet)
                continue
            if arrived.early_bytes > self._early_max and lsn != arrived.expected:
                self.stack.reject("early", packet)
                continue
            if lsn > self._known[src]:
                self._known[src] = lsn
            is_new = arrived.add(lsn, len(packet.body))
            if packet.urgent or packet.partial:
                self._owe_report(packet, is_new=is_new)
            if not is_new:
                self.stack.row("duplicate", src, n=lsn)
                continue
            meet(packet, fresh=True)
            out.append(packet)
            if self._known[src] >= arrived.expected or (_NACK, src) in self._alarms:
                self._progress[src] = self.stack.now
                self._note_hole(src)
        if out:
            self.above(out)
            if len(self.stack.peers) > 1:
                self._keep(out)

    def _owe_report(self, packet: Packet, *, is_new: bool) -> None:
        """Owe an acknowledgement for a packet; for a duplicate, too, since the acknowledgement of the first copy may have been lost."""
        if not is_new and self.stack.wire.is_elsewhere(packet):
            return  # another process has replayed it
        if not is_new and not self._answers[packet.src].take(self.stack.now, REPLAYED):
            self.stack.reject("budget", packet)
        elif packet.urgent:
            self.stack.want_report()
        else:
            self._owe(packet.src)

    def _owe(self, src: int) -> None:
        """Acknowledge a partial bundle within the report delay, possibly piggybacked on data. Its sender lets a second bundle leave
        meanwhile and then waits for one acknowledgement, so for a second one the member next in line after the sender acknowledges
        at once. A single receiver always acknowledges at once, since its answer alone confirms the message."""
        stack = self.stack
        if src in self._owed or len(stack.peers) == 1:
            members = len(self._arrived)
            following = (src + 1) % members
            while following in stack.left:
                following = (following + 1) % members
            if following == stack.me:
                stack.want_report()
                return
        self._report_later(src)

    def _report_later(self, src: int) -> None:
        self._owed.add(src)
        if _REPORTING not in self._alarms:
            self._alarms.set(_REPORTING, self.stack.now + self._report_delay)

    def control(self, packet: Packet) -> None:
        self.stack.meet(packet)
        if packet.ack is not None:
            self._acknowledged(packet)
        if packet.runs is not None:
            self._repair(packet.src, packet.runs)
        if packet.asks:
            self._heartbeat_from(packet)

    def _heartbeat_from(self, packet: Packet) -> None:
        """A member reports how many packets it has sent, which reveals the loss of last packets. The members that it names answer
        with their counters; if it has no list of names, all do."""
        src, lsn = packet.src, packet.lsn
        arrived = self._arrived[src]
        if lsn >= arrived.expected + LSN_WINDOW:
            self.stack.reject("lsn")
            return
        if not self._answers[src].take(self.stack.now):
            self.stack.reject("budget")
            return
        if packet.denies:  # we requested packets that were never sent, because another member claimed them
            self._known[src] = max(lsn, *arrived.early, 0)
            self._note_hole(src)
        elif lsn > self._known[src]:
            self._known[src] = lsn
        if self._known[src] >= arrived.expected:
            self._note_hole(src)
        if packet.ext is None or int.from_bytes(packet.ext, "little") >> self.stack.me & 1:
            self._tell(src)
        elif arrived.expected - 1 > self._told[src]:
            self._report_later(src)

    # Leaving

    def flush(self) -> None:
        """Ask for acknowledgements that would be late, since we may be about to leave and wait for all of them. At the end of a
        view nobody waits for them."""
        is_late = self._report_delay > self._settings.report_delay
        if is_late and not self.stack.closing and (lacking := self._lacking()):
            self._say_last(None, asked=lacking)

    @property
    def settled(self) -> bool:
        """Whether all members that were met have all our packets. If we have sent any, at least one member must have been met:
        others may be present and not have answered yet."""
        peers = self.stack.peers
        met = [m for m in peers if m in self.stack.met]
        if peers and not met:
            return not self._last
        return all(self._acked[m] >= self._last for m in met)

    def gone(self, member: int) -> None:
        self._alarms.clear((_NACK, member))
        self._repaired = {key: at for key, at in self._repaired.items() if key[0] != member}
        self._settle()
        before = self._known_by.lowest.copy()
        for src in self._known_by.forget(member):
            self._forget(src, before[src])

    # Asking for missing packets

    def _note_hole(self, src: int) -> None:
        now = self.stack.now
        arrived = self._arrived[src]
        if self._known[src] < arrived.expected or src in self.stack.left:
            self._alarms.clear((_NACK, src))
            return
        if (_NACK, src) not in self._alarms:
            self._alarms.set((_NACK, src), now + self._settings.nack_delay)
            self._progress[src] = now
            missing = self._known[src] + 1 - arrived.expected - len(arrived.early)
            self.stack.row("gap", src, n=missing)
        self._nack_wait[src].reset()

    def _ask(self, src: int, now: float) -> None:
        runs = self._arrived[src].missing(self._known[src] + 1)[:RUNS_MAX]
        if not runs:
            return
        patience = self._settings.patience
        if now - self._progress[src] > patience and not self.stack.views.forgives(patience):
            name = self.stack.view.names[src]
            self.stack.row("gave_up", src)
            self.stack.fail(Gap(f"{name} did not repair what was lost within {patience:g} s"))
            return
        packet = self._packet(src)
        packet.runs = runs
        self.stack.counts["nack"] += 1
        self.stack.row("nack", src, n=sum(high - low for low, high in runs))
        self.stack.emit([packet])
        self._alarms.set((_NACK, src), now + self._nack_wait[src].next(self.stack.rng))

    # Sending packets again

    def _repair(self, member: int, runs: Runs) -> None:
        now, repaired, budget = self.stack.now, self._repaired, self._answers[member]
        if not budget.take(now):
            self.stack.reject("budget")
            return
        if runs and runs[-1][1] > self._last + 1:
            self._say_last(member, denies=True)
        batch: list[Packet] = []
        spared = self._settings.nack_again / 2  # no member repeats a request sooner
        first, looks = self._acked[member] + 1, LOOKS * self._settings.repairs_max
        for lsn in numbers_in(runs, first, self._last + 1, looks):
            if len(batch) >= self._settings.repairs_max:
                break
            packet = self._sent.get(lsn)
            if packet is None:
                continue
            if now - repaired.get((member, lsn), -1.0) < spared:
                self.stack.row("repair_suppressed", member, n=lsn)
                continue
            if not budget.take(now, cost_of(len(packet.body))):
                self.stack.reject("budget")
                break
            repaired[member, lsn] = now
            self.sends_again(member, lsn)
            batch.append(packet.copy_to(member))
        if batch:
            self.stack.emit(batch)

    def _acknowledged(self, packet: Packet) -> None:
        assert packet.ack is not None
        stack = self.stack
        if len(stack.peers) > 1:  # otherwise nothing is kept for other members
            self._heed_report(packet.src, packet.ack)
        lsn, before = min(packet.ack[stack.me], self._last), self._acked[packet.src]
        if lsn <= before:
            return
        self._acked[packet.src] = lsn
        if before <= self._everywhere:  # otherwise other members are behind this one
            self._settle()
        if lsn > self._somewhere:
            self._somewhere = lsn
            stack.chain.acknowledged(lsn)

    def _settle(self) -> None:
        """Forget packets of ours that every member has."""
        everywhere = min([self._acked[m] for m in self.stack.peers], default=self._last)
        if everywhere > self._everywhere:
            newest = None
            for done in range(self._everywhere + 1, everywhere + 1):
                newest = self._sent.pop(done, None)
            if newest is not None and newest.at:
                self._round_trip = self.stack.now - newest.at
            self._everywhere = everywhere
            while self._receipts and self._receipts[0][0] <= everywhere:
                self._receipts.popleft()[1].reach("confirmed")
            if self._repaired:
                self._repaired = {key: at for key, at in self._repaired.items() if key[1] > everywhere}
        if everywhere >= self._last:
            self._alarms.clear(_BEATING)
        if everywhere > self._somewhere:  # also when no other member is left to acknowledge
            self._somewhere = everywhere
            self.stack.chain.acknowledged(everywhere)

    def _beat(self, now: float) -> None:
        if self._beat_due > now:
            self._alarms.set(_BEATING, self._beat_due)
            return
        lacking = self._lacking()
        if not lacking:
            return
        wait = self.heartbeat.next(self.stack.rng)
        if self._may_ask:
            asked = lacking
        else:
            asked, wait = [], max(wait, self._report_delay + self.heartbeat.first)
            self._is_announced = True
        # To all members, even if only one lags behind: on the same path as data, a heartbeat cannot overtake data.
        self._say_last(None, asked=asked)
        self._beat_due = now + wait
        self._alarms.set(_BEATING, self._beat_due)

    def _lacking(self) -> list[int]:
        """The members that are not known to have all our packets."""
        return [m for m in self.stack.peers if self._acked[m] < self._last]

    @property
    def _may_ask(self) -> bool:
        """Whether a heartbeat asks for acknowledgements: delayed ones should have arrived by now, or the application awaits
        a receipt."""
        if self._is_announced or self._report_delay <= self.heartbeat.first / 2:
            return True
        return any(receipt.is_awaited("confirmed") for _, receipt in self._receipts)

    def _say_last(self, member: int | None, *, asked: list[int] | None = None, denies: bool = False) -> None:
        """Report how many packets we have sent, to one member or to all. The members in `asked` answer with their counters (None: all
        receivers do). `denies`: the receiver has requested packets that were never sent."""
        packet = self._packet(member)
        packet.lsn = self._last
        packet.asks, packet.denies = True, denies
        if asked is not None and len(asked) < len(self.stack.peers):
            bits = sum(1 << m for m in asked)
            packet.ext = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
        self.stack.row("control", member, note="heartbeat")
        self.stack.emit([packet])

    # Lending packets of a departed member

    def _keep(self, packets: list[Packet]) -> None:
        """Keep packets of other members until all are known to have them, at most LSN_WINDOW of each sender."""
        everywhere = self._known_by.lowest
        for packet in packets:
            src, lsn = packet.src, packet.lsn
            if lsn >= everywhere[src]:
                if packet.payloads is None:
                    packet.keep()
                kept = self._kept[src]
                kept[lsn] = packet
                if len(kept) > LSN_WINDOW:
                    del kept[next(iter(kept))]
            self._has(self.stack.me, src, self._arrived[src].expected)

    def _heed_report(self, reporter: int, ack: tuple[int, ...]) -> None:
        before, self._reported[reporter] = self._reported[reporter], ack
        for src in compress(range(len(ack)), map(gt, ack, before)):
            self._has(reporter, src, ack[src] + 1)

    def _has(self, reporter: int, src: int, expected: int) -> None:
        """Note that a member has all packets of another below that number, and forget packets that all members have."""
        low = self._known_by.lowest[src]
        if self._known_by.rise(src, reporter, expected) == ALL_RISEN:
            self._forget(src, low)

    def _forget(self, src: int, low: int) -> None:
        """Forget the packets of a member, from `low` on, that all members have by now."""
        kept = self._kept[src]
        if kept:
            for lsn in range(low, self._known_by.lowest[src]):
                kept.pop(lsn, None)

    def account(self, figures: Figures) -> None:
        figures.round_trip = self._round_trip
        for member in self.stack.peers:
            acked = self._acked[member]
            if acked < self._last:
                oldest = self._sent.get(acked + 1)
                figures.lacks(member, self._last - acked, 0.0 if oldest is None else oldest.at)

    def count(self) -> int:
        return self._last

    def _came(self, member: int) -> tuple[int, Collection[int]]:
        return self._arrived[member].expected, self._arrived[member].early

    def _kept_of(self, member: int) -> Mapping[int, Packet]:
        return self._kept[member]

    def bereft(self, member: int) -> None:
        """Nothing to do: this layer holds no packets, so none waits for a missing one."""

    # Counters

    def _tell(self, member: int | None) -> None:
        """Send our counters in a packet of their own, to one member or to all."""
        self.stack.row("control", member, note="ack")
        packet = self._packet(member)
        if member is None:
            self._report_on(packet)
        else:
            self._told[member] = self._arrived[member].expected - 1
            self._owed.discard(member)
            if not self._owed:
                self._alarms.clear(_REPORTING)
        self.stack.emit([packet])

    def _packet(self, to: int | None) -> Packet:
        packet = Packet(self.stack.me, self.stack.view.number, kind=self.id)
        packet.to = to
        packet.ack = self._counters()
        self.stack.chain.ride(packet)
        return packet

    def _report_on(self, packet: Packet) -> None:
        self.stack.want_report(False)
        self._owed.clear()
        self._alarms.clear(_REPORTING)
        if packet.ack is None:
            packet.ack = self._counters()
            self.stack.chain.ride(packet)
        self._told = list(packet.ack)

    def _counters(self) -> tuple[int, ...]:
        return tuple([arrived.expected - 1 for arrived in self._arrived])
