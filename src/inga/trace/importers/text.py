"""Records in a text by regular expressions, for files of any size.

A pattern may span lines and begin anywhere, so the text is searched a window at a time. A match is trusted only if the
window has at least `RECORD_MAX` characters from its beginning on, or the file ends; so a record may have that many.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TextIO

from inga.model.errors import TraceError, UsageError
from inga.trace.importers.record import BadLines, NotJson, Skipped, fault, parse_object
from inga.trace.importers.source import LogText, is_utf8

WINDOW = 1 << 22  # characters
RECORD_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A match of the record pattern, or of the delimiter that begins another execution."""

    line: int
    match: re.Match[str]
    is_record: bool


def compile_pattern(text: str, option: str, groups: tuple[str, ...] = ()) -> re.Pattern[str]:
    """Compile a regular expression in the syntax of Python or of JavaScript, and check that it has the groups it needs."""
    try:
        pattern = re.compile(_from_javascript(text), re.MULTILINE)
    except re.error as error:
        raise UsageError(f"{option} {text!r} is not a regular expression: {error}") from None
    missing = [group for group in groups if group not in pattern.groupindex]
    if missing:
        raise UsageError(f"{option} {text!r} has no group (?<{missing[0]}>...)")
    return pattern


def _from_javascript(text: str) -> str:
    """Translate named groups, references to them, and `[^]`, which matches any character."""
    parts = re.split(r"(\\k<\w+>|\\.|\(\?<(?![=!])|\[\^\])", text, flags=re.DOTALL)
    return "".join(map(_translate, parts))


def _translate(part: str) -> str:
    if part == "(?<":
        return "(?P<"
    if part == "[^]":
        return r"[\s\S]"
    return f"(?P={part[3:-1]})" if part.startswith("\\k<") else part


def _forgive_the_end(error: UnicodeError) -> tuple[str, int]:
    """An error handler that ignores an incomplete character at the end: a log may have been copied while it was written."""
    if isinstance(error, UnicodeDecodeError) and error.reason == "unexpected end of data":
        return "", error.end
    raise error


UP_TO_ITS_END = "inga.up-to-its-end"
codecs.register_error(UP_TO_ITS_END, _forgive_the_end)


def open_text(log: LogText, encoding: str, newline: str | None = None) -> TextIO:
    path = log.path
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{log.said} is not a plain file, and logs are read twice")
        # A byte order mark, which some editors write, is not part of the text.
        encoding = log.encoding or encoding
        plain = "utf-8-sig" if is_utf8(encoding) else encoding
        return path.open(encoding=plain, newline=newline, errors=UP_TO_ITS_END)
    except LookupError:
        raise UsageError(f"there is no encoding {encoding!r}") from None
    except OSError as error:
        raise UsageError(f"{log.said} cannot be read: {error.strerror}") from None


def read_objects(log: LogText, encoding: str, bad: BadLines) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file that has one in each line, with their line numbers. Blank lines are skipped."""
    number = 0
    bad.begin()
    with open_text(log, encoding) as file:
        try:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    content = parse_object(log, number, line)
                except TraceError as error:
                    is_cut = not line.endswith("\n") or number in log.torn
                    bad.add(error, is_torn=is_cut and isinstance(error, NotJson))
                else:
                    yield number, content
        except UnicodeDecodeError as error:
            raise not_text(log, number + 1, encoding, error) from None


def find_records(
    log: LogText,
    encoding: str,
    pattern: re.Pattern[str],
    delimiter: re.Pattern[str] | None,
    skipped: Skipped,
    first: int = 1,
) -> Iterator[FoundLine]:
    """All records and delimiters, from line `first` on."""
    with open_text(log, encoding) as file:
        for _ in range(first - 1):
            file.readline()
        parts = FileParts(file)
        done = first - 1
        for until in [*(at for at, _ in log.parts[1:]), None]:
            parts.begin(None if until is None else max(until - done, 0))
            yield from _Search(log, encoding, parts, pattern, delimiter, skipped, done + 1).run()
            done = max(until or 0, done)


class FileParts:
    """A text in parts, each of which reads like a file of its own: no record or document begins in one and ends in another."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._rest = ""  # text that was read and belongs to the next parts
        self._left: int | None = None  # lines of this part that are not read yet; None for all of the rest

    def begin(self, lines: int | None) -> None:
        self._left = lines

    def read(self, size: int) -> str:
        if self._left == 0:
            return ""
        text, self._rest = self._rest + self._file.read(max(size - len(self._rest), 0)), ""
        if self._left is None:
            return text
        ends = text.count("\n")
        if ends < self._left:
            self._left -= ends
            return text
        end = 0
        for _ in range(self._left):
            end = text.index("\n", end) + 1
        self._left, self._rest = 0, text[end:]
        return text[:end]


