"""Causal broadcast by sequence numbers: the CO protocol.

A message carries, for every member, the number its sender expected next from it. That one vector orders
messages, reveals loss and confirms receipt: order, reliability and flow in one layer, over any network that
sometimes delivers datagrams.

    accepted      it is the next of its sender, and nothing that precedes it is missing; the level `causal`
    confirmed     every member is known to have accepted it
    acknowledged  every member is known to have confirmed it

    data          numbered; what its sender expects of all members, as what rose since its last message
    nack          these numbers of yours are missing here                              (RET)
    confirmation  what we expect of all members, and what we have confirmed; may ask    (CNF)

Only data has numbers, is kept and is repeated, always as the same bytes. When everybody has acknowledged
everything, nobody sends anything.

From Sakamoto, Nakamura, Tachikawa and Takizawa, with the acceptance of a message made to wait for what precedes
it; docs/protocols/co.md has the rules, by the letters and numbers that the comments here name.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from inga.causality.knowledge import ALL_RISEN, FIRST, SAME, Knowledge
from inga.layers.flow import WARN_AFTER, charged, share_of
from inga.layers.numbers import check_delay, check_number, check_seconds
from inga.layers.order import Order
from inga.model.errors import Gap, UsageError, WireError
from inga.model.packet import HEADER_MAX, Packet, Runs
from inga.model.view import View
from inga.wire.bundle import count
from inga.wire.packet import RUNS_MAX

FULL_EVERY = 32
"""Messages of a sender of which one carries its whole vector: a receiver waits for no more to read one."""

AHEAD_MAX = 8192
"""How far beyond what we expect a number can be: twice what any window allows."""

WINDOW_MAX = AHEAD_MAX // 2

QUOTA_WINDOWS = 4
"""Windows of a sender that fit the buffers, unless told: three rounds trips until it is acknowledged, and one more."""

SMOOTH, RESEND_ROUNDS = 8, 3
"""The weight of the past in what we think confirmations take, and how many times that we wait for them."""

REPAIRS_MAX = 64
"""Messages sent again at once to one member."""

LEVELS = ("causal", "confirmed", "acknowledged")
SELF_KNOWLEDGE = ("eager", "printed")
EAGER_CONFIRM = ("never", "heard", "window")
GOODBYE = b"goodbye"

Claims = list[tuple[int, int]]
"""(member, number it was expected to send next) where that rose since the sender's message before."""

Entry = tuple[Packet, Claims]


