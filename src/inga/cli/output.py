"""What commands print: results to standard output, progress to standard error."""

import sys
from time import monotonic
from typing import Any, TextIO

from inga.model.text import json_line, printable


def tell(*lines: str, file: TextIO | None = None) -> None:
    """Print lines in which names and words of others may stand: whatever would steer a terminal, or begin a line of its
    own, is escaped. All commands print by this and by `print_json`."""
    for line in lines:
        print(printable(line), file=file, flush=file is sys.stderr)


def print_json(content: dict[str, Any]) -> None:
    """One line, and nothing else, on standard output."""
    print(json_line(content))


def listed(title: str, entries: dict[str, str]) -> str:
    """Names and what they mean, for the end of a help text."""
    width = max(map(len, entries)) + 2
    return "\n".join([f"{title}:", *(f"  {name:<{width}}{text}" for name, text in entries.items())])


class ProgressLine:
    """A bar on a terminal, a plain line now and then elsewhere, nothing when quiet."""

    WIDTH = 30
    LINE_SECONDS = 5.0
    BAR_SECONDS = 0.1

    def __init__(self, what: str, total: int | None, *, quiet: bool = False) -> None:
        self._what = what
        self._total = total
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._started = self._shown = monotonic()
        self._drawn = False

    def __call__(self, done: int) -> None:
        now = monotonic()
        if self._quiet or now - self._shown < (self.BAR_SECONDS if self._terminal else self.LINE_SECONDS):
            return
        self._shown = now
        rate = done / max(now - self._started, 1e-9)
        text = (
            f"{self._what}: {done:,}" + (f" of {self._total:,}" if self._total else "") + f", {rate:,.0f}/s"
        )
        if not self._terminal:
            print(text, file=sys.stderr, flush=True)
            return
        filled = int(self.WIDTH * done / self._total) if self._total else 0
        bar = f"[{'#' * filled:<{self.WIDTH}}] " if self._total else ""
        print(f"\r{bar}{text}", end="", file=sys.stderr, flush=True)
        self._drawn = True

    def end(self) -> None:
        """Clear the bar, so that what follows starts on a line of its own."""
        if self._drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
