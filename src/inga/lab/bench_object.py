"""The delays of the order `object`, from sending to start, in virtual time, against unordered delivery; and the CPU of calls.

One of five members at a time sends a message or request to two others, with pauses between, so that nothing waits but for
its order. A message or request that conflicts with nothing starts on receipt. One that conflicts with anything, with itself or with a
method that is never called, starts when clocks of all members were received, which takes a second network delay; a little less
on average, since a sender whose place breaks ties in its favour needs to receive fewer of them. CPU is that of all members and
the simulator.

The CPU of a call is that of a client's call of an object with a copy at each of three members: its request, three instances,
their answers and the commit. The baseline is the CPU of the objects' engines for it, without stacks, bytes and
simulator.
"""

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean
from time import process_time
from typing import Any

from inga.lab.bench import BenchRow, SayProgress
from inga.layers.shape import Faults
from inga.objects.declare import ObjectClass, method
from inga.objects.hosting import Layout
from inga.objects.invoke import Body, Host
from inga.objects.options import EngineOptions
from inga.recipes import Options
from inga.sim.simulator import Sim
from inga.trial.people import member_names

MEMBERS = 5
CALLERS = 3
"""Members of a group that calls an object, each of which has a copy."""

AT_ONCE = 8
"""Calls that begin in one turn of a busy member."""

PAUSE = 0.2
"""Seconds between two messages: far longer than everything that a message causes takes."""

STEADY = Faults(delay_min=0.005, delay_max=0.005)
SPREAD = Faults(delay_min=0.001, delay_max=0.009)
LOSSY = Faults(loss=0.05, delay_min=0.005, delay_max=0.005)
LINKS = {"5 ms": STEADY, "1 to 9 ms": SPREAD, "5 ms, 5 % loss": LOSSY}

UNIT = "ms to start"


class Times:
    """A trace that keeps only when each message was sent, and the delays until other members delivered it."""

    full = True

    def __init__(self, me: int, sent: dict[tuple[int, int], float], delays: list[float]) -> None:
        self._me, self._sent, self._delays = me, sent, delays

    def row(
        self, step: str, now: float, view: int, src: int | None = None, seq: int | None = None, **columns: Any
    ) -> None:
        if src is None or seq is None:
            return
        if step in ("send", "request"):
            self._sent[src, seq] = now
        elif step == "deliver" and src != self._me:
            self._delays.append(now - self._sent[src, seq])

    def grow(self, n: int) -> None: ...

    def cut(self, view: int, seqs: Sequence[int] | int, indices: Sequence[int] | None = None) -> None: ...


def run(progress: SayProgress, *, quick: bool = False, count: int | None = None) -> list[BenchRow]:
    """Run all cases, with `count` messages each."""
    count = count or (40 if quick else 200)
    rows = []
    for words, faults in LINKS.items():
        progress(f"messages and requests over links of {words}")
        base, base_cpu = messages_to_start("none", faults, count)
        how = "order none"
        for case, order, protocol in MESSAGES:
            delay, cpu = messages_to_start(order, faults, count, **protocol)
            rows.append(BenchRow(f"{case}, {words}", 1000 * base, 1000 * delay, UNIT, how))
            if faults is STEADY:
                rows.append(BenchRow(f"{case}, CPU", base_cpu, cpu, "us/delivery", how))
        for case, op in REQUESTS:
            rows.append(
                BenchRow(f"{case}, {words}", 1000 * base, 1000 * _requests(op, faults, count), UNIT, how)
            )
    progress("calls of an object with three copies")
    for case, op in CALLS:
        engines = _engines(op, count)
        for words, at_once in (("one at a time", 1), (f"{AT_ONCE} at a time", AT_ONCE)):
            cpu = call_cost(op, count, at_once)
            rows.append(BenchRow(f"{case}, {words}, CPU", engines, cpu, "us/call", "engines alone"))
    return rows


def _alone(payload: bytes) -> None:
    """The key function of messages that conflict with nothing: it returns no key."""


MESSAGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("compatible message", "object", {"key": _alone}),
    ("conflicting message", "object", {}),
    ("conflicting message, clocks not asked for", "object", {"announce": 0}),
    ("message in total order", "total", {}),
)


class Shelf(ObjectClass):
    """Methods of each kind: `ping` conflicts with nothing, `add` and `look` with each other, `put` with itself."""

    def initial(self) -> int:
        return 0

    @method(compatible=("ping", "add", "look", "put"), identity=True)
    async def ping(self, ctx: Any) -> None: ...

    @method(compatible=("add", "put"))
    async def add(self, ctx: Any) -> None:
        ctx.effect(lambda s: s + 1)

    @method(identity=True)
    async def look(self, ctx: Any) -> int:
        return int(self.state)

    @method(compatible=("look",))
    async def put(self, ctx: Any) -> None: ...


