"""The workload of `inga sim` with one process per member and real sockets, judged by the same oracle."""

import os
import socket
import tempfile
from array import array
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.net.address import parse_via
from inga.net.cluster import Cluster
from inga.net.member import plan
from inga.recipes import Recipe, find, refuse_unsafe
from inga.trace.manifest import Manifest
from inga.trial.oracle import Oracle
from inga.trial.people import names
from inga.trial.result import Result, packets_sent
from inga.trial.workload import Workload

START_SECONDS = 30.0
STALL_SECONDS = 60.0
"""Without any delivery anywhere, after which a run is given up."""

LISTEN_SECONDS = 1.5
"""How long members of an order that promises to go quiet stay on, so that their trace can show it."""

NO_FAULTS = Faults()

VIA = "udp://239.7.7.7:0"
"""Loopback multicast on a port that is free."""


@dataclass(frozen=True, slots=True)
class LiveCase:
    """Everything `inga live` can be told."""

    workload: Workload
    order: str = "causal"
    faults: Faults = NO_FAULTS
    via: str = VIA
    seed: int = 0
    deliver: str | None = None
    protocol: dict[str, Any] = field(default_factory=dict)  # options of the order's own
    echo: bool = False
    matrix: bool = False
    window: int | None = None
    trace: Path | None = None
    trace_level: str = "full"
    stall: float = STALL_SECONDS
    unsafe: bool = False


def run(case: LiveCase, progress: Callable[[int], None] = lambda taken: None) -> Result:
    """Start the members, let them talk, judge what they wrote in their diaries."""
    recipe = find(case.order)
    refuse_unsafe(recipe, case.unsafe)
    workload = case.workload
    started = monotonic()
    with tempfile.TemporaryDirectory(prefix="inga-live-") as scratch:
        manifest = _manifest(case, recipe)
        if manifest is not None and case.trace is not None:
            manifest.write(case.trace)
        configs = _configs(case, Path(scratch))
        with Cluster("inga.net.member:play", configs) as cluster:
            cluster.gather("ready", timeout=START_SECONDS)
            started = monotonic()
            cluster.tell("go")
            cluster.gather("done", timeout=case.stall, progress=progress)
            seconds = monotonic() - started
            if case.trace is not None and "quiet" in recipe.guarantees:
                sleep(LISTEN_SECONDS)
            cluster.tell("close")
            ends = cluster.gather("closed", timeout=START_SECONDS)
        if manifest is not None and case.trace is not None:
            replace(manifest, complete=True).write(case.trace)
        diaries = [_diary(Path(config["diary"])) for config in configs]
    oracle = judge_diaries(workload, case.seed, diaries, echo=case.echo)
    return Result.of(
        oracle,
        recipe.name,
        recipe.promises(case.deliver),
        seed=case.seed,
        pdus=packets_sent([end["counts"] for end in ends]),
        bytes=sum(end["counts"].get("bytes", 0) for end in ends),
        seconds=seconds,
        cpu_seconds=sum(end["cpu"] for end in ends),
        trace=None if case.trace is None else str(case.trace),
    )


def judge_diaries(
    workload: Workload, seed: int, diaries: "list[array[int]]", *, echo: bool = False
) -> Oracle:
    """Tell the oracle all diaries, in any order in which nothing is taken before it was sent."""
    oracle = Oracle(workload.members)
    everybody = (1 << workload.members) - 1
    audiences = [_audiences(workload, seed, member) for member in range(workload.members)]
    sent: set[int] = set()
    at = [0] * len(diaries)
    moved = True
    while moved:
        moved = False
        for site, diary in enumerate(diaries):
            position = at[site]
            while position < len(diary):
                entry = diary[position]
                if entry > 0:
                    dst = audiences[site][(entry - 1) // workload.members]
                    if echo:
                        dst = everybody if dst is None else dst | 1 << site
                    oracle.send(site, entry, dst)
                    sent.add(entry)
                elif -entry in sent:
                    oracle.take(site, -entry)
                else:
                    break
                position += 1
            moved = moved or position > at[site]
            at[site] = position
    for site, diary in enumerate(diaries):
        for entry in diary[at[site] :]:
            if entry < 0:
                oracle.blame("integrity", f"site {site} took message {-entry}, which nobody sent")
    oracle.finish()
    return oracle


def _audiences(workload: Workload, seed: int, member: int) -> list[int | None]:
    """Destinations of a member's sends, in the order of its plan, which gives them their numbers."""
    moves = plan(workload, member, Random(f"{seed}/{member}"))
    return [dst for dst, _ in moves]


def _expected(case: LiveCase) -> list[int]:
    """How many messages each member takes."""
    n = case.workload.members
    counts = [0] * n
    for sender in range(n):
        for dst in _audiences(case.workload, case.seed, sender):
            for member in range(n):
                if member == sender:
                    counts[member] += case.echo
                elif dst is None or dst >> member & 1:
                    counts[member] += 1
    return counts


def _configs(case: LiveCase, scratch: Path) -> list[dict[str, Any]]:
    people = names(case.workload.members)
    via, members, interface = _place(case.via, people)
    expected = _expected(case)
    faults = None if case.faults == NO_FAULTS else asdict(case.faults)
    return [
        {
            "group": f"live-{os.getpid()}",
            "me": me,
            "members": members,
            "via": via,
            "interface": interface,
            "order": case.order,
            "deliver": case.deliver,
            "protocol": case.protocol,
            "unsafe": case.unsafe,
            "trace": None if case.trace is None else str(case.trace),
            "trace_level": case.trace_level,
            "echo": case.echo,
            "matrix": case.matrix,
            "window": case.window,
            "faults": faults,
            "seed": case.seed,
            "workload": asdict(case.workload),
            "expected": expected[me],
            "diary": str(scratch / f"{me}.diary"),
        }
        for me in range(case.workload.members)
    ]


def _place(via: str, people: tuple[str, ...]) -> tuple[str, list[str] | dict[str, str], str | None]:
    """Where members on this machine meet: loopback, on ports that are free."""
    if via in ("unicast", "tcp"):
        kind = socket.SOCK_DGRAM if via == "unicast" else socket.SOCK_STREAM
        ports = free_ports(len(people), kind)
        return via, {name: f"127.0.0.1:{port}" for name, port in zip(people, ports, strict=True)}, None
    address, mark, option = via.partition("?")
    if address.endswith(":0"):
        via = f"{address[:-2]}:{free_ports(1, socket.SOCK_DGRAM)[0]}{mark}{option}"
    place = parse_via(via)
    return via, list(people), place.interface or "127.0.0.1"


def free_ports(count: int, kind: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def _manifest(case: LiveCase, recipe: Recipe) -> Manifest | None:
    if case.trace is None:
        return None
    return Manifest(
        group="live",
        processes=list(names(case.workload.members)),
        source="live",
        order=recipe.name,
        guarantees=recipe.claims(full=case.trace_level == "full", deliver=case.deliver),
        receipt=recipe.receipt,
        options={
            **asdict(case.workload),
            **asdict(case.faults),
            "via": case.via,
            "deliver": recipe.level_of(case.deliver),
            "protocol": case.protocol,
            "matrix": case.matrix,
        },
        seed=case.seed,
        clock="wall",
    )


def _diary(path: Path) -> "array[int]":
    diary: array[int] = array("q")
    data = path.read_bytes()
    if len(data) % diary.itemsize:
        raise UsageError(f"the diary {path.name} is cut")
    diary.frombytes(data)
    return diary
