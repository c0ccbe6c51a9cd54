"""The growth of CPU, headers, control packets and memory with the size of a group: 2 to 256 members, in causal order.

    processes        live groups at full load, as large as the machine has room for
    group            whole groups in virtual time, a message per millisecond: CPU is that of all members and the simulator
    member           one member alone, which receives packets of all others; each packet has a datagram of its own
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
"""The most processes per core of the machine."""

LIVE_DELIVERIES = 2_000_000
"""Deliveries in the measured round of a live group, at all members together."""

SIMULATED_DELIVERIES = 4096
SIMULATED_RATE = 1000.0
"""Messages per second, of all members together."""

PACKETS = 2000  # received by one member
REPETITIONS = 5

CPU, RATE, HEADER, CONTROL, MEMORY = (
    "us CPU/delivery",
    "messages/s and receiver",
    "header bytes/delivery",
    "control packets/message",
    "MB/member",
)


class SizeMeasured(NamedTuple):
    """One measured number of one size of group; `what` names the case."""

    what: str
    members: int
    unit: str
    value: float


def run(
    progress: SayProgress, note: SayProgress, *, members: Sequence[int] = MEMBERS, quick: bool = False
) -> list[BenchRow]:
    """Measure all sizes of group, the smallest first."""
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
    """Return a row for each measured number, with that of the smallest group as the baseline."""
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
    """Measure a simulated group in which random members send, one message at a time."""
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
    """Measure one member alone; repetitions of all sizes are interleaved."""
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
    """Return the MB that a member without any messages has allocated."""
    tracemalloc.start()
    try:
        _, stack = received("causal", members, [])
        assert stack.peers
        return tracemalloc.get_traced_memory()[0] / 1e6
    finally:
        tracemalloc.stop()


def page(rows: Sequence[BenchRow], notes: Sequence[str], machine: Mapping[str, object]) -> str:
    """Return a page with curves of everything that was measured, and the numbers."""
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
