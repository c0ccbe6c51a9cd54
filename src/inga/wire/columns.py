"""The changes of a stamp: few as pairs, many as two columns whose numbers have one width each.

    number   of changes; up to `PAIRS_MAX` of them are a delta, see `vector`; if there are more:
    widths   one byte, members' in the high half, counts' in the low; w is 2 ** w bytes for each
    members  ascending
    counts   of each

Columns are big-endian. In a large group in which many talk, every packet has a hundred changes or more. A column is read and
written by one call, whatever its length; varints take some steps of Python each. Widths are the least that do, so
that everything has one form.
"""

from collections.abc import Sequence
from struct import pack, unpack_from

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import PAIRS_MAX, Columns, Delta
from inga.wire import varint
from inga.wire.vector import get_pairs, put_delta

FORMS = "BHIQ"  # by width
BYTES = bytes(range(256))


def put_changes(out: bytearray, delta: Delta) -> None:
    """Append changes, which are in the order of their members."""
    if len(delta) <= PAIRS_MAX:
        put_delta(out, tuple(delta))
        return
    varint.put(out, len(delta))
    columns = delta if isinstance(delta, Columns) else Columns(*zip(*delta, strict=True))
    members, counts = _width(columns.members[-1]), _width(max(columns.counts))
    out.append(members << 4 | counts)
    _put_column(out, columns.members, members)
    _put_column(out, columns.counts, counts)


def get_changes(data: Buffer, at: int, src: int, members: int) -> tuple[Delta, int]:
    """The changes in a stamp of `src`, one of so many members, and where the next thing begins."""
    changes, at = varint.get(data, at)
    if changes <= PAIRS_MAX:
        return get_pairs(data, at, changes, members, src)
    if changes >= members:
        raise WireError("malformed", f"a stamp with {changes} changes among {members} members")
    widths, at = varint.get(data, at)
    if widths > 0x33 or widths & 0xC:
        raise WireError("malformed", f"columns of widths {widths:#x}")
    named, at = _get_column(data, at, changes, widths >> 4)
    counts, at = _get_column(data, at, changes, widths & 3)
    if named[-1] >= members or src in named or 0 in counts or not _is_ascending(named):
        raise WireError("malformed", f"a stamp of member {src} with {list(counts)} of {list(named)}")
    return Columns(named, counts), at


def _width(highest: int) -> int:
    return ((highest.bit_length() - 1) >> 3).bit_length() if highest else 0


def _put_column(out: bytearray, numbers: Sequence[int], width: int) -> None:
    out += pack(f">{len(numbers)}{FORMS[width]}", *numbers) if width else bytes(numbers)


def _get_column(data: Buffer, at: int, size: int, width: int) -> tuple[Sequence[int], int]:
    end = at + (size << width)
    if end > len(data):
        raise WireError("truncated", "in the middle of a column")
    if not width:
        return bytes(data[at:end]), end
    numbers = unpack_from(f">{size}{FORMS[width]}", data, at)
    if not any(number >> (4 << width) for number in numbers):
        raise WireError("malformed", "a column that is wider than it needs to be")
    return numbers, end


def _is_ascending(numbers: Sequence[int]) -> bool:
    if isinstance(numbers, bytes):  # all bytes but those that are not among them: each once, sorted
        return BYTES.translate(None, BYTES.translate(None, numbers)) == numbers
    return sorted(set(numbers)) == list(numbers)
