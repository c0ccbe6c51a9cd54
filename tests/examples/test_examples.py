"""Every example runs as its docstring says, and shows what it claims."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECONDS = 10

pytestmark = pytest.mark.network


@pytest.fixture
def environment() -> dict[str, str]:
    """A place on loopback that no other test uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {**os.environ, "INGA_VIA": f"udp://239.7.7.8:{port}?interface=lo"}


def command(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", str(EXAMPLES / program), *arguments]


def output(environment: dict[str, str], program: str, *arguments: str, seconds: float = SECONDS) -> list[str]:
    result = subprocess.run(
        command(program, *arguments), env=environment, capture_output=True, text=True, timeout=seconds
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.parametrize("how", [[], ["--virtual"]])
def test_cathy_sees_the_answer_first_only_under_fifo(environment: dict[str, str], how: list[str]) -> None:
    assert output(environment, "lecture.py", *how) == [
        "fifo: Cathy sees bob: Yes!, then alice: Lunch?",
        "causal: Cathy sees alice: Lunch?, then bob: Yes!",
    ]


@pytest.mark.parametrize("how", [[], ["--virtual"]])
def test_the_triangle_goes_wrong_only_under_fifo(environment: dict[str, str], how: list[str]) -> None:
    assert output(environment, "triangle.py", *how) == [
        "fifo: Cathy sees bob: Alice quits?, then alice: I quit.",
        "sco: Cathy sees alice: I quit., then bob: Alice quits?",
    ]


def test_sessions_and_applications_have_names(environment: dict[str, str]) -> None:
    assert output(environment, "sessions.py") == [
        "alice joined chat in lunch (new session, new application): alice",
        "bob joined chat in lunch (known): alice bob",
        "bob joined board in lunch (new application): bob",
        "cathy joined chat in work (new session, new application): cathy",
        "dave joined board in lunch (known): bob dave",
        "dave left board",
        "alice left chat",
    ]


def test_workers_see_causes_first(environment: dict[str, str]) -> None:
    assert output(environment, "workers.py", "12") == [
        "shop: 12 ordered, 12 sent",
        "store: 12 picked",
        "packer: 12 packed, each ordered before it was picked",
        "books: 12 booked, each priced before it was sent",
    ]


def test_side_conversations(environment: dict[str, str]) -> None:
    asyncio.run(_side_talk(environment))


async def _side_talk(environment: dict[str, str]) -> None:
    people = ("alice", "bob", "cathy")
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(
            *command("side_talk.py", name, *people), stdin=pipe, stdout=pipe, env=environment
        )
        for name in people
    ]
    alice, bob, cathy = processes

    async def line(process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None
        return (await process.stdout.readline()).decode().rstrip("\n")

    def say(process: asyncio.subprocess.Process, text: str) -> None:
        assert process.stdin is not None
        process.stdin.write(text.encode() + b"\n")

    try:
        async with asyncio.timeout(SECONDS):
            assert {await line(process) for process in processes} == {"* everybody is here"}
            say(alice, "@bob @cathy a secret")
            say(alice, "@bob keep it")
            assert [await line(bob), await line(bob)] == [
                "alice (to bob, cathy): a secret",
                "alice (to bob): keep it",
            ]
            say(bob, "@cathy did you hear?")
            assert [await line(cathy), await line(cathy)] == [
                "alice (to bob, cathy): a secret",
                "bob (to cathy): did you hear?",
            ]
            say(cathy, "@eve hello")
            assert await line(cathy) == "* nobody here is called eve"
            say(cathy, "good night")
            assert await line(alice) == "cathy: good night", "alice was told nothing else"
            for process in processes:
                assert process.stdin is not None
                process.stdin.close()
                await process.communicate()
                assert process.returncode == 0
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.communicate()


def test_the_counters_agree(environment: dict[str, str]) -> None:
    total = 3 * sum(range(1, 2001))
    assert output(environment, "counter.py", "2000") == [f"{n}: {total}" for n in ("alice", "bob", "cathy")]


def test_who_joins_late_has_the_same_table(environment: dict[str, str]) -> None:
    names = ("dave", "alice", "bob", "cathy")
    assert output(environment, "latecomer.py", "150") == [f"{name}: 450 changes" for name in names]


def test_a_counter_with_copies(environment: dict[str, str]) -> None:
    assert output(environment, "hits.py", "5") == ["alice: 15", "bob: 15", "cathy: 15"]


@pytest.mark.parametrize("how", [[], ["--virtual"]])
def test_a_transfer_that_comes_to_nothing_leaves_nothing(environment: dict[str, str], how: list[str]) -> None:
    careless, *lines = output(environment, "transfer.py", *how)
    assert "deposit(10) and withdraw(10): are declared compatible, but from state 0" in careless
    assert lines == [
        "70: transferred",
        "50: insufficient funds: 30, not 50",
        "savings 30, shop 70, 3 ledgers with {1} lines",
    ]


def test_a_bank_whose_tellers_are_killed_keeps_its_money(environment: dict[str, str]) -> None:
    *_, agreed, verdict = output(environment, "bank.py", "--kills", "3", seconds=120)
    assert agreed == "5 tellers agree on 8 accounts, with 8,000 in all"
    assert verdict == "kept"


def test_a_bank_that_is_interrupted_leaves_nobody_behind(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        command("bank.py"), env=environment, stdout=subprocess.PIPE, text=True, process_group=0
    ) as bank:
        assert bank.stdout is not None
        assert bank.stdout.readline().startswith("kill 1 of 20: ")
        bank.send_signal(signal.SIGINT)
        assert (
            bank.communicate(timeout=120)[0].splitlines()[-1] == "given up"
        )  # and nobody has the pipe any more
    assert bank.returncode == 130


def test_authors_agree_on_every_line(environment: dict[str, str]) -> None:
    title, *lines = output(environment, "document.py")
    assert title == "the title is by one of them: True"
    assert lines[:4] == ["ALICE 1", "ALICE 2", "alice 3", "alice 4"] and len(lines) == 12


def test_three_people_chat(environment: dict[str, str]) -> None:
    asyncio.run(_chat(environment))


async def _chat(environment: dict[str, str]) -> None:
    people = ("alice", "bob", "cathy")
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(
            *command("chat.py", name, *people), stdin=pipe, stdout=pipe, env=environment
        )
        for name in people
    ]
    alice, bob, cathy = processes

    async def hear(process: asyncio.subprocess.Process, pattern: str) -> list[str]:
        """Lines up to one that matches."""
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or not re.fullmatch(pattern, lines[-1]):
            line = await process.stdout.readline()
            assert line, f"no {pattern!r} in {lines}"
            lines.append(line.decode().rstrip("\n"))
        return lines

    def say(process: asyncio.subprocess.Process, text: str) -> None:
        assert process.stdin is not None
        process.stdin.write(text.encode() + b"\n")

    try:
        async with asyncio.timeout(SECONDS):
            say(alice, "Lunch?")
            await hear(bob, "alice: Lunch\\?")
            say(bob, "Yes!")
            heard = await hear(cathy, "bob: Yes!")
            assert [line for line in heard if not line.startswith("*")] == ["alice: Lunch?", "bob: Yes!"]
            await hear(alice, "bob: Yes!")
            assert bob.stdin is not None
            bob.stdin.close()
            for other in (alice, cathy):
                await hear(other, "\\* bob has left")
            for process in processes:
                assert process.stdin is not None
                process.stdin.close()
                await process.communicate()
                assert process.returncode == 0
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.communicate()


def test_the_swarm_sees_questions_first(environment: dict[str, str]) -> None:
    assert output(environment, "agents.py", "20", seconds=60) == [
        "planner asked 20 questions",
        "worker1 gave 20 answers",
        "worker2 gave 20 answers",
        "critic read 40 answers, 0 of them before their question",
    ]


def test_copies_of_a_cache_are_equal(environment: dict[str, str]) -> None:
    said = output(environment, "cache.py", "30", seconds=60)
    assert said == ["90 writes of 3 members: copies are equal"]


def test_every_period_of_the_sensors_is_certified(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = output(
        environment, "sensors.py", "--every", "0.3", "--periods", "2", "--engine", "local", seconds=60
    )
    found = [re.fullmatch(r"period (\d): (\d+) of (\d+) readings, certificate: pass", line) for line in said]
    assert sorted(each[1] for each in found if each) == ["1", "2"]
    assert all(each and each[2] == each[3] and int(each[2]) > 3 for each in found)


def talk(environment: dict[str, str], program: str, *arguments: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(command(program, *arguments), env=environment, stdin=pipe, stdout=pipe, text=True)


def hear(process: "subprocess.Popen[str]", line: str) -> None:
    """Read up to that line."""
    assert process.stdout is not None
    heard = []
    for said in process.stdout:
        heard.append(said.rstrip("\n"))
        if heard[-1] == line:
            return
    raise AssertionError(f"no {line!r} in {heard}")


def test_a_list_that_survives_kills(environment: dict[str, str]) -> None:
    def type_in(process: "subprocess.Popen[str]", text: str) -> None:
        assert process.stdin is not None
        process.stdin.write(text + "\n")
        process.stdin.flush()

    started = []
    try:
        started.append(alice := talk(environment, "todo.py", "alice"))
        hear(alice, "* alice")
        type_in(alice, "bread")
        hear(alice, "  bread")
        started.append(bob := talk(environment, "todo.py", "bob"))
        hear(bob, "* alice, bob")
        hear(bob, "  bread")
        alice.kill()
        hear(bob, "* bob")
        type_in(bob, "milk")
        type_in(bob, "-bread")
        hear(bob, "  milk")
        started.append(again := talk(environment, "todo.py", "alice"))
        hear(again, "* alice, bob")
        hear(again, "  milk")
    finally:
        for each in started:
            each.kill()
            each.communicate()


def test_a_chat_in_the_browser(environment: dict[str, str]) -> None:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1], other.getsockname()[1]]
    started = [
        talk(environment, "webchat.py", name, str(port))
        for name, port in zip(("alice", "bob"), ports, strict=True)
    ]
    try:
        for process, port in zip(started, ports, strict=True):
            hear(process, f"open http://127.0.0.1:{port}")
        with urlopen(f"http://127.0.0.1:{ports[0]}/", timeout=SECONDS) as page:
            assert b"EventSource" in page.read()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://127.0.0.1:{ports[0]}/nowhere", timeout=SECONDS)
        with urlopen(f"http://127.0.0.1:{ports[1]}/events", timeout=SECONDS) as events:
            with urlopen(f"http://127.0.0.1:{ports[0]}/say", data=b"Lunch? <b>", timeout=SECONDS):
                pass
            said = json.loads(events.readline().removeprefix(b"data: "))
        assert said == {"sender": "alice", "text": "Lunch? <b>"}
    finally:
        for each in started:
            each.kill()
            each.communicate()


def test_the_kitchen_and_its_waiters(environment: dict[str, str]) -> None:
    lines = output(environment, "kitchen.py")
    assert [line for line in lines if line.startswith("table")] == [
        "table 1 pays 4.50",
        "table 2 pays 4.50",
        "table 3: SoldOut(dish='soup', left=0)",
    ]
    heard = sorted(line for line in lines if "hears" in line)
    assert heard == [
        f"{name} hears: soup for table {table}" for name in ("anna", "bert", "carla") for table in (1, 2)
    ]


def test_the_first_programs_of_the_orb(tmp_path: Path) -> None:
    """The first two blocks of docs/orb.md, as they stand there but for the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = (EXAMPLES.parent / "docs" / "orb.md").read_text().replace("5000", str(port))
    server, client = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]
    (tmp_path / "accounts.py").write_text(server)
    (tmp_path / "caller.py").write_text(client)
    serving = subprocess.Popen(
        [sys.executable, str(tmp_path / "accounts.py")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert serving.stdout is not None
        assert serving.stdout.readline().startswith("IOR:")
        done = subprocess.run(
            [sys.executable, "-W", "error", str(tmp_path / "caller.py")],
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("30\nonly 30\n", "")
    finally:
        serving.terminate()
        serving.communicate()
