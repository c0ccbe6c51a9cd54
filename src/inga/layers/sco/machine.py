"""Causal order for messages that go to some of the group only: the SCO protocol, as a state machine.

Every message names its own destinations and nothing is sent to anybody else. Three numbers do the work:
`seq` counts a sender's messages and names them, `lsn` counts those on one link and reveals loss, the stamp
(`clock` at the send) names the newest message of every member that came before.

    received   it came                                      R2
    accepted   nothing before it on its link is missing     A2
    causal     nothing that precedes it and is for us is    C2, C3
    confirmed  every destination is known to have it        F1, F2

What a stamp cannot tell is whether a message that came before was for us at all. `covered` answers that: a
member that sends us anything also says how far it has counted, and if nothing on its link is missing we have all
that is for us. Where the answer is wanting and nothing moves, it is asked for (Q1).

Every number covers strictly smaller ones and begins at 1. Work per message is that of the stamp: tops that wait
for a member are woken by that member, and of a stamp only what changed since the sender's last message to us has
to be looked at, since that one was ordered first and its causes with it.

From Tachikawa and Takizawa, "Selective causally ordered group communication", sections 3.1 to 3.5; rules and
corrections are those of docs/protocols/sco.md, whose names of rules appear here.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from math import inf
from typing import Any

from inga.causality.arrivals import missing_runs
from inga.layers.sco.parts import (
    Control,
    Copies,
    Discarded,
    Event,
    GaveUp,
    Happened,
    Heard,
    Message,
    Own,
    Pairs,
    Released,
    Request,
    Sent,
    Settings,
    Told,
)
from inga.model.packet import Runs
from inga.session.alarms import Alarms

SMOOTHING = 8
"""Answers over which the time they take is averaged."""

SLOWER_MAX = 4.0
"""Waits are stretched to at most so many times what was set."""

LSN_WINDOW = 8192
"""How far ahead of what we expect a link may be; more is not from a member that keeps its window."""

_CONFIRM, _FOUND, _ASK, _RESEND, _PROBE, _POLL, _FLOW = range(7)
_HANDLERS = "_on_confirm _on_found _on_ask _on_resend _on_probe _on_poll _on_flow".split()


class ScoMachine:
    """The order one member sees. Give it requests, messages and the time; `events` is what that made happen."""

    def __init__(self, me: int, members: int, settings: Settings | None = None) -> None:
        self.me = me
        self.members = members
        self.settings = settings or Settings()
        self.capacity = self.settings.quota * members  # C
        self.window_bytes: float = self.settings.window_bytes or inf
        self.is_behind = False  # our application does not keep up: nobody is told of free buffers
        self.now = 0.0
        self.events: list[Event] = []
        # as a sender
        self.seq = 1  # SQN
        self.lsn = [1] * members  # LSN: of the next message to each
        self.last_to = [0] * members  # number of our newest message to each
        self.waiting: deque[tuple[int, Any, int]] = deque()  # PEND: destinations, body, size
        self.unreleased: dict[int, Own] = {}  # SL
        self._unreleased_in_order: deque[int] = deque()
        self._unreleased_bytes = 0
        self._outstanding: dict[int, deque[Message]] = {}  # per link, copies not known to be accepted
        self._arrived: dict[int, int] = {}  # per link, the lsn below which all are known to have come
        # numbers
        self.expected_lsn = [1] * members  # LRN
        self.covered = [1] * members  # COV
        self.clock = [1] * members  # CSN
        self.known_accepted: dict[int, dict[int, int]] = {}  # AL, by reporter, then source; else 1
        self.known_sent: dict[int, int] = {}  # GAP, else 1
        self.free_buffers: dict[int, int] = {}  # BUF, else the capacity
        self.owed_since: dict[int, float] = {}  # ACC
        # stamps travel as changes: who changed last, newest last, and what each link has seen
        self._version = 0
        self._changed: dict[int, int] = {}  # member -> version of its last change
        self._link_version: dict[int, int] = {}
        self._relevant: dict[int, set[int]] = {}  # per member, sources whose acceptance concerns it
        self._due: dict[int, set[int]] = {}  # those that rose since the last message to it
        self._past: dict[int, list[int]] = {}  # per link, the last stamp in full
        # where messages wait
        self.early: dict[int, dict[int, Message]] = {}  # STASH, by lsn
        self.accepted: dict[int, deque[Message]] = {}  # RRQ; only those that hold something
        self.log: dict[int, deque[Message]] = {}  # CRQ by source; only those that hold something
        self.held = [0] * members
        self.held_in_all = 0
        self._given_back: dict[int, set[int]] = {}  # lsn of what was received and then evicted
        # who waits for whom
        self._work: deque[int] = deque()  # sources whose top is to be looked at
        self._waits: dict[int, list[tuple[int, int]]] = {}  # member -> heap of (clock needed, source)
        self._full: deque[int] = deque()  # sources whose oldest ordered message may be confirmed
        self._behind: dict[int, list[tuple[int, int]]] = {}  # member -> heap of (clock needed, source)
        # timers
        self._alarms = Alarms()
        self._to_ask: set[int] = set()  # sources that may have lost something
        self._accepted_since: dict[int, int] = {}  # per source, messages since we last told it anything
        self._to_confirm: set[int] = set()  # those for whom that is much
        every = self.settings.confirm_every
        self._confirm_every: float = (self.settings.window + 1) // 2 if every is None else every or inf
        self._lacking_since: dict[int, float] = {}  # sources with holes: when the last of one was filled
        self._asked_below: dict[int, int] = {}  # what was asked for before, and only the timer repeats
        self._to_answer: set[int] = set()
        self._polled_at: dict[int, float] = {}  # questions not answered yet
        self._told_behind: set[int] = set()
        self._answer_time = 0.0  # from a sending to the news that it was accepted, smoothed
        self.gone: set[int] = set()

    # What goes in

    def request(self, dst: int, body: Any, size: int = 0) -> None:
        """S1: send to the members of the bit set, as soon as the flow rule allows."""
        assert dst >= 0 and not dst >> self.members, "destinations are members"
        self.waiting.append((dst, body, size))

    def receive(self, message: Message) -> str | None:
        """R1, R2, A2: a copy came. The reason if it cannot be right."""
        src, lsn = message.src, message.lsn
        expected = self.expected_lsn[src]
        if lsn < expected:
            self.events.append(Discarded("duplicate", message))
            self._owe(src)
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
            self._to_ask.add(src)
            return None
        self._accept_in_sequence(src)
        if self.known_sent[src] > self.expected_lsn[src]:
            self._to_ask.add(src)
        return None

    def control(self, control: Control) -> str | None:
        """K2: a confirmation or a question came."""
        src = control.src
        if control.seq < 1 or control.lsn < 1:
            return "forged"
        if control.lsn > self.expected_lsn[src] + LSN_WINDOW:
            return "lsn"
        if self._exceeds(control.ack):
            return "forged"
        self._polled_at.pop(src, None)
        self._merge(src, control.ack, control.buf, control.have)
        if control.lsn <= self.expected_lsn[src]:
            self._cover(src, control.seq)
        elif control.lsn > self.known_sent.get(src, 1):
            self.known_sent[src] = control.lsn
            self._to_ask.add(src)
        if control.poll:
            self._to_answer.add(src)
        return None

    def asked(self, request: Request) -> str | None:
        """L2: a member lacks something of ours."""
        if self._exceeds(request.ack):
            return "forged"
        to = request.src
        self._merge(to, request.ack, request.buf, request.have)
        outstanding = self._outstanding.get(to)
        if not outstanding:
            return None
        first = outstanding[0].lsn
        again: list[Message] = []
        for low, high in request.runs:
            for lsn in range(max(low, first), min(high, self.lsn[to])):
                if len(again) < self.settings.resends_max:
                    again.append(outstanding[lsn - first])
        self._resend(to, again)
        return None

    def stages(self) -> None:
        """C3, F2, L4, the flow rule and L1: run after every event, or after a batch of them."""
        self._order()
        self._confirm()
        while self.waiting and self._may_send(*self.waiting[0][::2]):
            self._send(*self.waiting.popleft())
        if self._to_ask:
            for src in sorted(self._to_ask):
                self._ask(src)
            self._to_ask.clear()
        if self._to_answer or self._to_confirm:
            for member in sorted(self._to_answer | (self._to_confirm & self.owed_since.keys())):
                self._tell(member, poll=False)
            self._to_answer.clear()
            self._to_confirm.clear()
        if self.waiting and not self.unreleased:
            self._alarms.sooner((_FLOW, -1), self.now + self._pace(self.settings.poll_after))

    def tick(self, now: float) -> None:
        """Whatever has waited long enough: K1, L1, L3, Q1 to Q3. Ends with the stages."""
        self.now = now
        for kind, member in self._alarms.due(now):
            getattr(self, _HANDLERS[kind])(member)
        self.stages()

    @property
    def wake(self) -> float | None:
        """When `tick` is wanted."""
        return self._alarms.next

    def leave_out(self, member: int) -> None:
        """A member has left for good: nothing is expected of it, nor sent to it, any more."""
        self.gone.add(member)
        self.owed_since.pop(member, None)
        for copy in self._outstanding.pop(member, ()):
            self._settle(copy)
        for queue in self.log.values():
            for message in queue:
                self._has_accepted(message, member)
        self._to_ask.discard(member)
        self._polled_at.pop(member, None)
        for kind in (_CONFIRM, _FOUND, _ASK, _RESEND):
            self._alarms.clear((kind, member))
        self._wake(member)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, held or owed: nothing will be sent unasked."""
        return not (self.waiting or self.unreleased or self.held_in_all or self.owed_since)

    @property
    def oldest_unreleased(self) -> int:
        """LOW: the lowest number of ours that not all have accepted; else the next."""
        order = self._unreleased_in_order
        while order and order[0] not in self.unreleased:
            order.popleft()
        return order[0] if order else self.seq

    @property
    def buffers_free(self) -> int:
        return 0 if self.is_behind else max(0, self.capacity - self.held_in_all)

    def accepted_by(self, reporter: int, source: int) -> int:
        """AL[reporter][source]."""
        row = self.known_accepted.get(reporter)
        return 1 if row is None else row.get(source, 1)

    def blockers(self) -> list[int]:
        """The members because of whom nothing more can be sent: those who lack the oldest message of a full window,
        or, of those the next one is for, those with the least room. Nobody, if our own application does not read."""
        dst, size = self.waiting[0][::2] if self.waiting else (0, 0)
        if self._may_send(dst, size):
            return []
        if self._is_window_full(size):
            oldest = self.oldest_unreleased
            return sorted(m for m, copies in self._outstanding.items() if copies[0].seq == oldest)
        if dst >> self.me & 1 and self.held[self.me] >= self.settings.quota:
            return self.awaited()
        remote = self._remote(dst)
        least = min([self._free(m) for m in remote])
        return [m for m in remote if self._free(m) == least]

    def awaited(self, level: str = "confirmed") -> list[int]:
        """The members whose messages or word is missing for what is held here and has not reached that level."""
        if level == "received":
            return []
        found = {m for m in self.known_sent if self.missing(m)}
        if level != "accepted":
            found.update(*[self._silent_blockers(queue[0]) for queue in self.accepted.values()])
        if level == "confirmed":
            found.update(*[_members(queue[0].missing) for queue in self.log.values()])
        return sorted(found - self.gone - {self.me})

    # S1 to S3: sending

    def _may_send(self, dst: int, size: int) -> bool:
        """S2, and a bound in bytes where the network needs one."""
        settings = self.settings
        if dst >> self.me & 1 and self.held[self.me] >= settings.quota:
            return False
        if self._is_window_full(size):
            return False
        if not settings.throttle:
            return True
        free = [self._free(h) for h in self._remote(dst)]
        room = min(free, default=self.capacity) // (settings.buffers_per_message * self.members)
        return self.seq < self.oldest_unreleased + room

    def _is_window_full(self, size: int) -> bool:
        if self.unreleased and self._unreleased_bytes + size > self.window_bytes:
            return True
        return self.seq >= self.oldest_unreleased + self.settings.window

    def _free(self, member: int) -> int:
        return self.free_buffers.get(member, self.capacity)

    def _send(self, dst: int, body: Any, size: int) -> None:
        """S3."""
        own = Own(self.seq, dst, body, size, self.now)
        remote = self._remote(dst)
        together = bool(self.settings.multicast_from) and len(remote) >= self.settings.multicast_from
        if together:
            own.lsns = tuple([(m, self.lsn[m]) for m in _members(dst) if m not in self.gone])
        copies = self._copies(own, remote, together)
        mine = self._copies(own, [self.me], False) if dst >> self.me & 1 else []
        self.seq += 1
        self.last_to[self.me] = own.seq
        for member in remote:
            self.lsn[member] += 1
            self.last_to[member] = own.seq
            self._forget_debt(member)
        self.clock[self.me] = self.covered[self.me] = self.seq
        own.remaining = len(remote)
        self.events.append(Sent(own))
        if remote:
            self.unreleased[own.seq] = own
            self._unreleased_in_order.append(own.seq)
            self._unreleased_bytes += size
            for member, copy in zip(remote, copies, strict=True):
                outstanding = self._outstanding.setdefault(member, deque())
                if not outstanding:
                    self._alarms.sooner((_RESEND, member), self.now + self._pace(self.settings.resend_after))
                outstanding.append(copy)
            self.events.append(Copies(copies, remote, together))
        else:
            self.events += (Released(own), Heard(own.seq))
        for copy in mine:
            self.lsn[self.me] += 1
            self.expected_lsn[self.me] += 1
            self._hold(copy)
            self._enter(copy)
        if mine:
            self._order()
            self._confirm()

    def _copies(self, own: Own, to: list[int], together: bool) -> list[Message]:
        """One copy for each, with what that link has not seen yet of our clock and our confirmations."""
        buf = self.buffers_free
        whole = self._changes(0) if together else ()
        reported = self.known_accepted.get(self.me, {})
        told = set().union(*(self._relevant.get(m, ()) for m in to)) if together else set()
        all_told = tuple([(j, reported[j]) for j in sorted(told)])
        copies = []
        for member in to:
            due = self._due.pop(member, ())
            copy = Message(
                self.me,
                own.dst,
                own.seq,
                self.lsn[member],
                whole if together else self._changes(self._link_version.get(member, 0)),
                ack=all_told if together else tuple([(j, reported[j]) for j in sorted(due)]),
                buf=buf,
                have=1 if together else self.expected_lsn[member],
                body=own.body,
                whole=together,
            )
            copy.own = own
            copy.size = own.size
            copy.since = self.now
            self._link_version[member] = self._version
            copies.append(copy)
        return copies

    def _changes(self, since: int) -> Pairs:
        """Whose clock rose after that version, and the newest of theirs that precedes; ours goes without saying."""
        changed = []
        for member, version in reversed(self._changed.items()):
            if version <= since:
                break
            if member != self.me:
                changed.append((member, self.clock[member] - 1))
        changed.sort()
        return tuple(changed)

    def _touch(self, member: int) -> None:
        self._version += 1
        self._changed.pop(member, None)
        self._changed[member] = self._version

    # R2, A2, B1, B2: from the network to `accepted`

    def _stash(self, message: Message) -> bool:
        """R2 and B2: keep it, if there is room. It may drive out a later one of its sender."""
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
            self._given_back.setdefault(src, set()).add(latest)
            self._unhold(evicted)
            self.events.append(Discarded("overrun", evicted))
        if early is None:
            early = self.early[src] = {}
        early[lsn] = message
        self._hold(message)
        again = self._given_back.get(src)
        if again and lsn in again:
            again.remove(lsn)
        else:
            self.events.append(Happened("received", message))
        return True

    def _accept_in_sequence(self, src: int) -> None:
        """A2: continuous acceptance."""
        early = self.early.get(src)
        while early and (message := early.pop(self.expected_lsn[src], None)) is not None:
            if message.seq < self.covered[src]:  # two stories about one link: not from a member of ours
                self._unhold(message)
                continue
            self.expected_lsn[src] += 1
            self._merge_clock(message)
            self._merge(src, message.ack, message.buf, message.have)
            self._enter(message)

    def _merge_clock(self, message: Message) -> None:
        """What precedes the message precedes from now on what we send; and so does it."""
        src, clock = message.src, self.clock
        if message.seq >= self.covered[src]:
            self.covered[src] = message.seq + 1
        if message.seq >= clock[src]:
            clock[src] = message.seq + 1
            self._touch(src)
        for member, seq in message.delta:
            if seq >= clock[member] and member != self.me and member != src:
                clock[member] = seq + 1
                self._touch(member)

    def _enter(self, message: Message) -> None:
        """Append to `accepted`, with the full stamp, and see whether it is next."""
        src = message.src
        past = self._past.get(src)
        if past is None or message.whole:
            past = self._past[src] = [0] * self.members
        for member, seq in message.delta:
            past[member] = seq
        past[src] = message.seq - 1
        message.deps = tuple(past)
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

    def _merge(self, src: int, ack: Pairs, buf: int, have: int) -> None:
        for source, upto in ack:
            self._learn(src, source, upto)
        self.free_buffers[src] = buf
        if have > self._arrived.get(src, 1):
            self._arrived[src] = have

    def _exceeds(self, ack: Pairs) -> bool:
        """Whether somebody claims to have accepted more of us than we have sent."""
        return any(source == self.me and upto > self.seq for source, upto in ack)

    def _cover(self, src: int, seq: int) -> None:
        """What `src` sent us below `seq` has all come."""
        if seq > self.covered[src]:
            self.covered[src] = seq
        self._wake(src)

    def _hold(self, message: Message) -> None:
        self.held[message.src] += 1
        self.held_in_all += 1

    def _unhold(self, message: Message) -> None:
        self.held[message.src] -= 1
        self.held_in_all -= 1

    # C1 to C4: from `accepted` to `log`

    def _cleared(self, member: int) -> float:
        """Whatever of the member's is for us and below this has been ordered. It never falls."""
        queue = self.accepted.get(member)
        if queue is not None:
            return queue[0].seq
        return inf if member == self.me or member in self.gone else self.covered[member]

    def _wake(self, member: int) -> None:
        """Look again at the tops that wait for this member, if it has got far enough for them."""
        heap = self._waits.get(member)
        if heap:
            cleared = self._cleared(member)
            while heap and heap[0][0] <= cleared:
                self._work.append(heappop(heap)[1])

    def _order(self) -> None:
        """C3: move tops that are clear of all others, as long as there are any."""
        work = self._work
        while work:
            src = work.popleft()
            top = self.accepted[src][0]
            blocked = self._blocked(top)
            if blocked is not None:
                heappush(self._waits.setdefault(blocked[0], []), (blocked[1], src))
                continue
            self._move(top)
            if src in self.accepted:
                work.append(src)
            self._wake(src)

    def _blocked(self, top: Message) -> tuple[int, int] | None:
        """C2: the first entry of the stamp that is not clear. Entries found clear stay so."""
        delta = top.delta
        at = top.seen
        while at < len(delta):
            member, seq = delta[at]
            if self._cleared(member) <= seq and member != top.src:
                top.seen = at
                return member, seq + 1
            at += 1
        top.seen = at
        return None

    def _move(self, top: Message) -> None:
        """From the top of its queue to the log."""
        src = top.src
        queue = self.accepted[src]
        queue.popleft()
        if queue:
            self._watch_top(queue[0])
        else:
            del self.accepted[src]
        self._alarms.progress((_PROBE, -1))
        if self.settings.ack_level == "causal":
            self._report(top)
        self._enter_log(top)
        self.events.append(Happened("causal", top))

    def _watch_top(self, top: Message) -> None:
        """Q1 is about a top that stays: its clock runs from here."""
        top.since = self.now
        self._alarms.sooner((_PROBE, -1), self.now + self._pace(self.settings.probe_after, 0.5))

    def _report(self, message: Message) -> None:
        """C4: what we accepted is owed to its sender and to all its other destinations."""
        src = message.src
        concerned = message.dst | 1 << src
        for member in self._remote(concerned):
            self._relevant.setdefault(member, set()).add(src)
            self._due.setdefault(member, set()).add(src)
            self._owe(member)
        self._learn(self.me, src, message.seq + 1)
        if src != self.me:
            count = self._accepted_since[src] = self._accepted_since.get(src, 0) + 1
            if count >= self._confirm_every:
                self._to_confirm.add(src)

    # F1, F2, L4: from `log` to the end

    def _enter_log(self, message: Message) -> None:
        src, seq = message.src, message.seq
        missing = 0
        for member in _members(message.dst):
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
        self._alarms.sooner((_POLL, -1), self.now + self._pace(self.settings.poll_after))

    def _learn(self, reporter: int, source: int, upto: int) -> None:
        """`reporter` has accepted everything of `source` below `upto` that is for it (F1, L4)."""
        row = self.known_accepted.setdefault(reporter, {})
        if upto <= row.get(source, 1):
            return
        row[source] = upto
        if reporter == self.me:
            return  # what is in the log we have accepted
        if source == self.me:
            self._accepted_by_receiver(reporter, upto)
        for message in self.log.get(source, ()):
            if message.seq >= upto:
                break
            self._has_accepted(message, reporter)

    def _has_accepted(self, message: Message, member: int) -> None:
        if message.missing >> member & 1:
            message.missing ^= 1 << member
            if not message.missing and self.log[message.src][0] is message:
                self._full.append(message.src)

    def _accepted_by_receiver(self, member: int, upto: int) -> None:
        """L4: our messages below `upto` need not be kept for this member any more."""
        outstanding = self._outstanding.get(member)
        while outstanding and outstanding[0].seq < upto:
            self._settle(outstanding.popleft())
        self._alarms.progress((_RESEND, member))
        if outstanding is not None and not outstanding:
            del self._outstanding[member]

    def _settle(self, copy: Message) -> None:
        """A destination has the message, or has left: it is not waited for any more."""
        own = copy.own
        assert own is not None
        own.remaining -= 1
        self._answer_time += (self.now - own.sent_at - self._answer_time) / SMOOTHING
        if not own.remaining:
            del self.unreleased[own.seq]
            self._unreleased_bytes -= own.size
            self.events.append(Released(own))
        self.events.append(Heard(copy.seq))

    def _confirm(self) -> None:
        """F2: what all destinations have accepted leaves the log, unless something before it has not."""
        full = self._full
        while full:
            src = full.popleft()
            queue = self.log.get(src)
            if queue is None or queue[0].missing:
                continue
            blocked = self._preceded(queue[0])
            if blocked is not None:
                heappush(self._behind.setdefault(blocked[0], []), (blocked[1], src))
            else:
                self._leave_log(src)

    def _preceded(self, message: Message) -> tuple[int, int] | None:
        """The first entry of the stamp that names something still in the log."""
        delta = message.delta
        at = message.passed
        while at < len(delta):
            member, seq = delta[at]
            queue = self.log.get(member)
            if queue is not None and queue[0].seq <= seq and member != message.src:
                message.passed = at
                return member, seq + 1
            at += 1
        message.passed = at
        return None

    def _leave_log(self, src: int) -> None:
        queue = self.log[src]
        message = queue.popleft()
        if not queue:
            del self.log[src]
        elif not queue[0].missing:
            self._full.append(src)
        self._unhold(message)
        self._alarms.progress((_POLL, -1))
        self.events.append(Happened("confirmed", message))
        heap = self._behind.get(src)
        low = queue[0].seq if queue else inf
        while heap and heap[0][0] <= low:
            self._full.append(heappop(heap)[1])

    # K1, L1 to L3, Q1 to Q3: what is said without being data

    def _owe(self, member: int) -> None:
        if member != self.me and member not in self.owed_since and member not in self.gone:
            self.owed_since[member] = self.now
            self._alarms.sooner((_CONFIRM, member), self.now + self.settings.confirm_delay)

    def _forget_debt(self, member: int) -> None:
        self.owed_since.pop(member, None)
        self._accepted_since.pop(member, None)

    def confirm_now(self, member: int) -> None:
        """Confirm without waiting for company, if anything is owed."""
        if member in self.owed_since:
            self._tell(member, poll=False)

    def caught_up(self) -> None:
        """Our application keeps up again: say so to those who may have been told otherwise."""
        self.is_behind = False
        for member in sorted(self._told_behind):
            self._tell(member, poll=False)
        self._told_behind.clear()

    @property
    def is_open(self) -> bool:
        """Whether the window leaves room for one more message."""
        return not (self.waiting or self._is_window_full(0))

    def has_all(self, member: int) -> bool:
        """Whether a member has accepted all that we sent to it."""
        return member not in self._outstanding

    def _on_confirm(self, member: int) -> None:
        """K1."""
        since = self.owed_since.get(member)
        if since is None:
            return
        due = since + self.settings.confirm_delay
        if due <= self.now:
            self._tell(member, poll=False)
        else:
            self._alarms.set((_CONFIRM, member), due)

    def _tell(self, member: int, *, poll: bool) -> None:
        """CTL, with all we have accepted that concerns its receiver."""
        self._forget_debt(member)
        if self.is_behind:
            self._told_behind.add(member)
        numbers = (self.seq, self.lsn[member], self._acks_for(member), self.buffers_free)
        self.events.append(Told(member, Control(self.me, *numbers, poll, self.expected_lsn[member])))

    def _acks_for(self, member: int) -> Pairs:
        reported = self.known_accepted.get(self.me, {})
        relevant = sorted(self._relevant.get(member, ()))
        return tuple([(source, reported[source]) for source in relevant])

    def missing(self, src: int) -> Runs:
        """L1: runs of numbers on the link from `src` that were used and have not come."""
        return missing_runs(self.expected_lsn[src], self.early.get(src, ()), self.known_sent.get(src, 1))

    def _ask(self, src: int) -> None:
        """L1: RET for what was not asked for before; the timer repeats the rest."""
        runs = self.missing(src)
        self._lacking_since[src] = self.now  # this was called for because something came
        if not runs or src in self.gone:
            del self._lacking_since[src]
            self._alarms.clear((_ASK, src))
            self._alarms.clear((_FOUND, src))
            return
        if runs[-1][1] > self._asked_below.get(src, 1):
            if not self.settings.nack_delay:
                self._ask_for_new(src, runs)
            elif (_FOUND, src) not in self._alarms:  # it may only have been overtaken
                wait = self._pace(self.settings.nack_delay, 0.5)
                self._alarms.set((_FOUND, src), self.now + wait)
        elif (_ASK, src) not in self._alarms:  # something that had come had to be given up
            self._alarms.set((_ASK, src), self.now + self._pace(self.settings.nack_again, 0.5))

    def _ask_for_new(self, src: int, runs: Runs) -> None:
        asked = self._asked_below.get(src, 1)
        self._asked_below[src] = runs[-1][1]
        self._alarms.progress((_ASK, src))
        self._request(src, tuple([(max(low, asked), high) for low, high in runs if high > asked]))

    def _on_found(self, src: int) -> None:
        runs = self.missing(src)
        if runs and runs[-1][1] > self._asked_below.get(src, 1):
            self._ask_for_new(src, runs)

    def _on_ask(self, src: int) -> None:
        runs = self.missing(src)
        if not runs:
            return
        self._request(src, runs)
        if self.now - self._lacking_since.get(src, self.now) > self.settings.patience:
            self.events.append(GaveUp(src))

    def _request(self, src: int, runs: Runs) -> None:
        have = self.expected_lsn[src]
        self.events.append(Told(src, Request(self.me, runs, self._acks_for(src), self.buffers_free, have)))
        self._alarms.again((_ASK, src), self.now, self._pace(self.settings.nack_again, 0.5))

    def _on_resend(self, member: int) -> None:
        """L3: something is not known to be accepted for too long. The oldest that may be lost is sent again; whatever
        else is missing, the number on our question reveals, and a confirmation that was lost is answered."""
        outstanding = self._outstanding.get(member)
        if not outstanding:
            return
        oldest = outstanding[0].since
        due = oldest + self._alarms.wait((_RESEND, member), self._pace(self.settings.resend_after))
        if due > self.now:
            self._alarms.set((_RESEND, member), due)
            return
        arrived = self._arrived.get(member, 1)
        lost = next((copy for copy in outstanding if copy.lsn >= arrived), None)
        if lost is not None:
            self._resend(member, [lost])
        outstanding[0].since = self.now
        self._poll(member)
        self._alarms.again((_RESEND, member), self.now, self._pace(self.settings.resend_after))

    def _resend(self, member: int, copies: list[Message]) -> None:
        """Retransmissions repeat the original fields; they do not stand for a confirmation."""
        for copy in copies:
            copy.since = self.now
            self.events.append(Copies([copy], [member], again=True))

    def _on_probe(self, _: int) -> None:
        """Q1: ask those whose silence has held up a top for long enough."""
        wait = self._pace(self.settings.probe_after, 0.5)
        blockers: set[int] = set()
        ripe, younger = False, inf
        for queue in self.accepted.values():
            top = queue[0]
            if top.since + wait <= self.now:
                ripe = True
                blockers |= self._silent_blockers(top)
            else:
                younger = min(younger, top.since + wait)
        for member in sorted(blockers):
            self._poll(member)
        if ripe:
            self._alarms.again((_PROBE, -1), self.now, max(wait, self._pace(self.settings.poll_after)))
        if younger < inf:
            self._alarms.sooner((_PROBE, -1), younger)

    def _silent_blockers(self, top: Message) -> set[int]:
        """Members that block a top through an empty queue."""
        lacking = [h for h, seq in top.delta[top.seen :] if h != top.src and self._cleared(h) <= seq]
        return {member for member in lacking if member not in self.accepted}

    def _on_poll(self, _: int) -> None:
        """Q2: ask those who are not known to have accepted what has waited in the log for long enough."""
        wait = self._pace(self.settings.poll_after)
        missing, younger = 0, inf
        for queue in self.log.values():
            for message in queue:
                if message.since + wait <= self.now:
                    missing |= message.missing
                else:
                    younger = min(younger, message.since + wait)
        for member in self._remote(missing):
            self._poll(member)
        if missing:
            self._alarms.again((_POLL, -1), self.now, wait)
        if younger < inf:
            self._alarms.sooner((_POLL, -1), younger)

    def _on_flow(self, _: int) -> None:
        """Q3: nothing of ours is under way and still we may not send: ask how full the others are."""
        if not self.waiting or self.unreleased:
            return
        for member in self._remote(self.waiting[0][0]):
            self._poll(member)
        self._alarms.again((_FLOW, -1), self.now, self._pace(self.settings.poll_after))

    def _poll(self, member: int) -> None:
        """Ask, unless an answer is still to be expected."""
        asked = self._polled_at.get(member)
        if asked is None or asked + self._pace(self.settings.poll_after) <= self.now:
            self._polled_at[member] = self.now
            self._tell(member, poll=True)

    # Helpers

    def _pace(self, wait: float, answers: float = 2.0) -> float:
        """A wait that is set, or longer where answers take longer than it was set for: on a busy machine, questions
        that come too soon only make it busier."""
        return max(wait, min(answers * self._answer_time, SLOWER_MAX * wait))

    def _remote(self, members: int) -> list[int]:
        """The others in a bit set that have not left."""
        return [m for m in _members(members & ~(1 << self.me)) if m not in self.gone]


def precedes(p: Message, q: Message) -> bool:
    """C1: whether p comes before q, from their numbers alone."""
    if p.src == q.src:
        return p.seq < q.seq
    return p.seq <= q.deps[p.src]


def _members(bits: int) -> Iterator[int]:
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
