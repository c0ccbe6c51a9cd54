"""The process numbers that a leader gives to newcomers, by which a trace knows them.

Views number all processes that ever were in the group, and a trace identifies its processes by these numbers. Two parts of a group that
cannot hear each other may both admit newcomers, so a leader cannot know by itself which numbers are free: it reserves
them in the directory of the traces. A number that is reserved and then not used, since a change was given up or its leader failed, is
never used. Without a trace the numbers have no effect, and two parts may use the same ones.
"""

from collections.abc import Sequence

from inga.model.view import Member
from inga.stack.stack import Stack


class ReservedNumbers:
    """The numbers that we have reserved as the leader of changes of one view; part of `changes`."""

    def __init__(self) -> None:
        self._reserved: dict[Member, int] = {}

    def view(self) -> None:
        """Another view is in force: newcomers that it admitted have their numbers, all others get new ones."""
        self._reserved.clear()

    def reserve(self, stack: Stack, newcomers: Sequence[Member]) -> Sequence[int]:
        """Return a number for each of these newcomers; those of our last attempt keep theirs."""
        if stack.book is None:
            return range(stack.view.total, stack.view.total + len(newcomers))
        kept = {person: self._reserved[person] for person in newcomers if person in self._reserved}
        others = [person for person in newcomers if person not in kept]
        fresh = stack.book.reserve(len(others), max([stack.view.total - 1, *kept.values()]) + 1)
        self._reserved = {**kept, **dict(zip(others, fresh, strict=True))}
        return [self._reserved[person] for person in newcomers]
