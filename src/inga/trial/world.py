"""Virtual time for experiments and tests that drive members themselves, without the simulator.

    Agenda   the events to come, in order of time
    World    members, the time at which each wants to be woken, and the packets in flight between them
    Stacks   a world whose members are stacks

A subclass determines what a member is, how long packets take, and what is measured or judged. `inga.sim.Sim` is for
whole groups: applications that read, members that join and leave, traces.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any, Generic, TypeVar

from inga.model.delivery import Batch
from inga.model.errors import IngaError
from inga.stack.stack import Stack, joined

Packet = TypeVar("Packet")


class Agenda:
    """A queue of events in virtual time. Events of the same time happen in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._arranged = 0

    def at(self, when: float, act: Callable[..., None], *arguments: Any) -> None:
        """Schedule the call `act(*arguments)` for the time `when`."""
        self._arranged += 1
        heappush(self._events, (when, self._arranged, act, arguments))

    def step(self) -> None:
        """Run the next event."""
        self.now, _, act, arguments = heappop(self._events)
        act(*arguments)

    def play(self, until: float = inf) -> None:
        """Run all events before the time `until`."""
        while self._events and self._events[0][0] < until:
            self.step()


class World(Agenda, ABC, Generic[Packet]):
    """Members by number. After each event at a member, the packets that it wants to send leave, and the judges are called."""

    def __init__(self) -> None:
        super().__init__()
        self.judges: list[Callable[[int], None]] = []
        self._woken: dict[int, float] = {}  # by member, the time at which it wants to be woken

    @abstractmethod
    def receive(self, member: int, packet: Packet) -> None:
        """Give a copy of a packet to a member."""

    @abstractmethod
    def tick(self, member: int) -> None:
        """Wake a member at the time that it asked for."""

    @abstractmethod
    def collect(self, member: int) -> float | None:
        """Schedule the arrivals of the packets that a member sends; return when it wants to be woken, or None."""

    @property
    def idle(self) -> bool:
        """Whether nothing will happen any more: the only events left are wake-ups that no member wants any longer."""
        return all(
            act == self._wake and self._woken.get(arguments[0]) != arguments[1]
            for _, _, act, arguments in self._events
        )

    def arrives(self, when: float, target: int, packet: Packet) -> None:
        """Schedule the arrival of a copy."""
        self.at(when, self._arrive, target, packet)

    def turn(self, member: int) -> None:
        """Handle the output of a member after an event at it: its packets, its next wake-up, and the judges."""
        wake = self.collect(member)
        if wake is None:
            self._woken.pop(member, None)
        elif max(wake, self.now) != self._woken.get(member):
            wake = self._woken[member] = max(wake, self.now)
            self.at(wake, self._wake, member, wake)
        for judge in self.judges:
            judge(member)

    def _arrive(self, member: int, packet: Packet) -> None:
        self.receive(member, packet)
        self.turn(member)

    def _wake(self, member: int, when: float) -> None:
        if self._woken.get(member) == when:  # otherwise the member has asked for another time since
            del self._woken[member]
            self.tick(member)
            self.turn(member)


class Stacks(World[bytes]):
    """A world whose members are stacks. Their applications take every delivery at once."""

    def __init__(self, stacks: Sequence[Stack]) -> None:
        super().__init__()
        self.stacks = list(stacks)

    def arrivals(self, source: int, target: int) -> Iterable[float]:
        """The times at which copies of a datagram from `source` arrive at `target`: none if it is lost, two if it is duplicated."""
        raise NotImplementedError

    def leaves(self, member: int, data: bytes) -> None:
        """Called with each datagram that leaves a member. Subclasses that count or judge datagrams override it."""

    def failed(self, error: IngaError) -> None:
        raise error

    def receive(self, member: int, packet: bytes) -> None:
        self.stacks[member].receive([(packet, None)], now=self.now)

    def tick(self, member: int) -> None:
        self.stacks[member].tick(self.now)

    def collect(self, member: int) -> float | None:
        stack = self.stacks[member]
        ready = stack.ready()
        if ready.error is not None:
            self.failed(ready.error)
        for to, datagram in ready.send:
            data = joined(datagram)
            self.leaves(member, data)
            for target in (to,) if isinstance(to, int) else stack.others:
                for when in self.arrivals(member, target):
                    self.arrives(when, target, data)
        stack.taken([item.packet for item in ready.deliver if isinstance(item, Batch)], now=self.now)
        return ready.wake
