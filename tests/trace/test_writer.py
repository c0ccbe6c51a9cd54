import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.model.errors import TraceError, UsageError
from inga.model.steps import GROUP, Trace
from inga.trace import (
    Manifest,
    MemoryTrace,
    ProcessFile,
    Row,
    TraceWriter,
    read_processes,
    rows,
    segments,
    table,
    writer,
)
from inga.trace.schema import STEP_NAMES

MakeTrace = Callable[..., Path]
both_ways = pytest.mark.parametrize("background", [False, True])


def padded(row: Row, n: int) -> Row:
    return row if row.deps is None else row._replace(deps=row.deps + (0,) * (n - len(row.deps)))


# ---- what goes in comes out


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[str, tuple[Any, ...], dict[str, Any]]]]:
    """Calls of a writer: rows, joins and closed views, as a group could make them."""
    n = draw(st.integers(1, 5))
    members, processes, view, closed = n, n, 1, 0
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    for _ in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(["row"] * 8 + ["grow", "cut"]))
        if kind == "grow":
            joined = draw(st.integers(1, 2))
            members, processes, view = members + joined, processes + joined, view + 1
            calls.append(("grow", (processes,), {}))
        elif kind == "cut":
            seqs = draw(st.lists(st.integers(0, 2**20), max_size=members))
            staying = draw(st.permutations(range(processes)))[: draw(st.integers(1, processes))]
            calls.append(("cut", (view, seqs, staying), {}))
            closed, members, view = view, len(staying), view + 1
        else:
            index = st.none() | st.integers(0, members - 1)
            counts = st.lists(st.integers(0, 2**20), max_size=members).map(tuple)
            text = st.none() | st.text(max_size=5)
            values = {
                "dst": draw(st.none() | st.integers(0, 2**members - 1)),
                "deps": draw(st.none() | counts),
                "height": draw(st.none() | st.integers(1, 2**40)),
                "peer": draw(index),
                "n": draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
                "op": draw(text),
                "ref": draw(text),
                "note": draw(text),
            }
            now = draw(st.floats(0, 2e9))
            in_force = draw(st.sampled_from([view, view, closed + 1]))
            place = (draw(st.sampled_from(STEP_NAMES)), now, in_force, draw(index))
            calls.append(("row", (*place, draw(st.none() | st.integers(1, 2**40))), values))
    return n, calls


@given(history=histories(), segment_rows=st.integers(1, 9), background=st.booleans(), full=st.booleans())
@settings(deadline=None, max_examples=80)
def test_rows_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory,
    history: tuple[int, list[tuple[str, tuple[Any, ...], dict[str, Any]]]],
    segment_rows: int,
    background: bool,
    full: bool,
) -> None:
    n, calls = history
    directory = tmp_path_factory.mktemp("trace")
    memory = MemoryTrace(0, n, full=full)
    with TraceWriter(
        directory, 0, "p0", n, full=full, segment_rows=segment_rows, background=background
    ) as disk:
        for name, arguments, keywords in calls:
            for trace in (memory, disk):
                getattr(trace, name)(*arguments, **keywords)
    last = max([n, *(arguments[0] for name, arguments, _ in calls if name == "grow")])
    Manifest("g", [f"p{i}" for i in range(last)], "sim", "co", "accept", "virtual").write(directory)

    assert list(rows(directory)) == [padded(row, last) for row in memory.rows]
    assert read_processes(directory)[0].last_pos == memory.pos == disk.pos
    assert table(directory).num_rows == memory.pos


def test_a_writer_is_a_trace(tmp_path: Path) -> None:
    traces: list[Trace] = [TraceWriter(tmp_path, 0, "a", 1, background=False), MemoryTrace(0, 1)]
    assert all(trace.full for trace in traces)


@both_ways
def test_a_run_of_several_processes(make_trace: MakeTrace, background: bool) -> None:
    directory = make_trace(2)
    shared: list[Row] = []
    memory = [MemoryTrace(process, 2, shared) for process in range(2)]
    disk = [TraceWriter(directory, process, f"p{process}", 2, background=background) for process in range(2)]
    for trace in (memory, disk):
        trace[0].row("send", 0.5, 1, 0, 1, deps=(0, 0))
        trace[1].row("deliver", 0.75, 1, 0, 1, deps=(0, 0))
        trace[1].row("send", 1.0, 1, 1, 1, dst=0b01, deps=(1, 0))
        trace[0].row("deliver", 1.5, 1, 1, 1, deps=(1, 0), note="yes")
    for each in disk:
        each.close()

    # A shared list shows who was first; files know only the order at each process.
    assert [(row.process, row.pos) for row in shared] == [(0, 1), (1, 1), (1, 2), (0, 2)]
    assert list(rows(directory)) == sorted(shared)
    assert list(rows(directory, 1)) == [row for row in shared if row.process == 1]
    assert shared[2] == Row(1, 2, 1_000_000_000, "send", 1, 1, 1, 0b01, (1, 0), height=2)


