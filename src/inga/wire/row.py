"""A row of numbers, each in as many bytes as the largest of them needs: written and read by one call.

    an octet: 0, 1, 2 or 3 for numbers of 1, 2, 4 or 8 bytes
    four bytes: how many there are
    the numbers, high byte first

A row takes a few bytes more than varints would, and a fraction of the time, since no number is decoded by Python code.
"""

from collections.abc import Sequence
from struct import Struct, error, pack, unpack_from

from inga.model.errors import WireError
from inga.model.packet import Buffer

HEAD = Struct(">BI")
KINDS = "BHIQ"
WIDTHS = (1, 2, 4, 8)
COUNT_MAX = (1 << 62) - 1
"""The largest number in a row: no counter gets that far."""


def put(out: bytearray, numbers: Sequence[int]) -> None:
    """Append a row."""
    top = max(numbers, default=0)
    code = 0 if top < 1 << 8 else 1 if top < 1 << 16 else 2 if top < 1 << 32 else 3
    count = len(numbers)
    out += HEAD.pack(code, count)
    out += pack(f">{count}{KINDS[code]}", *numbers)


def get(data: Buffer, at: int) -> tuple[tuple[int, ...], int]:
    """The row at `at`, and the offset behind it; WireError if there is none."""
    try:
        code, count = HEAD.unpack_from(data, at)
        if code >= len(WIDTHS):
            raise WireError("malformed", "no width of numbers")
        numbers = unpack_from(f">{count}{KINDS[code]}", data, at + HEAD.size)
    except error:
        raise WireError("truncated", "in a row of numbers") from None
    if code == 3 and max(numbers, default=0) > COUNT_MAX:
        raise WireError("malformed", "a number that nobody counts to")
    return numbers, at + HEAD.size + count * WIDTHS[code]
