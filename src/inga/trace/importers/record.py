"""What every importer makes of a foreign log: records, one event each, in the order of the file."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inga.model.errors import TraceError
from inga.trace.manifest import shown
from inga.trace.schema import COUNT_MAX

ForeignClock = dict[str, int]
"""How many events of each host are known; who is not named counts 0."""


@dataclass(frozen=True, slots=True)
class Record:
    """One event of a foreign log. `role` is send, deliver or crash if it is more than an event."""

    host: str
    clock: ForeignClock
    text: str
    line: int
    role: str | None = None
    message: str = ""  # what a send and its deliveries have in common
    execution: int = 0
    label: str = ""  # of the execution


Records = Callable[[], Iterator[Record]]
"""Reads the log from its beginning, every time it is called."""


@dataclass(slots=True)
class Skipped:
    """Text between records that belongs to none."""

    lines: int = 0
    first: int = 0
    text: str = ""

    def add(self, text: str, line: int) -> None:
        for offset, each in enumerate(text.split("\n")):
            if each.strip():
                if not self.lines:
                    self.first, self.text = line + offset, each.strip()[:60]
                self.lines += 1


@dataclass(slots=True)
class Log:
    """A file to import: its records, and what a manifest says of them."""

    path: Path
    records: Records
    source: str  # the name of the format
    claims: list[str]
    options: dict[str, Any] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=Skipped)
    to_receivers: bool = False  # a message is for those that received it, not for all others


def bad(path: Path, line: int, what: str) -> TraceError:
    return TraceError(f"{path}:{line}: {what}.")


def parse_clock(text: str, host: str, path: Path, line: int) -> ForeignClock:
    """The clock of an event, from JSON."""
    try:
        content = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise bad(path, line, f"the clock {shown(text)} is not JSON: {error}") from None
    if not is_text(content, text):
        raise bad(path, line, f"the clock {shown(text)} holds half a character")
    return check_clock(content, host, path, line)


def check_clock(content: Any, host: str, path: Path, line: int) -> ForeignClock:
    """The clock without its zeros, if it can be one: it counts the event that it belongs to."""
    if not isinstance(content, dict):
        raise bad(path, line, f"the clock must be an object of counts by host, not {shown(content)}")
    for name, count in content.items():
        if type(count) is not int or not 0 <= count <= COUNT_MAX:
            raise bad(path, line, f"the clock counts {shown(count)} events of {shown(name)}")
        if not name:
            raise bad(path, line, "the clock counts events of a host without a name")
    if not host:
        raise bad(path, line, "the event has no host")
    if not content.get(host):
        raise bad(path, line, f"the clock of an event of {shown(host)} does not count that event")
    return {name: count for name, count in content.items() if count}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("it names a host twice")
    return content


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def is_text(content: Any, written: str) -> bool:
    """Whether all texts of JSON, which was `written` so, are Unicode: an escape can name half of a character, and what
    holds one can be kept in no file."""
    if not _SURROGATE.search(written):
        return True
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True
