"""The session: what all orders have in common, in one layer beneath them.

    presence   which members are present, and which have left: `presence`
    silence    members that are not heard any more: `silence`
    detours    members that others hear, but not we: `detours`
    porter     newcomers that members hear, but not the leader: `porter`
    changes    view changes: members that join, leave or fail, other orders: `changes`
    quorum     whether a part of the group may go on without the others: `quorum`
    parts      other parts of the group, if it has fallen apart: `parts`
    handover   states of objects for newcomers: `handover`
    transfer   states of applications for newcomers: `transfer`
    slow       what is done about a member that holds the group up: `slow`
    pressure   which members hold the group up: `pressure`

It is below everything that numbers, orders or repairs packets and stays when the view changes. Its own packets
are small, rare, and readable in a packet dump.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.errors import Excluded, WireError
from inga.model.packet import Packet
from inga.model.view import View
from inga.secure.carrying import WayRound
from inga.session.alarms import NEVER
from inga.session.changes import Changes
from inga.session.detours import Detours
from inga.session.door import Accepts
from inga.session.handover import Handover
from inga.session.hearing import Hearing
from inga.session.parts import Parts
from inga.session.porter import Carried, Porter
from inga.session.presence import Presence
from inga.session.pressure import Pressure
from inga.session.quorum import Quorum
from inga.session.silence import Silence
from inga.session.slow import PATIENCE, Slow
from inga.session.transfer import Transfer
from inga.session.wishes import BuildByName
from inga.stack.guard import Guard
from inga.stack.layer import Layer
from inga.stack.stack import Done, Stack
from inga.wire.packet import OUTSIDE
from inga.wire.told import Told, said

SPOKEN_FOR = ("here", "hello", "lost")
"""Control messages that a process may send about itself only."""

SPOKEN_OF = ("goodbye", "farewell", "excluded", "double")
"""Control messages that a process may send about itself, and a member also about others: a process that is not a member can exclude nobody."""


def is_impostor(guard: Guard | None, told: Told, address: Hashable, members: tuple[str, ...] = ()) -> bool:
    """Whether the sender uses a name that it has not proven, or makes a statement about others without being one of `members`."""
    if guard is None or told.do not in SPOKEN_FOR + SPOKEN_OF:
        return False
    others = members if told.do in SPOKEN_OF else ()
    return not guard.speaks_for(address, told.text("name"), *others)


@mypyc_attr(allow_interpreted_subclasses=True)
class Session(Layer):
    """Reads the session's packets, and passes each to the part that handles it."""

    name = "session"
    id = 3
    stays = True

    def __init__(
        self,
        build: BuildByName | None = None,
        *,
        greet: bool = False,
        config: Mapping[str, Any] | None = None,
        accepts: Accepts | None = None,
        detect: float | None = None,
        rejoin: bool = False,
        partition: str | None = None,
        slow: str = "wait",
        patience: float = PATIENCE,
        open: bool = False,
        gives: str = "",
        wants: str = "",
    ) -> None:
        """`build` makes the layers of a recipe by its name; without it the view cannot change. `greet`: send greetings from
        the start. `config`: the settings that members have to agree on, in the form that people know. `accepts`: the driver's
        objections to newcomers. `detect`: seconds of silence after which a member is suspected; None: never. `rejoin`: come back when
        we were excluded. `partition`: which parts of a group go on; None: as the order prefers. `slow`: what is done about a
        member that holds up the others for longer than `patience`. `open`: the members were not listed beforehand.
        `gives`, `wants`: the kinds of state that the application gives to newcomers, and takes as a newcomer."""
        self.hearing = Hearing()
        self.changes_views = build is not None
        self.presence = Presence(self, greet=greet, config=dict(config or {}))
        self.changes = Changes(self, build, accepts)
        self.pressure = Pressure(self)
        self.silence = Silence(self, detect)
        self.detours = Detours(self)
        self.porter = Porter(self)
        self.quorum = Quorum(self, partition)
        self.slow = Slow(self, slow, patience)
        self.parts = Parts(self, rejoin=rejoin, is_open=open)
        self.handover = Handover(self)
        self.transfer = Transfer(self, gives, wants)

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        wake = self.presence.wake
        if not self.stack.leaving:
            wake = min(
                wake,
                self.changes.wake,
                self.pressure.wake,
                self.silence.wake,
                self.parts.wake,
                self.handover.wake,
                self.transfer.wake,
            )
        return None if wake == NEVER else wake

    @property
    def digest(self) -> str:
        """The hash of the group, which all its members have in common."""
        return f"{self.stack.group:08x}"

    # Hooks

    def view(self, view: View) -> None:
        self.hearing.view(len(view))
        self.detours.view()
        self.parts.view(view)
        self.changes.view(view)
        self.presence.view()
        self.silence.view()
        self.quorum.view()
        self.slow.view()
        self.handover.view()
        self.transfer.view(view)

    def control(self, packet: Packet) -> None:
        if self.parts.is_homeless:
            return
        if not self.hearing.hears(packet.src, self.stack.now):
            self.stack.reject("budget", packet)
            return
        try:
            told = Told.read(packet.ext)
            if self.stack.leaving and told.do != "passed":
                return
            self._hear(packet, told)
        except WireError as error:
            self.stack.reject(error.reason, packet)
            return
        self.stack.meet(packet)

    def _hear(self, packet: Packet, told: Told) -> None:
        src = packet.src
        match told.do:
            case "alive":
                pass  # its arrival is all that matters
            case "suspect":
                self.silence.on_suspect(src, told)
            case "unmet":
                self.silence.on_unmet(src, told)
            case "heard":
                self.silence.on_heard(src, told)
            case "pass":
                self.detours.on_pass(packet, told)
            case "passed":
                self.detours.on_passed(packet, told)
            case "knock":
                self.porter.on_knock(packet, told)
            case "reply":
                self.porter.on_reply(packet, told)
            case "slow":
                self.slow.on_slow(src, told)
            case "reading":
                self.slow.on_reading(src)
            case "owed":
                self.slow.on_owed(src, told)
            case "ask":
                self.handover.on_ask(src, told)
            case "piece":
                self.handover.on_piece(packet, told)
            case "none":
                self.handover.on_none(told)
            case "lack":
                self.handover.on_lack(src, told)
            case "complete":
                self.handover.on_complete(src, told)
            case "fetch":
                self.transfer.on_fetch(src, told)
            case "state":
                self.transfer.on_state(packet, told)
            case "stateless":
                self.transfer.on_stateless(src, told)
            case _:
                self.changes.hear(src, told)

    def outside(self, packet: Packet, address: Hashable) -> None:
        """Handle a packet that belongs to no view: of a member, of a newcomer, or of any other process that knows the group's name."""
        if not self.hearing.hears_from(address, self.stack.now):
            self.stack.reject("budget")
            return
        try:
            told = Told.read(packet.ext)
            if is_impostor(self.stack.guard, told, address, self.stack.view.names):
                raise WireError("impostor", f"{told.do!r} in the name of another")
            if told.do == "here":
                # A relayed greeting shows neither its sender's address nor that we hear it.
                if not isinstance(address, WayRound):
                    self.presence.on_here(packet, told)
            elif told.do == "goodbye":
                self.presence.on_goodbye(told, packet.where)
            elif told.do == "excluded":
                self.presence.on_excluded(packet, told)
            elif told.do == "double":
                self.presence.on_double(told)
            elif told.do == "farewell":
                self.presence.on_farewell(told)
            elif told.do == "who":
                self.presence.on_who(packet, told)
            elif not self.stack.leaving:
                self.hear_stranger(told, address)
                if told.do == "hello":
                    self.porter.heard(told, packet.ext or b"", address)
        except WireError as error:
            self.stack.reject(error.reason)

    def hear_stranger(self, told: Told, address: Hashable) -> None:
        """Handle a control message of a process that is not a member, or of a member outside its view; answers go to that address."""
        if told.do in ("hello", "part", "lost") and told.text("group") == self.digest:
            self.stack.places.learn(told.text("address", ""))
        match told.do:
            case "part":
                self.parts.on_part(told, address)
            case "lost":
                self.parts.on_lost(told, address)
            case "welcome":
                self.parts.on_welcome(told)
            case "again" | "closed":
                self.parts.on_refused(told)
            case _:
                if told.do == "hello":
                    self.quorum.on_hello(told)
                self.changes.hear_newcomer(told, address)

    def earlier(self, cuts: Sequence[int]) -> None:
        self.changes.cuts = list(cuts)

    def ahead(self, number: int) -> None:
        if not self.stack.leaving:
            self.changes.ahead(number)

    def late(self, view: View, source: int, address: Hashable) -> None:
        if not self.stack.leaving:
            self.changes.late(view, source, address)

    def tick(self, now: float) -> None:
        parts = (
            self.presence,
            self.parts,
            self.silence,
            self.changes,
            self.handover,
            self.transfer,
            self.pressure,
        )
        for part in parts[:1] if self.stack.leaving else parts:
            if part.wake <= now:
                part.tick(now)

    def turn(self) -> None:
        if self.presence.early:
            self.presence.turn()
        self.changes.turn()
        self.pressure.turn()
        self.slow.turn()

    def reviewed(self, is_open: bool) -> None:
        self.pressure.sending(is_open)

    def gone(self, member: int) -> None:
        self.presence.gone(member)
        self.silence.gone(member)
        self.detours.gone(member)
        self.quorum.review()
        self.transfer.gone(member)
        self.handover.complete(member)
        if not self.stack.leaving:
            self.changes.gone(member)

    def propose(self, recipe: str, done: Done) -> None:
        if self.stack.leaving:
            done("this member leaves the group")
        elif self.stack.paused is not None:
            done(str(self.stack.paused))
        else:
            self.changes.propose(recipe, done)

    def goodbye(self) -> None:
        self.changes.wishes.end("this member leaves the group")  # a change in progress goes on without us
        self.presence.goodbye()

    @property
    def settled(self) -> bool:
        """Whether no change is in progress; once we leave, whether all members have confirmed our goodbye."""
        return self.presence.has_left if self.stack.leaving else self.changes.settled

    # For the parts of the session

    def go_on(self) -> None:
        self.quorum.go_on()

    def excluded(
        self, why: str = "the others do not take us for a member any more", *, for_good: bool = False
    ) -> None:
        """The others do not count us as a member any more. We ask for admission if `rejoin` is set; if we have just started, and were
        no member yet; if only one part of the group goes on, and has gone on without us, unless the exclusion is `for_good`;
        or if we were too slow and the policy is to skip messages. Otherwise this member fails with `Excluded`."""
        if self.parts.is_homeless:
            return
        skips = why == self.slow.why and self.slow.policy == "skip"
        if skips or self.parts.rejoin or self.is_new or (self.quorum.is_primary and not for_good):
            self.parts.reads_first = skips
            self.changes.leave_home()
        else:
            self.stack.fail(Excluded(why))

    @property
    def is_new(self) -> bool:
        """Whether we are a listed founder that has met no other one yet: the others may have begun without us."""
        return not self.stack.met and not self.stack.view.attempt

    def left_behind(self, *, is_slow: bool) -> None:
        """The others go on without us; `is_slow`: because we held them up."""
        if is_slow:
            self.excluded(self.slow.why, for_good=True)
        else:
            self.excluded()

    def exclude(self, members: set[int]) -> None:
        """Declare these members failed: nobody waits for them any more, and the next view is without them."""
        with self.changes.at_once():
            for member in sorted(members):
                self.stack.gone(member, failed=True)

    def what_to_know(self) -> dict[str, int]:
        """Collect from the layers what a member has to know of us before our first packet."""
        return {key: count for base in self.stack.chain.hooks("introduce") for key, count in base().items()}

    def got_to_know(self, packet: Packet, told: Told) -> None:
        """Pass the data in a member's greeting that layers need to the layers."""
        for introduced in self.stack.chain.hooks("introduced"):
            introduced(packet.src, told.counts("bases"))

    def say(self, to: int | None, view: int, do: str, what: Mapping[str, Any], body: bytes = b"") -> None:
        """Send a control message that belongs to a view, to one member or to all; `body`: the datagram, the piece of a state or the
        other process's message that it carries."""
        packet = Packet(self.stack.me, view, body, kind=self.id)
        packet.to = to
        packet.ext = said(do, **what)
        self.stack.emit([packet])

    def answer(self, whom: Hashable, do: str, **what: Any) -> None:
        """Send a control message to the address from which a process has sent, which need not be a member; by way of the member that carries for it, if any."""
        if isinstance(whom, Carried):
            self.porter.reply(whom, said(do, **what))
            return
        packet = Packet(self.stack.me, OUTSIDE, kind=self.id)
        packet.ext = said(do, **what)
        self.stack.wire.answer(packet, whom)

    def say_outside(self, whom: int | None, do: str, **what: Any) -> None:
        """Send a control message that belongs to no view."""
        self.say(whom, OUTSIDE, do, what)


def session_of(stack: Stack) -> Session:
    """Return the session of a stack: every recipe has one."""
    session = stack.layer(Session.name)
    assert isinstance(session, Session)
    return session
