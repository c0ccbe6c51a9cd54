"""What SCO adds to a packet: what its sender has accepted and has room for, and the numbers of a copy that is for
several at once.

    free    buffers its sender has left
    have    the lsn expected next on the link the other way; 1 where that is not known
    acks    number of entries, then (index gap, expected) each
    lsns    the same, (index gap, lsn) of every destination; only where one datagram is for all of them
    noted   one more than the number of members to which messages of others may be under way, then of each
            (index gap, (source, seq) as acks); 0: that is not known
    places  only where destinations get different messages: see `wire.shares`

What follows the acks is left out from where nothing is said.

They travel in the extension of a packet, since no other order has a use for them.
"""

from functools import lru_cache
from typing import NamedTuple

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.stamp import MemberNumbers, Noted
from inga.wire import shares, varint
from inga.wire.vector import get_some, put_delta


class Extension(NamedTuple):
    """What was packed."""

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
    """What was packed, places unread but for their length; anything else raises WireError."""
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


@lru_cache(maxsize=16)  # the copies of a message have the same
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
