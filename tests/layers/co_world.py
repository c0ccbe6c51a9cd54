"""Members of a CO group over a bad network, and a judge that knows what truly caused what.

`World` plays random schedules with loss, duplicates and overtaking, and after every event holds each member against
plain sets: who has accepted, confirmed and acknowledged which messages, and which messages caused which. Nothing here looks at
a vector to decide what is right.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

from inga.lab.co.printed import PrintedCo
from inga.layers.co.layer import Co
from inga.layers.co.machine import CoMachine
from inga.layers.co.ordering import precedes
from inga.layers.co.parts import LEVELS, CoMessage
from inga.layers.shape import Faults
from inga.model.errors import IngaError
from inga.model.view import View
from inga.stack.stack import Stack
from inga.trace.memory import MemoryTrace
from inga.trial.world import Stacks

from ..stack.harness import NAMES, Top

Name = tuple[int, int]
"""Sender and number of a message."""

SECONDS_MAX = 120.0
"""Of virtual time: a group that is not done by then never will be."""


@dataclass(frozen=True)
class Setting:
    """One random world."""

    seed: int
    n: int
    messages: tuple[int, ...]  # of each member; 0 is a silent one
    faults: Faults
    window: int
    quota: int
    self_knowledge: str
    deliver: str
    confirm_every: int | None
    fifo: bool  # links keep the order of what they do not lose

    @classmethod
    def of(cls, seed: int, **fixed: Any) -> "Setting":
        random = Random(seed)
        n = fixed.get("n", random.randint(2, 5))
        silent = random.random() < 0.4
        messages = tuple(
            0 if silent and member and random.random() < 0.5 else random.randint(1, 6) for member in range(n)
        )
        fifo = random.random() < 0.5
        faults = Faults(
            loss=random.choice([0.0, 0.1, 0.2, 0.4]),
            duplicate=random.choice([0.0, 0.2]),
            reorder=0.0 if fifo else random.choice([0.0, 0.3]),
            delay_min=0.001,
            delay_max=random.choice([0.001, 0.01]),
        )
        drawn = {
            "n": n,
            "messages": messages,
            "faults": faults,
            "window": random.choice([1, 2, 4, 8]),
            "quota": random.choice([1, 1, 2, 3, 8, 32]),
            "self_knowledge": random.choice(["printed", "eager"]),
            "deliver": random.choice(LEVELS),
            "confirm_every": random.choice([0, 1, None]),
            "fifo": fifo,
        }
        return cls(seed=seed, **{**drawn, **fixed})


class World(Stacks):
    """A random schedule, judged as it goes."""

    def __init__(self, setting: Setting, machine: type[CoMachine] = CoMachine) -> None:
        self.setting = setting
        self.random = Random(setting.seed + 1)
        n = self.n = setting.n
        self.rows: list[Any] = []
        view = View.of(*NAMES[:n])
        if setting.self_knowledge == "printed":
            bases = (PrintedCo,) if machine is CoMachine else (machine, PrintedCo)
            machine = type(f"Printed{machine.__name__}", bases, {})
        stacks = [
            Stack(
                [
                    Top(),
                    Co(
                        machine=machine,
                        deliver=setting.deliver,
                        window=setting.window,
                        capacity=setting.quota * n,
                        confirm_every=setting.confirm_every,
                        nack_delay=setting.seed % 2 * 0.001,
                        patience=300.0,
                    ),
                ],
                me,
                view,
                rng=self.random,
                trace=MemoryTrace(me, n, rows=self.rows),
            )
            for me in range(n)
        ]
        super().__init__(stacks)
        self.judges.append(self._judge)
        self.last_arrival: dict[tuple[int, int], float] = defaultdict(float)
        # the truth
        self.seen = 0  # rows judged so far
        self.causes: dict[Name, frozenset[Name]] = {}
        self.known: list[set[Name]] = [set() for _ in range(n)]  # sent or accepted
        self.accepted: list[list[Name]] = [[] for _ in range(n)]
        self.confirmed: list[set[Name]] = [set() for _ in range(n)]
        self.acknowledged: list[list[Name]] = [[] for _ in range(n)]
        self.delivered: list[list[Name]] = [[] for _ in range(n)]
        self.snapshots = [self._snapshot(me) for me in range(n)]
        self.plan()

    def plan(self) -> None:
        """Who sends when."""
        for member, count in enumerate(self.setting.messages):
            at = 0.0
            for _ in range(count):
                at += self.random.expovariate(1 / 0.01)
                self.at(at, self.send, member)

    def co(self, member: int) -> CoMachine:
        layer = self.stacks[member].layers[1]
        assert isinstance(layer, Co)
        return layer.machine

    def run(self) -> None:
        """To the end, or to the first thing that is wrong."""
        self.play(SECONDS_MAX)
        assert self.idle, "10: not quiet"
        self._judge_end()

    def send(self, member: int) -> None:
        """Whether or not the window is open."""
        self.stacks[member].now = self.now
        self.stacks[member].entrance([b"\0m"], None)
        self.turn(member)

    def arrivals(self, source: int, target: int) -> Iterator[float]:
        for delay in self.setting.faults.fates(self.random):
            at = self.now + delay
            if self.setting.fifo:
                at = self.last_arrival[source, target] = max(at, self.last_arrival[source, target])
            yield at

    def failed(self, error: IngaError) -> None:
        raise AssertionError(str(error))

    # The judge

    def _judge(self, member: int) -> None:
        fresh = self.rows[self.seen :]
        self.seen = len(self.rows)
        confirmed_now: list[Name] = []
        for row in fresh:
            assert row.process == member
            message = (row.src, row.seq)
            if row.step == "send":
                self.causes[message] = frozenset(self.known[member])
                self.known[member].add(message)
            elif row.step == "accept":
                self._judge_acceptance(member, message)
            elif row.step == "confirm":
                for other in range(self.n):
                    assert message in self.accepted[other], f"4: {message} confirmed, {other} lacks it"
                assert message not in self.confirmed[member]
                self.confirmed[member].add(message)
                confirmed_now.append(message)
            elif row.step == "acknowledge":
                for other in range(self.n):
                    assert message in self.confirmed[other], (
                        f"5: {message} acknowledged, not confirmed at {other}"
                    )
                self._append(self.acknowledged[member], message, "6: acknowledged")
            elif row.step == "deliver":
                self._append(self.delivered[member], message, "6: delivered", own=False)
        for message in confirmed_now:
            assert self.causes[message] <= self.confirmed[member], f"4: {message} confirmed before its causes"
        self._judge_state(member)

    def _judge_acceptance(self, member: int, message: Name) -> None:
        before = [seq for src, seq in self.accepted[member] if src == message[0]]
        assert message[1] == len(before) + 1, f"1: {message} accepted after {before}"
        assert self.causes[message] <= self.known[member], f"2: {message} accepted before its causes"
        self._append(self.accepted[member], message, "6: accepted")
        self.known[member].add(message)

    def _append(self, order: list[Name], message: Name, what: str, *, own: bool = True) -> None:
        assert message not in order, f"{what} {message} twice"
        needed = self.causes[message] if own else {m for m in self.causes[message] if m[0] != self._at(order)}
        assert needed <= set(order), f"{what} {message} before its causes"
        order.append(message)

    def _at(self, order: list[Name]) -> int:
        return next(i for i, each in enumerate(self.delivered) if each is order)

    def _judge_state(self, member: int) -> None:
        co = self.co(member)
        for one, other in pairwise(co.log):
            assert (other.src, other.seq) not in self.causes[one.src, one.seq], "7: the log is out of order"
        now = self._snapshot(member)
        for old, new in zip(self.snapshots[member], now, strict=True):
            assert all(a <= b for a, b in zip(old, new, strict=True)), "8: a number went down"
        self.snapshots[member] = now
        for sender in range(self.n):
            for reporter in range(self.n):
                known = co.known_accepted.rows[sender][reporter]
                assert known <= self.co(reporter).expected[sender], "8: more is known than is true"
        held = [len(co.early[m]) + len(co.accepted[m]) for m in range(self.n)]
        for message in co.log:
            held[message.src] += 1
        assert held == co.held
        assert max(held) <= co.quota and sum(held) <= co.capacity, f"9: {held} held of {co.quota}"
        for seq in range(1, co.expected[member]):
            if seq not in co.unreleased:
                assert all((member, seq) in self.accepted[m] for m in range(self.n)), f"11: {seq} released"

    def _snapshot(self, member: int) -> list[list[int]]:
        co = self.co(member)
        matrices = (co.known_accepted, co.known_confirmed, co.reported_confirmed)
        return [list(co.expected), list(co.known_sent), *[list(row) for m in matrices for row in m.rows]]

    def _judge_end(self) -> None:
        everything = set(self.causes)
        assert len(everything) == sum(self.setting.messages), "10: something was never sent"
        for member in range(self.n):
            assert set(self.acknowledged[member]) == everything, "10: something is not acknowledged"
            assert self.stacks[member].ready().wake is None, "10: somebody is not done"
        self._judge_vectors()

    def _judge_vectors(self) -> None:
        """3: the vectors say exactly what caused what."""
        messages: dict[Name, CoMessage] = {}
        for row in self.rows:
            if row.step == "send":
                message = messages[row.src, row.seq] = CoMessage(row.src, row.seq, None, (), 0)
                message.deps = row.deps
        for one, first in messages.items():
            for other, second in messages.items():
                if one != other:
                    said, true = precedes(first, second), one in self.causes[other]
                    assert said == true, f"3: {one} < {other} is said to be {said}"


def found(machine: type[CoMachine], seeds: Iterable[int], **fixed: Any) -> str | None:
    """What the judge first finds wrong with a protocol, and the seed."""
    for seed in seeds:
        try:
            World(Setting.of(seed, **fixed), machine).run()
        except AssertionError as error:
            return f"seed {seed}: {error}"
    return None
