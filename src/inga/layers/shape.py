"""Faults injected on purpose: loss, duplicates, delay, reordering. For tests.

The simulator's links and the `shape` layer of live members take their faults from one class, so a
fault means the same in both. Loss is per copy, at its receiver.
"""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.stack.layer import Layer
from inga.stack.stack import Rng
from inga.wire.packet import OUTSIDE


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class Faults:
    """What a link does to copies. Probabilities per copy, delays in seconds."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0  # probability that a copy is delayed further, by up to twice the maximum
    delay_min: float = 0.0
    delay_max: float = 0.0

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        for name in ("loss", "duplicate", "reorder"):
            if not 0 <= getattr(said, name) <= 1:
                raise UsageError(f"{name} is a probability between 0 and 1, not {getattr(said, name)!r}")
        if said.loss == 1:
            raise UsageError("with a loss of 1 nothing ever arrives: take less")
        if not 0 <= said.delay_min <= said.delay_max:
            raise UsageError(f"delay {said.delay_min}:{said.delay_max} is not MIN:MAX with 0 <= MIN <= MAX")

    def fates(self, rng: Rng) -> list[float]:
        """The delays after which copies of one datagram arrive: none if it is lost."""
        if self.loss and rng.random() < self.loss:
            return []
        delays = [self._delay(rng)]
        if self.duplicate and rng.random() < self.duplicate:
            delays.append(self._delay(rng))
        return delays

    def _delay(self, rng: Rng) -> float:
        spread = self.delay_max - self.delay_min
        delay = self.delay_min + spread * rng.random() if spread else self.delay_min
        if self.reorder and rng.random() < self.reorder:
            delay += 2 * self.delay_max * rng.random()
        return delay


def shaped(faults: Faults | None) -> Layer:
    """The layer for these faults, or, without faults, one that costs nothing."""
    return Unshaped() if faults is None else Shape(faults)


@mypyc_attr(allow_interpreted_subclasses=True)
class Unshaped(Layer):
    """A placeholder that costs nothing, until a `shape` layer is needed."""

    name = "shape"
    transparent = True
    stays = True

    def delay(self, member: int, seconds: float, jitter: float = 0.0, keep_order: bool = False) -> None:
        """Set the first delay: replace this layer by a `Shape`, which can delay packets."""
        shape = Shape()
        self.stack.views.replace(self.name, shape)
        shape.delay(member, seconds, jitter, keep_order)


class PeerDelay(NamedTuple):
    """Copies to one member leave `seconds` later, and by up to `jitter` more."""

    seconds: float
    jitter: float
    keep_order: bool  # otherwise copies leave by due time, which reorders


@mypyc_attr(allow_interpreted_subclasses=True)
class Shape(Layer):
    """Applies faults to incoming packets, and a delay for each peer to outgoing ones."""

    name = "shape"
    transparent = True
    stays = True

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self._peers: dict[str, PeerDelay] = {}  # by name, as indices change with the view
        self._last_due: dict[str, float] = {}
        self._incoming: list[tuple[float, int, Packet]] = []
        self._outgoing: list[tuple[float, int, Packet]] = []
        self._order = 0

    def view(self, view: View) -> None:
        """Drop delayed incoming packets of a view that was closed meanwhile, and all delayed outgoing packets."""
        self._incoming = [each for each in self._incoming if self._is_readable(each[2])]
        heapify(self._incoming)
        self._outgoing.clear()
        self._rearm()

    def delay(self, member: int, seconds: float, jitter: float = 0.0, keep_order: bool = False) -> None:
        """Delay what is sent to that member from now on; 0 ends it."""
        if seconds < 0 or jitter < 0:
            raise UsageError(f"a delay and its jitter are not negative: {seconds:g} and {jitter:g}")
        name = self.stack.view.names[member]
        if seconds:
            self._peers[name] = PeerDelay(seconds, jitter, keep_order)
        else:
            self._peers.pop(name, None)

    def down(self, batch: list[Packet]) -> None:
        if not self._peers:
            self.below(batch)
            return
        now: list[Packet] = []
        names = self.stack.view.names
        for packet in batch:
            targets = self.stack.others if packet.to is None else [packet.to]
            if not any(names[member] in self._peers for member in targets):
                now.append(packet)
                continue
            # A delay for one member must not hold up the others, so each gets a copy of its own.
            for member in targets:
                copy = packet.copy_to(member)
                if names[member] in self._peers:
                    self._postpone(copy, names[member])
                else:
                    now.append(copy)
        if now:
            self.below(now)

    def up(self, batch: list[Packet]) -> None:
        now: list[Packet] = []
        for packet in batch:
            fates = self.faults.fates(self.stack.rng)
            if not fates:
                self.stack.counts["lost"] += 1
                self._row("lost", packet)
            for delay in fates:
                if delay:
                    packet.keep()
                    self._row("delayed", packet)
                    self._push(self._incoming, self.stack.now + delay, packet)
                else:
                    now.append(packet)
        if now:
            self.above(now)

    def tick(self, now: float) -> None:
        arrived, left = _due(self._incoming, now), _due(self._outgoing, now)
        self._rearm()
        # Packets of a view that was closed while they were delayed are dropped.
        arrived = [packet for packet in arrived if self._is_readable(packet)]
        if left:
            self.below(left)
        if arrived:
            self.above(arrived)

    def _is_readable(self, packet: Packet) -> bool:
        return packet.view in self.stack.sizes or packet.view == OUTSIDE

    def drain(self) -> list[Packet]:
        """Delayed outgoing packets leave at once; delayed incoming packets are handed to the layer that follows."""
        if self._outgoing:
            self.below([packet for _, _, packet in sorted(self._outgoing)])
        packets = [packet for _, _, packet in sorted(self._incoming)]
        self._incoming.clear()
        self._outgoing.clear()
        self.wake = None
        return packets

    def _postpone(self, packet: Packet, name: str) -> None:
        peer = self._peers[name]
        # Counted from the send call: time that the packet waited for a window or in a bundle is part of the delay.
        due = (packet.at or self.stack.now) + peer.seconds + peer.jitter * self.stack.rng.random()
        if peer.keep_order:
            due = self._last_due[name] = max(due, self._last_due.get(name, 0.0))
        self._push(self._outgoing, due, packet)

    def _push(self, heap: list[tuple[float, int, Packet]], due: float, packet: Packet) -> None:
        self._order += 1
        heappush(heap, (due, self._order, packet))
        self._rearm()

    def _rearm(self) -> None:
        self.wake = min((heap[0][0] for heap in (self._incoming, self._outgoing) if heap), default=None)

    def _row(self, step: str, packet: Packet) -> None:
        trace = self.stack.trace
        if trace is not None and trace.full:
            is_member = 0 <= packet.src < len(self.stack.view) and packet.view != OUTSIDE
            peer = packet.src if is_member else None
            trace.row(step, self.stack.now, packet.view, peer=peer, n=len(packet.body))


def _due(heap: list[tuple[float, int, Packet]], now: float) -> list[Packet]:
    packets = []
    while heap and heap[0][0] <= now:
        packets.append(heappop(heap)[2])
    return packets
