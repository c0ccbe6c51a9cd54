"""What layers tell each other in words: small JSON objects, read with suspicion.

For control messages that are rare and worth reading in a packet dump. `do` says what is told; everything
else is asked for by name and type, and whatever is not so raises WireError.
"""

import json
from typing import Any, Self

from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.wire.packet import COUNT_MAX

LARGE_MAX = 1 << 62
"""The largest number that counts packets since a point in time, not since a start."""

TEXT_MAX = 4096
"""Characters of a text: a sentence that explains something is shorter."""


DIGITS_MAX = len(str(COUNT_MAX))
"""Of a number that is a key."""


def said(do: str, **what: Any) -> bytes:
    """The contents of a packet."""
    return json.dumps({"do": do, **what}, separators=(",", ":")).encode()


@mypyc_attr(allow_interpreted_subclasses=True)
class Told:
    """One such object, as it came."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    @classmethod
    def read(cls, data: bytes | bytearray | None) -> Self:
        """What `said` made; anything else raises WireError."""
        try:
            content = json.loads(data or b"")
        except (ValueError, RecursionError):
            raise _malformed("no JSON") from None
        if not isinstance(content, dict):
            raise _malformed("no JSON object")
        return cls(content)

    @property
    def do(self) -> str:
        return self.text("do")

    def text(self, key: str, otherwise: str | None = None) -> str:
        """`otherwise`: what is meant if nothing is said."""
        if otherwise is not None and key not in self._content:
            return otherwise
        return _text(self._get(key))

    @property
    def identity(self) -> tuple[str, int]:
        """Name and incarnation of the one that it is about."""
        return self.text("name"), self.number("incarnation")

    def number(self, key: str) -> int:
        """From 0 to the largest count there is."""
        return _number(self._get(key))

    def large(self, key: str) -> int:
        """A number that may be larger than a count."""
        return _number(self._get(key), LARGE_MAX)

    def counts(self, key: str | None = None) -> dict[str, int]:
        """Everything told besides `do`, or everything under that key, which must be numbers."""
        content = self._content if key is None else self._get(key)
        if not isinstance(content, dict):
            raise _malformed(f"{key} is no object")
        return {key: _number(value, LARGE_MAX) for key, value in content.items() if key != "do"}

    def flag(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise _malformed(f"{key} is neither true nor false")
        return value

    def numbers(self, key: str, count: int | None = None) -> list[int]:
        """A list of so many numbers, or of any length."""
        return [_number(each) for each in _items(self._get(key), count)]

    def texts(self, key: str) -> list[str]:
        return [_text(each) for each in _items(self._get(key))]

    def lists_of_texts(self, key: str) -> list[list[str]]:
        return [[_text(each) for each in _items(line)] for line in _items(self._get(key))]

    def table(self, key: str, rows: int, columns: int) -> list[list[int]]:
        lines = _items(self._get(key), rows)
        return [[_number(each) for each in _items(line, columns)] for line in lines]

    def pairs(self, key: str) -> list[tuple[int, int]]:
        """MemberNumbers of numbers."""
        lines = [_items(line, 2) for line in _items(self._get(key))]
        return [(_number(low), _number(high)) for low, high in lines]

    def tables(self, key: str, columns: int) -> dict[int, list[list[int]]]:
        """Tables of so many columns by number."""
        content = self._get(key)
        if not isinstance(content, dict) or not all(map(_is_number, content)):
            raise _malformed(f"{key} has no tables by number")
        return {
            int(name): [[_number(each) for each in _items(line, columns)] for line in _items(lines)]
            for name, lines in content.items()
        }

    def people(self, key: str) -> list[tuple[str, int, str]]:
        """Names, incarnations and addresses."""
        lines = [_items(line, 3) for line in _items(self._get(key))]
        return [(_text(name), _number(incarnation), _text(address)) for name, incarnation, address in lines]

    def _get(self, key: str) -> Any:
        try:
            return self._content[key]
        except KeyError:
            raise _malformed(f"no {key}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise _malformed("no text of a reasonable length")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:  # JSON has escapes for halves of characters, which nothing else takes
            raise _malformed("no text") from None
    return value


def _number(value: Any, most: int = COUNT_MAX) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _malformed("no count")
    return value


def _is_number(name: str) -> bool:
    """Whether a key is a number that `int` reads: there are as many digits as one likes, and it refuses very many."""
    return name.isdecimal() and len(name) <= DIGITS_MAX


def _items(value: Any, count: int | None = None) -> list[Any]:
    if not isinstance(value, list) or count not in (None, len(value)):
        raise _malformed("no list of the right length")
    return value


def _malformed(what: str) -> WireError:
    return WireError("malformed", what)
