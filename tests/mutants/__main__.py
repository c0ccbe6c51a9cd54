"""`make mutants`: plant small bugs one at a time, run the tests that could notice, list those that nobody noticed."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from ..rooms import PROTOCOL_ROOMS
from .children import Ended, each_in_a_child
from .kinds import Mutant, find_mutants
from .measured import Measured, measured, test_files
from .report import KILLED_MIN, Result, as_row, block, killed_share, read_equivalents, summary, survivors
from .sample import choose
from .trial import Place, Trial, try_mutant

ALSO = (
    "contract",
    "sim",
    "trial",
    "docs/test_layers.py",
    "cli/test_dissect.py",
    "cli/test_ior.py",
    "test_recipes.py",
)
"""Where tests of the rooms are, beside the folders of their names."""

UNANSWERED = {"survived", "unexecuted"}


def main() -> int:
    options = _options()
    place = Place(options.root.resolve())
    kept = place.root / "build" / "mutants"
    sources = _sources(place)
    everything = find_mutants(sources)
    equivalents = read_equivalents(_text(place.tests / "mutants" / "equivalent.txt"))
    last = json.loads(_text(kept / "results.json") or '{"digest": "", "results": []}')

    for file, function, before, _ in set(equivalents) - {mutant.change for mutant in everything}:
        print(f"equivalent.txt names a mutant that does not exist: {file} {function}: {before}")
    if options.survivors:
        wanted = {_change(row) for row in last["results"] if row["outcome"] in UNANSWERED}
    elif options.equivalents:
        wanted, equivalents = set(equivalents), {}
    else:
        wanted = None
    offered = [
        mutant
        for mutant in everything
        if mutant.file.startswith(tuple(options.rooms)) and (wanted is None or mutant.change in wanted)
    ]
    count = options.count if wanted is None else len(offered)
    mutants = choose(offered, sources, count=count, seed=options.seed)
    if options.list:
        print("\n\n".join(map(block, mutants)))
        return 0

    files = test_files(place, [*PROTOCOL_ROOMS, *ALSO])
    known = measured(place, sources, files, kept / "measured", options.jobs, _progress)
    if options.quick is not None:
        known = known.quick(options.quick)
    for name in known.red:
        print(f"not used, because it fails without any mutant: {name}")
    rows = last["results"] if last["digest"] == known.digest else []
    answered = {row["id"]: row for row in rows}
    results: list[Result] = []
    try:
        for result in _results(place, mutants, known, equivalents, answered, options):
            results.append(result)
            answered[result.mutant.id] = as_row(result)
            _write(
                kept / "results.json",
                json.dumps({"digest": known.digest, "results": [*answered.values()]}, indent=1),
            )
            if result.is_open:
                _progress("")
                print(block(result.mutant), end="\n\n")
            _progress(f"{len(results)} of {len(mutants)} mutants, {killed_share(results):.0%} killed")
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on from here.")
    _progress("")
    _write(kept / "survivors.txt", survivors(results))
    print(summary(results))
    print(f"survivors and results are in {kept.relative_to(place.root)}/")
    if len(results) < len(mutants):
        return 130
    return int(killed_share(results) < KILLED_MIN or any(result.is_open for result in results))


def _results(
    place: Place,
    mutants: Iterable[Mutant],
    known: Measured,
    equivalents: Iterable[tuple[str, str, str, str]],
    answered: dict[str, dict[str, Any]],
    options: argparse.Namespace,
) -> Iterator[Result]:
    """Those that need no run, then the others as they end."""
    trials = []
    texts = {
        file: _text(place.root / file) for file in {test.name.partition("::")[0] for test in known.tests}
    }
    for mutant in mutants:
        row = answered.get(mutant.id)
        naming = {file for file, text in texts.items() if mutant.constant and mutant.constant in text}
        if mutant.change in equivalents:
            yield Result(mutant, "equivalent", "", 0, 0.0)
        elif row is not None and row["outcome"] != "equivalent":
            yield Result(mutant, row["outcome"], row["test"], row["ran"], row["seconds"])
        elif tests := known.noticing(mutant.watched, naming):
            trials.append(Trial(mutant, tests))
        else:
            yield Result(mutant, "unexecuted", "", 0, 0.0)
    started = {id(trial): 0.0 for trial in trials}

    def starting() -> Iterator[Trial]:
        for trial in trials:
            started[id(trial)] = monotonic()
            yield trial

    work = partial(try_mutant, place, options.patience)
    with closing(each_in_a_child(work, starting(), options.jobs)) as ended:
        for trial, end in ended:
            yield _judged(trial, end, round(monotonic() - started[id(trial)], 2))


def _judged(trial: Trial, end: Ended, seconds: float) -> Result:
    tests = [news["test"] for news in end.told if "test" in news]
    test = tests[-1] if tests else "loading the tests"
    if {"failed": True} in end.told:
        outcome = "failed"
    elif end.status in {-signal.SIGPROF, -signal.SIGALRM}:
        outcome = "timeout"
    elif end.status < 0:
        outcome = "died"
    elif end.status:
        raise RuntimeError(f"{trial.mutant.id} could not be tried:\n{end.output}")
    else:
        outcome, test = "survived", ""
    return Result(trial.mutant, outcome, test, len(tests), seconds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument(
        "--rooms",
        nargs="+",
        default=PROTOCOL_ROOMS,
        help="where: rooms, or files as layers/flow.py (all rooms)",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="how many at a time (as many as processors)"
    )
    parser.add_argument(
        "--patience", type=float, default=5.0, help="seconds of CPU that any test may take (5)"
    )
    parser.add_argument("--quick", type=float, help="leave out tests that take more seconds than this (none)")
    parser.add_argument("--list", action="store_true", help="show the mutants and plant none")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--survivors", action="store_true", help="only those that survived the last time")
    again.add_argument("--equivalents", action="store_true", help="only those that equivalent.txt names")
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).parents[2], help="another tree (this one)"
    )
    return parser.parse_args()


def _sources(place: Place) -> dict[str, bytes]:
    paths = [path for room in PROTOCOL_ROOMS for path in sorted((place.package / room).rglob("*.py"))]
    return {path.relative_to(place.package).as_posix(): path.read_bytes() for path in paths}


def _change(row: dict[str, Any]) -> tuple[str, str, str, str]:
    return row["file"], row["function"], row["before"], row["after"]


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _write(path: Path, text: str) -> None:
    """All of it or nothing, whenever we are interrupted."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def _progress(text: str) -> None:
    """One line that is written over, where a person looks on."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what is found is seen at once
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
