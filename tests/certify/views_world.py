"""Groups that fail, come back and fall apart, in virtual time; their traces in memory, for planting defects."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from random import Random

from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.recipes import Options, find
from inga.sim.simulator import Sim
from inga.stack.stack import Stack
from inga.trace import Row
from inga.trace.memory import MemoryTrace
from inga.trace.numbering import Census
from inga.trial.workload import Workload

from ..objects.classes import Account
from ..objects.classes import Counter as Hits
from .world import Trace, chunks, renumbered

NAMES = ("alice", "bob", "cathy", "dave", "erin")
OBJECTS = {"hits": Hits, "account": Account}


class MemoryTraces(Census):
    """The traces of a whole run, in memory."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(names, len(NAMES))
        self.traces: dict[int, MemoryTrace] = {}
        self.people = dict(enumerate(names))

    def book(self, stack: Stack) -> "_Book":
        return _Book(self, stack)


class _Book:
    def __init__(self, whole: MemoryTraces, stack: Stack) -> None:
        self._whole, self._stack = whole, stack
        self.number, self.past, self.reserve = whole.number, whole.past, whole.reserve

    def trace(self, process: int, name: str = "") -> MemoryTrace:
        whole, index = self._whole, self.number(process, name)
        if index not in whole.traces:
            whole.traces[index] = MemoryTrace(index, whole.size(max(self._stack.view.total, len(NAMES))))
            whole.people.setdefault(index, f"p{process}/{name}" if name else f"p{process}")
        return whole.traces[index]


@dataclass(frozen=True)
class Run:
    """The rows of a run by process, and all else that a certificate needs."""

    order: str
    trace: Trace
    names: tuple[str, ...]
    crashed: frozenset[int]
    conflicts: dict[str, list[list[str]]] | None

    @cached_property
    def closed(self) -> list[list[int]]:
        """The views that each process came through."""
        return [sorted({row.view for row in rows if row.step == "view"})[:-1] for rows in self.trace]

    def source(self, trace: Trace) -> Chunks:
        """A trace of this run, whole or with something planted, in chunks."""
        recipe, rows = find(self.order), [renumbered(each) for each in trace]
        processes = [
            Process(name, first_view(mine), len(mine), complete=True, crashed=at in self.crashed)
            for at, (name, mine) in enumerate(zip(self.names, rows, strict=True))
        ]
        return Chunks(
            chunks(Random(1), rows, recipe.receipt),
            processes,
            recipe.receipt,
            conflicts=self.conflicts,
            guarantees=recipe.guarantees,
            order=self.order,
        )


def first_view(rows: list[Row]) -> int | None:
    return min((row.view for row in rows), default=None)


@cache
def failing(order: str, *, hosted: bool = False) -> Run:
    """Erin crashes and returns, dave stops for a while and comes back by himself, cathy leaves."""

    def happens(sim: Sim) -> None:
        sim.at(0.5, sim["erin"], sim["erin"].crash)
        sim.at(1.4, sim["alice"], lambda: sim.join("erin"))
        sim.at(2.0, sim["dave"], lambda: sim["dave"].pause(1.0))
        sim.at(3.6, sim["cathy"], sim["cathy"].leave)

    return _run(order, happens, until=7.0, hosted=hosted)


@cache
def apart(order: str) -> Run:
    """Two parts, each of which goes on; then they find together again."""

    def happens(sim: Sim) -> None:
        sim.at(0.6, sim["alice"], lambda: sim.network.part(sim.sites[:3], sim.sites[3:]))
        sim.at(1.8, sim["alice"], sim.network.heal)

    return _run(order, happens, until=6.0, hosted=False)


@cache
def apart_and_open(order: str) -> Run:
    """Two parts, each of which lets somebody in; somebody else wants to come into either, and is gone before it is there."""

    def happens(sim: Sim) -> None:
        frank, grace = sim.join("frank", 1.3), sim.join("grace", 1.3)
        heidi, ivan = sim.join("heidi", 1.5), sim.join("ivan", 1.5)
        here, there = [*sim.sites[:3], frank, heidi], [*sim.sites[3:5], grace, ivan]
        sim.at(0.6, sim["alice"], lambda: sim.network.part(here, there))
        for site in (heidi, ivan):
            sim.at(1.515, site, site.crash)
        for site in (frank, grace):
            site.load(Workload(len(NAMES), 20, 64, 20), 1.5)
        sim.at(2.9, sim["alice"], sim.network.heal)

    return _run(order, happens, until=5.0, hosted=False, messages=60, partition="all")


def _run(
    order: str,
    happens: Callable[[Sim], None],
    *,
    until: float,
    hosted: bool,
    messages: int = 100,
    partition: str | None = None,
) -> Run:
    recipe = find(order)
    objects = OBJECTS if hosted else None
    layout = recipe.layout(NAMES, objects, {})
    names = list(NAMES) if layout is None else layout.processes.names
    traces = MemoryTraces(names)
    options = Options(detect=0.4, rejoin=True, partition=partition)
    sim = Sim(*NAMES, order=order, seed=1, objects=objects, options=options, recording=traces, record=False)
    if hosted:
        _call(sim)
    else:
        sim.load(Workload(len(NAMES), messages, 64, 20))
    happens(sim)
    sim.run(until)
    gone = [site.stack for site in sim.sites if site.has_crashed and site.newcomer is None]
    crashed = {at for stack in gone for at in traces.numbers(stack.view.processes[stack.me])}
    highest = max(site.stack.view.total for site in sim.sites if site.newcomer is None)
    unborn = {at for at in range(traces.size(highest)) if at not in traces.traces}
    trace: Trace = [[] if at in unborn else traces.traces[at].rows for at in range(traces.size(highest))]
    known = tuple(traces.people.get(at, f"process {at}") for at in range(len(trace)))
    crashed |= unborn
    return Run(order, trace, known, frozenset(crashed), None if layout is None else layout.conflicts)


def _call(sim: Sim) -> None:
    """Everybody calls, as long as it is there."""
    for turn in range(100):
        for at, name in enumerate(NAMES):
            sim.at(0.05 * turn + 0.007 * at, sim.sites[at], partial(_ask, sim, name))


def _ask(sim: Sim, name: str) -> None:
    site = sim[name]
    if site.is_member and site.stack.writable and not site.stack.closing:
        site.call("hits", "inc", 1)
        site.call("account", "take_back", 1)  # which conflicts with itself
