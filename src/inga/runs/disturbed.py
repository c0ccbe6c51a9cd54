"""A live run with mishaps: `inga live --crash K --return K --pause K --partition ...`.

Processes are killed, restarted, suspended and resumed; for a partition, a network of real interfaces is cut. The
launcher reports events, waits until there is no progress any more, and has the oracle judge the diaries.
"""

import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from inga.recipes import find, refuse_unsafe
from inga.runs.cluster import Cluster, WorkerDied
from inga.runs.diaries import judge_calls, judge_talk, read_diary
from inga.runs.live import (
    LISTEN_SECONDS,
    START_SECONDS,
    CountProgress,
    configs_of,
    gather_ready,
    patience,
    recorded,
)
from inga.runs.namespaces import SwitchedNetwork
from inga.trace.manifest import mark_crashed
from inga.trial.course import Chronicle, TellStory
from inga.trial.mishaps import Mishap
from inga.trial.people import member_names
from inga.trial.result import Result, packets_sent
from inga.trial.trial import Trial

REST = 1.0
"""Seconds without progress, after all members have finished, after which a run is over."""

SIGNALS = {"crash": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}


def run(
    trial: Trial,
    trace: Path | None = None,
    *,
    full: bool = True,
    progress: CountProgress = lambda taken: None,
    starting: CountProgress = lambda started: None,
    say: TellStory = lambda text: None,
    mishaps: Sequence[Mishap] | None = None,
    metrics: int | None = None,
) -> Result:
    """Start the members, play the mishaps, judge the diaries. `mishaps` replace those of the trial."""
    recipe = find(trial.order)
    refuse_unsafe(recipe, trial.unsafe)
    planned = planned_mishaps(trial) if mishaps is None else list(mishaps)
    with ExitStack() as around:
        scratch = Path(around.enter_context(tempfile.TemporaryDirectory(prefix="inga-live-")))
        network = network_of(trial, planned, around)
        configs = [*survivors(trial, planned, scratch, trace, full=full, network=network, metrics=metrics)]
        around.enter_context(recorded(trial, trace, full=full))
        founders = configs[: trial.members]
        cluster = around.enter_context(Cluster("inga.runs.survivor:play", founders))
        gather_ready(cluster, starting)
        cluster.tell("go")
        stage = LiveStage(trial, planned, cluster, configs, network, trace, say)
        stage.play(progress)
        seconds = stage.now
        if trace is not None and "quiet" in recipe.guarantees:
            sleep(LISTEN_SECONDS)
        ends = stage.close()
        diaries = [read_diary(Path(config["diary"])) for config in configs[: stage.started]]
    said = [end for end in ends if end]
    stopped = {trial.people[at]: end["stopped"] for at, end in enumerate(ends[: trial.members]) if end}
    measured: dict[str, Any] = {
        "seed": trial.seed,
        "pdus": packets_sent([end["counts"] for end in said]),
        "bytes": sum(end["counts"].get("bytes", 0) for end in said),
        "seconds": seconds,
        "cpu_seconds": sum(end["cpu"] for end in said),
        "trace": None if trace is None else str(trace),
        "course": stage.chronicle.finish(stopped),
    }
    states = {configs[at]["join"]["name"]: end["states"] for at, end in enumerate(ends) if end}
    if trial.objects is not None:
        lossy = any(mishap.do == "cut" for mishap in planned) and not trial.is_primary
        return judge_calls(trial, configs, diaries, states, lossy=lossy).result(order=recipe.name, **measured)
    measured["course"].states = len({str(each) for each in states.values()})
    oracle = judge_talk(trial, diaries, stage.gone)
    return Result.of(oracle, recipe.name, recipe.promises(trial.deliver), **measured)


def planned_mishaps(trial: Trial) -> list[Mishap]:
    """The mishaps of the trial, and the joins of newcomers, in order of time."""
    late = member_names(trial.members + trial.join)[trial.members :]
    comes = [
        Mishap(trial.length * (0.2 + 0.6 * at / max(len(late), 1)), "join", name)
        for at, name in enumerate(late)
    ]
    return sorted([*trial.mishaps, *comes])


def network_of(trial: Trial, mishaps: Sequence[Mishap], around: ExitStack) -> SwitchedNetwork | None:
    """A network that can be cut, if one of the mishaps cuts it; else None."""
    if not any(mishap.do == "cut" for mishap in mishaps):
        return None
    return around.enter_context(SwitchedNetwork(member_names(trial.members + trial.join)))


def survivors(
    trial: Trial,
    mishaps: Sequence[Mishap],
    scratch: Path,
    trace: Path | None,
    *,
    full: bool,
    network: SwitchedNetwork | None,
    metrics: int | None,
) -> Iterator[dict[str, Any]]:
    """The configuration of each process: founders, then those that start during the run, in the order of their start."""
    known = configs_of(trial, scratch, trace, full=full, network=network, metrics=metrics)
    by_name = {config["join"]["name"]: config for config in known}
    later = [mishap for mishap in mishaps if mishap.do in ("return", "join")]
    total = trial.members + len(later)
    for me in range(total):
        is_founder = me < trial.members
        config = known[me] if is_founder else by_name[later[me - trial.members].name]
        rest = trial.workload if is_founder else trial.rest_of_workload(later[me - trial.members].at)
        how = config["join"]
        where = how["members"].get(how["name"]) if isinstance(how["members"], dict) else None
        if not is_founder:
            how = {**how, "late": True, "address": how["address"] or where}
        yield {
            **config,
            "join": how,
            "me": me,
            "processes": total,
            "waits": is_founder,
            "trial": asdict(replace(trial, messages=rest.messages)),
            "diary": str(scratch / f"{me}.diary"),
        }


