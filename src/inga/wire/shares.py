"""Messages of one packet that are not all for the same members: what each destination gets, and how that is encoded.

A share is a bundle of its own, with only the messages for its receiver. Its description of the messages is read only if their
sender is gone: then members that have some messages of a packet lend them to other members that they were for, too.

    sets      their number, less one, then a little-endian bit set each, of as many bytes as the view needs
    messages  their number, less one, then a u16 each: its place among all messages of the packet; then a byte each: its set
"""

from collections.abc import Sequence
from struct import Struct, pack, unpack_from
from typing import NamedTuple

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.wire import bundle

SETS_MAX = 256
"""Destination sets in one packet: a byte tells them apart."""

EACH = 3
"""Bytes for each message in the description."""

HEAD = Struct(">BH")

Addressed = tuple[int, int]
"""A message's place, and the bit set of its destinations."""


class Share(NamedTuple):
    """The messages that one destination gets."""

    body: bytes
    messages: int  # their number
    places: bytes  # their description


def set_size(members: int) -> int:
    """Bytes of one destination set."""
    return (members + 7) // 8


def share_out(payloads: Sequence[bytes], sets: Sequence[int], members: int) -> dict[int, Share]:
    """The share of each destination, with its messages in the order in which they were sent."""
    placed: dict[int, list[Addressed]] = {}
    who = {bits: [m for m in range(members) if bits >> m & 1] for bits in set(sets)}
    for each in enumerate(sets):
        for member in who[each[1]]:
            placed.setdefault(member, []).append(each)
    return {
        member: Share(bundle.join([payloads[place] for place, _ in mine]), len(mine), put(mine, members))
        for member, mine in placed.items()
    }


def put(placed: Sequence[Addressed], members: int) -> bytes:
    """The description of a share's messages."""
    known = {bits: at for at, bits in enumerate(dict.fromkeys([bits for _, bits in placed]))}
    size = set_size(members)
    return b"".join((
        HEAD.pack(len(known) - 1, len(placed) - 1),
        *[bits.to_bytes(size, "little") for bits in known],
        pack(f">{len(placed)}H", *[place for place, _ in placed]),
        bytes([known[bits] for _, bits in placed]),
    ))  # fmt: skip


def check(data: Buffer, members: int) -> tuple[int, int]:
    """The numbers of sets and of messages; WireError if the length does not match them."""
    if len(data) < HEAD.size:
        raise WireError("truncated", "in a share")
    sets, messages = (number + 1 for number in HEAD.unpack_from(data))
    if len(data) != HEAD.size + sets * set_size(members) + EACH * messages:
        raise WireError("malformed", f"{len(data)} bytes about {messages} messages for {sets} sets")
    return sets, messages


def get(data: Buffer, members: int) -> list[Addressed]:
    """Read what `put` made; any other bytes raise WireError."""
    sets, messages = check(data, members)
    size = set_size(members)
    at = HEAD.size + sets * size
    known = [int.from_bytes(data[low : low + size], "little") for low in range(HEAD.size, at, size)]
    places = list(unpack_from(f">{messages}H", data, at))
    chosen = bytes(data[at + 2 * messages :])
    if max(chosen) >= sets or max(known) >> members or places != sorted(set(places)):
        raise WireError("malformed", "a share of messages that cannot be")
    return [(place, known[each]) for place, each in zip(places, chosen, strict=True)]
