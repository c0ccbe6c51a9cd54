"""`inga top`: what it shows of a group, at a terminal and without one, and of places where something else answers."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest

from inga.cli.main import main
from inga.cli.top import Look, _figures, frame, places_of
from inga.model.errors import UsageError
from inga.model.stats import Stats
from inga.net.serving import serve_metrics
from inga.sim import Sim

from .person import Person, free_port

pytestmark = pytest.mark.network


def played(seconds: float, sim: Sim) -> list[Stats]:
    sim.run(until=seconds)
    return [site.stats() for site in sim.sites]


def looks(at: float, every: list[Stats]) -> dict[tuple[str, int], Look]:
    said = [_figures(json.loads(json.dumps(stats.as_dict()))) for stats in every]
    return {("127.0.0.1", 9000 + port): Look(at, (each,)) for port, each in enumerate(said)}


def test_rates_are_between_two_looks_and_waits_name_members() -> None:
    sim = Sim("alice", "bob", "cathy", record=False)
    alice = sim["alice"]
    for number in range(20):
        sim.at(1.0 + number / 10, alice, lambda: alice.send(b"hello"))
    before = looks(1.0, played(1.0, sim))
    now = looks(3.0, played(3.1, sim))
    head, titles, *rows = frame(before, now, None)
    assert head == "sim: 3 members, view 1 for 3.1 s, order vector; 3 of 3 answer here"
    assert titles.split()[:5] == ["MEMBER", "STATE", "VIEW", "SENT/s", "GOT/s"]
    assert [row.split()[:5] for row in rows] == [
        ["alice", "open", "1", "10", "0"],
        ["bob", "open", "1", "0", "10"],
        ["cathy", "open", "1", "0", "10"],
    ]
    assert all(row.split()[3:5] == ["0", "B"] for row in frame({}, now, None)[2:]), (
        "no rates at the first look"
    )
    assert max(map(len, frame(before, now, 40))) == 40


def test_the_slowest_is_named_with_what_others_say_of_it() -> None:
    every = played(1.0, Sim("alice", "bob", "cathy"))
    slow = replace(every[0].members[1], blocks=True, behind=1200, behind_for=3.2, waited=12.0)
    held = replace(every[0].members[2], awaited=True)
    waiting = replace(
        every[0],
        state="waiting",
        blocked_for=3.0,
        held_for=0.4,
        held_bytes=2500,
        members=(every[0].members[0], slow, held),
        rejected={"group": 1200},
    )
    rows = frame({}, looks(1.0, [waiting, *every[1:]]), None)
    assert "2 kB" in rows[2] and rows[2].endswith("bob (sending, 3.0 s), cathy (delivery, 400.0 ms)")
    assert rows[5:] == [
        "slowest: bob: blocks 1 now, 1,200 packets behind for 3.2 s, waited for 12.0 s in all",
        "rejected: group 1,200",
    ]
    assert len(frame({}, looks(1.0, every), None)) == 5, "nobody is slow, nothing rejected"


def test_names_steer_no_terminal() -> None:
    every = played(1.0, Sim("alice", "bob"))
    named = replace(every[0], me="\x1b[2Jmallory\nbob", group="lunch\u202e")
    text = "\n".join(frame({}, looks(1.0, [named]), None))
    assert r"\x1b[2Jmallory\nbob" in text and r"lunch\u202e: 2 members" in text


def test_places() -> None:
    assert places_of(["9464-9466", "db:1", "http://db:1/"]) == [
        *[("127.0.0.1", port) for port in (9464, 9465, 9466)],
        ("db", 1),
    ]
    for wrong in ("", "db", "db:x", "0", "9-8", "70000", "1-60000", "db:1:2"):
        with pytest.raises(UsageError):
            places_of([wrong])


# Beside processes


@contextmanager
def serving(answer: bytes) -> Iterator[int]:
    """Something that answers this to whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\xfe\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\n\r\nnot json",
        b"HTTP/1.1 200 OK\r\n\r\n[1]",
        b'HTTP/1.1 200 OK\r\n\r\n[{"group": "lunch"}]',
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
    ],
)
def test_what_is_no_member_is_said_to_be_none(answer: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answer) as port:
        assert main(["top", "--once", str(port)]) == 2
    assert capsys.readouterr().out == f"127.0.0.1:{port}  what answers there is no member of a group\n"


