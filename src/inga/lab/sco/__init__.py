"""The evaluation of the SCO paper, repeated: its control schemes, simulated and in closed form.

Tables `figure5` to `figure8` are the paper's figures. `formulas` compares the simulation with the closed forms, `protocol`
the model of D1 with SCO machines under the same load; in `size` the group grows, in `rates` members send more often than
in the figures, in `controller` one process leads all messages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from inga.lab.bench import SayProgress
from inga.lab.experiments import Outcome, Table, writing
from inga.lab.sco.claims import (
    DELAYS,
    DESTINATIONS,
    MEMBERS,
    RATES,
    USUAL_D,
    USUAL_K,
    Results,
    SchemePoint,
    judge,
    point,
)
from inga.lab.sco.formulas import closed_form
from inga.lab.sco.levels import ORDERS, implications, judge_levels, observe, realized
from inga.lab.sco.page import describe, render
from inga.lab.sco.protocol import Protocol
from inga.lab.sco.schemes import CONTROLLED, SCHEMES, Model, SchemeCosts, SchemeLoad
from inga.lab.simulations import simulate_all
from inga.pipeline.session import LOCAL

SIZES = (7, 10, 20, 40)
PLAYED = ((1.0, 5), (4.0, 5), (4.0, 1), (4.0, 2), (4.0, 3), (4.0, 8))
"""(k, d) for which the protocol itself is simulated."""

SchemeTask = tuple[str, SchemeLoad]
"""A load, and what runs it: `model` or `protocol`."""


def run(out: Path, quick: bool, progress: SayProgress, *, master: str = LOCAL) -> Outcome:
    """Run all simulations, as Spark tasks unless `quick` is set and no master was given; then write tables, claims and a page."""
    time, seeds = (160.0, 1) if quick else (1000.0, 5)
    tasks = list(_tasks(time, seeds, quick))
    answers = simulate_all(simulate, tasks, progress, None if quick and master == LOCAL else master)
    model = _means((load, each) for (who, load), each in zip(tasks, answers, strict=True) if who == "model")
    played = _means((load, each) for (who, load), each in zip(tasks, answers, strict=True) if who != "model")
    progress("levels of acceptance, in virtual time")
    runs = {order: observe(order, seed=1) for order in ORDERS}
    figure = implications(observe("sco", seed) for seed in range(2 if quick else 10))
    tables = {"table1": realized(runs), "figure2": figure, **_tables(model, played)}
    claims = [*judge_levels(tables["table1"], figure), *judge(model)]
    page = out / "sco.html"
    with writing(out):
        page.write_text(render(tables, claims), encoding="utf-8")
    return Outcome(claims, tables, describe(tables, claims), [page])


def simulate(task: SchemeTask) -> SchemeCosts:
    """Run one task."""
    who, load = task
    return (Model if who == "model" else Protocol)(load).run()


def _tasks(time: float, seeds: int, quick: bool) -> Iterable[SchemeTask]:
    loads = {SchemeLoad(scheme, MEMBERS, USUAL_D, k) for scheme in SCHEMES for k in DELAYS}
    loads |= {SchemeLoad(scheme, MEMBERS, d, USUAL_K) for scheme in SCHEMES for d in DESTINATIONS}
    loads |= {SchemeLoad(scheme, n, USUAL_D, USUAL_K) for scheme in SCHEMES for n in SIZES}
    loads |= {SchemeLoad(scheme, MEMBERS, USUAL_D, USUAL_K, rate=a) for scheme in SCHEMES for a in RATES}
    loads |= {SchemeLoad(scheme, MEMBERS, USUAL_D, k) for scheme in CONTROLLED for k in DELAYS}
    loads |= {SchemeLoad(scheme, MEMBERS, d, USUAL_K) for scheme in CONTROLLED for d in DESTINATIONS}
    for load in sorted(loads, key=point):
        if load.scheme in ("C0", "D0", "F0"):  # these are deterministic
            yield "model", replace(load, time=10.0)
            continue
        for seed in range(seeds):
            yield "model", replace(load, time=time / load.rate, seed=seed)
    for k, d in PLAYED:
        yield "protocol", SchemeLoad("D1", MEMBERS, d, k, time=60.0 if quick else 300.0)


def _means(measured: Iterable[tuple[SchemeLoad, SchemeCosts]]) -> dict[SchemePoint, SchemeCosts]:
    """Return the means over seeds."""
    found: dict[SchemePoint, list[SchemeCosts]] = {}
    for load, each in measured:
        found.setdefault(point(load), []).append(each)
    return {
        at: SchemeCosts(*(fmean(column) for column in zip(*each, strict=True))) for at, each in found.items()
    }


def _tables(model: Results, played: Results) -> dict[str, Table]:
    by_k = [(k, SchemePoint(s, MEMBERS, USUAL_D, k)) for k in DELAYS for s in SCHEMES]
    by_d = [(d, SchemePoint(s, MEMBERS, d, USUAL_K)) for d in DESTINATIONS for s in SCHEMES]
    by_n = [(n, SchemePoint(s, n, USUAL_D, USUAL_K)) for n in SIZES for s in SCHEMES]
    by_rate = [(a, SchemePoint(s, MEMBERS, USUAL_D, USUAL_K, a)) for a in RATES for s in SCHEMES]
    led = [SchemePoint(s, MEMBERS, d, USUAL_K) for d in DESTINATIONS for s in ("C0", "F0", "C1", "F1", "D1")]
    return {
        "figure5": _figure("k", "pdus", by_k, model),
        "figure6": _figure("k", "delay", by_k, model),
        "figure7": _figure("d", "pdus", by_d, model),
        "figure8": _figure("d", "delay", by_d, model),
        "size": Table(
            ["n", "scheme", "pdus", "delay"], [[n, p.scheme, *map(_rounded, model[p][:2])] for n, p in by_n]
        ),
        "rates": _figure("a", "delay", by_rate, model, ["pdus"]),
        "controller": Table(
            ["d", "scheme", "pdus", "delay", "busiest"],
            [[p.d, p.scheme, *map(_rounded, model[p])] for p in led],
        ),
        "formulas": Table(
            ["scheme", "n", "d", "k", "a", "pdus", "pdus_formula", "delay", "delay_formula"],
            [_beside(p, model[p]) for p in sorted(model) if p.scheme in SCHEMES],
        ),
        "protocol": Table(
            ["k", "d", "pdus", "pdus_model", "delay", "delay_model"],
            [_against_model(p, model, played) for p in sorted(played)],
        ),
    }


def _figure(
    axis: str,
    what: str,
    places: Sequence[tuple[float, SchemePoint]],
    model: Results,
    besides: Sequence[str] = (),
) -> Table:
    rows = []
    for value, at in places:
        measured, base = model[at], model[at._replace(scheme="C0")]
        number = getattr(measured, what)
        more = [_rounded(getattr(measured, each)) for each in besides]
        rows.append([value, at.scheme, _rounded(number), _rounded(number / getattr(base, what)), *more])
    return Table([axis, "scheme", what, "ratio", *besides], rows)


def _beside(at: SchemePoint, measured: SchemeCosts) -> list[Any]:
    formula = closed_form(SchemeLoad(at.scheme, at.n, at.d, at.k, rate=at.a))
    numbers = (measured.pdus, formula.pdus, measured.delay, formula.delay)
    return [*at, *map(_rounded, numbers)]


def _against_model(at: SchemePoint, model: Results, played: Results) -> list[Any]:
    real, modelled = played[at], model[at]
    return [at.k, at.d, *map(_rounded, (real.pdus, modelled.pdus, real.delay, modelled.delay))]


def _rounded(number: float) -> float:
    return round(number, 4)
