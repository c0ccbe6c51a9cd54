"""The program of docs/python.md as somebody runs it who follows the page, for sessions that are in other processes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from inga.cli.main import main
from inga.sim.trials import simulate_trial
from inga.trace import rows
from inga.trial.trial import Trial

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def page_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def make_run(path: Path, seed: int = 7) -> None:
    """A run in FIFO order, which breaks causal order some times."""
    simulate_trial(Trial("fifo", 4, 60, rate=1000, delay=(0.001, 0.05), seed=seed), trace=path)


def page_program(folder: Path) -> str:
    """All of it, on a run in this folder. What it found is in `said`."""
    make_run(folder / "run7")
    text = "\n".join(page_blocks())
    # Spark, which was started before, is in another directory.
    text = text.replace('"run7', f'"{folder}/run7').replace('"certificates', f'"{folder}/certificates')
    return text + "\nsaid = [found.verdict, failing.count(), ordered.count()]\n"


def assert_page_did_what_it_says(folder: Path, said: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It saw the violations, wrote its tables, and the trend of them can be drawn."""
    verdict, failing, ordered = said
    assert (verdict, failing) == ("fail", 2)  # causal and total, which fifo does not promise
    assert ordered == sum(row.step == "send" for row in rows(folder / "run7"))
    make_run(folder / "run8", seed=8)
    certificates = str(folder / "certificates")
    main(["check", str(folder / "run8"), "--checks", "causal", "--engine", "local", "--write", certificates])
    capsys.readouterr()
    page = folder / "trend.html"
    assert main(["trend", certificates, "--page", str(page), "--json"]) == 1
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["verdict"] for run in runs] == ["fail", "fail"] and "<svg" in page.read_text()
