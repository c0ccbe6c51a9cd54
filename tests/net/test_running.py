"""`inga.run`: a program that is asked to end takes its leave."""

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import inga

from .conftest import FreePort

MEMBER = textwrap.dedent(
    """
    import asyncio, sys, inga

    async def main():
        via, name = sys.argv[1:]
        async with inga.join("g", name, members=["alice", "bob"], via=via, interface="127.0.0.1", detect=30) as group:
            await group.ready()
            print("ready", flush=True)
            async for _ in group:
                pass

    inga.run(main())
    """
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_is_a_leave(number: signal.Signals, free_port: FreePort) -> None:
    via = f"udp://239.7.7.9:{free_port()}"

    async def watch() -> tuple[str, ...]:
        options = {"members": ["alice", "bob"], "via": via, "interface": "127.0.0.1", "detect": 30}
        async with inga.join("g", "alice", **options) as group:
            bob = await asyncio.create_subprocess_exec(
                sys.executable, "-c", MEMBER, via, "bob", stdout=subprocess.PIPE
            )
            assert bob.stdout is not None
            assert await bob.stdout.readline() == b"ready\n"
            bob.send_signal(number)
            async for item in group.items():
                if isinstance(item, inga.View) and item.left:
                    break
            assert await bob.wait() == 128 + number
            return item.left

    assert asyncio.run(asyncio.wait_for(watch(), 20)) == ("bob",)


def test_what_it_gives_and_raises_is_that_of_the_program() -> None:
    async def seven() -> int:
        return 7

    async def fails() -> None:
        raise LookupError("no")

    assert inga.run(seven()) == 7
    with pytest.raises(LookupError):
        inga.run(fails())


def test_signals_are_as_before_when_it_has_ended() -> None:
    async def nothing() -> None:
        return

    inga.run(nothing())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_is_no_coroutine() -> None:
    async def main() -> None: ...

    with pytest.raises(inga.UsageError, match=r"as in inga.run\(main\(...\)\), not <function"):
        inga.run(main)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
def test_in_a_loop_that_runs_it_says_what_to_write() -> None:
    async def inner() -> None: ...

    async def notebook() -> None:
        with pytest.raises(inga.UsageError, match=r"write `await main\(\)`"):
            inga.run(inner())

    asyncio.run(notebook())


def test_beside_the_main_thread_signals_are_left_alone() -> None:
    found: list[int] = []

    async def seven() -> int:
        return 7

    thread = threading.Thread(target=lambda: found.append(inga.run(seven())))
    thread.start()
    thread.join()
    assert found == [7]
