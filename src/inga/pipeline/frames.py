"""For jobs of one's own: a session and the path of a trace in, DataFrames out.

    read      the rows of a trace
    check     its certificate: verdicts, violations with their chains, causes
    metrics   delays, steps, holds, windows, rates
    order     messages in causal order
    stamp     the trace once more, with vectors
    watch     the certificate of a trace that is still growing

All work in the session that they are given, wherever that runs, and leave it open. `inga.pipeline` has them all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from inga.certify.certificate import WITNESSES
from inga.certify.verdict import Certificate, Witness
from inga.model.errors import UsageError
from inga.model.html import html_table
from inga.pipeline import tables
from inga.pipeline.capture import open_capture, ordered_table
from inga.pipeline.jobs import Measured, check_trace, measure_trace
from inga.pipeline.restore import Base
from inga.pipeline.stamping import StampResult, stamp_trace
from inga.pipeline.storage import StoredTrace, open_trace
from inga.pipeline.watching import watch_trace
from inga.trace import COLUMNS
from inga.trace.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: "SparkSession", path: str) -> "DataFrame":
    """The rows of a trace, with the columns that docs/trace.md describes."""
    trace = open_trace(path, spark)
    schema = spark_schema(COLUMNS)
    if not trace.files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(file.path for file in trace.files))


def check(
    spark: "SparkSession | None",
    path: str,
    checks: Sequence[str] | None = None,
    *,
    witnesses: int = WITNESSES,
) -> "CheckedTrace":
    """Certify a trace: what the run claims, or these checks, or `["all"]`. Of each that fails, `witnesses` violations are
    explained. Without a session (None) it is done in this process, and the results are there as Arrow and pandas."""
    trace, certificate = check_trace(path, checks, session=spark, master=None, witnesses=witnesses)
    return CheckedTrace(spark, trace, certificate)


def watch(
    spark: "SparkSession",
    path: str,
    checks: Sequence[str] | None = None,
    *,
    until_complete: bool = False,
    poll: float = 1.0,
    checkpoint: str | None = None,
    witnesses: int = WITNESSES,
    tell: Callable[[Certificate], None] = lambda certificate: None,
) -> "CheckedTrace":
    """Look at a trace every `poll` seconds until it is complete or a violation is found, as `inga watch` does. `tell` hears
    of everything new at once."""
    certificate = watch_trace(
        path, checks, until_complete=until_complete, poll=poll, checkpoint=checkpoint, witnesses=witnesses,
        tell=lambda looked: tell(looked.certificate), session=spark,
    )  # fmt: skip
    return CheckedTrace(spark, open_trace(path, spark, growing=True), certificate)


def metrics(spark: "SparkSession", path: str, *, one_clock: bool = False) -> "Metrics":
    """Measure a trace. `one_clock` says that the wall clocks of all processes are the same, where the trace does not."""
    measured = measure_trace(path, one_clock=one_clock, session=spark)
    frames = {name: _frame_of(spark, table) for name, table in measured.tables.items()}
    return Metrics(frames, measured)


def order(
    spark: "SparkSession",
    path: str,
    *,
    kind: str | None = None,
    group: str | None = None,
    step: str = "send",
    process: str | None = None,
    base: Base = (),
) -> "DataFrame":
    """The messages of a trace or of a table in causal order: sort by `order`. The arguments are those of `inga order`;
    `causal_order` does the same for a DataFrame or a stream."""
    capture = open_capture(path, kind=kind, group=group, step=step, process=process)
    ordered: DataFrame = ordered_table(spark, capture, base)
    return ordered


def stamp(spark: "SparkSession", path: str, out: str) -> StampResult:
    """Write a trace once more, with vectors: `read(spark, out)`."""
    return stamp_trace(path, out, session=spark)


def _frame_of(spark: Any, table: Any) -> "DataFrame":
    """An Arrow table as a DataFrame. Over Spark Connect, a table without rows needs a schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    kind = from_arrow_schema(table.schema)
    frame: DataFrame = spark.createDataFrame(table) if table.num_rows else spark.createDataFrame([], kind)
    return frame


