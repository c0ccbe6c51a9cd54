"""Random runs over bad networks, judged: what every one of them has to fulfil."""

import os
from random import Random, randrange
from typing import Any

import pytest

from inga.objects.declare import ObjectClass, method
from inga.objects.invoke import InstanceContext
from inga.objects.options import EngineOptions
from inga.objects.roster import Roster

from .generate import Generator, Repaired, Replicated, played
from .judge import SENDS, History
from .world import Network, Plan, World

BLOCK = 20
"""Seeds in one test."""


def judge(first: int, count: int, **how: Any) -> None:
    for seed in range(first, first + count):
        world, faults = played(seed, **how)
        assert not faults, (seed, how, faults[:5], world.now)


@pytest.mark.parametrize("first", range(0, 200, BLOCK))
def test_runs(first: int) -> None:
    judge(first, BLOCK)


@pytest.mark.parametrize("first", range(0, 60, BLOCK))
def test_runs_with_a_crash(first: int) -> None:
    judge(first, BLOCK, crash=True)


@pytest.mark.parametrize("first", range(0, 80, BLOCK))
def test_runs_of_replicated_objects(first: int) -> None:
    judge(first, BLOCK, generator=Replicated)


@pytest.mark.parametrize("first", range(0, 60, BLOCK))
def test_runs_of_replicated_objects_with_a_crash(first: int) -> None:
    judge(first, BLOCK, generator=Replicated, crash=True)


@pytest.mark.parametrize("first", range(0, 40, BLOCK))
def test_runs_over_something_reliable(first: int) -> None:
    judge(first, BLOCK, generator=Repaired)


@pytest.mark.parametrize(
    ("seed", "how"),
    [
        (137, {"generator": Replicated}),  # a descendant at a copy before its ancestor has begun there
        (2, {"generator": Replicated}),  # answers to an instance that was cancelled before it came
        (1584, {"generator": Replicated}),  # answers that were there before the body said that one will do
        (
            60916,
            {"generator": Replicated, "crash": True},
        ),  # two answers that were early, one of which precedes
        (
            6830,
            {"generator": Replicated, "crash": True},
        ),  # an answer to one that had aborted, whose abort is lost
        (
            95005639,
            {"generator": Replicated, "crash": True},
        ),  # a copy that waits for what the one that speaks for it has refused, called by a copy that is gone
        (
            98008544,
            {"generator": Replicated, "crash": True},
        ),  # a call that the copy that is gone has taken back, and the next one makes: only the abort had come
    ],
)
def test_runs_that_once_went_wrong(seed: int, how: dict[str, Any]) -> None:
    judge(seed, 1, **how)


FRESH = int(os.environ.get("INGA_SEED") or randrange(1 << 20, 1 << 40))
"""Where fresh seeds begin. A failure names its own; INGA_SEED repeats them all."""

HUNTED = 10_000
"""Fresh seeds of each kind."""


@pytest.mark.hunt
@pytest.mark.parametrize("first", range(0, HUNTED, 500))
@pytest.mark.parametrize("generator", [Generator, Replicated, Repaired])
@pytest.mark.parametrize("crash", [False, True])
def test_hunt(first: int, generator: type[Generator], crash: bool) -> None:
    judge(FRESH + first, 500, generator=generator, crash=crash)


# Replicated counters: I11


class Counter(ObjectClass):
    """Fully replicated in what follows."""

    def initial(self) -> Any:
        return 0

    @method(compatible=("inc", "dec"), undo="dec")
    async def inc(self, ctx: InstanceContext, k: int) -> None:
        ctx.effect(lambda state: state + k)

    @method(compatible=("inc", "dec"), undo="inc")
    async def dec(self, ctx: InstanceContext, k: int) -> None:
        ctx.effect(lambda state: state - k)

    @method(identity=True)
    async def show(self, ctx: InstanceContext, k: int) -> Any:
        return self.state

    @method
    async def reset(self, ctx: InstanceContext, k: int) -> Any:
        ctx.effect(lambda state: k)
        return self.state

    @method(compatible=("inc", "dec", "show", "reset", "ping"), identity=True)
    async def ping(self, ctx: InstanceContext, k: int) -> str:
        return "here"


