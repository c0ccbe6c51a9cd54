"""One member of one group, whole and sans I/O: bytes and time go in, effects come out.

    application  send ─▶ ┌───────┐ ─▶ ready().deliver
                         │ layer │
                         │  ...  │
                         │ layer │
    network   receive ─▶ └───────┘ ─▶ ready().send

The stack encodes and decodes at its bottom, counts what it cannot decode, and hands a layer's own
packets straight to that layer, so that nothing above ever sees or holds them.

What several layers have a say in has one owner, the stack: whether one may send (`writable`), whether what is sent
leaves at once (`passable`), what is held, who was met and where they are, who has left. Layers say what they know
and call a method; nobody writes these attributes from outside.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol

from inga.model.compiled import mypyc_attr, restore, state_of
from inga.model.delivery import Batch
from inga.model.errors import IngaError, NoMajority, UsageError, WouldBlock
from inga.model.event import Incident
from inga.model.notice import Notice
from inga.model.packet import Buffer, Packet
from inga.model.receipt import Receipt
from inga.model.steps import Book, Trace
from inga.model.view import View
from inga.stack.chain import Chain
from inga.stack.guard import Guard
from inga.stack.layer import Layer
from inga.stack.native import Direct, NativeWire, Outsider
from inga.stack.places import Places
from inga.stack.views import Views
from inga.wire.packet import Covers, group_id

EVERYBODY = None
"""The address of a datagram for all other members."""


Address = int | Outsider | Direct | None
"""A member's index, somebody who is no member, one by its address alone, or EVERYBODY."""

Datagram = Buffer | list[Buffer]

Done = Callable[[str | None], None]
"""Told of the end of a change that was asked for: nothing, or why it did not come about."""


class Rng(Protocol):
    """The only source of randomness that layers have."""

    def random(self) -> float: ...


class Ready:
    """Everything that happened since the last call, in the order to act on it."""

    __slots__ = ("deliver", "error", "notices", "send", "wake", "writable")

    def __init__(
        self,
        send: list[tuple[Address, Datagram]],
        deliver: list[Batch | View | Incident],
        wake: float | None,
        writable: bool,
        error: IngaError | None,
        notices: list[Notice],
    ) -> None:
        self.send = send  # 1. transmit
        self.deliver = deliver  # 2. hand to the application
        self.wake = wake  # 3. re-arm the single timer
        self.writable = writable  # 4. may send() proceed
        self.error = error  # 5. fatal: deliver first, then raise
        self.notices = notices  # for a person: who holds us up


