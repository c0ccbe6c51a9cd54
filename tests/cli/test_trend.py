"""`inga check --write`, `inga trend`: the certificates of many runs, as a user gathers them. Without Spark."""

import json
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that is right, and one that breaks causal order."""
    place = tmp_path_factory.mktemp("runs")
    simulate_trial(Trial("causal", 3, 10, seed=1), trace=place / "right")
    simulate_trial(Trial("fifo", 4, 60, rate=1000, delay=(0.001, 0.05), seed=7), trace=place / "wrong")
    return place


def certify(run: Path, tables: Path, *more: str) -> int:
    return main(["check", str(run), "--engine", "local", "--quiet", "--write", str(tables), *more])


def test_runs_by_date(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = tmp_path / "tables"
    assert certify(runs / "wrong", tables, "--date", "2026-02-01", "--checks", "causal,fifo") == 1
    assert certify(runs / "right", tables, "--date", "2026-01-31") == 0
    capsys.readouterr()
    assert certify(runs / "right", tables) == 0  # it stays where it is
    assert certify(runs / "right", tables, "--date", "2026-01-31") == 0 and capsys.readouterr().err == ""
    assert certify(runs / "right", tables, "--date", "2026-03-01") == 0
    assert capsys.readouterr().err == f"{runs}/right stands under 2026-01-31 in {tables}, and stays there\n"
    page = tmp_path / "trend.html"
    assert main(["trend", str(tables), "--page", str(page)]) == 1
    head, right, wrong, _, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["date", "run", "group", "order", "events", "verdict"]
    assert right.startswith("2026-01-31") and right.endswith("pass")
    assert wrong.startswith("2026-02-01") and "fail: causal " in wrong and "fifo" in wrong
    assert last == "2 runs: 1 pass, 0 unknown, 1 fail; fail since 2026-02-01 (1 run)"
    drawn = page.read_text()
    assert "<svg" in drawn and "2026-02-01" in drawn and "<td>causal</td>" in drawn

    assert main(["trend", str(tables), "--last", "1", "--json"]) == 1
    (only,) = json.loads(capsys.readouterr().out)["runs"]
    assert (only["verdict"], list(only["violations"]), only["open"]) == ("fail", ["causal"], [])


def test_only_what_is_right(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certify(runs / "right", tmp_path)
    page = tmp_path / "trend.html"
    assert main(["trend", str(tmp_path), "--group", "sim", "--page", str(page)]) == 0
    assert capsys.readouterr().out.endswith("1 run: 1 pass, 0 unknown, 0 fail\n")
    assert "<svg" not in page.read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("trend {}", "has no table 'verdicts'"),
        ("trend {} --last 0", "--last is at least 1"),
        ("trend {} --page {}/none/page.html", "/none is not a directory, so"),
        ("trend {} --page {}", " is a directory, so"),
        ("trend {}/file", "/file is no directory, so it holds no tables"),
        ("check {} --write {}/file", "/file is no directory, so it holds no tables"),
        ("check {} --date 2026-01-01", "goes with --write"),
        ("check {} --write t --date now", "a date looks like 2026-01-31"),
        ("check {} --write hdfs://x/t", "not to hdfs://x/t"),
    ],
)
def test_what_cannot_be(
    words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main([word.format(tmp_path) for word in words.split()]) == 2
    complained = capsys.readouterr().err
    assert sentence in complained and complained.count("\n") == 1


def test_a_group_that_is_not_there(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certify(runs / "right", tmp_path)
    assert main(["trend", str(tmp_path), "--group", "dinner"]) == 2
    assert "has no run of the group 'dinner'" in capsys.readouterr().err
