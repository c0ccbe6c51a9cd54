"""How somebody gets into a group: it asks until it is welcome, or founds it with others who ask.

It says hello to all; the leader closes the view in force and tells it the next one, which has it in it. There
everything is counted anew, so that there is nothing else to know. What comes of that view before is kept, for the
stack that begins then. See `changes` for the other side, and `gathering` for what happens where nobody leads.
"""

from collections.abc import Hashable, Iterable, Sequence

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.packet import Buffer, Packet
from inga.model.view import Member, View
from inga.secure.handshake import is_secured
from inga.session.alarms import Backoff
from inga.session.asking import Asking
from inga.session.description import host_told, parting, view_told
from inga.session.door import Accepts
from inga.session.gathering import FRESH, Gathering
from inga.session.questions import PAUSE, PAUSE_MAX
from inga.session.session import Session, is_impostor
from inga.stack.backlog import Backlog
from inga.stack.guard import Guard
from inga.stack.native import Outsider
from inga.stack.places import Places
from inga.stack.stack import EVERYBODY, Address, Datagram
from inga.wire.packet import (
    HEAD,
    INDEX_MAX,
    OUTSIDE,
    Covers,
    decode,
    encode,
    group_id,
    kind_of,
    source_of,
    view_of,
    view_tag,
)
from inga.wire.told import Told, said

STRANGE_FOR = 3.0
"""Seconds for which one waits where somebody is there and nobody can be understood."""

PAUSED_FOR = 3.0
"""Seconds for which one asks where nobody may be let in, before it gives up: another part may let it in."""

BACKLOG_MAX = 4096
"""Datagrams kept for later; what is more is repaired."""


PLACES_TOLD = 32
"""Places that one who asks tells the others of, so that all of them meet."""


class _Steady:
    """Waits have no random part: a newcomer asks alone, so there is nobody to collide with."""

    def random(self) -> float:
        return 0.0


STEADY = _Steady()

