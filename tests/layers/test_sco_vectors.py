"""The vectors of SCO as scenarios, and what the defects of the printed rules do to them."""

from pathlib import Path

import pytest

from .sco_script import Script, blocks

FOLDER = Path(__file__).parents[1] / "scenarios" / "sco"
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    script = Script()
    for commands, expected in blocks(path):
        assert script.play(commands) == expected, commands
