"""The way between two members is bad, and others hear both: what they have to say to each other goes round by a third.

Whoever does not hear a member that another one hears (see `silence`) sends a copy of all that is for it by that one:

    pass       to the one in between: hand this datagram on to that member
    passed     to the member that it is for, which reads it as if it had come by itself; it says whether its sender `needs`
               an answer on the same way, as it hears nothing on the straight one

So members whose cable is broken in one direction, or both, deliver, acknowledge, repair and change the view like all
others; nobody who is healthy has to be excluded. It ends when both are heard on the straight way again, and with the view.

Rejected: to lend what is missing at the end of a view only, as is done of those who are gone. Until then the two would
deliver nothing of each other, and everybody's windows would fill.
"""

from typing import TYPE_CHECKING

from inga.model.compiled import mypyc_attr
from inga.model.packet import Packet
from inga.session.alarms import NEVER
from inga.stack.stack import Address, Datagram, joined
from inga.wire.told import Told

if TYPE_CHECKING:
    from inga.session.session import Session


@mypyc_attr(allow_interpreted_subclasses=True)
class Detours:
    """Knows which members are reached by others; part of the session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._by: dict[int, int] = {}  # members that are reached by another, and by whom
        self._passed: dict[int, float] = {}  # when something of a member was handed on to us last
        self._straight: dict[int, float] = {}  # and when something came straight, before that
        self._needed: dict[int, float] = {}  # when a member said last that it does not hear us
        self._is_passing = False  # what is said now is on such a way already
        self._is_reading = (
            False  # what is read now came on one: nobody passes on what was, however deep it is packed
        )

    def view(self) -> None:
        """A view is installed, in which everybody has another index."""
        self._by.clear()
        self._passed.clear()
        self._straight.clear()
        self._needed.clear()
        self._watch()

    def gone(self, member: int) -> None:
        self._by = {target: by for target, by in self._by.items() if member not in (target, by)}
        self._watch()

    def begin(self, member: int, by: int) -> None:
        """That member is reached by another from now on."""
        self._by[member] = by
        self._watch()

    def hears(self, member: int, within: float) -> bool:
        """Whether something of it has come straight within so many seconds."""
        return self._session.stack.now - self._heard_straight(member) < within

    def _heard_straight(self, member: int) -> float:
        heard = self._session.stack.heard[member]
        is_straight = heard > self._passed.get(member, -NEVER)
        return heard if is_straight else self._straight.get(member, -NEVER)

    def forgive(self, late: float) -> None:
        """Our own alarm came late by so many seconds, which are held against nobody."""
        now = self._session.stack.now
        self._passed = {member: min(at + late, now) for member, at in self._passed.items()}
        self._straight = {member: min(at + late, now) for member, at in self._straight.items()}
        self._needed = {member: min(at + late, now) for member, at in self._needed.items()}

    def review(self, within: float) -> None:
        """Whoever is heard straight again, and hears us, is reached straight again."""
        now = self._session.stack.now
        self._by = {
            member: by
            for member, by in self._by.items()
            if not self.hears(member, within) or now - self._needed.get(member, -within) < within
        }
        self._watch()

    def on_pass(self, packet: Packet, told: Told) -> None:
        """A member asks us to hand something on."""
        to, needs = told.number("member"), told.flag("needs")
        if to in self._session.stack.peers and to != packet.src:
            self._say(to, "passed", packet.src, bytes(packet.body), needs=needs)

    def on_passed(self, packet: Packet, told: Told) -> None:
        """Something of a member that we may not hear."""
        stack, member = self._session.stack, told.number("member")
        if member not in stack.peers or member == packet.src or self._is_reading:
            return
        if told.flag("needs"):
            self._needed[member] = stack.now
            if member not in self._by:
                self.begin(member, packet.src)
        self._straight[member] = self._heard_straight(member)
        self._passed[member] = stack.now
        datagram = bytes(packet.body)
        self._is_reading = True
        try:
            if stack.guard is not None and not stack.guard.is_sealed(datagram):
                stack.wire.take([(datagram, None)])  # whoever handed it on has proven who it is
            else:
                stack.receive([(datagram, None)], now=stack.now)
        finally:
            self._is_reading = False

    def _watch(self) -> None:
        self._session.stack.wire.tell_also(self._go_round if self._by else None)

    def _go_round(self, to: Address, datagram: Datagram) -> None:
        """This was sent; those who do not get it that way get it by others."""
        if self._is_passing:
            return
        within = self._session.silence.detect or 0.0
        for member, by in list(self._by.items()):
            if to is None or to == member:
                self._say(by, "pass", member, joined(datagram), needs=not self.hears(member, within))

    def _say(self, to: int, do: str, member: int, datagram: bytes, *, needs: bool) -> None:
        self._is_passing = True
        number = self._session.stack.view.number
        self._session.say(to, number, do, {"member": member, "needs": needs}, datagram)
        self._is_passing = False
