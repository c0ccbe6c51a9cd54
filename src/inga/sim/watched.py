"""A simulated trial in which members crash, pause, return or are cut off: each of these mishaps happens at its time, and the course of
the run is recorded. Members that detect failures never stop sending, so such a run ends when nothing is delivered any more."""

from collections.abc import Callable

from inga.model.event import Missed
from inga.sim.simulator import Sim
from inga.sim.site import Site
from inga.trial.course import Chronicle, Course, TellStory
from inga.trial.mishaps import Mishap
from inga.trial.trial import Trial

STEP = 0.01
"""Seconds between two looks at the group: the resolution of the recorded times."""

REST = 10.0
"""Seconds without any delivery, after the last mishap, after which a run is over."""


def taken_at(site: Site) -> int:
    """Return how many messages an application has taken."""
    return len(site.taken)


class Watched:
    """One run with mishaps."""

    def __init__(self, sim: Sim, trial: Trial, done: Callable[[Site], int], say: TellStory) -> None:
        """`done`: how many messages or results a member has got so far."""
        self.course: Course | None = None  # set once the run is over
        self._sim = sim
        self._trial = trial
        self._chronicle = Chronicle(trial.people, say, is_primary=trial.is_primary)
        self._sites = {site.name: site for site in sim.sites}  # the latest site of each name
        self._parts: tuple[tuple[str, ...], ...] = ()  # of the network, while it is cut
        self._entered: dict[str, str] = {}  # the view in which each member was last seen
        self._heard: dict[Site, int] = {}  # how many of its items were read here
        self._excluded: set[Site] = set()
        self._done = done
        self._last = dict.fromkeys(self._sites, 0)  # what `done` returned last
        self._moved = dict.fromkeys(self._sites, 0.0)  # when that last grew
        self._stopped = dict.fromkeys(self._sites, 0.0)  # the longest time for which it did not

    def run(self) -> None:
        sim, mishaps = self._sim, self._trial.mishaps
        last, since = -1, sim.now
        self._look()
        while mishaps or last != sim.oracle.taken or sim.now - since < REST:
            if sim.oracle.taken != last or mishaps:
                last, since = sim.oracle.taken, sim.now
            sim.run(sim.now + STEP)
            while mishaps and mishaps[0].at <= sim.now:
                self._befall(mishaps.pop(0))
            self._look()
        self.course = self._chronicle.finish(self._stopped)

    def _befall(self, mishap: Mishap) -> None:
        sim, site = self._sim, self._sites.get(mishap.name)
        match mishap.do:
            case "cut" | "heal":
                self._parts = mishap.parts
            case "crash" if site is not None:
                site.crash()
            case "pause" if site is not None:
                site.pause(self._trial.pause_for)
            case "stall" if site is not None:
                site.stop_reading(self._trial.stall_for)
            case "return":
                talks = self._trial.objects is None
                workload = self._trial.rest_of_workload(sim.now) if talks else None
                self._sites[mishap.name] = sim.join(mishap.name, workload=workload)
        sim.network.part(*([each for each in sim.sites if each.name in part] for part in self._parts))
        self._chronicle.befalls(mishap, sim.now)

    def _hear(self, name: str, site: Site) -> None:
        """Record what a member was told about itself: messages that it missed, and its exclusion."""
        now = self._sim.now
        for item in site.items[self._heard.get(site, 0) :]:
            if isinstance(item, Missed):
                self._chronicle.missed(name, item.messages, now)
        self._heard[site] = len(site.items)
        if site.is_excluded and site not in self._excluded:
            self._excluded.add(site)
            self._chronicle.excluded(name, now)

    def _look(self) -> None:
        """Record what has changed since the last look."""
        now = self._sim.now
        for name, site in self._sites.items():
            self._hear(name, site)
            if site.newcomer is not None or site.has_left:
                continue
            view = site.stack.view
            if self._entered.get(name) != view.text:
                self._entered[name] = view.text
                self._chronicle.enters(name, view.number, view.text, view.names, now)
            if (done := self._done(site)) != self._last[name]:
                self._last[name], self._moved[name] = done, now
            elif now < self._trial.length:
                self._stopped[name] = max(self._stopped[name], now - self._moved[name])
        self._chronicle.look(now)
