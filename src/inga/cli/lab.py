"""Reproduce the claims of a paper or a lecture: tables, figures, and a verdict for each claim.

  inga lab all --quick
  inga lab ladder
  inga lab ladder --out lab --json
  inga lab co --quick
  inga lab sco --quick
  inga lab obg --quick
  inga lab remiop --quick
  inga lab members --quick
  inga lab members --only 'total split' --detect 2

all: ladder, co, sco, obg and remiop, and one page with every claim of the five sources beside our result: all.html. Stored results
of the same version are reused, except with --fresh. Takes a minute with --quick, otherwise up to half an hour, on an idle machine of two cores.
ladder: every counterexample to the weaker ways of ordering messages, played and drawn, and the same under
the right rule. Start here to understand vector time: open ladder.html.
co: the cost of causal broadcast by sequence numbers, in rounds, messages kept, CPU and bytes; simulated on Spark.
sco: four ways to confirm a message to a subset of a group, simulated on Spark: Figures 5 to 8 of the paper.
obg: how much has to be ordered between objects, at what cost, simulated on Spark; the theorems of the paper on random runs.
remiop: round trips of ReMIOP at five rates, of plain MIOP and of bare sockets, in virtual time and between real
processes; over a narrow path too, where fast senders lose packets. Some minutes, half a minute with --quick.
members: eight processes start at once, are killed, stopped and cut off from each other, under five orders and both policies;
the guarantees, and what was measured. Exits with 1 if a guarantee does not hold. A quarter of an hour; cutting the network
needs root.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

from inga.cli.output import print_json, tell
from inga.lab.experiments import EXPERIMENTS, find_experiment
from inga.model.errors import UsageError


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("experiment", metavar="EXPERIMENT", help=", ".join(EXPERIMENTS))
    add("--out", type=Path, metavar="DIR", help="where pages and figures go (default inga-lab/EXPERIMENT)")
    add("--quick", action="store_true", help="leave out experiments that take long")
    add("--fresh", action="store_true", help="all: repeat experiments even if their results are stored")
    add("--long", action="store_true", help="members: also cut the network for 70 seconds")
    add(
        "--only",
        default="",
        metavar="WORDS",
        help="members: only trials with these words in their name, such as 'total split'",
    )
    add(
        "--detect",
        type=float,
        metavar="S",
        help="members: seconds of silence after which a member is excluded (default 1); give more on a busy machine",
    )
    add(
        "--master",
        default="local[*]",
        metavar="M",
        help="where Spark runs, if it is needed (default local[*])",
    )


def run(options: argparse.Namespace) -> int:
    told = {name: getattr(options, name) for name in ("master", "long", "only", "detect", "fresh")}
    experiment = find_experiment(options.experiment, **told)
    out = options.out or Path("inga-lab") / options.experiment
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out names a directory")
    out.mkdir(parents=True, exist_ok=True)

    def progress(what: str) -> None:
        if not options.quiet:
            tell(what, file=sys.stderr)

    started = perf_counter()
    outcome = experiment(out, options.quick, progress)
    seconds = perf_counter() - started
    if options.json:
        content = {"experiment": options.experiment, **outcome.to_json()}
        print_json({**content, "seconds": seconds, "out": str(out)})
        return int(outcome.has_failed)
    tell(*outcome.text.split("\n"))
    verdicts = [claim.verdict for claim in outcome.claims]
    tell(", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts)))
    for page in outcome.pages:
        tell(f"open {page}")
    return int(outcome.has_failed)
