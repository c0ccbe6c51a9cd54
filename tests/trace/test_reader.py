"""What is not a trace is refused, in one sentence that names the file and the defect."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.model.errors import TraceError, UsageError
from inga.trace import (
    ProcessFile,
    Segment,
    TraceWriter,
    local_path,
    pack_deps,
    read_manifest,
    read_processes,
    read_segment,
    reader,
    rows,
    schema,
    segments,
    table,
)
from inga.trace.columns import to_rows, widen
from inga.trace.reader import read_pieces

MakeTrace = Callable[..., Path]


@pytest.fixture
def trace(make_trace: MakeTrace) -> Path:
    """Three processes; the first has three segments of two rows, the second one, the third none."""
    directory = make_trace(3)
    for process, count in ((0, 6), (1, 2), (2, 0)):
        with TraceWriter(directory, process, f"p{process}", 3, segment_rows=2, background=False) as writer:
            for number in range(count):
                deps = (number, 0, 0) if number % 2 else None
                writer.row("send", number, 1, process, number + 1, deps=deps, dst=0b110 if number else None)
    return directory


def test_a_segment_in_pieces(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = trace / "events" / "0-00000.parquet"
    rewrite(path, lambda _: pa.concat_tables(pq.read_table(each.path) for each in segments(trace)[:3]))
    whole = read_segment(path, 3, process=0, first=1)
    for counts, most in ((1 << 20, 4), (3 * 4, 4), (3 * 2 + 1, 2), (1, 1)):
        monkeypatch.setattr(reader, "ROWS_AT_ONCE", 4)
        monkeypatch.setattr(reader, "COUNTS_AT_ONCE", counts)
        pieces = list(read_pieces(path, 3, process=0, first=1))
        assert max(piece.num_rows for piece in pieces) == most
        assert list(to_rows(pa.concat_tables(pieces))) == list(to_rows(whole))
    columns = ("process", "pos")
    rewrite(path, lambda table: table.take([0, 1, 2, 4, 5]))
    for first in (1, None):
        known: Any = {"process": 0, "first": first, "columns": columns}
        refused(lambda known=known: read_pieces(path, 3, **known), "position 4 is missing, 5 is in its place")


def refused(call: Callable[[], Any], *parts: str) -> None:
    with pytest.raises(TraceError) as caught:
        result = call()
        if hasattr(result, "__next__"):
            list(result)
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence.endswith("."), sentence
    for part in parts:
        assert part in sentence


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Replace a segment by a changed one, written by someone who does not know our schema."""
    pq.write_table(change(pq.read_table(path)), path, store_schema=False)
    return path


