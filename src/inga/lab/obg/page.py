"""The evaluation of OBG for people: as text, and as one page with figures."""

from collections.abc import Sequence
from typing import Any

from inga.lab import evaluation
from inga.lab.evaluation import cell_text
from inga.lab.experiments import Claim, Table
from inga.lab.obg.load import MODELS, ORDERS
from inga.lab.obg.worked import figure_3, figure_4
from inga.lab.papers.sources import source_of
from inga.report.chart import line_chart
from inga.report.spacetime import draw, style

TITLE = "What has to be ordered, and what that costs"

_CAPTIONS = {
    "pairs": "pairs of requests with a common destination that start in one order whichever of the two comes first, in percent; "
    "some of them, tried at a destination. Methods: that share of the methods conflicts with nothing. Pairs: that share of the "
    "pairs of methods is compatible",
    "waiting": "the same pairs, of which one does not start before the other has come; whatever conflicts with anything waits for all that was "
    "sent before it",
    "wait": "time units between the receipt of a request and its start, copies that travelled; a copy travels 1 to 9",
    "delay": "time units between sending and start",
    "literal": "all pairs, by the tables of conflicts and by what precedes what: those that conflict; object order taken literally, "
    "related by precedence or by conflict whatever the destination needs; and significant precedence alone; percent of pairs",
    "control": "heartbeats, announcements and requests for repetition, for each request",
    "cost": "for each request: packets and their bytes, copies of the request among them; entries of vectors, matrices and heartbeats "
    "that receivers have to look at; CPU of the engines, which differs from run to run. Causal order has a matrix in every copy",
    "theorems": "pairs of messages of random runs to which each theorem applies, those that break it, and runs that did not end. Printed: "
    "Theorems 1 and 4 by the delivery procedure, 2 and 3 by the vectors and the rule of the paper. Data: answers and data that one "
    "instance takes, at least one of them data",
    "table 1": "significant precedence; its cells are not in our copy of the paper, these are from the same runs. Sent and received: whether the vectors of the "
    "product relate such a pair. Received and received: pairs that are related, and how many were delivered the other way round",
    "figure 3": "what the text says about Figure 3, beside what the product does",
    "table 2": "the messages of Figure 4, beside what is printed",
    "delta": "members near and far, no announcements, half of the methods free: wait in time units; control packets, copies that were sent again and copies that were lost, for "
    "each request. Delta is 2.25 delays: of each pair, of the longest, or of a mean one",
    "invoking": "two members call, 60 % of the pairs of methods are compatible: wait in time units, control packets for each request",
}


def describe(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """Return the evaluation as text for a terminal."""
    parts = [f"{name}: {_CAPTIONS[name]}\n{_grid(tables[name])}\n" for name in ("pairs", "waiting", "wait")]
    parts += [f"{name}: {_CAPTIONS[name]}\n{_plain(tables[name])}\n" for name in _PLAIN]
    return "\n".join([*parts, *evaluation.verdicts(claims)])


_PLAIN = ("theorems", "table 1", "figure 3", "table 2", "delta", "invoking")


def _plain(table: Table) -> str:
    """Return a table as text, with columns as wide as their cells."""
    lines = [table.columns, *([cell_text(value) for value in row] for row in table.rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.columns))]
    return "\n".join(
        "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _grid(table: Table) -> str:
    """Return a table as text: a line per model and size, with causal and total order, then object order by share."""
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
    """Return the page, which needs no other files."""
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
    return [*_examples(), *figures]


_PICTURES = f"<style>{style()}.charts figure:has(.spacetime) {{ grid-column: 1 / -1; }}</style>"
"""The style of pictures of messages, which also gives them a line of their own. It is part of the figure, so that it also reaches
the page of all sources."""


def _examples() -> list[tuple[str, str]]:
    """Return Figures 3 and 4 of the paper. A message is drawn with its identifier and the vector that it carries, a delivery with
    the vector of the instance that it starts."""
    return [
        (
            _PICTURES + draw(figure_3()[0].diagram),
            "Figure 3: two objects, the identifiers of their messages and what they know",
        ),
        (
            draw(figure_4().diagram),
            "Figure 4: 2 follows 1, which j has got; 3 is of another instance of i that runs beside the first, and follows neither",
        ),
    ]


def _line(rows: Sequence[Sequence[Any]], model: str, n: int, order: str) -> list[tuple[float, float]]:
    return [(row[2] / 10, row[4]) for row in rows if (row[0], row[1], row[3]) == (model, n, order)]
