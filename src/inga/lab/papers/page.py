"""The page of `inga lab all`: verdicts first, then, source by source, the published results beside the measured ones."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from inga.lab.evaluation import LAB_STYLE, claims_table, figures_of, legend, terms_of
from inga.lab.experiments import VERDICTS, Claim
from inga.report.page import document

if TYPE_CHECKING:
    from inga.lab.papers import Examined

TITLE = "Five sources, repeated"

_STYLE = """
.papers .papers, .papers .card { border: 0; box-shadow: none; padding: 0; margin-top: 1.4rem; }
.papers .card h2 { font-size: 1rem; margin-bottom: .6rem; }
.papers .card h3 { font-size: .92rem; }
@media (max-width: 48rem) { .overview td { display: inline-block; padding-right: .8rem; } }
"""


def render(found: Sequence["Examined"], *, quick: bool, version: str) -> str:
    """Return the page, which needs no other files but links to the experiments' own pages beside it."""
    claims = [claim for each in found for claim in each.outcome.claims]
    command = "inga lab all" + (" --quick" if quick else "")
    lead = (
        f"{_counted(claims)}, of {len(claims)} claims of {len(found)} sources. "
        "Every figure, table and claim that can be repeated, beside what this program finds, the reading by which it was judged, and "
        "how far off still counts."
    )
    body = [
        f"<header><h1>{TITLE}</h1><p>{escape(lead)}</p>"
        f'<p class="muted">Made by <code>{command}</code>{", which leaves out what takes long" if quick else ""}; '
        f"program {escape(version)}. To understand what all this is about, begin with "
        '<a href="ladder/ladder.html">the ladder</a>.</p></header>',
        "<main>",
        _overview(found),
        *(_section(each, quick) for each in found),
        "</main>",
    ]
    return document(TITLE, body, style=LAB_STYLE + _STYLE)


def _counted(claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    return ", ".join([f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]])


def _overview(found: Sequence["Examined"]) -> str:
    head = "".join([f'<th scope="col" class="number">{escape(verdict)}</th>' for verdict in VERDICTS])
    rows = []
    for each in found:
        counts = Counter(claim.verdict for claim in each.outcome.claims)
        cells = "".join(
            [
                f'<td class="number" data-label="{escape(verdict)}">{counts[verdict] or ""}</td>'
                for verdict in VERDICTS
            ]
        )
        name, title = each.source.name, escape(each.source.title)
        rows.append(f'<tr><th scope="row"><a href="#{name}">{title}</a></th>{cells}</tr>')
    claims = [claim for each in found for claim in each.outcome.claims]
    return (
        '<section class="card"><h2>Verdicts</h2><div class="scroll" tabindex="0"><table class="claims overview"><thead><tr>'
        f'<th scope="col">source</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>{legend(claims)}</section>'
    )


def _section(each: "Examined", quick: bool) -> str:
    source, outcome = each.source, each.outcome
    command = f"inga lab {source.name}" + (" --quick" if quick else "")
    own = "".join(
        [f'<a href="{source.name}/{escape(page.name)}">its own page</a>' for page in outcome.pages[:1]]
    )
    spent = "kept from an earlier run of the same program" if each.is_kept else f"{each.seconds:.0f} s"
    return (
        f'<section class="card papers" id="{source.name}"><h2>{escape(source.title)}</h2>'
        f"<p>{escape(source.idea)}</p><p>{escape(source.publishes)}</p>"
        f'<p class="muted">{escape(source.citation)}. Repeated by <code>{escape(command)}</code> ({spent}); {own}.</p>'
        f"{terms_of(source.name)}{claims_table(outcome.claims, source)}{_figures(each)}</section>"
    )


def _figures(each: "Examined") -> str:
    """Return figures and tables from the experiment's own page. The ladder's pictures stay there, since they belong to its text."""
    parts = [figures_of(page.read_text(encoding="utf-8")) for page in each.outcome.pages]
    figures, tables = ("".join(each) for each in zip(*parts, strict=True)) if parts else ("", "")
    return figures + (
        f'<details class="fold"><summary>Tables of numbers</summary>{tables}</details>'
        if tables.strip()
        else ""
    )
