"""Rungs with counters or clocks: pairwise numbers, real time, one scalar, the last sender.

    pairwise             stamp: the number of this message among those to the same peer; the next number passes
    realtime             stamp: the sender's clock; messages pass by rising stamp, once a waiting time has ended
    scalar               stamp: one counter per site, copied from delivered messages; the next number passes
    last-sender          stamp: (sender, count) of the last receipt; passes if my count of that sender is equal
    last-sender-atleast  the same with "at least"
    last-sender-own      the same, and own sends count as "last" too

From Dewan's "Causality" lectures. Which violations each one admits: docs/protocols/causality.md.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, ClassVar

from inga.lab.rungs.rung import Rung, Waiting, is_count, need
from inga.layers.numbers import check_delay
from inga.layers.settings import settle
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View

WAIT = 0.05
"""Seconds: five times the longest delay in a simulated group. On a real network there is no known bound."""

MICROSECOND = 1e-6


class Pairwise(Rung[int]):
    """Unicast order for a group: one (local, remote, buffer) for each peer, each buffer sorted."""

    name = "pairwise"
    provides = frozenset({"fifo"})
    claims = ("integrity", "complete", "fifo", "stamps")
    level = "accepted"

    def view(self, view: View) -> None:
        super().view(view)
        n = len(view)
        self._local = [0] * n  # sent to the peer
        self._remote = [0] * n  # the last number processed from the peer
        self._buffers: list[list[Waiting[int]]] = [[] for _ in range(n)]

    def state_text(self) -> str:
        peers = [m for m in range(len(self._remote)) if m != self.stack.me]
        return "has " + ", ".join(f"{self._remote[m]} from {self._name(m)}" for m in peers)

    def drain(self) -> list[Packet]:
        packets = [waiting.packet for buffer in self._buffers for waiting in buffer]
        for buffer in self._buffers:
            buffer.clear()
        return self._dismissed(packets)

    def _stamp(self, packet: Packet) -> list[int]:
        numbers = []
        for peer in self._audience(packet):
            self._local[peer] += 1
            numbers.append(self._local[peer])
        return numbers

    def _read(self, packet: Packet, numbers: list[int]) -> int:
        audience = self._audience(packet)
        need(self.stack.me in audience and len(numbers) == len(audience), "numbers for other peers")
        number = numbers[audience.index(self.stack.me)]
        need(is_count(number), f"number {number}")
        return number

    def _show(self, stamp: int) -> str:
        return f"no. {stamp}"

    def _admit(self, waiting: Waiting[int], out: list[Packet]) -> None:
        src = waiting.packet.src
        buffer = self._buffers[src]
        buffer.append(waiting)
        buffer.sort(key=lambda each: each.stamp)
        while buffer and buffer[0].stamp == self._remote[src] + 1:
            self._pass_on(buffer.pop(0), out)

    def _count(self, waiting: Waiting[int]) -> None:
        self._remote[waiting.packet.src] = waiting.stamp

    def _audience(self, packet: Packet) -> list[int]:
        members = range(len(self.stack.view))
        return [m for m in members if m != packet.src and (packet.dst is None or packet.dst >> m & 1)]


@dataclass(frozen=True, slots=True)
class RealTimeSettings:
    """The settings of `realtime`."""

    wait: float = WAIT  # seconds that a message waits for older ones
    skew: tuple[float, ...] = ()  # by how much each clock is ahead

    def __post_init__(self) -> None:
        check_delay("wait", self.wait)
        if not isinstance(self.skew, tuple):
            raise UsageError(f"skew is a tuple of seconds, one for each clock, not {self.skew!r}")


class RealTime(Rung[int]):
    """Order by the senders' clocks. When a message has waited long enough, no older ones are expected."""

    name = "realtime"
    settings = RealTimeSettings

    def __init__(self, *, echo: bool = False, **said: Any) -> None:
        super().__init__(echo=echo)
        made = settle(RealTimeSettings, self.name, said)
        self._wait, self._skew = made.wait, made.skew

    def view(self, view: View) -> None:
        super().view(view)
        if self._skew and len(self._skew) != len(view):
            raise UsageError(
                f"{len(self._skew)} clocks are set for {len(view)} members: name each one's skew"
            )
        self._ahead = self._skew[self.stack.me] if self._skew else 0.0
        self._sorted: list[tuple[int, int, int, Packet]] = []  # (stamp, src, arrival, packet)
        self._due: list[tuple[float, int]] = []  # (when the wait ends, arrival), by time
        self._released: set[int] = set()  # arrivals
        self._arrivals = 0

    def tick(self, now: float) -> None:
        """Release the messages that have waited long enough, and before them all older ones."""
        out: list[Packet] = []
        while self._due and self._due[0][0] <= now:
            _, arrival = heappop(self._due)
            while arrival not in self._released:
                _, _, older, packet = heappop(self._sorted)
                self._released.add(older)
                out.append(packet)
            self._released.remove(arrival)
        self._rearm()
        if out:
            self._release(out)

    def drain(self) -> list[Packet]:
        packets = [packet for _, _, _, packet in sorted(self._sorted)]
        self._sorted.clear()
        self._due.clear()
        self._released.clear()
        self._rearm()
        return self._dismissed(packets)

    def _stamp(self, packet: Packet) -> list[int]:
        return [max(0, round((self.stack.now + self._ahead) / MICROSECOND))]

    def _read(self, packet: Packet, numbers: list[int]) -> int:
        need(len(numbers) == 1, "not one time")
        return numbers[0]

    def _show(self, stamp: int) -> str:
        return f"{stamp * MICROSECOND:g} s"

    def state_text(self) -> str:
        return f"clock {self.stack.now + self._ahead:g} s"

    def _admit(self, waiting: Waiting[int], out: list[Packet]) -> None:
        self._arrivals += 1
        heappush(self._sorted, (waiting.stamp, waiting.packet.src, self._arrivals, waiting.packet))
        heappush(self._due, (self.stack.now + self._wait, self._arrivals))
        self._rearm()

    def _rearm(self) -> None:
        self.wake = self._due[0][0] if self._due else None


