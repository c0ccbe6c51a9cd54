"""Plain messages among objects: each is a one-way request to the mailboxes of its destinations.

A member does not see headers of messages to others, so messages are counted for each pair of members.
"""

from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.invocation import ONE_WAY, Message, Spoken
from inga.model.packet import Packet
from inga.objects.hosting import mailbox
from inga.objects.roster import Roster
from inga.wire.packet import COUNT_MAX


@mypyc_attr(allow_interpreted_subclasses=True)
class Mail:
    """Converts the plain messages of one member in one view to requests and back to packets, and counts them."""

    def __init__(self, roster: Roster, me: int, view: int, members: int) -> None:
        self.boxes = [roster.find(mailbox(member))[0] for member in range(members)]  # places, by member
        self.told = [0] * members  # messages of ours to each member, ourselves included
        self.begun = [0] * members  # messages of each member that were released here
        self._me = me
        self._view = view
        self._member_of = roster.member_of

    def request(self, packet: Packet, members: list[int]) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Count a message of ours. Returns the places it goes to, and the request's arguments: the packet's fields and body."""
        for member in members:
            self.told[member] += 1
        said = (packet.seq, packet.count, packet.deps or (), packet.frag or (), bytes(packet.body))
        return tuple(sorted(self.boxes[member] for member in members)), said

    def note(self, said: Spoken, highest: list[int]) -> None:
        """Raise its sender's entry in `highest`, if this is a plain message to us; it may wait long before it is released."""
        if isinstance(said, Message) and self.boxes[self._me] in said.dst and len(said.args) > 1:
            member, seq = self._member_of[said.src], said.args[1]
            if type(seq) is int and 0 < seq <= COUNT_MAX:
                highest[member] = max(highest[member], seq)

    def open(self, request: Message) -> tuple[Any, Packet] | None:
        """The key and the packet of a plain message that may be released now; None if the request is malformed."""
        match request.args:
            case (key, int(seq), int(count), tuple(deps), tuple(frag), bytes(body)):
                is_plain = request.kind == ONE_WAY and all(type(each) is int for each in (*deps, *frag))
                if not is_plain or len(deps) not in (0, len(self.begun)) or len(frag) not in (0, 2):
                    return None
            case _:
                return None
        packet = Packet(self._member_of[request.src], self._view, body)
        packet.seq, packet.count, packet.deps, packet.frag = seq, count, deps or None, frag or None
        self.begun[packet.src] += 1
        return key, packet

    def has(self, counts: list[int]) -> bool:
        """Whether so many messages of each member were released here; of ours, all that are also addressed to us."""
        wanted = [self.told[self._me] if member == self._me else count for member, count in enumerate(counts)]
        return all(begun >= count for begun, count in zip(self.begun, wanted, strict=True))
