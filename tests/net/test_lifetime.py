"""Coming and going: many groups in one process, cancellation, Ctrl-C, groups nobody closed."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import warnings
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.trace import read_processes

from .helpers import CARRIERS, LOOPS, SECONDS, Party, Place, Run, take, text, texts, until

pytestmark = pytest.mark.network


@pytest.mark.parametrize("loop", LOOPS)
def test_eight_groups_in_one_process(run: Run, place: Place, loop: str) -> None:
    """Some share an address, some a port, each has two members here; nobody hears of another group."""
    shared = place("udp", 2)
    places = [shared, shared, shared, place("udp", 2), place("udp", 2), *(place(via, 2) for via in CARRIERS)]

    async def converse(alice: inga.Group, bob: inga.Group) -> None:
        replies, questions = aiter(alice), aiter(bob)
        for number in range(50):
            await alice.send(f"{alice.name} {number}?".encode())
            assert text(await anext(questions)) == f"{bob.name} {number}?"
            await bob.send(f"{bob.name} {number}!".encode())
            assert text(await anext(replies)) == f"{alice.name} {number}!"

    async def main() -> None:
        async with AsyncExitStack() as stack:
            pairs = []
            for number, where in enumerate(places):
                name, order = f"group {number}", ("causal", "fifo", "none")[number % 3]
                pairs.append(
                    [
                        await stack.enter_async_context(inga.join(name, member, **where, order=order))
                        for member in ("alice", "bob")
                    ]
                )
            await asyncio.gather(*(group.ready() for pair in pairs for group in pair))
            await asyncio.gather(*(converse(*pair) for pair in pairs))
            assert pairs[0][0].stack.rejected["group"], "or they did not share an address"

    run(main(), loop=loop)


def test_a_group_of_one(run: Run, place: Place) -> None:
    async def main() -> None:
        for via in CARRIERS:
            async with inga.join("alone", "alice", **place(via, 1), echo=True) as alice:
                await alice.ready()
                receipt = await alice.send(b"hm")
                assert await texts(alice, 1) == ["hm"]
                await receipt.reached("confirmed")

    run(main())


# Cancellation


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("via", CARRIERS)
def test_cancelled_in_the_middle_of_everything(run: Run, party: Party, via: str, loop: str) -> None:
    """The block is left, the others are told, nothing stays behind."""

    async def main() -> None:
        left: list[str] = []
        inside = asyncio.Event()

        async def work(alice: inga.Group) -> None:
            async with asyncio.TaskGroup() as tasks:

                async def talk() -> None:
                    while True:
                        await alice.send(bytes(1000))

                async def listen() -> None:
                    async for _ in alice:
                        inside.set()

                tasks.create_task(talk())
                tasks.create_task(listen())

        async with party(3, via, window=20_000, queue_max=10_000) as (alice, bob, cathy):
            bob.on_leave(left.append)
            member = asyncio.create_task(work(alice))
            await bob.send(b"go on")
            await inside.wait()
            await until(lambda: alice._driver.writers)
            member.cancel()
            with pytest.raises(asyncio.CancelledError):
                await member
            assert not alice._driver.writers and alice._reading.reader is None
            await alice.close(linger=0)
            await until(lambda: left == ["alice"])
            await bob.send(b"after")
            async for delivery in cathy:
                if text(delivery) == "after":
                    break

        await until(lambda: len(asyncio.all_tasks()) <= 2)  # this one and the one that watches it

    run(main(), loop=loop)


def test_a_cancelled_block_leaves_the_group(run: Run, place: Place, group_name: str, tmp_path: Path) -> None:
    where = place("udp", 2)
    path = tmp_path / "trace"

    async def main() -> None:
        entered = asyncio.Event()
        left: list[str] = []

        async def visit() -> None:
            async with inga.join(group_name, "bob", **where, trace=path) as bob:
                await bob.ready()
                await bob.send(b"hello")
                entered.set()
                await anext(aiter(bob))

        async with inga.join(group_name, "alice", **where) as alice:
            alice.on_leave(left.append)
            visitor = asyncio.create_task(visit())
            await entered.wait()
            assert await texts(alice, 1) == ["hello"]
            visitor.cancel()
            with pytest.raises(asyncio.CancelledError):
                await visitor
            await until(lambda: left == ["bob"])

    run(main())
    assert read_processes(path)[1].complete


def test_cancelled_while_joining(run: Run, place: Place, group_name: str) -> None:
    async def main() -> None:
        for via in CARRIERS:

            async def visit(where: dict[str, Any]) -> None:
                async with inga.join(group_name, "alice", **where) as alice:
                    await alice.ready()

            where = place(via, 2)
            visitor = asyncio.create_task(visit(where))
            for _ in range(3):
                await asyncio.sleep(0)
            visitor.cancel()
            with pytest.raises(asyncio.CancelledError):
                await visitor
            async with inga.join(group_name, "alice", **where):  # its port is free again
                pass

    run(main())
    gc.collect()


def test_a_send_given_up_sends_nothing(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, window=20_000, queue_max=10_000) as (alice, bob):
            sent = 0
            while alice.stack.writable:
                await alice.send(bytes(1000))
                sent += 1
                await asyncio.sleep(0)
            for call in (lambda: alice.send(b"never"), lambda: alice.send_many([b"never"]), alice.writable):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(call(), 0.01)
            assert not alice._driver.writers
            reading = asyncio.create_task(take(aiter(bob), sent + 1))
            await alice.send(b"last")
            assert [len(d.data) for d in await reading] == [1000] * sent + [4]

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_an_iteration_given_up_loses_nothing(run: Run, party: Party, loop: str) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            heard: list[str] = []

            async def read() -> None:
                async for delivery in bob:
                    heard.append(text(delivery))
                    if len(heard) % 3 == 0:
                        await asyncio.sleep(0)

            reading = asyncio.create_task(read())
            for number in range(200):
                alice.post(b"%d" % number)
                if number % 7 == 0:
                    reading.cancel()
                    await asyncio.wait([reading])
                    reading = asyncio.create_task(read())
                if number % 5 == 0:
                    await asyncio.sleep(0.001)
            await until(lambda: len(heard) == 200)
            reading.cancel()
            assert heard == [str(number) for number in range(200)]

    run(main(), loop=loop)


def test_closing_while_others_wait(run: Run, party: Party) -> None:
    """A reader comes to its end, a sender and one who waits for members are told."""

    async def main() -> None:
        async with party(2, window=20_000, queue_max=10_000) as (alice, _bob):

            async def read() -> list[inga.Delivery]:
                return [delivery async for delivery in alice]

            reader = asyncio.create_task(read())

            async def talk() -> None:
                while True:
                    await alice.send(bytes(1000))

            writer = asyncio.create_task(talk())
            await until(lambda: alice._driver.writers)
            await asyncio.gather(alice.close(linger=0), alice.close(linger=0))
            with pytest.raises(inga.UsageError, match="the group is closed"):
                await writer
            assert await reader == []

    run(main())


def test_waiting_for_members_ends_with_the_group(run: Run, place: Place) -> None:
    async def main() -> None:
        async with inga.join("lunch", "alice", **place("udp", 2)) as alice:
            waiting = asyncio.create_task(alice.ready())
            await asyncio.sleep(0)
            await alice.close()
            with pytest.raises(inga.UsageError, match="the group is closed"):
                await waiting

    run(main())


# Groups nobody closed


@pytest.mark.parametrize("via", CARRIERS)
def test_a_group_nobody_closed_warns(place: Place, via: str) -> None:
    async def main() -> Any:
        joining = inga.join("lunch", "alice", **place(via, 2))
        return joining, await joining.__aenter__()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # what other tests have left is not what is looked for
    loop = asyncio.new_event_loop()
    left = loop.run_until_complete(main())
    assert left[1].here == ("alice",)
    loop.set_exception_handler(lambda *_: None)  # asyncio has words of its own for the tasks of TCP
    loop.close()
    with pytest.warns(ResourceWarning, match="group 'lunch' was never closed"):
        del left, loop
        gc.collect()


def test_a_joining_that_is_dropped_leaves(run: Run, place: Place) -> None:
    async def main() -> None:
        joining: Any = inga.join("lunch", "alice", **place("udp", 2))
        alice = await joining.__aenter__()
        del joining
        await until(lambda: alice._closed)

    run(main())


# In a program of its own

PROGRAM = """
import asyncio, gc, sys
import inga

