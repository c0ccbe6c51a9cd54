"""The evaluation of OBG: how much has to be ordered, and how long that makes requests wait.

    pairs    of the pairs of requests with a common destination, the share that an order orders, in percent
    wait     from the receipt of a request to its start, in time units; a copy travels 5 on average
    delay    from its sending to its start
    literal  object order as the paper has it, precedence or conflict, beside ours, and precedence alone
    control  packets besides requests, for each request

Every table has the columns model, n, share, order, value. Simulations run as Spark tasks; with `quick`, fewer of
them, here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from inga.lab.bench import SayProgress
from inga.lab.experiments import Outcome, Table
from inga.lab.obg.causal import CausalSimulation
from inga.lab.obg.claims import judge
from inga.lab.obg.load import MODELS, ORDERS, Load, LoadMeans
from inga.lab.obg.page import describe, render
from inga.lab.obg.played import ObjectSimulation
from inga.lab.simulations import simulate_all
from inga.pipeline.session import LOCAL

SIZES = tuple(range(3, 11))
SHARES = (0, 20, 40, 60, 80, 90, 100)
SEEDS = 4

COLUMNS = ["model", "n", "share", "order", "value"]


class LoadPoint(NamedTuple):
    """Where something was measured; a mean over seeds."""

    model: str
    n: int
    share: int
    order: str


def run(out: Path, quick: bool, progress: SayProgress, *, master: str = LOCAL) -> Outcome:
    """All simulations, then tables, claims and a page."""
    tasks = list(loads(quick))
    answers = simulate_all(simulate, tasks, progress, None if quick else master)
    found = means(zip(tasks, answers, strict=True))
    tables = tabulate(found)
    claims = judge(found)
    page = out / "obg.html"
    page.write_text(render(tables, claims), encoding="utf-8")
    return Outcome(claims, tables, describe(tables, claims), [page])


def simulate(load: Load) -> LoadMeans:
    """One task."""
    return (CausalSimulation if load.order == "causal" else ObjectSimulation)(load).run()


def loads(quick: bool) -> Iterable[Load]:
    """Causal and total order do not ask which methods are compatible: once for each size is enough."""
    sizes, shares, seeds = ((3, 5), (0, 40, 60, 100), 2) if quick else (SIZES, SHARES, SEEDS)
    for model, n, seed in product(MODELS, sizes, range(seeds)):
        for order in ORDERS:
            for share in shares if order == "object" else (0,):
                yield Load(model, n, share, order, seed)


def means(measured: Iterable[tuple[Load, LoadMeans]]) -> dict[LoadPoint, LoadMeans]:
    """Over seeds."""
    found: dict[LoadPoint, list[LoadMeans]] = {}
    for load, each in measured:
        found.setdefault(LoadPoint(load.model, load.n, load.share, load.order), []).append(each)
    return {
        point: LoadMeans(*(fmean(getattr(each, f.name) for each in group) for f in fields(LoadMeans)))
        for point, group in found.items()
    }


def tabulate(found: Mapping[LoadPoint, LoadMeans]) -> dict[str, Table]:
    """Orders that do not ask which methods are compatible stand in every line of their size."""
    shares = sorted({point.share for point in found})
    sizes = sorted({point.n for point in found})
    rows: dict[str, list[list[object]]] = {
        name: [] for name in ("pairs", "wait", "delay", "literal", "control")
    }
    for model, n, share, order in product(MODELS, sizes, shares, ORDERS):
        at = found[LoadPoint(model, n, share if order == "object" else 0, order)]
        here = [model, n, share]
        for name, value in (("pairs", at.ordered), ("wait", at.wait), ("delay", at.delay)):
            rows[name].append([*here, order, round(value, 2)])
        if order == "object":
            rows["literal"] += [
                [*here, "literal", round(at.literal, 2)],
                [*here, "precedence", round(at.precede, 2)],
            ]
        if order != "causal":
            rows["control"].append([*here, order, round(at.control, 2)])
    return {name: Table(COLUMNS, each) for name, each in rows.items()}
