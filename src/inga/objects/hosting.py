"""Which objects a group has, of which classes, and which members have a copy.

    objects={"hits": Counter}                          a copy at every member
    objects={"hits": (Counter, ["alice", "bob"])}      copies at these

All members declare the same objects, as they do with `members`. Besides, every member has a *mailbox*, which gets plain
messages, in one order with the calls.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from inga.model.errors import UsageError
from inga.model.invocation import ANY_KEY
from inga.objects.declare import Call, ObjectClass
from inga.objects.roster import ConflictRelation, Everything, Roster

MAILBOX = "@"
"""What the names of mailboxes begin with; the member's index follows."""

MESSAGE, FREE = "message", "free"
"""The methods of a mailbox: `message` is ordered with other messages of its key, `free` conflicts with nothing."""

Objects = Mapping[Any, Any]
"""By the object's name, as users declare it: a class, or a class and the names of the members that have a copy."""

KeyFunction = Callable[[bytes], Hashable]
"""From a plain message to its key: messages of equal keys are ordered; a message with key None is not."""


class Declared(NamedTuple):
    """One object of the group; `at` are the indices of the members that have a copy."""

    cls: type[ObjectClass]
    at: tuple[int, ...]


class Keyed:
    """The relation of a mailbox: messages conflict if their keys, the first argument, are equal."""

    def of(self, op: str) -> frozenset[str]:
        return _ORDERED if op == MESSAGE else _NOTHING

    def between(self, one: Call, other: Call) -> bool:
        return one.args[:1] == other.args[:1]


_ORDERED, _NOTHING = frozenset({MESSAGE}), frozenset[str]()


def hosted(objects: Objects | None, names: Sequence[str], *, complete: bool = True) -> dict[str, Declared]:
    """The objects that users declare, checked. Unless `complete`, members with a copy may have left; an object of which
    no copy is left is then left out."""
    found = {}
    for name, said in (objects or {}).items():
        if not isinstance(name, str) or not name or "/" in name or name.startswith(MAILBOX):
            raise UsageError(
                f"an object's name is a text without '/' that does not begin with '@', not {name!r}"
            )
        cls, where = said if isinstance(said, tuple) and len(said) == 2 else (said, names)
        if not (isinstance(cls, type) and issubclass(cls, ObjectClass)):
            raise UsageError(f"object {name!r} needs a class made from inga.obg.ObjectClass, not {said!r}")
        members = [where] if isinstance(where, str) else list(where)
        if not complete:
            members = [member for member in members if member in names]
            if not members:
                continue
        for member in members:
            if member not in names:
                raise UsageError(f"object {name!r} has a copy at {member!r}, who is not among the members")
        if not members:
            raise UsageError(f"object {name!r} has no copy: name at least one member")
        found[name] = Declared(cls, tuple(sorted({names.index(member) for member in members})))
    return found


def roster_of(objects: Mapping[str, Declared], members: int, *, total: bool = False) -> Roster:
    """The roster of clients, copies and mailboxes; with `total` all calls of one object conflict."""
    relations: dict[str, tuple[ConflictRelation, Sequence[int]]] = {}
    for name, (cls, where) in objects.items():
        relations[name] = (Everything(*cls.methods) if total else cls.conflicts, where)
    for member in range(members):
        relations[mailbox(member)] = (Keyed(), (member,))
    return Roster.of(members, relations)


def mailbox(member: int) -> str:
    """The name of a member's mailbox."""
    return f"{MAILBOX}{member}"


class Processes:
    """The process numbers of places in a trace: members first, as in the view, then copies in the roster's order."""

    def __init__(self, roster: Roster, names: Sequence[str]) -> None:
        self.names = list(names)
        self.of: list[int | None] = []  # by place; mailboxes have no process of their own
        for index, (member, name) in enumerate(roster.places):
            if name.startswith(MAILBOX):
                self.of.append(None)
            elif not name:
                self.of.append(member)
            else:
                self.of.append(len(self.names))
                self.names.append(roster.name(index, names))

    def vector(self, counts: Sequence[int]) -> tuple[int, ...]:
        """A vector with an entry for each process, from one with an entry for each place."""
        found = [0] * len(self.names)
        for process, count in zip(self.of, counts, strict=True):
            if process is not None:
                found[process] = count
        return tuple(found)

    def mask(self, places: Sequence[int]) -> int:
        """Places as a bit set over processes."""
        processes = (self.of[place] for place in places)
        return sum(1 << process for process in processes if process is not None)


class Layout:
    """The roster, processes and conflicts of a group, from its objects and members: the same at all members and in a trace."""

    def __init__(
        self,
        objects: Objects | None,
        names: Sequence[str],
        *,
        total: bool = False,
        keys: int | None = None,
        by_function: bool = False,
        complete: bool = True,
    ) -> None:
        """For plain messages: there are so many `keys`, or a function of the application computes them (`by_function`)."""
        self.hosted = hosted(objects, names, complete=complete)
        self.roster = roster_of(self.hosted, len(names), total=total)
        self.processes = Processes(self.roster, names)
        self.conflicts: dict[str, list[list[str]]] | None = None  # by process, as a manifest has them
        # The same for pairs whose conflicts depend on arguments.
        self.undecided: dict[str, list[list[str]]] | None = None
        if self.hosted:
            classes = {
                self.roster.name(place, names): self.hosted[name].cls
                for place, (_, name) in enumerate(self.roster.places)
                if name in self.hosted
            }
            self.conflicts = {name: _pairs(cls, total) for name, cls in classes.items()}
            asking = {} if total else {name: _asking(cls) for name, cls in classes.items()}
            self.undecided = {name: pairs for name, pairs in asking.items() if pairs} or None
        elif not total:
            label = [ANY_KEY] if by_function else [key_label(key) for key in range(keys or 1)]
            self.conflicts = {name: [[each, each] for each in label] for name in names}

    @property
    def copies(self) -> list[tuple[int, str]]:
        """The member and the object of each copy, in the order in which traces number the copies."""
        places = zip(self.roster.places, self.processes.of, strict=True)
        return [(member, name) for (member, name), process in places if process is not None and name]

    def copies_at(self, member: int) -> list[tuple[int, int, str]]:
        """The place, the process and the name of each copy that a member has."""
        return [
            (place, process, self.processes.names[process])
            for place, process in enumerate(self.processes.of)
            if process is not None
            and self.roster.places[place] != (member, "")
            and self.roster.member_of[place] == member
        ]


def key_label(key: Hashable) -> str:
    """The name of a plain message's method in traces: a different one for each key."""
    return ANY_KEY.replace("*", repr(key))


def _pairs(cls: type[ObjectClass], total: bool) -> list[list[str]]:
    """The pairs of methods of which all calls conflict."""
    if total:
        return [list(pair) for pair in combinations_with_replacement(sorted(cls.methods), 2)]
    asking = _asking(cls)
    return [pair for pair in cls.conflicts.pairs if pair not in asking]


def _asking(cls: type[ObjectClass]) -> list[list[str]]:
    """The pairs of methods whose conflicts depend on arguments, which a trace does not have."""
    asks = {name for name, method in cls.methods.items() if method.conflict_if is not None}
    return [pair for pair in cls.conflicts.pairs if asks.issuperset(pair)]
