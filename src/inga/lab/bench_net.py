"""Throughput and round trips of live groups on loopback, against baselines of the same run.

Repetitions of all cases are interleaved and medians reported, since machines are noisy. CPU is that
of all processes together, divided by deliveries.
"""

import importlib.util
import socket
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any

from inga.lab.bench import BenchRow, SayProgress
from inga.runs.cluster import Cluster
from inga.runs.live import free_ports

BYTES_PER_RUN = 100 << 20
"""The most bytes that each member sends in a measured round; of small messages `MESSAGES_MAX` are fewer bytes."""

MESSAGES_MAX = 400_000
DATAGRAM = 60 * 1024
SECONDS_MAX = 120.0

FLOORS = {"loop_latency": "event loop alone", "raw_latency": "blocking sockets"}
"""The baselines of round trips, by the jobs that measure them."""

CPU = "us CPU/round trip"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to move the same messages."""

    name: str
    job: str
    order: str = ""
    write: str = "many"
    read: str = "batches"
    slow: int = 1  # divides the number of messages, for variants that are slow


FAST = Variant("causal, send_many + batches", "throughput", "causal")
FIFO = Variant("fifo, send_many + batches", "throughput", "fifo")
TOTAL = Variant("total, send_many + batches", "throughput", "total")
EACH = Variant("causal, await send + async for", "throughput", "causal", "each", "each")
RAW = Variant("raw sockets", "raw_throughput")
ZMQ = Variant("pyzmq PUB/SUB", "zmq_throughput", slow=4)


def throughput(
    progress: SayProgress, *, members: list[int], sizes: list[int], repetitions: int
) -> list[BenchRow]:
    """Measure CPU per delivery, and messages per second and receiver, for every size of group and message."""
    rows: list[BenchRow] = []
    variants = [FAST, FIFO, EACH, RAW]
    if importlib.util.find_spec("zmq") is not None:
        variants.append(ZMQ)
    for n in members:
        for size in sizes:
            results: dict[Variant, list[dict[str, float]]] = defaultdict(list)
            for repetition in range(repetitions):
                for variant in variants:
                    progress(f"{n} members, {size} B, {variant.name} ({repetition + 1}/{repetitions})")
                    results[variant].append(cost(variant, n, size))
            rows += _rows(f"{n} x {size} B", results)
    return rows


def in_pairs(
    progress: SayProgress, ours: Variant, base: Variant, *, members: int, size: int, pairs: int
) -> list[BenchRow]:
    """Measure the CPU of an order against another: the median of the ratios of interleaved pairs, and the rates of both."""
    found: dict[Variant, list[dict[str, float]]] = {ours: [], base: []}
    for pair in range(pairs):
        progress(f"{ours.order} against {base.order}, pair {pair + 1}/{pairs}")
        for variant in (ours, base) if pair % 2 == 0 else (base, ours):
            found[variant].append(cost(variant, members, size))
    both = list(zip(found[ours], found[base], strict=True))
    case = f"{members} x {size} B {ours.order}/{base.order}, {pairs} pairs"
    ratio = median(one["cpu"] / other["cpu"] for one, other in both)
    before, after = (median(each["rate"] for each in found[variant]) for variant in (base, ours))
    return [
        BenchRow(case, 1.0, ratio, "times the CPU", base.order),
        BenchRow(case, before, after, "messages/s and receiver", base.order),
    ]


def latency(progress: SayProgress, *, members: list[int], rounds: int, repetitions: int) -> list[BenchRow]:
    """Measure idle round trips: one member multicasts, all others answer. First each member is a process; then all are in one process,
    which need not be woken and whose caches are warm, so that only the work itself is left."""
    rows = []
    for n in members:
        found: dict[tuple[str, bool], dict[str, list[float]]] = {
            (job, together): defaultdict(list)
            for job in ("latency", *FLOORS)
            for together in (False, True)
            if not (together and job == "raw_latency")  # blocking would stop the other members
        }
        for repetition in range(repetitions):
            progress(f"round trips of {n} members ({repetition + 1}/{repetitions})")
            for (job, together), into in found.items():
                for key, value in round_trips(job, n, rounds, together=together).items():
                    into[key].append(value)
        apart, one = found.pop(("latency", False)), found.pop(("latency", True))
        for (job, together), floor in found.items():
            case, ours = (f"{n} in one process", one) if together else (f"{n} members", apart)
            rows += [
                BenchRow(f"{case}, {key}", median(floor[key]), median(ours[key]), unit, FLOORS[job])
                for key, unit in (("p50", "us"), ("p99", "us"), ("user", CPU), ("system", CPU))
            ]
    return rows


def profile(members: int, size: int) -> str:
    """Return a profile of one member: its functions by their own time."""
    return str(play(FAST, members, size, profile=True)[0]["profile"])


def _rows(case: str, results: dict[Variant, list[dict[str, float]]]) -> list[BenchRow]:
    def mid(variant: Variant, key: str) -> float:
        return median(result[key] for result in results[variant])

    rows = []
    for variant in (FAST, EACH):
        name, ours = f"{case} {variant.name}", mid(variant, "cpu")
        baselines = [other for other in results if other not in (FAST, EACH)]
        rows += [
            BenchRow(name, mid(other, "cpu"), ours, "us CPU/delivery", other.name) for other in baselines
        ]
        note = f"{RAW.name}; {mid(variant, 'repairs'):g} repairs"
        rows.append(BenchRow(name, mid(RAW, "rate"), mid(variant, "rate"), "messages/s and receiver", note))
    return rows


def cost(variant: Variant, members: int, size: int, **how: Any) -> dict[str, float]:
    """Return the CPU of one run per delivery in microseconds, its deliveries per second and receiver, and its repairs."""
    ends = play(variant, members, size, **how)
    deliveries = _messages(variant, size) * (members - 1)
    return {
        "cpu": 1e6 * sum(end["cpu"] for end in ends) / (deliveries * members),
        "rate": deliveries / max(end["seconds"] for end in ends),
        "repairs": sum(end["repairs"] for end in ends),
    }


def _messages(variant: Variant, size: int) -> int:
    return min(MESSAGES_MAX, BYTES_PER_RUN // size) // variant.slow


def play(
    variant: Variant, members: int, size: int, *, profile: bool = False, **how: Any
) -> list[dict[str, Any]]:
    """Play one run, and return what every member reports at its end. `how`: more entries of the members' configuration."""
    names = [f"member{i}" for i in range(members)]
    common: dict[str, Any] = {
        "members": names,
        "via": f"udp://239.7.7.8:{free_ports(1, socket.SOCK_DGRAM)[0]}",
        "ports": free_ports(members, socket.SOCK_STREAM),
        "messages": _messages(variant, size),
        "size": size,
        "order": variant.order,
        "write": variant.write,
        "read": variant.read,
        "datagram": DATAGRAM,
        **how,
    }
    configs = [{**common, "name": name, "profile": profile and name == names[0]} for name in names]
    with Cluster(f"inga.lab.jobs:{variant.job}", configs) as cluster:
        for word in ("ready", "warm"):
            cluster.gather(word, timeout=SECONDS_MAX)
            cluster.tell("go")
        ends = cluster.gather("done", timeout=SECONDS_MAX)
        cluster.tell("close")
    return ends


def round_trips(
    job: str, members: int, rounds: int, order: str = "causal", *, together: bool = False, **how: Any
) -> dict[str, float]:
    """Return, in microseconds, the median and the 99th percentile of round trips, and the CPU of one, user and system, of all members
    together. `together`: all members are in one process. `how`: more entries of the members' configuration."""
    names = [f"member{i}" for i in range(members)]
    via = f"udp://239.7.7.9:{free_ports(1, socket.SOCK_DGRAM)[0]}"
    common = {"members": names, "via": via, "order": order, "rounds": rounds, **how}
    configs = [common] if together else [{**common, "name": name} for name in names]
    with Cluster(f"inga.lab.jobs:{job}", configs) as cluster:
        cluster.gather("ready", timeout=SECONDS_MAX)
        for member in reversed(range(len(configs))):  # start the members that answer first
            cluster.tell("go", member)
        ends = cluster.gather("done", timeout=SECONDS_MAX)
        cluster.tell("close")
    cpu = {key: 1e6 * sum(end[key] for end in ends) / rounds for key in ("user", "system")}
    return {"p50": ends[0]["p50"], "p99": ends[0]["p99"], **cpu}
