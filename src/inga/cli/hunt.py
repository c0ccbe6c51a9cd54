"""Search for protocol bugs: simulate many small groups with random faults, until one breaks a guarantee or gets stuck.

  inga hunt --runs 20000
  inga hunt --until-failure --seed 1000000
  inga hunt --runs 100000 --keep-going
  inga hunt --order causal
  inga hunt --forged --runs 50000
  inga hunt --states --objects --runs 50000
  inga hunt --plan '{"order": "fifo", "members": 2, "actions": [[0.1, 0, "send", [40, null, 1]]]}'

Each seed determines an order, its settings and the events: sends to all, to subsets and to oneself, joins, leaves, crashes,
changes of the order, slow readers, loss, pauses, partitions and more. In some groups members are not listed: they start, find each other
and found the group. With --order all groups use that order, and schedules and object
calls are tried as well. With --forged each group is secured, and an attacker without the secret and a former member
send forged datagrams, which must not change any delivery. With --states newcomers get the state of an application, or the last
messages; with --objects members call objects. A failure is shrunk, and the command that
replays it is printed; with --keep-going the failing seeds are listed. Exits with 0 if nothing was found.
"""

import argparse
import os
from time import perf_counter

from inga.cli.output import ProgressLine, print_json, tell
from inga.model.errors import UsageError
from inga.recipes import find, names
from inga.sim.hunt import BrokenOff, Search, search, search_for
from inga.sim.judge import judge
from inga.sim.swarm import Plan
from inga.sim.workers import interruptible


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--order", metavar="O", help=f"one of {', '.join(names())} (default: all)")
    add("--runs", type=int, default=1000, metavar="R", help="how many seeds (default 1000)")
    add("--seed", type=int, default=0, metavar="S", help="the first seed (default 0)")
    add("--plan", metavar="P", help="play this plan, as printed by a hunt")
    add("--until-failure", action="store_true", help="go on until a seed fails")
    add("--keep-going", action="store_true", help="try all seeds, and list those that fail")
    add("--forged", action="store_true", help="secured groups, each with an attacker that forges datagrams")
    add("--states", action="store_true", help="groups in which newcomers get a state, or the last messages")
    add("--objects", action="store_true", help="groups whose members call objects")
    add(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="J",
        help="number of processes (default: one for each core)",
    )


def run(options: argparse.Namespace) -> int:
    if options.runs < 1 or options.jobs < 1 or options.seed < 0:
        raise UsageError(
            f"--runs and --jobs are at least 1 and --seed at least 0, not {options.runs}, {options.jobs} and {options.seed}"
        )
    if options.until_failure and options.keep_going:
        raise UsageError(
            "--until-failure ends with the first failure, --keep-going with none: say one of them"
        )
    if options.plan is not None:
        return _play(Plan.parse(options.plan), options)
    order = "all orders" if options.order is None else find(options.order).name
    runs = None if options.until_failure else options.runs
    progress = ProgressLine(f"hunting {order}", runs, quiet=options.quiet)
    started = perf_counter()
    jobs = 1 if runs is not None and runs < 400 else options.jobs
    what = search_for(options.order, forged=options.forged, states=options.states, objects=options.objects)
    if options.keep_going:
        return _all(what, order, options, progress, jobs)
    try:
        with interruptible():
            done, failure = search(what, runs, options.seed, jobs=jobs, progress=progress)
    except BrokenOff as broken_off:
        progress.end()
        failed = [] if broken_off.failed is None else [broken_off.failed]
        return _broken_off(order, broken_off.done, failed, options, perf_counter() - started)
    progress.end()
    seconds = perf_counter() - started
    if options.json:
        found = None
        if failure is not None:
            found = {"seed": failure.seed, "why": failure.why, "command": failure.command}
            found["schedule"] = failure.schedule
        print_json({"order": order, "runs": done, "failure": found, "seconds": seconds})
    elif failure is None:
        tell(f"{order}: {done:,} runs, no violation, in {seconds:.1f} s ({done / seconds:,.0f}/s)")
    else:
        tell(f"{order}: seed {failure.seed} fails: {failure.why}")
        tell(f"replay: {failure.command}")
    return 0 if failure is None else 1


def _all(what: Search, order: str, options: argparse.Namespace, progress: ProgressLine, jobs: int) -> int:
    """Try every seed; those that fail, and why."""
    failed: list[tuple[int, str]] = []

    def found(seed: int, why: str) -> None:
        failed.append((seed, why))
        if not options.json:
            tell(f"{order}: seed {seed} fails: {why}")

    started = perf_counter()
    try:
        with interruptible():
            done, _ = search(what, options.runs, options.seed, jobs=jobs, progress=progress, found=found)
    except BrokenOff as broken_off:
        progress.end()
        return _broken_off(order, broken_off.done, failed, options, perf_counter() - started)
    progress.end()
    seconds = perf_counter() - started
    if options.json:
        failures = [{"seed": seed, "why": why} for seed, why in failed]
        print_json({"order": order, "runs": done, "failures": failures, "seconds": seconds})
    else:
        tell(f"{order}: {done:,} runs, {len(failed)} failed, in {seconds:.1f} s ({done / seconds:,.0f}/s)")
    return 1 if failed else 0


def _broken_off(
    order: str, done: int, failed: list[tuple[int, str]], options: argparse.Namespace, seconds: float
) -> int:
    """What was found until a search was interrupted. With --keep-going failures were told as they came."""
    if options.json:
        failures = [{"seed": seed, "why": why} for seed, why in failed]
        print_json(
            {"order": order, "runs": done, "failures": failures, "seconds": seconds, "interrupted": True}
        )
    else:
        if not options.keep_going:
            tell(*[f"{order}: seed {seed} fails: {why}" for seed, why in failed])
        what = f"{len(failed)} failed" if failed else "no violation"
        tell(f"{order}: interrupted after {done:,} runs, {what}, in {seconds:.1f} s")
    return 1 if failed else 130


def _play(plan: Plan, options: argparse.Namespace) -> int:
    """One plan, and all that is wrong with it."""
    found = judge(plan)
    if options.json:
        print_json({"order": plan.order, "found": [each._asdict() for each in found]})
    else:
        tell(*[f"{each.kind}: {each.text}" for each in found] or ["nothing is wrong with it"])
    return 1 if found else 0
