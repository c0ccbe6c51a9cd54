"""What grows with the group: CPU, headers, control packets and memory of groups of 2 to 256, in causal order.

    processes        live groups at full load, as large as the machine has room for
    group            whole groups in virtual time, a message a millisecond: CPU is all members' and the simulator's
    member           one member alone, which receives what all others send; every packet is alone
    member, 2 talk   the same, while only two of the others send

The baseline of each is the smallest group of the same run: ratios are growth.
"""

import os
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from random import Random
from statistics import median
from time import process_time
from typing import NamedTuple

from inga.lab.bench import BenchRow, SayProgress
from inga.lab.bench_net import FAST, play
from inga.lab.bench_sim import Arriving, received, traffic
from inga.lab.evaluation import html_table
from inga.lab.experiments import Table
from inga.report.chart import STYLE, Point, log_chart
from inga.report.page import document
from inga.sim.simulator import Sim

MEMBERS = (2, 4, 8, 16, 32, 64, 128, 256)
SIZE = 64  # bytes of a message

LIVE_EACH = 8
"""Processes for each core of the machine, at most."""

LIVE_DELIVERIES = 2_000_000
"""In the measured round of a live group, by all members."""

SIMULATED_DELIVERIES = 4096
SIMULATED_RATE = 1000.0
"""Messages a second, of all members."""

PACKETS = 2000  # that one member receives
REPETITIONS = 5

CPU, RATE, HEADER, CONTROL, MEMORY = (
    "us CPU/delivery",
    "messages/s and receiver",
    "header bytes/delivery",
    "control packets/message",
    "MB/member",
)


class SizeMeasured(NamedTuple):
    """One number of one size of group; `what` is what was measured."""

    what: str
    members: int
    unit: str
    value: float


def run(
    progress: SayProgress, note: SayProgress, *, members: Sequence[int] = MEMBERS, quick: bool = False
) -> list[BenchRow]:
    """All sizes of group, the smallest first."""
    sizes, scale = sorted({size for size in members if size > 1}), 5 if quick else 1
    live_max = LIVE_EACH * (os.cpu_count() or 1)
    found: list[SizeMeasured] = []
    for size in sizes:
        if size <= live_max:
            progress(f"{size} processes")
            found += _processes(size, LIVE_DELIVERIES // scale)
        progress(f"a group of {size} in virtual time")
        found += _group(size, SIMULATED_DELIVERIES // scale)
    found += _members(progress, sizes, PACKETS // scale)
    if any(size > live_max for size in sizes):
        note(f"Groups of more than {live_max} are too large for {os.cpu_count()} cores to run as processes.")
    return _rows(found)


def _rows(found: Iterable[SizeMeasured]) -> list[BenchRow]:
    """Each against the smallest group."""
    first: dict[tuple[str, str], SizeMeasured] = {}
    rows = []
    for each in sorted(found, key=lambda each: (each.unit, each.what, each.members)):
        base = first.setdefault((each.unit, each.what), each)
        case = f"{each.what}, {each.members} members"
        rows.append(BenchRow(case, base.value, each.value, each.unit, f"{base.members} members"))
    return rows


def _processes(members: int, deliveries: int) -> Iterator[SizeMeasured]:
    messages = max(deliveries // (members * (members - 1)), 1)
    ends = play(FAST, members, SIZE, messages=messages)
    each = messages * (members - 1)
    cpu = 1e6 * sum(end["cpu"] for end in ends) / (each * members)
    yield SizeMeasured("processes", members, CPU, cpu)
    yield SizeMeasured("processes", members, RATE, each / max(end["seconds"] for end in ends))
    yield SizeMeasured("processes", members, MEMORY, median(end["memory"] for end in ends))


def _group(members: int, deliveries: int) -> Iterator[SizeMeasured]:
    """Random members send, one message at a time."""
    messages = max(deliveries // (members - 1), 3)
    sim = Sim(*(f"member{i}" for i in range(members)), seed=1, record=False)
    rng = Random(members)
    started = process_time()
    for number in range(messages):
        sim.run(until=number / SIMULATED_RATE)
        sim.sites[rng.randrange(members)].send(b"x" * SIZE)
    sim.run()
    cpu = process_time() - started
    sim.check()
    yield SizeMeasured("group", members, CPU, 1e6 * cpu / sim.oracle.taken)
    yield SizeMeasured("group", members, CONTROL, sim.pdus["control"] / messages)


def _members(progress: SayProgress, sizes: Sequence[int], packets: int) -> Iterator[SizeMeasured]:
    """Repetitions of all sizes are interleaved."""
    arriving: dict[tuple[str, int], Arriving] = {}
    seconds: dict[tuple[str, int], list[float]] = {}
    for size in sizes:
        arriving["member", size] = traffic(size, packets)
        arriving["member, 2 talk", size] = traffic(size, packets, talkers=2)
    for repetition in range(REPETITIONS):
        progress(f"one member of {', '.join(map(str, sizes))} ({repetition + 1}/{REPETITIONS})")
        for case, packets_ in arriving.items():
            seconds.setdefault(case, []).append(received("causal", case[1], packets_)[0])
    for (what, size), packets_ in arriving.items():
        yield SizeMeasured(what, size, CPU, 1e6 * median(seconds[what, size]) / len(packets_))
        header = sum(len(data) - len(packet.body) for packet, data in packets_) / len(packets_)
        yield SizeMeasured(what, size, HEADER, header)
    for size in sizes:
        yield SizeMeasured("member", size, MEMORY, _memory(size))


def _memory(members: int) -> float:
    """MB that a member has in memory when it has entered the view."""
    tracemalloc.start()
    try:
        _, stack = received("causal", members, [])
        assert stack.peers
        return tracemalloc.get_traced_memory()[0] / 1e6
    finally:
        tracemalloc.stop()


def page(rows: Sequence[BenchRow], notes: Sequence[str], machine: Mapping[str, object]) -> str:
    """The curves of all that was measured, and the numbers."""
    curves: dict[str, dict[str, list[Point]]] = {}
    for row in rows:
        what, _, size = row.case.removesuffix(" members").rpartition(", ")
        curves.setdefault(row.unit, {}).setdefault(what, []).append((int(size), row.value))
    figures = "".join(
        f"<figure>{log_chart(unit, series, x='members', y=unit)}<figcaption>{escape(unit)}</figcaption></figure>"
        for unit, series in curves.items()
    )
    table = Table(
        ["case", "value", "unit", "times", "of"],
        [[row.case, f"{row.value:,.4g}", row.unit, f"{row.ratio:.2f}", row.baseline_is] for row in rows],
    )
    told = "; ".join([*notes, *(f"{name} {value}" for name, value in machine.items())])
    body = [
        "<header><h1>What grows with the group</h1>",
        f"<p>Causal order, messages of {SIZE} bytes: <code>inga bench scale</code>. {escape(told)}.</p></header><main>",
        f'<section class="card"><h2>Curves</h2><div class="charts">{figures}</div></section>',
        f'<section class="card"><h2>Numbers</h2>{html_table(table)}</section></main>',
    ]
    return document("What grows with the group", body, style=STYLE)
