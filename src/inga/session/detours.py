"""Detours: where the path between two members is bad and a third member hears both, their datagrams travel by way of the third.

A member that does not hear another one, which a third one hears (see `silence`), also sends everything for it by way of the third:

    pass       to the member in between: forward this datagram to that member
    passed     to the destination, which reads the datagram as if it had come directly; says whether its sender `needs`
               an answer on the same path, since it hears nothing on the direct one

So members whose cable is broken in one direction, or both, deliver, acknowledge, repair and change the view like all
others; no healthy member has to be excluded. A detour ends when both hear each other directly again, and with the view.

Rejected: to lend missing packets only at the end of a view, as is done for those of departed members. Until then the two would
deliver nothing of each other, and the windows of all members would fill.
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
    """Knows which members are reached by way of others; part of the session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._by: dict[int, int] = {}  # members that are reached by way of another, and that other member
        self._passed: dict[int, float] = {}  # when a datagram of a member last came by way of another
        self._straight: dict[int, float] = {}  # and when one had last come directly before that
        self._needed: dict[int, float] = {}  # when a member last said that it needs answers by the detour
        self._is_passing = False  # the packet being sent takes a detour already
        self._is_reading = False  # the datagram being read came by one: a nested `passed` is not read

    def view(self) -> None:
        """A view is installed, in which members have other indices."""
        self._by.clear()
        self._passed.clear()
        self._straight.clear()
        self._needed.clear()
        self._watch()

    def gone(self, member: int) -> None:
        self._by = {target: by for target, by in self._by.items() if member not in (target, by)}
        self._watch()

    def begin(self, member: int, by: int) -> None:
        """Reach that member by way of another one from now on."""
        self._by[member] = by
        self._watch()

    def hears(self, member: int, within: float) -> bool:
        """Whether a packet of the member has come directly within so many seconds."""
        return self._session.stack.now - self._heard_straight(member) < within

    def _heard_straight(self, member: int) -> float:
        heard = self._session.stack.heard[member]
        is_straight = heard > self._passed.get(member, -NEVER)
        return heard if is_straight else self._straight.get(member, -NEVER)

    def forgive(self, late: float) -> None:
        """Our own alarm was late by so many seconds: do not hold them against others."""
        now = self._session.stack.now
        self._passed = {member: min(at + late, now) for member, at in self._passed.items()}
        self._straight = {member: min(at + late, now) for member, at in self._straight.items()}
        self._needed = {member: min(at + late, now) for member, at in self._needed.items()}

    def review(self, within: float) -> None:
        """End the detours to members that we hear directly again, and that hear us."""
        now = self._session.stack.now
        self._by = {
            member: by
            for member, by in self._by.items()
            if not self.hears(member, within) or now - self._needed.get(member, -within) < within
        }
        self._watch()

    def on_pass(self, packet: Packet, told: Told) -> None:
        """Forward a datagram that a member has sent by way of us."""
        to, needs = told.number("member"), told.flag("needs")
        if to in self._session.stack.peers and to != packet.src:
            self._say(to, "passed", packet.src, bytes(packet.body), needs=needs)

    def on_passed(self, packet: Packet, told: Told) -> None:
        """Read a datagram of another member that was forwarded to us."""
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
                stack.wire.take([(datagram, None)])  # the member that forwarded it has proven who it is
            else:
                stack.receive([(datagram, None)], now=stack.now)
        finally:
            self._is_reading = False

    def _watch(self) -> None:
        self._session.stack.wire.tell_also(self._go_round if self._by else None)

    def _go_round(self, to: Address, datagram: Datagram) -> None:
        """Also send this datagram by way of others to the members that need a detour."""
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
