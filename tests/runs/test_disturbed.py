"""Live runs in which processes are killed, start again, are stopped, and are cut off from each other.

The machine may be busy: nobody is asked to be fast here, `inga lab members` measures that.
"""

import os
import subprocess
from pathlib import Path

import pytest

from inga.model.errors import UsageError
from inga.runs.disturbed import run
from inga.runs.namespaces import SwitchedNetwork
from inga.trace import read_processes
from inga.trial.mishaps import Mishap, NetworkCut
from inga.trial.trial import Trial

pytestmark = pytest.mark.network

KILLED = (Mishap(0.5, "crash", "alice"), Mishap(2.0, "return", "alice"))
"""The one that leads."""


def trial(order: str = "causal", seconds: float = 4.0, **more: object) -> Trial:
    rate = 30.0
    return Trial(order, 3, int(seconds * rate), rate=rate, rejoin=True, **{"detect": 0.8, **more})  # type: ignore[arg-type]


def test_one_is_killed_and_comes_back(tmp_path: Path) -> None:
    story: list[str] = []
    result = run(trial(), tmp_path / "trace", mishaps=KILLED, say=story.append)
    assert result.violations == 0, result.witnesses
    assert result.course is not None and not result.course.unsettled
    assert {"alice killed", "alice starts again"} <= set(result.course.settled)
    assert result.course.settled["alice killed"] > 0.5, "nobody is taken for dead before its time"
    assert set(result.course.stopped) == {"bob", "cathy"}
    assert any(line.endswith("alice killed") for line in story)
    killed = {each.name: each.crashed for each in read_processes(tmp_path / "trace")}
    assert killed["alice"] and not killed["bob"]


def test_objects_go_on_and_those_that_come_back_have_their_state() -> None:
    """One is killed and starts again; another one is stopped for too long, and comes back by itself."""
    stopped = (Mishap(0.6, "pause", "cathy"), Mishap(2.5, "resume", "cathy"))
    result = run(trial("total", objects=1), mishaps=sorted((*KILLED, *stopped)))
    assert result.violations == 0, result.witnesses
    assert result.course is not None and not result.course.unsettled
    assert result.course.views >= 3 and set(result.course.stopped) == {"bob"}
    assert result.to_json()["committed"] > 0


def can_cut() -> bool:
    try:
        with SwitchedNetwork([]):
            return True
    except UsageError:
        return False


@pytest.mark.skipif(not can_cut(), reason="network namespaces take the rights of root, and ip")
def test_a_network_is_cut() -> None:
    cut = NetworkCut.parse("alice,bob/cathy@0.5+2.5", ("alice", "bob", "cathy"))
    mishaps = (Mishap(cut.at, "cut", parts=cut.parts), Mishap(cut.ends, "heal"))
    result = run(trial(seconds=5.0, echo=True), mishaps=mishaps)
    assert result.violations == 0, result.witnesses
    assert result.course is not None and not result.course.unsettled
    assert len(result.course.settled) == 2, "in each part they agreed, and then all of them"
    assert result.course.states == 1, "who comes back takes the state of the others"
    if result.course.views > 1:  # a machine that is late itself forgives more
        assert set(result.course.merged) == {"alice", "bob", "cathy"}, "on_merge is called at all"
    assert f"inga-{os.getpid()}-" not in namespaces_now(), "nothing of it is left"


def namespaces_now() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not can_cut(), reason="network namespaces take the rights of root, and ip")
def test_what_a_run_that_was_killed_left_behind_is_removed() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    subprocess.run(["ip", "netns", "add", f"inga-{gone.pid}-1"], check=True)
    with SwitchedNetwork(["alice", "bob"]) as network:
        assert f"inga-{gone.pid}-1" not in namespaces_now()
        assert network.host("alice") != network.host("bob")
        assert network.command("bob")[-1] in namespaces_now()
    assert f"inga-{os.getpid()}-" not in namespaces_now()


def test_without_the_rights_one_sentence_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with (
        pytest.raises(UsageError, match="takes the rights of root and the command ip"),
        SwitchedNetwork(["a"]),
    ):
        pass
