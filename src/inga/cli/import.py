"""Convert the log of another system to a trace, for `inga check`, `inga metrics` and the other commands.

  inga import shiviz chord.log chord
  inga import shiviz app.log app --regex '(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})'
  inga import shiviz runs.log runs --executions '^=== (?<trace>.*) ===$'
  inga import shiviz akka.log akka --send 'Broadcast\\((?<message>.*)\\)' --deliver 'Deliver of (?<message>\\S+)'
  inga import govector all.log run7
  inga import tracechecker trace_output.log run7
  inga import table orders.csv run7 --map process=service kind=op message=id time=at
  inga import table orders.csv --try --map process=service kind=op message=id time=at
  inga import otel spans.json run7
  inga import shiviz logs/ run7
  kubectl logs app | inga import shiviz - run7

FILE is a file, also compressed by gzip, a directory, whose files are all read in the order of their names, or - for standard input. OUT appears only
when it is complete; several executions become directories below it. --try shows what the beginning of FILE contains and writes
nothing. Needs no Spark.
"""

import argparse
from dataclasses import asdict
from time import monotonic

from inga.certify.checks import check_names
from inga.cli.output import ProgressLine, counted, listed, print_json, tell
from inga.model.errors import UsageError
from inga.trace.importers import DEFAULT, IMPORTERS, Imported, Roles, TableColumns, import_log, takers
from inga.trace.importers.table import FIELDS, KINDS


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = listed("formats", {each.name: each.reads for each in IMPORTERS.values()})
    add = parser.add_argument
    add("format", metavar="FORMAT", choices=IMPORTERS, help="a format from the list below")
    add("file", metavar="FILE", help="the log")
    add("out", metavar="OUT", nargs="?", help="the trace: a directory that does not exist yet")
    add(
        "--try",
        action="store_true",
        dest="only_try",
        help="show what the beginning of FILE contains, write nothing",
    )
    default = DEFAULT.replace("%", "%%")
    add(
        "--regex",
        metavar="R",
        help=f"{takers('regex')}: expression for one event, in the syntax of JavaScript or Python (default {default})",
    )
    add(
        "--executions",
        metavar="R",
        help=f"{takers('executions')}: expression that separates executions; each becomes a trace",
    )
    add(
        "--trust-header",
        action="store_true",
        help=f"{takers('trust')}: use the expressions that FILE begins with; a malicious one can run for hours",
    )
    add(
        "--noise",
        action="store_true",
        help=f"{takers('noise')}: accept a log in which most lines are not events",
    )
    texts = f"{takers('roles')}: texts of events"
    add("--send", metavar="R", help=f"{texts} that send a (?<message>...) to all others")
    add("--deliver", metavar="R", help=f"{texts} that deliver a (?<message>...)")
    add("--crash", metavar="R", help=f"{texts} with which a host crashes")
    table = f"{takers('columns')}: "
    add(
        "--map",
        nargs="+",
        action="extend",
        default=[],
        metavar="F=COLUMN",
        help=f"{table}which column is what; F is one of {', '.join(FIELDS)}",
    )
    add(
        "--kinds",
        nargs="+",
        action="extend",
        default=[],
        metavar="K=A,B",
        help=f"{table}what the table calls the kinds {', '.join(KINDS)}",
    )
    add("--zone", metavar="Z", help=f"{table}the time zone of times without one (default UTC)")
    add(
        "--time-format",
        metavar="F",
        help=f"{table}format of times, as for strptime (default: ISO 8601, numbers)",
    )
    add(
        "--bad",
        type=int,
        default=0,
        metavar="N",
        help="skip up to N lines that cannot be parsed (default 0)",
    )
    add("--claims", metavar="A,B", help="guarantees to claim besides those that the format implies")
    add("--disclaim", metavar="A,B", help="guarantees of the format not to claim")
    add("--encoding", default="utf-8", metavar="E", help="encoding of FILE (default utf-8)")


def run(options: argparse.Namespace) -> int:
    claims, disclaims = (words.split(",") if words else [] for words in (options.claims, options.disclaim))
    check_names([*claims, *disclaims])
    if (options.out is None) != options.only_try:
        raise UsageError("name a directory to make, OUT, or --try to write nothing, not both")
    if options.bad < 0:
        raise UsageError(f"--bad is a number of lines from 0 on, not {options.bad}")
    started = monotonic()
    progress = ProgressLine("events read and written", None, quiet=options.quiet)
    try:
        found = import_log(
            options.format,
            options.file,
            options.out,
            regex=options.regex,
            executions=options.executions,
            trust=options.trust_header,
            roles=Roles(options.send, options.deliver, options.crash),
            columns=_columns(options),
            claims=claims,
            disclaims=disclaims,
            bad=options.bad,
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
    where = "the beginning" if options.only_try else options.out
    events, processes = counted(found.events, "event"), counted(found.processes, "process")
    lines = [f"{events} of {processes} in {where} ({seconds:.1f} s)"]
    if len(found.traces) > 1:
        lines.append(f"{len(found.traces)} executions: {found.traces[0]} to {found.traces[-1]}")
    if found.messages:
        lines.append(f"{counted(found.messages, 'message')}, {counted(found.deliveries, 'delivery')}")
    if found.unmatched:
        deliveries = "1 delivery is of a message that nobody sent; it is an event only"
        if found.unmatched > 1:
            deliveries = (
                f"{found.unmatched:,} deliveries are of messages that nobody sent; they are events only"
            )
        lines.append(deliveries)
    if found.skipped:
        shown = found.skipped_first if options.only_try else found.skipped_first[:1]
        lines.append(
            f"{counted(found.skipped, 'line')} {_are(found.skipped, 'belongs', 'belong')} to no event; the first is {shown[0]}"
        )
        lines += [f"  {line}" for line in shown[1:]]
    if found.repeated:
        lines.append(f"{found.repeated:,} spans or sends are there a second time, and count once")
    if found.shared:
        messages = counted(found.shared, "message")
        lines.append(
            f"{messages} {_are(found.shared, 'was', 'were')} sent by several processes, of which the first counts: if they call "
            "different messages the same, name who sent it (--map sender=COLUMN)"
        )
    if found.torn:
        lines.append(
            f"{counted(found.torn, 'line')} at the end of a file {_are(found.torn, 'was', 'were')} not written to the end, and "
            f"{_are(found.torn)} left out"
        )
    if found.bad:
        lines.append(
            f"{counted(found.bad, 'line')} cannot be read, and {_are(found.bad)} left out, so nothing that is checked can pass:"
        )
    if found.bad or options.only_try:
        lines += [f"  {error}" for error in found.bad_first]
    if found.sample:
        lines += ["", *found.sample]
    return lines


def _are(number: int, one: str = "is", several: str = "are") -> str:
    return one if number == 1 else several


def _columns(options: argparse.Namespace) -> TableColumns:
    names = {name: tuple(words.split(",")) for name, words in _pairs("--kinds", options.kinds).items()}
    return TableColumns(_pairs("--map", options.map), names, options.zone or "UTC", options.time_format)


def _pairs(option: str, words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name or not value:
            raise UsageError(f"{option} takes words with = between name and value, not {name or value!r}")
        if name in found:
            raise UsageError(f"{option} says {name}= twice: {found[name]} and {value}")
        found[name] = value
    return found
