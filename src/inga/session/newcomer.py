"""How somebody gets into a group that runs already: ask, learn the view, collect everybody's base.

    asking    says hello to all until the leader answers with a view that has the newcomer in it
    starting  asks all for their bases: how far each had counted when it installed that view

It delivers nothing before it has all bases. Starting from nothing it would wait for history that was
never sent to it; from one member's counts, wait for what that one lacked or drop what was on its way.
What comes in the meantime is kept, for the stack that begins then. See `changes` for the other side.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from inga.model.errors import UsageError, WireError
from inga.model.packet import Buffer, Packet
from inga.model.view import Member, View
from inga.session.alarms import Backoff
from inga.session.changes import PAUSE, PAUSE_MAX, view_described
from inga.session.session import Session
from inga.stack.stack import EVERYBODY, Address, Datagram
from inga.wire.packet import INDEX_MAX, OUTSIDE, decode, encode, group_id, kind_of, view_of
from inga.wire.told import Told, said

BACKLOG_MAX = 4096
"""Datagrams kept for later; what is more is repaired."""


class _Steady:
    """Waits have no random part: a newcomer asks alone, so there is nobody to collide with."""

    def random(self) -> float:
        return 0.0


STEADY = _Steady()

GOODBYES_MAX = 32
"""Goodbyes to those who let us in, if they do not answer: a few seconds."""

NOBODY = INDEX_MAX - 1
"""The source of packets of a newcomer, which has no index yet."""


class Newcomer:
    """Datagrams and time in, datagrams out; finished once `bases` is there."""

    def __init__(self, group: str, member: Member, *, now: float, lobby: str | None = None) -> None:
        """`group` and `lobby` are those of the stack that it will have."""
        self.member = member
        self.group = group_id(group)
        self.lobby = self.group if lobby is None else group_id(lobby)
        self.view: View | None = None
        self.sizes: dict[int, int] = {}  # of the views whose packets still come
        self.cuts: list[int] = []  # what members had sent in views that are closed
        self.bases: dict[str, list[int]] | None = None
        self.refused: UsageError | None = None
        self.backlog: list[tuple[bytes, Hashable]] = []
        self.wake = now
        self._pause = Backoff(PAUSE, PAUSE_MAX, 0.0)
        self._pause.start()
        self._heard: dict[int, dict[str, int]] = {}
        self._gives_up: UsageError | None = None  # why, while those who let us in are told
        self._unaware: set[int] = set()  # members that may not know that we gave up
        self._goodbyes = 0

    @property
    def me(self) -> int:
        assert self.view is not None
        return len(self.view) - 1

    def tick(self, now: float) -> list[tuple[Address, Datagram]]:
        """Ask (again)."""
        self.wake = now + self._pause.next(STEADY)
        if self._gives_up is not None:
            self._goodbyes += 1
            if self._goodbyes > GOODBYES_MAX:
                self.refused = self._gives_up
            return self.goodbye(itself=True)
        if self.view is None:
            asked = said("hello", **self._signed(), address=self.member.address)
        else:
            asked = said("bases", number=self.view.number)
        return [(EVERYBODY, self._encoded(asked))]

    def goodbye(self, *, itself: bool = False) -> list[tuple[Address, Datagram]]:
        """It does not join after all: whoever has let it in is not to wait for it. `itself`: please answer."""
        view = 0 if self.view is None else self.view.number
        return [(EVERYBODY, self._encoded(said("goodbye", **self._signed(), view=view, itself=itself)))]

    def _signed(self) -> dict[str, Any]:
        member = self.member
        return {"name": member.name, "incarnation": member.incarnation, "group": f"{self.group:08x}"}

    def _encoded(self, content: bytes) -> Datagram:
        packet = Packet(NOBODY, OUTSIDE, kind=Session.id)
        packet.ext = content
        return encode(packet, self.lobby)

    def receive(self, batch: Iterable[tuple[Buffer, Hashable]], *, now: float) -> None:
        for data, address in batch:
            if kind_of(data, self.lobby) == Session.id and view_of(data) == OUTSIDE:
                self._hear(data, self.lobby, now)
            elif (kind := kind_of(data, self.group)) == Session.id:
                self._hear(data, self.group, now)
            elif kind is not None and len(self.backlog) < BACKLOG_MAX:
                self.backlog.append((bytes(data), address))

    def _hear(self, data: Buffer, group: int, now: float) -> None:
        try:
            packet = decode(data, group, {view_of(data): INDEX_MAX}, NOBODY)
            if packet is None or (self.view is not None and packet.is_for_others(self.me)):
                return
            self._learn(packet.src, Told.read(packet.ext), now)
        except WireError:
            return  # not readable, so no answer

    def _learn(self, src: int, told: Told, now: float) -> None:
        match told.do:
            case "view" if self.view is None:
                view = view_described(told)
                views, cuts = told.numbers("views"), told.numbers("cuts")
                sizes = told.numbers("sizes", len(views))
                if view.members[-1] == self.member:
                    self.view, self.cuts = view, cuts
                    self.sizes = dict(zip(views, sizes, strict=True))
                    self.wake = now
                    self._pause.start()
            case "base":
                self._heard[src] = told.counts()
            case "closed" if self.bases is None:
                if (told.text("name"), told.number("incarnation")) == (
                    self.member.name,
                    self.member.incarnation,
                ):
                    self.refused = UsageError(f"{self.member.name!r} cannot join: {told.text('why')}")
            case "goodbye" if self.bases is None:
                self._lose(told, now)
            case "farewell" if self._gives_up is not None:
                self._unaware.discard(src)
                if not self._unaware:
                    self.refused = self._gives_up
        self._conclude()

    def _lose(self, told: Told, now: float) -> None:
        """A member has left. If it has not said where it had got to, nobody can: then we cannot begin."""
        if self.view is None or self._gives_up is not None:
            return
        who = (told.text("name"), told.number("incarnation"))
        people = [(person.name, person.incarnation) for person in self.view.members[: self.me]]
        if who in people and not self._has_base(people.index(who)):
            self._gives_up = UsageError(
                f"{self.member.name!r} cannot join: {who[0]} left meanwhile; try again"
            )
            self._unaware = set(range(self.me)) - {people.index(who)}
            self.wake = now
            self._pause.start()

    def _conclude(self) -> None:
        """With the bases of all others this one can start."""
        view = self.view
        if view is None or self.bases is not None or self._gives_up is not None:
            return
        if all(self._has_base(member) for member in range(self.me)):
            bases = [self._heard[member] for member in range(self.me)]
            # Whatever the layers of this recipe count, as far as everybody counts it.
            known = set.intersection(*(set(base) for base in bases)) - {"number"}
            self.bases = {key: [*(base[key] for base in bases), 0] for key in sorted(known)}

    def _has_base(self, member: int) -> bool:
        """Whether a member has said where it had got to when it installed our view."""
        return self.view is not None and self._heard.get(member, {}).get("number") == self.view.number
