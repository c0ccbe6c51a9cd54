"""The main job, small."""

import json
from pathlib import Path

import pytest

from inga.cli.main import main

pytestmark = [
    pytest.mark.spark,
    pytest.mark.network,
    pytest.mark.xdist_group("spark"),
    pytest.mark.usefixtures("lent"),
]


def test_the_demo_shows_fifo_breaking_and_causal_keeping(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    words = f"demo --out {out} --members 4 --messages 500 --loss 0.1 --no-open --quiet --json".split()
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    checks = {order: {c["name"]: c for c in each["checks"]} for order, each in found["orders"].items()}
    assert found["kept"]
    assert checks["fifo"]["causal"]["verdict"] == "fail"
    assert checks["fifo"]["causal"]["witnesses"][0]["text"]
    assert {check["verdict"] for check in checks["vector"].values()} == {"pass"}
    page = Path(found["report"]).read_text()
    assert "not promised by this order" in page and "alice" in page
    assert "but not checked" not in page, "the demo checks all that both promise"
    assert main(words) == 2  # never over something that is there
