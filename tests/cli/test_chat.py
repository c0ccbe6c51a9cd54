"""`inga chat` as people use it: processes at terminals and in pipes, on loopback."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any, Self

import pytest

import inga
from inga.cli import chat as chat_module
from inga.cli.chat import Chat, choose_via, group_address, parse_members
from inga.cli.chat_screen import Screen
from inga.cli.chat_view import ChatView
from inga.cli.main import main
from inga.model.errors import UsageError

from .person import PATIENCE, Person, chat_command, free_port, free_via

PEOPLE = ("alice", "bob", "cathy")
MEMBERS = ("--members", ",".join(PEOPLE))


@pytest.fixture(autouse=True)
def stay_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong here, no packet leaves this machine."""
    monkeypatch.setenv("INGA_INTERFACE", "lo")


# Usage


def test_members_and_where_they_meet() -> None:
    assert parse_members("alice, bob") == ["alice", "bob"]
    assert parse_members("a=127.0.0.1:1,b=[::1]:2") == {"a": "127.0.0.1:1", "b": "[::1]:2"}
    assert choose_via(None, "lunch", ["alice"]) == f"udp://{group_address('lunch')}:7400"
    assert choose_via(None, "lunch", {"alice": "127.0.0.1:1"}) == "unicast"
    assert choose_via("tcp", "lunch", {"alice": "127.0.0.1:1"}) == "tcp"
    assert group_address("lunch") != group_address("dinner")
    assert group_address("lunch").startswith("239.7.")


