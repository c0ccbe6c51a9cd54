"""Virtual time for experiments and tests that drive members themselves, without the simulator.

    Agenda   what happens next
    World    members, when each wants to be woken, and the packets under way between them
    Stacks   a world whose members are stacks

A subclass says what a member is, how long packets take, and what is to be measured or judged. `inga.sim.Sim` is for
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
    """Events of one moment happen in the order in which they were arranged."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._arranged = 0

    def at(self, when: float, act: Callable[..., None], *arguments: Any) -> None:
        """Let `act(*arguments)` happen then."""
        self._arranged += 1
        heappush(self._events, (when, self._arranged, act, arguments))

    def step(self) -> None:
        """Let happen what is next."""
        self.now, _, act, arguments = heappop(self._events)
        act(*arguments)

    def play(self, until: float = inf) -> None:
        """Let everything happen that is before that time."""
        while self._events and self._events[0][0] < until:
            self.step()


class World(Agenda, ABC, Generic[Packet]):
    """Members by number. After whatever happens to a member, what it wants to send leaves, and judges look at it."""

    def __init__(self) -> None:
        super().__init__()
        self.judges: list[Callable[[int], None]] = []
        self._woken: dict[int, float] = {}  # who is to be woken, and when

    @abstractmethod
    def receive(self, member: int, packet: Packet) -> None:
        """A copy has come."""

    @abstractmethod
    def tick(self, member: int) -> None:
        """The time has come for which it asked."""

    @abstractmethod
    def collect(self, member: int) -> float | None:
        """Say when what it sends arrives; when it wants to be woken."""

    @property
    def idle(self) -> bool:
        """Whether nothing will happen any more: of what is arranged, only times for which nobody asks any longer are left."""
        return all(
            act == self._wake and self._woken.get(arguments[0]) != arguments[1]
            for _, _, act, arguments in self._events
        )

    def arrives(self, when: float, target: int, packet: Packet) -> None:
        """Let a copy come then."""
        self.at(when, self._arrive, target, packet)

    def turn(self, member: int) -> None:
        """It has done something."""
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
        if self._woken.get(member) == when:  # else it has asked for another time since
            del self._woken[member]
            self.tick(member)
            self.turn(member)


class Stacks(World[bytes]):
    """Members that are stacks, whose applications take at once what is delivered."""

    def __init__(self, stacks: Sequence[Stack]) -> None:
        super().__init__()
        self.stacks = list(stacks)

    def arrivals(self, source: int, target: int) -> Iterable[float]:
        """What becomes of a copy between these two: when it comes, perhaps never or twice."""
        raise NotImplementedError

    def leaves(self, member: int, data: bytes) -> None:
        """For those who count datagrams, or judge them."""

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
