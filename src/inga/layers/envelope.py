"""Packets of ours as requests to a group: the argument of one oneway operation, for whoever reads GIOP.

    request    GIOP 1.2, to the group "inga" of this number at its multicast address, operation `inga`, one
               argument: the packet's own encoding as sequence<octet>
    greeting   with `greet`, who we are and where our numbers begin, until we have heard the same of everybody
    goodbye    we leave, nobody need wait for us

Everything goes to everybody, also what is for one member or some: a group has one address. Who is not meant
reads the header and passes over the rest.
"""

from functools import lru_cache

from inga.layers.miop import STRANGER, MiopFragments, Strategy
from inga.model.errors import WireError
from inga.model.packet import Buffer, Packet
from inga.model.view import View
from inga.stack.layer import Layer
from inga.wire.giop import Tagged
from inga.wire.packet import decode, encode
from inga.wire.reference import Group, Uipmc, encode_group, encode_uipmc
from inga.wire.request import Oneway, decode_request, read_octets

DOMAIN = "inga"
OPERATION = "inga"
GOODBYE = b"goodbye"
REQUEST_IDS = 1 << 32

GREET, GREET_MAX = 0.02, 1.0
"""Seconds before a greeting is repeated: first, and after doubling."""

PLACE = ("239.7.7.7", 7400)


class Envelope(Layer):
    """Wraps what leaves, unwraps what comes in; knows who has come and who has left."""

    name = "envelope"
    id = 9
    transparent = True

    def __init__(self, *, greet: bool = False, receipts: bool = True, place: tuple[str, int] = PLACE) -> None:
        """`receipts`: those beneath may confirm them. `place`: where the group is, as requests say."""
        self.greet = greet
        self.receipts = receipts
        self.place = place

    def view(self, view: View) -> None:
        stack = self.stack
        self.group = Group(DOMAIN, stack.group)
        self.profile = encode_uipmc(Uipmc(*self.place, components=(encode_group(self.group),)))
        self._request_id = 0
        found = stack.layer("fragments")
        assert isinstance(found, MiopFragments)
        self._fragments = found
        self._strategy = next((layer for layer in stack.layers if isinstance(layer, Strategy)), None)
        self._unheard = set(stack.others()) if self.greet else set()
        self._wait = GREET
        self._told_at = float("-inf")
        self.wake = stack.now if self._unheard else None

    def down(self, batch: list[Packet]) -> None:
        wrap, group = oneway(self.profile).encode, self.stack.group
        out = []
        for packet in batch:
            if packet.encoded is None:
                packet.encoded = [encode(packet, group), None]
            data = packet.encoded[0]
            self._request_id = (self._request_id + 1) % REQUEST_IDS
            octets = b"".join(data) if isinstance(data, list) else data
            message = Packet(packet.src, packet.view, wrap(self._request_id, octets), kind=packet.kind)
            message.at = packet.at
            if self.receipts:
                message.receipt = packet.receipt
            out.append(message)
        self.below(out)

    def up(self, batch: list[Packet]) -> None:
        stack = self.stack
        unwrap = oneway(self.profile).decode
        group, sizes, me = stack.group, stack.sizes, stack.me
        out = []
        for message in batch:
            try:
                known = unwrap(message.body)
                octets = self._argument(message.body) if known is None else known[1]
                packet = decode(octets, group, sizes, me)
                if packet is None:
                    continue
                if message.src not in (STRANGER, packet.src):
                    raise WireError("stranger", "a packet under another's number")
            except WireError as error:
                stack.reject(error.reason)
                continue
            out.append(packet)
        if out:
            self.above(out)

    def _argument(self, message: Buffer) -> bytes:
        """Of a request that is not the usual one to the octet, but may still be for us."""
        request = decode_request(message)
        if request.group[:3] != self.group[:3]:
            raise WireError("no_such_group", f"{request.group}")
        if request.operation != OPERATION:
            raise WireError("bad_operation", request.operation)
        return read_octets(request.arguments)

    # Who is here

    def control(self, packet: Packet) -> None:
        if packet.ext == GOODBYE:
            self._unheard.discard(packet.src)
            self.stack.gone(packet.src)
            return
        self._unheard.discard(packet.src)
        if self._strategy is not None:
            self._strategy.begins(packet.src, packet.lsn)
        if packet.urgent and self.stack.now - self._told_at >= GREET:
            self._tell(urgent=False)  # to all: who asked a moment after another has its answer

    def gone(self, member: int) -> None:
        self._unheard.discard(member)

    def tick(self, now: float) -> None:
        if not self._unheard:
            self.wake = None
            return
        self._tell(urgent=True)
        self._wait = min(2 * self._wait, GREET_MAX)
        self.wake = now + self._wait * (1 + 0.25 * self.stack.rng.random())

    def goodbye(self) -> None:
        self.wake = None
        packet = Packet(self.stack.me, self.stack.view.number, kind=self.id)
        packet.ext = GOODBYE
        self.down([packet])

    def _tell(self, *, urgent: bool) -> None:
        """Here we are; `urgent`: who else is?"""
        packet = Packet(self.stack.me, self.stack.view.number, kind=self.id)
        self._told_at = self.stack.now
        packet.lsn = self._fragments.first
        packet.urgent = urgent
        self.down([packet])


@lru_cache(maxsize=64)
def oneway(profile: Tagged) -> Oneway:
    """The requests by which packets of a group travel."""
    return Oneway(profile, OPERATION)