@pytest.mark.parametrize("text", ["", "a,,b", "a b,c", "a,a", "a=1:1,b", "a\x1b,b", "a\u202e,b"])
def test_members_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(UsageError, match="--members"):
        parse_members(text)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["lunch", "dan", *MEMBERS], "'dan' is not one of --members"),
        (["", "alice", *MEMBERS], "a group needs a name"),
        (["lunch", "alice", *MEMBERS, "--via", "tcp"], "--via tcp needs addresses"),
        (["lunch", "alice", *MEMBERS, "--via", "udp://10.0.0.1:5"], "is no multicast address"),
        (["lunch", "alice", *MEMBERS, "--interface", "nowhere0"], "no interface 'nowhere0'"),
        (["lunch", "alice", *MEMBERS, "--order", "random"], "no order 'random'"),
        (["lunch", "alice", *MEMBERS, "--linger", "-1"], "--linger is a number of seconds from 0 on, not -1"),
        (["lunch", "alice", *MEMBERS, "--history", "/no/such/file"], "--history /no/such/file: No such file"),
        (["lunch", "a", "--members", "a=127.0.0.1:1,b=127.0.0.1:2", "--interface", "lo"], "for multicast"),
        (["lunch", "a", "--members", "a=h:1,b=h:2", "--via", "udp://239.7.7.9:1"], "go with --via unicast"),
        (["lunch", "a b"], "'a b' is no name"),
        (["lunch", "a\x1b"], "is no name"),
        (["lunch", "a", "--via", "tcp"], "seeds='file:PATH'"),
        (["lunch", "a", "--seeds", "127.0.0.1:9"], "by multicast members find each other without"),
        (["lunch", "a", "--via", "tcp", "--seeds", "127.0.0.1:9"], "needs address='host:port'"),
    ],
)
def test_bad_usage(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("inga chat: ")
    assert why in error
    assert error.count("\n") == 1


# At terminals

network = pytest.mark.network


def here(person: Person, *others: str) -> None:
    person.until(*(f"* {name} is here" for name in others))


@network
def test_three_people_talk_and_leave() -> None:
    place = (*MEMBERS, "--via", free_via())
    with (
        Person("lunch", "alice", *place) as alice,
        Person("lunch", "bob", *place) as bob,
        Person("lunch", "cathy", *place) as cathy,
    ):
        here(alice, "bob", "cathy")
        here(bob, "alice", "cathy")
        here(cathy, "alice", "bob")
        alice.enter("Lunch?")
        bob.until("  1   alice> Lunch?")
        bob.enter("Yes!")
        rows = cathy.until("  1   alice> Lunch?", "  2   bob> Yes!", "cathy>")
        assert rows.index("  1   alice> Lunch?") < rows.index("  2   bob> Yes!")

        cathy.enter("/to bob psst")
        bob.until("  3   cathy → bob> psst")
        cathy.enter("/who")
        cathy.until("* here: alice, bob, cathy (you)")

        bob.type("half a line")
        bob.until("bob> half a line")
        bob.type("\x03")
        assert bob.leaves() == 130
        assert bob.seen[-1] == "interrupted"
        cathy.until("* bob has left")
        cathy.enter("@bob too late")
        cathy.until("* bob left and will not see it")
        cathy.enter("/who")
        cathy.until("* here: alice, cathy (you); left: bob")

        cathy.type("\x04")
        assert cathy.leaves() == 0
        alice.until("* cathy has left")
        alice.enter("/history")
        alice.watch(lambda rows: rows.count("  2   bob> Yes!") == 2, "the history")
        assert not [row for row in alice.seen if "psst" in row or "too late" in row]
        alice.enter("/quit")
        assert alice.leaves() == 0


@network
def test_people_whom_nobody_has_named_find_each_other(tmp_path: Path) -> None:
    via, seeds = free_via(), f"file:{tmp_path / 'seeds'}"
    for ways in (
        [("--via", via)] * 2,
        [
            ("--via", "tcp", "--seeds", seeds, "--address", f"127.0.0.1:{free_port(socket.SOCK_STREAM)}")
            for _ in range(2)
        ],
    ):
        with Person("lunch", "alice", *ways[0]) as alice:
            alice.until("* lunch: you are alice, and nobody else is here yet")
            with Person("lunch", "bob", *ways[1]) as bob:
                here(alice, "bob")
                here(bob, "alice")
                bob.enter("@alice found you")
                alice.until("  1   bob → alice> found you")
                alice.enter("@bob and I you")
                bob.until("  2   alice → bob> and I you")
                bob.type("\x04")
                assert bob.leaves() == 0
            alice.until("* bob has left")


@network
def test_what_comes_in_leaves_the_line_being_typed_intact() -> None:
    place = ("--members", "alice,bob", "--via", free_via())
    with Person("lunch", "alice", *place) as alice, Person("lunch", "bob", *place, columns=40) as bob:
        here(alice, "bob")
        bob.type("I am still wri\x1b[D\x1b[D\x1b[D")
        bob.until("bob> I am still wri")
        alice.enter("this is so long that it takes more than one row of the screen")
        rows = bob.watch(lambda rows: rows[-2:] == ["      │ screen", "bob> I am still wri"])
        assert rows[-4:-2] == [
            "  1   alice> this is so long that it",
            "      │ takes more than one row of the",
        ]
        bob.enter("日本\x05ting")
        alice.until("  2   bob> I am still 日本writing")
        bob.type("\x1b[A")
        bob.until("bob> I am still 日本writing")
        bob.resize(20)
        bob.type("!")
        bob.until("bob> l 日本writing!")


@network
def test_the_terminal_going_away_is_a_way_to_leave() -> None:
    place = (*MEMBERS, "--via", free_via())
    with Person("lunch", "alice", *place) as alice:
        for name, number in (("bob", signal.SIGTERM), ("cathy", signal.SIGHUP)):
            with Person("lunch", name, *place) as person:
                here(person, "alice")
                person.signal(number)
                assert person.leaves() == 128 + number
                alice.until(f"* {name} is here", f"* {name} has left")


@network
def test_a_stopped_chat_goes_on_where_it_was() -> None:
    place = ("--members", "alice,bob", "--via", free_via())
    with Person("lunch", "alice", *place) as alice, Person("lunch", "bob", *place) as bob:
        here(alice, "bob")
        here(bob, "alice")
        bob.type("half\x1a")
        bob.stopped()
        assert not bob.is_editing
        alice.enter("are you there?")
        bob.signal(signal.SIGCONT)
        bob.until("  1   alice> are you there?")
        bob.watch(lambda rows: bob.is_editing and rows[-1] == "bob> half", "the line typed before")


@network
def test_typed_lines_are_kept_for_the_next_time(tmp_path: Path) -> None:
    file = tmp_path / "history"
    place = ("--members", "alice,bob", "--history", str(file), "--quiet")
    for lines, shown in ((["one", "\x1b[200~two\ntoo\x1b[201~"], "alice>"), ([], "alice> two⏎too")):
        with Person("lunch", "alice", *place, "--via", free_via()) as alice:
            alice.until("alice>")
            for line in lines:
                alice.enter(line)
            alice.type("" if lines else "\x1b[A")
            alice.until(shown)
            alice.type("\x15\x04")
            assert alice.leaves() == 0
    assert file.read_text() == "one\ntwo\\ntoo\n"
    assert file.stat().st_mode & 0o777 == 0o600


# With members that do what no person would

Scene = Callable[[str], Coroutine[Any, Any, None]]


def play(scene: Scene) -> None:
    asyncio.run(asyncio.wait_for(scene(free_via()), 2 * PATIENCE))


@asynccontextmanager
async def meeting(via: str, *names: str) -> AsyncIterator[tuple[Person, list[inga.Group]]]:
    """Cathy at a terminal, and others in this process."""
    async with AsyncExitStack() as members:
        cathy = members.enter_context(Person("lunch", "cathy", *MEMBERS, "--via", via))
        groups = [
            await members.enter_async_context(inga.join("lunch", name, members=PEOPLE, via=via))
            for name in names
        ]
        for group in groups:
            await group.ready(1 + len(names))
        yield cathy, groups


@network
def test_concurrent_messages_are_marked_and_explained() -> None:
    async def scene(via: str) -> None:
        async with meeting(via, "alice", "bob") as (cathy, (alice, bob)):
            await alice.send(b"Lunch?")
            await asyncio.to_thread(cathy.until, "  1   alice> Lunch?")
            cathy.enter("I am in")
            async for _ in alice:
                break
            await bob.send(b"Pizza?")  # has read neither
            await bob.send(b"psst", to="alice")
            await asyncio.to_thread(cathy.until, "  3 ‖ bob> Pizza?")
            cathy.enter("/why")
            rows = await asyncio.to_thread(
                cathy.watch, lambda rows: rows.count("  2   cathy> I am in") == 2, "the reason"
            )
            at = rows.index("* 3 was written without knowing these, and these without knowing it:")
            assert rows[at + 1 : at + 3] == ["  1   alice> Lunch?", "  2   cathy> I am in"]
            cathy.enter("/why 2")
            await asyncio.to_thread(cathy.watch, lambda rows: rows.count("  3 ‖ bob> Pizza?") == 2)

    play(scene)


@network
def test_an_answer_waits_for_its_question() -> None:
    async def scene(via: str) -> None:
        async with meeting(via, "alice", "bob") as (cathy, (alice, bob)):
            alice.delay(to="cathy", seconds=0.3)
            await alice.send(b"Lunch?")
            async for _ in bob:
                await bob.send(b"Yes!")
                break
            rows = await asyncio.to_thread(cathy.until, "  1   alice> Lunch?", "  2   bob> Yes!")
            assert rows.index("  1   alice> Lunch?") < rows.index("  2   bob> Yes!")

    play(scene)


@network
def test_hostile_text_is_harmless() -> None:
    async def scene(via: str) -> None:
        async with meeting(via, "alice") as (cathy, (alice,)):
            await alice.send(b"\x1b]0;owned\x07\x1b[2J\x1b[1;1H\xff\xfe\x9b\xc2\x9b2J")
            await alice.send("\u202eevil\r* bob has left\n  9   bob> I agree".encode())
            await alice.send(b"A" * 200_000)
            await alice.send("שלום".encode())
            rows = await asyncio.to_thread(cathy.until, "  4   alice> שלום")
            at = rows.index("  1   alice> ␛]0;owned␇␛[2J␛[1;1H���<U+009B>2J")
            assert rows[at + 1 : at + 4] == [
                "  2   alice> <U+202E>evil",
                "      │ * bob has left",
                "      │   9   bob> I agree",
            ]
            assert rows[rows.index("  4   alice> שלום") - 1].startswith("      │ … ")

    play(scene)


@network
def test_last_words_are_shown_before_the_leaving() -> None:
    async def scene(via: str) -> None:
        async with meeting(via, "alice") as (cathy, (alice,)):
            await asyncio.to_thread(here, cathy, "alice")
            cathy.signal(signal.SIGSTOP)
            cathy.stopped()
            await alice.send(b"Farewell!")
            await alice.close(linger=0)  # so that both come at once
            cathy.signal(signal.SIGCONT)
            rows = await asyncio.to_thread(cathy.until, "* alice has left")
            assert rows[rows.index("* alice has left") - 1] == "  1   alice> Farewell!"

    play(scene)


class Wall(Screen):
    """Nobody types, and somebody waits for what is shown."""

    def __init__(self) -> None:
        self.rows: asyncio.Queue[str] = asyncio.Queue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def line(self) -> str | None:
        await asyncio.Event().wait()
        return None

    def show(self, rows: Iterable[str]) -> None:
        for row in rows:
            self.rows.put_nowait(row)


@network
def test_a_cause_that_never_comes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_module, "HELD_SECONDS", 0.05)

    async def scene(via: str) -> None:
        async with (
            inga.join("lunch", "alice", members=PEOPLE, via=via) as alice,
            inga.join("lunch", "bob", members=PEOPLE, via=via) as bob,
        ):
            bob.delay("cathy", 1000)  # as if there were no way from one to the other
            await alice.ready(2)
            await bob.send(b"Lunch?")
            async for _ in alice:
                break
            await alice.send(b"Yes!")
            async with inga.join("lunch", "cathy", members=PEOPLE, via=via, echo=True) as cathy:
                wall = Wall()
                chat = Chat(cathy, wall, ChatView(PEOPLE), quiet=False, linger=0)
                running = asyncio.create_task(chat.run())
                assert await wall.rows.get() == (
                    "* messages are held back: something bob said before has not come, and bob is not here"
                )
                running.cancel()

    play(scene)


