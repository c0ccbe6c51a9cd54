"""Logs of other systems as traces: one module a format. docs/import.md says what becomes of what.

Works without Spark; a log of any size takes little memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inga.model.errors import UsageError
from inga.trace.importers import govector, otel, shiviz, tracechecker
from inga.trace.importers.record import Log, Record
from inga.trace.importers.shiviz import DEFAULT, NO_ROLES, Roles
from inga.trace.importers.source import plain_file
from inga.trace.importers.write import Imported, Progress, write_log

__all__ = ["DEFAULT", "IMPORTERS", "Imported", "Importer", "Log", "Record", "Roles", "import_log"]

PATTERNS, ROLES = "--regex, --executions, --trust-header and --noise", "--send, --deliver and --crash"
OPTIONS = {"regex": PATTERNS, "executions": PATTERNS, "trust": PATTERNS, "noise": PATTERNS, "roles": ROLES}
"""What only some importers understand: arguments of `import_log`, and what the command calls them."""


@dataclass(frozen=True, slots=True)
class Importer:
    """One format: what it is, and what makes a trace of it."""

    name: str
    reads: str
    run: Callable[..., Imported]  # of path, out, claims, encoding, progress, and its options by name
    options: tuple[str, ...] = ()  # which of OPTIONS


def _by_records(open_log: Callable[..., Log]) -> Callable[..., Imported]:
    """For formats in which a file is a list of events: whoever opens it need not know how traces are written."""

    def run(
        path: Path,
        out: Path,
        claims: list[str],
        encoding: str,
        progress: Progress,
        noise: bool = False,
        **options: object,
    ) -> Imported:
        return write_log(open_log(path, encoding=encoding, **options), out, claims, progress, noise=noise)

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
    Importer("otel", "OpenTelemetry spans, OTLP as JSON", otel.import_spans),
]

IMPORTERS = {importer.name: importer for importer in _ALL}
"""By name, in the order in which they are listed."""


def import_log(
    format: str,
    file: str | Path,
    out: str | Path,
    *,
    regex: str | None = None,
    executions: str | None = None,
    trust: bool = False,
    roles: Roles = NO_ROLES,
    claims: list[str] | None = None,
    encoding: str = "utf-8",
    noise: bool = False,
    progress: Progress = lambda events: None,
) -> Imported:
    """Make a trace of a log: a file, one that gzip has compressed, a directory of them, or `-`, which is standard input. `out`
    must not exist; it appears when it is whole.

    `regex`, `executions`, `trust` (use those that the file begins with) and `roles` are for formats that understand
    them, and so is `noise`: there may be more lines that belong to no event than events. `claims` are guarantees that the trace shall claim beside those that its format allows.
    """
    if format not in IMPORTERS:
        raise UsageError(f"no format {format!r}; there are {', '.join(IMPORTERS)}")
    importer = IMPORTERS[format]
    given = {"regex": regex, "executions": executions, "trust": trust, "noise": noise, "roles": roles}
    given = {name: value for name, value in given.items() if value not in (None, False, NO_ROLES)}
    for name in given:
        if name not in importer.options:
            raise UsageError(f"{OPTIONS[name]} are for {takers(name, ' and ')}, not for {format}")
    with plain_file(str(file)) as path:
        return importer.run(path, Path(out), claims or [], encoding, progress, **given)


def takers(option: str, between: str = ", ") -> str:
    """The formats that understand an option."""
    return between.join(each.name for each in IMPORTERS.values() if option in each.options)
