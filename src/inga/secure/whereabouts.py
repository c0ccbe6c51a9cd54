"""The addresses from which authenticated processes send, for the filter of incoming datagrams.

over a channel     believed, up to a few addresses of each process
in a view          one address of each member: first the one from which it uses its channel; another one replaces it only after a while
                   without traffic from the first, since a stranger can repeat datagrams that were sent to all, from its own address
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol

MOVED = 1.0
"""Seconds without traffic from a member's known address before another address of it is believed."""


class Located(Protocol):
    """Something with a name and an address: a channel."""

    name: str
    address: Hashable


class Whereabouts:
    """The addresses from which large datagrams are accepted."""

    def __init__(self, by_name: Mapping[str, Located], by_address: Mapping[str, Located]) -> None:
        """The channels, by name and by address; the owner of `by_address` sets `has_changed` when addresses come or go."""
        self._by_name = by_name
        self._by_address = by_address
        self.members: frozenset[str] = frozenset()  # names in the view in force
        self._speaks: dict[
            str, tuple[Hashable, float]
        ] = {}  # the address from which each member sends in views, and when it last did
        self._all: frozenset[str] = frozenset()
        self._of_members: frozenset[str] = frozenset()
        self.has_changed = False  # since the two sets were made

    @property
    def all(self) -> frozenset[str]:
        """All these addresses, as `host:port`; the same object until they change."""
        self._look()
        return self._all

    @property
    def of_members(self) -> frozenset[str]:
        """Those of them from which members of the view in force send."""
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
        # Compare the second set as well: the owners of addresses may change while the addresses stay.
        if places != self._all or of_members != self._of_members:
            self._all, self._of_members = frozenset(places), frozenset(of_members)

    def enter(self, members: Iterable[str]) -> None:
        """Note the members of the view in force. Former members still have keys of their views, but are not members any more."""
        self.members = frozenset(members)
        self._speaks = {name: known for name, known in self._speaks.items() if name in self.members}
        self.has_changed = True

    def hear(self, name: str, address: Hashable, now: float) -> None:
        """A member of that name has sent a datagram in the view, from that address."""
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
    """Return an address as `host:port`, as members write it; sockets give it as a pair."""
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
