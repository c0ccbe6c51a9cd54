"""Vectors by slices are those of a plain computation, event by event, wherever the cuts are."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.certify import slice as slicing
from inga.certify.slice import COPY, RECEIPT, SEND, Slice, SliceEdges, SlicePlan, Steps
from inga.model.errors import TraceError
from inga.trace import Row

from .world import Trace, wander


def steps(rows: list[Row], process: int, receipt: str = "deliver") -> Steps:
    kinds = {"send": SEND, "deliver": COPY, receipt: RECEIPT}
    kept = [row for row in rows if row.step in kinds]
    return Steps(
        process, rows[0].pos if rows else 1, len(rows),
        np.array([row.pos for row in kept], np.int64), np.array([kinds[row.step] for row in kept], np.int8),
        np.array([row.src for row in kept], np.int32), np.array([row.seq for row in kept], np.int64),
    )  # fmt: skip


def stamped(
    trace: Trace, receipt: str, counts_max: int, random: Random
) -> tuple[dict[tuple[int, int], tuple[int, ...]], SlicePlan]:
    """(process, position) to vector, by the same steps as in files; how the cuts were placed."""
    n = len(trace)
    segments: list[tuple[Steps, np.ndarray]] = []
    for process, rows in enumerate(trace):
        places = sorted(random.randrange(len(rows) + 1) for _ in range(2))
        for low, high in zip([0, *places], [*places, len(rows)], strict=True):
            part = rows[low:high]
            if part:
                segments.append((steps(part, process, receipt), np.array([row.time for row in part])))
    plan = SlicePlan([(at, slicing.outline(*each, n)) for at, each in enumerate(segments)], n, counts_max)
    for at, question in plan.to_place():
        plan.placed(segments[at][0].process, slicing.place(*segments[at], question))
    moved = True
    while moved:
        found = [(at, slicing.retreat(segments[at][0], question)) for at, question in plan.to_verify()]
        changes = [plan.retreated(segments[at][0].process, each) for at, each in found]
        moved = any(changes)
    cuts = plan.cuts()
    wanted: set[tuple[int, int]] = set()
    for each, _ in segments:
        wanted |= set(zip(*(column.tolist() for column in slicing.crossings(each, cuts)), strict=True))
    parts = []
    for at, upto in enumerate(cuts.upto):
        after = cuts.upto[at - 1] if at else np.zeros(n, np.int64)
        pieces = [each.between(after[each.process], upto[each.process]) for each, _ in segments]
        parts.append(Slice.of([piece for piece in pieces if piece.events], n))
    chain, vectors = SliceEdges(n), {}
    for begin, part in zip([chain.add(slicing.symbols(part, wanted)) for part in parts], parts, strict=True):
        found, _ = slicing.vectors(part, begin.start, begin.outside)
        for row in range(len(part.kind)):
            process = int(np.searchsorted(part.begins, row, side="right")) - 1
            vectors[process, int(part.pos[row])] = tuple(found[part.line[row]].tolist())
    return vectors, plan


def timed(random: Random, trace: Trace, skew: int) -> Trace:
    """Times that grow along each process, with clocks that are wrong by up to `skew`."""
    result = []
    for rows in trace:
        offset, time, new = random.randrange(skew + 1), 0, []
        for row in rows:
            time += random.randrange(3)
            new.append(row._replace(time=time + offset))
        result.append(new)
    return result


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 5),
    messages=st.integers(1, 40),
    receipt=st.sampled_from(["deliver", "take", "accept"]),
    subsets=st.booleans(),
    echo=st.booleans(),
    counts_max=st.sampled_from([20, 60, 200, 10**6]),
    skew=st.sampled_from([0, 10, 100]),
)
def test_every_vector_is_that_of_a_plain_computation(
    seed: int, n: int, messages: int, receipt: str, subsets: bool, echo: bool, counts_max: int, skew: int
) -> None:
    random = Random(seed)
    world = {"receipt": receipt, "subsets": subsets, "echo": echo}
    trace = timed(random, wander(random, n, messages, **world), skew)  # type: ignore[arg-type]
    found, _ = stamped(trace, receipt, counts_max, random)
    expected = {
        (row.process, row.pos): row.deps
        for rows in trace
        for row in rows
        if row.step in ("send", "deliver", receipt)
    }
    assert found == expected


def test_cuts_are_several_and_some_are_moved() -> None:
    """The property above would be empty if it never had more than one slice, or never a bad cut."""
    slices, moved = 0, 0
    for seed in range(20):
        random = Random(seed)
        trace = timed(random, wander(random, 4, 40), 60)
        _, plan = stamped(trace, "deliver", 60, random)
        slices, moved = max(slices, len(plan.cuts().upto)), moved + plan.moved
    assert slices > 5 and moved > 20


def test_an_inconsistent_cut_gives_wrong_vectors_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the repair is for: without it something goes wrong in some of these."""
    monkeypatch.setattr(slicing, "retreat", lambda steps, cuts: [])
    wrong = 0
    for seed in range(20):
        random = Random(seed)
        trace = timed(random, wander(random, 4, 40), 60)
        try:
            found, _ = stamped(trace, "deliver", 60, random)
        except (TraceError, KeyError):
            wrong += 1
            continue
        wrong += any(found[row.process, row.pos] != row.deps for rows in trace for row in rows if row.deps)
    assert wrong > 10


