"""Which process of a trace each newcomer is, as a leader says.

Views number all that ever were in the group, and a trace knows its processes by these numbers. Two parts of a group that
cannot hear each other may both let somebody in, so a leader cannot know by itself which numbers are free: it reserves
them where the traces are. A number that is reserved and not used, since a change was given up or its leader failed, is
never used. Without a trace nobody looks at the numbers, and two parts may use the same.
"""

from collections.abc import Sequence

from inga.model.view import Member
from inga.stack.stack import Stack


class ReservedNumbers:
    """The numbers that we have reserved as the leader of changes of one view; part of `changes`."""

    def __init__(self) -> None:
        self._reserved: dict[Member, int] = {}

    def view(self) -> None:
        """Another view is in force: who was let in has its number, and whoever was not gets another."""
        self._reserved.clear()

    def reserve(self, stack: Stack, newcomers: Sequence[Member]) -> Sequence[int]:
        """A number for each of these; those who were in our last attempt keep theirs."""
        if stack.book is None:
            return range(stack.view.total, stack.view.total + len(newcomers))
        kept = {person: self._reserved[person] for person in newcomers if person in self._reserved}
        others = [person for person in newcomers if person not in kept]
        fresh = stack.book.reserve(len(others), max([stack.view.total - 1, *kept.values()]) + 1)
        self._reserved = {**kept, **dict(zip(others, fresh, strict=True))}
        return [self._reserved[person] for person in newcomers]
