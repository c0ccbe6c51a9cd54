"""Certify a trace while it is being written.

  inga watch run7
  inga watch run7 --until-complete --checkpoint run7.watch
  inga watch run7 --checks causal --poll 200 --json
  inga watch run7 --until-complete --checkpoint run7.watch --webhook https://example.org/hook
  inga watch run7 --until-complete --report run7.html

Checks new segments of the trace as they appear. A violation is shown seconds after the segment that contains it was written,
and ends the command with exit code 1. When the trace is complete, it ends with the verdict of inga check. With
--checkpoint it does not read anything twice after a restart, even after a kill. With --until-complete it goes on
after violations, and reports each new one once: on standard error, and to --webhook as JSON.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from inga.cli.check import EXIT_CODES, add_check_options, chosen_master, named_checks, table, watched
from inga.cli.output import print_json, tell
from inga.cli.report import check_place, describe, made, write
from inga.cli.webhook import check_url, post
from inga.model.errors import UsageError

if TYPE_CHECKING:
    from inga.pipeline.remembering import NewViolations
    from inga.pipeline.watching import Looked


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("trace", metavar="TRACE", help="a directory, or anything Spark can read")
    add_check_options(parser)
    add("--until-complete", action="store_true", help="go on after a violation, and check the whole trace")
    add(
        "--poll",
        type=float,
        default=1000,
        metavar="T",
        help="look for new segments every T ms (default 1000)",
    )
    add("--checkpoint", metavar="DIR", help="keep the progress in DIR, to go on after a restart")
    add("--webhook", metavar="URL", help="post every new violation to URL as JSON")
    add(
        "--report",
        type=Path,
        metavar="FILE",
        help="at the end, write an HTML report about the trace so far, as inga report does",
    )


def run(options: argparse.Namespace) -> int:
    master = chosen_master(options)
    from inga.pipeline.watching import watch_trace

    if not options.poll > 0:
        raise UsageError(f"--poll is a number of milliseconds above 0, not {options.poll:g}")
    checks = named_checks(options)
    if options.webhook is not None:
        check_url(options.webhook)
    if options.report is not None:
        check_place(options.report)
    with watched(options, master) as progress:
        certificate = watch_trace(
            options.trace,
            checks,
            until_complete=options.until_complete,
            poll=options.poll / 1000,
            checkpoint=options.checkpoint,
            master=master,
            witnesses=options.witnesses,
            tell=_silent if options.quiet else _tell,
            announce=partial(_announce, options),
            progress=progress,
        )
    if options.report is not None:
        from inga.pipeline.jobs import report_tables

        tables = report_tables(options.trace, checks, master=master, witnesses=options.witnesses)
        write(options.report, [describe(options.trace, tables)], made(options))
    if options.json:
        print_json(certificate.to_json())
    else:
        tell(*table(certificate))
    return EXIT_CODES[certificate.verdict]


def _silent(looked: "Looked") -> None:
    pass


def _tell(looked: "Looked") -> None:
    """A line for every look that found something new."""
    violations = sum(check.violations for check in looked.certificate.checks)
    what = f"{violations:,} violations" if violations else "no violation"
    behind = "" if looked.behind is None else f", {looked.behind:.1f} s behind"
    tell(f"{looked.certificate.events:,} events: {what}{behind}", file=sys.stderr)


def _announce(options: argparse.Namespace, notice: "NewViolations") -> bool:
    """A line for every new violation, also to those who want to hear nothing else; whether all who should hear it did."""
    if options.webhook is not None:
        trouble = post(options.webhook, notice.to_json())
        if trouble:
            tell(
                f"{options.webhook} could not be told of {notice.name}, and is told again: {trouble}",
                file=sys.stderr,
            )
            return False
    new = notice.total - notice.since
    tell(f"{notice.check}: {new:,} new violations, {notice.total:,} in all", file=sys.stderr)
    for witness in notice.examples:
        tell(f"  {notice.check}: {witness.text}", file=sys.stderr)
    return True
