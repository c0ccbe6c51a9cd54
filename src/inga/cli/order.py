"""Restore the causal order of a capture with Spark: a complete table, or a stream that grows.

  inga order run7 ordered
  inga order messages.jsonl ordered --group room
  inga order incoming/ ordered --stream --give-up 5000
  inga order run7 seen-by-bob --step deliver --process bob

CAPTURE is a trace, or a table (Parquet, lines of JSON) with the columns src, seq and deps. OUT becomes a directory of
Parquet: all columns, and order, height, concurrent, gap. With --stream the command follows CAPTURE until it is
interrupted. Started again, even after a kill, it continues where it was; no row is lost or written twice.
"""

import argparse

from inga.cli.check import need_spark, watched
from inga.cli.output import print_json, tell
from inga.model.errors import UsageError


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("capture", metavar="CAPTURE", help="a trace, or a table of messages")
    add("out", metavar="OUT", help="a new directory; with --stream, also that of an earlier run to continue")
    add("--group", metavar="COLUMN", help="order the rows of each value of this column separately")
    add("--kind", choices=("trace", "parquet", "json"), help="format of CAPTURE (default: detected)")
    add("--step", default="send", metavar="S", help="trace: order the rows of this step (default send)")
    add("--process", metavar="NAME", help="trace: only the rows of this process")
    add(
        "--from-first",
        action="store_true",
        help="begin with the first number seen of each sender, not with 1",
    )
    add("--stream", action="store_true", help="follow CAPTURE as it grows")
    add(
        "--once", action="store_true", help="with --stream: stop when everything written so far has been read"
    )
    add(
        "--give-up",
        type=float,
        metavar="T",
        help="with --stream: wait T ms for a missing message, not for ever",
    )
    add("--poll", type=float, default=1000, metavar="T", help="with --stream: look every T ms (default 1000)")
    add("--checkpoint", metavar="DIR", help="with --stream: keep the state in DIR (default OUT/_checkpoint)")
    add("--master", default="local[*]", metavar="M", help="where Spark runs (default local[*])")


def run(options: argparse.Namespace) -> int:
    need_spark()
    from inga.pipeline.capture import open_capture, order_capture, order_stream

    _check(options)
    capture = open_capture(
        options.capture,
        kind=options.kind,
        group=options.group,
        step=options.step,
        process=options.process,
    )
    base = "first" if options.from_first else ()
    with watched(options, options.master) as progress:
        if options.stream:
            outcome = order_stream(
                capture,
                options.out,
                base=base,
                give_up=None if options.give_up is None else options.give_up / 1000,
                once=options.once,
                poll=options.poll / 1000,
                checkpoint=options.checkpoint,
                master=options.master,
                progress=progress,
            )
        else:
            outcome = order_capture(capture, options.out, base=base, master=options.master)
    if options.json:
        print_json(
            {
                "capture": options.capture,
                "out": options.out,
                "rows": outcome.rows,
                "concurrent": outcome.concurrent,
                "gaps": outcome.gaps,
                "seconds": outcome.seconds,
            }
        )
    else:
        tell(
            f"{outcome.rows:,} messages in {options.out}: {outcome.concurrent:,} concurrent to an earlier one, "
            f"{outcome.gaps:,} without a cause that is missing ({outcome.seconds:.1f} s)"
        )
    return 0


def _check(options: argparse.Namespace) -> None:
    if not options.stream:
        for name in ("once", "give_up", "checkpoint"):
            if getattr(options, name):
                raise UsageError(f"--{name.replace('_', '-')} goes with --stream")
    if options.give_up is not None and not options.give_up >= 0:
        raise UsageError(f"--give-up is not negative: {options.give_up:g} is")
    if not options.poll > 0:
        raise UsageError(f"--poll is a number of milliseconds above 0, not {options.poll:g}")
