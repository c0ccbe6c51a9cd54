"""One process a member: stopped, killed, interrupted, failing. Nobody is left behind."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import inga
from inga.runs.cluster import Cluster, WorkerDied
from inga.trace import mark_crashed, read_manifest, read_processes, rows, segments

from ..net.helpers import SECONDS, FreePort

pytestmark = pytest.mark.network

PEOPLE = ["alice", "bob", "cathy"]
MANY = "300000"
"""Messages that keep members busy until something happens to them."""


@pytest.fixture(autouse=True)
def jobs_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)


def configs(free_port: FreePort, group: str, members: int = 3, **more: Any) -> list[dict[str, Any]]:
    via = f"udp://239.7.7.7:{free_port()}"
    where = {"group": group, "members": PEOPLE[:members], "via": via, "interface": "lo", **more}
    return [{**where, "me": me} for me in range(members)]


def wait_for(happened: Callable[[], Any], what: str = "it") -> Any:
    """Of another process nothing is announced."""
    deadline = monotonic() + SECONDS
    while not (found := happened()):
        assert monotonic() < deadline, f"{what} did not happen"
        sleep(0.001)
    return found


def memory_of(process: int) -> int:
    """Resident bytes."""
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def lives(process: int) -> bool:
    """Whether it runs; what nobody has waited for yet runs no more."""
    return state_of(process) not in ("", "Z")


def state_of(process: int) -> str:
    """As `ps` shows it; empty if it is gone."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def children_of(process: int) -> list[int]:
    with suppress(FileNotFoundError):
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


Live = Callable[..., Any]


