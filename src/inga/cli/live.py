"""The workload of `inga sim` over real sockets: one OS process per member, on this machine.

  inga live --order causal --members 4 --messages 20000 --size 1024 --loss 0.01 --trace run1
  inga live --order fifo --via tcp --messages 500
  inga live --members 3 --join 2 --messages 5000
  inga live --members 8 --messages 500 --rate 50 --trace paced
  inga live --order object --objects 2 --members 5 --loss 0.05 --trace objects
  inga live --order sco --members 8 --subset 3 --messages 20000 --no-oracle
  inga live --members 4 --messages 100000 --rate 2000 --metrics 9464     and, beside it, inga top 9464-9467

Members send back to back, or at the given rate; faults are injected where datagrams arrive. Exits with 0 if the
order kept all its guarantees, with 1 if not. Times are in milliseconds. Rates and CPU are those of the members from the first message to the last.
With --no-oracle members do not record what they delivered, and the run is not checked, so that the group alone is measured.
"""

import argparse
from collections.abc import Callable
from functools import partial

from inga.cli.output import ProgressLine
from inga.cli.sim import (
    add_mishap_options,
    add_trial_options,
    check_trial_options,
    show,
    story,
    trial_of,
)
from inga.model.errors import UsageError
from inga.runs.disturbed import run as run_disturbed
from inga.runs.live import NO_DELAY
from inga.runs.live import run as run_live
from inga.runs.live_calls import run as run_calls
from inga.trial.result import Result
from inga.trial.trial import VIA, Trial


def add_options(parser: argparse.ArgumentParser) -> None:
    add_trial_options(parser, delay="0:0", rate=None)
    add_mishap_options(parser)
    parser.add_argument(
        "--via",
        default=VIA,
        metavar="V",
        help="udp://239.x.y.z:port (port 0: a free one), unicast, or tcp (default loopback multicast)",
    )
    parser.add_argument("--unsafe", action="store_true", help="allow orders that exist for teaching only")
    parser.add_argument(
        "--no-oracle", action="store_true", help="do not check the run: only count and measure"
    )
    parser.add_argument(
        "--metrics",
        type=int,
        metavar="PORT",
        help="members serve their metrics over HTTP: the first at this port of this machine, the others at the ports after it",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="give up after so many seconds without progress (default 60)",
    )


def run(options: argparse.Namespace) -> int:
    check_trial_options(options)
    trial = trial_of(options)
    faults = trial.faults(NO_DELAY)
    if faults.reorder and not faults.delay_max:
        raise UsageError("--reorder delays copies beyond the maximum of --delay, which is 0: give one")
    if options.no_oracle and (trial.objects is not None or trial.join or trial.is_disturbed or trial.slow):
        raise UsageError(
            "--no-oracle only counts what members send and take: it goes with no objects, and nobody who joins, fails or is slow"
        )
    requests = trial.members * trial.messages
    # Of those who come later nobody knows how much it will be: it depends on when.
    deliveries = None if trial.join or trial.is_disturbed else requests * (trial.subset or trial.members - 1)
    what, total = ("delivered", deliveries) if trial.objects is None else ("called", requests)
    progress = ProgressLine(what, total, quiet=options.quiet)
    drive: Callable[..., Result] = partial(run_live, judged=not options.no_oracle)
    if trial.objects is not None:
        drive = run_calls
    if trial.is_disturbed or trial.slow:
        drive = partial(run_disturbed, say=story(options))
    full, starting = options.trace_level == "full", _starting(trial, options)
    result = drive(
        trial, options.trace, full=full, progress=progress, starting=starting, metrics=options.metrics
    )
    progress.end()
    show(result, options, *(() if trial.is_disturbed or trial.slow else (result.pace,)))
    return 1 if result.violations else 0


def _starting(trial: Trial, options: argparse.Namespace) -> Callable[[int], None]:
    """Shows how many processes there are, until there are all."""
    members = trial.members + trial.join
    progress = ProgressLine("members started", members, quiet=options.quiet)

    def started(count: int) -> None:
        progress(count)
        if count == members:
            progress.end()

    return started
