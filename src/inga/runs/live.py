"""The workload of `inga sim` with one process per member and real sockets, judged by the same oracle."""

import os
import socket
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.net.address import parse_via
from inga.objects.hosting import Layout
from inga.recipes import Recipe, find, refuse_unsafe
from inga.runs.cluster import Cluster
from inga.runs.member import LET_IN, planned_sends
from inga.trace.manifest import Manifest
from inga.trial.oracle import KeyOfNumber, Oracle, agreed_orders
from inga.trial.people import member_names
from inga.trial.result import Result, packets_sent, recovered
from inga.trial.workload import Workload

START_SECONDS = 30.0
STALL_SECONDS = 60.0
"""Without any delivery anywhere, after which a run is given up."""

LISTEN_SECONDS = 1.5
"""How long members of an order that promises to go quiet stay on, so that their trace can show it."""

MEMBERS_MAX = 256
"""Members of a live run. Each is a process, and for each its launcher opens three files of the 1,024 it may have."""

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
    join: int = 0  # members that come later
    paced: bool = False  # members keep the workload's rate; else they send as fast as the group takes it

    def __post_init__(self) -> None:
        members = self.workload.members + self.join
        if members > MEMBERS_MAX:
            raise UsageError(
                f"{members} live members would be as many processes, and {MEMBERS_MAX} are the most that are started; "
                "inga sim plays larger groups"
            )

    @property
    def patience(self) -> float:
        """Seconds without any progress that mean that none will come."""
        return self.stall + (self.workload.longest_gap if self.paced else 0.0)


def run(
    case: LiveCase,
    progress: Callable[[int], None] = lambda taken: None,
    starting: Callable[[int], None] = lambda started: None,
) -> Result:
    """Start the members, let them talk, judge what they wrote in their diaries."""
    recipe = find(case.order)
    refuse_unsafe(recipe, case.unsafe)
    workload = case.workload
    started = monotonic()
    with tempfile.TemporaryDirectory(prefix="inga-live-") as scratch:
        configs = configs_of(case, Path(scratch))
        late = frozenset(range(workload.members, len(configs)))
        places = list(range(len(configs)))  # of members in the last view
        with recorded(case, recipe), Cluster("inga.runs.member:play", configs) as cluster:
            gather_ready(cluster, starting, without=late)
            started = monotonic()
            cluster.tell("go")
            if case.join:
                sent = cluster.gather("sent", timeout=case.patience, progress=progress)
                places = [line["index"] for line in sent]
                for worker, place in enumerate(places):
                    expected = sum(line["to"].get(str(place), 0) for line in sent)
                    cluster.tell("expect", worker, expected=expected)
            cluster.gather("done", timeout=case.patience, progress=progress)
            seconds = monotonic() - started
            if case.trace is not None and "quiet" in recipe.guarantees:
                sleep(LISTEN_SECONDS)
            cluster.tell("close")
            ends = cluster.gather("closed", timeout=START_SECONDS)
        by_place = sorted(range(len(configs)), key=places.__getitem__)
        diaries = [_diary(Path(configs[worker]["diary"])) for worker in by_place]
    keys = case.protocol.get("keys") or 1
    agreed = agreed_orders(recipe.promises(case.deliver), lambda message: message % keys)
    oracle = judge_diaries(workload, case.seed, diaries, echo=case.echo, agreed=agreed)
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
        recovery=recovered([end["counts"] for end in ends]) if recipe.wire == "miop" else {},
    )


def gather_ready(
    cluster: Cluster, starting: Callable[[int], None], without: frozenset[int] = frozenset()
) -> None:
    """Wait until all have met; `starting` is told how many processes there are, which can take a while."""
    cluster.gather(
        "ready", timeout=START_SECONDS, without=without, progress=lambda _: starting(cluster.started)
    )


def judge_diaries(
    workload: Workload,
    seed: int,
    diaries: "list[array[int]]",
    *,
    echo: bool = False,
    agreed: Mapping[str, KeyOfNumber] | None = None,
) -> Oracle:
    """Tell the oracle all diaries, in any order in which nothing is taken before it was sent, and nobody
    says anything before all have let it in. Diaries of those who came later follow the others'."""
    return _Judge(workload, seed, diaries, echo, agreed).judge()


