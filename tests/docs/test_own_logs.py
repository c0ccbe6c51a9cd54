"""The commands of docs/own-logs.md, run on the log that stands there, say what the page says."""

import re
from pathlib import Path

import pytest

from inga.cli.main import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "own-logs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("inga ")]


def shown_after(command: str) -> list[str]:
    """The lines of the block that follows the one with a command."""
    at = next(at for at, block in enumerate(BLOCKS) if command in block)
    return [line for line in BLOCKS[at + 1].splitlines() if line]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_page_does_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lent: None
) -> None:
    monkeypatch.chdir(tmp_path)
    log = next(block for block in BLOCKS if block.startswith("at,service"))
    (tmp_path / "shop.csv").write_text(log)
    codes, said = {}, {}
    for command in COMMANDS:
        codes[command] = main(command.split()[1:])
        said[command] = capsys.readouterr().out
    assert [command.split()[1] for command in COMMANDS] == [
        "import", "import", "check", "stamp", "check", "check", "trend"
    ]  # fmt: skip
    assert list(codes.values()) == [0, 0, 1, 0, 1, 1, 1]
    for command in (COMMANDS[0], COMMANDS[2], COMMANDS[4]):
        for line in shown_after(command):
            assert re.sub(r"\(\d\.\d s\)", "", line) in re.sub(r"\(\d\.\d s\)", "", said[command]), command
    assert "[shop.csv:21]" in said[COMMANDS[2]]
