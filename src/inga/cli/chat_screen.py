"""Where a chat is typed and shown: a terminal with a line being edited, or plain lines in and out."""

import asyncio
import codecs
import os
import signal
import sys
import termios
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from inga.cli.chat_line import HISTORY_MAX, LINE_MAX, Editor, Signal

INPUT, OUTPUT = 0, 1
LINES_WAITING = 16
"""Lines of plain input read ahead."""

PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
CLEAR_ROW, CLEAR_SCREEN = "\r\x1b[K", "\x1b[H\x1b[2J"


class Screen(ABC):
    """Use as a context manager, in the running loop."""

    columns: int | None = None  # to wrap at

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    @abstractmethod
    async def line(self) -> str | None:
        """The next line somebody entered; None at the end of the input."""

    @abstractmethod
    def show(self, rows: Iterable[str]) -> None:
        """Print rows; a line being typed stays intact below them."""


class Plain(Screen):
    """Lines from standard input, whatever that is, and rows to a file."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(LINES_WAITING)

    def __enter__(self) -> Self:
        # A thread, for a loop cannot wait for files; a daemon, for nothing can interrupt its read.
        threading.Thread(target=self._read, name="input", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def line(self) -> str | None:
        line = await self._lines.get()
        self._room.release()
        return line

    def show(self, rows: Iterable[str]) -> None:
        for row in rows:
            print(row, file=self._output)
        self._output.flush()

    def _read(self) -> None:
        """Hand over lines until the input ends; a very long one in pieces."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        rest = ""
        with suppress(RuntimeError):  # the loop is closed: nobody wants more
            # Not through sys.stdin: a thread that waits there holds a lock the interpreter needs to end.
            while data := _read(INPUT):
                *lines, rest = (rest + decode(data)).split("\n")
                while len(rest) > LINE_MAX:
                    lines.append(rest[:LINE_MAX])
                    rest = rest[LINE_MAX:]
                for line in lines:
                    self._hand_over(line)
            if rest:
                self._hand_over(rest)
            self._hand_over(None)

    def _hand_over(self, line: str | None) -> None:
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


class Terminal(Screen):
    """A line that is edited at the bottom, and rows that come in above it."""

    def __init__(self, prompt: str, prompt_width: int, editor: Editor) -> None:
        self._prompt = prompt
        self._prompt_width = prompt_width
        self._editor = editor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._before = termios.tcgetattr(INPUT)

    @property
    def columns(self) -> int:  # type: ignore[override]  # of a terminal it changes
        try:
            return os.get_terminal_size(OUTPUT).columns or 80
        except OSError:
            return 80

    def __enter__(self) -> Self:
        self._loop.add_reader(INPUT, self._on_input)
        self._loop.add_signal_handler(signal.SIGWINCH, self._redraw)
        self._loop.add_signal_handler(signal.SIGTSTP, self._stop)
        self._loop.add_signal_handler(signal.SIGCONT, self._start)
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(INPUT)
        for number in (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT):
            self._loop.remove_signal_handler(number)
        self._restore()

    async def line(self) -> str | None:
        return await self._lines.get()

    def show(self, rows: Iterable[str]) -> None:
        _write(CLEAR_ROW + "".join([f"{row}\n" for row in rows]) + self._drawn())

    def _on_input(self) -> None:
        data = _read(INPUT)
        if not data:  # the terminal is gone
            self._loop.remove_reader(INPUT)
            self._lines.put_nowait(None)
            return
        for event in self._editor.feed(data):
            if event is Signal.CLEAR:
                _write(CLEAR_SCREEN)
            else:
                self._lines.put_nowait(event if isinstance(event, str) else None)
        self._redraw()

    def _redraw(self) -> None:
        _write(CLEAR_ROW + self._drawn())

    def _drawn(self) -> str:
        """The prompt and the line, with the cursor in its place."""
        text, cursor = self._editor.view(max(self.columns - self._prompt_width, 8))
        return f"{self._prompt}{text}\r\x1b[{self._prompt_width + cursor}C"

    def _start(self) -> None:
        """Get keys as they are pressed; Ctrl-C and Ctrl-Z remain signals."""
        mode: list[Any] = termios.tcgetattr(INPUT)
        mode[0] &= ~termios.IXON  # Ctrl-S would stop the whole member
        mode[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        mode[3] |= termios.NOFLSH  # what was typed before a Ctrl-Z is there after it
        mode[6] = list(mode[6])
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        mode[6][termios.VQUIT] = os.fpathconf(INPUT, "PC_VDISABLE").to_bytes(1, "big")
        termios.tcsetattr(INPUT, termios.TCSADRAIN, mode)
        _write(PASTE_ON)
        self._redraw()

    def _restore(self) -> None:
        _write(CLEAR_ROW + PASTE_OFF)
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(INPUT, termios.TCSADRAIN, self._before)

    def _stop(self) -> None:
        """Ctrl-Z: give the terminal back, then stop; SIGCONT goes on with `_start`."""
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)


class HistoryFile:
    """What was typed, kept between sessions: one line each, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with suppress(FileNotFoundError):
            lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
            self.lines = [_unescaped(line) for line in lines[-HISTORY_MAX - 1 :] if line]
            return
        self.lines = []
        self.add()  # so that a path that cannot be written is known at once

    def add(self, *lines: str) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "a", encoding="utf-8") as file:
            file.writelines(f"{_escaped(line)}\n" for line in lines)


def is_terminal() -> bool:
    """Whether a line can be edited here."""
    return os.isatty(INPUT) and os.isatty(OUTPUT) and os.environ.get("TERM", "dumb") != "dumb"


def require_input() -> None:
    """Where standard input is closed, some socket would get its number: let it be empty instead."""
    try:
        os.fstat(INPUT)
    except OSError:
        os.open(os.devnull, os.O_RDONLY)  # gets the lowest number, which is that of standard input


def _read(descriptor: int) -> bytes:
    """What there is; nothing at the end, or when there is nothing to read from at all."""
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def _write(text: str) -> None:
    data = text.encode(sys.stdout.encoding or "utf-8", "replace")
    with suppress(OSError):  # the terminal is gone, as its input will say
        while data:
            data = data[os.write(OUTPUT, data) :]


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace("\n", "\\n")


def _unescaped(line: str) -> str:
    return line.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\")
