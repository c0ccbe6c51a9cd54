"""Results of many runs as tables, each run under its date, so that a year of them is one query.

    DIR/verdicts/date=2026-01-31/run=ID/part.parquet       a row for each check
    DIR/violations/..., DIR/causes/...                     of those that are explained
    DIR/steps/..., DIR/delays/...                          tables of `inga metrics`

A whole table (`spark.read.parquet("DIR/verdicts")`) has date and run as columns. If a run is written again, its new tables replace
the old ones, under the date of the first time; nothing else is ever changed. A file appears only when it is complete.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from datetime import date as calendar_date
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from inga.certify.checks import CHECKS
from inga.certify.verdict import Certificate
from inga.model.errors import UsageError
from inga.pipeline.storage import StoredTrace, is_remote
from inga.trace import local_path
from inga.trace.directory import whole_file
from inga.trace.schema import load_pyarrow

PART = "part.parquet"


def verdicts(trace: StoredTrace, certificate: Certificate) -> Any:
    """The answer to each check as an Arrow table, with the run that it is about."""
    pa = load_pyarrow()
    manifest = trace.manifest
    about = {
        "group": manifest.group,
        "order": manifest.order,
        "source": manifest.source,
        "processes": len(certificate.names),
        "events": certificate.events,
        "messages": certificate.messages,
        "deliveries": certificate.deliveries,
        "payloads": certificate.payloads,
    }
    numbers = {name: pa.int64() for name, value in about.items() if isinstance(value, int)}
    schema = pa.schema(
        {
            "check": pa.string(),
            "verdict": pa.string(),
            "violations": pa.int64(),
            "reason": pa.string(),
            "statement": pa.string(),
            **{name: numbers.get(name, pa.string()) for name in about},
        }
    )
    rows = [
        {
            "check": check.name,
            "verdict": check.verdict,
            "violations": check.violations,
            "reason": check.reason,
            "statement": CHECKS[check.name].statement,
            **about,
        }
        for check in certificate.checks
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def violations(certificate: Certificate) -> Any:
    """The violations that are explained as an Arrow table, each with the chain of causes that it breaks."""
    pa = load_pyarrow()
    step = pa.struct(
        {"process": pa.int32(), "pos": pa.int64(), "step": pa.string(), "src": pa.int32(), "seq": pa.int64()}
    )
    schema = pa.schema(
        {
            "check": pa.string(),
            "process": pa.int32(),
            "name": pa.string(),
            "pos": pa.int64(),
            "src": pa.int32(),
            "sender": pa.string(),
            "seq": pa.int64(),
            "text": pa.string(),
            "segment": pa.string(),
            "line": pa.string(),
            "other_src": pa.int32(),
            "other_seq": pa.int64(),
            "chain": pa.list_(step),
        }
    )
    names = certificate.names
    rows = [
        {
            "check": each.check,
            "process": each.process,
            "name": names[each.process],
            "pos": each.pos,
            "src": each.message[0],
            "sender": names[each.message[0]],
            "seq": each.message[1],
            "text": each.text,
            "segment": each.segment,
            "line": each.line,
            "other_src": None if each.other is None else each.other[0],
            "other_seq": None if each.other is None else each.other[1],
            "chain": [link.to_json() for link in each.chain],
        }
        for check in certificate.checks
        for each in check.witnesses
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def causes(certificate: Certificate) -> Any:
    """The causes of the violations as an Arrow table."""
    pa = load_pyarrow()
    schema = pa.schema({"cause": pa.string(), "count": pa.int64(), "checks": pa.list_(pa.string())})
    rows = [
        {"cause": group.cause, "count": group.count, "checks": group.checks} for group in certificate.groups
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def write(
    directory: str,
    trace: StoredTrace,
    certificate: Certificate | None = None,
    measured: Mapping[str, Any] | None = None,
    *,
    date: str | None = None,
) -> str:
    """Add the results of a run; return the date under which they are. `date`: another than today, such as 2026-01-31, for a run
    that is new here."""
    place = root(directory)
    when = day(date)
    found = dict(measured or {})
    if certificate is not None:
        found |= {
            "verdicts": _dated(verdicts(trace, certificate)),
            "violations": violations(certificate),
            "causes": causes(certificate),
        }
    run = quote(trace.manifest.run, safe="")
    if not run.strip("."):
        raise UsageError(f"a run cannot be called {trace.manifest.run!r}")
    known = sorted(each.parent.name for each in place.glob(f"*/date=*/run={run}"))
    folder = known[0] if known else f"date={when}"
    for name, table in found.items():
        _put(place / name / folder / f"run={run}" / PART, table)
    return folder.removeprefix("date=")


def read(directory: str, name: str) -> list[dict[str, Any]]:
    """All rows of one of the tables, by date, and the runs of a day in the order in which they were certified."""
    pyarrow = load_pyarrow()
    place = root(directory)
    if not (place / name).is_dir():
        raise UsageError(
            f"{directory} has no table {name!r}: write some runs there first, with --write {directory}"
        )
    rows = []
    for path in sorted((place / name).glob(f"date=*/run=*/{PART}")):
        about = {"date": path.parent.parent.name[5:], "run": unquote(path.parent.name[4:])}
        try:
            table = pyarrow.parquet.read_table(path, partitioning=None)
        except (OSError, pyarrow.ArrowException) as error:
            raise UsageError(f"{path} cannot be read: {error}") from None
        rows += [{**about, **row} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row["date"], str(row.get("certified", "")), row["run"]))


def root(directory: str) -> Path:
    """Where the tables are, or are going to be."""
    if is_remote(directory):
        raise UsageError(f"tables are written to a directory, not to {directory}")
    place = local_path(directory).absolute()
    if place.exists() and not place.is_dir():
        raise UsageError(f"{directory} is no directory, so it holds no tables")
    return place


def _dated(table: Any) -> Any:
    """The table with the time at which it was certified, by which runs of one day are sorted."""
    pa = load_pyarrow()
    now = pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC"))
    return table.append_column("certified", pa.array([now.as_py()] * len(table), now.type))


def day(said: str | None) -> str:
    """A date as it is written in tables; None: today."""
    if said is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return calendar_date.fromisoformat(said).isoformat()
    except ValueError:
        raise UsageError(f"a date looks like 2026-01-31, not {said!r}") from None


def _put(path: Path, table: Any) -> None:
    try:
        with whole_file(path) as hidden:
            load_pyarrow().parquet.write_table(table, hidden)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
