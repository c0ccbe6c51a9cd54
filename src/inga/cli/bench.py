"""Run benchmarks, and print a table of ratios against baselines of the same run.

  inga bench goals
  inga bench sim
  inga bench throughput --members 4 --sizes 1024
  inga bench latency
  inga bench check --quick --members 8
  inga bench pipeline --members 8,64 --events 10000000
  inga bench pipeline --commands metrics,stamp --traces big
  inga bench co --members 4,8 --sizes 512
  inga bench sco
  inga bench remiop
  inga bench object
  inga bench views
  inga bench scale --page scale.html
  inga bench report

goals compares the measurements with inga's performance goals instead of a baseline. goals, throughput, latency, views and
scale start real processes that communicate over loopback multicast. --profile shows where one member's time goes. report opens
pages in Chromium.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

from inga.cli.output import print_json, tell
from inga.lab import bench
from inga.model.errors import UsageError
from inga.model.text import suggest

NAMES = (
    "goals",
    "sim",
    "throughput",
    "latency",
    "check",
    "pipeline",
    "co",
    "sco",
    "remiop",
    "object",
    "views",
    "secure",
    "hostile",
    "scale",
    "report",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", metavar="NAME", help=", ".join(NAMES))
    add("--quick", action="store_true", help="do a fifth of the work")
    add(
        "--members",
        type=_numbers,
        metavar="N,N",
        help="group sizes (2,4,8; latency and remiop 2,4; co 4,8; check 8,64; pipeline 8,64,1000; "
        "scale 2,4,8,...,256)",
    )
    add(
        "--sizes",
        type=_numbers,
        default=[100, 1024],
        metavar="B,B",
        help="message sizes in bytes (default 100,1024)",
    )
    add("--repeat", type=int, default=5, metavar="R", help="interleaved repetitions (default 5)")
    add(
        "--pairs",
        type=int,
        default=0,
        metavar="P",
        help="throughput: also P pairs of causal against fifo, and total against causal",
    )
    add(
        "--events",
        type=_numbers,
        metavar="E,E",
        help="check, pipeline: trace sizes in events (default 1000000; check also 10000000)",
    )
    add("--large", action="store_true", help="check, pipeline: also 10 and 100 million events")
    add(
        "--commands",
        type=_words,
        default=[],
        metavar="C,C",
        help="pipeline: only these (default check,metrics,stamp,order,report,export,import)",
    )
    add(
        "--traces",
        type=Path,
        metavar="DIR",
        help="pipeline: keep the traces in DIR, and reuse existing ones",
    )
    add(
        "--soak",
        type=float,
        metavar="SECONDS",
        help="views: only count exclusions in so many seconds of full load",
    )
    add(
        "--page",
        type=Path,
        metavar="FILE",
        help="scale: write the curves to FILE, as self-contained HTML",
    )
    add("--profile", action="store_true", help="throughput: show where one member's time goes")


def run(options: argparse.Namespace) -> int:
    if options.name not in NAMES:
        raise UsageError(f"no bench {options.name!r}{suggest(options.name, NAMES)}")
    if options.repeat < 1 or options.pairs < 0:
        raise UsageError(
            f"--repeat is at least 1 and --pairs at least 0, not {options.repeat} and {options.pairs}"
        )
    if options.soak is not None and not 0 < options.soak < float("inf"):
        raise UsageError(f"--soak is a number of seconds above 0, not {options.soak:g}")

    def progress(what: str) -> None:
        if not options.quiet:
            tell(f"measuring {what}", file=sys.stderr)

    if options.commands and options.name != "pipeline":
        raise UsageError(f"--commands are those of the pipeline, and {options.name} has none: leave it out")
    if options.traces is not None:
        if options.name != "pipeline":
            raise UsageError(f"--traces are those of the pipeline, and {options.name} has none: leave it out")
        if options.traces.exists() and not options.traces.is_dir():
            raise UsageError(f"{options.traces} is a file; --traces names a directory")
        options.traces.mkdir(parents=True, exist_ok=True)
    if options.page is not None and options.name != "scale":
        raise UsageError(f"--page draws the curves of scale, and {options.name} has none: leave it out")
    notes: list[str] = []
    rows, profile = _measure(options, progress, notes.append)
    if options.page is not None:
        from inga.lab import bench_scale

        options.page.write_text(bench_scale.page(rows, notes, bench.machine()), encoding="utf-8")
    if options.json:
        content = {"bench": options.name, "rows": [r.to_json() for r in rows], "machine": bench.machine()}
        content |= {"notes": notes} if notes else {}
        print_json({**content, "profile": profile} if profile else content)
    else:
        tell(*bench.table(rows).split("\n"), *notes)
        if profile:
            tell(*profile.split("\n"))
    return 0


def _measure(
    options: argparse.Namespace, progress: bench.SayProgress, note: bench.SayProgress
) -> tuple[list[bench.BenchRow], str]:
    """The rows, and a profile where one was asked for; `note` hears of what could not be measured."""
    if options.name in ("sim", "sco", "object", "report"):
        measured = import_module(f"inga.lab.bench_{options.name}")
        return measured.run(progress, quick=options.quick), ""
    if options.name == "views":
        from inga.lab import bench_views

        if options.soak is not None:
            return [bench_views.soak(progress, options.soak)], ""
        return bench_views.run(progress, quick=options.quick), ""
    if options.name == "check":
        chosen = {"members": options.members} if options.members else {}
        chosen |= {"sizes": options.events} if options.events else {}
        measured = import_module("inga.lab.bench_check")
        given = {"quick": options.quick, "large": options.large, "repetitions": options.repeat, "note": note}
        return measured.run(progress, **given, **chosen), ""
    if options.name == "pipeline":
        from inga.lab import bench_pipeline

        chosen = {"members": options.members} if options.members else {}
        chosen |= {"sizes": options.events} if options.events else {}
        chosen |= {"commands": options.commands} if options.commands else {}
        for name in options.commands:
            if name not in bench_pipeline.COLUMNS_READ:
                known = ", ".join(bench_pipeline.COLUMNS_READ)
                raise UsageError(f"--commands knows no {name!r}; there are {known}")
        repetitions = 1 if options.quick else options.repeat
        chosen |= {"traces": options.traces, "large": options.large, "repetitions": repetitions}
        return bench_pipeline.run(progress, **chosen), ""
    if options.name == "scale":
        from inga.lab import bench_scale

        sizes = {"members": options.members} if options.members else {}
        return bench_scale.run(progress, note, quick=options.quick, **sizes), ""
    from inga.lab import bench_net

    repetitions = 1 if options.quick else options.repeat
    if options.name == "goals":
        from inga.lab import bench_goals

        return bench_goals.run(progress, quick=options.quick, repetitions=repetitions), ""
    if options.name == "co":
        from inga.lab import bench_co

        given = {"members": options.members or [4, 8], "sizes": options.sizes, "repetitions": repetitions}
        return bench_co.run(progress, **given, quick=options.quick), ""
    if options.name == "secure":
        from inga.lab import bench_secure

        return bench_secure.run(progress, quick=options.quick, repetitions=repetitions), ""
    if options.name == "hostile":
        from inga.lab import bench_hostile

        return bench_hostile.run(progress, note, quick=options.quick), ""
    if options.name == "remiop":
        from inga.lab import bench_remiop

        groups = options.members or [2, 4]
        return bench_remiop.run(progress, members=groups, repetitions=repetitions, quick=options.quick), ""
    if options.name == "latency":
        rounds = 400 if options.quick else 2000
        groups = options.members or [2, 4]
        return bench_net.latency(progress, members=groups, rounds=rounds, repetitions=repetitions), ""
    groups = options.members or ([4] if options.quick else [2, 4, 8])
    rows = bench_net.throughput(progress, members=groups, sizes=options.sizes, repetitions=repetitions)
    if options.pairs:
        pairs = {"members": groups[0], "size": options.sizes[-1], "pairs": options.pairs}
        rows += bench_net.in_pairs(progress, bench_net.FAST, bench_net.FIFO, **pairs)
        rows += bench_net.in_pairs(progress, bench_net.TOTAL, bench_net.FAST, **pairs)
    profile = bench_net.profile(groups[0], options.sizes[-1]) if options.profile else ""
    return rows, profile


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 2,4,8") from None
    if any(number < 1 for number in numbers):
        raise argparse.ArgumentTypeError("numbers are at least 1")
    return numbers
