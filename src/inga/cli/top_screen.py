"""A screen that is drawn again and again, in a terminal's other buffer: what was there before comes back at the end."""

import asyncio
import os
import signal
import sys
import termios
from collections.abc import Iterable
from typing import Any, Self

INPUT, OUTPUT = 0, 1
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, REST_OF_ROW, REST = "\x1b[H", "\x1b[K", "\x1b[J"


class LiveScreen:
    """Use as a context manager, in the running loop."""

    def __init__(self) -> None:
        self.is_over = False
        self._loop = asyncio.get_running_loop()
        self._before = termios.tcgetattr(INPUT)
        self._wake = asyncio.Event()

    @property
    def columns(self) -> int:
        return self._size()[0]

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(OUTPUT)
            return size.columns or 80, size.lines or 24
        except OSError:
            return 80, 24

    def __enter__(self) -> Self:
        mode: list[Any] = termios.tcgetattr(INPUT)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(INPUT, termios.TCSADRAIN, mode)
        self._loop.add_reader(INPUT, self._on_input)
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._end)
        self._loop.add_signal_handler(signal.SIGWINCH, self._wake.set)
        self._write(ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(INPUT)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGWINCH):
            self._loop.remove_signal_handler(number)
        self._write(LEAVE)
        termios.tcsetattr(INPUT, termios.TCSADRAIN, self._before)

    def show(self, rows: Iterable[str]) -> None:
        """Draw as many rows as there is room for; text of others in them is harmless already."""
        lines = self._size()[1]
        shown = list(rows)[: lines - 1]
        self._write(HOME + "".join([f"{row}{REST_OF_ROW}\r\n" for row in shown]) + REST)

    async def pause(self, seconds: float) -> None:
        """Wait, unless a key is pressed or the terminal has changed."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    def _on_input(self) -> None:
        try:
            keys = os.read(INPUT, 64)
        except OSError:
            keys = b""
        if not keys or b"q" in keys or b"\x04" in keys:  # the terminal is gone; or somebody wants to go
            self._end()
        else:
            self._wake.set()

    def _end(self) -> None:
        self.is_over = True
        self._wake.set()

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
