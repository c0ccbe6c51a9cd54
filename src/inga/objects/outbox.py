"""The messages of one turn, joined to packets at its end.

Messages of a turn share a packet that all other members get. A message in it that is for some of them is short: to skip
it costs the rest less than the header that they would otherwise need, so that they miss no number. Of several heartbeats
to one member only the newest is sent, which has all that the others had; heartbeats to all others share a packet.
"""

from inga.model.compiled import mypyc_attr
from inga.model.invocation import Heartbeat, Spoken
from inga.wire.invocation import enclose, encode


@mypyc_attr(allow_interpreted_subclasses=True)
class Outbox:
    """The messages that leave at the end of this turn, and the packets besides that may be lost."""

    def __init__(self, others: tuple[int, ...], room: int) -> None:
        """`room`: bytes that one packet can carry."""
        self.waiting = 0  # how many messages are here
        self._others = others
        self._room = room
        self._parts: list[bytes] = []
        self._size = 0
        self._lossy: list[tuple[tuple[int, ...], bytes]] = []  # other than heartbeats: members, body
        self._beats: dict[int, Heartbeat] = {}  # by destination

    def add(self, members: tuple[int, ...], spoken: bytes) -> bytes:
        """Add a message for these members. If there is no room, returns the packet body with all messages before it, which has
        to be sent now; otherwise an empty body."""
        is_for_all = len(members) == len(self._others)
        part = enclose(spoken, 0 if is_for_all else sum(1 << member for member in members))
        full = self.take() if self._size + len(part) > self._room else b""
        self._parts.append(part)
        self._size += len(part)
        self.waiting += 1
        return full

    def take(self) -> bytes:
        """Remove all messages, and return the body of a packet with them."""
        body = b"".join(self._parts)
        self._parts, self._size, self.waiting = [], 0, 0
        return body

    def add_lossy(self, members: tuple[int, ...], spoken: Spoken) -> None:
        """Add a packet that may be lost. A later heartbeat replaces an earlier one, but keeps its request for an answer."""
        if not isinstance(spoken, Heartbeat):
            self._lossy.append((members, enclose(encode(spoken))))
            return
        (member,) = members
        earlier = self._beats.get(member)
        is_wanted = earlier is not None and earlier.wanted
        self._beats[member] = spoken._replace(wanted=True) if is_wanted else spoken

    def take_lossy(self) -> list[tuple[tuple[int, ...], bytes]]:
        """Remove the packets that may be lost, and return their destinations and bodies."""
        lossy, self._lossy = self._lossy, []
        beats, self._beats = self._beats, {}
        if len(beats) == len(self._others) > 1:
            parts = [enclose(encode(beat), 1 << member) for member, beat in beats.items()]
            lossy.append((self._others, b"".join(parts)))
        else:
            lossy += [((member,), enclose(encode(beat))) for member, beat in beats.items()]
        return lossy
