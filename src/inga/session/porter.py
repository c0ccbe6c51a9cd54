"""Somebody asks to be let in, and the leader does not hear it: a member that hears both carries their words.

    newcomer   hello      to all, as always; for a second now, and nobody has let it in
    member     knock      to the leader: this was said outside, by one that I hear
    leader     reply      to that member: tell it this

The leader does with it what it does with every newcomer; only its answers take another way. Once the newcomer is in the
view it is a member that the leader does not hear, and `detours` carries everything else. Members that were left behind
ask like newcomers, and are carried like them.

In a secured group a newcomer and the leader have to prove to each other who they are, and no third may do that for them. So
there a knock says only by which process somebody asks. The leader's guard makes itself known to it, by words of a handshake
that the member hands on and cannot read, and from then on the two speak over a channel of their own
(`inga.secure.carrying`); what the newcomer asks comes to the leader over that, and not in the words of the member.

Rejected: to let any member lead where the leader does not hear all. Whoever leads is the first member of the view,
so that all know it without a word; and the next leader may be the one that hears less.
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
"""Seconds for which somebody has asked before it is carried: many times what the leader takes that hears it."""

CARRIES_EVERY = 0.25
"""Seconds between two knocks for the same one."""

CARRIES_PARTS_EVERY = 0.5
"""Seconds between two words about the same part: it says that it is there every half to whole second."""

CALLERS_MAX = 64
"""Those who ask that are remembered, and leaders of other parts."""


class Carried(NamedTuple):
    """The address of one that is outside and reached by a member, whatever its index will be in the next view."""

    by: Member
    name: str
    incarnation: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Porter:
    """Remembers who asks outside, and carries words; part of the session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._callers: dict[tuple[str, int], _Caller] = {}
        self._leaders: dict[tuple[str, int], _Caller] = {}  # of other parts

    def heard(self, told: Told, content: Buffer, address: Hashable) -> None:
        """Somebody asks to be let in, whom the leader may not hear."""
        session, now = self._session, self._session.stack.now
        changes, host = session.changes, told.people("host")
        leader = session.stack.view.members[changes.leader]
        is_ours = told.text("group") == session.digest and (not host or host[0][:2] == leader.identity)
        if changes.leads or not is_ours:
            return
        caller = _heard(self._callers, told.identity, now)
        caller.address = address
        if caller.since == now:
            # Who was let in and excluded, as it did not hear that, asks on as another incarnation.
            same = [each for (name, _), each in self._callers.items() if name == told.identity[0]]
            caller.since = min(each.since for each in same if now - each.heard < ASKS_WITHIN)
        if caller.is_due(now, CARRIES_EVERY):
            self._knock(content, address, leader)

    def carries_part(self, leader: tuple[str, int]) -> bool:
        """The leader of another part says that it is there; whether that, or our answer, is to be carried now. As leaders that
        hear each other are one part soon, only one that has said so for a while is not heard by ours, or does not hear it."""
        now = self._session.stack.now
        return _heard(self._leaders, leader, now).is_due(now, CARRIES_PARTS_EVERY)

    def _knock(self, content: Buffer, address: Hashable, leader: Member) -> None:
        """Tell the leader that somebody asks from there."""
        session, guard = self._session, self._session.stack.guard
        process = "" if guard is None else guard.ways.introduce(address, leader.name, session.stack.now)
        if guard is None or process:
            what, words = {"process": process}, bytes(content) if guard is None else b""
            session.say(session.changes.leader, session.stack.view.number, "knock", what, words)

    def on_knock(self, packet: Packet, heard: Told) -> None:
        """A member has heard somebody whom we lead, or who wants to be let in."""
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
        """Of the way that somebody's words took before, and the one that they took now, that by which answers go: one that was
        carried once may be heard here, and not hear us."""
        stack = self._session.stack
        by = stack.view.index(before.by) if isinstance(before, Carried) else None
        return address if by is None or by in stack.left | self._session.silence.suspects else before

    def reply(self, whom: Carried, content: bytes) -> None:
        """Answer one that a member hears."""
        view, by = self._session.stack.view, self._session.stack.view.index(whom.by)
        if by is not None:
            what = {"name": whom.name, "incarnation": whom.incarnation}
            self._session.say(by, view.number, "reply", what, content)

    def on_reply(self, packet: Packet, told: Told) -> None:
        """The leader answers one that we hear."""
        session, caller = self._session, self._callers.get(told.identity)
        if caller is not None and packet.src == session.changes.leader:
            answer = Packet(session.stack.me, OUTSIDE, kind=session.id)
            answer.ext = bytes(packet.body)
            session.stack.wire.answer(answer, caller.address)


def _heard(callers: "dict[tuple[str, int], _Caller]", identity: tuple[str, int], now: float) -> "_Caller":
    """One that was heard just now, and stands last among those."""
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
    """Somebody who asks outside, or leads another part."""

    __slots__ = ("address", "carried", "heard", "since")

    def __init__(self, now: float) -> None:
        self.since = self.heard = now
        self.carried = -NEVER
        self.address: Hashable = None

    def is_due(self, now: float, every: float) -> bool:
        """Whether it was heard for so long that its words are carried, and these have not been for a while."""
        if now - self.since < CARRIES_AFTER or now - self.carried < every:
            return False
        self.carried = now
        return True
