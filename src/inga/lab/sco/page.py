"""The evaluation of SCO for people: as text, and as one page with figures."""

from collections.abc import Sequence

from inga.lab import evaluation
from inga.lab.experiments import Claim, Table
from inga.lab.papers.sources import source_of
from inga.lab.sco.schemes import SCHEMES
from inga.report.chart import line_chart

TITLE = "Four ways to confirm a message to some"
FIGURES = ("figure5", "figure6", "figure7", "figure8")


def describe(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """Return the evaluation as text for a terminal."""
    figures = [f"{name}: {_CAPTIONS[name]}\n{_grid(tables[name])}\n" for name in FIGURES]
    levels, implied, *rest = (
        f"{name}: {_CAPTIONS[name]}\n{_plain(tables[name])}\n"
        for name in ("table1", "figure2", "rates", "controller", "protocol")
    )
    return "\n".join([levels, implied, *figures, *rest, *evaluation.verdicts(claims)])


def _grid(table: Table) -> str:
    """Return a table with a line per k or d and a column per scheme: the number, and its ratio to C0."""
    by_value: dict[float, dict[str, tuple[float, float]]] = {}
    for value, scheme, number, ratio in table.rows:
        by_value.setdefault(value, {})[scheme] = (number, ratio)
    lines = [f"{table.columns[0]:>4}" + "".join(f"{scheme:>18}" for scheme in SCHEMES)]
    for value, row in by_value.items():
        cells = [f"{row[s][0]:.2f} ({row[s][1]:.3f})" for s in SCHEMES]
        lines.append(f"{value:>4g}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def _plain(table: Table) -> str:
    rows = [table.columns, *([_text(value) for value in row] for row in table.rows)]
    wide = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    return "\n".join("".join(f"{cell:>{w}}" for cell, w in zip(row, wide, strict=True)) for row in rows)


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


_CAPTIONS = {
    "table1": "what realizes each level of acceptance, as runs show it (Table 1)",
    "figure2": "of the moments in which a member says that a message has reached a level, the per cent in which each definition was "
    "true, everywhere (Figure 2: what a level implies is 100)",
    "figure5": "PDUs per message by the longest wait k, d = 5 (in brackets: ratio to C0)",
    "figure6": "units from sending until a destination knows that all have it, by k, d = 5",
    "figure7": "PDUs per message by the number of destinations d, k = 4",
    "figure8": "units from sending until a destination knows that all have it, by d, k = 4",
    "size": "the same as the group grows, d = 5, k = 4",
    "rates": "the same if every member sends a messages a unit, d = 5, k = 4 (ratio of the delays to that of C0); PDUs per message",
    "controller": "F0 and F1: one process leads all messages. PDUs per message, units from sending, and the PDUs a unit that the busiest "
    "process sends and receives; k = 4",
    "protocol": "D1 played by SCO machines, beside its model. For few destinations a message waits for news of "
    "members that never wrote to its receiver: that is the price of sending to nobody else",
    "formulas": "simulated, beside the closed forms",
}


def render(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """Return the page, which needs no other files."""
    lead = (
        "A message goes to d of ten members, and each of them wants to know "
        "that all the others have it. C0 and C1 ask the sender to say so; in D0 and D1 everybody tells everybody. "
        "C1 and D1 wait up to k time units for a data message that can carry the news; D1 is what SCO does."
    )
    figures = [(_chart(name, tables[name]), _CAPTIONS[name]) for name in FIGURES]
    return evaluation.page(
        TITLE, lead, claims, figures, tables, _CAPTIONS, heading="Figures 5 to 8", source=source_of("sco")
    )


def _chart(name: str, table: Table) -> str:
    series: dict[str, list[tuple[float, float]]] = {scheme: [] for scheme in SCHEMES}
    for value, scheme, number, _ in table.rows:
        series[scheme].append((value, number))
    axis, what = table.columns[0], table.columns[2]
    labels = {"k": "longest wait k", "d": "destinations d"}
    return line_chart(name, series, x=labels[axis], y="PDUs" if what == "pdus" else "delay")
