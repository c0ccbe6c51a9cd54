"""A person at a terminal: types into a process of ours, `inga chat` unless it is said, and sees what a terminal would show."""

import codecs
import fcntl
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Any, Self

from inga.cli.chat_text import width

PATIENCE = 15.0
"""Seconds until something that should appear has not."""


def free_via() -> str:
    """A place on loopback that no other test uses."""
    return f"udp://239.7.7.9:{free_port(socket.SOCK_DGRAM)}?interface=lo"


def free_port(kind: int) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def chat_command(group: str, name: str, *options: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "inga", "chat", group, name, *options]


class Glass:
    """A terminal that knows just what a line editor needs; anything else is a mistake, or an attack."""

    _SEQUENCE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])")

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self._pending = ""

    @property
    def text(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.rows]

    def feed(self, text: str) -> None:
        text, self._pending = self._pending + text, ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
                continue
            found = self._SEQUENCE.match(text, at)
            if found is None:
                assert len(text) - at < 12, f"unknown sequence {text[at : at + 20]!r}"
                self._pending = text[at:]
                return
            self._obey(found.group(1), found.group(2))
            at = found.end()

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self._down()
        else:
            assert char.isprintable() or not width(char), f"{char!r} reached the terminal"
            if self.column + width(char) > self.columns:
                self._down()
                self.column = 0
            row = self.rows[self.row]
            row.extend(" " * (self.column - len(row)))
            if width(char):
                row[self.column : self.column + width(char)] = [char, *[""] * (width(char) - 1)]
                self.column += width(char)
            elif row:
                row[self.column - 1] += char

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def _obey(self, numbers: str, command: str) -> None:
        if command == "K" and not numbers:
            del self.rows[self.row][self.column :]
        elif command == "C":
            self.column += int(numbers)
        elif command == "H" and not numbers:
            self.row = self.column = 0
        elif command == "J" and numbers == "2":
            self.rows = [[] for _ in range(self.row + 1)]
        elif command == "J" and not numbers:
            del self.rows[self.row + 1 :], self.rows[self.row][self.column :]
        else:
            assert command == "m" or numbers in ("?2004", "?1049", "?25"), (
                f"\\e[{numbers}{command} reached the terminal"
            )


class Person:
    """Use as a context manager: the process does not outlive it."""

    def __init__(
        self, group: str, name: str, *options: str, columns: int = 80, command: list[str] | None = None
    ) -> None:
        self.name = name
        self.glass = Glass(columns)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._master, self._slave = os.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._modes = termios.tcgetattr(self._slave)
        self.process = subprocess.Popen(
            command or chat_command(group, name, *options),
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", "PYTHONUTF8": "1", "INGA_INTERFACE": "lo"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def type(self, text: str) -> None:
        """Keys, without Enter."""
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        self.type(text + "\r")

    def resize(self, columns: int) -> None:
        self.glass.columns = columns
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stopped(self) -> None:
        """Wait until the process is stopped."""
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    @property
    def is_editing(self) -> bool:
        """Whether the terminal gives keys one by one; otherwise it is as it was."""
        modes = termios.tcgetattr(self._slave)
        assert modes == self._modes or not modes[3] & (termios.ICANON | termios.ECHO)
        return modes != self._modes

    @property
    def seen(self) -> list[str]:
        """The rows on the screen; the last that is not empty is the one being typed."""
        rows = self.glass.text
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def until(self, *expected: str) -> list[str]:
        """Wait until each of these is a whole row of the screen."""
        return self.watch(lambda rows: all(row in rows for row in expected), expected)

    def watch(self, happened: Callable[[list[str]], bool], what: Any = "it") -> list[str]:
        """Wait until the rows are as they should be."""
        deadline = monotonic() + PATIENCE
        while not happened(self.seen):
            assert self._read(deadline - monotonic()), f"{self.name} waits for {what} and sees {self.seen}"
        return self.seen

    def leaves(self) -> int:
        """Wait until the process has ended: its exit code. The terminal is as it was."""
        deadline = monotonic() + PATIENCE
        while self.process.poll() is None:
            assert monotonic() < deadline, f"{self.name} does not leave: {self.seen}"
            self._read(0.02)
        while self._read(0):
            pass
        assert not self.is_editing
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        readable, _, _ = select.select([self._master], [], [], max(0.0, seconds))
        if readable:
            with suppress(OSError):
                self.glass.feed(self._decode(os.read(self._master, 1 << 16)))
        return bool(readable)
