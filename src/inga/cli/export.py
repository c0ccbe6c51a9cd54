"""Convert a trace for other tools: lines of JSON, one object per step; a log for ShiViz; a timeline for Perfetto.

  inga export run7 run7.jsonl --format jsonl
  inga export run7 - --format jsonl --alias dewan | grep Buffered
  inga export run7 run7.jsonl --format jsonl --force --json
  inga export run7 run7.log --format shiviz
  inga export run7 run7.json --format perfetto

Steps are sorted by process and position, and have inga's names or those of a paper (--alias). Needs no Spark.
ShiViz reads its log with the default expression; Perfetto is at ui.perfetto.dev.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TextIO

from inga.cli.output import ProgressLine, print_json, tell
from inga.model.errors import UsageError
from inga.trace import ALIASES, read_processes, write_jsonl, write_perfetto, write_shiviz
from inga.trace.directory import naming_full, whole_file
from inga.trace.export import Exported

FORMATS = {"jsonl": write_jsonl, "shiviz": write_shiviz, "perfetto": write_perfetto}
STANDARD_OUTPUT = "-"


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("trace", metavar="TRACE", help="a directory with a trace")
    add("file", metavar="FILE", help="where to write; - is standard output")
    add("--format", required=True, choices=sorted(FORMATS), help="format of FILE")
    add("--alias", choices=sorted(ALIASES), help="use the names of this paper for the steps")
    add("--force", action="store_true", help="overwrite FILE if it exists")


def run(options: argparse.Namespace) -> int:
    to_output = options.file == STANDARD_OUTPUT
    if to_output and options.json:
        raise UsageError("--json prints its summary where - prints the steps: name a file")
    started = monotonic()
    total = sum(process.last_pos for process in read_processes(options.trace))
    progress = ProgressLine("exported rows", total, quiet=options.quiet)
    with _standard_output() if to_output else _file(Path(options.file), force=options.force) as out:
        exported = FORMATS[options.format](options.trace, out, options.alias, progress)
    progress.end()
    seconds = monotonic() - started
    if options.json:
        print_json(_summary(options, exported, seconds))
    elif not to_output:
        tell(*_sentences(options, exported, seconds))
    elif not options.quiet:
        tell(*_sentences(options, exported, seconds), file=sys.stderr)
    return 0


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has enough. Python flushes once more at its end, and must find an open door.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


@contextmanager
def _file(path: Path, *, force: bool) -> Iterator[TextIO]:
    """A file that is there when it is whole, and not before; devices and pipes are written to as they are."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    if not path.parent.is_dir():
        raise UsageError(f"there is no directory {path.parent} to write {path.name} to")
    if path.exists() and not path.is_file():
        with naming_full(path), path.open("w", encoding="utf-8") as out:
            yield out
        return
    if path.exists() and not force:
        raise UsageError(f"{path} exists already; --force replaces it")
    with naming_full(path), whole_file(path) as hidden, hidden.open("w", encoding="utf-8") as out:
        yield out


def _summary(options: argparse.Namespace, exported: Exported, seconds: float) -> dict[str, object]:
    return {
        "trace": options.trace,
        "file": options.file,
        "format": options.format,
        "alias": options.alias,
        "processes": exported.processes,
        "rows": exported.rows,
        "steps": exported.steps,
        "incomplete": list(exported.incomplete),
        "seconds": seconds,
    }


def _sentences(options: argparse.Namespace, exported: Exported, seconds: float) -> list[str]:
    found = [
        f"{exported.rows:,} rows of {exported.processes} processes: {exported.steps:,} steps "
        f"in {options.file} ({seconds:.1f} s)"
    ]
    if exported.incomplete:
        found.append(f"the last rows are missing of {', '.join(exported.incomplete)}")
    return found
