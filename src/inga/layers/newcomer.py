"""How somebody gets into a group that runs already: ask, learn the view, collect everybody's base.

    asking    says hello to all until the leader answers with a view that has the newcomer in it
    starting  asks all for their bases: how far each had counted when it installed that view

It delivers nothing before it has all bases. Starting from nothing it would wait for history that was
never sent to it; from one member's counts, wait for what that one lacked or drop what was on its way.
What comes in the meantime is kept, for the stack that begins then. See `membership` for the other side.
"""

from collections.abc import Hashable, Iterable

from inga.layers.membership import PAUSE, PAUSE_MAX, Membership, leaving, view_described
from inga.model.errors import UsageError, WireError
from inga.model.packet import Buffer, Packet
from inga.model.view import Member, View
from inga.stack.stack import EVERYBODY, OUTSIDE, Address, Datagram
from inga.wire.packet import INDEX_MAX, decode, encode, group_id, kind_of, view_of
from inga.wire.told import Told, said

BACKLOG_MAX = 4096
"""Datagrams kept for later; what is more is repaired."""

NOBODY = INDEX_MAX - 1
"""The source of packets of one who has no index yet."""


class Newcomer:
    """Datagrams and time in, datagrams out; finished once `bases` is there."""

    def __init__(self, group: str, member: Member, *, now: float) -> None:
        self.member = member
        self.group = group_id(group)
        self.view: View | None = None
        self.sizes: dict[int, int] = {}  # of the views whose packets still come
        self.cuts: list[int] = []  # what members had sent in views that are closed
        self.bases: dict[str, list[int]] | None = None
        self.refused: UsageError | None = None
        self.backlog: list[tuple[bytes, Hashable]] = []
        self.wake = now
        self._pause = PAUSE
        self._heard: dict[int, dict[str, int]] = {}

    @property
    def me(self) -> int:
        assert self.view is not None
        return len(self.view) - 1

    def tick(self, now: float) -> list[tuple[Address, Datagram]]:
        """Ask (again)."""
        self._pause = min(2 * self._pause, PAUSE_MAX)
        self.wake = now + self._pause
        member = self.member
        if self.view is None:
            asked = said("hello", name=member.name, incarnation=member.incarnation, address=member.address)
        else:
            asked = said("bases", number=self.view.number)
        return [(EVERYBODY, self._encoded(asked))]

    def goodbye(self) -> list[tuple[Address, Datagram]]:
        """It does not join after all: whoever has let it in is not to wait for it."""
        return [(EVERYBODY, self._encoded(leaving(self.member)))]

    def _encoded(self, content: bytes) -> Datagram:
        packet = Packet(NOBODY, OUTSIDE, kind=Membership.id)
        packet.ext = content
        return encode(packet, self.group)

    def receive(self, batch: Iterable[tuple[Buffer, Hashable]], *, now: float) -> None:
        for data, address in batch:
            kind = kind_of(data, self.group)
            if kind == Membership.id:
                self._hear(data, now)
            elif kind is not None and len(self.backlog) < BACKLOG_MAX:
                self.backlog.append((bytes(data), address))

    def _hear(self, data: Buffer, now: float) -> None:
        try:
            packet = decode(data, self.group, {view_of(data): INDEX_MAX}, NOBODY)
            if packet is not None:
                self._learn(packet.src, Told.read(packet.ext), now)
        except WireError:
            return  # whatever it was, it was no answer

    def _learn(self, src: int, told: Told, now: float) -> None:
        match told.do:
            case "view" if self.view is None:
                view = view_described(told)
                views, cuts = told.numbers("views"), told.numbers("cuts")
                sizes = told.numbers("sizes", len(views))
                if view.members[-1] == self.member:
                    self.view, self.cuts = view, cuts
                    self.sizes = dict(zip(views, sizes, strict=True))
                    self.wake, self._pause = now, PAUSE
            case "base":
                self._heard[src] = told.counts()
            case "closed" if self.view is None:
                if (told.text("name"), told.number("incarnation")) == (
                    self.member.name,
                    self.member.incarnation,
                ):
                    self.refused = UsageError(f"{self.member.name!r} cannot join: {told.text('why')}")
        self._conclude()

    def _conclude(self) -> None:
        """With the bases of all others this one can start."""
        view = self.view
        if view is None or self.bases is not None:
            return
        said_so = [self._heard.get(member) for member in range(self.me)]
        bases = [each for each in said_so if each is not None and each["number"] == view.number]
        if len(bases) == self.me:
            # Whatever the layers of this recipe count, as far as everybody counts it.
            known = set.intersection(*(set(base) for base in bases)) - {"number"}
            self.bases = {key: [*(base[key] for base in bases), 0] for key in sorted(known)}
