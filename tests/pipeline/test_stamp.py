"""`inga stamp`: a trace without vectors gets them back, from files through Spark."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inga.certify.slice import UNSENT, Unstampable
from inga.cli.main import main
from inga.lab.traces import TraceRecipe, make
from inga.model.errors import TraceError, UsageError
from inga.pipeline.jobs import check_trace
from inga.pipeline.stamping import stamp_trace
from inga.sim.trials import simulate_trial
from inga.trace import Manifest, ProcessFile, TraceWriter, read_manifest, rows
from inga.trace.importers import TableColumns, import_log
from inga.trial.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def strip(trace: Path, target: Path, *, skew: int = 0) -> Path:
    """A copy without vectors; `skew` sets the clock of each process wrong by so many more nanoseconds."""
    shutil.copytree(trace, target)
    for path in (target / "events").iterdir():
        table = pq.read_table(path)
        for name in ("deps", "height"):
            column = pa.nulls(table.num_rows, table.schema.field(name).type)
            table = table.set_column(table.column_names.index(name), name, column)
        process = int(path.name.partition("-")[0])
        times = pa.array(table["time"].to_numpy() + skew * process)
        table = table.set_column(table.column_names.index("time"), table.schema.field("time"), times)
        pq.write_table(table, path, write_page_checksum=True)
    return target


@pytest.mark.parametrize("order", ["vector", "co"])
def test_a_simulated_run_gets_its_vectors_back(spark: Any, tmp_path: Path, order: str) -> None:
    source = tmp_path / "run"
    simulate_trial(
        Trial(order, members=4, messages=25, loss=0.1, subset=2 if order == "vector" else None, seed=3),
        source,
    )
    bare = strip(source, tmp_path / "bare")
    done = stamp_trace(str(bare), str(tmp_path / "out"), session=spark, counts_max=800)
    assert done.slices > 3
    receipt = read_manifest(source).receipt
    steps = ("send", "deliver", receipt)
    expected = [(row.pos, row.step, row.deps, row.height) for row in rows(source) if row.step in steps]
    found = list(rows(tmp_path / "out"))
    assert [(row.pos, row.step, row.deps, row.height) for row in found if row.step in steps] == expected
    assert all(row.deps is None for row in found if row.step not in steps)
    others = [(row.pos, row.time, row.step, row.src, row.seq, row.n, row.note) for row in rows(source)]
    assert [(row.pos, row.time, row.step, row.src, row.seq, row.n, row.note) for row in found] == others
    assert check_trace(str(tmp_path / "out"), session=spark)[1].verdict == "pass"
    assert not list(tmp_path.glob(".*"))


def test_clocks_that_are_wrong_only_move_the_cuts(spark: Any, tmp_path: Path) -> None:
    make(tmp_path / "run", TraceRecipe(2000, 4, seed=1), segment_rows=200)
    bare = strip(tmp_path / "run", tmp_path / "bare", skew=30_000)
    done = stamp_trace(str(bare), str(tmp_path / "out"), session=spark, counts_max=2000)
    assert done.moved > 0 and done.slices > 3
    found = [(row.pos, row.deps) for row in rows(tmp_path / "out")]
    assert found == [(row.pos, row.deps) for row in rows(tmp_path / "run")]


def test_copies_that_arrived_stand_for_receipts(spark: Any, tmp_path: Path) -> None:
    """A log of sends and receives alone, as somebody else may write it; the result can be certified."""
    make(tmp_path / "run", TraceRecipe(1500, 3, seed=2), segment_rows=200)
    bare = strip(tmp_path / "run", tmp_path / "bare")
    for path in (bare / "events").iterdir():
        table = pq.read_table(path)
        steps = ["receive" if step == "deliver" else step for step in table["step"].to_pylist()]
        at = table.column_names.index("step")
        pq.write_table(table.set_column(at, "step", pa.array(steps)), path, write_page_checksum=True)
    stamp_trace(str(bare), str(tmp_path / "out"), session=spark, counts_max=2000)
    certificate = check_trace(str(tmp_path / "out"), session=spark)[1]
    assert certificate.verdict == "pass" and certificate.deliveries == 1008


def test_clocks_of_events_and_what_precedes_requests_stay(spark: Any, tmp_path: Path) -> None:
    trace = tmp_path / "log"
    Manifest("g", ["a", "b"], "import:otel", "none", "deliver", "wall", ["clocks"], complete=True).write(
        trace
    )
    written = [
        [("event", 0, 1, (0, 0)), ("send", 0, 1, (7, 7)), ("event", 0, 2, (1, 0)), ("request", 0, 1, (0, 3))],
        [
            ("deliver", 0, 1, None),
            ("event", 1, 1, (2, 0)),
            ("start", 0, 1, (0, 3)),
            ("view", None, None, (5, 5)),
        ],
    ]
    for process, mine in enumerate(written):
        with TraceWriter(trace, process, "ab"[process], 2) as file:
            for number, (step, src, seq, deps) in enumerate(mine):
                file.row(step, float(number), 1, src, seq, deps=deps)
    stamp_trace(str(trace), str(tmp_path / "out"), session=spark)
    found = [(row.step, row.deps, row.height) for row in rows(tmp_path / "out")]
    kept = [(row.step, row.deps, row.height) for row in rows(trace)]
    kept[1], kept[4], kept[7] = ("send", (0, 0), 1), ("deliver", (0, 0), 1), ("view", None, None)
    assert found == kept
    assert check_trace(str(tmp_path / "out"), master=None)[1].verdict == "pass"


def test_what_cannot_be_stamped_leaves_nothing_behind(spark: Any, tmp_path: Path) -> None:
    make(tmp_path / "run", TraceRecipe(1500, 3, seed=2, defect="unsent"), segment_rows=200)
    told = r"member\d has message \d+ of member\d at position \d+ \(events/\d-0000\d.parquet\), but no row says that it was sent"
    with pytest.raises(TraceError, match=told):
        stamp_trace(str(tmp_path / "run"), str(tmp_path / "out"), session=spark)
    empty = tmp_path / "empty"
    Manifest("g", ["a"], "sim", "none", "deliver", "virtual").write(empty)
    ProcessFile(0, "a", first_view=1, last_pos=0, complete=False).write(empty)
    with pytest.raises(TraceError, match="has no send"):
        stamp_trace(str(empty), str(tmp_path / "out"), session=spark)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "run"]


def test_where_to_write_is_looked_at_first(tmp_path: Path) -> None:
    make(tmp_path / "run", TraceRecipe(1500, 3))
    for out, message in (
        (str(tmp_path / "run"), "exists already"),
        (str(tmp_path / "no" / "where"), "is not a directory"),
        ("hdfs://cluster/x", "that all machines share"),
    ):
        with pytest.raises(UsageError, match=message):
            stamp_trace(str(tmp_path / "run"), out)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_as_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], lent: None) -> None:
    make(tmp_path / "run", TraceRecipe(1500, 3), segment_rows=200)
    words = ["stamp", str(tmp_path / "run"), str(tmp_path / "out"), "--quiet", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["messages"] == 504 and told["slices"] == 1 and told["processes"] == 3
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["stamp", words[1], str(tmp_path / "here"), "--engine", "local", "--quiet"]) == 0
    assert list(rows(tmp_path / "here")) == list(rows(tmp_path / "out"))


def test_errors_name_processes_and_lines(tmp_path: Path) -> None:
    """As other commands do: the line of a log, or the file with the row."""
    rows = ["a,send,1", "b,receive,1", "b,send,2", "c,receive,3", "c,send,3"]
    (tmp_path / "x.csv").write_text("p,k,m\n" + "\n".join(rows) + "\n")
    import_log(
        "table", tmp_path / "x.csv", tmp_path / "t", columns=TableColumns({"process": "p", "kind": "k", "message": "m"})
    )  # fmt: skip
    with pytest.raises(TraceError, match=r"^c has message 1 of c at position 2 \(x.csv:5\), before it can"):
        stamp_trace(str(tmp_path / "t"), str(tmp_path / "out"), master=None)
    trace = tmp_path / "again"
    Manifest("g", ["alice", "bob"], "sim", "none", "deliver", "virtual").write(trace)
    for process, numbers in ((0, (1, 2, 3, 2)), (1, (1,))):
        with TraceWriter(trace, process, ["alice", "bob"][process], 2, segment_rows=3) as writer:
            for number in numbers:
                writer.row("send", 0.0, 1, process, number)
    told = r"^alice has message 2 of alice at position 4 \(events/0-00001.parquet\), which counts its messages again"
    with pytest.raises(TraceError, match=told):
        stamp_trace(str(trace), str(tmp_path / "out"), master=None)


def test_an_error_survives_the_way_from_a_task() -> None:
    error = Unstampable(1, 5, 0, 3, UNSENT)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error).startswith("process 1 has message 3 of process 0 at position 5, but no row")
