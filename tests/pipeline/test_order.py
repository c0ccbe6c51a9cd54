"""Restoring order with Spark: tables, streams, traces; holes; and a driver that is killed."""

import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from inga.model.errors import TraceError, UsageError
from inga.pipeline import causal_order, keep_state_on_disk, surveying
from inga.pipeline.capture import open_capture, order_capture, order_stream
from inga.sim.trials import simulate_trial
from inga.trace import rows
from inga.trial.trial import Trial

from .killed import run_and_kill
from .messages import Id, Talk

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hidden.rename(path)


def read(out: Path, room: str | None = None) -> list[dict[str, Any]]:
    """As any reader of Parquet sees it."""
    files = [str(file) for file in out.rglob("*.parquet") if not any(p.startswith("_") for p in file.parts)]
    rows = ds.dataset(files).to_table().to_pylist() if files else []
    return sorted((r for r in rows if room in (None, r.get("room"))), key=lambda row: row["order"])


def ids(rows: list[dict[str, Any]]) -> list[Id]:
    return [(row["src"], row["seq"]) for row in rows]


def assert_restored(talk: Talk, rows: list[dict[str, Any]], wanted: list[Id]) -> None:
    order = ids(rows)
    assert sorted(order) == sorted(wanted) and not talk.misplaced(order)
    assert [row["order"] for row in rows] == list(range(1, len(rows) + 1))
    assert [(row["concurrent"], row["gap"]) for row in rows] == talk.judge(order)
    for row in rows:
        sent = talk.row((row["src"], row["seq"]))
        assert {key: row[key] for key in sent} == sent


def test_a_table_of_two_rooms(spark: Any, tmp_path: Path) -> None:
    talks = [Talk(1, room="a"), Talk(2, room="b", count=60)]
    rows = [row for talk in talks for row in talk.rows()]
    write(tmp_path / "in.jsonl", [*rows, *rows[::4]])
    capture = open_capture(str(tmp_path / "in.jsonl"), group="room")
    outcome = order_capture(capture, str(tmp_path / "out"), session=spark)
    assert outcome.rows == 100 and outcome.gaps == 0
    concurrent = 0
    for talk in talks:
        found = read(tmp_path / "out", talk.room)
        assert_restored(talk, found, talk.ids)
        concurrent += sum(each for each, _ in talk.judge(ids(found)))
    assert outcome.concurrent == concurrent > 0


@pytest.mark.parametrize("group", [None, "room"])
def test_a_file_without_messages_is_written_without(spark: Any, tmp_path: Path, group: str | None) -> None:
    table = pa.Table.from_pylist([Talk(1).row((0, 1)) | {"height": 1}])
    pq.write_table(table[:0], tmp_path / "in.parquet")
    outcome = order_capture(
        open_capture(str(tmp_path / "in.parquet"), group=group), str(tmp_path / "out"), session=spark
    )
    assert (outcome.rows, outcome.concurrent, outcome.gaps) == (0, 0, 0) and read(tmp_path / "out") == []


def test_what_is_counted_of_a_table_in_parts(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveying, "PART_MESSAGES", 9)
    talk = Talk(9)
    kept = talk.ids[3:]
    write(tmp_path / "in.jsonl", [talk.row(id_) for id_ in [*kept, *kept[::5]]])
    outcome = order_capture(open_capture(str(tmp_path / "in.jsonl")), str(tmp_path / "out"), session=spark)
    found = read(tmp_path / "out")
    assert_restored(talk, found, kept)
    marks = talk.judge(ids(found))
    assert (outcome.rows, outcome.concurrent, outcome.gaps) == (
        len(kept),
        *map(sum, zip(*marks, strict=True)),
    )
    assert outcome.concurrent and outcome.gaps


