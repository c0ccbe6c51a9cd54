"""What one member says to the others in one turn, put together for the packets at its end.

Messages of a turn share a packet, which everybody gets: a message that is for some is short, and costs the others less
than the header by which they would have to learn that they have missed nothing. Of several heartbeats to one member the
newest says all that the others did; if all members are to get one, they are in one packet.
"""

from inga.model.compiled import mypyc_attr
from inga.model.invocation import Heartbeat, Spoken
from inga.wire.invocation import enclose, encode


@mypyc_attr(allow_interpreted_subclasses=True)
class Outbox:
    """Messages, and what may be lost, that leave at the end of this turn."""

    def __init__(self, others: tuple[int, ...], room: int) -> None:
        """`room`: bytes that one packet can carry."""
        self.waiting = 0  # messages
        self._others = others
        self._room = room
        self._parts: list[bytes] = []
        self._size = 0
        self._lossy: list[tuple[tuple[int, ...], bytes]] = []  # for whom, and what, besides
        self._beats: dict[int, Heartbeat] = {}  # by the member that it is for

    def add(self, members: tuple[int, ...], spoken: bytes) -> bytes:
        """Put in a message for these members. If it does not fit, what was here before is to leave now."""
        is_for_all = len(members) == len(self._others)
        part = enclose(spoken, 0 if is_for_all else sum(1 << member for member in members))
        full = self.take() if self._size + len(part) > self._room else b""
        self._parts.append(part)
        self._size += len(part)
        self.waiting += 1
        return full

    def take(self) -> bytes:
        """The body of a packet with all messages that are here."""
        body = b"".join(self._parts)
        self._parts, self._size, self.waiting = [], 0, 0
        return body

    def add_lossy(self, members: tuple[int, ...], spoken: Spoken) -> None:
        """Put in what may be lost. A later heartbeat says all that an earlier one did, but that an answer is wanted."""
        if not isinstance(spoken, Heartbeat):
            self._lossy.append((members, enclose(encode(spoken))))
            return
        (member,) = members
        earlier = self._beats.get(member)
        is_wanted = earlier is not None and earlier.wanted
        self._beats[member] = spoken._replace(wanted=True) if is_wanted else spoken

    def take_lossy(self) -> list[tuple[tuple[int, ...], bytes]]:
        """The bodies of packets with all of it, and the members for whom each is."""
        lossy, self._lossy = self._lossy, []
        beats, self._beats = self._beats, {}
        if len(beats) == len(self._others) > 1:
            parts = [enclose(encode(beat), 1 << member) for member, beat in beats.items()]
            lossy.append((self._others, b"".join(parts)))
        else:
            lossy += [((member,), enclose(encode(beat))) for member, beat in beats.items()]
        return lossy
