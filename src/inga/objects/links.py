"""The links between one member and each of the others: numbers, gaps, clocks.

    send         each message to a member takes the next number of that link; a copy is kept until it is acknowledged
    receive      a new message is passed on at once, even out of order; missing numbers are requested by a nack, each
                 at most once in delta
    heartbeat    every delta: our clock, how many messages we have sent to the member, how many of its messages are here
    again        a copy not acknowledged for two delta is sent again. All repetitions to a member back off while
                 nothing new arrives from it
    announce     with a request that has to become clear: the members that do not get it learn that their clocks are
                 wanted
    window       heartbeats also report how many bytes of the receiver's messages wait here: see `window`

A member's clock counts for `frontier` only if none of the messages that it sent us up to then is missing: no new message
can have a key below the frontier. With `reliable` the layers below repair: numbers remain, copies and nacks are left out.
With `quiet` heartbeats go only to members that need them, so that an idle group sends nothing.
"""

from collections import deque
from collections.abc import Callable, Iterable
from math import inf

from inga.model.compiled import mypyc_attr
from inga.model.invocation import Announce, Flush, Heartbeat, Message, Nack, Numbers, OrderKey, Spoken
from inga.objects.options import EngineOptions
from inga.objects.order import Clock
from inga.objects.roster import Roster
from inga.objects.window import weight
from inga.session.alarms import WAIT_MAX
from inga.stack.waits import grown

Numbered = Message | Flush
BELOW_NOTHING: OrderKey = (1 << 63, 0)

NACK_MAX = 256
"""The most numbers in one nack; a longer gap is requested piece by piece, one in each delta."""

REPAIRS_MAX = 64
"""The most copies that are sent again to one member at a time: the oldest, since later messages do not count there without
them. The member requests the rest again."""

