"""Imported logs and metrics through Spark: the same answers as plain Python gives, from files."""

import json
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from inga.cli import metrics as command
from inga.model.errors import TraceError
from inga.pipeline import jobs
from inga.pipeline.jobs import Measured, check_trace, measure_trace
from inga.sim.trials import simulate_trial
from inga.trace import Manifest, rows
from inga.trace.importers import import_log, write
from inga.trace.writer import segment_name
from inga.trial.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


# ---- clocks


def log_text(random: Random, hosts: str, events: int) -> list[list[str]]:
    """Records with right clocks, two lines each."""
    known: dict[str, dict[str, int]] = {host: {} for host in hosts}
    records = []
    for _ in range(events):
        host, other = random.choice(hosts), random.choice(hosts)
        if random.random() < 0.5:
            known[host] = {
                name: max(known[host].get(name, 0), known[other].get(name, 0))
                for name in {**known[host], **known[other]}
            }
        known[host][host] = known[host].get(host, 0) + 1
        records.append([host, json.dumps(known[host]), "something"])
    return records


def imported(tmp_path: Path, records: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(write, "SEGMENT_ROWS_MAX", 40)  # so that chunks have others to ask
    (tmp_path / "x.log").write_text("".join(f"{host} {clock}\n{text}\n" for host, clock, text in records))
    import_log("shiviz", tmp_path / "x.log", tmp_path / "trace")
    return tmp_path / "trace"


def test_right_clocks_pass(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = log_text(Random(1), "abc", 400)
    at = [index for index, record in enumerate(records) if record[0] == "b"][10:12]
    records[at[0]], records[at[1]] = records[at[1]], records[at[0]]
    trace = imported(tmp_path, records, monkeypatch)
    assert len(list((trace / "events").iterdir())) > 6
    _, certificate = check_trace(str(trace), session=spark)
    assert certificate.verdict == "pass", certificate.to_json()
    assert certificate.checks[0].warnings == [
        f"file order contradicts the clocks in 1 place: x.log:{2 * at[1] + 1}"
    ]


def test_defects_are_named_with_file_and_line(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = log_text(Random(2), "abc", 400)
    of_a = [index for index, record in enumerate(records) if record[0] == "a"]
    of_b = [index for index, record in enumerate(records) if record[0] == "b"]
    records[of_b[60]][1] = json.dumps({"b": 61})  # forgets all others
    # Host a starts again under its old name, at the end.
    records += [["a", json.dumps({"a": count}), "again"] for count in range(1, 6)]
    trace = imported(tmp_path, records, monkeypatch)
    _, certificate = check_trace(str(trace), session=spark)
    found = {group.cause: group.count for group in certificate.groups}
    assert found == {
        "a counts again from event 1 (x.log:801)": 5,
        f"the clock of b goes back at event 61 (x.log:{2 * of_b[60] + 1})": 1,
    }
    assert certificate.checks[0].violations == 6
    assert len(of_a) > 60


def test_all_checks_of_a_run_of_ours_have_no_clocks(spark: Any, tmp_path: Path) -> None:
    simulate_trial(Trial(members=3, messages=10, seed=1), tmp_path / "run")
    _, certificate = check_trace(str(tmp_path / "run"), ["all"], session=spark)
    assert "clocks" not in [check.name for check in certificate.checks]
    assert certificate.verdict == "pass"


# ---- metrics


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("metrics") / "run"
    simulate_trial(Trial(members=4, messages=40, loss=0.2, subset=2, seed=4), path)
    return path


@pytest.fixture(scope="module")
def measured(run: Path) -> Measured:
    return measure_trace(str(run), master=None)


def in_pieces(trace: Path, target: Path, rows_max: int) -> Path:
    """The same trace in many segments."""
    shutil.copytree(trace, target)
    for path in sorted((target / "events").iterdir()):
        part = pq.read_table(path)
        path.unlink()
        process = int(path.name.partition("-")[0])
        for number, first in enumerate(range(0, part.num_rows, rows_max)):
            piece = path.with_name(segment_name(process, number))
            pq.write_table(part.slice(first, rows_max), piece, write_page_checksum=True)
    return target


@pytest.mark.parametrize("order", ["vector", "co"])
def test_tables_do_not_depend_on_how_a_trace_is_cut(spark: Any, tmp_path: Path, order: str) -> None:
    """What is held in one file and goes on in another, is sent in one and arrives in another: with Spark and without."""
    simulate_trial(Trial(order, members=4, messages=25, loss=0.2, seed=5), tmp_path / "run")
    cut = in_pieces(tmp_path / "run", tmp_path / "cut", 97)
    whole = measure_trace(str(tmp_path / "run"), master=None).tables
    assert whole["holds"].num_rows > 4 and whole["held_by"].num_rows > 4
    assert whole["delays"].num_rows > 20
    for found in (measure_trace(str(cut), master=None), measure_trace(str(cut), session=spark)):
        assert set(found.tables) == set(whole)
        for name, expected in whole.items():
            assert found.tables[name].equals(expected), name


def test_a_trace_elsewhere_is_measured_alike(
    spark: Any, run: Path, tmp_path: Path, measured: Measured
) -> None:
    from inga.pipeline.files import files_of
    from inga.pipeline.measuring import measure
    from inga.pipeline.storage import open_trace

    trace = open_trace(str(in_pieces(run, tmp_path / "cut", 500)))
    elsewhere = [replace(file, path=f"file:{file.path}") for file in trace.files]
    files = files_of(spark, replace(trace, files=elsewhere, is_remote=True), lambda *_: None)
    found = measure(files, comparable=True)
    assert all(found[name].equals(expected) for name, expected in measured.tables.items())


def table(measured: Measured, name: str) -> list[dict[str, Any]]:
    return list(measured.tables[name].to_pylist())


def test_delays_are_those_between_the_rows(run: Path, measured: Measured) -> None:
    sent = {(row.src, row.seq): row.time for row in rows(run) if row.step == "send"}
    expected = defaultdict(list)
    for row in rows(run):
        if row.step in ("receive", "deliver", "take") and row.process != row.src:
            delay = (row.time - sent[row.src, row.seq]) / 1e6
            for key in ((None, None), (row.process, None), (row.process, row.src)):
                expected[row.step, *key].append(delay)
    found = {(row["step"], row["process"], row["src"]): row for row in table(measured, "delays")}
    assert set(found) == set(expected)
    for key, delays in expected.items():
        delays.sort()
        assert found[key]["count"] == len(delays)
        assert found[key]["min"] == pytest.approx(delays[0]) and found[key]["max"] == pytest.approx(
            delays[-1]
        )
        assert found[key]["mean"] == pytest.approx(sum(delays) / len(delays))
        assert found[key]["p50"] == pytest.approx(delays[(len(delays) + 1) // 2 - 1])
    assert measured.reason == ""


def test_steps_are_counted_in_all_by_member_and_by_link(run: Path, measured: Measured) -> None:
    expected: dict[Any, int] = defaultdict(int)
    for row in rows(run):
        expected[row.step, None, None] += 1
        expected[row.step, row.process, None] += 1
        if row.peer is not None:
            expected[row.step, row.process, row.peer] += 1
    found = {(row["step"], row["process"], row["peer"]): row["count"] for row in table(measured, "steps")}
    assert found == expected


def test_holds_and_what_held(run: Path, measured: Measured) -> None:
    put: dict[Any, Any] = {}
    went: dict[Any, Any] = {}
    for row in rows(run):
        if row.step == "hold":
            put.setdefault((row.process, row.src, row.seq), row)
        elif row.step == "deliver":
            went.setdefault((row.process, row.src, row.seq), row)
    waits = {key: (went[key].time - put[key].time) / 1e6 for key in put if key in went}
    whole = next(row for row in table(measured, "holds") if row["process"] is None)
    assert whole["count"] == len(waits) > 20
    assert whole["mean"] == pytest.approx(sum(waits.values()) / len(waits))

    blamed: dict[Any, list[float]] = defaultdict(list)
    implied = 0
    for (process, src, seq), ms in waits.items():
        here, end = put[process, src, seq].pos, went[process, src, seq]
        causes = [key for key in went if key[0] == process and key[2] <= end.deps[key[1]]]
        while_held = [(went[key].pos, key) for key in causes if here < went[key].pos < end.pos]
        if while_held:  # else it waited for what was for others
            _, key = max(while_held)
            blamed[key].append(ms)
            implied += key[2] < end.deps[key[1]]
    assert implied, "some waited for what their vectors do not name"
    found = {(row["process"], row["src"], row["seq"]): row for row in table(measured, "held_by")}
    assert set(found) == set(blamed)
    for key, each in blamed.items():
        assert (found[key]["held"], found[key]["ms"]) == (len(each), pytest.approx(sum(each)))


def test_rates_add_up(run: Path, measured: Measured) -> None:
    found = table(measured, "rates")
    assert sum(row["sends"] for row in found) == sum(row.step == "send" for row in rows(run))
    assert sum(row["deliveries"] for row in found) == sum(row.step == "deliver" for row in rows(run))
    assert 10 < len({row["from_ms"] for row in found}) <= 60


def test_rates_follow_what_was_allowed(tmp_path: Path) -> None:
    from inga.trace import TraceWriter

    said = [
        ("rate", 0.0, 60_000),
        ("rate", 0.5, 70_000),
        ("window_closed", 40.5, None),
        ("rate", 59.5, 80_000),
        ("window_opened", 60.0, None),
    ]
    Manifest("g", ["a"], "sim", "remiop", "take", "virtual", options={}).write(tmp_path / "w")
    with TraceWriter(tmp_path / "w", 0, "a", 1, clock="virtual") as trace:
        for step, now, n in said:
            trace.row(step, now, 1, n=n)
    found = table(measure_trace(str(tmp_path / "w"), master=None), "rates")
    assert [(int(row["from_ms"]), row["closed"], row["allowed"]) for row in found] == [
        (0, 0, 70_000),
        (40_000, 1, None),
        (59_000, 0, 80_000),
    ]


def test_windows_that_closed(tmp_path: Path) -> None:
    from inga.trace import TraceWriter

    Manifest("g", ["a"], "sim", "vector", "take", "virtual", options={}).write(tmp_path / "w")
    with TraceWriter(tmp_path / "w", 0, "a", 1, clock="virtual") as trace:
        for step, now in [
            ("send", 0.0),
            ("window_closed", 1.0),
            ("window_opened", 3.0),
            ("window_closed", 9.0),
        ]:
            seq = 1 if step == "send" else None
            trace.row(step, now, 1, None if seq is None else 0, seq, deps=None)
        trace.row("take", 10.0, 1, 0, 1)
    in_pieces(tmp_path / "w", tmp_path / "cut", 1)
    expected = [{"process": 0, "closed": 2, "ms": 3000.0, "ms_max": 2000.0, "share": 0.3}]
    for name in ("w", "cut"):
        assert table(measure_trace(str(tmp_path / name), master=None), "windows") == expected


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"clock": "wall", "options": {"via": "tcp"}}, ""),
        ({"clock": "wall", "options": {}}, "nothing says that all members ran on one machine"),
        ({"source": "import:shiviz"}, "the log does not say that all its hosts had one clock"),
    ],
)
def test_delays_only_where_clocks_can_be_compared(run: Path, changes: dict[str, Any], reason: str) -> None:
    from inga.pipeline.storage import open_trace

    trace = open_trace(str(run))
    for key, value in changes.items():
        setattr(trace.manifest, key, value)
    assert jobs.incomparable(trace) == reason


def test_what_cannot_be_read_is_one_sentence(spark: Any, run: Path, tmp_path: Path) -> None:
    trace = Path(shutil.copytree(run, tmp_path / "trace"))
    next((trace / "events").iterdir()).write_bytes(b"PAR1 or not")
    with pytest.raises(TraceError, match="is not a readable Parquet file: ") as caught:
        measure_trace(str(trace), session=spark)
    assert "\n" not in str(caught.value)


def test_the_command(
    run: Path,
    measured: Measured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tables in files, a summary for people, all of it for programs; Spark itself is that of the other tests."""
    from inga.cli.main import main

    monkeypatch.setattr(jobs, "measure_trace", lambda *_, **__: measured)
    out = tmp_path / "tables"
    assert main(["metrics", str(run), "--out", str(out), "--quiet"]) == 0
    said = capsys.readouterr().out
    assert (
        "from send to" in said
        and "for each data message: control " in said
        and " waited for message " in said
    )
    names = sorted(measured.tables)
    assert sorted(path.name for path in out.iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("csv", "parquet")
    )
    for name in names:
        assert pq.read_table(out / f"{name}.parquet").equals(measured.tables[name])
        assert pa.csv.read_csv(out / f"{name}.csv").num_rows == measured.tables[name].num_rows
    assert main(["metrics", str(run), "--quiet", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["comparable"] is True and content["out"] is None
    assert set(content["tables"]) == set(names) and content["per_message"]["control"] > 0
    assert main(["metrics", str(run), "--out", str(out), "--quiet"]) == 2
    assert capsys.readouterr().err == f"inga metrics: {out} exists already: choose another place\n"
    assert command.__doc__ is not None and "inga metrics run7" in command.__doc__


def test_files_that_spark_has_to_bring_ask_each_other_too(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inga.certify.certificate import certify
    from inga.pipeline.certify import FileSource
    from inga.pipeline.files import files_of
    from inga.pipeline.storage import open_trace

    records = log_text(Random(3), "abc", 200)
    at = next(index for index, record in enumerate(records) if record[0] == "b" and index > 100)
    del records[at]
    trace = open_trace(str(imported(tmp_path, records, monkeypatch)))
    elsewhere = [replace(file, path=f"file:{file.path}") for file in trace.files]
    found = [
        certify(FileSource(files_of(spark, each, lambda *_: None), ["clocks"]), ["clocks"]).to_json()
        for each in (trace, replace(trace, files=elsewhere, is_remote=True))
    ]
    assert found[0] == found[1]
    assert [group["cause"] for group in found[0]["groups"]] == [
        f"events of b are missing before event {_own(records, at)} (x.log:{2 * _next(records, at) + 1})"
    ]


def _next(records: list[list[str]], at: int) -> int:
    return next(index for index in range(at, len(records)) if records[index][0] == "b")


def _own(records: list[list[str]], at: int) -> int:
    return int(json.loads(records[_next(records, at)][1])["b"])
