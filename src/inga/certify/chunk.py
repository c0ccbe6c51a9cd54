"""A chunk: a contiguous run of one process's rows, as plain numpy arrays.

Only the rows that matter to the checks are kept: sends, deliveries, the receipts that make a message a cause,
acceptances and confirmations, imported events. Of control rows the times are kept, if a check needs them. All other rows
of a segment are only counted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inga.model.errors import TraceError

SEND, DELIVER, RECEIPT, ACCEPT, CONFIRM, GRANT, EVENT, START, REQUEST = 1, 2, 4, 8, 16, 32, 64, 128, 256
"""What a row is: bits, since a delivery may be the receipt as well. GRANT: a view row, whose vector is what
the process knows from then on: the first numbers of a newcomer, or all messages sent in closed views. EVENT: an imported
event, so that `seq` and `deps` count events and not messages. START: an object began to execute a request. REQUEST: that
request was made. Both are kept only if methods are read."""

PROGRESS = frozenset("send accept causal confirm acknowledge deliver take".split())
"""Steps by which a message makes progress: as long as there are any, control traffic is justified."""

CHATTER = ("control", "poll", "nack", "repair")
"""Steps of control traffic, in the order of their codes in `Clocked`."""

NEVER_YET = -(2**63)
"""The latest time where there are no rows."""

EVERYBODY = -1
"""In `Chunk.dst`: the send is for all other members of the view, not for a set of processes."""

JUDGED_COLUMNS = ("process", "pos", "step", "view", "src", "seq", "dst", "deps", "peer", "n")
"""What the checks need of a trace."""

METHOD_COLUMN = "op"
"""The column of methods. If it is read, the requests of objects are kept too."""

PLACE_COLUMN = "ref"
"""The column that is also read when a segment is read again to name the lines of an imported log."""

VIEW_COLUMNS = ("pos", "view", "peer", "dst")
"""What a view row says: its position, the view's number, the leader of the change to it, its members."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Clocked:
    """When a message last made progress in a chunk, and when its process sent control traffic, in nanoseconds."""

    progress: int
    pos: Ints
    time: Ints
    what: NDArray[np.uint8]  # which of CHATTER
    first: int  # position of the first row of the segment,
    times: Ints  # and the times of all its rows

    @property
    def last(self) -> int:
        return int(self.time.max(initial=NEVER_YET))

    def is_back(self, before: int = NEVER_YET) -> Bools:
        """Which rows have an earlier time than some row before them; `before` is the latest time before the chunk."""
        highest = np.maximum.accumulate(np.append(before, self.times))[:-1]
        found: Bools = self.times < highest
        return found


@dataclass(frozen=True, slots=True)
class InstalledView:
    """A view row. The leader of the change to a view is a member of it, and installs only one view of each number. So number and
    leader together identify a view, even if several parts of a group went on with views of the same number."""

    pos: int
    number: int
    leader: int = -1  # index of a process; -1 if the row names no leader, as in a trace of another system
    members: frozenset[int] | None = None  # indices of processes, if the row lists them

    @property
    def key(self) -> tuple[int, int]:
        return self.number, self.leader


@dataclass(frozen=True, slots=True)
class Chunk:
    """The kept rows of one segment, in `pos` order. `deps` is zero where a row has none."""

    process: int
    first: int  # position of the segment's first row
    events: int  # all rows of the segment, also those that were not kept
    pos: Ints
    kind: NDArray[np.uint16]
    view: NDArray[np.int32]
    src: NDArray[np.int32]
    seq: Ints
    deps: NDArray[np.int32]  # one line of n counts per row
    stamped: Bools  # whether the row has deps
    dst: NDArray[np.int32]  # of a send: a line of `sets`, or EVERYBODY
    sets: Bools
    payloads: int = 0  # application messages in the sends
    width: int = 0  # processes that the file's vectors had room for
    left: bool = False  # a row of the process says that it left,
    settled: bool = False  # and that all members had everything it had sent
    crashed: bool = False  # or that it crashed
    flushed: int = -1  # the last view it helped to close
    clocked: Clocked | None = None  # if times were read
    refs: Any = None  # file and line of each row in an imported log, as an Arrow column, if that was read
    views: tuple[InstalledView, ...] = ()  # the view rows
    methods: list[str] = field(default_factory=list)  # names, if they were read
    method: NDArray[np.int32] | None = None  # of each row: which of `methods`

    @property
    def n(self) -> int:
        return int(self.deps.shape[1])

    def __len__(self) -> int:
        return len(self.pos)

    def is_known(self) -> Bools:
        """Which rows add to what the process knows: its sends, receipts of messages of others, and views whose
        vector says what had been sent before."""
        foreign: Bools = ((self.kind & RECEIPT) != 0) & (self.src != self.process)
        own: Bools = (self.kind & (SEND | GRANT)) != 0
        return foreign | own


