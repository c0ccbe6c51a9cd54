"""Restore the causal order of one group's messages: the part without Spark.

A stream is put in order by an `Inbox`: `Restorer` feeds it, numbers the messages it releases, and packs its state into
one blob between two batches of the stream. A table is put in order by sorting. Both use `Marker`, which goes through
messages in their final order and marks each as

    concurrent  some earlier message is not a cause of it
    gap         some message that it names as a cause is not before it, or it is late itself
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from inga.causality.inbox import Inbox
from inga.certify.chunk import Bools, Ints
from inga.model.errors import TraceError
from inga.trace import unpack_deps

MEMBERS_MAX = 65_536  # more than any vector clock is used for; a wrong index must not fill the memory
CELLS_MAX = 1 << 21  # entries of vectors that are processed at once
FIRST = "first"

Base = Sequence[int] | str
"""The messages before a stream: counts per sender, or `FIRST`: all numbers before the first one seen of each sender."""


class TableMessage(NamedTuple):
    """The fields by which a message is ordered, and its row."""

    height: int
    src: int
    seq: int
    deps: tuple[int, ...]  # with the sender's own entry, which is ignored
    row: Any = None


class Restored(NamedTuple):
    """A message with its place in the order."""

    row: Any
    order: int  # 1, 2, 3, ... in its group
    height: int
    concurrent: bool
    gap: bool


def read_message(src: Any, seq: Any, deps: Any, row: Any = None) -> TableMessage:
    """Validate the fields of one message; `deps` are numbers, or little-endian int32 as in a trace."""
    if src is None or seq is None or deps is None or src != src or seq != seq:
        raise TraceError(f"A row has no {'src' if src is None else 'seq' if seq is None else 'deps'}.")
    src, seq = int(src), int(seq)
    if isinstance(deps, (bytes, bytearray, memoryview)):
        if len(deps) % 4:
            raise TraceError(f"Message {seq} of {src}: deps of {len(deps)} bytes is not a multiple of 4.")
        counts = unpack_deps(bytes(deps))
    else:
        if any(count is None for count in deps):
            raise TraceError(f"Message {seq} of {src}: deps holds a null.")
        counts = tuple([int(count) for count in deps])
    _check_place(src, seq, len(counts))
    if counts and min(counts) < 0:
        raise TraceError(f"Message {seq} of {src}: deps holds the negative count {min(counts)}.")
    return TableMessage(_height(src, seq, counts), src, seq, counts, row)


def _check_place(src: int, seq: int, width: int) -> None:
    if seq < 1:
        raise TraceError(f"Message {seq} of {src}: the numbers of messages begin with 1.")
    if not 0 <= src < MEMBERS_MAX or width > MEMBERS_MAX:
        raise TraceError(
            f"Message {seq} of {src}: senders are numbered from 0, and there are at most {MEMBERS_MAX:,}."
        )


def _height(src: int, seq: int, counts: tuple[int, ...]) -> int:
    """The number of messages in the past, this one included. The sender's own entry is ignored."""
    return seq + sum(counts) - (counts[src] if src < len(counts) else 0)


def read_owner(value: Any) -> int:
    """The index of the member that received a message, validated."""
    if value is None:
        raise TraceError("A row does not say whom it came to.")
    _check_place(int(value), 1, 0)
    return int(value)


def read_vectors(column: Any) -> Ints:
    """A column of lists or of binaries as a matrix, padded with zeros; the column is a pyarrow array."""
    import pyarrow as pa

    if column.null_count:
        raise TraceError("A row has no deps.")
    rows = len(column)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        flat, lengths = _packed(column)
    else:
        lengths = np.diff(column.offsets.to_numpy())
        if column.flatten().null_count:
            raise TraceError("A row has a null in its deps.")
        flat = column.flatten().to_numpy(zero_copy_only=False)
    width = int(lengths.max(initial=0))
    _check_place(0, 1, width)
    matrix = np.zeros((rows, width), np.int64)
    matrix[np.arange(width) < lengths[:, None]] = flat
    if (matrix < 0).any():
        raise TraceError(f"A row has the negative count {matrix.min()} in its deps.")
    return matrix


