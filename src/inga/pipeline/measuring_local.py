"""The tables of `measuring` without Spark: the same columns and the same numbers, from a trace that fits into memory.

For reports, which would otherwise wait for Spark longer than for everything else. A test holds both against each other.
Per link nothing is counted here, and not everything is measured that Spark measures: what a report draws.
"""

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import Ints
from inga.pipeline.files import Files
from inga.pipeline.measuring import BUCKETS, CONTROL_STEPS, HELD_BY_MAX, LEVELS, REPAIR_STEPS
from inga.pipeline.storage import read_file
from inga.trace.schema import STEP_NAMES

MeasuredRow = dict[str, Any]
MeasuredTables = dict[str, list[MeasuredRow]]


ROWS_MAX = 4_000_000  # of a trace, beyond which Spark is quicker if there is one
VECTORS_MAX = 1 << 24  # entries of vectors of held messages that are looked at

_COLUMNS = ("process", "pos", "time", "step", "src", "seq", "peer", "n")
_CODES = {step: code for code, step in enumerate(STEP_NAMES)}
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def measure(files: Files, comparable: bool) -> MeasuredTables:
    """As rows: steps, holds, held_by, windows, rates; and delays where times of different processes are comparable."""
    rows = _Rows(files)
    waited = _held(rows)
    found = {
        "steps": _steps(rows),
        "holds": _holds(waited),
        "held_by": _held_by(rows, waited, files),
        "windows": _windows(rows),
        "rates": _rates(rows),
    }
    return {**found, "delays": _delays(rows)} if comparable else found


class _Rows:
    """Columns of all rows, by process and position; -1 stands for none."""

    def __init__(self, files: Files) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        trace = files.trace
        names = pa.array(STEP_NAMES)
        columns: dict[str, list[Any]] = {name: [np.zeros(0, np.int64)] for name in _COLUMNS}
        for at, file in enumerate(trace.files):
            table = read_file(file, trace.n, _COLUMNS, files.content(at))
            for name in _COLUMNS:
                values = table[name]
                if name == "step":
                    values = pc.index_in(values.cast(pa.string()), value_set=names)
                columns[name].append(pc.fill_null(values, -1).to_numpy().astype(np.int64))
        whole = {name: np.concatenate(each) for name, each in columns.items()}
        order = np.lexsort((whole["pos"], whole["process"]))
        self.process, self.pos, self.time, self.step, self.src, self.seq, self.peer, self.n = (
            whole[name][order] for name in _COLUMNS
        )
        self._numbers = np.unique(self.seq)

    def are(self, *steps: str) -> NDArray[np.bool_]:
        return np.isin(self.step, [_CODES[step] for step in steps])

    def message(self, where: Any) -> Ints:
        """One number for sender and number of a message."""
        codes = np.searchsorted(self._numbers, self.seq[where])
        keys: Ints = self.src[where] * (len(self._numbers) + 1) + codes
        return keys


def _steps(rows: _Rows) -> list[MeasuredRow]:
    found = []
    for step in np.unique(rows.step).tolist():
        where = rows.step == step
        n = rows.n[where]
        found.append(_counted(step, None, n))
        found += [_counted(step, process, n[at]) for process, at in _groups(rows.process[where])]
    return found


def _counted(step: int, process: int | None, n: Ints) -> MeasuredRow:
    given = n[n >= 0]
    total = int(given.sum()) if len(given) else None
    return {"step": STEP_NAMES[step], "process": process, "peer": None, "count": len(n), "n": total}


