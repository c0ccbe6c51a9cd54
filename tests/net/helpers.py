"""What network tests share besides fixtures."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from selectors import DefaultSelector, SelectorKey
from typing import Any, Self

import inga

SECONDS = 60.0
"""For anything a test waits for; far more than it takes, also on a busy machine."""

LOOPS = ("asyncio", "uvloop")
CARRIERS = ("udp", "unicast", "tcp")

Run = Callable[..., Any]
FreePort = Callable[[], int]
Place = Callable[..., dict[str, Any]]
Party = Callable[..., AbstractAsyncContextManager[list[inga.Group]]]


class CountingSelector(DefaultSelector):
    """Counts the turns of a loop: in each it asks once what has come."""

    turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        self.turns += 1
        return super().select(timeout)


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be moved on, for what takes a minute in real time, and whose turns are counted."""

    skipped = 0.0

    def __init__(self) -> None:
        self.selector = CountingSelector()
        super().__init__(self.selector)

    def time(self) -> float:
        return super().time() + self.skipped


def skip(seconds: float) -> None:
    """Let so much time have passed."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SkippingLoop)
    loop.skipped += seconds


class OtherTask:
    """Another task of the process, which counts the turns that it gets."""

    def __init__(self) -> None:
        self.turns = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._count())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _count(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


async def take(iteration: AsyncIterator[Any], count: int) -> list[Any]:
    """The next so many."""
    return [await anext(iteration) for _ in range(count)]


async def texts(group: inga.Group, count: int) -> list[str]:
    """What the next so many messages say."""
    return [text(delivery) for delivery in await take(aiter(group), count)]


def text(delivery: inga.Delivery) -> str:
    return bytes(delivery.data).decode()


async def until(happened: Callable[[], object]) -> None:
    """Wait for something that nobody announces."""
    while not happened():
        await asyncio.sleep(0.001)


async def confirmed(receipts: Iterable[Any]) -> None:
    for receipt in receipts:
        await receipt.reached("confirmed")
