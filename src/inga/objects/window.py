"""How many bytes of one member may wait at others: without a bound, one slow member makes the memory of all grow.

    on its way   sent to a member, and not acknowledged
    there        waits at that member for its turn, as its last heartbeat says
    here         what we told ourselves, and waits here for its turn

More plain messages may be sent while each of these is below the window. Calls are counted and never kept back, and
heartbeats are not even counted: so the clocks for which something waits anywhere can always be shown.

Why the counters of `flow` cannot do this: a request waits for what others have sent with smaller stamps. If members
that hold too much let those counters stand still, what they wait for may wait behind just that.
"""

from typing import Any

from inga.model.invocation import Flush, Message

WINDOW = 1 << 20
"""Bytes of one member that may wait at another."""

HEAD, SCALAR = 64, 8
"""Bytes reckoned for a message besides what it carries, and for each small value in it."""


def weight(packet: Message | Flush) -> int:
    """About as many bytes as a message takes."""
    if isinstance(packet, Flush):
        return HEAD + sum(map(weight, packet.messages))
    size = HEAD
    for value in (*packet.args, packet.named, packet.value):
        if type(value) is bytes:  # as in plain messages, of which there are most
            size += len(value)
        elif value:
            size += _weight(value)
    return size


def _weight(value: Any) -> int:
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, (list, tuple)):
        return sum(map(_weight, value))
    if isinstance(value, dict):
        return sum(_weight(key) + _weight(each) for key, each in value.items())
    return SCALAR
