"""What live members write: traces without holes, true stamps, and an order one can replay (P4, P6)."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import time_ns
from typing import Any

import pytest

import inga
from inga.model.packet import Packet
from inga.model.stamp import Stamp
from inga.recipes import Options, find
from inga.trace import MemoryTrace, Row, read_manifest, read_processes, rows
from inga.trial.workload import Workload
from inga.wire.bundle import join as bundled

from ..stack.harness import Probe
from ..trace.lecture import out_of_place, told_in_place, told_wrong
from .helpers import Party, Run, take, text
from .trials import ROUGH, judged, play

pytestmark = pytest.mark.network

LEAN = {"view", "join", "leave", "send", "deliver", "take"}
REPLAYED = ("send", "hold", "deliver", "take", "concurrent", "branch", "merge")


def trace_of(path: Path) -> list[list[Row]]:
    """The rows of each process; reading them finds any hole."""
    return [list(rows(path, process.process)) for process in read_processes(path)]


def sends_of(trace: list[list[Row]]) -> dict[tuple[int, int], Row]:
    return {(row.process, row.seq or 0): row for part in trace for row in part if row.step == "send"}


def stamps_of(sends: dict[tuple[int, int], Row]) -> dict[tuple[int, int], Stamp]:
    """What travelled: the difference of each send from the one before it."""
    stamps = {}
    for (src, seq), row in sends.items():
        assert row.deps is not None and row.height is not None
        before = sends[src, seq - 1].deps if seq > 1 else (0,) * len(row.deps)
        assert before is not None
        changed = [k for k in range(len(row.deps)) if k != src and row.deps[k] != before[k]]
        stamps[src, seq] = Stamp(tuple((k, row.deps[k]) for k in changed), row.height)
    return stamps


def replay(trace: list[list[Row]], member: int, order: str, *, echo: bool = False) -> list[Row]:
    """Give a member's `send`, `receive` and `take` rows to its order layer alone; the rows that gives."""
    sends = sends_of(trace)
    stamps = stamps_of(sends)
    _, layer, *_ = find(order).build(Options(lossless=True, echo=echo))
    written = MemoryTrace(member, len(trace))
    probe = Probe(layer, me=member, members=len(trace), traced=True, trace=written)
    arrived: dict[tuple[int, int], Packet] = {}
    for row in trace[member]:
        if row.step not in ("send", "receive", "take"):
            continue
        assert row.src is not None and row.seq is not None
        sent = sends[row.src, row.seq]
        messages = [b""] * (sent.n or 0)
        if row.step == "take":
            layer.taken([arrived[row.src, row.seq]])
            continue
        packet = Packet(row.src, row.view, bundled(messages), sent.dst)
        packet.count, packet.payloads = len(messages), list(messages)
        if row.step == "send":
            layer.down([packet])
            continue
        packet.seq, packet.bare = row.seq, row.note == "bare"
        if order == "vector":
            packet.stamp = stamps[row.src, row.seq]
        else:
            packet.trace = sent.deps
        arrived[row.src, row.seq] = packet
        probe.feed(packet)
    assert not probe.stack.rejected
    return written.rows


def meaning(part: list[Row], step: str) -> list[tuple[Any, ...]]:
    return [(r.view, r.src, r.seq, r.dst, r.deps, r.height, r.n) for r in part if r.step == step]


def check_replays(trace: list[list[Row]], order: str, *, echo: bool = False) -> None:
    """P6, and more: all that the order layer writes follows from what was sent, received and taken."""
    for member, part in enumerate(trace):
        again = replay(trace, member, order, echo=echo)
        for step in REPLAYED:
            assert meaning(again, step) == meaning(part, step), f"{step} rows of member {member}"
        assert meaning(part, "deliver")


def check_stamps(trace: list[list[Row]]) -> None:
    """P4: a stamp is what its sender had taken and sent at the send, and the same wherever it is seen."""
    sends = sends_of(trace)
    for member, part in enumerate(trace):
        clock = [0] * len(trace)
        for row in part:
            if row.step not in ("send", "deliver", "take"):
                continue
            assert row.src is not None and row.seq is not None and row.deps is not None
            if row.step == "send":
                assert row.deps == tuple(clock) and row.seq == clock[member] + 1
                clock[member] += 1
            sent = sends[row.src, row.seq]
            assert (row.deps, row.height, row.n) == (sent.deps, sent.height, sent.n)
            assert row.height == sum(row.deps) + 1
            if row.step == "take":
                clock = list(map(max, clock, row.deps))
                clock[row.src] = max(clock[row.src], row.seq)


