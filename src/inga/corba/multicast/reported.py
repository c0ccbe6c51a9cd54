"""The common part of strategies whose members report how far they have each sender's packets.

As a sender: packets wait until they may leave, are kept for repair, and are confirmed when all members have
reported them. As a receiver: there is a stream per sender, which knows the numbers that are missing.

A report is a STATE: one entry per sender, with the number up to which nothing of it is missing. A sender
reports itself, too: the number up to which it has sent.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from inga.causality.arrivals import Arrivals
from inga.corba.multicast.fragments import (
    MiopFragments,
    MiopPackets,
    Piece,
    Strategy,
    control_packet,
    first_number,
    peer_of,
    the,
)
from inga.corba.wire.miop import ENTRIES_MAX, NACK, STATE, ControlPacket
from inga.layers.flow import charged
from inga.layers.numbers import check_number, check_switch
from inga.model.compiled import mypyc_attr
from inga.model.packet import DATA, Packet
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.session.pressure import Unread, unread_in
from inga.stack.budget import Supply
from inga.stack.figures import Figures

SIZE = 512
"""Packets kept of each sender."""

SENDERS_MAX = 1024
"""Senders tracked at a time in an open group; packets of others are passed on without repair."""

SILENT = 60.0
"""Seconds of silence after which a sender may be dropped to track another one, if `SENDERS_MAX` are tracked."""

FORMER_MAX = 4096
"""Dropped senders whose highest number is remembered, so that none of their packets is taken twice."""

HEARD = 5.0
"""Seconds for which reports go on after the last packet; in an open group also those for which a report counts."""

NEW_LIFE = 1 << 16
"""A sender whose numbers jump by more than this was restarted: they begin at the second of its start, times this."""

REQUESTS = 500.0
"""Requests for repair that are heeded of each sender, in a second and at once. Few are needed: members wait for those of others first."""

WINDOW_MIN = 16
"""Packets in flight that any receiver has room for."""


def start_of(number: int) -> int:
    """The first number of a sender that is at `number` now: a multiple of NEW_LIFE, unless it has sent more packets than that since."""
    return max(1, number & -NEW_LIFE)


@mypyc_attr(allow_interpreted_subclasses=True)
class Stream:
    """The packets received of one sender, by number."""

    __slots__ = (
        "arrived",
        "baseline",
        "buffer",
        "droppable",
        "dropped",
        "everywhere",
        "has_of_it",
        "heard_at",
        "known",
        "member",
        "missing",
        "past",
        "requests",
        "sender",
        "told",
    )

    def __init__(self, sender: int, member: int, baseline: int, size: int) -> None:
        self.sender = sender
        self.member = member  # its index, or STRANGER
        self.baseline = baseline  # packets before this number are not requested
        self.known = baseline - 1  # highest number it is known to have used
        self.heard_at = 0.0  # when a packet or a report of it last arrived; of use in open groups
        self.past = 0  # of a sender that was dropped before: packets up to here are not taken again
        self.arrived = Arrivals()
        self.arrived.expected = baseline
        self.buffer: dict[int, Packet] = {}  # for repairs: the newest `size` numbers, and packets to lend
        self.dropped = self.known - size  # up to here nothing is kept
        self.droppable: int | None = None  # if set: packets beyond it are kept, to be lent
        self.has_of_it: dict[int, int] = {}  # as other members reported, by their sender number
        self.everywhere = baseline - 1  # the number up to which all of them had it when last computed
        self.missing: dict[int, int] = {}  # missing numbers: how often each was requested again
        self.told = baseline - 1  # what we last reported
        self.requests = Supply(REQUESTS, REQUESTS)  # budget for its requests

    def drop(self, limit: int, size: int) -> None:
        """Drop packets up to `limit`, which are older than the newest `size`, except those that may have to be lent."""
        if self.droppable is not None:
            limit = min(limit, self.droppable)
        if limit - self.dropped > size:
            self.buffer = {n: packet for n, packet in self.buffer.items() if n > limit}
        else:
            for old in range(self.dropped + 1, limit + 1):
                self.buffer.pop(old, None)
        self.dropped = max(self.dropped, limit)

    @property
    def stable(self) -> int:
        """The number up to which nothing is missing."""
        return self.arrived.expected - 1

    def has(self, number: int) -> bool:
        if number < self.baseline:
            return number <= self.past or number in self.buffer
        return number < self.arrived.expected or number in self.arrived.early


@mypyc_attr(allow_interpreted_subclasses=True)
class Crowd:
    """Bounds the senders that are tracked in an open group, where there may be any number of them."""

    def __init__(self, streams: dict[int, Stream], forget: Callable[[Stream], None]) -> None:
        self._streams = streams
        self._forget = forget
        self._former: dict[int, int] = {}  # dropped senders, and the highest number known of each
        self._full_until = 0.0  # before this time no sender can be dropped

    def has_place(self, now: float) -> bool:
        """Whether one more sender can be tracked; if there are too many, the one silent for longest may be dropped for it."""
        if len(self._streams) < SENDERS_MAX:
            return True
        if now < self._full_until:
            return False
        oldest = min(self._streams.values(), key=lambda stream: stream.heard_at)
        self._full_until = oldest.heard_at + SILENT
        if now < self._full_until:
            return False
        self._forget(oldest)
        del self._streams[oldest.sender]
        self._former[oldest.sender] = oldest.known
        return True

    def known(self, sender: int, number: int) -> int:
        """The number up to which packets of a dropped sender that is at `number` now are not taken again; 0 for a new or restarted one."""
        known = self._former.get(sender, 0)
        return known if number <= known + NEW_LIFE else 0

    def past(self, sender: int, number: int) -> int:
        """The same, for a sender that is tracked from now on."""
        known = self.known(sender, number)
        self._former.pop(sender, None)
        if len(self._former) > FORMER_MAX:
            del self._former[next(iter(self._former))]
        return known


@mypyc_attr(native_class=False)
@dataclass(frozen=True)
class ReportedSettings:
    """The settings that these strategies share."""

    size: int = SIZE  # packets kept of each sender
    # Send nothing that would push a packet which some member still lacks out of the buffer; in an open group,
    # the receivers that report count as members.
    wait: bool = True

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        check_number("size", said.size, 1, 1 << 20)
        check_switch("wait", said.wait)


Said = TypeVar("Said", bound=ReportedSettings)


@mypyc_attr(allow_interpreted_subclasses=True)
class Reported(Strategy[Said]):
    """Sends within a window, keeps sent packets for repair, and learns from reports which members have them."""

    keeps: ClassVar[bool] = True  # whether packets of others are kept, to repair them
    settings: ClassVar[type[ReportedSettings]] = ReportedSettings

    def __init__(self, **told: Any) -> None:
        Strategy.__init__(self, **told)  # compiled, super() takes no **
        self.size = self._settings.size
        self.levels = ("confirmed",) if self.confirms else ()

    def view(self, view: View) -> None:
        stack = self.stack
        self.miop = the(MiopPackets, stack)
        self.is_public = self.miop.is_public
        if view.attempt:  # an agreed view, whose first numbers nobody needs to announce
            self.first, self.announced = first_number(stack.wire.tag), False
        self._datagram = min(the(MiopFragments, stack).datagram, stack.datagram_max)
        # as a sender
        self._last = self.first - 1  # number of our newest packet that has left
        self._last_data = self.first - 1  # the same of data packets, which no member may lack
        self._own: dict[int, Packet] = {}  # the newest `size` packets that have left
        self._waiting: deque[tuple[float, Packet]] = deque()  # and since when
        self._window = self.size
        self._waits = self._settings.wait
        self._has: dict[int, int] = {}  # how far members have ours, as they reported, by their sender number
        self._reported_at: dict[int, float] = {}  # when they did, in an open group
        self._everywhere = self.first - 1
        self._receipts: deque[tuple[int, Receipt]] = deque()
        # as a receiver
        self._streams: dict[int, Stream] = {}
        self._crowd = Crowd(self._streams, self._forget)
        self._unread = Unread(self.queue_max)
        if self.is_public:
            self.levels = ()  # it is unknown who has to receive a packet
            return
        for member in stack.others:
            sender = self.miop.senders[member]
            self._has[sender] = self.first - 1
            if not self.announced:
                self._new_stream(sender, member, self.first)

    # As a sender

    def down(self, batch: list[Packet]) -> None:
        now = self.stack.now
        unnumbered = [packet for packet in batch if not packet.lsn]
        if unnumbered:
            self.below(unnumbered)
        if len(unnumbered) < len(batch):
            self._waiting.extend([(now, packet) for packet in batch if packet.lsn])
            self._pump()

    def _pump(self) -> None:
        """Pass down the packets that may leave. If there is no receiver to wait for, that makes room for more."""
        while self._waiting and (out := self._leaving()):
            self.below(out)
            if self.is_public or self.stack.alone:  # else the receivers that count are the same as before
                self._settle()
        self.stack.review()

    def _leaving(self) -> list[Packet]:
        now, waiting = self.stack.now, self._waiting
        out: list[Packet] = []
        while waiting and self._has_room() and self._due(waiting[0][0]) <= now:
            since, packet = waiting.popleft()
            self._last = packet.lsn
            if packet.kind == DATA:
                self._last_data = packet.lsn
            self._own[packet.lsn] = packet
            self._own.pop(packet.lsn - self.size, None)
            if packet.receipt is not None and self.levels:
                self._receipts.append((packet.lsn, packet.receipt))
                packet.receipt = None
            self._left(since, packet)
            out.append(packet)
        return out

    def _has_room(self) -> bool:
        return not self._waits or self._last - self._everywhere < self._window

    def _due(self, since: float) -> float:
        """When a packet that has been ready since then may leave."""
        return since

    def _left(self, since: float, packet: Packet) -> None:
        """A packet of ours leaves for the first time."""

    @property
    def is_open(self) -> bool:
        return not self._waiting

    @property
    def is_passable(self) -> bool:
        return not self._waiting and self._has_room()

    @property
    def outstanding(self) -> int:
        return self._last - self._everywhere

    def blockers(self) -> list[int]:
        """The members that have the fewest of our packets, if these keep the window closed."""
        if self.is_public or self._has_room():
            return []
        return [m for s, m in self.miop.members.items() if self._has.get(s) == self._everywhere]

    def account(self, figures: Figures) -> None:
        figures.limits[self.name] = self._window
        for sender, member in () if self.is_public else self.miop.members.items():
            has = self._has.get(sender)
            if has is not None and has < self._last_data and member in self.stack.peers:
                oldest = self._own.get(has + 1)
                figures.lacks(member, self._last_data - has, 0.0 if oldest is None else oldest.at)

    def _told_of_us(self, sender: int, number: int) -> None:
        """A receiver has reported all our packets up to `number`."""
        if self.is_public:
            if len(self._reported_at) >= SENDERS_MAX and sender not in self._reported_at:
                return
            self._reported_at[sender] = self.stack.now
            self._has.setdefault(sender, self.first - 1)
        number = min(number, self._last)
        if number > self._has.get(sender, number):
            self._has[sender] = number
            self._settle()

    def _listeners(self) -> list[int]:
        """The sender numbers of the members, or in an open group of the receivers that reported recently."""
        if not self.is_public:
            return [self.miop.senders[member] for member in self.stack.peers]
        now, reported_at = self.stack.now, self._reported_at
        for sender in [sender for sender, at in reported_at.items() if now - at > HEARD]:
            del reported_at[sender], self._has[sender]
        return list(reported_at)

    def _settle(self) -> None:
        """Confirm the packets that all receivers have reported."""
        self._everywhere = min([self._has[sender] for sender in self._listeners()], default=self._last)
        while self._receipts and self._receipts[0][0] <= self._everywhere:
            self._receipts.popleft()[1].reach("confirmed")

    def gone(self, member: int) -> None:
        """Stop waiting for a departed member and requesting its packets: it left when all members had them, or it failed."""
        stream = self._streams.get(self.miop.senders[member])
        if stream is not None:
            self._forget(stream)
        self._settle()
        self._pump()

    def goodbye(self) -> None:
        """We leave: packets that wait are not sent any more."""
        self._waiting.clear()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def settled(self) -> bool:
        """Whether all members that were ever heard have all our data packets. Packets by which the layers above talk to each
        other do not count: they may never end."""
        if any(packet.kind == DATA for _, packet in self._waiting):
            return False
        senders = self._listeners()
        if not self.is_public:
            members, met = self.miop.members, self.stack.met
            heard = [sender for sender in senders if members[sender] in met]
            if senders and not heard:
                return self._last_data < self.first
            senders = heard
        return all(self._has[sender] >= self._last_data for sender in senders)

    def fit(self, granted: int) -> None:
        """Limit the window, so that the packets in flight of all senders together fit a receiver's socket buffer."""
        others = max(1, len(self.stack.view) - 1)
        self._window = min(self.size, max(WINDOW_MIN, granted // (others * charged(self._datagram))))

    # For experiments

    @property
    def sent(self) -> int:
        """Packets of ours that have left."""
        return self._last - self.first + 1

    def has_of(self, member: int) -> int:
        """How many packets of a member have arrived, up to the first gap."""
        stream = self._streams.get(self.miop.senders[member])
        return 0 if stream is None else stream.stable - stream.baseline + 1

    # As a receiver

    def up(self, batch: list[Packet]) -> None:
        if self.stack.leaving:  # only packets without a number still concern us
            out = [packet for packet in batch if type(packet.piece) is Piece and not packet.piece.sender]
        else:
            out = []
            for packet in batch:
                what = packet.piece
                if packet.src >= 0 and not self.announced:
                    self.stack.meet(packet)
                if type(what) is ControlPacket:
                    if packet.src >= 0 and not self.is_public:
                        self.stack.heard[packet.src] = self.stack.now  # nobody sends it for another member
                    self._hear(what)
                elif self._receive(packet, what):
                    out.append(packet)
            self._heard()
            self._pump()
        if out:
            self.above(out)

    def _hear(self, control: ControlPacket) -> None:
        """Handle a control packet."""
        raise NotImplementedError

    def _receive(self, packet: Packet, piece: Piece) -> bool:
        """Handle a data packet; return whether to pass it on."""
        raise NotImplementedError

    def _heard(self) -> None:
        """Called when a batch of packets has been handled."""

    def introduced(self, member: int, what: dict[str, int]) -> None:
        first = what.get("first", 0)
        if self.is_public or member not in self.stack.peers or first < 1:
            return
        if (sender := self.miop.senders[member]) not in self._streams:
            self._new_stream(sender, member, first)

    def _new_stream(self, sender: int, member: int, baseline: int) -> Stream:
        stream = self._streams[sender] = Stream(sender, member, baseline, self.size)
        return stream

    def _stream_of(self, packet: Packet, piece: Piece) -> Stream | None:
        """The stream of a packet's sender, if we track that sender or can do so from now on."""
        stream = self._streams.get(piece.sender)
        if stream is None:
            if piece.sender in (0, self.miop.sender) or not self.is_public:
                return (
                    None  # no stream: not a member, or one that has not announced yet where its numbers begin
                )
            if not self._crowd.has_place(self.stack.now):
                self.stack.counts["senders"] += 1
                return None
            past = self._crowd.past(piece.sender, piece.base)
            stream = self._new_stream(piece.sender, packet.src, past + 1 if past else self._baseline(piece))
            stream.past = past
        elif self.is_public and piece.base > stream.known + NEW_LIFE:
            self.stack.counts["new_life"] += 1
            self._forget(stream)
            stream = self._new_stream(piece.sender, packet.src, self._baseline(piece))
        stream.heard_at = self.stack.now
        return stream

    def _is_credible(self, stream: Stream, number: int) -> bool:
        """Whether a sender may have used that number. One that waits for reports is at most `size` packets ahead of what
        we have, and no member uses a number below its first: other numbers are forged."""
        if self.is_public:
            return number <= stream.known + NEW_LIFE
        most = stream.stable + self.size if self._settings.wait else stream.known + NEW_LIFE
        return stream.baseline <= number <= most

    def _forget(self, stream: Stream) -> None:
        """Give up the missing packets of a sender that departed or was restarted, and drop those kept for repair."""
        stream.missing.clear()
        stream.arrived.give_up()
        stream.buffer.clear()

    def _baseline(self, piece: Piece) -> int:
        """The first number to request of a sender of which this packet is the first to arrive."""
        return piece.base

    def _take_in(self, stream: Stream, packet: Packet) -> bool:
        """Put a packet of another sender into its stream; return whether it is new. Packets of a departed member are refused if no
        view follows: nobody would request the packets missing before them, so that their numbers would be kept for ever."""
        number = packet.lsn
        if stream.member in self.stack.left and not self.stack.views.follow:
            self.stack.counts["late"] += 1
            return False
        if not self._is_credible(stream, number):
            self.stack.reject("lsn", packet)
            return False
        if stream.has(number):
            self.stack.row("duplicate", peer_of(stream.member), n=number)
            return False
        packet.keep()
        if self.keeps and number > stream.known - self.size:
            stream.buffer[number] = packet
        if number >= stream.baseline:
            stream.arrived.add(number)
            stream.missing.pop(number, None)
            self._learn(stream, number)
        return True

    def _learn(self, stream: Stream, number: int, came: int = 1) -> None:
        """The sender has used this number: numbers since the last known one are missing, and this one, too, unless it has arrived (`came`)."""
        known = stream.known
        if number <= known:
            return
        stream.known = number
        limit = number - self.size
        stream.drop(limit, self.size)
        self._found(stream, range(max(known + 1, limit + 1), number + 1 - came))
        while stream.arrived.expected <= limit:  # too old for any member to repair
            self._lose(stream, stream.arrived.expected)

    def _found(self, stream: Stream, holes: "range | list[int]") -> None:
        """These numbers are missing."""

    def _lose(self, stream: Stream, number: int) -> None:
        """Give up a packet: it counts as received, since it would otherwise hold up its sender for ever."""
        stream.missing.pop(number, None)
        stream.arrived.add(number)
        self.stack.counts["unrecoverable"] += 1
        self.stack.row("gave_up", peer_of(stream.member), n=number)

    # Control packets

    def _report(self) -> list[tuple[int, int]]:
        """The entries of a report: how far we have sent, and how far we have each sender's packets."""
        is_behind = self._unread.is_behind(unread_in(self.stack))
        entries = self._ourselves()
        for stream in self._streams.values():
            if not is_behind:
                stream.told = stream.stable
            if stream.known >= stream.baseline and stream.member not in self.stack.left:
                entries.append((stream.sender, max(0, stream.told)))
        return entries

    def _ourselves(self) -> list[tuple[int, int]]:
        return [(self.miop.sender, self._last)] if self._last >= self.first else []

    def _say(self, kind: int, entries: list[tuple[int, int]]) -> None:
        """Send entries, in as many control packets as they need."""
        stack = self.stack
        packets = []
        for start in range(0, len(entries), ENTRIES_MAX):
            control = ControlPacket(kind, self.miop.sender, tuple(entries[start : start + ENTRIES_MAX]))
            packets.append(control_packet(stack.me, stack.view.number, control))
        if kind == STATE:
            stack.row("control", n=len(entries), note="state")
            stack.counts["state"] += len(packets)
        elif kind == NACK:
            stack.counts["nack"] += len(packets)
        if packets:
            self.below(packets)
