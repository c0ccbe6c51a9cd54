"""Many numbers of one width, read and written by one call.

    numbers  2 ** width bytes each, big-endian; the width is the least that suffices

In a large group every packet may have a number for each member, or for a hundred of them. Varints are a little shorter,
but each takes several steps of Python.
"""

from collections.abc import Sequence
from struct import pack, unpack_from

from inga.model.errors import WireError
from inga.model.packet import Buffer

FORMS = "BHIQ"  # by width


def width_of(highest: int) -> int:
    """The least width of a column with numbers up to `highest`."""
    return ((highest.bit_length() - 1) >> 3).bit_length() if highest else 0


def put_column(out: bytearray, numbers: Sequence[int], width: int) -> None:
    """Append a column."""
    out += pack(f">{len(numbers)}{FORMS[width]}", *numbers) if width else bytes(numbers)


def get_column(data: Buffer, at: int, size: int, width: int) -> tuple[Sequence[int], int]:
    """A column of `size` numbers, and the offset behind it. A column of width 0 is returned as bytes."""
    if width >= len(FORMS):
        raise WireError("malformed", f"a column of width {width}")
    end = at + (size << width)
    if end > len(data):
        raise WireError("truncated", "in the middle of a column")
    if not width:
        return bytes(data[at:end]), end
    numbers = unpack_from(f">{size}{FORMS[width]}", data, at)
    if not any(number >> (4 << width) for number in numbers):
        raise WireError("malformed", "a column that is wider than it needs to be")
    return numbers, end
