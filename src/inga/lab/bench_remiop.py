"""The cost of ReMIOP over plain MIOP, for messages of one packet, in the same run.

Round trips are between processes over loopback multicast: one member multicasts, all others answer. Repetitions of both protocols are
interleaved. Disturbances can only make a round trip longer, so the smallest median is reported. CPU is that of the stacks alone, without
sockets and processes, for one message sent by one member and received by another, with all reports.
"""

from collections import defaultdict
from random import Random
from time import process_time

from inga.lab.bench import BenchRow, SayProgress
from inga.lab.bench_net import round_trips
from inga.model.delivery import Batch
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.stack import Stack, joined

PLAIN, RELIABLE = "miop", "remiop"
SIZE = 1000
STEP = 0.0005
"""Seconds of the stacks' own time between two messages."""


def run(
    progress: SayProgress, *, members: list[int], repetitions: int, quick: bool = False
) -> list[BenchRow]:
    """Run all cases."""
    rows = []
    for n in members:
        found: dict[str, list[float]] = {PLAIN: [], RELIABLE: []}
        for repetition in range(repetitions):
            progress(f"round trips of {n} members ({repetition + 1}/{repetitions})")
            for order in (PLAIN, RELIABLE) if repetition % 2 else (RELIABLE, PLAIN):
                found[order].append(round_trips("latency", n, 400 if quick else 2000, order)["p50"])
        case = f"{n} members, one packet, p50, best of {repetitions}"
        rows.append(BenchRow(case, min(found[PLAIN]), min(found[RELIABLE]), "us round trip", "plain MIOP"))
    progress("CPU of the stacks alone")
    spent: dict[str, list[float]] = defaultdict(list)
    for _ in range(3 if quick else 7):
        for order in (PLAIN, RELIABLE):
            spent[order].append(processing(order, 1000 if quick else 4000))
    return [
        *rows,
        BenchRow(
            "one packet, sent and received",
            min(spent[PLAIN]),
            min(spent[RELIABLE]),
            "us CPU/message",
            "plain MIOP",
        ),
    ]


def processing(order: str, messages: int) -> float:
    """Return the microseconds of CPU for a message, at its sender and one receiver together."""
    pair = [_stack(order, me) for me in (0, 1)]
    data = b"x" * SIZE
    now = 0.0
    started = process_time()
    for _ in range(messages):
        now += STEP
        pair[0].send(data, now=now)
        for me in (0, 1, 0):
            _act(pair[me], pair[1 - me], now)
    return 1e6 * (process_time() - started) / messages


def _stack(order: str, me: int) -> Stack:
    stack = Stack(find(order).build(Options()), me, View.of("a", "b", recipe=order), rng=Random(me), now=0.0)
    stack.begin()
    return stack


def _act(stack: Stack, other: Stack, now: float) -> None:
    """Do what a driver does in one turn: wake the stack when it is due, take its deliveries, and transmit."""
    ready = stack.ready()
    if ready.wake is not None and ready.wake <= now:
        stack.tick(now)
        ready.send += stack.ready().send
    taken = [item.packet for item in ready.deliver if isinstance(item, Batch)]
    if taken:
        stack.taken(taken, now=now)
    if ready.send:
        other.receive([(joined(datagram), None) for _, datagram in ready.send], now=now)
