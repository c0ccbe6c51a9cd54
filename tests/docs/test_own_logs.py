"""The commands of docs/own-logs.md, run on the logs of the service that it names, say what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from inga.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "own-logs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("inga ")]


def shown_after(command: str) -> list[str]:
    """The lines of the block that follows the one with a command."""
    at = next(at for at, block in enumerate(BLOCKS) if command in block)
    return [line for line in BLOCKS[at + 1].splitlines() if line]


def without_times(log: str) -> list[str]:
    return [re.sub(r"^[^,]*\d[^,]*,", "", line) for line in log.splitlines()]


@pytest.mark.network
def test_the_page_does_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = [sys.executable, "-W", "error", str(ROOT / "examples" / "shop.py"), "logs"]
    served = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (served.returncode, served.stderr) == (0, "")
    log = next(block for block in BLOCKS if block.startswith("at,service"))
    assert without_times((tmp_path / "logs" / "billing" / "messages.csv").read_text()) == without_times(log)
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
    assert "[stock/messages.csv:6]" in said[COMMANDS[2]]


def test_the_service_says_what_it_wants() -> None:
    program = [sys.executable, str(ROOT / "examples" / "shop.py")]
    served = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (served.returncode, served.stdout) == (1, "") and served.stderr.startswith("usage: shop.py LOGS ")
