"""The last messages of a group, which newcomers get first: a state that needs no support by the application.

Messages to all members are kept in the order in which they were delivered here, including our own messages that are not
delivered to ourselves. The history is limited to a number of messages or of seconds, and to a number of octets; the oldest messages are dropped first.
"""

from collections import deque
from collections.abc import Iterable
from math import inf
from typing import Any, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.model.delivery import Batch
from inga.model.errors import WireError
from inga.model.event import Incident
from inga.model.packet import Buffer, Packet
from inga.model.view import View
from inga.session.transfer import Transfer
from inga.wire.packet import COUNT_MAX
from inga.wire.value import get, put

KIND = "history"
"""The kind of state that members with a history announce to give, and to lack when they join."""

HISTORY_MAX = 4 << 20
"""Octets of all messages that are kept, at most."""

EACH = 64
"""Octets counted for the metadata of each message."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Replayed(Batch):
    """A message from before we joined."""

    __slots__ = ()
    replayed = True


class _Kept(NamedTuple):
    sender: str
    src: int
    view: int
    seq: int
    data: bytes
    at: float  # when it was delivered here


@mypyc_attr(allow_interpreted_subclasses=True)
class LastMessages:
    """The messages that were delivered here last."""

    def __init__(self, last: int | float, first: View, transfer: Transfer) -> None:
        """`last`: how many messages are kept or, as a float, the messages of how many seconds. `first`: our first view."""
        self._last = last
        self._transfer = transfer
        # It is given when a view is delivered, and lacks the history that we fetch ourselves until our application reads that.
        transfer.gives_late = False
        self._everybody = len(first)
        self._kept: deque[_Kept] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def follow(self, items: Iterable[Batch | View | Incident], now: float) -> None:
        """Handle delivered messages, and views between them. Newcomers of a view get the messages kept up to its place."""
        for item in items:
            if isinstance(item, Batch):
                self._add(item, now)
            elif isinstance(item, View):
                self._enter(item, now)
        self._trim(now)

    def sent(self, sender: str, src: int, view: int, payloads: Iterable[Buffer], now: float) -> None:
        """Keep messages that we have sent to all members and that are not delivered to ourselves."""
        for data in payloads:
            self._keep(_Kept(sender, src, view, 0, bytes(data), now))
        self._trim(now)

    def restore(self, data: bytes, now: float) -> list[Replayed]:
        """Put the history that another member gave us before the messages kept here; return it as batches for the application."""
        kept = read_history(data, now)
        since, self._kept = self._kept, deque(kept)
        self._size = sum(len(each.data) + EACH for each in (*kept, *since))
        self._kept += since
        self._trim(now)
        return [_replayed(each) for each in kept]

    def _add(self, batch: Batch, now: float) -> None:
        packet, dst = batch.packet, batch.packet.dst
        if dst is None or (dst | 1 << packet.src).bit_count() == self._everybody:
            for data in batch.payloads:
                self._keep(_Kept(batch.sender, packet.src, packet.view, packet.seq, bytes(data), now))

    def _enter(self, view: View, now: float) -> None:
        self._everybody = len(view)
        transfer = self._transfer
        if transfer.lacks and transfer.incoming is not None and transfer.incoming.cut is view:
            # The messages delivered so far are part of the history that we are about to get.
            self._kept.clear()
            self._size = 0
        self._trim(now)
        for outgoing in transfer.due(view):
            transfer.put(outgoing, self._encoded(now))
            transfer.end(outgoing)

    def _encoded(self, now: float) -> bytes:
        out = bytearray()
        put(out, [[*each[:-1], max(0.0, now - each.at)] for each in self._kept])
        return bytes(out)

    def _keep(self, message: _Kept) -> None:
        self._kept.append(message)
        self._size += len(message.data) + EACH

    def _trim(self, now: float) -> None:
        kept, last = self._kept, self._last
        by_time = isinstance(last, float)
        while kept and (
            self._size > HISTORY_MAX or (kept[0].at < now - last if by_time else len(kept) > last)
        ):
            self._size -= len(kept.popleft().data) + EACH


def read_history(data: bytes, now: float) -> list[_Kept]:
    """Decode the history that another member gave; WireError if it is malformed."""
    rows, end = get(data, 0)
    if type(rows) is not list or end != len(data) or not all(map(_is_message, rows)):
        raise WireError("malformed", "no history")
    return [_Kept(sender, src, view, seq, body, now - age) for sender, src, view, seq, body, age in rows]


def _is_message(row: Any) -> bool:
    """Whether the row is one that `_encoded` makes of a message, with its age in the last column."""
    if type(row) is not list or tuple(map(type, row)) != (str, int, int, int, bytes, float):
        return False
    return all(0 <= number <= COUNT_MAX for number in row[1:4]) and 0 <= row[5] < inf


def _replayed(message: _Kept) -> Replayed:
    packet = Packet(message.src, message.view, message.data)
    packet.seq, packet.payloads = message.seq, [message.data]
    return Replayed(message.sender, packet)
