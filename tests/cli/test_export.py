"""`inga export` as a user calls it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.sim.trials import simulate_trial
from inga.trace import Manifest, ProcessFile, mark_crashed, read_processes, rows
from inga.trial.trial import Trial


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "run"
    simulate_trial(Trial(members=3, messages=10, loss=0.1, seed=1), path)
    return path


def export(*words: object) -> int:
    return main(["export", *map(str, words), "--format", "jsonl"])


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_for_each_row(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.jsonl"
    assert export(trace, file) == 0
    found = lines(file)
    count = len(list(rows(trace)))
    assert [(step["process"], step["pos"], step["step"]) for step in found] == [
        (row.process, row.pos, row.step) for row in rows(trace)
    ]
    said, complained = capsys.readouterr()
    assert said.startswith(f"{count:,} rows of 3 processes: {count:,} steps in {file} (") and complained == ""
    assert os.listdir(tmp_path) == ["run.jsonl"], "nothing else is left"


def test_a_summary_for_programs(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.jsonl"
    assert export(trace, file, "--alias", "dewan", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found.pop("seconds") >= 0
    assert found == {
        "trace": str(trace), "file": str(file), "format": "jsonl", "alias": "dewan", "processes": 3,
        "rows": len(list(rows(trace))), "steps": len(lines(file)), "incomplete": [],
    }  # fmt: skip
    assert found["steps"] > found["rows"]


def test_to_standard_output(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(trace, "-") == 0
    said, complained = capsys.readouterr()
    assert [json.loads(line)["pos"] for line in said.splitlines()] == [row.pos for row in rows(trace)]
    assert complained.count("\n") == 1 and "steps in -" in complained
    assert export(trace, "-", "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_a_reader_that_has_enough(trace: Path) -> None:
    """The pipe is closed after one line; nobody complains."""
    command = f"{sys.executable} -m inga export {trace} - --format jsonl --quiet | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.count("\n") == 1 and done.stderr == ""


def test_nothing_is_overwritten_unless_forced(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine"
    file.write_text("precious")
    assert export(trace, file) == 2
    assert capsys.readouterr().err == f"inga export: {file} exists already; --force replaces it\n"
    assert file.read_text() == "precious"
    assert export(trace, file, "--force", "--quiet") == 0
    assert lines(file)


def test_a_trace_that_turns_out_bad_leaves_no_file(trace: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    shutil.copytree(trace, bad)
    last = sorted((bad / "events").iterdir())[-1]
    last.write_bytes(last.read_bytes()[:-100])
    file = tmp_path / "out.jsonl"
    file.write_text("before")
    assert export(bad, file, "--force") == 2
    assert file.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["bad", "out.jsonl"]


def test_a_device_is_written_to_as_it_is(trace: Path) -> None:
    before = os.stat("/dev/null")
    assert export(trace, "/dev/null", "--quiet") == 0
    assert os.stat("/dev/null").st_ino == before.st_ino and not Path("/dev/null").is_file()


def test_missing_rows_are_told(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(trace, cut)
    known = read_processes(cut)[1]
    known.complete = False
    known.write(cut)
    mark_crashed(cut, 1, "bob")
    assert export(cut, tmp_path / "out") == 0
    assert capsys.readouterr().out.endswith("the last rows are missing of bob\n")


def test_a_run_without_rows(tmp_path: Path) -> None:
    Manifest(
        group="g", processes=["alice"], source="sim", order="vector", receipt="take", clock="virtual"
    ).write(tmp_path / "t")
    ProcessFile(0, "alice", complete=True).write(tmp_path / "t")
    assert export(tmp_path / "t", tmp_path / "out") == 0
    assert (tmp_path / "out").read_text() == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("{d}/nowhere {d}/x --format jsonl", "{d}/nowhere does not exist, so it is not a trace."),
        ("{d} {d}/x --format jsonl", "{d} is empty, so it is not a trace."),
        (
            "hdfs://far/run {d}/x --format jsonl",
            "hdfs://far/run is not on this machine, and only Spark can read it.",
        ),
        ("{t} {d} --format jsonl", "{d} is a directory; name a file"),
        ("{t} {d}/no/x --format jsonl", "there is no directory {d}/no to write x to"),
        ("{t} - --format jsonl --json", "--json prints its summary where - prints the steps: name a file"),
    ],
)
def test_bad_use_gets_one_sentence(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    assert main(["export", *words.format(t=trace, d=tmp_path).split()]) == 2
    said, complained = capsys.readouterr()
    assert said == "" and complained == f"inga export: {sentence.format(d=tmp_path)}\n"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("words", ["--format csv", "--format jsonl --alias lamport", ""])
def test_names_that_are_none(trace: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["export", str(trace), "-", *words.split()])
    assert end.value.code == 2 and "--" in capsys.readouterr().err


def test_it_needs_no_spark(trace: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from inga.cli.main import main\n"
        f"sys.exit(main(['export', {str(trace)!r}, {str(tmp_path / 'out')!r}, '--format', 'jsonl']))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
    assert lines(tmp_path / "out")