def _groups(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Each key, and where it is, in order."""
    order = np.argsort(keys, kind="stable")
    found, first = np.unique(keys[order], return_index=True)
    return zip(found.tolist(), np.split(order, first[1:]), strict=False)  # of no keys there is one empty part


def _delays(rows: _Rows) -> list[MeasuredRow]:
    sends = np.flatnonzero(rows.are("send") & (rows.src >= 0))
    keys = rows.message(sends)
    order = np.argsort(keys, kind="stable")
    keys, times = keys[order], rows.time[sends][order]
    found: list[MeasuredRow] = []
    for level in sorted(LEVELS):
        there = np.flatnonzero(rows.are(level) & (rows.src >= 0) & (rows.process != rows.src))
        wanted = rows.message(there)
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        known = keys[at] == wanted if len(keys) else np.zeros(len(there), bool)
        ms, process = (
            (rows.time[there] - times[at])[known] / 1e6 if len(keys) else [],
            rows.process[there][known],
        )
        found += _spreads(np.asarray(ms), process, step=level)
    return found


def _spreads(ms: NDArray[np.float64], process: Ints, **more: Any) -> Iterator[MeasuredRow]:
    """In all, and per process."""
    if not len(ms):
        return
    yield {**more, "process": None, "src": None, **_spread(ms)}
    for each, at in _groups(process):
        yield {**more, "process": each, "src": None, **_spread(ms[at])}


def _spread(ms: NDArray[np.float64]) -> dict[str, Any]:
    ms = np.sort(ms)
    shares = {name: float(ms[max(ceil(share * len(ms)) - 1, 0)]) for name, share in _SHARES.items()}
    return {"count": len(ms), "mean": float(ms.mean()), "min": float(ms[0]), **shares, "max": float(ms[-1])}


class _Held:
    """Messages that waited: at which rows they were put aside and let through."""

    def __init__(self, put: Ints, went: Ints, rows: _Rows) -> None:
        self.put, self.went = put, went
        self.ms = (rows.time[went] - rows.time[put]) / 1e6
        self.process = rows.process[put]


def _held(rows: _Rows) -> _Held:
    put = np.flatnonzero(rows.are("hold") & (rows.src >= 0))
    went = np.flatnonzero(rows.are("deliver", "accept") & (rows.src >= 0))
    put, put_keys = _firsts(rows, put)
    went, went_keys = _firsts(rows, went)
    _, of_put, of_went = np.intersect1d(put_keys, went_keys, assume_unique=True, return_indices=True)
    return _Held(put[of_put], went[of_went], rows)


def _firsts(rows: _Rows, at: Ints) -> tuple[Ints, Ints]:
    """Of each message at each process the first of these rows, and what is the same for the same copy."""
    keys, codes = np.unique(rows.message(at), return_inverse=True)
    keys = keys[codes] * (int(rows.process.max(initial=0)) + 1) + rows.process[at]
    found, first = np.unique(keys, return_index=True)  # rows of a process are in order
    return at[first], found


def _holds(waited: _Held) -> list[MeasuredRow]:
    if not len(waited.ms):
        return [{"process": None, "src": None, "count": 0} | dict.fromkeys(("mean", "min", *_SHARES, "max"))]
    return list(_spreads(waited.ms, waited.process))


def _held_by(rows: _Rows, waited: _Held, files: Files) -> list[MeasuredRow]:
    """For which message others waited last: `measuring.held_by` says how that is found."""
    n = files.trace.n
    if not len(waited.put) or len(waited.put) * n > VECTORS_MAX:
        return []
    deps = _vectors(rows, waited, files)
    through, _ = _firsts(rows, np.flatnonzero(rows.are("deliver", "accept") & (rows.src >= 0)))
    passed = {process: through[at] for process, at in _groups(rows.process[through])}
    best = np.zeros((len(waited.put), 3), np.int64)  # position, sender and number
    for process, here in _groups(waited.process):
        for src, at in _groups(rows.src[passed[process]]):
            of_src = passed[process][at]
            of_src = of_src[np.argsort(rows.seq[of_src], kind="stable")]
            latest, by = _running_last(rows.pos[of_src])
            named = deps[here, src]
            at = np.searchsorted(rows.seq[of_src], named, side="right") - 1
            pos = np.where((at >= 0) & (named > 0), latest[at], 0)
            is_last = (pos > rows.pos[waited.put[here]]) & (pos < rows.pos[waited.went[here]])
            is_last &= pos > best[here, 0]
            best[here[is_last]] = np.stack([pos, np.full_like(pos, src), rows.seq[of_src][by[at]]], axis=1)[
                is_last
            ]
    known = best[:, 0] > 0
    return _worst(waited.process[known], best[known], waited.ms[known])


def _running_last(pos: Ints) -> tuple[Ints, Ints]:
    """Of each beginning of a list the highest position, and where that is."""
    latest = np.maximum.accumulate(pos)
    by = np.maximum.accumulate(np.where(pos == latest, np.arange(len(pos)), 0))
    return latest, by


def _worst(process: Ints, by: Ints, ms: NDArray[np.float64]) -> list[MeasuredRow]:
    groups: dict[tuple[int, int, int], list[float]] = {}
    for where, (_, src, seq), each in zip(process.tolist(), by.tolist(), ms.tolist(), strict=True):
        groups.setdefault((where, src, seq), []).append(each)
    found = [
        {"process": where, "src": src, "seq": seq, "held": len(each), "ms": sum(each), "ms_max": max(each)}
        for (where, src, seq), each in groups.items()
    ]
    found.sort(key=lambda row: (-row["ms"], row["process"], row["src"], row["seq"]))
    return found[:HELD_BY_MAX]


def _vectors(rows: _Rows, waited: _Held, files: Files) -> NDArray[np.int32]:
    """What each held message names, from the rows that let it through; 0 where there is nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trace = files.trace
    vectors = np.zeros((len(waited.went), trace.n), np.int32)
    wanted = dict(_groups(waited.process))
    for at, file in enumerate(trace.files):
        lines = wanted.get(file.process)
        if lines is None:
            continue
        table = read_file(file, trace.n, ("pos", "deps"), files.content(at))
        line_of = dict(zip(rows.pos[waited.went[lines]].tolist(), lines.tolist(), strict=True))
        is_wanted = pc.is_in(table["pos"], value_set=pa.array(list(line_of), pa.int64()))
        table = table.filter(pc.and_(is_wanted, pc.is_valid(table["deps"])))
        for pos, deps in zip(table["pos"].to_pylist(), table["deps"].to_pylist(), strict=True):
            vectors[line_of[pos]] = np.frombuffer(deps, "<i4")
    return vectors


def _windows(rows: _Rows) -> list[MeasuredRow]:
    about = np.flatnonzero(rows.are("window_closed", "window_opened"))
    found = []
    for process, at in _groups(rows.process[about]):
        here = about[at]
        own = slice(*np.searchsorted(rows.process, [process, process + 1]))
        begin, end = rows.time[own].min(), rows.time[own].max()
        until = np.append(rows.time[here][1:], end)
        closed = (until - rows.time[here])[rows.step[here] == _CODES["window_closed"]] / 1e6
        if not len(closed):
            continue
        run_ms, ms = (end - begin) / 1e6, float(closed.sum())
        share = ms / run_ms if run_ms > 0 else 0.0
        found.append(
            {
                "process": process,
                "closed": len(closed),
                "ms": ms,
                "ms_max": float(closed.max()),
                "share": share,
            }
        )
    return found


def _rates(rows: _Rows) -> list[MeasuredRow]:
    """All members together, by parts of the time."""
    if not len(rows.time):
        return []
    begin, end = int(rows.time.min()), int(rows.time.max())
    width = max((end - begin) // BUCKETS + 1, 1)
    bucket = (rows.time - begin) // width
    families = {
        "sends": ("send",),
        "deliveries": ("deliver",),
        "holds": ("hold",),
        "control": CONTROL_STEPS,
        "repair": REPAIR_STEPS,
    }
    counts = {
        name: np.bincount(bucket[rows.are(*steps)], minlength=BUCKETS) for name, steps in families.items()
    }
    return [
        {"from_ms": at * width / 1e6, "length_ms": width / 1e6}
        | {name: int(count[at]) for name, count in counts.items()}
        for at in range(BUCKETS)
    ]
