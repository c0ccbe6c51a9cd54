"""Objects and plain messages in one order, as a layer of a stack: `object` and `total`.

Messages between objects go down as data, which the layers below repair, fragment and keep within a window;
heartbeats and announcements are packets of this layer's kind, which may be lost. `BareObjects` needs nothing from
below: its engine numbers messages, keeps copies and sends them again by itself.

A plain message is a one-way request to the mailboxes of its destinations, by the application as a client. It is
delivered when it starts there: at once if it conflicts with nothing, otherwise once no message that precedes it in
the order can still arrive. With `echo` our own messages are delivered to us, too, at their place in the order.

Drivers check calls with `host.calling`, start roots with `begin`, and call the stack's `ready` afterwards.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from inga.layers.fifo import Unordered
from inga.layers.settings import settle
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError, WouldBlock
from inga.model.invocation import Flush, Message, Spoken
from inga.model.packet import DATA, Packet
from inga.model.steps import Book
from inga.model.view import View
from inga.objects.actions import Transmit
from inga.objects.declare import error_text
from inga.objects.hosting import FREE, MESSAGE, KeyFunction, Layout, key_label
from inga.objects.instance import Instance
from inga.objects.invoke import Body, Host, Root, RootDone
from inga.objects.late import LateCopies
from inga.objects.mail import Mail
from inga.objects.options import ObjectSettings, invoking_of
from inga.objects.outbox import Outbox
from inga.objects.rows import ObjectRows
from inga.session.alarms import NEVER
from inga.session.pressure import QUEUE_MIN, Unread, queued_in
from inga.stack.figures import Figures
from inga.stack.hooks import Lack
from inga.stack.layer import Layer
from inga.wire.invocation import decode, enclose, enclosed, encode
from inga.wire.value import copied, put

HELD_MAX = QUEUE_MIN // 2
"""The most bytes that this layer reports as held: enough to be noticed, too few to close senders' windows by themselves.
The windows of objects already bound how much waits here. The messages that held requests wait for may be queued in another
member's `flow`, which must not keep them back because of what is held here."""

CLOSES_WITHIN = 1.0
"""Seconds that our roots have to end once the view is being closed; then those that still run are aborted."""

HEAD, HEAD_OF_PLACE = 512, 8
"""Bytes that a call takes besides its arguments or result, and bytes for each place of the group: enough for calls that
are not nested very deep."""

SHARED_MAX = 512
"""The most bytes of a message for some members that is sent to all: skipping it costs the others less than the header that
they would otherwise get, so that they miss no number."""