def with_column(name: str, values: list[Any], kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(old: pa.Table) -> pa.Table:
        return old.set_column(old.column_names.index(name), name, pa.array(values, kind))

    return change


# ---- what is there


def test_segments_are_sorted(trace: Path) -> None:
    events = trace / "events"
    assert segments(trace) == [
        Segment(0, 0, events / "0-00000.parquet"),
        Segment(0, 1, events / "0-00001.parquet"),
        Segment(0, 2, events / "0-00002.parquet"),
        Segment(1, 0, events / "1-00000.parquet"),
    ]


def test_processes_are_sorted_by_number(make_trace: MakeTrace) -> None:
    directory = make_trace(12)
    for process in (10, 2, 1, 11):
        with TraceWriter(directory, process, f"p{process}", 12, segment_rows=1, background=False) as writer:
            writer.row("view", 0.0, 1)
            writer.row("view", 0.0, 2)
    expected = [(process, number) for process in (1, 2, 10, 11) for number in (0, 1)]
    assert [(segment.process, segment.number) for segment in segments(directory)] == expected
    assert [(row.process, row.pos - 1) for row in rows(directory)] == expected


def test_a_slice_is_widened() -> None:
    packed = [pack_deps((value,), 1) for value in (1, 2, 3)]
    part = pa.chunked_array(
        [pa.array([*packed[:2], None, packed[2]], pa.binary(4)).slice(1), pa.array([], pa.binary(4))]
    )
    assert widen(part, 2).to_pylist() == [pack_deps((2,), 2), None, pack_deps((3,), 2)]


def test_a_table_has_the_columns_of_the_format(trace: Path) -> None:
    found = table(trace, 0)
    assert found.schema == schema(3)
    assert found.column("pos").to_pylist() == [1, 2, 3, 4, 5, 6]
    assert table(trace).num_rows == 8
    assert table(trace, 2).num_rows == 0
    vectors = np.frombuffer(b"".join(filter(None, found.column("deps").to_pylist())), "<i4").reshape(-1, 3)
    assert vectors.tolist() == [[1, 0, 0], [3, 0, 0], [5, 0, 0]]


def test_some_columns_of_one_segment(trace: Path) -> None:
    found = read_segment(segments(trace)[1].path, 3, columns=["pos", "deps"])
    assert found.schema.names == ["pos", "deps"]
    assert found.column("pos").to_pylist() == [3, 4]


def test_a_segment_may_come_as_bytes(trace: Path) -> None:
    data = segments(trace)[0].path.read_bytes()
    assert read_segment(pa.BufferReader(data), 3, name="there").num_rows == 2
    refused(lambda: read_segment(pa.BufferReader(data[:-9]), 3, name="there"), "there is not a readable")


@pytest.mark.parametrize("prefix", ["file:", "file://", ""])
def test_addresses_of_files_are_paths(trace: Path, prefix: str) -> None:
    assert local_path(f"{prefix}{trace}") == trace
    assert len(list(rows(f"{prefix}{trace}", 1))) == 2


def test_other_addresses_are_for_spark() -> None:
    with pytest.raises(UsageError, match="only Spark can read it"):
        read_manifest("hdfs://host/trace")


def test_unfinished_and_foreign_files_are_passed_over(trace: Path) -> None:
    (trace / "events" / ".0-00003.parquet.tmp").write_bytes(b"half")
    (trace / "events" / "_SUCCESS").write_bytes(b"")
    (trace / "processes" / ".2.json.1.tmp").write_bytes(b"{")
    assert len(list(rows(trace))) == 8


def test_names_without_zeros_are_taken(trace: Path) -> None:
    (trace / "events" / "1-00000.parquet").rename(trace / "events" / "00001-0.parquet")
    assert len(list(rows(trace, 1))) == 2


def test_an_unfinished_process_may_have_more_rows_than_it_says(trace: Path) -> None:
    ProcessFile(0, "p0", first_view=1, last_pos=4).write(trace)
    assert len(list(rows(trace, 0))) == 6
    (trace / "processes" / "0.json").unlink()
    assert len(list(rows(trace, 0))) == 6


def test_what_spark_wrote_is_read(trace: Path) -> None:
    """Spark has no fixed binary, no dictionary type, and calls everything nullable."""
    before = list(rows(trace))
    for segment in segments(trace):
        found = pq.read_table(segment.path)
        loose = pa.schema(
            [
                pa.field(field.name, {"deps": pa.binary(), "step": pa.string()}.get(field.name, field.type))
                for field in found.schema
            ]
        )
        pq.write_table(found.cast(loose), segment.path, store_schema=False)
    assert list(rows(trace)) == before
    assert table(trace).schema == schema(3)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(8), pa.binary(4)])
def test_a_shorter_vector_is_padded(trace: Path, kind: pa.DataType) -> None:
    width = getattr(kind, "byte_width", 8) if pa.types.is_fixed_size_binary(kind) else 8
    vector = (7).to_bytes(4, "little").ljust(width, b"\0")
    path = segments(trace)[1].path
    rewrite(path, with_column("deps", [None, vector], kind))
    assert [row.deps for row in rows(trace, 0)][2:4] == [None, (7, 0, 0)]


# ---- what is wrong with the place


def test_a_place_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other" / "events").mkdir(parents=True)
    for read in (read_manifest, read_processes, segments, rows, table):
        refused(lambda read=read: read(tmp_path / "none"), str(tmp_path / "none"), "does not exist")  # type: ignore[misc]
        refused(lambda read=read: read(tmp_path / "file"), str(tmp_path / "file"), "is not a directory")  # type: ignore[misc]
        refused(lambda read=read: read(tmp_path / "empty"), str(tmp_path / "empty"), "is empty")  # type: ignore[misc]
        refused(lambda read=read: read(tmp_path / "other"), str(tmp_path / "other"), "has no manifest.json")  # type: ignore[misc]


