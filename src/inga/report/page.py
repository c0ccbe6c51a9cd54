"""One self-contained HTML file: it needs no network and no other file.

Texts from traces, such as names, are never interpreted as markup: the page's own text is escaped, and the viewer gets
its data as JSON and columns of numbers, and only sets the text of elements, or draws it. The content security policy in the head
forbids all resources from outside.
"""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from inga.certify.checks import CHECKS
from inga.report.figures import figures, tiles
from inga.report.packed import pack
from inga.report.section import Section
from inga.report.verdict import badge, judge, mark, packets, text

GROUPS_SHOWN = 8

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_SCRIPTS = ("record.js", "search.js", "signs.js", "paint.js", "viewer.js", "compare.js")
"""The parts of one script; each uses only parts before it."""


def render(sections: Sequence[Section], title: str = "inga report", *, made: str = "") -> str:
    """The page as HTML. The verdicts of all sections are in one table at the end; `made` says when and how the page was made."""
    body = [
        f"<header><h1>{text(title)}</h1>{_sentences(sections)}</header>",
        "<main>",
        *(_section(number, section) for number, section in enumerate(sections)),
        _compare(sections),
        _verdicts(sections),
        "</main>",
        f"<footer>{text(made)}</footer>" if made else "",
    ]
    data = [
        element
        for number, section in enumerate(sections)
        for element in pack(number, section)
        if _is_drawn(section)
    ]
    return document(title, [*body, *data], script="".join(map(_asset, _SCRIPTS)), style=_asset("viewer.css"))


def document(
    title: str, body: Sequence[str], *, style: str = "", script: str = "", asks: bool = False
) -> str:
    """A complete page that may load no other resource, in the style of all reports. With `asks`, its script may send requests to the
    server that it comes from."""
    policy = f"{_POLICY}; connect-src 'self'" if asks else _POLICY
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_asset('page.css')}{style}</style></head><body>",
            *body,
            *([f'<script>\n"use strict";\n(() => {{\n{script}}})();\n</script>'] if script else []),
            "</body></html>\n",
        ]
    )


def _asset(name: str) -> str:
    return files("inga.report").joinpath(name).read_text(encoding="utf-8")


def _is_drawn(section: Section) -> bool:
    return bool(section.rows) if section.drawing is None else len(section.drawing) > 0


def _sentences(sections: Sequence[Section]) -> str:
    """The verdict of each trace in a sentence, at the top of the page."""
    found = []
    for number, section in enumerate(sections):
        judged = judge(section)
        name = f'<a href="#trace-{number}">{text(section.title)}</a>' if len(sections) > 1 else ""
        found.append(f'<p class="verdict {judged.tone}">{name}<span>{text(judged.text)}</span></p>')
    return "".join(found)


def _section(number: int, section: Section) -> str:
    """The section of one trace. Unless all promises were kept, the diagram comes before the figures."""
    diagram, measured = _diagram(number, section), figures(section)
    is_clean = judge(section).tone == "pass"
    return (
        f'<section class="card trace" id="trace-{number}"><h2>{text(section.title)} {_word(section)}</h2>'
        f"<h3>What happened</h3>{tiles(section)}{measured + diagram if is_clean else diagram + _groups(section) + measured}"
        f"{_facts(section)}</section>"
    )


def _word(section: Section) -> str:
    judged = judge(section)
    return mark(judged.tone, judged.word)


def _facts(section: Section) -> str:
    if not section.facts:
        return ""
    lines = "".join(f"<dt>{escape(label)}</dt><dd>{text(value)}</dd>" for label, value in section.facts)
    return f'<details class="about"><summary>About this run</summary><dl class="facts">{lines}</dl></details>'


def _groups(section: Section) -> str:
    groups = section.certificate["groups"]
    if not groups:
        return ""
    lines = "".join(
        f'<tr><td class="number">{group["count"]:,}</td><td>{text(packets(group["cause"], section))}</td>'
        f"<td>{escape(', '.join(group['checks']))}</td></tr>"
        for group in groups[:GROUPS_SHOWN]
    )
    if len(groups) > GROUPS_SHOWN:
        rest = groups[GROUPS_SHOWN:]
        lines += (
            f'<tr class="muted"><td class="number">{sum(group["count"] for group in rest):,}</td>'
            f"<td>in {len(rest)} more groups</td><td></td></tr>"
        )
    return (
        '<h3>What lies behind it</h3><div class="scroll" tabindex="0"><table class="groups"><thead><tr><th scope="col" class="number">violations</th>'
        f'<th scope="col">cause</th><th scope="col">of the check</th></tr></thead><tbody>{lines}</tbody></table></div>'
    )


def _diagram(number: int, section: Section) -> str:
    if not _is_drawn(section):
        return '<p class="muted">There are no events to draw.</p>'
    return (
        f'<h3 id="diagram-{number}">Who sent what when</h3><p class="muted shown">{escape(section.shown)}. Each line is a member, '
        f"{_axis(section)}, arrows are packets. Point at one to see what caused it and what it caused.</p>"
        f'<div class="viewer" data-trace="{number}" role="group" aria-labelledby="diagram-{number}"></div>'
    )


def _axis(section: Section) -> str:
    return (
        "time runs to the right" if section.is_timed else "the log has no times, so to the right is its order"
    )


def _compare(sections: Sequence[Section]) -> str:
    """The place for two runs side by side, if there are at least two to draw."""
    drawn = [number for number, section in enumerate(sections) if _is_drawn(section)]
    if len(drawn) < 2:
        return ""
    return (
        '<section class="card" id="compare"><h2>Side by side</h2><p class="muted">Both runs on one scale, and where they first '
        f'differ.</p><div class="compare" data-traces="{" ".join(map(str, drawn))}"></div></section>'
    )


def _verdicts(sections: Sequence[Section]) -> str:
    """The table of checks: a row for each check, a column for each trace."""
    answers = [{check["name"]: check for check in section.certificate["checks"]} for section in sections]
    known = [name for name in CHECKS if any(name in answer for answer in answers)]
    head = "".join(
        f'<th scope="col" class="trace"><a href="#trace-{number}">{text(section.title)}</a></th>'
        for number, section in enumerate(sections)
    )
    lines = [
        f'<tr><th scope="row">{escape(name)}<small>{escape(CHECKS[name].statement)}</small></th>'
        + "".join(
            f"<td>{badge(answer.get(name), section.is_promised(name))}</td>"
            for answer, section in zip(answers, sections, strict=True)
        )
        + "</tr>"
        for name in known
    ]
    overall = "".join(f"<td>{_word(section)}</td>" for section in sections)
    return (
        '<section class="card" id="verdicts"><h2>What was checked</h2><div class="scroll" tabindex="0"><table class="verdicts">'
        f'<thead><tr><th scope="col">check</th>{head}</tr></thead><tbody>{"".join(lines)}</tbody>'
        f'<tfoot><tr><th scope="row">in all</th>{overall}</tr></tfoot></table></div></section>'
    )
