"""Spark Connect: a server from the pip package, and commands sent to it by a process that has no Spark of its own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from inga.cli.main import main
from inga.lab.traces import TraceRecipe, make
from inga.model.errors import UsageError
from inga.pipeline.jobs import check_trace, measure_trace
from inga.pipeline.session import LOCAL, QUICK, connect_address, describe, find_java, open_session
from inga.pipeline.stamping import stamp_trace
from inga.sim.trials import simulate_trial
from inga.trace import rows
from inga.trial.trial import Trial

from .page import assert_page_did_what_it_says, page_program
from .test_engines import broken_trace

# A Spark of its own, beside the session of the other tests.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("cluster")]

SECONDS = 120.0
"""For a server to come up: far more than it takes."""

CLIENT = """\
import json, sys
from contextlib import redirect_stdout
from io import StringIO
from inga.cli.main import main
from inga.pipeline.session import open_session

session = open_session(sys.argv[1])
said = []
for words in json.load(sys.stdin):
    if words[0] == "python":
        names = {}
        with redirect_stdout(StringIO()):
            exec(words[1], names)
        said.append([0, names["said"]])
        continue
    with redirect_stdout(StringIO()) as told:
        code = main([*words, "--quiet", "--json"])
    said.append([code, json.loads(told.getvalue() or "null")])
import pyspark
assert pyspark.SparkContext._active_spark_context is None, "no Spark was started here"
assert session.range(3).count() == 3, "commands leave a session open that they did not open"
session.stop()
print(json.dumps(said))
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server."""
    pytest.importorskip("grpc", reason="Spark Connect needs pip install inga[connect]")
    import pyspark

    home, port = Path(pyspark.__file__).parent, free_port()
    log = tmp_path_factory.mktemp("connect") / "log"
    words = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    words += ["--driver-java-options", " ".join(QUICK), "--conf", f"spark.connect.grpc.binding.port={port}"]
    words += ["--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", "spark.ui.enabled=false"]
    changes = {
        "JAVA_HOME": str(find_java().program.resolve().parents[1]),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-submit"), *words, "spark-internal"],
            stdout=out, stderr=out, env={**os.environ, **changes},
        )  # fmt: skip
    try:
        deadline = monotonic() + SECONDS
        while not _listens(port):
            assert monotonic() < deadline and process.poll() is None, log.read_text(errors="replace")[-2000:]
            sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def answered(server: str, commands: list[list[str]], seconds: float = SECONDS) -> tuple[Any, str]:
    """What one client is answered to all commands, and what it says besides."""
    result = subprocess.run(
        [sys.executable, "-c", CLIENT, server], input=json.dumps(commands), capture_output=True, text=True, check=False,
        env={**os.environ, "SPARK_REMOTE": server}, timeout=seconds,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout), result.stderr


def test_commands_over_connect_say_what_they_say_here(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One client with one session, since each takes seconds to start; the last command finds the server in the environment,
    and so does the program of docs/python.md."""
    run, broken = tmp_path / "run", tmp_path / "broken"
    simulate_trial(Trial("vector", members=3, messages=20, loss=0.1, subset=2, seed=3), run)
    make(broken, TraceRecipe(1000, 3, seed=1, defect="swap"), segment_rows=200)
    master = ["--master", server]
    commands = [
        ["check", str(broken), "--checks", "causal,integrity", *master],
        ["metrics", str(run), *master],
        ["stamp", str(run), str(tmp_path / "stamped"), *master],
        ["order", str(run), str(tmp_path / "ordered"), *master],
        ["order", str(run), str(tmp_path / "never"), "--stream", "--once", *master],
        ["check", str(tmp_path / "stamped")],
        ["python", page_program(tmp_path / "page")],
    ]
    answers, told = answered(server, commands)
    (checked, measured, stamped, ordered, refused, last, page) = answers

    assert checked[0] == 1 and _timeless(checked[1]) == _timeless(
        check_trace(str(broken), ["causal", "integrity"], master=None)[1].to_json()
    )
    found = measure_trace(str(run), master=None).tables
    assert measured[0] == 0
    assert {name: each["rows"] for name, each in measured[1]["tables"].items()} == {
        name: [list(row.values()) for row in table.to_pylist()] for name, table in found.items()
    }
    assert stamped[0] == 0 and stamped[1]["processes"] == 3
    stamp_trace(str(run), str(tmp_path / "here"), master=None)
    assert list(rows(tmp_path / "stamped")) == list(rows(tmp_path / "here"))
    assert ordered[0] == 0 and ordered[1]["rows"] == sum(row.step == "send" for row in rows(run))
    assert refused[0] == 2 and "not over Spark Connect" in told
    assert last[0] == 0 and last[1]["verdict"] == "pass"
    assert_page_did_what_it_says(tmp_path / "page", page[1], capsys)


def _timeless(certificate: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in certificate.items() if key != "seconds"}


@pytest.mark.hunt
@pytest.mark.parametrize("part", range(6))
def test_certificates_over_connect_300_times(server: str, tmp_path: Path, part: int) -> None:
    """The random broken traces of test_engines.py."""
    seeds = range(50 * part, 50 * part + 50)
    for seed in seeds:
        broken_trace(seed, tmp_path / str(seed))
    words = ["--checks", "all", "--witnesses", "9", "--master", server]
    answers, _ = answered(
        server, [["check", str(tmp_path / str(seed)), *words] for seed in seeds], 20 * SECONDS
    )
    for seed, (_, found) in zip(seeds, answers, strict=True):
        here = check_trace(str(tmp_path / str(seed)), ["all"], master=None, witnesses=9)[1].to_json()
        assert _timeless(found) == _timeless(here), f"seed {seed}"


def test_nobody_at_home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs pip install inga[connect]")
    make(tmp_path / "run", TraceRecipe(1500, 3))
    assert main(["check", str(tmp_path / "run"), "--quiet", "--master", f"sc://127.0.0.1:{free_port()}"]) == 2
    complained = capsys.readouterr().err
    assert "Spark Connect does not answer at sc://127.0.0.1:" in complained and complained.count("\n") == 1
    with pytest.raises(UsageError, match="does not answer"):
        open_session("sc://127.0.0.1:port")


def test_which_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A master that is named counts; what comes after the address is for nobody's eyes."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    assert connect_address(LOCAL) is None and connect_address("sc://there") == "sc://there"
    assert describe("sc://there:1/;token=secret") == "Spark Connect at sc://there:1/"
    monkeypatch.setenv("SPARK_REMOTE", "sc://here")
    assert connect_address(LOCAL) == "sc://here" and connect_address("local[2]") is None
