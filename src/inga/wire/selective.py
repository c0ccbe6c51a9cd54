"""What SCO adds to a packet: what its sender has accepted, and the numbers of a copy that is for several at once.

    acks    number of entries, then (index gap, expected) each
    lsns    the same, (index gap, lsn) of every destination; only where one datagram is for all of them

Both travel in the extension of a packet, since no other order has a use for them.
"""

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import Delta
from inga.wire.vector import get_some, put_delta


def pack(acks: Delta, lsns: Delta = ()) -> bytes:
    """The extension of a data, control or request packet."""
    out = bytearray()
    put_delta(out, acks)
    if lsns:
        put_delta(out, lsns)
    return bytes(out)


def unpack(extension: Buffer, members: int) -> tuple[Delta, Delta]:
    """Acks and lsns; anything else raises WireError."""
    acks, at = get_some(extension, 0, members)
    lsns: Delta = ()
    if at < len(extension):
        lsns, at = get_some(extension, at, members)
        if not lsns or at != len(extension):
            raise WireError("malformed", "more than acks and lsns")
    return acks, lsns
