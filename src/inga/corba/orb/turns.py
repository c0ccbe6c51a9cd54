"""Turns: workers do their work in small pieces, one worker after the other, and the event loop runs in between."""

import asyncio
from collections import deque
from typing import Protocol

TURNS_AT_ONCE = 32
"""Turns before the event loop runs and reads what has arrived meanwhile; each takes some tens of microseconds."""


class Worker(Protocol):
    """An object whose work comes in pieces."""

    def turn(self) -> bool:
        """Do a piece; return whether another could be done now."""
        ...


class Turns:
    """The queue of workers that have something to do, each in it at most once."""

    def __init__(self) -> None:
        self._line: deque[Worker] = deque()
        self._waiting: set[Worker] = set()
        self._next: asyncio.Handle | None = None

    def add(self, worker: Worker) -> None:
        """Queue a worker that has something to do; it gets a turn at once if no other worker waits."""
        if worker in self._waiting:
            return
        self._waiting.add(worker)
        self._line.append(worker)
        if self._next is None and len(self._line) == 1:
            self._take(1)

    def end(self) -> None:
        """Give no more turns."""
        self._line.clear()
        self._waiting.clear()
        if self._next is not None:
            self._next.cancel()

    def _take(self, count: int) -> None:
        """Give `count` turns to the next workers in the queue, and later turns to the others."""
        try:
            while self._line and count:
                count -= 1
                worker = self._line[0]
                has_more = False
                try:
                    has_more = worker.turn()
                finally:
                    if self._line:  # else this turn has called `end`
                        self._line.popleft()
                        self._waiting.discard(worker)
                if has_more:
                    self._waiting.add(worker)
                    self._line.append(worker)
        finally:
            loop = asyncio.get_running_loop()
            self._next = loop.call_soon(self._take, TURNS_AT_ONCE) if self._line else None
