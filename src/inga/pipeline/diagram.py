"""The few rows of a trace that a space-time diagram shows: around violations, or at the beginning."""

from collections.abc import Iterable, Sequence
from typing import Any

from inga.certify.verdict import Certificate, Witness
from inga.pipeline.certify import Progress, collect
from inga.pipeline.storage import File, Trace, read_file
from inga.trace import Row, unpack_deps, unpack_dst

EVENTS_MAX = 600  # what a page draws and a person can look at
PLACES_MAX = 8
LEAD = 0.6  # of the time between the two deliveries, shown before and after them

SHOWN_STEPS = ("send", "receive", "hold", "accept", "deliver", "take", "view", "join", "leave", "crash")
COLUMNS = ("process", "pos", "time", "step", "view", "src", "seq", "dst", "deps", "note")

Span = tuple[int, int]
"""From a time to a time, both included."""


class Window:
    """Picks rows of a trace by time. Times decide nothing here but what is drawn."""

    def __init__(self, session: Any, trace: Trace, progress: Progress) -> None:
        self._session = session
        self._trace = trace
        self._tables: dict[int, Any] = {}
        self._spans = self._time_spans(progress)

    def pick(self, certificate: Certificate) -> tuple[list[Row], str]:
        """Events, and a sentence that says which these are."""
        witnesses = [witness for check in certificate.checks for witness in check.witnesses]
        places = _distinct(witnesses)[:PLACES_MAX]
        if not places:
            rows = self._beginning()
            all_shown = f"All {len(rows):,} steps that concern messages are shown"
            some = f"The first {len(rows):,} steps that concern messages are shown"
            return rows, all_shown if len(rows) < EVENTS_MAX else some
        found: dict[tuple[int, int], Row] = {}
        for witness in places:
            for row in self._around(witness, EVENTS_MAX // len(places)):
                found[row.process, row.pos] = row
        rows = sorted(found.values(), key=lambda row: (row.time, row.process, row.pos))
        return rows, f"{len(rows):,} steps around {len(places)} of the violations are shown"

    # ---- which segments

    def _time_spans(self, progress: Progress) -> list[Span | None]:
        """First and last time in each segment. One column is read for it."""
        trace, n = self._trace, self._trace.n
        work = list(enumerate(trace.files))
        if trace.is_remote or not work:
            return [(0, 2**63 - 1) for _ in work]

        def spans(part: Iterable[tuple[int, File]]) -> Iterable[tuple[int, Span | None]]:
            for at, file in part:
                times = read_file(file, n, ("time",)).column("time")
                yield at, (times[0].as_py(), times[-1].as_py()) if len(times) else None

        context = self._session.sparkContext
        slices = min(len(work), 4 * context.defaultParallelism)
        rdd = context.parallelize(work, slices).mapPartitions(spans)
        return [span for _, span in sorted(collect(self._session, rdd, "times read", len(work), progress))]

    def _table(self, segment: int) -> Any:
        if segment not in self._tables:
            file = self._trace.files[segment]
            content = None
            if self._trace.is_remote:
                rows = self._session.read.format("binaryFile").load(file.path).select("content").collect()
                content = bytes(rows[0].content)
            self._tables[segment] = read_file(file, self._trace.n, COLUMNS, content)
        return self._tables[segment]

    def _rows(self, span: Span, count: int) -> list[Row]:
        """Rows within a span of time, in order of time; of each segment at most so many."""
        import pyarrow.compute as pc

        found: list[Row] = []
        for segment, covered in enumerate(self._spans):
            if covered is None or covered[1] < span[0] or covered[0] > span[1]:
                continue
            table = self._table(segment)
            inside = pc.and_(pc.greater_equal(table["time"], span[0]), pc.less_equal(table["time"], span[1]))
            wanted = pc.is_in(table["step"].cast("string"), value_set=_steps())
            found += _rows_of(table.filter(pc.and_(inside, wanted)).slice(0, count))
        return sorted(_without_idle_receipts(found), key=lambda row: (row.time, row.process, row.pos))

    # ---- what to show

    def _beginning(self) -> list[Row]:
        starts = [span[0] for span in self._spans if span is not None]
        ends = [span[1] for span in self._spans if span is not None]
        if not starts:
            return []
        return self._rows((min(starts), max(ends)), EVENTS_MAX)[:EVENTS_MAX]

    def _around(self, witness: Witness, count: int) -> list[Row]:
        """The rows that a violation is about, and those nearest to them."""
        keys = {(witness.process, pos) for pos in (witness.pos, witness.other_pos) if pos}
        keys |= {(step.process, step.pos) for step in witness.chain}
        if not witness.pos and not keys:
            keys = self._sent(witness)
        about = [row for key in sorted(keys) if (row := self._row(*key)) is not None]
        if not about:
            return []
        first, last = min(row.time for row in about), max(row.time for row in about)
        margin = int((last - first) * LEAD) or max(int(1e6), (last - first))
        near = self._rows((first - margin, last + margin), 4 * count)
        middle = (first + last) / 2
        near.sort(key=lambda row: abs(row.time - middle))
        kept = {(row.process, row.pos): row for row in (*about, *near[: max(count - len(about), 0)])}
        return list(kept.values())

    def _sent(self, witness: Witness) -> set[tuple[int, int]]:
        """Where a message was sent that has no delivery to show."""
        src, seq = witness.message
        for segment, file in enumerate(self._trace.files):
            if file.process == src:
                for row in _rows_of(self._table(segment)):
                    if row.step == "send" and row.seq == seq:
                        return {(src, row.pos)}
        return set()

    def _row(self, process: int, pos: int) -> Row | None:
        for segment, file in enumerate(self._trace.files):
            if file.process != process or self._spans[segment] is None:
                continue
            table = self._table(segment)
            first = table["pos"][0].as_py()
            if first <= pos < first + table.num_rows:
                return next(iter(_rows_of(table.slice(pos - first, 1))))
        return None


def _distinct(witnesses: Sequence[Witness]) -> list[Witness]:
    """One witness per row: the same delivery may break several checks."""
    found: dict[tuple[int, int, tuple[int, int]], Witness] = {}
    for witness in reversed(witnesses):  # causal comes last and explains most
        found.setdefault((witness.process, witness.pos, witness.message), witness)
    return list(found.values())


def _steps() -> Any:
    import pyarrow as pa

    return pa.array(SHOWN_STEPS)


def _rows_of(table: Any) -> list[Row]:
    return [
        Row(
            **{
                **values,
                "deps": None if values["deps"] is None else unpack_deps(values["deps"]),
                "dst": None if values["dst"] is None else unpack_dst(values["dst"]),
            }
        )
        for values in table.to_pylist()
    ]


def _without_idle_receipts(rows: list[Row]) -> list[Row]:
    """An arrival is worth a mark only if the message then had to wait."""
    held = {(row.process, row.src, row.seq) for row in rows if row.step == "hold"}
    return [
        row
        for row in rows
        if row.step != "hold" and (row.step != "receive" or (row.process, row.src, row.seq) in held)
    ]
