"""What commands ask of the pipeline, from a path to small results."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from inga.certify.certificate import BUILT, WITNESSES, certify
from inga.certify.verdict import Certificate
from inga.model.errors import UsageError
from inga.pipeline.certify import SparkSource
from inga.pipeline.diagram import Window
from inga.pipeline.files import Files, Progress
from inga.pipeline.session import LOCAL, open_session
from inga.pipeline.storage import Trace, is_remote, open_trace
from inga.trace import CHECKS, Row


def check_trace(
    path: str,
    checks: Sequence[str] | None = None,
    *,
    master: str = LOCAL,
    witnesses: int = WITNESSES,
    progress: Progress = lambda what, done, total: None,
    session: Any = None,
) -> tuple[Trace, Certificate]:
    """Certify a trace. Without `checks` those that the run claims, with `["all"]` all there are.

    Bad input is found before Spark is started, as far as that is possible. A session that is given stays open.
    """
    started = perf_counter()
    check_names(checks)
    trace = None if is_remote(path) else open_trace(path)
    wanted = None if trace is None else choose_checks(trace, checks)
    spark = session or open_session(master)
    try:
        if trace is None:
            trace = open_trace(path, spark)
            wanted = choose_checks(trace, checks)
        assert wanted is not None
        source = SparkSource(Files(spark, trace, progress), timed="quiet" in wanted)
        certificate = certify(source, wanted, witnesses=witnesses)
    finally:
        if session is None:
            spark.stop()
    certificate.seconds = perf_counter() - started
    return trace, certificate


@dataclass(frozen=True, slots=True)
class Tables:
    """What a report shows of a trace."""

    trace: Trace
    certificate: Certificate
    rows: list[Row]
    shown: str  # which rows these are


def report_tables(
    path: str,
    checks: Sequence[str] | None = None,
    *,
    master: str = LOCAL,
    witnesses: int = WITNESSES,
    progress: Progress = lambda what, done, total: None,
    session: Any = None,
) -> Tables:
    """Certify a trace, and pick the rows to draw: around violations, or the first ones."""
    if not is_remote(path):
        open_trace(path)  # what is wrong with it is said before Spark starts
    spark = session or open_session(master)
    try:
        trace, certificate = check_trace(path, checks, witnesses=witnesses, progress=progress, session=spark)
        rows, shown = Window(Files(spark, trace, progress)).pick(certificate)
    finally:
        if session is None:
            spark.stop()
    return Tables(trace, certificate, rows, shown)


def choose_checks(trace: Trace, checks: Sequence[str] | None) -> list[str]:
    if checks is None:
        if not trace.manifest.guarantees:
            raise UsageError(f"{trace.path} claims no guarantee, so say what to check: --checks all")
        return list(trace.manifest.guarantees)
    return list(BUILT) if "all" in checks else list(dict.fromkeys(checks))


def check_names(checks: Sequence[str] | None) -> None:
    """Refuse what no check is called."""
    for name in checks or ():
        if name not in (*CHECKS, "all"):
            raise UsageError(f"no check {name!r}; there are {', '.join(CHECKS)}, and all")
