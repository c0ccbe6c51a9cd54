"""The records that every importer makes of a foreign log: one for each event, in the order of the file."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from inga.model.errors import TraceError
from inga.trace.importers.source import LogText
from inga.trace.manifest import shown
from inga.trace.schema import COUNT_MAX

ForeignClock = dict[str, int]
"""How many events of each host are known; a host that is not named has 0."""


@dataclass(frozen=True, slots=True)
class Record:
    """One event of a foreign log. `role` is send, receive, deliver or crash if it is more than an event. In a log that does not
    distinguish receive from deliver, a receipt counts as both."""

    host: str
    clock: ForeignClock
    text: str
    line: int
    role: str | None = None
    message: str = ""  # the name of the message, the same in its send and its deliveries
    execution: int = 0
    label: str = ""  # of the execution


SAMPLES_MAX = 5
"""The most lines without a record that are shown as samples."""

SHOWN_MAX = 60
"""The most characters shown of such a line."""

Records = Callable[[], Iterator[Record]]
"""Reads the log from the beginning, each time it is called."""


@dataclass(slots=True)
class FileFit:
    """How well a pattern fits one file."""

    events: int = 0
    matched: int = 0  # lines that belong to events
    unmatched: int = 0  # lines that belong to none
    first: tuple[int, str] = (0, "")  # the first line that belongs to none: its number and text

    @property
    def is_bad(self) -> bool:
        """Whether the pattern must be wrong: most lines belong to no event or, from `NOISE_MIN` such lines on, they are more than
        the events."""
        return self.unmatched > (self.events if self.unmatched >= NOISE_MIN else self.matched)


NOISE_MIN = 20
"""From this number on, lines that belong to no event must not outnumber the events."""


@dataclass(slots=True)
class Skipped:
    """The text between records that belongs to none of them."""

    starts: tuple[int, ...] = (0,)  # after how many lines each file of a log begins
    headings: frozenset[str] = frozenset()  # lines at the beginning of files that do not count as text
    lines: int = 0
    samples: list[tuple[int, str]] = field(default_factory=list)  # the first of them: line and text
    files: dict[int, FileFit] = field(default_factory=dict)

    def begin(self) -> None:
        """Reset the counts, since the log is read again."""
        self.lines, self.samples, self.files = 0, [], {}

    def add(self, text: str, line: int) -> None:
        for offset, each in enumerate(text.split("\n")):
            shown = each.strip()
            if shown and shown not in self.headings:
                self.lines += 1
                if len(shown) > SHOWN_MAX:
                    shown = f"{shown[: SHOWN_MAX - 1]}…"
                if len(self.samples) < SAMPLES_MAX:
                    self.samples.append((line + offset, shown))
                file = self._file(line + offset)
                file.first = file.first if file.unmatched else (line + offset, shown)
                file.unmatched += 1

    def matched(self, text: str, line: int) -> None:
        """Count the lines of an event."""
        file = self._file(line)
        file.events += 1
        file.matched += text.strip("\n").count("\n") + 1

    def _file(self, line: int) -> FileFit:
        at = bisect_right(self.starts, line - 1) if len(self.starts) > 1 else 0
        return self.files.setdefault(at, FileFit())


@dataclass(slots=True)
class BadLines:
    """Lines that should be events and cannot be read. They are left out if there are at most `most` of them; a line that was
    still being written when the log was copied is left out in any case."""

    most: int = 0
    count: int = 0
    torn: int = 0
    errors: list[TraceError] = field(default_factory=list)  # the first of them
    unfit: dict[TraceError, int] = field(
        default_factory=dict
    )  # files that the pattern does not fit: the error, and how many lines

    def begin(self) -> None:
        """Reset the counts, since the log is read again. Files that were found unfit stay so."""
        self.count, self.torn, self.errors = sum(self.unfit.values()), 0, [*self.unfit][:SAMPLES_MAX]

    def add_file(self, error: TraceError, lines: int) -> None:
        """Record that lines of a file are left out, because the pattern does not fit the file."""
        self.unfit[error] = lines
        self.count += lines
        self.errors = [*self.errors, error][:SAMPLES_MAX]

    def add(self, error: TraceError, *, is_torn: bool = False) -> None:
        self.torn += is_torn
        self.count += not is_torn
        if len(self.errors) < SAMPLES_MAX:
            self.errors.append(error)

    def check(self, events: int) -> None:
        """Refuse a log of which too many lines cannot be read, or that has errors and no events."""
        if not self.errors or (events and self.count <= self.most):
            return
        text = str(self.errors[0])
        if self.count > 1:
            places = ", ".join(str(error).partition(": ")[0] for error in self.errors[1:])
            more = f", and {self.count - len(self.errors):,} more" if self.count > len(self.errors) else ""
            text += f" {self.count:,} lines cannot be read, the others are {places}{more}."
        if 0 < self.count <= events:
            text += f" --bad {self.count} leaves {'them' if self.count > 1 else 'it'} out."
        raise TraceError(text)


@dataclass(slots=True)
class Log:
    """A log to import: its records, and what the manifest will say about them."""

    text: LogText
    records: Records
    source: str  # the name of the format
    claims: list[str]
    options: dict[str, Any] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=Skipped)
    bad: BadLines = field(default_factory=BadLines)
    to_receivers: bool = False  # a message is addressed to those that received it, not to all others


def fault(log: LogText, line: int, what: str) -> TraceError:
    return TraceError(f"{log.place(line)}: {what}.")


def parse_clock(text: str, host: str, log: LogText, line: int) -> ForeignClock:
    """Parse the clock of an event from JSON."""
    try:
        content = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise fault(log, line, f"the clock {shown(text)} is not JSON: {error}") from None
    if not is_text(content, text):
        raise fault(log, line, f"the clock {shown(text)} holds half a character")
    return check_clock(content, host, log, line)


def check_clock(content: Any, host: str, log: LogText, line: int) -> ForeignClock:
    """Check that a value is a valid clock, which counts the event that it belongs to, and return it without zeros."""
    if not isinstance(content, dict):
        raise fault(log, line, f"the clock must be an object of counts by host, not {shown(content)}")
    for name, count in content.items():
        if type(count) is not int or not 0 <= count <= COUNT_MAX:
            raise fault(log, line, f"the clock counts {shown(count)} events of {shown(name)}")
        if not name:
            raise fault(log, line, "the clock counts events of a host without a name")
    if not host:
        raise fault(log, line, "the event has no host")
    if not content.get(host):
        raise fault(log, line, f"the clock of an event of {shown(host)} does not count that event")
    return {name: count for name, count in content.items() if count}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("it names a host twice")
    return content


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def is_text(content: Any, written: str) -> bool:
    """Whether all texts in a JSON value are valid Unicode; `written` is its source. An escape can name half of a character (a
    lone surrogate), and no file can store a text with one."""
    if not _SURROGATE.search(written):
        return True
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def parse_object(log: LogText, line: int, text: str) -> dict[str, Any]:
    """Parse a line of JSON that must hold an object."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(f"{log.place(line)}: this is not JSON: {error}.") from None
    if not is_text(content, text):
        raise fault(log, line, "this holds half a character")
    if not isinstance(content, dict):
        raise fault(log, line, f"an object is expected, not {shown(content)}")
    return content


class NotJson(TraceError):
    """A line is not JSON. If it is the last one, it may just not be complete yet."""
