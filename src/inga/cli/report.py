"""One HTML file about one or several traces: verdicts, counts, a space-time diagram.

  inga report run7
  inga report fifo-run causal-run -o compared.html --checks all

The file needs nothing else and no network. Ends as `inga check` would.
"""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from inga.cli.check import EXIT_CODES, add_check_options, chosen_master, named_checks, watched
from inga.cli.output import print_json, tell
from inga.model.errors import UsageError
from inga.report.page import render
from inga.report.section import Section
from inga.trace.directory import whole_file
from inga.trace.manifest import LINES

if TYPE_CHECKING:
    from inga.pipeline.jobs import Tables


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="directories, or anything Spark can read")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="default: report.html in the first trace"
    )
    add_check_options(parser)


def run(options: argparse.Namespace) -> int:
    master = chosen_master(options)
    out = options.out or Path(options.traces[0]) / "report.html"
    if not out.parent.is_dir():
        raise UsageError(f"{out.parent} is not a directory, so the report cannot be written there")
    sections = make_sections(options.traces, options, master)
    write(out, sections)
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


def make_sections(paths: list[str], options: argparse.Namespace, master: str | None) -> list[Section]:
    """Certify the traces one after the other, in one Spark session if there is one."""
    from inga.pipeline.jobs import report_tables
    from inga.pipeline.session import using

    checks = named_checks(options)
    asked = {"witnesses": options.witnesses}
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
    facts = [
        ("trace", path),
        ("group", manifest.group),
        ("order", manifest.order),
        ("source", manifest.source + (f", seed {manifest.seed}" if manifest.seed is not None else "")),
        ("claims", ", ".join(manifest.guarantees) or "nothing"),
        ("receipt", manifest.receipt),
        ("run", manifest.run),
        ("members", ", ".join(manifest.processes)),
    ]
    title = f"{manifest.order}: {os.path.basename(path.rstrip('/')) or path}"
    certificate, promised = tables.certificate.to_json(), frozenset(manifest.guarantees)
    return Section(
        title, manifest.processes, facts, certificate, tables.rows, tables.shown, promised,
        is_timed=manifest.options.get("times") != LINES,
    )  # fmt: skip


def write(out: Path, sections: list[Section]) -> None:
    """Replace the file as a whole."""
    try:
        with whole_file(out) as hidden:
            hidden.write_text(render(sections), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error
