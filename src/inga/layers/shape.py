"""A network that misbehaves on purpose: loss, duplicates, delay, overtaking. For tests.

The simulator's links and the `shape` layer of live members take their faults from one class, so a
fault means the same in both. Loss is per copy, at its receiver.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.stack.layer import Layer
from inga.stack.stack import Rng


@dataclass(frozen=True, slots=True)
class Faults:
    """What a link does to copies. Probabilities per copy, delays in seconds."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0  # such a copy is delayed by up to twice the maximum
    delay_min: float = 0.0
    delay_max: float = 0.0

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} is a probability between 0 and 1, not {getattr(self, name)!r}")
        if self.loss == 1:
            raise UsageError("with a loss of 1 nothing ever arrives")
        if not 0 <= self.delay_min <= self.delay_max:
            raise UsageError(f"delay {self.delay_min}:{self.delay_max} is not MIN:MAX with 0 <= MIN <= MAX")

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


class Shape(Layer):
    """Applies faults to everything that comes in."""

    name = "shape"
    transparent = True

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._delayed: list[tuple[float, int, Packet]] = []
        self._order = 0

    def up(self, batch: list[Packet]) -> None:
        now: list[Packet] = []
        for packet in batch:
            fates = self.faults.fates(self.stack.rng)
            if not fates:
                self._row("lost", packet)
            for delay in fates:
                if delay:
                    self._delay(packet, delay)
                else:
                    now.append(packet)
        if now:
            self.above(now)

    def tick(self, now: float) -> None:
        due = []
        while self._delayed and self._delayed[0][0] <= now:
            due.append(heappop(self._delayed)[2])
        self.wake = self._delayed[0][0] if self._delayed else None
        if due:
            self.above(due)

    def drain(self) -> list[Packet]:
        packets = [packet for _, _, packet in sorted(self._delayed)]
        self._delayed.clear()
        self.wake = None
        return packets

    def _delay(self, packet: Packet, delay: float) -> None:
        packet.keep()
        self._row("delayed", packet)
        self._order += 1
        heappush(self._delayed, (self.stack.now + delay, self._order, packet))
        self.wake = self._delayed[0][0]

    def _row(self, step: str, packet: Packet) -> None:
        trace = self.stack.trace
        if trace is not None and trace.full:
            trace.row(step, self.stack.now, packet.view, peer=packet.src, n=len(packet.body))
