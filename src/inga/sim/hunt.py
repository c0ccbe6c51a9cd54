"""A search for bugs: thousands of seeds, each another group with other faults, until one breaks a promise.

The swarm combines all features, see `sim.swarm`. A search of one order examines that more closely: even seeds run the whole recipe in
virtual time with loss and repair; odd seeds play a random schedule on a board, where a run is cheap: a lossy network hides faults of
the order itself, and many more of its runs would be needed to find them. If an order cannot be played on a board, all seeds run in
virtual time; if it has objects, odd seeds call them.
"""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from random import Random
from shlex import quote
from typing import Any, Protocol

from inga.model.errors import UsageError
from inga.recipes import find
from inga.sim.board import Board, lossless, wander
from inga.sim.judge import judge
from inga.sim.schedule import Schedule
from inga.sim.shrink import breaks, shrink_plan, shrink_schedule, smallest
from inga.sim.swarm import CARRIED, CHANGING, HOSTING, ORDERS, Plan, plan
from inga.sim.trials import simulate_trial
from inga.sim.workers import workers
from inga.trial.trial import Trial

CHUNK = 200
"""Seeds that a worker gets at a time."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed that broke a promise, the reason, and the command that replays it."""

    seed: int
    why: str
    command: str
    schedule: str | None = None


def case(order: str, seed: int) -> Trial:
    """Draw the trial of one seed: a small group with random faults and settings."""
    rng = Random(seed)

    def pick(*choices: Any) -> Any:
        return choices[int(rng.random() * len(choices))]

    members = 2 + int(rng.random() * 4)
    group = Trial(
        order=order,
        members=members,
        messages=1 + int(rng.random() * 8),
        size=int(pick(4, 40, 40, 300, 1500)),
        rate=pick(20, 100, 1000),
        subset=1 + int(rng.random() * (members - 1)) if rng.random() < 0.25 else None,
        loss=pick(0, 0, 0.1, 0.4),
        dup=pick(0, 0.2),
        reorder=pick(0, 0.3),
        delay=(0.001, pick(0.001, 0.01, 0.1)),
        window=pick(1, 2000, None),
        datagram=int(pick(256, 1472, 60 * 1024)),
        seed=seed,
        echo=rng.random() < 0.2,
    )
    recipe = find(order)
    if not recipe.window:
        group = replace(group, window=None)
    if len(recipe.levels) > 1:
        group = replace(group, deliver=pick(*recipe.levels))
    return replace(group, option=tuple((name, pick(*tried)) for name, tried in recipe.tunings.items()))


def calls(order: str, seed: int) -> Trial:
    """Return the same trial with replicated objects, which its members call."""
    return replace(case(order, seed), subset=None, echo=False, objects=1 + seed % 3)


def try_seed(order: str, seed: int) -> str | None:
    """Return what is wrong with this seed of one order, or None."""
    try:
        if _in_virtual_time(order, seed):
            result = simulate_trial(calls(order, seed) if _calls_objects(order, seed) else case(order, seed))
            if not result.violations:
                return None
            return result.witnesses[0] if result.witnesses else "a promise was broken"
        oracle = _wandered(order, seed).oracle
        if not oracle.count((*find(order).guarantees, "flags")):
            return None
        return oracle.witnesses[0]
    except Exception as error:  # any exception of a layer is a finding, and its seed must be named
        return f"{type(error).__name__}: {error}"


def try_swarm(seed: int, orders: tuple[str, ...] = ORDERS) -> str | None:
    """Return what is wrong with this seed of the swarm, or None."""
    return Swarm(orders).try_seed(seed)


def explain(order: str, seed: int, why: str) -> Failure:
    """Shrink a failing seed of one order, and return how to replay it."""
    again = f"inga hunt --order {order} --runs 1 --seed {seed}"
    schedule: Schedule | None = None
    if _calls_objects(order, seed):
        again = calls(order, seed).command()
    elif _in_virtual_time(order, seed):
        small, schedule = smallest(case(order, seed))
        again = small.command()
    else:
        guarantees, build = find(order).guarantees, lossless(order)
        played = Schedule(tuple(_wandered(order, seed).played))
        if breaks(played, build, guarantees):
            schedule = shrink_schedule(played, lambda s: breaks(s, build, guarantees))
    if schedule is not None:
        again = f"inga sim --order {order} --schedule '{schedule}'"
    return Failure(seed, why, again, None if schedule is None else str(schedule))


class BrokenOff(KeyboardInterrupt):
    """Raised when a search is interrupted: how many seeds it had tried, and the one that had failed, if it was being shrunk."""

    def __init__(self, done: int, failed: tuple[int, str] | None = None) -> None:
        super().__init__()
        self.done = done
        self.failed = failed


class Search(Protocol):
    """How a search tries a seed and explains a failing one."""

    def try_seed(self, seed: int) -> str | None: ...

    def explain(self, seed: int, why: str) -> Failure: ...


