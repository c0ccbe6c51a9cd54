"""Measure, as a table of ratios against baselines of the same run.

inga bench sim
"""

import argparse
import sys

from inga.cli.output import print_json
from inga.model.errors import UsageError

LATER = ("throughput", "latency", "check")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="sim")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")


def run(options: argparse.Namespace) -> int:
    if options.name in LATER:
        raise UsageError(f"bench {options.name!r} is not built yet; there is sim")
    if options.name != "sim":
        raise UsageError(f"no bench {options.name!r}; there is sim")
    from inga.lab import bench, bench_sim

    def progress(what: str) -> None:
        if not options.quiet:
            print(f"measuring {what}", file=sys.stderr, flush=True)

    rows = bench_sim.run(progress, quick=options.quick)
    if options.json:
        print_json({"bench": options.name, "rows": [r.to_json() for r in rows], "machine": bench.machine()})
    else:
        print(bench.table(rows))
    return 0
