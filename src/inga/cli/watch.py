"""Certify a trace while it is being written.

  inga watch run7
  inga watch run7 --until-complete --checkpoint run7.watch
  inga watch run7 --checks causal --poll 200 --json

Looks at the segments that are new, again and again. A violation is shown, and ends it with 1, seconds after the
segment appeared that holds it. When the trace is complete, it ends with the verdict of inga check. With
--checkpoint, what was read is not read again after a restart, not even after a kill.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from inga.cli.check import EXIT_CODES, add_check_options, chosen_master, named_checks, table, watched
from inga.cli.output import print_json, tell
from inga.model.errors import UsageError

if TYPE_CHECKING:
    from inga.certify.verdict import Certificate


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("trace", metavar="TRACE", help="a directory, or anything Spark can read")
    add_check_options(parser)
    add("--until-complete", action="store_true", help="go on after a violation, and judge the whole trace")
    add("--poll", type=float, default=1000, metavar="T", help="look every T ms (default 1000)")
    add("--checkpoint", metavar="DIR", help="remember there what was read, for a restart")


def run(options: argparse.Namespace) -> int:
    master = chosen_master(options)
    from inga.pipeline.watching import watch_trace

    if not options.poll > 0:
        raise UsageError("--poll is above 0")
    checks = named_checks(options)
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
            progress=progress,
        )
    if options.json:
        print_json(certificate.to_json())
    else:
        tell(*table(certificate))
    return EXIT_CODES[certificate.verdict]


def _silent(certificate: "Certificate") -> None:
    pass


def _tell(certificate: "Certificate") -> None:
    """A line for every look that found something new."""
    violations = sum(check.violations for check in certificate.checks)
    what = f"{violations:,} violations" if violations else "no violation"
    tell(f"{certificate.events:,} events: {what}", file=sys.stderr)
    for check in certificate.checks:
        for witness in check.witnesses[:1]:
            tell(f"  {check.name}: {witness.text}", file=sys.stderr)
