"""A paper's evaluation for people: its claims beside ours as text, and as one page with figures and tables."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from inga.lab.experiments import (
    BY_CONSTRUCTION,
    HOLDS,
    NOT_REPRODUCED,
    NOT_STATED,
    ROUGHLY,
    Claim,
    Table,
)
from inga.report.chart import STYLE
from inga.report.page import document

MARKS = {
    HOLDS: "pass",
    ROUGHLY: "unknown",
    NOT_REPRODUCED: "fail",
    NOT_STATED: "unknown",
    BY_CONSTRUCTION: "unknown",
}
"""How a verdict looks on a page."""


FIGURES = "<!-- figures and tables -->"
"""Where they begin on a page."""


def verdicts(claims: Sequence[Claim]) -> list[str]:
    """A paragraph for each claim."""
    wide = max(map(len, MARKS))
    return [f"{each.verdict:>{wide}}  {each.statement}\n{'':{wide}}  {each.measured}" for each in claims]


def page(
    title: str,
    lead: str,
    claims: Sequence[Claim],
    figures: Iterable[tuple[str, str]],
    tables: Mapping[str, Table],
    captions: Mapping[str, str],
    *,
    heading: str = "Figures",
    claimed: str = "What the paper claims",
) -> str:
    """One page that needs nothing else. `figures` are charts with their captions; without one there is no such section."""
    rows = "".join(
        f"<tr><td>{escape(c.statement)}</td><td>{escape(c.published)}</td><td>{escape(c.measured)}</td>"
        f'<td><span class="mark {MARKS[c.verdict]}">{escape(c.verdict)}</span></td></tr>'
        for c in claims
    )
    drawn = "".join(
        f"<figure>{chart}<figcaption>{escape(caption)}</figcaption></figure>" for chart, caption in figures
    )
    body = [
        f"<header><h1>{escape(title)}</h1><p>{lead}</p></header>",
        "<main>",
        f'<section class="card"><h2>{escape(claimed)}</h2><div class="scroll"><table><thead><tr><th>claim</th>'
        f"<th>published</th><th>measured</th><th>verdict</th></tr></thead><tbody>{rows}</tbody></table></div></section>",
        FIGURES,
        f'<section class="card"><h2>{escape(heading)}</h2><div class="charts">{drawn}</div></section>'
        if drawn
        else "",
        *(
            f'<section class="card"><h2>{escape(name)}</h2><p class="muted">{escape(captions[name])}.</p>'
            f"{html_table(table)}</section>"
            for name, table in tables.items()
        ),
        "</main>",
    ]
    return document(title, body, style=STYLE)


def figures_of(page: str) -> str:
    """What a page has besides its claims: figures and tables, for another page of this style."""
    return page.partition(FIGURES)[2].partition("</main>")[0]


def html_table(table: Table) -> str:
    """Words to the left, numbers to the right."""
    words = [any(isinstance(row[at], str) for row in table.rows) for at in range(len(table.columns))]
    marks = ["" if is_word else ' class="number"' for is_word in words]
    lines = [
        "<tr>"
        + "".join(
            f"<td{mark}>{escape(cell_text(value))}</td>" for mark, value in zip(marks, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    ]
    head = "".join(
        f"<th{mark}>{escape(column)}</th>" for mark, column in zip(marks, table.columns, strict=True)
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def cell_text(value: Any) -> str:
    """A cell of a table."""
    return f"{value:g}" if isinstance(value, float) else str(value)