KEY_MAX = 256
"""The most bytes of a key, which travels with every bundle of messages and has to leave room for them in a datagram."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ObjectOrder(Unordered):
    """One member's objects, and the plain messages of its application."""

    name = "object"
    id = 6
    requires = frozenset({"reliable"})
    provides = frozenset({"fifo"})
    reliable: ClassVar[bool] = True  # the layers below lose nothing
    partition = "primary"
    no_gate = "what it holds has no place yet that members agree on"
    settings: ClassVar[type[ObjectSettings]] = ObjectSettings

    begun = 0  # calls of objects that have begun here in this view

    def __init__(
        self,
        *,
        echo: bool = True,
        objects: Mapping[str, Any] | None = None,
        total: bool = False,
        crowded: bool = False,
        queue_max: int = 16 << 20,
        **said: Any,
    ) -> None:
        """`objects` are those of the group, as in `hosting`. `total`: everything conflicts. `crowded`: the layers below queue
        heartbeats behind other packets, so while a window is closed heartbeats are dropped here. `queue_max`: unread bytes
        above which senders wait; for `BareObjects`, which has no other layer for that. The rest are `settings`."""
        super().__init__(echo=echo)
        made = settle(ObjectSettings, self.name, said)
        self.objects = objects
        self.total = total
        self.crowded = crowded
        self.keyed = not total and (made.key is not None or made.keys is not None)
        self._keys = made.keys
        # The key of a message: messages of equal keys are ordered with each other.
        self.key_of = _dealt(made.keys if self.keyed else None)
        self.key_max = 0  # bytes of a message's key
        if self.keyed and made.key is not None:
            self.key_of, self.key_max = _checked(made.key), KEY_MAX
        self._options = made.options(reliable=self.reliable)
        self._invoking = made.members_invoking
        for name in self._invoking or ():
            if total or name not in (objects or {}):
                known = ", ".join(objects or {}) or "none"
                raise UsageError(
                    f"members_invoking is for objects under order='object', not for {name!r}; there are {known}"
                )
        self._unread = Unread(queue_max)
        self.rows = ObjectRows()
        self.latest: Packet | None = None  # the packet that carried the last bundle
        self.key: Any = 0  # of the bundle that is being passed down
        self._inherited: dict[str, Any] = {}  # the states of our copies at the end of the previous view
        self._since: dict[str, int] = {}  # by object, the latest view in which our copy had the group's state

    def view(self, view: View) -> None:
        super().view(view)
        self.layout = Layout(self.objects, view.names, total=self.total, keys=self._keys, complete=False)
        self.hosted, self.roster = self.layout.hosted, self.layout.roster
        self.processes = self.layout.processes
        self.rows.enter(self.layout, view.number)
        self._mail = Mail(self.roster, self.me, view.number, len(view))
        self._others = tuple(self.stack.others)
        self._has_room, self.held = True, 0
        self._is_over = False  # the view has ended: no message of it is sent any more
        self._repaired = 0  # packets that the engine has sent again, as far as the stack has counted them
        self.begun = 0
        self._passed = 0  # data packets passed down; the number tells fragments of different packets apart
        self._outbox = Outbox(self._others, self.stack.wire.body_max)
        classes = {name: each.cls for name, each in self.hosted.items()}
        self.host = Host(
            self.me,
            self.roster,
            classes,
            replace(
                self._options,
                room=None if self.reliable else _room(self.stack.wire.body_max, len(self.roster.places)),
                invoking=invoking_of(self._invoking, view.names, self.hosted),
            ),
            mail={self._mail.boxes[self.me]: self._deliver},
            now=self.stack.now,
            observer=self.rows,
        )
        for name, value in self._inherited.items():
            self.host.restore(name, value)
        self._inherited = {}
        self._late = LateCopies(self.host, self.me, view, self.hosted, self._since)
        self._closes_by = NEVER

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        wake = self.host.wake
        return wake if self._closes_by == NEVER else min(self._closes_by, wake or NEVER)

    def inherit(self, before: Layer) -> None:
        """Take over the states of our objects from the previous view."""
        if isinstance(before, ObjectOrder):
            self._inherited = before.host.states()
            self._since = before._late.had()

    # State for newcomers

    def lacks(self) -> dict[str, Lack]:
        return self._late.missing

    def hand_over(self, topic: str) -> bytes:
        return self._late.hand_over(topic)

    def complete(self, member: int) -> None:
        self._late.complete(member)

    def incomplete(self) -> set[int]:
        return self._late.incomplete()

    def take_over(self, topic: str, state: bytes | None) -> None:
        try:
            packets = self._late.take_over(topic, state)
        except WireError as error:
            self.stack.fail(UsageError(f"the state of object {topic!r} cannot be read: {error}"))
            return
        if not self._late.missing:
            self._take(packets)
            self.stack.review()

    def closing(self) -> None:
        """The view is being closed: no root begins any more, and those that run have `CLOSES_WITHIN` to end."""
        self._closes_by = self.stack.now + CLOSES_WITHIN

    def record(self, book: Book) -> None:
        self.rows.record(self.me, self.stack.view.processes[self.me], book)

    def copies(self, view: View) -> list[tuple[int, str]]:
        return Layout(self.objects, view.names, total=self.total, keys=self._keys, complete=False).copies

    # Sending

    def down(self, batch: list[Packet]) -> None:
        """Send each packet as one request to all its destinations, with the key of the bundle that is being passed down."""
        me, op = self.me, MESSAGE if self.key is not None else FREE
        for packet in batch:
            self._number(packet)
            self._sent(packet)
            targets = [m for m in self._others if packet.dst is None or packet.dst >> m & 1]
            if self.echo or (packet.dst is not None and packet.dst >> me & 1):
                targets.append(me)
            places, said = self._mail.request(packet, targets)
            if places:
                self.host.tell(self.stack.now, places, op, self.key, *said)
            self._act(self.host.sends(self.stack.now), packet)

    def turn(self) -> None:
        """Send the messages of this turn, including those of roots that have begun since the last one."""
        if self.host.engine.is_stirred:
            self._act(self.host.sends(self.stack.now))
        if self._is_over:
            return
        if self._outbox.waiting:
            self._pass_on(self._others, self._outbox.take(), None)
        lossy = self._outbox.take_lossy()
        windows = self.stack.chain.having("is_open") if lossy and self.crowded else ()
        if all(window.is_open for window in windows if window is not self):
            for members, body in lossy:
                for packet in _packets(self, members, body, self.id):
                    self.stack.emit([packet])

    def goodbye(self) -> None:
        self.turn()

    def tick(self, now: float) -> None:
        if now >= self._closes_by:
            self._closes_by = NEVER
            if self.stack.closing:  # otherwise the view change was refused
                why = "it takes too long: the view of the group changes, and waits for it"
                self._act(self.host.cancel_all(now, why))
        self._act(self.host.tick(now))

    def _act(self, sends: Iterable[Transmit], origin: Packet | None = None) -> None:
        """Send the messages of the host. `origin` is the packet of the application that caused them."""
        if self._is_over:
            return
        for members, spoken in sends:
            if isinstance(spoken, Message | Flush):
                self._say(members, encode(spoken), origin)
            else:
                self._outbox.add_lossy(members, spoken)
        links = self.host.engine.links
        if links.repaired > self._repaired:
            if not self.stack.is_homeless:  # otherwise none of them was sent
                self.stack.counts["repair"] += links.repaired - self._repaired
            self._repaired = links.repaired
        if links.weighed:
            links.weighed = False
            self.held = min(links.held, HELD_MAX)
            self.begun = self.host.engine.counts["started"]
            is_open = links.outstanding < self._options.window
            if is_open is not self._has_room:
                self._has_room = is_open
                self.stack.review()

    def _say(self, members: tuple[int, ...], spoken: bytes, origin: Packet | None) -> None:
        """Send a message at the end of this turn, in one packet with the turn's other messages. A plain message, which is a
        bundle already, and a long message that is not for all members leave at once, in packets of their own."""
        if origin is not None or (len(spoken) > SHARED_MAX and len(members) < len(self._others)):
            self._pass_on(members, enclose(spoken), origin)
        elif full := self._outbox.add(members, spoken):
            self._pass_on(self._others, full, None)

    def _pass_on(self, members: tuple[int, ...], body: bytes, origin: Packet | None) -> None:
        self._passed += 1
        packet = Packet(self.me, self.stack.view.number, body)
        packet.seq = self._passed
        if origin is not None:
            packet.receipt, packet.at, packet.count = origin.receipt, origin.at, origin.count
            packet.partial, self.latest = origin.partial, packet
            origin.receipt = None
        if set(members) != set(self._others):
            packet.dst = sum(1 << member for member in members)
        self.below([packet])

    # Objects: what drivers do

    def begin(self, body: Body, done: RootDone | None = None, *, retry_of: Root | None = None) -> Root:
        """Start a root of our client; `done` is called when it has ended. Raises `WouldBlock` unless `may_begin`."""
        if not self.may_begin:
            raise WouldBlock("the view of the group changes")
        root = self.host.begin(self.stack.now, body, done, retry_of=retry_of)
        self._act(self.host.sends(self.stack.now))
        return root

    @property
    def may_begin(self) -> bool:
        """Whether a root can begin: the view is not being closed, and we have the states of our objects."""
        return not (self.stack.closing or self._late.missing or self._is_over)

    def cancel(self, root: Root, text: str) -> None:
        """Abort a root, and have its calls undone."""
        self._act(self.host.cancel(self.stack.now, root, text))

    def resume(self, instance: Instance) -> None:
        """Continue an instance: the awaitable of the driver that it waited for is done."""
        self._act(self.host.resume(self.stack.now, instance))

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        if packets := [packet for packet in batch if not self._is_bare(packet)]:
            self._take(packets)

    def control(self, packet: Packet) -> None:
        self._take([packet])

    def gone(self, member: int) -> None:
        self._act(self.host.suspect(self.stack.now, member))

    def _take(self, packets: list[Packet]) -> None:
        if self._late.missing:
            self._late.keep(packets)
            return
        heard: list[Spoken] = []
        for packet in packets:
            try:
                parts = [decode(part, self.roster) for part in enclosed(packet.body, self.me)]
            except WireError as error:
                self.stack.reject(error.reason, packet)
                continue
            if any(_speaker(spoken, self.roster.member_of) != packet.src for spoken in parts):
                self.stack.reject("forged", packet)
            elif parts:
                self.stack.meet(packet)
                for spoken in parts:
                    self._mail.note(spoken, self._highest)
                heard += parts
        if heard:
            self._act(self.host.receive(self.stack.now, heard))

    def _deliver(self, request: Message) -> None:
        """Release a plain message: its request has started at our mailbox."""
        opened = self._mail.open(request)
        if opened is None:
            self.stack.reject("malformed")
            return
        key, packet = opened
        if not self.total and not self.hosted and key is not None:
            self._row("start", packet, packet.count, op=key_label(key))
        self._release([packet])

    def _row(
        self, step: str, packet: Packet, messages: int, *, dst: int | None = None, op: str | None = None
    ) -> None:
        """Write a row. In a group with objects the copies have rows, too: then vectors have entries for them, and a send to
        all lists the other members as its destinations."""
        stack = self.stack
        if stack.trace is None:
            return
        deps = packet.deps
        if self.hosted:
            deps = None if deps is None else deps + (0,) * (len(self.processes.names) - len(deps))
            if step == "send" and dst is None:
                dst = sum(1 << member for member in self._others)
        where = (step, stack.now, packet.view, packet.src, packet.seq)
        stack.trace.row(*where, dst=dst, deps=deps, n=messages, op=op)

    # What waits: see `window`

    is_passable = True

    @property
    def is_open(self) -> bool:
        return self._has_room and not self._late.missing

    @property
    def waiting(self) -> int:
        """The number of messages kept back: those of this turn, since a closed window stops the application. While the view is
        being closed there is one more if calls are under way here, which may still send."""
        is_busy = self.stack.closing and bool(self._late.missing or not self.host.is_over)
        return self._outbox.waiting + int(is_busy)

    @property
    def outstanding(self) -> int:
        return self.host.engine.links.outstanding

    def account(self, figures: Figures) -> None:
        figures.limits[self.name] = self._options.window
        for member, peer in self.host.engine.links.peers.items():
            if peer.acked < peer.sent and member in self.stack.peers:
                figures.lacks(member, peer.sent - peer.acked, 0.0)

    def blockers(self) -> Iterable[int]:
        return self.host.engine.links.full or self.awaited()

    def awaited(self) -> Iterable[int]:
        return self.host.engine.awaited()

    # What drivers want, and what a change of the order needs

    @property
    def settled(self) -> bool:
        # Newcomers that still fetch a state may depend on us for it.
        return self.host.engine.settled and not self._outbox.waiting and not self._late.incomplete()

    def sent(self) -> list[int]:
        """By member, how many messages we have sent to it; for ourselves all our messages, whether they are echoed or not."""
        return [self._numbered if m == self.me else told for m, told in enumerate(self._mail.told)]

    def has(self, counts: list[int]) -> bool:
        return self._mail.has(counts) and not self._late.missing and self.host.is_over

    def closed(self) -> None:
        """The view has ended: end everything that still runs."""
        self._is_over = True
        self.host.close("the view of the group has changed")

    def abandoned(self) -> None:
        self.closed()


