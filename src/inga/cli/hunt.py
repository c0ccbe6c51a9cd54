"""Many seeds, each another small group with other faults, until one breaks a promise of its order.

  inga hunt --order causal --runs 20000
  inga hunt --order fifo --until-failure --seed 1000000

A failure is shrunk, and the command that replays it is printed. Ends with 0 if nothing was found.
"""

import argparse
import os
from time import perf_counter

from inga.cli.output import Progress, print_json
from inga.model.errors import UsageError
from inga.recipes import find, names
from inga.sim.hunt import hunt


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--order", default="causal", metavar="O", help=f"one of {', '.join(names())} (default causal)")
    add("--runs", type=int, default=1000, metavar="R", help="how many seeds (default 1000)")
    add("--seed", type=int, default=0, metavar="S", help="the first of them (default 0)")
    add("--until-failure", action="store_true", help="go on until one fails")
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="J", help="processes (default: one a core)")


def run(options: argparse.Namespace) -> int:
    if options.runs < 1 or options.jobs < 1 or options.seed < 0:
        raise UsageError("--runs and --jobs are at least 1, --seed at least 0")
    recipe = find(options.order)
    runs = None if options.until_failure else options.runs
    progress = Progress(f"hunting {recipe.name}", runs, quiet=options.quiet)
    started = perf_counter()
    jobs = 1 if runs is not None and runs < 400 else options.jobs
    done, failure = hunt(options.order, runs, options.seed, jobs=jobs, progress=progress)
    progress.end()
    seconds = perf_counter() - started
    if options.json:
        found = None
        if failure is not None:
            found = {"seed": failure.seed, "why": failure.why, "command": failure.command}
            found["schedule"] = failure.schedule
        print_json({"order": recipe.name, "runs": done, "failure": found, "seconds": seconds})
    elif failure is None:
        print(f"{recipe.name}: {done:,} runs, no violation, in {seconds:.1f} s ({done / seconds:,.0f}/s)")
    else:
        print(f"{recipe.name}: seed {failure.seed} fails: {failure.why}")
        print(f"replay: {failure.command}")
    return 0 if failure is None else 1
