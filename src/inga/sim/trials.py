"""A trial in virtual time: `inga sim`."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from inga.layers.flow import WINDOW_MAX
from inga.recipes import find
from inga.sim.calls import TrialCalls
from inga.sim.recording import Recording
from inga.sim.simulator import DELAY, Sim
from inga.trial.people import member_names
from inga.trial.result import Result
from inga.trial.trial import Trial
from inga.trial.workload import RATE

LINK = (DELAY.delay_min, DELAY.delay_max)

BACK_AFTER = 1.0
"""Seconds after which one that crashed comes back, at least."""

REST = 10.0
"""Seconds without any delivery after which a run with crashes is over."""

QUIET, QUIET_DELAYS = 1.0, 20.0
"""Seconds, and delays of the slowest link, after which a simulated group has nothing more to say."""


def simulate_trial(trial: Trial, trace: Path | None = None, *, full: bool = True) -> Result:
    """Run it to the end, and judge it. With objects, the result is a `CallResult`."""
    started = process_time()
    recording = None if trace is None else _recording(trial, trace, full)
    sim = group_of(trial, recording=recording)
    calls = None if trial.objects is None else TrialCalls(trial, sim)
    if calls is None:
        load(sim, trial)
    until_done = partial(_run_watched, sim) if trial.crash else sim.run
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
    }
    if calls is not None:
        return calls.judge(**measured)
    recovery = sim.recovery if find(trial.order).wire == "miop" else {}
    return Result.of(sim.finish(), sim.order, sim.guarantees, recovery=recovery, **measured)


def group_of(trial: Trial, *, record: bool = False, recording: Recording | None = None) -> Sim:
    """The group, which has nothing to do yet."""
    find(trial.order).check_window(trial.window)
    traces = None if recording is None else [recording.trace(member) for member in range(trial.members)]
    sim = Sim(
        *trial.people,
        order=trial.order,
        seed=trial.seed,
        faults=trial.faults(LINK),
        options=trial.options(),
        objects=trial.classes(trial.misdeclare),
        datagram_max=trial.datagram,
        record=record and not trial.join and not trial.crash,
        traces=traces,
    )
    if recording is not None:
        sim.record(recording)
    return sim


def load(sim: Sim, trial: Trial) -> None:
    """Give members what they have to say, and those who join later a time."""
    workload = trial.workload
    sim.load(workload)
    _crash(sim, trial)
    for name in member_names(trial.members + trial.join)[trial.members :]:
        sim.join(name, sim.rng.random() * workload.messages / workload.rate, workload)


def _crash(sim: Sim, trial: Trial) -> None:
    """Some crash while the others talk, and some of these come back."""
    length = trial.workload.messages / trial.workload.rate
    for place, victim in enumerate(sim.rng.sample(sim.sites[: trial.members], trial.crash)):
        at = length * (0.3 + 0.4 * sim.rng.random())
        sim.at(at, victim, victim.crash)
        if place < trial.back:
            sim.at(at + BACK_AFTER * (1 + sim.rng.random()), victim, partial(sim.join, victim.name))


def _run_watched(sim: Sim) -> None:
    """Members that listen for silence never have nothing to say: run until all is done, or nothing moves any more."""
    last, since = -1, sim.now
    while last != sim.oracle.taken or sim.now - since < REST:
        if sim.oracle.taken != last:
            last, since = sim.oracle.taken, sim.now
        sim.run(sim.now + 1.0)


def _recording(trial: Trial, directory: Path, full: bool) -> Recording:
    """The manifest says what was left to virtual time, too."""
    delay = LINK if trial.delay is None else trial.delay
    said = replace(trial, delay=delay, rate=trial.rate or RATE, window=trial.window or WINDOW_MAX)
    manifest = said.manifest("sim", full=full, quiet_seconds=QUIET + QUIET_DELAYS * delay[1])
    return Recording(directory, manifest, trial.members, full=full)
