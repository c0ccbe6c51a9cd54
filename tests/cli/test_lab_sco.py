"""`inga lab sco` as a user runs it: on Spark, with tables as JSON and a page."""

import json
from pathlib import Path

import pytest

from inga.cli.main import main


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_figures_on_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str], lent: None) -> None:
    assert main(["lab", "sco", "--quick", "--json", "--out", str(tmp_path), "--master", "local[2]"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["experiment"] == "sco"
    assert {"figure5", "figure6", "figure7", "figure8"} <= set(found["tables"])
    assert {claim["verdict"] for claim in found["claims"]} == {"holds", "roughly", "not reproduced"}
    assert "simulations on Spark" in told.err
    assert (tmp_path / "sco.html").exists()
