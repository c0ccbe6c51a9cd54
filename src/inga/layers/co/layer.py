"""The CO protocol as a layer: packets to and from its machine, and its rows.

    data          kind data   seq, ack (the vector) or delta (what rose in it)
    nack          our kind    runs, ack
    confirmation  our kind    seq, ack, buf (what is confirmed); urgent = it is a poll

and `free`, the sender's free buffers, on each.
"""

from typing import Any

from inga.layers.co.machine import CoMachine
from inga.layers.co.parts import (
    LEVELS,
    Confirmation,
    Discarded,
    GaveUp,
    Message,
    Nack,
    Reached,
    Sent,
    SentAgain,
    Settings,
    Told,
)
from inga.layers.flow import WARN_AFTER, charged, share_of
from inga.layers.order import Order
from inga.model.errors import Gap, UsageError, WireError
from inga.model.packet import HEADER_MAX, Packet
from inga.model.view import View
from inga.wire.bundle import count
from inga.wire.packet import RUNS_MAX

GOODBYE = b"goodbye"

STEPS = {"causal": "accept", "confirmed": "confirm", "acknowledged": "acknowledge"}
"""The trace's name of reaching a level."""


class Co(Order):
    """Order, repair, flow and confirmation for messages to everybody."""

    name = "co"
    id = 5
    provides = frozenset({"reliable", "flow", "fifo", "causal"})
    levels = LEVELS
    settings = Settings

    def __init__(
        self,
        *,
        deliver: str = "acknowledged",
        echo: bool = False,
        greet: bool = False,
        queue_max: int = 16 << 20,
        machine: type[CoMachine] = CoMachine,
        **settings: Any,
    ) -> None:
        """`queue_max` is in unread bytes, above which we report no free buffers. `machine` is the protocol, which
        an experiment may bend. The rest is explained with `Settings`."""
        super().__init__(echo=echo)
        if deliver not in LEVELS:
            raise UsageError(f"co delivers at level {', '.join(LEVELS)}, not {deliver!r}")
        self.deliver = deliver
        self.greet = greet
        self.queue_max = queue_max
        self._settings = Settings(**settings)
        self._kind = machine

    def view(self, view: View) -> None:
        stack = self.stack
        self.machine = self._kind(stack.me, len(view), self._settings, stack.now)
        self._blocked_since: float | None = None
        self._warned = False
        self._unheard = set(stack.others()) if self.greet else set()
        self._greet_at: float | None = stack.now if self._unheard else None
        self._greet_wait = 0.02
        self._act()

    # Sending

    def down(self, batch: list[Packet]) -> None:
        for packet in batch:
            self.machine.request(packet, charged(len(packet.body) + HEADER_MAX))
        self._run()

    def turn(self) -> None:
        self.machine.now = self.stack.now
        self.machine.confirm_now()
        if self.machine.events:
            self._act()

    def tick(self, now: float) -> None:
        if self._greet_at is not None and self._greet_at <= now:
            self._greet(now)
        self.machine.tick(now)
        self._act()

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        if self._unheard:
            self._unheard.difference_update([packet.src for packet in batch])
        machine = self.machine
        machine.now = self.stack.now
        for packet in batch:
            if not packet.seq or packet.free is None or (packet.ack is None and packet.delta is None):
                self.stack.reject("malformed", packet)
                continue
            self._received(packet, "receive")
            message = Message(packet.src, packet.seq, packet.ack, packet.delta, packet.free, packet)
            if machine.receive(message) and message.deps is None:  # it came before something that precedes it
                packet.keep()
                self._received(packet, "hold")
        machine.stages()
        self._act()

    def control(self, packet: Packet) -> None:
        self._unheard.discard(packet.src)
        self.machine.now = self.stack.now
        reason = self._heed(packet)
        if reason is not None:
            self.stack.reject(reason, packet)
        elif packet.ext == GOODBYE:
            self.stack.gone(packet.src)
        self._run()

    def _heed(self, packet: Packet) -> str | None:
        """A confirmation or a nack came; the reason if it cannot be right."""
        src, ack, confirmed, free = packet.src, packet.ack, packet.buf, packet.free
        if ack is None or free is None:
            return "malformed"
        if packet.runs is not None:
            return self.machine.asked(Nack(src, packet.runs, ack, free))
        if confirmed is None or not packet.seq:
            return "malformed"
        return self.machine.confirmed(Confirmation(src, packet.seq, ack, confirmed, free, packet.urgent))

    def gone(self, member: int) -> None:
        self._unheard.discard(member)
        self.machine.leave_out(member)
        self._run()

    def taken(self, packets: list[Packet]) -> None:
        if self.stack.trace is not None:
            for packet in packets:
                if packet.src != self.stack.me:
                    self._took(packet)
        if self.machine.is_behind and not self._is_behind():
            self.machine.now = self.stack.now
            self.machine.caught_up()
            self._run()

    # What drivers want, and what a change of the order needs

    @property
    def waiting(self) -> int:
        return len(self.machine.waiting)

    def sent(self) -> list[int]:
        machine = self.machine
        return [machine.expected[machine.me] - 1] * len(machine.expected)

    def has(self, counts: list[int]) -> bool:
        """All of it, and acknowledged: what the next view begins with, everybody has."""
        come = all(number > count for number, count in zip(self.machine.expected, counts, strict=True))
        return come and not self.machine.held_in_all

    @property
    def settled(self) -> bool:
        """Whether everybody who was ever heard has all we sent, and all of us who are here know it."""
        machine = self.machine
        peers = self.stack.peers()
        heard = [m for m in peers if m in self.stack.addresses]
        if machine.waiting:
            return False
        if not heard:
            return not peers or not machine.unreleased
        if not all(machine.has_all(m) for m in heard):
            return False
        return len(heard) < len(peers) or machine.is_idle

    def goodbye(self) -> None:
        self.stack.emit([self._last_word(GOODBYE)])
        self.machine.rest()
        self._greet_at = self.wake = None

    def fit(self, granted: int) -> None:
        self.machine.window_bytes = share_of(granted, len(self.stack.view))

    # From the machine to packets and rows

    def _run(self) -> None:
        self.machine.now = self.stack.now
        self.machine.stages()
        self._act()

    def _act(self) -> None:
        """Do what the machine wants done, in the order it happened; what leaves and what is released, in batches."""
        machine = self.machine
        leaving: list[Packet] = []
        released: list[Packet] = []
        events, machine.events = machine.events, []
        for event in events:
            match event:
                case Reached(level, messages):
                    self._reached(level, messages, released)
                    continue
                case Sent(message):
                    leaving.append(self._stamped(message))
                    continue
            if leaving:  # a confirmation says how far we have counted: what it counts goes first
                self._leave(leaving)
                leaving = []
            self._do(event)
        if leaving:
            self._leave(leaving)
        if released:
            self._delivered(released)
            self.above(released)
        if not machine.is_behind:
            machine.is_behind = self._is_behind()
        self._admit()
        self._rearm()

    def _leave(self, packets: list[Packet]) -> None:
        if self.machine.others:
            self.below(packets)

    def _do(self, event: Any) -> None:
        match event:
            case Told(to, Confirmation() as word):
                self._control_row("poll" if word.poll else "control", to)
                self.stack.emit([self._word(to, word)])
            case Told(int() as to, Nack() as nack, again):
                self._ask(to, nack, again)
            case SentAgain(to, messages):
                self.stack.counts["repair"] += len(messages)
                for message in messages:
                    self._control_row("repair", to, message.seq)
                self.stack.emit([message.body.copy_to(to) for message in messages])
            case Discarded(reason, message):
                self._discard(reason, message.body)
            case GaveUp(src):
                name = self.stack.view.names[src]
                self._control_row("gave_up", src)
                self.stack.fail(
                    Gap(f"{name} did not repair what was lost within {self._settings.patience:g} s")
                )

    def _stamped(self, message: Message) -> Packet:
        """The packet of a message of ours, with all that its receivers have to know."""
        packet: Packet = message.body
        packet.seq, packet.ack, packet.delta = message.seq, message.vector, message.rises
        packet.free, packet.deps = message.free, message.deps
        packet.partial = packet.urgent = False
        self._sent(packet)
        return packet

    def _reached(self, level: str, messages: list[Message], released: list[Packet]) -> None:
        """Rows, receipts, and what the application gets at this level: our own only if it is wanted."""
        stack, me, is_due = self.stack, self.machine.me, level == self.deliver
        for message in messages:
            packet: Packet = message.body
            if packet.src == me:
                if packet.receipt is not None:
                    packet.receipt.reach(level)
                if is_due and (self.echo or (packet.dst is not None and packet.dst >> me & 1)):
                    copy = packet.copy_to(me)
                    copy.count, copy.deps = packet.count, packet.deps
                    released.append(copy)
            else:
                if level == "causal":
                    self._accepted(packet, message)
                if is_due and not self._is_bare(packet):
                    released.append(packet)
            if stack.trace is not None:
                self._row(STEPS[level], packet, packet.count)

    def _accepted(self, packet: Packet, message: Message) -> None:
        packet.deps = message.deps
        if self.stack.trace is not None:
            self._count(packet)
        if self.deliver != "causal" and not packet.bare:
            self.stack.store(packet)

    def _count(self, packet: Packet) -> None:
        """How many messages of the application it completes. What is no bundle is ordered, and not handed over."""
        if packet.bare:
            return
        if packet.frag is not None:
            packet.count = int(packet.frag[0] == packet.frag[1] - 1)  # only single messages are cut
            return
        try:
            packet.count = count(packet.body)
        except WireError as error:
            self.stack.reject(error.reason, packet)
            packet.bare = True

    def _discard(self, reason: str, packet: Packet) -> None:
        if reason == "duplicate":
            self._received(packet, "duplicate")
        elif reason == "overrun":
            self.stack.counts["overrun"] += 1
        else:
            self.stack.reject(reason, packet)

    def _packet(self, to: int | None, word: Confirmation | Nack) -> Packet:
        packet = Packet(word.src, self.stack.view.number, kind=self.id)
        packet.to, packet.ack, packet.free = to, word.expected, word.free
        return packet

    def _word(self, to: int | None, word: Confirmation) -> Packet:
        packet = self._packet(to, word)
        packet.seq, packet.buf, packet.urgent = word.seq, word.confirmed, word.poll
        return packet

    def _ask(self, to: int, nack: Nack, again: bool) -> None:
        packet = self._packet(to, nack)
        packet.runs = nack.runs[:RUNS_MAX]
        self.stack.counts["nack"] += 1
        numbers = sum(high - low for low, high in nack.runs)
        if not again:
            self._control_row("gap", to, numbers)
        self._control_row("nack", to, numbers)
        self.stack.emit([packet])

    def _is_behind(self) -> bool:
        """Behind from `queue_max` unread bytes, caught up at half of that."""
        return self.stack.queued >= (self.queue_max // 2 if self.machine.is_behind else self.queue_max)

    def _control_row(self, step: str, peer: int | None, n: int | None = None) -> None:
        trace = self.stack.trace
        if trace is not None and trace.full:
            trace.row(step, self.stack.now, self.stack.view.number, peer=peer, n=n)

    # People, coming and going

    def _last_word(self, ext: bytes | None = None) -> Packet:
        machine = self.machine
        numbers = (
            machine.expected[machine.me],
            tuple(machine.expected),
            tuple(machine.known_accepted.lowest),
        )
        packet = self._word(None, Confirmation(machine.me, *numbers, machine.buffers_free, ext is None))
        packet.ext = ext
        return packet

    def _greet(self, now: float) -> None:
        """Before anything else: find out who is there."""
        if not self._unheard:
            self._greet_at = None
            return
        self.stack.emit([self._last_word()])
        self._greet_wait = min(2 * self._greet_wait, 1.0)
        self._greet_at = now + self._greet_wait * (1 + 0.25 * self.stack.rng.random())

    def _admit(self) -> None:
        """Tell those above whether more may come, and a person who lets us wait."""
        stack, machine = self.stack, self.machine
        stack.passable = machine.is_open
        stack.writable = not machine.waiting
        if not machine.waiting:
            if self._blocked_since is not None:
                self._control_row("window_opened", None, len(machine.unreleased))
            self._blocked_since = None
        elif self._blocked_since is None:
            self._blocked_since, self._warned = stack.now, False
            self._control_row("window_closed", None, len(machine.unreleased))
        elif not self._warned and stack.now - self._blocked_since >= WARN_AFTER:
            self._warned = True
            names = ", ".join(stack.view.names[m] for m in machine.blockers())
            stack.notice(f"sending has waited {WARN_AFTER:g} s for {names}")

    def _rearm(self) -> None:
        wake = self.machine.wake
        if self._greet_at is not None and (wake is None or self._greet_at < wake):
            wake = self._greet_at
        self.wake = wake
