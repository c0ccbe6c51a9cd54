"""The evaluation of CO for people: as text, and as one page with its figures."""

from collections.abc import Sequence
from html import escape
from typing import Any

from inga.lab.experiments import Claim, Table
from inga.report.chart import STYLE, line_chart
from inga.report.page import document

TITLE = "Causal broadcast by sequence numbers, measured"

_CAPTIONS = {
    "stages": "steady rounds: everybody sends when it has heard from all; one-way delay R everywhere. Time after "
    "acceptance, in units of R. Of two members with eager self-knowledge, the second confirms as it accepts",
    "buffer": "windows always full, confirmations after R/2: messages of others that a member receives between "
    "accepting and acknowledging a message, at most",
    "cost": "everybody sends 512 bytes every 100 ms. Processing: CPU of the protocol for one message at one member. "
    "Delay: from send to delivery as acknowledged, between processes over loopback multicast; confirmations wait 5 ms "
    "twice on the way. Process: CPU of everything, sockets and interpreter included",
    "header": "mean bytes of a data packet besides its message, of 128 rounds; the paper's header is 20 + 8n",
}


def describe(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """For a person at a terminal."""
    parts = [f"{name}: {_CAPTIONS[name]}\n{_plain(table)}\n" for name, table in tables.items()]
    verdicts = [f"{each.verdict:>14}  {each.statement}\n{'':14}  {each.measured}" for each in claims]
    return "\n".join([*parts, *verdicts])


def render(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """One page that needs nothing else."""
    marks = {"holds": "pass", "roughly": "unknown", "not reproduced": "fail"}
    rows = "".join(
        f"<tr><td>{escape(c.statement)}</td><td>{escape(c.published)}</td><td>{escape(c.measured)}</td>"
        f'<td><span class="mark {marks[c.verdict]}">{escape(c.verdict)}</span></td></tr>'
        for c in claims
    )
    figures = "".join(
        f"<figure>{chart}<figcaption>{escape(caption)}</figcaption></figure>"
        for chart, caption in _figures(tables)
    )
    body = [
        f"<header><h1>{escape(TITLE)}</h1><p>A message carries the number that its sender expects next from every "
        "member. What the paper derives from that, and what this program measures of its own implementation.</p></header>",
        "<main>",
        '<section class="card"><h2>What the paper claims</h2><div class="scroll"><table><thead><tr><th>claim</th>'
        f"<th>published</th><th>measured</th><th>verdict</th></tr></thead><tbody>{rows}</tbody></table></div></section>",
        f'<section class="card"><h2>Figures</h2><div class="charts">{figures}</div></section>',
        *(
            f'<section class="card"><h2>{escape(name)}</h2><p class="muted">{escape(_CAPTIONS[name])}.</p>'
            f"{_html_table(table)}</section>"
            for name, table in tables.items()
        ),
        "</main>",
    ]
    return document(TITLE, body, style=STYLE)


def _figures(tables: dict[str, Table]) -> list[tuple[str, str]]:
    cost, header, buffer = tables["cost"].rows, tables["header"].rows, tables["buffer"].rows
    sent = {
        "processing": [(row[0], row[1]) for row in cost],
        "linear in n": [(row[0], cost[0][1] * row[0] / cost[0][0]) for row in cost],
    }
    late = {"mean": [(row[0], row[2]) for row in cost], "median": [(row[0], row[3]) for row in cost]}
    heads = {
        who: [(row[0], row[2]) for row in header if row[1] == who and row[0] <= 16]
        for who in ("all talk", "two talk")
    }
    heads["20 + 8n"] = [(row[0], row[3]) for row in header if row[1] == "all talk" and row[0] <= 16]
    kept = {
        f"W = {window}": [(row[0], row[3]) for row in buffer if row[1] == window and row[2] == "equal"]
        for window in sorted({row[1] for row in buffer})
    }
    kept["2nW, W = 4"] = [(row[0], row[4]) for row in buffer if row[1] == 4 and row[2] == "equal"]
    return [
        (
            line_chart("processing time", sent, x="members", y="us a message"),
            "Processing time per message and member",
        ),
        (line_chart("delay", late, x="members", y="ms"), "Delay between applications, real processes"),
        (line_chart("header", heads, x="members", y="bytes"), "Header of a data packet, against the paper's"),
        (
            line_chart("buffer", kept, x="members", y="messages"),
            "Received between acceptance and acknowledgement",
        ),
    ]


def _plain(table: Table) -> str:
    lines = ["".join(f"{name:>16}" for name in table.columns)]
    lines += ["".join(f"{_show(value):>16}" for value in row) for row in table.rows]
    return "\n".join(lines)


def _html_table(table: Table) -> str:
    head = "".join(f'<th class="number">{escape(column)}</th>' for column in table.columns)
    rows = "".join(
        "<tr>" + "".join(f'<td class="number">{escape(_show(value))}</td>' for value in row) + "</tr>"
        for row in table.rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
