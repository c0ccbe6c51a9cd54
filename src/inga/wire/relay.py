"""The original sender and the destinations of a relayed packet, in the packet's extension.

    src   index of the member that sent it
    seq   which of that member's packets it is
    size  bytes of the bit set that follows; 0 = all members but the sender
    dst   little-endian bit set over the view

All but the bit set are varints.
"""

from typing import NamedTuple

from inga.model.errors import WireError
from inga.wire import varint
from inga.wire.packet import COUNT_MAX


class Origin(NamedTuple):
    """Sender, number and destinations of a packet before it was relayed."""

    src: int
    seq: int
    dst: int | None


def put(origin: Origin) -> bytes:
    out = bytearray()
    varint.put(out, origin.src)
    varint.put(out, origin.seq)
    bits = b"" if origin.dst is None else origin.dst.to_bytes((origin.dst.bit_length() + 7) // 8, "little")
    varint.put(out, len(bits))
    return bytes(out) + bits


def get(data: bytes, members: int) -> Origin:
    """The origin in an extension. Raises WireError for invalid bytes."""
    src, at = varint.get(data, 0)
    seq, at = varint.get(data, at)
    size, at = varint.get(data, at)
    if src >= members:
        raise WireError("stranger", f"origin {src} of {members} members")
    if not 0 < seq <= COUNT_MAX:
        raise WireError("malformed", f"seq {seq}")
    if at + size != len(data):
        raise WireError("length", f"an origin of {len(data)} bytes, announced {at + size}")
    if not size:
        return Origin(src, seq, None)
    dst = int.from_bytes(data[at:], "little")
    if not dst or dst >> members:
        raise WireError("malformed", f"destinations {dst:#b} of {members} members")
    return Origin(src, seq, dst)
