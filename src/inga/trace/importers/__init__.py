"""Logs of other systems as traces: one module a format. docs/import.md says what becomes of what.

Works without Spark; a log of any size takes little memory.
"""

from pathlib import Path

from inga.model.errors import UsageError
from inga.trace.importers import govector, otel, shiviz, tracechecker
from inga.trace.importers.record import Log, Record
from inga.trace.importers.shiviz import DEFAULT, NO_ROLES, Roles
from inga.trace.importers.write import Imported, Progress, write_log

FORMATS = ("shiviz", "govector", "tracechecker", "otel")

__all__ = ["DEFAULT", "FORMATS", "Imported", "Log", "Record", "Roles", "import_log"]


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
    progress: Progress = lambda events: None,
) -> Imported:
    """Make a trace of a log. `out` must not exist; it appears when it is whole.

    `regex`, `executions` are for shiviz; with `trust` those that its file begins with may be used. `roles` are for shiviz and govector; `claims` are guarantees that the
    trace shall claim beside those that its format allows.
    """
    path = Path(file)
    if format not in FORMATS:
        raise UsageError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    if format != "shiviz" and (regex or executions or trust):
        raise UsageError(
            f"--regex, --executions and --trust-header are for shiviz: {format} logs have one form"
        )
    if format not in ("shiviz", "govector") and roles != NO_ROLES:
        raise UsageError(f"--send, --deliver and --crash are for shiviz and govector, not for {format}")
    if format == "otel":
        return otel.import_spans(path, Path(out), claims=claims, encoding=encoding, progress=progress)
    if format == "shiviz":
        log = shiviz.open_log(
            path, regex=regex, executions=executions, trust=trust, roles=roles, encoding=encoding
        )
    elif format == "govector":
        log = govector.open_log(path, roles=roles, encoding=encoding)
    else:
        log = tracechecker.open_log(path, encoding=encoding)
    return write_log(log, Path(out), claims=claims, progress=progress)
