"""Text fit for a terminal: what others wrote moves no cursor, hides nothing and reorders nothing nearby."""

import re
import unicodedata
from functools import lru_cache

TAB = "    "
JOINERS = "\u200c\u200d"
"""Zero-width joiners: the only invisible format characters that people need, in emoji and in Persian."""

MARKS_MAX = 6
"""Combining marks on one letter; more of them climb over the lines above."""

_LINE_ENDS = re.compile("\r\n|[\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


def harmless(text: str) -> str:
    """The text with every character that commands a terminal made visible; line ends become newlines."""
    out: list[str] = []
    marks = 0
    for char in _LINE_ENDS.sub("\n", text).replace("\t", TAB):
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if marks <= MARKS_MAX:
            out.append(char if char == "\n" else _visible(char))
    return "".join(out)


def shorten(text: str, characters: int, lines: int) -> tuple[str, int]:
    """At most so much of a text, and how many characters were left out."""
    short = "\n".join(text[:characters].split("\n", lines)[:lines])
    return short, len(text) - len(short)


@lru_cache(maxsize=4096)
def width(char: str) -> int:
    """Columns a character takes, as most terminals see it."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def width_of(text: str) -> int:
    return sum(map(width, text))


def wrap(text: str, columns: int) -> list[str]:
    """Rows of at most so many columns, cut at spaces where there are some."""
    rows: list[str] = []
    for line in text.split("\n"):
        while (cut := fitting(line, columns)) < len(line):
            space = line.rfind(" ", 1, cut + 1)
            rows.append(line[: space if space > 0 else cut])
            line = line[space + 1 if space > 0 else cut :]
        rows.append(line)
    return rows


def fitting(line: str, columns: int) -> int:
    """How many characters from the start fit so many columns: one at least, and whole clusters."""
    used = 0
    for at, char in enumerate(line):
        used += width(char)
        if used > columns and at:
            return at
    return len(line)


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(char) in ("Cc", "Cf", "Cs") and char not in JOINERS:
        return f"<U+{code:04X}>"
    return char
