"""Searches that are interrupted: what was found is said, and no process of theirs stays."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from inga.cli import hunt as command
from inga.cli.main import main
from inga.sim.hunt import Failure

HUNT = """
import os, sys, time
from inga.cli import hunt
from inga.cli.main import main

class Endless:
    def try_seed(self, seed):
        os.write(1, b"begun\\n")
        time.sleep(600)

hunt.search_for = lambda *given, **named: Endless()
sys.exit(main(["hunt", "--until-failure", "--jobs", "2"]))
"""
SIMULATIONS = """
import os, time
from inga.lab.simulations import simulate_all

def endless(seed):
    os.write(1, b"begun\\n")
    time.sleep(600)

try:
    simulate_all(endless, range(9), lambda text: None, None)
except KeyboardInterrupt:
    raise SystemExit(130)
"""


@pytest.mark.parametrize("program", [HUNT, SIMULATIONS], ids=["hunt", "simulations"])
@pytest.mark.parametrize(
    ("number", "reached"), [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)], ids=["ctrl-c", "term"]
)
def test_who_is_interrupted_ends_all_its_processes(
    program: str, number: signal.Signals, reached: object
) -> None:
    """Ctrl-C reaches all processes of a command, and SIGTERM the one that somebody has started."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        assert callable(reached)
        reached(process.pid, number)
        said, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert errors == ""
        if program is HUNT:
            assert "all orders: interrupted after 0 runs, no violation" in said
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class Interrupting:
    """Every seed fails, and somebody breaks off while the first of them is shrunk."""

    def try_seed(self, seed: int) -> str:
        return "a promise was broken"

    def explain(self, seed: int, why: str) -> Failure:
        raise KeyboardInterrupt


def test_a_failure_is_told_though_it_was_not_shrunk(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "search_for", lambda *given, **named: Interrupting())
    assert main(["hunt", "--runs", "3", "--seed", "7", "--quiet"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == "all orders: seed 7 fails: a promise was broken"
    assert second.startswith("all orders: interrupted after 1 runs, 1 failed")
