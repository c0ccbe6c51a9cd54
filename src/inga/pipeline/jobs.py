"""The functions that commands call: from the path of a trace to small results."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from time import perf_counter
from typing import Any

from inga.certify.certificate import WITNESSES, certify
from inga.certify.checks import CHECKS, Needs, check_names
from inga.certify.verdict import Certificate
from inga.model.errors import UsageError
from inga.pipeline import measuring
from inga.pipeline.certify import FileSource
from inga.pipeline.diagram import EVENTS_MAX, TimeWindow
from inga.pipeline.files import TaskProgress, files_of
from inga.pipeline.session import LOCAL, using
from inga.pipeline.storage import StoredTrace, is_remote, open_trace
from inga.trace.drawing import Drawing
from inga.trace.manifest import LINES


def check_trace(
    path: str,
    checks: Sequence[str] | None = None,
    *,
    master: str | None = LOCAL,
    witnesses: int = WITNESSES,
    progress: TaskProgress = lambda what, done, total: None,
    session: Any = None,
) -> tuple[StoredTrace, Certificate]:
    """Certify a trace. Without `checks` those that the run claims, with `["all"]` all there are.

    Bad input is found before Spark is started, as far as that is possible. A session that is given stays open. With
    neither session nor master it is done in this process, without Spark: the same kernels, and the same certificate.
    """
    started = perf_counter()
    check_names(checks or (), "all")
    trace = None if is_remote(path) else open_trace(path)
    wanted = None if trace is None else choose_checks(trace, checks)
    with using(session, master) as spark:
        if trace is None:
            trace = open_trace(path, spark)
            wanted = choose_checks(trace, checks)
        assert wanted is not None
        source = FileSource(files_of(spark, trace, progress), wanted)
        certificate = certify(source, wanted, witnesses=witnesses)
    certificate.seconds = perf_counter() - started
    return trace, certificate


def check_local(
    path: str | PathLike[str], checks: Sequence[str] | None = None, *, witnesses: int = WITNESSES
) -> Certificate:
    """Certify a trace in this process, without Spark and Java, as `inga check --engine local` does: what the run claims,
    or these checks, or `["all"]`. It needs numpy and pyarrow alone, which `inga[trace]` brings."""
    _, certificate = check_trace(fspath(path), checks, master=None, witnesses=witnesses)
    return certificate


@dataclass(frozen=True, slots=True)
class Tables:
    """What a report shows about a trace."""

    trace: StoredTrace
    certificate: Certificate
    drawing: Drawing
    shown: str  # a sentence: which rows of the trace are in the drawing
    measured: dict[str, list[dict[str, Any]]]  # rows of the tables of `inga.pipeline.measuring`, by name
    reason: str  # why there are no delays among them


def report_tables(
    path: str,
    checks: Sequence[str] | None = None,
    *,
    master: str | None = LOCAL,
    witnesses: int = WITNESSES,
    events_max: int = EVENTS_MAX,
    progress: TaskProgress = lambda what, done, total: None,
    session: Any = None,
) -> Tables:
    """Certify a trace, measure it, and pick the rows to draw: all, or around violations, or the first ones."""
    if not is_remote(path):
        open_trace(path)  # errors are raised before Spark starts
    with using(session, master) as spark:
        trace, certificate = check_trace(
            path, checks, master=master, witnesses=witnesses, progress=progress, session=spark
        )
        drawing, shown = TimeWindow(files_of(spark, trace, progress), events_max).pick(certificate)
        reason = incomparable(trace)
        tables = measuring.measure(files_of(spark, trace, progress), not reason) if trace.files else {}
    measured = {name: table.to_pylist() for name, table in tables.items()}
    return Tables(trace, certificate, drawing, shown, measured, reason)


@dataclass(frozen=True, slots=True)
class Measured:
    """The tables of `inga.pipeline.measuring` as pyarrow tables, by name; `reason` says why there are no delays."""

    trace: StoredTrace
    tables: dict[str, Any]
    reason: str


def measure_trace(
    path: str,
    *,
    one_clock: bool = False,
    master: str | None = LOCAL,
    progress: TaskProgress = lambda what, done, total: None,
    session: Any = None,
) -> Measured:
    """Measure a trace. `one_clock` says that the wall clocks of all processes are the same. With neither session nor master it
    is done in this process, without Spark."""
    trace = None if is_remote(path) else open_trace(path)
    with using(session, master) as spark:
        trace = trace or open_trace(path, spark)
        reason = "" if one_clock else incomparable(trace)
        tables = measuring.measure(files_of(spark, trace, progress), not reason)
    return Measured(trace, tables, reason)


def incomparable(trace: StoredTrace) -> str:
    """Why times of different processes must not be compared; empty if they may."""
    manifest = trace.manifest
    if manifest.is_import:
        return "the log does not say that all its hosts had one clock"
    if manifest.clock == "wall" and "via" not in manifest.options:  # `inga live` is on one machine
        return "nothing says that all members ran on one machine"
    return ""


def choose_checks(trace: StoredTrace, checks: Sequence[str] | None) -> list[str]:
    if checks is None:
        if not trace.manifest.guarantees:
            raise UsageError(f"{trace.path} claims no guarantee, so say what to check: --checks all")
        return list(trace.manifest.guarantees)
    if "all" not in checks:
        return list(dict.fromkeys(checks))
    # Only object runs say what conflicts; only imported logs have events, and these have no views.
    manifest = trace.manifest
    is_fit = {
        Needs.REQUESTS: manifest.conflicts is not None,
        Needs.EVENTS: manifest.is_import,
        Needs.VIEWS: not manifest.is_import,
    }
    left_out = {"time"} if manifest.options.get("times") == LINES else set()
    return [
        check.name
        for check in CHECKS.values()
        if is_fit.get(check.needs, True) and check.name not in left_out
    ]
