"""Causal broadcast by sequence numbers: the CO protocol, as a state machine.

A message carries, for every member, the number that the message's sender expected next from that member. That one vector orders
messages, reveals loss and confirms receipt: order, reliability and flow control in one machine, over any network that
delivers a datagram now and then.

    accepted      it is the next of its sender, and nothing that precedes it is missing; the level `causal`
    confirmed     every member is known to have accepted it
    acknowledged  every member is known to have confirmed it

    data          numbered; the numbers that its sender expects of all members, as increments since its previous message
    nack          the numbers of the receiver's messages that are missing here                         (RET)
    confirmation  the numbers that we expect of all members, and what we have confirmed; may be a poll  (CNF)

Only data is numbered, kept and repeated, always as the same bytes. When all members have acknowledged
all messages, nobody sends anything. A number is the one expected next: it covers strictly smaller ones.

From Sakamoto, Nakamura, Tachikawa and Takizawa, but here the acceptance of a message waits for the messages that precede
it. docs/protocols/co.md has the rules, under the letters and numbers that the comments here use.
"""

from collections import deque
from math import inf
from typing import Any

from inga.causality.arrivals import numbers_in
from inga.causality.knowledge import ALL_RISEN, FIRST, SAME
from inga.layers.co.ordering import CoOrdering
from inga.layers.co.parts import (
    AHEAD_MAX,
    CoControlSent,
    CoMessage,
    CoNack,
    Confirmation,
    CoSent,
    CoSettings,
    ExpectedNumbers,
    SentAgain,
)
from inga.layers.machine import ALL, GaveUp
from inga.model.compiled import mypyc_attr
from inga.model.packet import Runs
from inga.session.alarms import WAIT_MAX, Alarms
from inga.stack.budget import cost_of

FULL_EVERY = 32
"""One in so many messages of a sender carries its vector in full: a receiver that lacks some can read vectors again after so many."""

SMOOTH, RESEND_ROUNDS = 8, 3
"""The divisor that smooths the time until all have accepted a message, and how many times this time we wait before we resend."""

REPAIRS_MAX = 64
"""The most messages sent again at once to one member."""

