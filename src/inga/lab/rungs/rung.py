"""What the rungs share: a stamp of their own beside the packet's number, a buffer, and a test.

A rung numbers, echoes and traces like `none`, so its runs can be judged and its traces certified. Its
stamp travels in `packet.ext` as numbers. In `ext`, not in the stamp section: some of these schemes
forget their own count, and the true number of a packet must not suffer from that.
"""

from typing import ClassVar, Generic, NamedTuple, TypeVar

from inga.layers.fifo import Unordered
from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.model.view import View
from inga.wire import varint
from inga.wire.packet import COUNT_MAX

S = TypeVar("S")


class Waiting(NamedTuple, Generic[S]):
    """A message in a buffer, with what its stamp says."""

    stamp: S
    packet: Packet


class Rung(Unordered, Generic[S]):
    """A scheme: `_stamp` on the way down, `_passes` and `_count` on the way up.

    The lecture calls the application from within the receive filter, so what was released is what the
    site knows. A header without a body is nothing to these schemes: they know of no subsets.
    """

    claims: ClassVar[tuple[str, ...]] = ("integrity", "complete", "fifo", "stamps", "causal")
    level: ClassVar[str] = "causal"
    drops_duplicates: ClassVar[bool] = True
    no_gate = "what it holds is for its stamps to release"

    def view(self, view: View) -> None:
        super().view(view)
        self._buffer: list[Waiting[S]] = []

    def drain(self) -> list[Packet]:
        packets = [waiting.packet for waiting in self._buffer]
        self._buffer.clear()
        return self._dismissed(packets)

    # The scheme

    def _stamp(self, packet: Packet) -> list[int]:
        """Count a send, and give what travels with it."""
        raise NotImplementedError

    def _read(self, packet: Packet, numbers: list[int]) -> S:
        """What came with a packet; WireError if it cannot be right."""
        raise NotImplementedError

    def _passes(self, waiting: Waiting[S]) -> bool:
        """Whether it may be released now."""
        raise NotImplementedError

    def _count(self, waiting: Waiting[S]) -> None:
        """It is released."""
        raise NotImplementedError

    # For a reader of the lab

    def stamp_text(self, packet: Packet) -> str:
        """The stamp of a packet in words."""
        return self._show(self._read(packet, varint.unpack(packet.ext or b"")))

    def state_text(self) -> str:
        """What this site would compare a stamp with."""
        return ""

    def _show(self, stamp: S) -> str:
        raise NotImplementedError

    # The frame

    def _number(self, packet: Packet) -> None:
        super()._number(packet)
        packet.ext = varint.pack(self._stamp(packet))

    def _offer(self, packet: Packet, out: list[Packet]) -> None:
        self._received(packet, "receive")
        if self._is_bare(packet):
            return
        try:
            stamp = self._read(packet, varint.unpack(packet.ext or b""))
        except WireError as error:
            self.stack.reject(error.reason, packet)
            return
        if not self._arrived[packet.src].add(packet.seq) and self.drops_duplicates:
            self._received(packet, "duplicate")
            return
        before = len(out)
        self._admit(Waiting(stamp, packet), out)
        if not any(each is packet for each in out[before:]):
            self._hold(packet, len(self._buffer))

    def _admit(self, waiting: Waiting[S], out: list[Packet]) -> None:
        """A message has come: it joins the buffer, which is looked through."""
        self._buffer.append(waiting)
        self._examine(out)

    def _examine(self, out: list[Packet]) -> None:
        """Release whatever passes, until nothing does."""
        while (ready := next(filter(self._passes, self._buffer), None)) is not None:
            self._buffer.remove(ready)
            self._pass_on(ready, out)

    def _pass_on(self, ready: Waiting[S], out: list[Packet]) -> None:
        self._count(ready)
        out.append(ready.packet)

    def _name(self, member: int) -> str:
        return self.stack.view.names[member]


def need(condition: bool, what: str) -> None:
    """Refuse a stamp that no member of this scheme sends."""
    if not condition:
        raise WireError("malformed", what)


def is_count(number: int) -> bool:
    return 0 < number <= COUNT_MAX
