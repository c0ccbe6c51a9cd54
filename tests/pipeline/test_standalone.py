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

from inga.lab.traces import TraceRecipe, make
from inga.pipeline.jobs import check_trace
from inga.pipeline.session import QUICK, find_java
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial

from .page import assert_page_did_what_it_says, page_program
from .test_engines import broken_trace

# A Spark of its own, beside the session of the other tests.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("cluster")]

SECONDS = 90.0
"""For a cluster to come up: far more than it takes."""

DRIVER = """\
import json, sys
from contextlib import redirect_stdout
from io import StringIO
from inga.cli.main import main
from inga.pipeline.session import open_session

session = open_session(sys.argv[1])
for line in sys.stdin:
    words = json.loads(line)
    if words[0] == "python":
        names = {}
        with redirect_stdout(StringIO()):
            exec(words[1], names)
        print(json.dumps([0, names["said"]]), flush=True)
        continue
    with redirect_stdout(StringIO()) as told:
        code = main(words)
    assert session.sparkContext.master == words[words.index("--master") + 1]
    print(json.dumps([code, json.loads(told.getvalue() or "null")]), flush=True)
session.stop()
"""
"""Runs commands that come as lines, and answers in lines: the exit code, and what the command said."""


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


class Driver:
    """One process that sends all commands to the cluster."""

    def __init__(self, master: str, environment: dict[str, str], log: Path) -> None:
        self._master, self._log = master, log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", DRIVER, master],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment,
            )  # fmt: skip

    @property
    def told(self) -> str:
        return self._log.read_text()

    def inga(self, text: str, codes: tuple[int, ...] = (0,)) -> Any:
        return self._do([*text.split(), "--master", self._master, "--json"], codes)

    def python(self, program: str) -> Any:
        """What a program has in `said` at its end."""
        return self._do(["python", program])

    def _do(self, words: list[str], codes: tuple[int, ...] = (0,)) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(words), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, self.told[-3000:]
        code, answer = json.loads(line)
        assert code in codes, self.told[-3000:]
        return answer


@pytest.fixture(scope="module")
def driver(
    master: str, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Driver]:
    found = Driver(master, environment, tmp_path_factory.mktemp("driver") / "log")
    yield found
    found.process.communicate(timeout=SECONDS)  # which ends what it reads


def test_two_workers_are_there(master: str) -> None:
    assert master.startswith("spark://127.0.0.1:")


def test_check_on_a_standalone_cluster(driver: Driver, tmp_path: Path) -> None:
    simulate_trial(Trial("causal", members=4, messages=60, loss=0.1, seed=3), tmp_path / "run")
    found = driver.inga(f"check {tmp_path}/run")
    assert found["verdict"] == "pass" and found["processes"] == 4


DEADLY = """\
from pyspark.sql import SparkSession
from inga.certify import work
from inga.pipeline.jobs import check_trace

def summarise_once_killed(chunk, keys):
    import os, signal
    from inga.certify.work import summarise
    try:
        os.close(os.open({mark!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return summarise(chunk, keys)
    with open(f"/proc/{{os.getppid()}}/stat") as daemon:
        os.kill(int(daemon.read().rpartition(")")[2].split()[1]), signal.SIGKILL)  # the executor
    signal.pause()

summarise, work.summarise = work.summarise, summarise_once_killed
try:
    said = check_trace({trace!r}, ["all"], session=SparkSession.active())[1].to_json()
finally:
    work.summarise = summarise
"""
"""A check whose first task kills the executor that it runs in."""


def test_an_executor_that_is_killed_changes_nothing(driver: Driver, tmp_path: Path) -> None:
    make(tmp_path / "run", TraceRecipe(2000, 4, seed=1, defect="swap"), segment_rows=100)
    mark = tmp_path / "killed"
    found = driver.python(DEADLY.format(mark=str(mark), trace=str(tmp_path / "run")))
    here = check_trace(str(tmp_path / "run"), ["all"], master=None)[1].to_json()
    assert mark.exists() and {**found, "seconds": 0} == {**here, "seconds": 0}
    assert found["verdict"] == "fail"


@pytest.mark.hunt
@pytest.mark.parametrize("part", range(6))
def test_certificates_on_a_standalone_cluster_300_times(driver: Driver, tmp_path: Path, part: int) -> None:
    """The random broken traces of test_engines.py."""
    for seed in range(50 * part, 50 * part + 50):
        broken_trace(seed, tmp_path / str(seed))
        found = driver.inga(f"check {tmp_path}/{seed} --checks all --witnesses 9", (0, 1, 3))
        here = check_trace(str(tmp_path / str(seed)), ["all"], master=None, witnesses=9)[1].to_json()
        assert {**found, "seconds": 0} == {**here, "seconds": 0}, f"seed {seed}"


def test_order_on_a_standalone_cluster(driver: Driver, tmp_path: Path) -> None:
    simulate_trial(Trial("fifo", members=3, messages=40, seed=5), tmp_path / "run")
    driver.inga(f"order {tmp_path}/run {tmp_path}/ordered")
    assert list((tmp_path / "ordered").rglob("*.parquet"))


def test_a_table_on_a_standalone_cluster(driver: Driver, tmp_path: Path) -> None:
    """Executors have the package as a zip; the second message was written first, and a third is missing."""
    rows = [{"src": 1, "seq": 1, "deps": [1, 0]}, {"src": 0, "seq": 1, "deps": [0, 0]}]
    rows.append({"src": 0, "seq": 3, "deps": [2, 1]})
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    words = [f"{tmp_path}/in.parquet", f"{tmp_path}/out"]
    found = driver.inga(f"order {words[0]} {words[1]}")
    assert found.pop("seconds") > 0
    assert found == {"capture": words[0], "out": words[1], "rows": 3, "concurrent": 0, "gaps": 1}
    table = pq.read_table(tmp_path / "out").sort_by("order").to_pylist()
    assert [(row["src"], row["seq"], row["gap"]) for row in table] == [
        (0, 1, False),
        (1, 1, False),
        (0, 3, True),
    ]


def test_the_program_of_the_page_on_a_standalone_cluster(
    driver: Driver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = driver.python(page_program(tmp_path))
    assert_page_did_what_it_says(tmp_path, said, capsys)


def test_a_sweep_on_a_standalone_cluster(driver: Driver, tmp_path: Path) -> None:
    """`inga lab sco` as a user runs it: tables as JSON, and a page."""
    found = driver.inga(f"lab sco --quick --out {tmp_path}/lab")
    assert found["experiment"] == "sco"
    assert {"figure5", "figure6", "figure7", "figure8"} <= set(found["tables"])
    assert {claim["verdict"] for claim in found["claims"]} == {
        "holds",
        "roughly",
        "not reproduced",
        "not stated",
    }
    assert "simulations on Spark" in driver.told
    assert (tmp_path / "lab" / "sco.html").exists()
