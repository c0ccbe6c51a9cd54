"""The cost of CO: CPU against our own FIFO over the same sockets, control packets, and bytes of headers.

A message of CO is delivered when all members are known to have confirmed it; one of FIFO on arrival. So the control packets of the two
serve different guarantees; they are compared all the same, since that difference is the price of CO.
"""

from collections import defaultdict
from statistics import median

from inga.lab.bench import BenchRow, SayProgress
from inga.lab.bench_net import FIFO, Variant, cost
from inga.lab.co.played import Task, simulate
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial

CO = Variant("co, send_many + batches", "throughput", "co")

LIGHT, HEAVY = 10.0, 20_000.0
"""Messages per second and member: one every 100 ms, as in the paper; and more than a window allows."""


def run(
    progress: SayProgress, *, members: list[int], sizes: list[int], repetitions: int, quick: bool = False
) -> list[BenchRow]:
    """Run all cases."""
    rows = [row for n in members for size in sizes for row in _cpu(progress, n, size, repetitions)]
    progress("control messages, in virtual time")
    for n in members:
        rows += [_control(n, "light", LIGHT, 100), _control(n, "heavy", HEAVY, 400 if quick else 2000)]
    progress("headers")
    for n in (*members, 32):
        for who in ("all talk", "two talk"):
            measured = simulate(Task("header", n, delays=who))["bytes"]
            rows.append(
                BenchRow(f"header, {n} members, {who}", 20 + 8 * n, measured, "bytes/packet", "20 + 8n")
            )
    return rows


def _cpu(progress: SayProgress, members: int, size: int, repetitions: int) -> list[BenchRow]:
    """Measure both orders in interleaved repetitions, and report medians."""
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for repetition in range(repetitions):
        for variant in (CO, FIFO):
            progress(f"{members} members, {size} B, {variant.name} ({repetition + 1}/{repetitions})")
            found[variant.order].append(cost(variant, members, size))

    def mid(order: str, key: str) -> float:
        return median(each[key] for each in found[order])

    case, note = f"{members} x {size} B {CO.name}", f"{FIFO.name}; {mid('co', 'repairs'):g} repairs"
    return [
        BenchRow(case, mid("fifo", "cpu"), mid("co", "cpu"), "us CPU/delivery", note),
        BenchRow(case, mid("fifo", "rate"), mid("co", "rate"), "messages/s and receiver", note),
    ]


def _control(members: int, name: str, rate: float, messages: int) -> BenchRow:
    """Count control packets per message of an application; a packet to all members counts once."""

    def per_message(order: str) -> float:
        result = simulate_trial(Trial(order, members=members, messages=messages, rate=rate, size=512))
        return result.pdus["control"] / result.sent

    case = f"control, {members} members, {name} ({rate:,g} messages/s and member)"
    return BenchRow(case, per_message("fifo"), per_message("co"), "packets/message", "recipe fifo")
