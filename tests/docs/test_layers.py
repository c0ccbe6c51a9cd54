"""The page about writing layers is one program, and what it says is so."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "layers.md"
SECONDS = 120


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(program: str, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, since it registers recipes."""
    (tmp_path / "page.py").write_text(program)
    command = [sys.executable, "-W", "error", str(tmp_path / "page.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    result = run("\n".join(blocks(PAGE.read_text())), tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_program_notices_a_layer_that_is_wrong(tmp_path: Path) -> None:
    """Its checks are checks: with the compressor's mark left out, the page's own run fails."""
    program = "\n".join(blocks(PAGE.read_text()))
    wrong = program.replace("PLAIN + bytes(packet.body)", "bytes(packet.body)")
    assert wrong != program
    assert "AssertionError" in run(wrong, tmp_path).stderr
