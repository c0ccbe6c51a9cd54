"""The evaluation of OBG for people: as text, and as one page with its figures."""

from collections.abc import Sequence
from typing import Any

from inga.lab import evaluation
from inga.lab.evaluation import cell_text
from inga.lab.experiments import Claim, Table
from inga.lab.obg.load import MODELS, ORDERS
from inga.lab.papers.sources import source_of
from inga.report.chart import line_chart

TITLE = "What has to be ordered, and what that costs"

_CAPTIONS = {
    "pairs": "pairs of requests with a common destination that are ordered, in percent. Methods: that share of the "
    "methods conflicts with nothing. Pairs: that share of the pairs of methods is compatible",
    "wait": "time units between the receipt of a request and its start, copies that travelled; a copy travels 1 to 9",
    "delay": "time units between sending and start",
    "literal": "object order taken literally, pairs related by precedence or by conflict whatever the destination "
    "needs, and significant precedence alone; percent of pairs",
    "control": "heartbeats, announcements and requests for repetition, for each request",
}


def describe(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """For a person at a terminal."""
    parts = [f"{name}: {_CAPTIONS[name]}\n{_grid(tables[name])}\n" for name in ("pairs", "wait")]
    return "\n".join([*parts, *evaluation.verdicts(claims)])


def _grid(table: Table) -> str:
    """A line per model and size; total and causal order, then object order by share."""
    shares = sorted({row[2] for row in table.rows})
    cells = {tuple(row[:4]): row[4] for row in table.rows}
    heads = ["model", "n", "causal", "total", *(f"{share} %" for share in shares)]
    lines = ["".join(f"{head:>9}" for head in heads)]
    for model, n in sorted({(row[0], row[1]) for row in table.rows}):
        others = [cells[model, n, shares[0], order] for order in ("causal", "total")]
        ours = [cells[model, n, share, "object"] for share in shares]
        lines.append("".join(f"{cell_text(value):>9}" for value in (model, n, *others, *ours)))
    return "\n".join(lines)


def render(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """One page that needs nothing else."""
    lead = (
        "Objects of a group ask each other for methods, of which some conflict. Object order starts "
        "conflicting requests in one agreed order and everything else on receipt. Causal order makes each request wait "
        "for all that precede it, and leaves concurrent ones as they come, conflicting or not. Total order is object "
        "order in which everything conflicts, so it is the one to compare with."
    )
    return evaluation.page(TITLE, lead, claims, _figures(tables), tables, _CAPTIONS, source=source_of("obg"))


def _figures(tables: dict[str, Table]) -> list[tuple[str, str]]:
    n = max(row[1] for row in tables["pairs"].rows)
    words = {
        "methods": "whole methods conflict with nothing",
        "pairs": "pairs of methods are compatible",
    }
    units = {"pairs": "% of pairs", "wait": "time units"}
    figures = []
    for name in ("pairs", "wait"):
        for model in MODELS:
            series = {order: _line(tables[name].rows, model, n, order) for order in ORDERS}
            chart = line_chart(f"{name}, {model}", series, x="tenths compatible", y=units[name])
            figures.append((chart, f"{name}, {n} objects: {words[model]}"))
    return figures


def _line(rows: Sequence[Sequence[Any]], model: str, n: int, order: str) -> list[tuple[float, float]]:
    return [(row[2] / 10, row[4]) for row in rows if (row[0], row[1], row[3]) == (model, n, order)]
