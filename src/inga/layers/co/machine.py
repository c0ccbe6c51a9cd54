"""Causal broadcast by sequence numbers: the CO protocol, as a state machine.

A message carries, for every member, the number its sender expected next from it. That one vector orders
messages, reveals loss and confirms receipt: order, reliability and flow in one machine, over any network that
sometimes delivers datagrams.

    accepted      it is the next of its sender, and nothing that precedes it is missing; the level `causal`
    confirmed     every member is known to have accepted it
    acknowledged  every member is known to have confirmed it

    data          numbered; what its sender expects of all members, as what rose since its last message
    nack          these numbers of yours are missing here                              (RET)
    confirmation  what we expect of all members, and what we have confirmed; may ask    (CNF)

Only data has numbers, is kept and is repeated, always as the same bytes. When everybody has acknowledged
everything, nobody sends anything. Numbers are those expected next: each covers strictly smaller ones.

From Sakamoto, Nakamura, Tachikawa and Takizawa, with the acceptance of a message made to wait for what precedes
it; docs/protocols/co.md has the rules, by the letters and numbers that the comments here name.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from inga.causality.arrivals import missing_runs
from inga.causality.knowledge import ALL_RISEN, FIRST, SAME, Knowledge
from inga.layers.alarms import Alarms
from inga.layers.co.parts import (
    AHEAD_MAX,
    Claims,
    Confirmation,
    Discarded,
    Event,
    GaveUp,
    Message,
    Nack,
    Reached,
    Sent,
    SentAgain,
    Settings,
    Told,
    Vector,
)
from inga.model.packet import Runs

FULL_EVERY = 32
"""Messages of a sender of which one carries its whole vector: a receiver waits for no more to read one."""

SMOOTH, RESEND_ROUNDS = 8, 3
"""The weight of the past in what we think confirmations take, and how many times that we wait for them."""

REPAIRS_MAX = 64
"""Messages sent again at once to one member."""

_CONFIRM, _POLL, _RESEND, _FOUND, _ASK = range(5)
_HANDLERS = "_on_confirm _on_poll _on_resend _on_found _on_ask".split()
_ALL = -1
"""The member of an alarm that concerns everybody."""


class CoMachine:
    """The order one member sees. Give it requests, messages and the time; `events` is what that made happen."""

    def __init__(self, me: int, members: int, settings: Settings | None = None, now: float = 0.0) -> None:
        self.me = me
        self.settings = settings = settings or Settings()
        self.capacity = settings.capacity_for(members)  # C
        self.quota = self.capacity // members  # of each sender, in messages
        self.window_bytes: float = inf if settings.window_bytes is None else settings.window_bytes
        self.is_behind = False  # our application does not keep up: nobody is told of free buffers
        self.now = now
        self.events: list[Event] = []
        self.others = [m for m in range(members) if m != me]  # that have not left
        # what we know
        self.expected = [FIRST] * members  # REQ; our own entry is the number of our next message
        self.known_sent = [FIRST] * members  # GAP: exclusive bound of the numbers a member has used
        self.known_accepted = Knowledge(members, self._is_needed)  # AL
        self.known_confirmed = Knowledge(members, self._is_needed)  # PAL
        self.reported_confirmed = Knowledge(members)  # QAL
        self.free_buffers = [self.capacity] * members  # BUF
        self.vectors = [[FIRST] * members for _ in range(members)]  # of each sender's last accepted message
        # where messages wait
        self.waiting: deque[tuple[Any, int]] = deque()  # PEND: body and size
        self.unreleased: dict[int, Message] = {}  # SL, by number
        self.early: list[dict[int, Message]] = [{} for _ in range(members)]  # STASH, by number
        self.accepted: list[deque[Message]] = [deque() for _ in range(members)]  # RRL
        self.log: list[Message] = []  # PRL
        self.held = [0] * members  # messages of each sender in early, accepted and log
        self.held_in_all = 0
        # since our last message, or since we last spoke at all
        self._risen: set[int] = set()  # members of which we expect more now
        self._accepted_since: dict[int, int] = {}  # messages of each sender
        self._is_much = False  # some sender may soon have to wait for our word
        every = settings.confirm_every
        self._confirm_every: float = (settings.window + 1) // 2 if every is None else every or inf
        self._told_free = self.capacity
        # stages
        self._raised: set[int] = set()  # senders for which `known_accepted` rose as a whole
        self._named = [FIRST] * members  # the highest that a confirmed message of another names
        # times
        self._alarms = Alarms()
        self.dirty = False  # something is to be confirmed
        self._dirty_since = now
        self._spoke_at = now
        self._progress_at = now
        self._polled_at = now
        self._unreleased_bytes = 0
        self._unreleased_since = now  # when we last heard that one is everywhere, or sent the first
        self._round = 0.0  # how long it takes until everybody has accepted a message of ours, smoothed
        # repair
        self._to_ask: set[int] = set()  # senders that may have sent what is missing here
        self._asked_below = [FIRST] * members  # what was asked for before, and only the timer repeats
        self._stuck_since: dict[int, float] = {}  # senders asked in vain, since when

    def _is_needed(self, sender: int, reporter: int) -> bool:
        """Whether the reporter's word about the sender's messages counts: a sender has what it sent."""
        return reporter != sender

    # What goes in

    def request(self, body: Any, size: int = 0) -> None:
        """S1: send to everybody, as soon as the flow rule allows."""
        self.waiting.append((body, size))

    def receive(self, message: Message) -> bool:
        """R1, R2: a message came. Whether it is new and kept."""
        src, seq = message.src, message.seq
        expected = self.expected[src]
        if seq >= expected + AHEAD_MAX:
            return self._discard("seq", message)
        if seq < expected:
            self._owe()  # R1: its sender may have missed that we have it
            return self._discard("duplicate", message)
        early = self.early[src]
        if seq in early:
            return self._discard("duplicate", message)
        if seq >= self.known_sent[src]:
            self.known_sent[src] = seq + 1  # failure condition 1
        if self.held[src] >= self.quota and not self._make_room(message):
            return False
        if seq == expected:
            claims = self._claims(message, self.vectors[src])
            if claims is None:
                return self._discard("forged", message)
            if self._is_acceptable(claims):
                self._hold(src)
                self._accept(message, claims)
                return True
        self._hold(src)
        early[seq] = message
        self._to_ask.add(src)
        self._read_from(src, seq)
        return seq in early

    def confirmed(self, word: Confirmation) -> str | None:
        """K2, K4: a confirmation came. The reason if it cannot be right."""
        src = word.src
        if not self._are_possible(enumerate(word.expected)) or word.seq >= self.expected[src] + AHEAD_MAX:
            return "forged"
        moved = self._merge(src, word.expected, word.free)
        for k, number in enumerate(word.confirmed):
            moved |= self.reported_confirmed.rise(k, src, number) != SAME
        self._learn_sent([(src, word.seq)])
        if moved:
            self._progress_at = self.now
        if word.poll:
            self._confirm(src)
        return None

    def asked(self, nack: Nack) -> str | None:
        """L3: a member lacks something of ours. What we no longer keep is everywhere: it asked long ago."""
        if not self._are_possible(enumerate(nack.expected)):
            return "forged"
        if self._merge(nack.src, nack.expected, nack.free):
            self._progress_at = self.now
        self._repair(nack.src, nack.runs)
        return None

    def stages(self) -> None:
        """R3, P1 to P3, the flow rule and L2: run after every event, or after a batch of them."""
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
        if self._to_ask:
            self._look_for_holes()
        if (_POLL, _ALL) not in self._alarms and self._is_unfinished():
            self._alarms.set((_POLL, _ALL), self.now + self.settings.poll)

    def tick(self, now: float) -> None:
        """Whatever has waited long enough: K1, K3, L2, L4. Ends with the stages."""
        self.now = now
        for kind, member in self._alarms.due(now):
            getattr(self, _HANDLERS[kind])(member)
        self.stages()

    def confirm_now(self) -> None:
        """Confirm without waiting for company, if a sender may soon have to wait for our word."""
        if self._is_much and self.dirty:
            self._confirm(None)
            self.stages()

    def leave_out(self, member: int) -> None:
        """A member has left for good: nobody waits for its word, and nothing is expected of it."""
        if member not in self.others:
            return
        self.others.remove(member)
        if self.others:
            for kind in (_FOUND, _ASK):
                self._alarms.clear((kind, member))
        else:
            self.rest()  # there is nobody to talk to
        self._raised.update(self.known_accepted.forget(member))
        self.known_confirmed.forget(member)
        self.reported_confirmed.forget(member)

    def rest(self) -> None:
        """Say nothing more that nobody asks for."""
        self._alarms, self.dirty = Alarms(), False

    def caught_up(self) -> None:
        """Our application keeps up again: say so to those who may have been told otherwise."""
        self.is_behind = False
        self._owe()

    # What can be asked

    @property
    def wake(self) -> float | None:
        """When `tick` is wanted."""
        return self._alarms.next

    @property
    def is_open(self) -> bool:
        """Whether a message would leave at once."""
        return not self.waiting and self._may_send()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, held or owed."""
        return not (self.waiting or self.held_in_all or self.dirty or self._is_missing_something())

    @property
    def buffers_free(self) -> int:
        return 0 if self.is_behind else self.capacity - self.held_in_all

    def has_all(self, member: int) -> bool:
        """Whether a member has accepted all that we sent."""
        return self.known_accepted.rows[self.me][member] >= self.expected[self.me]

    def missing(self, src: int) -> Runs:
        """L1: maximal runs of numbers that a member is known to have used and we lack."""
        return missing_runs(self.expected[src], self.early[src], self.known_sent[src])

    def blockers(self) -> list[int]:
        """The members because of whom nothing more can be sent; nobody, if our own application does not read.

        A full window waits for those who have accepted least. Full buffers are emptied by the word of those who
        are awaited; where nobody is, the application that does not read is that of the member with the least room.
        """
        if not self.others or self._may_send():
            return []
        if self._is_window_full():
            return self._least(self.known_accepted.rows[self.me])
        return [] if self.is_behind else self.awaited() or self._least(self.free_buffers)

    def awaited(self, level: str = "acknowledged") -> list[int]:
        """The members whose messages or word is missing for what is held here and has not reached that level."""
        found = {m for m in self.others if self.missing(m)}
        if level != "causal":
            for src, queue in enumerate(self.accepted):
                if queue:
                    found.update(self.known_accepted.lacking(src, queue[0].seq))
        if level == "acknowledged" and self.log:
            found.update(self.reported_confirmed.lacking(self.log[0].src, self.log[0].seq))
        return sorted(found - {self.me})

    def _least(self, numbers: list[int]) -> list[int]:
        """The others with the lowest number."""
        least = min([numbers[m] for m in self.others])
        return [m for m in self.others if numbers[m] == least]

    # S2, S3: sending

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
        """S3: number it and give it its vector, the same for all its copies, for ever."""
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
        message = Message(me, seq, vector, rises, self._told_free, body, size)
        message.deps = tuple([number - 1 for number in expected])
        message.sent_at = self.now
        self._spoke()
        self.events.append(Sent(message))
        if self.others:
            if not self.unreleased:
                self._unreleased_since = self.now
                self._alarms.sooner((_RESEND, _ALL), self.now + self._resend_after())
            self.unreleased[seq] = message
            self._unreleased_bytes += size
        self._hold(me)
        self._accept(message, claims)

    def _spoke(self) -> None:
        self._spoke_at = self.now
        self._accepted_since.clear()
        self._is_much = False

    # R2, B2: from the network to `early`

    def _discard(self, reason: str, message: Message) -> bool:
        self.events.append(Discarded(reason, message))
        return False

    def _make_room(self, message: Message) -> bool:
        """B2: a sender that fills its share makes room with its own latest, or is not kept."""
        src, seq = message.src, message.seq
        early = self.early[src]
        # What is not kept is asked for again, but not before there can be room.
        if (_ASK, src) not in self._alarms:
            self._alarms.set((_ASK, src), self.now + self.settings.nack_again)
        self._asked_below[src] = max(self._asked_below[src], seq + 1)
        latest = max(early, default=0)
        if latest < seq:
            return self._discard("overrun", message)
        self._drop("overrun", early[latest])
        return True

    def _claims(self, message: Message, before: Sequence[int]) -> Claims | None:
        """What its vector says beyond that of its sender's message before it; failure condition 2 for those.
        None, if it cannot be right."""
        src, vector = message.src, message.vector
        if vector is not None:
            if vector[src] != message.seq:
                return None
            claims = [(k, number) for k, number in enumerate(vector) if number > before[k] and k != src]
        else:
            assert message.rises is not None
            claims = [(k, before[k] + rise) for k, rise in message.rises]
        if not self._are_possible(claims):
            return None
        self._learn_sent(claims)
        claims.append((src, message.seq))
        return claims

    def _are_possible(self, claims: Iterable[tuple[int, int]]) -> bool:
        """Nobody has accepted what we never sent, nor can be so far ahead of us."""
        expected, me = self.expected, self.me
        for k, number in claims:
            if number > expected[k] and (k == me or number > expected[k] + AHEAD_MAX):
                return False
        return True

    def _learn_sent(self, claims: Iterable[tuple[int, int]]) -> None:
        known_sent = self.known_sent
        for k, number in claims:
            if number > known_sent[k]:
                known_sent[k] = number
                self._to_ask.add(k)

    def _read_from(self, src: int, seq: int) -> None:
        """Read the vectors of early messages, as far as each follows one that could be read."""
        early = self.early[src]
        while (message := early.get(seq)) is not None:
            before = self._vector_before(src, seq)
            if before is None:
                if message.vector is None:
                    return
                before = self.vectors[src]  # it needs none, and says at least that
            claims = self._claims(message, before)
            if claims is None:
                self._drop("forged", message)
                return
            if message.vector is None:
                message.vector = _with(before, claims)
            seq += 1
            if seq in early and early[seq].vector is not None:
                return

    def _vector_before(self, src: int, seq: int) -> Sequence[int] | None:
        if seq == self.expected[src]:
            return self.vectors[src]
        previous = self.early[src].get(seq - 1)
        return None if previous is None else previous.vector

    def _drop(self, reason: str, message: Message) -> None:
        del self.early[message.src][message.seq]
        self._let_go(message.src)
        self._discard(reason, message)

    def _hold(self, src: int) -> None:
        self.held[src] += 1
        self.held_in_all += 1

    def _let_go(self, src: int) -> None:
        self.held[src] -= 1
        self.held_in_all -= 1

    # A1, A2, R3: acceptance

    def _is_acceptable(self, claims: Claims) -> bool:
        """A1, for the next message of its sender: what it names beyond the one before it is accepted here."""
        expected = self.expected
        for k, number in claims:  # noqa: SIM110 — for every message, and a generator costs twice this
            if number > expected[k]:
                return False
        return True

    def _retry(self) -> None:
        """R3: accept early messages until none can be."""
        again = True
        while again:
            again = False
            for src, early in enumerate(self.early):
                while (message := early.get(self.expected[src])) is not None:
                    claims = self._claims(message, self.vectors[src])
                    if claims is None:
                        self._drop("forged", message)
                        break
                    if not self._is_acceptable(claims):
                        if message.vector is None:
                            self._read_from(src, message.seq)
                        break
                    del early[message.seq]
                    self._accept(message, claims)
                    again = True

    def _accept(self, message: Message, claims: Claims) -> None:
        """A2. `claims` are what its vector says beyond its sender's message before it."""
        src, seq = message.src, message.seq
        vector, rise, raised = self.vectors[src], self.known_accepted.rise, self._raised
        for k, number in claims:
            vector[k] = number
            if rise(k, src, number) == ALL_RISEN:
                raised.add(k)
        message.claims = claims
        self.expected[src] = seq + 1
        self._have_accepted(src, seq + 1)
        self._progress_at = self.now
        if src != self.me:
            self._accept_foreign(message, vector)
        self.accepted[src].append(message)
        last = self.events[-1] if self.events else None
        if type(last) is Reached and last.level == "causal":
            last.messages.append(message)
        else:
            self.events.append(Reached("causal", [message]))

    def _have_accepted(self, src: int, number: int) -> None:
        """Our own word counts at once, whether or not we have said it."""
        if self.known_accepted.rise(src, self.me, number) == ALL_RISEN:
            self._raised.add(src)

    def _accept_foreign(self, message: Message, vector: list[int]) -> None:
        src = message.src
        self.free_buffers[src] = message.free
        message.deps = tuple([number - 1 for number in vector])
        self._risen.add(src)
        self._owe()
        count = self._accepted_since[src] = self._accepted_since.get(src, 0) + 1
        if count >= self._confirm_every:
            self._is_much = True
        if self._stuck_since.pop(src, None) is not None:
            self._alarms.progress((_ASK, src))

    # P1 to P5, L5: stages

    def _advance(self) -> None:
        """P1 to P3: confirm and acknowledge what can be."""
        me, log = self.me, self.log
        start = len(log)
        lowest = self.known_accepted.lowest
        for src in sorted(self._raised):
            bound = lowest[src]
            queue = self.accepted[src]
            while queue and queue[0].seq < bound:
                self._confirmed(queue.popleft(), start)
            if self.reported_confirmed.rise(src, me, bound) != SAME:  # P2
                self._owe()
        if me in self._raised:
            self._release_own(lowest[me])
        self._raised.clear()
        if len(log) > start:
            self._reach("confirmed", log[start:])
        self._acknowledge()

    def _confirmed(self, message: Message, start: int) -> None:
        """P1: every member has it, so its vector is known to all."""
        src, named = message.src, self._named
        rise = self.known_confirmed.rise
        for k, number in message.claims:
            rise(k, src, number)
            if k != src and number > named[k]:
                named[k] = number
        if named[src] <= message.seq:
            self.log.append(message)  # no confirmed message follows it
        else:
            insert_causally(self.log, message, start)

    def _acknowledge(self) -> None:
        """P3: everybody knows that everybody has it. The two ways to know must not be mixed."""
        by_data, by_word = self.known_confirmed.lowest, self.reported_confirmed.lowest
        done = 0
        for message in self.log:
            if message.seq >= by_data[message.src] and message.seq >= by_word[message.src]:
                break
            done += 1
        if not done:
            return
        moved = self.log[:done]
        del self.log[:done]
        for message in moved:
            self._let_go(message.src)
        self._reach("acknowledged", moved)
        enough = self.settings.units * self.settings.window * len(self.expected)
        if self._told_free < enough and self.buffers_free > self._told_free:
            self._owe()  # somebody may wait for the room we have again

    def _reach(self, level: str, messages: list[Message]) -> None:
        self._progress_at = self.now
        self.events.append(Reached(level, messages))

    def _release_own(self, bound: int) -> None:
        """L5: what everybody has, nobody will ask for."""
        unreleased, message = self.unreleased, None
        while unreleased and (seq := next(iter(unreleased))) < bound:  # in the order of their numbers
            message = unreleased.pop(seq)
            self._unreleased_bytes -= message.size
        if message is not None:
            self._round += (self.now - message.sent_at - self._round) / SMOOTH
            self._unreleased_since = self.now
            self._alarms.progress((_RESEND, _ALL))

    # K1 to K4: confirmations

    def _owe(self) -> None:
        if not self.dirty and self.others:
            self.dirty = True
            self._dirty_since = self.now
            self._alarms.sooner((_CONFIRM, _ALL), self.now + self.settings.confirm_delay)

    def _on_confirm(self, _: int) -> None:
        """K1: what is owed has waited in vain for data to ride on."""
        if not self.dirty:
            return
        due = max(self._spoke_at, self._dirty_since) + self.settings.confirm_delay
        if due > self.now:
            self._alarms.set((_CONFIRM, _ALL), due)
        else:
            self._confirm(None)

    def _confirm(self, to: int | None, *, poll: bool = False) -> None:
        """Tell one member, or all, what we have. Telling all settles what we owe."""
        numbers = (self.expected[self.me], tuple(self.expected), tuple(self.known_accepted.lowest))
        word = Confirmation(self.me, *numbers, self.buffers_free, poll)
        if to is None:
            self.dirty = False
            self._alarms.clear((_CONFIRM, _ALL))
            self._told_free = word.free
            self._spoke()
        self.events.append(Told(to, word))

    def _merge(self, src: int, expected: Vector, free: int) -> bool:
        """K2: what a member says it has. Whether that is news."""
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
        """K3: not done, and nothing has moved for long enough."""
        if not self._is_unfinished():
            return
        key = (_POLL, _ALL)
        if self._progress_at > self._polled_at:
            self._alarms.progress(key)
        due = max(self._progress_at, self._polled_at) + self._alarms.wait(key, self.settings.poll)
        if due > self.now:
            self._alarms.set(key, due)
            return
        self._polled_at = self.now
        self._alarms.again(key, self.now, self.settings.poll)
        self._confirm(None, poll=True)

    def _is_unfinished(self) -> bool:
        """Whether the word of others can help us on. Of no help is it where our own application does not read."""
        if not self.others:
            return False
        if self.waiting or self.unreleased or self.held_in_all or self._is_missing_something():
            return True
        return not (self.is_behind or self._may_send())

    def _is_missing_something(self) -> bool:
        expected = self.expected
        return any(self.known_sent[m] > expected[m] for m in self.others)

    # L1 to L4: repair

    def _look_for_holes(self) -> None:
        """L2: what is newly known to be missing is asked for, unless it was only overtaken: then it comes in a moment."""
        for src in sorted(self._to_ask):
            bound = self.known_sent[src]
            if src not in self.others or bound <= max(self.expected[src], self._asked_below[src]):
                continue
            if not self.settings.nack_delay:
                self._on_found(src)
            elif (_FOUND, src) not in self._alarms:
                self._alarms.set((_FOUND, src), self.now + self.settings.nack_delay)
        self._to_ask.clear()

    def _on_found(self, src: int) -> None:
        asked = self._asked_below[src]
        runs = tuple([(max(low, asked), high) for low, high in self.missing(src) if high > asked])
        self._asked_below[src] = max(asked, self.known_sent[src])
        if runs:
            self._ask(src, runs, again=False)
            if (_ASK, src) not in self._alarms:
                self._alarms.again((_ASK, src), self.now, self.settings.nack_again)

    def _on_ask(self, src: int) -> None:
        """L2: all of it again, later each time."""
        runs = self.missing(src)
        if runs:
            self._ask(src, runs, again=True)
            self._alarms.again((_ASK, src), self.now, self.settings.nack_again)
        else:  # all has come, and may wait for what others sent
            self._stuck_since.pop(src, None)
            self._alarms.progress((_ASK, src))

    def _ask(self, src: int, runs: Runs, *, again: bool) -> None:
        since = self._stuck_since.setdefault(src, self.now)
        if self.now - since > self.settings.patience:
            self.events.append(GaveUp(src))
        else:
            self.events.append(Told(src, Nack(self.me, runs, tuple(self.expected), self.buffers_free), again))

    def _repair(self, member: int, runs: Runs) -> None:
        lacking = [
            message
            for seq, message in self.unreleased.items()
            if any(low <= seq < high for low, high in runs)
        ]
        self._send_again(member, lacking)

    def _resend_after(self) -> float:
        """How long we wait for confirmations: longer than they usually take, on a busy machine too."""
        return max(self.settings.resend, RESEND_ROUNDS * self._round)

    def _on_resend(self, _: int) -> None:
        """L4: to each member, what it is not known to have though it was sent long enough ago."""
        if not self.unreleased:
            return
        key, wait = (_RESEND, _ALL), self._resend_after()
        due = self._unreleased_since + self._alarms.wait(key, wait)
        if due > self.now:
            self._alarms.set(key, due)
            return
        row, old = self.known_accepted.rows[self.me], self.now - wait
        for member in self.others:
            lacking = [m for m in self.unreleased.values() if m.seq >= row[member] and m.sent_at <= old]
            self._send_again(member, lacking)
        self._alarms.again(key, self.now, wait)

    def _send_again(self, member: int, messages: list[Message]) -> None:
        if messages:
            self.events.append(SentAgain(member, messages[:REPAIRS_MAX]))


def precedes(one: Message, other: Message) -> bool:
    """P4: whether one caused the other, by their vectors alone."""
    if one.src == other.src:
        return one.seq < other.seq
    assert other.deps is not None
    return one.seq <= other.deps[one.src]


def insert_causally(log: list[Message], message: Message, start: int = 0) -> None:
    """P5: put a message before the first that it precedes, or last; what is before `start` it does not precede."""
    at = start
    while at < len(log) and not precedes(message, log[at]):
        at += 1
    assert not any(precedes(later, message) for later in log[at:]), f"no place for {message} in causal order"
    log.insert(at, message)


def _with(before: Sequence[int], claims: Claims) -> Vector:
    vector = list(before)
    for k, number in claims:
        vector[k] = number
    return tuple(vector)
