"""Copies of objects at a newcomer: their states come from members that had a copy before.

Every member of the previous view keeps the states with which the view began, and hands them over when asked, until each
newcomer has all that it lacks. A newcomer does the same with each state that it has got. Until it has all of them it keeps
the packets that it receives: they are calls on those states. If no member of the previous view has a copy of an object, and
several newcomers are to have one, they need each other's state, since each may have come back with one of its own.
"""

from collections.abc import Mapping

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.objects.hosting import Declared
from inga.objects.invoke import Host
from inga.stack.hooks import Lack
from inga.wire.value import copied, get, put


@mypyc_attr(allow_interpreted_subclasses=True)
class LateCopies:
    """The states of objects that one member lacks in a view, and those that it can hand over."""

    def __init__(
        self, host: Host, me: int, view: View, objects: Mapping[str, Declared], since: Mapping[str, int]
    ) -> None:
        """`since`: for objects of which we had a copy, the latest view in which we had its state."""
        self.missing: dict[str, Lack] = {}  # objects whose state has not arrived
        self._host = host
        self._me = view.names[me]
        self._number = view.number
        self._since = since
        self._early: list[Packet] = []  # packets that arrived before all states had
        self._incomplete: set[int] = set()  # other newcomers that lack something
        old = {member for member, name in enumerate(view.names) if name not in view.joined}
        if view.attempt:
            for name, (_, where) in objects.items():
                holders = [member for member in where if member in old]
                others = [member for member in where if member not in old and member != me]
                if not holders and len(where) < 2:
                    continue  # there is no other copy to agree with
                self._incomplete.update(others)
                if me in where and me not in old:
                    self.missing[name] = Lack(holders, others, since.get(name, 0))
        # The states to hand over: as they were when the view began, or as we received them.
        self._given = host.states() if self._incomplete and me in old else {}

    def had(self) -> dict[str, int]:
        """The objects of which we have a copy, and the latest view in which we had the state of each."""
        since, missing = self._since, self.missing
        return {name: since.get(name, 0) if name in missing else self._number for name in self._host.states()}

    def keep(self, packets: list[Packet]) -> None:
        """Keep these packets until no state is missing."""
        for packet in packets:
            packet.keep()
        self._early += packets

    def hand_over(self, name: str) -> bytes:
        """The state of an object as it was when the view began."""
        if name not in self._given:
            raise UsageError(f"{self._me} has no state of an object {name!r} to hand over")
        out = bytearray()
        put(out, copied(self._given[name]))
        return bytes(out)

    def complete(self, member: int) -> None:
        """A newcomer has all states, or is gone. Once no newcomer lacks a state, those that were kept are dropped."""
        self._incomplete.discard(member)
        if not self._incomplete:
            self._given.clear()

    def incomplete(self) -> set[int]:
        """Newcomers for which we keep states."""
        return self._incomplete if self._given else set()

    def take_over(self, name: str, state: bytes | None) -> list[Packet]:
        """Take over a state; None: no member can hand it over any more, and our own state remains. If it was the last one that
        was missing, returns the packets that were kept. WireError if the state cannot be read."""
        if self.missing.pop(name, None) is None:
            return []
        if state is not None:
            self._host.restore(name, get(state, 0)[0])
        if self._incomplete:
            self._given[name] = self._host.states()[name]
        if self.missing:
            return []
        packets, self._early = self._early, []
        return packets
