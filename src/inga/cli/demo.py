"""Run live groups under several orders, certify their traces, and show the result in one HTML report.

  inga demo
  inga demo --members 5 --messages 1000 --loss 0.05 --out somewhere --no-open

Member processes exchange messages over loopback multicast, with injected loss and delay, under one order after
the other. Each run writes a trace, Spark certifies the traces, and one HTML report shows what happened.
Exits with 0 if every order kept its guarantees.
"""

import argparse
import os
import sys
import webbrowser
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from inga.cli.check import add_engine_options, chosen_master, watched
from inga.cli.output import ProgressLine, print_json, tell
from inga.cli.report import describe, made, write
from inga.model.errors import UsageError
from inga.runs.live import run as run_live
from inga.trial.result import Result
from inga.trial.trial import VIA, Trial

if TYPE_CHECKING:
    from inga.certify.verdict import Certificate
    from inga.pipeline.jobs import Tables

ORDERS = ("fifo", "causal")
SHOWN = ("integrity", "complete", "views", "fifo", "stamps", "causal")

DELAY_MAX = 0.001
"""Seconds by which a copy may be late: enough for an answer to overtake its question."""

RATE = 2000.0
"""Sends per second and member: what was said is heard before the next is said, so that nearly everything is an answer.
As fast as possible, a short run would be over before anybody had answered anything."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", help="where traces and report go (default inga-demo/TIME)")
    add("--no-open", action="store_true", help="do not open the report in a browser")
    add("--members", type=int, default=4, metavar="N", help="size of the group (default 4)")
    add("--messages", type=int, default=4000, metavar="M", help="sends per member (default 4000)")
    add("--loss", type=float, default=0.02, metavar="P", help="share of packet copies lost (default 0.02)")
    add("--seed", type=int, default=1, metavar="S", help="seed of the workload and the faults (default 1)")
    add("--via", default=VIA, metavar="V", help="loopback multicast (default), unicast, or tcp")
    add_engine_options(parser)


def run(options: argparse.Namespace) -> int:
    master = chosen_master(options)
    out = options.out or Path("inga-demo") / datetime.now().strftime("%Y%m%d-%H%M%S")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} exists already; the demo writes to a new directory")
    out.mkdir(parents=True, exist_ok=True)
    runs = {order: _talk(order, out / order, options) for order in ORDERS}
    tables = _certify([out / order for order in ORDERS], options, master)
    report = out / "report.html"
    sections = [describe(str(out / order), each) for order, each in zip(ORDERS, tables, strict=True)]
    write(report, sections, made(options))
    kept = all(_kept(each) for each in tables) and not any(result.violations for result in runs.values())
    if options.json:
        content = {each.trace.manifest.order: each.certificate.to_json() for each in tables}
        print_json({"kept": kept, "orders": content, "report": str(report)})
    else:
        tell(*_verdicts(tables), "", f"report: {report}")
    if not options.no_open and not options.json and _has_screen():
        webbrowser.open(report.resolve().as_uri())
    return 0 if kept else 1


def _talk(order: str, trace: Path, options: argparse.Namespace) -> Result:
    """One live run under one order, with the same workload and the same kind of faults."""
    trial = Trial(
        order,
        options.members,
        options.messages,
        size=1000,
        loss=options.loss,
        dup=0.01,
        reorder=0.05,
        delay=(0.0, DELAY_MAX),
        rate=RATE,
        seed=options.seed,
        via=options.via,
    )
    total = trial.members * trial.messages * (trial.members - 1)
    _say(options, f"{order}: {trial.members} members send {trial.messages} messages each")
    progress = ProgressLine(f"{order}: delivered", total, quiet=options.quiet)
    result = run_live(trial, trace, progress=progress)
    progress.end()
    pdus = result.pdus
    _say(
        options,
        f"{order}: {result.delivered:,} deliveries in {result.seconds:.1f} s, {pdus['data']:,} packets, "
        f"{pdus['repair']:,} repairs",
    )
    return result


def _certify(traces: list[Path], options: argparse.Namespace, master: str | None) -> "list[Tables]":
    from inga.pipeline.jobs import report_tables
    from inga.pipeline.session import using

    with watched(options, master) as progress, using(None, master) as session:
        return [
            report_tables(str(trace), SHOWN, session=session, master=master, progress=progress)
            for trace in traces
        ]


def _kept(tables: "Tables") -> bool:
    """Whether every check that the order claims passed."""
    promised = tables.trace.manifest.guarantees
    return all(check.verdict == "pass" for check in tables.certificate.checks if check.name in promised)


def _verdicts(tables: "list[Tables]") -> list[str]:
    """A line per check, a column per order; what an order does not promise stands in brackets."""
    orders = [each.trace.manifest.order for each in tables]
    lines = ["", f"{'':<12}" + "".join(f"{order:<24}" for order in orders)]
    for name in SHOWN:
        cells = [_cell(name, each) for each in tables]
        lines.append(f"{name:<12}" + "".join(f"{cell:<24}" for cell in cells).rstrip())
    lines += ["", "in brackets: what the order does not promise"]
    lines += [f"for example: {text}" for text in map(_example, (t.certificate for t in tables)) if text]
    return lines


def _cell(name: str, tables: "Tables") -> str:
    check = next(check for check in tables.certificate.checks if check.name == name)
    text = f"fails {check.violations:,} times" if check.verdict == "fail" else check.verdict
    return text if name in tables.trace.manifest.guarantees else f"({text})"


def _example(certificate: "Certificate") -> str:
    """The first violation of causality, in words."""
    return next(
        (w.text for check in certificate.checks if check.name == "causal" for w in check.witnesses), ""
    )


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        tell(text, file=sys.stderr)


def _has_screen() -> bool:
    return sys.stdout.isatty() and (sys.platform == "darwin" or bool(os.environ.get("DISPLAY")))
