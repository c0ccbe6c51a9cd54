"""A real cluster: a standalone master and two workers from the pip package, and commands sent to it.

JVMs take most of the time here. So all commands are run by one driver, one after the other, and what the first of them
starts on the cluster serves the others too.
"""

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

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inga.pipeline.session import QUICK, find_java
from inga.sim.case import Case

# A Spark of its own, beside the session of the other tests.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("cluster")]

SECONDS = 90.0
"""For a cluster to come up: far more than it takes."""

DRIVER = """\
import json, sys
from contextlib import redirect_stdout
from io import StringIO
from inga.cli.main import main
from pyspark.sql import SparkSession

stop, SparkSession.stop = SparkSession.stop, lambda session: None
answers = []
for words in json.load(sys.stdin):
    with redirect_stdout(StringIO()) as told:
        code = main(words)
    answers.append([code, json.loads(told.getvalue() or "null")])
session = SparkSession.getActiveSession()
assert session.sparkContext.master == words[words.index("--master") + 1]
stop(session)
print(json.dumps(answers))
"""


def home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """For master, workers and driver: all of them JVMs that start fast."""
    configuration = tmp_path_factory.mktemp("configuration")
    options = " ".join(QUICK)
    (configuration / "spark-defaults.conf").write_text(f"spark.executor.extraJavaOptions {options}\n")
    return {
        **os.environ,
        "JAVA_HOME": str(find_java().program.resolve().parents[1]),
        "SPARK_CONF_DIR": str(configuration),
        "SPARK_DAEMON_JAVA_OPTS": options,
        "SPARK_HOME": str(home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }


@pytest.fixture(scope="module")
def master(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master that has two workers."""
    scratch = tmp_path_factory.mktemp("cluster")
    port = Random(os.getpid()).randrange(20_000, 30_000)
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


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps its order, one that does not, and a table: the second message was written first, and a
    third is missing."""
    path = tmp_path_factory.mktemp("sent")
    Case("causal", members=4, messages=60, loss=0.1, seed=3).run(path / "run")
    Case("fifo", members=3, messages=40, seed=5).run(path / "weak")
    rows = [{"src": 1, "seq": 1, "deps": [1, 0]}, {"src": 0, "seq": 1, "deps": [0, 0]}]
    rows.append({"src": 0, "seq": 3, "deps": [2, 1]})
    pq.write_table(pa.Table.from_pylist(rows), path / "in.parquet")
    return path


@pytest.fixture(scope="module")
def answers(master: str, environment: dict[str, str], where: Path) -> dict[str, Any]:
    commands = {
        "check": f"check {where}/run",
        "order": f"order {where}/weak {where}/ordered",
        "table": f"order {where}/in.parquet {where}/out",
        "sweep": f"lab sco --quick --out {where}/lab",
    }
    words = [[*text.split(), "--master", master, "--json"] for text in commands.values()]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(words), capture_output=True, text=True, timeout=200, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert [code for code, _ in found] == [0] * len(commands), done.stderr[-3000:]
    return {"told": done.stderr, **{name: each[1] for name, each in zip(commands, found, strict=True)}}


def test_check_on_a_standalone_cluster(answers: dict[str, Any]) -> None:
    assert answers["check"]["verdict"] == "pass" and answers["check"]["processes"] == 4


def test_order_on_a_standalone_cluster(answers: dict[str, Any], where: Path) -> None:
    assert list((where / "ordered").rglob("*.parquet"))
    found = answers["table"]
    assert found.pop("seconds") > 0
    assert found == {
        "capture": f"{where}/in.parquet",
        "out": f"{where}/out",
        "rows": 3,
        "concurrent": 0,
        "gaps": 1,
    }
    table = pq.read_table(where / "out").sort_by("order").to_pylist()
    assert [(row["src"], row["seq"], row["gap"]) for row in table] == [
        (0, 1, False),
        (1, 1, False),
        (0, 3, True),
    ]


def test_a_sweep_on_a_standalone_cluster(answers: dict[str, Any], where: Path) -> None:
    """`inga lab sco` as a user runs it: tables as JSON, and a page."""
    found = answers["sweep"]
    assert found["experiment"] == "sco"
    assert {"figure5", "figure6", "figure7", "figure8"} <= set(found["tables"])
    assert {claim["verdict"] for claim in found["claims"]} == {"holds", "roughly", "not reproduced"}
    assert "simulations on Spark" in answers["told"]
    assert (where / "lab" / "sco.html").exists()
