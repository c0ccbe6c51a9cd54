"""How fast schedules are simulated, packets pass the causal recipe, and how large stamps are.

Baselines of the same run: the same schedules without any order; the same packets through the `fifo`
recipe; a hold queue that is scanned and tests full vectors, as textbooks have it; a full vector in
the same number encoding.
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
OVERTAKES = 64  # places by which a packet may be overtaken

Arriving: TypeAlias = list[tuple[Packet, bytes]]
"""Packets of others as they arrive, each with its datagram."""


def run(progress: Callable[[str], None], *, quick: bool = False) -> list[BenchRow]:
    """All cases, as the processes of a search play them: what was there before is no garbage, and is not looked at again."""
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
    """One member receives what all others send, each answering what it has seen."""

    def rate(order: str) -> float:
        return len(arriving) / received(order, members, arriving)[0]

    value, baseline = _medians(lambda: rate("causal"), lambda: rate("fifo"))
    return BenchRow(f"causal recipe, {members} members", baseline, value, "packets/s and core", "recipe fifo")


def received(order: str, members: int, arriving: Arriving) -> tuple[float, Stack]:
    """Seconds of CPU in which a member receives all these packets and its application takes them; and that member."""
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
    """The hold queue alone: wait index and deltas against scanning with full vectors."""

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
    """Medians of interleaved repetitions."""
    pairs = [(value(), baseline()) for _ in range(REPETITIONS)]
    first, second = (median(column) for column in zip(*pairs, strict=True))
    return first, second


def _scan(members: int, arrivals: list[tuple[int, int, Deps | None]]) -> None:
    """The textbook's hold queue: after every arrival, test all that wait, with full vectors."""
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
    """Mean over packets of random senders, each of which has seen what was sent a while ago."""
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
    """Packets of members 1.. in an order of arrival that overtakes, each with its datagram.

    A sender has taken all but the newest few packets. In most groups only some talk; all do unless told.
    """
    rng = Random(members)
    clocks = [SiteClock(me, members) for me in range(members)]
    read = [0] * members  # how much of the history each has taken
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
