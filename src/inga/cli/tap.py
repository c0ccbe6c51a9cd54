"""Join a group as a silent member, and append every delivered message to a log that Spark can read.

  inga tap lunch lunch.log --members alice,bob,tap
  inga tap lunch lunch.log --members alice,bob --late
  inga tap lunch lunch.log --via unicast --members alice=127.0.0.1:7001,tap=127.0.0.1:7002

The other members list the tap as a member too, or it joins --late. LOG is a directory; a restarted tap appends
to it. In a job: inga.pipeline.register(spark), then spark.readStream.format("inga").load(LOG). Ctrl-C ends the tap.
"""

import argparse
import asyncio
import signal
import sys

from inga.cli.chat import choose_via, parse_members
from inga.cli.output import ProgressLine, print_json, tell
from inga.model.errors import UsageError
from inga.net.join import join
from inga.net.loop import run as run_loop
from inga.net.tap import Tap
from inga.recipes import find, names
from inga.trace.log import LogWriter


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("group", metavar="GROUP", help="the name of the group")
    add("log", metavar="LOG", help="a directory for the log")
    add("--members", required=True, metavar="A,B,C", help="all members; A=HOST:PORT,... for unicast and tcp")
    add("--name", default="tap", metavar="NAME", help="name of the tap (default tap)")
    add("--via", metavar="V", help="udp://239.x.y.z:port, unicast or tcp (default: as inga chat)")
    add("--order", default="causal", metavar="O", help=f"one of {', '.join(names())} (default causal)")
    add(
        "--interface",
        metavar="I",
        help="network interface for multicast, by name or address (default: as routed)",
    )
    add("--late", action="store_true", help="join a running group; --members lists its founders")
    add("--address", metavar="HOST:PORT", help="with --late: the tap's own address, for unicast and tcp")
    add(
        "--flush",
        type=float,
        default=500,
        metavar="T",
        help="write records after T ms at the latest (default 500)",
    )
    add("--records", type=int, metavar="K", help="end after so many records (default: when interrupted)")


def run(options: argparse.Namespace) -> int:
    members = parse_members(options.members)
    via = choose_via(options.via, options.group, members)
    if options.interface and not via.startswith("udp:"):
        raise UsageError(f"--interface is for multicast, not for {via}")
    if options.name not in members and not options.late:
        raise UsageError(f"{options.name!r} is not one of --members; list it everywhere, or join with --late")
    if not options.flush >= 0:
        raise UsageError(f"--flush is a number of milliseconds from 0 on, not {options.flush:g}")
    if options.records is not None and options.records < 1:
        raise UsageError(f"--records is at least 1, not {options.records}")
    find(options.order)
    log = LogWriter(options.log, options.group)
    first = log.next
    try:
        run_loop(_tap(options, members, via, log))
    except asyncio.CancelledError:  # before the group let us in
        raise KeyboardInterrupt from None
    finally:
        log.close()
    if options.json:
        print_json(
            {"group": options.group, "log": options.log, "records": log.next - first, "next": log.next}
        )
    elif not options.quiet:
        tell(f"{log.next - first:,} records of {options.group} in {options.log}")
    return 0


async def _tap(
    options: argparse.Namespace, members: list[str] | dict[str, str], via: str, log: LogWriter
) -> None:
    enough = asyncio.Event()
    loop, knocking = asyncio.get_running_loop(), asyncio.current_task()

    def stop() -> None:
        if knocking is not None:
            knocking.cancel()
        enough.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    progress = ProgressLine("records written", None, quiet=options.quiet)

    def told(records: int) -> None:
        progress(records)
        if options.records is not None and records >= options.records:
            enough.set()

    async with join(
        options.group,
        options.name,
        members=members,
        via=via,
        order=options.order,
        interface=options.interface,
        late=options.late,
        address=options.address,
    ) as group:
        if not options.quiet:
            tell(f"tap {group.name} by {via}, order {group.recipe.name}", file=sys.stderr)
        knocking = None  # from now on a signal is the ordinary end
        task = asyncio.ensure_future(Tap(group, log, options.flush / 1000, told).run())
        asked = asyncio.ensure_future(enough.wait())
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        await group.close()  # after which the tap takes what is left
        await task
    progress.end()
