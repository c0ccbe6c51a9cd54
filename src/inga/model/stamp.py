"""What a packet carries so that it can be ordered."""

from typing import NamedTuple

Delta = tuple[tuple[int, int], ...]
"""(member, count) for each count that changed since the sender's previous stamp, by member."""

Deps = tuple[int, ...]
"""For each member, its highest `seq` that causally precedes the packet; the sender's own is `seq - 1`."""


Cells = tuple[tuple[int, int, int], ...]
"""(k, j, value): k has sent `value` messages to j; sorted, only some cells of a matrix."""


Noted = tuple[tuple[int, Delta], ...]
"""For some members, by source the newest message that may still be under way to them: (member, ((source, seq), ...))."""


class Stamp(NamedTuple):
    """A vector time stamp in delta form. The sender's own count is the packet's `seq`."""

    delta: Delta
    height: int  # packets in the causal past, this one included: the sum of the full vector


def is_past(deps: Deps, src: int, seq: int) -> bool:
    """Whether packet `seq` of `src` is in that past, which may be older than `src`'s membership."""
    return src < len(deps) and seq <= deps[src]
