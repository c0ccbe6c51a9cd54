"""The topmost layer of a stack whose messages are whole GIOP requests: an ORB puts it on the layers of MIOP."""

from inga.corba.multicast.fragments import MiopFragments, refuse_large, the
from inga.corba.wire.group_request import decode_request
from inga.corba.wire.miop import quad
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.stack.layer import Layer


@mypyc_attr(allow_interpreted_subclasses=True)
class Requests(Layer):
    """Sends and delivers whole requests. The name of a sender is its number as a dotted quad, empty if it has none.

    Received messages that are no oneway request to a group are counted by their reason and dropped. Which group a request is for,
    and whether it has such an operation, is for the application to check.
    """

    name = "requests"

    def __init__(self, *, echo: bool = False) -> None:
        """`echo`: we receive our own requests, too."""
        self.echo = echo

    def send(self, payloads: list[bytes], dst: int | None) -> Receipt:
        stack = self.stack
        message_max = the(MiopFragments, stack).message_max
        receipt = stack.receipt()
        batch = []
        for message in payloads:
            refuse_large(len(message), message_max)
            _check(message)
            packet = Packet(stack.me, stack.view.number, message)
            packet.at = stack.now
            batch.append(packet)
        batch[-1].receipt = receipt
        if self.echo:
            name = stack.view.names[stack.me]
            for message in payloads:
                self._hand_over(name, Packet(stack.me, stack.view.number, message))
        self.below(batch)
        return receipt

    def up(self, batch: list[Packet]) -> None:
        for packet in batch:
            try:
                decode_request(packet.body)
            except WireError as error:
                self.stack.reject(error.reason)
                continue
            sender = packet.piece.sender
            self._hand_over(quad(sender) if sender else "", packet)

    def _hand_over(self, sender: str, packet: Packet) -> None:
        packet.payloads = [bytes(packet.body)]
        packet.size = len(packet.body)
        packet.body = b""
        self.stack.deliver([packet], sender)


def _check(message: bytes) -> None:
    """Raise if receivers would refuse the message."""
    try:
        decode_request(message)
    except WireError as error:
        raise UsageError(f"not a oneway request to a group: {error}") from None
