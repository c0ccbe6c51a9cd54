"""The workload of `inga sim` with one process per member and real sockets, judged by the same oracle."""

import os
import socket
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.net.address import parse_via
from inga.recipes import find, refuse_unsafe
from inga.runs.cluster import Cluster
from inga.runs.member import IN_VIEW, planned_sends
from inga.runs.namespaces import SwitchedNetwork
from inga.trial.oracle import KeyOfNumber, Oracle, agreed_orders
from inga.trial.people import member_names
from inga.trial.result import Result, packets_sent, recovered
from inga.trial.trial import Trial
from inga.trial.workload import Workload

START_SECONDS = 30.0

LISTEN_SECONDS = 1.5
"""How long members stay after the run, in seconds, under orders that promise to go quiet (`quiet`): so that the trace shows it."""

MEMBERS_MAX = 256
"""The most members of a live run. Each is a process, and for each the launcher opens three of the 1,024 files it may have open."""

NO_FAULTS = Faults()
NO_DELAY = (0.0, 0.0)

CountProgress = Callable[[int], None]
"""Called with the progress of a run, as a count."""


def patience(trial: Trial) -> float:
    """Seconds without any progress after which a run is given up."""
    return trial.timeout + (0.0 if trial.rate is None else trial.workload.longest_gap)


def run(
    trial: Trial,
    trace: Path | None = None,
    *,
    full: bool = True,
    judged: bool = True,
    progress: CountProgress = lambda taken: None,
    starting: CountProgress = lambda started: None,
    metrics: int | None = None,
) -> Result:
    """Start the members, let them send, and judge their diaries; or only count, if the run is not `judged`."""
    recipe = find(trial.order)
    refuse_unsafe(recipe, trial.unsafe)
    workload = trial.workload
    started = monotonic()
    with tempfile.TemporaryDirectory(prefix="inga-live-") as scratch:
        configs = configs_of(trial, Path(scratch), trace, full=full, judged=judged, metrics=metrics)
        late = frozenset(range(workload.members, len(configs)))
        processes = list(range(len(configs)))  # by worker, its process number in the group
        views: dict[int, list[int]] = {}
        with recorded(trial, trace, full=full), Cluster("inga.runs.member:play", configs) as cluster:
            gather_ready(cluster, starting, without=late)
            started = monotonic()
            cluster.tell("go")
            if trial.join:
                sent = cluster.gather("sent", timeout=patience(trial), progress=progress)
                processes = [line["process"] for line in sent]
                views = {int(number): those for line in sent for number, those in line["views"].items()}
                for worker, process in enumerate(processes):
                    expected = sum(line["to"].get(str(process), 0) for line in sent)
                    cluster.tell("expect", worker, expected=expected)
            done = cluster.gather("done", timeout=patience(trial), progress=progress)
            seconds = monotonic() - started
            if trace is not None and "quiet" in recipe.guarantees:
                sleep(LISTEN_SECONDS)
            cluster.tell("close")
            ends = cluster.gather("closed", timeout=START_SECONDS)
        by_process = sorted(range(len(configs)), key=processes.__getitem__)
        diaries = [_diary(Path(configs[worker]["diary"])) for worker in by_process if judged]
    measured: dict[str, Any] = {
        "seed": trial.seed,
        "pdus": packets_sent([end["counts"] for end in ends]),
        "bytes": sum(end["counts"].get("bytes", 0) for end in ends),
        "seconds": seconds,
        "cpu_seconds": sum(end["cpu"] for end in ends),
        "trace": None if trace is None else str(trace),
        "recovery": recovered([end["counts"] for end in ends]) if recipe.wire == "miop" else {},
    }
    if not judged:
        delivered, expected = (sum(line["taken"] for line in done), sum(line["expected"] for line in configs))
        spoken = trial.members * trial.messages
        return Result.counted(recipe.name, trial.members, spoken, delivered, expected, **measured)
    keys = dict(trial.option).get("keys") or 1
    agreed = agreed_orders(recipe.promises(trial.deliver), lambda message: message % keys)
    oracle = judge_diaries(workload, trial.seed, diaries, echo=trial.echo, agreed=agreed, views=views)
    return Result.of(oracle, recipe.name, recipe.promises(trial.deliver), **measured)


def gather_ready(
    cluster: Cluster, starting: Callable[[int], None], without: frozenset[int] = frozenset()
) -> None:
    """Wait until all members have met; `starting` is called with the number of processes that have started, which can take a
    while."""
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
    views: Mapping[int, Sequence[int]] | None = None,
) -> Oracle:
    """Pass all diaries to the oracle, in some order in which no message is taken before it was sent.

    Diaries are by process. `views`: the processes of each view in which messages were sent, if members have joined.
    """
    founders = {1: range(workload.members)}
    return _Judge(workload, seed, diaries, echo, agreed, views or founders).judge()


class _Judge:
    """Reads all diaries side by side."""

    def __init__(
        self,
        workload: Workload,
        seed: int,
        diaries: "list[array[int]]",
        echo: bool,
        agreed: Mapping[str, KeyOfNumber] | None,
        views: Mapping[int, Sequence[int]],
    ) -> None:
        self.oracle = Oracle(len(diaries), agreed)
        self._diaries = diaries
        self._echo = echo
        self._audiences = [_audiences(workload, seed, worker) for worker in range(len(diaries))]
        self._sent: set[int] = set()
        self._at = [0] * len(diaries)
        self._views = {number: sum(1 << each for each in processes) for number, processes in views.items()}
        self._in_view = [1] * len(diaries)

    def judge(self) -> Oracle:
        moved = True
        while moved:
            moved = False
            for site, diary in enumerate(self._diaries):
                position = self._at[site]
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
        """Pass an entry to the oracle. Return False if it has to wait: a message that no site has sent so far."""
        if entry >= IN_VIEW:
            self._in_view[site] = entry - IN_VIEW
        elif entry > 0:
            self._send(site, entry)
        elif -entry in self._sent:
            self.oracle.take(site, -entry)
        else:
            return False
        return True

    def _send(self, site: int, message: int) -> None:
        place, worker = divmod(message - 1, len(self._diaries))
        dst, mine, view = self._audiences[worker][place], 1 << site, self._in_view[site]
        audience = self._views[view] & ~mine if dst is None else dst
        if self._echo:
            audience |= mine
        self.oracle.send(site, message, audience, epoch=view, whole=dst is None)
        self._sent.add(message)


