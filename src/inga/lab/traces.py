"""Traces made by the million, clean or with one planted defect: input for tests and measurements of checks.

  python -m inga.lab.traces OUT --events 10000000 --members 8
  python -m inga.lab.traces OUT --events 1000000 --defect swap --seed 3

Time goes in rounds. In each, every member sends `burst` messages and delivers what the others sent in the
round before, all in a random order that keeps each sender's. So nothing of one round depends on anything of the
same round but the sender's own, every such order is causal, and whole rounds can be made by numpy at once.

Kinds: `total` gives all members the same order; `views` changes the view twice; `objects` has requests that all
begin in the same order, with methods of which some conflict.

With the receipt `accept` there are rows as of a protocol with levels: a message is accepted, delivered, and
confirmed, and now and then a control message is sent.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inga.model.errors import UsageError
from inga.trace import Manifest, ProcessFile, pack_dst, schema
from inga.trace.writer import SEGMENT_ROWS, segment_name

DEFECTS = ("swap", "loss", "duplicate", "stamp", "forgery", "unsent", "destination")
"""In this order: two deliveries in the wrong order; a missing delivery; a duplicate one; a send with a wrong vector; a delivered copy
with another vector than was sent; a delivery of a message that no member sent; one of a message for other members."""

LEVEL_DEFECTS = ("split", "unaccepted", "noise")
"""With the receipt `accept`: a delivery that is missing at one member and not at others; a message that one destination
never accepted, though it was confirmed (too early); control traffic long after the last message."""

KIND_DEFECTS = {"total": ("disorder",), "views": ("view",), "objects": ("conflict", "precedence")}
"""By kind of trace: two deliveries in another order than at other members; a message of a closed view that one survivor
lacks; two conflicting requests in another order than at other members; a request that starts after one that it precedes."""

KINDS = ("plain", *KIND_DEFECTS)
METHODS = ("decrease", "increase", "show")
CONFLICTS = [["decrease", "show"], ["increase", "show"]]
VIEWS = 3  # in a trace of that kind

BLOCK_ROWS = 1 << 18  # the most rows of one member that are made at once
BLOCK_COUNTS = 1 << 26  # and the most entries of their vectors, for all members
STEPS = ("send", "deliver", "take", "accept", "confirm", "control", "view", "request", "start")
SEND, DELIVER, TAKE, ACCEPT, CONFIRM, CONTROL, VIEW, REQUEST, START = range(9)

EVERYBODY = -1

RECEIPTS = ("deliver", "take", "accept")
NOISE = 1 << 33  # nanoseconds by which planted control traffic is later: eight seconds


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted defect, and where a check should find it."""

    defect: str
    check: str
    process: int
    pos: int  # of the row; 0 for a missing row
    message: tuple[int, int]
    since: int = 0  # the position of the first row in the wrong order, if any are

    def to_json(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.__slots__}


@dataclass(slots=True)
class MemberRows:
    """Rows of one member, as columns."""

    step: NDArray[np.int8]
    src: NDArray[np.int32]
    seq: NDArray[np.int64]
    deps: NDArray[np.int32]
    view: NDArray[np.int32]
    spared: NDArray[np.int32]  # of a send: the one member that is not a destination, or EVERYBODY

    def take(self, order: Any) -> "MemberRows":
        return MemberRows(*(getattr(self, name)[order] for name in self.__slots__))

    def table(self, process: int, first: int) -> Any:
        """Return the rows as a table with the columns of a trace; times are derived from positions."""
        import pyarrow as pa

        count, n = self.deps.shape
        pos = np.arange(first, first + count)
        control = (self.step == CONTROL) | (self.step == VIEW)  # these rows concern no message
        asked = (self.step == REQUEST) | (self.step == START)
        valid = pa.py_buffer(np.packbits(~control, bitorder="little")) if control.any() else None
        vectors = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(4 * n), count, [valid, pa.py_buffer(np.ascontiguousarray(self.deps))]
        )
        columns = {
            "process": pa.array(np.full(count, process, np.int32)),
            "pos": pa.array(pos),
            "time": pa.array(pos * 1000 + NOISE * (control & (self.seq > 0))),
            "step": pa.DictionaryArray.from_arrays(self.step.astype(np.int32), pa.array(STEPS)),
            "view": pa.array(self.view),
            "dst": _destinations(self.spared, process, n),
            "src": pa.array(self.src, mask=control),
            "seq": pa.array(self.seq, mask=control),
            "deps": vectors,
            "height": pa.array(self.deps.sum(axis=1, dtype=np.int64) + 1, mask=control),
            "n": pa.array(np.ones(count, np.int64)),
        }
        if asked.any():
            columns["op"] = pa.array(np.array(METHODS)[self.method], mask=~asked)
        layout = schema(n)
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in layout
        ]
        return pa.table(arrays, schema=layout)

    @property
    def method(self) -> Any:
        """The method that a request calls: any will do, if it is the same in all rows of the request."""
        return (self.seq + self.src) % len(METHODS)