class _Judge:
    """Reads all diaries side by side."""

    def __init__(
        self,
        workload: Workload,
        seed: int,
        diaries: "list[array[int]]",
        echo: bool,
        agreed: Mapping[str, KeyOfNumber] | None,
    ) -> None:
        self.oracle = Oracle(workload.members, agreed)
        self._diaries = diaries
        self._echo = echo
        self._audiences = [_audiences(workload, seed, worker) for worker in range(len(diaries))]
        self._sent: set[int] = set()
        self._at = [0] * len(diaries)
        self._here = workload.members  # members that have joined
        self._knows = [workload.members] * self._here + list(range(self._here + 1, len(diaries) + 1))

    def judge(self) -> Oracle:
        moved = True
        while moved:
            moved = False
            for site in range(self._here):
                diary, position = self._diaries[site], self._at[site]
                while position < len(diary) and self._tell(site, diary[position]):
                    position += 1
                moved = moved or position > self._at[site]
                self._at[site] = position
        for site, diary in enumerate(self._diaries):
            for entry in diary[self._at[site] :]:
                if entry < 0:
                    self.oracle.blame("integrity", f"site {site} took message {-entry}, which nobody sent")
        self.oracle.finish()
        return self.oracle

    def _tell(self, site: int, entry: int) -> bool:
        """Whether its turn has come."""
        if entry >= LET_IN:
            return self._let_in(site, entry - LET_IN)
        if entry > 0:
            self.oracle.send(site, entry, self._audience(site, entry))
            self._sent.add(entry)
            return True
        if -entry not in self._sent:
            return False
        self.oracle.take(site, -entry)
        return True

    def _let_in(self, site: int, newcomer: int) -> bool:
        if newcomer > self._here:
            return False  # one after another
        self.oracle.admit(site, newcomer)
        self._knows[site] = newcomer + 1
        if min(self._knows[: self._here]) > newcomer:
            self.oracle.join(newcomer)
            self._here += 1
        return True

    def _audience(self, site: int, entry: int) -> int | None:
        place, worker = divmod(entry - 1, len(self._diaries))
        dst = self._audiences[worker][place]
        mine = 1 << site
        everybody = (1 << self._knows[site]) - 1
        if self._echo:
            return everybody if dst is None else dst | mine
        return everybody & ~mine if dst is None else dst


def _audiences(workload: Workload, seed: int, member: int) -> list[int | None]:
    """Destinations of a member's sends, in the order of its plan, which gives them their numbers."""
    moves = planned_sends(workload, member, Random(f"{seed}/{member}"))
    return [dst for _, dst, _ in moves]


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


def configs_of(case: LiveCase, scratch: Path, *, kept: bool = True) -> list[dict[str, Any]]:
    """What each member is told; `kept`: it has messages to take, and a diary."""
    founders = case.workload.members
    people = member_names(founders + case.join)
    via, where, interface = _place(case.via, people)
    members = {name: where[name] for name in people[:founders]} if where else list(people[:founders])
    expected: list[int | None] = [None] * len(people)
    if kept and not case.join:
        expected = [*_expected(case)]
    faults = None if case.faults == NO_FAULTS else asdict(case.faults)
    return [
        {
            "join": {
                "group": f"live-{os.getpid()}",
                "name": name,
                "members": members,
                "late": me >= founders,
                "address": where.get(name) if me >= founders else None,
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
                "seed": case.seed * 1000 + me,
            },
            "me": me,
            "everybody": len(people),
            "seed": case.seed,
            "workload": asdict(case.workload),
            "paced": case.paced,
            "expected": expected[me],
            "diary": str(scratch / f"{me}.diary"),
        }
        for me, name in enumerate(people)
    ]


def _place(via: str, people: tuple[str, ...]) -> tuple[str, dict[str, str], str | None]:
    """Where members on this machine meet: loopback, on ports that are free; of each, if that has to be known."""
    if via in ("unicast", "tcp"):
        kind = socket.SOCK_DGRAM if via == "unicast" else socket.SOCK_STREAM
        ports = free_ports(len(people), kind)
        return via, {name: f"127.0.0.1:{port}" for name, port in zip(people, ports, strict=True)}, None
    address, mark, option = via.partition("?")
    if address.endswith(":0"):
        via = f"{address[:-2]}:{free_ports(1, socket.SOCK_DGRAM)[0]}{mark}{option}"
    place = parse_via(via)
    return via, {}, place.interface or "127.0.0.1"


def free_ports(count: int, kind: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


@contextmanager
def recorded(case: LiveCase, recipe: Recipe, layout: Layout | None = None) -> Iterator[None]:
    """Around a run: its trace, if there is one, has a manifest that says in the end that it is complete."""
    if case.trace is None:
        yield
        return
    manifest = _manifest(case, recipe, layout)
    manifest.write(case.trace)
    yield
    replace(manifest, complete=True).write(case.trace)


def _manifest(case: LiveCase, recipe: Recipe, layout: Layout | None) -> Manifest:
    """What the trace of a run says about it; with objects, their copies are processes too."""
    layout = layout or recipe.layout(member_names(case.workload.members), None, case.protocol)
    objects = layout is not None and bool(layout.hosted)
    return Manifest(
        group="live",
        processes=list(member_names(case.workload.members)) if layout is None else layout.processes.names,
        source="live",
        order=recipe.name,
        guarantees=recipe.claims(full=case.trace_level == "full", deliver=case.deliver, objects=objects),
        receipt=recipe.receipt,
        options={
            **asdict(case.workload),
            "rate": case.workload.rate if case.paced else None,
            **asdict(case.faults),
            "via": case.via,
            "deliver": recipe.level_of(case.deliver),
            "protocol": case.protocol,
            "matrix": case.matrix,
        },
        seed=case.seed,
        clock="wall",
        conflicts=None if layout is None else layout.conflicts,
    )


def _diary(path: Path) -> "array[int]":
    diary: array[int] = array("q")
    data = path.read_bytes()
    if len(data) % diary.itemsize:
        raise UsageError(f"the diary {path.name} is cut")
    diary.frombytes(data)
    return diary
