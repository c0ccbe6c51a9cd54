"""`inga lab sco` as a user runs it: on Spark, with tables as JSON and a page."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.spark
def test_figures_on_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "inga", "lab", "sco", "--quick", "--json", "--out", str(tmp_path)]
    command += ["--master", "local[2]"]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=300
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["experiment"] == "sco"
    assert {"figure5", "figure6", "figure7", "figure8"} <= set(found["tables"])
    assert {claim["verdict"] for claim in found["claims"]} == {"holds", "roughly", "not reproduced"}
    assert "simulations on Spark" in result.stderr
    assert (tmp_path / "sco.html").exists()
