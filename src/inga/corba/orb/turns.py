"""Turns: whoever has work to do gets a small piece of time, one after the other, and the event loop goes on in between."""

import asyncio
from collections import deque
from typing import Protocol

TURNS_AT_ONCE = 32
"""Turns between two looks at what has come meanwhile; each takes some tens of microseconds."""


class Worker(Protocol):
    """Somebody whose work comes in pieces."""

    def turn(self) -> bool:
        """Do a piece; whether there is another that could be done now."""
        ...


class Turns:
    """All that have something to do, each in the line once."""

    def __init__(self) -> None:
        self._line: deque[Worker] = deque()
        self._waiting: set[Worker] = set()
        self._next: asyncio.Handle | None = None

    def add(self, worker: Worker) -> None:
        """It has something to do: at once if nobody else has."""
        if worker in self._waiting:
            return
        self._waiting.add(worker)
        self._line.append(worker)
        if self._next is None and len(self._line) == 1:
            self._take(1)

    def end(self) -> None:
        """Nobody gets a turn any more."""
        self._line.clear()
        self._waiting.clear()
        if self._next is not None:
            self._next.cancel()

    def _take(self, count: int) -> None:
        """So many turns, for whoever is next in the line, and later the others."""
        try:
            while self._line and count:
                count -= 1
                worker = self._line[0]
                has_more = False
                try:
                    has_more = worker.turn()
                finally:
                    if self._line:  # else all ended with this turn
                        self._line.popleft()
                        self._waiting.discard(worker)
                if has_more:
                    self._waiting.add(worker)
                    self._line.append(worker)
        finally:
            loop = asyncio.get_running_loop()
            self._next = loop.call_soon(self._take, TURNS_AT_ONCE) if self._line else None
