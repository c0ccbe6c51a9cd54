"""`inga order`: what it prints, and what it refuses before Spark starts."""

from pathlib import Path

import pytest

from inga.cli.main import main
from inga.lab.traces import TraceRecipe, make


@pytest.fixture
def places(tmp_path: Path) -> Path:
    make(tmp_path / "trace", TraceRecipe(200, 3), segment_rows=100)
    for folder, names in {"empty": [], "mixed": ["a.json", "b.parquet"], "other": ["cat.png"]}.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    (tmp_path / "table.json").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{}/nowhere {}/out", "{}/nowhere does not exist, so there is nothing to order"),
        ("{}/empty {}/out", "{}/empty holds no trace, and no Parquet or JSON"),
        ("{}/mixed {}/out", "{}/mixed holds both Parquet and JSON"),
        ("{}/other {}/out", "{}/other holds no trace, and no Parquet or JSON"),
        ("{}/broken {}/out", "{}/broken/manifest.json is not JSON"),
        ("{}/trace {}/empty", "{}/empty exists already: name a new directory"),
        ("{}/trace {}/a/b", "there is no directory {}/a to write b to"),
        ("{}/trace {}/out --group room", "a trace is one group; --group is for tables"),
        ("{}/trace {}/out --step nack", "no step 'nack' to order by; there are send, deliver, accept, take"),
        ("{}/trace {}/out --process zoe", "has no process 'zoe'; there are "),
        ("{}/table.json {}/out --step deliver", "--step and --process choose rows of a trace"),
        ("{}/table.json {}/out --give-up 5", "--give-up goes with --stream"),
        ("{}/table.json {}/out --once", "--once goes with --stream"),
        ("{}/table.json {}/out --stream --give-up -5", "--give-up is not negative"),
        ("{}/table.json {}/out --stream --poll 0", "--poll is a number of milliseconds above 0, not 0"),
        ("{}/trace {}/other --stream", "{}/other exists already, and not from a stream that could go on"),
        ("hdfs://cluster/x {}/out", "hdfs://cluster/x is elsewhere: say what it is with --kind"),
    ],
)
def test_what_is_refused_before_spark_starts(
    places: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    before = sorted(places.rglob("*"))
    assert main(["order", "--quiet", *(word.replace("{}", str(places)) for word in words.split())]) == 2
    error = capsys.readouterr().err
    assert error.startswith("inga order: ") and message.replace("{}", str(places)) in error
    assert error.count("\n") == 1
    assert sorted(places.rglob("*")) == before


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["order", "--help"])
    assert "inga order incoming/ ordered --stream --give-up 5000" in capsys.readouterr().out