def test_a_trace_without_segments_is_refused(make_trace: MakeTrace) -> None:
    directory = make_trace()
    for read in (segments, rows, table):
        refused(lambda read=read: read(directory), "events", "holds no finished segment")  # type: ignore[misc]
    (directory / "events").mkdir()
    refused(lambda: segments(directory), "holds no finished segment")
    assert segments(directory, empty_ok=True) == []


def test_a_manifest_that_is_not_json_is_refused(trace: Path) -> None:
    (trace / "manifest.json").write_bytes(b'{"format": 1, \xff')
    refused(lambda: rows(trace), "manifest.json is not JSON")


def test_a_hole_in_the_segments_is_refused(trace: Path) -> None:
    (trace / "events" / "0-00001.parquet").unlink()
    for read in (segments, rows, table):
        refused(lambda read=read: read(trace), "0-00002.parquet", "segment 1 of process 0 is missing")  # type: ignore[misc]


def test_a_missing_first_segment_is_a_hole(trace: Path) -> None:
    (trace / "events" / "0-00000.parquet").unlink()
    refused(lambda: rows(trace), "0-00001.parquet", "segment 0 of process 0 is missing")


def test_a_missing_last_segment_is_seen_by_the_process_file(trace: Path) -> None:
    (trace / "events" / "0-00002.parquet").unlink()
    refused(lambda: rows(trace), "process 0 end at position 4, but its process file says 6")
    # Even an unfinished process wrote what its file says.
    ProcessFile(0, "p0", first_view=1, last_pos=6).write(trace)
    refused(lambda: rows(trace), "process 0 end at position 4, but its process file says 6")


def test_rows_after_the_end_are_refused(trace: Path) -> None:
    ProcessFile(0, "p0", first_view=1, last_pos=4, complete=True).write(trace)
    refused(lambda: rows(trace), "process 0 end at position 6, but its process file says 4")


def test_a_segment_that_is_there_twice_is_refused(trace: Path) -> None:
    shutil.copy(trace / "events" / "0-00001.parquet", trace / "events" / "00000-00001.parquet")
    refused(lambda: rows(trace), "segment 1 of process 0 is there twice")


def test_a_segment_with_another_name_is_refused(trace: Path) -> None:
    (trace / "events" / "alice.parquet").write_bytes(b"")
    refused(lambda: segments(trace), "alice.parquet", "is not named PROCESS-SEGMENT.parquet")


def test_a_process_out_of_range_is_refused(trace: Path) -> None:
    shutil.copy(trace / "events" / "1-00000.parquet", trace / "events" / "3-00000.parquet")
    refused(lambda: segments(trace), "3-00000.parquet", "process 3 is out of range", "has 3")
    with pytest.raises(UsageError, match="has no process 3: it has 3"):
        list(rows(trace, 3))


# ---- what is wrong with a segment


