"""Small traces at random, and the checks again by plain sets and dictionaries.

The rows are what some protocol might have written: vectors are right, unless a test breaks them, but the
order of deliveries is whatever chance makes it. The judge below knows nothing of chunks, carries or sums.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from inga.certify.chunk import Chunk, from_table
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.trace import Manifest, ProcessFile, Row, pack_deps, pack_dst, schema
from inga.trace.writer import segment_name, write_segment

Trace = list[list[Row]]
"""Rows by process."""


def renumbered(rows: Iterable[Row]) -> list[Row]:
    return [row if row.pos == pos else row._replace(pos=pos) for pos, row in enumerate(rows, 1)]


def wander(
    random: Random,
    n: int,
    messages: int,
    *,
    receipt: str = "deliver",
    order: str = "none",
    subsets: bool = False,
    echo: bool = False,
    unstamped: float = 0.0,
) -> Trace:
    """A run in which messages are sent and delivered at random; all are delivered in the end."""
    rows: Trace = [[] for _ in range(n)]
    clocks = [[0] * n for _ in range(n)]
    waiting: list[list[Row]] = [[] for _ in range(n)]
    untaken: list[list[Row]] = [[] for _ in range(n)]
    sent = 0
    while sent < messages or any(waiting) or any(untaken):
        at = random.randrange(n)
        if sent < messages and random.random() < 0.3:
            row = _send(random, at, clocks[at], n, subsets)
            rows[at].append(row)
            sent += 1
            targets = row.dst if row.dst is not None else ((1 << n) - 1) & ~(1 << at)
            for other in range(n):
                if targets >> other & 1 and other != at:
                    waiting[other].append(row)
            if echo:
                rows[at].append(row._replace(step="deliver", dst=None))
        elif untaken[at] and random.random() < 0.5:
            taken = untaken[at].pop(0)
            if receipt == "accept":
                rows[at] += [taken, taken._replace(step="confirm")]
            else:
                rows[at].append(taken._replace(step="take"))
                _join(clocks[at], taken)
        elif waiting[at]:
            message = waiting[at].pop(_choose(random, waiting[at], order))
            copy = message._replace(process=at, step="deliver", dst=None)
            if random.random() < unstamped:
                copy = copy._replace(deps=None, height=None)
            if receipt == "accept":
                rows[at].append(copy._replace(step="accept", deps=message.deps))
                untaken[at].append(copy)
                _join(clocks[at], message)
                continue
            rows[at].append(copy)
            if receipt == "take":
                untaken[at].append(copy._replace(deps=message.deps))
            else:
                _join(clocks[at], message)
    if messages:
        for at, each in enumerate(rows):
            each.insert(random.randrange(len(each) + 1), Row(at, 0, 0, "control", 1))
    return [renumbered(each) for each in rows]


def _send(random: Random, at: int, clock: list[int], n: int, subsets: bool) -> Row:
    deps = tuple(clock)
    clock[at] += 1
    dst = None
    if subsets and random.random() < 0.7:
        dst = sum(1 << other for other in range(n) if other != at and random.random() < 0.5)
    return Row(at, 0, 0, "send", 1, at, clock[at], dst, deps, sum(deps) + 1, n=1)


def _join(clock: list[int], message: Row) -> None:
    assert message.deps is not None and message.src is not None and message.seq is not None
    clock[:] = map(max, clock, message.deps)
    clock[message.src] = max(clock[message.src], message.seq)


def _choose(random: Random, waiting: list[Row], order: str) -> int:
    if order == "none":
        return random.randrange(len(waiting))
    if order == "fifo":
        src = random.choice(waiting).src
        mine = [at for at, row in enumerate(waiting) if row.src == src]
        return min(mine, key=lambda at: waiting[at].seq or 0)
    return min(range(len(waiting)), key=lambda at: (waiting[at].height, waiting[at].src, waiting[at].seq))


def sabotage(random: Random, trace: Trace) -> None:
    """Break some rows: lose, repeat, forge, redirect, move, and go on talking."""
    for _ in range(random.randrange(4)):
        rows = random.choice(trace)
        if random.random() < 0.2:
            at = random.randrange(len(rows)) if rows else 0
            late = Row(trace.index(rows), 0, random.choice([10**9, 10**9 + 1]), "control", 1)
            rows[at:at] = [late]
            rows[:] = renumbered(rows)
            continue
        if random.random() < 0.2:
            accepts = [at for at, row in enumerate(rows) if row.step == "accept"]
            if accepts:
                del rows[random.choice(accepts)]
                rows[:] = renumbered(rows)
            continue
        places = [at for at, row in enumerate(rows) if row.step in ("send", "deliver")]
        if not places:
            continue
        at = random.choice(places)
        row = rows[at]
        assert row.deps is not None or row.step == "deliver"
        match random.randrange(6):
            case 0 if row.step == "deliver":
                del rows[at]
            case 1 if row.step == "deliver":
                rows.insert(random.randrange(at, len(rows)) + 1, row)
            case 2 if row.deps is not None:
                deps = list(row.deps)
                deps[random.randrange(len(deps))] += random.choice([-1, 1, 5])
                rows[at] = row._replace(deps=tuple(max(entry, 0) for entry in deps))
            case 3 if row.step == "deliver":
                rows[at] = row._replace(seq=random.randrange(1, 12))
            case 5 if row.step == "send":
                rows[at] = row._replace(seq=max(row.seq - 1, 1))  # type: ignore[operator]
            case 4 if row.step == "deliver":
                rows.insert(random.randrange(len(rows) + 1), rows.pop(at))
        rows[:] = renumbered(rows)


# ---- as input of the kernels


def table(rows: list[Row], n: int) -> pa.Table:
    layout = schema(n)
    columns: dict[str, Sequence[Any]] = (
        dict(zip(Row._fields, zip(*rows, strict=True), strict=True))
        if rows
        else dict.fromkeys(Row._fields, ())
    )
    columns["dst"] = [None if dst is None else pack_dst(dst, n) for dst in columns["dst"]]
    columns["deps"] = [None if deps is None else pack_deps(deps, n) for deps in columns["deps"]]
    return pa.table([pa.array(columns[field.name], field.type) for field in layout], schema=layout)


def chunks(random: Random, trace: Trace, receipt: str = "deliver", cuts: int = 3) -> list[Chunk]:
    """Every process cut into pieces at random places."""
    found = []
    for process, rows in enumerate(trace):
        places = sorted(random.randrange(len(rows) + 1) for _ in range(cuts))
        for low, high in zip([0, *places], [*places, len(rows)], strict=True):
            part = table(rows[low:high], len(trace))
            found.append(from_table(part, process, len(trace), receipt, where="test", width=len(trace)))
    return found


def source(
    random: Random, trace: Trace, receipt: str = "deliver", *, cuts: int = 3, **changes: object
) -> Chunks:
    processes = [
        Process(f"p{at}", 1, len(rows), complete=True, crashed=False) for at, rows in enumerate(trace)
    ]
    for key, value in changes.items():
        at = int(key.rpartition("_")[2])
        old = processes[at]
        processes[at] = Process(old.name, old.first_view, old.last_pos, **value)  # type: ignore[arg-type]
    return Chunks(chunks(random, trace, receipt, cuts), processes, receipt)


def store(random: Random, trace: Trace, receipt: str, path: Path, *, cuts: int = 2) -> None:
    """The trace as files, every process cut into segments at random places."""
    names = [f"p{at}" for at in range(len(trace))]
    Manifest("g", names, "sim", "none", receipt, "virtual", complete=True).write(path)
    (path / "events").mkdir()
    for process, rows in enumerate(trace):
        places = sorted(random.randrange(len(rows) + 1) for _ in range(cuts))
        for number, (low, high) in enumerate(zip([0, *places], [*places, len(rows)], strict=True)):
            part = table(rows[low:high], len(trace))
            write_segment(part, path / "events" / segment_name(process, number))
        ProcessFile(process, names[process], 1, len(rows), complete=True).write(path)


# ---- by brute force


def judge(trace: Trace, receipt: str = "deliver") -> Counter[str]:
    """How often each check is violated, from the statements alone."""
    found: Counter[str] = Counter()
    sends: dict[tuple[int, int], Row] = {}
    for rows in trace:
        for row in rows:
            if row.step == "send":
                sends.setdefault((row.src, row.seq), row)  # type: ignore[arg-type]
    for at, rows in enumerate(trace):
        _judge_deliveries(at, rows, sends, len(trace), found)
        _judge_stamps(at, rows, receipt, len(trace), found)
    _judge_atomic(trace, sends, found)
    _judge_quiet(trace, found)
    for rows in trace:
        found["time"] += sum(
            any(row.time < before.time for before in rows[:at]) for at, row in enumerate(rows)
        )
    found["total"] = len(misplaced(trace, "deliver", lambda at, one, other: True))
    return found


Conflict = Callable[[int, Row, Row], bool]
"""Whether two requests concern each other at a process."""


def misplaced(trace: Trace, step: str, concerns: Conflict) -> set[tuple[int, int, int]]:
    """(process, sender, number) of rows after something that a process listed before has the other way round."""
    places: list[dict[tuple[int, int], tuple[int, Row]]] = []
    for rows in trace:
        here: dict[tuple[int, int], tuple[int, Row]] = {}
        for row in rows:
            if row.step == step:
                here.setdefault((row.src, row.seq), (row.pos, row))  # type: ignore[arg-type]
        places.append(here)
    return {
        (q, *one)
        for q in range(len(trace))
        for p in range(q)
        for one, other in permutations(places[p].keys() & places[q].keys(), 2)
        if places[p][one][0] < places[p][other][0] and places[q][one][0] > places[q][other][0]
        if all(concerns(at, places[at][one][1], places[at][other][1]) for at in (p, q))
    }


def _judge_atomic(trace: Trace, sends: dict[tuple[int, int], Row], found: Counter[str]) -> None:
    def places(step: str, message: tuple[int, int]) -> set[int]:
        return {r.process for rows in trace for r in rows if r.step == step and (r.src, r.seq) == message}

    for message, sent in sends.items():
        meant = _targets(sent, len(trace)) - {sent.process}
        delivered, accepted = places("deliver", message), places("accept", message)
        for at in meant:
            found["atomic"] += at not in delivered and bool(delivered - {sent.process})
            found["atomic"] += at not in accepted and bool(places("confirm", message))


def _judge_quiet(trace: Trace, found: Counter[str]) -> None:
    steps = "send accept causal confirm acknowledge deliver take".split()
    last = max((row.time for rows in trace for row in rows if row.step in steps), default=None)
    for rows in trace:
        found["quiet"] += sum(
            row.step == "control" and last is not None and row.time > last + 10**9 for row in rows
        )


def _judge_deliveries(
    at: int, rows: list[Row], sends: dict[tuple[int, int], Row], n: int, found: Counter[str]
) -> None:
    before: list[Row] = []
    for row in rows:
        if row.step != "deliver":
            continue
        message = (row.src, row.seq)
        sent = sends.get(message)  # type: ignore[arg-type]
        again = any((other.src, other.seq) == message for other in before)
        is_forged = sent is not None and None not in (sent.deps, row.deps) and sent.deps != row.deps
        is_early = sent is not None and row.src == at and row.pos < sent.pos
        bad = sent is None or again or is_forged or is_early
        bad = bad or (row.src != at and at not in _targets(sent, n))
        found["integrity"] += bad
        newer = [other for other in before if other.src == row.src and other.seq > row.seq]  # type: ignore[operator]
        found["fifo"] += bool(newer)
        found["causal"] += bool(newer) or any(
            other.deps is not None and other.deps[row.src] >= row.seq  # type: ignore[index, operator]
            for other in before
        )
        before.append(row)
    got = {(row.src, row.seq) for row in before}
    for message, sent in sends.items():
        found["complete"] += at != sent.src and at in _targets(sent, n) and message not in got


def _targets(sent: Row, n: int) -> set[int]:
    if sent.dst is None:
        return set(range(n)) - {sent.src}  # type: ignore[arg-type]
    return {at for at in range(n) if sent.dst >> at & 1}


def _judge_stamps(at: int, rows: list[Row], receipt: str, n: int, found: Counter[str]) -> None:
    known = [0] * n
    for row in rows:
        if row.step == "send":
            found["stamps"] += tuple(known) != row.deps or row.seq != known[at] + 1
        if row.step == "send" or (row.step == receipt and row.src != at):
            _join(known, row)
