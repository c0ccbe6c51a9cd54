"""The figures that we want to reach, each with its goal, in one table that shows at a glance which are reached.

The other benchmarks measure all of them as well, with more cases and more baselines. Repetitions of live groups are
interleaved, and medians reported; ratios are medians of the ratios of successive runs. Goals are for
an otherwise idle machine of two cores, and for compiled protocol packages.
"""

from collections import defaultdict
from statistics import median

from inga.lab import bench_object, bench_sco, bench_sim
from inga.lab.bench import BenchRow, SayProgress
from inga.lab.bench_co import CO
from inga.lab.bench_net import EACH, FAST, FIFO, TOTAL, Variant, cost, round_trips

MEMBERS = 4
LARGE, SMALL = 1024, 100  # bytes of a message

AT_MOST, AT_LEAST = "goal: at most", "goal: at least"

PER_DELIVERY, RATE, TIMES = "us CPU/delivery", "messages/s and receiver", "times"

RATIOS = (
    ("causal against fifo", FAST, FIFO, LARGE, 1.05),
    ("total against causal", TOTAL, FAST, LARGE, 1.3),
    ("total against causal", TOTAL, FAST, SMALL, 1.3),
    ("co against fifo", CO, FIFO, LARGE, 1.25),
)
"""Goals for the CPU of one order against that of another, for messages of so many bytes."""

COSTS = (
    ("causal, send_many + batches", FAST, LARGE, 0.8),
    ("causal, await send + async for", EACH, LARGE, 1.2),
    ("causal, send_many + batches", FAST, SMALL, 0.15),
    ("causal, await send + async for", EACH, SMALL, 0.45),
)

RATES = (("total, send_many + batches", LARGE, 250_000), ("total, send_many + batches", SMALL, 1_000_000))


def run(progress: SayProgress, *, quick: bool = False, repetitions: int = 5) -> list[BenchRow]:
    """Return all rows; `baseline` is the goal, so that a ratio below one is good for goals of *at most*."""
    return [
        *_throughput(progress, repetitions),
        *_round_trips(progress, 400 if quick else 2000, repetitions),
        *_alone(progress, quick=quick),
    ]


def _throughput(progress: SayProgress, repetitions: int) -> list[BenchRow]:
    found: dict[tuple[Variant, int], list[dict[str, float]]] = defaultdict(list)
    cases = [(variant, size) for size in (LARGE, SMALL) for variant in (FAST, FIFO, EACH, TOTAL, CO)]
    for repetition in range(repetitions):
        for variant, size in cases:
            if size == LARGE or variant not in (FIFO, CO):
                progress(f"{MEMBERS} members, {size} B, {variant.name} ({repetition + 1}/{repetitions})")
                found[variant, size].append(cost(variant, MEMBERS, size))

    def mid(variant: Variant, size: int, key: str) -> float:
        return median(each[key] for each in found[variant, size])

    def times(variant: Variant, base: Variant, size: int) -> float:
        pairs = zip(found[variant, size], found[base, size], strict=True)
        return median(one["cpu"] / other["cpu"] for one, other in pairs)

    def case(size: int, what: str) -> str:
        return f"{MEMBERS} x {size} B {what}"

    return [
        *(BenchRow(case(b, w), g, mid(v, b, "cpu"), PER_DELIVERY, AT_MOST) for w, v, b, g in COSTS),
        *(BenchRow(case(b, f"{w}, CPU"), g, times(v, o, b), TIMES, AT_MOST) for w, v, o, b, g in RATIOS),
        *(BenchRow(case(b, w), g, mid(TOTAL, b, "rate"), RATE, AT_LEAST) for w, b, g in RATES),
    ]


def _round_trips(progress: SayProgress, rounds: int, repetitions: int) -> list[BenchRow]:
    rows = []
    for members, goal in ((2, 120), (4, 250)):
        causal, floor, total = [], [], []
        for repetition in range(repetitions):
            progress(f"round trips of {members} members ({repetition + 1}/{repetitions})")
            causal.append(round_trips("latency", members, rounds)["p50"])
            floor.append(round_trips("loop_latency", members, rounds)["p50"])
            total.append(round_trips("latency", members, rounds, "total")["p50"])
        name = f"round trip, {members} members"
        rows.append(BenchRow(f"{name}, p50", goal, median(causal), "us", AT_MOST))
        against_loop = median(ours / theirs for ours, theirs in zip(causal, floor, strict=True))
        rows.append(BenchRow(f"{name}, against the event loop alone", 1.5, against_loop, TIMES, AT_MOST))
        against_causal = median(ours / theirs for ours, theirs in zip(total, causal, strict=True))
        rows.append(BenchRow(f"{name}, total against causal", 2.2, against_causal, TIMES, AT_MOST))
    return rows


def _alone(progress: SayProgress, *, quick: bool) -> list[BenchRow]:
    """Measure the figures that need no group of processes, and those of `sco`, one of which is measured with processes."""
    progress("messages to three of many")
    live, control = bench_sco.live(200 if quick else 1000), bench_sco.control(100, 60 if quick else 200)
    progress("calls of objects")
    call = bench_object.call_cost("ping", 40 if quick else 200, bench_object.AT_ONCE)
    progress("schedules")
    schedules = bench_sim.schedules(400 if quick else 2000)
    at_once = f"{bench_object.CALLERS} members, {bench_object.AT_ONCE} at a time"
    return [
        BenchRow(f"sco, {live.case}", 10, live.value, PER_DELIVERY, AT_MOST),
        BenchRow(f"sco, {control.case} against 10", 1.5, control.ratio, "times the packets", AT_MOST),
        BenchRow(f"a call of an object, {at_once}", 60, call, "us CPU/call", AT_MOST),
        BenchRow(schedules.case, 4000, schedules.value, schedules.unit, AT_LEAST),
    ]