def vector_slices(column: Any) -> Iterator[Ints]:
    """The same, in slices of rows with at most CELLS_MAX entries: vectors of a thousand members are long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    width = pc.max(pc.list_value_length(column) if is_list else pc.binary_length(column)).as_py() or 0
    step = max(1, CELLS_MAX // max(1, width if is_list else width // 4))
    for at in range(0, len(column), step):
        yield read_vectors(column.slice(at, step))


def _packed(column: Any) -> tuple[Any, Ints]:
    """The counts of a column of binaries, one row after the other, and how many each row has."""
    import pyarrow as pa

    if not len(column):  # there may be no buffers either
        return np.zeros(0, "<i4"), np.zeros(0, np.int64)
    _, places, content = column.buffers()
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    ends = np.frombuffer(places, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    lengths = np.diff(ends)
    torn = np.flatnonzero(lengths % 4)
    if len(torn):
        raise TraceError(f"A row has deps of {lengths[torn[0]]} bytes, which is not a multiple of 4.")
    if not lengths.any():
        return np.zeros(0, "<i4"), lengths // 4
    return np.frombuffer(content, "<i4", int(lengths.sum()) // 4, int(ends[0])), lengths // 4


def read_places(src: Any, seq: Any) -> tuple[Ints, Ints]:
    """The columns of senders and numbers, validated."""
    for name, column in (("src", src), ("seq", seq)):
        if column.null_count:
            raise TraceError(f"A row has no {name}.")
    sources = np.asarray(src.to_numpy(zero_copy_only=False), np.int64)
    numbers = np.asarray(seq.to_numpy(zero_copy_only=False), np.int64)
    for at in (sources.argmin(), sources.argmax(), numbers.argmin()) if len(sources) else ():
        _check_place(int(sources[at]), int(numbers[at]), 0)
    return sources, numbers


def read_heights(column: Any, unknown: int) -> Ints:
    """The column of heights, with a number in place of those that are null."""
    import pyarrow as pa

    return np.asarray(column.cast(pa.int64()).fill_null(unknown).to_numpy(zero_copy_only=False), np.int64)


NOBODY = -1
"""In place of the member that received some messages: there is none, or it is not known."""


@dataclass(slots=True)
class Marker:
    """Goes through messages in their final order; keeps the highest number so far of each sender.

    `own` is the member that received these messages. It knew its own messages without receiving them, so if one is missing that
    is no gap; but one that it received after a message that names it is late.
    """

    from_first: bool = False
    came: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    own: int = NOBODY
    named: int = 0  # the highest number of `own` that was named

    @classmethod
    def of(cls, base: Base, own: int = NOBODY) -> "Marker":
        if isinstance(base, str):
            return cls(from_first=True, own=own)
        return cls(False, np.array(base, np.int64), own)

    def mark(self, src: Ints, seq: Ints, deps: Ints) -> tuple[Bools, Bools]:
        """(concurrent, gap) of the next messages; a line of `deps` per message."""
        self._grow(max(deps.shape[1], int(src.max(initial=-1)) + 1, self.own + 1))
        step = max(1, CELLS_MAX // max(1, len(self.came)))
        parts = [
            self._mark(src[at : at + step], seq[at : at + step], deps[at : at + step])
            for at in range(0, len(src), step)
        ]
        if not parts:
            return np.zeros(0, np.bool_), np.zeros(0, np.bool_)
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def pass_over(self, came: Ints, named: int) -> None:
        """Take over what is known of earlier messages that this marker did not go through: `came` and `named` at their end."""
        self._grow(len(came))
        self.came[: len(came)] = np.maximum(self.came[: len(came)], came)
        self.named = max(self.named, named)

    def _mark(self, src: Ints, seq: Ints, deps: Ints) -> tuple[Bools, Bools]:
        rows, n = np.arange(len(src)), len(self.came)
        required = np.zeros((len(src), n), np.int64)
        required[:, : deps.shape[1]] = deps
        required[rows, src] = seq - 1
        steps = np.zeros((len(src) + 1, n), np.int64)
        steps[0] = self.came
        steps[rows + 1, src] = seq
        came = np.maximum.accumulate(steps, axis=0)
        before, self.came = came[:-1], came[-1]
        lacking = required > before
        if self.from_first:
            lacking &= before > 0  # of other senders nothing came yet
        ahead = before > required
        ahead[rows, src] = False
        concurrent: Bools = np.asarray(ahead.any(axis=1))
        late = seq <= before[rows, src]
        if self.own != NOBODY:
            lacking[:, self.own] = False
            named = np.maximum.accumulate(np.append(self.named, required[:, self.own]))
            late |= (src == self.own) & (seq <= named[:-1])
            self.named = int(named[-1])
        gap: Bools = lacking.any(axis=1) | late
        return concurrent, gap

    def _grow(self, members: int) -> None:
        more = members - len(self.came)
        if more > 0:
            self.came = np.append(self.came, np.zeros(more, np.int64))


class Restorer:
    """Puts the stream of one group in order: takes messages as they arrive, returns those that are released. `own` is the
    member that received the stream: its own messages are not waited for, since they may never arrive."""

    def __init__(self, base: Base = (), own: int = NOBODY) -> None:
        self._from_first = isinstance(base, str)
        self._inbox: Inbox[tuple[float, TableMessage]] = Inbox.for_stream(
            () if isinstance(base, str) else base
        )
        self._marker = Marker.of(base, own)
        self._begun: set[int] = set()  # senders whose first number is known
        self.order = 0  # of the last message released

    @property
    def held(self) -> int:
        return self._inbox.held

    def offer(self, messages: Iterable[TableMessage], now: float = 0.0) -> list[Restored]:
        """Accept messages; return those that they release. They are sorted first, so that the result does not depend on
        the order in which a shuffle delivered them."""
        arrived = sorted(messages, key=lambda message: message[:3])
        inbox = self._inbox
        inbox.grow(max((max(each.src + 1, len(each.deps)) for each in arrived), default=0))
        out: list[tuple[float, TableMessage]] = []
        if self._from_first:
            self._begin(arrived, out)
        for message in arrived:
            src, own = message.src, self._marker.own
            needs = tuple(
                [(k, count) for k, count in enumerate(message.deps) if count and k not in (src, own)]
            )
            inbox.offer(src, message.seq, needs, (now, message), out)
        return self._release(out)

    def give_up(self, since: float) -> list[Restored]:
        """Stop waiting for the missing causes of messages that arrived at that time or before; return the messages released."""
        out: list[tuple[float, TableMessage]] = []
        if self._inbox.held:
            self._inbox.give_up(lambda item: item[0] <= since, out)
        return self._release(out)

    def oldest(self) -> float | None:
        """When the message arrived that has been held longest; None if none is held."""
        return min((arrived for arrived, _ in self._inbox.items()), default=None)

    def dumps(self) -> bytes:
        state = (self._from_first, self._begun, self.order, self._marker)
        return pickle.dumps((state, self._inbox.dumps()), pickle.HIGHEST_PROTOCOL)

    @classmethod
    def loads(cls, data: bytes) -> "Restorer":
        state, inbox = pickle.loads(data)
        restorer = cls()
        restorer._from_first, restorer._begun, restorer.order, restorer._marker = state
        restorer._inbox = Inbox.loads(inbox)
        return restorer

    def _begin(self, arrived: list[TableMessage], out: list[tuple[float, TableMessage]]) -> None:
        """Begin with the lowest number of each sender in the first batch of the stream that has messages of it."""
        firsts: dict[int, int] = {}
        for message in arrived:
            if message.src not in self._begun:
                firsts[message.src] = min(message.seq, firsts.get(message.src, message.seq))
        for src, seq in firsts.items():
            self._inbox.begin(src, seq, out)
        self._begun |= firsts.keys()

    def _release(self, out: list[tuple[float, TableMessage]]) -> list[Restored]:
        if not out:
            return []
        messages = [message for _, message in out]
        width = max(len(message.deps) for message in messages)
        deps = np.array(
            [message.deps + (0,) * (width - len(message.deps)) for message in messages], np.int64
        ).reshape(len(messages), width)
        src = np.array([message.src for message in messages], np.int64)
        seq = np.array([message.seq for message in messages], np.int64)
        concurrent, gap = self._marker.mark(src, seq, deps)
        first = self.order + 1
        self.order += len(messages)
        return [
            Restored(message.row, first + at, message.height, one, other)
            for at, (message, one, other) in enumerate(
                zip(messages, concurrent.tolist(), gap.tolist(), strict=True)
            )
        ]