NOBODY = INDEX_MAX - 1
"""The source of packets of a newcomer, which has no index yet."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Newcomer:
    """Datagrams and time in, datagrams out; finished once `view` is there, or `refused`."""

    def __init__(
        self,
        group: str,
        member: Member,
        *,
        now: float,
        lobby: str | None = None,
        wants: str = "",
        places: Places | None = None,
        founds: str | None = None,
        traced: bool = False,
        accepts: Accepts | None = None,
        guard: Guard | None = None,
    ) -> None:
        """`group` and `lobby` are those of the stack that it will have, and so are the `places`. `wants`: the kind of state
        that it takes. `founds`: the order of the group that it founds with others, `traced` or not, if nobody lets it in;
        None: it waits. `accepts`: the driver's objections to these. `guard` is that of the stack."""
        self.guard = guard
        self._lobby_name = group if lobby is None else lobby
        self._is_secured = False  # those who are there speak so that we cannot understand them
        self._since = now
        self._covers: Covers = "all" if guard is None else "nothing"
        self.member = member
        self._identity = group
        self.group = group_id(group)
        self.lobby = self.group if lobby is None else group_id(lobby)
        self.view: View | None = None
        self.cuts: list[int] = []  # of each process, what it had sent in views that are closed
        self.refused: UsageError | None = None
        self._paused_at: float | None = None  # since when those who answer are too few to let anybody in
        self._paused_until = now  # and when that does not count any more, unless they say it again
        self._founds_from = now  # when we may found a group, unless somebody says again that there is one
        self.backlog = Backlog(BACKLOG_MAX)
        self.places = places or Places()
        self.wake = now
        self._founds, self._traced, self._accepts = founds, traced, accepts
        self._gathering = Gathering(now, is_apart=bool(member.address))
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

    def output(self, now: float) -> list[tuple[Address, Datagram]]:
        """What is to be said at once to those who were heard."""
        return [] if self.guard is None else self.guard.seal([], now)

    def tick(self, now: float) -> list[tuple[Address, Datagram]]:
        """Ask (again), or found the group."""
        guard = self.guard
        if guard is not None and guard.wake is not None and guard.wake <= now:
            guard.tick(now)
        said = self._tick(now)
        return said if self.guard is None else self.guard.seal(said, now)

    def _tick(self, now: float) -> list[tuple[Address, Datagram]]:
        asked = self._asking.host
        if asked is not None and self._asking.gives_up(now):
            self._gathering.begin_again(asked, now)
        if self._founds is not None and self._asking.host is None and now >= self._founds_from:
            self._look_round(now)
            if self.view is not None:
                return []
        elif now - self._since >= STRANGE_FOR:
            self._refuse_stranger()
        self.wake = now + self._pause.next(STEADY)
        self._look_round_by(now)
        words = self._asking.hello(self.member, f"{self.group:08x}", 0, now, self._wants)
        if self.member.address:
            words["places"] = list(self.places)[-PLACES_TOLD:]
        return self._to_all(said("hello", **words))

    def _look_round(self, now: float) -> None:
        """Nobody has let us in: is it time to found the group, or to ask who will?"""
        chosen = self._gathering.chosen(self.member, now)
        if chosen == self.member.identity:
            founders = self._gathering.founders(self.member, now)
            if founders is not None and (len(founders) > 1 or not self._refuse_stranger()):
                self._found(founders)
        elif chosen is not None:
            self._asking.heard(chosen, now)

    def _found(self, founders: tuple[Member, ...]) -> None:
        assert self._founds is not None
        names = tuple(person.name for person in founders)
        leader = self.member.incarnation
        view = View(1, founders, self._founds, self._traced, joined=names, leader=leader, attempt=1)
        self._enter(view, None if self.guard is None else self.guard.fresh())

    def _look_round_by(self, now: float) -> None:
        if self._founds is not None and self._asking.host is None and now >= self._founds_from:
            self.wake = min(self.wake, max(now, self._gathering.due(self.member, now)))

    def goodbye(self) -> list[tuple[Address, Datagram]]:
        """It does not join after all: whoever has let it in is not to wait for it."""
        member, view = self.member, 0 if self.view is None else self.view.number
        words = self._to_all(said("goodbye", **parting(member, f"{self.group:08x}", view)))
        return words if self.guard is None else self.guard.seal(words, self.wake)

    def _to_all(self, content: bytes) -> list[tuple[Address, Datagram]]:
        packet = Packet(NOBODY, OUTSIDE, kind=Session.id)
        packet.ext = content
        datagram = encode(packet, self.lobby, covers=self._covers)
        return [(EVERYBODY, datagram), *((Outsider(place), datagram) for place in self.places)]

    def receive(self, batch: Iterable[tuple[Buffer, Hashable]], *, now: float) -> None:
        if self.guard is not None and self.view is None:
            batch = self.guard.open(batch, now)
        for data, address in batch:
            if self.guard is None and is_secured(data, self._lobby_name):
                self._is_secured = True
            if kind_of(data, self.lobby) == Session.id and view_of(data) == OUTSIDE:
                self._hear(data, address, now)
            elif len(data) >= HEAD.size:
                self.backlog.keep(data, source_of(data), address)

    def _hear(self, data: Buffer, address: Hashable, now: float) -> None:
        try:
            packet = decode(data, self.lobby, {OUTSIDE: INDEX_MAX}, INDEX_MAX, checked=self.guard is None)
            if packet is None or self.view is not None:
                return
            told = Told.read(packet.ext)
            if is_impostor(self.guard, told, address):
                return
            self._learn(told, now)
        except WireError:
            return  # not readable, so no answer

    def _learn(self, told: Told, now: float) -> None:
        match told.do:
            case "hello" if told.text("group") == f"{self.group:08x}":
                self._meet(told, now)
            case "goodbye":
                self._gathering.gone(told.identity)
            case "part" if told.text("group") == f"{self.group:08x}":
                self._paused_at = None
                self.places.learn(told.text("address", ""))
                if self._asking.heard(told.identity, now):
                    self.wake = now
            case "welcome" if told.text("group") == f"{self.group:08x}":
                view, cuts, secret = view_told(told, traced=self._traced), told.numbers("cuts"), None
                if view.index(self.member) is not None:
                    if self.guard is not None:
                        secret = self.guard.unwrap(host_told(told, view), told.text("secret"))
                    self._enter(view, secret, cuts)
            case "again":
                # It was a member and taken for dead before it heard that it was one: it comes back as a new one.
                if told.identity == self.member.identity:
                    self.member = self.member.reborn(told.number("free"))
            case "paused" if told.identity == self.member.identity:
                # Those who are paused would give their group up for any that goes on: none is to be founded beside it.
                if self._paused_at is None or now >= self._paused_until:
                    self._paused_at = now
                self._paused_until = self._founds_from = now + FRESH
                if now - self._paused_at >= PAUSED_FOR:
                    self._refuse(told.text("why"))
            case "soon" if told.identity == self.member.identity:
                # There is a group, and whoever leads it answers, perhaps once its leader is gone.
                self._founds_from = now + FRESH
            case "closed":
                if told.identity == self.member.identity:
                    self._refuse(told.text("why"))

    def _refuse_stranger(self) -> bool:
        """Give up if those who are there cannot be understood, or do not understand us."""
        strangers = [] if self.guard is None or self.guard.has_company else self.guard.strangers
        if strangers:
            self._refuse(f"somebody is in this group, but {strangers[0]}")
        elif self._is_secured:
            self._refuse("the group of this name is secured: pass secret= or identity=")
        return self.refused is not None

    def _refuse(self, why: str) -> None:
        self.refused = UsageError(f"{self.member.name!r} cannot join: {why}")

    def _meet(self, told: Told, now: float) -> None:
        """Somebody else is without a view. Of others it names we know only where they are: whether they are there, they
        have to say themselves."""
        person = Member(*told.identity, told.text("address"))
        if person.identity == self.member.identity or (self._accepts and self._accepts(person)):
            return
        if told.number("view"):  # it was in one, and looks for that group, not for people to found another
            self.places.learn(person.address)
            return
        for place in (*(told.texts("places") if person.address else ()), person.address):
            if self.places.learn(place):
                self._gathering.expect(now)
        host = told.people("host")
        self._gathering.saw(self.member, person, host[0][:2] if host else None, now)
        self._look_round_by(now)

    def _enter(self, view: View, secret: bytes | None, cuts: Sequence[int] = ()) -> None:
        self.view, self.cuts = view, list(cuts)
        tag = view_tag(self._identity, view)
        if self.guard is not None and secret is not None:
            self.guard.expect(tag, view, self.me, secret)
        self.backlog.retain(lambda data: kind_of(data, tag) is not None)
