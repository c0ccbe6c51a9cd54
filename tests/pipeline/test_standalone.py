"""A real cluster: a standalone master and two workers from the pip package, and commands sent to it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import pytest

from inga.pipeline.session import find_java
from inga.sim.case import Case

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SECONDS = 90.0
"""For a cluster to come up: far more than it takes."""


def home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master that has two workers."""
    scratch = tmp_path_factory.mktemp("cluster")
    port = Random(os.getpid()).randrange(20_000, 30_000)
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().program.resolve().parents[1]),
        "SPARK_HOME": str(home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    address = f"spark://127.0.0.1:{port}"
    parts = [
        ("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"),
        *(
            (f"worker{i}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
             "-c", "1", "-m", "1g", "-d", str(scratch / f"work{i}"), address)
            for i in (1, 2)
        ),
    ]  # fmt: skip
    with ExitStack() as stack:
        for name, *words in parts:
            log = stack.enter_context((scratch / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [str(home() / "bin" / "spark-class"), *words], stdout=log, stderr=log, env=environment
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        deadline = monotonic() + SECONDS
        log_of_master = scratch / "master.log"
        while len(re.findall("Registering worker", log_of_master.read_text(errors="replace"))) < 2:
            assert monotonic() < deadline, log_of_master.read_text(errors="replace")[-2000:]
            sleep(0.2)
        yield address


def inga(*words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "inga", *words, "--json"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_check_on_a_standalone_cluster(master: str, tmp_path: Path) -> None:
    Case("causal", members=4, messages=60, loss=0.1, seed=3).run(tmp_path / "run")
    found = inga("check", str(tmp_path / "run"), "--master", master)
    assert found["verdict"] == "pass" and found["processes"] == 4


def test_order_on_a_standalone_cluster(master: str, tmp_path: Path) -> None:
    Case("fifo", members=3, messages=40, seed=5).run(tmp_path / "run")
    inga("order", str(tmp_path / "run"), str(tmp_path / "ordered"), "--master", master)
    assert list((tmp_path / "ordered").rglob("*.parquet"))


def test_a_sweep_on_a_standalone_cluster(master: str, tmp_path: Path) -> None:
    found = inga("lab", "sco", "--quick", "--out", str(tmp_path / "lab"), "--master", master)
    assert set(found["tables"]) >= {"figure5", "figure6", "figure7", "figure8"}
