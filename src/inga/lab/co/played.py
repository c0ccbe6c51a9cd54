"""Groups of the CO recipe in virtual time, without loss and without pauses, to measure what the paper derives.

Links have fixed delays, applications send by a fixed rule, and every step of every message is kept as
a row. One unit of time is R, the delay between the members furthest apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import Any

from inga.lab.co.printed import PrintedCo
from inga.layers.co.layer import Co
from inga.layers.co.machine import CoMachine
from inga.model.packet import DATA
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.stack import Stack
from inga.trace.memory import MemoryTrace
from inga.trial.people import member_names
from inga.trial.world import Stacks

R = 0.01
"""Seconds: the longest one-way delay."""

SIZE = 512
"""Bytes of a message, as in the paper."""

MACHINES = {"printed": PrintedCo, "eager": CoMachine}
"""Machines by the name of their rule of self-knowledge: when a member counts its own acceptance of messages."""

Delay = Callable[[int, int], float]


def equal(source: int, target: int) -> float:
    return R


def unequal(seed: int) -> Delay:
    """Return random one-way delays between a tenth of R and R, the same for each call with a seed."""

    def delay(source: int, target: int) -> float:
        return R * Random(f"{seed}/{source}/{target}").uniform(0.1, 1.0)

    return delay


class PlayedGroup(Stacks):
    """Members over links without loss. A subclass decides when they send."""

    def __init__(
        self,
        members: int,
        delay: Delay = equal,
        self_knowledge: str = "eager",
        machine: type[CoMachine] | None = None,
        **protocol: Any,
    ) -> None:
        self.n = members
        self.headers: list[int] = []  # bytes of data packets besides the message
        self.pdus = {"data": 0, "control": 0}
        view = View.of(*member_names(members), recipe="co")
        self.traces = [MemoryTrace(me, members) for me in range(members)]
        settings = {"nack_delay": 2 * R, "resend": 1.0, "poll": 1.0, **protocol}
        stacks = []
        for me in range(members):
            order = Co(machine=machine or MACHINES[self_knowledge], **settings)
            layers = [order if layer.name == "co" else layer for layer in find("co").build(Options())]
            stacks.append(Stack(layers, me, view, rng=Random(me), trace=self.traces[me]))
        super().__init__(stacks)
        self._delay = delay

    def run(self) -> None:
        """Run from the first sends until nothing more is sent."""
        for member in range(self.n):
            self.turn(member)
        self.play()

    def wants_to_send(self, member: int) -> bool:
        """Whether this member sends now."""
        raise NotImplementedError

    def expected(self, member: int) -> list[int]:
        """Return the number that a member expects next from each member."""
        order = self.stacks[member].layer("co")
        assert isinstance(order, Co)
        return order.machine.expected

    def turn(self, member: int) -> None:
        super().turn(member)
        while self.wants_to_send(member):
            self.stacks[member].send(bytes(SIZE), now=self.now)
            super().turn(member)

    def arrivals(self, source: int, target: int) -> tuple[float]:
        return (self.now + self._delay(source, target),)

    def leaves(self, member: int, data: bytes) -> None:
        if data[3] == DATA:
            self.pdus["data"] += 1
            self.headers.append(len(data) - SIZE - 1)  # one byte marks a single message
        else:
            self.pdus["control"] += 1


class Rounds(PlayedGroup):
    """Each member sends when it has received a message of every other: the paper's steady state."""

    def __init__(self, members: int, rounds: int, **protocol: Any) -> None:
        super().__init__(members, confirm_delay=100 * R, confirm_every=0, **protocol)
        self._rounds = rounds
        self._sent = [0] * members

    def wants_to_send(self, member: int) -> bool:
        expected = self.expected(member)
        heard = min(number for m, number in enumerate(expected) if m != member) - 1
        if self._sent[member] < self._rounds and heard >= self._sent[member]:
            self._sent[member] += 1
            return True
        return False


class Saturated(PlayedGroup):
    """Each member always has something to send: the windows decide when."""

    def __init__(self, members: int, window: int, messages: int, delay: Delay, **protocol: Any) -> None:
        capacity = 64 * window * members
        super().__init__(
            members,
            delay,
            window=window,
            capacity=capacity,
            confirm_delay=R / 2,
            confirm_every=0,
            **protocol,
        )
        self._left = [messages] * members

    def wants_to_send(self, member: int) -> bool:
        if self._left[member] and self.stacks[member].passable:
            self._left[member] -= 1
            return True
        return False


class Talkers(Rounds):
    """Only two members send, in rounds; the others only receive."""

    def wants_to_send(self, member: int) -> bool:
        if (
            member > 1
            or self._sent[member] >= self._rounds
            or self.expected(member)[1 - member] <= self._sent[member]
        ):
            return False
        self._sent[member] += 1
        return True


@dataclass(frozen=True, slots=True)
class Task:
    """One simulation; `what` decides which other fields matter."""

    what: str  # stages, buffer, header, sending
    members: int
    self_knowledge: str = "printed"
    window: int = 1
    delays: str = "equal"
    seed: int = 0
    rule: str = "ours"  # by which confirmations are sent


PlayedFigures = dict[str, float]


def simulate(task: Task) -> PlayedFigures:
    """Run one task, wherever Spark schedules it."""
    if task.what == "stages":
        return _stages(task)
    return _buffer(task) if task.what == "buffer" else _header(task)


def _stages(task: Task) -> PlayedFigures:
    """Measure how long after its acceptance a message is confirmed and acknowledged, in units of R."""
    rounds = 12
    group = Rounds(task.members, rounds, self_knowledge=task.self_knowledge)
    group.run()
    waits: dict[str, list[float]] = {}
    for trace in group.traces:
        accepted = {(r.src, r.seq): r.time for r in trace.rows if r.step == "accept"}
        for row in trace.rows:
            if row.step in ("confirm", "acknowledge") and row.seq is not None and row.seq <= rounds - 4:
                whose = "own" if row.src == trace.process else "remote"
                waited = (row.time - accepted[row.src, row.seq]) / 1e9 / R
                waits.setdefault(f"{whose} {row.step}", []).append(waited)
    return {
        f"{name} {which}": f(each)
        for name, each in waits.items()
        for which, f in (("min", min), ("max", max))
    }


def _buffer(task: Task) -> PlayedFigures:
    """Measure how many messages of others are received between acceptance and acknowledgement, at most."""
    messages = 30 * task.window
    delay = equal if task.delays == "equal" else unequal(task.seed)
    group = Saturated(task.members, task.window, messages, delay, self_knowledge=task.self_knowledge)
    group.run()
    most = 0
    for trace in group.traces:
        received = 0
        accepted: dict[tuple[Any, Any], int] = {}
        for row in trace.rows:
            if row.step == "accept":
                received += row.src != trace.process
                accepted[row.src, row.seq] = received
            elif row.step == "acknowledge" and (row.seq or 0) <= messages - 4 * task.window:
                most = max(most, received - accepted[row.src, row.seq])
    return {"received": most}


def _header(task: Task) -> PlayedFigures:
    """Measure the mean bytes of a data packet besides its message."""
    kind = Rounds if task.delays == "all talk" else Talkers
    group = kind(task.members, 64, self_knowledge="eager")
    group.run()
    return {"bytes": fmean(group.headers)}