REQUESTS = (
    ("compatible request", "ping"),
    ("request that conflicts with what nobody calls", "add"),
    ("conflicting request", "put"),
)


CALLS = (("compatible call", "ping"), ("conflicting call", "put"))


def messages_to_start(order: str, faults: Faults, count: int, **protocol: Any) -> tuple[float, float]:
    """Return the mean seconds from send to delivery, and the microseconds of CPU for each delivery."""
    sent: dict[tuple[int, int], float] = {}
    delays: list[float] = []
    traces = [Times(me, sent, delays) for me in range(MEMBERS)]
    sim = Sim(
        *member_names(MEMBERS),
        order=order,
        seed=1,
        faults=faults,
        options=Options(echo=False, protocol=protocol),
        traces=traces,
        record=False,
    )

    def say(member: int, to: list[int]) -> None:
        sim.sites[member].send(b"." * 64, to=[sim.sites[other].name for other in to])

    cpu = _paced(sim, count, say)
    sim.check()
    return fmean(delays), 1e6 * cpu / len(delays)


def _requests(op: str, faults: Faults, count: int) -> float:
    """Return the mean seconds from a one-way request to its start at the objects of other members."""
    sent: dict[tuple[int, int], float] = {}
    delays: list[float] = []
    people = member_names(MEMBERS)
    shelves = {f"shelf{index}": (Shelf, [name]) for index, name in enumerate(people)}
    sim = Sim(*people, order="object", seed=1, faults=faults, objects=shelves, record=False)
    for site in sim.sites:
        order = site.objects
        for place, process in enumerate(order.processes.of):
            if process is not None and order.roster.member_of[place] == site.index:
                order.rows.traces[place] = Starts(site.index, sent, delays)

    def ask(member: int, to: list[int]) -> None:
        async def body(ctx: Any) -> None:
            ctx.oneway([f"shelf{other}" for other in to], op)

        sim.sites[member].begin(body)

    _paced(sim, count, ask)
    return fmean(delays)


class Starts(Times):
    """The same for requests to objects: the delay is that until they start."""

    def row(
        self, step: str, now: float, view: int, src: int | None = None, seq: int | None = None, **columns: Any
    ) -> None:
        super().row("deliver" if step == "start" else step, now, view, src, seq, **columns)


def _paced(sim: Sim, count: int, act: Callable[[int, list[int]], None]) -> float:
    """Let random members act one at a time, with pauses, and return the CPU seconds that it took."""
    rng = Random(1)
    started = process_time()
    for number in range(count):
        sim.run(until=number * PAUSE)
        member, *to = rng.sample(range(MEMBERS), 3)
        act(member, to)
    sim.run()
    return process_time() - started


def call_cost(op: str, count: int, at_once: int) -> float:
    """Return the microseconds of CPU for each call in a whole group."""
    sim = Sim(
        *member_names(CALLERS), order="object", seed=1, faults=STEADY, objects={"shelf": Shelf}, record=False
    )
    sim.run(until=PAUSE)
    started = process_time()
    for turn in range(count):
        caller = sim.sites[turn % CALLERS]
        caller.stack.advance(sim.now)
        for _ in range(at_once - 1):
            caller.objects.begin(_call(op))
        caller.begin(_call(op))  # this one ends the turn
        sim.run(until=PAUSE * (turn + 2))
    return 1e6 * (process_time() - started) / (count * at_once)


def _engines(op: str, count: int) -> float:
    """Return the same for hosts that pass their messages to each other directly."""
    layout = Layout({"shelf": Shelf}, member_names(CALLERS))
    options = EngineOptions(quiet=True, reliable=True)
    hosts = [Host(member, layout.roster, {"shelf": Shelf}, options) for member in range(CALLERS)]
    started = process_time()
    for turn in range(count):
        now, caller = turn * PAUSE, turn % CALLERS
        hosts[caller].begin(now, _call(op))
        said = deque(hosts[caller].sends(now))
        for host in hosts:
            said += host.tick(now) if host.wake is not None else ()
        while said:
            members, spoken = said.popleft()
            for member in members:
                said += hosts[member].receive(now, [spoken])
    return 1e6 * (process_time() - started) / count


def _call(op: str) -> Body:
    async def body(ctx: Any) -> None:
        await ctx.call("shelf", op)

    return body
