"""Who is in the group: members, and the numbered list of them that all agree on."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Member:
    """A participant. A name may come back after a crash; name and incarnation together never do."""

    name: str
    incarnation: int = 1
    address: str = ""  # where it said it can be reached, if it joined a group that ran already


@dataclass(frozen=True, slots=True)
class View:
    """The agreed, ordered list of members. A member's index is its position here."""

    number: int
    members: tuple[Member, ...]
    recipe: str = ""
    traced: bool = False  # everybody attaches what a certifiable trace needs
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(member.name for member in self.members))

    def __len__(self) -> int:
        return len(self.members)

    def extended(self, member: Member) -> "View":
        """The next view, with one member more at the end."""
        return View(self.number + 1, (*self.members, member), self.recipe, self.traced, joined=(member.name,))

    def reordered(self, recipe: str) -> "View":
        """The next view, of the same members under another recipe."""
        return View(self.number + 1, self.members, recipe, self.traced)

    def listed(self, members: Iterable[int]) -> str:
        """Members by name, for a sentence."""
        return ", ".join(self.names[member] for member in sorted(members))

    @classmethod
    def of(cls, *names: str, recipe: str = "", traced: bool = False) -> "View":
        """The first view of a group whose members are known beforehand."""
        return cls(1, tuple(map(Member, names)), recipe, traced, joined=names)
