"""Rules that are almost right, each as it is found in print or in code, to see whether our checks see it.

Scan            the standard test by brute force: the control, which must pass wherever ours does
Strict          exactly one component one larger, all others *equal*
HeadOnly        only the head of a sorted buffer is tested, duplicates are kept
Incomparable    "not larger than mine" taken for "concurrent, hence deliverable", and counted
FifoOnly        the causes of other senders are not looked at
Twice           a duplicate passes the test and is counted
OwnCopy         one's own copy goes through the receive test
Live            the live vector is attached, not a copy of it
Released        stamps and flags from what was released, not from what was taken
NoHeartbeat     nobody says how far it got
CountsTwice     the acknowledged count goes up with a duplicate
"""

from collections.abc import Callable
from typing import Any

from inga.causality.arrivals import Arrivals
from inga.causality.clock import SiteClock
from inga.causality.inbox import DUPLICATE, HELD, RELEASED
from inga.layers.causal import Causal
from inga.layers.reliable import Reliable
from inga.model.packet import Packet
from inga.model.stamp import Delta
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.layer import Layer

# Hold queues


class Held:
    """A message in a buffer, with its full vector."""

    def __init__(self, vector: list[int], src: int, item: Packet) -> None:
        self.vector, self.src, self.item = vector, src, item

    @property
    def seq(self) -> int:
        return self.vector[self.src]


class ScanInbox:
    """A list of held messages, searched from end to end."""

    def __init__(self, me: int, members: int) -> None:
        self.me = me
        self.vector = [0] * members
        self.buffer: list[Held] = []

    @property
    def held(self) -> int:
        return len(self.buffer)

    def own(self, seq: int) -> None:
        self.vector[self.me] = seq

    def offer(self, src: int, seq: int, delta: Delta, item: Packet, out: list[Packet]) -> int:
        vector = [0] * len(self.vector)
        for k, count in delta:
            vector[k] = count
        vector[src] = seq
        if self.is_duplicate(src, seq):
            return DUPLICATE
        self.put(Held(vector, src, item))
        before = len(out)
        self.examine(out)
        return RELEASED if item in out[before:] else HELD

    def is_duplicate(self, src: int, seq: int) -> bool:
        return seq <= self.vector[src] or any((h.src, h.seq) == (src, seq) for h in self.buffer)

    def put(self, held: Held) -> None:
        self.buffer.append(held)

    def examine(self, out: list[Packet]) -> None:
        while (ready := next(filter(self.passes, self.buffer), None)) is not None:
            self.release(ready, out)

    def release(self, ready: Held, out: list[Packet]) -> None:
        self.buffer.remove(ready)
        self.vector[ready.src] += 1
        out.append(ready.item)

    def passes(self, held: Held) -> bool:
        return held.seq == self.vector[held.src] + 1 and all(
            self.is_met(count, mine)
            for k, (count, mine) in enumerate(zip(held.vector, self.vector, strict=True))
            if k != held.src
        )

    def is_met(self, count: int, mine: int) -> bool:
        return count <= mine


class StrictInbox(ScanInbox):
    def is_met(self, count: int, mine: int) -> bool:
        return count == mine


class FifoOnlyInbox(ScanInbox):
    def is_met(self, count: int, mine: int) -> bool:
        return True


class HeadOnlyInbox(ScanInbox):
    def is_duplicate(self, src: int, seq: int) -> bool:
        return False

    def put(self, held: Held) -> None:
        self.buffer.append(held)
        self.buffer.sort(key=lambda each: (sum(each.vector), each.src))

    def examine(self, out: list[Packet]) -> None:
        while self.buffer and self.passes(self.buffer[0]):
            self.release(self.buffer[0], out)


class IncomparableInbox(ScanInbox):
    def is_duplicate(self, src: int, seq: int) -> bool:
        return False

    def passes(self, held: Held) -> bool:
        is_larger = held.vector != self.vector and all(
            count >= mine for count, mine in zip(held.vector, self.vector, strict=True)
        )
        return super().passes(held) if is_larger else True


class TwiceInbox(ScanInbox):
    def is_duplicate(self, src: int, seq: int) -> bool:
        return False

    def passes(self, held: Held) -> bool:
        return held.seq <= self.vector[held.src] or super().passes(held)


# Layers


