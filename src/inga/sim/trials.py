"""A trial in virtual time: `inga sim`."""

from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

from inga.layers.flow import WINDOW_MAX
from inga.recipes import find
from inga.sim.calls import TrialCalls
from inga.sim.recording import Recording
from inga.sim.simulator import DELAY, Sim
from inga.sim.watched import Watched, taken_at
from inga.trial.course import TellStory
from inga.trial.people import member_names
from inga.trial.result import Result
from inga.trial.trial import SLOW_READ, Trial
from inga.trial.workload import RATE

LINK = (DELAY.delay_min, DELAY.delay_max)

QUIET, QUIET_DELAYS = 1.0, 20.0
"""Seconds, plus a multiple of the longest delay of a link, after which a simulated group sends nothing more."""


def simulate_trial(
    trial: Trial, trace: Path | None = None, *, full: bool = True, say: TellStory = lambda text: None
) -> Result:
    """Run a trial to the end, and judge it. With objects, the result is a `CallResult`. `say` is called with the events of a
    disturbed run, in words."""
    started = process_time()
    recording = None if trace is None else _recording(trial, trace, full)
    sim = group_of(trial, recording=recording)
    calls = None if trial.objects is None else TrialCalls(trial, sim)
    if calls is None:
        load(sim, trial)
    done = taken_at if calls is None else calls.ended
    watched = Watched(sim, trial, done, say) if trial.is_disturbed else None
    until_done = sim.run if watched is None else watched.run
    if recording is None:
        until_done()
    else:
        recording.run(sim, until_done)
    measured: dict[str, Any] = {
        "seed": trial.seed,
        "pdus": sim.pdus,
        "bytes": sim.bytes,
        "seconds": sim.now,
        "cpu_seconds": process_time() - started,
        "trace": None if trace is None else str(trace),
        "course": None if watched is None else watched.course,
    }
    if calls is not None:
        return calls.judge(**measured)
    recovery = sim.recovery if find(trial.order).wire == "miop" else {}
    return Result.of(sim.finish(), sim.order, sim.guarantees, recovery=recovery, **measured)


def group_of(trial: Trial, *, record: bool = False, recording: Recording | None = None) -> Sim:
    """Return the group of a trial, without a workload."""
    find(trial.order).check_window(trial.window)
    return Sim(
        *trial.people,
        order=trial.order,
        seed=trial.seed,
        faults=trial.faults(LINK),
        options=trial.options(),
        objects=trial.classes(trial.misdeclare),
        datagram_max=trial.datagram,
        record=record and not trial.join and not trial.is_disturbed,
        recording=recording,
    )


def load(sim: Sim, trial: Trial) -> None:
    """Give members their workload, and those that join later the times at which they do."""
    workload = trial.workload
    sim.load(workload)
    if trial.slow is not None and not trial.stalls:
        sim[trial.slow].pause_max = 2 * SLOW_READ  # half of it on average
    for name in member_names(trial.members + trial.join)[trial.members :]:
        sim.join(name, sim.rng.random() * workload.messages / workload.rate, workload)


def _recording(trial: Trial, directory: Path, full: bool) -> Recording:
    """Open the trace of a trial. Its manifest includes the values that the trial leaves to the simulator's defaults."""
    delay = LINK if trial.delay is None else trial.delay
    said = replace(trial, delay=delay, rate=trial.rate or RATE, window=trial.window or WINDOW_MAX)
    manifest = said.manifest("sim", full=full, quiet_seconds=QUIET + QUIET_DELAYS * delay[1])
    return Recording(directory, manifest, trial.members, full=full)
