"""One number per member: in full, or as what rose since the vector before it.

A vector whose receiver has the sender's previous one travels as its rises: how many, then for each the gap to
the member before it, and by how much. Members who are idle cost nothing. The sender's own entry is never among
them, since the packet's number says it.

    full     a number per member
    delta    number of rises, then (index gap, rise) each
"""

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import Delta
from inga.wire import varint


def get_vector(data: Buffer, at: int, members: int) -> tuple[tuple[int, ...], int]:
    """A full vector, and where the next thing begins."""
    get = varint.get
    numbers = []
    for _ in range(members):
        number, at = get(data, at)
        numbers.append(number)
    return tuple(numbers), at


def put_delta(out: bytearray, delta: Delta) -> None:
    """Append rises in the order of their members."""
    put = varint.put
    put(out, len(delta))
    previous = -1
    for index, rise in delta:
        put(out, index - previous - 1)
        put(out, rise)
        previous = index


def get_delta(data: Buffer, at: int, src: int, members: int) -> tuple[Delta, int]:
    """Rises, and where the next thing begins."""
    get = varint.get
    changes, at = get(data, at)
    if not changes:
        return (), at
    if changes >= members:
        raise WireError("malformed", f"{changes} rises among {members} members")
    delta = []
    index = -1
    for _ in range(changes):
        gap, at = get(data, at)
        rise, at = get(data, at)
        index += gap + 1
        if index >= members or index == src or not rise:
            raise WireError("malformed", f"a rise by {rise} of member {index}")
        delta.append((index, rise))
    return tuple(delta), at
