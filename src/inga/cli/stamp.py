"""Compute vector clocks for a trace whose rows say what was sent and received, but not which message precedes which.

  inga stamp run7 run7-stamped
  inga stamp run7 run7-stamped --engine local
  inga check run7-stamped --checks fifo,stamps,causal

OUT is a trace like any other, with `deps` and `height` on sends, receipts and deliveries; existing values are
computed anew. Clocks of imported events are kept. OUT appears only when it is complete.
"""

import argparse

from inga.cli.check import add_engine_options, chosen_master, watched
from inga.cli.output import counted, print_json, tell


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("trace", metavar="TRACE", help="a directory")
    add("out", metavar="OUT", help="a directory that does not exist yet, or is empty")
    add_engine_options(parser)


def run(options: argparse.Namespace) -> int:
    master = chosen_master(options)
    from inga.pipeline.stamping import stamp_trace

    with watched(options, master) as progress:
        stamped = stamp_trace(options.trace, options.out, master=master, progress=progress)
    if options.json:
        print_json(stamped.to_json())
    else:
        moved = f", {stamped.moved} of whose cuts were moved" if stamped.moved else ""
        tell(
            f"{counted(stamped.events, 'event')} of {counted(stamped.processes, 'process')}, "
            f"{counted(stamped.messages, 'message')}, in {counted(stamped.slices, 'slice')}{moved}: "
            f"{stamped.out} ({stamped.seconds:.1f} s)"
        )
    return 0