class CheckedTrace:
    """What was certified of a trace, as DataFrames of the session that did it. All of them are small."""

    def __init__(self, spark: Any, trace: StoredTrace, certificate: Certificate) -> None:
        self._spark = spark
        self.trace = trace
        self.certificate = certificate

    @property
    def verdict(self) -> str:
        """`pass`, `fail` or `unknown`."""
        return self.certificate.verdict

    @property
    def verdicts(self) -> "DataFrame":
        """A row for each check: check, verdict, violations (an exact count), reason, statement."""
        return self._frame(tables.verdicts(self.trace, self.certificate))

    @property
    def violations(self) -> "DataFrame":
        """A row for each violation that is explained: where it is, a sentence, and the chain of causes that it breaks."""
        return self._frame(tables.violations(self.certificate))

    @property
    def causes(self) -> "DataFrame":
        """What lies behind the violations, the most frequent first: cause, count, checks."""
        return self._frame(tables.causes(self.certificate))

    @property
    def arrow(self) -> dict[str, Any]:
        """`verdicts`, `violations` and `causes` as Arrow tables, with a session and without."""
        return {
            "verdicts": tables.verdicts(self.trace, self.certificate),
            "violations": tables.violations(self.certificate),
            "causes": tables.causes(self.certificate),
        }

    @property
    def pandas(self) -> dict[str, Any]:
        """The same as frames of pandas."""
        return {name: table.to_pandas() for name, table in self.arrow.items()}

    def explain(self, violation: Any) -> str:
        """A violation for a person to follow, step by step: a row of `violations`, or the number of one, counted from 0."""
        witnesses = self.certificate.witnesses
        if isinstance(violation, int):
            return _explained(witnesses[violation], self.certificate.names)
        at = {(each.check, each.process, each.pos, *each.message): each for each in witnesses}
        key = (violation["check"], violation["process"], violation["pos"], violation["src"], violation["seq"])
        return _explained(at[key], self.certificate.names)

    def write(self, directory: str, *, date: str | None = None) -> str:
        """Add the tables of this run to those in a directory, in place of what was written of the same run before. The date
        under which they stand: that of the first time, if the run is there already."""
        return tables.write(directory, self.trace, self.certificate, date=date)

    def _frame(self, table: Any) -> "DataFrame":
        if self._spark is None:
            raise UsageError("without a Spark session there are no DataFrames of it: see .arrow and .pandas")
        return _frame_of(self._spark, table)

    def __repr__(self) -> str:
        checks = ", ".join(f"{check.name} {check.verdict}" for check in self.certificate.checks)
        return f"<{self.trace.path}: {self.verdict} ({checks})>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.trace.path)}</p>{self.certificate._repr_html_()}"


class Metrics(Mapping[str, Any]):
    """DataFrames by name: steps, holds, held_by, windows, rates, and delays where clocks can be compared. docs/metrics.md says
    what is in them."""

    def __init__(self, frames: dict[str, Any], measured: Measured) -> None:
        self._frames = frames
        self._measured = measured
        self.reason = measured.reason  # why there are no delays

    def __getitem__(self, name: str) -> Any:
        """`measured["holds"]`: the DataFrame of that name."""
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def write(self, directory: str, *, date: str | None = None) -> str:
        """The same as for a certificate: add the tables of this run to those in a directory."""
        measured = self._measured
        return tables.write(directory, measured.trace, measured=measured.tables, date=date)

    def _repr_html_(self) -> str:
        return html_table(
            ("table", "columns"), [(name, ", ".join(frame.columns)) for name, frame in self.items()]
        )


def _explained(witness: Witness, names: Sequence[str]) -> str:
    lines = [f"{witness.check}: {witness.text}"]
    for step in witness.chain:
        src, seq = step.message
        lines.append(f"  {names[step.process]}, position {step.pos}: {step.step} {names[src]} {seq}")
    if witness.line:
        lines.append(f"  at {witness.line}")
    elif witness.segment:
        lines.append(f"  in {witness.segment}")
    return "\n".join(lines)
