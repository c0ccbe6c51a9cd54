"""`inga tap`: beside members of a group, to the end and killed; and what it refuses."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

import inga
from inga.cli.main import main
from inga.trace.log import log_files, read_records

pytestmark = pytest.mark.network

SECONDS = 60.0


def addresses(*names: str) -> dict[str, str]:
    found = {}
    sockets = []
    for name in names:
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        probe.bind(("127.0.0.1", 0))
        sockets.append(probe)
        found[name] = f"127.0.0.1:{probe.getsockname()[1]}"
    for probe in sockets:
        probe.close()
    return found


def tap(log: Path, members: dict[str, str], *more: str) -> subprocess.Popen[str]:
    listed = ",".join(f"{name}={address}" for name, address in members.items())
    return subprocess.Popen(
        [sys.executable, "-m", "inga", "tap", "lunch", str(log), "--members", listed, "--flush", "20", *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip


def talk(members: dict[str, str], first: int, count: int) -> None:
    async def say() -> None:
        async with inga.join("lunch", "alice", members=members, via="unicast") as group:
            await group.ready()
            for n in range(first, first + count):
                await group.send(b"%d" % n)

    asyncio.run(asyncio.wait_for(say(), SECONDS))


def logged(log: Path) -> list[int]:
    return [
        int(data)
        for file in log_files(log)
        for data in read_records(file, file.first, file.next)["data"].to_pylist()
    ]


def test_it_ends_after_so_many_or_when_asked(tmp_path: Path) -> None:
    members = addresses("alice", "tap")
    driver = tap(tmp_path / "log", members, "--records", "30", "--json", "--quiet")
    talk(members, 0, 30)
    out, error = driver.communicate(timeout=SECONDS)
    assert driver.returncode == 0, error
    assert json.loads(out) == {"group": "lunch", "log": str(tmp_path / "log"), "records": 30, "next": 30}
    assert logged(tmp_path / "log") == list(range(30))

    members = addresses("alice", "tap")  # another life of the group; the log goes on
    driver = tap(tmp_path / "log", members)
    talk(members, 30, 5)
    driver.send_signal(signal.SIGINT)
    out, error = driver.communicate(timeout=SECONDS)
    assert driver.returncode == 0, error
    assert out == f"{len(logged(tmp_path / 'log')) - 30} records of lunch in {tmp_path / 'log'}\n"
    assert logged(tmp_path / "log") == list(range(35))


def test_killed_it_leaves_whole_records(tmp_path: Path) -> None:
    members = addresses("alice", "tap")
    driver = tap(tmp_path / "log", members, "--quiet")

    async def say() -> None:
        async with inga.join("lunch", "alice", members=members, via="unicast") as group:
            await group.ready()
            number = 0
            while not list((tmp_path / "log").glob("records/0*")) or number < 200:
                await group.send(b"%d" % number)
                await asyncio.sleep(0)
                number += 1
            driver.kill()

    asyncio.run(asyncio.wait_for(say(), SECONDS))
    driver.communicate(timeout=SECONDS)
    found = logged(tmp_path / "log")
    assert found and found == list(range(len(found)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--members", "a,b"], "'tap' is not one of --members; list it everywhere, or join with --late"),
        (["--members", "a,tap", "--flush", "-1"], "--flush is a number of milliseconds from 0 on, not -1"),
        (["--members", "a,tap", "--records", "0"], "--records is at least 1"),
        (["--members", "a,tap", "--order", "chaos"], "no order 'chaos'"),
        (["--members", "a,tap", "--via", "unicast"], "--via unicast needs addresses"),
        (["--members", "a=x:1,tap=x:2", "--interface", "lo"], "--interface is for multicast"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["tap", "lunch", str(tmp_path / "log"), *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "log").exists()


def test_a_directory_that_is_no_log_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cat.png").touch()
    assert main(["tap", "lunch", str(tmp_path), "--members", "a,tap"]) == 2
    assert "is not the log of a tap" in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tap", "--help"])
    assert "inga tap lunch lunch.log --members alice,bob,tap" in capsys.readouterr().out


def test_interrupted_before_it_was_let_in(tmp_path: Path) -> None:
    """Nobody answers at the door."""
    members = addresses("alice")
    (address,) = addresses("tap").values()
    driver = tap(tmp_path / "log", members, "--late", "--address", address)
    while not (tmp_path / "log" / "log.json").exists():
        assert driver.poll() is None
        sleep(0.01)
    driver.send_signal(signal.SIGINT)
    _, error = driver.communicate(timeout=SECONDS)
    assert driver.returncode == 130, error
    assert "interrupted" in error and "Traceback" not in error
