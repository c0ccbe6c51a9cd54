"""One member of one group, whole and sans I/O: bytes and time go in, effects come out.

    application  send ─▶ ┌───────┐ ─▶ ready().deliver
                         │ layer │
                         │  ...  │
                         │ layer │
    network   receive ─▶ └───────┘ ─▶ ready().send

The stack encodes and decodes at its bottom, counts what it cannot decode, and hands a layer's own
packets straight to that layer, so that nothing above ever sees or holds them.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

from inga.model.delivery import Batch
from inga.model.errors import IngaError, UsageError, WireError, WouldBlock
from inga.model.packet import DATA, HEADER_MAX, Buffer, Packet
from inga.model.receipt import Receipt
from inga.model.steps import Trace
from inga.model.view import View
from inga.stack.layer import Layer
from inga.wire.packet import INDEX_MAX, decode, encode, group_id, view_of

EVERYBODY = None
"""The address of a datagram for all other members."""


class Outsider(NamedTuple):
    """Somebody who is no member, by the address it wrote from."""

    address: Hashable


Address = int | Outsider | None
"""A member's index, somebody who is no member, or EVERYBODY."""

Datagram = Buffer | list[Buffer]

OUTSIDE = 0
"""The number of no view: packets of those who are no members yet."""

AHEAD_MAX = 1024
"""Datagrams of a view that is not installed here yet; what is more is repaired."""


class Rng(Protocol):
    """The only chance there is."""

    def random(self) -> float: ...


class Ready:
    """Everything that happened since the last call, in the order to act on it."""

    __slots__ = ("deliver", "error", "notices", "send", "wake", "writable")

    def __init__(
        self,
        send: list[tuple[Address, Datagram]],
        deliver: list[Batch | View],
        wake: float | None,
        writable: bool,
        error: IngaError | None,
        notices: list[str],
    ) -> None:
        self.send = send  # 1. transmit
        self.deliver = deliver  # 2. hand to the application
        self.wake = wake  # 3. re-arm the single timer
        self.writable = writable  # 4. may send() proceed
        self.error = error  # 5. fatal: deliver first, then raise
        self.notices = notices  # for a person: who holds us up


