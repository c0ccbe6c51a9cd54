"""Certify a trace: did the run keep the guarantees that it claims?

  inga check run7
  inga check run7 --engine local
  inga check run7 --checks causal,stamps --witnesses 20
  inga check run7 --report run7.html
  inga check run7 --write certificates && inga trend certificates
  inga check hdfs://cluster/run7 --master spark://cluster:7077 --json

Spark distributes the work over cores and machines, and takes some seconds to start. --engine local does the same in this
process, without Spark and Java. It is faster up to some ten million events, and the default if Spark or Java is missing. The
verdicts are the same.

Exits with 0 if all checks pass, with 1 if one fails, with 3 if missing data leaves one undecided.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inga.certify.checks import CHECKS, check_names
from inga.cli.output import ProgressLine, counted, listed, print_json, tell, tell_verdicts
from inga.model.errors import UsageError
from inga.pipeline.session import LOCAL, find_java, is_submitted

if TYPE_CHECKING:
    from inga.certify.verdict import Answer, Certificate, Witness
    from inga.pipeline.storage import StoredTrace

EXIT_CODES = {"pass": 0, "fail": 1, "unknown": 3}
GROUPS_SHOWN = 10


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", help="a directory, or anything Spark can read")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="also write an HTML report to FILE, as inga report does"
    )
    add_check_options(parser)
    add_table_options(parser)


def add_check_options(parser: argparse.ArgumentParser) -> None:
    """What all commands that certify have in common."""
    parser.epilog = listed("checks", {check.name: check.statement for check in CHECKS.values()})
    add = parser.add_argument
    add(
        "--checks",
        metavar="A,B",
        help="checks from the list below, or all (default: those that the trace claims to pass)",
    )
    add_engine_options(parser)
    add(
        "--witnesses",
        type=int,
        default=5,
        metavar="K",
        help="violations to explain for each check (default 5)",
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """Where results of many runs are gathered: `check_tables` looks at these."""
    parser.add_argument(
        "--write", metavar="DIR", help="append the results to the Parquet tables in DIR, for inga trend"
    )
    parser.add_argument("--date", metavar="D", help="with --write: the date of the results (default: today)")


def check_tables(options: argparse.Namespace) -> None:
    """Refuse what cannot be written, before the work is done."""
    if options.write is None:
        if options.date is not None:
            raise UsageError("--date says under which day results are written, so it goes with --write")
        return
    _need("numpy", "pyarrow")
    from inga.pipeline import tables

    tables.root(options.write)
    tables.day(options.date)


def write_tables(
    options: argparse.Namespace,
    trace: "StoredTrace",
    certificate: "Certificate | None" = None,
    measured: Mapping[str, Any] | None = None,
) -> None:
    """Do what `add_table_options` has asked for; a run that is there already keeps its day."""
    if options.write is None:
        return
    from inga.pipeline import tables

    stands = tables.write(options.write, trace, certificate, measured, date=options.date)
    if options.date is not None and stands != tables.day(options.date):
        tell(f"{trace.path} stands under {stands} in {options.write}, and stays there", file=sys.stderr)


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Who does the work: `chosen_master` reads these."""
    parser.add_argument(
        "--engine",
        choices=("spark", "local"),
        help="local: in this process, without Spark (default: spark where it and Java are installed, else local)",
    )
    parser.add_argument("--master", metavar="M", help=f"where Spark runs (default {LOCAL})")


def run(options: argparse.Namespace) -> int:
    master, checks = chosen_master(options), named_checks(options)
    check_tables(options)
    if options.report is not None:
        return _run_with_report(options, master, checks)
    from inga.pipeline.jobs import check_trace

    with watched(options, master) as progress:
        trace, certificate = check_trace(
            options.trace, checks, master=master, witnesses=options.witnesses, progress=progress
        )
    return _tell(options, trace, certificate)


def _run_with_report(options: argparse.Namespace, master: str | None, checks: list[str] | None) -> int:
    """The same, and a page about it."""
    from inga.cli.report import check_place, describe, made, write
    from inga.pipeline.jobs import report_tables

    check_place(options.report)
    with watched(options, master) as progress:
        tables = report_tables(
            options.trace, checks, master=master, witnesses=options.witnesses, progress=progress
        )
    write(options.report, [describe(options.trace, tables)], made(options))
    return _tell(options, tables.trace, tables.certificate)


