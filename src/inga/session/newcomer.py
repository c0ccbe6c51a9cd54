"""How somebody gets into a group that runs already: it asks until it is welcome.

It says hello to all; the leader closes the view in force and tells it the next one, which has it in it. There
everything is counted anew, so that there is nothing else to know. What comes of that view before is kept, for the
stack that begins then. See `changes` for the other side.
"""

from collections.abc import Hashable, Iterable

from inga.model.errors import UsageError, WireError
from inga.model.packet import Buffer, Packet
from inga.model.view import Member, View
from inga.session.alarms import Backoff
from inga.session.asking import Asking
from inga.session.description import view_told
from inga.session.questions import PAUSE, PAUSE_MAX
from inga.session.session import Session
from inga.stack.stack import EVERYBODY, Address, Datagram
from inga.wire.packet import INDEX_MAX, OUTSIDE, decode, encode, group_id, kind_of, view_of, view_tag
from inga.wire.told import Told, said

PAUSED_FOR = 3.0
"""Seconds for which one asks where nobody may be let in, before it gives up: another part may let it in."""

BACKLOG_MAX = 4096
"""Datagrams kept for later; what is more is repaired."""


class _Steady:
    """Waits have no random part: a newcomer asks alone, so there is nobody to collide with."""

    def random(self) -> float:
        return 0.0


STEADY = _Steady()

NOBODY = INDEX_MAX - 1
"""The source of packets of a newcomer, which has no index yet."""


class Newcomer:
    """Datagrams and time in, datagrams out; finished once `view` is there, or `refused`."""

    def __init__(
        self, group: str, member: Member, *, now: float, lobby: str | None = None, wants: str = ""
    ) -> None:
        """`group` and `lobby` are those of the stack that it will have. `wants`: the kind of state that it takes."""
        self.member = member
        self._identity = group
        self.group = group_id(group)
        self.lobby = self.group if lobby is None else group_id(lobby)
        self.view: View | None = None
        self.cuts: list[int] = []  # of each process, what it had sent in views that are closed
        self.refused: UsageError | None = None
        self._paused_at: float | None = None  # since when those who answer are too few to let anybody in
        self.backlog: list[tuple[bytes, Hashable]] = []
        self.wake = now
        self._wants = wants
        self._asking = Asking(None, now)
        self._pause = Backoff(PAUSE, PAUSE_MAX, 0.0)
        self._pause.start()

    @property
    def me(self) -> int:
        assert self.view is not None
        index = self.view.index(self.member)
        assert index is not None
        return index

    def tick(self, now: float) -> list[tuple[Address, Datagram]]:
        """Ask (again)."""
        self.wake = now + self._pause.next(STEADY)
        asked = self._asking.hello(self.member, f"{self.group:08x}", 0, now, self._wants)
        return [(EVERYBODY, self._encoded(said("hello", **asked)))]

    def goodbye(self) -> list[tuple[Address, Datagram]]:
        """It does not join after all: whoever has let it in is not to wait for it."""
        member, view = self.member, 0 if self.view is None else self.view.number
        signed = {"name": member.name, "incarnation": member.incarnation, "group": f"{self.group:08x}"}
        return [(EVERYBODY, self._encoded(said("goodbye", **signed, view=view, itself=False, bound=False)))]

    def _encoded(self, content: bytes) -> Datagram:
        packet = Packet(NOBODY, OUTSIDE, kind=Session.id)
        packet.ext = content
        return encode(packet, self.lobby)

    def receive(self, batch: Iterable[tuple[Buffer, Hashable]], *, now: float) -> None:
        for data, address in batch:
            if kind_of(data, self.lobby) == Session.id and view_of(data) == OUTSIDE:
                self._hear(data, now)
            elif len(self.backlog) < BACKLOG_MAX:
                self.backlog.append((bytes(data), address))

    def _hear(self, data: Buffer, now: float) -> None:
        try:
            packet = decode(data, self.lobby, {OUTSIDE: INDEX_MAX}, NOBODY)
            if packet is not None and self.view is None:
                self._learn(Told.read(packet.ext), now)
        except WireError:
            return  # not readable, so no answer

    def _learn(self, told: Told, now: float) -> None:
        match told.do:
            case "part" if told.text("group") == f"{self.group:08x}":
                self._paused_at = None
                if self._asking.heard(told.identity, now):
                    self.wake = now
            case "welcome" if told.text("group") == f"{self.group:08x}":
                view, cuts = view_told(told), told.numbers("cuts")
                if view.index(self.member) is not None:
                    self.view, self.cuts = view, cuts
                    tag = view_tag(self._identity, view)
                    self.backlog = [each for each in self.backlog if kind_of(each[0], tag) is not None]
            case "again":
                # It was a member and taken for dead before it heard that it was one: it comes back as a new one.
                if told.identity == self.member.identity:
                    self.member = self.member.reborn()
            case "paused" if told.identity == self.member.identity:
                self._paused_at = now if self._paused_at is None else self._paused_at
                if now - self._paused_at >= PAUSED_FOR:
                    self._refuse(told.text("why"))
            case "closed":
                if told.identity == self.member.identity:
                    self._refuse(told.text("why"))

    def _refuse(self, why: str) -> None:
        self.refused = UsageError(f"{self.member.name!r} cannot join: {why}")
