"""The SCO protocol as a layer: packets to and from its machine, and its trace rows.

A data message is one packet per destination, with the number of that link and the changes of the clock since the link's previous
packet. It names its destination, because a packet for a member whose address is not known yet goes to the whole group.
If one common datagram replaces these packets, it lists the numbers of all its destinations. A member that is not listed
drops a packet unread. Control messages and requests are packets of this layer's kind.

    DT    kind data    one copy of several: seq dst stamp, its lsn in `lsns`; the only copy: seq lsn dst stamp; for all: seq stamp lsns
    CTL   our kind     seq lsn; `asks`: it is a poll; `denies`: requested numbers were never used
    RET   our kind     runs

each with an extension, see `wire.selective`. All numbers are those of the next message and begin with 1, except in
stamps on the wire: those name the newest preceding message, and begin with 0.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from inga.layers.flow import WINDOW_MAX as WINDOW_BYTES
from inga.layers.flow import charged
from inga.layers.lending import lacking
from inga.layers.machine import Discarded, GaveUp
from inga.layers.machine_order import MachineOrder
from inga.layers.numbers import check_number
from inga.layers.sco.lent import fill, joined, placed, rows_of
from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import LSN_WINDOW, mask
from inga.layers.sco.parts import (
    Control,
    Copies,
    Happened,
    Heard,
    Own,
    Released,
    ScoControlSent,
    ScoMessage,
    ScoNack,
    ScoSent,
    ScoSettings,
)
from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.packet import HEADER_MAX, Packet, Runs
from inga.model.stamp import Stamp
from inga.model.view import View
from inga.stack.hooks import Holdings
from inga.wire import bundle
from inga.wire.selective import pack, unpack

TWO_WAYS = 0.02
"""The least delay of requests, in seconds, where datagrams for all members and for one take different sockets, and
overtake each other."""

WHOLE, COVERED, EARLY, SHARE, EARLY_SHARE = range(5)
"""Kinds of rows in our holdings of a departed member. WHOLE: a message and one of its destinations. COVERED: the number below which
we have all its messages to us. EARLY: a message that was delivered on arrival and whose full stamp is not known, and one of its
destinations. SHARE and EARLY_SHARE: the same of packets in shares, of which each destination has other messages: all members that
have messages which were also for another member lend it these."""

NOTE_BYTES = 8
"""Bytes reckoned for each note on a packet, which names a message that may be in flight to another member."""

NO_MORE: list[Any] = [(), None, b""]
"""The fields of an extension that only data packets have, when they are absent: lsns, notes, places."""

STEPS = {"accepted": "accept", "causal": "causal", "confirmed": "confirm"}
"""For each level, the step of the trace row that records it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Sco(MachineOrder[ScoMachine]):
    """Order, repair, flow control and confirmation for messages to any members."""

    name = "sco"
    id = 4
    delivers = ("received", "accepted", "causal", "confirmed")
    levels: tuple[str, ...] = ("confirmed",)
    settings = ScoSettings

    def __init__(
        self,
        *,
        deliver: str = "confirmed",
        multicast: bool = True,
        machine: type[ScoMachine] = ScoMachine,
        **said: Any,
    ) -> None:
        """If one datagram can reach all members (`multicast`), it replaces copies from `multicast_from` remote
        destinations on; 0: never, since copies were cheaper wherever that was measured. Times are in seconds."""
        MachineOrder.__init__(self, deliver=deliver, machine=machine, **said)  # compiled, super() takes no **
        made = self._settings
        for name in ("window", "quota", "multicast_from"):
            check_number(name, getattr(made, name), 0, LSN_WINDOW // 2)
        if made.window_bytes is None:
            made = replace(made, window_bytes=WINDOW_BYTES)
        self._settings = made if multicast else replace(made, multicast_from=0)

    def view(self, view: View) -> None:
        super().view(view)
        settings = self._settings
        if settings.multicast_from:
            settings = replace(settings, nack_delay=max(settings.nack_delay, TWO_WAYS))
        settings = replace(settings, noted_max=self._noted_max(len(view)))
        self.machine = self._kind(self.me, len(view), settings)
        self.machine.now = self.stack.now
        self._everybody = (1 << len(view)) - 1
        self._acting = False
        self._heard = 0  # number of our newest message that at least one destination has accepted
        self._prompt: set[int] = set()  # senders of partial bundles that wait for our confirmation
        # Lent messages by departed member, then by number, then by the member that lent them.
        self._lent: dict[int, dict[int, dict[int, Packet]]] = {}
        self._early: dict[
            int, dict[int, ScoMessage]
        ] = {}  # delivered on arrival, while earlier messages of their senders are missing
        self._borrowed: dict[int, set[int]] = {}  # the numbers of those that other members lent us
        self._conforms = False  # of departed members, we have ordered what any member has ordered

    def _noted_max(self, members: int) -> int:
        """The most notes on a packet: they may take an eighth of a datagram, and there is at most one for each
        destination and source."""
        most: int = self._settings.noted_max
        return min(most, self.stack.datagram_max // (8 * NOTE_BYTES), members * (members - 1))

    def overhead(self, members: int) -> int:
        return NOTE_BYTES * self._noted_max(members)

    # Sending

    def down(self, batch: list[Packet]) -> None:
        me = 1 << self.me
        for packet in batch:
            dst = self._everybody & ~me if packet.dst is None else packet.dst
            bodies = [packet.body] if packet.shares is None else [s.body for s in packet.shares.values()]
            size = charged(max(map(len, bodies)) + HEADER_MAX)
            self.machine.request(dst | me if self.echo else dst, packet, size)
        if not self._acting:  # otherwise the packets leave after the events that are being carried out
            self._run()

    def turn(self) -> None:
        if self._prompt:
            for member in sorted(self._prompt):
                self.machine.confirm_now(member)
            self._prompt.clear()
            self._act()

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        machine = self.machine
        machine.now = self.stack.now
        for packet in batch:
            if packet.lent:
                self._keep_lent(packet)
                continue
            message = self._message(packet)
            if message is None:
                continue
            reason = machine.receive(message)
            if reason is not None:
                self.stack.reject(reason, packet)
                continue
            packet.keep()  # another member may borrow it, long after the reader's buffer was reused
            if packet.partial and self._is_first(message):
                self._prompt.add(packet.src)
        machine.stages()
        self._act()

    def gone(self, member: int) -> None:
        self._prompt.discard(member)
        super().gone(member)

    def bereft(self, member: int) -> None:
        self._conforms = False  # if a member departs during a view change, the change begins again
        self.machine.forgo(member)
        if self.stack.views.follow:
            self.machine.hurry()
        else:  # no view change follows, so there is no cut at which all drop the same
            self.machine.free(member, self.machine.covered[member])
        self._run()

    def released(self, member: int) -> int:
        return self.machine.ordered[member]

    def holds(self) -> bool:
        return not self.machine.is_settled

    def conform(self, most: list[int]) -> None:
        """Order the held messages of each departed member up to the number in `most`, and drop the others.

        A lost message that such a message follows may have been for this member and not for another destination, which then has
        ordered it. Messages up to the highest number that any member has ordered are therefore ordered here, too. The others follow
        lost messages."""
        self._conforms = True
        for gone in sorted(self.stack.left):
            self.machine.free(gone, most[gone])
        self._run()
        self.machine.drop_orphans()
        self._run()
        self.machine.settle_gone()
        self._run()

    # For drivers, and for view changes

    def sent(self) -> list[int]:
        """The number of our newest message to each member. Our own entry is that of our newest message to any."""
        return list(self.machine.last_to)

    def has(self, counts: list[int]) -> bool:
        """Whether so many messages of each member arrived, and all are confirmed, so that no message waits here any more. Before
        `conform`, messages may wait for those that no member has: other members may then wait as well, and not confirm."""
        machine = self.machine
        come = all(machine.covered[m] > count for m, count in enumerate(counts) if m != machine.me)
        return come and (machine.is_settled or (machine.is_spent and not self._conforms))

    def closed(self) -> None:
        """Settle all receipts: a view ends only when all members have all our messages, also those whose
        confirmations did not arrive."""
        for own in self.machine.unreleased.values():
            if own.body.receipt is not None:
                own.body.receipt.reach("confirmed")

    # Lending messages of a departed member. The numbers of a link mean nothing to other members, so here messages are known
    # by `seq`, and lent with their full stamps. If messages are delivered on arrival (level `received`), some members may
    # have one whose full stamp nobody can compute, since the message before it on the link is missing. It is lent
    # without a stamp, and delivered: then all destinations have it, or none.

    def count(self) -> int:
        return 0

    def come(self, counts: list[int]) -> bool:
        return True  # `has` knows whether messages are missing

    def holdings(self, member: int) -> Holdings:
        """Rows with the destinations of each message that we have, and the number below which we have all messages to us."""
        early, kept = self._early.get(member, {}), self.machine.kept(member)
        return [
            *rows_of(kept.values(), WHOLE, SHARE, len(self.stack.view)),
            *rows_of(early.values(), EARLY, EARLY_SHARE, len(self.stack.view)),
            [self.machine.covered[member], self.me, COVERED],
        ]

    def deal(self, held: Mapping[int, Holdings]) -> dict[int, Holdings]:
        lenders: dict[int, dict[int, list[int]]] = {
            member: {} for member in held
        }  # by the member that lacks the message, then by number
        covered = dict.fromkeys(held, 1)
        told = [(member, *row) for member, rows in sorted(held.items()) for row in rows]
        is_whole = {seq for _, seq, _, kind in told if kind == WHOLE}
        has = {(seq, member) for member, seq, _, kind in told if kind in (EARLY, EARLY_SHARE)}
        for member, seq, target, kind in told:
            if kind == COVERED:
                covered[member] = seq
                continue
            is_early = kind in (EARLY, EARLY_SHARE)
            if target not in lenders or (is_early and (seq in is_whole or (seq, target) in has)):
                continue
            some = lenders[target].setdefault(seq, [])
            if not some or kind in (SHARE, EARLY_SHARE):
                some.append(member)
        return {
            member: [
                [lender, seq, seq + 1]
                for seq, some in sorted(numbers.items())
                if seq >= covered[member]
                for lender in some
            ]
            for member, numbers in lenders.items()
        }

    def lacking(self, member: int, dealt: Holdings) -> dict[int, Runs]:
        """By lender, the messages that are to be lent to us and have not arrived. Once all have arrived, accept them in
        their sender's order."""
        covered, lent = self.machine.covered[member], self._lent.get(member, {})
        has_taken = self._borrowed.setdefault(member, set())
        due = sorted(
            [row for row in dealt if row[1] >= covered and row[1] not in has_taken], key=itemgetter(1)
        )
        missing: dict[int, Runs] = {}
        for lender in {row[0] for row in due}:
            has = {seq for seq, lenders in lent.items() if lender in lenders}
            missing |= lacking([row for row in due if row[0] == lender], has.__contains__)
        if due and not missing:
            for seq, rows in groupby(due, itemgetter(1)):
                of_all = [lent[seq][lender] for lender, _, _ in rows]
                self._take_lent(joined(of_all, self.me, len(self.stack.view)))
                del lent[seq]
            self._run()
        return missing

    def _keep_lent(self, packet: Packet) -> None:
        lent = self._lent.setdefault(packet.src, {})
        is_known = packet.stamp is not None or self.deliver == "received"
        try:
            said = unpack(packet.ext or b"", len(self.stack.view))
            if said.places and len(placed(packet, len(self.stack.view))) != len(bundle.split(packet.body)):
                is_known = False
        except WireError:
            is_known = False
        if not is_known or packet.dst is None or not packet.seq or len(lent) >= LSN_WINDOW:
            self.stack.reject("malformed", packet)
        elif said.free in self.stack.peers:
            packet.keep()
            lent.setdefault(packet.seq, {})[said.free] = packet

    def _take_lent(self, packet: Packet) -> None:
        assert packet.dst is not None
        delta = () if packet.stamp is None else tuple(packet.stamp.delta)
        noted = unpack(packet.ext or b"", len(self.stack.view)).noted
        message = ScoMessage(
            packet.src, packet.dst, packet.seq, 0, delta, body=packet, whole=True, noted=noted
        )
        if packet.stamp is None:
            self._borrowed[packet.src].add(packet.seq)
            self.machine.events.append(Happened("received", message))
        else:
            self.machine.now = self.stack.now
            self.machine.take_lent(message)

    def lend(self, member: int, runs: Runs, to: int) -> list[Packet]:
        kept = self._early.get(member, {}) | self.machine.kept(member)
        return [
            self._whole(message, to)
            for seq, message in kept.items()
            if any(low <= seq < high for low, high in runs)
        ]

    def _whole(self, message: ScoMessage, to: int) -> Packet:
        """A packet with the part of a message that is for the member `to`, its full stamp, if that is known, and us as the lender."""
        packet: Packet = message.body.copy_to(self.me)
        places = placed(packet, len(self.stack.view))
        packet.dst, packet.lsn, packet.stamp = message.dst, 0, None
        packet.ext = pack(self.me, 1, (), (), message.noted)
        if places:
            payloads = packet.payloads or bundle.split(packet.body)
            some = zip(places, payloads, strict=False)
            mine = [(place, dst, each) for (place, dst), each in some if dst >> to & 1]
            fill(packet, mine, message.noted, self.me, len(self.stack.view))
        if not message.deps:
            return packet
        delta = [(k, seq) for k, seq in enumerate(message.deps) if seq and k != message.src]
        packet.stamp = Stamp(tuple(delta), 0)
        return packet

    @property
    def settled(self) -> bool:
        """Whether all members that were met have accepted all our messages, and we owe no present member a confirmation."""
        machine = self.machine
        peers = self.stack.peers
        met = [m for m in peers if m in self.stack.met]
        if machine.waiting:
            return not peers
        if peers and not met:
            return not machine.unreleased
        owed = machine.owed_since.keys() - self.stack.left
        return not owed and all(machine.has_all(m) for m in met)

    # From packets to the machine

    def _message(self, packet: Packet) -> ScoMessage | None:
        """The message in a data packet; None if it is not for us or invalid."""
        me = self.me
        stamp, lsn, dst = packet.stamp, packet.lsn, packet.dst
        try:
            free, have, acks, lsns, noted, _ = unpack(packet.ext or b"", len(self.stack.view))
        except WireError as error:
            self.stack.reject(error.reason, packet)
            return None
        whole = dst is None
        if lsns:
            lsn = dict(lsns).get(me, 0)
            if whole:
                dst = packet.dst = mask(member for member, _ in lsns)
        if packet.is_for_others(me) or (lsns and not lsn):
            return None
        if stamp is None or not packet.seq or not lsn or dst is None:
            self.stack.reject("malformed", packet)
            return None
        return ScoMessage(
            packet.src,
            dst,
            packet.seq,
            lsn,
            tuple(stamp.delta),
            ack=acks,
            buf=free,
            have=have,
            body=packet,
            whole=whole,
            noted=noted,
        )

    def _heed(self, packet: Packet) -> str | None:
        """Process a control message or a request. Returns the reason to reject it, if there is one."""
        free, have, acks, *more = unpack(packet.ext or b"", len(self.stack.view))
        if more != NO_MORE:
            return "malformed"
        if packet.runs is None:
            return self.machine.control(
                Control(packet.src, packet.seq, packet.lsn, acks, free, packet.asks, have, packet.denies)
            )
        return self.machine.asked(ScoNack(packet.src, packet.runs, acks, free, have))

    def _is_first(self, message: ScoMessage) -> bool:
        """Whether we are the destination that confirms at once: the next one in line after the sender."""
        n = len(self.stack.view)
        distances = [(m - message.src - 1) % n for m in range(n) if message.dst >> m & 1 and m != message.src]
        return (self.me - message.src - 1) % n == min(distances, default=-1)

    # From the machine to packets and rows

    def _act(self) -> None:
        """Carry out the machine's events in their order. Released packets are passed up in one batch.

        An event that a message was accepted may let a bundle leave, which is sent after all earlier events.
        """
        machine = self.machine
        released: list[Packet] = []
        self._acting = True
        while machine.events:
            events, machine.events = machine.events, []
            for event in events:
                self._do(event, released)
            if machine.waiting:
                machine.stages()
        self._acting = False
        self._acted(released)

    def _do(self, event: Any, released: list[Packet]) -> None:
        match event:
            case Happened(level, message):
                self._reached(level, message, released)
            case Copies(copies, to, together, again):
                self._transmit(copies, to, together, again)
            case ScoControlSent(to, Control() as control):
                self._tell(to, control)
            case ScoControlSent(to, ScoNack() as request):
                self._ask(to, request)
            case ScoSent(own):
                self._note_send(own)
            case Released(own):
                if not own.dst >> self.me & 1 and own.body.receipt is not None:
                    own.body.receipt.reach("confirmed")
            case Heard(seq):
                if seq > self._heard:  # members confirm at different speeds
                    self._heard = seq
                    self.stack.chain.acknowledged(seq)
            case Discarded(reason, message):
                self._discard(reason, message)
            case GaveUp(src):
                self._give_up(src)

    def _note_send(self, own: Own) -> None:
        packet: Packet = own.body
        packet.seq = packet.lsn = own.seq
        if self.stack.trace is not None:
            deps = [number - 1 for number in self.machine.clock]
            deps[self.me] = own.seq - 1
            packet.deps = tuple(deps)
            dst = own.dst & ~(1 << self.me)
            self._row("send", packet, packet.count, dst=own.dst if packet.dst is not None else dst)

    def _reached(self, level: str, message: ScoMessage, released: list[Packet]) -> None:
        packet: Packet = message.body
        is_own = message.src == self.me
        if level == "received":
            self.stack.meet(packet, fresh=True)
            self._received(packet, "receive")
            message.size = len(packet.body) + 1
            self.held += message.size
        elif level == "accepted" and not is_own:
            packet.deps = message.deps
        if self.stack.trace is not None and level in STEPS and not is_own:
            self._level_row(STEPS[level], message)
        if level == "confirmed" and is_own and message.own is not None:
            receipt = message.own.body.receipt
            if receipt is not None:
                receipt.reach("confirmed")
        if level == self.deliver or (is_own and level == "accepted" and self.deliver == "received"):
            self._hand_over(message, released)

    def _hand_over(self, message: ScoMessage, released: list[Packet]) -> None:
        packet: Packet = message.body
        if message.src == self.me:
            packet = packet.copy_to(self.me)
            if packet.shares is not None and not self.echo:
                packet.body, packet.count, _ = packet.shares[self.me]
            packet.encoded = packet.shares = None
            packet.seq, packet.deps = message.seq, message.deps
        else:
            self.held -= message.size
        message.given = True
        if self.stack.trace is not None:
            self._row("deliver", packet, packet.count)
        released.append(packet)

    def _level_row(self, step: str, message: ScoMessage) -> None:
        stack = self.stack
        assert stack.trace is not None
        if step == "accept" or stack.trace.full:
            where = (step, stack.now, stack.view.number, message.src, message.seq)
            stack.trace.row(*where, deps=message.deps)

    def _discard(self, reason: str, message: ScoMessage) -> None:
        if not message.given:  # otherwise it was delivered on arrival, at the level `received`
            self.held -= message.size
        elif reason == "left":
            self._early.setdefault(message.src, {})[message.seq] = message
        if reason == "duplicate":
            self._received(message.body, "duplicate")
        elif reason not in ("left", "orphan"):
            self.stack.reject(reason, message.body)

    def _transmit(self, copies: list[ScoMessage], to: list[int], together: bool, again: bool) -> None:
        if together:
            self.below([self._packet(copies[0], to[0])])
            return
        batch = []
        for member, copy in zip(to, copies, strict=True):
            if again:
                self.sends_again(member, copy.lsn)
            packet = self._packet(copy, member)
            packet.to = member
            batch.append(packet)
        self.below(batch)

    def _packet(self, copy: ScoMessage, to: int) -> Packet:
        assert copy.own is not None
        original: Packet = copy.own.body
        lsns, dst = copy.own.lsns, None
        if not lsns:
            dst = copy.dst
            if dst & ~(1 << copy.src | 1 << to):
                lsns = ((to, copy.lsn),)
        body, count, places = original.body, original.count, b""
        if original.shares is not None:
            body, count, places = original.shares[to]
        packet = Packet(copy.src, original.view, body, dst)
        packet.seq = copy.seq
        packet.stamp = Stamp(copy.delta, 0)
        packet.lsn = 0 if lsns else copy.lsn
        packet.ext = pack(copy.buf, copy.have, copy.ack, lsns, copy.noted, places)
        packet.frag = original.frag
        packet.partial, packet.count = original.partial, count
        return packet

    def _tell(self, to: int, control: Control) -> None:
        packet = self._word(to, pack(control.buf, control.have, control.ack))
        packet.seq, packet.lsn = control.seq, control.lsn
        packet.asks, packet.denies = control.poll, control.denies
        self.stack.row("poll" if control.poll else "control", to)
        self.stack.emit([packet])

    def _ask(self, to: int, request: ScoNack) -> None:
        packet = self._word(to, pack(request.buf, request.have, request.ack))
        packet.runs = request.runs
        self.stack.counts["nack"] += 1
        self.stack.row("nack", to, n=sum(high - low for low, high in request.runs))
        self.stack.emit([packet])
