"""Flow control: a window of bytes per sender keeps senders from being faster than the slowest reader.

A packet is in flight until every member has it and has room for it. Members report that by cumulative
counters, piggybacked on the acknowledgements of `reliable`: `ack`, or `room` while a member's application is
behind with reading, so that its counter does not advance. Cumulative counters need no repair: a later one covers a lost one.

The window counts bytes as the kernel counts them against a socket buffer, which is more than their number.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

from inga.layers.numbers import check_number, check_seconds
from inga.layers.settings import settle
from inga.model.compiled import mypyc_attr
from inga.model.packet import HEADER_MAX, Packet
from inga.model.view import View
from inga.session.alarms import Backoff
from inga.session.pressure import Unread, unread_in
from inga.stack.figures import Figures
from inga.stack.layer import Layer

PACKETS_MAX = 4096
"""The most packets in flight, however small they are."""

WINDOW_MAX = 1 << 20
"""The most charged bytes that a sender may have in flight: sixteen full bundles. A larger window only fills queues."""

WINDOW_MIN = 64 << 10


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class FlowSettings:
    """The settings of `flow`. Times are in seconds."""

    window: int = WINDOW_MAX  # charged bytes in flight
    queue_max: int = 16 << 20  # unread bytes above which our counters do not advance
    probe: float = 0.05  # between probes of members whose counters do not advance, doubled each time
    probe_max: float = 1.0

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        check_number("window", said.window, 1)
        check_number("queue_max", said.queue_max, 1)
        check_seconds("probe", said.probe)
        check_seconds("probe_max", said.probe_max)


@mypyc_attr(allow_interpreted_subclasses=True)
class Flow(Layer):
    """Queues packets that exceed the window; while any are queued or the window is full, the application may not send."""

    name = "flow"
    id = 2
    requires = frozenset({"reliable"})
    provides = frozenset({"flow"})
    settings: ClassVar[type[FlowSettings]] = FlowSettings

    def __init__(self, **said: Any) -> None:
        made = settle(FlowSettings, self.name, said)
        self.window = made.window
        self.queue_max = made.queue_max
        self.probe = Backoff(made.probe, made.probe_max)

    def view(self, view: View) -> None:
        n = len(view)
        # as a sender
        self._sent = 0  # packets passed down, which is the newest lsn
        self._charges: deque[int] = deque()  # charges of the packets in flight, oldest first
        self._on_way = 0  # their sum
        self._consumed = [0] * n  # per member: packets it has, and has room for
        self._consumed_by_all = 0
        self._unasked = 0  # charge of packets since the last one that asks for a report
        self._waiting: deque[Packet] = deque()
        self.is_open = True
        self.wake = None
        # as a receiver
        self._unread = Unread(self.queue_max)
        self._told: tuple[int, ...] = (0,) * n

    # Sending

    def down(self, batch: list[Packet]) -> None:
        self._waiting.extend(batch)
        self._pump()

    def up(self, batch: list[Packet]) -> None:
        for packet in batch:
            if packet.ack is not None:
                self.note(packet)
        self.above(batch)

    def note(self, packet: Packet) -> None:
        counters = packet.room if packet.room is not None else packet.ack
        if counters is None:
            return
        consumed = min(counters[self.stack.me], self._sent)
        if consumed <= self._consumed[packet.src]:
            return
        self._consumed[packet.src] = consumed
        self._settle()

    def gone(self, member: int) -> None:
        self._settle()

    def _settle(self) -> None:
        """Remove packets that every member has and has room for from those in flight."""
        by_all = min([self._consumed[m] for m in self.stack.peers], default=self._sent)
        if by_all > self._consumed_by_all:
            for _ in range(by_all - self._consumed_by_all):
                self._on_way -= self._charges.popleft()
            self._consumed_by_all = by_all
            self._pump()

    @property
    def waiting(self) -> int:
        """The number of packets that the window holds back: no member has them, and they have no lsn yet."""
        return len(self._waiting)

    is_open = True
    is_passable = True  # here bundles wait for acknowledgements, not for the window

    @property
    def outstanding(self) -> int:
        return self._on_way

    def blockers(self) -> list[int]:
        """The members that have consumed the fewest packets: the window waits for them."""
        return [m for m in self.stack.peers if self._consumed[m] == self._consumed_by_all]

    @property
    def settled(self) -> bool:
        return not self._waiting

    def account(self, figures: Figures) -> None:
        figures.limits[self.name] = self.window

    def fit(self, granted: int) -> None:
        self.window = share_of(granted, len(self.stack.view))

    def tick(self, now: float) -> None:
        """The window is still closed: ask the members that keep it closed for their counters."""
        for member in self.blockers():
            packet = Packet(self.stack.me, self.stack.view.number, kind=self.id)
            packet.to = member
            self.stack.emit([packet])
        self.wake = now + self.probe.next(self.stack.rng)

    def _pump(self) -> None:
        """Pass down the packets that the window admits, then determine whether the application may send more."""
        out: list[Packet] = []
        waiting = self._waiting
        while waiting:
            charge = charged(len(waiting[0].body) + HEADER_MAX)
            exceeds = self._on_way + charge > self.window or len(self._charges) >= PACKETS_MAX
            if self._on_way and exceeds:
                break
            packet = waiting.popleft()
            out.append(packet)
            self._sent += 1
            if self.stack.alone:
                self._consumed_by_all += 1
                continue
            self._charges.append(charge)
            self._on_way += charge
            self._unasked += charge
            if self._unasked >= self.window // 4 or len(self._charges) % (PACKETS_MAX // 4) == 0:
                packet.urgent = True
                self._unasked = 0
        if out:
            self.below(out)
        is_open = not waiting and self._on_way < self.window
        if is_open is not self.is_open:
            self.is_open = is_open
            self.wake = None if is_open else self.stack.now + self.probe.start()
            self.stack.review()

    # Receiving

    def control(self, packet: Packet) -> None:
        """A member whose window is closed asks for our counters."""
        self.stack.want_report()

    def ride(self, packet: Packet) -> None:
        if self._is_behind():
            packet.room = self._told
        else:
            assert packet.ack is not None
            self._told = packet.ack

    def taken(self, packets: list[Packet]) -> None:
        if self._unread.behind and not self._is_behind():
            self.stack.want_report()

    def _is_behind(self) -> bool:
        return self._unread.is_behind(unread_in(self.stack))


def share_of(granted: int, members: int) -> int:
    """One sender's share of the buffer that the kernel granted a receiver, within the bounds of a window."""
    return max(WINDOW_MIN, min(WINDOW_MAX, granted // max(1, members - 1)))


def charged(size: int) -> int:
    """The bytes that the Linux kernel charges to a socket buffer for a datagram of `size` bytes."""
    if size > 16 * 1024:
        return size + size // 64 + 1024
    return max(832, (1 << (size + 319).bit_length()) + 256)
