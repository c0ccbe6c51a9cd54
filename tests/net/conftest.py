"""Real members in one process, for tests. Everything stays on loopback."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from time import monotonic
from typing import Any

import pytest

import inga
from inga.trial.people import member_names

from .helpers import SECONDS, FreePort, Party, Place, Run, SkippingLoop

PORTS = range(10_000, 32_000)
"""Below those the kernel gives to sockets that do not care."""


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """Also for whoever forgets to name an interface."""
    before = os.environ.get("INGA_INTERFACE")
    os.environ["INGA_INTERFACE"] = "lo"
    yield
    if before is None:
        del os.environ["INGA_INTERFACE"]
    else:
        os.environ["INGA_INTERFACE"] = before


@pytest.fixture(scope="session")
def free_port() -> FreePort:
    """Ports nobody uses, each given once. Runs side by side begin at different places."""
    ports = iter(Random(os.getpid()).sample(PORTS, 2000))

    def choose() -> int:
        return next(port for port in ports if _is_free(port))

    return choose


@pytest.fixture
def place(free_port: FreePort) -> Place:
    """Where some members meet: the arguments of `join` that say so."""

    def choose(via: str = "udp", members: int = 3) -> dict[str, Any]:
        people = member_names(members)
        if via == "udp":
            return {"via": f"udp://239.7.7.7:{free_port()}", "interface": "lo", "members": list(people)}
        # Of two members that speak TCP the one with the lower address calls: here that is the one listed first.
        ports = sorted(free_port() for _ in people)
        where = {name: f"127.0.0.1:{port}" for name, port in zip(people, ports, strict=True)}
        return {"via": via, "members": where}

    return choose


@pytest.fixture
def group_name(request: pytest.FixtureRequest) -> str:
    return f"{request.node.name}-{os.getpid()}"


@pytest.fixture
def party(place: Place, group_name: str) -> Party:
    """A group whose members are all here, and know of each other."""

    @asynccontextmanager
    async def meet(
        members: int = 3, via: str = "udp", each: dict[str, dict[str, Any]] | None = None, **options: Any
    ) -> AsyncIterator[list[inga.Group]]:
        """`options` for all, `each` for some."""
        where = place(via, members)
        async with AsyncExitStack() as stack:
            groups = []
            for name in member_names(members):
                mine = {**options, **(each or {}).get(name, {})}
                groups.append(await stack.enter_async_context(inga.join(group_name, name, **where, **mine)))
            await asyncio.gather(*(group.ready() for group in groups))
            yield groups

    return meet


@pytest.fixture
def run() -> Run:
    """Run a coroutine in a loop of its own. What fails in a callback of the loop fails the test."""

    def in_loop(
        main: Coroutine[Any, Any, Any],
        *,
        loop: str = "asyncio",
        seconds: float = SECONDS,
        debug: bool = False,
    ) -> Any:
        complaints: list[dict[str, Any]] = []

        async def limited() -> Any:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
            task = asyncio.ensure_future(main)
            deadline = monotonic() + seconds  # of a clock that nobody moves
            while not task.done() and monotonic() < deadline:
                await asyncio.wait([task], timeout=1)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
                raise TimeoutError(f"not done within {seconds:g} s")
            return task.result()

        with asyncio.Runner(loop_factory=_factory(loop), debug=debug) as runner:
            result = runner.run(limited())
        assert not complaints
        return result

    return in_loop


def _factory(loop: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if loop == "uvloop":
        return pytest.importorskip("uvloop").new_event_loop  # type: ignore[no-any-return]
    return SkippingLoop


def _is_free(port: int) -> bool:
    try:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            with socket.socket(socket.AF_INET, kind) as probe:
                probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
