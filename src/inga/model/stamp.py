"""What a packet carries so that it can be ordered."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, final


@final
class Columns:
    """Pairs of numbers, kept as a column each: a stamp of a large group has hundreds, and two objects are made and
    collected faster than hundreds. It iterates over the pairs, and equals a tuple of the same."""

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
"""(member, number), by member."""

Delta: TypeAlias = MemberNumbers | Columns
"""(member, count) for each count that changed since the sender's previous stamp, by member."""

FEW = 8
"""So many numbers are faster one by one; more are kept, and sent, as columns."""

Deps = tuple[int, ...]
"""For each member, its highest `seq` that causally precedes the packet; the sender's own is `seq - 1`."""


Cells = tuple[tuple[int, int, int], ...]
"""(k, j, value): k has sent `value` messages to j; sorted, only some cells of a matrix."""


Noted = tuple[tuple[int, MemberNumbers], ...]
"""For some members, by source the newest message that may still be under way to them: (member, ((source, seq), ...))."""


class Stamp(NamedTuple):
    """A vector time stamp in delta form. The sender's own count is the packet's `seq`."""

    delta: Delta
    height: int  # packets in the causal past, this one included: the sum of the full vector


def delta_of(members: Sequence[int], counts: Sequence[int]) -> Delta:
    """These members, ascending, have changed to these counts."""
    if len(members) > FEW:
        return Columns(members, counts)
    return tuple(zip(members, counts, strict=True))


def is_past(deps: Deps, src: int, seq: int) -> bool:
    """Whether packet `seq` of `src` is in that past, which may be older than `src`'s membership."""
    return src < len(deps) and seq <= deps[src]
