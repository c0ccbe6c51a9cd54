"""A disk that is full: one sentence that says where, exit code 2, and nothing that was begun."""

import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial

ROOM = 1024  # octets


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("full")
    simulate_trial(Trial("causal", 3, 60, seed=1), trace=place / "run")
    assert (
        main(["check", str(place / "run"), "--engine", "local", "--quiet", "--write", str(place / "tables")])
        == 0
    )
    rows = [f"s{at % 3},{kind},{at}" for at in range(2000) for kind in ("send", "receive")]
    (place / "table.csv").write_text("at,op,no\n" + "\n".join(rows))
    spans = [
        {"traceId": "t", "id": f"{at:x}", "timestamp": at, "localEndpoint": {"serviceName": "s"}}
        for at in range(2000)
    ]
    (place / "spans.json").write_text("\n".join(map(json.dumps, spans)))
    (place / "clocks.log").write_text("".join(f'a {{"a":{at}}}\nsends {at}\n' for at in range(1, 2000)))
    return place


@contextmanager
def little_room() -> Iterator[None]:
    """No file may be larger: what then fails is what fails where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writes_no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would be cut, and kept
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = writes_no_bytecode


@pytest.mark.parametrize(
    "words",
    [
        "export {}/run OUT --format jsonl",
        "stamp {}/run OUT --engine local",
        "metrics {}/run --engine local --out OUT",
        "report {}/run --engine local -o OUT",
        "trend {}/tables --page OUT",
        "import table {}/table.csv OUT --map process=at kind=op message=no",
        "import zipkin {}/spans.json OUT",
        "import shiviz {}/clocks.log OUT --send sends.(?<message>.*) --deliver got.(?<message>.*)",
    ],
    ids=lambda words: " ".join(words.split()[:2]).replace("{}/", ""),
)
def test_a_full_disk(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    command = [word.format(source).replace("OUT", str(tmp_path / "out")) for word in words.split()]
    command += [] if command[0] == "trend" else ["--quiet"]
    with little_room():
        assert main(command) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"inga {command[0]}: {tmp_path}") and " cannot be written: " in told
    assert told.count("\n") == 1 + ("in this process" in told)
    assert os.listdir(tmp_path) == []