def from_table(table: Any, process: int, n: int, receipt: str, *, where: str, width: int = 0) -> Chunk:
    """The chunk of a table that comes from the trace's reader: types are right; vectors have n entries, or were not read."""
    kinds, flushed, views = _kinds(table, receipt)
    leaves, crashes = (_of_itself(table, process, step) for step in ("leave", "crash"))
    clocked = _clocked(table) if "time" in table.column_names else None
    events = table.num_rows
    first = table.column("pos")[0].as_py() if events else 0
    kept = kinds != 0
    if not kept.all():
        table, kinds = table.filter(arrow_mask(kept)), kinds[kept]
    pos = numbers_in(table, "pos", np.int64)
    grants = kinds == GRANT
    columns = {}
    for name in ("src", "seq"):
        column = one_array(table.column(name))
        if column.null_count:
            missing = column.is_null().to_numpy(zero_copy_only=False) & ~grants
            if missing.any():
                at = int(np.argmax(missing))
                raise TraceError(
                    f"{where}: the row at position {pos[at]} concerns a message but has no {name}."
                )
            column = column.fill_null(process if name == "src" else 0)
        columns[name] = column.to_numpy(zero_copy_only=False)
    src, seq = np.asarray(columns["src"], np.int32), np.asarray(columns["seq"], np.int64)
    sends = (kinds & SEND) != 0
    own = (kinds & (SEND | EVENT)) != 0
    strange = np.flatnonzero((own & (src != process)) | ((seq < 1) & ~grants))
    if len(strange):
        at = strange[0]
        raise TraceError(
            f"{where}: the row at position {pos[at]} of process {process} concerns message {seq[at]} of "
            f"process {src[at]}, which cannot be."
        )
    if "deps" in table.column_names:
        deps, stamped = matrix_of(table.column("deps"), n)
    else:
        deps, stamped = np.zeros((table.num_rows, 0), np.int32), np.zeros(table.num_rows, np.bool_)
    dst, sets = _destinations(table, sends, n)
    methods, method = _methods(table)
    return Chunk(
        process, first, events, pos, kinds, numbers_in(table, "view", np.int32), src, seq, deps, stamped,
        dst, sets, _payloads(table, sends), width, bool(leaves), 0 in leaves, bool(crashes), flushed, clocked,
        table.column("ref") if "ref" in table.column_names else None,
        views, methods, method,
    )  # fmt: skip


def _kinds(table: Any, receipt: str) -> tuple[NDArray[np.uint16], int, tuple[InstalledView, ...]]:
    """What each row is, the last view that the process helped to close, and those that it installed."""
    steps = one_array(table.column("step"))
    names = steps.dictionary.to_pylist()
    codes = steps.indices.to_numpy(zero_copy_only=False)
    bits = {"send": SEND, "deliver": DELIVER, "accept": ACCEPT, "confirm": CONFIRM, "view": GRANT,
            "event": EVENT}  # fmt: skip
    bits[receipt] = bits.get(receipt, 0) | RECEIPT
    if METHOD_COLUMN in table.column_names:
        bits["start"], bits["request"] = START, REQUEST
    kinds = np.array([bits.get(name, 0) for name in names] or [0], np.uint16)[codes]
    installed = []
    for row in _rows_of(codes, names, ("view",)).tolist():
        pos, number, leader, members = (table.column(name)[row].as_py() for name in VIEW_COLUMNS)
        if "deps" not in table.column_names or not table.column("deps")[row].is_valid:
            kinds[row] = 0  # without a vector it adds nothing to what the process knows
        installed.append(
            InstalledView(pos, number)
            if members is None or leader is None
            else InstalledView(pos, number, leader, _places(members))
        )
    flushed = [table.column("view")[row].as_py() for row in _rows_of(codes, names, ("flush",)).tolist()]
    return kinds, max(flushed, default=-1), tuple(installed)


