"""One HTML file about one or several traces: verdicts, what happened, how long it took, and a space-time diagram.

  inga report run7
  inga report fifo-run causal-run -o compared.html --checks all

The file is self-contained. Several traces are compared, and the first difference of two is marked. The exit code is that of
`inga check`. docs/report.md explains the report.
"""

import argparse
import os
import shlex
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from inga.cli.check import EXIT_CODES, add_check_options, chosen_master, named_checks, watched
from inga.cli.output import print_json, tell
from inga.model.errors import UsageError
from inga.report.page import render
from inga.report.section import Section
from inga.trace.directory import whole_file
from inga.trace.manifest import LINES
from inga.trace.reader import local_path, read_manifest

EVENTS_MAX = 1 << 20
"""In a diagram: a page of some ten megabytes."""
MEMBERS_NAMED = 50
LETTERS_NAMED = 100

if TYPE_CHECKING:
    from inga.pipeline.jobs import Tables


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="directories, or anything Spark can read")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="default: report.html in the first trace"
    )
    parser.add_argument(
        "--events",
        type=int,
        default=EVENTS_MAX,
        metavar="E",
        help=f"draw at most E events in the diagram (default {EVENTS_MAX})",
    )
    add_check_options(parser)


def run(options: argparse.Namespace) -> int:
    master = chosen_master(options)
    out = options.out or place_in(options.traces[0])
    check_place(out)
    if options.events < 1:
        raise UsageError(f"--events is at least 1, not {options.events}")
    sections = make_sections(options.traces, options, master)
    write(out, sections, made(options))
    verdicts = {section.certificate["verdict"] for section in sections}
    verdict = next(each for each in ("fail", "unknown", "pass") if each in verdicts)
    if options.json:
        traces = [{"trace": path, **s.certificate} for path, s in zip(options.traces, sections, strict=True)]
        print_json({"report": str(out), "verdict": verdict, "traces": traces})
    else:
        for section in sections:
            answers = ", ".join(f"{each['name']} {each['verdict']}" for each in section.certificate["checks"])
            tell(f"{section.title}: {answers}")
        tell(f"report: {out}")
    return EXIT_CODES[verdict]


def place_in(trace: str) -> Path:
    """Where a page goes if nobody says: into the trace, if it is one and is here."""
    try:
        directory = local_path(trace)
    except UsageError:
        raise UsageError(f"{trace} is not on this machine: say where to write the report, -o FILE") from None
    read_manifest(directory)
    return directory / "report.html"


def check_place(out: Path) -> None:
    """Refuse a place where no page can be written, before the work is done."""
    if not out.parent.is_dir():
        raise UsageError(f"{out.parent} is not a directory, so the report cannot be written there")
    if out.is_dir():
        raise UsageError(f"{out} is a directory, so the report cannot be written there")


def make_sections(paths: list[str], options: argparse.Namespace, master: str | None) -> list[Section]:
    """Certify the traces one after the other, in one Spark session if there is one."""
    from inga.pipeline.jobs import report_tables
    from inga.pipeline.session import using

    checks = named_checks(options)
    asked = {"witnesses": options.witnesses, "events_max": options.events}
    with watched(options, master) as progress:
        if len(paths) == 1:  # what is wrong with the only trace is said before Spark starts
            found = [report_tables(paths[0], checks, master=master, progress=progress, **asked)]
        else:
            with using(None, master) as session:
                found = [
                    report_tables(path, checks, session=session, master=master, progress=progress, **asked)
                    for path in paths
                ]
    return [describe(path, tables) for path, tables in zip(paths, found, strict=True)]


def describe(path: str, tables: "Tables") -> Section:
    manifest = tables.trace.manifest
    names = [process.name for process in tables.trace.processes]
    facts = [
        ("trace", path),
        ("group", manifest.group),
        ("order", manifest.order),
        ("source", manifest.source + (f", seed {manifest.seed}" if manifest.seed is not None else "")),
        ("claims", ", ".join(manifest.guarantees) or "nothing"),
        (
            "receipt",
            f"{manifest.receipt}: the step from which on a message is a cause of what its receiver sends",
        ),
        ("run", manifest.run),
        (
            "members",
            ", ".join(name[:LETTERS_NAMED] for name in names[:MEMBERS_NAMED])
            + (" …" if len(names) > MEMBERS_NAMED else ""),
        ),
    ]
    place = os.path.basename(path.rstrip("/")) or path
    return Section(
        title=place if place == manifest.order else f"{place} (order {manifest.order})",
        names=names,
        facts=facts,
        certificate=tables.certificate.to_json(),
        shown=tables.shown,
        promised=frozenset(manifest.guarantees),
        drawing=tables.drawing,
        order=manifest.order,
        measured=tables.measured,
        reason=tables.reason,
        is_timed=manifest.options.get("times") != LINES,
        receipt=manifest.receipt,
    )


def made(options: argparse.Namespace) -> str:
    """When, with what and how a page was made."""
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z").strip()
    return f"Made on {now} by inga {version('inga')}: {shlex.join(['inga', *options.words])}"


def write(out: Path, sections: list[Section], made: str) -> None:
    write_page(out, render(sections, made=made))


def write_page(out: Path, page: str) -> None:
    """Replace the file as a whole."""
    try:
        with whole_file(out) as hidden:
            hidden.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error
