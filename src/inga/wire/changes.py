"""The changes in a stamp: few are encoded as pairs, many as a column of members and a column of counts.

number   of changes; up to `FEW` of them are a delta, see `vector`; if there are more:
widths   one byte: the width of the members in the high half, that of the counts in the low half
members  a column, ascending, see `columns`
counts   a column, one for each member
"""

from collections.abc import Sequence

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import FEW, Columns, Delta
from inga.wire import varint
from inga.wire.columns import get_column, put_column, width_of
from inga.wire.vector import get_pairs, put_delta

BYTES = bytes(range(256))


def put_changes(out: bytearray, delta: Delta) -> None:
    """Append changes, which are in ascending order of their members."""
    if len(delta) <= FEW:
        put_delta(out, tuple(delta))
        return
    varint.put(out, len(delta))
    columns = delta if isinstance(delta, Columns) else Columns(*zip(*delta, strict=True))
    members, counts = width_of(columns.members[-1]), width_of(max(columns.counts))
    out.append(members << 4 | counts)
    put_column(out, columns.members, members)
    put_column(out, columns.counts, counts)


def get_changes(data: Buffer, at: int, src: int, members: int) -> tuple[Delta, int]:
    """The changes in a stamp of `src`, in a view of `members` members, and the offset behind them."""
    changes, at = varint.get(data, at)
    if changes <= FEW:
        return get_pairs(data, at, changes, members, src)
    if changes >= members:
        raise WireError("malformed", f"a stamp with {changes} changes among {members} members")
    widths, at = varint.get(data, at)
    named, at = get_column(data, at, changes, widths >> 4)
    counts, at = get_column(data, at, changes, widths & 0xF)
    if named[-1] >= members or _has(named, src) or 0 in counts or not _is_ascending(named):
        raise WireError("malformed", f"a stamp of member {src} with {list(counts)} of {list(named)}")
    return Columns(named, counts), at


def _has(numbers: Sequence[int], number: int) -> bool:
    """Whether `number` is among the numbers. Testing bytes for a number above 255 would raise ValueError."""
    return (number < 256 or not isinstance(numbers, bytes)) and number in numbers


def _is_ascending(numbers: Sequence[int]) -> bool:
    if isinstance(numbers, bytes):  # the bytes that occur in it: each once, in ascending order
        return BYTES.translate(None, BYTES.translate(None, numbers)) == numbers
    return sorted(set(numbers)) == list(numbers)
