"""CDR, the encoding of CORBA: primitive values on their natural boundaries, in either byte order.

    octet, boolean, char                  1 octet
    short, ushort                         2 octets, aligned to 2
    long, ulong, enum, float              4 octets, aligned to 4
    longlong, ulonglong, double           8 octets, aligned to 8
    string                                ulong length with the closing NUL, octets, NUL
    wchar                                 octet length, UTF-16 (the form of GIOP 1.2)
    wstring                               ulong length in octets, UTF-16, no NUL (the form of GIOP 1.2)
    sequence                              ulong count, then the elements
    encapsulation                         sequence<octet> whose first octet is its own byte order

Alignment counts from the start of the enclosing unit: the GIOP header of a message, the byte order octet of
an encapsulation. `base` says how far from that start the first octet of the buffer lies.

A decoder never trusts a length: it compares it with the octets that are left before it allocates anything.
"""

import codecs
from collections.abc import Callable
from struct import Struct, error
from typing import Self, TypeAlias, TypeVar

from inga.model.errors import UsageError, WireError
from inga.model.packet import Buffer

TEXT = "utf-8"
"""The code set of strings unless another one was agreed on."""
_MARKS = (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
WIDE_BYTES_MAX = 4
"""A wide character is one or two units of UTF-16."""

Real: TypeAlias = float
"""`float`, for the classes below: there the name means their method."""
Number = TypeVar("Number", int, float)


def padding(position: int, size: int) -> int:
    """How many octets until the next multiple of `size`, a power of two."""
    return -position & (size - 1)


def _putting(name: str, sign: str) -> Callable[["Encoder", Real], None]:
    """The method that writes one type of number, on its boundary."""
    big, little = Struct(">" + sign), Struct("<" + sign)
    size = big.size

    def put(self: "Encoder", value: Real) -> None:
        out = self.out
        if missing := -(self.base + len(out)) & (size - 1):
            out.extend(bytes(missing))
        try:
            out.extend((little if self.little else big).pack(value))
        except (error, OverflowError):
            raise UsageError(f"{value!r} does not fit into {_article(name)} {name}.") from None

    return put


def _getting(kind: type[Number], sign: str) -> Callable[["Decoder"], Number]:
    """The method that reads one type of number, from its boundary."""
    big, little = Struct(">" + sign), Struct("<" + sign)
    size = big.size

    def get(self: "Decoder") -> Number:
        start = self.at + (-(self.base + self.at) & (size - 1))
        if start + size > self.end:
            raise WireError("truncated", f"{size} octets wanted at {start} of {self.end}")
        self.at = start + size
        value: Number = (little if self.little else big).unpack_from(self._data, start)[0]
        return value

    return get


class Encoder:
    """Values in, CDR octets out. A value that its type cannot hold is a `UsageError`."""

    __slots__ = ("out", "little", "base", "text")

    def __init__(self, *, little: bool = False, base: int = 0, text: str = TEXT) -> None:
        self.out = bytearray()
        self.little = little
        self.base = base
        self.text = text

    @classmethod
    def encapsulation(cls, *, little: bool = False, text: str = TEXT) -> Self:
        """An encoder for the contents of an encapsulation; the byte order octet is already written."""
        made = cls(little=little, text=text)
        made.octet(int(little))
        return made

    def __len__(self) -> int:
        return len(self.out)

    def data(self) -> bytes:
        """Everything written so far."""
        return bytes(self.out)

    def align(self, size: int) -> None:
        """Append zeros up to the next multiple of `size`."""
        self.out.extend(bytes(padding(self.base + len(self.out), size)))

    octet = _putting("octet", "B")
    short = _putting("short", "h")
    ushort = _putting("ushort", "H")
    long = _putting("long", "i")
    ulong = _putting("ulong", "I")
    longlong = _putting("longlong", "q")
    ulonglong = _putting("ulonglong", "Q")
    float = _putting("float", "f")
    double = _putting("double", "d")

    def boolean(self, value: bool) -> None:
        """One octet, 0 or 1."""
        self.out.append(1 if value else 0)

    def char(self, value: str) -> None:
        """One character that is one octet in the code set."""
        octets = self._encoded(value)
        if len(octets) != 1:
            raise UsageError(f"{value!r} is not one octet of {self.text} and so no char.")
        self.out.extend(octets)

    def string(self, value: str) -> None:
        """Text with its closing NUL."""
        octets = self._encoded(value)
        if 0 in octets:
            raise UsageError(f"A string cannot hold a NUL character: {value!r}.")
        self.ulong(len(octets) + 1)
        self.out.extend(octets)
        self.out.append(0)

    def wchar(self, value: str) -> None:
        """One wide character."""
        if len(value) != 1:
            raise UsageError(f"{value!r} is not one character and so no wchar.")
        octets = _utf16(value)
        self.octet(len(octets))
        self.out.extend(octets)

    def wstring(self, value: str) -> None:
        """Wide text."""
        octets = _utf16(value)
        self.ulong(len(octets))
        self.out.extend(octets)

    def octets(self, value: Buffer) -> None:
        """A sequence of octets: their number, then the octets."""
        self.ulong(len(value))
        self.out.extend(value)

    def raw(self, value: Buffer) -> None:
        """Octets as they are, without a number before them."""
        self.out.extend(value)

    def _encoded(self, value: str) -> bytes:
        try:
            return value.encode(self.text)
        except UnicodeEncodeError:
            raise UsageError(f"{value!r} cannot be written in {self.text}.") from None
        except AttributeError:
            raise UsageError(f"{value!r} is not text.") from None


class Decoder:
    """CDR octets in, values out. Octets that do not encode the requested type are a `WireError`."""

    __slots__ = ("_data", "at", "end", "little", "base", "text")

    def __init__(
        self, data: Buffer, *, little: bool = False, at: int = 0, base: int = 0, text: str = TEXT
    ) -> None:
        self._data = memoryview(data)
        self.at = at
        self.end = len(data)
        self.base = base
        self.text = text
        self.little = little

    @classmethod
    def encapsulation(cls, data: Buffer, *, text: str = TEXT) -> Self:
        """A decoder for the inside of an encapsulation, behind its byte order octet."""
        if not len(data):
            raise WireError("truncated", "an encapsulation without its byte order")
        if data[0] > 1:
            raise WireError("malformed", f"an encapsulation of byte order {data[0]}")
        return cls(data, little=bool(data[0]), at=1, text=text)

    def copy(self) -> "Decoder":
        """Another decoder at the same position."""
        return Decoder(self._data, little=self.little, at=self.at, base=self.base, text=self.text)

    @property
    def remaining(self) -> int:
        """How many octets are left."""
        return self.end - self.at

    def align(self, size: int) -> None:
        """Skip to the next multiple of `size`."""
        self._take(padding(self.base + self.at, size))

    def align_if_more(self, size: int) -> None:
        """Skip to the next multiple of `size` if anything follows: a message without body has no padding."""
        if self.at < self.end:
            self.align(size)

    def octet(self) -> int:
        """One octet, 0 to 255."""
        return self._data[self._take(1)]

    short = _getting(int, "h")
    ushort = _getting(int, "H")
    long = _getting(int, "i")
    ulong = _getting(int, "I")
    longlong = _getting(int, "q")
    ulonglong = _getting(int, "Q")
    float = _getting(Real, "f")
    double = _getting(Real, "d")

    def boolean(self) -> bool:
        """One octet; anything but 0 and 1 is an error."""
        value = self.octet()
        if value > 1:
            raise WireError("malformed", f"a boolean of {value}")
        return bool(value)

    def char(self) -> str:
        """One character."""
        return self._decoded(self.raw(1))

    def string(self) -> str:
        """Text, without its closing NUL."""
        octets = self.octets()
        if not octets:
            raise WireError("malformed", "a string of length 0: the closing NUL counts")
        if octets.find(0) != len(octets) - 1:
            raise WireError("malformed", "a string that does not end with its only NUL")
        return self._decoded(octets[:-1])

    def wchar(self) -> str:
        """One wide character."""
        size = self.octet()
        if size > 2 * WIDE_BYTES_MAX:
            raise WireError("malformed", f"a wide character of {size} octets")
        value = self._wide(size)
        if len(value) != 1:
            raise WireError("malformed", f"a wide character that is {len(value)}")
        return value

    def wstring(self) -> str:
        """Wide text."""
        return self._wide(self.ulong())

    def count(self, least: int = 1) -> int:
        """The number of elements of a sequence, each of which takes `least` octets or more.

        A number that cannot fit into the octets that are left is an error here, before memory is allocated for it.
        """
        number = self.ulong()
        if number * max(1, least) > self.end - self.at:
            raise WireError("truncated", f"{number} elements in {self.end - self.at} octets")
        return number

    def octets(self) -> bytes:
        """A sequence of octets."""
        return self.raw(self.ulong())

    def raw(self, size: int) -> bytes:
        """The next `size` octets as they are."""
        start = self._take(size)
        return bytes(self._data[start : start + size])

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.raw(self.end - self.at)

    def finish(self) -> None:
        """Raise if anything is left."""
        if self.at < self.end:
            raise WireError("malformed", f"{self.end - self.at} octets too many")

    def _take(self, size: int) -> int:
        """Skip the next `size` octets; return where they begin."""
        start = self.at
        if size > self.end - start:
            raise WireError("truncated", f"{size} octets wanted, {self.end - start} left")
        self.at = start + size
        return start

    def _decoded(self, octets: bytes) -> str:
        try:
            return octets.decode(self.text)
        except UnicodeDecodeError:
            raise WireError("malformed", f"text that is not {self.text}") from None

    def _wide(self, size: int) -> str:
        octets = self.raw(size)
        name = "utf-16-be"  # If there is no byte order mark, whatever the byte order of the message.
        if octets.startswith(codecs.BOM_UTF16_LE):
            name, octets = "utf-16-le", octets[2:]
        elif octets.startswith(codecs.BOM_UTF16_BE):
            octets = octets[2:]
        try:
            return octets.decode(name)
        except UnicodeDecodeError:
            raise WireError("malformed", "wide text that is not UTF-16") from None


def _utf16(value: str) -> bytes:
    try:
        octets = value.encode("utf-16-be")
    except UnicodeEncodeError:
        raise UsageError(f"{value!r} cannot be written in UTF-16.") from None
    # Text that begins with a byte order mark gets another one before it: a reader drops the first.
    return codecs.BOM_UTF16_BE + octets if octets.startswith(_MARKS) else octets


def _article(name: str) -> str:
    return "an" if name[0] in "aeio" else "a"