def test_a_damaged_file_is_refused(trace: Path) -> None:
    path = trace / "events" / "0-00001.parquet"
    good = path.read_bytes()
    for bad in (b"", b"not parquet at all", good[: len(good) // 2], good[:-1], good[8:]):
        path.write_bytes(bad)
        refused(lambda: rows(trace), str(path), "is not a readable Parquet file")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good segment of fifty rows."""
    directory = tmp_path_factory.mktemp("whole")
    with TraceWriter(directory, 0, "p0", 3, background=False) as writer:
        for number in range(50):
            writer.row("send", number, 1, 0, number + 1, deps=(number, 3, 4), note=f"note {number}")
    return (directory / "events" / "0-00000.parquet").read_bytes()


@given(st.lists(st.integers(0, 8 * 3800), min_size=1, max_size=3))
@settings(deadline=None, max_examples=300)
def test_flipped_bits_raise_nothing_else(whole: bytes, places: list[int]) -> None:
    content = bytearray(whole)
    for place in places:
        content[place // 8 % len(whole)] ^= 1 << place % 8
    try:
        found = read_segment(pa.BufferReader(bytes(content)), 3, process=0, first=1, name="there")
    except TraceError as error:
        assert str(error).startswith("there")
        assert "\n" not in str(error)
    else:
        assert len(list(to_rows(found))) == 50


def test_a_dictionary_that_lost_its_words_is_refused(whole: bytes) -> None:
    """Page headers have no checksum: a bit of them can leave steps that point nowhere."""
    start = pq.read_metadata(pa.BufferReader(whole)).row_group(0).column(3).dictionary_page_offset
    for place in range(8 * start, 8 * (start + 20)):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        try:
            found = read_segment(pa.BufferReader(bytes(content)), 3, name="there")
        except TraceError as error:
            assert str(error).startswith("there")
        else:
            assert {row.step for row in to_rows(found)} == {"send"}


def test_a_changed_value_is_found_by_its_checksum(whole: bytes) -> None:
    """Any byte of the packed vectors: they would still be a plausible column."""
    column = pq.read_metadata(pa.BufferReader(whole)).row_group(0).column(8)
    end = column.data_page_offset + column.total_compressed_size
    for place in range(end - 20, end):
        content = bytearray(whole)
        content[place] ^= 1
        refused(
            lambda content=content: read_segment(pa.BufferReader(bytes(content)), 3, name="there"),  # type: ignore[misc]
            "there is not a readable Parquet file",
        )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("process", pa.int64()),
        ("pos", pa.int32()),
        ("time", pa.float64()),
        ("step", pa.int32()),
        ("src", pa.int64()),
        ("dst", pa.string()),
        ("deps", pa.string()),
        ("height", pa.int32()),
        ("note", pa.binary()),
    ],
)
def test_a_wrong_type_is_refused(trace: Path, name: str, kind: pa.DataType) -> None:
    path = trace / "events" / "0-00001.parquet"
    values = ["1", "2"] if kind == pa.string() else [b"1", b"2"] if kind == pa.binary() else [1, 2]
    rewrite(path, with_column(name, values, kind))
    refused(lambda: rows(trace), f"{path}: column {name} must be", f"not {kind}")


def test_a_vector_of_numbers_is_not_packed(trace: Path) -> None:
    path = trace / "events" / "0-00001.parquet"
    rewrite(path, with_column("deps", [[1, 2, 3], [4, 5, 6]], pa.list_(pa.int32())))
    refused(lambda: rows(trace), f"{path}: column deps must be binary, not list<")


def test_a_missing_column_is_refused(trace: Path) -> None:
    path = trace / "events" / "0-00001.parquet"
    rewrite(path, lambda old: old.drop_columns(["height"]))
    refused(lambda: rows(trace), f"{path} has no column height")
    assert read_segment(path, 3, columns=["pos"]).num_rows == 2


@pytest.mark.parametrize(
    ("name", "values", "kind", "message"),
    [
        ("pos", [3, 5], pa.int64(), "position 4 is missing, 5 is in its place"),
        ("pos", [4, 5], pa.int64(), "position 3 is missing, 4 is in its place"),
        ("pos", [3, 3], pa.int64(), "position 4 is missing, 3 is in its place"),
        ("pos", [3, None], pa.int64(), "column pos has a null"),
        ("process", [1, 1], pa.int32(), "has rows of process 1 to 1"),
        ("process", [0, 3], pa.int32(), "process 3 is out of range, as the trace has 3"),
        ("src", [0, 3], pa.int32(), "src 3 is out of range"),
        ("src", [None, -1], pa.int32(), "src -1 is out of range"),
        ("peer", [3, None], pa.int32(), "peer 3 is out of range"),
        ("dst", [b"\x00", b"\x08"], pa.binary(), "dst names process 3"),
        ("deps", [b"\0" * 12, b"\0" * 16], pa.binary(), "deps of 16 bytes is longer than 4 x 3 processes"),
        ("deps", [b"\0" * 12, b"\0" * 10], pa.binary(), "deps of 10 bytes is not a multiple of 4"),
        ("deps", [b"\0" * 16] * 2, pa.binary(16), "deps of 16 bytes is longer than 4 x 3 processes"),
        ("deps", [b"\0" * 10] * 2, pa.binary(10), "deps of 10 bytes is not a multiple of 4"),
    ],
)
def test_an_impossible_value_is_refused(
    trace: Path, name: str, values: list[Any], kind: pa.DataType, message: str
) -> None:
    path = trace / "events" / "0-00001.parquet"
    rewrite(path, with_column(name, values, kind))
    refused(lambda: rows(trace), str(path), message)
    refused(lambda: table(trace), str(path), message)


def test_a_segment_that_vanished_is_named(trace: Path) -> None:
    refused(lambda: read_segment(trace / "events" / "9-00000.parquet", 3), "9-00000.parquet does not exist")