class LiveStage:
    """Plays mishaps at their times, and handles the reports of workers meanwhile."""

    def __init__(
        self,
        trial: Trial,
        mishaps: Sequence[Mishap],
        cluster: Cluster,
        configs: Sequence[dict[str, Any]],
        network: SwitchedNetwork | None,
        trace: Path | None,
        say: TellStory,
    ) -> None:
        """`configs`: of all processes; the founders run already."""
        self.chronicle = Chronicle(trial.people, say, is_primary=trial.is_primary)
        self.started = trial.members  # how many processes were started
        self.gone: set[int] = set()  # processes that were killed or excluded
        self._trial = trial
        self._mishaps = list(mishaps)
        self._cluster = cluster
        self._trace = trace
        self._configs = configs
        self._network = network
        self._names = [config["join"]["name"] for config in configs]
        self._processes: dict[int, int] = {}  # by worker, its process number in the group
        self._begun = monotonic()
        self._far: dict[
            int, tuple[int, bool]
        ] = {}  # by worker, how much it has done, and whether it has finished
        self._moved = self._begun

    @property
    def now(self) -> float:
        """Seconds since the members began to send."""
        return monotonic() - self._begun

    def play(self, progress: CountProgress) -> None:
        """Run until all mishaps have happened and members have finished, or make no progress any more."""
        while not self._is_over():
            while self._mishaps and self._mishaps[0].at <= self.now:
                self._befall(self._mishaps.pop(0))
            self.hear(min(0.05, max(0.0, self._mishaps[0].at - self.now)) if self._mishaps else 0.05)
            progress(sum(done for done, _ in self._far.values()))

    def hear(self, seconds: float) -> None:
        """Handle reports of workers, waiting at most `seconds` for the first."""
        for index, line in self._cluster.listen(seconds):
            match line["kind"]:
                case "view":
                    self._processes[index] = line["process"]
                    at = line["at"] - self._begun
                    name = self._names[index]
                    if self._last_of(name) == index:
                        self.chronicle.enters(name, line["number"], line["view"], line["members"], at)
                case "far":
                    self._go_on(index, (line["done"], line["idle"]))
                case "excluded":
                    self.gone.add(index)
                    self.chronicle.excluded(self._names[index], self.now)
                case "merged":
                    self.chronicle.merges(self._names[index], line["parts"], self.now)
                case "missed":
                    self.chronicle.missed(self._names[index], line["messages"], self.now)
                case "error":
                    raise WorkerDied(f"{self._names[index]}: {line['text']}")
        self.chronicle.look(self.now)
        for index in self._alive:
            if (how := self._cluster.has_ended(index)) is not None:
                raise WorkerDied(f"{self._names[index]} {how}")

    def close(self) -> list[dict[str, Any]]:
        """Let the members that are present leave; return their final reports, by worker."""
        self._cluster.tell("close")
        return self._cluster.gather("closed", timeout=START_SECONDS, without=frozenset(self.gone))

    @property
    def _alive(self) -> list[int]:
        return [index for index in range(self.started) if index not in self.gone]

    def _last_of(self, name: str) -> int:
        """The latest worker of a name."""
        return max(index for index in range(self.started) if self._names[index] == name)

    def _go_on(self, index: int, far: tuple[int, bool]) -> None:
        if self._far.get(index) != far:
            self._far[index] = far
            self._moved = monotonic()

    def _is_over(self) -> bool:
        if self._mishaps:
            return False
        still = monotonic() - self._moved
        done = all(self._far.get(index, (0, False))[1] for index in self._alive)
        return still > (REST if done and self.chronicle.is_whole else patience(self._trial))

    def _befall(self, mishap: Mishap) -> None:
        if mishap.do in SIGNALS:
            index = self._last_of(mishap.name)
            self._cluster.signal(index, SIGNALS[mishap.do])
            if mishap.do == "crash":
                self.gone.add(index)
                self._mark_crashed(index)
        elif mishap.do in ("stall", "read"):
            self._cluster.tell(mishap.do, self._last_of(mishap.name))
        elif self._network is not None and mishap.do in ("cut", "heal"):
            self._network.cut(mishap.parts) if mishap.do == "cut" else self._network.heal()
        else:
            self._cluster.start(self._configs[self.started])
            self.started += 1
        self._moved = monotonic()
        self.chronicle.befalls(mishap, self.now)

    def _mark_crashed(self, index: int) -> None:
        """Record in the trace that a process was killed, so that no further rows are expected of it."""
        if self._trace is not None:
            self._cluster.wait(index)
            process = self._processes.get(index, index)
            name = self._names[index]
            mark_crashed(self._trace, process, name if index < self._trial.members else f"{name} ({process})")