# In pipes


@contextmanager
def start(name: str, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """A chat in a pipe; one that takes too long is killed, and whoever waits for it sees the end."""
    process = subprocess.Popen(
        chat_command("lunch", name, *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "INGA_INTERFACE": "lo", "PYTHONUTF8": "1"},
    )
    killer = threading.Timer(2 * PATIENCE, process.kill)
    killer.start()
    try:
        with process:
            yield process
    finally:
        killer.cancel()


def lines_until(file: IO[str] | None, line: str) -> list[str]:
    """Lines up to this one."""
    assert file is not None
    lines = [file.readline().rstrip("\n")]
    while lines[-1] != line:
        assert len(lines) < 10_000 and lines[-1], f"no {line!r} in {lines}"
        lines.append(file.readline().rstrip("\n"))
    return lines


@network
@pytest.mark.parametrize("via", ["multicast", "unicast", "tcp"])
def test_lines_in_lines_out(via: str) -> None:
    if via == "multicast":
        place = ["--members", "alice,bob", "--via", free_via()]
    else:
        kind = socket.SOCK_DGRAM if via == "unicast" else socket.SOCK_STREAM
        members = ",".join(f"{name}=127.0.0.1:{free_port(kind)}" for name in ("alice", "bob"))
        place = ["--members", members, "--via", via]
    with start("alice", *place) as alice, start("bob", *place, "--json") as bob:
        assert alice.stdin is not None
        lines_until(alice.stdout, "* bob is here")
        alice.stdin.write("Lunch?\n/who\n")
        alice.stdin.flush()
        said = ["  1   alice> Lunch?", "* here: alice (you), bob"]
        assert lines_until(alice.stdout, said[-1]) == said
        lines_until(bob.stderr, "  1   alice> Lunch?")
        answer, _ = bob.communicate("Yes! ü", timeout=PATIENCE)  # no newline at the end
        assert [(m["sender"], m["text"]) for m in json.loads(answer)["messages"]] == [
            ("alice", "Lunch?"),
            ("bob", "Yes! ü"),
        ]
        rest, error = alice.communicate(timeout=PATIENCE)
        assert rest.splitlines() == ["  2   bob> Yes! ü", "* bob has left"]
        assert error == ""
        assert (alice.returncode, bob.returncode) == (0, 0)


@network
def test_who_comes_late_gets_what_she_missed() -> None:
    place = ["--members", "alice,bob", "--via", free_via(), "--quiet", "--linger", str(PATIENCE)]
    with start("alice", *place) as alice:
        assert alice.stdin is not None
        alice.stdin.write("".join([f"{number}\n" for number in range(1, 101)]) + "@bob psst\n")
        alice.stdin.close()
        lines_until(alice.stdout, "101   alice → bob> psst")
        with start("bob", *place) as bob:  # while alice lingers
            heard = lines_until(bob.stdout, "101   alice → bob> psst")
            assert heard[:-1] == [f"{number:>3}   alice> {number}" for number in range(1, 101)]
            assert alice.wait(PATIENCE) == 0
            assert bob.communicate(timeout=PATIENCE) == ("", "")
            assert bob.returncode == 0


@network
def test_nobody_came() -> None:
    place = ["--members", "alice,bob", "--via", free_via(), "--linger", "0", "--quiet"]
    result = subprocess.run(
        chat_command("lunch", "alice", *place), input=b"hello", capture_output=True, timeout=PATIENCE
    )
    shown = ["  1   alice> hello", "* bob never came, and will miss what you said"]
    assert result.stdout.decode().splitlines() == shown
    assert (result.returncode, result.stderr) == (0, b"")


@network
def test_interrupted_in_a_pipe() -> None:
    with start("alice", "--members", "alice,bob", "--via", free_via()) as alice:
        assert alice.stdout is not None and alice.stderr is not None
        alice.stdout.readline()
        alice.stdout.readline()
        alice.send_signal(signal.SIGINT)
        assert alice.wait(PATIENCE) == 130
        assert alice.stderr.read() == "interrupted\n"
