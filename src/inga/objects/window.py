"""How many bytes of one member may wait at others: without a bound, one slow member makes the memory of all grow.

    on its way   sent to a member, and not acknowledged
    there        waits at that member for its turn, according to its last heartbeat
    here         was sent to ourselves, and waits here for its turn

Plain messages may be sent while, for each other member, the first two are together below the window, and so is the
third. Calls are counted but never kept back, and heartbeats are not even counted: so members can always send the
clocks that requests anywhere wait for.

Why the counters of `flow` cannot do this: a request waits for messages of other members with smaller stamps. If a
member that holds too much stopped advancing those counters, the messages that it waits for might be kept back at
their senders for that very reason.
"""

from typing import Any

from inga.model.invocation import Flush, Message

WINDOW = 1 << 20
"""Bytes of one member that may wait at another."""

HEAD, SCALAR = 64, 8
"""Bytes counted for a message besides the values in it, and for each small value."""


def weight(packet: Message | Flush) -> int:
    """The approximate size of a message, in bytes."""
    if isinstance(packet, Flush):
        return HEAD + sum(map(weight, packet.messages))
    size = HEAD
    for value in (*packet.args, packet.named, packet.value):
        if type(value) is bytes:  # as in plain messages, the most frequent kind
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
