"""A paper's evaluation for people: its claims beside our measurements as text, and as one page with figures and tables."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from inga.lab.experiments import (
    BY_CONSTRUCTION,
    HOLDS,
    NOT_REPRODUCED,
    NOT_STATED,
    ROUGHLY,
    Claim,
    Table,
)
from inga.lab.terms import TERMS
from inga.report.chart import STYLE
from inga.report.page import document

if TYPE_CHECKING:
    from inga.lab.papers.sources import PaperSource

ROWS_OPEN = 12
"""A table with more rows than this is folded, so that it is a click away."""
SPREAD_MAX = 6
"""The most different entries of a text column that may become columns themselves."""

MARKS = {
    HOLDS: "pass",
    ROUGHLY: "unknown",
    NOT_REPRODUCED: "fail",
    NOT_STATED: "plain",
    BY_CONSTRUCTION: "plain",
}
"""The style class of each verdict on a page."""

MEANINGS = {
    HOLDS: "what was measured is what is published, within the tolerance",
    ROUGHLY: "nearly, or not in every case; what was measured says how far off",
    NOT_REPRODUCED: "it was measured otherwise",
    NOT_STATED: "the source does not say it; it follows from its rules, and was measured",
    BY_CONSTRUCTION: "the experiment was set up so that it comes out, and shows no more than that it can",
}
"""The meaning of each verdict, for readers of a page."""

LAB_STYLE = (
    STYLE
    + """
