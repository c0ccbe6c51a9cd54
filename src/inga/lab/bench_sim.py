"""How fast schedules are simulated, how fast packets pass the causal recipe, and how large stamps are.

Baselines of the same run: the same schedules without any order; the same packets through the recipe `fifo`;
a hold queue that is scanned and tests full vectors, as in textbooks; a full vector in the same number encoding.
"""

import gc
from collections.abc import Callable
from random import Random
from statistics import median
from time import process_time
from typing import TypeAlias

from inga.causality.clock import SiteClock
from inga.causality.inbox import Inbox
from inga.lab.bench import BenchRow
from inga.model.packet import Packet
from inga.model.stamp import Deps
from inga.model.view import View
from inga.recipes import Options, find
from inga.sim.board import Still, lossless, wander
from inga.stack.stack import Stack
from inga.wire import bundle, varint
from inga.wire.packet import encode, group_id

REPETITIONS = 5
BATCH = 64
OVERTAKES = 64  # the most packets by which a packet may be overtaken

Arriving: TypeAlias = list[tuple[Packet, bytes]]
"""Packets of others as they arrive, each with its datagram."""


def run(progress: Callable[[str], None], *, quick: bool = False) -> list[BenchRow]:
    """Run all cases, with the garbage collector set as in the processes of a search: earlier objects are frozen, so that it does not
    examine them again."""
    gc.collect()
    gc.freeze()
    scale = 5 if quick else 1
    progress("schedules of 3 members and 6 messages")
    rows = [schedules(2000 // scale)]
    for members, packets in ((4, 8000), (16, 4000), (64, 3000), (256, 2000)):
        progress(f"packets at {members} members")
        arriving = traffic(members, packets // scale)
        rows += [_recipe(members, arriving), _inbox(members, arriving)]
    rows += [_stamp_bytes(members, 3000 // scale) for members in (4, 16, 100)]
    return rows


def schedules(runs: int) -> BenchRow:
    def rate(order: str) -> float:
        build = lossless(order)
        started = process_time()
        for seed in range(runs):
            wander(Random(seed), 3, 6, build)
        return runs / (process_time() - started)

    value, baseline = _medians(lambda: rate("causal"), lambda: rate("none"))
    return BenchRow("schedules, 3 members x 6 messages", baseline, value, "runs/s and core", "order none")


def _recipe(members: int, arriving: Arriving) -> BenchRow:
    """Measure one member that receives packets of all others, each of which has taken packets of others before it sends."""

    def rate(order: str) -> float:
        return len(arriving) / received(order, members, arriving)[0]

    value, baseline = _medians(lambda: rate("causal"), lambda: rate("fifo"))
    return BenchRow(f"causal recipe, {members} members", baseline, value, "packets/s and core", "recipe fifo")


def received(order: str, members: int, arriving: Arriving) -> tuple[float, Stack]:
    """Let a member receive all these packets and its application take them. Return the seconds of CPU, and the member."""
    datagrams = [data for _, data in arriving]
    view = View.of(*map(str, range(members)))
    stack = Stack(find(order).build(Options()), 0, view, rng=Still(), group=_NAME)
    started = process_time()
    taken = 0
    for first in range(0, len(datagrams), BATCH):
        stack.receive([(data, None) for data in datagrams[first : first + BATCH]], now=0.0)
        batches = stack.ready().deliver
        stack.taken([batch.packet for batch in batches], now=0.0)  # type: ignore[union-attr]
        taken += len(batches)
    elapsed = process_time() - started
    assert taken == len(datagrams), f"{taken} of {len(datagrams)} were delivered"
    return elapsed, stack


def _inbox(members: int, arriving: Arriving) -> BenchRow:
    """Measure the hold queue alone: wait index and deltas against scanning with full vectors."""

    def indexed() -> float:
        inbox: Inbox[int] = Inbox(0, members)
        out: list[int] = []
        started = process_time()
        for packet, _ in arriving:
            assert packet.stamp is not None
            inbox.offer(packet.src, packet.seq, packet.stamp.delta, 0, out)
        assert len(out) == len(arriving)
        return len(arriving) / (process_time() - started)

    def scanned() -> float:
        arrivals = [(p.src, p.seq, p.deps) for p, _ in arriving]
        started = process_time()
        _scan(members, arrivals)
        return len(arriving) / (process_time() - started)

    value, baseline = _medians(indexed, scanned)
    return BenchRow(
        f"hold queue, {members} members", baseline, value, "packets/s and core", "scanned, full vectors"
    )


def _medians(value: Callable[[], float], baseline: Callable[[], float]) -> tuple[float, float]:
    """Return the medians of interleaved repetitions."""
    pairs = [(value(), baseline()) for _ in range(REPETITIONS)]
    first, second = (median(column) for column in zip(*pairs, strict=True))
    return first, second


def _scan(members: int, arrivals: list[tuple[int, int, Deps | None]]) -> None:
    """Run the hold queue of textbooks: after every arrival, test all held packets, with full vectors."""
    vector = [0] * members
    held: list[tuple[int, int, Deps]] = []
    for src, seq, deps in arrivals:
        assert deps is not None
        held.append((src, seq, deps))
        again = True
        while again:
            again = False
            for item in held:
                if item[1] == vector[item[0]] + 1 and all(
                    need <= have for need, have in zip(item[2], vector, strict=True)
                ):
                    held.remove(item)
                    vector[item[0]] = item[1]
                    again = True
                    break


def _stamp_bytes(members: int, packets: int) -> BenchRow:
    """Measure the mean size of the stamps of packets of random senders, each of which has taken all but the latest packets."""
    ours = full = 0
    for packet, _ in traffic(members, packets, talkers=(members - 1) // 10):
        with_stamp = len(_joined(packet))
        stamp, packet.stamp = packet.stamp, None
        ours += with_stamp - len(_joined(packet))
        packet.stamp = stamp
        assert packet.deps is not None
        vector = bytearray()
        for count in packet.deps:
            varint.put(vector, count)
        full += len(vector)
    return BenchRow(
        f"stamp, {members} members",
        full / packets,
        ours / packets,
        "bytes/packet",
        "full vector, same encoding",
    )


def traffic(members: int, packets: int, *, talkers: int | None = None) -> Arriving:
    """Return packets of the members from 1 on, each with its datagram, in an order of arrival in which packets overtake others.

    When it sends, a member has taken all but the newest few packets. In most groups only some members send; here all do, unless
    `talkers` says how many.
    """
    rng = Random(members)
    clocks = [SiteClock(me, members) for me in range(members)]
    read = [0] * members  # how many packets of the history each has taken
    history: list[tuple[int, int]] = []
    others = members - 1
    senders = range(1, 1 + min(others, max(2, others if talkers is None else talkers)))
    out = []
    for _ in range(packets):
        src = senders[int(rng.random() * len(senders))]
        clock = clocks[src]
        upto = max(read[src], len(history) - int(rng.random() * 8))
        for other, seq in history[read[src] : upto]:
            if other != src:
                clock.take(other, seq)
        read[src] = upto
        packet = Packet(src, 1, bundle.join([b"x" * 64]))
        packet.seq, packet.deps, packet.stamp = clock.stamp()
        packet.lsn = packet.seq
        history.append((src, packet.seq))
        out.append((packet, _joined(packet)))
    order = sorted(range(packets), key=lambda i: i + OVERTAKES * rng.random())
    return [out[i] for i in order]


def _joined(packet: Packet) -> bytes:
    data = encode(packet, _GROUP)
    return b"".join(data) if isinstance(data, list) else bytes(data)


_NAME = "bench"
_GROUP = group_id(_NAME)
