"""One whole member of one group, without I/O: bytes and time go in, effects come out.

    application  send ─▶ ┌───────┐ ─▶ ready().deliver
                         │ layer │
                         │  ...  │
                         │ layer │
    network   receive ─▶ └───────┘ ─▶ ready().send

The stack encodes and decodes at its bottom, counts the datagrams that it cannot decode, and passes a layer's own
packets straight to that layer, so that no layer above it sees or holds them.

Facts to which several layers contribute have one owner, the stack: whether the application may send (`writable`), whether a packet
leaves at once (`passable`), what is held, which members were met and their addresses, which members have left. Layers keep what
they know in attributes of their own and call a method of the stack; they do not write its attributes.
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
"""A member's index, a process that is not a member, one process by its address alone, or EVERYBODY."""

Datagram = Buffer | list[Buffer]

Done = Callable[[str | None], None]
"""Called when a requested change has ended: with None if it took place, else with the reason why not."""


class Rng(Protocol):
    """The only source of randomness for layers."""

    def random(self) -> float: ...


class Ready:
    """All effects since the last call, in the order in which the driver acts on them."""

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
        self.notices = notices  # sentences for a person, such as which members hold us up


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
        """`group` is the text that all members agree on (name, order, objects); `lobby` is known to strangers as well, and its hash
        is carried by packets that belong to no view. `beneath` names services that the network itself provides, such as "reliable"
        in a test. `sizes` is for a newcomer on a board: the number of members in each earlier view whose packets may still arrive.
        `birth` tells this process from others of its name, in a first view with listed members. `places`: addresses of
        processes that are not in our view. `guard` seals outgoing datagrams and opens incoming ones. `covers`: the part of our packets
        that their checksum covers; checksums of others are verified, unless this is "nothing"."""
        self.guard = guard
        self.me = me
        self.member = view.members[me]
        self.now = now
        self.rng = rng
        self.trace = trace
        self.book: Book | None = None  # the source of our traces, if there may be more than one
        self.identity = group
        self.group = group_id(group)
        self.lobby = self.group if lobby is None else group_id(lobby)
        self.receipt = receipt
        self.datagram_max = datagram_max
        self.covers: Covers = covers if guard is None else "nothing"  # sealed datagrams need no checksum
        self.writable = True
        self.passable = True  # a packet passed down now leaves at once; if not, a bundle may as well wait for more messages
        self.closing = False  # the view is being closed: the application may send nothing more in it
        self.paused: NoMajority | None = None  # too few members are here, so the application may send nothing
        self.leaving = False  # we have said goodbye: only the session still sends
        self.is_homeless = False  # we are in no view any more: nothing is sent in the one that was ours
        self.sizes = {view.number: len(view)} | (sizes or {})  # members of each view whose packets are read
        self.report_wanted = False  # our counters have to be sent to all at the end of this turn
        self.queued = 0  # bytes delivered and not yet taken
        # Our application waits for a state, or for a newcomer that receives one: a closing view does not wait for it to read.
        self.skips = False
        self.delivered = 0  # packets delivered so far
        self.taken_count = 0  # how many of them the application has taken
        # packets sent: data (repairs included), control, repair, nack; bytes
        self.counts: Counter[str] = Counter()
        # datagrams and packets dropped, by reason
        self.rejected: Counter[str] = Counter() if guard is None else guard.rejected
        self.met: set[int] = set()  # members of which a packet was accepted
        self.addresses: dict[int, Hashable] = {}  # the address of each member that was met
        self.doubted: set[int] = set()  # members that may have another address by now
        self.places = places or Places()  # addresses of processes that are not in our view
        self.left: set[int] = set()  # members that have left or failed, for good
        self.failed: set[int] = set()  # those of them that said no goodbye
        self.heard: list[float] = []  # for each member: when a packet of it last arrived
        self.wire = NativeWire(self)
        self.birth = birth
        self.views = Views(self)
        self.enter(view)
        if birth is not None and not view.attempt:
            self.wire.births = [birth if member == me else None for member in range(len(view))]
        self.beneath = frozenset(beneath)
        self._windows_open = True
        self.is_silenced = False  # layers of a closed view are running
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
        """Queue one message for all other members, or for those in the bit set `to`."""
        return self.send_many([data], to, now=now)

    def send_many(self, payloads: list[bytes], to: int | None = None, *, now: float) -> Receipt:
        """Queue several messages; the receipt is that of the last."""
        self.refuse_if_failed()
        if not self.writable:
            self.views.refuse_if_paused()
            raise WouldBlock("the flow window is closed")
        if to is not None and (to <= 0 or to >> len(self.view)):
            raise UsageError(f"destinations {to:#b} are no members of a group of {len(self.view)}")
        self.now = now
        return self.entrance(payloads, to)

    def receive(self, batch: Iterable[tuple[Buffer, Hashable]], *, now: float) -> None:
        """Take datagrams with their source addresses. Whatever they contain, nothing is raised."""
        self.now = now
        packets = self._read(batch)
        if packets:
            self._lowest(packets)

    def tick(self, now: float) -> None:
        """Call `tick` of the layers whose `wake` has come, and of the guard."""
        self.now = now
        for layer in self._timed:
            if layer.wake is not None and layer.wake <= now:
                layer.tick(now)
        if self.guard is not None and self.guard.wake is not None and self.guard.wake <= now:
            self.guard.tick(now)

    def taken(self, packets: list[Packet], *, now: float) -> None:
        """The application has begun to process these packets, in this order."""
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
        """Return all effects since the last call, and forget them.

        `turn` ends the turn, so that open bundles leave. Without it only complete packets leave, for a driver whose application is
        still sending in this turn; then `wake` is missing, and follows at the end of the turn.
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
        """Begin the first view. Counts start at zero, or, for a newcomer on a board, at the others' `bases`. `cuts`: how much each
        process had sent in views before."""
        if now is not None:
            self.now = now
        for earlier in self.chain.hooks("earlier"):
            earlier(cuts)
        self.views.begin(bases, cuts)

    def advance(self, now: float) -> None:
        """Set the time: for a driver that is about to call a layer directly, as calls of objects do."""
        self.now = now

    def propose(self, recipe: str, done: Done, *, now: float) -> None:
        """Ask for another recipe in the whole group; `done` is called with the outcome."""
        self._hook("propose", now, "cannot be changed while the group runs")(recipe, done)

    def gate(self, state: str, *, now: float) -> None:
        """`open`: deliver packets here as they arrive; `closed`: hold packets again that arrive before their causes."""
        gate = self._hook("gate", now, "has no gate")
        if state not in ("open", "closed"):
            raise UsageError(f"a gate is 'open' or 'closed', not {state!r}")
        gate(state == "open")

    def delay(self, member: int, seconds: float, jitter: float, keep_order: bool, *, now: float) -> None:
        """For tests: delay all packets to that member from now on."""
        self._hook("delay", now, "has no place for delays")(member, seconds, jitter, keep_order)

    def goodbye(self, *, now: float) -> None:
        """Tell all members that we leave; messages of ours that they still lack are lost. The driver goes on with `receive`,
        `tick` and `ready` until `has_left`, or as long as it likes: nothing but the goodbye is sent any more."""
        self.now = now
        if not self.leaving:
            self.leaving = True
            if self.trace is not None and self._error is None:
                owed = 0 if self.settled and self.met.issuperset(self.peers) else None  # None: unknown
                self.trace.row("leave", now, self.view.number, peer=self.me, n=owed)
            for goodbye in self.chain.hooks("goodbye"):
                goodbye()
            self.chain.mute()
            self._find_hooks()
            self.review()

    @property
    def has_left(self) -> bool:
        """Whether all members that were met know that we have left."""
        return self.leaving and all(layer.settled for layer in self.chain.having("settled") if layer.stays)

    @property
    def settled(self) -> bool:
        """Whether all members that were met have all we sent, so that we may leave."""
        return all(layer.settled for layer in self.chain.having("settled"))

    def fit(self, granted: int) -> None:
        """Size windows by the buffer that the kernel has granted a receiver, in bytes as the kernel counts them."""
        for fit in self.chain.hooks("fit"):
            fit(granted)

    def record(self, book: Book) -> None:
        """Write rows to the traces of their processes: to our own, and to those of other processes in layers, such as copies of objects."""
        self.book = book
        self.trace = book.trace(self.view.processes[self.me])
        for record in self.chain.hooks("record"):
            record(book)

    def recall(self, member: int, seq: int) -> Packet | None:
        """A packet that the application has taken, if the order keeps it for errors that show it."""
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
        """Count an invalid datagram or packet, by its reason, and go on."""
        self.rejected[reason] += 1
        peer = None if packet is None or packet.src < 0 else packet.src
        self.row("rejected", peer, note=reason)

    def transmit(self, to: Address, datagram: Datagram) -> None:
        """Send bytes as they are: for the native wire, and for layers with a wire format of their own."""
        self.to_send.append((to, datagram))

    def deliver(self, packets: list[Packet], sender: str | None = None) -> None:
        """Deliver packets to the application, as the topmost layer passes them up. `sender` is the name of a sender that is not a
        member; by default it is the member `src`."""
        names, queued, deliver = self.view.names, self.queued, self.to_deliver.append
        for packet in packets:
            queued += packet.size
            deliver(Batch(names[packet.src] if sender is None else sender, packet))
        self.queued = queued
        self.delivered += len(packets)

    def flush(self) -> None:
        """Send messages that wait for more messages."""
        for flush in self.chain.hooks("flush"):
            flush()

    def row(
        self, step: str, peer: int | None = None, *, n: int | None = None, note: str | None = None
    ) -> None:
        """Write a row that concerns no message, if the trace is full."""
        trace = self.trace
        if trace is not None and trace.full and not self.is_silenced:
            trace.row(step, self.now, self.view.number, peer=peer, n=n, note=note)

    # What layers do: what is shared

    def review(self) -> None:
        """Compute `writable` and `passable` anew: something that they depend on may have changed."""
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
        """Have our counters sent to all at the end of this turn; with `wanted=False`, they were sent."""
        self.report_wanted = wanted

    @property
    def held(self) -> int:
        """Received bytes that wait for other packets."""
        held = 0
        for layer in self._holders:
            held += layer.held
        return held

    def meet(self, packet: Packet, *, fresh: bool = False) -> None:
        """A layer has accepted a packet of a member. Only a new (`fresh`) packet changes a known address: an old one can be replayed
        by anybody, from anywhere."""
        src = packet.src
        self.met.add(src)
        if packet.where is not None and (fresh or not (src in self.addresses or src in self.doubted)):
            self.addresses[src] = packet.where
            self.doubted.discard(src)

    def doubt(self, member: int) -> None:
        """A member may have moved: packets for it go to everybody until a new packet of it arrives."""
        self.addresses.pop(member, None)
        self.doubted.add(member)

    def gone(self, member: int, *, failed: bool = False) -> None:
        """A member has left or failed, for good: tell the layers. If a view without it follows, its last packets are still
        lent; if the view cannot change, its missing packets never arrive."""
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
        """Stop for good: deliver what can be delivered, say goodbye, then raise."""
        if self._error is None:
            self._error = error
            self.goodbye(now=self.now)

    def notice(self, event: str, text: str) -> None:
        """Tell a person something, through the driver's log: `net.log` lists the events."""
        self._notices.append(Notice(event, text))

    # Inside

    def enter(self, view: View) -> None:
        """`view` is in force from now on."""
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
        """The hook that a driver calls. Raises UsageError, with what the order is `lacking`, if no layer has it."""
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
"""Attributes computed from the layers, and those that a driver lends: they are left out when a stack is copied or pickled."""


def joined(datagram: Datagram) -> bytes:
    """A datagram as one bytes object, independent of the reader's and other buffers."""
    return b"".join(datagram) if isinstance(datagram, list) else bytes(datagram)
