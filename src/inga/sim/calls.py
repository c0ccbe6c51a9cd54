"""One simulated trial of objects: `inga sim --objects K`."""

from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from inga.layers.shape import Faults
from inga.objects.invoke import Root
from inga.recipes import Options, find
from inga.sim.case import Case
from inga.sim.recording import Recording
from inga.sim.simulator import Sim
from inga.sim.site import Site
from inga.trace.manifest import Manifest
from inga.trace.writer import TraceWriter
from inga.trial.calls import CallJudge, CallLoad, CallResult, ClientRequest, tally_class
from inga.trial.people import member_names


@dataclass(frozen=True, slots=True)
class CallCase:
    """A trial by numbers: what `Case` says about network and order, and how many objects there are."""

    case: Case
    objects: int
    wrong: tuple[str, str] | None = None  # methods declared compatible though they are not

    @property
    def load(self) -> CallLoad:
        return CallLoad(self.case.members, self.case.messages, self.objects, self.case.rate)

    def command(self) -> str:
        """How to say this on the command line."""
        wrong = "" if self.wrong is None else f" --misdeclare {'/'.join(self.wrong)}"
        return f"{self.case.command()} --objects {self.objects}{wrong}"

    def run(self, trace: Path | None = None, *, full: bool = True) -> CallResult:
        """Run it to the end, and judge it."""
        started = process_time()
        recording = None if trace is None else self._recording(trace, full)
        sim = self._sim([] if recording is None else recording.writers)
        roots = self._load(sim)
        if recording is None:
            sim.run()
        else:
            recording.run(sim)
        return self._judge(sim, roots, process_time() - started, trace)

    def _sim(self, writers: list[TraceWriter]) -> Sim:
        case = self.case
        cls = tally_class(self.wrong)
        sim = Sim(
            *member_names(case.members),
            order=case.order,
            seed=case.seed,
            faults=Faults(case.loss, case.dup, case.reorder, *case.delay),
            options=Options(protocol=dict(case.option), flow={"window": case.window}),
            objects=dict.fromkeys(self.load.names, cls),
            datagram_max=case.datagram,
            traces=list(writers[: case.members]) or None,
            record=False,
        )
        for site in sim.sites:
            order = site.objects
            order.diary = []
            if writers:
                order.record(writers.__getitem__)
        return sim

    def _load(self, sim: Sim) -> list[tuple[Site, ClientRequest, list[Root]]]:
        """Every request at its time; its root is in the list once it has begun."""
        roots = []
        for site in sim.sites:
            at = 0.0
            for gap, asked in self.load.plan(sim.rng, site.index):
                at += gap
                begun: list[Root] = []
                roots.append((site, asked, begun))
                sim.at(at, site, _begin(site, asked, begun))
        return roots

    def _judge(
        self, sim: Sim, roots: list[tuple[Site, ClientRequest, list[Root]]], cpu: float, trace: Path | None
    ) -> CallResult:
        judge = CallJudge(self.load)
        committed = 0
        for site, asked, begun in roots:
            if not begun or not begun[0].done:
                judge.unanswered(site.name, asked.kind)
            elif begun[0].error is None:
                committed += 1
                judge.told(asked.adds)
        for site in sim.sites:
            order = site.objects
            judge.saw(site.name, order.diary or (), {name: site.state(name) for name in self.load.names})
        judge.finish()
        return judge.result(
            order=sim.order,
            seed=self.case.seed,
            sent=len(roots),
            expected=self.case.members * sum(asked.starts for _, asked, _ in roots),
            committed=committed,
            aborted=len(roots) - committed,
            pdus=sim.pdus,
            bytes=sim.bytes,
            seconds=sim.now,
            cpu_seconds=cpu,
            trace=None if trace is None else str(trace),
        )

    def _recording(self, directory: Path, full: bool) -> Recording:
        """The manifest has the conflicts that there are, also if the members were told others."""
        case, recipe = self.case, find(self.case.order)
        people = member_names(case.members)
        layout = recipe.layout(people, {name: tally_class() for name in self.load.names}, dict(case.option))
        assert layout is not None
        manifest = Manifest(
            group="sim",
            processes=layout.processes.names,
            source="sim",
            order=recipe.name,
            guarantees=recipe.claims(full=full, objects=True),
            receipt=recipe.receipt,
            options=self._told(),
            seed=case.seed,
            clock="virtual",
            conflicts=layout.conflicts,
        )
        return Recording(directory, manifest, full=full)

    def _told(self) -> dict[str, Any]:
        return {**self.case.told(), "objects": self.objects, "wrong": self.wrong and "/".join(self.wrong)}


def _begin(site: Site, asked: ClientRequest, begun: list[Root]) -> Any:
    return lambda: begun.append(site.begin(asked.body))
