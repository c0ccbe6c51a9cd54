"""One certificate, whoever does the work: Spark's tasks, or this process alone."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inga.certify.verdict import Certificate
from inga.cli.main import main
from inga.lab.traces import DEFECTS, KIND_DEFECTS, LEVEL_DEFECTS, TraceRecipe, make
from inga.pipeline.jobs import check_trace, report_tables
from inga.pipeline.remembering import Memory
from inga.pipeline.watching import Watch, watch_trace
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial

from ..certify.world import sabotage, store, wander
from .test_foreign import imported, log_text


def comparable(certificate: Certificate) -> dict[str, Any]:
    return {**certificate.to_json(), "seconds": 0}


# ---- random broken traces


def wandered(random: Random, path: Path) -> None:
    """Messages at random, some rows lost, repeated, forged, moved."""
    receipt = random.choice(["deliver", "take", "accept"])
    order, subsets, echo = (
        random.choice(["none", "fifo", "causal"]),
        random.random() < 0.5,
        random.random() < 0.5,
    )
    n, messages = random.randrange(2, 6), random.randrange(1, 40)
    trace = wander(
        random, n, messages, receipt=receipt, order=order, subsets=subsets, echo=echo, unstamped=0.05
    )
    sabotage(random, trace)
    store(random, trace, receipt, path)


def planted(random: Random, path: Path) -> None:
    """A made trace with a defect: of levels, of total orders, of views, of objects."""
    kinds = [("plain", defect) for defect in (*DEFECTS, *LEVEL_DEFECTS)]
    kinds += [(kind, defect) for kind, defects in KIND_DEFECTS.items() for defect in defects]
    kind, defect = random.choice(kinds)
    receipt = "accept" if defect in LEVEL_DEFECTS and kind == "plain" else random.choice(["deliver", "take"])
    recipe = TraceRecipe(1000, 4, receipt=receipt, seed=random.randrange(99), defect=defect, kind=kind)
    make(path, recipe, segment_rows=random.choice([90, 300]))


def logged(random: Random, path: Path) -> None:
    """An imported log in which an event is missing, forgets, or is there again."""
    records = log_text(random, "abcd"[: random.randrange(2, 5)], 150)
    for _ in range(random.randrange(1, 3)):
        at = random.randrange(100, len(records))
        match random.randrange(3):
            case 0:
                del records[at]
            case 1:
                host, clock, _ = records[at]
                records[at][1] = json.dumps({host: json.loads(clock)[host]})
            case 2:
                records.append(records[at])
    path.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        imported(path, records, patch).rename(path.with_name("made"))
    path.joinpath("x.log").unlink()
    path.rmdir()
    path.with_name("made").rename(path)


def broken_trace(seed: int, path: Path) -> None:
    """One of the traces of which all engines say the same."""
    random = Random(seed)
    random.choices([wandered, planted, logged], [5, 4, 1])[0](random, path)


def assert_equal_certificates(seed: int, spark: Any, path: Path) -> str:
    broken_trace(seed, path)
    by_spark, here = (
        comparable(check_trace(str(path), ["all"], session=session, master=None, witnesses=9)[1])
        for session in (spark, None)
    )
    assert by_spark == here, f"seed {seed}"
    return str(here["verdict"])


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_both_engines_give_one_certificate(spark: Any, tmp_path: Path) -> None:
    verdicts = [assert_equal_certificates(seed, spark, tmp_path / str(seed)) for seed in range(5)]
    assert verdicts.count("fail") >= 3  # or there was nothing to compare


@pytest.mark.hunt
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("part", range(1, 61))
def test_both_engines_give_one_certificate_300_times(spark: Any, tmp_path: Path, part: int) -> None:
    for seed in range(5 * part, 5 * part + 5):
        assert_equal_certificates(seed, spark, tmp_path / str(seed))


# ---- the command


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("traces") / "fifo"
    simulate_trial(Trial("fifo", members=4, messages=50, loss=0.2, seed=1), path)
    return str(path)


def test_it_needs_neither_spark_nor_java(trace: str) -> None:
    """In a process of its own, in which nothing of Spark can be imported and no Java be found."""
    program = (
        "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None; from inga.cli.main import main; "
        "code = main(sys.argv[1:]); assert not {'pyspark', 'numba'} & {n for n, m in sys.modules.items() if m}; "
        "sys.exit(code)"
    )
    arguments = ["check", trace, "--engine", "local", "--checks", "fifo,causal", "--json"]
    environment = {**os.environ, "PATH": "", "JAVA_HOME": ""}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == "in this process, without Spark\n"
    checks = json.loads(done.stdout)["checks"]
    assert [(each["name"], each["verdict"]) for each in checks] == [("fifo", "pass"), ("causal", "fail")]


def test_report_and_watch_do_without_spark_too(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    here = comparable(check_trace(trace, ["causal"], master=None)[1])
    assert main(["report", trace, trace, "--engine", "local", "--checks", "causal", "-o", str(page)]) == 1
    assert re.search("before (message|packet) ", page.read_text())
    assert len(report_tables(trace, ["causal"], master=None).drawing)
    assert main(["watch", trace, "--engine", "local", "--checks", "causal", "--json"]) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {**told, "seconds": 0} == here == comparable(watch_trace(trace, ["causal"], master=None))


def test_objects_are_watched_as_they_are_checked(tmp_path: Path) -> None:
    """Also by what was remembered of them while the trace was growing, when nothing of it was judged yet."""
    path = tmp_path / "run"
    trial = Trial("object", members=4, messages=10, loss=0.05, seed=3, objects=2, misdeclare=("put", "put"))
    assert simulate_trial(trial, path).violations
    checked = comparable(check_trace(str(path), master=None)[1])
    assert checked["verdict"] == "fail"
    files = {file: file.read_text() for file in [path / "manifest.json", *(path / "processes").iterdir()]}
    for file, text in files.items():
        file.write_text(text.replace('"complete": true', '"complete": false'))
    watch = Watch(str(path), None, Memory())
    assert watch.look(None, lambda *_: None) is not None and watch.memory.verdict is None
    for file, text in files.items():
        file.write_text(text)
    assert watch.look(None, lambda *_: None) is not None and watch.memory.verdict is not None
    assert comparable(watch.memory.verdict) == checked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--master", "local[2]"], "--master says where Spark runs, and --engine local does without Spark"),
        (["--checks", "casual"], "no check 'casual'"),
    ],
)
def test_what_it_cannot_do_is_said(
    trace: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["check", trace, "--engine", "local", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_trace_elsewhere_is_for_spark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "hdfs://cluster/run7", "--engine", "local", "--quiet"]) == 2
    assert capsys.readouterr().err == (
        "inga check: hdfs://cluster/run7 is not on this machine, and only Spark can read it.\n"
    )


def test_bad_input_is_named(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    copy = Path(shutil.copytree(trace, tmp_path / "copy"))
    (copy / "events" / "1-00000.parquet").write_bytes(b"nothing")
    assert main(["check", str(copy), "--engine", "local", "--quiet"]) == 2
    assert "1-00000.parquet is not a readable Parquet file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["metrics", "report"])
def test_times_too_far_apart_are_one_sentence(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    import shutil

    copy = Path(shutil.copytree(trace, tmp_path / "copy"))
    path = copy / "events" / "1-00000.parquet"
    rows = pq.read_table(path)
    times = pa.array([-(2**63), *rows.column("time").to_pylist()[1:]], pa.int64())
    pq.write_table(rows.set_column(rows.column_names.index("time"), "time", times), path)
    out = ["-o", str(tmp_path / "out.html")] if command == "report" else []
    assert main([command, str(copy), "--engine", "local", "--quiet", *out]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"inga {command}: {copy} has times from -9223372036854775808 to ")
    assert told.endswith(" ns: that is more than 292 years.\n") and told.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["copy"]
