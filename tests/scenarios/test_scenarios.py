"""The worked examples of the papers, played. After a change that is meant, `pytest --rewrite tests/scenarios` writes
what they print now into their files; read the difference."""

import re
import sys
from pathlib import Path

import pytest

from .play_causality import CausalityScript
from .play_co import CoScript
from .play_obg import ObgScript
from .play_remiop import ReMiopScript
from .play_sco import ScoScript
from .script import Script

HERE = Path(__file__).parent
PLAYERS: dict[str, type[Script]] = {
    "causality": CausalityScript,
    "co": CoScript,
    "obg": ObgScript,
    "remiop": ReMiopScript,
    "sco": ScoScript,
}
FILES = sorted(HERE.glob("*/*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    played = PLAYERS[path.parent.name]().replay(text)
    if request.config.getoption("--rewrite"):
        path.write_text(played)
    else:
        assert text == played


def test_every_protocol_has_scenarios() -> None:
    assert {path.parent.name for path in FILES} == set(PLAYERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_word_too_many_is_noticed(path: Path) -> None:
    """A scenario that compared nothing would pass, too."""
    head, dashes, tail = path.read_text().partition("\n----\n")
    assert PLAYERS[path.parent.name]().differs(f"{head}{dashes}something else\n{tail}")


@pytest.mark.parametrize("name", PLAYERS)
def test_the_page_has_every_word(name: str) -> None:
    """In the column of its protocol, and the module explains it."""
    page = (HERE.parents[1] / "docs" / "scenarios.md").read_text()
    head, *rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("|")]
    column = [cell.strip() for cell in head].index(name)
    words = set(re.findall(r"`(\w+)", " ".join(row[column] for row in rows)))
    player = PLAYERS[name]
    verbs = {verb.removeprefix("do_") for verb in dir(player) if verb.startswith("do_")}
    assert words == verbs
    told = sys.modules[player.__module__].__doc__ or ""
    assert all(re.search(rf"(?m)^ {{4}}.*\b{verb} ?", told) for verb in verbs)
