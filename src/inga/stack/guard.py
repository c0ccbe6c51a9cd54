"""What a stack needs from the guard of a secured group, which stands between stack and network: see `inga.secure`."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inga.model.notice import Notice
from inga.model.packet import Buffer
from inga.model.view import View

if TYPE_CHECKING:
    from inga.stack.stack import Address, Datagram


class Useless(NamedTuple):
    """How many useless datagrams arrived lately."""

    by_place: dict[Hashable, int]  # by source address
    elsewhere: int  # from addresses that are not counted one by one
    words: int  # handshake messages, useful or not


class Senders(Protocol):
    """The addresses that a member knows, and counts of the datagrams that others have sent it."""

    words_begin: bytes | None
    """The first bytes of this group's handshake messages, without the byte for their kind; None if there are no handshakes."""

    @property
    def members(self) -> frozenset[str]:
        """The addresses from which members of the view in force send, as `host:port`."""
        ...

    @property
    def visitors(self) -> frozenset[str]:
        """The addresses from which other authenticated processes send, as `host:port`."""
        ...

    def useless(self) -> Useless:
        """The useless datagrams since the last call."""
        ...


class Ways(Protocol):
    """How two processes that do not hear each other communicate through a third."""

    def introduce(self, address: Hashable, leader: str, now: float) -> str:
        """The process at `address` asks for admission, and `leader` may not hear it: forward messages between the two for a while.
        Return the id by which the leader refers to the process; the empty string if that is not possible."""
        ...

    def introduced(self, by: str, process: str, now: float) -> None:
        """Member `by` says that `process` asks for admission, and forwards messages between us: authenticate it. Raises WireError
        if the id is invalid, or if `by` says this too often."""
        ...


class Guard(Protocol):
    """Seals outgoing datagrams and opens incoming ones, so that strangers neither read nor disturb a group."""

    wake: float | None
    words: "list[tuple[Address, Datagram]]"
    """The messages of its own that the guard added when it last sealed something."""
    rejected: Counter[str]
    opened: int
    """The number of datagrams opened so far: their senders had a key."""

    @property
    def ways(self) -> Ways: ...

    @property
    def senders(self) -> Senders: ...

    def open(self, batch: Iterable[tuple[Buffer, Hashable]], now: float) -> list[tuple[Buffer, Hashable]]:
        """The packets in those of these datagrams whose senders had the right key."""
        ...

    def seal(
        self, sends: "Sequence[tuple[Address, Datagram]]", now: float
    ) -> "list[tuple[Address, Datagram]]":
        """The sealed datagrams for these packets, and the guard's own messages."""
        ...

    def is_sealed(self, datagram: Buffer) -> bool:
        """Whether a datagram is for `open`; a plain packet is not."""
        ...

    def tick(self, now: float) -> None:
        """The time `wake` has come."""
        ...

    def told(self) -> list[Notice]:
        """The notices since the last call."""
        ...

    @property
    def places(self) -> frozenset[str]:
        """The addresses of authenticated processes, as `host:port`; the same object until they change."""
        ...

    @property
    def strangers(self) -> list[str]:
        """For each process of a group of this name that could not authenticate itself, what is wrong with it."""
        ...

    @property
    def has_company(self) -> bool:
        """Whether any other process has authenticated itself."""
        ...

    def enter(self, tag: int, view: View, me: int, now: float) -> None:
        """`view` is in force from now on."""
        ...

    def expect(self, tag: int, view: View, me: int, secret: bytes) -> None:
        """`view`, which has that secret, may follow the view in force."""
        ...

    def fresh(self) -> bytes:
        """A new secret, for a view to come."""
        ...

    def secret_for(self, name: str) -> str | None:
        """The secret of the view in force, wrapped for a member that has just joined it; None if there is no such member or no
        channel to it, or if it has sent in this view already."""
        ...

    def wrap(self, name: str, secret: bytes) -> str | None:
        """A secret, wrapped for one member; None: there is no channel with it yet."""
        ...

    def unwrap(self, name: str, text: str) -> bytes:
        """The secret that a member has wrapped for us. Raises WireError if the text is not that."""
        ...

    def speaks_for(self, address: Hashable, *names: str) -> bool:
        """Whether the process at `address` has authenticated itself under one of these names."""
        ...

    def address_of(self, name: str) -> Hashable:
        """The address at which the process of that name was heard last; None if it is unknown."""
        ...
