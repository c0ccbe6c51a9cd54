"""Random runs: hostile tables, programs and networks, each fixed by its seed."""

from random import Random
from typing import Any

from inga.objects.options import EngineOptions
from inga.objects.roster import ConflictRelation, Pairs, Place, Roster

from .judge import Fault, Judge
from .world import Network, Plan, Program, World

LIMIT = 5000.0
"""Units of virtual time in which every run has to end. Where half of all packets are lost one has taken 3,043."""


class Generator:
    """Makes the plan of one run."""

    reliable = False

    def __init__(self, seed: int, *, crash: bool = False, depth: int = 3) -> None:
        self.rng = rng = Random(seed)
        self.crash = crash
        self.depth = depth
        self.n = rng.randint(2, 6)
        self.names = [f"o{i}" for i in range(self.n)]
        self.ops = [f"m{i}" for i in range(rng.randint(1, 4))]

    def plan(self) -> Plan:
        rng = self.rng
        roster = self.roster()
        roots = [
            (rng.uniform(0, 60), self.at(roster), self.program(rng.randint(1, self.depth)))
            for _ in range(rng.randint(1, 6))
        ]
        crash = None
        if self.crash and self.n > 2:
            # Soon after somebody there has begun something, mostly.
            begun, place, _ = rng.choice(roots)
            at = begun + rng.choice([rng.uniform(0.5, 10), rng.uniform(0, 80)])
            crash = (roster.member_of[place], at, [at + rng.uniform(1, 50) for _ in range(self.n)])
        announce, quiet = rng.random() < 0.5, rng.random() < 0.3
        options = EngineOptions(delta=10.0, announce=announce, quiet=quiet, reliable=self.reliable)
        return Plan(roster, roots, options, crash)

    def roster(self) -> Roster:
        return Roster([Place(i, name) for i, name in enumerate(self.names)], self.relations())

    def at(self, roster: Roster) -> int:
        """Where a root begins."""
        return self.rng.randrange(self.n)

    def network(self) -> Network:
        rng = self.rng
        low = rng.choice([0.5, 1.0, 5.0])
        losses = [0.1, 0.3, 0.5] if self.crash else [0.0, 0.0, 0.1, 0.3]
        high, loss = rng.choice([low, 3 * low, 20.0]), rng.choice(losses)
        return Network(rng, (low, high), loss, 0.05, rng.random() < 0.2, self.reliable)

    def relations(self) -> dict[str, ConflictRelation]:
        rng = self.rng
        shared = rng.random() < 0.5
        table = self.table()
        return {name: Pairs(table if shared else self.table()) for name in self.names}

    def table(self) -> list[tuple[str, str]]:
        density = self.rng.choice([0.0, 0.2, 0.5, 0.8, 1.0])
        return [
            (one, other)
            for at, one in enumerate(self.ops)
            for other in self.ops[at:]
            if self.rng.random() < density
        ]

    def program(self, depth: int) -> Program:
        rng = self.rng
        steps: Program = []
        for _ in range(rng.choice([0, 1, 1, 2, 3]) if depth < self.depth else rng.randint(1, 3)):
            what = rng.random()
            if depth == 0 or what < 0.15:
                steps.append(["work", rng.uniform(0, 15)])
            elif what < 0.7:
                steps.append(self.call(rng.choice("ssao"), depth))
            elif what < 0.85:
                steps.append(["and", [self.call("a", depth) for _ in range(rng.randint(1, 3))]])
            else:
                steps.append(["or", [self.call("a", depth) for _ in range(rng.randint(1, 3))]])
        if rng.random() < 0.06:
            steps.insert(rng.randint(0, len(steps)), ["fail"])
        return steps

    def call(self, kind: str, depth: int) -> list[Any]:
        rng = self.rng
        count = min(rng.choice([1, 1, 1, 2, 3]), len(self.names))
        return [kind, rng.sample(self.names, count), rng.choice(self.ops), self.program(depth - 1)]


class Replicated(Generator):
    """Objects with copies at several members, several of them at a member, clients that only call."""

    def __init__(self, seed: int, *, crash: bool = False) -> None:
        super().__init__(seed, crash=crash)
        rng = self.rng
        self.names = [f"o{i}" for i in range(rng.randint(1, 4))]
        self.copies = {
            name: sorted(rng.sample(range(self.n), rng.randint(1, min(3, self.n)))) for name in self.names
        }

    def roster(self) -> Roster:
        relations = self.relations()
        return Roster.of(self.n, {name: (relations[name], self.copies[name]) for name in self.names})

    def at(self, roster: Roster) -> int:
        return roster.client(self.rng.randrange(self.n))


class Repaired(Generator):
    """The same over something that loses no message, but keeps no order either."""

    reliable = True


def played(
    seed: int, *, crash: bool = False, limit: float = LIMIT, generator: type[Generator] = Generator
) -> tuple[World, list[Fault]]:
    """One run and what is wrong with it."""
    made = generator(seed, crash=crash)
    world = World(made.plan(), made.network())
    settled = world.run(limit)
    return world, Judge(world, settled).faults()
