"""The few rows of a trace that a space-time diagram shows: around violations, or at the beginning."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from inga.certify.verdict import Certificate, Witness
from inga.pipeline.files import Files
from inga.pipeline.storage import File, read_file
from inga.trace import Row, unpack_deps, unpack_dst

ROWS_MAX = 600  # what a page draws and a person can look at
PLACES_MAX = 8
LEAD = 0.6  # of the time a violation takes, shown before and after it
LEAD_MIN = 1_000_000  # nanoseconds
TABLES_KEPT = 16

STEPS = ("send", "receive", "hold", "accept", "deliver", "take", "view", "join", "leave", "crash", "event")
DRAWN_COLUMNS = ("process", "pos", "time", "step", "view", "src", "seq", "dst", "deps", "note")


class Extent(NamedTuple):
    """The positions and times that a segment covers."""

    first: int
    last: int
    begin: int
    end: int


def extent(file: File, content: bytes | None, n: int) -> Extent | None:
    """Of a segment, from two of its columns; None if it is empty."""
    table = read_file(file, n, ("pos", "time"), content)
    if not table.num_rows:
        return None
    pos, time = table["pos"], table["time"]
    return Extent(pos[0].as_py(), pos[-1].as_py(), time[0].as_py(), time[-1].as_py())


class TimeWindow:
    """Picks rows of a trace by time. Times decide nothing here but what is drawn."""

    def __init__(self, files: Files) -> None:
        self._files = files
        n, count = files.trace.n, len(files.trace.files)
        found = dict(files.map("times read", extent, [(at, n) for at in range(count)]))
        self._extents = {at: each for at, each in sorted(found.items()) if each is not None}
        self._table = lru_cache(TABLES_KEPT)(self._read)

    def pick(self, certificate: Certificate) -> tuple[list[Row], str]:
        """Rows in order of time, and a sentence that says which these are."""
        witnesses = [witness for check in certificate.checks for witness in check.witnesses]
        places = _distinct(witnesses)[:PLACES_MAX]
        if not places:
            return self._beginning()
        found: dict[tuple[int, int], Row] = {}
        for witness in places:
            for row in self._around(witness, ROWS_MAX // len(places)):
                found[row.process, row.pos] = row
        what = (
            f"{len(found):,} steps around {len(places)} violation{'s' if len(places) > 1 else ''} are shown"
        )
        return sorted(found.values(), key=_by_time), what

    def _beginning(self) -> tuple[list[Row], str]:
        firsts: dict[int, Extent] = {}
        for at, each in self._extents.items():
            firsts.setdefault(self._process(at), each)
        if not firsts:
            return [], ""
        # Up to where the first segments of all processes reach.
        is_whole = len(firsts) == len(self._extents)
        ends = [each.end for each in firsts.values()]
        rows = self._rows(
            min(each.begin for each in firsts.values()), (max if is_whole else min)(ends), ROWS_MAX
        )
        which = "All" if is_whole and len(rows) <= ROWS_MAX else "The first"
        rows = rows[:ROWS_MAX]
        what = (
            "events of the log" if any(row.step == "event" for row in rows) else "steps that concern messages"
        )
        return rows, f"{which} {len(rows):,} {what} are shown"

    def _around(self, witness: Witness, count: int) -> list[Row]:
        """The rows that a violation is about, and those nearest to them."""
        keys = {(witness.process, pos) for pos in (witness.pos, witness.other_pos) if pos}
        keys |= {(step.process, step.pos) for step in witness.chain}
        about = [row for key in sorted(keys) if (row := self._row(*key)) is not None]
        if not about:
            return []
        begin, end = min(row.time for row in about), max(row.time for row in about)
        lead = max(int((end - begin) * LEAD), LEAD_MIN)
        near = self._rows(begin - lead, end + lead, 4 * count)
        near.sort(key=lambda row: abs(row.time - (begin + end) / 2))
        return about + near[: max(count - len(about), 0)]

    # ---- rows

    def _rows(self, begin: int, end: int, count: int) -> list[Row]:
        """Rows within a span of time, in order of time; of each segment not many more than `count`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found: list[Row] = []
        for at, each in self._extents.items():
            if each.end < begin or each.begin > end:
                continue
            table = self._table(at)
            is_inside = pc.and_(pc.greater_equal(table["time"], begin), pc.less_equal(table["time"], end))
            is_shown = pc.is_in(table["step"].cast(pa.string()), value_set=pa.array(STEPS))
            found += _to_rows(table.filter(pc.and_(is_inside, is_shown)).slice(0, 2 * count))
        return sorted(_without_idle_receipts(found), key=_by_time)

    def _row(self, process: int, pos: int) -> Row | None:
        for at, each in self._extents.items():
            if self._process(at) == process and each.first <= pos <= each.last:
                return _to_rows(self._table(at).slice(pos - each.first, 1))[0]
        return None

    def _process(self, segment: int) -> int:
        return self._files.trace.files[segment].process

    def _read(self, segment: int) -> Any:
        trace = self._files.trace
        return read_file(trace.files[segment], trace.n, DRAWN_COLUMNS, self._files.content(segment))


def _by_time(row: Row) -> tuple[int, int, int]:
    return row.time, row.process, row.pos


def _distinct(witnesses: Sequence[Witness]) -> list[Witness]:
    """One witness per row: the same delivery may break several checks, and causal, the last, explains most."""
    found: dict[tuple[int, int, tuple[int, int]], Witness] = {}
    for witness in reversed(witnesses):
        found.setdefault((witness.process, witness.pos, witness.message), witness)
    return list(found.values())


def _to_rows(table: Any) -> list[Row]:
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
