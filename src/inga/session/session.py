"""The session: what is the same under every order, in one layer beneath them all.

    presence   who is here, who has left: `presence`
    changes    members that join, other orders: `changes`
    pressure   who holds the group up: `pressure`

It stands below everything that numbers, orders or repairs packets and stays when the order changes. Its own packets
are small, rare, and readable in a packet dump. Views with failures belong here, too.
"""

from collections.abc import Hashable, Mapping
from typing import Any

from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.model.view import View
from inga.session.alarms import NEVER
from inga.session.changes import BuildByName, Changes
from inga.session.door import Accepts
from inga.session.presence import Presence
from inga.session.pressure import Pressure
from inga.stack.layer import Layer
from inga.stack.stack import Done
from inga.wire.packet import OUTSIDE
from inga.wire.told import Told, said


class Session(Layer):
    """Takes the session's packets apart, and lets its parts answer."""

    name = "session"
    id = 3
    grows = True
    stays = True

    def __init__(
        self,
        build: BuildByName | None = None,
        *,
        greet: bool = False,
        config: Mapping[str, Any] | None = None,
        accepts: Accepts | None = None,
    ) -> None:
        """`build` makes the layers of a recipe by its name; without it the order cannot change. `greet`: say from
        the start that we are here. `config`: what members agree on, as people know it. `accepts`: the driver's
        objections to newcomers."""
        self.presence = Presence(self, greet=greet, config=dict(config or {}))
        self.changes = Changes(self, build, accepts)
        self.pressure = Pressure(self)

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        wake = self.presence.wake
        if not self.stack.leaving:
            wake = min(wake, self.changes.wake, self.pressure.wake)
        return None if wake == NEVER else wake

    @property
    def digest(self) -> str:
        """What members agree on, in short."""
        return f"{self.stack.group:08x}"

    # Hooks

    def view(self, view: View) -> None:
        self.changes.view(view)
        self.presence.view()

    def extend(self, view: View) -> None:
        self.presence.view()

    def control(self, packet: Packet) -> None:
        if self.stack.leaving:
            return
        try:
            self.changes.hear(packet.src, Told.read(packet.ext))
        except WireError as error:
            self.stack.reject(error.reason, packet)
            return
        self.stack.meet(packet)

    def outside(self, packet: Packet, address: Hashable) -> None:
        """What belongs to no view: of members, of newcomers, and of anybody else who knows the group's name."""
        try:
            told = Told.read(packet.ext)
            if told.do == "here":
                self.presence.on_here(packet, told)
            elif packet.src == self.stack.me:
                return  # our own, come back to us
            elif told.do == "goodbye":
                self.presence.on_goodbye(told)
            elif told.do == "farewell":
                self.presence.on_farewell(told)
            elif told.do == "who":
                self.presence.on_who(packet, told)
            elif not self.stack.leaving:
                self.changes.hear_newcomer(told, address)
        except WireError as error:
            self.stack.reject(error.reason)

    def ahead(self, number: int) -> None:
        if not self.stack.leaving:
            self.changes.ahead(number)

    def tick(self, now: float) -> None:
        for part in (self.presence,) if self.stack.leaving else (self.presence, self.changes, self.pressure):
            if part.wake <= now:
                part.tick(now)

    def turn(self) -> None:
        if self.presence.early:
            self.presence.turn()
        self.pressure.turn()

    def reviewed(self, is_open: bool) -> None:
        self.pressure.sending(is_open)

    def gone(self, member: int) -> None:
        self.presence.gone(member)
        if not self.stack.leaving:
            self.changes.gone(member)

    def propose(self, recipe: str, done: Done) -> None:
        if self.stack.leaving:
            done("this member leaves the group")
        else:
            self.changes.propose(recipe, done)

    def goodbye(self) -> None:
        self.changes.stop()
        self.presence.goodbye()

    @property
    def settled(self) -> bool:
        """Whether no change is under way; once we leave, whether everybody knows."""
        return self.presence.has_left if self.stack.leaving else self.changes.settled

    # What its parts say

    def what_to_know(self) -> dict[str, int]:
        """What a member has to know of us before our first packet, as far as layers say so."""
        return {key: count for base in self.stack.chain.hooks("introduce") for key, count in base().items()}

    def got_to_know(self, packet: Packet, told: Told) -> None:
        """A member has told what layers have to know of it."""
        for introduced in self.stack.chain.hooks("introduced"):
            introduced(packet.src, told.counts("bases"))

    def say(self, to: int | None, view: int, do: str, what: Mapping[str, Any]) -> None:
        """Send a session message that belongs to a view, to one member or to all."""
        packet = Packet(self.stack.me, view, kind=self.id)
        packet.to = to
        packet.ext = said(do, **what)
        self.stack.emit([packet])

    def answer(self, address: Hashable, do: str, **what: Any) -> None:
        """Send a session message to a sender that is no member, at the address from which it wrote."""
        packet = Packet(self.stack.me, OUTSIDE, kind=self.id)
        packet.ext = said(do, **what)
        self.stack.wire.answer(packet, address)

    def say_outside(self, to: int | None, do: str, **what: Any) -> None:
        """Send a session message that belongs to no view."""
        self.say(to, OUTSIDE, do, what)