@mypyc_attr(allow_interpreted_subclasses=True)
class Stack:
    """Layers from top to bottom, bound to each other.

    Drivers use the methods under "What drivers do" and read attributes; layers use those under "What layers do".
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        me: int,
        view: View,
        *,
        rng: Rng,
        group: str = "",
        lobby: str | None = None,
        trace: Trace | None = None,
        beneath: Iterable[str] = (),
        receipt: Callable[[], Receipt] = Receipt,
        datagram_max: int = 60 * 1024,
        now: float = 0.0,
        sizes: dict[int, int] | None = None,
        birth: int | None = None,
        places: Places | None = None,
        guard: Guard | None = None,
        covers: Covers = "all",
    ) -> None:
        """`group` is what members agree on, `lobby` what also those know who do not: packets that belong to no view
        carry that. `beneath` names services the network itself provides, such as "reliable" in a test.
        `sizes` is for one who joins a board: how many members the earlier views had whose packets still come. `birth`
        tells this process from others of its name, in a first view that members know before they have met. `places`: where
        somebody may be who is in no view of ours. `guard` seals what leaves, and opens what comes. `covers`: what of our
        packets their check covers; what others cover we check, unless nobody has a check."""
        self.guard = guard
        self.me = me
        self.member = view.members[me]
        self.now = now
        self.rng = rng
        self.trace = trace
        self.book: Book | None = None  # where our traces come from, if there may be more than one
        self.identity = group
        self.group = group_id(group)
        self.lobby = self.group if lobby is None else group_id(lobby)
        self.receipt = receipt
        self.datagram_max = datagram_max
        self.covers: Covers = covers if guard is None else "nothing"  # what is sealed needs no check
        self.writable = True
        self.passable = True  # what is passed down now leaves at once; else company is worth waiting for
        self.closing = False  # the view is being closed: nothing more is sent in it
        self.paused: NoMajority | None = None  # too few are here: nothing is sent for this reason
        self.leaving = False  # we have said goodbye: only the session still speaks
        self.is_homeless = False  # we are in no view any more: nothing is said in the one that was ours
        self.sizes = {view.number: len(view)} | (sizes or {})  # of the views whose packets are read
        self.report_wanted = False  # our counters are to be told to all at the end of this turn
        self.queued = 0  # bytes delivered and not yet taken
        self.skips = False  # our application waits for a state, or for who gets one: a view that closes does not wait for it
        self.delivered = 0  # packets, so far
        self.taken_count = 0  # how many of them the application has taken
        # packets sent: data (repairs included), control, repair, nack; bytes
        self.counts: Counter[str] = Counter()
        # datagrams and packets dropped, by reason
        self.rejected: Counter[str] = Counter() if guard is None else guard.rejected
        self.met: set[int] = set()  # members of whom something was accepted
        self.addresses: dict[int, Hashable] = {}  # the address of each member that was met
        self.doubted: set[int] = set()  # members that may be elsewhere than they were
        self.places = places or Places()  # where members of other views may be
        self.left: set[int] = set()  # members that have left or failed, for good
        self.failed: set[int] = set()  # of these, those that did not say so
        self.heard: list[float] = []  # of each member: when something of it came last
        self.wire = NativeWire(self)
        self.birth = birth
        self.views = Views(self)
        self.enter(view)
        if birth is not None and not view.attempt:
            self.wire.births = [birth if member == me else None for member in range(len(view))]
        self.beneath = frozenset(beneath)
        self._windows_open = True
        self.is_silenced = False  # layers of a closed view are at work
        self.to_send: list[tuple[Address, Datagram]] = []
        self.to_deliver: list[Batch | View | Incident] = []
        self._notices: list[Notice] = []
        self._error: IngaError | None = None
        self.bind(layers)
        for layer in reversed(self.layers):
            layer.view(view)
        self.review()

    # What drivers do

    def send(self, data: bytes, to: int | None = None, *, now: float) -> Receipt:
        """Queue one message for everybody else, or for the members in the bit set `to`."""
        return self.send_many([data], to, now=now)

    def send_many(self, payloads: list[bytes], to: int | None = None, *, now: float) -> Receipt:
        """Queue several; the receipt is that of the last."""
        self.refuse_if_failed()
        if not self.writable:
            self.views.refuse_if_paused()
            raise WouldBlock("the flow window is closed")
        if to is not None and (to <= 0 or to >> len(self.view)):
            raise UsageError(f"destinations {to:#b} are no members of a group of {len(self.view)}")
        self.now = now
        return self.entrance(payloads, to)

    def receive(self, batch: Iterable[tuple[Buffer, Hashable]], *, now: float) -> None:
        """Take datagrams and where they came from. Whatever they hold, nothing is raised."""
        self.now = now
        packets = self._read(batch)
        if packets:
            self._lowest(packets)

    def tick(self, now: float) -> None:
        """Let layers act whose time has come."""
        self.now = now
        for layer in self._timed:
            if layer.wake is not None and layer.wake <= now:
                layer.tick(now)
        if self.guard is not None and self.guard.wake is not None and self.guard.wake <= now:
            self.guard.tick(now)

    def taken(self, packets: list[Packet], *, now: float) -> None:
        """The application has begun these packets, in this order."""
        self.now = now
        for packet in packets:
            self.queued -= packet.size
        self.taken_count += len(packets)
        if self._error is not None:
            return
        if self.views.retired:
            packets = self.views.taken(packets)
        for take in self._takers:
            take(packets)

    def ready(self, *, now: float | None = None, turn: bool = True) -> Ready:
        """Hand over all effects since the last call, and forget them.

        `turn` ends the turn, so that what waited for company leaves; without it, only what is
        complete anyway, for a driver whose application is still at work in this turn: when to wake is told at its end.
        """
        if now is not None:
            self.now = now
        if not self.leaving:
            if self.views.next is not None:
                self.views.change()
            if turn:
                for end_turn in self._turners:
                    end_turn()
        wake = None
        for layer in self._timed if turn else ():
            due = layer.wake
            if due is not None and (wake is None or due < wake):
                wake = due
        if self.guard is not None:
            self.wire.seal(self.guard)
            if turn and self.guard.wake is not None:
                wake = self.guard.wake if wake is None else min(wake, self.guard.wake)
            self._notices += self.guard.told()
        ready = Ready(self.to_send, self.to_deliver, wake, self.writable, self._error, self._notices)
        self.to_send, self.to_deliver = [], []
        if self._notices:
            self._notices = []
        return ready

    def begin(
        self,
        bases: dict[str, list[int]] | None = None,
        *,
        cuts: Sequence[int] = (),
        now: float | None = None,
    ) -> None:
        """The first view counts from here: from nothing, or, for one that joins a board, from the others' bases. `cuts`: what
        each process had sent in views before."""
        if now is not None:
            self.now = now
        for earlier in self.chain.hooks("earlier"):
            earlier(cuts)
        self.views.begin(bases, cuts)

    def advance(self, now: float) -> None:
        """Set the time: for a driver that is about to call a layer directly, as calls of objects do."""
        self.now = now

    def propose(self, recipe: str, done: Done, *, now: float) -> None:
        """Ask for another recipe in the whole group; `done` is told how that ended."""
        self._hook("propose", now, "cannot be changed while the group runs")(recipe, done)

    def gate(self, state: str, *, now: float) -> None:
        """`open`: deliver here as packets come; `closed`: hold again what comes before its cause."""
        gate = self._hook("gate", now, "has no gate")
        if state not in ("open", "closed"):
            raise UsageError(f"a gate is 'open' or 'closed', not {state!r}")
        gate(state == "open")

    def delay(self, member: int, seconds: float, jitter: float, keep_order: bool, *, now: float) -> None:
        """For tests: what is sent to that member leaves so much later from now on."""
        self._hook("delay", now, "has no place for delays")(member, seconds, jitter, keep_order)

    def goodbye(self, *, now: float) -> None:
        """Tell everybody that we leave; what they still lack of us is lost. The driver goes on with `receive`,
        `tick` and `ready` until `has_left`, or as long as it likes: nothing but the goodbye is said any more."""
        self.now = now
        if not self.leaving:
            self.leaving = True
            if self.trace is not None and self._error is None:
                owed = 0 if self.settled and self.met.issuperset(self.peers) else None  # or nobody knows
                self.trace.row("leave", now, self.view.number, peer=self.me, n=owed)
            for goodbye in self.chain.hooks("goodbye"):
                goodbye()
            self.chain.mute()
            self._find_hooks()
            self.review()

    @property
    def has_left(self) -> bool:
        """Whether everybody who was met knows that we have left."""
        return self.leaving and all(layer.settled for layer in self.chain.having("settled") if layer.stays)

    @property
    def settled(self) -> bool:
        """Whether everybody who was met has all we sent, so that we may leave."""
        return all(layer.settled for layer in self.chain.having("settled"))

    def fit(self, granted: int) -> None:
        """Size windows by what the kernel granted a receiver, in charged bytes."""
        for fit in self.chain.hooks("fit"):
            fit(granted)

    def record(self, book: Book) -> None:
        """Let rows go to the traces of their processes: ours, and those that layers have besides."""
        self.book = book
        self.trace = book.trace(self.view.processes[self.me])
        for record in self.chain.hooks("record"):
            record(book)

    def recall(self, member: int, seq: int) -> Packet | None:
        """A packet that the application knows, if the order keeps it for errors that name it."""
        recall: Callable[[int, int], Packet | None] | None = self.chain.hook("recall")
        return None if recall is None else recall(member, seq)

    @property
    def has_output(self) -> bool:
        """Whether datagrams wait for the driver."""
        return bool(self.to_send)

    def layer(self, name: str) -> Layer | None:
        """The layer of that name, if the recipe has it."""
        return next((layer for layer in self.layers if layer.name == name), None)

    # What layers do: packets

    def reject(self, reason: str, packet: Packet | None = None) -> None:
        """Count something that cannot be right, and go on."""
        self.rejected[reason] += 1
        peer = None if packet is None or packet.src < 0 else packet.src
        self.row("rejected", peer, note=reason)

    def transmit(self, to: Address, datagram: Datagram) -> None:
        """Send bytes as they are, for a layer that has a wire format of its own."""
        self.to_send.append((to, datagram))

    def deliver(self, packets: list[Packet], sender: str | None = None) -> None:
        """Hand packets to the application: what the topmost layer passes up, of members unless it is said of whom."""
        names, queued, deliver = self.view.names, self.queued, self.to_deliver.append
        for packet in packets:
            queued += packet.size
            deliver(Batch(names[packet.src] if sender is None else sender, packet))
        self.queued = queued
        self.delivered += len(packets)

    def flush(self) -> None:
        """Let go of what was sent and waits for company."""
        for flush in self.chain.hooks("flush"):
            flush()

    def row(
        self, step: str, peer: int | None = None, *, n: int | None = None, note: str | None = None
    ) -> None:
        """A row of a full trace that is about no message."""
        trace = self.trace
        if trace is not None and trace.full and not self.is_silenced:
            trace.row(step, self.now, self.view.number, peer=peer, n=n, note=note)

    # What layers do: what is shared

    def review(self) -> None:
        """Something that decides whether one may send may have changed: draw the conclusions."""
        is_open = passable = True
        for window in self._windows:
            is_open = is_open and window.is_open
            passable = passable and window.is_passable
        self.passable = passable
        is_idle = self.closing or self.leaving or self.paused is not None
        self.writable = is_open and not is_idle and self._error is None
        if is_open is not self._windows_open:
            self._windows_open = is_open
            if not self.leaving:
                n = sum(window.outstanding for window in self._windows)
                self.row("window_opened" if is_open else "window_closed", n=n)
                for reviewed in self.chain.hooks("reviewed"):
                    reviewed(is_open)

    def want_report(self, wanted: bool = True) -> None:
        """Our counters are to be told to all at the end of this turn; or they were."""
        self.report_wanted = wanted

    @property
    def held(self) -> int:
        """Bytes that came and wait for something else."""
        held = 0
        for layer in self._holders:
            held += layer.held
        return held

    def meet(self, packet: Packet, *, fresh: bool = False) -> None:
        """A layer has accepted a packet of a member. Only what is new can tell that it is elsewhere now: what was
        said before can be said again by anybody, from anywhere."""
        src = packet.src
        self.met.add(src)
        if packet.where is not None and (fresh or not (src in self.addresses or src in self.doubted)):
            self.addresses[src] = packet.where
            self.doubted.discard(src)

    def doubt(self, member: int) -> None:
        """A member may not be where we think: what is for it goes to everybody until something new comes of it."""
        self.addresses.pop(member, None)
        self.doubted.add(member)

    def gone(self, member: int, *, failed: bool = False) -> None:
        """A member has left or failed, for good: tell the layers. Where a view without it follows, what it said last
        is still handed round; where none can, what is missing of it never comes."""
        self.left.add(member)
        if failed:
            self.failed.add(member)
        self.enter(self.view)
        if self.trace is not None:
            self.trace.row("crash" if failed else "leave", self.now, self.view.number, peer=member)
        for gone in self.chain.hooks("gone"):
            gone(member)
        if not self.views.follow:
            for bereft in self.chain.hooks("bereft"):
                bereft(member)
        self.review()

    def fail(self, error: IngaError) -> None:
        """Stop for good: deliver what there is, say goodbye, then raise."""
        if self._error is None:
            self._error = error
            self.goodbye(now=self.now)

    def notice(self, event: str, text: str) -> None:
        """Tell a person something, through the driver's log: `net.log` lists the events."""
        self._notices.append(Notice(event, text))

    # Inside

    def enter(self, view: View) -> None:
        """This view is in force from now on."""
        self.view = view
        self.wire.enter(view)
        self.heard += [self.now] * (len(view) - len(self.heard))
        self.others = [m for m in range(len(view)) if m != self.me]
        self.peers = [m for m in self.others if m not in self.left]  # members that have not left
        self.alone = not self.peers

    def bind(self, layers: Sequence[Layer]) -> None:
        """Bind these layers to each other and to this stack, if they fit together."""
        self.chain = Chain(self, layers, self.beneath)
        self._find_hooks()

    def _find_hooks(self) -> None:
        """Look up once the hooks that are called for every packet."""
        chain = self.chain
        self.layers, self.emit, self._lowest = chain.layers, chain.emit, chain.lowest
        self._read = chain.hook("read") or self.wire.read
        self.entrance: Callable[[list[bytes], int | None], Receipt] = chain.hook("send")
        self.store: Callable[[Packet], None] = chain.hook("store") or Packet.keep
        self._takers, self._turners = chain.hooks("taken"), chain.hooks("turn")
        self._timed, self._windows = chain.having("tick"), chain.having("is_open")
        self._holders = chain.having("held")

    def _hook(self, name: str, now: float, lacking: str) -> Any:
        """What a driver wants of one layer; an order without such a layer is refused with what it lacks."""
        self.refuse_if_failed()
        self.now = now
        hook = self.chain.hook(name)
        if hook is None:
            raise UsageError(f"order {self.view.recipe!r} {lacking}")
        return hook

    def refuse_if_failed(self) -> None:
        if self._error is not None:
            raise UsageError(f"the group has failed: {self._error}")

    def __getstate__(self) -> dict[str, Any]:
        state = {key: value for key, value in state_of(self).items() if key not in COMPUTED}
        state["to_send"] = [(address, joined(data)) for address, data in self.to_send]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state)
        self.trace = self.book = None
        self.receipt = Receipt
        self.wire.stack = self.views.stack = self
        self.bind(self.layers)
        self.views.revive()
        if self.leaving:
            self.chain.mute()
            self._find_hooks()


COMPUTED = frozenset(
    """trace book receipt chain store emit entrance _read _lowest _takers _turners _timed _windows _holders""".split()
)
"""What follows from the layers, and what a driver lends: no part of a stack that is copied or put away."""


def joined(datagram: Datagram) -> bytes:
    """A datagram in one piece that nobody else holds."""
    return b"".join(datagram) if isinstance(datagram, list) else bytes(datagram)
