"""A process of a local cluster: runs one job, and exchanges lines of JSON with its launcher.

    python -m inga.runs.worker MODULE:FUNCTION

The first line on standard input is the job's configuration. When standard input ends, the launcher
has ended, and the worker ends, too.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from inga.model.errors import IngaError
from inga.net.loop import run


class WorkerLink:
    """The worker's end of the connection to its launcher."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lines: deque[dict[str, Any]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        # Not a pipe of the loop: that would make standard input non-blocking for other processes that share it.
        threading.Thread(target=self._read, name="launcher", daemon=True).start()

    def say(self, kind: str, **content: Any) -> None:
        """Send a line to the launcher."""
        sys.stdout.write(json.dumps({"kind": kind, **content}) + "\n")
        sys.stdout.flush()

    async def hear(self) -> dict[str, Any]:
        """Wait for the launcher's next line."""
        while not self._lines:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._lines.popleft()

    def _read(self) -> None:
        for line in sys.stdin:
            self._loop.call_soon_threadsafe(self._heard, json.loads(line))
        os.kill(os.getpid(), signal.SIGTERM)

    def _heard(self, content: dict[str, Any]) -> None:
        self._lines.append(content)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


Job = Callable[[dict[str, Any], WorkerLink], Awaitable[None]]


async def _work(job: Job, config: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    link = WorkerLink(loop)
    link.say("started")
    try:
        await job(config, link)
    except IngaError as error:
        link.say("error", text=str(error))
        raise SystemExit(2) from None


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher ends us when a person interrupts
    module, _, function = sys.argv[1].partition(":")
    job: Job = getattr(import_module(module), function)
    config = json.loads(sys.stdin.readline())
    try:
        run(_work(job, config), uvloop=config.get("uvloop", True))
    except asyncio.CancelledError:
        raise SystemExit(143) from None


if __name__ == "__main__":
    main()
