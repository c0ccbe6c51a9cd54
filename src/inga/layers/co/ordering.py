"""The order of the CO protocol: acceptance, levels and buffers, without timers and without sending.

    early      a message that precedes it is missing
    accepted   nothing that precedes it is missing; the level `causal`
    log        confirmed: every member is known to have accepted it; in causal order
    (gone)     acknowledged: every member is known to have confirmed it

The rules have the letters and numbers of docs/protocols/co.md. `machine` decides what is sent, and when.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from inga.causality.arrivals import missing_runs
from inga.causality.knowledge import ALL_RISEN, FIRST, SAME, Knowledge
from inga.layers.co.parts import AHEAD_MAX, Claims, CoMessage, CoSettings, ExpectedNumbers, Reached
from inga.layers.machine import Discarded, Machine
from inga.model.compiled import mypyc_attr
from inga.model.packet import Runs


@mypyc_attr(allow_interpreted_subclasses=True)
class CoOrdering(Machine):
    """The order at one member: which messages have reached which level."""

    def __init__(self, me: int, members: int, settings: CoSettings, now: float) -> None:
        super().__init__(me, members, settings.capacity_for(members), now)
        self.settings = settings
        self.others = [m for m in range(members) if m != me]  # other members that have not left
        # numbers
        self.expected = [FIRST] * members  # REQ; our own entry is the number of our next message
        self.known_sent = [FIRST] * members  # GAP: exclusive bound of the numbers a member has used
        self.known_accepted = Knowledge(members, self._is_needed)  # AL
        self.known_confirmed = Knowledge(members, self._is_needed)  # PAL
        self.reported_confirmed = Knowledge(members)  # QAL
        self.vectors = [[FIRST] * members for _ in range(members)]  # of each sender's last accepted message
        self._raised: set[int] = set()  # senders whose lowest number in `known_accepted` rose
        # The highest number of each sender that confirmed messages of other members expect from it.
        self._named = [FIRST] * members
        # where messages wait
        self.early: list[dict[int, CoMessage]] = [{} for _ in range(members)]  # STASH, by number
        self.accepted: list[deque[CoMessage]] = [deque() for _ in range(members)]  # RRL
        self.log: list[CoMessage] = []  # PRL
        # buffers
        self.quota = self.capacity // members  # of each sender, in messages
        self.free_buffers = [self.capacity] * members  # BUF
        # what has to be sent
        self.dirty = False  # we owe a confirmation
        self.dirty_since = now
        self.progress_at = now  # when we last learnt anything new
        # Messages accepted of each sender since we last sent anything.
        self.accepted_since: dict[int, int] = {}
        self._risen: set[int] = set()  # members whose expected number rose since our last message
        self._heard_of: set[int] = set()  # senders of which messages may be missing

    def _is_needed(self, sender: int, reporter: int) -> bool:
        """Whether the reporter's numbers about the sender's messages count. A sender has its own messages."""
        return reporter != sender

    # What can be asked

    def missing(self, src: int) -> Runs:
        """L1: the maximal runs of numbers that a member is known to have used and that have not arrived here."""
        return missing_runs(self.expected[src], self.early[src], self.known_sent[src])

    def _is_missing_something(self) -> bool:
        expected = self.expected
        return any(self.known_sent[m] > expected[m] for m in self.others)

    def awaited(self, level: str = "acknowledged") -> list[int]:
        """The members whose messages or confirmations are missing for messages held here to reach that level."""
        found = {m for m in self.others if self.missing(m)}
        if level != "causal":
            for src, queue in enumerate(self.accepted):
                if queue:
                    found.update(self.known_accepted.lacking(src, queue[0].seq))
        if level == "acknowledged" and self.log:
            found.update(self.reported_confirmed.lacking(self.log[0].src, self.log[0].seq))
        return sorted(found - {self.me})

    def kept(self, src: int) -> dict[int, CoMessage]:
        """The messages of a member that not all members are known to have, and some that all have."""
        found = {message.seq: message for message in self.log if message.src == src}
        return found | {message.seq: message for message in self.accepted[src]} | self.early[src]

    def counted(self, src: int) -> int:
        """The number of messages of a member that were accepted."""
        return self.expected[src] - 1

    @property
    def is_settled(self) -> bool:
        """Whether all accepted messages are acknowledged."""
        return not self.log and not any(self.accepted)

    # R1, R2, B2: from the network to `early`

    def receive(self, message: CoMessage) -> bool:
        """R1, R2: process a message that arrived; whether it is new and kept."""
        src, seq = message.src, message.seq
        expected = self.expected[src]
        if seq >= expected + AHEAD_MAX:
            return self._discard("seq", message)
        if seq < expected:
            self._owe()  # R1: a duplicate: its sender may have missed our confirmation
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
        self._heard_of.add(src)
        self._read_from(src, seq)
        return seq in early

    def _discard(self, reason: str, message: CoMessage) -> bool:
        self.events.append(Discarded(reason, message))
        return False

    def _make_room(self, message: CoMessage) -> bool:
        """B2: the sender's share is full. Drop its early message with the highest number, or the new message, if its number is higher.
        Whether the new message is kept."""
        src, seq = message.src, message.seq
        early = self.early[src]
        latest = max(early, default=0)
        if latest < seq:
            return self._discard("overrun", message)
        self._drop("overrun", early[latest])
        return True

    def _claims(self, message: CoMessage, before: Sequence[int]) -> Claims | None:
        """The entries by which a message's vector exceeds that of its sender's previous message; they reveal loss
        (failure condition 2). None, if the vector is impossible."""
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
        """Whether the entries are possible: none names messages of ours that we never sent, or is further ahead
        of us than AHEAD_MAX."""
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
                self._heard_of.add(k)

    def _forget_rumours(self, src: int, number: int) -> None:
        """A member denies that it has used the numbers from `number` on, which another member claimed: they are not missing. If
        it has used them by now, it sends them until they are accepted."""
        self.known_sent[src] = max(number, self.expected[src], max(self.early[src], default=0) + 1)
        self._heard_of.add(src)

    def _read_from(self, src: int, seq: int) -> None:
        """Read the vectors of early messages from `seq` on, as long as each directly follows a message whose vector is known."""
        early = self.early[src]
        while (message := early.get(seq)) is not None:
            before = self._vector_before(src, seq)
            if before is None:
                if message.vector is None:
                    return
                before = self.vectors[src]  # the message has a full vector, which exceeds at least this one
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

    def _drop(self, reason: str, message: CoMessage) -> None:
        del self.early[message.src][message.seq]
        self._let_go(message.src)
        self._discard(reason, message)

    # A1, A2, R3: from `early` to `accepted`

    def _is_acceptable(self, claims: Claims) -> bool:
        """A1, for the next message of its sender: whether all messages that it names beyond its sender's previous
        message are accepted here."""
        expected = self.expected
        for k, number in claims:  # noqa: SIM110 — for every message, and a generator costs twice this
            if number > expected[k]:
                return False
        return True

    def _retry(self) -> None:
        """R3: accept early messages, until no further one can be accepted."""
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

    def _accept(self, message: CoMessage, claims: Claims) -> None:
        """A2: accept a message. `claims` are the entries by which its vector exceeds that of its sender's previous message."""
        src, seq = message.src, message.seq
        vector, rise, raised = self.vectors[src], self.known_accepted.rise, self._raised
        for k, number in claims:
            vector[k] = number
            if rise(k, src, number) == ALL_RISEN:
                raised.add(k)
        message.claims = claims
        self.expected[src] = seq + 1
        self._have_accepted(src, seq + 1)
        self.progress_at = self.now
        if src != self.me:
            self._accept_foreign(message, vector)
        self.accepted[src].append(message)
        last = self.events[-1] if self.events else None
        if type(last) is Reached and last.level == "causal":
            last.messages.append(message)
        else:
            self.events.append(Reached("causal", [message]))

    def _have_accepted(self, src: int, number: int) -> None:
        """Count our own acceptance at once, whether or not we have reported it."""
        if self.known_accepted.rise(src, self.me, number) == ALL_RISEN:
            self._raised.add(src)

    def _accept_foreign(self, message: CoMessage, vector: list[int]) -> None:
        src = message.src
        self.free_buffers[src] = message.free
        message.deps = tuple([number - 1 for number in vector])
        self._risen.add(src)
        self._owe()
        self.accepted_since[src] = self.accepted_since.get(src, 0) + 1

    def _owe(self) -> None:
        """Owe a confirmation from now on."""
        if not self.dirty and self.others:
            self.dirty = True
            self.dirty_since = self.now

    # P1 to P3: from `accepted` to `log` and out of it

    def _advance(self) -> None:
        """P1 to P3: confirm and acknowledge all messages that can be."""
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
        self._raised.clear()
        if len(log) > start:
            self.events.append(Reached("confirmed", log[start:]))
        self._acknowledge()

    def _confirmed(self, message: CoMessage, start: int) -> None:
        """P1: every member has accepted the message, so all know its vector."""
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
        """P3: acknowledge the first messages of the log, as far as every member is known to have confirmed them: either by the
        vectors of confirmed messages of all members, or by reports of all members. To combine some of one with some of the
        other would be wrong."""
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
        self.events.append(Reached("acknowledged", moved))


def precedes(one: CoMessage, other: CoMessage) -> bool:
    """P4: whether one message precedes the other, by their vectors alone, which also count their senders' own messages."""
    return one.seq <= other.deps[one.src]


def insert_causally(log: list[CoMessage], message: CoMessage, start: int = 0) -> None:
    """P5: insert a message before the first one that it precedes, or at the end. It precedes none before index `start`."""
    src, seq, deps = message.src, message.seq, message.deps
    at = next((at for at in range(start, len(log)) if seq <= log[at].deps[src]), len(log))
    for later in log[at:]:  # `precedes`, but inline: a log may be long
        assert later.seq > deps[later.src], f"no place for {message} in causal order"
    log.insert(at, message)


def _with(before: Sequence[int], claims: Claims) -> ExpectedNumbers:
    vector = list(before)
    for k, number in claims:
        vector[k] = number
    return tuple(vector)