@pytest.fixture
def live(tmp_path: Path) -> Live:
    """`inga live` in a process group of its own, with its scratch files where we see them."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    @contextmanager
    def start(*words: str) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "inga", "live", "--quiet", *words]
        environment = {**os.environ, "TMPDIR": str(scratch)}
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    return start


def workers_of(launcher: "subprocess.Popen[str]", count: int) -> list[int]:
    """Its processes, once there are so many."""

    def started() -> list[int]:
        assert launcher.poll() is None, launcher.communicate()
        found = children_of(launcher.pid)
        return found if len(found) == count else []

    return list(wait_for(started, "starting"))


# A member that stops


def standing_still(report: Callable[..., list[dict[str, Any]]]) -> list[dict[str, Any]] | None:
    """What the others report, if they have not sent anything for a moment."""
    first = report(without=2)
    sleep(0.2)
    second = report(without=2)
    return second if [each.get("sent") for each in first] == [each.get("sent") for each in second] else None


def test_a_member_stopped_for_two_seconds(free_port: FreePort, group_name: str) -> None:
    """The others go on up to the window, in bounded memory; afterwards everything comes."""
    with Cluster("jobs:chatter", configs(free_port, group_name)) as cluster:

        def report(without: int | None = None) -> list[dict[str, Any]]:
            others = frozenset() if without is None else frozenset({without})
            for index in set(range(3)) - others:
                cluster.tell("report", index)
            return cluster.gather("report", timeout=SECONDS, without=others)

        cluster.gather("ready", timeout=SECONDS)
        cluster.tell("go")
        wait_for(lambda: all(each["sent"] > 1000 for each in report()), "talking")
        before = [memory_of(process) for process in cluster.processes]
        at_stop = report()
        os.kill(cluster.processes[2], signal.SIGSTOP)
        stopped = monotonic()
        try:
            at_one = wait_for(lambda: standing_still(report), "the end of the window")
            sleep(max(0, 2 - (monotonic() - stopped)))
            at_two = report(without=2)
            after = [memory_of(process) for process in cluster.processes]
        finally:
            os.kill(cluster.processes[2], signal.SIGCONT)
        for member in (0, 1):
            assert at_one[member]["sent"] >= at_stop[member]["sent"]
            assert at_two[member]["sent"] == at_one[member]["sent"], "the window is closed"
            taken, sent = at_two[member]["taken"][PEOPLE[1 - member]], at_two[1 - member]["sent"]
            assert sent - 200 < taken <= sent, "what was let through came; the rest is a bundle or two"
            assert after[member] - before[member] < 48 << 20
        wait_for(lambda: report()[0]["sent"] > at_two[0]["sent"], "going on")
        cluster.tell("stop")
        sent = {
            name: each["sent"]
            for name, each in zip(PEOPLE, cluster.gather("stopped", timeout=SECONDS), strict=True)
        }
        cluster.tell("finish", sent=sent)
        done = cluster.gather("done", timeout=SECONDS)
        for name, each in zip(PEOPLE, done, strict=True):
            assert each["taken"] == {**sent, name: 0}
        assert memory_of(cluster.processes[2]) - before[2] < 48 << 20
        cluster.tell("close")
        cluster.gather("closed", timeout=SECONDS)
        assert [cluster.stderr(index) for index in range(3)] == [""] * 3, "2 s are no reason to complain"


# A member that is killed


def stopped_while_writing(process: int, events: Path) -> Path | None:
    """Stop it if it has begun a segment and not ended it; that file."""
    if not any(name.startswith(".1-") for name in os.listdir(events)):
        return None
    os.kill(process, signal.SIGSTOP)
    wait_for(lambda: state_of(process) == "T", "stopping")
    half = next((events / name for name in os.listdir(events) if name.startswith(".1-")), None)
    if half is None:
        os.kill(process, signal.SIGCONT)
    return half


def test_a_member_killed_while_it_writes(free_port: FreePort, group_name: str, tmp_path: Path) -> None:
    """It leaves whole segments, and a process file that says there may be more."""
    path = tmp_path / "trace"
    told = configs(free_port, group_name, 2, trace=str(path), segment_rows=1000)
    with Cluster("jobs:chatter", told) as cluster:
        cluster.gather("ready", timeout=SECONDS)
        cluster.tell("go")
        wait_for(lambda: (path / "events" / "1-00002.parquet").exists(), "some segments")
        half = wait_for(lambda: stopped_while_writing(cluster.processes[1], path / "events"), "writing")
        os.kill(cluster.processes[1], signal.SIGKILL)
        with pytest.raises(WorkerDied, match="member 1 ended with -9"):
            cluster.gather("closed", timeout=SECONDS)
        cluster.tell("close")
        cluster.gather("closed", timeout=SECONDS, without=frozenset({1}))
    assert half.exists() and half.name.startswith("."), "which is hidden, so it is no segment"
    assert not read_manifest(path).complete
    alice, bob = read_processes(path)
    assert (alice.complete, bob.complete) == (True, False)
    assert not bob.crashed, "which only whoever killed it can say"
    mark_crashed(path, 1, "bob")
    bob = read_processes(path)[1]
    assert bob.crashed and not bob.complete
    assert len([each for each in segments(path) if each.process == 1]) >= 3
    for process in range(2):
        positions = [row.pos for row in rows(path, process)]
        assert positions == list(range(1, len(positions) + 1)) and positions


def test_a_killed_member_ends_a_live_run(tmp_path: Path, live: Live) -> None:
    path = tmp_path / "trace"
    with live("--members", "3", "--messages", MANY, "--trace", str(path)) as launcher:
        workers = workers_of(launcher, 3)
        wait_for(lambda: len(list((path / "processes").glob("*.json"))) == 3, "joining")
        os.kill(workers[1], signal.SIGKILL)
        said, complained = launcher.communicate(timeout=SECONDS)
        assert launcher.returncode == 2
        assert (said, complained) == ("", "inga live: member 1 ended with -9\n")
        wait_for(lambda: not any(map(lives, workers)), "ending")
    assert not read_manifest(path).complete
    assert [each.complete for each in read_processes(path)][1] is False
    assert [each.name for each in (path / "events").iterdir() if each.name.startswith("1-")] == []


# `inga live`, from outside


def test_ctrl_c(tmp_path: Path, live: Live) -> None:
    with live("--members", "3", "--messages", MANY, "--json") as launcher:
        workers = workers_of(launcher, 3)
        wait_for(lambda: any((tmp_path / "scratch").iterdir()), "making files")
        os.killpg(launcher.pid, signal.SIGINT)
        said, complained = launcher.communicate(timeout=SECONDS)
        assert (launcher.returncode, said, complained) == (130, "", "interrupted\n")
        assert not any(map(lives, workers)), "they are waited for"
    assert list((tmp_path / "scratch").iterdir()) == []


def test_ctrl_c_in_the_middle_of_a_traced_run(tmp_path: Path, live: Live) -> None:
    """Workers are told to leave, and close what they wrote."""
    path = tmp_path / "trace"
    with live("--members", "2", "--messages", MANY, "--trace", str(path)) as launcher:
        workers = workers_of(launcher, 2)
        wait_for(lambda: len(list((path / "processes").glob("*.json"))) == 2, "joining")
        cpu = [time_of(worker) for worker in workers]
        wait_for(lambda: all(time_of(w) > 0.3 + t for w, t in zip(workers, cpu, strict=True)), "working")
        os.killpg(launcher.pid, signal.SIGINT)
        _, complained = launcher.communicate(timeout=SECONDS)
        assert (launcher.returncode, complained) == (130, "interrupted\n")
    assert list((tmp_path / "scratch").iterdir()) == []
    assert [each.complete for each in read_processes(path)] == [True, True]
    assert not read_manifest(path).complete
    assert any(row.step == "take" for row in rows(path))


def time_of(process: int) -> float:
    """Processor seconds it has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_workers_end_with_their_launcher(live: Live) -> None:
    with live("--members", "3", "--messages", MANY) as launcher:
        workers = workers_of(launcher, 3)
        wait_for(lambda: time_of(workers[2]) > 0.3, "working")
        launcher.kill()
        launcher.communicate()
        wait_for(lambda: not any(map(lives, workers)), "ending")