def _audiences(workload: Workload, seed: int, member: int) -> list[int | None]:
    """The destinations of a member's sends, in the order of its plan, which also numbers them."""
    moves = planned_sends(workload, member, Random(f"{seed}/{member}"))
    return [dst for _, dst, _ in moves]


def expected_of(workload: Workload, seed: int, *, echo: bool) -> list[int]:
    """How many messages each member takes."""
    n = workload.members
    counts = [0] * n
    for sender in range(n):
        for dst in _audiences(workload, seed, sender):
            for member in range(n):
                if member == sender:
                    counts[member] += echo
                elif dst is None or dst >> member & 1:
                    counts[member] += 1
    return counts


def configs_of(
    trial: Trial,
    scratch: Path,
    trace: Path | None,
    *,
    full: bool,
    judged: bool = True,
    network: SwitchedNetwork | None = None,
    metrics: int | None = None,
) -> list[dict[str, Any]]:
    """The configuration of each member. `expected` is the number of messages that it will take, unless it calls objects or members
    join; `diary`, a file in `scratch` if the run is judged. Members run in the namespaces of `network`, if there is one.
    `metrics`: the port at which the first member serves its metrics; the others use the ports after it."""
    founders = trial.members
    if metrics is not None and not 0 < metrics <= (1 << 16) - founders - trial.join:
        raise UsageError(f"there is no port for each of {founders + trial.join} members from {metrics} on")
    if founders + trial.join > MEMBERS_MAX:
        raise UsageError(
            f"{founders + trial.join} live members would be as many processes, and {MEMBERS_MAX} are the most that "
            "are started; inga sim plays larger groups"
        )
    people = member_names(founders + trial.join)
    via, where, interfaces = _place(trial.via, people, network)
    members = {name: where[name] for name in people[:founders]} if where else list(people[:founders])
    expected: list[int | None] = [None] * len(people)
    if trial.objects is None and not trial.join:
        expected = [*expected_of(trial.workload, trial.seed, echo=trial.echo)]
    faults = trial.faults(NO_DELAY)
    more: dict[str, Any] = {} if trial.forgives is None else {"detect": trial.forgives}
    return [
        {
            "join": {
                "group": f"live-{os.getpid()}",
                "name": name,
                "members": members,
                "late": me >= founders,
                "address": where.get(name) if me >= founders else None,
                "via": via,
                "interface": interfaces.get(name),
                "order": trial.order,
                "deliver": trial.deliver,
                "protocol": dict(trial.option),
                "unsafe": trial.unsafe,
                "trace": None if trace is None else str(trace),
                "trace_level": "full" if full else "deliveries",
                "echo": trial.echo if trial.objects is None else None,
                "matrix": trial.matrix,
                "window": trial.room,
                "faults": None if faults == NO_FAULTS else asdict(faults),
                "seed": trial.seed * 1000 + me,
                "rejoin": trial.returns,
                "partition": trial.options().partition,
                "slow": trial.slow_policy,
                "patience": trial.patience,
                "queue_max": trial.queue_max,
                **more,
            },
            "within": () if network is None else network.command(name),
            "me": me,
            "metrics": None if metrics is None else metrics + me,
            "trial": asdict(trial),
            "expected": expected[me],
            "diary": str(scratch / f"{me}.diary") if judged else None,
        }
        for me, name in enumerate(people)
    ]


def _place(
    via: str, people: tuple[str, ...], network: SwitchedNetwork | None
) -> tuple[str, dict[str, str], dict[str, str]]:
    """Where members on this machine meet, on loopback or in a network, on free ports: `via` with its port; the address of each
    member, for carriers that need it; and the interface by which its multicast leaves."""
    hosts = {name: "127.0.0.1" if network is None else network.host(name) for name in people}
    if via in ("unicast", "tcp"):
        kind = socket.SOCK_DGRAM if via == "unicast" else socket.SOCK_STREAM
        ports = free_ports(len(people), kind)
        return via, {name: f"{hosts[name]}:{port}" for name, port in zip(people, ports, strict=True)}, {}
    address, mark, option = via.partition("?")
    if address.endswith(":0"):
        via = f"{address[:-2]}:{free_ports(1, socket.SOCK_DGRAM)[0]}{mark}{option}"
    place = parse_via(via)
    return via, {}, {name: place.interface or host for name, host in hosts.items()}


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
def recorded(trial: Trial, trace: Path | None, *, full: bool) -> Iterator[None]:
    """Write the manifest of the trace, if there is a trace, before a run, and mark it complete after the run."""
    if trace is None:
        yield
        return
    manifest = trial.manifest("live", full=full, via=trial.via)
    manifest.write(trace)
    yield
    replace(manifest, complete=True).write(trace)


def _diary(path: Path) -> "array[int]":
    diary: array[int] = array("q")
    data = path.read_bytes()
    if len(data) % diary.itemsize:
        raise UsageError(f"the diary {path.name} is cut")
    diary.frombytes(data)
    return diary
