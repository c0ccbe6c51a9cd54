"""Packets of departed members, as SCO lends them. Each destination of a packet in shares has other messages of it: all
members that have messages which were also for another member lend it these, and it joins what several members lend."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from inga.layers.sco.ordering import members_of
from inga.layers.sco.parts import ScoMessage
from inga.model.errors import WireError
from inga.model.packet import Buffer, Packet
from inga.model.stamp import Noted
from inga.stack.hooks import Holdings
from inga.wire import bundle, shares
from inga.wire.selective import pack, unpack

PlacedBody = tuple[int, int, Buffer]
"""A message of a packet in shares: its place in the packet, its destinations, and its body."""


def placed(packet: Packet, members: int) -> list[shares.Addressed]:
    """The place and the destinations of each message in our share of a packet; empty, if the packet is not in shares."""
    try:
        places = unpack(packet.ext or b"", members).places
        return shares.get(places, members) if places else []
    except WireError:
        return []  # invalid; its sender has departed and cannot repeat it


def rows_of(messages: Iterable[ScoMessage], whole: int, share: int, members: int) -> Holdings:
    """Holdings, by which the leader deals out packets: a row (number, destination, kind) for each destination of each message.
    The kind is `share` for a packet in shares, otherwise `whole`."""
    rows: Holdings = []
    for message in messages:
        found = placed(message.body, members)
        bits = reduce(or_, [dst for _, dst in found]) if found else message.dst
        kind = share if found else whole
        rows += [[message.seq, member, kind] for member in members_of(bits & ~(1 << message.src))]
    return rows


def fill(packet: Packet, messages: list[PlacedBody], noted: Noted | None, me: int, members: int) -> None:
    """Give a packet that `me` lends these messages, with their places and destinations."""
    packet.payloads, packet.count = [payload for _, _, payload in messages], len(messages)
    places = shares.put([(place, dst) for place, dst, _ in messages], members)
    packet.ext = pack(me, 1, (), (), noted, places)


def joined(packets: list[Packet], me: int, members: int) -> Packet:
    """Join the parts of one packet that other members lent us."""
    found: dict[int, PlacedBody] = {}
    for packet in packets:
        if places := placed(packet, members):
            payloads = bundle.split(packet.body)
            found |= {each[0]: (*each, payload) for each, payload in zip(places, payloads, strict=True)}
    whole = next((packet for packet in packets if packet.stamp is not None), packets[0])
    if found:
        messages = [found[place] for place in sorted(found)]
        fill(whole, messages, unpack(whole.ext or b"", members).noted, me, members)
        whole.body, whole.payloads = bundle.join([bytes(each) for _, _, each in messages]), None
    return whole