AHEAD_MAX = 1 << 16
"""How far beyond the next expected number a message is accepted. Any further one is dropped; it is not acknowledged, so its sender sends it
again. Over a layer that repairs, the message was acknowledged below: all are accepted, and that layer's window is the bound."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Peer:
    """One other member, as seen from here."""

    __slots__ = (
        "acked",
        "again",
        "asked",
        "charges",
        "copies",
        "early",
        "expected",
        "heartbeat",
        "kept",
        "kept_size",
        "kept_sizes",
        "lowest",
        "on_way",
        "owed",
        "settled_shown",
        "shown",
        "sent",
        "there",
        "top",
        "ts",
        "unasked",
        "wait",
        "waits",
        "waits_told",
    )

    def __init__(self, lowest: int, wait: float) -> None:
        self.lowest = lowest  # its smallest place
        self.wait = wait  # from the next repetition to the one after it
        self.again = 0.0  # when the next repetition may be sent
        self.sent = 0  # number of our last message to it
        self.acked = 0  # it has all our messages up to this number
        self.copies: dict[int, tuple[Numbered, float]] = {}  # messages not acknowledged, and when last sent
        self.charges: deque[int] = deque()  # bytes of each message not acknowledged, oldest first
        self.on_way = 0  # their sum
        self.unasked = 0  # bytes sent since we last requested a heartbeat for them
        self.there = 0  # bytes of our messages that wait there, as it last reported
        self.waits = 0  # bytes of its messages that wait here
        self.waits_told = 0  # as we last reported, with the bytes that our application has not read
        self.shown = 0  # the largest of our clocks that we have sent to it
        self.settled_shown = 0  # what `_settled` was in our last heartbeat to it
        self.expected = 1  # number of its next message
        self.early: dict[int, Numbered] = {}  # beyond a gap
        self.ts = 0  # its clock, as far as no message before it is missing
        self.heartbeat: Heartbeat | None = None  # the newest, while something it counts is missing
        self.asked: dict[int, float] = {}  # requested numbers -> when
        # Its messages to several members, until all of them are known to have them.
        self.kept: deque[Message] = deque()
        self.kept_sizes: deque[int] = deque()  # bytes of each
        self.kept_size = 0  # their sum
        self.owed = False  # a message of it has arrived since our last heartbeat
        self.top = 0  # the largest number it is known to have used


@mypyc_attr(allow_interpreted_subclasses=True)
class Links:
    """All links of one member."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        clock: Clock,
        options: EngineOptions,
        send: Callable[[tuple[int, ...], Spoken], None],
        evs: Callable[[], tuple[int, ...]],
    ) -> None:
        self.me = me
        self.roster = roster
        self.clock = clock
        self.options = options
        self.send = send
        self.evs = evs  # how many messages each of our own places has sent
        self.peers = {
            member: Peer(roster.at[member][0], options.delta) for member in roster.members if member != me
        }
        self.received = [0] * len(roster.places)  # by place: all its messages to us up to this `ev` are here
        for place in roster.at.get(me, ()):
            self.received[place] = 1 << 63  # messages to ourselves are never missing
        self.moved = False  # clocks or counts have moved since this was last cleared
        self.stirred = False  # since this was last cleared something came or was sent that needs a tick
        self._frontier: OrderKey | None = None  # None: clocks have moved since it was computed
        self.repaired = self.asked_for = 0
        # Whether `held`, `own` or the bytes of ours at other members may have changed since this was last cleared.
        self.weighed = False
        self.held = 0  # bytes of requests that wait here, from all members
        self.own = 0  # those from ourselves
        self.unread = 0  # bytes that our application has not read, or 0 if it is not behind
        # Stamps and numbers of messages to several members, from the oldest that some may not have.
        self._unsettled: deque[tuple[int, Numbers]] = deque()
        self._settled_ts = 0
        self._quarter = max(1, options.window // 4)

    # Sending

    def number(self, members: Iterable[int]) -> Numbers:
        """Take the next number on the link to each of these members."""
        numbers = []
        for member in members:
            peer = self.peers[member]
            peer.sent += 1
            numbers.append((member, peer.sent))
        return tuple(numbers)

    def transmit(self, now: float, packet: Numbered) -> None:
        """Send a numbered message to all members that it has numbers for."""
        for member, number in packet.sq:
            peer = self.peers[member]
            if packet.ts > peer.shown:
                peer.shown = packet.ts
            if not self.options.reliable:
                peer.copies[number] = (packet, now)
        if len(packet.sq) > 1:
            self._unsettled.append((packet.ts, packet.sq))
        if packet.sq:
            self.stirred = True
            self.send(tuple(member for member, _ in packet.sq), packet)
            self._charge(packet)

    def announce(self, ts: int, members: frozenset[int]) -> None:
        """Tell all other members that these want to see clocks of at least `ts`."""
        outside = tuple(member for member in self.peers if member not in members)
        if outside:
            self.send(outside, Announce(self.me, ts, tuple(sorted(members))))

    def show(self, ts: int, members: Iterable[int]) -> None:
        """Send our clock to those of these members now that have not been sent one of at least `ts`."""
        for member in members:
            peer = self.peers.get(member)
            if peer is not None and peer.shown < ts:
                self.beat(member)

    def beat(self, member: int, wanted: bool = False) -> None:
        """Send a heartbeat; `wanted`: request one in return."""
        peer = self.peers[member]
        peer.shown, peer.owed = self.clock.value, False
        peer.settled_shown, peer.waits_told = self._settled(), peer.waits + self.unread
        counts = (peer.sent, peer.expected - 1, self.evs(), peer.settled_shown)
        self.send((member,), Heartbeat(self.me, self.clock.value, *counts, wanted, peer.waits_told))

    # Receiving

    def take(self, now: float, member: int, packet: Numbered) -> bool:
        """Record a numbered message. Returns whether it is new, and not too far ahead."""
        peer = self.peers[member]
        number = 0
        for to, number_of in packet.sq:
            if to == self.me:
                number = number_of
                break
        peer.owed = self.stirred = True
        if number < peer.expected or number in peer.early:
            return False
        if number >= peer.expected + AHEAD_MAX and not self.options.reliable:
            return False
        self._progress(peer)
        if number == peer.expected:
            self._pass(peer, packet)
        else:
            peer.early[number] = packet
            self._learn(now, member, peer, number - 1)
        if len(packet.sq) > 1 and isinstance(packet, Message):
            size = weight(packet)
            peer.kept.append(packet)
            peer.kept_sizes.append(size)
            peer.kept_size += size
        return True

    def hear(self, now: float, beat: Heartbeat) -> None:
        """Handle a heartbeat."""
        member = beat.member
        peer = self.peers[member]
        if len(beat.evs) != len(self.roster.at[member]) or beat.ack > peer.sent:
            return
        if beat.ack > peer.acked:
            for number in range(peer.acked + 1, beat.ack + 1):
                peer.copies.pop(number, None)
                peer.on_way -= peer.charges.popleft()
            peer.acked, peer.there = beat.ack, beat.waits
            self._progress(peer)
        elif beat.ack == peer.acked and beat.waits < peer.there:
            peer.there = beat.waits  # with nothing new there it can only shrink
            self._progress(peer)
        while peer.kept and peer.kept[0].ts <= beat.settled:
            peer.kept.popleft()
            peer.kept_size -= peer.kept_sizes.popleft()
        newest = peer.heartbeat
        if newest is None or (beat.sent, beat.ts) >= (newest.sent, newest.ts):
            peer.heartbeat = beat
            self._apply_heartbeat(peer)
            self._learn(now, member, peer, beat.sent)
        if beat.wanted:
            self.beat(member)

    def asked(self, now: float, nack: Nack) -> None:
        """Handle a nack: send the messages that a member lacks again."""
        peer = self.peers[nack.member]
        kept = [number for number in nack.numbers if number in peer.copies]
        for number in kept[:REPAIRS_MAX]:
            self._repair(now, nack.member, peer, number)

    @property
    def traffic(self) -> tuple[int, int]:
        """The number of messages sent from here, and of those received."""
        peers = self.peers.values()
        return sum(peer.sent for peer in peers), sum(peer.expected - 1 + len(peer.early) for peer in peers)

    # Bytes that wait: see `window`

    def wait(self, member: int, size: int) -> None:
        """Count so many more bytes of that member's requests as waiting here; fewer, if `size` is negative."""
        self.held += size
        self.weighed = True
        if member == self.me:
            self.own += size
        elif (peer := self.peers.get(member)) is not None:
            peer.waits += size
            if peer.waits_told - peer.waits - self.unread >= self._quarter:
                self.beat(member)

    def read(self, unread: int) -> None:
        """Set how many bytes our application is behind with. If none, tell the members for which that makes a difference."""
        self.unread = unread
        if not unread:
            for member, peer in self.peers.items():
                if peer.waits_told - peer.waits >= self._quarter:
                    self.beat(member)

    @property
    def outstanding(self) -> int:
        """The bytes of ours that wait or are in flight, for the member with most of them, ourselves included."""
        return max(self.own, max((peer.on_way + peer.there for peer in self.peers.values()), default=0))

    @property
    def full(self) -> list[int]:
        """The members for which our window is full."""
        return [
            member for member, peer in self.peers.items() if peer.on_way + peer.there >= self.options.window
        ]

    def _charge(self, packet: Numbered) -> None:
        size = weight(packet)
        self.weighed = True
        for member, _ in packet.sq:
            peer = self.peers[member]
            peer.charges.append(size)
            peer.on_way += size
            peer.unasked += size
            if peer.unasked >= self._quarter:
                peer.unasked = 0
                self.beat(member, wanted=True)

    # Time

    def tick(self, now: float, laggards: Iterable[int]) -> None:
        """Repeat what is due, and send heartbeats. `laggards`: the members for whose clocks or messages we wait here."""
        waited_for = set(laggards)
        for member, peer in self.peers.items():
            is_wanted = not self.options.quiet or self._owes(peer) or member in waited_for
            if is_wanted and now >= peer.again:
                self._repeat(now, member, peer)
            elif not self.options.quiet or self._is_owed(peer):
                self.beat(member)

    def next_tick(self, now: float) -> float:
        """When the next tick is needed, unless something new arrives before."""
        waits = [peer.again for peer in self.peers.values() if peer.again > now]
        return max(now + self.options.delta, min(waits, default=now))

    def _owes(self, peer: Peer) -> bool:
        """Whether we wait for that member: for an acknowledgement, a missing message, room, or the news that all have its
        messages."""
        window = self.options.window
        return (
            peer.sent > peer.acked
            or peer.top >= peer.expected
            or peer.there >= window
            or peer.kept_size >= window
        )

    def _repeat(self, now: float, member: int, peer: Peer) -> None:
        """Repeat nacks, unacknowledged copies and a heartbeat. In a quiet group that requests one in return, since a lost one
        would not be repeated."""
        self._ask(now, member, peer, range(peer.expected, min(peer.top + 1, peer.expected + NACK_MAX)))
        old = [number for number, (_, at) in peer.copies.items() if now - at >= 2 * self.options.delta]
        for number in old[:REPAIRS_MAX]:
            self._repair(now, member, peer, number)
        self.beat(member, wanted=self.options.quiet)
        peer.again = now + peer.wait
        peer.wait = grown(peer.wait, WAIT_MAX * self.options.delta)

    def _progress(self, peer: Peer) -> None:
        """Something new arrived from that member: reset the backoff of repetitions to it."""
        peer.wait, peer.again = self.options.delta, 0.0
        self.stirred = self.weighed = True

    @property
    def is_busy(self) -> bool:
        """Whether a tick has something to do even in a quiet group."""
        return any(peer.owed or self._owes(peer) or self._is_owed(peer) for peer in self.peers.values())

    @property
    def unacknowledged(self) -> int:
        return sum(len(peer.copies) for peer in self.peers.values())

    def laggards(self, key: OrderKey) -> list[int]:
        """The members for whose clocks a request with that key waits."""
        return [member for member, peer in self.peers.items() if (peer.ts + 1, peer.lowest) <= key]

    @property
    def frontier(self) -> OrderKey:
        """No new message with a smaller key can arrive from any member."""
        if self._frontier is None:
            clocks = ((peer.ts + 1, peer.lowest) for peer in self.peers.values())
            self._frontier = min(clocks, default=BELOW_NOTHING)
        return self._frontier

    def frontier_of(self, members: frozenset[int] | None) -> OrderKey:
        """The frontier of these members alone; None: of all."""
        if members is None:
            return self.frontier
        return min(
            ((peer.ts + 1, peer.lowest) for member, peer in self.peers.items() if member in members),
            default=BELOW_NOTHING,
        )

    # Members that are gone

    def remove(self, member: int) -> None:
        """A member is gone: nothing is expected of it or owed to it; its messages that no member has are skipped."""
        del self.peers[member]
        self._settled()  # forgets what only that member lacked; with no other member left, no heartbeat would do so
        self.weighed = True
        for place in self.roster.at[member]:
            self.received[place] = 1 << 63
        self._advance()

    # Steps

    def _is_owed(self, peer: Peer) -> bool:
        """Whether that member has not been told our latest counters."""
        return (
            peer.owed
            or peer.waits + self.unread < peer.waits_told
            or (peer.acked > 0 and self._settled() > peer.settled_shown)
        )

    def _pass(self, peer: Peer, packet: Numbered) -> None:
        """Count the expected packet as received in sequence, and all early ones that have no gap before them then."""
        following: Numbered | None = packet
        while following is not None:
            peer.asked.pop(peer.expected, None)
            peer.expected += 1
            peer.ts = following.ts
            if isinstance(following, Message):
                self.received[following.src] = following.ev
            following = peer.early.pop(peer.expected, None)
        self._apply_heartbeat(peer)
        self._advance()

    def _apply_heartbeat(self, peer: Peer) -> None:
        beat = peer.heartbeat
        if beat is None or peer.expected <= beat.sent:
            return
        peer.heartbeat = None
        if beat.ts > peer.ts:
            peer.ts = beat.ts
            self._progress(peer)
        for place, ev in zip(self.roster.at[beat.member], beat.evs, strict=True):
            if ev > self.received[place]:
                self.received[place] = ev
        self._advance()

    def _advance(self) -> None:
        self.moved, self._frontier = True, None

    def _learn(self, now: float, member: int, peer: Peer, top: int) -> None:
        """A member is known to have used all numbers up to `top`: request missing ones among those that are news."""
        if top > peer.top:
            known, peer.top = max(peer.top + 1, peer.expected), top
            self._ask(now, member, peer, range(known, min(top + 1, known + NACK_MAX)))

    def _ask(self, now: float, member: int, peer: Peer, numbers: Iterable[int]) -> None:
        """Request those of the numbers that are missing, each at most once in delta."""
        if self.options.reliable:
            return
        due = now - self.options.delta
        missing = [n for n in numbers if n not in peer.early and peer.asked.get(n, -inf) <= due]
        if missing:
            peer.asked.update(dict.fromkeys(missing, now))
            self.asked_for += len(missing)
            self.send((member,), Nack(self.me, tuple(missing)))

    def _repair(self, now: float, member: int, peer: Peer, number: int) -> None:
        packet, _ = peer.copies[number]
        peer.copies[number] = (packet, now)
        self.repaired += 1
        self.send((member,), packet)

    def _settled(self) -> int:
        """The stamp up to which all our messages to several members have reached all their destinations."""
        while self._unsettled:
            ts, numbers = self._unsettled[0]
            if any(member in self.peers and self.peers[member].acked < number for member, number in numbers):
                break
            self._settled_ts = ts
            self._unsettled.popleft()
        return self._settled_ts
