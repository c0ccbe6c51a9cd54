"""A live trial of objects, `inga live --objects K`: replicated objects, one process per member, real sockets.

Each member makes up to `AT_ONCE` requests concurrently. When all have ended, some messages may
still be in flight: one-way calls, and those that undo aborted transactions. So members report how many messages they
have sent and received, until all are idle and the sums are equal twice in a row: then nothing is in flight.
"""

import asyncio
from pathlib import Path
from random import Random
from time import monotonic, process_time
from typing import Any

from inga.model.errors import IngaError
from inga.net.group import Group
from inga.objects.declare import Abort
from inga.objects.layer import ObjectOrder
from inga.recipes import find
from inga.runs.cluster import Cluster, WorkerDied
from inga.runs.live import START_SECONDS, CountProgress, configs_of, gather_ready, patience, recorded
from inga.runs.member import Pace, joined
from inga.runs.worker import WorkerLink
from inga.trial.calls import CallJudge, CallResult, ClientRequest
from inga.trial.result import packets_sent
from inga.trial.trial import Trial

AT_ONCE = 8
"""How many requests of one member run at a time."""

LOOK_AGAIN = 0.01
"""Seconds before members are asked again whether they are idle."""

JOB = "inga.runs.live_calls:play"


def run(
    trial: Trial,
    trace: Path | None = None,
    *,
    full: bool = True,
    progress: CountProgress = lambda done: None,
    starting: CountProgress = lambda started: None,
    metrics: int | None = None,
) -> CallResult:
    """Start the members, let them call, and judge their reports."""
    configs = configs_of(trial, Path(), trace, full=full, metrics=metrics)
    with recorded(trial, trace, full=full), Cluster(JOB, configs) as cluster:
        gather_ready(cluster, starting)
        started = monotonic()
        cluster.tell("go")
        told = cluster.gather("done", timeout=patience(trial), progress=progress)
        _until_quiet(cluster, trial.timeout)
        seconds = monotonic() - started
        cluster.tell("close")
        ends = cluster.gather("closed", timeout=START_SECONDS)
    trace_said = None if trace is None else str(trace)
    return _judge(trial, told, ends, seconds=seconds, trace=trace_said)


def _until_quiet(cluster: Cluster, seconds: float) -> None:
    """Wait until no call runs and no message is in flight."""
    deadline = monotonic() + seconds
    before: int | None = None
    while monotonic() < deadline:
        cluster.tell("count")
        counts = cluster.gather("count", timeout=seconds)
        sent = sum(line["sent"] for line in counts)
        quiet = all(line["idle"] for line in counts) and sent == sum(line["got"] for line in counts)
        if quiet and before == sent:
            return
        before = sent if quiet else None
    raise WorkerDied(f"objects are still at work {seconds:g} s after the last request")


def _judge(
    trial: Trial, told: list[dict[str, Any]], ends: list[dict[str, Any]], **measured: Any
) -> CallResult:
    load = trial.load
    judge = CallJudge(load)
    committed = asked = starts = 0
    for me, (name, said, end) in enumerate(zip(trial.people, told, ends, strict=True)):
        plan = [each for _, each in load.plan(Random(f"{trial.seed}/{me}"), me)]
        asked += len(plan)
        starts += sum(each.starts for each in plan)
        for each, outcome in zip(plan, said["outcomes"], strict=True):
            if outcome == "committed":
                committed += 1
                judge.told(each.adds)
            elif outcome != "aborted":
                judge.unanswered(name, f"{each.kind} ({outcome})")
        judge.saw(name, [tuple(each) for each in end["began"]], end["states"])
    judge.finish()
    return judge.result(
        order=find(trial.order).name,
        seed=trial.seed,
        sent=asked,
        expected=load.members * starts,
        committed=committed,
        aborted=asked - committed,
        pdus=packets_sent([end["counts"] for end in ends]),
        bytes=sum(end["counts"].get("bytes", 0) for end in ends),
        cpu_seconds=sum(end["cpu"] for end in ends),
        **measured,
    )


# One member


async def play(config: dict[str, Any], link: WorkerLink) -> None:
    """Run one member, from joining to leaving."""
    trial, me = Trial(**config["trial"]), config["me"]
    load = trial.load
    async with joined(config, objects=trial.classes(trial.misdeclare)) as group:
        order = group.stack.layer("object")
        assert isinstance(order, ObjectOrder)
        order.rows.diary = []
        await group.ready()
        link.say("ready")
        await link.hear()
        started = process_time()
        plan = list(load.plan(Random(f"{trial.seed}/{me}"), me))
        outcomes = await _ask(group, plan, link, Pace(trial.rate is not None))
        link.say("done", outcomes=outcomes)
        while (await link.hear())["kind"] == "count":
            await asyncio.sleep(LOOK_AGAIN)
            sent, got = order.host.engine.links.traffic
            link.say("count", idle=order.host.idle, sent=sent, got=got)
        cpu = process_time() - started
        states = {name: list(group.state(name)) for name in load.names}
    link.say("closed", counts=dict(group.stack.counts), cpu=cpu, began=order.rows.diary, states=states)


async def _ask(
    group: Group, plan: list[tuple[float, ClientRequest]], link: WorkerLink, pace: Pace
) -> list[str]:
    """Make all requests, `AT_ONCE` at a time; return their outcomes."""
    outcomes = [""] * len(plan)
    left = iter(enumerate(plan))

    async def worker() -> None:
        for number, (gap, asked) in left:
            await pace.wait(gap)
            try:
                await group.transact(asked.body)
                outcomes[number] = "committed"
            except Abort:
                outcomes[number] = "aborted"
            except IngaError as error:
                outcomes[number] = f"{type(error).__name__}: {error}"
            link.say("progress", taken=sum(map(bool, outcomes)))

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return outcomes