def test_times_may_have_an_origin(make_trace: MakeTrace) -> None:
    directory = make_trace(1)
    with TraceWriter(directory, 0, "p0", 1, origin=1.7e9, background=False) as trace:
        trace.row("view", 0.000000001, 1)
    assert [row.time for row in rows(directory)] == [1_700_000_000_000_000_001]


# ---- files


@both_ways
def test_a_segment_is_full_after_so_many_rows(make_trace: MakeTrace, background: bool) -> None:
    directory = make_trace(3)
    with TraceWriter(directory, 2, "p2", 3, segment_rows=4, background=background) as trace:
        for number in range(10):
            trace.row("send", 0.0, 1, 2, number + 1, deps=(0, 0, number))
    assert sorted(os.listdir(directory / "events")) == [f"2-{number:05}.parquet" for number in range(3)]
    assert [pq.read_metadata(segment.path).num_rows for segment in segments(directory)] == [4, 4, 2]
    assert sorted(os.listdir(directory / "processes")) == ["2.json"]
    assert read_processes(directory)[2] == ProcessFile(2, "p2", first_view=1, last_pos=10, complete=True)


def test_a_segment_is_one_row_group_with_statistics(make_trace: MakeTrace) -> None:
    directory = make_trace(3)
    count = writer.CHUNK_ROWS * 2 + 5
    with TraceWriter(directory, 1, "p1", 3, background=False) as trace:
        for number in range(count):
            trace.row("send", 0.0, 1, 1, number + 1, deps=(0, number, 0))
    (segment,) = segments(directory)
    found = pq.read_metadata(segment.path)
    assert found.num_row_groups == 1
    columns = {found.schema.column(i).name: found.row_group(0).column(i) for i in range(found.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert (columns["pos"].statistics.min, columns["pos"].statistics.max) == (1, count)
    assert (columns["process"].statistics.min, columns["process"].statistics.max) == (1, 1)
    assert "RLE_DICTIONARY" in columns["step"].encodings
    assert columns["deps"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert pq.ParquetFile(segment.path).schema.column(8).length == 12


def test_chunks_are_joined_and_a_slow_disk_is_waited_for(
    make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHUNK_ROWS", 3)
    directory = make_trace(1)
    with TraceWriter(directory, 0, "p0", 1, segment_rows=100, clock="virtual") as trace:
        for number in range(1000):
            trace.row("send", number, 1, 0, number + 1, deps=(number,))
    assert [row.seq for row in rows(directory)] == list(range(1, 1001))
    assert len(segments(directory)) == 10


def test_many_processes(make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 2000
    monkeypatch.setattr(writer, "SEGMENT_DEPS_MAX", 4 * n * 7)
    directory = make_trace(n)
    vector = tuple(range(n))
    with TraceWriter(directory, n - 1, f"p{n - 1}", n) as trace:
        for number in range(20):
            trace.row("send", 0.0, 1, n - 1, number + 1, dst=1 << n - 1, deps=vector)
    found = list(rows(directory))
    assert [row.deps for row in found] == [vector] * 20
    assert {row.height for row in found} == {sum(vector) + 1}
    assert {row.dst for row in found} == {1 << n - 1}
    assert len(segments(directory)) == 3  # so that a segment fits in memory


def test_a_trace_without_rows(make_trace: MakeTrace) -> None:
    directory = make_trace(1)
    TraceWriter(directory, 0, "p0", 1).close()
    assert read_processes(directory) == [ProcessFile(0, "p0", complete=True)]
    assert list(rows(directory)) == []
    assert table(directory).num_rows == 0


# ---- lean and full


@both_ways
@pytest.mark.parametrize("receipt", ["accept", "deliver", "take", None])
def test_a_lean_trace_holds_what_certifies(
    make_trace: MakeTrace, receipt: str | None, background: bool
) -> None:
    directory = make_trace(1)
    memory = MemoryTrace(0, 1, full=False, receipt=receipt)
    disk = TraceWriter(directory, 0, "p0", 1, full=False, receipt=receipt, background=background)
    assert not disk.full
    for trace in (memory, disk):
        for step in STEP_NAMES:
            trace.row(step, 0.0, 1, 0, 1)
    disk.close()
    receipts = {"accept", "take"} if receipt is None else {receipt}
    found = list(rows(directory))
    assert {row.step for row in found} == {"send", "deliver", *receipts, *GROUP}
    assert [row.pos for row in found] == list(range(1, len(found) + 1))
    assert found == memory.rows


# ---- time


@both_ways
def test_an_old_segment_ends_when_polled(make_trace: MakeTrace, background: bool) -> None:
    directory = make_trace(1)
    trace = TraceWriter(directory, 0, "p0", 1, segment_seconds=5.0, background=background)
    trace.poll(100.0)  # nothing is open
    trace.row("view", 100.0, 1)
    trace.poll(104.9)
    trace.row("send", 104.9, 1, 0, 1)
    trace.poll(105.0)
    trace.row("send", 105.0, 1, 0, 2)
    trace.poll(109.9)
    trace.poll(110.0)
    trace.poll(120.0)
    trace.close()
    assert [pq.read_metadata(segment.path).num_rows for segment in segments(directory)] == [2, 1]


def test_an_old_segment_ends_with_its_chunk(make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CHUNK_ROWS", 2)
    directory = make_trace(1)
    with TraceWriter(directory, 0, "p0", 1, segment_seconds=5.0, background=False) as trace:
        for second in range(12):
            trace.row("view", float(second), 1)
    assert [pq.read_metadata(segment.path).num_rows for segment in segments(directory)] == [6, 6]


def test_virtual_time_ends_nothing(make_trace: MakeTrace) -> None:
    directory = make_trace(1)
    with TraceWriter(directory, 0, "p0", 1, clock="virtual", background=False) as trace:
        for second in range(0, 10_000, 100):
            trace.row("view", second, 1)
            trace.poll(second)
    assert len(segments(directory)) == 1


# ---- views


@both_ways
def test_a_join_starts_a_segment(make_trace: MakeTrace, background: bool) -> None:
    directory = make_trace(3)
    with TraceWriter(directory, 0, "p0", 2, background=background) as trace:
        trace.row("send", 0.0, 1, 0, 1, deps=(0, 4))
        trace.grow(2)  # nobody came
        trace.row("send", 0.0, 1, 0, 2, deps=(1, 4))
        trace.grow(3)
        trace.row("send", 0.0, 2, 0, 3, deps=(2, 4, 6))
    widths = [pq.ParquetFile(segment.path).schema.column(8).length for segment in segments(directory)]
    assert widths == [8, 12]
    assert [row.deps for row in rows(directory)] == [(0, 4, 0), (1, 4, 0), (2, 4, 6)]
    assert [row.height for row in rows(directory)] == [5, 6, 13]


@both_ways
def test_numbers_go_on_over_views(make_trace: MakeTrace, background: bool) -> None:
    directory = make_trace(4)
    with TraceWriter(directory, 2, "p2", 3, background=background) as trace:
        trace.row("send", 0.0, 1, 2, 6, deps=(4, 5, 5))
        # p1 left. The others are members 0 and 1 of view 2, and count from 0.
        trace.cut(1, (4, 5, 6), (0, 2))
        trace.row("send", 0.0, 2, 1, 1, deps=(0, 0), dst=0b01)
        trace.row("take", 0.0, 1, 0, 4, deps=(3, 0, 0))  # it had waited in the queue since view 1
        trace.row("deliver", 0.0, 2, 0, 1, deps=(0, 1), peer=0)
        # p3 joins, and nothing restarts; then p0 leaves.
        trace.grow(4)
        trace.row("deliver", 0.0, 3, 2, 1, deps=(1, 1, 0), peer=2)
        trace.cut(3, (1, 1, 1), (2, 3))
        trace.row("send", 0.0, 4, 0, 1, deps=(0, 0))
    found = list(rows(directory))
    assert [(row.view, row.src, row.seq, row.peer, row.deps) for row in found] == [
        (1, 2, 6, None, (4, 5, 5, 0)),
        (2, 2, 7, None, (4, 5, 6, 0)),
        (1, 0, 4, None, (3, 0, 0, 0)),
        (2, 0, 5, 0, (4, 5, 7, 0)),
        (3, 3, 1, 3, (5, 5, 7, 0)),
        (4, 2, 8, None, (5, 5, 7, 1)),
    ]
    assert found[1].dst == 0b001
    # The own entry is always `seq - 1`, and the height one more than the sum.
    for row in found:
        assert row.deps is not None and row.src is not None and row.seq is not None
        assert row.deps[row.src] == row.seq - 1
        assert row.height == sum(row.deps) + 1


def test_rows_of_several_views_may_be_mixed(make_trace: MakeTrace) -> None:
    directory = make_trace(1)
    with TraceWriter(directory, 0, "p0", 1, background=False) as trace:
        trace.cut(1, (10,))
        for view in (2, 1, 2, 1, 1, 2):
            trace.row("take", 0.0, view, 0, 1, deps=(0,))
    assert [row.seq for row in rows(directory)] == [11, 1, 11, 1, 1, 11]
    assert [row.pos for row in rows(directory)] == [1, 2, 3, 4, 5, 6]


def test_a_cut_must_come_before_the_rows_it_numbers(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, 0, "p0", 2, segment_rows=2, background=False) as trace:
        trace.row("view", 0.0, 1)
        trace.row("view", 0.0, 2)
        with pytest.raises(UsageError, match="comes too late: there are rows of view 2"):
            trace.cut(1, (1, 1))
        trace.row("view", 0.0, 3)
        with pytest.raises(UsageError, match="comes too late: there are rows of view 3"):
            trace.cut(2, (1, 1))
        trace.cut(3, (1, 1))


# ---- what goes wrong


MEMBER = """
import sys
from inga.trace import Manifest, TraceWriter
directory = sys.argv[1]
Manifest("g", ["p0"], "live", "vector", "take", "wall").write(directory)
trace = TraceWriter(directory, 0, "p0", 1, segment_rows=int(sys.argv[2]))
number = 0
while True:
    number += 1
    trace.row("send", number * 1e-6, 1, 0, number, deps=(number - 1,), note=f"message {number}")
    if number % 1000 == 0:
        print(number, flush=True)
"""


@pytest.mark.parametrize(("segment_rows", "wait_for"), [(1000, 5), (3333, 2), (20_000, 1)])
def test_a_killed_member_leaves_whole_segments(tmp_path: Path, segment_rows: int, wait_for: int) -> None:
    directory = tmp_path / "trace"
    last = directory / "events" / f"0-{wait_for:05}.parquet"
    with subprocess.Popen(
        [sys.executable, "-c", MEMBER, str(directory), str(segment_rows)], stdout=subprocess.PIPE
    ) as member:
        assert member.stdout is not None
        for _ in member.stdout:
            if last.exists():
                break
        member.send_signal(signal.SIGKILL)
        member.stdout.read()  # or closing it would kill a member that is still alive by itself
    assert member.returncode == -signal.SIGKILL

    found = [row.seq for row in rows(directory)]
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= (wait_for + 1) * segment_rows
    assert len(found) % segment_rows == 0
    (file,) = read_processes(directory)
    assert not file.complete
    # The process file is written after the segment, so it may be one behind.
    assert len(found) - file.last_pos in (0, segment_rows)


@both_ways
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_told_to_whoever_writes_next(make_trace: MakeTrace, background: bool) -> None:
    directory = make_trace(1)
    trace = TraceWriter(directory, 0, "p0", 1, segment_rows=10, background=background)
    for number in range(9):
        trace.row("send", 0.0, 1, 0, number + 1)
    (directory / "events" / ".0-00000.parquet.tmp").symlink_to("/dev/full")
    message = r"events/0-00000\.parquet cannot be written: No space left on device\.$"
    with pytest.raises(TraceError, match=message):
        for number in range(10, 10_000_000):
            trace.row("send", 0.0, 1, 0, number)
    with pytest.raises(TraceError, match=message):
        trace.row("send", 0.0, 1, 0, 1)
    with pytest.raises(TraceError, match=message):
        trace.poll(0.0)
    with pytest.raises(TraceError, match=message):
        trace.close()
    trace.close()  # it is
    assert read_processes(directory) == [ProcessFile(0, "p0", first_view=None, last_pos=0)]
    assert list((directory / "events").iterdir()) == []


@both_ways
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": "explode"}, "there is no step 'explode'"),
        ({"deps": (1, 2, 3)}, "deps has 3 entries, but there are 2 members"),
        ({"deps": (2**31, 0)}, "cannot be written"),
        ({"src": 2, "seq": 1}, "are not indices of 2 processes"),
        ({"peer": -1}, "are not indices of 2 processes"),
        ({"dst": 1 << 2}, "dst has a bit for process 2 of 2"),
        ({"note": 5}, "cannot be written"),
    ],
)
def test_a_row_that_cannot_be_is_found_when_written(
    tmp_path: Path, arguments: dict[str, Any], message: str, background: bool
) -> None:
    trace = TraceWriter(tmp_path, 0, "p0", 2, background=background)
    values: dict[str, Any] = {"step": "send", "now": 0.0, "view": 1}
    trace.row(**values | arguments)
    with pytest.raises(TraceError, match=message) as caught:
        trace.close()
    assert "\n" not in str(caught.value)
    assert not ProcessFile.parse((tmp_path / "processes" / "0.json").read_bytes(), "").complete


def test_counts_over_views_must_fit(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, 0, "p0", 1, background=False)
    trace.cut(1, (2**31 - 2,))
    trace.row("send", 0.0, 2, 0, 2, deps=(1,))
    trace.row("send", 0.0, 2, 0, 3, deps=(2,))
    with pytest.raises(TraceError, match="a count of 2147483648 does not fit deps"):
        trace.close()


@both_ways
def test_a_closed_trace_takes_no_rows(make_trace: MakeTrace, background: bool) -> None:
    directory = make_trace(1)
    trace = TraceWriter(directory, 0, "p0", 1, background=background)
    trace.row("view", 0.0, 1)
    trace.close()
    trace.close()
    trace.poll(1e9)
    with pytest.raises(UsageError, match="closed"):
        trace.row("view", 0.0, 1)
    assert len(list(rows(directory))) == 1


def test_how_it_ended_is_recorded(make_trace: MakeTrace) -> None:
    directory = make_trace(3)
    with pytest.raises(ZeroDivisionError), TraceWriter(directory, 0, "p0", 3) as trace:
        trace.row("view", 0.0, 4)
        raise ZeroDivisionError
    TraceWriter(directory, 1, "p1", 3).close(crashed=True)
    TraceWriter(directory, 2, "p2", 3).close(complete=False, crashed=True)
    assert read_processes(directory) == [
        ProcessFile(0, "p0", first_view=4, last_pos=1),
        ProcessFile(1, "p1", complete=True, crashed=True),
        ProcessFile(2, "p2", crashed=True),
    ]
    assert len(list(rows(directory))) == 1


def test_a_trace_is_not_written_over_another(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, 0, "p0", 12) as trace:
        trace.row("view", 0.0, 1)
    with pytest.raises(UsageError, match="already has rows of process 0"):
        TraceWriter(tmp_path, 0, "p0", 12)
    TraceWriter(tmp_path, 10, "p10", 12).close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"process": 3}, "Process 3 is not one of 3"),
        ({"process": -1}, "Process -1 is not one of 3"),
        ({"segment_rows": 0}, "at least one row"),
    ],
)
def test_impossible_settings_are_refused(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"process": 0, "name": "p", "n": 3}
    with pytest.raises(UsageError, match=message):
        TraceWriter(tmp_path, **values | arguments)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="events cannot be made"):
        TraceWriter(tmp_path / "file", 0, "p0", 1)