def test_nobody_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port(socket.SOCK_STREAM)
    assert main(["top", "--once", str(port)]) == 2
    assert f"127.0.0.1:{port}  " in (out := capsys.readouterr().out) and "refused" in out
    assert main(["top", "--every", "0", str(port)]) == 2


def test_numbers_that_are_none_are_refused() -> None:
    said = json.loads(json.dumps(played(1.0, Sim("alice"))[0].as_dict()))
    for wrong in ("7", True, float("inf"), [1], None):
        with pytest.raises((ValueError, TypeError)):
            _figures({**said, "sent": wrong})


def test_json_has_both_looks(capsys: pytest.CaptureFixture[str]) -> None:
    site = Sim("alice")["alice"]

    async def serve() -> None:
        async with await serve_metrics(site, port=0) as server:
            words = ["top", "--json", "--every", "0.1", str(server.port)]
            assert await asyncio.to_thread(main, words) == 0

    asyncio.run(serve())
    (member,) = json.loads(capsys.readouterr().out)["members"]
    assert member["groups"][0]["me"] == "alice" and member["groups"][0]["before"]["sent"] == 0


def test_a_live_group_at_a_terminal() -> None:
    """`inga live` serves figures that move; a person watches them, and leaves with q."""
    port = _two_free_ports()
    inga = [sys.executable, "-W", "error", "-m", "inga"]
    words = f"live --members 2 --messages 20000 --rate 300 --no-oracle --quiet --metrics {port}".split()
    live = subprocess.Popen([*inga, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _until_served(port)
        _until_served(port + 1)
        top = [*inga, "top", f"{port}-{port + 1}", "--every", "0.2"]
        with Person("top", "nobody", columns=120, command=top) as person:

            def both_move(rows: list[str]) -> bool:
                found = [re.match(r"(alice|bob) +open +\d+ +(\d+) +(\d+) ", row) for row in rows]
                return len([row for row in found if row and int(row[2]) > 0 < int(row[3])]) == 2

            person.watch(both_move, "rates of both")
            assert re.fullmatch(
                r"live-\d+: 2 members, view 1 for .*, order vector; 2 of 2 answer here", person.seen[0]
            )
            first = _delivered(port)
            person.watch(_changes(person))
            second = _delivered(port)
            assert 0 < first < second
            person.type("q")
            assert person.leaves() == 0
    finally:
        live.send_signal(signal.SIGINT)
        _, told = live.communicate(timeout=30)
    assert live.returncode == 130, told


def _changes(person: Person) -> Callable[[list[str]], bool]:
    """Whether the screen is another one than now."""
    before = list(person.seen)
    return lambda rows: rows != before


def _until_served(port: int) -> None:
    """Processes take their time to start on a busy machine."""
    deadline = monotonic() + 60.0
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            assert monotonic() < deadline, f"nothing is served at {port}"
            sleep(0.05)


def _delivered(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    (value,) = re.findall(r"^inga_messages_delivered_total\{.*\} (\d+)$", text, re.MULTILINE)
    return float(value)


def _two_free_ports() -> int:
    while True:
        port = free_port(socket.SOCK_STREAM)
        with socket.socket() as probe:
            if port < 65535 and probe.connect_ex(("127.0.0.1", port + 1)):
                return port


def test_ports_of_members_have_to_exist(capsys: pytest.CaptureFixture[str]) -> None:
    words: list[Any] = ["live", "--members", "3", "--messages", "1", "--metrics", "65534", "--quiet"]
    assert main(words) == 2 and "no port for each of 3 members" in capsys.readouterr().err
