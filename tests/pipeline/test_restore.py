"""Restoring order without Spark: against explicit sets, whatever the parts in which a stream comes."""

import struct
import tracemalloc
from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import TraceError
from inga.pipeline import ordering, restore, surveying
from inga.pipeline.restore import (
    Marker,
    Restored,
    Restorer,
    TableMessage,
    read_message,
    read_owner,
    read_places,
    read_vectors,
    vector_slices,
)
from inga.pipeline.surveying import ColumnNames

from .messages import Id, Talk

seeds = st.integers(0, 10_000)


def messages(talk: Talk, ids: Iterable[Id]) -> list[TableMessage]:
    return [read_message(*id_, talk.deps(id_), id_) for id_ in ids]


def stream(talk: Talk, ids: list[Id], parts: int, restorer: Restorer | None = None) -> list[Restored]:
    """In parts, with the state as a blob in between, and a copy of every third message."""
    restorer = restorer or Restorer()
    out: list[Restored] = []
    size = -(-len(ids) // parts)
    for at in range(0, len(ids), size):
        part = ids[at : at + size]
        out += restorer.offer(messages(talk, [*part, *part[::3], *ids[: at // 3]]))
        restorer = Restorer.loads(restorer.dumps())
    return out


@given(seeds, st.integers(1, 12))
def test_a_stream_comes_out_once_in_order_and_marked(seed: int, parts: int) -> None:
    talk = Talk(seed)
    out = stream(talk, talk.ids, parts)
    order = [each.row for each in out]
    assert sorted(order) == sorted(talk.ids) and not talk.misplaced(order)
    assert [each.order for each in out] == list(range(1, len(order) + 1))
    assert [each.height for each in out] == [len(talk.past[id_]) + 1 for id_ in order]
    assert [(each.concurrent, each.gap) for each in out] == talk.judge(order)
    assert not any(each.gap for each in out)


@given(seeds, st.integers(1, 8))
def test_rows_that_a_shuffle_mixed_make_the_same_state(seed: int, parts: int) -> None:
    talk = Talk(seed)
    one, other = Restorer(), Restorer()
    rng = Random(seed)
    for at in range(0, len(talk.ids), parts):
        part = messages(talk, talk.ids[at : at + parts])
        mixed = rng.sample(part, len(part))
        assert one.offer(part) == other.offer(mixed)
        assert one.dumps() == other.dumps()


@given(seeds, st.integers(1, 10))
def test_what_is_missing_is_waited_for_so_long(seed: int, lost: int) -> None:
    talk = Talk(seed)
    restorer = Restorer()
    out = restorer.offer(messages(talk, talk.ids[lost:]), now=100)
    assert restorer.give_up(99) == []
    assert (restorer.oldest() is None) == (restorer.held == 0)
    out += restorer.give_up(100)
    order = [each.row for each in out]
    assert sorted(order) == sorted(talk.ids[lost:]) and not talk.misplaced(order)
    assert restorer.held == 0 and restorer.oldest() is None
    late = restorer.offer(messages(talk, talk.ids[:lost]), now=200) + restorer.give_up(200)
    assert sorted([*order, *(each.row for each in late)]) == sorted(talk.ids)
    everything = [*out, *late]
    assert [(each.concurrent, each.gap) for each in everything] == talk.judge(
        [each.row for each in everything]
    )


@given(seeds, st.integers(1, 4))
def test_a_table_is_marked_as_its_stream(seed: int, lost: int) -> None:
    """Sorted by height, with holes, in pieces of a few cells."""
    talk = Talk(seed)
    rows = sorted(messages(talk, talk.ids[lost:]))
    marker = Marker()
    marks: list[tuple[bool, bool]] = []
    for at in range(0, len(rows), 7):
        part = rows[at : at + 7]
        deps = np.array([each.deps for each in part])
        concurrent, gap = marker.mark(
            np.array([each.src for each in part]), np.array([each.seq for each in part]), deps
        )
        marks += list(zip(concurrent.tolist(), gap.tolist(), strict=True))
    assert marks == talk.judge([each.row for each in rows])


def test_wide_vectors_are_marked_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(5)
    rows = sorted(messages(talk, talk.ids[3:]))
    columns = (
        np.array([each.src for each in rows]),
        np.array([each.seq for each in rows]),
        np.array([each.deps for each in rows]),
    )
    whole = Marker().mark(*columns)
    monkeypatch.setattr(restore, "CELLS_MAX", 8)
    sliced = Marker().mark(*columns)
    assert all((one == other).all() for one, other in zip(whole, sliced, strict=True))


@given(seeds, st.integers(1, 20))
def test_a_stream_may_begin_in_the_middle(seed: int, begin: int) -> None:
    """The first messages of a causal order are over; the rest comes in any order, in one part."""
    talk = Talk(seed)
    ordered = [each.row for each in sorted(messages(talk, talk.ids))]
    rest = ordered[begin:]
    if {src for src, _ in rest} != {src for src, _ in talk.ids}:
        return  # a sender that is never seen again cannot be known to have finished
    out = Restorer("first").offer(messages(talk, Random(seed).sample(rest, len(rest))))
    assert sorted(each.row for each in out) == sorted(rest)
    assert not any(each.gap for each in out)


def test_a_stream_may_begin_with_given_counts() -> None:
    restorer = Restorer([2, 0])
    (out,) = restorer.offer([read_message(0, 3, [2, 0], "c")])
    assert (out.order, out.height, out.concurrent, out.gap) == (1, 3, False, False)


@pytest.mark.parametrize("own", [0, 1])
def test_the_senders_own_entry_may_count_the_message_or_not(own: int) -> None:
    assert read_message(1, 5, [3, 4 + own]).height == 8


def test_vectors_come_as_numbers_or_bytes() -> None:
    assert read_message(0, 1, struct.pack("<2i", 0, 7)).deps == (0, 7)
    lists = pa.array([[1, 2], [3]], pa.list_(pa.int32()))
    assert read_vectors(lists).tolist() == [[1, 2], [3, 0]]
    assert read_vectors(lists.slice(1)).tolist() == [[3]]
    packed = pa.array([struct.pack("<i", 4), struct.pack("<2i", 5, 6)])
    assert read_vectors(packed).tolist() == [[4, 0], [5, 6]]
    assert read_vectors(packed.slice(1)).tolist() == [[5, 6]] and read_vectors(packed.slice(2)).size == 0
    assert read_vectors(packed.cast(pa.large_binary()).slice(0, 1)).tolist() == [[4]]
    assert read_vectors(pa.array([b"", b""])).tolist() == [[], []]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.list_(pa.int64()), pa.binary()])
def test_long_vectors_are_read_a_few_at_a_time(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "CELLS_MAX", 6)
    rows = [[1, 2, 3], [4], [], [5, 6], [7, 8, 9]]
    packed = [struct.pack(f"<{len(row)}i", *row) for row in rows]
    column = pa.array(packed if pa.types.is_binary(kind) else rows, kind).slice(1)
    found = [part.tolist() for part in vector_slices(column)]
    assert found == [[[4], [0]], [[5, 6, 0], [7, 8, 9]]]
    assert list(vector_slices(column[:0])) == []


@pytest.mark.parametrize("copies", [0, 3])
def test_a_batch_of_a_large_group_takes_little_more_than_it_has(
    copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "CELLS_MAX", 1 << 17)
    n, count = 1000, 4000
    at = np.arange(count)
    at[:copies] = 0
    deps = np.zeros((count, n), "<i4")
    columns = {
        "height": at + 1, "src": (at % n).astype(np.int32), "seq": 1 + at // n,
        "deps": pa.array([row.tobytes() for row in deps]), "own": np.full(count, n - 1, np.int32),
    }  # fmt: skip
    batch = pa.RecordBatch.from_pydict(columns)
    names = ColumnNames("src", "seq", "deps", "own")
    tracemalloc.start()
    try:
        read = surveying._read(batch, names)
        ((_, part, run),) = ordering._numbered(iter([batch]), None, ordering._each_anew(()), names)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(read.src) == count and part.num_rows == len(run.gap) == count - max(0, copies - 1)
    assert peak < deps.nbytes, "a matrix of all would be twice that"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((None, 1, []), "A row has no src."),
        ((0, None, []), "A row has no seq."),
        ((0, 1, None), "A row has no deps."),
        ((0, 0, []), "the numbers of messages begin with 1"),
        ((-1, 1, []), "senders are numbered from 0"),
        ((10**9, 1, []), "there are at most 65,536"),
        ((0, 1, b"abc"), "deps of 3 bytes is not a multiple of 4"),
        ((0, 1, [0, -2]), "the negative count -2"),
        ((0, 1, [0, None]), "deps holds a null"),
    ],
)
def test_bad_rows_are_one_sentence(row: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_message(*row)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: read_vectors(pa.array([[1], None])), "A row has no deps."),
        (lambda: read_vectors(pa.array([[1, None]])), "a null in its deps"),
        (lambda: read_vectors(pa.array([[1, -3]])), "the negative count -3"),
        (lambda: read_vectors(pa.array([b"12345"])), "deps of 5 bytes"),
        (lambda: read_places(pa.array([0, None]), pa.array([1, 1])), "no src"),
        (lambda: read_places(pa.array([0, 10**9]), pa.array([1, 1])), "at most 65,536"),
        (lambda: read_places(pa.array([0, 1]), pa.array([1, 0])), "begin with 1"),
    ],
)
def test_bad_columns_are_one_sentence(read: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read()


# ---- what one member was given


@given(seeds, st.integers(1, 6), st.integers(0, 3))
def test_own_messages_are_neither_waited_for_nor_a_gap(seed: int, parts: int, own: int) -> None:
    talk = Talk(seed)
    given = [id_ for id_ in talk.ids if id_[0] != own]
    out = stream(talk, given, parts, Restorer(own=own))
    order = [each.row for each in out]
    assert sorted(order) == sorted(given) and not talk.misplaced(order)
    assert not any(each.gap for each in out)
    assert [each.concurrent for each in out] == [concurrent for concurrent, _ in talk.judge(order)]


@given(seeds, st.integers(0, 3))
def test_who_hears_itself_hears_itself_in_order(seed: int, own: int) -> None:
    talk = Talk(seed)
    out = stream(talk, talk.ids, 1, Restorer(own=own))
    order = [each.row for each in out]
    assert sorted(order) == sorted(talk.ids) and not talk.misplaced(order)
    assert not any(each.gap for each in out)


def test_an_own_message_after_what_names_it_is_late() -> None:
    """It was not waited for, so it comes where it comes."""
    restorer = Restorer(own=0)
    reply, echo = TableMessage(2, 1, 1, (1, 0)), TableMessage(1, 0, 1, (0, 0))
    assert [each.gap for each in restorer.offer([reply])] == [False]
    restorer = Restorer.loads(restorer.dumps())
    assert [each.gap for each in restorer.offer([echo])] == [True]


@pytest.mark.parametrize("value", [None, -1, 10**6])
def test_whom_a_message_came_to_is_a_member(value: int | None) -> None:
    with pytest.raises(TraceError):
        read_owner(value)
