"""The evaluation of the ReMIOP paper, repeated: round trips against the size of a message (its Figure 7).

    round_trip    every stack over a path that loses nothing: ReMIOP at 10, 50 and 100 Kbit/s in virtual time, at 500 and 1000
                  with real sockets, as are plain MIOP and bare sockets
    constrained   the same over a narrow path, where packets that are sent too fast are lost
    slow          a receiver that is too slow for a while, and the rate of the sender
    omission      a receiver beyond the omission degree, which is treated as crashed

Nothing is lost on a modern loopback at these rates, so the paper's claims about loss are measured on the narrow path. Trials there wait
for their packets nearly all the time: they run concurrently, also with everything else that is not judged by the millisecond.
"""

from collections.abc import Sequence
from pathlib import Path

from inga.lab.bench import SayProgress
from inga.lab.experiments import Outcome, Table, writing
from inga.lab.remiop.claims import judge
from inga.lab.remiop.live import FREE, SideBySide, measure, narrow_path
from inga.lab.remiop.omission import EXPERIMENTS, omission_table
from inga.lab.remiop.page import describe, render
from inga.lab.remiop.slow import EXPERIMENT, QUICK, slow_table
from inga.lab.remiop.trips import FAST_RATES, SLOW_RATES, Setup, Trip
from inga.lab.remiop.virtual import simulate

SIZES = (1000, 10_000, 25_000, 50_000, 75_000, 100_000, 150_000)
QUICK_SIZES = (1000, 50_000)
NARROW_SIZES = (25_000, 50_000, 75_000, 100_000)
QUICK_NARROW_SIZES = (50_000, 75_000)
"""Sizes for the narrow path. The paper's claims are about one packet, 50 K, and 75 K and above."""

COLUMNS = ["stack", "rmax", "bytes", "ms", "lost", "nacks", "repairs"]


def run(out: Path, quick: bool, progress: SayProgress) -> Outcome:
    """Measure all round trips; then write tables, claims and a page."""
    fast = _fast(QUICK_SIZES if quick else SIZES)
    times = 3 if quick else 5
    # Round trips of one packet are judged by the millisecond, so they are measured while nothing else runs.
    free = measure([each for each in fast if each.packets == 1], FREE, times, progress)
    path = narrow_path()
    progress(f"narrow path: {path.name}")
    sizes = QUICK_NARROW_SIZES if quick else NARROW_SIZES
    rates = FAST_RATES if quick else (SLOW_RATES[-1], *FAST_RATES)
    with SideBySide(_fast(sizes, rates), path, 1 if quick else 2) as over_narrow_path:
        rounds = 1 if quick else 3
        virtual = [_virtual(trial, rounds, progress) for trial in _slow(QUICK_SIZES if quick else SIZES)]
        progress("a slow receiver, in virtual time")
        slow = (QUICK if quick else EXPERIMENT).run()
        progress("a receiver that hears badly, in virtual time")
        omission = [each.run() for each in EXPERIMENTS]
        careful = [_virtual(trial, 1, progress, narrow=True) for trial in _slow(sizes)]
        over_narrow_path.wait_until_begun(_narrow(progress))
        free += measure([each for each in fast if each.packets > 1], FREE, times, progress)
        narrow = over_narrow_path.gather(_narrow(progress))
    free = [*virtual, *free]
    tables = {
        "round_trip": _table(free),
        "constrained": _table([*narrow, *careful]),
        "slow": slow_table(slow),
        "omission": omission_table(omission),
    }
    claims = judge(free, narrow, careful, omission)
    page = out / "remiop.html"
    with writing(out):
        page.write_text(render(tables, claims, free, narrow, path.name, slow), encoding="utf-8")
    return Outcome(claims, tables, describe(tables, claims, path.name), [page])


def _slow(sizes: Sequence[int]) -> list[Setup]:
    return [Setup("remiop", size, rate) for rate in SLOW_RATES for size in sizes]


def _fast(sizes: Sequence[int], rates: Sequence[int] = FAST_RATES) -> list[Setup]:
    """Return the trials with real sockets, by size, so that those to be compared are measured one after the other."""
    trials = []
    for size in sizes:
        trials += [Setup("remiop", size, rate) for rate in rates]
        trials += [Setup(stack, size) for stack in ("miop", "sockets")]
    return trials


def _virtual(trial: Setup, rounds: int, progress: SayProgress, *, narrow: bool = False) -> Trip:
    where = ", narrow path" if narrow else ""
    progress(f"{trial.name} Kbit/s, {trial.bytes} bytes, in virtual time{where}")
    return simulate(trial, rounds, narrow=narrow)


def _narrow(progress: SayProgress) -> SayProgress:
    """Return a progress callback that names the narrow path."""
    return lambda what: progress(f"{what}, narrow path")


def _table(trips: Sequence[Trip]) -> Table:
    return Table(COLUMNS, [trip.row() for trip in trips])
