"""The order of the SCO protocol: acceptance, causal order and levels, without sending anything.

    early      an earlier message on its link is missing                 R2
    accepted   nothing before it on its link is missing                  A2
    log        nothing that precedes it and is for us is missing either  C2, C3
    (gone)     every destination is known to have accepted it            F1, F2

The *top* of a source is its oldest message that is accepted and not ordered. The work for a message is proportional to its stamp: a
top that waits for a member is examined again only when more of that member's messages are ordered or known, and only those entries
of a stamp count that changed since the sender's previous message to us, since that message was ordered first, with its causes. The
rules are those of docs/protocols/sco.md.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from math import inf

from inga.causality.arrivals import missing_runs
from inga.layers.machine import Discarded, Machine
from inga.layers.sco.parts import Happened, NumberPairs, ScoMessage, ScoSettings
from inga.layers.sco.underway import Underway
from inga.model.compiled import mypyc_attr
from inga.model.packet import Runs

LSN_WINDOW = 8192
"""How far beyond the expected number of a link a number may be: no member that keeps to its window gets further."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ScoOrdering(Machine):
    """The order at one member: which messages have reached which level."""

    def __init__(self, me: int, members: int, settings: ScoSettings) -> None:
        super().__init__(me, members, settings.quota * members, 0.0)
        self.members = members
        self.settings = settings
        self.gone: set[int] = set()
        # Departed members of which no message can arrive any more, not even a lent one.
        self.bereft: set[int] = set()
        # By departed member, the number up to which its messages are ordered even if messages that precede them are lost.
        self._freed: dict[int, int] = {}
        self.ordered = [0] * members  # by member, the highest number of its messages that were ever ordered
        # numbers
        self.seq = 1  # SQN: of our next message
        self.expected_lsn = [1] * members  # LRN
        self.covered = [1] * members  # COV
        self.clock = [1] * members  # CSN
        self.known_accepted: dict[int, dict[int, int]] = {}  # AL, by reporter, then source; 1 if missing
        self.known_sent: dict[int, int] = {}  # GAP; 1 if missing
        self._version = 0  # counts the changes of our clock, which travels as differences
        self._changed: dict[int, int] = {}  # member -> version of its last change, newest last
        self._past: dict[int, list[int]] = {}  # the last stamp on each link, in full
        self._underway = Underway(me, settings.noted_max)
        self._heard_of: set[int] = set()  # sources of which messages may be missing
        # where messages wait
        self.early: dict[int, dict[int, ScoMessage]] = {}  # STASH, by lsn
        self.accepted: dict[int, deque[ScoMessage]] = {}  # RRQ by source; no empty queues
        self.log: dict[int, deque[ScoMessage]] = {}  # CRQ by source; no empty queues
        # buffers
        self.free_buffers: dict[int, int] = {}  # BUF; the capacity if missing
        # By source: the seq, by lsn, of messages that reached the level `received` and were dropped before acceptance.
        self._given_back: dict[int, dict[int, int]] = {}
        # By destination, the lsn below which all our copies are known to have arrived.
        self._arrived: dict[int, int] = {}
        # which messages wait for which member
        self._work: deque[int] = deque()  # sources whose tops have to be examined again
        self._waits: dict[int, list[tuple[int, int]]] = {}  # member -> heap of (clock needed, source)
        self._full: deque[int] = deque()  # sources whose oldest message in the log may be confirmed by now
        self._behind: dict[int, list[tuple[int, int]]] = {}  # member -> heap of (clock needed, source)

    # What can be asked

    def accepted_by(self, reporter: int, source: int) -> int:
        """AL[reporter][source]."""
        row = self.known_accepted.get(reporter)
        return 1 if row is None else row.get(source, 1)

    def missing(self, src: int) -> Runs:
        """L1: the runs of numbers on the link from `src` that are known to have been used and have not arrived."""
        return missing_runs(self.expected_lsn[src], self.early.get(src, ()), self.known_sent.get(src, 1))

    def kept(self, src: int) -> dict[int, ScoMessage]:
        """By number, the accepted messages of a member that not all their destinations are known to have accepted."""
        return {m.seq: m for queue in (self.log.get(src, ()), self.accepted.get(src, ())) for m in queue}

    def counted(self, src: int) -> int:
        """The number of the newest message of a member that was accepted."""
        return self.covered[src] - 1

    @property
    def is_settled(self) -> bool:
        """Whether all accepted messages are confirmed."""
        return not self.log and not self.accepted

    @property
    def is_spent(self) -> bool:
        """Whether every message that still waits to be ordered follows messages that no member has: it waits for a departed member,
        or for a message that waits itself."""
        blocked = [self._blocked(queue[0]) for queue in self.accepted.values()]
        return bool(self.bereft) and all(
            each is not None and (each[0] in self.bereft or each[0] in self.accepted) for each in blocked
        )

    def awaited(self, level: str = "confirmed") -> list[int]:
        """The members whose messages or confirmations are missing for messages held here to reach that level."""
        if level == "received":
            return []
        found = {m for m in self.known_sent if self.missing(m)}
        if level != "accepted":
            found.update(*[self._silent_blockers(queue[0]) for queue in self.accepted.values()])
        if level == "confirmed":
            found.update(*[members_of(queue[0].missing) for queue in self.log.values()])
        return sorted(found - self.gone - {self.me})

    def _silent_blockers(self, top: ScoMessage) -> set[int]:
        """Members that block a top although no message of theirs waits here: they have not reported their newest numbers."""
        lacking = [h for h, seq in top.delta[top.seen :] if self._waits_below(top, h, seq)]
        return {member for member in lacking if member not in self.accepted}

    def _remote(self, members: int) -> list[int]:
        """The other members in a bit set that have not left."""
        return [m for m in members_of(members & ~(1 << self.me)) if m not in self.gone]

    # R2, A2, B1, B2: from the network to `accepted`

    def receive(self, message: ScoMessage) -> str | None:
        """R1, R2, A2: process a copy that arrived. Returns the reason to reject it, if there is one."""
        src, lsn = message.src, message.lsn
        expected = self.expected_lsn[src]
        if lsn < expected:
            self.events.append(Discarded("duplicate", message))
            return None
        if lsn >= expected + LSN_WINDOW:
            return "lsn"
        if not lsn or message.seq < self.covered[src] or not message.dst >> self.me & 1:
            return "forged"
        if self._exceeds(message.ack) or any(h == self.me and seq >= self.seq for h, seq in message.delta):
            return "forged"
        if lsn >= self.known_sent.get(src, 1):
            self.known_sent[src] = lsn + 1
        if not self._stash(message):
            self._heard_of.add(src)
            return None
        self._accept_in_sequence(src)
        if self.known_sent[src] > self.expected_lsn[src]:
            self._heard_of.add(src)
        return None

    def take_lent(self, message: ScoMessage) -> None:
        """Accept a lent message of a departed member as the next one on its link, whatever its lsn was."""
        src = message.src
        message.lsn = self.expected_lsn[src]
        self.expected_lsn[src] += 1
        self._hold(src)
        if (
            message.seq not in self._given_back.get(src, {}).values()
        ):  # otherwise it was received before, and dropped
            self.events.append(Happened("received", message))
        self._rebuild(message)
        self._merge_clock(message)
        self._enter(message)

    def _stash(self, message: ScoMessage) -> bool:
        """R2 and B2: keep an early message, if there is room; it may evict a later one of its sender. False if it is
        dropped for want of room."""
        src, lsn = message.src, message.lsn
        early = self.early.get(src)
        if early is not None and lsn in early:
            self.events.append(Discarded("duplicate", message))
            return True
        if self.held[src] >= self.settings.quota:
            latest = max(early) if early else 0
            if latest <= lsn:
                self.events.append(Discarded("overrun", message))
                return False
            assert early is not None
            evicted = early.pop(latest)
            self._given_back.setdefault(src, {})[latest] = evicted.seq
            self._let_go(src)
            self.events.append(Discarded("overrun", evicted))
        if early is None:
            early = self.early[src] = {}
        early[lsn] = message
        self._hold(src)
        again = self._given_back.get(src)
        if again and lsn in again:
            del again[lsn]
        else:
            self.events.append(Happened("received", message))
        return True

    def _accept_in_sequence(self, src: int) -> None:
        """A2: accept messages of a source as long as none before them on the link is missing (continuous acceptance)."""
        early = self.early.get(src)
        while early and (message := early.pop(self.expected_lsn[src], None)) is not None:
            if message.seq < self.covered[src]:  # it contradicts an earlier message of this link: forged
                self._let_go(src)
                self.events.append(Discarded("forged", message))
                continue
            self.expected_lsn[src] += 1
            self._rebuild(message)
            self._merge_clock(message)
            self._merge(src, message.ack, message.buf, message.have)
            self._enter(message)

    def _merge_clock(self, message: ScoMessage) -> None:
        """Merge a message and its stamp into our clock: they precede whatever we send from now on. No stamp names its own sender,
        nor more messages of ours than we have sent: such messages were rejected."""
        src, clock = message.src, self.clock
        self._underway.accepted(message, clock)
        if message.seq >= self.covered[src]:
            self.covered[src] = message.seq + 1
        if message.seq >= clock[src]:
            clock[src] = message.seq + 1
            self._touch(src)
        for member, seq in message.delta:
            if seq >= clock[member]:
                clock[member] = seq + 1
                self._touch(member)

    def _touch(self, member: int) -> None:
        self._version += 1
        self._changed.pop(member, None)
        self._changed[member] = self._version

    def _rebuild(self, message: ScoMessage) -> None:
        """Compute a message's full stamp, and extract its notes of messages that may be in flight to us."""
        src = message.src
        past = self._past.get(src)
        if past is None or message.whole:
            past = self._past[src] = [0] * self.members
        for member, seq in message.delta:
            past[member] = seq
        past[src] = message.seq - 1
        message.deps = tuple(past)
        if message.noted is not None:
            message.needs = dict(dict(message.noted).get(self.me, ()))

    def _enter(self, message: ScoMessage) -> None:
        """Append a message to `accepted`. If it is the top of its source, it will be examined."""
        src = message.src
        queue = self.accepted.get(src)
        if queue is None:
            self.accepted[src] = deque((message,))
            self._work.append(src)
            self._wake(src)
            self._watch_top(message)
        else:
            queue.append(message)
        self.events.append(Happened("accepted", message))
        if self.settings.ack_level == "continuous":
            self._report(message)

    def _merge(self, src: int, ack: NumberPairs, buf: int, have: int) -> None:
        for source, upto in ack:
            self._learn(src, source, upto)
        self.free_buffers[src] = buf
        if have > self._arrived.get(src, 1):
            self._arrived[src] = have

    def _exceeds(self, ack: NumberPairs) -> bool:
        """Whether an entry claims that more messages of ours were accepted than we have sent."""
        return any(source == self.me and upto > self.seq for source, upto in ack)

    def _cover(self, src: int, seq: int) -> None:
        """Note that all messages of `src` to us below `seq` have arrived."""
        if seq > self.covered[src]:
            self.covered[src] = seq
        self._wake(src)

    # C1 to C4: from `accepted` to `log`

    def _cleared(self, member: int) -> float:
        """The number below which all messages of a member to us have been ordered. It never falls."""
        queue = self.accepted.get(member)
        if queue is not None:
            return queue[0].seq
        return inf if member == self.me else self.covered[member]

    def _wake(self, member: int) -> None:
        """Let the tops be examined again that wait for this member, if enough of its messages are ordered or known."""
        heap = self._waits.get(member)
        if heap:
            cleared = self._cleared(member)
            while heap and heap[0][0] <= cleared:
                self._work.append(heappop(heap)[1])

    def _order(self) -> None:
        """C3: move tops to the log that are clear of all other members, as long as there are any."""
        work = self._work
        while work:
            src = work.popleft()
            if src not in self.accepted:  # no message of it waits any more: freed, or dropped
                continue
            top = self.accepted[src][0]
            blocked = self._blocked(top)
            if blocked is not None:
                heappush(self._waits.setdefault(blocked[0], []), (blocked[1], src))
                continue
            self._move(top)
            if src in self.accepted:
                work.append(src)
            self._wake(src)

    def _blocked(self, top: ScoMessage) -> tuple[int, int] | None:
        """C2: the member of the first entry of the stamp that is not clear, and the number below which its messages have to be
        ordered; None if the top is clear. Entries that were found clear stay so."""
        for at in range(top.seen, len(top.delta)):
            member, seq = top.delta[at]
            due = self._waits_below(top, member, seq)
            if due:
                top.seen = at
                return member, due
        top.seen = len(top.delta)
        return None

    def _waits_below(self, top: ScoMessage, member: int, seq: int) -> int:
        """The number below which messages of a member have to be ordered before `top`, whose stamp names the member's message `seq`; 0:
        they are ordered. A member of which no message waits here matters only as far as messages of it are noted as in flight to us."""
        cleared = self._cleared(member)
        if cleared > seq:
            return 0
        queue = self.accepted.get(member)
        if member in self.bereft and not self._is_orphan(top):
            return 0 if queue is None else queue[0].seq + 1
        if top.needs is None:
            return seq + 1
        last = min(top.needs.get(member, 0), seq)
        if queue is not None:
            last = max(last, queue[0].seq)
        return last + 1 if last >= cleared else 0

    def _is_orphan(self, top: ScoMessage) -> bool:
        """Whether a message stays undelivered if a message for us that precedes it is lost: it is of a departed member, and not
        freed. If it came without notes, nobody can know whether such a message was for us, and it is delivered."""
        src = top.src
        return src in self.gone and top.needs is not None and top.seq > self._freed.get(src, 0)

    def free(self, member: int, upto: int) -> None:
        """Let the messages of a departed member be ordered up to that number, although messages before them are lost."""
        if upto > self._freed.get(member, 0):
            self._freed[member] = upto
            self._work.append(member)

    def drop_orphans(self) -> None:
        """Drop messages of departed members that still wait for messages which no member has. All members drop them."""
        for src in sorted(self.bereft & self.accepted.keys()):
            for message in self.accepted.pop(src):
                self._let_go(src)
                self.events.append(Discarded("orphan", message))
            self._wake(src)

    def settle_gone(self) -> None:
        """Confirm the ordered messages of departed members without waiting for reports: all present members have the same ones."""
        for src in sorted(self.bereft & self.log.keys()):
            queue = self.log[src]
            if queue[0].missing:
                self._full.append(src)
            for message in queue:
                message.missing = 0

    def _move(self, top: ScoMessage) -> None:
        """Move a top from its queue to the log."""
        src = top.src
        self.ordered[src] = top.seq
        queue = self.accepted[src]
        queue.popleft()
        if queue:
            self._watch_top(queue[0])
        else:
            del self.accepted[src]
        if self.settings.ack_level == "causal":
            self._report(top)
        self._enter_log(top)
        self.events.append(Happened("causal", top))

    def _watch_top(self, top: ScoMessage) -> None:
        """Note that a message has become the top of its source."""
        top.since = self.now

    def _report(self, message: ScoMessage) -> None:
        """C4: note that we have accepted a message, which has to be reported to its sender and its other destinations."""
        self._learn(self.me, message.src, message.seq + 1)

    # F1, F2: from `log` to the end

    def _enter_log(self, message: ScoMessage) -> None:
        src, seq = message.src, message.seq
        missing = 0
        for member in members_of(message.dst):
            if self.accepted_by(member, src) <= seq and member not in self.gone:
                missing |= 1 << member
        message.missing = missing
        queue = self.log.get(src)
        if queue is None:
            queue = self.log[src] = deque()
            if not missing:
                self._full.append(src)
        queue.append(message)
        message.since = self.now

    def _learn(self, reporter: int, source: int, upto: int) -> None:
        """F1, L4: note that `reporter` has accepted all messages of `source` below `upto` that are for it."""
        row = self.known_accepted.setdefault(reporter, {})
        if upto <= row.get(source, 1):
            return
        row[source] = upto
        if reporter == self.me:
            return  # we have accepted all messages in the log
        self._underway.has_accepted(reporter, source, upto)
        for message in self.log.get(source, ()):
            if message.seq >= upto:
                break
            self._has_accepted(message, reporter)

    def _has_accepted(self, message: ScoMessage, member: int) -> None:
        if message.missing >> member & 1:
            message.missing ^= 1 << member
            if not message.missing and self.log[message.src][0] is message:
                self._full.append(message.src)

    def _confirm(self) -> None:
        """F2: messages that all destinations have accepted leave the log, unless one that precedes them is still in it."""
        full = self._full
        while full:
            src = full.popleft()
            blocked = self._preceded(self.log[src][0])
            if blocked is not None:
                heappush(self._behind.setdefault(blocked[0], []), (blocked[1], src))
            else:
                self._leave_log(src)

    def _preceded(self, message: ScoMessage) -> tuple[int, int] | None:
        """The member of the first entry of the stamp that names a message still in the log, and the number below which that
        member's messages have to leave it; None if there is no such entry."""
        for at in range(message.passed, len(message.delta)):
            member, seq = message.delta[at]
            queue = self.log.get(member)
            if queue is not None and queue[0].seq <= seq:
                message.passed = at
                return member, seq + 1
        message.passed = len(message.delta)
        return None

    def _leave_log(self, src: int) -> None:
        queue = self.log[src]
        message = queue.popleft()
        if not queue:
            del self.log[src]
        elif not queue[0].missing:
            self._full.append(src)
        self._let_go(src)
        self.events.append(Happened("confirmed", message))
        heap = self._behind.get(src)
        low = queue[0].seq if queue else inf
        while heap and heap[0][0] <= low:
            self._full.append(heappop(heap)[1])


def precedes(p: ScoMessage, q: ScoMessage) -> bool:
    """C1: whether p precedes q, from their numbers alone."""
    if p.src == q.src:
        return p.seq < q.seq
    return p.seq <= q.deps[p.src]


def members_of(bits: int) -> Iterator[int]:
    """The members of a bit set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def mask(members: Iterable[int]) -> int:
    """A bit set of members."""
    bits = 0
    for member in members:
        bits |= 1 << member
    return bits
