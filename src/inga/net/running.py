"""Running a program that is a member of groups, so that it leaves them when a signal ends it."""

import asyncio
import inspect
import signal
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from inga.model.errors import UsageError

Outcome = TypeVar("Outcome")

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""The signals that containers, service managers and closed terminals send."""


def run(main: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Like `asyncio.run`, but a signal that ends the program (SIGTERM, SIGHUP) cancels `main`.

    Every `async with inga.join(...)` in it then leaves its group, instead of letting the others detect its
    silence. The program exits with the usual code for that signal, 128 plus its number.
    """
    _check(main)
    ended_by: list[int] = []
    # Python handles signals in the main thread only; in other threads a program runs without this.
    numbers = ENDING if threading.current_thread() is threading.main_thread() else ()

    async def watched() -> Outcome:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()

        def end(number: int) -> None:
            ended_by.append(number)
            task.cancel()

        for number in numbers:
            loop.add_signal_handler(number, end, number)
        try:
            return await task
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
            task.cancel()

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        if ended_by:
            raise SystemExit(128 + ended_by[0]) from None
        raise


def _check(main: Any) -> None:
    """Raise errors before there is an event loop, and leave no coroutine that was never awaited."""
    if not inspect.iscoroutine(main):
        called = f"{getattr(main, '__name__', 'main')}(...)"
        raise UsageError(f"inga.run takes a coroutine, as in inga.run({called}), not {main!r}")
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        main.close()
        raise UsageError(
            "inga.run begins an event loop, and one runs already, as in a notebook: write `await main()` there"
        )
