"""What commands print: results to standard output, progress to standard error."""

import os
import re
import sys
from time import monotonic
from typing import Any, TextIO

from inga.model.text import json_line, printable

COLOURS = {"good": 32, "bad": 31, "doubt": 33}
"""Of lines on a terminal, by tone: green, red, yellow."""

TONES = {"pass": "good", "fail": "bad", "unknown": "doubt"}
"""Of verdicts."""

_VERDICT = re.compile(r"(?:verdict: |\w+ +)(pass|fail|unknown)\b")


def tell(*lines: str, file: TextIO | None = None, tone: str | None = None) -> None:
    """Print lines in which names and words of others may stand: whatever would steer a terminal, or begin a line of its
    own, is escaped. All commands print by this and by `print_json`. A `tone` is a colour on terminals that have some."""
    for line in lines:
        text = printable(line)
        if tone is not None and has_colours(sys.stdout if file is None else file):
            text = f"\033[{COLOURS[tone]}m{text}\033[0m"
        print(text, file=file, flush=file is sys.stderr)


def tell_verdicts(*lines: str) -> None:
    """The same for a table in which lines that begin with a verdict, or a check and its verdict, have its tone."""
    for line in lines:
        found = _VERDICT.match(line)
        tell(line, tone=TONES[found[1]] if found else None)


def has_colours(file: TextIO) -> bool:
    """Whether it is a terminal whose user wants colours: https://no-color.org, and TERM=dumb."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def counted(number: int, word: str) -> str:
    """A number of things, as people say it."""
    if number == 1:
        return f"1 {word}"
    if word.endswith("y"):
        return f"{number:,} {word[:-1]}ies"
    return f"{number:,} {word}{'es' if word.endswith('s') else 's'}"


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
        self._done = 0

    def __call__(self, done: int | None) -> None:
        """So many are done; None: as many as before, and something goes on."""
        self._done = done = self._done if done is None else done
        now = monotonic()
        if self._quiet or now - self._shown < (self.BAR_SECONDS if self._terminal else self.LINE_SECONDS):
            return
        self._shown = now
        text = f"{self._what}: {done:,}" + (f" of {self._total:,}" if self._total else "")
        rate = done / max(now - self._started, 1e-9)
        if rate >= 1:  # of a few things that take long, a rate says nothing
            text += f", {rate:,.0f}/s"
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