@dataclass(frozen=True, slots=True)
class Swarm:
    """Plans of the swarm, with all features, in any of these orders. With `forged` each group is secured, and an attacker forges
    datagrams; with `states` newcomers are given a state or the last messages; with `objects` members call objects."""

    orders: tuple[str, ...] = ORDERS
    forged: bool = False
    states: bool = False
    objects: bool = False

    def try_seed(self, seed: int) -> str | None:
        found = judge(self._plan(seed))
        return found[0].text if found else None

    def explain(self, seed: int, why: str) -> Failure:
        """Shrink the plan of a failing seed as long as it fails in the same way."""
        whole = self._plan(seed)
        kind = judge(whole)[0].kind
        small = shrink_plan(whole, lambda each: any(found.kind == kind for found in judge(each)))
        return Failure(seed, f"{kind}: {why}", f"inga hunt --plan {quote(str(small))}")

    def _plan(self, seed: int) -> Plan:
        return plan(seed, self.orders, forged=self.forged, states=self.states, objects=self.objects)


@dataclass(frozen=True, slots=True)
class OneOrder:
    """Trials and boards of one order."""

    order: str

    def try_seed(self, seed: int) -> str | None:
        return try_seed(self.order, seed)

    def explain(self, seed: int, why: str) -> Failure:
        return explain(self.order, seed, why)


@dataclass(frozen=True, slots=True)
class Alternating:
    """Even seeds from one search, odd ones from another."""

    even: Search
    odd: Search

    def try_seed(self, seed: int) -> str | None:
        return (self.odd if seed % 2 else self.even).try_seed(seed)

    def explain(self, seed: int, why: str) -> Failure:
        return (self.odd if seed % 2 else self.even).explain(seed, why)


def search_for(
    order: str | None, *, forged: bool = False, states: bool = False, objects: bool = False
) -> Search:
    """Return what `inga hunt` tries: the swarm; for one order, the swarm and `OneOrder` by turns, or `OneOrder` alone if the order is
    not in the swarm. If all groups are to have a feature, only the swarm, with orders that can have it."""
    name = None if order is None else find(order).name
    orders: tuple[str, ...] = ORDERS if name is None else (name,)
    for is_wanted, able, what in (
        (forged, CHANGING, "be secured"),
        (states, (*CHANGING, *CARRIED), "give states"),
        (objects, HOSTING, "have objects"),
    ):
        if is_wanted:
            if name is not None and name not in able:
                raise UsageError(f"groups in the order {name} cannot {what}")
            orders = tuple(each for each in dict.fromkeys(orders) if each in able)
    if forged or states or objects:
        return Swarm(orders, forged, states, objects)
    if name is None:
        return Swarm()
    if name not in ORDERS:
        return OneOrder(name)
    return Alternating(Swarm((name,)), OneOrder(name))


def hunt(order: str, runs: int | None, seed: int = 0, *, jobs: int = 1) -> tuple[int, Failure | None]:
    """Search one order alone."""
    find(order)
    return search(OneOrder(order), runs, seed, jobs=jobs)


def search(
    what: Search,
    runs: int | None,
    seed: int = 0,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda done: None,
    found: Callable[[int, str], None] | None = None,
) -> tuple[int, Failure | None]:
    """Try `runs` seeds from `seed` on (None: without limit), until one fails. Return how many were tried, and the failure. With
    `found`, which is called with every failing seed and the reason, the search goes on after a failure. An interrupt raises
    `BrokenOff`."""
    done, failed, goes_on, chunks = 0, None, found is not None, _chunks(runs, seed)
    results = _here(what, chunks, goes_on) if jobs == 1 else _in_processes(what, chunks, goes_on, jobs)
    try:
        with closing(results):
            for tried, fails in results:
                done += tried
                progress(done)
                for each in fails:
                    if found is None:
                        failed = each
                        return done, what.explain(*each)
                    found(*each)
    except KeyboardInterrupt:
        raise BrokenOff(done, failed) from None
    return done, None


Tried = tuple[int, list[tuple[int, str]]]
"""How many seeds were tried, and which of them failed and why."""


def _here(what: Search, chunks: Iterator[tuple[int, int]], goes_on: bool) -> Generator[Tried, None, None]:
    for first, count in chunks:
        yield _try_chunk(what, first, count, goes_on)


def _in_processes(
    what: Search, chunks: Iterator[tuple[int, int]], goes_on: bool, jobs: int
) -> Generator[Tried, None, None]:
    pending: set[Future[Tried]] = set()
    with workers(jobs) as pool:
        while True:
            for first, count in chunks:
                pending.add(pool.submit(_try_chunk, what, first, count, goes_on))
                if len(pending) >= 2 * jobs:
                    break
            if not pending:
                return
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()


def _try_chunk(what: Search, first: int, count: int, goes_on: bool) -> Tried:
    failed: list[tuple[int, str]] = []
    for seed in range(first, first + count):
        why = what.try_seed(seed)
        if why is not None:
            failed.append((seed, why))
            if not goes_on:
                return seed - first + 1, failed
    return count, failed


def _chunks(runs: int | None, seed: int) -> Iterator[tuple[int, int]]:
    first = seed
    while runs is None or first < seed + runs:
        count = CHUNK if runs is None else min(CHUNK, seed + runs - first)
        yield first, count
        first += count


def _in_virtual_time(order: str, seed: int) -> bool:
    return seed % 2 == 0 or not find(order).direct


def _calls_objects(order: str, seed: int) -> bool:
    return seed % 2 == 1 and find(order).objects


def _wandered(order: str, seed: int) -> Board:
    rng = Random(seed)
    sites = 2 + int(rng.random() * 4)
    messages = 1 + int(rng.random() * 12)
    return wander(rng, sites, messages, lossless(order))
