"""A log of another system as a trace, for `inga check`, `inga metrics` and the others.

  inga import shiviz chord.log chord
  inga import shiviz app.log app --regex '(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})'
  inga import shiviz runs.log runs --executions '^=== (?<trace>.*) ===$'
  inga import shiviz akka.log akka --send 'Broadcast\\((?<message>.*)\\)' --deliver 'Deliver of (?<message>\\S+)'
  inga import govector all.log run7
  inga import tracechecker trace_output.log run7
  inga import otel spans.json run7
  inga import shiviz logs/ run7
  kubectl logs app | inga import shiviz - run7

FILE may be compressed by gzip, a directory, of which all files are read by name, or - for standard input. OUT appears when
it is whole; several executions become directories below it. Needs no Spark.
"""

import argparse
from dataclasses import asdict
from time import monotonic

from inga.certify.checks import check_names
from inga.cli.output import ProgressLine, listed, print_json, tell
from inga.trace.importers import DEFAULT, IMPORTERS, Imported, Roles, import_log, takers


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = listed("formats", {each.name: each.reads for each in IMPORTERS.values()})
    add = parser.add_argument
    add("format", metavar="FORMAT", choices=IMPORTERS, help="one of those below")
    add("file", metavar="FILE", help="the log")
    add("out", metavar="OUT", help="the trace: a directory that does not exist yet")
    default = DEFAULT.replace("%", "%%")
    add(
        "--regex",
        metavar="R",
        help=f"{takers('regex')}: one event, in the syntax of JavaScript or Python (default {default})",
    )
    add(
        "--executions",
        metavar="R",
        help=f"{takers('executions')}: what separates executions; each becomes a trace",
    )
    add(
        "--trust-header",
        action="store_true",
        help=f"{takers('trust')}: use the expressions that FILE begins with; a malicious one can run for hours",
    )
    add(
        "--noise",
        action="store_true",
        help=f"{takers('noise')}: there may be more lines that are no events than events",
    )
    texts = f"{takers('roles')}: texts of events"
    add("--send", metavar="R", help=f"{texts} that send a (?<message>...) to all others")
    add("--deliver", metavar="R", help=f"{texts} that deliver a (?<message>...)")
    add("--crash", metavar="R", help=f"{texts} with which a host crashes")
    add("--claims", metavar="A,B", help="guarantees to claim beside those that the format allows")
    add("--encoding", default="utf-8", metavar="E", help="of FILE (default utf-8)")


def run(options: argparse.Namespace) -> int:
    claims = options.claims.split(",") if options.claims else []
    check_names(claims)
    started = monotonic()
    progress = ProgressLine("events read", None, quiet=options.quiet)
    try:
        found = import_log(
            options.format,
            options.file,
            options.out,
            regex=options.regex,
            executions=options.executions,
            trust=options.trust_header,
            roles=Roles(options.send, options.deliver, options.crash),
            claims=claims,
            encoding=options.encoding,
            noise=options.noise,
            progress=progress,
        )
    finally:
        progress.end()
    seconds = monotonic() - started
    if options.json:
        print_json({"format": options.format, "file": options.file, **asdict(found), "seconds": seconds})
    else:
        tell(*_sentences(options, found, seconds))
    return 0


def _sentences(options: argparse.Namespace, found: Imported, seconds: float) -> list[str]:
    lines = [f"{found.events:,} events of {found.processes} processes in {options.out} ({seconds:.1f} s)"]
    if len(found.traces) > 1:
        lines.append(f"{len(found.traces)} executions: {found.traces[0]} to {found.traces[-1]}")
    if found.messages:
        lines.append(f"{found.messages:,} messages, {found.deliveries:,} deliveries")
    if found.unmatched:
        lines.append(f"{found.unmatched:,} deliveries are of messages that nobody sent; they are events only")
    if found.skipped:
        lines.append(f"{found.skipped:,} lines belong to no event; the first is {found.skipped_first}")
    return lines
