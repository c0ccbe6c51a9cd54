"""Search for decoder bugs: mutate valid input of everything that inga reads, and check that only documented errors result.

  inga fuzz --runs 20000000
  inga fuzz --only told,pcap --seed 5
  inga fuzz --replay told:7b7d

Each seed is one mutation of octets that inga's own encoders made. A decoder may refuse them with the errors it documents, in
time and memory proportional to their length; what it accepts must survive being encoded and decoded again.
A failure is shrunk, and printed with its seed and the command that replays it. Exits with 0 if nothing was found.
"""

import argparse
import os
from time import perf_counter

from inga.cli.output import ProgressLine, print_json, tell
from inga.lab.fuzz.search import DecoderFault, FuzzResult, Interrupted, replay, search
from inga.lab.fuzz.table import FAMILIES, chosen
from inga.model.errors import UsageError
from inga.sim.workers import interruptible


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--only",
        type=_names,
        default=[],
        metavar="D,D",
        help=f"decoders: {', '.join(FAMILIES)}, or one of theirs",
    )
    add("--runs", type=int, default=100_000, metavar="R", help="how many seeds (default 100000)")
    add("--seed", type=int, default=0, metavar="S", help="the first seed (default 0)")
    add(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="J",
        help="number of processes (default: one for each core)",
    )
    add("--replay", metavar="D:HEX", help="decode these octets, as printed by a search")


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def run(options: argparse.Namespace) -> int:
    if options.runs < 1 or options.jobs < 1 or options.seed < 0:
        raise UsageError(
            f"--runs and --jobs are at least 1 and --seed at least 0, not {options.runs}, {options.jobs} and {options.seed}"
        )
    if options.replay is not None:
        return _replay(options)
    decoders = chosen(options.only)
    progress = ProgressLine(f"spoiling for {len(decoders)} decoders", options.runs, quiet=options.quiet)
    started = perf_counter()
    jobs = 1 if options.runs < 10_000 else options.jobs
    try:
        with interruptible():
            found, code = search(options.only, options.runs, options.seed, jobs=jobs, progress=progress), 0
    except Interrupted as broken_off:
        found, code = broken_off.found, 130
    progress.end()
    seconds = perf_counter() - started
    if options.json:
        print_json({**_told(found), "seed": options.seed, "seconds": seconds})
    else:
        tell(*_table(found), *(line for fault in found.faults for line in _shown(fault)))
        result = f"{len(found.faults)} faults" if found.faults else "nothing but documented errors"
        broken = "interrupted after " if code else ""
        tell(
            f"{broken}{found.total:,} mutations from seed {options.seed}: {result}, in {seconds:.1f} s "
            f"({found.total / seconds:,.0f}/s)"
        )
    return 1 if found.faults else code


def _replay(options: argparse.Namespace) -> int:
    finding = replay(options.replay)
    if options.json:
        print_json({"finding": None if finding is None else finding._asdict()})
    else:
        tell("nothing is wrong with it" if finding is None else finding.text)
    return 0 if finding is None else 1


def _told(found: FuzzResult) -> dict[str, object]:
    decoders = {
        name: {"runs": runs, "accepted": found.accepted[name]} for name, runs in sorted(found.runs.items())
    }
    faults = [
        {
            "seed": each.seed,
            "decoder": each.decoder,
            "kind": each.finding.kind,
            "why": each.finding.text,
            "command": each.command,
        }
        for each in found.faults
    ]
    return {"runs": found.total, "decoders": decoders, "faults": faults}


def _table(found: FuzzResult) -> list[str]:
    lines = [f"{'decoder':<24}{'mutations':>12}{'accepted':>12}{'refused':>12}"]
    for name, runs in sorted(found.runs.items()):
        accepted = found.accepted[name]
        lines.append(f"{name:<24}{runs:>12,}{accepted:>12,}{runs - accepted:>12,}")
    return lines


def _shown(fault: DecoderFault) -> list[str]:
    return [f"{fault.decoder}: seed {fault.seed}: {fault.finding.text}", f"replay: {fault.command}"]
