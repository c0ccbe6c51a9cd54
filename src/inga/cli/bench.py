"""Measure, as a table of ratios against baselines of the same run.

inga bench sim
inga bench check --quick
"""

import argparse
import sys
from importlib import import_module

from inga.cli.output import print_json
from inga.model.errors import UsageError

BENCHES = ("sim", "check")
LATER = ("throughput", "latency")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=" or ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="less work, and less to rely on")


def run(options: argparse.Namespace) -> int:
    there = " and ".join(BENCHES)
    if options.name in LATER:
        raise UsageError(f"bench {options.name!r} is not built yet; there are {there}")
    if options.name not in BENCHES:
        raise UsageError(f"no bench {options.name!r}; there are {there}")
    from inga.lab import bench

    measured = import_module(f"inga.lab.bench_{options.name}")

    def progress(what: str) -> None:
        if not options.quiet:
            print(f"measuring {what}", file=sys.stderr, flush=True)

    rows = measured.run(progress, quick=options.quick)
    if options.json:
        print_json({"bench": options.name, "rows": [r.to_json() for r in rows], "machine": bench.machine()})
    else:
        print(bench.table(rows))
    return 0
