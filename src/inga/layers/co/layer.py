"""The CO protocol as a layer: packets to and from its machine, and its trace rows.

    data          kind data   seq
    nack          our kind
    confirmation  our kind    seq; `asks`: it is a poll; `denies`: requested numbers were never used

each with an extension, see `wire.co`.
"""

from collections.abc import Collection, Mapping
from typing import Any

from inga.layers.co.machine import CoMachine
from inga.layers.co.parts import (
    LEVELS,
    CoControlSent,
    CoMessage,
    CoNack,
    Confirmation,
    CoSent,
    CoSettings,
    Reached,
    SentAgain,
)
from inga.layers.flow import charged
from inga.layers.lending import NumberedLender
from inga.layers.machine import Discarded, GaveUp
from inga.layers.machine_order import MachineOrder
from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.packet import HEADER_MAX, Buffer, Packet
from inga.model.view import View
from inga.wire.co import CoExtension, pack, unpack
from inga.wire.runs import RUNS_MAX

STEPS = {"causal": "accept", "confirmed": "confirm", "acknowledged": "acknowledge"}
"""For each level, the step of the trace row that records it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Co(MachineOrder[CoMachine], NumberedLender):
    """Order, repair, flow control and confirmation for messages to all members."""

    name = "co"
    id = 5
    levels: tuple[str, ...] = LEVELS
    delivers = LEVELS
    settings = CoSettings
    takes_gapless = True

    def __init__(
        self, *, deliver: str = "acknowledged", machine: type[CoMachine] = CoMachine, **said: Any
    ) -> None:
        MachineOrder.__init__(self, deliver=deliver, machine=machine, **said)  # compiled, super() takes no **

    def view(self, view: View) -> None:
        super().view(view)
        stack = self.stack
        self.machine = self._kind(stack.me, len(view), self._settings, stack.now)
        # The bodies of our own messages that will be echoed, as they were before lower layers changed them.
        self._bodies: dict[int, Buffer] = {}
        # A confirmation that lower layers had no room for: None: there is none; False: a plain one; True: a poll.
        self._unsaid: bool | None = None

    # Sending

    def down(self, batch: list[Packet]) -> None:
        for packet in batch:
            self.machine.request(packet, charged(len(packet.body) + HEADER_MAX))
        self._run()

    def turn(self) -> None:
        self.machine.now = self.stack.now
        if self._unsaid is not None and not self._is_blocked:
            is_poll, self._unsaid = self._unsaid, None
            self.machine.confirm_all(poll=is_poll)
        self.machine.confirm_now()
        if self.machine.events:
            self._act()

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        machine = self.machine
        machine.now = self.stack.now
        for packet in batch:
            try:
                free, expected, rises, *_ = self._section(packet)
            except WireError as error:
                self.stack.reject(error.reason, packet)
                continue
            if not packet.seq:
                self.stack.reject("malformed", packet)
                continue
            self._received(packet, "receive")
            message = CoMessage(packet.src, packet.seq, expected, rises, free, packet)
            if not machine.receive(message):
                continue
            self.stack.meet(packet, fresh=True)
            message.size = len(packet.body) + 1
            self.held += message.size
            if not message.deps:  # early: a message that precedes it is missing
                packet.keep()
                self._received(packet, "hold")
        machine.stages()
        self._act()

    def _section(self, packet: Packet) -> CoExtension:
        return unpack(packet.ext or b"", packet.src, len(self.stack.view))

    def _heed(self, packet: Packet) -> str | None:
        """Process a confirmation or a nack. Returns the reason to reject it, if there is one."""
        src, seq = packet.src, packet.seq
        match self._section(packet):
            case CoExtension(free, tuple() as expected, runs=tuple() as runs):
                return self.machine.asked(CoNack(src, runs, expected, free))
            case CoExtension(free, tuple() as expected, confirmed=tuple() as confirmed) if seq:
                return self.machine.confirmed(
                    Confirmation(src, seq, expected, confirmed, free, packet.asks, packet.denies)
                )
        return "malformed"

    # For drivers, and for view changes

    def sent(self) -> list[int]:
        machine = self.machine
        return [machine.expected[machine.me] - 1] * len(machine.expected)

    def has(self, counts: list[int]) -> bool:
        """Whether so many messages of each member were accepted here, and all of these are acknowledged: every member has them
        before the next view begins."""
        come = all(number > count for number, count in zip(self.machine.expected, counts, strict=True))
        return come and self.machine.is_settled

    def count(self) -> int:
        return self.machine.expected[self.me] - 1

    def _came(self, member: int) -> tuple[int, Collection[int]]:
        return self.machine.expected[member], self.machine.early[member]

    def _kept_of(self, member: int) -> Mapping[int, Packet]:
        return {seq: message.body for seq, message in self.machine.kept(member).items()}

    def bereft(self, member: int) -> None:
        self.machine.forget_beyond_hole(member)
        self._run()

    @property
    def settled(self) -> bool:
        """Whether all members that were met have accepted all our messages. Messages of others need not be acknowledged for this,
        since there may always be more of them."""
        machine = self.machine
        peers = self.stack.peers
        met = [m for m in peers if m in self.stack.met]
        if machine.waiting:
            return False
        if not met:
            return not peers or not machine.unreleased
        return all(machine.has_all(m) for m in met)

    # From the machine to packets and rows

    def _act(self) -> None:
        """Carry out the machine's events in their order. Leaving and released packets are passed on in batches."""
        machine = self.machine
        leaving: list[Packet] = []
        released: list[Packet] = []
        events, machine.events = machine.events, []
        for event in events:
            match event:
                case Reached(level, messages):
                    self._reached(level, messages, released)
                    continue
                case CoSent(message):
                    leaving.append(self._stamped(message))
                    continue
            if leaving:  # a confirmation has our next number: the messages below it go first
                self._leave(leaving)
                leaving = []
            self._do(event)
        if leaving:
            self._leave(leaving)
        self._delivered(released)
        self._acted(released)

    def _leave(self, packets: list[Packet]) -> None:
        if not self.machine.others:
            return
        if self.deliver != LEVELS[0]:  # at the first level our own messages were delivered at the send
            self._bodies.update({p.seq: p.body for p in packets if self._is_echoed(p)})
        self.below(packets)

    def _do(self, event: Any) -> None:
        if isinstance(event, (CoControlSent, SentAgain)) and self._is_blocked:
            if isinstance(event, CoControlSent) and isinstance(event.what, Confirmation):
                self._unsaid = bool(self._unsaid) or event.what.poll
            return
        match event:
            case CoControlSent(to, Confirmation() as word):
                self._confirm(to, word)
            case CoControlSent(int() as to, CoNack() as nack, again):
                self._ask(to, nack, again)
            case SentAgain(to, messages):
                for message in messages:
                    self.sends_again(to, message.seq)
                self.stack.emit([message.body.copy_to(to) for message in messages])
            case Discarded(reason, message):
                self._discard(reason, message)
            case GaveUp(src):
                self._give_up(src)

    @property
    def _is_blocked(self) -> bool:
        """Whether lower layers still hold earlier packets of ours: more would only make their queues longer."""
        return self.stack.chain.waiting > self.waiting

    def _stamped(self, message: CoMessage) -> Packet:
        """The packet of a message of ours, with the extension that the receivers' machines read."""
        packet: Packet = message.body
        packet.seq, packet.deps = message.seq, message.deps
        packet.ext = pack(CoExtension(message.free, message.vector, message.rises))
        packet.partial = packet.urgent = False
        self._sent(packet)
        return packet

    def _reached(self, level: str, messages: list[CoMessage], released: list[Packet]) -> None:
        """Messages reached a level: write rows, settle receipts, and release the messages if the application gets them at this
        level, our own only if it gets those at all."""
        stack, me, is_due = self.stack, self.machine.me, level == self.deliver
        for message in messages:
            packet: Packet = message.body
            if packet.src == me:
                if packet.receipt is not None:
                    packet.receipt.reach(level)
                if is_due and self._is_echoed(packet):
                    copy = packet.copy_to(me)
                    copy.encoded = None
                    copy.body = self._bodies.pop(packet.seq, packet.body)
                    released.append(copy)
            else:
                if level == "causal":
                    packet.deps = message.deps
                    if not (is_due or packet.bare):
                        self.stack.store(packet)
                if is_due:
                    self.held -= message.size
                    if not self._is_bare(packet):
                        released.append(packet)
            if stack.trace is not None:
                self._row(STEPS[level], packet, packet.count)

    def _is_echoed(self, packet: Packet) -> bool:
        """Whether our application gets this packet of ours."""
        return self.echo or (packet.dst is not None and bool(packet.dst >> self.machine.me & 1))

    def _discard(self, reason: str, message: CoMessage) -> None:
        packet: Packet = message.body
        self.held -= message.size
        if reason == "duplicate":
            self._received(packet, "duplicate")
        elif reason == "overrun":
            self.stack.counts["overrun"] += 1
        else:
            self.stack.reject(reason, packet)

    def _confirm(self, to: int | None, word: Confirmation) -> None:
        packet = self._word(to, pack(CoExtension(word.free, word.expected, confirmed=word.confirmed)))
        packet.seq, packet.asks, packet.denies = word.seq, word.poll, word.denies
        self.stack.row("poll" if word.poll else "control", to)
        self.stack.emit([packet])

    def _ask(self, to: int, nack: CoNack, again: bool) -> None:
        self.stack.counts["nack"] += 1
        numbers = sum(high - low for low, high in nack.runs)
        if not again:
            self.stack.row("gap", to, n=numbers)
        self.stack.row("nack", to, n=numbers)
        self.stack.emit(
            [self._word(to, pack(CoExtension(nack.free, nack.expected, runs=nack.runs[:RUNS_MAX])))]
        )
