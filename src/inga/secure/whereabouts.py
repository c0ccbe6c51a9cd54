"""From where those speak who have proven who they are: whoever filters what comes in asks for it.

over a channel     believed, up to a few places of each process
in a view          one place of each member. Where it speaks over its channel is believed first, and another only when nothing
                   has come from there for a while: a stranger can repeat what is said to everybody, and be heard where that
                   was lost
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol

MOVED = 1.0
"""Seconds for which a member has to be silent where it was before it is believed to speak from elsewhere."""


class Located(Protocol):
    """Somebody with a name and an address: a channel."""

    name: str
    address: Hashable


class Whereabouts:
    """Whose large datagrams are let in."""

    def __init__(self, by_name: Mapping[str, Located], by_address: Mapping[str, Located]) -> None:
        """The channels, by the names and by the addresses of the others; say so when addresses come or go."""
        self._by_name = by_name
        self._by_address = by_address
        self.members: frozenset[str] = frozenset()  # names in the view in force
        self._speaks: dict[
            str, tuple[Hashable, float]
        ] = {}  # where each member does in views, and when it did last
        self._all: frozenset[str] = frozenset()
        self._of_members: frozenset[str] = frozenset()
        self.has_changed = False  # since that was made

    @property
    def all(self) -> frozenset[str]:
        """As `host:port`; the same object until it changes."""
        self._look()
        return self._all

    @property
    def of_members(self) -> frozenset[str]:
        """Those of them from where members of the view in force speak."""
        self._look()
        return self._of_members

    def _look(self) -> None:
        if not self.has_changed:
            return
        self.has_changed = False
        speak = {as_text(address) for address, _ in self._speaks.values()}
        places = {*self._by_address, *speak}
        of_members = {
            place for place, channel in self._by_address.items() if channel.name in self.members
        } | speak
        # The other set counts as well: whose places these are may change while the places stay.
        if places != self._all or of_members != self._of_members:
            self._all, self._of_members = frozenset(places), frozenset(of_members)

    def enter(self, members: Iterable[str]) -> None:
        """These are in the view in force; who was in another before has kept its keys, and is nobody."""
        self.members = frozenset(members)
        self._speaks = {name: known for name, known in self._speaks.items() if name in self.members}
        self.has_changed = True

    def hear(self, name: str, address: Hashable, now: float) -> None:
        """Somebody of that name has said something in a view."""
        known = self._speaks.get(name)
        if known is None:
            if name not in self.members:
                return
            channel = self._by_name.get(name)
            known = (address if channel is None or channel.address is None else channel.address), now
            self.has_changed = True
        place, heard = known
        if place != address and now - heard > MOVED:
            place, self.has_changed = address, True
        self._speaks[name] = place, now if place == address else heard


def as_text(address: Hashable) -> str:
    """An address as people write it: members say it so, and sockets as a pair."""
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
