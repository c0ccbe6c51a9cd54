"""Logs of other systems as traces: one module per format. docs/import.md says how each format is translated.

Works without Spark; a log of any size takes little memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inga.model.errors import UsageError
from inga.model.text import suggest
from inga.trace.importers import govector, jaeger, otel, shiviz, table, tracechecker, zipkin
from inga.trace.importers.record import Log, Record
from inga.trace.importers.shiviz import DEFAULT, NO_ROLES, Roles
from inga.trace.importers.source import LogText, plain_text
from inga.trace.importers.spans import import_spans
from inga.trace.importers.table import NO_COLUMNS, TableColumns
from inga.trace.importers.write import Imported, ImportOptions, Progress, write_log
from inga.trace.reader import read_manifest, rows

__all__ = [
    "DEFAULT",
    "IMPORTERS",
    "TableColumns",
    "Imported",
    "Importer",
    "Log",
    "Record",
    "Roles",
    "import_log",
]

PATTERNS, ROLES = "--regex, --executions, --trust-header and --noise", "--send, --deliver and --crash"
COLUMNS = "--map, --kinds, --zone and --time-format"
OPTIONS = {
    "regex": PATTERNS,
    "executions": PATTERNS,
    "trust": PATTERNS,
    "noise": PATTERNS,
    "roles": ROLES,
    "columns": COLUMNS,
}
"""Options that only some importers understand: arguments of `import_log`, and their names in the command."""

TRIED_OCTETS = 1 << 20  # read of a log that is only tried: whole lines or, of a document, whole items
ITEM_OCTETS_MAX = 1 << 26  # copied of a tried document that has to be copied, to find the end of an item
TRIED_ROWS = 20  # rows of a tried log that are shown


@dataclass(frozen=True, slots=True)
class Importer:
    """One format: its description, and the function that makes a trace of a log in it."""

    name: str
    reads: str
    run: Callable[
        ..., Imported
    ]  # from a log, the place of the trace, the options of all importers, and its own options by name
    options: tuple[str, ...] = ()  # the ones of OPTIONS that it understands
    has_items: bool = False  # whether a file is a document, which need not have lines


def _by_records(open_log: Callable[..., Log]) -> Callable[..., Imported]:
    """An importer for a format in which a file is a list of events: `open_log` need not know how traces are written."""

    def run(
        log: LogText, out: Path, asked: ImportOptions, noise: bool = False, **options: object
    ) -> Imported:
        return write_log(open_log(log, encoding=asked.encoding, **options), out, asked, noise=noise)

    return run


_ALL = [
    Importer(
        "shiviz",
        "any text, by a regular expression with the groups host, clock and event",
        _by_records(shiviz.open_log),
        ("regex", "executions", "trust", "noise", "roles"),
    ),
    Importer("govector", "logs of GoVector", _by_records(govector.open_log), ("roles",)),
    Importer("tracechecker", "lines of JSON of the UBC tracing library", _by_records(tracechecker.open_log)),
    Importer(
        "table",
        "CSV, JSON or Parquet: a row for each event or message",
        table.import_table,
        ("columns",),
    ),
    Importer(
        "otel",
        "OpenTelemetry spans, OTLP as JSON",
        partial(import_spans, otel.read_spans, "otel", "OTLP as JSON, with resourceSpans,"),
        has_items=True,
    ),
    Importer(
        "jaeger",
        "Jaeger's traces as JSON",
        partial(import_spans, jaeger.read_spans, "jaeger", "JSON of Jaeger, with data or spans,"),
        has_items=True,
    ),
    Importer(
        "zipkin",
        "Zipkin's spans as JSON, version 2",
        partial(import_spans, zipkin.read_spans, "zipkin", "a list of Zipkin's spans"),
        has_items=True,
    ),
]

IMPORTERS = {importer.name: importer for importer in _ALL}
"""All importers by name, in the order in which they are listed."""


def import_log(
    format: str,
    file: str | Path,
    out: str | Path | None,
    *,
    regex: str | None = None,
    executions: str | None = None,
    trust: bool = False,
    roles: Roles = NO_ROLES,
    columns: TableColumns = NO_COLUMNS,
    claims: list[str] | None = None,
    disclaims: list[str] | None = None,
    encoding: str = "utf-8",
    noise: bool = False,
    bad: int = 0,
    progress: Progress = lambda done: None,
) -> Imported:
    """Make a trace from a log: a file, plain or compressed by gzip, a directory of files, or `-` for standard input. `out`
    must not exist; it appears only when it is complete. If it is None, the import is only tried, with the beginning of the log;
    `sample` of the result shows what was found.

    `regex`, `executions`, `trust` (use the expressions at the beginning of the file), `roles`, `columns` and `noise` (lines that
    belong to no event may outnumber the events) are for formats that understand them. Up to `bad` lines that cannot be read are
    left out. `claims` are guarantees that the trace shall claim in addition to those of its format, `disclaims` guarantees that
    it shall not claim.
    """
    if format not in IMPORTERS:
        raise UsageError(f"no format {format!r}{suggest(format, IMPORTERS)}")
    importer = IMPORTERS[format]
    given: dict[str, Any] = {
        "regex": regex, "executions": executions, "trust": trust, "noise": noise, "roles": roles, "columns": columns
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value not in (None, False, NO_ROLES, NO_COLUMNS)}
    for name in given:
        if name not in importer.options:
            raise UsageError(f"{OPTIONS[name]} are for {takers(name, ' and ')}, not for {format}")
    asked = ImportOptions(encoding, tuple(claims or ()), tuple(disclaims or ()), bad, progress)
    if out is None:
        return _try(importer, str(file), asked, given)
    with plain_text(str(file), encoding=asked.encoding) as log:
        return importer.run(log, Path(out), asked, **given)


def _try(importer: Importer, file: str, asked: ImportOptions, given: dict[str, Any]) -> Imported:
    """Import the beginning of a log, however many lines are left out, and keep only a description of the first rows."""
    lenient = ImportOptions(asked.encoding, asked.claims, asked.disclaims, TRIED_OCTETS, asked.progress)
    given = {**given, "noise": True} if "noise" in importer.options else given
    most, wanted = (ITEM_OCTETS_MAX, TRIED_OCTETS) if importer.has_items else (TRIED_OCTETS, None)
    with (
        plain_text(file, most, wanted, encoding=asked.encoding) as log,
        TemporaryDirectory(prefix="inga-import-") as scratch,
    ):
        found = importer.run(log, Path(scratch) / "trace", lenient, **given)
        trace = found.traces[0]
        names = read_manifest(trace).processes
        for row in nsmallest(TRIED_ROWS, rows(trace), key=lambda row: (row.time, row.process, row.pos)):
            what = (
                f"message {row.seq} of {names[row.src]}"
                if row.step != "event" and row.src is not None
                else ""
            )
            told = [row.ref or "", names[row.process], row.step, what, row.note or row.op or ""]
            found.sample.append("  ".join(part for part in told if part))
        found.traces = []
    return found


def takers(option: str, between: str = ", ") -> str:
    """The formats that understand an option."""
    return between.join(each.name for each in IMPORTERS.values() if option in each.options)
