"""Running a program that is a member of groups, so that it takes its leave however it is ended."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

Outcome = TypeVar("Outcome")

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""What containers, service managers and closed terminals send."""


def run(main: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Like `asyncio.run`, and a signal that asks the program to end cancels `main`.

    Every `async with inga.join(...)` in it then tells the others that it leaves, instead of letting them find out by its
    silence. The program ends with the code that such a signal has by custom, 128 and its number.
    """
    ended_by: list[int] = []

    async def watched() -> Outcome:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()

        def end(number: int) -> None:
            ended_by.append(number)
            task.cancel()

        for number in ENDING:
            loop.add_signal_handler(number, end, number)
        try:
            return await task
        finally:
            for number in ENDING:
                loop.remove_signal_handler(number)
            task.cancel()

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        if ended_by:
            raise SystemExit(128 + ended_by[0]) from None
        raise