def test_numba_and_python_walk_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = timed(Random(5), wander(Random(5), 4, 40), 20)
    one, _ = stamped(trace, "deliver", 60, Random(1))
    monkeypatch.setattr(slicing, "_walker", lambda: slicing.walk)
    two, _ = stamped(trace, "deliver", 60, Random(1))
    assert one == two


def row(at: int, pos: int, step: str, src: int, seq: int) -> Row:
    return Row(at, pos, pos, step, 1, src, seq)


def test_a_message_that_nobody_sent() -> None:
    with pytest.raises(TraceError, match="no row says that it was sent"):
        stamped([[row(0, 1, "deliver", 1, 1)], []], "deliver", 100, Random(1))


def test_a_circle() -> None:
    """Each of two delivers the other's message before it sends its own."""
    trace = [[row(at, 1, "deliver", 1 - at, 1), row(at, 2, "send", at, 1)] for at in range(2)]
    with pytest.raises(TraceError, match="goes round in a circle"):
        stamped(trace, "deliver", 100, Random(1))


def test_numbers_that_are_left_out() -> None:
    """Whoever numbers messages by tens has vectors of ten times the counts."""
    for seed in range(5):
        trace = timed(Random(seed), wander(Random(seed), 4, 40), 20)
        by_tens = [[each._replace(seq=each.seq and each.seq * 10) for each in rows] for rows in trace]
        expected, plan = stamped(trace, "deliver", 60, Random(seed))
        found, _ = stamped(by_tens, "deliver", 60, Random(seed))
        assert len(plan.cuts().upto) > 1
        assert found == {place: tuple(10 * count for count in deps) for place, deps in expected.items()}


def test_what_is_read_again_is_what_was_in_the_chunk() -> None:
    """Whichever step is the receipt, and whatever other rows lie between."""
    for receipt in ("deliver", "take", "accept"):
        for rows in wander(Random(3), 4, 40, receipt=receipt):
            between = [Row(each.process, each.pos, each.pos, "timer", 1) for each in rows[::3]]
            mixed = sorted([*rows, *between], key=lambda each: each.pos)
            mixed = [each._replace(pos=at) for at, each in enumerate(mixed, 1)]
            table = pa.table(
                {
                    "pos": pa.array([each.pos for each in mixed], pa.int64()),
                    "step": pa.array([each.step for each in mixed]).dictionary_encode(),
                    "src": pa.array([each.src for each in mixed], pa.int32()),
                    "seq": pa.array([each.seq for each in mixed], pa.int64()),
                }
            )
            found = slicing.steps_in(table, mixed[0].process, receipt)
            expected = steps(mixed, mixed[0].process, receipt)
            assert (found.first, found.events) == (1, len(mixed))
            for name in ("pos", "kind", "src", "seq"):
                one, other = getattr(found, name), getattr(expected, name)
                assert one.dtype == other.dtype and one.tolist() == other.tolist()


def test_a_process_that_counts_again() -> None:
    for seed in range(5):  # in one segment or in two
        with pytest.raises(TraceError, match="counts its messages again"):
            stamped([[row(0, 1, "send", 0, 1), row(0, 2, "send", 0, 1)]], "deliver", 100, Random(seed))


def test_a_message_has_one_vector_however_many_listen() -> None:
    """Rows of a message share a line, those of one from outside too."""
    listeners = 50
    sent = Steps(0, 1, 1, *(np.array([value]) for value in (1, SEND, 0, 2)))
    heard = [
        Steps(
            at, 1, 2, np.array([1, 2]), np.full(2, RECEIPT, np.int8), np.zeros(2, np.int32), np.array([1, 2])
        )
        for at in range(1, listeners + 1)
    ]
    part = Slice.of([sent, *heard], listeners + 1)
    lines, _ = slicing.vectors(part, np.zeros((part.n, part.n), np.int64), np.zeros((1, part.n), np.int64))
    assert len(part.kind) == 2 * listeners + 1 and lines.shape == (2, part.n)
    assert part.line[0] == 0 and set(part.line[1:].tolist()) == {0, 1}