class Co(Order):
    """All that one member knows. Numbers are those expected next; times are in seconds."""

    name = "co"
    id = 5
    provides = frozenset({"reliable", "flow", "fifo", "causal"})
    levels = LEVELS

    def __init__(
        self,
        *,
        deliver: str = "acknowledged",
        echo: bool = False,
        greet: bool = False,
        lossless: bool = False,
        queue_max: int = 16 << 20,
        bytes_max: int | None = None,
        window: int = 32,
        capacity: int | None = None,
        units: int = 1,
        self_knowledge: str = "eager",
        eager_confirm: str = "window",
        confirm_delay: float = 0.005,
        nack_delay: float = 0.001,
        nack_again: float = 0.02,
        resend: float = 0.05,
        poll: float = 0.05,
        wait_max: float = 1.0,
        patience: float = 60.0,
    ) -> None:
        """`lossless` says nothing but data: for networks in which nothing is lost, and levels mean nothing.
        `window` and `capacity` are in messages; `capacity` is for all senders together and is
        shared out equally. `units` is what a message counts against a buffer (H). With `eager`
        self-knowledge a member counts what it has accepted at once, not only once it has said so.
        `eager_confirm` says when to confirm before the delay is over: `never`; when every other member
        was `heard` since we last spoke; or when we have accepted half a `window` of one of them.
        """
        super().__init__(echo=echo)
        if deliver not in LEVELS:
            raise UsageError(f"co delivers at level {', '.join(LEVELS)}, not {deliver!r}")
        if self_knowledge not in SELF_KNOWLEDGE:
            raise UsageError(f"self_knowledge is {' or '.join(SELF_KNOWLEDGE)}, not {self_knowledge!r}")
        check_number("window", window, 1, WINDOW_MAX)
        check_number("units", units, 1, 1 << 20)
        if eager_confirm not in EAGER_CONFIRM:
            raise UsageError(f"eager_confirm is one of {', '.join(EAGER_CONFIRM)}, not {eager_confirm!r}")
        if capacity is not None:
            check_number("capacity", capacity, 1, 1 << 30)
        for name, seconds in (
            ("confirm_delay", confirm_delay),
            ("nack_again", nack_again),
            ("resend", resend),
            ("poll", poll),
            ("wait_max", wait_max),
            ("patience", patience),
        ):
            check_seconds(name, seconds)
        check_delay("nack_delay", nack_delay)
        self.deliver = deliver
        self.greet = greet
        self.lossless = lossless
        self.queue_max = queue_max  # unread bytes above which we report no free buffers
        self.window = window  # W
        self.capacity_wanted = capacity
        self.units = units  # H
        self.eager = self_knowledge == "eager"
        self.eager_confirm = eager_confirm
        self.confirm_delay = confirm_delay  # T_def: how long a confirmation waits for data to ride on
        self.nack_delay = nack_delay  # a message may only have been overtaken
        self.nack_again = nack_again  # T_ret
        self.resend = resend  # T_rtx
        self.poll = poll  # T_poll
        self.wait_max = wait_max  # repetitions double their wait up to this
        self.patience = patience  # without progress, after which a hole is lost for good
        self.bytes_max = bytes_max  # charged bytes on their way, if somebody said so

    def view(self, view: View) -> None:
        n = len(view)
        now = self.stack.now
        me = self.stack.me
        least = self.units * n
        self.capacity = self.capacity_wanted or QUOTA_WINDOWS * self.window * least  # C
        self.quota = self.capacity // n  # of each sender, in messages
        if self.capacity < least:
            raise UsageError(f"capacity is at least {least}, a message of each member, not {self.capacity}")

        def counts(sender: int, reporter: int) -> bool:
            return reporter != sender or not self.eager  # a sender has what it sent

        # what we know
        self.expected = [FIRST] * n  # REQ; our own entry is the number of our next message
        self.known_sent = [FIRST] * n  # GAP: exclusive bound of the numbers a member has used
        self.known_accepted = Knowledge(n, counts)  # AL
        self.known_confirmed = Knowledge(n, counts)  # PAL
        self.reported_confirmed = Knowledge(n)  # QAL
        self.free_buffers = [self.capacity] * n  # BUF
        self.vectors = [[FIRST] * n for _ in range(n)]  # of each sender's last accepted message
        # where messages wait
        self._waiting: deque[Packet] = deque()  # PEND
        self.unreleased: dict[int, Packet] = {}  # SL, by number
        # STASH, by number; the `ack` of those that can be read is set
        self.early: list[dict[int, Packet]] = [{} for _ in range(n)]
        self.accepted: list[deque[Entry]] = [deque() for _ in range(n)]  # RRL
        self.log: list[Packet] = []  # PRL
        self.held = [0] * n  # messages of each sender in early, accepted and log
        self._held = 0  # their sum
        self._ready: list[Packet] = []  # to be handed over
        # since the last message of ours
        self._risen: set[int] = set()  # members of which we expect more now
        self._charges: dict[int, int] = {}  # by number, of what is on its way
        self._on_way = 0
        self._sent_at: dict[int, float] = {}
        # stages
        self._raised: set[int] = set()  # senders for which `known_accepted` rose as a whole
        self._named = [FIRST] * n  # the highest that a confirmed message of another names
        # confirmations
        self.dirty = False
        self.dirty_since = now
        self.last_sent = now
        self.last_progress = now
        self._asked_at = now  # when we last polled
        self._poll_wait = self.poll
        self._told_free = self.capacity
        self._behind = False
        self._heard_since: set[int] = set()  # members whose data came since we last sent
        self._since: list[int] = [0] * n  # messages of each accepted since we last sent
        self._confirm_now = False
        # repair
        self._bound = [FIRST] * n  # up to which missing numbers were asked for
        self._found_at: dict[int, float] = {}  # members with new holes -> when to ask for them
        self._nack_at: dict[int, float] = {}  # members with holes -> when to ask again
        self._nack_wait = [self.nack_again] * n
        self._stuck_since: dict[int, float] = {}
        self._round = 0.0  # how long it takes until everybody has confirmed a message of ours, smoothed
        self._resend_at: float | None = None
        self._resend_wait = self.resend
        # people
        self._blocked_since: float | None = None
        self._warned = False
        self._unheard = set(self.stack.others()) if self.greet else set()
        self._greet_at: float | None = now if self._unheard else None
        self._greet_wait = 0.02
        self._me = me
        self._admit()
        self._rearm()

    # Sending

    def down(self, batch: list[Packet]) -> None:
        self._waiting.extend(batch)  # S1
        self._settle()

    def turn(self) -> None:
        if self.eager_confirm == "heard":
            self._confirm_now = self._heard_since.issuperset(self.stack.peers())
        if self.dirty and self._confirm_now and not (self.stack.alone or self.lossless):
            self._confirm(None)
            self._settle()
            if self.stack.passable and not self._waiting:
                self.wake = self.stack.now  # what waits above for company may leave now

    def _pump(self) -> None:
        """S2, S3: send what flow control lets through."""
        out: list[Packet] = []
        while self._waiting and self._may_send():
            packet = self._waiting.popleft()
            self._number(packet)
            out.append(packet)
            self._accept(packet, packet.src, self._own_claims(packet))
            if self._raised:
                self._advance()
        if out and not self.stack.alone:
            self.below(out)

    def _may_send(self) -> bool:
        me = self._me
        if self.held[me] >= self.quota:
            return False
        if self.stack.alone:
            return True
        free = min([self._free(), *[self.free_buffers[m] for m in self.stack.peers()]])
        window = min(self.window, free // (self.units * len(self.expected)))
        if self.expected[me] >= self.known_accepted.lowest[me] + window:
            return False
        if self.bytes_max is None or not self._on_way:
            return True
        next_one = len(self._waiting[0].body) if self._waiting else 0
        return self._on_way + charged(next_one + HEADER_MAX) <= self.bytes_max

    def _number(self, packet: Packet) -> None:
        """Give a message its number and its vector, the same for all its copies, for ever."""
        me, stack = self._me, self.stack
        seq = packet.seq = self.expected[me]
        if (seq - 1) % FULL_EVERY:
            before = self.vectors[me]
            packet.delta = tuple([(k, self.expected[k] - before[k]) for k in sorted(self._risen)])
            packet.ack = None
        else:
            packet.ack = tuple(self.expected)
        packet.free = self._told_free = self._free()
        packet.deps = tuple([number - 1 for number in self.expected])
        packet.partial = packet.urgent = False
        self._spoke()
        self._sent(packet)
        if not stack.alone:
            self.unreleased[seq] = packet
            self._sent_at[seq] = stack.now
            charge = self._charges[seq] = charged(len(packet.body) + HEADER_MAX)
            self._on_way += charge
            if self._resend_at is None:
                self._resend_wait = self._resend_after()
                self._resend_at = stack.now + self._resend_wait

    def _own_claims(self, packet: Packet) -> Claims:
        me = self._me
        claims = [(k, self.expected[k]) for k in sorted(self._risen)]
        claims.append((me, packet.seq))
        self._risen.clear()
        return claims

    def _spoke(self) -> None:
        self.last_sent = self.stack.now
        self._heard_since.clear()
        self._since = [0] * len(self._since)
        self._confirm_now = False

    # Receiving data

    def up(self, batch: list[Packet]) -> None:
        if self._unheard:
            self._unheard.difference_update([packet.src for packet in batch])
        for packet in batch:
            self._receive(packet)
        self._settle()

    def _receive(self, packet: Packet) -> None:
        src, seq = packet.src, packet.seq
        expected = self.expected[src]
        if not seq or packet.free is None or (packet.ack is None and packet.delta is None):
            self.stack.reject("malformed", packet)
            return
        if seq >= expected + AHEAD_MAX:
            self.stack.reject("seq", packet)
            return
        self._received(packet, "receive")
        self._heard_since.add(src)
        if seq < expected or seq in self.early[src]:
            if seq < expected:
                self._owe()  # R1: its sender may have missed that we have it
            self._received(packet, "duplicate")
            return
        if seq >= self.known_sent[src]:
            self.known_sent[src] = seq + 1  # R2: failure condition 1
        if self.held[src] >= self.quota and not self._make_room(src, seq):
            return
        if seq == expected:
            claims = self._claims(packet, self.vectors[src])
            if claims is None:
                return
            if self._is_acceptable(claims):
                self._hold_one(src)
                self._accept(packet, src, claims)
                return
        self._keep(packet)

    def _keep(self, packet: Packet) -> None:
        """It came before something that precedes it."""
        packet.keep()
        self._hold_one(packet.src)
        self.early[packet.src][packet.seq] = packet
        self._received(packet, "hold")
        self._read_from(packet.src, packet.seq)

    def _make_room(self, src: int, seq: int) -> bool:
        """B2: a sender that fills its share makes room with its own latest, or is not kept."""
        early = self.early[src]
        latest = max(early, default=0)
        self.stack.counts["overrun"] += 1
        # What is not kept is asked for again, but not before there can be room.
        self._nack_at.setdefault(src, self.stack.now + self.nack_again)
        self._bound[src] = max(self._bound[src], seq + 1)
        if latest < seq:
            return False
        self._drop(src, latest)
        return True

    def _claims(self, packet: Packet, before: Sequence[int]) -> Claims | None:
        """What its vector says beyond that of its sender's message before it; failure condition 2 for those.
        None, if it cannot be right: then it is dropped."""
        src = packet.src
        if packet.ack is not None:
            claims = [(k, number) for k, number in enumerate(packet.ack) if number > before[k] and k != src]
            sound = packet.ack[src] == packet.seq
        else:
            assert packet.delta is not None
            claims = [(k, before[k] + rise) for k, rise in packet.delta]
            sound = True
        if not sound or not self._are_possible(claims):
            self.stack.reject("forged", packet)
            return None
        self._learn_sent(claims)
        claims.append((src, packet.seq))
        return claims

    def _are_possible(self, claims: Iterable[tuple[int, int]]) -> bool:
        """Nobody has accepted what we never sent, nor can be so far ahead of us."""
        expected, me = self.expected, self._me
        for k, number in claims:
            if number > expected[k] and (k == me or number > expected[k] + AHEAD_MAX):
                return False
        return True

    def _learn_sent(self, claims: Iterable[tuple[int, int]]) -> None:
        known_sent = self.known_sent
        for k, number in claims:
            if number > known_sent[k]:
                known_sent[k] = number

    def _read_from(self, src: int, seq: int) -> None:
        """Read the vectors of early messages, as far as each follows one that could be read."""
        early = self.early[src]
        while (packet := early.get(seq)) is not None:
            if packet.ack is None:
                before = self._vector_before(src, seq)
                if before is None:
                    return
                claims = self._claims(packet, before)
                if claims is None:
                    self._drop(src, seq)
                    return
                packet.ack = _with(before, claims)
            elif not self._is_sound(packet):
                self._drop(src, seq)
                return
            else:
                self._learn_sent(enumerate(packet.ack))
            seq += 1
            if seq in early and early[seq].ack is not None:
                return

    def _vector_before(self, src: int, seq: int) -> Sequence[int] | None:
        if seq == self.expected[src]:
            return self.vectors[src]
        previous = self.early[src].get(seq - 1)
        return None if previous is None else previous.ack

    def _is_sound(self, packet: Packet) -> bool:
        assert packet.ack is not None
        others = [(k, number) for k, number in enumerate(packet.ack) if k != packet.src]
        if packet.ack[packet.src] == packet.seq and self._are_possible(others):
            return True
        self.stack.reject("forged", packet)
        return False

    def _drop(self, src: int, seq: int) -> None:
        del self.early[src][seq]
        self._let_go(src)

    # Acceptance

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
                while (packet := early.get(self.expected[src])) is not None:
                    claims = self._claims(packet, self.vectors[src])
                    if claims is None:
                        self._drop(src, packet.seq)
                        break
                    if not self._is_acceptable(claims):
                        if packet.ack is None:
                            self._read_from(src, packet.seq)
                        break
                    del early[packet.seq]
                    self._accept(packet, src, claims)
                    again = True

    def _accept(self, packet: Packet, src: int, claims: Claims) -> None:
        """A2. `claims` are what its vector says beyond its sender's message before it."""
        me, stack = self._me, self.stack
        seq = packet.seq
        vector, rise, raised = self.vectors[src], self.known_accepted.rise, self._raised
        for k, number in claims:
            vector[k] = number
            if rise(k, src, number) == ALL_RISEN:
                raised.add(k)
        self.expected[src] = seq + 1
        if self.eager and rise(src, me, seq + 1) == ALL_RISEN:
            raised.add(src)
        self.last_progress = stack.now
        if src == me:
            self._hold_one(me)
            if not self.eager:
                self._owe()
            if packet.receipt is not None:
                packet.receipt.reach("causal")
        else:
            self._accept_foreign(packet, src, vector)
        self.accepted[src].append((packet, claims))
        self._row("accept", packet, packet.count)
        if self.deliver == "causal":
            self._ready.append(packet)

    def _accept_foreign(self, packet: Packet, src: int, vector: list[int]) -> None:
        assert packet.free is not None
        self.free_buffers[src] = packet.free
        self._risen.add(src)
        packet.deps = tuple([number - 1 for number in vector])
        if self.stack.trace is not None:
            self._count(packet)
        if self.deliver != "causal" and not packet.bare:
            self.stack.store(packet)
        self._owe()
        self._since[src] += 1
        if 2 * self._since[src] >= self.window and self.eager_confirm == "window":
            self._confirm_now = True  # its sender may soon have to wait for us
        if self._nack_at:
            self._nack_wait[src] = self.nack_again
            self._stuck_since.pop(src, None)
        if self.known_sent[src] <= packet.seq:
            self.known_sent[src] = packet.seq + 1

    def _count(self, packet: Packet) -> None:
        """How many messages of the application it completes. What is no bundle is ordered, and not handed over."""
        if packet.bare:
            return
        if packet.frag is not None:
            packet.count = int(packet.frag[0] == packet.frag[1] - 1)  # only single messages are cut
            return
        try:
            packet.count = count(packet.body)
        except WireError as error:
            self.stack.reject(error.reason, packet)
            packet.bare = True

    # Stages

    def _advance(self) -> None:
        """P1 to P3: confirm and acknowledge what can be."""
        me, log = self._me, self.log
        start = len(log)
        lowest = self.known_accepted.lowest
        for src in sorted(self._raised):
            bound = lowest[src]
            queue = self.accepted[src]
            while queue and queue[0][0].seq < bound:
                self._confirmed(*queue.popleft(), start)
            if self.reported_confirmed.rise(src, me, bound) != SAME:  # P2
                self._owe()
        if me in self._raised:
            self._release_own(lowest[me])
        self._raised.clear()
        if len(log) > start:
            self._reach(log[start:], "confirm", "confirmed")
        self._acknowledge()

    def _confirmed(self, packet: Packet, claims: Claims, start: int) -> None:
        """P1: every member has it, so its vector is known to all."""
        src, named = packet.src, self._named
        rise = self.known_confirmed.rise
        for k, number in claims:
            rise(k, src, number)
            if k != src and number > named[k]:
                named[k] = number
        if named[src] <= packet.seq:
            self.log.append(packet)  # no confirmed message follows it
        else:
            insert_causally(self.log, packet, start)

    def _acknowledge(self) -> None:
        """P3: everybody knows that everybody has it. The two ways to know must not be mixed."""
        by_data, by_word = self.known_confirmed.lowest, self.reported_confirmed.lowest
        done = 0
        for packet in self.log:
            src = packet.src
            if packet.seq >= by_data[src] and packet.seq >= by_word[src]:
                break
            done += 1
        if not done:
            return
        moved = self.log[:done]
        del self.log[:done]
        for packet in moved:
            self._let_go(packet.src)
        self._reach(moved, "acknowledge", "acknowledged")
        if self._told_free < self.units * self.window * len(self.expected) and self._free() > self._told_free:
            self._owe()  # somebody may wait for the room we have again

    def _reach(self, packets: list[Packet], step: str, level: str) -> None:
        """These got to a level, in this order."""
        self.last_progress = self.stack.now
        me = self._me
        if self.stack.trace is not None:
            for packet in packets:
                self._row(step, packet, packet.count)
        for packet in packets:
            if packet.src == me and packet.receipt is not None:
                packet.receipt.reach(level)
        if self.deliver == level:
            self._ready += packets

    def _release_own(self, bound: int) -> None:
        """L5: what everybody has, nobody will ask for."""
        unreleased, sent = self.unreleased, None
        for seq in list(unreleased):  # in the order of their numbers
            if seq >= bound:
                break
            del unreleased[seq]
            sent = self._sent_at.pop(seq)
            self._on_way -= self._charges.pop(seq)
        if sent is not None:
            self._round += (self.stack.now - sent - self._round) / SMOOTH
        self._resend_wait = self._resend_after()
        self._resend_at = self.stack.now + self._resend_wait if unreleased else None

    def _resend_after(self) -> float:
        """How long we wait for confirmations: longer than they usually take, on a busy machine too."""
        return max(self.resend, RESEND_ROUNDS * self._round)

    def _hand_over(self) -> None:
        """Give the application what reached its level; our own only if it is wanted."""
        me = self._me
        out = []
        for packet in self._ready:
            if packet.src != me:
                if not self._is_bare(packet):
                    out.append(packet)
            elif self.echo or (packet.dst is not None and packet.dst >> me & 1):
                copy = packet.copy_to(me)
                copy.count, copy.deps = packet.count, packet.deps
                out.append(copy)
        self._ready = []
        if out:
            self._delivered(out)
            self.above(out)

    # Control messages

    def control(self, packet: Packet) -> None:
        src = packet.src
        self._unheard.discard(src)
        ack, confirmed = packet.ack, packet.buf
        if (
            ack is None
            or packet.free is None
            or (packet.runs is None and (confirmed is None or not packet.seq))
        ):
            self.stack.reject("malformed", packet)
            return
        if not self._are_possible(enumerate(ack)) or packet.seq >= self.expected[src] + AHEAD_MAX:
            self.stack.reject("forged", packet)
            return
        self._merge(packet, ack, confirmed)
        if packet.ext == GOODBYE:
            self.stack.gone(src)
        elif packet.runs is not None:
            self._repair(src, packet.runs)
        elif packet.urgent:
            self._confirm(src)  # K4
        self._settle()

    def _merge(self, packet: Packet, ack: Sequence[int], confirmed: Sequence[int] | None) -> None:
        """K2"""
        src = packet.src
        assert packet.free is not None
        moved = SAME
        for k, number in enumerate(ack):
            risen = self.known_accepted.rise(k, src, number)
            if risen == ALL_RISEN:
                self._raised.add(k)
            moved = max(moved, risen)
        self._learn_sent(enumerate(ack))
        if confirmed is not None and packet.runs is None:
            for k, number in enumerate(confirmed):
                moved = max(moved, self.reported_confirmed.rise(k, src, number))
            self._learn_sent([(src, packet.seq)])
        self.free_buffers[src] = packet.free
        if moved != SAME:
            self.last_progress = self.stack.now

    def _confirm(self, to: int | None, *, poll: bool = False) -> None:
        """Tell one member, or all, what we have. Telling all settles what we owe."""
        self._know_ourselves()
        packet = self._packet(to)
        packet.buf = tuple(self.known_accepted.lowest)
        packet.seq = self.expected[self._me]
        packet.urgent = poll
        if to is None:
            self.dirty = False
            self._told_free = packet.free or 0
            self._spoke()
        self._control_row("poll" if poll else "control", to)
        self.stack.emit([packet])

    def _know_ourselves(self) -> None:
        """K1: what we are about to tell others, we know as well."""
        for k, number in enumerate(self.expected):
            if self.known_accepted.rise(k, self._me, number) == ALL_RISEN:
                self._raised.add(k)
        if self._raised:
            self._advance()

    def _packet(self, to: int | None) -> Packet:
        packet = Packet(self._me, self.stack.view.number, kind=self.id)
        packet.to = to
        packet.ack = tuple(self.expected)
        packet.free = self._free()
        return packet

    def _owe(self) -> None:
        if not self.dirty:
            self.dirty = True
            self.dirty_since = self.stack.now

    # Repair

    def missing(self, src: int) -> Runs:
        """L1: maximal runs of numbers that a member is known to have used and we lack."""
        early, low = self.early[src], self.expected[src]
        runs = []
        for seq in sorted(early):
            if seq > low:
                runs.append((low, seq))
            low = seq + 1
        if low < self.known_sent[src]:
            runs.append((low, self.known_sent[src]))
        return tuple(runs)

    def _ask(self) -> None:
        """L2: ask for what is newly known to be missing, and after a while for all of it again."""
        now = self.stack.now
        for src in self.stack.peers():
            if self.known_sent[src] <= self.expected[src]:
                if src in self._nack_at:
                    del self._nack_at[src]
                    self._stuck_since.pop(src, None)
                self._found_at.pop(src, None)
                continue
            if self.known_sent[src] > self._bound[src]:
                self._ask_for_new(src, now)
            else:
                self._found_at.pop(src, None)
            if self._nack_at.get(src, now + 1) <= now:
                runs = self.missing(src)
                if runs:
                    self._nack(src, runs, again=True)
                else:
                    del self._nack_at[src]  # all has come, and waits for what others sent

    def _ask_for_new(self, src: int, now: float) -> None:
        """Ask for what is found to be missing, unless it was only overtaken: then it comes in a moment."""
        if self._found_at.setdefault(src, now + self.nack_delay) > now:
            return
        del self._found_at[src]
        asked = self._bound[src]
        runs = tuple([(max(low, asked), high) for low, high in self.missing(src) if high > asked])
        self._bound[src] = self.known_sent[src]
        if runs:
            self._nack(src, runs, again=False)

    def _nack(self, src: int, runs: Runs, *, again: bool) -> None:
        now = self.stack.now
        since = self._stuck_since.setdefault(src, now)
        if now - since > self.patience:
            name = self.stack.view.names[src]
            self._control_row("gave_up", src)
            self.stack.fail(Gap(f"{name} did not repair what was lost within {self.patience:g} s"))
            return
        packet = self._packet(src)
        packet.runs = runs[:RUNS_MAX]
        self.stack.counts["nack"] += 1
        numbers = sum(high - low for low, high in runs)
        if not again:
            self._control_row("gap", src, numbers)
        self._control_row("nack", src, numbers)
        self.stack.emit([packet])
        wait = self._nack_wait[src]
        if again:
            self._nack_wait[src] = min(2 * wait, self.wait_max)
        if again or src not in self._nack_at:
            self._nack_at[src] = now + wait * (1 + 0.25 * self.stack.rng.random())

    def _repair(self, member: int, runs: Runs) -> None:
        """L3: numbers we no longer keep are everywhere, so whoever asks for them did so long ago."""
        lacking = [
            packet for seq, packet in self.unreleased.items() if any(low <= seq < high for low, high in runs)
        ]
        self._send_again(member, lacking)

    def _resend_all(self, now: float) -> None:
        """L4: to each member, what it is not known to have though it was sent long enough ago."""
        row = self.known_accepted.rows[self._me]
        old = now - self._resend_after()
        for member in self.stack.peers():
            known = row[member]
            self._send_again(
                member,
                [p for seq, p in self.unreleased.items() if seq >= known and self._sent_at[seq] <= old],
            )
        self._resend_wait = min(2 * self._resend_wait, self.wait_max)
        self._resend_at = now + self._resend_wait * (1 + 0.25 * self.stack.rng.random())

    def _send_again(self, member: int, packets: list[Packet]) -> None:
        batch = [packet.copy_to(member) for packet in packets[:REPAIRS_MAX]]
        if batch:
            self.stack.counts["repair"] += len(batch)
            for packet in batch:
                self._control_row("repair", member, packet.seq)
            self.stack.emit(batch)

    # Buffers

    def _free(self) -> int:
        """What we report as room: none, while the application is far behind with reading."""
        unread = self.stack.queued
        self._behind = unread >= (self.queue_max // 2 if self._behind else self.queue_max)
        return 0 if self._behind else self.capacity - self._held

    def _hold_one(self, src: int) -> None:
        self.held[src] += 1
        self._held += 1

    def _let_go(self, src: int) -> None:
        self.held[src] -= 1
        self._held -= 1

    def taken(self, packets: list[Packet]) -> None:
        if self.stack.trace is not None:
            for packet in packets:
                if packet.src != self._me:
                    self._took(packet)
        if self._behind and self._free():
            self._owe()
            self._settle()

    def fit(self, granted: int) -> None:
        self.bytes_max = share_of(granted, len(self.stack.view))

    # Time

    def tick(self, now: float) -> None:
        if self.dirty and max(self.last_sent, self.dirty_since) + self.confirm_delay <= now:
            self._confirm(None)  # K1
        if self._is_unfinished() and self._poll_due() <= now:
            self._ask_all(now)  # K3
        if self._resend_at is not None and self._resend_at <= now:
            self._resend_all(now)
        if self._greet_at is not None and self._greet_at <= now:
            self._greet(now)
        self._settle()

    def _poll_due(self) -> float:
        if self.last_progress > self._asked_at:
            self._poll_wait = self.poll
        return max(self.last_progress, self._asked_at) + self._poll_wait

    def _ask_all(self, now: float) -> None:
        self._asked_at = now
        self._poll_wait = min(2 * self._poll_wait, self.wait_max)
        if self.stack.alone:
            return
        self._confirm(None, poll=True)

    def _greet(self, now: float) -> None:
        """Before anything else: find out who is there."""
        if not self._unheard:
            self._greet_at = None
            return
        packet = self._packet(None)
        packet.buf, packet.seq, packet.urgent = (
            tuple(self.known_accepted.lowest),
            self.expected[self._me],
            True,
        )
        self.stack.emit([packet])
        self._greet_wait = min(2 * self._greet_wait, self.wait_max)
        self._greet_at = now + self._greet_wait * (1 + 0.25 * self.stack.rng.random())

    def _is_unfinished(self) -> bool:
        if self._waiting or self.unreleased or self._held or not self.stack.passable:
            return True
        return self._is_missing_something()

    def _is_missing_something(self) -> bool:
        expected = self.expected
        return any(self.known_sent[m] > expected[m] for m in self.stack.peers())

    def _settle(self) -> None:
        """After every event: whatever follows from what is known by now."""
        if any(self.early):
            self._retry()
        if self._raised:
            self._advance()
        elif self.log:
            self._acknowledge()
        self._pump()
        if self._raised:
            self._advance()
        if not self.lossless:
            self._ask()
        if self._ready:
            self._hand_over()
        self._admit()
        self._rearm()

    def _admit(self) -> None:
        """Tell those above whether more may come, and a person who lets us wait."""
        stack = self.stack
        stack.passable = not self._waiting and self._may_send()
        closed = bool(self._waiting)
        stack.writable = not closed
        if not closed:
            if self._blocked_since is not None:
                self._control_row("window_opened", None, len(self.unreleased))
            self._blocked_since = None
            return
        if self._blocked_since is None:
            self._blocked_since, self._warned = stack.now, False
            self._control_row("window_closed", None, len(self.unreleased))
        elif not self._warned and stack.now - self._blocked_since >= WARN_AFTER:
            self._warned = True
            stack.notice(f"sending has waited {WARN_AFTER:g} s for {', '.join(self._slowest())}")

    def _slowest(self) -> list[str]:
        row, names = self.known_accepted.rows[self._me], self.stack.view.names
        peers = self.stack.peers()
        least = min([row[m] for m in peers], default=0)
        return [names[m] for m in peers if row[m] == least]

    def _rearm(self) -> None:
        if self.stack.alone or self.lossless:
            self.wake = None
            return
        due = [*self._nack_at.values(), *self._found_at.values()]
        if self.dirty:
            due.append(max(self.last_sent, self.dirty_since) + self.confirm_delay)
        if self._is_unfinished():
            due.append(self._poll_due())
        if self._resend_at is not None:
            due.append(self._resend_at)
        if self._greet_at is not None:
            due.append(self._greet_at)
        self.wake = min(due, default=None)

    # Leaving, and changing to another order

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def sent(self) -> list[int]:
        return [self.expected[self._me] - 1] * len(self.expected)

    def has(self, counts: list[int]) -> bool:
        """All of it, and acknowledged: what the next view begins with, everybody has."""
        come = all(number > count for number, count in zip(self.expected, counts, strict=True))
        return come and not self._held

    @property
    def settled(self) -> bool:
        """Whether everybody who was ever heard has all we sent, and all of us who are here know it."""
        peers = self.stack.peers()
        heard = [m for m in peers if m in self.stack.addresses]
        sent = self.expected[self._me]
        if not heard:
            return not self._waiting and (not peers or sent == FIRST)
        row = self.known_accepted.rows[self._me]
        if self._waiting or any(row[m] < sent for m in heard):
            return False
        return len(heard) < len(peers) or not (self._held or self.dirty or self._is_missing_something())

    def goodbye(self) -> None:
        packet = self._packet(None)
        packet.buf, packet.seq = tuple(self.known_accepted.lowest), self.expected[self._me]
        packet.ext = GOODBYE
        self.stack.emit([packet])
        self.dirty = False
        self._nack_at.clear()
        self._found_at.clear()
        self._resend_at = self._greet_at = self.wake = None

    def gone(self, member: int) -> None:
        """Nobody waits for the word of one who has left."""
        self._unheard.discard(member)
        self._nack_at.pop(member, None)
        self._found_at.pop(member, None)
        self._raised.update(self.known_accepted.forget(member))
        self.known_confirmed.forget(member)
        self.reported_confirmed.forget(member)
        self._settle()

    def _control_row(self, step: str, peer: int | None, n: int | None = None) -> None:
        trace = self.stack.trace
        if trace is not None and trace.full:
            trace.row(step, self.stack.now, self.stack.view.number, peer=peer, n=n)


def precedes(one: Packet, other: Packet) -> bool:
    """P4: whether one caused the other, by their vectors alone."""
    if one.src == other.src:
        return one.seq < other.seq
    assert other.deps is not None
    return one.seq <= other.deps[one.src]


def insert_causally(log: list[Packet], packet: Packet, start: int = 0) -> None:
    """P5: put a message before the first that it precedes, or last; what is before `start` it does not precede."""
    at = start
    while at < len(log) and not precedes(packet, log[at]):
        at += 1
    assert not any(precedes(later, packet) for later in log[at:]), f"no place for {packet} in causal order"
    log.insert(at, packet)


def _with(before: Sequence[int], claims: Claims) -> tuple[int, ...]:
    vector = list(before)
    for k, number in claims:
        vector[k] = number
    return tuple(vector)