async def talk(via, members, interface):
    join = {"via": via, "members": members, "interface": interface, "trace": sys.argv[1] + via[:3]}
    async with inga.join("dev", "alice", **join) as alice, inga.join("dev", "bob", **join) as bob:
        await asyncio.gather(alice.ready(), bob.ready())
        alice.delay("bob", 0.001, jitter=0.002)
        iteration = aiter(bob)
        for _ in range(20):
            receipt = await alice.send_many([b"x" * 1000, b"", b"y" * 100_000])
            for _ in range(3):
                await anext(iteration)
        await receipt.reached("confirmed")
        try:
            await asyncio.wait_for(anext(aiter(alice)), 0.01)
        except TimeoutError:
            pass

async def main():
    asyncio.get_running_loop().slow_callback_duration = 10
    udp, *ports = sys.argv[2:]
    await talk("udp://239.7.7.7:" + udp, ["alice", "bob"], "lo")
    for via in ("unicast", "tcp"):
        await talk(via, {"alice": "127.0.0.1:" + ports[0], "bob": "127.0.0.1:" + ports[1]}, None)
    gc.collect()

asyncio.run(main())
"""


def test_nothing_to_complain_about_in_development_mode(free_port: Any, tmp_path: Path) -> None:
    ports = [str(free_port()) for _ in range(3)]
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, f"{tmp_path}/", *ports]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


VISITOR = """
import asyncio, sys
import inga

async def main():
    async with inga.join(sys.argv[1], "bob", via=sys.argv[2], members=["alice", "bob"], interface="lo",
                         trace=sys.argv[3]) as group:
        await group.ready()
        await group.send(b"here")
        async for delivery in group:
            await group.send(delivery.data)

asyncio.run(main())
"""


def test_ctrl_c_leaves_the_group(run: Run, place: Place, group_name: str, tmp_path: Path) -> None:
    where = place("udp", 2)
    command = [sys.executable, "-X", "dev", "-c", VISITOR, group_name, where["via"], str(tmp_path / "trace")]

    async def main() -> str:
        left = asyncio.Event()
        async with inga.join(group_name, "alice", **where) as alice:
            alice.on_leave(lambda name: left.set())
            visitor = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
            assert await texts(alice, 1) == ["here"]
            await alice.send(b"and there")
            assert await texts(alice, 1) == ["and there"]
            os.kill(visitor.pid, signal.SIGINT)
            await left.wait()
            _, said = await visitor.communicate()
            return said.decode()

    said = run(main())
    assert said.strip().endswith("KeyboardInterrupt") and "Warning" not in said
    assert read_processes(tmp_path / "trace")[1].complete