@mypyc_attr(allow_interpreted_subclasses=True)
class BareObjects(ObjectOrder):
    """The same layer over bare datagrams, which may be lost."""

    requires = frozenset()
    provides = frozenset({"reliable", "fifo"})
    reliable = False

    def _say(self, members: tuple[int, ...], spoken: bytes, origin: Packet | None) -> None:
        """Send a message to its destinations alone."""
        self._pass_on(members, enclose(spoken), origin)

    def taken(self, packets: list[Packet]) -> None:
        super().taken(packets)
        if self._unread.behind:
            self._look_at_queue()
            self._act(self.host.sends(self.stack.now))

    def tick(self, now: float) -> None:
        self._look_at_queue()
        super().tick(now)

    def _take(self, packets: list[Packet]) -> None:
        if not self._late.missing:
            self._look_at_queue()
        super()._take(packets)

    def _look_at_queue(self) -> None:
        """Make senders wait while our application does not read, since no layer below does that."""
        queued = queued_in(self.stack)
        self.host.engine.links.read(queued if self._unread.is_behind(queued) else 0)

    def _pass_on(self, members: tuple[int, ...], body: bytes, origin: Packet | None) -> None:
        """Send one datagram if the message is for all others, else one to each. Larger messages were cut above."""
        self._passed += 1
        for packet in _packets(self, members, body, DATA):
            packet.seq = self._passed
            self.below([packet])


