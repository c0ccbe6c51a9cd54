"""What a stack needs of whatever stands between it and the network, where there is something: see `inga.secure`."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inga.model.notice import Notice
from inga.model.packet import Buffer
from inga.model.view import View

if TYPE_CHECKING:
    from inga.stack.stack import Address, Datagram


class Useless(NamedTuple):
    """How many datagrams came of late that were of no use."""

    by_place: dict[Hashable, int]
    elsewhere: int  # from places that are not counted one by one
    words: int  # of handshakes, whatever came of them


class Senders(Protocol):
    """Whom a member knows, and what others have sent it."""

    words_begin: bytes | None
    """How words of handshakes of this group begin, but for what kind of word it is; None where there are none."""

    @property
    def members(self) -> frozenset[str]:
        """From where members of the view in force send, as `host:port`."""
        ...

    @property
    def visitors(self) -> frozenset[str]:
        """From where others do who have proven who they are."""
        ...

    def useless(self) -> Useless:
        """What came that was of no use, since this was asked last."""
        ...


class Ways(Protocol):
    """How those who do not hear each other speak by a third."""

    def introduce(self, address: Hashable, leader: str, now: float) -> str:
        """Whoever speaks from there asks to be let in by that member, which may not hear it: hand on what they say for a while.
        By what that member finds it; nothing if it cannot be done."""
        ...

    def introduced(self, by: str, process: str, now: float) -> None:
        """A member says that somebody asks, and hands on what we say to each other: see who it is. WireError if that cannot
        be."""
        ...


class Guard(Protocol):
    """Seals what leaves and opens what comes, so that strangers neither read nor disturb a group."""

    wake: float | None
    words: "list[tuple[Address, Datagram]]"
    """What it said itself when it last sealed something."""
    rejected: Counter[str]
    opened: int
    """Datagrams that were sealed by somebody with a key, so far."""

    @property
    def ways(self) -> Ways: ...

    @property
    def senders(self) -> Senders: ...

    def open(self, batch: Iterable[tuple[Buffer, Hashable]], now: float) -> list[tuple[Buffer, Hashable]]:
        """The packets in these datagrams that somebody has sealed who may speak so."""
        ...

    def seal(
        self, sends: "Sequence[tuple[Address, Datagram]]", now: float
    ) -> "list[tuple[Address, Datagram]]":
        """The datagrams for these packets, and what the guard says itself."""
        ...

    def is_sealed(self, datagram: Buffer) -> bool:
        """Whether it is something that `open` takes: a packet is not."""
        ...

    def tick(self, now: float) -> None:
        """Its time has come."""
        ...

    def told(self) -> list[Notice]:
        """What a person is to know, since the last call."""
        ...

    @property
    def places(self) -> frozenset[str]:
        """From where those speak who have proven who they are, as `host:port`; the same object until that changes."""
        ...

    @property
    def strangers(self) -> list[str]:
        """What is wrong with those who are in a group of this name and could not prove who they are."""
        ...

    @property
    def has_company(self) -> bool:
        """Whether anybody has proven who it is."""
        ...

    def enter(self, tag: int, view: View, me: int, now: float) -> None:
        """This view is in force from now on."""
        ...

    def expect(self, tag: int, view: View, me: int, secret: bytes) -> None:
        """This view, which has that secret, may follow."""
        ...

    def fresh(self) -> bytes:
        """The secret of a view to come."""
        ...

    def secret_for(self, name: str) -> str | None:
        """The secret of the view in force, for a member that has just come into it; None: that one is not there."""
        ...

    def wrap(self, name: str, secret: bytes) -> str | None:
        """A secret for one member's eyes; None: it is not there yet."""
        ...

    def unwrap(self, name: str, text: str) -> bytes:
        """The secret that a member has wrapped for us; WireError if it has not."""
        ...

    def speaks_for(self, address: Hashable, *names: str) -> bool:
        """Whether whoever speaks from there has proven that it is called so, or one of these."""
        ...

    def address_of(self, name: str) -> Hashable:
        """Where the one of that name was heard last."""
        ...