def check_whole(path: Path, order: str, workload: Workload) -> list[list[Row]]:
    """It describes itself, has no holes, and holds every message at every destination."""
    manifest, processes = read_manifest(path), read_processes(path)
    assert (manifest.source, manifest.order, manifest.clock) == ("live", order, "wall")
    assert (manifest.receipt, manifest.guarantees) == ("take", [*find(order).guarantees, "views"])
    assert all(process.complete and not process.crashed for process in processes)
    trace = trace_of(path)
    assert [len(part) for part in trace] == [process.last_pos for process in processes]
    counts: Counter[str] = Counter()
    for part in trace:
        for row in part:
            if row.step in LEAN:
                counts[row.step] += row.n or 0
    sent = workload.members * workload.messages
    audience = workload.subset or workload.members - 1
    assert counts["send"] == sent
    assert counts["take"] == sent * audience
    assert counts["deliver"] >= sent * audience
    return trace


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("subset", [None, 2])
@pytest.mark.parametrize("order", ["vector", "fifo", "none"])
def test_what_members_of_one_process_write(
    run: Run, party: Party, tmp_path: Path, order: str, subset: int | None, echo: bool
) -> None:
    workload = Workload(members=4, messages=80, size=500, subset=subset)
    path = tmp_path / "trace"
    began = time_ns()

    async def main() -> Any:
        async with party(
            4, order=order, faults=ROUGH, seed=9, echo=echo, trace=path, datagram_max=1500
        ) as groups:
            return await play(groups, workload, echo=echo)

    diaries = run(main())
    assert not judged(diaries, workload, echo=echo).keys() & set(find(order).guarantees)
    trace = check_whole(path, order, workload)
    assert all(began <= row.time <= time_ns() for part in trace for row in part)
    check_stamps(trace)
    check_replays(trace, order, echo=echo)
    assert not [row for part in trace for row in out_of_place(part)], "what is concurrent is told too late"
    if order == "vector":
        assert sum(map(told_in_place, trace)) > 0 and not any(map(told_wrong, trace))
    steps = {row.step for part in trace for row in part}
    assert steps >= {
        "send",
        "receive",
        "deliver",
        "take",
        "control",
        "gap",
        "nack",
        "repair",
        "lost",
        "delayed",
    }
    assert ("hold" in steps) == (order != "none")


def test_a_lean_trace(run: Run, party: Party, tmp_path: Path) -> None:
    workload = Workload(members=3, messages=60)
    path = tmp_path / "trace"

    async def main() -> Any:
        async with party(3, faults=ROUGH, seed=9, trace=path, trace_level="deliveries") as groups:
            return await play(groups, workload)

    assert judged(run(main()), workload) == {}
    trace = check_whole(path, "vector", workload)
    assert {row.step for part in trace for row in part} == LEAN | {"flush"}
    check_stamps(trace)


def test_stamps_under_a_delay(run: Run, party: Party, tmp_path: Path) -> None:
    """V15: what leaves later was stamped at its send."""
    path = tmp_path / "trace"

    async def main() -> None:
        async with party(3, trace=path) as (alice, bob, cathy):
            alice.delay("cathy", 0.05)
            bob.delay("alice", 0.02)
            alice.post(b"1")
            iteration = aiter(bob)
            assert text(await anext(iteration)) == "1"
            bob.post(b"2")
            alice.post(b"3")
            assert text(await anext(iteration)) == "3"
            bob.post(b"4")
            heard = await take(aiter(cathy), 4)
            assert {text(d): d.deps for d in heard} == {
                "1": (0, 0, 0),
                "2": (1, 0, 0),
                "3": (1, 0, 0),
                "4": (2, 1, 0),
            }
            heard = await take(aiter(alice), 2)
            assert [text(d) for d in heard] == ["2", "4"]

    run(main())
    trace = trace_of(path)
    check_stamps(trace)
    check_replays(trace, "vector")


@pytest.mark.parametrize("via", ["udp://239.7.7.7:0", "unicast", "tcp"])
def test_what_processes_write(tmp_path: Path, via: str) -> None:
    """Four of them, one or two messages in a hundred lost or doubled; the oracle and the trace agree."""
    path = tmp_path / "trace"
    words = "--members 4 --messages 400 --size 1024 --loss 0.02 --dup 0.02 --reorder 0.1 --delay 0:1 --seed 5 --json"
    command = [sys.executable, "-m", "inga", "live", *words.split(), "--via", via, "--trace", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["sent"], result["delivered"], result["expected"]) == (1600, 4800, 4800)
    assert (result["violations"], result["unpromised"]) == (0, {}) and result["related"] > 0
    assert result["pdus"]["repair"] > 0
    trace = check_whole(path, "vector", Workload(members=4, messages=400))
    assert read_manifest(path).complete and read_manifest(path).seed == 5
    check_stamps(trace)
    check_replays(trace, "vector")
    assert result["pdus"]["data"] == len(sends_of(trace)), "one datagram a packet"


@pytest.mark.parametrize("when", ["rows", "time"])
def test_a_trace_that_cannot_be_written_ends_the_group(
    run: Run, party: Party, tmp_path: Path, when: str
) -> None:
    """Nobody goes on as if all were well: the iteration says why, and so does leaving."""
    path = tmp_path / "trace"
    words = r"1-00000.parquet cannot be written: No such file"

    async def main() -> None:
        async with party(2, each={"bob": {"trace": path}}) as (alice, bob):
            reading = asyncio.create_task(take(aiter(bob), 100_000))
            shutil.rmtree(path / "events")
            trace: Any = bob.stack.trace  # whose next rows are to be a segment
            if when == "rows":
                trace._segment_rows = 1
                trace._set_limit()
            else:
                trace._segment_seconds = 0.0
            while not reading.done():
                alice.post(b"x")
                await asyncio.sleep(0.01)
            with pytest.raises(inga.TraceError, match=words):
                await reading
            with pytest.raises(inga.UsageError, match=rf"the group has failed: .*{words}"):
                bob.post(b"y")
            with pytest.raises(inga.TraceError, match=words):
                await bob.close()
            await alice.close(linger=0)

    run(main())
    assert [process.complete for process in read_processes(path)] == [False, False]


def test_what_is_left_to_read_after_leaving(run: Run, party: Party, tmp_path: Path) -> None:
    async def main() -> None:
        async with party(2, trace=tmp_path / "trace") as (alice, bob):
            await (await alice.send(b"unread")).reached("confirmed")
            await bob.close()
            assert [text(d) async for d in bob] == ["unread"]

    run(main())
