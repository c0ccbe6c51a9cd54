"""Who is in the group: members, and the numbered list of them that all agree on."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Member:
    """A participant. A name may come back after a crash; name and incarnation together never do."""

    name: str
    incarnation: int = 1


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

    @classmethod
    def of(cls, *names: str, recipe: str = "", traced: bool = False) -> "View":
        """The first view of a group whose members are known beforehand."""
        return cls(1, tuple(map(Member, names)), recipe, traced, joined=names)
