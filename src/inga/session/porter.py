"""Relaying of requests for admission: a newcomer and the leader do not hear each other, and a member that hears both carries their control messages.

    newcomer   hello      to all, as always; repeated for a second by now without an admission
    member     knock      to the leader: this request came from outside, from a process that I hear
    leader     reply      to that member: forward this answer to the newcomer

The leader handles the request like any other; only its answers take another path. Once the newcomer is in the
view it is a member that the leader does not hear, and `detours` carries everything else. Members that were left behind
ask as newcomers do, and are carried like them.

In a secured group a newcomer and the leader have to prove to each other who they are, and no third process may do that for them. So
there a knock says only which process asks. The leader's guard begins a handshake with it, by handshake messages
that the member forwards and cannot read, and from then on the two use a channel of their own
(`inga.secure.carrying`); the newcomer's request reaches the leader over that channel, not in a message of the member.

Rejected: to let another member lead where the leader does not hear all. The leader is the first member of the view,
so that all know it without any messages; and the next leader may hear even fewer.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.packet import Buffer, Packet
from inga.model.view import Member
from inga.session.alarms import NEVER
from inga.session.door import ASKS_WITHIN
from inga.wire.packet import OUTSIDE
from inga.wire.told import Told

if TYPE_CHECKING:
    from inga.session.session import Session

CARRIES_AFTER = 1.0
"""Seconds for which a process has to ask before it is carried: many times what a leader that hears it takes to answer."""

CARRIES_EVERY = 0.25
"""Seconds between two knocks for the same process."""

CARRIES_PARTS_EVERY = 0.5
"""Seconds between two carried messages about the same part, whose leader announces it every half to whole second."""

CALLERS_MAX = 64
"""Processes asking for admission that are remembered, and as many leaders of other parts."""


class Carried(NamedTuple):
    """The address of a process outside the view that is reached by way of a member, which is identified independently of its index in a view."""

    by: Member
    name: str
    incarnation: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Porter:
    """Remembers the processes that ask for admission, and carries messages between them and the leader; part of the session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._callers: dict[tuple[str, int], _Caller] = {}
        self._leaders: dict[tuple[str, int], _Caller] = {}  # of other parts

    def heard(self, told: Told, content: Buffer, address: Hashable) -> None:
        """Handle a request for admission by a process that the leader may not hear."""
        session, now = self._session, self._session.stack.now
        changes, host = session.changes, told.people("host")
        leader = session.stack.view.members[changes.leader]
        is_ours = told.text("group") == session.digest and (not host or host[0][:2] == leader.identity)
        if changes.leads or not is_ours:
            return
        caller = _heard(self._callers, told.identity, now)
        caller.address = address
        if caller.since == now:
            # A process that was admitted and excluded, since it never heard of its admission, goes on asking as another incarnation.
            same = [each for (name, _), each in self._callers.items() if name == told.identity[0]]
            caller.since = min(each.since for each in same if now - each.heard < ASKS_WITHIN)
        if caller.is_due(now, CARRIES_EVERY):
            self._knock(content, address, leader)

    def carries_part(self, leader: tuple[str, int]) -> bool:
        """Note an announcement by the leader of another part; return whether to carry it, or our answer, now. Leaders that hear each other
        soon merge their parts, so one that has announced its part for a while is not heard by our leader, or does not hear it."""
        now = self._session.stack.now
        return _heard(self._leaders, leader, now).is_due(now, CARRIES_PARTS_EVERY)

    def _knock(self, content: Buffer, address: Hashable, leader: Member) -> None:
        """Tell the leader that a process asks for admission from that address."""
        session, guard = self._session, self._session.stack.guard
        process = "" if guard is None else guard.ways.introduce(address, leader.name, session.stack.now)
        if guard is None or process:
            what, words = {"process": process}, bytes(content) if guard is None else b""
            session.say(session.changes.leader, session.stack.view.number, "knock", what, words)

    def on_knock(self, packet: Packet, heard: Told) -> None:
        """Handle a request for admission that a member has carried to us."""
        session, guard = self._session, self._session.stack.guard
        if guard is not None:
            if session.changes.leads:
                by = session.stack.view.names[packet.src]
                guard.ways.introduced(by, heard.text("process"), session.stack.now)
            return
        told = Told.read(bytes(packet.body))
        if told.do != "hello":
            raise WireError("malformed", f"{told.do!r} is not carried")
        if session.changes.leads:
            session.hear_stranger(told, Carried(session.stack.view.members[packet.src], *told.identity))

    def better(self, before: Hashable, address: Hashable) -> Hashable:
        """Choose the path for answers to a process: the one by which its requests came before, or the one by which they come now. A process
        that was carried before may be heard here directly by now, and still not hear us."""
        stack = self._session.stack
        by = stack.view.index(before.by) if isinstance(before, Carried) else None
        return address if by is None or by in stack.left | self._session.silence.suspects else before

    def reply(self, whom: Carried, content: bytes) -> None:
        """Answer a process outside by way of the member that hears it."""
        view, by = self._session.stack.view, self._session.stack.view.index(whom.by)
        if by is not None:
            what = {"name": whom.name, "incarnation": whom.incarnation}
            self._session.say(by, view.number, "reply", what, content)

    def on_reply(self, packet: Packet, told: Told) -> None:
        """Forward an answer of the leader to a process that we hear."""
        session, caller = self._session, self._callers.get(told.identity)
        if caller is not None and packet.src == session.changes.leader:
            answer = Packet(session.stack.me, OUTSIDE, kind=session.id)
            answer.ext = bytes(packet.body)
            session.stack.wire.answer(answer, caller.address)


def _heard(callers: "dict[tuple[str, int], _Caller]", identity: tuple[str, int], now: float) -> "_Caller":
    """Return the record of a process that was heard just now, and move it to the end of the table."""
    caller = callers.pop(identity, None)
    if caller is None or now - caller.heard >= ASKS_WITHIN:
        caller = _Caller(now)
    callers[identity] = caller
    if len(callers) > CALLERS_MAX:
        del callers[next(iter(callers))]
    caller.heard = now
    return caller


@mypyc_attr(allow_interpreted_subclasses=True)
class _Caller:
    """A process that asks for admission, or leads another part."""

    __slots__ = ("address", "carried", "heard", "since")

    def __init__(self, now: float) -> None:
        self.since = self.heard = now
        self.carried = -NEVER
        self.address: Hashable = None

    def is_due(self, now: float, every: float) -> bool:
        """Whether the process has been heard for long enough that its messages are carried, and the last one was carried `every` seconds ago or earlier."""
        if now - self.since < CARRIES_AFTER or now - self.carried < every:
            return False
        self.carried = now
        return True