.claims td { vertical-align: top; overflow-wrap: break-word; }
.claims .judged { min-width: 16rem; font-size: .88rem; color: var(--muted); }
.claims small, .terms dd { display: block; }
.terms { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .6rem 0 1rem; font-size: .92rem; }
.terms dt { font-weight: 600; }
.terms dd { margin: 0; color: var(--muted); }
details.fold { margin-top: .8rem; }
details.fold > summary { cursor: pointer; color: var(--accent); }
.numbers td, .numbers th { padding-top: .3rem; padding-bottom: .3rem; overflow-wrap: break-word; }
.numbers h3:first-of-type { margin-top: 0; }
@media (max-width: 48rem) {
  .claims thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .claims tr { display: block; padding: .7rem 0; border-bottom: 1px solid var(--line); }
  .claims tbody tr:last-child { border-bottom: 0; }
  .claims tbody th, .claims td { display: block; border: 0; padding: .1rem 0; min-width: 0; text-align: left; }
  .claims td[data-label]::before { content: attr(data-label) ": "; color: var(--muted); font-size: .88rem; }
  .claims td:empty { display: none; }
  .claims td:first-child, .claims tbody th { font-weight: 600; }
  .terms { grid-template-columns: 1fr; }
  .terms dd { margin-bottom: .3rem; }
  .numbers td, .numbers th { min-width: 4rem; }
}
"""
)
"""The style of pages of experiments: that of all pages, and more."""


FIGURES = "<!-- figures -->"
TABLES = "<!-- tables -->"
"""Comments that mark where figures and tables begin on a page."""


def verdicts(claims: Sequence[Claim]) -> list[str]:
    """Return a paragraph of text for each claim."""
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
    source: "PaperSource | None" = None,
) -> str:
    """Return one page that needs no other files. `figures` are charts with their captions; without any, that section is left out.
    `source`: the paper that makes these claims; with it, the page explains its terms and how each claim is judged."""
    drawn = "".join(
        f"<figure>{chart}<figcaption>{escape(caption)}</figcaption></figure>" for chart, caption in figures
    )
    told = [_table_section(name, table, captions[name]) for name, table in tables.items()]
    body = [
        f"<header><h1>{escape(title)}</h1><p>{lead}</p></header>",
        "<main>",
        f'<section class="card"><h2>{escape(claimed)}</h2>{claims_table(claims, source)}'
        f"{legend(claims) + terms_of(source.name) if source else ''}</section>",
        FIGURES,
        f'<section class="card"><h2>{escape(heading)}</h2><div class="charts">{drawn}</div></section>'
        if drawn
        else "",
        TABLES,
        f'<section class="card numbers"><h2>Numbers</h2>{"".join(told)}</section>' if told else "",
        "</main>",
    ]
    return document(title, body, style=LAB_STYLE)


def claims_table(claims: Sequence[Claim], source: "PaperSource | None") -> str:
    """Return a table with a row for each claim. If all are judged alike, a sentence above the table says how."""
    common = source.readings.get("") if source and len(source.readings) == 1 else None
    is_judged = source is not None and common is None
    lines = "".join([_line(claim, source if is_judged else None) for claim in claims])
    above = (
        f"<p>Judged by: {escape(common.how)}. Tolerance: {escape(common.tolerance)}.</p>" if common else ""
    )
    names = ["claim", "published", "measured", "verdict", *(["judged by"] if is_judged else [])]
    head = "".join([f'<th scope="col">{name}</th>' for name in names])
    return (
        f'{above}<div class="scroll" tabindex="0"><table class="claims"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody>'
        "</table></div>"
    )


def _line(claim: Claim, source: "PaperSource | None") -> str:
    judged = ""
    if source is not None:
        reading = source.reading(claim.id)
        judged = (
            f'<td class="judged" data-label="judged by">{escape(reading.how)}<small>tolerance: {escape(reading.tolerance)}'
            "</small></td>"
        )
    return (
        f'<tr><td>{escape(claim.statement)}</td><td data-label="published">{escape(claim.published)}</td>'
        f'<td data-label="measured">{escape(claim.measured)}</td><td>{mark(claim.verdict)}</td>{judged}</tr>'
    )


def mark(verdict: str) -> str:
    """Return a verdict in its colour."""
    return f'<span class="mark {MARKS[verdict]}">{escape(verdict)}</span>'


def legend(claims: Sequence[Claim]) -> str:
    """Explain the verdicts that occur."""
    seen = {claim.verdict for claim in claims}
    return _folded(
        "What the verdicts mean",
        [(mark(each), escape(meaning)) for each, meaning in MEANINGS.items() if each in seen],
    )


def terms_of(name: str) -> str:
    """Explain the letters and words of a source; return nothing if it has none."""
    terms = TERMS.get(name, {})
    title = "What the letters and words mean"
    return _folded(title, [(escape(term), escape(meaning)) for term, meaning in terms.items()], is_open=True)


def _folded(title: str, lines: Sequence[tuple[str, str]], *, is_open: bool = False) -> str:
    if not lines:
        return ""
    listed = "".join([f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in lines])
    return (
        f'<details class="fold"{" open" if is_open else ""}><summary>{title}</summary>'
        f'<dl class="terms">{listed}</dl></details>'
    )


def _table_section(name: str, table: Table, caption: str) -> str:
    """Return a table under its name; a long one is folded."""
    short = spread(table)
    shown = html_table(short)
    if len(short.rows) > ROWS_OPEN:
        shown = f'<details class="fold"><summary>{len(short.rows)} rows</summary>{shown}</details>'
    return f'<h3>{escape(_title(name))}</h3><p class="muted">{escape(_sentence(caption))}</p>{shown}'


def _title(name: str) -> str:
    """Return names such as `figure5` and `round_trip` as headings."""
    words = re.sub(r"(?<=[a-z])(?=\d)", " ", name).replace("_", " ")
    return words[:1].upper() + words[1:]


def _sentence(caption: str) -> str:
    return f"{caption[:1].upper()}{caption[1:]}."


def spread(table: Table) -> Table:
    """Return the table with the entries of its last text column as columns of their own, if each of them occurs once for each
    combination of values to the left of that column: one row for each case, instead of one for each case and entry."""
    words = [at for at in range(len(table.columns)) if not _is_number(table, at)]
    at = words[-1] if words else 0
    found: dict[tuple[Any, ...], dict[Any, list[Any]]] = {}
    for row in table.rows:
        found.setdefault(tuple(row[:at]), {})[row[at]] = row[at + 1 :]
    names = list(dict.fromkeys(row[at] for row in table.rows))
    is_whole = len(found) * len(names) == len(table.rows) and all(
        len(each) == len(names) for each in found.values()
    )
    if not at or at == len(table.columns) - 1 or not 1 < len(names) <= SPREAD_MAX or not is_whole:
        return table
    figures = table.columns[at + 1 :]
    heads = [str(name) if len(figures) == 1 else f"{name}: {figure}" for name in names for figure in figures]
    rows = [[*case, *(value for name in names for value in each[name])] for case, each in found.items()]
    return Table([*table.columns[:at], *heads], rows)


def figures_of(page: str) -> tuple[str, str]:
    """Return the figures and the tables of a page, without its claims, for another page of this style."""
    figures, _, tables = page.partition(FIGURES)[2].partition("</main>")[0].partition(TABLES)
    return figures, tables


def html_table(table: Table) -> str:
    """Return a table as HTML, with text aligned to the left, numbers to the right."""
    marks = [' class="number"' if _is_number(table, at) else "" for at in range(len(table.columns))]
    lines = [
        "<tr>"
        + "".join(
            f"<td{mark}>{escape(cell_text(value))}</td>" for mark, value in zip(marks, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    ]
    head = "".join(
        f'<th scope="col"{mark}>{escape(column.replace("_", " "))}</th>'
        for mark, column in zip(marks, table.columns, strict=True)
    )
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _is_number(table: Table, at: int) -> bool:
    """Whether a column has only numbers, and dashes for missing ones."""
    return not any(isinstance(row[at], str) and row[at] != "-" for row in table.rows)


def cell_text(value: Any) -> str:
    """Return the text of a table's cell."""
    return f"{value:g}" if isinstance(value, float) else str(value)