@pytest.mark.parametrize(("height", "in_parts"), [(True, False), (False, False), (True, True)])
def test_a_table_with_packed_vectors_and_holes(
    spark: Any, tmp_path: Path, height: bool, in_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_parts:
        monkeypatch.setattr(surveying, "PART_MESSAGES", 6)
    talk = Talk(3)
    kept = talk.ids[5:]
    rows = [talk.row(id_) | {"deps": struct.pack("<4i", *talk.deps(id_))} for id_ in kept]
    table = pa.Table.from_pylist(rows)
    if height:
        table = table.append_column("height", pa.array([len(talk.past[id_]) + 1 for id_ in kept]))
    pq.write_table(table, tmp_path / "in.parquet")
    messages = spark.read.parquet(str(tmp_path / "in.parquet"))
    found = causal_order(messages.union(messages.limit(3))).collect()
    rows = [row.asDict() | {"deps": list(struct.unpack("<4i", row.deps))} for row in found]
    assert_restored(talk, sorted(rows, key=lambda row: row["order"]), kept)
    assert any(row["gap"] for row in rows)
    assert {row["height"] for row in rows} == {len(talk.past[id_]) + 1 for id_ in kept}


@pytest.mark.parametrize("most", [2, 4, 1 << 20])
def test_a_number_that_was_used_twice_is_two_messages(
    spark: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With different vectors, hence heights; their copies are one each. What has no height comes first. The same in one part
    as in several, in which they may be apart."""
    monkeypatch.setattr(surveying, "PART_MESSAGES", most)
    rows = [(1, 1, 1, [0, 0]), (2, 0, 1, [0, 1]), (3, 0, 1, [0, 2]), (3, 1, 2, [0, 0]), (4, 0, 2, [1, 2])]
    rows += [
        (5, 0, 3, [2, 2]),
        (6, 1, 3, [3, 2]),
        (None, 2, 1, [0, 0]),
        (None, 2, 1, [0, 0]),
        rows[1],
        rows[2],
    ]
    table = spark.createDataFrame(rows, "height long, src int, seq long, deps array<int>")
    ordered = causal_order(table)
    found = sorted(tuple(row) for row in ordered.select("order", "src", "seq", "concurrent", "gap").collect())
    assert found == [
        (1, 2, 1, False, False),
        (2, 1, 1, True, False),
        (3, 0, 1, True, False),
        (4, 0, 1, True, True),
        (5, 1, 2, True, False),
        (6, 0, 2, True, False),
        (7, 0, 3, True, False),
        (8, 1, 3, True, False),
    ]
    tasks = ordered.select(F.spark_partition_id()).distinct().count()
    assert tasks == {2: 4, 4: 2, 1 << 20: 1}[most], "a part is a task"


@pytest.mark.parametrize("height", ["", "height long, "])
def test_nothing_in_order_is_nothing(spark: Any, height: str) -> None:
    nothing = spark.createDataFrame([], f"{height}src int, seq long, deps array<int>")
    found = causal_order(nothing)
    assert found.collect() == [] and {"order", "height", "concurrent", "gap"} < set(found.columns)


def test_a_trace_of_a_weak_order_is_put_right(spark: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    result = simulate_trial(
        Trial("none", members=4, messages=40, reorder=0.5, rate=1, delay=(0.001, 0.2), seed=4), trace
    )
    assert result.unpromised["causal"]
    order_capture(open_capture(str(trace)), str(tmp_path / "sent"), session=spark)
    order_stream(open_capture(str(trace)), str(tmp_path / "streamed"), once=True, session=spark)
    sent, streamed = read(tmp_path / "sent"), read(tmp_path / "streamed")
    assert len(sent) == result.sent and not any(row["gap"] for row in sent)
    assert sorted(ids(sent)) == sorted(ids(streamed)) and not any(row["gap"] for row in streamed)


def test_what_a_member_was_given_lacks_nothing_but_its_own(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run that delivers in causal order, once and as a stream, of one member and of all."""
    trace = tmp_path / "trace"
    simulate_trial(Trial("vector", members=3, messages=20, loss=0.1, seed=2), trace)
    of_bob = open_capture(str(trace), step="deliver", process="bob")
    given = [(row.src, row.seq) for row in rows(trace, 1) if row.step == "deliver"]
    assert order_capture(of_bob, str(tmp_path / "bob"), session=spark).gaps == 0
    found = read(tmp_path / "bob")
    assert all(row["process"] == 1 for row in found) and sorted(ids(found)) == sorted(given)
    outcome = order_stream(of_bob, str(tmp_path / "streamed"), once=True, session=spark)
    assert (outcome.rows, outcome.gaps) == (len(given), 0)
    with monkeypatch.context() as small:
        small.setattr(surveying, "PART_MESSAGES", 9)
        order_capture(of_bob, str(tmp_path / "parts"), session=spark)
    assert read(tmp_path / "parts") == found and len(list((tmp_path / "parts").glob("*.parquet"))) > 1
    everybody = open_capture(str(trace), step="deliver")
    outcome = order_capture(everybody, str(tmp_path / "all"), session=spark)
    assert outcome.rows == sum(row.step == "deliver" for row in rows(trace)) and not outcome.gaps


@pytest.mark.parametrize("most", [1 << 20, 1])
def test_a_table_may_call_its_columns_what_it_likes(
    spark: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tells parts apart, while a table is sorted, is no column of somebody else."""
    monkeypatch.setattr(surveying, "PART_MESSAGES", most)
    rows = [(0, at, [0, 0], f"mine {at}", at) for at in (1, 2, 3)]
    schema = "src int, seq long, deps array<int>, _Inga_Part string, _inga_part_ long"
    ordered = causal_order(spark.createDataFrame(rows, schema))
    found = ordered.orderBy("order").select("seq", "_Inga_Part", "_inga_part_").collect()
    assert [tuple(row) for row in found] == [(at, f"mine {at}", at) for at in (1, 2, 3)]


@pytest.mark.parametrize("base", [[-1], [1, -1], ["1"], [1.5], [1 << 63], None, "last"])
def test_what_was_over_before_is_counted(spark: Any, base: Any) -> None:
    table = spark.createDataFrame([(0, 1, [0])], "src int, seq long, deps array<int>")
    with pytest.raises(UsageError, match=r"^base is a list of counts from 0 on, or \"first\", not "):
        causal_order(table, base=base)


def test_a_stream_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    """In three runs, each over what has come since; holes close as the missing messages come."""
    talks = [Talk(4, room="a"), Talk(5, room="b")]
    for part in range(3):
        rows = [talk.row(id_) for talk in talks for id_ in talk.ids[part::3]]
        write(tmp_path / "in" / f"{part}.json", rows)
        capture = open_capture(str(tmp_path / "in"), group="room")
        outcome = order_stream(capture, str(tmp_path / "out"), once=True, session=spark)
    assert outcome.rows == 80
    for talk in talks:
        assert_restored(talk, read(tmp_path / "out", talk.room), talk.ids)


def test_giving_up_on_what_does_not_come(spark: Any, tmp_path: Path) -> None:
    talk = Talk(6)
    write(tmp_path / "in" / "1.json", [talk.row(id_) for id_ in talk.ids[4:]])
    capture, out = open_capture(str(tmp_path / "in")), tmp_path / "out"
    options: dict[str, Any] = {"give_up": 0.05, "poll": 0.05, "once": True, "session": spark}
    outcome = order_stream(capture, str(out), **options)
    assert_restored(talk, read(out), talk.ids[4:])
    assert outcome.gaps
    write(tmp_path / "in" / "2.json", [talk.row(id_) for id_ in talk.ids[:4]])
    order_stream(capture, str(out), **options)
    rows = read(out)
    assert sorted(ids(rows)) == sorted(talk.ids)  # late, but not lost
    assert [(row["concurrent"], row["gap"]) for row in rows] == talk.judge(ids(rows))


def test_in_a_job_of_ones_own(spark: Any, tmp_path: Path) -> None:
    """The function on a streaming DataFrame, with other names for the columns and another sink."""
    talk = Talk(7)
    rows = [{"who": r["src"], "nth": r["seq"], "past": r["deps"]} for r in talk.rows()]
    write(tmp_path / "in" / "1.json", rows)
    keep_state_on_disk(spark)
    source = spark.readStream.schema("who int, nth long, past array<int>").json(str(tmp_path / "in"))
    ordered = causal_order(source, src="who", seq="nth", deps="past")
    sink = ordered.writeStream.format("memory").queryName("ordered").outputMode("append")
    query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    found = [(row.who, row.nth) for row in spark.sql("select * from ordered order by `order`").collect()]
    assert sorted(found) == sorted(talk.ids) and not talk.misplaced(found)


def test_columns_of_any_type_come_out_as_they_went_in(spark: Any, tmp_path: Path) -> None:
    """Also those that pandas would change: whole numbers beside nulls, times in a session's zone, NaN."""
    spark.sql(
        """
        select cast(id % 2 as int) src, id div 2 + 1 seq, array(cast(id div 2 as int), cast(id div 2 as int)) deps,
          if(id % 2 = 0, null, 9007199254740993) large, if(id % 3 = 0, null, timestamp'2024-01-02 03:04:05') at,
          cast(timestamp'2024-01-02 03:04:05' as timestamp_ntz) local, date'2024-02-03' day,
          cast(1.25 as decimal(10, 2)) price, array(named_struct('q', id, 'at', timestamp'2024-01-02 03:04:05')) more,
          map('k', 5) named, cast('hi' as binary) data, if(id % 3 = 0, null, cast('inf' as double)) share
        from range(12)
        """
    ).repartition(2).write.parquet(str(tmp_path / "in"))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        wanted = spark.read.parquet(str(tmp_path / "in"))
        order_stream(open_capture(str(tmp_path / "in")), str(tmp_path / "out"), once=True, session=spark)
        streamed = spark.read.parquet(str(tmp_path / "out"))
        for found in (streamed, causal_order(wanted)):
            rows = found.select(wanted.columns).collect()
            assert sorted(rows, key=str) == sorted(wanted.collect(), key=str)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_batch_that_is_out_is_not_written_again(spark: Any, tmp_path: Path) -> None:
    """Killed after the rows were out, and before Spark noted it: as if the note had never been written."""
    talk = Talk(8)
    for part in range(2):
        write(tmp_path / "in" / f"{part}.json", [talk.row(id_) for id_ in talk.ids[part::2]])
        capture, out = open_capture(str(tmp_path / "in")), tmp_path / "out"
        order_stream(capture, str(out), once=True, session=spark)
        written = {file: file.stat().st_mtime_ns for file in out.glob("batch=*/*.parquet")}
        for note in (out / "_checkpoint" / "commits").glob(f"*{part}*"):
            note.unlink()
    order_stream(capture, str(out), once=True, session=spark)
    assert_restored(talk, read(out), talk.ids)
    assert written.items() <= {f: f.stat().st_mtime_ns for f in out.glob("batch=*/*.parquet")}.items()


@pytest.mark.parametrize(
    ("stream", "change", "message"),
    [
        (True, {"seq": -3}, "Message -3 of 0: the numbers of messages begin with 1."),
        (False, {"seq": -3}, "Message -3 of 0: the numbers of messages begin with 1."),
        (False, {"deps": None}, "A row has no deps."),
    ],
)
def test_bad_rows_are_one_sentence_and_leave_nothing(
    spark: Any, tmp_path: Path, stream: bool, change: dict[str, Any], message: str
) -> None:
    rows = [{"src": 0, "seq": 1, "deps": [0]}, {"src": 0, "seq": 2, "deps": [1]} | change]
    write(tmp_path / "in" / "1.json", rows)
    capture, out = open_capture(str(tmp_path / "in")), tmp_path / "out"
    with pytest.raises(TraceError) as caught:
        if stream:
            order_stream(capture, str(out), once=True, session=spark)
        else:
            order_capture(capture, str(out), session=spark)
    assert str(caught.value) == message
    assert not list(tmp_path.rglob("batch=*/*.parquet")) and (stream or not out.exists())
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".out")]


def test_half_a_file_is_one_sentence(spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"src": [0], "seq": [1], "deps": [[0]]}), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TraceError, match=rf"^{path} is not a readable file\.$"):
        order_capture(open_capture(str(path)), str(tmp_path / "out"), session=spark)
    assert "Exception" not in capfd.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize(
    ("rows", "group", "message"),
    [
        ([{"src": 0, "seq": 1}], None, "there is no column 'deps'; there are seq, src"),
        ([{"src": 0, "seq": "x", "deps": [1]}], None, "column 'seq' is one of int, .*, not string"),
        ([{"src": 0, "seq": 1, "deps": "x"}], None, "column 'deps' is one of binary, .*, not string"),
        (
            [{"src": 0, "seq": 1, "deps": [0], "height": "1"}],
            None,
            "column 'height' is one of int, .*, not string",
        ),
        ([{"src": 0, "seq": 1, "deps": [0]}], "room", "there is no column 'room'"),
        ([{"src": 0, "seq": 1, "deps": [0], "gap": 1}], None, "there is a column 'gap' already"),
    ],
)
def test_tables_that_will_not_do(
    spark: Any, tmp_path: Path, rows: list[dict[str, Any]], group: str | None, message: str
) -> None:
    write(tmp_path / "in.json", rows)
    with pytest.raises(UsageError, match=message):
        order_capture(
            open_capture(str(tmp_path / "in.json"), group=group), str(tmp_path / "out"), session=spark
        )


def killed_while_ordering(tmp_path: Path, kills: int, seed: int) -> None:
    files = kills * 65  # a batch at least for every life
    talk = Talk(seed, members=5, count=files)
    source, out = tmp_path / "in", tmp_path / "out"
    for part in range(files):
        write(source / f"{part:05}.json", [talk.row(id_) for id_ in talk.ids[part::files]])

    def offsets() -> int:
        return len(list((out / "_checkpoint").glob("offsets/[0-9]*")))

    arguments = ["order", str(source), str(out), "--stream", "--once", "--master", "local[2]", "--json"]
    ended = run_and_kill(arguments, tmp_path / "log", offsets, kills, Random(seed))
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["rows"] == files
    assert_restored(talk, read(out), talk.ids)


@pytest.mark.xdist_group("killed")  # a Spark of its own
def test_a_killed_driver_loses_and_repeats_nothing(tmp_path: Path) -> None:
    killed_while_ordering(tmp_path, kills=1, seed=1)


@pytest.mark.hunt
@pytest.mark.parametrize("seed", range(2, 12))
def test_twenty_killed_drivers_lose_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    killed_while_ordering(tmp_path, kills=2, seed=seed)
