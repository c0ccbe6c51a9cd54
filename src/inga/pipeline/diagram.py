"""The rows of a trace that its space-time diagram shows: all of them, those around violations, or the first ones.

Segments are read one after the other, and only the rows that are drawn are kept, so that memory does not depend on the size of
the trace.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from inga.certify.verdict import Certificate, Witness
from inga.pipeline.files import Files
from inga.pipeline.storage import File, read_file
from inga.trace.drawing import CLOCKS_MAX, COLUMNS_DRAWN, STEPS_DRAWN, Drawing, from_table

EVENTS_MAX = 1 << 20  # in a page, some ten bytes each
PLACES_MAX = 8
LEAD = 0.6  # of the time a violation takes: at least so much is shown before and after it
LEAD_MIN = 1_000_000  # nanoseconds
WIDER = 4  # the factor by which the time span grows, as long as there is room for more rows
SHARE_DRAWN = 4  # at least one in so many rows of a trace is drawn, as a rule
SPARE = 1.5  # times the wanted rows are collected before the others are dropped: that costs a copy
ROWS_KEPT_MAX = 1 << 20  # of segments that were read, in case they are needed again


class Extent(NamedTuple):
    """The positions and times that a segment covers."""

    first: int
    last: int
    begin: int
    end: int


def extent(file: File, content: bytes | None, n: int) -> Extent | None:
    """The extent of a segment, from two of its columns; None if it is empty."""
    import pyarrow.compute as pc

    table = read_file(file, n, ("pos", "time"), content)
    if not table.num_rows:
        return None
    pos, span = table["pos"], pc.min_max(table["time"]).as_py()
    return Extent(pos[0].as_py(), pos[-1].as_py(), span["min"], span["max"])


class TimeWindow:
    """Picks the rows of a trace to draw, by time. Nothing else depends on these times."""

    def __init__(self, files: Files, events_max: int = EVENTS_MAX) -> None:
        self._files = files
        self._max = events_max
        n, count = files.trace.n, len(files.trace.files)
        found = dict(files.map("times read", extent, [(at, n) for at in range(count)]))
        self._extents = {at: each for at, each in sorted(found.items()) if each is not None}
        extents = self._extents.values()
        self._length = max((each.end for each in extents), default=0) - min(
            (each.begin for each in extents), default=0
        )
        self._rows = sum(each.last - each.first + 1 for each in extents)
        # Only the arrows of imported events come from vectors, which are most of the size of a trace.
        has_clocks = files.trace.manifest.is_import and min(self._rows, events_max) * n <= CLOCKS_MAX
        self._columns = (*COLUMNS_DRAWN, "deps") if has_clocks else COLUMNS_DRAWN
        self._tables: dict[int, Any] = {}  # of segments that were read last, the newest at the end

    def pick(self, certificate: Certificate) -> tuple[Drawing, str]:
        """What to draw, and a sentence that says what that is."""
        rows = self._rows
        if rows <= SHARE_DRAWN * self._max and (whole := self._whole()) is not None:
            return from_table(whole), "Everything that happened to messages is here"
        witnesses = [witness for check in certificate.checks for witness in check.witnesses]
        places = _distinct(witnesses)[:PLACES_MAX]
        if not places:
            found = from_table(self._beginning())
            return found, f"The first {len(found):,} events are here, of {rows:,} rows in all"
        near = _joined(self._around(witness, self._max // len(places)) for witness in places)
        self._tables.clear()
        found, plural = from_table(_unique(near)), "s" if len(places) > 1 else ""
        which = f"{len(found):,} events around {len(places)} violation{plural}"
        return found, f"{which} are here, of {rows:,} rows in all"

    def _whole(self) -> Any | None:
        """All rows that can be drawn, None if they are too many."""
        found, rows = [self._empty()], 0
        for at in self._extents:
            found.append(self._read(at))
            rows += found[-1].num_rows
            if rows > self._max:
                return None
        return _joined(found)

    def _beginning(self) -> Any:
        """The first events of the run, up to the time when the first of the processes' first segments ends."""
        firsts: dict[int, Extent] = {}
        for at, each in self._extents.items():
            firsts.setdefault(self._process(at), each)
        if not firsts:
            return self._empty()
        begin = min(each.begin for each in firsts.values())
        # Up to there the first segments have the rows of all processes.
        reach = min(each.end for each in firsts.values())
        return self._nearest(begin, begin, reach, self._max, self._read)

    def _around(self, witness: Witness, count: int) -> Any:
        """The rows that a violation is about, and those nearest to them in time."""
        import pyarrow.compute as pc

        keys = {(witness.process, pos) for pos in (witness.pos, witness.other_pos) if pos}
        keys |= {(step.process, step.pos) for step in witness.chain}
        rows = [row for key in sorted(keys) if (row := self._row(*key)) is not None]
        about = _joined(rows) if rows else self._empty()
        if not about.num_rows:
            return about
        span = pc.min_max(about["time"]).as_py()
        middle = (span["min"] + span["max"]) // 2
        lead = max(int((span["max"] - span["min"]) * LEAD), LEAD_MIN)
        near = self._nearest(middle, span["min"] - lead, span["max"] + lead, count, self._table)
        while near.num_rows < count and lead < self._length:
            lead *= WIDER
            near = self._nearest(middle, span["min"] - lead, span["max"] + lead, count, self._table)
        return _joined([about, _trimmed(near, middle, max(count - about.num_rows, 0))])

    # ---- rows

    def _nearest(self, moment: int, begin: int, end: int, count: int, read: Callable[[int], Any]) -> Any:
        """The `count` rows within a span of time that are nearest to a moment."""
        import pyarrow.compute as pc

        found = self._empty()
        for at, each in self._extents.items():
            if each.end < begin or each.begin > end:
                continue
            table = read(at)
            inside = pc.and_(pc.greater_equal(table["time"], begin), pc.less_equal(table["time"], end))
            found = _joined([found, table.filter(inside)])
            if found.num_rows > SPARE * count:
                found = _trimmed(found, moment, count)
        return _trimmed(found, moment, count)

    def _row(self, process: int, pos: int) -> Any | None:
        import pyarrow.compute as pc

        for at, each in self._extents.items():
            if self._process(at) == process and each.first <= pos <= each.last:
                table = self._table(at)
                return table.filter(pc.equal(table["pos"], pos))
        return None

    def _process(self, segment: int) -> int:
        return self._files.trace.files[segment].process

    def _table(self, segment: int) -> Any:
        """The same as `_read`, for segments that may be needed several times."""
        table = self._tables.pop(segment, None)
        if table is None:
            table = self._read(segment)
            while self._tables and self._rows_kept() + table.num_rows > ROWS_KEPT_MAX:
                del self._tables[next(iter(self._tables))]
        self._tables[segment] = table
        return table

    def _rows_kept(self) -> int:
        return sum(each.num_rows for each in self._tables.values())

    def _read(self, segment: int) -> Any:
        """Those rows of a segment that are drawn."""
        import pyarrow as pa
        import pyarrow.compute as pc

        trace = self._files.trace
        table = read_file(trace.files[segment], trace.n, self._columns, self._files.content(segment))
        table = table.set_column(
            table.column_names.index("step"), "step", table["step"].cast(pa.string())
        ).select(self._columns)
        return table.filter(pc.is_in(table["step"], value_set=pa.array(STEPS_DRAWN)))

    def _empty(self) -> Any:
        from inga.trace.schema import schema

        table = schema(self._files.trace.n).empty_table().select(self._columns)
        return table.set_column(COLUMNS_DRAWN.index("step"), "step", table["step"].cast("string"))


def _joined(tables: Iterable[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(tables)


def _trimmed(table: Any, moment: int, count: int) -> Any:
    """The `count` rows of a table that are nearest to a moment, in their order. They are copied, so that the others can be freed."""
    import numpy as np

    if table.num_rows <= count:
        return table
    away = np.abs(table["time"].to_numpy() - moment)
    return table.take(np.sort(np.argsort(away, kind="stable")[:count]))


def _unique(table: Any) -> Any:
    """Each row once: the rows around several violations may overlap."""
    import numpy as np

    process, pos = table["process"].to_numpy(), table["pos"].to_numpy()
    order = np.lexsort((pos, process))
    again = (np.diff(process[order]) == 0) & (np.diff(pos[order]) == 0)
    return table.take(np.sort(order[np.concatenate([[True], ~again])]) if len(order) else order)


def _distinct(witnesses: Sequence[Witness]) -> list[Witness]:
    """One witness per row: the same delivery may break several checks, of which later ones, such as `causal`, explain most."""
    found: dict[tuple[int, int, tuple[int, int]], Witness] = {}
    for witness in reversed(witnesses):
        found.setdefault((witness.process, witness.pos, witness.message), witness)
    return list(found.values())
