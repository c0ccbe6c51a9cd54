"""Causal order for messages to subsets of the group: the SCO protocol, as a state machine.

Every message names its own destinations, and nothing of it is sent to other members. It has three kinds of numbers:
`seq` counts a sender's messages and identifies them, `lsn` counts those on one link and reveals loss, the stamp
(`clock` at the send) names the newest preceding message of every member.

    received   it has arrived                                      R2
    accepted   nothing before it on its link is missing            A2
    causal     nothing that precedes it and is for us is missing   C2, C3
    confirmed  every destination is known to have accepted it      F1, F2

Every number covers strictly smaller ones and begins at 1. The machine consists of three classes, of which each is based on the
one before: `ordering` puts arriving messages in order, `talking` decides which control messages are sent about them, and this
module sends messages of our own.

From Tachikawa and Takizawa, "Selective causally ordered group communication", sections 3.1 to 3.5. The rules and
corrections are those of docs/protocols/sco.md, and have the same names here.
"""

from collections import deque
from math import inf
from typing import Any

from inga.causality.arrivals import numbers_in
from inga.layers.machine import ALL, Discarded
from inga.layers.sco.ordering import members_of
from inga.layers.sco.parts import (
    Copies,
    Heard,
    NumberPairs,
    Own,
    Released,
    ScoMessage,
    ScoNack,
    ScoSent,
    ScoSettings,
)
from inga.layers.sco.talking import ASK, CONFIRM, FLOW, FOUND, RESEND, Talking
from inga.model.compiled import mypyc_attr
from inga.stack.budget import cost_of