CONFIRM, POLL, RESEND, FOUND, ASK = range(5)
"""Kinds of alarms, in the order of `handlers`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CoMachine(CoOrdering):
    """The CO protocol at one member. Inputs are requests, messages, confirmations, nacks and the time; `events` lists the
    consequences."""

    handlers = "_on_confirm _on_poll _on_resend _on_found _on_ask".split()

    def __init__(self, me: int, members: int, settings: CoSettings | None = None, now: float = 0.0) -> None:
        settings = settings or CoSettings()
        super().__init__(me, members, settings, now)
        self.waiting: deque[tuple[Any, int]] = deque()  # PEND: body and size
        self.unreleased: dict[int, CoMessage] = {}  # SL, by number
        self.window_bytes: float = settings.window_bytes or inf
        self._unreleased_bytes = 0
        # When all were last found to have accepted a message of ours, or the first unreleased one was sent.
        self._unreleased_since = now
        self._round = 0.0  # seconds until all members have accepted a message of ours, smoothed
        # confirmations
        every = settings.confirm_every
        self._confirm_every: float = (settings.window + 1) // 2 if every is None else every or inf
        # Free buffers from which on no sender has to wait.
        self._plenty = settings.units * settings.window * members
        self._told_free = self.capacity
        self._spoke_at = now
        self._polled_at = now
        # repair
        self._found: set[int] = set()  # senders whose missing messages may only have been overtaken
        # By sender: numbers below this were requested before, and only the timer requests them again.
        self._asked_below = [FIRST] * members
        # By sender with requested messages: since when there was no progress, and the number expected then.
        self._asked: dict[int, tuple[float, int]] = {}

    # Inputs, besides `receive`

    def request(self, body: Any, size: int = 0) -> None:
        """S1: send a message to all members, as soon as the flow rule allows."""
        self.waiting.append((body, size))

    def confirmed(self, word: Confirmation) -> str | None:
        """K2, K4: process a confirmation. Returns the reason to reject it, if there is one."""
        src = word.src
        if not self._are_possible(enumerate(word.expected)) or word.seq >= self.expected[src] + AHEAD_MAX:
            return "forged"
        moved = self._merge(src, word.expected, word.free)
        for k, number in enumerate(word.confirmed):
            moved |= self.reported_confirmed.rise(k, src, number) != SAME
        self._learn_sent([(src, word.seq)])
        if word.denies:
            self._forget_rumours(src, word.seq)
            self._asked_below[src] = min(self._asked_below[src], self.known_sent[src])
        if moved:
            self.progress_at = self.now
        if word.poll:
            if not self._answers[src].take(self.now):
                return "budget"
            self._confirm(src)
        return None

    def asked(self, nack: CoNack) -> str | None:
        """L3: process a nack, which requests messages of ours. All members have those that we no longer keep: then the nack is an
        old one. Returns the reason to reject it, if there is one."""
        if not self._are_possible(enumerate(nack.expected)):
            return "forged"
        if self._merge(nack.src, nack.expected, nack.free):
            self.progress_at = self.now
        return self._repair(nack.src, nack.runs)

    def stages(self) -> None:
        """R3, P1 to P3, the flow rule and L2. Called after every input, or after a batch of them."""
        if any(self.early):
            self._retry()
        if self._raised:
            self._advance()
        elif self.log:
            self._acknowledge()
        while self.waiting and self._may_send():
            self._send(*self.waiting.popleft())
            if self._raised:
                self._advance()
        if self._heard_of or self._found:
            self._look_for_holes()
        if self._told_free < self._plenty and self.buffers_free > self._told_free:
            self._owe()  # a sender may be waiting for buffers that are free again
        if self.dirty and (CONFIRM, ALL) not in self._alarms:
            self._alarms.set((CONFIRM, ALL), self.dirty_since + self.settings.confirm_delay)
        if (POLL, ALL) not in self._alarms and self._is_unfinished():
            self._alarms.set((POLL, ALL), self.now + self.settings.poll)

    def confirm_now(self) -> None:
        """Send an owed confirmation at once, not piggybacked on later data, if a sender may soon have to wait for it."""
        if self.dirty and any(count >= self._confirm_every for count in self.accepted_since.values()):
            self._confirm(None)
            self.stages()

    def confirm_all(self, *, poll: bool) -> None:
        """Send a confirmation to all, in place of earlier ones that lower layers had no room for. `poll`: one of those was a poll."""
        if self.others:
            self._confirm(None, poll=poll and self._is_unfinished())

    def leave_out(self, member: int) -> None:
        """A member has left for good: wait neither for its confirmations nor for its messages."""
        if member not in self.others:
            return
        self.others.remove(member)
        self._stop_counting(member)
        self._found.discard(member)
        self._asked.pop(member, None)
        if self.others:
            for kind in (FOUND, ASK):
                self._alarms.clear((kind, member))
        else:
            self._alarms, self.dirty = Alarms(), False  # no other member is left
        self._raised.update(self.known_accepted.forget(member))
        self.known_confirmed.forget(member)
        self.reported_confirmed.forget(member)

    def forget_beyond_hole(self, src: int) -> None:
        """Drop the early messages of a member behind a gap: the missing messages will never arrive, so these can never be accepted."""
        early, hole = self.early[src], self.expected[src]
        while hole in early:
            hole += 1
        for seq in sorted(early):
            if seq > hole:
                self._drop("left", early[seq])

    def caught_up(self) -> None:
        """Our application keeps up again: owe a confirmation, since we may have reported no free buffers."""
        self.is_behind = False
        self._owe()

    # What can be asked

    @property
    def is_open(self) -> bool:
        """Whether a message would leave at once."""
        return not self.waiting and self._may_send()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight, held, owed or missing."""
        return not (self.waiting or not self.is_settled or self.dirty or self._is_missing_something())

    def has_all(self, member: int) -> bool:
        """Whether a member has accepted all our messages."""
        return self.known_accepted.rows[self.me][member] >= self.expected[self.me]

    def unaccepted_by(self, member: int) -> tuple[int, float]:
        """How many of our messages a member is not known to have accepted, and when the oldest of them was sent."""
        expects = self.known_accepted.rows[self.me][member]
        oldest = self.unreleased.get(expects)
        return max(self.expected[self.me] - expects, 0), 0.0 if oldest is None else oldest.sent_at

    @property
    def round_trip(self) -> float:
        """Seconds until all members have accepted a message of ours, smoothed; 0: not measured yet."""
        return self._round

    def blockers(self) -> list[int]:
        """The members because of which nothing more can be sent; none, if our own application does not read.

        A full window waits for the members that have accepted least. Full buffers are emptied by messages or
        confirmations of the awaited members; if none is awaited, the application of the member with the least room does
        not read.
        """
        if not self.others or self._may_send():
            return []
        if self._is_window_full():
            return self._least(self.known_accepted.rows[self.me])
        return [] if self.is_behind else self.awaited() or self._least(self.free_buffers)

    def _least(self, numbers: list[int]) -> list[int]:
        """The other members with the lowest number."""
        least = min([numbers[m] for m in self.others])
        return [m for m in self.others if numbers[m] == least]

    # S2, S3, L5: sending

    def _may_send(self) -> bool:
        if self.held[self.me] >= self.quota:
            return False
        return not self.others or not (self._is_window_full() or self._are_buffers_full())

    def _is_window_full(self) -> bool:
        if self.expected[self.me] >= self.known_accepted.lowest[self.me] + self.settings.window:
            return True
        next_one = self.waiting[0][1] if self.waiting else 0
        return bool(self.unreleased) and self._unreleased_bytes + next_one > self.window_bytes

    def _are_buffers_full(self) -> bool:
        free = min([self.buffers_free, *[self.free_buffers[m] for m in self.others]])
        room = free // (self.settings.units * len(self.expected))
        return self.expected[self.me] >= self.known_accepted.lowest[self.me] + room

    def _send(self, body: Any, size: int) -> None:
        """S3: number a message and give it its vector, which is the same for all its copies and repetitions."""
        me, expected = self.me, self.expected
        seq = expected[me]
        claims = [(k, expected[k]) for k in sorted(self._risen)]
        self._risen.clear()
        vector, rises = None, None
        if (seq - 1) % FULL_EVERY:
            before = self.vectors[me]
            rises = tuple([(k, number - before[k]) for k, number in claims])
        else:
            vector = tuple(expected)
        claims.append((me, seq))
        self._told_free = self.buffers_free
        message = CoMessage(me, seq, vector, rises, self._told_free, body, size)
        message.deps = tuple([number - 1 for number in expected])
        message.sent_at = self.now
        self._spoke()
        self.events.append(CoSent(message))
        if self.others:
            if not self.unreleased:
                self._unreleased_since = self.now
                self._alarms.sooner((RESEND, ALL), self.now + self._resend_after())
            self.unreleased[seq] = message
            self._unreleased_bytes += size
        self._hold(me)
        self._accept(message, claims)

    def _spoke(self) -> None:
        self._spoke_at = self.now
        self.accepted_since.clear()

    def _advance(self) -> None:
        super()._advance()
        self._release_own()

    def _release_own(self) -> None:
        """L5: forget messages of ours that all members have accepted: none will request them."""
        unreleased, bound, message = self.unreleased, self.known_accepted.lowest[self.me], None
        while unreleased and (seq := next(iter(unreleased))) < bound:  # in the order of their numbers
            message = unreleased.pop(seq)
            self._unreleased_bytes -= message.size
        if message is not None:
            self._round += (self.now - message.sent_at - self._round) / SMOOTH
            self._unreleased_since = self.now
            self._alarms.progress((RESEND, ALL))

    # K1 to K4: confirmations

    def _on_confirm(self, _: int) -> None:
        """K1: send an owed confirmation that could not be piggybacked on data in time."""
        if not self.dirty:
            return
        due = max(self._spoke_at, self.dirty_since) + self.settings.confirm_delay
        if due > self.now:
            self._alarms.set((CONFIRM, ALL), due)
        else:
            self._confirm(None)

    def _confirm(self, to: int | None, *, poll: bool = False) -> None:
        """Send our confirmation to one member or to all. After one to all, nothing is owed any more."""
        word = self._word(poll=poll)
        if to is None:
            self.dirty = False
            self._alarms.clear((CONFIRM, ALL))
            self._told_free = word.free
            self._spoke()
        self.events.append(CoControlSent(to, word))

    def _word(self, *, poll: bool = False, denies: bool = False) -> Confirmation:
        numbers = (self.expected[self.me], tuple(self.expected), tuple(self.known_accepted.lowest))
        return Confirmation(self.me, *numbers, self.buffers_free, poll, denies)

    def _merge(self, src: int, expected: ExpectedNumbers, free: int) -> bool:
        """K2: merge a member's report of what it has accepted; whether any of it is new."""
        moved = False
        for k, number in enumerate(expected):
            risen = self.known_accepted.rise(k, src, number)
            if risen == ALL_RISEN:
                self._raised.add(k)
            moved |= risen != SAME
        self._learn_sent(enumerate(expected))
        self.free_buffers[src] = free
        return moved

    def _on_poll(self, _: int) -> None:
        """K3: poll all members, if messages are unfinished and there was no progress for long enough."""
        if not self._is_unfinished():
            return
        key = (POLL, ALL)
        if self.progress_at > self._polled_at:
            self._alarms.progress(key)
        due = max(self.progress_at, self._polled_at) + self._alarms.wait(key, self.settings.poll)
        if due > self.now:
            self._alarms.set(key, due)
            return
        self._polled_at = self.now
        self._alarms.again(key, self.now, self.settings.poll)
        self._confirm(None, poll=True)

    def _is_unfinished(self) -> bool:
        """Whether confirmations of others could bring progress here. They cannot if we may not send just because our own application
        does not read."""
        if not self.others:
            return False
        if self.waiting or self.unreleased or not self.is_settled or self._is_missing_something():
            return True
        return not (self.is_behind or self._may_send())

    # L2 to L4: repair

    def _look_for_holes(self) -> None:
        """L2: request messages newly known to be missing, after `nack_delay`, in which overtaken ones may still arrive."""
        for src in sorted(self._heard_of | self._found):
            bound = self.known_sent[src]
            if src not in self.others or bound <= max(self.expected[src], self._asked_below[src]):
                self._found.discard(src)
                self._alarms.clear((FOUND, src))
            elif not self.settings.nack_delay:
                self._on_found(src)
            elif src not in self._found:
                self._found.add(src)
                self._alarms.set((FOUND, src), self.now + self.settings.nack_delay)
        self._heard_of.clear()

    def _on_found(self, src: int) -> None:
        self._found.discard(src)
        asked = self._asked_below[src]
        runs = tuple([(max(low, asked), high) for low, high in self.missing(src) if high > asked])
        self._asked_below[src] = max(asked, self.known_sent[src])
        if runs:
            self._ask(src, runs, again=False)
            if (ASK, src) not in self._alarms:
                self._alarms.again((ASK, src), self.now, self.settings.nack_again)

    def _make_room(self, message: CoMessage) -> bool:
        """B2: a message that there is no room for is requested again by the timer, when there may be room, and not at once."""
        src = message.src
        if (ASK, src) not in self._alarms:
            self._alarms.set((ASK, src), self.now + self.settings.nack_again)
        self._asked_below[src] = max(self._asked_below[src], message.seq + 1)
        return super()._make_room(message)

    def _on_ask(self, src: int) -> None:
        """L2: request all missing messages of a member again, each time after a longer wait."""
        runs = self.missing(src)
        if runs:
            self._ask(src, runs, again=True)
            self._alarms.again((ASK, src), self.now, self.settings.nack_again)
        else:  # all have arrived; they may wait for messages of others
            self._asked.pop(src, None)
            self._alarms.progress((ASK, src))

    def _ask(self, src: int, runs: Runs, *, again: bool) -> None:
        since, expected = self._asked.get(src, (self.now, 0))
        if self.expected[src] > expected:  # there was progress since the last request, or this is the first
            since = self.now
            self._alarms.progress((ASK, src))
        self._asked[src] = since, self.expected[src]
        nack = CoNack(self.me, runs, tuple(self.expected), self.buffers_free)
        self.events.append(CoControlSent(src, nack, again))
        if self.now - since > self.settings.patience:
            self.events.append(GaveUp(src))

    def _repair(self, member: int, runs: Runs) -> str | None:
        budget, first, end = (
            self._answers[member],
            self.known_accepted.lowest[self.me],
            self.expected[self.me],
        )
        if not budget.take(self.now):
            return "budget"
        if runs and runs[-1][1] > end:  # never sent: another member claimed them. Say how many there are
            self.events.append(CoControlSent(member, self._word(denies=True)))
        asked = numbers_in(runs, first, end, REPAIRS_MAX)
        lacking = [self.unreleased[seq] for seq in asked if seq in self.unreleased]
        within = [message for message in lacking if budget.take(self.now, cost_of(message.size))]
        self._send_again(member, within)
        return "budget" if len(within) < len(lacking) else None

    def _resend_after(self) -> float:
        """How long to wait for confirmations before messages are sent again: longer than they usually take, also on a busy machine."""
        resend = self.settings.resend
        return max(resend, min(RESEND_ROUNDS * self._round, WAIT_MAX * resend))

    def _on_resend(self, _: int) -> None:
        """L4: send each member again the messages that it is not known to have, if they were sent long enough ago."""
        if not self.unreleased:
            return
        key, wait = (RESEND, ALL), self._resend_after()
        due = self._unreleased_since + self._alarms.wait(key, wait)
        if due > self.now:
            self._alarms.set(key, due)
            return
        row, old = self.known_accepted.rows[self.me], self.now - wait
        for member in self.others:
            lacking = [m for m in self.unreleased.values() if m.seq >= row[member] and m.sent_at <= old]
            self._send_again(member, lacking)
        self._alarms.again(key, self.now, wait)

    def _send_again(self, member: int, messages: list[CoMessage]) -> None:
        if messages:
            self.events.append(SentAgain(member, messages[:REPAIRS_MAX]))
