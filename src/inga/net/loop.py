"""Running an event loop: uvloop's if it is installed, else asyncio's."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], *, uvloop: bool = True) -> T:
    """Like asyncio.run, with uvloop if that is wanted and installed."""
    factory = _uvloop_factory() if uvloop else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


def _uvloop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = new_event_loop
    return factory
