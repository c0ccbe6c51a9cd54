"""ReMIOP: a member that lacks MIOP packets requests them, and members that have them repair them.

    send      a packet leaves when the rate allows it, and is kept
    receive   a new packet is passed on at once and kept; a gap in the numbers is requested after a random delay
    NACK      packets that another member requests, we need not request. Those of them that we have are sent
              again, the very same bytes, after a random delay
    repair    when another member repairs a packet, our pending repair of it is cancelled
    STATE     every half second while packets are heard: up to which number we have everything, of each sender. It shows
              a receiver that it lacks the last packets, and a sender how far the slowest receiver is: see `rate`

The members need not be known; the data packets are plain MIOP. Rules beyond the paper's Figure 3 have options of
their own:

    one_nack     one request per sender is pending, and a number that is in it is not put in again
    spare        a packet that was repaired just now is not repaired again: the repair has not yet reached the members that request it
    burst        at most so many repairs at a time: repairs of other members are read in between
    repeats      a request without success is repeated, so many times, each after twice the wait
    tail         numbers that a STATE shows and that have not arrived are missing, too
    baseline     which packets to request of a sender first heard in the middle: from the start of that message, from that
                 packet, or from the sender's own start if that is still kept
    wait         do not push packets that some member has not reported out of the buffers, and ask for reports while some are missing

After Bessani, Fraga and Lung, "Extending the UMIOP Specification for Reliable Multicast in CORBA", section 4.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from inga.corba.multicast import reported
from inga.corba.multicast.fragments import STRANGER, Piece, peer_of
from inga.corba.multicast.lending import StreamLender
from inga.corba.multicast.rate import Rate
from inga.corba.multicast.reported import HEARD, REQUESTS, Stream, start_of
from inga.corba.wire.miop import NACK, STATE, ControlPacket
from inga.layers.numbers import check_choice, check_delay, check_number, check_seconds, check_switch
from inga.model.compiled import mypyc_attr
from inga.model.errors import Gap
from inga.model.packet import DATA, Packet
from inga.model.view import View
from inga.session.alarms import Alarms, Backoff
from inga.session.pressure import unread_in
from inga.stack.budget import Supply
from inga.stack.waits import earlier

RATE_MIN, RATE_MAX = 10_000_000, 1_000_000_000
"""Bits a second. The upper bound is more than a Python process sends, so that only slow receivers slow a sender down."""

REPEATS = 16
WAIT_MIN, WAIT_MAX = 0.1, 2.0
"""Seconds between two requests for one packet. The upper bound also holds between two questions for reports."""

SLACK = 0.001
"""Seconds. Timers are no finer: a packet that is due within this time leaves at once."""

BURST = 4
"""Repairs at a time. A member that is behind with reading would otherwise send many that others have already sent."""

BASELINES = ("collection", "packet", "start")
ON_GAP = ("fail", "skip")


@mypyc_attr(native_class=False)
@dataclass(frozen=True)
class ReMiopSettings(reported.ReportedSettings):
    """The settings of `remiop`. Times are in seconds; settings without a comment are explained at the top of the module."""

    rmin: float = RATE_MIN  # bounds of the rate, in bits a second
    rmax: float = RATE_MAX
    tnack: float = 0.05  # the longest random wait before a request
    trepair: float = 0.05  # the longest random wait before a repair
    # The omission degree: a member repairs a packet `od` + 1 times at most; None = no limit.
    od: int | None = None
    state_interval: float = 0.5  # between two reports
    state_every: int | None = (
        None  # new packets after which a report is sent early; None = an eighth of `size`, 0 = never
    )
    one_nack: bool = True
    repeats: int = REPEATS
    tail: bool = True
    baseline: str = "collection"
    spare: float | None = None  # None = `tnack` + `trepair`
    burst: int = BURST
    slack: float = SLACK
    on_gap: str = (
        "fail"  # what happens if a packet of a member is lost for good: the group fails, or goes on (`skip`)
    )

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        super().__post_init__()
        for name in ("tnack", "trepair", "slack"):
            check_delay(name, getattr(said, name))
        if said.spare is not None:
            check_delay("spare", said.spare)
        check_seconds("state_interval", said.state_interval)
        for name in ("od", "state_every"):
            if getattr(said, name) is not None:
                check_number(name, getattr(said, name), 0, 1 << 30)
        check_number("repeats", said.repeats, 0, 1000)
        check_number("burst", said.burst, 1, 1 << 16)
        for name in ("one_nack", "tail"):
            check_switch(name, getattr(said, name))
        check_choice("baseline", said.baseline, BASELINES)
        check_choice("on_gap", said.on_gap, ON_GAP)
        Rate(said.rmin, said.rmax, said.size)  # raises if the bounds are invalid

    @property
    def early_after(self) -> int:
        """New packets after which a report is sent early."""
        return max(1, self.size // 8) if self.state_every is None else self.state_every

    @property
    def spared(self) -> float:
        """Seconds for which a packet that was repaired is not repaired again."""
        return self.tnack + self.trepair if self.spare is None else self.spare


@mypyc_attr(allow_interpreted_subclasses=True)
class ReMiop(StreamLender[ReMiopSettings]):
    """Requests lost packets, repairs, reports, and limits its sending rate."""

    name = "remiop"
    provides = frozenset({"reliable", "flow"})
    settings = ReMiopSettings

    def view(self, view: View) -> None:
        self._quieten()  # before streams are made, which may find gaps
        self._request_count = 0
        self._heard_at = float("-inf")  # when a data packet was last heard or sent
        # Waits between two questions for reports; they begin anew when data is heard or a report shows progress.
        self._polling = Backoff(min(2 * self._settings.state_interval, WAIT_MAX), WAIT_MAX)
        self._is_asked = False  # another member has asked for our report
        self._fresh = 0  # new packets since our last report
        self._early_after = self._settings.early_after
        self.rate = Rate(self._settings.rmin, self._settings.rmax, self.size)
        self._strangers = Supply(REQUESTS, REQUESTS)  # budget for requests of senders without a stream
        super().view(view)
        give_up = sum(self._wait(times) + self._settings.tnack for times in range(self._settings.repeats + 1))
        # Seconds after which an incomplete message gets no more packets.
        self.patience = max(4 * 8 * self._datagram / self._settings.rmin, give_up)

    def _quieten(self) -> None:
        """Drop all pending requests, repairs and reports."""
        self._requests = Alarms()  # pending requests, by (sender, number of the request)
        self._pending: dict[tuple[int, int], set[int]] = {}  # the packet numbers in each of them
        self._asked = Alarms()  # by (sender, number): when to request that packet again
        self._repairs = Alarms()  # by (sender, number): when to repair that packet
        self._state_at: float | None = None  # when to report, or to ask for reports
        self._alarms = (self._requests, self._asked, self._repairs)

    # Events

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        due = self._state_at
        for alarms in self._alarms:  # read after every datagram: mostly none of them is set
            if alarms.is_set:
                due = earlier(due, alarms.next)
        if self._waiting:
            due = earlier(due, self._due(self._waiting[0][0]) if self._has_room() else self._silent_at())
        return due

    def tick(self, now: float) -> None:
        for sender, which in self._requests.due(now):
            self._ask(self._streams[sender], self._pending.pop((sender, which)))
        again: dict[int, list[int]] = {}
        for sender, number in self._asked.due(now):
            again.setdefault(sender, []).append(number)
        for sender, numbers in again.items():
            self._ask_again(self._streams[sender], numbers)
        self._repair(self._repairs.due(now))
        if self._state_at is not None and self._state_at <= now:
            self._report_on_time(now)
        if self.is_public and self._waiting:
            self._settle()
        self._pump()

    def taken(self, packets: list[Packet]) -> None:
        stood_still = self._unread.behind and not self.stack.leaving
        if stood_still and not self._unread.is_behind(unread_in(self.stack)):
            self._tell_all()

    def introduced(self, member: int, what: dict[str, int]) -> None:
        super().introduced(member, what)
        if self._lags():
            self._talk()  # it may have joined just now: our next report shows it what it lacks

    def goodbye(self) -> None:
        super().goodbye()
        self._quieten()

    # Sending

    def _due(self, since: float) -> float:
        return self.rate.due(since) - self._settings.slack

    def _left(self, since: float, packet: Packet) -> None:
        self._talk()
        if self.rate.spend(self.rate.due(since), len(packet.body)):
            self.stack.row("rate", n=round(self.rate.now))

    def _settle(self) -> None:
        before = self._everywhere
        super()._settle()
        if self._everywhere > before:
            self._polling.reset()

    # Data

    def _heard(self) -> None:
        if self._early_after and self._fresh >= self._early_after:
            self._tell_all()

    def _receive(self, packet: Packet, piece: Piece) -> bool:
        if piece.sender:
            key = piece.sender, packet.lsn
            if key in self._repairs:
                self._repairs.clear(key)
                self.stack.counts["repair_suppressed"] += 1
                self.stack.row("repair_suppressed", peer_of(packet.src), n=packet.lsn)
            if piece.sender == self.miop.sender:
                self._spare(self._own.get(packet.lsn))
                return False  # our own packet, repaired by another member
        stream = self._stream_of(packet, piece)
        if stream is None:
            return packet.src == STRANGER  # no number, or of an untracked sender: plain MIOP, passed on
        self._talk()
        if not self._take_in(stream, packet):
            self._spare(stream.buffer.get(packet.lsn))
            return False
        self._fresh += 1
        self._asked.clear((stream.sender, packet.lsn))
        if not self._settings.one_nack and stream.missing:
            self._request(stream, stream.missing)
        return True

    def _baseline(self, piece: Piece) -> int:
        if self._settings.baseline == "start":
            return self._start(piece.number) or piece.base
        return piece.base if self._settings.baseline == "collection" else piece.number

    def _start(self, number: int) -> int | None:
        """The first number of a sender that is at `number` now, a multiple of NEW_LIFE; None if it has sent more than `size` packets."""
        start = start_of(number)
        return start if number - start < self.size else None

    def _talk(self) -> None:
        """A data packet was sent or received: reports go on."""
        now = self.stack.now
        self._heard_at = now
        self._polling.reset()
        if self._state_at is None:
            # A random time, lest all members report at once; and not at once, lest the first packet alone is reported.
            self._state_at = now + self._settings.state_interval * (0.5 + 0.5 * self.stack.rng.random())

    # Requesting packets

    def _found(self, stream: Stream, holes: Iterable[int]) -> None:
        new = [number for number in holes if number not in stream.missing]
        if not new or stream.member in self.stack.left:
            return
        self.stack.row("gap", peer_of(stream.member), n=len(new))
        stream.missing.update(dict.fromkeys(new, 0))
        self._request(stream, new if self._settings.one_nack else stream.missing)

    def _request(self, stream: Stream, numbers: Iterable[int]) -> None:
        """Schedule a NACK, or add the numbers to the one that is pending."""
        key = stream.sender, 0
        if not self._settings.one_nack:
            self._request_count += 1
            key = stream.sender, self._request_count
        if key not in self._requests:
            self._pending[key] = set()
            self._requests.set(key, self.stack.now + self._chance(self._settings.tnack))
        self._pending[key].update(numbers)

    def _ask(self, stream: Stream, numbers: set[int]) -> None:
        wanted = sorted(number for number in numbers if number in stream.missing)
        if not wanted:
            return
        self.stack.row("nack", peer_of(stream.member), n=len(wanted), note=_ranges(wanted))
        self._say(NACK, [(stream.sender, number) for number in wanted])
        self._was_asked(stream, wanted)

    def _was_asked(self, stream: Stream, numbers: Iterable[int]) -> None:
        """Packets were requested, by us or another member: those that do not arrive are requested again."""
        if self._settings.repeats:
            now = self.stack.now
            for number in numbers:
                self._asked.set((stream.sender, number), now + self._wait(stream.missing[number]))

    def _ask_again(self, stream: Stream, numbers: list[int]) -> None:
        wanted = []
        for number in numbers:
            if number not in stream.missing:
                continue
            stream.missing[number] += 1
            if stream.missing[number] > self._settings.repeats:
                if not self.stack.views.forgives(self.patience):
                    self._lose(stream, number)
                    continue
                stream.missing[number] = 0
            wanted.append(number)
        if wanted:
            self._request(stream, wanted)

    def _wait(self, times: int) -> float:
        """Seconds to wait for the repair after a request, if so many requests before it were in vain."""
        first = max(2 * (self._settings.tnack + self._settings.trepair), WAIT_MIN)
        return min(first * 2.0 ** min(times, 32), WAIT_MAX)

    def _lose(self, stream: Stream, number: int) -> None:
        super()._lose(stream, number)
        self._asked.clear((stream.sender, number))
        stack = self.stack
        is_awaited = stream.member >= 0 and stream.member not in stack.left and not stack.is_homeless
        if self._settings.on_gap == "fail" and is_awaited:
            name = stack.view.names[stream.member]
            stack.fail(Gap(f"packet {number} of {name} is lost for good: nobody who has it repaired it"))

    def awaits(self, sender: int, number: int) -> bool:
        """Whether the sender of an incomplete message was heard recently, or we may be cut off: a member whose window closes in the
        middle of a message asks for reports until it may go on."""
        stream = self._streams.get(sender)
        if stream is None or stream.member < 0 or number <= stream.stable:
            return False
        is_cut_off = self.stack.views.forgives(self.patience)
        return is_cut_off or self.stack.now - self.stack.heard[stream.member] < self.patience

    def _stop_asking(self, stream: Stream) -> None:
        for key in [key for key in self._pending if key[0] == stream.sender]:
            del self._pending[key]
            self._requests.clear(key)
        for number in stream.missing:
            self._asked.clear((stream.sender, number))
        super()._stop_asking(stream)

    def _forget(self, stream: Stream) -> None:
        self._stop_asking(stream)
        for number in stream.buffer:
            self._repairs.clear((stream.sender, number))
        super()._forget(stream)

    # Requests and reports of others

    def _hear(self, control: ControlPacket) -> None:
        if control.kind == NACK:
            self._hear_request(control)
        elif control.kind == STATE:
            self._hear_report(control)

    def _hear_request(self, control: ControlPacket) -> None:
        asker = self._streams.get(control.sender)
        if not (self._strangers if asker is None else asker.requests).take(self.stack.now):
            self.stack.reject("budget")
            return
        ours: list[int] = []
        for sender, number in control.entries:
            if sender == self.miop.sender:
                if self._everywhere < number <= self._last:  # no other can be missing anywhere
                    ours.append(number)
                packet = self._own.get(number)
            else:
                stream = self._streams.get(sender)
                if stream is None:
                    continue
                if number in stream.missing:
                    self._suppress(stream, number)
                packet = stream.buffer.get(number)
            if packet is not None:
                self._promise(packet)
        if ours:
            self.rate.report(self._last - min(ours) + 1)

    def _suppress(self, stream: Stream, number: int) -> None:
        """Another member has requested this packet: take it out of our pending requests."""
        for key, numbers in list(self._pending.items()):
            if key[0] != stream.sender or number not in numbers:
                continue
            numbers.discard(number)
            self.stack.counts["nack_suppressed"] += 1
            self.stack.row("nack_suppressed", peer_of(stream.member), n=number)
            if not numbers:
                self._requests.clear(key)
                del self._pending[key]
            self._was_asked(stream, [number])

    def _promise(self, packet: Packet) -> None:
        """Schedule a repair, unless one is pending, or the packet was repaired just now or often enough."""
        piece = packet.piece
        key = piece.sender, packet.lsn
        if key in self._repairs or self.stack.now < piece.spared_until:
            return
        if self._settings.od is not None and piece.nacks > self._settings.od:
            self.stack.counts["od_exceeded"] += 1
            return
        piece.nacks += 1
        self._repairs.set(key, self.stack.now + self._chance(self._settings.trepair))

    def _spare(self, packet: Packet | None) -> None:
        """The packet was repaired just now: the repair has not yet reached a member that still requests it."""
        if packet is not None:
            packet.piece.spared_until = self.stack.now + self._settings.spared

    def _repair(self, due: Iterable[tuple[int, int]]) -> None:
        batch: list[Packet] = []
        for sender, number in due:
            if len(batch) >= self._settings.burst:
                self._repairs.set((sender, number), self.stack.now + SLACK)
                continue
            if sender == self.miop.sender:
                packet = self._own.get(number)
            else:
                packet = self._streams[sender].buffer.get(number)
                self.stack.counts["repair_of_others"] += packet is not None
            if packet is not None:
                self.sends_again(peer_of(packet.src), number)
                packet.kind = DATA  # a repair is counted as data, whatever packet it repairs
                packet.piece.spared_until = self.stack.now + self._settings.spared
                batch.append(packet)
        if batch:
            self.below(batch)

    def _hear_report(self, control: ControlPacket) -> None:
        for sender, number in control.entries:
            if sender == self.miop.sender:
                self.rate.report(self._last - number)
                self._told_of_us(control.sender, number)
                continue
            stream = self._streams.get(sender)
            if stream is None and sender == control.sender:
                stream = self._first_heard_of(sender, number)
            if stream is None:
                continue
            if sender == control.sender:
                stream.heard_at = self.stack.now
            if self._settings.tail and number > stream.known:
                if not self._is_credible(stream, number):
                    self.stack.reject("state")
                    continue
                if self._can_keep(stream, number):  # else it would not be taken yet, so it is not requested
                    self._learn(stream, number, came=0)
            if sender != control.sender:
                self._told_of(stream, control.sender, number)
        if [sender for sender, _ in control.entries] == [control.sender]:
            # A STATE about its sender alone asks for our report. If a question of ours is scheduled, we report at that time.
            self._is_asked = True
            if self._state_at is None:
                self._state_at = self.stack.now + self._chance(self._settings.tnack)

    def _first_heard_of(self, sender: int, number: int) -> Stream | None:
        """A stream for a sender whose STATE reveals packets of which none has arrived; None if they are not to be requested."""
        known = self._crowd.known(sender, number)
        if not self.is_public or self._settings.baseline != "start" or number <= known:
            return None
        baseline = known + 1 if known else self._start(number)
        if baseline is None or not self._crowd.has_place(self.stack.now):
            return None
        stream = self._new_stream(sender, STRANGER, baseline)
        stream.past = self._crowd.past(sender, number)
        return stream

    # Reports

    def _report_on_time(self, now: float) -> None:
        """Send the next regular report; if no data was heard for `HEARD` seconds, an answer, or a question to the members that lag."""
        if self._is_asked or now - self._heard_at <= HEARD:
            self._tell_all()
            if now - self._heard_at <= HEARD:
                return
        self._state_at = None
        if self.is_public:
            self._settle()  # a receiver that has not reported for long is not waited for
        if self._lags():
            self._say(STATE, self._ourselves())
            self._state_at = now + self._polling.next(self.stack.rng)

    def _tell_all(self) -> None:
        self._fresh = 0
        self._is_asked = False
        self._say(STATE, self._report())
        self._state_at = self.stack.now + self._settings.state_interval

    def _lags(self) -> bool:
        """Whether some member has not reported all of our packets."""
        return self._settings.wait and self._everywhere < self._last

    # Helpers

    def _chance(self, limit: float) -> float:
        """Uniform whole milliseconds from 0 to the limit."""
        return int(self.stack.rng.random() * (round(1000 * limit) + 1)) / 1000

    def _silent_at(self) -> float | None:
        """When the next receiver that has not reported for long stops counting."""
        earliest = min(self._reported_at.values(), default=None)
        return None if earliest is None else earliest + HEARD + SLACK


def _ranges(numbers: list[int]) -> str:
    """Numbers as a person reads them: 4, 7-9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{low}" if low == high else f"{low}-{high}" for low, high in runs)