def _packets(layer: ObjectOrder, members: tuple[int, ...], body: bytes, kind: int) -> Iterator[Packet]:
    """One packet if it is for all other members, else one addressed to each: the layers below may be unable to send to
    a subset."""
    stack = layer.stack
    for member in (None,) if len(members) == len(stack.others) else members:
        packet = Packet(stack.me, stack.view.number, body, kind=kind)
        packet.to, packet.dst = member, None if member is None else 1 << member
        yield packet


def _room(body_max: int, places: int) -> int:
    """The bytes of arguments or of a result for which a datagram has room; plain messages were cut to size above."""
    return max(body_max - HEAD - HEAD_OF_PLACE * places, body_max // 4)


def _speaker(spoken: Spoken, member_of: list[int]) -> int:
    """The member that sent it."""
    return member_of[spoken.src] if isinstance(spoken, Message) else spoken.member


def _dealt(keys: int | None) -> KeyFunction:
    if keys is None:
        return lambda payload: 0
    return lambda payload: int.from_bytes(payload[:4], "big") % keys


def _checked(key_of: KeyFunction) -> KeyFunction:
    """The application's key function with checks: if it fails, the application's `send` raises UsageError."""

    def checked(payload: bytes) -> Hashable:
        out = bytearray()
        try:
            key: Hashable = copied(key_of(payload))
            hash(key)
            put(out, key)
        except Exception as error:
            raise UsageError(f"the function key gives no key for a message: {error_text(error)}") from error
        if len(out) > KEY_MAX:
            raise UsageError(f"the function key gives a key of {len(out)} bytes; there is room for {KEY_MAX}")
        return key

    return checked
