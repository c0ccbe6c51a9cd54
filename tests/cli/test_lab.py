"""`inga lab` as a user calls it."""

import json
from pathlib import Path

import pytest

from inga.cli.main import main


def test_json_has_claims_and_tables_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "ladder", "--quick", "--json", "--out", str(tmp_path / "new" / "lab")]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert set(found) == {"experiment", "claims", "tables", "seconds", "out"}
    assert (found["experiment"], found["out"]) == ("ladder", str(tmp_path / "new" / "lab"))
    assert len(found["claims"]) == 30
    assert set(found["claims"][0]) == {"id", "statement", "published", "measured", "verdict"}
    assert {claim["verdict"] for claim in found["claims"]} <= {"holds", "roughly", "not reproduced"}
    for table in found["tables"].values():
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert (tmp_path / "new" / "lab" / "ladder.html").exists()


def test_text_tells_the_story_and_names_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "ladder", "--quick", "--quiet", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "C delivers 2 BEFORE ITS CAUSE 1" in captured.out
    assert captured.out.endswith(f"open {tmp_path / 'ladder.html'}\n")
    assert " holds" in captured.out


def test_without_out_it_writes_beside_you(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["lab", "ladder", "--quick"]) == 0
    assert (tmp_path / "inga-lab" / "ladder" / "ladder.html").exists()
    assert "playing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["alchemy"],
            "inga lab: no experiment 'alchemy'; there are ladder, co, sco, obg, remiop, members, all\n",
        ),
        (["ladder", "--out", "{file}"], "inga lab: {file} is a file; --out names a directory\n"),
    ],
)
def test_bad_use_gets_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert main(["lab", *(word.format(file=file) for word in words)]) == 2
    captured = capsys.readouterr()
    assert captured.err == sentence.format(file=file)
    assert captured.out == ""


def test_a_directory_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ladder.html").mkdir()
    assert main(["lab", "ladder", "--quick", "--quiet", "--out", str(tmp_path)]) == 2
    assert "cannot be written to" in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["lab", "--help"])
    assert ended.value.code == 0
    assert "inga lab ladder" in capsys.readouterr().out