class Scalar(Rung[int]):
    """One counter for everything: right as long as no two messages are ever concurrent."""

    name = "scalar"

    def view(self, view: View) -> None:
        super().view(view)
        self._known = 0

    def state_text(self) -> str:
        return f"counter {self._known}"

    def _stamp(self, packet: Packet) -> list[int]:
        self._known += 1
        return [self._known]

    def _read(self, packet: Packet, numbers: list[int]) -> int:
        need(len(numbers) == 1 and is_count(numbers[0]), "not one number")
        return numbers[0]

    def _show(self, stamp: int) -> str:
        return str(stamp)

    def _passes(self, waiting: Waiting[int]) -> bool:
        return waiting.stamp == self._known + 1

    def _count(self, waiting: Waiting[int]) -> None:
        self._known = waiting.stamp


Last = tuple[int, int] | None
"""(sender, count), or nothing yet."""


class LastSender(Rung[Last]):
    """The stamp names the last message received, and no other."""

    name = "last-sender"
    counts_own: ClassVar[bool] = False

    def view(self, view: View) -> None:
        super().view(view)
        self._counts = [0] * len(view)
        self._last: Last = None

    def state_text(self) -> str:
        return "counts " + " ".join(f"{self._name(m)}{count}" for m, count in enumerate(self._counts))

    def _stamp(self, packet: Packet) -> list[int]:
        last = self._last
        if self.counts_own:
            self._counts[packet.src] += 1
            self._last = (packet.src, self._counts[packet.src])
        return [] if last is None else [*last]

    def _read(self, packet: Packet, numbers: list[int]) -> Last:
        if not numbers:
            return None
        need(len(numbers) == 2, "not one sender and count")
        sender, count = numbers
        need(sender < len(self._counts) and is_count(count), f"count {count} of sender {sender}")
        return sender, count

    def _show(self, stamp: Last) -> str:
        return "after –" if stamp is None else f"after {self._name(stamp[0])}{stamp[1]}"

    def _passes(self, waiting: Waiting[Last]) -> bool:
        if waiting.stamp is None or waiting.stamp[0] == self.stack.me:
            return True  # we know the messages that we sent ourselves
        sender, count = waiting.stamp
        return self._is_met(self._counts[sender], count)

    def _is_met(self, mine: int, named: int) -> bool:
        return mine == named

    def _count(self, waiting: Waiting[Last]) -> None:
        src = waiting.packet.src
        self._counts[src] += 1
        self._last = (src, self._counts[src])


class LastSenderAtLeast(LastSender):
    """A message also passes if my count is higher than its stamp says."""

    name = "last-sender-atleast"

    def _is_met(self, mine: int, named: int) -> bool:
        return mine >= named


class LastSenderOwn(LastSenderAtLeast):
    """The stamp names the last event: own sends count too, so consecutive messages of one sender cannot change places."""

    name = "last-sender-own"
    counts_own = True
