"""The roster: the places of a group, and which calls conflict at each of them.

A *place* is one copy of one object at one member, or a member itself as a client, from which roots begin. All
members have the same roster; a place's index in it is its number, which breaks ties between equal clocks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.objects.declare import Call

SETS_MAX = 1024
"""The most sets of places for which `members_at` caches the members: the same few sets are called again and again."""

CLIENT = ""
"""The object name of a place that is a client: it has no object."""


class ConflictRelation(Protocol):
    """Which calls conflict at objects of one class: `inga.objects.declare.Conflicts` is one."""

    def of(self, op: str) -> frozenset[str]:
        """The methods that may conflict with this one."""

    def between(self, one: Call, other: Call) -> bool:
        """Whether these two calls conflict; called only for methods that may conflict."""


class Place(NamedTuple):
    """One copy of an object at a member, or the member itself as a client: then `object` is CLIENT."""

    member: int
    object: str


@mypyc_attr(allow_interpreted_subclasses=True)
class Pairs:
    """A relation given as the pairs of methods that conflict, whatever their arguments; closed under symmetry."""

    def __init__(self, pairs: Iterable[Sequence[str]] = ()) -> None:
        rivals: dict[str, set[str]] = {}
        for one, other in pairs:
            rivals.setdefault(one, set()).add(other)
            rivals.setdefault(other, set()).add(one)
        self._rivals = {op: frozenset(others) for op, others in rivals.items()}

    def of(self, op: str) -> frozenset[str]:
        return self._rivals.get(op, frozenset())

    def between(self, one: Call, other: Call) -> bool:
        return other.op in self.of(one.op)


@mypyc_attr(allow_interpreted_subclasses=True)
class Everything:
    """The relation of total order: all calls conflict."""

    def __init__(self, *ops: str) -> None:
        self._ops = frozenset(ops)

    def of(self, op: str) -> frozenset[str]:
        return self._ops | {op}

    def between(self, one: Call, other: Call) -> bool:
        return True


@mypyc_attr(allow_interpreted_subclasses=True)
class Roster:
    """All places, in an order on which the members agree."""

    def __init__(self, places: Iterable[Place], relations: Mapping[str, ConflictRelation]) -> None:
        self.places = tuple(places)
        self.relations = [relations.get(place.object, NOTHING) for place in self.places]
        self.members = tuple(sorted({place.member for place in self.places}))
        self.objects = tuple(dict.fromkeys(place.object for place in self.places if place.object != CLIENT))
        self.object_of = [
            self.objects.index(place.object) if place.object != CLIENT else -1 for place in self.places
        ]
        self.member_of = [place.member for place in self.places]
        self.at = {
            member: tuple(i for i, place in enumerate(self.places) if place.member == member)
            for member in self.members
        }
        self.copies = {
            name: tuple(i for i, place in enumerate(self.places) if place.object == name)
            for name in self.objects
        }
        self._clients = {member: i for i, (member, name) in enumerate(self.places) if name == CLIENT}
        self.is_replicated = [len(self.copies.get(place.object, ())) > 1 for place in self.places]
        self._members_at: dict[tuple[int, ...], frozenset[int]] = {}
        if len(set(self.places)) < len(self.places):
            raise UsageError("a member has the same object twice; name each object once for each member")

    @classmethod
    def of(cls, members: int, objects: Mapping[str, tuple[ConflictRelation, Iterable[int]]]) -> "Roster":
        """The roster of so many members, each of which is also a client. `objects` has each object's relation, and the
        members that have a copy."""
        places = [
            place
            for member in range(members)
            for place in (
                Place(member, CLIENT),
                *(Place(member, name) for name, (_, where) in objects.items() if member in set(where)),
            )
        ]
        return cls(places, {name: relation for name, (relation, _) in objects.items()})

    def client(self, member: int) -> int:
        """The place from which a member's roots begin."""
        return self._clients[member]

    def find(self, target: str | Iterable[str]) -> tuple[int, ...]:
        """The places of an object, or of several."""
        names = (target,) if isinstance(target, str) else target
        return tuple(sorted(place for name in set(names) for place in self.copies[name]))

    def members_at(self, places: tuple[int, ...]) -> frozenset[int]:
        """The members at which these places are."""
        found = self._members_at.get(places)
        if found is None:
            if len(self._members_at) >= SETS_MAX:
                self._members_at.clear()
            found = self._members_at[places] = frozenset(self.member_of[place] for place in places)
        return found

    def name(self, place: int, members: Sequence[Any]) -> str:
        """The name of a place in traces: member/object, or the member alone for a client."""
        member, name = self.places[place]
        return f"{members[member]}/{name}" if name != CLIENT else str(members[member])


NOTHING: ConflictRelation = Pairs()
"""The relation in which nothing conflicts."""
