"""Rows of a trace as columns to draw: ordered by time, with a number for each message and each copy of it.

A picture of a million events needs neither vectors nor names: which event precedes which follows from the sends and
receipts, so a viewer can follow the arrows. Texts are cut short, and each is listed once.

Control packets and datagrams are left out: they are most of a trace, and nothing that a person looks for. So are arrivals
of messages that were held or passed on at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from inga.trace.schema import Row, unpack_dst

STEPS_DRAWN = (
    *(
        "send",
        "receive",
        "hold",
        "accept",
        "causal",
        "confirm",
        "acknowledge",
        "deliver",
        "take",
        "duplicate",
    ),
    *("gap", "nack", "repair", "gave_up", "lost", "window_closed", "window_opened"),
    *("view", "join", "leave", "suspect", "flush", "crash", "state"),
    *("request", "start", "commit", "abort", "response", "undo", "event"),
)
COLUMNS_DRAWN = (
    *("process", "pos", "time", "step", "view", "src", "seq"),
    *("dst", "peer", "n", "op", "ref", "note"),
)
TEXT_MAX = 200  # characters of a text that are shown
TEXTS_MAX = 20_000  # different texts; events with further ones are drawn without text
CLOCKS_MAX = 1 << 26  # entries of all clocks of imported events; if there are more, arrows are left out
BLOCK = 1 << 14  # events whose clocks are compared at once

_GOES_ON = ("accept", "deliver", "hold", "start")  # steps that may follow the arrival of a message


@dataclass(frozen=True, slots=True)
class Drawing:
    """Columns of events, and of the messages that they concern. Numbers count from 0, and -1 stands for none."""

    process: Any  # integers, one per event; so are the columns down to `ref`
    pos: Any
    time: Any  # nanoseconds
    step: Any  # index into STEPS_DRAWN
    view: Any
    message: Any
    copy: Any  # one message at one process
    peer: Any
    n: Any
    text: Any  # index into `texts`
    cause: Any  # of an event of an imported log: the event that it learned of, according to its clock
    ref: Any  # index into `refs`; numbers beyond its end are equal if and only if the references are
    src: Any  # integers, one per message; so are `seq` and `dst`
    seq: Any
    dst: Any  # index into `sets`
    texts: Sequence[str] = field(default_factory=list)
    refs: Sequence[str] = field(default_factory=list)
    sets: Sequence[Sequence[int]] = field(default_factory=list)  # of processes

    def __len__(self) -> int:
        return len(self.process)

    def find(self, process: int, pos: int) -> int | None:
        """The index of the event at a position of a process, or None if it is not drawn."""
        found = ((self.process == process) & (self.pos == pos)).nonzero()[0]
        return int(found[0]) if len(found) else None


def from_rows(rows: Iterable[Row]) -> Drawing:
    """The drawing of some rows."""
    import numpy as np

    kept = [row for row in rows if row.step in STEPS_DRAWN]
    codes = {step: code for code, step in enumerate(STEPS_DRAWN)}

    def numbers(name: str) -> Any:
        values = (getattr(row, name) for row in kept)
        return np.array([-1 if value is None else value for value in values], np.int64)

    sets: dict[int, int] = {}
    masks = [-1 if row.dst is None else sets.setdefault(row.dst, len(sets)) for row in kept]
    texts, refs = _Words(), _Words()
    return _drawing(
        {name: numbers(name) for name in ("process", "pos", "time", "view", "src", "seq", "peer", "n")}
        | {
            "step": np.array([codes[row.step] for row in kept], np.int64),
            "dst": np.array(masks, np.int64),
            "text": np.array([texts.code(row.op or row.note) for row in kept], np.int64),
            "ref": np.array([refs.code(row.ref) for row in kept], np.int64),
        },
        texts.words,
        refs.words,
        [_members(mask) for mask in sets],
        _clocks([row.deps if row.step == "event" else None for row in kept]),
    )


def from_table(table: Any) -> Drawing:
    """The drawing of a pyarrow table that has the columns `COLUMNS_DRAWN` and only rows of `STEPS_DRAWN`. Events of imported
    logs need the column `deps`, too."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    def numbers(name: str) -> Any:
        return pc.fill_null(table[name], -1).to_numpy()  # 32 or 64 bits wide, as in traces

    def coded(column: Any) -> tuple[Any, Any]:
        whole = column.combine_chunks().dictionary_encode()
        whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
        codes = pc.fill_null(whole.indices, -1).to_numpy(zero_copy_only=False)
        return codes, whole.dictionary.slice(0, TEXTS_MAX)

    def short(column: Any) -> Any:
        return pc.utf8_slice_codeunits(column.cast(pa.string()), 0, TEXT_MAX)

    steps = pc.index_in(table["step"].cast(pa.string()), value_set=pa.array(STEPS_DRAWN))
    text, texts = coded(pc.coalesce(short(table["op"]), short(table["note"])))
    ref, refs = coded(table["ref"])
    dst, sets = coded(table["dst"])
    columns = {name: numbers(name) for name in ("process", "pos", "time", "view", "src", "seq", "peer", "n")}
    columns |= {"step": steps.to_numpy().astype(np.int32), "dst": dst, "text": text, "ref": ref}
    members = [_members(unpack_dst(each)) for each in sets.to_pylist()]
    clocks = None
    if "deps" in table.column_names and table.num_rows * (table["deps"].type.byte_width // 4) <= CLOCKS_MAX:
        clocks = _matrix(table["deps"])
    return _drawing(columns, texts.to_pylist(), short(refs).to_pylist(), members, clocks)


class _Words:
    """Different texts, numbered in the order of their first appearance."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, text: str | None) -> int:
        return -1 if text is None else self._codes.setdefault(text, len(self._codes))

    @property
    def words(self) -> list[str]:
        return [word[:TEXT_MAX] for word in list(self._codes)[:TEXTS_MAX]]


def _members(mask: int) -> list[int]:
    return [at for at, bit in enumerate(reversed(f"{mask:b}")) if bit == "1"]


def _clocks(vectors: Sequence[Sequence[int] | None]) -> Any:
    """A matrix with one row for each event; None if there are no clocks, or more than `CLOCKS_MAX` entries."""
    import numpy as np

    width = max((len(each) for each in vectors if each is not None), default=0)
    if not width or width * len(vectors) > CLOCKS_MAX:
        return None
    clocks = np.zeros((len(vectors), width), np.int32)
    for line, vector in enumerate(vectors):
        if vector is not None:
            clocks[line, : len(vector)] = vector
    return clocks


def _matrix(deps: Any) -> Any:
    """The same for a column of vectors of one length."""
    import numpy as np

    width = deps.type.byte_width // 4
    clocks = np.zeros((len(deps), width), np.int32)
    at = 0
    for chunk in deps.chunks:
        values = np.frombuffer(chunk.buffers()[1] or b"", "<i4")[chunk.offset * width :]
        part = clocks[at : at + len(chunk)]
        if chunk.null_count < len(chunk):
            part[:] = values[: len(chunk) * width].reshape(-1, width)
            part[chunk.is_null().to_numpy(zero_copy_only=False)] = 0
        at += len(chunk)
    return clocks


def _causes(columns: dict[str, Any], clocks: Any) -> Any:
    """The event that each event of an imported log learned of: of all entries of its clock that rose since the previous event of
    the same process, the one whose event has the largest clock. That event knew the others, unless news came over two
    independent ways at once."""
    import numpy as np

    events = np.flatnonzero(columns["step"] == STEPS_DRAWN.index("event"))
    cause = np.full(len(columns["step"]), -1, np.int64)
    if not len(events):
        return cause
    events = events[np.lexsort((columns["pos"][events], columns["process"][events]))]
    process, seq, line = (columns[name][events].astype(np.int64) for name in ("process", "seq", "line"))
    width = int(seq.max(initial=0)) + 1
    keys = process * width + seq
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    height = np.concatenate([clocks[part].sum(axis=1, dtype=np.int64) for part in _blocks(line)])
    for first, part in zip(range(0, len(line), BLOCK), _blocks(line), strict=True):
        known = clocks[part].astype(np.int64)
        before = np.vstack([clocks[line[max(first - 1, 0)]], known[:-1]])
        here = process[first : first + BLOCK]
        before[here != np.append(-1 if not first else process[first - 1], here[:-1])] = 0
        rose = known > before
        rose[np.arange(len(part)), here] = False
        which, source = np.nonzero(rose)
        wanted = source * width + np.minimum(known[which, source], width - 1)
        at = order[np.minimum(np.searchsorted(in_order, wanted), len(keys) - 1)]
        there = keys[at] == wanted
        which, at = which[there], at[there]
        best = np.lexsort((height[at], which))  # of several, the highest is last, and overwrites the others
        cause[events[first + which[best]]] = events[at[best]]
    return cause


def _blocks(line: Any) -> list[Any]:
    return [line[at : at + BLOCK] for at in range(0, len(line), BLOCK)]


def _drawing(
    columns: dict[str, Any], texts: list[str], refs: list[str], sets: list[list[int]], clocks: Any
) -> Drawing:
    """Sort the events, number messages and copies, and leave out arrivals that show nothing of their own."""
    import numpy as np

    columns["line"] = np.arange(len(columns["step"]))  # row of `clocks`, which is too large to be sorted
    order = np.lexsort((columns["pos"], columns["process"], columns["time"]))
    for name in columns:  # one at a time, to save memory: they are large
        columns[name] = columns[name][order]
    columns |= _numbered(columns)
    idle = _is_idle(columns)
    for name in columns:
        columns[name] = columns[name][~idle]
    none = np.full(len(columns["step"]), -1, np.int64)
    columns["cause"] = none if clocks is None else _causes(columns, clocks)
    columns |= _numbered(columns)  # again, so that messages seen only in events left out have no number
    count = int(columns["message"].max(initial=-1)) + 1
    about = columns["message"] >= 0
    src, seq, dst = (np.full(count, -1, np.int64) for _ in range(3))
    src[columns["message"][about]] = columns["src"][about]
    seq[columns["message"][about]] = columns["seq"][about]
    named = about & (columns["dst"] >= 0)
    dst[columns["message"][named]] = columns["dst"][named]
    kept = {name: columns[name] for name in Drawing.__slots__ if name in columns}
    return Drawing(**kept | {"src": src, "seq": seq, "dst": dst, "texts": texts, "refs": refs, "sets": sets})


def _numbered(columns: dict[str, Any]) -> dict[str, Any]:
    """The message that each event concerns, and the copy of it; -1 for none."""
    import numpy as np

    about = (columns["src"] >= 0) & (columns["seq"] >= 0)
    message, copy = (np.full(len(about), -1, np.int64) for _ in range(2))
    numbers, codes = np.unique(columns["seq"][about], return_inverse=True)
    key = columns["src"][about].astype(np.int64) * (len(numbers) + 1) + codes
    message[about] = np.unique(key, return_inverse=True)[1]
    width = int(columns["process"].max(initial=0)) + 1
    copy[about] = np.unique(message[about] * width + columns["process"][about], return_inverse=True)[1]
    return {"message": message, "copy": copy}


def _is_idle(columns: dict[str, Any]) -> Any:
    """Which events are arrivals of a message that was passed on or held at the same time, or earlier."""
    import numpy as np

    copy, time, step = columns["copy"], columns["time"], columns["step"]
    goes_on = np.isin(step, [STEPS_DRAWN.index(each) for each in _GOES_ON]) & (copy >= 0)
    copies = int(copy.max(initial=-1)) + 1
    first = np.full(copies, np.iinfo(np.int64).max)
    np.minimum.at(first, copy[goes_on], time[goes_on])
    is_receive = (step == STEPS_DRAWN.index("receive")) & (copy >= 0)
    idle = np.zeros(len(step), bool)
    idle[is_receive] = first[copy[is_receive]] <= time[is_receive]
    return idle