def _destinations(spared: Any, process: int, n: int) -> Any:
    import pyarrow as pa

    if (spared == EVERYBODY).all():
        return pa.nulls(len(spared), pa.binary())
    others = ((1 << n) - 1) & ~(1 << process)
    return pa.array(
        [None if at == EVERYBODY else pack_dst(others & ~(1 << at), n) for at in spared.tolist()], pa.binary()
    )


RECEIPT_ROWS = {"deliver": 1, "take": 2, "accept": 3}
"""The number of rows of one delivery, by receipt."""


@dataclass(frozen=True, slots=True)
class TraceRecipe:
    """The parameters of a made trace. `events` is rounded up to whole rounds."""

    events: int
    members: int = 8
    burst: int = 4
    receipt: str = "deliver"  # or `take`, `accept`: more rows for every delivery
    seed: int = 0
    defect: str | None = None
    kind: str = "plain"
    talkers: int | None = None  # how many members send; the others only receive; None: all send

    def __post_init__(self) -> None:
        if self.members < 2 or self.burst < 1 or self.receipt not in RECEIPTS:
            raise UsageError(
                f"a made trace has 2 members or more, a burst and a receipt: {', '.join(RECEIPTS)}"
            )
        if self.kind not in KINDS or (self.kind != "plain" and self.receipt == "accept"):
            raise UsageError(f"kinds are {', '.join(KINDS)}; only the first has levels")
        plain: tuple[str, ...] = (*DEFECTS, *LEVEL_DEFECTS) if self.receipt == "accept" else DEFECTS
        known = KIND_DEFECTS.get(self.kind, plain)
        if self.defect not in (None, *known):
            raise UsageError(f"no defect {self.defect!r} here; there are {', '.join(known)}")
        if self.defect == "split" and self.members < 3:
            raise UsageError("a message can be split between destinations if there are 3 members or more")
        if self.defect == "view" and self.members < 3:
            raise UsageError("survivors of a view can disagree if there are 3 members or more")
        if self.defect in ("disorder", "conflict") and self.members < 4:
            # Members do not deliver their own messages, so two senders have all but two members as common destinations.
            raise UsageError("two processes can disagree on two messages if there are 4 members or more")
        if not 2 <= self.senders <= self.members or (self.senders < self.members and self.defect):
            raise UsageError(f"2 to {self.members} members talk, and all of them where there is a defect")
        if self.rounds < 6:
            raise UsageError(f"{self.events} events are too few for {self.members} members")

    @property
    def senders(self) -> int:
        return self.members if self.talkers is None else self.talkers

    @property
    def rounds(self) -> int:
        slots = self.senders * self.burst
        rows = slots + (slots - self.burst) * (RECEIPT_ROWS[self.receipt] - 1)
        return -(-self.events // (rows * self.members))

    @property
    def guarantees(self) -> list[str]:
        """The guarantees that a trace without a defect keeps."""
        if self.kind == "objects":
            return ["object"]
        levels = ["atomic", "quiet"] if self.receipt == "accept" else []
        if self.kind != "plain":
            levels = [self.kind]
        return ["integrity", "complete", "fifo", "stamps", "causal", *levels]

    def view(self, rounds: Any) -> Any:
        """Return the view in which messages of a round are sent."""
        if self.kind != "views":
            return np.ones_like(rounds)
        return 1 + np.minimum(np.maximum(rounds, 0) * VIEWS // self.rounds, VIEWS - 1)

    @property
    def rounds_at_once(self) -> int:
        rows = min(BLOCK_ROWS, BLOCK_COUNTS // self.members**2)
        return max(rows // (2 * self.senders * self.burst), 1)


class Maker:
    """Makes the rows, block after block, so that memory does not grow with the trace."""

    def __init__(self, recipe: TraceRecipe) -> None:
        self.recipe = recipe
        self.planted: Planted | None = None
        self._random = np.random.default_rng(recipe.seed)
        # Not at the very end, where the rows that a defect disturbs may be missing.
        last = recipe.rounds - 2
        if recipe.defect == "view":  # in a view that is closed
            last = max(recipe.rounds * (VIEWS - 1) // VIEWS, 3)
        self._defect_round = int(self._random.integers(2, last)) if recipe.defect else -1
        within = self._defect_round % recipe.rounds_at_once
        if recipe.defect and not 1 < within < recipe.rounds_at_once - 3:
            # All rows of a defect must be in one block.
            middle = self._defect_round - within + recipe.rounds_at_once // 2
            self._defect_round = middle if middle < last else max(last - 2, 1)
        self._positions = [0] * recipe.members

    def blocks(self) -> Iterator[list[MemberRows]]:
        """Yield blocks of rows for all members: `block[process]`."""
        recipe = self.recipe
        last_stamps = np.zeros((recipe.senders, recipe.burst, recipe.members), np.int32)
        for first in range(0, recipe.rounds + 1, recipe.rounds_at_once):
            # One more round than there are sends, in which the last messages are delivered.
            rounds = np.arange(first, min(first + recipe.rounds_at_once, recipe.rounds + 1))
            turns = None if recipe.kind in ("plain", "views") else self._turns(len(rounds))
            made = [self._order(process, rounds, turns) for process in range(recipe.members)]
            stamps = np.stack([vectors for _, vectors in made[: recipe.senders]])
            self._break_stamp(stamps, rounds)
            earlier = np.concatenate([last_stamps[:, None], stamps], axis=1)
            block = [
                self._rows(process, rounds, labels, stamps[min(process, recipe.senders - 1)], earlier)
                for process, (labels, _) in enumerate(made)
            ]
            last_stamps = stamps[:, -1]
            if rounds[0] <= self._defect_round <= rounds[-1]:
                self._break_rows(block, rounds)
            for process, rows in enumerate(block):
                self._positions[process] += len(rows.step)
            yield block

    def _turns(self, rounds: int) -> Any:
        burst, slots = self.recipe.burst, self.recipe.senders * self.recipe.burst
        return self._random.random((rounds, slots)).argsort(axis=1).astype(np.int32) // burst

    def _order(self, process: int, rounds: Any, turns: Any) -> tuple[Any, Any]:
        """Return the sender of the message in each place of each round, in this member's order, and the vectors of its own sends."""
        recipe = self.recipe
        talkers, burst = recipe.senders, recipe.burst
        labels = self._turns(len(rounds)) if turns is None else turns
        # A member that sends in the next view has delivered all messages of the previous one.
        new = np.flatnonzero(recipe.view(rounds) != recipe.view(rounds - 1))
        last = np.argsort(labels[new] == process, axis=1, kind="stable")
        labels[new] = np.take_along_axis(labels[new], last, axis=1)
        sends = np.zeros((len(rounds), burst, recipe.members), np.int32)
        if process >= talkers:
            return labels, sends
        seen = np.cumsum(labels[:, :, None] == np.arange(talkers), axis=1, dtype=np.int32)
        seen += np.maximum(rounds - 1, 0).astype(np.int32)[:, None, None] * burst
        if rounds[0] == 0:  # nothing was sent before the first round
            seen[0] = 0
        sends[:, :, :talkers] = seen[labels == process].reshape(len(rounds), burst, talkers)
        sends[:, :, process] = rounds[:, None] * burst + np.arange(burst)
        return labels, sends

    def _rows(self, process: int, rounds: Any, labels: Any, own: Any, earlier: Any) -> MemberRows:
        recipe = self.recipe
        burst, (count, slots) = recipe.burst, labels.shape
        order = np.argsort(labels, axis=1, kind="stable")
        place = np.empty_like(order)  # the index of a message among those of its label in its round
        np.put_along_axis(place, order, np.broadcast_to(np.arange(slots) % burst, (count, slots)), axis=1)
        is_send = labels == process
        index = np.broadcast_to(np.arange(count)[:, None], (count, slots))
        # `earlier` starts one round before: its entry i is for the round before round i.
        deps = earlier[labels, index, place]
        deps[is_send] = own[index[is_send], place[is_send]]
        seq = np.where(is_send, rounds[:, None], rounds[:, None] - 1) * burst + place + 1
        kept = np.where(is_send, rounds[:, None] < recipe.rounds, rounds[:, None] > 0)
        view = recipe.view((seq[kept] - 1) // burst).astype(np.int32)
        step = np.where(is_send, SEND, DELIVER)[kept].astype(np.int8)
        rows = MemberRows(
            step, labels[kept], seq[kept], deps[kept], view, np.full(len(view), EVERYBODY, np.int32)
        )
        if recipe.kind == "objects":
            rows.step[:] = np.where(rows.step == SEND, REQUEST, START)
            return rows
        if recipe.kind == "views":
            rows = self._with_views(rows, first=rounds[0] == 0)
        if recipe.receipt == "take":
            repeat = np.where(rows.step == DELIVER, 2, 1)
            rows = rows.take(np.repeat(np.arange(len(repeat)), repeat))
            rows.step[np.cumsum(repeat)[repeat == 2] - 1] = TAKE
        elif recipe.receipt == "accept":
            repeat = np.where(rows.step == DELIVER, 3, 1)
            rows = rows.take(np.repeat(np.arange(len(repeat)), repeat))
            last = np.cumsum(repeat)[repeat == 3] - 1
            rows.step[last - 2], rows.step[last] = ACCEPT, CONFIRM
            rows = _with_control(rows)
        return rows

    def _with_views(self, rows: MemberRows, *, first: bool) -> MemberRows:
        """Insert a row for each view before the first row that belongs to it."""
        highest = np.maximum.accumulate(rows.view)
        new = np.flatnonzero(np.diff(highest, prepend=0 if first else highest[:1]) > 0)
        rows = rows.take(np.insert(np.arange(len(rows.step)), new, new))
        rows.step[new + np.arange(len(new))] = VIEW
        return rows

    # ---- defects

    def _break_stamp(self, stamps: Any, rounds: Any) -> None:
        """Change the vector of a send and of all its copies: only the sender's other rows show that it is wrong."""
        if self.recipe.defect != "stamp" or not rounds[0] <= self._defect_round <= rounds[-1]:
            return
        n, burst = self.recipe.members, self.recipe.burst
        process, number = int(self._random.integers(n)), int(self._random.integers(burst))
        entry = int(self._random.choice([other for other in range(n) if other != process]))
        change = int(self._random.choice([-1, 1]))
        stamps[process, self._defect_round - rounds[0], number, entry] += change
        seq = self._defect_round * burst + number + 1
        self.planted = Planted("stamp", "stamps", process, 0, (process, seq))

    def _break_rows(self, block: list[MemberRows], rounds: Any) -> None:
        defect = self.recipe.defect
        if defect == "stamp":
            assert self.planted is not None
            process, message = self.planted.process, self.planted.message
            at = int(np.flatnonzero((block[process].step == SEND) & (block[process].seq == message[1]))[0])
            self.planted = Planted("stamp", "stamps", process, self._positions[process] + at + 1, message)
            return
        process = int(self._random.integers(self.recipe.members))
        rows = block[process]
        low = (self._defect_round - 1) * self.recipe.burst  # a round delivers messages of the previous one
        step = START if self.recipe.kind == "objects" else DELIVER
        chosen = (rows.step == step) & (rows.seq > low) & (rows.seq <= low + self.recipe.burst)
        at = int(self._random.choice(np.flatnonzero(chosen)))
        if defect == "destination":
            self._spare(block[rows.src[at]], int(rows.seq[at]), process)
        block[process], where, check = getattr(self, f"_plant_{defect}")(rows, at)
        since = 0
        if defect in ("swap", "disorder", "conflict", "precedence"):
            moved = (block[process].src != rows.src) | (block[process].seq != rows.seq)
            since = self._positions[process] + int(moved.argmax()) + 1
        absent = defect in ("loss", "split", "unaccepted", "view")
        broken = rows if absent else block[process]
        message = (int(broken.src[where]), int(broken.seq[where]))
        if defect == "noise":
            message = (process, 0)
        pos = 0 if absent else self._positions[process] + where + 1
        self.planted = Planted(str(defect), check, process, pos, message, since)

    def _plant_swap(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        """Exchange a delivery with the next one of the same sender."""
        same = np.flatnonzero((rows.step == DELIVER) & (rows.src == rows.src[at]))
        place = int(np.searchsorted(same, at))
        one, two = (at, int(same[place + 1])) if place + 1 < len(same) else (int(same[place - 1]), at)
        order = np.arange(len(rows.step))
        order[[one, two]] = two, one
        return rows.take(order), two, "causal"

    def _plant_disorder(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        """Move a delivery behind the next one of another sender, which is of the same round and so concurrent."""
        return (*self._exchange(rows, at, (rows.step == DELIVER) & (rows.src != rows.src[at])), "total")

    def _plant_conflict(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        """Move a request behind the next conflicting one of another sender."""
        return (*self._exchange(rows, at, self._conflicting(rows, at) & (rows.src != rows.src[at])), "object")

    def _plant_precedence(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        """Move a request behind one that it precedes."""
        after = self._conflicting(rows, at) & (rows.deps[:, rows.src[at]] >= rows.seq[at])
        return (*self._exchange(rows, at, after), "object")

    def _conflicting(self, rows: MemberRows, at: int) -> Any:
        table = np.zeros((len(METHODS), len(METHODS)), np.bool_)
        for one, other in CONFLICTS:
            pair = METHODS.index(one), METHODS.index(other)
            table[pair] = table[pair[::-1]] = True
        return (rows.step == START) & table[rows.method[at], rows.method]

    def _exchange(self, rows: MemberRows, at: int, others: Any) -> tuple[MemberRows, int]:
        """Move a row behind the next of the others; return the rows, and where it is now."""
        after = np.flatnonzero(others[at + 1 :])
        assert len(after), "the trace goes on for a while after a defect"
        then = at + 1 + int(after[0])
        order = np.insert(np.delete(np.arange(len(rows.step)), at), then, at)
        return rows.take(order), then

    def _spare(self, rows: MemberRows, seq: int, process: int) -> None:
        """Remove a process from the destinations of a send."""
        sends = (rows.step == SEND) & (rows.seq == seq)
        assert sends.any(), "it was sent in the same block"
        rows.spared[sends] = process

    def _plant_destination(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        return rows, at, "integrity"

    def _plant_view(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        return rows.take(np.delete(np.arange(len(rows.step)), at)), at, "views"

    def _plant_loss(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        return rows.take(np.delete(np.arange(len(rows.step)), at)), at, "complete"

    def _plant_duplicate(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        again = int(self._random.integers(at + 1, min(at + 50, len(rows.step)) + 1))
        return rows.take(np.insert(np.arange(len(rows.step)), again, at)), again, "integrity"

    def _plant_forgery(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        others = [other for other in range(self.recipe.members) if other != rows.src[at]]
        rows.deps[at, int(self._random.choice(others))] -= 1
        return rows, at, "integrity"

    def _plant_split(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        return rows.take(np.delete(np.arange(len(rows.step)), at)), at, "atomic"

    def _plant_unaccepted(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        same = (rows.src == rows.src[at]) & (rows.seq == rows.seq[at]) & (rows.step == ACCEPT)
        accept = int(np.flatnonzero(same)[0])
        return rows.take(np.delete(np.arange(len(rows.step)), accept)), accept, "atomic"

    def _plant_noise(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        """Insert a control message with a number, by which `table` recognizes it and gives it a late time."""
        rows = rows.take(np.insert(np.arange(len(rows.step)), at, at))
        rows.step[at], rows.seq[at] = CONTROL, 1
        return rows, at, "quiet"

    def _plant_unsent(self, rows: MemberRows, at: int) -> tuple[MemberRows, int, str]:
        """Insert a delivery of a message that its sender never sent, with a number after all its messages."""
        rows = rows.take(np.insert(np.arange(len(rows.step)), at + 1, at))
        rows.seq[at + 1] = (self.recipe.rounds + 5) * self.recipe.burst
        return rows, at + 1, "integrity"


def _with_control(rows: MemberRows) -> MemberRows:
    """Insert one control message at the beginning of a block."""
    if not len(rows.step):
        return rows
    rows = rows.take(np.insert(np.arange(len(rows.step)), 0, 0))
    rows.step[0], rows.seq[0] = CONTROL, 0
    return rows


def make(
    directory: Path,
    recipe: TraceRecipe,
    *,
    segment_rows: int = SEGMENT_ROWS,
    progress: Callable[[int], None] = lambda rows: None,
) -> Planted | None:
    """Write a trace, and return the planted defect, if any. `progress` is called with the number of rows so far."""
    maker = Maker(recipe)
    names = [f"member{index + 1}" for index in range(recipe.members)]
    manifest = Manifest(
        group="made", processes=names, source="made", order="vector", receipt=recipe.receipt, clock="virtual",
        guarantees=recipe.guarantees, seed=recipe.seed, complete=True,
        options={"events": recipe.events, "burst": recipe.burst, "defect": recipe.defect, "kind": recipe.kind},
        conflicts=dict.fromkeys(names, CONFLICTS) if recipe.kind == "objects" else None,
    )  # fmt: skip
    manifest.write(directory)
    (directory / "events").mkdir(exist_ok=True)
    writers = [_Segments(directory, process, segment_rows) for process in range(recipe.members)]
    rows = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy and Arrow release the interpreter's lock
        adding: list[Future[None]] = []
        for block in maker.blocks():
            _finish(adding)  # only one block is written while the next one is made, which bounds memory
            adding = [pool.submit(writer.add, part) for writer, part in zip(writers, block, strict=True)]
            rows += sum(len(part.step) for part in block)
            progress(rows)
        _finish(adding)
    for writer, name in zip(writers, names, strict=True):
        writer.end(name)
    return maker.planted


def _finish(work: Iterable[Future[None]]) -> None:
    for each in work:
        each.result()


class _Segments:
    """Cuts rows into segments of equal size."""

    def __init__(self, directory: Path, process: int, segment_rows: int) -> None:
        self._directory, self._process, self._segment_rows = directory, process, segment_rows
        self._waiting: list[Any] = []
        self._count = self._number = self._pos = 0

    def add(self, rows: MemberRows) -> None:
        self._waiting.append(rows.table(self._process, self._pos + 1))
        self._pos += len(rows.step)
        self._count += len(rows.step)
        while self._count >= self._segment_rows:
            self._write(self._segment_rows)

    def end(self, name: str) -> None:
        if self._count:
            self._write(self._count)
        ProcessFile(self._process, name, first_view=1, last_pos=self._pos, complete=True).write(
            self._directory
        )

    def _write(self, count: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.concat_tables(self._waiting)
        part, rest = table.slice(0, count), table.slice(count)
        path = self._directory / "events" / segment_name(self._process, self._number)
        repeated = ["process", "step", "view", "src", "dst", "peer", "n", "op"]
        counting = dict.fromkeys(("pos", "time", "seq", "height"), "DELTA_BINARY_PACKED")
        pq.write_table(
            part, path, row_group_size=count, compression="zstd", use_dictionary=repeated,
            column_encoding=counting, write_statistics=["process", "pos"], write_page_checksum=True,
        )  # fmt: skip
        self._waiting, self._count = [rest], self._count - count
        self._number += 1


def main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m inga.lab.traces",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument(
        "--talkers", type=int, help="members that send; the others only listen (default: all)"
    )
    parser.add_argument("--burst", type=int, default=4, help="sends of a member in one round")
    parser.add_argument("--receipt", choices=RECEIPTS, default="deliver")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, default="plain")
    defects = (*DEFECTS, *LEVEL_DEFECTS, *(each for kind in KIND_DEFECTS.values() for each in kind))
    parser.add_argument("--defect", choices=defects)
    given = vars(parser.parse_args())
    planted = make(given.pop("out"), TraceRecipe(**given))
    print(json.dumps({"planted": None if planted is None else planted.to_json()}))


if __name__ == "__main__":
    main()