@lru_cache(maxsize=16)  # all members of a view write the same list
def _places(mask: bytes) -> frozenset[int]:
    bits = int.from_bytes(mask, "little")
    return frozenset(at for at in range(bits.bit_length()) if bits >> at & 1)


def _of_itself(table: Any, process: int, step: str) -> list[int | None]:
    """The numbers (`n`) of the rows in which the process says that it left or crashed itself: a row about another process
    names that one as `peer`."""
    steps = one_array(table.column("step"))
    rows = _rows_of(steps.indices.to_numpy(zero_copy_only=False), steps.dictionary.to_pylist(), (step,))
    own = [row for row in rows.tolist() if table.column("peer")[row].as_py() in (None, process)]
    return [table.column("n")[row].as_py() for row in own]


def _clocked(table: Any) -> Clocked:
    """The times that `quiet` and `time` compare."""
    steps = one_array(table.column("step"))
    names = steps.dictionary.to_pylist()
    codes = steps.indices.to_numpy(zero_copy_only=False)
    times = numbers_in(table, "time", np.int64)
    moved = np.array([name in PROGRESS for name in names] or [False])[codes]
    which = np.array([CHATTER.index(n) if n in CHATTER else len(CHATTER) for n in names] or [0], np.uint8)[
        codes
    ]
    rows = np.flatnonzero(which < len(CHATTER))
    progress = int(times[moved].max(initial=NEVER_YET))
    positions = numbers_in(table, "pos", np.int64)
    first = int(positions[0]) if len(positions) else 0
    return Clocked(progress, positions[rows], times[rows], which[rows], first, times)


def _rows_of(codes: NDArray[Any], names: list[str], wanted: Iterable[str]) -> NDArray[np.intp]:
    numbers = [code for code, name in enumerate(names) if name in wanted]
    return np.flatnonzero(np.isin(codes, numbers)) if numbers else np.empty(0, np.intp)


def numbers_in(table: Any, name: str, kind: Any) -> NDArray[Any]:
    return np.asarray(one_array(table.column(name)).to_numpy(zero_copy_only=False), kind)


def matrix_of(column: Any, n: int) -> tuple[NDArray[np.int32], Bools]:
    """A column of vectors as a matrix, and which rows have one; not copied unless some are missing."""
    array = one_array(column)
    rows = len(array)
    data = np.frombuffer(array.buffers()[1] or b"", "<i4", count=-1)
    matrix = data[array.offset * n : (array.offset + rows) * n].reshape(rows, n)
    if not array.null_count:
        return matrix, np.ones(rows, np.bool_)
    stamped = array.is_valid().to_numpy(zero_copy_only=False)
    return np.where(stamped[:, None], matrix, np.int32(0)), stamped


def _destinations(table: Any, sends: Bools, n: int) -> tuple[NDArray[np.int32], Bools]:
    column = one_array(table.column("dst"))
    dst = np.full(table.num_rows, EVERYBODY, np.int32)
    if column.null_count == len(column):
        return dst, np.zeros((0, n), np.bool_)
    coded, size = column.dictionary_encode(), -(-n // 8)
    codes = coded.indices.fill_null(EVERYBODY).to_numpy(zero_copy_only=False)
    dst[sends] = codes[sends]
    sets = [
        np.frombuffer(value.ljust(size, b"\0")[:size], np.uint8) for value in coded.dictionary.to_pylist()
    ]
    return dst, np.unpackbits(np.array(sets), axis=1, count=n, bitorder="little").astype(np.bool_)


def _methods(table: Any) -> tuple[list[str], NDArray[np.int32] | None]:
    if METHOD_COLUMN not in table.column_names:
        return [], None
    coded = one_array(table.column(METHOD_COLUMN)).fill_null("").dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False).astype(np.int32)


def _payloads(table: Any, sends: Bools) -> int:
    counts = one_array(table.column("n")).fill_null(0).to_numpy(zero_copy_only=False)
    return int(counts[sends].sum())


def one_array(column: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)  # not copied, as it would be below
    combined = column.combine_chunks()
    return combined.chunk(0) if hasattr(combined, "chunk") else combined


def arrow_mask(mask: Bools) -> Any:
    import pyarrow

    return pyarrow.array(mask)
