"""What CO adds to a packet: which packets its sender has of each member, its free buffers, and what it confirms or lacks.

    parts      bit set of what follows the free buffers
    free       buffers that the sender has left
    expected   the number that it expects next from each member,
    rises      or the increase of that since its packet before: always one of the two, see `vector`
    confirmed  in a confirmation: for each member, the number below which it has confirmed all packets
    runs       in a nack: the numbers that it lacks

All this is in the extension of a packet, since no other order uses it.
"""

from typing import NamedTuple

from inga.model.errors import WireError
from inga.model.packet import Buffer, Runs
from inga.model.stamp import MemberNumbers
from inga.wire import varint, vector
from inga.wire.runs import get_runs, put_runs

EXPECTED, RISES, CONFIRMED, RUNS = (1 << bit for bit in range(4))


class CoExtension(NamedTuple):
    """The extension of a packet of CO. None: that part is absent."""

    free: int
    expected: tuple[int, ...] | None = None
    rises: MemberNumbers | None = None
    confirmed: tuple[int, ...] | None = None
    runs: Runs | None = None


def pack(section: CoExtension) -> bytes:
    """The extension of a data packet, a confirmation or a nack."""
    free, expected, rises, confirmed, runs = section
    parts = 0
    out = bytearray(1)
    varint.put(out, free)
    if expected is not None:
        parts |= EXPECTED
        vector.put_vector(out, expected)
    if rises is not None:
        parts |= RISES
        vector.put_delta(out, rises)
    if confirmed is not None:
        parts |= CONFIRMED
        vector.put_vector(out, confirmed)
    if runs is not None:
        parts |= RUNS
        put_runs(out, runs)
    out[0] = parts
    return bytes(out)


def unpack(extension: Buffer, src: int, members: int) -> CoExtension:
    """Read what `pack` made; any other bytes raise WireError."""
    parts, at = varint.get(extension, 0)
    free, at = varint.get(extension, at)
    expected = rises = confirmed = runs = None
    if parts & EXPECTED:
        expected, at = vector.get_vector(extension, at, members)
    if parts & RISES:
        rises, at = vector.get_delta(extension, at, src, members)
    if parts & CONFIRMED:
        confirmed, at = vector.get_vector(extension, at, members)
    if parts & RUNS:
        runs, at = get_runs(extension, at)
    if at != len(extension) or parts > 15 or (expected is None) == (rises is None):
        raise WireError("malformed", f"parts {parts:04b} in {len(extension)} bytes of {members} members")
    return CoExtension(free, expected, rises, confirmed, runs)
