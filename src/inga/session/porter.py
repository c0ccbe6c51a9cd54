"""Somebody asks to be let in, and the leader does not hear it: a member that hears both carries their words.

    newcomer   hello      to all, as always; for a second now, and nobody has let it in
    member     knock      to the leader: this was said outside, by one that I hear
    leader     reply      to that member: tell it this

The leader does with it what it does with every newcomer; only its answers take another way. Once the newcomer is in the
view it is a member that the leader does not hear, and `detours` carries everything else. Members that were left behind
ask like newcomers, and are carried like them.

Only in groups that are not secured: there a newcomer and the leader have to prove to each other who they are, and no third
may do that for them.

Rejected: to let any member lead where the leader does not hear all. Whoever leads is the first member of the view,
so that all know it without a word; and the next leader may be the one that hears less.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.packet import Buffer, Packet
from inga.model.view import Member
from inga.session.door import ASKS_WITHIN
from inga.wire.packet import OUTSIDE
from inga.wire.told import Told

if TYPE_CHECKING:
    from inga.session.session import Session

CARRIES_AFTER = 1.0
"""Seconds for which somebody has asked before it is carried: many times what the leader takes that hears it."""

CARRIES_EVERY = 0.25
"""Seconds between two knocks for the same one."""

CALLERS_MAX = 64
"""Those who ask that are remembered."""


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

    def heard(self, told: Told, content: Buffer, address: Hashable) -> None:
        """Somebody asks to be let in, whom the leader may not hear."""
        session, now = self._session, self._session.stack.now
        changes, host = session.changes, told.people("host")
        leader = session.stack.view.members[changes.leader]
        is_ours = told.text("group") == session.digest and (not host or host[0][:2] == leader.identity)
        if changes.leads or session.stack.guard is not None or not is_ours:
            return
        caller = self._callers.pop(told.identity, None)
        if caller is None or now - caller.heard >= ASKS_WITHIN:
            caller = _Caller(now)
        self._callers[told.identity] = caller
        if len(self._callers) > CALLERS_MAX:
            del self._callers[next(iter(self._callers))]
        caller.heard, caller.address = now, address
        if now - caller.since >= CARRIES_AFTER and now - caller.carried >= CARRIES_EVERY:
            caller.carried = now
            session.say(changes.leader, session.stack.view.number, "knock", {}, bytes(content))

    def on_knock(self, packet: Packet) -> None:
        """A member has heard somebody whom we lead, or who wants to be let in."""
        session = self._session
        told = Told.read(bytes(packet.body))
        if told.do != "hello":
            raise WireError("malformed", f"{told.do!r} is not carried")
        if session.changes.leads and session.stack.guard is None:
            session.hear_stranger(told, Carried(session.stack.view.members[packet.src], *told.identity))

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


@mypyc_attr(allow_interpreted_subclasses=True)
class _Caller:
    """Somebody who asks outside."""

    __slots__ = ("address", "carried", "heard", "since")

    def __init__(self, now: float) -> None:
        self.since = self.heard = now
        self.carried = now - CARRIES_EVERY
        self.address: Hashable = None
