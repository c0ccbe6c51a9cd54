"""What SCO adds to a packet: what its sender has accepted and has room for, and the link sequence numbers of a copy that is for
several members at once.

    free    buffers that the sender has left
    have    the lsn expected next on the link in the other direction; 1 if that is unknown
    acks    number of entries, then (index gap, expected) each
    lsns    encoded alike, (index gap, lsn) of every destination; only if one datagram is for all of them
    noted   one more than the number of members that messages of others may not have reached yet, then for each
            (index gap, (source, seq) encoded as acks); 0: unknown
    places  only if destinations get different messages: see `wire.shares`

Empty parts at the end, behind the acks, are left out.

All this is in the extension of a packet, since no other order uses it.
"""

from functools import lru_cache
from typing import NamedTuple

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import MemberNumbers, Noted
from inga.wire import shares, varint
from inga.wire.vector import get_some, put_delta


class Extension(NamedTuple):
    """The unpacked extension."""

    free: int
    have: int
    acks: MemberNumbers
    lsns: MemberNumbers
    noted: Noted | None
    places: bytes


def pack(
    free: int,
    have: int,
    acks: MemberNumbers,
    lsns: MemberNumbers = (),
    noted: Noted | None = None,
    places: bytes = b"",
) -> bytes:
    """The extension of a data, control or request packet."""
    out = bytearray()
    varint.put(out, free)
    varint.put(out, have)
    put_delta(out, acks)
    is_noted = noted is not None or places
    if lsns or is_noted:
        put_delta(out, lsns)
    if is_noted:
        out += _packed(noted)
    out += places
    return bytes(out)


def unpack(extension: Buffer, members: int) -> Extension:
    """Read what `pack` made; of the places only the length is checked. Any other bytes raise WireError."""
    free, at = varint.get(extension, 0)
    have, at = varint.get(extension, at)
    acks, at = get_some(extension, at, members)
    lsns: MemberNumbers = ()
    noted: Noted | None = None
    end = len(extension)
    if at < end:
        lsns, at = get_some(extension, at, members)
        if at < end:
            noted, at = _get_noted(extension, at, members)
            if noted is None and at == end:
                raise WireError("malformed", "nothing is said of what is under way")
        elif not lsns:
            raise WireError("malformed", "numbers of nobody")
    places = bytes(extension[at:])
    if places:
        shares.check(places, members)
    return Extension(free, have, acks, lsns, noted, places)


@lru_cache(maxsize=16)  # all copies of a message have the same
def _packed(noted: Noted | None) -> bytes:
    out = bytearray()
    varint.put(out, 0 if noted is None else len(noted) + 1)
    previous = -1
    for member, numbers in noted or ():
        varint.put(out, member - previous - 1)
        put_delta(out, numbers)
        previous = member
    return bytes(out)


def _get_noted(data: Buffer, at: int, members: int) -> tuple[Noted | None, int]:
    count, at = varint.get(data, at)
    if not count:
        return None, at
    noted = []
    member = -1
    for _ in range(count - 1):
        gap, at = varint.get(data, at)
        member += gap + 1
        numbers, at = get_some(data, at, members)
        if member >= members or not numbers:
            raise WireError("malformed", f"nothing that is under way to member {member}")
        noted.append((member, numbers))
    return tuple(noted), at
