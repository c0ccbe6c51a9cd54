"""JSON from files of any size: one document or several in a row, read value by value."""

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

from inga.model.errors import TraceError
from inga.trace.importers.record import BadLines, is_text
from inga.trace.importers.source import LogText
from inga.trace.importers.text import FileParts, open_text

BLOCK = 1 << 20  # characters
TAIL = 64  # characters: an error so close to the end of the text read so far may vanish when more is read

_BEGUN = re.compile(
    r"t(r|ru)?|f(a|al|als)?|n(u|ul)?|Na?|-?(I|In|Inf|Infi|Infin|Infini|Infinit)?|\.|[eE][+-]?|\\|u[0-9a-fA-F]{0,4}"
)
"""A text that may be the beginning of a value: a part of a word, of a number, or of an escape."""


def read_items(log: LogText, encoding: str, bad: BadLines, *lists: str) -> Iterator[tuple[int, Any]]:
    """The items of every document, with their line numbers: those of a list, or of an object's lists that are named in `lists`;
    or the object itself, if it has none of these. After a document that cannot be read, reading continues with the next line
    or, if the document spans several lines, with the next line that begins a document. No document continues in another file.
    If only the beginning of the log is wanted, reading stops after an item."""
    bad.begin()
    is_any, done = False, 0
    with open_text(log, encoding) as file:
        parts = FileParts(file)
        for (before, _), until in zip(log.parts, [*(at for at, _ in log.parts[1:]), None], strict=True):
            parts.begin(None if until is None else until - before)
            text = JsonText(log, parts, encoding, before + 1)
            for found in items_of_part(log, text, bad, *lists, is_last=until is None, is_any=is_any):
                yield found
                is_any = True
                if log.wanted is not None and done + text.read >= log.wanted:
                    return
            done += text.read


def items_of_part(
    log: LogText, text: "JsonText", bad: BadLines, *lists: str, is_last: bool, is_any: bool
) -> Iterator[tuple[int, Any]]:
    """The items of one file. `is_any` says whether the files before it had items."""
    while text.peek():
        first = text.line
        try:
            for found in _items(text, lists):
                yield found
                is_any = True
        except NotText:
            raise
        except JsonError as error:
            if log.is_cut and is_last and error.is_end:
                if is_any:
                    return
                raise TraceError(
                    f"{log.said} has nothing that ends within its first {log.path.stat().st_size:,} octets, "
                    "which --try reads: import it as a whole."
                ) from None
            bad.add(error, is_torn=error.is_end)
            text.pass_over(error, first)


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
    """The file is not text in the encoding given, so there is no next line to continue with."""


class JsonError(TraceError):
    """The text is not JSON."""

    def __init__(self, text: str, *, is_end: bool, is_long: bool) -> None:
        super().__init__(text)
        self.is_end = is_end  # the text is valid so far, but ends too early
        self.is_long = is_long  # the error is not in the line where the value begins


class Readable(Protocol):
    """A source of characters; `read` returns an empty text at the end."""

    def read(self, size: int, /) -> str: ...


class JsonText:
    """JSON from a file, value by value: of a large document only the current value is in memory."""

    def __init__(self, log: LogText, file: "Readable", encoding: str, first: int) -> None:
        self._log = log
        self._file = file
        self._encoding = encoding
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._line = first
        self._passed = 0
        self._is_all = False

    @property
    def read(self) -> int:
        """How many characters have been parsed."""
        return self._passed + self._at

    @property
    def line(self) -> int:
        return self._line

    def peek(self) -> str:
        """The next character that is not white space; an empty text at the end."""
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
            what = f"{' or '.join(characters)} is expected, not {found or 'the end'}"
            raise self.error(what, is_end=not found)
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
                    is_long = "\n" in self._text[self._at : error.pos]
                    is_end = self._is_all and _is_end(error)
                    raise self.error(f"this is not JSON: {error}", is_end=is_end, is_long=is_long) from None
            except ValueError as error:  # a number of thousands of digits; the error does not tell its place
                raise self.error(f"this is not JSON: {error}", is_long=True) from None
            else:
                if end < len(self._text) or self._is_all:
                    if not is_text(value, self._text[self._at : end]):
                        raise self.error("this holds half a character")
                    self._advance(end)
                    return value
            self._more(len(self._text))  # double the text, so that a large value is decoded only a few times

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

    def pass_over(self, error: JsonError, first: int) -> None:
        """Skip an error in a document that began in line `first`: go to the next line or, if the document spans several lines, to
        the next document."""
        is_long = error.is_long or self._line > first
        self._skip_line()
        if is_long:
            self._find_document()

    def _skip_line(self) -> None:
        """Go to the next line, or to the end."""
        while (end := self._text.find("\n", self._at)) < 0:
            if self._is_all:
                self._advance(len(self._text))
                return
            self._more()
        self._advance(end + 1)

    def _find_document(self) -> None:
        """Go to the next line, from the current one on, that begins like a document, or to the end."""
        while True:
            if self._at == len(self._text):
                self._more()
            if self._at == len(self._text) or self._text[self._at] in "{[":
                return
            self._skip_line()

    def _is_wrong(self, error: json.JSONDecodeError) -> bool:
        """Whether the error remains when more text is read. A value that is only cut off has its error near the end of the text, or
        is an unterminated string."""
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
        self._passed += self._at
        self._text, self._at = self._text[self._at :] + more, 0
        self._is_all = not more

    def error(self, what: str, *, is_end: bool = False, is_long: bool = False) -> JsonError:
        return JsonError(f"{self._log.place(self._line)}: {what}.", is_end=is_end, is_long=is_long)


def _is_end(error: json.JSONDecodeError) -> bool:
    """Whether the only error is that the text ends too early."""
    rest = error.doc[error.pos :].strip()
    return error.msg.startswith("Unterminated") or _BEGUN.fullmatch(rest) is not None
