"""The calls of objects in a simulated trial: `inga sim --objects K`."""

from functools import partial
from typing import Any

from inga.objects.declare import Abort
from inga.objects.invoke import Root
from inga.sim.simulator import Sim
from inga.sim.site import LOOKS_AGAIN, Site
from inga.trial.calls import CallJudge, CallResult, ClientRequest
from inga.trial.trial import Trial


class TrialCalls:
    """Schedules all requests of a trial, and judges their outcomes."""

    def __init__(self, trial: Trial, sim: Sim) -> None:
        self._trial = trial
        self._sim = sim
        self._roots: list[
            tuple[Site, ClientRequest, list[Root]]
        ] = []  # the last list is empty until the request's root has begun
        for site in sim.sites:
            site.objects.rows.diary = []
            at = 0.0
            for gap, asked in trial.load.plan(sim.rng, site.index):
                at += gap
                begun: list[Root] = []
                self._roots.append((site, asked, begun))
                sim.at(at, site, partial(self._begin, site, asked, begun))

    def ended(self, site: Site) -> int:
        """Return how many requests of a client have ended."""
        return sum(caller is site and bool(begun) and begun[0].done for caller, _, begun in self._roots)

    def judge(self, **measured: Any) -> CallResult:
        """Judge the calls once the run is over. In a disturbed trial a call is in doubt if it did not end, as at a client that is
        gone, or ended with an error other than an abort; if it is one-way, since its caller learns no result; or if parts of the
        group go on by themselves, since only the state of the largest is kept."""
        load, sim, disturbed = self._trial.load, self._sim, self._trial.is_disturbed
        judge, lossy = CallJudge(load), bool(self._trial.partition and not self._trial.is_primary)
        committed = doubtful = 0
        for site, asked, begun in self._roots:
            ended = bool(begun) and begun[0].done
            if ended and begun[0].error is None:
                committed += 1
                doubted = disturbed and (lossy or asked.kind == "oneway")
                (judge.doubted if doubted else judge.told)(asked.adds)
            elif disturbed and begun and not isinstance(begun[0].error, Abort):
                doubtful += 1
                judge.doubted(asked.adds)
            elif not ended and not disturbed:
                judge.unanswered(site.name, asked.kind)
        for site in sim.sites:
            if not site.has_left:
                began = () if disturbed else site.objects.rows.diary or ()  # numbers are of one view
                judge.saw(site.name, began, {name: site.state(name) for name in load.names})
        judge.finish()
        asked_all = [asked for _, asked, begun in self._roots if begun or not disturbed]
        return judge.result(
            order=sim.order,
            sent=len(asked_all),
            expected=0 if disturbed else load.members * sum(asked.starts for asked in asked_all),
            committed=committed,
            aborted=len(asked_all) - committed - doubtful,
            doubtful=doubtful,
            **measured,
        )

    def _begin(self, site: Site, asked: ClientRequest, begun: list[Root]) -> None:
        """Begin a request now, or as soon as no view change is in progress."""
        if not site.is_member:
            return
        if site.objects.may_begin:
            begun.append(site.begin(asked.body))
        else:
            self._sim.at(self._sim.now + LOOKS_AGAIN, site, partial(self._begin, site, asked, begun))