def test_what_goes_wrong_in_a_worker_is_one_sentence(live: Live, free_port: FreePort) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("239.7.7.7", free_port()))
        via = f"udp://239.7.7.7:{taken.getsockname()[1]}"
        with live("--members", "2", "--via", via, "--json") as launcher:
            said, complained = launcher.communicate(timeout=SECONDS)
    assert (launcher.returncode, said) == (2, "")
    assert complained.count("\n") == 1
    assert complained.startswith("inga live: member ")
    assert complained.endswith(
        f": cannot receive multicast at {via[6:]} on 127.0.0.1: Address already in use; choose another port, or end the "
        "program that has this one\n"
    )


# The cluster itself


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ("error", inga.UsageError, "member 1: the soup is cold"),
        (
            "crash",
            WorkerDied,
            r"member 1 ended with 1: ZeroDivisionError: one by none \(.*jobs.py\", line \d+, in fail\)",
        ),
        ("exit", WorkerDied, "member 1 ended with 3"),
    ],
)
def test_how_workers_fail(how: str, error: type[Exception], words: str) -> None:
    with Cluster("jobs:fail", [{"how": "wait"}, {"how": how}]) as cluster:
        workers = cluster.processes
        cluster.gather("ready", timeout=SECONDS)
        cluster.tell("go")
        with pytest.raises(error, match=words):
            cluster.gather("done", timeout=SECONDS)
    assert not any(map(lives, workers))


def test_a_worker_that_says_nothing() -> None:
    with Cluster("jobs:fail", [{"how": "wait"}]) as cluster:
        cluster.gather("ready", timeout=SECONDS)
        with pytest.raises(WorkerDied, match=r"members \[0\] did not say 'done' within 0.2 s"):
            cluster.gather("done", timeout=0.2)


def test_a_worker_that_does_more_gives_new_patience() -> None:
    cluster = Cluster("no:job", [])
    cluster._done.append(0)
    cluster._advance(0, 3)
    moved, cluster._moved = cluster._moved, 0.0
    cluster._advance(0, 3)
    assert moved > 0 and cluster._moved == 0, "it said the same again"
    cluster._reap()


def test_a_worker_whose_job_does_not_exist() -> None:
    with (
        pytest.raises(
            WorkerDied, match="member 0 ended with 1: ModuleNotFoundError: No module named 'nothing'"
        ),
        Cluster("nothing:here", [{}]) as cluster,
    ):
        cluster.gather("ready", timeout=SECONDS)


def test_nobody_survives_an_error_in_the_launcher() -> None:
    workers: list[int] = []
    with pytest.raises(ZeroDivisionError), Cluster("jobs:fail", [{"how": "wait"}] * 2) as cluster:
        workers += cluster.processes
        raise ZeroDivisionError
    assert workers and not any(map(lives, workers))
