"""The open ends of history: known packets that no other known packet follows.

One open end means that nothing unresolved is concurrent. A packet that follows none of them opens a
branch; one that follows several closes all but the oldest of those. The ends form an antichain with
distinct senders, so there are at most as many as members, and their join is the site's vector.
"""

from typing import NamedTuple

from inga.model.stamp import Deps, is_past


class End(NamedTuple):
    """One open end: a packet, and the branch it is the tip of."""

    src: int
    seq: int
    branch: int


class Frontier:
    """Branches at one site, numbered in the order in which they open."""

    def __init__(self) -> None:
        self.ends: list[End] = []  # oldest branch first
        self.opened = 0  # branches so far

    def add(self, src: int, seq: int, deps: Deps) -> tuple[int, tuple[int, ...]]:
        """Put in a packet just sent or taken: the branch it extends, and the branches it closes."""
        ends = self.ends
        if len(ends) == 1 and is_past(deps, ends[0].src, ends[0].seq):
            branch = ends[0].branch
            self.ends = [End(src, seq, branch)]
            return branch, ()
        followed: list[End] = []
        others: list[End] = []
        for end in ends:
            (followed if is_past(deps, end.src, end.seq) else others).append(end)
        if followed:
            branch = followed[0].branch
        else:
            branch = self.opened = self.opened + 1
        merged = tuple([end.branch for end in followed[1:]])
        others.append(End(src, seq, branch))
        if len(others) > 1:
            others.sort(key=lambda end: end.branch)
        self.ends = others
        return branch, merged
