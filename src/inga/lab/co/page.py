"""The evaluation of CO for people: as text, and as one page with figures."""

from collections.abc import Sequence

from inga.lab import evaluation
from inga.lab.evaluation import cell_text
from inga.lab.experiments import Claim, Table
from inga.lab.papers.sources import source_of
from inga.report.chart import line_chart

TITLE = "Causal broadcast by sequence numbers, measured"

_CAPTIONS = {
    "stages": "steady rounds: everybody sends when it has heard from all; one-way delay R everywhere. Time after "
    "acceptance, in units of R. Of two members with eager self-knowledge, the second confirms as it accepts",
    "buffer": "windows always full, confirmations after R/2: messages of others that a member receives between "
    "accepting and acknowledging a message, at most",
    "cost": "everybody sends 512 bytes every 100 ms. Processing: CPU of the protocol for one message at one member. "
    "Delay: from send to delivery as acknowledged, between processes over loopback multicast; confirmations wait 5 ms "
    "twice on the way. Process: CPU of everything, sockets and interpreter included",
    "header": "mean bytes of a data packet besides its message, of 64 rounds; the paper's header is 20 + 8n",
    "theorems": "pairs of messages of random runs under loss; those whose precedence the numbers tell wrongly; those whose vectors reveal "
    "that the later one's sender lacked something, and wrongly so; messages whose sender did",
    "sending": "packets for each message, confirmations included, and units of R from sending until others have acknowledged it, by the rule "
    "by which confirmations leave; one member talks now and then, or all do all the time",
    "establishment": "a group of four is opened, nearly a third of all copies being lost; when members begin to send: when all have said that "
    "they have heard all, or when they have heard all themselves",
    "services": "runs in which a sender's order, the one order, or causality is broken somewhere, and in which an answer came before its "
    "question at all common destinations",
}


def describe(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """Return the evaluation as text for a terminal."""
    parts = [f"{name}: {_CAPTIONS[name]}\n{_plain(table)}\n" for name, table in tables.items()]
    return "\n".join([*parts, *evaluation.verdicts(claims)])


def render(tables: dict[str, Table], claims: Sequence[Claim]) -> str:
    """Return the page, which needs no other files."""
    lead = (
        "A message carries the number that its sender expects next from every "
        "member. What the paper derives from that, and what this program measures of its own implementation."
    )
    return evaluation.page(TITLE, lead, claims, _figures(tables), tables, _CAPTIONS, source=source_of("co"))


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
    lines += ["".join(f"{cell_text(value):>16}" for value in row) for row in table.rows]
    return "\n".join(lines)
