"""The evaluation of OBG: how much has to be ordered, what that costs, and whether its theorems are true.

    pairs      of the pairs of requests with a common destination, the share that an order orders, in percent, as observed
    waiting    the share in which one request does not start before the other has arrived
    wait       from the receipt of a request to its start, in time units; a copy travels 5 on average
    delay      from its send to its start
    literal    pairs that conflict; pairs that object order as printed relates, by precedence or conflict; by precedence alone
    control    packets besides requests, per request
    cost       packets, bytes, numbers that receivers process, and CPU, per request
    theorems   Theorems 1 to 4 on random runs, with data messages; and Table 1, derived from these runs
    figure 3, table 2    the worked examples
    delta      one for each pair of members, or one for all
    invoking   objects that know which members call them

Tables of the load have the columns model, n, share, order, value. Simulations run as Spark tasks; with `quick` there are fewer of
them, and they run in this process unless a master was given.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from inga.lab.bench import SayProgress
from inga.lab.experiments import Claim, Outcome, Table, writing
from inga.lab.obg.causal import CausalSimulation
from inga.lab.obg.claims import judge, judge_invoking, judge_paces
from inga.lab.obg.load import MODELS, ORDERS, Load, LoadMeans
from inga.lab.obg.paced import PacedSimulation, PaceTask, paces, tabulate_paces
from inga.lab.obg.page import describe, render
from inga.lab.obg.played import ObjectSimulation
from inga.lab.obg.theorems import RunCounts, count_run, judge_theorems, tabulate_theorems, total
from inga.lab.obg.worked import judge_examples, tabulate_examples
from inga.lab.simulations import simulate_all
from inga.pipeline.session import LOCAL

SIZES = tuple(range(3, 11))
SHARES = (0, 20, 40, 60, 80, 90, 100)
SEEDS = 4

RUNS, RUNS_QUICK, RUNS_TOGETHER = 600, 30, 10
"""The number of random runs on which the theorems are tested, and how many of them are one task."""

INVOKERS = 2
"""The number of members that call, in runs in which objects are told which members call them."""

COLUMNS = ["model", "n", "share", "order", "value"]


class LoadPoint(NamedTuple):
    """The parameters of a measurement, which is a mean over seeds."""

    model: str
    n: int
    share: int
    order: str


class RunSeeds(NamedTuple):
    """Random runs that are one task."""

    first: int
    runs: int


Simulated = Load | PaceTask | RunSeeds


def run(out: Path, quick: bool, progress: SayProgress, *, master: str = LOCAL) -> Outcome:
    """Run all simulations; then write tables, claims and a page."""
    tasks: list[Simulated] = [*loads(quick), *told_loads(quick), *paces(quick), *run_seeds(quick)]
    answers = simulate_all(simulate, tasks, progress, None if quick and master == LOCAL else master)
    tables, claims = conclude(dict(zip(tasks, answers, strict=True)))
    page = out / "obg.html"
    with writing(out):
        page.write_text(render(tables, claims), encoding="utf-8")
    return Outcome(claims, tables, describe(tables, claims), [page])


def simulate(task: Simulated) -> Any:
    """Run one task."""
    match task:
        case Load():
            return (CausalSimulation if task.order == "causal" else ObjectSimulation)(task).run()
        case PaceTask():
            return PacedSimulation(task).paced()
        case RunSeeds(first, runs):
            return total(map(count_run, range(first, first + runs)))


def conclude(answers: Mapping[Simulated, Any]) -> tuple[dict[str, Table], list[Claim]]:
    """Return tables and verdicts."""
    measured = [(task, answer) for task, answer in answers.items() if isinstance(task, Load)]
    found = means((load, answer) for load, answer in measured if not load.invokers)
    seeds = [task for task in answers if isinstance(task, RunSeeds)]
    counts: RunCounts = total(answers[task] for task in seeds)
    tables = {
        **tabulate_theorems(counts),
        **tabulate_examples(),
        "delta": tabulate_paces({task: each for task, each in answers.items() if isinstance(task, PaceTask)}),
        "invoking": _tabulate_told((load, answer) for load, answer in measured if load.invokers),
        **tabulate(found),
    }
    claims = [
        *judge(found),
        *judge_theorems(counts, sum(task.runs for task in seeds)),
        *judge_examples(tables),
        judge_paces(tables["delta"]),
        judge_invoking(tables["invoking"]),
    ]
    return tables, claims


def loads(quick: bool) -> Iterable[Load]:
    """Yield the loads. Causal and total order do not depend on which methods are compatible: one run for each size is enough."""
    sizes, shares, seeds = ((3, 5), (0, 40, 60, 100), 2) if quick else (SIZES, SHARES, SEEDS)
    for model, n, seed in product(MODELS, sizes, range(seeds)):
        for order in ORDERS:
            for share in shares if order == "object" else (0,):
                yield Load(model, n, share, order, seed)


def told_loads(quick: bool) -> Iterable[Load]:
    """Yield loads in which few members call. Their pairs of compatible methods are those for which object order gains nothing
    otherwise."""
    sizes, seeds = ((5,), 2) if quick else ((5, 8), SEEDS)
    for n, told, seed in product(sizes, (False, True), range(seeds)):
        yield Load("pairs", n, 60, "object", seed, looked_at=1, invokers=INVOKERS, told=told)


def run_seeds(quick: bool) -> Iterable[RunSeeds]:
    """Yield the random runs on which theorems are tested."""
    for first in range(0, RUNS_QUICK if quick else RUNS, RUNS_TOGETHER):
        yield RunSeeds(first, RUNS_TOGETHER)


def means(measured: Iterable[tuple[Load, LoadMeans]]) -> dict[LoadPoint, LoadMeans]:
    """Return the means over seeds."""
    found: dict[LoadPoint, list[LoadMeans]] = {}
    for load, each in measured:
        found.setdefault(LoadPoint(load.model, load.n, load.share, load.order), []).append(each)
    return {
        point: LoadMeans(*(fmean(getattr(each, f.name) for each in group) for f in fields(LoadMeans)))
        for point, group in found.items()
    }


def tabulate(found: Mapping[LoadPoint, LoadMeans]) -> dict[str, Table]:
    """Return the tables of the load. Orders that do not depend on which methods are compatible appear in every line of their size."""
    shares = sorted({point.share for point in found})
    sizes = sorted({point.n for point in found})
    rows: dict[str, list[list[object]]] = {
        name: [] for name in ("pairs", "waiting", "wait", "delay", "literal", "control")
    }
    costs: list[list[object]] = []
    for model, n, share, order in product(MODELS, sizes, shares, ORDERS):
        at = found[LoadPoint(model, n, share if order == "object" else 0, order)]
        here = [model, n, share]
        seen = (("pairs", at.ordered), ("waiting", at.waiting), ("wait", at.wait), ("delay", at.delay))
        for name, value in seen:
            rows[name].append([*here, order, round(value, 2)])
        if order == "object":
            for name, value in (("conflict", at.needed), ("literal", at.literal), ("precedence", at.precede)):
                rows["literal"].append([*here, name, round(value, 2)])
        if order != "causal":
            rows["control"].append([*here, order, round(at.control, 2)])
        costs.append([*here, order, *(round(each, 1) for each in (at.packets, at.bytes, at.numbers, at.cpu))])
    return {
        **{name: Table(COLUMNS, each) for name, each in rows.items()},
        "cost": Table([*COLUMNS[:-1], "packets", "bytes", "numbers", "cpu_us"], costs),
    }


def _tabulate_told(measured: Iterable[tuple[Load, LoadMeans]]) -> Table:
    groups: dict[tuple[int, str], list[LoadMeans]] = {}
    for load, each in measured:
        groups.setdefault((load.n, "named" if load.told else "not named"), []).append(each)
    rows = [
        [n, told, *(round(fmean(getattr(each, what) for each in group), 2) for what in ("wait", "control"))]
        for (n, told), group in groups.items()
    ]
    return Table(["n", "invokers", "wait", "control"], rows)
