"""Stamps: the part of a packet by which it is ordered."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, final


@final
class Columns:
    """Pairs of numbers, kept as two columns: a stamp in a large group has hundreds of pairs, and two objects are created and
    collected faster than hundreds. Iterates over the pairs, and equals a tuple of the same pairs."""

    __slots__ = ("counts", "members")

    def __init__(self, members: Sequence[int], counts: Sequence[int]) -> None:
        self.members = members
        self.counts = counts

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.members, self.counts, strict=True)

    def __len__(self) -> int:
        return len(self.members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | Columns) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Columns, (self.members, self.counts)

    def __repr__(self) -> str:
        return repr(tuple(self))


MemberNumbers: TypeAlias = tuple[tuple[int, int], ...]
"""(member, number) pairs in ascending order of their members."""

Delta: TypeAlias = MemberNumbers | Columns
"""(member, count) for each count that has changed since the sender's previous stamp, in ascending order of the members."""

FEW = 8
"""Up to this many numbers are faster one by one; more are kept, and sent, as columns."""

Deps = tuple[int, ...]
"""For each member, its highest `seq` that causally precedes the packet; for the sender that is `seq - 1`."""


Cells = tuple[tuple[int, int, int], ...]
"""Some cells of a matrix as (k, j, value), sorted: k has sent `value` messages to j."""


Noted = tuple[tuple[int, MemberNumbers], ...]
"""For some members, the newest message of each source that may not have reached them yet: (member, ((source, seq), ...))."""


class Stamp(NamedTuple):
    """A vector time stamp in delta form. The sender's own count is the packet's `seq`."""

    delta: Delta
    height: int  # packets in the causal past, this one included: the sum of the full vector


def delta_of(members: Sequence[int], counts: Sequence[int]) -> Delta:
    """The delta in which these members, in ascending order, have changed to these counts."""
    if len(members) > FEW:
        return Columns(members, counts)
    return tuple(zip(members, counts, strict=True))


def is_past(deps: Deps, src: int, seq: int) -> bool:
    """Whether packet `seq` of `src` is in the causal past `deps`, which may be older than `src`'s membership."""
    return src < len(deps) and seq <= deps[src]
