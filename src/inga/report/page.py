"""One HTML file that needs nothing else: no network, no other file.

What comes from traces, names above all, is never markup: the page's own text is escaped, and the viewer gets
its data as JSON and only ever sets the text of elements. The policy in the head forbids everything from outside.
"""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from inga.certify.checks import CHECKS
from inga.report.section import Section

GROUPS_SHOWN = 8

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def render(sections: Sequence[Section], title: str = "inga report") -> str:
    """The page. Several sections are compared in one table on top."""
    body = [
        f"<header><h1>{_text(title)}</h1><p>What was promised, what was found, and where to look.</p></header>",
        "<main>",
        _verdicts(sections),
        *(_section(number, section) for number, section in enumerate(sections)),
        "</main>",
    ]
    data = [_data(number, section) for number, section in enumerate(sections)]
    return document(title, [*body, *data], script=_asset("viewer.js"))


def document(title: str, body: Sequence[str], *, style: str = "", script: str = "") -> str:
    """A whole page that needs nothing else and may load nothing, in the style of all reports."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_asset('page.css')}{style}</style></head><body>",
            *body,
            *([f"<script>\n{script}</script>"] if script else []),
            "</body></html>\n",
        ]
    )


def _asset(name: str) -> str:
    return files("inga.report").joinpath(name).read_text(encoding="utf-8")


def _text(value: object) -> str:
    """Text of others: escaped, and unable to turn what surrounds it around."""
    return f"<bdi>{escape(str(value))}</bdi>"


def _verdicts(sections: Sequence[Section]) -> str:
    """A line per check, a column per trace."""
    answers = [{check["name"]: check for check in section.certificate["checks"]} for section in sections]
    known = [name for name in CHECKS if any(name in answer for answer in answers)]
    head = "".join(
        f'<th scope="col" class="trace"><a href="#trace-{number}">{_text(section.title)}</a></th>'
        for number, section in enumerate(sections)
    )
    lines = [
        f'<tr><th scope="row">{escape(name)}<small>{escape(CHECKS[name].statement)}</small></th>'
        + "".join(
            f"<td>{_badge(answer.get(name), _is_promised(name, section))}</td>"
            for answer, section in zip(answers, sections, strict=True)
        )
        + "</tr>"
        for name in known
    ]
    overall = "".join(f"<td>{_mark(section.certificate['verdict'])}</td>" for section in sections)
    return (
        '<section class="card" id="verdicts"><h2>Verdicts</h2><div class="scroll"><table class="verdicts">'
        f'<thead><tr><th scope="col">check</th>{head}</tr></thead><tbody>{"".join(lines)}</tbody>'
        f'<tfoot><tr><th scope="row">verdict</th>{overall}</tr></tfoot></table></div></section>'
    )


def _is_promised(check: str, section: Section) -> bool:
    return section.promised is None or check in section.promised


def _badge(check: dict[str, Any] | None, promised: bool) -> str:
    if check is None:
        return '<span class="muted">not asked</span>'
    detail = ""
    if check["violations"]:
        detail = f"<b>{check['violations']:,}</b> violation{'s' if check['violations'] != 1 else ''}"
    elif check["reason"]:
        detail = _text(check["reason"])
    elif check.get("warnings"):
        detail = _text("; ".join(check["warnings"]))
    if not promised:
        detail += (", " if detail else "") + "not promised by this order"
    return _mark(check["verdict"]) + (f' <span class="detail">{detail}</span>' if detail else "")


def _mark(verdict: str) -> str:
    symbol = {"pass": "✓", "fail": "✗", "unknown": "?"}[verdict]
    return f'<span class="mark {verdict}"><i aria-hidden="true">{symbol}</i> {verdict}</span>'


def _section(number: int, section: Section) -> str:
    counts = [
        (label, f"{section.certificate[key]:,}")
        for label, key in (
            ("events", "events"),
            ("messages", "messages"),
            ("deliveries", "deliveries"),
            ("payloads", "payloads"),
            ("processes", "processes"),
        )
    ]
    tiles = "".join(
        f'<div class="tile"><b>{_text(value)}</b><span>{escape(label)}</span></div>'
        for label, value in counts
    )
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{_text(value)}</dd>" for label, value in section.facts)
    return (
        f'<section class="card trace" id="trace-{number}"><h2>{_text(section.title)} '
        f"{_mark(section.certificate['verdict'])}</h2>"
        f'<div class="tiles">{tiles}</div><dl class="facts">{facts}</dl>'
        f"{_groups(section)}{_diagram(number, section)}</section>"
    )


def _groups(section: Section) -> str:
    groups = section.certificate["groups"]
    if not groups:
        return ""
    lines = "".join(
        f'<tr><td class="number">{group["count"]:,}</td><td>{_text(group["cause"])}</td>'
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
        '<h3>Causes</h3><div class="scroll"><table class="groups"><thead><tr><th scope="col">violations</th>'
        f'<th scope="col">cause</th><th scope="col">checks</th></tr></thead><tbody>{lines}</tbody></table></div>'
    )


def _diagram(number: int, section: Section) -> str:
    if not section.rows:
        return '<p class="muted">There are no events to draw.</p>'
    return (
        f'<h3>Space-time diagram</h3><p class="muted shown">{escape(section.shown)}. {_axis(section)}, each '
        "line is a process. Drag to move, turn the wheel or press + and − to zoom, point at a message to see its "
        f'causes.</p><div class="viewer" data-trace="{number}"></div>'
    )


def _axis(section: Section) -> str:
    return "Time runs to the right" if section.is_timed else "The log has no times: to the right is its order"


def _data(number: int, section: Section) -> str:
    content = {
        "names": section.names,
        "events": [
            [row.process, row.pos, row.time, row.step, row.src, row.seq, row.deps, _mask(row.dst), row.note]
            for row in section.rows
        ],
        "timed": section.is_timed,
        "witnesses": [witness for check in section.certificate["checks"] for witness in check["witnesses"]],
    }
    return f'<script type="application/json" id="data-{number}">{_safe_json(content)}</script>'


def _mask(dst: int | None) -> str | None:
    """A bit set in hexadecimal, since numbers of JavaScript have room for 53 bits only."""
    return None if dst is None else hex(dst)


def _safe_json(content: dict[str, Any]) -> str:
    """JSON in which nothing can end the element that it is in."""
    text = json.dumps(content, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
