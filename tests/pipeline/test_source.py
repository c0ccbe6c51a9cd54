"""`spark.readStream.format("inga")`: every record once, in pieces, across restarts."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.lab.traces import TraceRecipe, make
from inga.model.errors import TraceError, UsageError
from inga.pipeline import read, register
from inga.pipeline import source as tapped
from inga.pipeline.source import TapSource, TapStreamReader, slices
from inga.trace import rows
from inga.trace.log import LogFile, LoggedMessage, LogWriter, log_files

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def append(path: Path, *sizes: int) -> None:
    writer = LogWriter(path, "lunch")
    for size in sizes:
        numbers = range(writer.next, writer.next + size)
        writer.append(
            [
                LoggedMessage(
                    n * 1000, "alice", 1, 0, n + 1, 0, (n, 0) if n % 5 else None, n + 1, False, b"%d" % n
                )
                for n in numbers
            ]
        )
    writer.close()


def stream(spark: Any, tmp_path: Path, **options: Any) -> list[tuple[int, int]]:
    """What a query that goes on where the last one was has written so far: (batch, record)."""
    source = spark.readStream.format("inga").options(**options).load(str(tmp_path / "log"))
    out = str(tmp_path / "out")

    def keep(batch: Any, number: int) -> None:
        batch.coalesce(1).write.mode("overwrite").parquet(f"{out}/batch={number}")

    writer = source.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(180)
    if query.exception() is not None:
        raise query.exception()
    rows = spark.read.parquet(out).select("batch", "record", "data").collect()
    assert all(row.data == b"%d" % row.record for row in rows)
    return sorted((row.batch, row.record) for row in rows)


def test_a_stream_in_pieces_across_a_restart(spark: Any, tmp_path: Path) -> None:
    register(spark)
    append(tmp_path / "log", 10, 1, 14)
    found = stream(spark, tmp_path, maxRecordsPerTrigger=10)
    assert [record for _, record in found] == list(range(25))
    assert [batch for batch, _ in found] == [0] * 10 + [1] * 10 + [2] * 5
    append(tmp_path / "log", 3, 4)
    found = stream(spark, tmp_path)
    assert [record for _, record in found] == list(range(32))
    assert {batch for batch, record in found if record >= 25} == {3}
    table = spark.read.format("inga").load(str(tmp_path / "log"))
    assert table.count() == 32
    assert sorted(row.record for row in table.where("deps is null").collect()) == list(range(0, 32, 5))


def test_a_trace_is_a_table(spark: Any, tmp_path: Path) -> None:
    """With the rows and columns of `read`, in several tasks."""
    register(spark)
    make(tmp_path / "run", TraceRecipe(1000, 3), segment_rows=100)
    frame, wanted = spark.read.format("inga").load(str(tmp_path / "run")), read(spark, str(tmp_path / "run"))
    assert frame.dtypes == wanted.dtypes
    assert sorted(frame.collect()) == sorted(wanted.collect())
    with pytest.raises(UsageError, match="is a trace, which is no stream"):
        TapSource({"path": str(tmp_path / "run")}).streamReader(None)


def test_a_task_gets_some_segments_of_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "run", TraceRecipe(1000, 3), segment_rows=100)
    files = sorted((tmp_path / "run" / "events").iterdir())
    for most, tasks in ((1, len(files)), (1 << 30, 1)):
        monkeypatch.setattr(tapped, "PARTITION_BYTES", most)
        reader = tapped.TraceReader(str(tmp_path / "run"))
        parts = reader.partitions()
        assert len(parts) == tasks
        assert sorted(file.path for part in parts for file in part.files) == list(map(str, files))
        assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == sum(
            1 for _ in rows(tmp_path / "run")
        )


def test_a_path_that_is_no_log(spark: Any, tmp_path: Path) -> None:
    register(spark)
    with pytest.raises(Exception, match="is not the log of a tap"):
        spark.read.format("inga").load(str(tmp_path)).count()


sizes = st.lists(st.integers(1, 9), min_size=1, max_size=12)


@given(sizes, st.data())
def test_slices_hold_every_record_once(sizes: list[int], data: Any) -> None:
    files, total = [], 0
    for size in sizes:
        files.append(LogFile(total, total + size, ""))
        total += size
    first = data.draw(st.integers(0, total))
    end = data.draw(st.integers(first, total))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tapped, "PARTITION_RECORDS", 10)
        found = slices(files, first, end)
    records = [
        n
        for part in found
        for file in part.files
        for n in range(max(file.first, part.first), min(file.next, part.end))
    ]
    assert records == list(range(first, end))


def test_offsets_are_counts_and_admission_is_limited(tmp_path: Path) -> None:
    append(tmp_path / "log", 6, 6)
    reader = TapStreamReader(str(tmp_path / "log"), 5)
    limit = reader.getDefaultReadLimit()
    offset = reader.initialOffset()
    seen = []
    for _ in range(4):
        offset = reader.latestOffset(offset, limit)
        seen.append(offset["record"])
    assert seen == [5, 10, 12, 12]
    reader.prepareForTriggerAvailableNow()
    append(tmp_path / "log", 6)
    assert reader.latestOffset(offset, limit) == {"record": 12}
    assert reader.reportLatestOffset() == {"record": 18}
    for file in log_files(tmp_path / "log")[:1]:
        Path(file.path).unlink()
    assert reader.initialOffset() == {"record": 6}
    with pytest.raises(UsageError, match="records 0 to 11 are wanted, and not all of them are in the log"):
        reader.partitions({"record": 0}, {"record": 12})


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_options_that_will_not_do(tmp_path: Path, text: str) -> None:
    append(tmp_path / "log", 1)
    with pytest.raises(UsageError, match="maxRecordsPerTrigger is a whole number above 0"):
        TapSource({"path": str(tmp_path / "log"), "maxRecordsPerTrigger": text}).streamReader(None)
    with pytest.raises(UsageError, match="say which log"):
        TapSource({}).reader(None)
    with pytest.raises(TraceError, match="is not the log of a tap"):
        TapStreamReader(str(tmp_path), None)