def _tell(options: argparse.Namespace, trace: "StoredTrace", certificate: "Certificate") -> int:
    write_tables(options, trace, certificate)
    if options.json:
        print_json(certificate.to_json())
    else:
        tell_verdicts(*table(certificate))
    return EXIT_CODES[certificate.verdict]


def named_checks(options: argparse.Namespace) -> list[str] | None:
    """What `--checks` says, refused here if it cannot be; None: what the run claims."""
    if options.witnesses < 0:
        raise UsageError(f"--witnesses is a number from 0 on, not {options.witnesses}")
    checks: list[str] | None = options.checks.split(",") if options.checks else None
    check_names(checks or (), "all")
    return checks


def chosen_master(options: argparse.Namespace) -> str | None:
    """Where Spark runs; None if it is done without. What has to be installed for that is."""
    engine = options.engine or _usual_engine(options.master)
    if engine == "spark":
        need_spark()
        return options.master or LOCAL
    if options.master is not None:
        raise UsageError(
            "--master says where Spark runs, and --engine local does without Spark: choose one of them"
        )
    _need("numpy", "pyarrow")
    return None


def _usual_engine(master: str | None) -> str:
    """Spark, where somebody says where it runs, or it can run here; else this process."""
    if master is not None or is_submitted():
        return "spark"
    if find_spec("pyspark") is None:
        return "local"
    try:
        find_java()
    except UsageError:
        return "local"
    return "spark"


def need_spark() -> None:
    """Say what to install, before anything is imported that needs it."""
    _need("numpy", "pyarrow", "pyspark", extra="spark")


def _need(*packages: str, extra: str = "trace") -> None:
    for package in packages:
        if find_spec(package) is None:
            without = ", or use --engine local, which needs only 'inga[trace]'" if extra == "spark" else ""
            raise UsageError(
                f"{package} is not installed; certification needs it: pip install 'inga[{extra}]'{without}"
            )


@contextmanager
def watched(options: argparse.Namespace, master: str | None) -> Iterator[Callable[[str, int, int], None]]:
    """Progress on standard error, one bar for each thing that is done."""
    from inga.pipeline.session import describe

    bars: dict[str, ProgressLine] = {}

    def progress(what: str, done: int, total: int) -> None:
        bar = bars.setdefault(what, ProgressLine(what, total, quiet=options.quiet))
        bar(done)
        if done == total:
            bar.end()

    if not options.quiet:
        tell(describe(master), file=sys.stderr)
    try:
        yield progress
    finally:
        for bar in bars.values():
            bar.end()


def table(certificate: "Certificate") -> list[str]:
    """For a person: a line per check, then what is behind the failures."""
    lines = [
        f"{counted(certificate.events, 'event')} of {counted(len(certificate.names), 'process')}: "
        f"{counted(certificate.payloads, 'message')} in {counted(certificate.messages, 'packet')}, "
        f"{counted(certificate.deliveries, 'delivery')}",
        "",
        f"{'check':<10} {'verdict':<8} {'violations':>10}",
    ]
    lines += [_line(check) for check in certificate.checks]
    lines += [f"{'':<10} warning: {text}" for check in certificate.checks for text in check.warnings]
    if certificate.groups:
        lines += ["", "causes:"]
        lines += [
            f"  {group.count:>8,}  {group.cause} ({', '.join(group.checks)})"
            for group in certificate.groups[:GROUPS_SHOWN]
        ]
        rest = certificate.groups[GROUPS_SHOWN:]
        if rest:
            lines.append(f"  {sum(group.count for group in rest):>8,}  in {len(rest)} more groups")
    witnesses = [witness for check in certificate.checks for witness in check.witnesses]
    if witnesses:
        lines += ["", "for example:"]
        lines += [f"  {each.check}: {each.text}{_place(each)}" for each in witnesses]
    return [*lines, "", f"verdict: {certificate.verdict} ({certificate.seconds:.1f} s)"]


def _line(check: "Answer") -> str:
    line = f"{check.name:<10} {check.verdict:<8} {check.violations:>10,}"
    return f"{line}  {check.reason}" if check.reason else line


def _place(witness: "Witness") -> str:
    """Where to look: in the log that the trace was made of, or in the trace."""
    if witness.line is not None:
        return "" if witness.text.startswith(f"{witness.line}:") else f" [{witness.line}]"
    return f" [{witness.segment}, position {witness.pos}]" if witness.segment else ""