class Scan(Causal):
    """The causal layer around another hold queue. Full vectors travel, so that any rule can be tried."""

    hold_queue: type[ScanInbox] = ScanInbox

    def view(self, view: View) -> None:
        super().view(view)
        self.inbox = self.hold_queue(self.stack.me, len(view))  # type: ignore[assignment]

    def down(self, batch: list[Packet]) -> None:
        for packet in batch:
            self.clock.restate()
            super().down([packet])


class Strict(Scan):
    hold_queue = StrictInbox


class HeadOnly(Scan):
    hold_queue = HeadOnlyInbox


class Incomparable(Scan):
    hold_queue = IncomparableInbox


class FifoOnly(Scan):
    hold_queue = FifoOnlyInbox


class Twice(Scan):
    hold_queue = TwiceInbox


class OwnCopy(HeadOnly):
    def _sent(self, packet: Packet) -> None:
        super()._sent(packet)
        assert packet.stamp is not None
        self.inbox.offer(packet.src, packet.seq, packet.stamp.delta, packet, [])


class LiveStamp:
    """Looks like a stamp, and says what the clock says when it is asked."""

    def __init__(self, clock: SiteClock) -> None:
        self.clock = clock

    @property
    def delta(self) -> Delta:
        return tuple((k, count) for k, count in enumerate(self.clock.vector) if count and k != self.clock.me)

    @property
    def height(self) -> int:
        return self.clock.height


class LivePacket(Packet):
    """A packet with such a stamp; its own count is part of the vector."""

    __slots__ = ()

    @property
    def seq(self) -> int:  # type: ignore[override]
        assert isinstance(self.stamp, LiveStamp)
        return self.stamp.clock.vector[self.src]


class Live(Causal):
    def _sent(self, packet: Packet) -> None:
        super()._sent(packet)
        packet.stamp = LiveStamp(self.clock)  # type: ignore[assignment]
        packet.__class__ = LivePacket


class Released(Causal):
    """What is taken was released long ago, so nothing is left to do then."""

    def _rebuild(self, out: list[Packet]) -> None:
        super()._rebuild(out)
        super().taken(out)

    def taken(self, packets: list[Packet]) -> None: ...


class Delay(Layer):
    """Below the order: packets leave in pairs, so the first of each waits for the second."""

    name = "delay"

    def __init__(self) -> None:
        self.pending: list[Packet] = []

    def down(self, batch: list[Packet]) -> None:
        self.pending += batch
        if len(self.pending) > 1:
            batch, self.pending = self.pending, []
            self.below(batch)


class NoHeartbeat(Reliable):
    def _beat(self, now: float) -> None:
        self._beat_at = None


class DoubleArrivals(Arrivals):
    def add(self, number: int) -> bool:
        is_new = super().add(number)
        if not is_new:
            self.expected += 1
        return is_new


class CountsTwice(Reliable):
    def view(self, view: View) -> None:
        super().view(view)
        self._arrived = [DoubleArrivals() for _ in view.members]


# Recipes with a layer exchanged

MUTANTS: dict[str, type[Layer]] = {
    "scan": Scan,
    "strict": Strict,
    "head-only": HeadOnly,
    "incomparable": Incomparable,
    "fifo-only": FifoOnly,
    "twice": Twice,
    "own-copy": OwnCopy,
    "live": Live,
    "released": Released,
    "no-heartbeat": NoHeartbeat,
    "counts-twice": CountsTwice,
}


def with_mutant(name: str, options: Options) -> list[Layer]:
    """The recipe `vector` with that mutant in the place of the layer of its name."""
    mutant = MUTANTS[name]
    if issubclass(mutant, Causal):
        new: Layer = mutant(echo=bool(options.echo), on_concurrent=options.on_concurrent)
    else:
        new = mutant(**options.reliable)
    layers = find("vector").build(options)
    assert new.name in [layer.name for layer in layers]
    return [new if layer.name == new.name else layer for layer in layers]


def whole(name: str) -> Callable[[Options], list[Layer]]:
    """For a `Sim`: the whole recipe with that mutant in it."""
    return lambda options: with_mutant(name, options)


def on_board(scheme: str, *below: type[Layer]) -> Callable[[], list[Any]]:
    """For a `Board` or an `Explorer`: a recipe, or one with a mutant, and layers beneath it."""
    options = Options(lossless=True)

    def build() -> list[Any]:
        layers = with_mutant(scheme, options) if scheme in MUTANTS else find(scheme).build(options)
        return [*layers, *(each() for each in below)]

    return build
