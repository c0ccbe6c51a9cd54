"""What members ask of objects in a simulated trial: `inga sim --objects K`."""

from collections.abc import Callable
from typing import Any

from inga.objects.invoke import Root
from inga.sim.simulator import Sim
from inga.sim.site import Site
from inga.trial.calls import CallJudge, CallResult, ClientRequest
from inga.trial.trial import Trial


class TrialCalls:
    """All requests of a trial, each at its time, and what came of them."""

    def __init__(self, trial: Trial, sim: Sim) -> None:
        self._trial = trial
        self._sim = sim
        self._roots: list[
            tuple[Site, ClientRequest, list[Root]]
        ] = []  # a root is in its list once it has begun
        for site in sim.sites:
            site.objects.rows.diary = []
            at = 0.0
            for gap, asked in trial.load.plan(sim.rng, site.index):
                at += gap
                begun: list[Root] = []
                self._roots.append((site, asked, begun))
                sim.at(at, site, _begin(site, asked, begun))

    def judge(self, **measured: Any) -> CallResult:
        """Once nothing happens any more."""
        load, sim = self._trial.load, self._sim
        judge = CallJudge(load)
        committed = 0
        for site, asked, begun in self._roots:
            if not begun or not begun[0].done:
                judge.unanswered(site.name, asked.kind)
            elif begun[0].error is None:
                committed += 1
                judge.told(asked.adds)
        for site in sim.sites:
            judge.saw(
                site.name, site.objects.rows.diary or (), {name: site.state(name) for name in load.names}
            )
        judge.finish()
        return judge.result(
            order=sim.order,
            sent=len(self._roots),
            expected=load.members * sum(asked.starts for _, asked, _ in self._roots),
            committed=committed,
            aborted=len(self._roots) - committed,
            **measured,
        )


def _begin(site: Site, asked: ClientRequest, begun: list[Root]) -> Callable[[], None]:
    return lambda: begun.append(site.begin(asked.body))