class Stack:
    """Layers from top to bottom, bound to each other; the drivers use these methods and no others."""

    def __init__(
        self,
        layers: Sequence[Layer],
        me: int,
        view: View,
        *,
        rng: Rng,
        group: str = "",
        trace: Trace | None = None,
        beneath: Iterable[str] = (),
        receipt: Callable[[], Receipt] = Receipt,
        datagram_max: int = 60 * 1024,
        now: float = 0.0,
        sizes: dict[int, int] | None = None,
    ) -> None:
        """`beneath` names services the network itself provides, such as "reliable" in a test.
        `sizes` is for a newcomer: how many members the earlier views had whose packets still come."""
        self.me = me
        self.view = view
        self.now = now
        self.rng = rng
        self.trace = trace
        self.group = group_id(group)
        self.receipt = receipt
        self.datagram_max = datagram_max
        self.writable = True
        self.closing = False  # the view is being closed: nothing more is sent in it
        self.sizes = {view.number: len(view)} | (sizes or {})  # of the views whose packets are read
        self.passable = True  # what is passed down now leaves at once; else company is worth waiting for
        self.report = False  # some layer wants our counters told to all at the end of this turn
        self.held = 0  # bytes that wait for their causes
        self.queued = 0  # bytes delivered and not yet taken
        self.counts: Counter[str] = (
            Counter()
        )  # packets sent: data (repairs included), control, repair, nack; bytes
        self.rejected: Counter[str] = Counter()  # datagrams and packets dropped, by reason
        self.addresses: dict[int, Hashable] = {}  # where each member's last valid packet came from
        self.left: set[int] = set()  # members that have left for good
        self.layers = list(layers)
        self.emit: Callable[[list[Packet]], None]  # where a layer sends packets of its own kind
        self._beneath = frozenset(beneath)
        self._next: tuple[View, Sequence[Layer], Sequence[int]] | None = None  # to be installed
        self._ahead: list[tuple[bytes, Hashable]] = []  # of views not installed here yet
        self._retired: list[tuple[int, list[Layer]]] = []  # of closed views, for what is not taken yet
        self._send: list[tuple[Address, Datagram]] = []
        self._deliver: list[Batch | View] = []
        self._notices: list[str] = []
        self._error: IngaError | None = None
        self._check()
        self._bind()
        for layer in reversed(self.layers):
            layer.view(view)

    # What drivers do

    def send(self, data: bytes, to: int | None = None, *, now: float) -> Receipt:
        """Queue one message for everybody else, or for the members in the bit set `to`."""
        return self.send_many([data], to, now=now)

    def send_many(self, payloads: list[bytes], to: int | None = None, *, now: float) -> Receipt:
        """Queue several; the receipt is that of the last."""
        if self._error is not None:
            raise UsageError(f"the group has failed: {self._error}")
        if not self.writable:
            raise WouldBlock("the flow window is closed")
        if to is not None and (to <= 0 or to >> len(self.view)):
            raise UsageError(f"destinations {to:#b} are no members of a group of {len(self.view)}")
        self.now = now
        return self.entrance(payloads, to)

    def receive(self, batch: Iterable[tuple[Buffer, Hashable]], *, now: float) -> None:
        """Take datagrams and where they came from. Whatever they hold, nothing is raised."""
        self.now = now
        if self._error is not None:
            return
        packets = self._read(batch)
        if packets:
            self._lowest(packets)

    def tick(self, now: float) -> None:
        """Let layers act whose time has come."""
        self.now = now
        if self._error is not None:
            return
        for layer in self._timed:
            if layer.wake is not None and layer.wake <= now:
                layer.tick(now)

    def taken(self, packets: list[Packet], *, now: float) -> None:
        """The application has begun these packets, in this order."""
        self.now = now
        if self._error is not None:
            return
        for packet in packets:
            self.queued -= packet.size
        if self._retired:
            packets = self._taken_of_closed_views(packets)
        for take in self._takers:
            take(packets)

    def replace(self, name: str, layer: Layer, *, now: float) -> None:
        """Put another layer in the place of the one called `name`; what that held goes through it."""
        if self._error is not None:
            raise UsageError(f"the group has failed: {self._error}")
        self.now = now
        at = next((i for i, old in enumerate(self.layers) if old.name == name), None)
        if at is None:
            raise UsageError(f"no layer {name!r} here, only {', '.join(x.name for x in self.layers)}")
        old = self.layers[at]
        self.layers[at] = layer
        try:
            self._check()
        except UsageError:
            self.layers[at] = old
            raise
        held = old.drain()
        self._bind()
        layer.view(self.view)
        if held:
            layer.up(held)

    # Views

    def begin(self, bases: dict[str, list[int]] | None = None) -> None:
        """The first view counts from here: from nothing, or, for a newcomer, from the others' bases."""
        if bases is not None:
            for layer in reversed(self.layers):
                layer.adopt(bases)
        if self.trace is not None:
            self._record_view(None if bases is None else tuple(bases["seq"]), self.view.names)

    def extend(self, view: View, *, now: float) -> dict[str, int]:
        """Install a view with members appended; what a newcomer has to know of us to start."""
        self.now = now
        if not self._grows:
            raise UsageError(f"nobody can join while the group uses the order {self.view.recipe!r}")
        self.flush()  # what was sent so far is not for the newcomer
        self.view = view
        self.sizes[view.number] = len(view)
        for layer in reversed(self.layers):
            layer.extend(view)
        if self.trace is not None:
            self.trace.grow(len(view))
            self._record_view(None, view.joined)
        self._deliver.append(view)
        bases = self.bases()
        self._catch_up()
        return bases

    def bases(self) -> dict[str, int]:
        """What a newcomer has to know of us if it starts now."""
        return {key: count for layer in self.layers for key, count in layer.base().items()}

    def install(self, view: View, layers: Sequence[Layer], cut: Sequence[int]) -> None:
        """Close the view in force, of which everybody has `cut` packets of each member, and go on
        with other layers, which count anew: once all that is being done in the old view is done."""
        self._next = (view, layers, cut)

    def _install(self, view: View, layers: Sequence[Layer], cut: Sequence[int]) -> None:
        old, now = self.layers, self.now
        for layer in old:
            layer.closed()
        self._retired.append((self.view.number, old))
        staying = {layer.name: layer for layer in old if layer.stays}
        self.layers = [staying.get(layer.name, layer) for layer in layers]
        self._check()
        self._bind()
        if self.trace is not None:
            self.trace.row("flush", now, self.view.number)
            self.trace.cut(self.view.number, cut)
        self.view = view
        self.sizes = {view.number: len(view)}
        self.report = False
        self.writable = self.passable = True
        self.closing = False
        for layer in reversed(self.layers):
            layer.view(view)
        if self.trace is not None:
            self._record_view((0,) * len(view), view.joined)
        self._deliver.append(view)
        self._catch_up()

    def _record_view(self, known: tuple[int, ...] | None, joined: Iterable[str]) -> None:
        """Rows of a view and its new members. `known`: what its installation makes known here."""
        trace, view = self.trace, self.view
        assert trace is not None
        height = None if known is None else sum(known) + 1
        trace.row("view", self.now, view.number, deps=known, height=height, n=len(view), note=view.recipe)
        for name in joined:
            trace.row("join", self.now, view.number, peer=view.names.index(name), note=name)

    def _of_another_view(self, data: Buffer, address: Hashable) -> None:
        number = view_of(data)
        if number == OUTSIDE:
            self._from_outside(data, address)
        elif number < self.view.number:
            self.counts["stale"] += 1  # of a view that is closed
        elif number == self.view.number + 1 and (self._grows or self._watchers):
            self.counts["ahead"] += 1
            if len(self._ahead) < AHEAD_MAX:
                self._ahead.append((bytes(data), address))
            for watch in self._watchers:
                watch(number)
        else:
            self.reject("view")

    def _from_outside(self, data: Buffer, address: Hashable) -> None:
        """Somebody who is no member yet says something to one of our layers."""
        try:
            packet = decode(data, self.group, {OUTSIDE: INDEX_MAX}, self.me)
        except WireError as error:
            self.reject(error.reason)
            return
        target = None if packet is None else self._kinds.get(packet.kind)
        if packet is None or target is None:
            self.reject("stranger")
        else:
            target.outside(packet, address)

    def _catch_up(self) -> None:
        """Read what came too early for the views before this one."""
        if self._ahead:
            waiting, self._ahead = self._ahead, []
            self.receive(waiting, now=self.now)

    def _taken_of_closed_views(self, packets: list[Packet]) -> list[Packet]:
        """Let the layers that delivered them know; the rest is of views in force."""
        rest = []
        for packet in packets:
            layers = next((layers for last, layers in self._retired if packet.view <= last), None)
            if layers is None:
                rest.append(packet)
                continue
            for layer in layers:
                layer.taken([packet])
        if rest:
            self._retired.clear()  # packets are taken in the order in which they were delivered
        return rest

    def ready(self, *, turn: bool = True) -> Ready:
        """Hand over all effects since the last call, and forget them.

        `turn` ends the turn, so that what waited for company leaves; without it, only what is
        complete anyway, for a driver whose application is still at work in this turn.
        """
        wake = None
        if self._error is None:
            while self._next is not None:
                change, self._next = self._next, None
                self._install(*change)
            if turn:
                for end_turn in self._turners:
                    end_turn()
            for layer in self._timed:
                if layer.wake is not None and (wake is None or layer.wake < wake):
                    wake = layer.wake
        ready = Ready(self._send, self._deliver, wake, self.writable, self._error, self._notices)
        self._send, self._deliver = [], []
        if self._notices:
            self._notices = []
        return ready

    @property
    def settled(self) -> bool:
        """Whether everybody ever heard of has all we sent, so that we may leave."""
        return all(layer.settled for layer in self.layers)

    def goodbye(self, *, now: float) -> None:
        """Tell everybody that we leave; what they still lack of us is lost."""
        self.now = now
        for layer in self.layers:
            layer.goodbye()

    def fit(self, granted: int) -> None:
        """Size windows by what the kernel granted a receiver, in charged bytes."""
        for layer in self.layers:
            layer.fit(granted)

    # What layers do

    def reject(self, reason: str, packet: Packet | None = None) -> None:
        """Count something that cannot be right, and go on."""
        self.rejected[reason] += 1
        if self.trace is not None and self.trace.full:
            peer = None if packet is None else packet.src
            self.trace.row("rejected", self.now, self.view.number, peer=peer, note=reason)

    def answer(self, packet: Packet, address: Hashable) -> None:
        """Send something to one who is no member; to everybody if nobody knows where it is."""
        to = EVERYBODY if address is None else Outsider(address)
        self.counts["control"] += 1
        self._send.append((to, encode(packet, self.group)))

    def transmit(self, to: Address, datagram: Datagram) -> None:
        """Send bytes as they are, for a layer that has a wire format of its own."""
        self._send.append((to, datagram))

    def deliver(self, sender: str, packet: Packet) -> None:
        """Hand a packet to the application, as one of `sender`."""
        self.queued += packet.size
        self._deliver.append(Batch(sender, packet))

    def flush(self) -> None:
        """Let go of what was sent and waits for company."""
        next(layer for layer in self.layers if _overrides(layer, "send")).drain()

    def fail(self, error: IngaError) -> None:
        """Stop for good: deliver what there is, then raise."""
        if self._error is None:
            self._error = error

    def notice(self, text: str) -> None:
        """Tell a person something, through the driver's log."""
        self._notices.append(text)

    def ride(self, packet: Packet) -> None:
        """Let every layer put its counters on a packet."""
        for ride in self._riders:
            ride(packet)

    def gone(self, member: int) -> None:
        """Tell the layers that a member has left for good."""
        self.left.add(member)
        for gone in self._mourners:
            gone(member)

    def heard(self, lsn: int) -> None:
        """Tell the layers that some member has everything up to `lsn`."""
        for heard in self._hearers:
            heard(lsn)

    def layer(self, name: str) -> Layer | None:
        """The layer of that name, if the recipe has it."""
        return next((layer for layer in self.layers if layer.name == name), None)

    def others(self) -> Iterable[int]:
        """Everybody's index but ours."""
        return (m for m in range(len(self.view)) if m != self.me)

    def peers(self) -> list[int]:
        """The others that are still to be reckoned with."""
        return [m for m in range(len(self.view)) if m != self.me and m not in self.left]

    @property
    def alone(self) -> bool:
        """Whether nobody else is left."""
        return len(self.view) - len(self.left) == 1

    @property
    def has_output(self) -> bool:
        """Whether datagrams wait for the driver."""
        return bool(self._send)

    @property
    def body_max(self) -> int:
        """The largest body that fits one datagram beside its header and a vector or two."""
        return self.datagram_max - min(HEADER_MAX + 6 * len(self.view), self.datagram_max // 2)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels a receipt can reach in this recipe."""
        return tuple(level for layer in self.layers for level in layer.levels)

    # The two ends of the chain

    def _decode(self, batch: Iterable[tuple[Buffer, Hashable]]) -> list[Packet]:
        """What datagrams hold, on the native wire."""
        packets: list[Packet] = []
        group, sizes, me = self.group, self.sizes, self.me
        for data, address in batch:
            try:
                packet = decode(data, group, sizes, me)
            except WireError as error:
                if error.reason == "view":
                    self._of_another_view(data, address)
                else:
                    self.reject(error.reason)
                continue
            if packet is None:
                continue
            if address is not None:
                self.addresses[packet.src] = address
            packets.append(packet)
        return packets

    def _encode(self, batch: list[Packet]) -> None:
        send = self._send
        counts = self.counts
        for packet in batch:
            counts["data" if packet.kind == DATA else "control"] += 1
            counts["bytes"] += len(packet.body)
            if packet.encoded is None:
                packet.encoded = [encode(packet, self.group), None]
            full, bare = packet.encoded
            if packet.dst is None:
                send.append((packet.to, full))
                continue
            for member in self.others() if packet.to is None else (packet.to,):
                if packet.dst >> member & 1:
                    send.append((member, full))
                    continue
                if bare is None:
                    bare = packet.encoded[1] = encode(packet, self.group, bare=True)
                send.append((member, bare))

    def _split(self, batch: list[Packet]) -> None:
        """Data goes up; a layer's own packets go to that layer, in the order they came."""
        data: list[Packet] = []
        for packet in batch:
            if packet.kind == DATA:
                data.append(packet)
                continue
            if data:
                self._up(data)
                data = []
            target = self._kinds.get(packet.kind)
            if target is None:
                self.reject("kind", packet)
                continue
            target.control(packet)
            for note in self._noters:
                note(packet)
        if data:
            self._up(data)

    def _hand_over(self, batch: list[Packet]) -> None:
        names = self.view.names
        for packet in batch:
            self.queued += packet.size
            self._deliver.append(Batch(names[packet.src], packet))

    # Composition

    def _check(self) -> None:
        """Every layer's needs are met from below, or the error names who could meet them."""
        provided = set(self._beneath)
        seen_opaque = False
        for layer in reversed(self.layers):
            if layer.transparent and seen_opaque:
                raise UsageError(f"layer {layer.name!r} must stand below all that are not transparent")
            seen_opaque = seen_opaque or not layer.transparent
            missing = layer.requires - provided
            if missing:
                need = ", ".join(sorted(missing))
                raise UsageError(f"layer {layer.name!r} needs {need} from below{_suppliers(missing)}")
            provided |= layer.provides
        kinds = [layer.id for layer in self.layers if layer.id]
        if len(set(kinds)) < len(kinds):
            raise UsageError("two layers of one id cannot tell their packets apart")
        if not any(_overrides(layer, "send") for layer in self.layers):
            raise UsageError("no layer takes what the application sends: put `bundle` on top")

    def _bind(self) -> None:
        """Compute all routes once, past layers that do not override a direction."""
        for layer in self.layers:
            layer.stack = self
        above: Callable[[list[Packet]], None] = self._hand_over
        opaque = [layer for layer in self.layers if not layer.transparent]
        for layer in opaque:
            layer.above = above
            if _overrides(layer, "up"):
                above = layer.up
        self._up = above
        above = self._split
        for layer in (layer for layer in self.layers if layer.transparent):
            layer.above = above
            if _overrides(layer, "up"):
                above = layer.up
        self._lowest = above
        self._read = next((layer.read for layer in self.layers if _overrides(layer, "read")), self._decode)
        below: Callable[[list[Packet]], None] = self._encode
        self.emit = below
        for layer in reversed(self.layers):
            layer.below = below
            if _overrides(layer, "down"):
                below = layer.down
                if layer.transparent:
                    self.emit = below
        self._kinds = {layer.id: layer for layer in self.layers if layer.id}
        self.entrance = next(layer.send for layer in self.layers if _overrides(layer, "send"))
        self.store = next((x.store for x in self.layers if _overrides(x, "store")), Packet.keep)
        self._takers = [layer.taken for layer in self.layers if _overrides(layer, "taken")]
        self._turners = [layer.turn for layer in self.layers if _overrides(layer, "turn")]
        self._timed = [layer for layer in self.layers if _overrides(layer, "tick")]
        self._riders = [layer.ride for layer in reversed(self.layers) if _overrides(layer, "ride")]
        self._noters = [layer.note for layer in reversed(self.layers) if _overrides(layer, "note")]
        self._mourners = [layer.gone for layer in reversed(self.layers) if _overrides(layer, "gone")]
        self._grows = all(layer.grows for layer in self.layers)
        self._watchers = [layer.ahead for layer in self.layers if _overrides(layer, "ahead")]
        self._hearers = [layer.heard for layer in reversed(self.layers) if _overrides(layer, "heard")]

    def __getstate__(self) -> dict[str, Any]:
        routes = "store emit _read _up _lowest _kinds entrance _takers _turners _timed _riders _noters _mourners _watchers _grows _hearers".split()
        state = self.__dict__.copy()
        for name in (*routes, "trace", "receipt"):
            state.pop(name, None)
        state["_send"] = [(address, joined(data)) for address, data in self._send]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.trace = None
        self.receipt = Receipt
        for _, layers in self._retired:
            for layer in layers:
                layer.stack = self
        self._bind()


def joined(datagram: Datagram) -> bytes:
    """A datagram in one piece that nobody else holds."""
    return b"".join(datagram) if isinstance(datagram, list) else bytes(datagram)


def _overrides(layer: Layer, name: str) -> bool:
    return _replaces(type(layer), name)  # type: ignore[arg-type]  # mypy: classes can be hashed, too


@cache
def _replaces(kind: type[Layer], name: str) -> bool:
    return getattr(kind, name) is not getattr(Layer, name)


def _suppliers(missing: Iterable[str]) -> str:
    """Which known layers could supply what is missing, as the end of a sentence."""

    def known(cls: type[Layer]) -> Iterable[type[Layer]]:
        for sub in cls.__subclasses__():
            yield sub
            yield from known(sub)

    names = sorted({cls.name for cls in known(Layer) if cls.provides & set(missing)})
    return f"; {' or '.join(names)} could supply it" if names else ""
