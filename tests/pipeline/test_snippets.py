"""The programs of pages that want a Spark session run: tests/docs/test_snippets.py runs all others."""

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("tutorial/4-spark.md", "which precedes it"),
    ],
)
def test_the_program_of_a_page_runs(
    spark: Any,
    page: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark}
    for block in re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE):
        # Spark, which was started before, is in another directory.
        exec(block.replace('"certificates', f'"{tmp_path}/certificates'), names)
    assert said in capsys.readouterr().out
