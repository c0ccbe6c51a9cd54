"""The open ends of history: known packets that no other known packet follows.

One open end means that nothing unresolved is concurrent. A packet that follows none of them opens a
branch; one that follows several closes all but the oldest of those. The ends form an antichain with
distinct senders, so there are at most as many as members, and their join is the site's vector.
"""

from inga.model.stamp import Deps, is_past

End = tuple[int, int, int]
"""One open end: the branch it is the tip of, and the packet's `src` and `seq`."""


class Frontier:
    """Branches at one site, numbered in the order in which they open."""

    def __init__(self) -> None:
        self.ends: list[End] = []  # oldest branch first
        self.opened = 0  # branches so far

    def add(self, src: int, seq: int, deps: Deps) -> tuple[int, tuple[int, ...]]:
        """Put in a packet just sent or taken: the branch it extends, and the branches it closes."""
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
