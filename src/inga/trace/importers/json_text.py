"""JSON from files of any size: one document, or one after the other, read value by value."""

import json
from collections.abc import Iterator
from typing import Any, TextIO

from inga.model.errors import TraceError
from inga.trace.importers.record import BadLines, fault, is_text
from inga.trace.importers.source import LogText
from inga.trace.importers.text import open_text

BLOCK = 1 << 20  # characters
TAIL = 64  # characters at the end of which a wrong one may be the beginning of a right one


def read_items(log: LogText, encoding: str, bad: BadLines, *lists: str) -> Iterator[tuple[int, Any]]:
    """The items of every document, with their lines: of a list, or of an object's list of one of these names; or the object
    itself, if it has none of them. After a document that cannot be read it goes on with the next line."""
    bad.begin()
    with open_text(log, encoding) as file:
        text = JsonText(log, file, encoding)
        while text.peek():
            try:
                yield from _items(text, lists)
            except NotText:
                raise
            except TraceError as error:
                bad.add(error, is_torn=not text.skip_line())


def _items(text: "JsonText", lists: tuple[str, ...]) -> Iterator[tuple[int, Any]]:
    line = text.line
    if text.peek() == "[":
        yield from text.items()
        return
    text.expect("{[")
    whole: dict[Any, Any] = {}
    is_listed = False
    is_empty = text.peek() == "}"
    if is_empty:
        text.expect("}")
    while not is_empty:
        key = text.value()
        text.expect(":")
        if key in lists and text.peek() == "[":
            is_listed = True
            yield from text.items()
        elif isinstance(key, str):
            whole[key] = text.value()
        else:
            raise text.error("a name is expected")
        is_empty = text.expect(",}") == "}"
    if not is_listed:
        yield line, whole


class NotText(TraceError):
    """The file is no text, so there is no next line."""


class JsonText:
    """JSON from a file, value by value: of a large document only what is asked for is in memory."""

    def __init__(self, log: LogText, file: TextIO, encoding: str) -> None:
        self._log = log
        self._file = file
        self._encoding = encoding
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._line = 1
        self._is_all = False

    @property
    def line(self) -> int:
        return self._line

    def peek(self) -> str:
        """The next character that is no space; nothing at the end."""
        while True:
            at = self._at
            while at < len(self._text) and self._text[at] in " \t\r\n":
                at += 1
            self._advance(at)
            if at < len(self._text) or self._is_all:
                return self._text[at : at + 1]
            self._more()

    def expect(self, characters: str) -> str:
        found = self.peek()
        if not found or found not in characters:
            raise self.error(f"{' or '.join(characters)} is expected, not {found or 'the end'}")
        self._advance(self._at + 1)
        return found

    def value(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise self.error("this is nested too deeply") from None
            except json.JSONDecodeError as error:
                if self._is_all or self._is_wrong(error):
                    raise self.error(f"this is not JSON: {error}") from None
            else:
                if end < len(self._text) or self._is_all:
                    if not is_text(value, self._text[self._at : end]):
                        raise self.error("this holds half a character")
                    self._advance(end)
                    return value
            self._more(len(self._text))  # twice as much, so that a large value is not decoded often

    def items(self) -> Iterator[tuple[int, Any]]:
        self.expect("[")
        if self.peek() == "]":
            self.expect("]")
            return
        while True:
            self.peek()
            line = self._line
            yield line, self.value()
            if self.expect(",]") == "]":
                return

    def skip_line(self) -> bool:
        """Go to the next line; False if there is none, or the one that is left was being written."""
        is_cut = self._line in self._log.torn
        while (end := self._text.find("\n", self._at)) < 0:
            if self._is_all:
                self._advance(len(self._text))
                return False
            self._more()
        self._advance(end + 1)
        return not is_cut

    def _is_wrong(self, error: json.JSONDecodeError) -> bool:
        """Whether more text cannot mend it: what is cut off is wrong at its end, or is a text that does not end."""
        return error.pos < len(self._text) - TAIL and not error.msg.startswith("Unterminated")

    def _advance(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self, least: int = 0) -> None:
        try:
            more = self._file.read(max(BLOCK, least))
        except UnicodeDecodeError as error:
            raise NotText(
                f"{self._log.place(self._line)}: here or later is text that is not {self._encoding}: {error.reason}."
            ) from None
        self._text, self._at = self._text[self._at :] + more, 0
        self._is_all = not more

    def error(self, what: str) -> TraceError:
        return fault(self._log, self._line, what)