def test_positions_are_whole_across_segments(make_trace: MakeTrace) -> None:
    directory = make_trace(1)
    with TraceWriter(directory, 0, "p0", 1, segment_rows=7) as trace:
        for number in range(50):
            trace.row("control", number, 1)
            assert trace.pos == number + 1
    assert all(after.pos == before.pos + 1 for before, after in pairwise(rows(directory)))


@pytest.mark.parametrize("now", [float("nan"), float("inf"), -float("inf"), 1.7e18, 9.3e9])
def test_a_time_that_is_none_is_refused(make_trace: MakeTrace, now: float) -> None:
    """Nanoseconds, too: `now` is in seconds."""
    trace = TraceWriter(make_trace(1), 0, "p0", 1, background=False)
    trace.row("control", 1.0, 1)
    trace.row("control", now, 1)
    with pytest.raises(TraceError, match="times are seconds, and at most 9,223,372,035 of them"):
        trace.close()
    with pytest.raises(TraceError, match="times are seconds"):
        MemoryTrace(0, 1).row("control", now, 1)


def test_a_time_counts_from_the_origin(make_trace: MakeTrace) -> None:
    directory = make_trace(1)
    with pytest.raises(TraceError, match="times are seconds"):
        TraceWriter(directory, 0, "p0", 1, origin=1e10)
    with TraceWriter(directory, 0, "p0", 1, origin=9e9, clock="virtual") as trace:
        trace.row("control", 2e8, 1)
    assert [row.time for row in rows(directory)] == [9_200_000_000 * 10**9]
    (directory / "events" / "0-00000.parquet").unlink()
    trace = TraceWriter(directory, 0, "p0", 1, origin=9e9, background=False)
    trace.row("control", 3e8, 1)
    with pytest.raises(TraceError, match="times are seconds"):
        trace.close()
