"""The certificates of many runs, by date: which checks failed, and since when.

  inga check run7 --write certificates
  inga trend certificates
  inga trend certificates --group lunch --last 30 --json
  inga trend certificates --page trend.html

DIR has the tables of `inga check --write DIR` and `inga metrics --write DIR`. Exits with 0 if the last run passed, with
1 if it failed, with 3 if a check was left undecided.
"""

import argparse
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from inga.cli.check import EXIT_CODES
from inga.cli.output import print_json, tell
from inga.model.errors import UsageError
from inga.model.text import printable

RUN_SHOWN = 12
"""Characters of a run's identity."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("directory", metavar="DIR", help="the directory given to `inga check --write`")
    add("--group", metavar="G", help="only runs of this group")
    add("--last", type=int, metavar="N", help="only the last N runs")
    add("--page", type=Path, metavar="FILE", help="also write it as one HTML file")


class RunVerdict(NamedTuple):
    """One run, as its certificate says."""

    date: str
    run: str
    group: str
    order: str
    events: int
    verdict: str
    violations: dict[str, int]  # of the checks that failed
    open: list[str]  # checks that were left open

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def run(options: argparse.Namespace) -> int:
    if options.last is not None and options.last < 1:
        raise UsageError(f"--last is at least 1, not {options.last}")
    from inga.cli.report import check_place, write_page
    from inga.pipeline import tables

    if options.page is not None:
        check_place(options.page)
    rows = tables.read(options.directory, "verdicts")
    runs = [
        _summary(date, identity, list(found))
        for (date, identity), found in groupby(rows, key=lambda row: (row["date"], row["run"]))
    ]
    runs = [each for each in runs if options.group in (None, each.group)][-(options.last or 0) :]
    if not runs:
        raise UsageError(f"{options.directory} has no run of the group {options.group!r}")
    if options.page is not None:
        write_page(options.page, _page(runs))
    if options.json:
        print_json({"runs": [each.to_json() for each in runs], "verdict": runs[-1].verdict})
    else:
        tell(*_lines(runs))
    return EXIT_CODES[runs[-1].verdict]


def _summary(date: str, identity: str, rows: list[dict[str, Any]]) -> RunVerdict:
    from inga.certify.verdict import overall

    return RunVerdict(
        date,
        identity,
        rows[0]["group"],
        rows[0]["order"],
        rows[0]["events"],
        overall(row["verdict"] for row in rows),
        {row["check"]: row["violations"] for row in rows if row["verdict"] == "fail"},
        [row["check"] for row in rows if row["verdict"] == "unknown"],
    )


def _lines(runs: list[RunVerdict]) -> list[str]:
    lines = [f"{'date':<10}  {'run':<{RUN_SHOWN}}  {'group':<12} {'order':<10} {'events':>12}  verdict"]
    for each in runs:
        failed = ", ".join(f"{check} {count:,}" for check, count in each.violations.items())
        more = f": {failed}" if failed else f": {', '.join(each.open)} open" if each.open else ""
        name, group = printable(each.run)[:RUN_SHOWN], printable(each.group)
        lines.append(
            f"{each.date:<10}  {name:<{RUN_SHOWN}}  {group:<12} {each.order:<10} {each.events:>12,}  "
            f"{each.verdict}{more}"
        )
    counts = ", ".join(
        f"{sum(each.verdict == verdict for each in runs)} {verdict}"
        for verdict in ("pass", "unknown", "fail")
    )
    return [*lines, "", f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}: {counts}{_since(runs)}"]


def _since(runs: list[RunVerdict]) -> str:
    """Since when it has been as it is."""
    last = runs[-1].verdict
    same = next((at for at, each in enumerate(reversed(runs)) if each.verdict != last), len(runs))
    if len(runs) == 1 or same == len(runs):
        return ""
    return f"; {last} since {runs[-same].date} ({same} {'run' if same == 1 else 'runs'})"


def _page(runs: list[RunVerdict]) -> str:
    from html import escape

    from inga.report.chart import STYLE, line_chart
    from inga.report.page import document

    checks = sorted({check for each in runs for check in each.violations})
    series = {
        check: [(float(at), float(each.violations.get(check, 0))) for at, each in enumerate(runs, 1)]
        for check in checks
    }
    chart = (
        line_chart("Violations by run", series, x="run", y="violations") if len(runs) > 1 and series else ""
    )
    rows = "".join(
        f"<tr><td>{at}</td><td>{each.date}</td><td>{escape(printable(each.run))}</td>"
        f"<td>{escape(printable(each.group))}</td><td>{escape(each.order)}</td><td>{each.events:,}</td>"
        f"<td>{each.verdict}</td><td>{escape(', '.join(each.violations))}</td></tr>"
        for at, each in enumerate(runs, 1)
    )
    head = "".join(
        f"<th>{each}</th>" for each in ("", "date", "run", "group", "order", "events", "verdict", "failed")
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    title = f"<h1>{len(runs)} runs</h1>"
    return document("inga trend", [title, f'<div class="charts">{chart}</div>', table], style=STYLE)
