"""The cost of SCO if messages go to three of many members: bytes, CPU, and control packets.

The baseline is our own vector order, which sends the header of every message to all members. Whole groups are simulated,
so CPU is that of all members and of the simulator, which is the same for both. One more group consists of processes: its
CPU is that of its members, against messages to all others. A vector group of a
thousand is not simulated: its bytes follow from the packet and its header alone, and its CPU from that of one member
for one header.
"""

from collections.abc import Callable
from dataclasses import fields
from random import Random
from statistics import median
from time import process_time
from typing import NamedTuple

from inga.causality.clock import SiteClock
from inga.lab.bench import BenchRow, SayProgress
from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import mask
from inga.layers.sco.parts import ScoMessage, ScoSettings
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options, find
from inga.runs.live import run as run_live
from inga.sim.board import Still
from inga.sim.simulator import Sim
from inga.stack.stack import Stack, joined
from inga.trial.trial import Trial
from inga.wire import bundle
from inga.wire.packet import encode, group_id

SUBSET = 3
SIZE = 64
RATE = 1000.0
"""Messages per second of the whole group."""

LIVE = 8
"""Members of the group of processes."""

REPETITIONS = 3

HAS_MATRIX = "matrix" in {field.name for field in fields(Options)}
"""Whether the vector order can count per pair of members."""


class Cost(NamedTuple):
    """Per message: bytes and control packets; per delivery: microseconds of CPU."""

    bytes: float
    control: float
    cpu: float


def run(progress: SayProgress, *, quick: bool = False) -> list[BenchRow]:
    """Run all cases."""
    rows = []
    for members, messages in ((10, 300), (100, 300), (1000, 120)):
        progress(f"a group of {members}, {SUBSET} destinations a message")
        rows += _group(members, messages // (3 if quick else 1))
    for members in (10, 100, 1000):
        progress(f"one machine of {members}")
        rows.append(_machine(members, 400 if quick else 2000))
    for members in (10, 30, 100):
        progress(f"control packets in a group of {members}")
        rows.append(control(members, 60 if quick else 200))
    progress(f"{LIVE} processes")
    rows.append(live(200 if quick else 1000))
    return rows


def _group(members: int, messages: int) -> list[BenchRow]:
    ours = _simulated("sco", members, messages)
    if members <= 100:
        theirs, how = _simulated("vector", members, messages), "vector: headers to all"
    else:
        theirs, how = _header_to_all(members, messages), "vector: headers to all, computed"
    name = f"{members} members, {SUBSET} destinations"
    rows = [
        BenchRow(name, theirs.bytes, ours.bytes, "bytes/message", how),
        BenchRow(name, theirs.cpu, ours.cpu, "us CPU/delivery", how),
    ]
    if HAS_MATRIX and members <= 100:
        matrix = _simulated("vector", members, messages, matrix=True)
        rows.append(BenchRow(name, matrix.bytes, ours.bytes, "bytes/message", "vector, matrix"))
        rows.append(BenchRow(name, matrix.cpu, ours.cpu, "us CPU/delivery", "vector, matrix"))
    return rows


def _simulated(order: str, members: int, messages: int, **options: bool) -> Cost:
    """Simulate a whole group in virtual time: random members send to three random others."""
    names = [f"member{i}" for i in range(members)]
    level = "causal" if order == "sco" else None
    sim = Sim(*names, order=order, deliver=level, seed=1, record=False, options=Options(**options))  # type: ignore[arg-type]
    rng = Random(members)
    started = process_time()
    for number in range(messages):
        src, *to = rng.sample(range(members), 1 + SUBSET)
        sim.run(until=number / RATE)
        sim.sites[src].send(b"x" * SIZE, to=[names[m] for m in to])
    sim.run()
    cpu = process_time() - started
    sim.check()
    control = sim.pdus["control"] / messages
    return Cost(sim.bytes / messages, control, 1e6 * cpu / sim.oracle.taken)


def _header_to_all(members: int, messages: int) -> Cost:
    """Compute the cost of a message in a vector group that is too large to simulate: copies to destinations, headers to all others."""
    view = View.of(*(f"member{i}" for i in range(members)))
    stack = Stack(find("vector").build(Options()), 0, view, rng=Still())
    clock = SiteClock(1, members)
    datagrams, size = [], 0
    for number in range(messages):
        clock.take(2 + number % (members - 2), 1 + number // (members - 2))
        packet = Packet(1, 1, bundle.join([b"x" * SIZE]), mask(range(2, 2 + SUBSET)))
        packet.seq, packet.deps, packet.stamp = clock.stamp()
        packet.lsn = packet.seq
        bare = joined(encode(packet, group_id(""), bare=True))
        datagrams.append(bare)
        size += SUBSET * len(joined(encode(packet, group_id("")))) + (members - 1 - SUBSET) * len(bare)

    def each() -> float:
        started = process_time()
        for datagram in datagrams:
            stack.receive([(datagram, None)], now=0.0)
            stack.ready()
        return (process_time() - started) / messages

    return Cost(size / messages, 0.0, 1e6 * each() * (members - 1) / SUBSET)


def _machine(members: int, messages: int) -> BenchRow:
    """Measure one machine that receives messages whose stamps have three changes each: CPU per message, against a group of ten."""
    changes = 3

    def cost(n: int) -> float:
        machine = ScoMachine(0, n, ScoSettings(window=1 << 20, quota=1 << 20))
        rng = Random(n)
        arriving = []
        for number in range(messages):
            delta = tuple(sorted((m, number // n + 1) for m in rng.sample(range(2, n), changes)))
            arriving.append(ScoMessage(1, 0b101, number + 1, number + 1, delta, buf=1 << 20))
        machine.covered = [1 << 30 if m > 1 else 1 for m in range(n)]
        started = process_time()
        for message in arriving:
            machine.receive(message)
            machine.stages()
            machine.events.clear()
        return 1e6 * (process_time() - started) / messages

    value, base = _medians(lambda: cost(members), lambda: cost(10))
    return BenchRow(
        f"machine, {members} members, 3 changes a stamp", base, value, "us CPU/message", "10 members"
    )


def control(members: int, messages: int) -> BenchRow:
    """Measure control packets per message, at a thousand messages per second in the whole group, against a group of ten."""
    return BenchRow(
        f"control, {members} members",
        _simulated("sco", 10, messages).control,
        _simulated("sco", members, messages).control,
        "packets/message",
        "10 members",
    )


def live(messages: int) -> BenchRow:
    """Measure processes that send as fast as the window allows."""

    def cost(subset: int) -> float:
        found = run_live(Trial("sco", members=LIVE, messages=messages, subset=subset))
        return 1e6 * found.cpu_seconds / found.delivered

    value, base = _medians(lambda: cost(SUBSET), lambda: cost(LIVE - 1))
    name = f"live, {LIVE} members, {SUBSET} destinations"
    return BenchRow(name, base, value, "us CPU/delivery", f"{LIVE - 1} destinations")


def _medians(value: Callable[[], float], baseline: Callable[[], float]) -> tuple[float, float]:
    pairs = [(value(), baseline()) for _ in range(REPETITIONS)]
    first, second = (median(column) for column in zip(*pairs, strict=True))
    return first, second
