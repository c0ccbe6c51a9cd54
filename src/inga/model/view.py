"""The members of a group, and the view: the numbered list of them that all agree on."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

MEMBERS_MAX = 1024
"""The most members of a view. What a member keeps for each pair of members grows with the square of this, and takes 150 MB here."""


@dataclass(frozen=True, slots=True)
class Member:
    """A participant. A name may come back after a crash; name and incarnation together never do."""

    name: str
    incarnation: int = 1
    address: str = ""  # `host:port` at which it can be reached, if it has one

    @property
    def identity(self) -> tuple[str, int]:
        """Name and incarnation: never that of another process."""
        return self.name, self.incarnation

    def reborn(self, free: int = 0) -> "Member":
        """The same member as a new incarnation, since an incarnation that is gone never becomes a member again. `free`: an
        incarnation from which on none has been a member, as far as the others know."""
        return replace(self, incarnation=max(self.incarnation + 1, free))

    @property
    def signed(self) -> tuple[str, int, str]:
        """Name, incarnation and an empty address: its form in control messages whose receivers do not need the address."""
        return self.name, self.incarnation, ""


@dataclass(frozen=True)
class View:
    """The agreed, ordered list of members. A member's index is its position here, and in this view alone.

    Number, leader and attempt together are never used twice: two parts of a group that cannot reach each other may
    both go on to a view of the same number, and these are different views.
    """

    number: int
    members: tuple[Member, ...]
    recipe: str = ""
    traced: bool = False  # everybody attaches what a certifiable trace needs
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    leader: int = 0  # the incarnation of the member that led the change to this view
    attempt: int = 0  # which of the attempts at such a change it was
    processes: tuple[int, ...] = ()  # of each member: its number among all that were ever in the group
    total: int = 0  # how many processes were ever in the group
    merged: tuple[
        tuple[str, ...], ...
    ] = ()  # parts of the group that come together here, each by the names of its members
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(member.name for member in self.members))
        if not self.processes:
            object.__setattr__(self, "processes", tuple(range(len(self.members))))
            object.__setattr__(self, "total", len(self.members))

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def text(self) -> str:
        """What tells this view from every other, in any part of the group."""
        people = " ".join(f"{member.name}:{member.incarnation}" for member in self.members)
        return f"{self.number} {self.attempt} {self.leader} {people}"

    def extended(self, member: Member) -> "View":
        """The next view, with one member more at the end."""
        return View(self.number + 1, (*self.members, member), self.recipe, self.traced, joined=(member.name,))

    def index(self, member: Member) -> int | None:
        """The place of a member, if it is in this view."""
        wanted = member.identity
        return next((i for i, each in enumerate(self.members) if each.identity == wanted), None)

    def listed(self, members: Iterable[int]) -> str:
        """Members by name, for a sentence."""
        return ", ".join(self.names[member] for member in sorted(members))

    def numbered(self, names: Iterable[str]) -> str:
        """Members by the processes that a trace knows them by."""
        places = dict(zip(self.names, self.processes, strict=True))
        return ", ".join(str(places[name]) for name in names if name in places)

    @classmethod
    def of(cls, *names: str, recipe: str = "", traced: bool = False) -> "View":
        """The first view of a group whose members are known beforehand."""
        return cls(1, tuple(map(Member, names)), recipe, traced, joined=names)