class _Search:
    def __init__(
        self,
        log: LogText,
        encoding: str,
        file: FileParts,
        pattern: re.Pattern[str],
        delimiter: re.Pattern[str] | None,
        skipped: Skipped,
        first: int,
    ) -> None:
        self._log = log
        self._encoding = encoding
        self._file = file
        self._pattern = pattern
        self._delimiter = delimiter
        self._skipped = skipped
        self._window = ""
        self._at = 0  # searched up to here
        self._counted = 0  # line numbers are known up to here
        self._line = first
        self._next: re.Match[str] | None = None  # the next delimiter in the window
        self._is_next_known = False

    def run(self) -> Iterator[FoundLine]:
        is_last = False
        while not is_last:
            is_last = self._fill()
            end = len(self._window) if is_last else len(self._window) - RECORD_MAX
            while (found := self._find(end, is_last)) is not None:
                yield found
            if is_last:
                self._pass_over(end)
            elif self._at < end:
                # No match begins before `end`. Only whole lines are passed over, since records begin where lines do.
                self._pass_over(self._window.rfind("\n", self._at, end) + 1 or self._at)

    def _fill(self) -> bool:
        """Drop the part of the window that was searched, and read on; return whether the file ended."""
        # The line in which the searched part ends stays: a pattern may look back.
        keep = self._window.rfind("\n", 0, self._at) + 1
        line = self._line_at(keep) - self._window.count("\n", keep, self._counted)
        try:
            more = self._file.read(WINDOW)
        except UnicodeDecodeError as error:
            raise not_text(self._log, self._line_at(len(self._window)), self._encoding, error) from None
        self._window = self._window[keep:] + more
        self._at -= keep
        self._counted, self._line = 0, line
        self._is_next_known = False
        return len(more) < WINDOW

    def _find(self, end: int, is_last: bool) -> FoundLine | None:
        border = self._border()
        limit = len(self._window) if border is None else border.start()
        match = self._pattern.search(self._window, self._at, limit)
        while match is not None and match.end() == match.start():  # skip matches of the empty text
            at = match.end() + 1
            match = self._pattern.search(self._window, at, limit) if at <= limit else None
        is_record = match is not None
        match = match or border
        if match is None or (match.start() >= end and not is_last):
            return None
        self._pass_over(match.start())
        line = self._line_at(match.start())
        self._at = match.end()
        if is_record:
            self._skipped.matched(match[0], line)
        return FoundLine(line, match, is_record)

    def _border(self) -> re.Match[str] | None:
        if self._delimiter is None:
            return None
        if not self._is_next_known or (self._next is not None and self._next.start() < self._at):
            self._next = self._delimiter.search(self._window, self._at)
            if self._next is not None and self._next.end() == self._next.start():
                raise UsageError(f"--executions {self._delimiter.pattern!r} matches where there is nothing")
            self._is_next_known = True
        return self._next

    def _pass_over(self, to: int) -> None:
        between = self._window[self._at : to]
        if between and not between.isspace():
            self._skipped.add(between, self._line_at(self._at))
        self._at = max(self._at, to)

    def _line_at(self, place: int) -> int:
        self._line += self._window.count("\n", self._counted, place)
        self._counted = max(self._counted, place)
        return self._line


def not_text(log: LogText, line: int, encoding: str, error: UnicodeDecodeError) -> TraceError:
    return fault(log, line, f"here or soon after is text that is not {encoding}: {error.reason}")