def count_on(seed: int) -> tuple[World, int]:
    """A run of counters; the world, and how many outputs were compared."""
    rng = Random(seed)
    n = rng.randint(2, 5)
    roster = Roster.of(n, {"hits": (Counter.conflicts, range(n))})
    roots = []
    for _ in range(rng.randint(2, 8)):
        steps: list[Any] = [
            [
                rng.choice("ssao"),
                "hits",
                rng.choice(["inc", "dec", "show", "reset", "ping"]),
                rng.randint(1, 9),
            ]
            for _ in range(rng.randint(1, 4))
        ]
        if rng.random() < 0.2:
            steps.append(["fail"])
        roots.append((rng.uniform(0, 40), roster.client(rng.randrange(n)), steps))
    options = EngineOptions(delta=10.0, announce=rng.random() < 0.5, quiet=rng.random() < 0.5)
    world = World(
        Plan(roster, roots, options, classes={"hits": Counter}),
        Network(rng, (1, 9), rng.choice([0, 0.2]), 0.05),
    )
    assert world.run(3000), seed
    states = {host.state("hits") for host in world.hosts.values()}
    assert len(states) == 1, (seed, states)
    outputs: dict[Any, set[Any]] = {}
    for message in world.log.responses():
        outputs.setdefault(message.call, set()).add(message.value)
    undone = sum(host.engine.counts["undone"] for host in world.hosts.values())
    if not undone:
        assert all(len(values) == 1 for values in outputs.values()), (seed, outputs)
    return world, len(outputs) if not undone else 0


def test_replicated_counters_agree() -> None:
    assert sum(count_on(seed)[1] for seed in range(60)) > 100


@pytest.mark.hunt
def test_hunt_replicated_counters() -> None:
    assert sum(count_on(seed)[1] for seed in range(1000)) > 1000


def defined(world: World) -> dict[Any, set[Any]]:
    """Significant precedence read off the definition: pairs of events at one place, then their closure."""
    direct: dict[Any, set[Any]] = {}
    order: list[Any] = []
    at_place: dict[int, list[tuple[str, Any, int]]] = {}  # what, message, instance
    instances: dict[int, dict[int, str]] = {}  # at a place: instances and their methods
    precede: dict[int, set[int]] = {}  # X ⇒ Y: by Y
    ended: set[int] = set()
    committed: set[int] = set()
    for step, _, place, message, instance in world.log.events:
        who = id(instance)
        events = at_place.setdefault(place, [])
        relation = world.roster.relations[place]
        if step in ("start", "undo"):
            ops = instances.setdefault(place, {})
            op = instance.call.op  # type: ignore[union-attr]
            before_it = [o for o in ops if o in committed and o in ended and op in relation.of(ops[o])]
            precede[who] = set(before_it).union(*(precede[other] for other in before_it))
            ops[who] = op
            if message is not None:
                events.append(("got", message.id, who))
        elif step == "take":
            events.append(("got", message.id, who))  # type: ignore[union-attr]
        elif step in ("commit", "undone") and instance is not None and instance.request is not None:
            committed.add(who)
        elif step == "end":
            ended.add(who)
        elif step in SENDS and message is not None and instance is not None:
            if who not in precede:  # an answer without an instance: it knows its request alone
                precede[who] = set()
                events.append(("got", instance.request.id, who))  # type: ignore[union-attr]
            direct[message.id] = {
                earlier
                for what, earlier, other in events
                if other == who or (what != "late" and other in precede[who])
            }
            order.append(message.id)
            # Of what an instance passes on after its end, others know nothing.
            events.append(("late" if who in ended else "sent", message.id, who))
    for name in order:
        for earlier in list(direct[name]):
            direct[name] |= direct[earlier]
    return direct


@pytest.mark.parametrize("seed", range(30))
def test_the_judge_keeps_to_the_definition(seed: int) -> None:
    world, _ = played(seed)
    assert {name: set(before) for name, before in History(world).before.items()} == defined(world)


def test_generated_runs_do_what_they_are_meant_to() -> None:
    """A generator that stopped to make trouble would make all tests pass."""
    totals: dict[str, int] = {}
    for seed in range(60):
        world, _ = played(seed, generator=Generator)
        for host in world.hosts.values():
            for name, count in host.engine.counts.items():
                totals[name] = totals.get(name, 0) + count
            totals["repaired"] = totals.get("repaired", 0) + host.engine.links.repaired
    for name in ("started", "committed", "aborted", "died", "undone", "held", "repaired"):
        assert totals[name] > 20, totals
