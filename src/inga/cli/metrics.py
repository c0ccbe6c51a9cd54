"""Measure a trace: delays per level, repair and control traffic, holds and their causes, windows, rates.

  inga metrics run7
  inga metrics run7 --engine local
  inga metrics run7 --out tables
  inga metrics run7 --write certificates
  inga metrics hdfs://cluster/run7 --master spark://cluster:7077 --json

Prints a summary of the tables; --out writes them completely, as Parquet and CSV. Delays between processes are given only
if these share a clock: virtual time, or one machine (--one-machine says so).
"""

import argparse
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from inga.cli.check import (
    add_engine_options,
    add_table_options,
    check_tables,
    chosen_master,
    watched,
    write_tables,
)
from inga.cli.output import print_json, tell

if TYPE_CHECKING:
    from inga.pipeline.jobs import Measured

SHOWN = 5  # of what held most


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("trace", metavar="TRACE", help="a directory, or anything Spark can read")
    add("--out", type=Path, metavar="DIR", help="where to write the tables; must not exist yet")
    add_engine_options(parser)
    add("--one-machine", action="store_true", help="all processes ran on one machine, so they have one clock")
    add_table_options(parser)


def run(options: argparse.Namespace) -> int:
    master = chosen_master(options)
    check_tables(options)
    from inga.pipeline.jobs import measure_trace
    from inga.trace.directory import whole_directory

    started = perf_counter()

    def measure() -> "Measured":
        with watched(options, master) as progress:
            return measure_trace(
                options.trace, one_clock=options.one_machine, master=master, progress=progress
            )

    if options.out is None:
        found = measure()
    else:
        with whole_directory(options.out) as directory:
            found = measure()
            _write(found, directory)
    write_tables(options, found.trace, measured=found.tables)
    seconds = perf_counter() - started
    if options.json:
        print_json(_content(options, found, seconds))
    else:
        tell(*_text(options, found, seconds))
    return 0


def _write(found: "Measured", directory: Path) -> None:
    from pyarrow import csv, parquet

    for name, table in found.tables.items():
        parquet.write_table(table, directory / f"{name}.parquet")
        csv.write_csv(table, directory / f"{name}.csv")


def _content(options: argparse.Namespace, found: "Measured", seconds: float) -> dict[str, Any]:
    tables = {
        name: {"columns": table.column_names, "rows": [list(row.values()) for row in table.to_pylist()]}
        for name, table in found.tables.items()
    }
    return {
        "trace": options.trace,
        "processes": found.trace.manifest.processes,
        "comparable": not found.reason,
        "reason": found.reason,
        "per_message": _per_message(found),
        "tables": tables,
        "out": None if options.out is None else str(options.out),
        "seconds": seconds,
    }


def _counts(found: "Measured") -> dict[str, int]:
    """Of each step, in all."""
    return {row["step"]: row["count"] for row in found.tables["steps"].to_pylist() if row["process"] is None}


def _per_message(found: "Measured") -> dict[str, float]:
    """Other packets for each data message; nothing if none was sent."""
    counts = _counts(found)
    sends = counts.get("send", 0)
    if not sends:
        return {}
    steps = {"control": ("control", "poll"), "nack": ("nack",), "repair": ("repair",)}
    return {name: sum(counts.get(step, 0) for step in each) / sends for name, each in steps.items()}


def _text(options: argparse.Namespace, found: "Measured", seconds: float) -> list[str]:
    names = found.trace.manifest.processes
    counts = _counts(found)
    lines = [
        f"{sum(counts.values()):,} rows of {len(names)} processes: {counts.get('send', 0):,} sends, "
        f"{counts.get('deliver', 0):,} deliveries",
        "",
    ]
    lines += _delay_lines(found)
    per_message = _per_message(found)
    if per_message:
        told = ", ".join(f"{name} {value:.3g}" for name, value in per_message.items())
        lines += ["", f"for each data message: {told}"]
    lines += _hold_lines(found, names)
    closed = found.tables["windows"].to_pylist()
    if closed:
        worst = max(closed, key=lambda row: row["share"])
        lines.append(
            f"windows were closed {sum(row['closed'] for row in closed):,} times, "
            f"most at {names[worst['process']]}: {worst['ms']:.3f} ms, {worst['share']:.1%} of its time"
        )
    if options.out is not None:
        lines += ["", f"tables: {', '.join(sorted(found.tables))} in {options.out} (.parquet, .csv)"]
    return [*lines, "", f"({seconds:.1f} s)"]


def _delay_lines(found: "Measured") -> list[str]:
    if found.reason:
        return [f"no delays between processes: {found.reason} (--one-machine says so)"]
    lines = [
        f"{'from send to':<14} {'count':>10} {'p50 ms':>10} {'p90 ms':>10} {'p99 ms':>10} {'max ms':>10}"
    ]
    whole = {row["step"]: row for row in found.tables["delays"].to_pylist() if row["process"] is None}
    from inga.pipeline.measuring import LEVELS

    for level in LEVELS:
        if level in whole:
            row = whole[level]
            figures = " ".join(f"{row[key]:>10.3f}" for key in ("p50", "p90", "p99", "max"))
            lines.append(f"{level:<14} {row['count']:>10,} {figures}")
    return lines


def _hold_lines(found: "Measured", names: list[str]) -> list[str]:
    whole = next((row for row in found.tables["holds"].to_pylist() if row["process"] is None), None)
    if whole is None or not whole["count"]:
        return ["no message was held"]
    lines = [
        f"{whole['count']:,} messages were held: p50 {whole['p50']:.3f} ms, p99 {whole['p99']:.3f} ms, "
        f"max {whole['max']:.3f} ms"
    ]
    lines += [
        f"  {names[row['process']]} waited for message {row['seq']} of {names[row['src']]}: "
        f"{row['held']:,} held, {row['ms']:.3f} ms in all"
        for row in found.tables["held_by"].to_pylist()[:SHOWN]
    ]
    return lines
