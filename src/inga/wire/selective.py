"""What SCO adds to a packet: what its sender has accepted and has room for, and the numbers of a copy that is for
several at once.

    free    buffers its sender has left
    have    the lsn expected next on the link the other way; 1 where that is not known
    acks    number of entries, then (index gap, expected) each
    lsns    the same, (index gap, lsn) of every destination; only where one datagram is for all of them

They travel in the extension of a packet, since no other order has a use for them.
"""

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import MemberNumbers
from inga.wire import varint
from inga.wire.vector import get_some, put_delta


def pack(free: int, have: int, acks: MemberNumbers, lsns: MemberNumbers = ()) -> bytes:
    """The extension of a data, control or request packet."""
    out = bytearray()
    varint.put(out, free)
    varint.put(out, have)
    put_delta(out, acks)
    if lsns:
        put_delta(out, lsns)
    return bytes(out)


def unpack(extension: Buffer, members: int) -> tuple[int, int, MemberNumbers, MemberNumbers]:
    """What was packed; anything else raises WireError."""
    free, at = varint.get(extension, 0)
    have, at = varint.get(extension, at)
    acks, at = get_some(extension, at, members)
    lsns: MemberNumbers = ()
    if at < len(extension):
        lsns, at = get_some(extension, at, members)
        if not lsns or at != len(extension):
            raise WireError("malformed", "more than acks and lsns")
    return free, have, acks, lsns
