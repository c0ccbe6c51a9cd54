"""Packets of ours as requests to a group: the argument of one oneway operation, for whoever reads GIOP.

    request    GIOP 1.2, to the group "inga" of this number at its multicast address, operation `inga`, one
               argument: the packet's own encoding as sequence<octet>

Everything goes to everybody, also what is for one member or some: a group has one address. Who is not meant
reads the header and passes over the rest.
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
    """Wraps what leaves, unwraps what comes in."""

    name = "envelope"
    transparent = True

    def __init__(self, *, receipts: bool = True, place: tuple[str, int] = PLACE) -> None:
        """`receipts`: those beneath may confirm them. `place`: where the group is, as requests say."""
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
        """The group of this number, as a request names it."""
        return encode_uipmc(Uipmc(*self.place, components=(encode_group(GroupIdentity(DOMAIN, number)),)))

    def down(self, batch: list[Packet]) -> None:
        out = []
        for packet in self.stack.wire.sayable(batch):
            # What is lent to one member may be news for others, too, and is no header without a body to them.
            if packet.to is not None and packet.dst is None and not packet.lent:
                packet.dst = 1 << packet.to
            if packet.encoded is None:
                packet.encoded = [self.stack.wire.encode(packet), None]
            data = packet.encoded[0]
            wrap = oneway_requests(self.lobby if packet.view == OUTSIDE else self.profile).encode
            self._request_id = (self._request_id + 1) % REQUEST_IDS
            octets = b"".join(data) if isinstance(data, list) else data
            # The session repeats its words by itself, and they are not to wait for anybody: to those below they are
            # like what belongs to no view.
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
            is_hearsay = bool(message.piece.sender)  # it has a number, so that anybody may repair it
            for packet in self.stack.wire.read([(octets, message.where)], is_hearsay=is_hearsay):
                if message.src in (STRANGER, packet.src) or packet.view == OUTSIDE or packet.lent:
                    out.append(packet)
                else:
                    self.stack.reject("stranger")  # a packet under another's number
        if out:
            self.above(out)

    def _argument(self, message: Buffer) -> bytes:
        """Of a request that is not the usual one to the octet, but may still be for us."""
        request = decode_request(message)
        known = [GroupIdentity(DOMAIN, number)[:3] for number in (self.stack.group, self.stack.lobby)]
        if request.group[:3] not in known:
            raise WireError("no_such_group", f"{request.group}")
        if request.operation != OPERATION:
            raise WireError("bad_operation", request.operation)
        return read_octets(request.arguments)


@lru_cache(maxsize=64)
def oneway_requests(profile: Tagged) -> Oneway:
    """The requests by which packets of a group travel."""
    return Oneway(profile, OPERATION)