SMOOTHING = 8
"""The divisor that smooths the answer time: about so many of the last answers count."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ScoMachine(Talking):
    """The SCO protocol at one member. Inputs are requests, messages and the time; `events` lists the consequences."""

    handlers = "_on_confirm _on_found _on_ask _on_probe _on_poll _on_resend _on_flow".split()

    def __init__(self, me: int, members: int, settings: ScoSettings | None = None) -> None:
        settings = settings or ScoSettings()
        super().__init__(me, members, settings)
        self.last_to = [0] * members  # number of our newest message to each member
        self.waiting: deque[tuple[int, Any, int]] = deque()  # PEND: destinations, body, size
        self.window_bytes: float = settings.window_bytes or inf
        self._hurries = False  # waiting messages leave as far as others have room, whatever the window says
        self.unreleased: dict[int, Own] = {}  # SL
        self._unreleased_in_order: deque[int] = deque()
        self._unreleased_bytes = 0
        # By destination, the copies that it is not known to have accepted.
        self._outstanding: dict[int, deque[ScoMessage]] = {}
        self._link_version: dict[int, int] = {}  # the version of our clock that was last sent on each link

    # Inputs, besides `receive` and `control`

    def request(self, dst: int, body: Any, size: int = 0) -> None:
        """S1: send a message to the members of the bit set `dst`, as soon as the flow rule allows."""
        assert dst >= 0 and not dst >> self.members, "destinations are members"
        self.waiting.append((dst, body, size))

    def hurry(self) -> None:
        """The view ends, and nothing more is requested: let waiting messages leave as far as others have room for them. The window
        would wait until the others accept messages, but messages that follow a lost one may be accepted only after all members
        have sent everything."""
        self._hurries = True

    def asked(self, request: ScoNack) -> str | None:
        """L2: process a request for copies that a member lacks. Returns the reason to reject it, if there is one."""
        if self._exceeds(request.ack):
            return "forged"
        to = request.src
        self._merge(to, request.ack, request.buf, request.have)
        budget, outstanding = self._answers[to], self._outstanding.get(to)
        if not budget.take(self.now):
            return "budget"
        if (
            request.runs and request.runs[-1][1] > self.lsn[to]
        ):  # never sent: another member claimed them. Say how many there are
            self._tell(to, poll=False, denies=True)
        if not outstanding:
            return None
        first = outstanding[0].lsn
        asked = numbers_in(request.runs, first, self.lsn[to], self.settings.resends_max)
        lacking = [outstanding[lsn - first] for lsn in asked]
        again = [copy for copy in lacking if budget.take(self.now, cost_of(copy.size))]
        self._resend(to, again)
        return "budget" if len(again) < len(lacking) else None

    def stages(self) -> None:
        """C3, F2, L4, the flow rule and L1. Called after every input, or after a batch of them."""
        self._order()
        self._confirm()
        while self.waiting and self._may_send(*self.waiting[0][::2]):
            self._send(*self.waiting.popleft())
        if self._heard_of:
            for src in sorted(self._heard_of):
                self._ask(src)
            self._heard_of.clear()
        if self._to_answer or self._to_confirm:
            for member in sorted(self._to_answer | (self._to_confirm & self.owed_since.keys())):
                self._tell(member, poll=False)
            self._to_answer.clear()
            self._to_confirm.clear()
        if self.waiting and not self.unreleased and (FLOW, ALL) not in self._alarms:
            self._alarms.set((FLOW, ALL), self.now + self._pace(self.settings.poll_after))

    def leave_out(self, member: int) -> None:
        """A member has departed: expect nothing more from it, and send it nothing. Discard its early messages, which wait for one
        that will not arrive on this link; a member that has accepted them lends them."""
        self.gone.add(member)
        self._underway.leave_out(member)
        for lsn, early in self.early.pop(member, {}).items():
            self._given_back.setdefault(member, {})[lsn] = early.seq
            self._let_go(member)
            self.events.append(Discarded("left", early))
        self._stop_counting(member)
        self.owed_since.pop(member, None)
        for copy in self._outstanding.pop(member, ()):
            self._settle(copy)
        for queue in self.log.values():
            for message in queue:
                self._has_accepted(message, member)
        self._heard_of.discard(member)
        self._polled_at.pop(member, None)
        for kind in (CONFIRM, FOUND, ASK, RESEND):
            self._alarms.clear((kind, member))

    def forgo(self, member: int) -> None:
        """Missing messages of a departed member will not arrive from any member: let no message wait for them any more, except
        messages of departed members."""
        self.bereft.add(member)
        self._work += [src for _, src in self._waits.pop(member, ())]

    # What can be asked

    @property
    def is_idle(self) -> bool:
        """Whether no message is in flight or held, and no confirmation is owed: nothing will be sent unless it is requested."""
        return not (self.waiting or self.unreleased or not self.is_settled or self.owed_since)

    @property
    def is_open(self) -> bool:
        """Whether the window leaves room for one more message."""
        return not (self.waiting or self._is_window_full(0))

    def has_all(self, member: int) -> bool:
        """Whether a member has accepted all our messages to it."""
        return member not in self._outstanding

    def unaccepted_by(self, member: int) -> tuple[int, float]:
        """How many of our messages to a member it is not known to have accepted, and when the oldest of them was sent."""
        copies = self._outstanding.get(member)
        if not copies or (own := copies[0].own) is None:
            return 0, 0.0
        return len(copies), own.sent_at

    @property
    def round_trip(self) -> float:
        """Seconds until a destination has accepted a message of ours, smoothed; 0: not measured yet."""
        return self._answer_time

    @property
    def oldest_unreleased(self) -> int:
        """LOW: the number of our oldest message that not all its destinations have accepted; otherwise that of our next message."""
        order = self._unreleased_in_order
        while order and order[0] not in self.unreleased:
            order.popleft()
        return order[0] if order else self.seq

    def blockers(self) -> list[int]:
        """The members because of which nothing more can be sent.

        If the window is full, or the next message is for ourselves alone: the members that lack our oldest unreleased
        message. If our own share of the buffers is full: the awaited members. Otherwise the destinations of the next message
        with the least room."""
        dst, size = self.waiting[0][::2] if self.waiting else (0, 0)
        if self._may_send(dst, size):
            return []
        is_held = dst >> self.me & 1 and self.held[self.me] >= self.settings.quota
        remote = self._remote(dst)
        if self._is_window_full(size) or not (is_held or remote):
            oldest = self.oldest_unreleased
            return sorted(m for m, copies in self._outstanding.items() if copies[0].seq == oldest)
        if is_held:
            return self.awaited()
        least = min([self._free(m) for m in remote])
        return [m for m in remote if self._free(m) == least]

    # S2, S3: sending

    def _may_send(self, dst: int, size: int) -> bool:
        """S2, and a bound in bytes, if one is set."""
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
        if self._hurries:
            return False
        if self.unreleased and self._unreleased_bytes + size > self.window_bytes:
            return True
        return self.seq >= self.oldest_unreleased + self.settings.window

    def _free(self, member: int) -> int:
        return self.free_buffers.get(member, self.capacity)

    def _send(self, dst: int, body: Any, size: int) -> None:
        """S3: number and stamp a message, and send its copies."""
        self._alarms.clear((FLOW, ALL))
        own = Own(self.seq, dst, body, size, self.now)
        remote = self._remote(dst)
        together = bool(self.settings.multicast_from) and len(remote) >= self.settings.multicast_from
        if together:
            # Departed members are named, too: otherwise receivers could not tell that the message was for all.
            own.lsns = tuple([(m, self.lsn[m]) for m in members_of(dst)])
        copies = self._copies(own, remote, together)
        mine = self._copies(own, [self.me], False) if dst >> self.me & 1 else []
        self.seq += 1
        self.last_to[self.me] = own.seq
        for member in remote:
            self.lsn[member] += 1
            self.last_to[member] = own.seq
            self._forget_debt(member)
        for member in self.gone:
            # It may be alive and receive our next datagram for all: then it has to detect that it lacks this message.
            self.lsn[member] += dst >> member & 1
        self.clock[self.me] = self.covered[self.me] = self.seq
        own.remaining = len(remote)
        self.events.append(ScoSent(own))
        if remote:
            self._underway.sent(own.seq, remote)
            self.unreleased[own.seq] = own
            self._unreleased_in_order.append(own.seq)
            self._unreleased_bytes += size
            for member, copy in zip(remote, copies, strict=True):
                outstanding = self._outstanding.setdefault(member, deque())
                if not outstanding:
                    self._alarms.sooner((RESEND, member), self.now + self._pace(self.settings.resend_after))
                outstanding.append(copy)
            self.events.append(Copies(copies, remote, together))
        else:
            self.events += (Released(own), Heard(own.seq))
        for copy in mine:
            self.lsn[self.me] += 1
            self.expected_lsn[self.me] += 1
            self._hold(self.me)
            self._rebuild(copy)
            self._enter(copy)
        if mine:
            self._order()
            self._confirm()

    def _copies(self, own: Own, to: list[int], together: bool) -> list[ScoMessage]:
        """One copy for each destination, with the clock changes and confirmations that its link has not carried yet."""
        buf = self.buffers_free
        whole = self._changes(0) if together else ()
        reported = self.known_accepted.get(self.me, {})
        told = set().union(*(self._relevant.get(m, ()) for m in to)) if together else set()
        noted = self._underway.noted()
        all_told = tuple([(j, reported[j]) for j in sorted(told)])
        copies = []
        for member in to:
            due = self._due.pop(member, ())
            copy = ScoMessage(
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
                noted=noted,
            )
            copy.own = own
            copy.size = own.size
            copy.since = self.now
            self._link_version[member] = self._version
            copies.append(copy)
        return copies

    def _changes(self, since: int) -> NumberPairs:
        """The entries of our clock, except our own, that rose after version `since`: (member, the number of its newest
        preceding message)."""
        changed = []
        for member, version in reversed(self._changed.items()):
            if version <= since:
                break
            if member != self.me:
                changed.append((member, self.clock[member] - 1))
        changed.sort()
        return tuple(changed)

    # L3, L4, Q3: until all destinations have a message

    def _learn(self, reporter: int, source: int, upto: int) -> None:
        if source == self.me != reporter and upto > self.accepted_by(reporter, source):
            self._accepted_by_receiver(reporter, upto)
        super()._learn(reporter, source, upto)

    def _accepted_by_receiver(self, member: int, upto: int) -> None:
        """L4: a member has accepted our messages to it below `upto`, so they need not be kept for it any more."""
        outstanding = self._outstanding.get(member)
        while outstanding and outstanding[0].seq < upto:
            self._settle(outstanding.popleft())
        self._alarms.progress((RESEND, member))
        if outstanding is not None and not outstanding:
            del self._outstanding[member]

    def _settle(self, copy: ScoMessage) -> None:
        """A destination has accepted this copy, or has departed: the message does not wait for it any more."""
        own = copy.own
        assert own is not None
        own.remaining -= 1
        self._answer_time += (self.now - own.sent_at - self._answer_time) / SMOOTHING
        if not own.remaining:
            del self.unreleased[own.seq]
            self._unreleased_bytes -= own.size
            self.events.append(Released(own))
        self.events.append(Heard(copy.seq))

    def _on_resend(self, member: int) -> None:
        """L3: a member is not known to have accepted copies for too long. Send the oldest copy that may be lost again, and poll the
        member: the number in the poll reveals other losses, and the answer replaces a lost confirmation."""
        outstanding = self._outstanding.get(member)
        if not outstanding:
            return
        oldest = outstanding[0].since
        due = oldest + self._alarms.wait((RESEND, member), self._pace(self.settings.resend_after))
        if due > self.now:
            self._alarms.set((RESEND, member), due)
            return
        arrived = self._arrived.get(member, 1)
        lost = next((copy for copy in outstanding if copy.lsn >= arrived), None)
        if lost is not None:
            self._resend(member, [lost])
        outstanding[0].since = self.now
        self._poll(member)
        self._alarms.again((RESEND, member), self.now, self._pace(self.settings.resend_after))

    def _resend(self, member: int, copies: list[ScoMessage]) -> None:
        """Send copies again with their original fields; they carry no newer confirmation."""
        for copy in copies:
            copy.since = self.now
            self.events.append(Copies([copy], [member], again=True))

    def _on_flow(self, _: int) -> None:
        """Q3: no message of ours is in flight and still we may not send: poll the destinations of the next message for
        their free buffers."""
        for member in self._remote(self.waiting[0][0]):
            self._poll(member)
        self._alarms.again((FLOW, ALL), self.now, self._pace(self.settings.poll_after))
