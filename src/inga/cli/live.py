"""The workload of `inga sim` over real sockets: one OS process per member, on this machine.

  inga live --order causal --members 4 --messages 20000 --size 1024 --loss 0.01 --trace run1
  inga live --order fifo --via tcp --messages 500
  inga live --members 3 --join 2 --messages 5000
  inga live --members 8 --messages 500 --rate 50 --trace paced
  inga live --order object --objects 2 --members 5 --loss 0.05 --trace objects

Members send back to back, or at the rate that is given; faults are injected where datagrams arrive. Ends with 0 if the
order kept all it promises, 1 if not. Times are in milliseconds.
"""

import argparse
from collections.abc import Callable

from inga.cli.output import ProgressLine
from inga.cli.sim import add_trial_options, check_trial_options, show
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.runs.live import VIA, LiveCase
from inga.runs.live import run as run_live
from inga.runs.live_calls import LiveCalls
from inga.runs.live_calls import run as run_calls
from inga.trial.workload import Workload


def add_options(parser: argparse.ArgumentParser) -> None:
    add_trial_options(parser, delay="0:0", rate=None)
    parser.add_argument(
        "--via",
        default=VIA,
        metavar="V",
        help="udp://239.x.y.z:port (port 0: a free one), unicast, or tcp (default loopback multicast)",
    )
    parser.add_argument("--echo", action="store_true", help="members get their own messages too")
    parser.add_argument("--unsafe", action="store_true", help="let in orders that are there to learn from")
    parser.add_argument("--window", type=int, metavar="BYTES", help="on their way per sender")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="seconds without any progress"
    )


def run(options: argparse.Namespace) -> int:
    check_trial_options(options)
    faults = Faults(options.loss, options.dup, options.reorder, *options.delay)
    if faults.reorder and not faults.delay_max:
        raise UsageError("--reorder delays copies beyond the maximum of --delay, which is 0: give one")
    paced = {} if options.rate is None else {"rate": options.rate}
    workload = Workload(options.members, options.messages, options.size, subset=options.subset, **paced)
    case = LiveCase(
        workload=workload,
        join=options.join,
        order=options.order,
        faults=faults,
        via=options.via,
        seed=options.seed,
        deliver=options.deliver,
        protocol=dict(options.option),
        echo=options.echo,
        matrix=options.matrix,
        window=options.window,
        trace=options.trace,
        trace_level=options.trace_level,
        stall=options.timeout,
        unsafe=options.unsafe,
        paced=options.rate is not None,
    )
    if options.objects is not None:
        return _run_objects(case, options)
    total: int | None = workload.members * workload.messages * (workload.subset or workload.members - 1)
    if case.join:
        total = None  # it depends on when they come
    progress = ProgressLine("delivered", total, quiet=options.quiet)
    result = run_live(case, progress, _starting(case, options))
    progress.end()
    show(result, options)
    return 1 if result.violations else 0


def _run_objects(case: LiveCase, options: argparse.Namespace) -> int:
    total = case.workload.members * case.workload.messages
    progress = ProgressLine("called", total, quiet=options.quiet)
    calls = LiveCalls(case, options.objects, options.misdeclare)
    result = run_calls(calls, progress, _starting(case, options))
    progress.end()
    show(result, options)
    return 1 if result.violations else 0


def _starting(case: LiveCase, options: argparse.Namespace) -> Callable[[int], None]:
    """Shows how many processes there are, until there are all."""
    members = case.workload.members + case.join
    progress = ProgressLine("members started", members, quiet=options.quiet)

    def started(count: int) -> None:
        progress(count)
        if count == members:
            progress.end()

    return started
