"""Control messages as small JSON objects, read with suspicion.

For control messages that are rare and worth reading in a packet dump. `do` is the kind of message; all other fields
are read by name and type, and a field that is missing or of the wrong type raises WireError.
"""

import json
from typing import Any, Self

from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.wire.packet import COUNT_MAX

LARGE_MAX = 1 << 62
"""The largest number in fields that may exceed `COUNT_MAX`."""

TEXT_MAX = 4096
"""The most characters of a text: sentences for a person are shorter."""


DIGITS_MAX = len(str(COUNT_MAX))
"""The most digits of a number that is a key."""


def said(do: str, **what: Any) -> bytes:
    """The content of a control packet."""
    return json.dumps({"do": do, **what}, separators=(",", ":")).encode()


@mypyc_attr(allow_interpreted_subclasses=True)
class Told:
    """One control message, as it arrived."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    @classmethod
    def read(cls, data: bytes | bytearray | None) -> Self:
        """Read what `said` made; anything that is no JSON object raises WireError."""
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
        """`otherwise`: the default if the field is missing."""
        if otherwise is not None and key not in self._content:
            return otherwise
        return _text(self._get(key))

    @property
    def identity(self) -> tuple[str, int]:
        """Name and incarnation of the process that the message is about."""
        return self.text("name"), self.number("incarnation")

    def number(self, key: str, otherwise: int | None = None) -> int:
        """A number from 0 to `COUNT_MAX`. `otherwise`: the default if the field is missing."""
        if otherwise is not None and key not in self._content:
            return otherwise
        return _number(self._get(key))

    def large(self, key: str) -> int:
        """A number that may be larger than `COUNT_MAX`."""
        return _number(self._get(key), LARGE_MAX)

    def counts(self, key: str | None = None) -> dict[str, int]:
        """All fields besides `do`, or all fields of the object under `key`; they must be numbers."""
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
        """A list of `count` numbers; by default of any length."""
        return [_number(each) for each in _items(self._get(key), count)]

    def texts(self, key: str) -> list[str]:
        return [_text(each) for each in _items(self._get(key))]

    def lists_of_texts(self, key: str) -> list[list[str]]:
        return [[_text(each) for each in _items(line)] for line in _items(self._get(key))]

    def table(self, key: str, rows: int, columns: int) -> list[list[int]]:
        lines = _items(self._get(key), rows)
        return [[_number(each) for each in _items(line, columns)] for line in lines]

    def pairs(self, key: str) -> list[tuple[int, int]]:
        """Pairs of numbers."""
        lines = [_items(line, 2) for line in _items(self._get(key))]
        return [(_number(low), _number(high)) for low, high in lines]

    def tables(self, key: str, columns: int) -> dict[int, list[list[int]]]:
        """Tables of that many columns each, by number."""
        content = self._get(key)
        if not isinstance(content, dict) or not all(map(_is_number, content)):
            raise _malformed(f"{key} has no tables by number")
        return {
            int(name): [[_number(each) for each in _items(line, columns)] for line in _items(lines)]
            for name, lines in content.items()
        }

    def people(self, key: str) -> list[tuple[str, int, str]]:
        """Members, each with name, incarnation and address."""
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
        except UnicodeEncodeError:  # JSON can escape lone surrogates, which UTF-8 cannot encode
            raise _malformed("no text") from None
    return value


def _number(value: Any, most: int = COUNT_MAX) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _malformed("no count")
    return value


def _is_number(name: str) -> bool:
    """Whether a key is a number that `int` reads: it refuses a very large number of digits."""
    return name.isdecimal() and len(name) <= DIGITS_MAX


def _items(value: Any, count: int | None = None) -> list[Any]:
    if not isinstance(value, list) or count not in (None, len(value)):
        raise _malformed("no list of the right length")
    return value


def _malformed(what: str) -> WireError:
    return WireError("malformed", what)
