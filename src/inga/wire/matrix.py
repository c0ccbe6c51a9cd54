"""The stamp of a matrix order. It is a part of the body, so that members that do not get the body do not get the stamp either.

    vector   one number per member: the causal past
    count    of the entries that follow
    entries  (gap, value) each: how many messages k has sent to j, for the cell k * members + j

Cells are in ascending order, each as its distance from the one before, less 1. All numbers are varints.
"""

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import Cells, Deps
from inga.wire import varint
from inga.wire.packet import COUNT_MAX


def put(deps: Deps, cells: Cells) -> bytes:
    """The bytes of a stamp; `cells` are sorted."""
    out = bytearray()
    members = len(deps)
    for number in deps:
        varint.put(out, number)
    varint.put(out, len(cells))
    previous = -1
    for k, j, value in cells:
        cell = k * members + j
        varint.put(out, cell - previous - 1)
        varint.put(out, value)
        previous = cell
    return bytes(out)


def get(data: Buffer, members: int) -> tuple[Deps, Cells, int]:
    """The stamp in front of a body, and the offset at which the rest begins. Raises WireError for invalid bytes."""
    at = 0
    vector: list[int] = []
    for _ in range(members):
        number, at = _count(data, at)
        vector.append(number)
    count, at = varint.get(data, at)
    if count > members * (members - 1):
        raise WireError("malformed", f"{count} entries of a matrix of {members} members")
    cells: list[tuple[int, int, int]] = []
    cell = -1
    for _ in range(count):
        gap, at = varint.get(data, at)
        value, at = _count(data, at)
        cell += gap + 1
        k, j = divmod(cell, members)
        if k >= members or k == j or not value:
            raise WireError("malformed", f"an entry ({k}, {j}) = {value} among {members} members")
        cells.append((k, j, value))
    return tuple(vector), tuple(cells), at


def _count(data: Buffer, at: int) -> tuple[int, int]:
    number, at = varint.get(data, at)
    if number > COUNT_MAX:
        raise WireError("malformed", f"a count of {number}")
    return number, at
