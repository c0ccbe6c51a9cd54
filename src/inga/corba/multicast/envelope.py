"""Carries packets in requests to a group: as the argument of one oneway operation, for any program that reads GIOP.

    request    GIOP 1.2, to the group "inga" of this number at its multicast address, operation `inga`, one
               argument: the packet's own encoding as sequence<octet>

Every packet goes to all members, also one that is for one or some of them: a group has one address. The other members
read its header and ignore the rest.
"""

from functools import lru_cache

from inga.corba.multicast.fragments import STRANGER
from inga.corba.wire.giop import Tagged
from inga.corba.wire.group_request import Oneway, decode_request, read_octets
from inga.corba.wire.reference import GroupIdentity, Uipmc, encode_group, encode_uipmc
from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.packet import Buffer, Packet
from inga.model.view import View
from inga.recipes.options import PLACE
from inga.session.session import Session
from inga.stack.layer import Layer
from inga.wire.packet import OUTSIDE

DOMAIN = "inga"
OPERATION = "inga"
REQUEST_IDS = 1 << 32


@mypyc_attr(allow_interpreted_subclasses=True)
class Envelope(Layer):
    """Wraps packets that leave in requests, and unwraps those that arrive."""

    name = "envelope"
    transparent = True

    def __init__(self, *, receipts: bool = True, place: tuple[str, int] = PLACE) -> None:
        """`receipts`: layers below may confirm them. `place`: the address of the group that requests name."""
        self.receipts = receipts
        self.place = place
        self._request_id = 0

    def view(self, view: View) -> None:
        self.profile = self._profile(self.stack.group)
        self.lobby = self._profile(self.stack.lobby)

    def inherit(self, before: Layer) -> None:
        assert isinstance(before, Envelope)
        self._request_id = before._request_id

    def _profile(self, number: int) -> Tagged:
        """The profile by which a request names the group of this number."""
        return encode_uipmc(Uipmc(*self.place, components=(encode_group(GroupIdentity(DOMAIN, number)),)))

    def down(self, batch: list[Packet]) -> None:
        out = []
        for packet in self.stack.wire.sayable(batch):
            # Not so for lent packets: members other than the borrower may lack them, too, and must not take them for bare headers.
            if packet.to is not None and packet.dst is None and not packet.lent:
                packet.dst = 1 << packet.to
            if packet.encoded is None:
                packet.encoded = [self.stack.wire.encode(packet), None]
            data = packet.encoded[0]
            wrap = oneway_requests(self.lobby if packet.view == OUTSIDE else self.profile).encode
            self._request_id = (self._request_id + 1) % REQUEST_IDS
            octets = b"".join(data) if isinstance(data, list) else data
            # The session repeats its control messages by itself, and they must not wait for any member: to the layers
            # below they are like packets that belong to no view.
            is_said = packet.kind == Session.id
            if is_said and packet.dst is None and packet.view != OUTSIDE:
                self.stack.wire.spoke()
            view = OUTSIDE if is_said else packet.view
            message = Packet(packet.src, view, wrap(self._request_id, octets), kind=packet.kind)
            message.at = packet.at
            if self.receipts:
                message.receipt = packet.receipt
            out.append(message)
        self.below(out)

    def up(self, batch: list[Packet]) -> None:
        unwrap = oneway_requests(self.profile).decode
        out: list[Packet] = []
        for message in batch:
            try:
                known = unwrap(message.body)
                octets = self._argument(message.body) if known is None else known[1]
            except WireError as error:
                self.stack.reject(error.reason)
                continue
            is_hearsay = bool(message.piece.sender)  # it has a number, so any member may have repaired it
            for packet in self.stack.wire.read([(octets, message.where)], is_hearsay=is_hearsay):
                if message.src in (STRANGER, packet.src) or packet.view == OUTSIDE or packet.lent:
                    out.append(packet)
                else:
                    self.stack.reject("stranger")  # a packet under another member's number
        if out:
            self.above(out)

    def _argument(self, message: Buffer) -> bytes:
        """The argument of a request that is not encoded octet by octet as ours, but may still be for our group."""
        request = decode_request(message)
        known = [GroupIdentity(DOMAIN, number)[:3] for number in (self.stack.group, self.stack.lobby)]
        if request.group[:3] not in known:
            raise WireError("no_such_group", f"{request.group}")
        if request.operation != OPERATION:
            raise WireError("bad_operation", request.operation)
        return read_octets(request.arguments)


@lru_cache(maxsize=64)
def oneway_requests(profile: Tagged) -> Oneway:
    """The encoder and decoder of the requests that carry packets of a group."""
    return Oneway(profile, OPERATION)
