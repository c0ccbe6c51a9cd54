"""Plain messages among objects: each is a one-way request to the mailboxes of its destinations.

Nobody gets the header of a message that is not for it, so each pair of members has a count of its own.
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
    """The plain messages of one member in one view, as requests and as packets, and how many there were."""

    def __init__(self, roster: Roster, me: int, view: int, members: int) -> None:
        self.boxes = [roster.find(mailbox(member))[0] for member in range(members)]  # places, by member
        self.told = [0] * members  # messages of ours to each member, ourselves included
        self.begun = [0] * members  # messages of each member that were released here
        self._me = me
        self._view = view
        self._member_of = roster.member_of

    def request(self, packet: Packet, members: list[int]) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The places that a message of ours goes to, and the arguments: what its packet would have carried."""
        for member in members:
            self.told[member] += 1
        said = (packet.seq, packet.count, packet.deps or (), packet.frag or (), bytes(packet.body))
        return tuple(sorted(self.boxes[member] for member in members)), said

    def note(self, said: Spoken, highest: list[int]) -> None:
        """Something has come: it may be a message that waits for its turn, and the highest of its sender so far."""
        if isinstance(said, Message) and self.boxes[self._me] in said.dst and len(said.args) > 1:
            member, seq = self._member_of[said.src], said.args[1]
            if type(seq) is int and 0 < seq <= COUNT_MAX:
                highest[member] = max(highest[member], seq)

    def open(self, request: Message) -> tuple[Any, Packet] | None:
        """The key and the packet of a message that may be released now; None if it cannot be one."""
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
        """Whether so many messages of each member were released here; of ours, those that come back to us."""
        wanted = [self.told[self._me] if member == self._me else count for member, count in enumerate(counts)]
        return all(begun >= count for begun, count in zip(self.begun, wanted, strict=True))
