"""One number per member: in full, or as increases since the vector before it.

If the receiver has the sender's previous vector, a vector is sent as its rises: their number, then for each the gap to
the member before it, and the increase. Idle members cost nothing. The sender's own entry is never among
them, since it follows from the packet's number.

    full     a number per member; in groups of more than `FEW` a width, and a column, see `columns`
    delta    number of rises, then (index gap, rise) each
    some     encoded alike: absolute numbers of any members, also of the sender
"""

from collections.abc import Sequence

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import FEW, MemberNumbers
from inga.wire import varint
from inga.wire.columns import get_column, put_column, width_of

NOBODY = -1
"""An index that no member has."""


def put_vector(out: bytearray, numbers: Sequence[int]) -> None:
    """Append a full vector."""
    if len(numbers) > FEW:
        width = width_of(max(numbers))
        out.append(width)
        put_column(out, numbers, width)
        return
    put = varint.put
    for number in numbers:
        put(out, number)


def get_vector(data: Buffer, at: int, members: int) -> tuple[tuple[int, ...], int]:
    """A full vector, and the offset behind it."""
    get = varint.get
    if members > FEW:
        width, at = get(data, at)
        column, at = get_column(data, at, members, width)
        return tuple(column), at
    numbers = []
    for _ in range(members):
        number, at = get(data, at)
        numbers.append(number)
    return tuple(numbers), at


def put_delta(out: bytearray, delta: MemberNumbers) -> None:
    """Append rises, which are in ascending order of their members."""
    put = varint.put
    put(out, len(delta))
    previous = -1
    for index, rise in delta:
        put(out, index - previous - 1)
        put(out, rise)
        previous = index


def get_delta(data: Buffer, at: int, src: int, members: int) -> tuple[MemberNumbers, int]:
    """The rises, and the offset behind them."""
    size, at = varint.get(data, at)
    return get_pairs(data, at, size, members, src)


def get_some(data: Buffer, at: int, members: int) -> tuple[MemberNumbers, int]:
    """Numbers of some members, none of them 0, and the offset behind them."""
    size, at = varint.get(data, at)
    return get_pairs(data, at, size, members, NOBODY)


def get_pairs(data: Buffer, at: int, size: int, members: int, src: int) -> tuple[MemberNumbers, int]:
    """`size` numbers by member, none of them of `src`, and the offset behind them."""
    if not size:
        return (), at
    if size > members:
        raise WireError("malformed", f"{size} numbers of {members} members")
    get = varint.get
    pairs = []
    index = -1
    last = len(data) - 1
    for _ in range(size):
        if at < last and data[at] < 0x80 and data[at + 1] < 0x80:  # nearly always
            gap, number, at = data[at], data[at + 1], at + 2
        else:
            gap, at = get(data, at)
            number, at = get(data, at)
        index += gap + 1
        if index >= members or index == src or not number:
            raise WireError("malformed", f"{number} of member {index}")
        pairs.append((index, number))
    return tuple(pairs), at
