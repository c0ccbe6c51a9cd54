"""How a process joins a group: it asks for admission until it is welcomed, or founds the group with others that ask.

It sends `hello` to all; the leader closes the view in force and sends it the next one, which includes it. There
everything is counted anew, so that it needs to know nothing else. Packets of that view that arrive before its `welcome` are kept for the
stack that begins then. See `changes` for the members' side, and `gathering` for what happens where there is no leader.
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
"""Seconds after which a newcomer gives up if others are present and it can understand none of them."""

PAUSED_FOR = 3.0
"""Seconds for which a newcomer asks a paused part, which can admit nobody, before it gives up: another part may admit it."""

BACKLOG_MAX = 4096
"""Datagrams of the view to come that are kept; the rest is repaired."""


PLACES_TOLD = 32
"""Addresses of others that a newcomer sends along, so that all newcomers meet."""


class _Steady:
    """A source of zeros, for waits without a random part: a newcomer asks alone, so its messages collide with no others."""

    def random(self) -> float:
        return 0.0


STEADY = _Steady()

NOBODY = INDEX_MAX - 1
"""The source index in packets of a newcomer, which has no index yet."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Newcomer:
    """A process that asks for admission: datagrams and time in, datagrams out; finished once `view` or `refused` is set."""

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
        """`group`, `lobby`, `places` and `guard` are those of the stack that it will have. `wants`: the kind of state
        that it takes. `founds`: the order of the group that it founds with others, `traced` or not, if nobody admits it;
        None: it waits. `accepts`: the driver's objections to these others."""
        self.guard = guard
        self._lobby_name = group if lobby is None else lobby
        self._is_secured = False  # the group of this name is secured, and we have no keys
        self._since = now
        self._covers: Covers = "all" if guard is None else "nothing"
        self.member = member
        self._identity = group
        self.group = group_id(group)
        self.lobby = self.group if lobby is None else group_id(lobby)
        self.view: View | None = None
        self.cuts: list[int] = []  # how much each process had sent in closed views
        self.refused: UsageError | None = None
        self._paused_at: float | None = None  # since when a paused part answers, which can admit nobody
        self._paused_until = now  # when that answer expires, unless it is repeated
        # The earliest time to found a group; later, if we hear again that there is one.
        self._founds_from = now
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
        """Return the datagrams to send at once: the guard's answers to handshake messages."""
        return [] if self.guard is None else self.guard.seal([], now)

    def tick(self, now: float) -> list[tuple[Address, Datagram]]:
        """Repeat the request, or found the group; return the datagrams to send."""
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
        """Nobody has admitted us: found the group if it is time and ours to do, or ask the process that will found it."""
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
        """Withdraw the request: a leader that has admitted this process shall not wait for it."""
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
            return  # a packet that cannot be read is not answered

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
                # We were admitted, and excluded before we heard of it: ask as a new incarnation.
                if told.identity == self.member.identity:
                    self.member = self.member.reborn(told.number("free"))
            case "paused" if told.identity == self.member.identity:
                # Paused members give up their view for any group of this name that goes on, so we must not found one beside theirs.
                if self._paused_at is None or now >= self._paused_until:
                    self._paused_at = now
                self._paused_until = self._founds_from = now + FRESH
                if now - self._paused_at >= PAUSED_FOR:
                    self._refuse(told.text("why"))
            case "soon" if told.identity == self.member.identity:
                # There is a group, and its leader answers, or the next one, if this leader has failed.
                self._founds_from = now + FRESH
            case "closed":
                if told.identity == self.member.identity:
                    self._refuse(told.text("why"))

    def _refuse_stranger(self) -> bool:
        """Give up if processes are present that we cannot understand, or that do not understand us; return whether we have given up."""
        strangers = [] if self.guard is None or self.guard.has_company else self.guard.strangers
        if strangers:
            self._refuse(f"somebody is in this group, but {strangers[0]}")
        elif self._is_secured:
            self._refuse("the group of this name is secured: pass secret= or identity=")
        return self.refused is not None

    def _refuse(self, why: str) -> None:
        self.refused = UsageError(f"{self.member.name!r} cannot join: {why}")

    def _meet(self, told: Told, now: float) -> None:
        """Handle the request of another process without a view. The addresses of others in it only tell us where to send: these processes
        count as present once they are heard themselves."""
        person = Member(*told.identity, told.text("address"))
        if person.identity == self.member.identity or (self._accepts and self._accepts(person)):
            return
        # It was in a view, and looks for that group, not for processes to found another.
        if told.number("view"):
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
