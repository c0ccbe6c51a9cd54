"""Unsigned integers in seven-bit groups, low group first: one byte below 128, ten at most."""

from collections.abc import Iterable

from inga.model.errors import WireError
from inga.model.packet import Buffer

VARINT_MAX = (1 << 64) - 1


def put(out: bytearray, value: int) -> None:
    """Append one number."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def get(data: Buffer, at: int) -> tuple[int, int]:
    """The number at `at`, and the offset behind it."""
    try:
        byte = data[at]
        at += 1
        if byte < 0x80:
            return byte, at
        value = byte & 0x7F
        shift = 7
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise WireError("malformed", "a number of more than ten bytes")
    except IndexError:
        raise WireError("truncated", "in the middle of a number") from None
    if value > VARINT_MAX:
        raise WireError("malformed", "a number above 64 bits")
    return value, at


def pack(numbers: Iterable[int]) -> bytes:
    """Numbers one after the other."""
    out = bytearray()
    for number in numbers:
        put(out, number)
    return bytes(out)


def unpack(data: Buffer) -> list[int]:
    """All numbers in `data`, which must end with the last one."""
    numbers, at = [], 0
    while at < len(data):
        number, at = get(data, at)
        numbers.append(number)
    return numbers
