"""The evaluation of SCO for people: as text, and as one page with its figures."""

from collections.abc import Sequence
from html import escape

from inga.lab.experiments import Claim, Table
from inga.lab.sco.schemes import SCHEMES
from inga.report.chart import STYLE, line_chart
from inga.report.page import document

TITLE = "Four ways to confirm a message to some"
FIGURES = ("figure5", "figure6", "figure7", "figure8")


def describe(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """For a person at a terminal."""
    figures = [f"{name}: {_CAPTIONS[name]}\n{_grid(tables[name])}\n" for name in FIGURES]
    protocol = f"protocol: {_CAPTIONS['protocol']}\n{_plain(tables['protocol'])}\n"
    verdicts = [f"{each.verdict:>14}  {each.statement}\n{'':14}  {each.measured}" for each in claims]
    return "\n".join([*figures, protocol, *verdicts])


def _grid(table: Table) -> str:
    """A line per k or d, a column per scheme: the number, and its ratio to C0."""
    by_value: dict[float, dict[str, tuple[float, float]]] = {}
    for value, scheme, number, ratio in table.rows:
        by_value.setdefault(value, {})[scheme] = (number, ratio)
    lines = [f"{table.columns[0]:>4}" + "".join(f"{scheme:>18}" for scheme in SCHEMES)]
    for value, row in by_value.items():
        cells = [f"{row[s][0]:.2f} ({row[s][1]:.3f})" for s in SCHEMES]
        lines.append(f"{value:>4g}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def _plain(table: Table) -> str:
    lines = ["".join(f"{name:>13}" for name in table.columns)]
    lines += ["".join(f"{value:>13g}" for value in row) for row in table.rows]
    return "\n".join(lines)


_CAPTIONS = {
    "figure5": "PDUs per message by the longest wait k, d = 5 (in brackets: ratio to C0)",
    "figure6": "units from sending until a destination knows that all have it, by k, d = 5",
    "figure7": "PDUs per message by the number of destinations d, k = 4",
    "figure8": "units from sending until a destination knows that all have it, by d, k = 4",
    "size": "the same as the group grows, d = 5, k = 4",
    "protocol": "D1 played by SCO machines, beside its model. For few destinations a message waits for news of "
    "members that never wrote to its receiver: that is the price of sending to nobody else",
    "formulas": "simulated, beside the closed forms",
}


def render(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """One page that needs nothing else."""
    figures = "".join(
        f"<figure>{_chart(name, tables[name])}<figcaption>{escape(_CAPTIONS[name])}</figcaption></figure>"
        for name in FIGURES
    )
    marks = {"holds": "pass", "roughly": "unknown", "not reproduced": "fail"}
    rows = "".join(
        f"<tr><td>{escape(c.statement)}</td><td>{escape(c.published)}</td><td>{escape(c.measured)}</td>"
        f'<td><span class="mark {marks[c.verdict]}">{escape(c.verdict)}</span></td></tr>'
        for c in claims
    )
    body = [
        f"<header><h1>{escape(TITLE)}</h1><p>A message goes to d of ten members, and each of them wants to know "
        "that all the others have it. C0 and C1 ask the sender to say so; in D0 and D1 everybody tells everybody. "
        "C1 and D1 wait up to k time units for a data message that can carry the news; D1 is what SCO does.</p></header>",
        "<main>",
        '<section class="card"><h2>What the paper claims</h2><div class="scroll"><table><thead><tr><th>claim</th>'
        f"<th>published</th><th>measured</th><th>verdict</th></tr></thead><tbody>{rows}</tbody></table></div></section>",
        f'<section class="card"><h2>Figures 5 to 8</h2><div class="charts">{figures}</div></section>',
        *(
            f'<section class="card"><h2>{escape(name)}</h2><p class="muted">{escape(_CAPTIONS[name])}.</p>'
            f"{_html_table(table)}</section>"
            for name, table in tables.items()
        ),
        "</main>",
    ]
    return document(TITLE, body, style=STYLE)


def _chart(name: str, table: Table) -> str:
    series: dict[str, list[tuple[float, float]]] = {scheme: [] for scheme in SCHEMES}
    for value, scheme, number, _ in table.rows:
        series[scheme].append((value, number))
    axis, what = table.columns[0], table.columns[2]
    labels = {"k": "longest wait k", "d": "destinations d"}
    return line_chart(name, series, x=labels[axis], y="PDUs" if what == "pdus" else "delay")


def _html_table(table: Table) -> str:
    head = "".join(f'<th class="number">{escape(column)}</th>' for column in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td class="number">{escape(f"{v:g}" if isinstance(v, float) else str(v))}</td>' for v in row
        )
        + "</tr>"
        for row in table.rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
