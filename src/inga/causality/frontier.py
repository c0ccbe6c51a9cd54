"""The open ends of causal history: known packets that no other known packet follows.

A single open end means that nothing unresolved is concurrent. A packet that follows none of the open ends opens a
branch; a packet that follows several closes all of their branches but the oldest. No open end precedes another, and each has a
different sender, so there are at most as many as members; their join is the member's vector.
"""

from inga.model.stamp import Deps, is_past

End = tuple[int, int, int]
"""An open end: the branch whose last packet it is, and the packet's `src` and `seq`."""


class Frontier:
    """The branches at one member, numbered in the order in which they open."""

    def __init__(self) -> None:
        self.ends: list[End] = []  # oldest branch first
        self.opened = 0  # branches so far

    def add(self, src: int, seq: int, deps: Deps) -> tuple[int, tuple[int, ...]]:
        """Add a packet that was just sent or taken. Returns the branch that it opens or extends, and the branches that it closes."""
        ends = self.ends
        if len(ends) == 1 and is_past(deps, ends[0][1], ends[0][2]):
            branch = ends[0][0]
            self.ends = [(branch, src, seq)]
            return branch, ()
        followed: list[int] = []  # branches
        others: list[End] = []
        for end in ends:
            if is_past(deps, end[1], end[2]):
                followed.append(end[0])
            else:
                others.append(end)
        if followed:
            branch = followed[0]
        else:
            branch = self.opened = self.opened + 1
        others.append((branch, src, seq))
        others.sort()
        self.ends = others
        return branch, tuple(followed[1:])
