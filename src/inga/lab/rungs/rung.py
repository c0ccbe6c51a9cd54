"""The base of all rungs: a stamp of their own besides the packet's number, a buffer, and a test.

A rung numbers, echoes and traces like `none`, so its runs can be judged and its traces certified. Its
stamp travels in `packet.ext` as numbers, not in the stamp section: some of these schemes
forget their own count, and the true number of a packet must not depend on that.
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
    """A message in a buffer, with its decoded stamp."""

    stamp: S
    packet: Packet


class Rung(Unordered, Generic[S]):
    """A scheme: `_stamp` on the way down, `_passes` and `_count` on the way up.

    The lecture calls the application from within the receive filter, so the released messages are those that the
    site knows. These schemes ignore headers without a body: they know no subsets.
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
        """Count a send, and return its stamp."""
        raise NotImplementedError

    def _read(self, packet: Packet, numbers: list[int]) -> S:
        """Return the stamp of a received packet; raise WireError if it is invalid."""
        raise NotImplementedError

    def _passes(self, waiting: Waiting[S]) -> bool:
        """Whether the message may be released now."""
        raise NotImplementedError

    def _count(self, waiting: Waiting[S]) -> None:
        """Count a message that is being released."""
        raise NotImplementedError

    # For pages and texts of the lab

    def stamp_text(self, packet: Packet) -> str:
        """Return the stamp of a packet in words."""
        return self._show(self._read(packet, varint.unpack(packet.ext or b"")))

    def state_text(self) -> str:
        """Return the state with which this site would compare a stamp, in words."""
        return ""

    def _show(self, stamp: S) -> str:
        raise NotImplementedError

    # What all rungs do alike

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
        """Put a message that has arrived into the buffer, and release what passes."""
        self._buffer.append(waiting)
        self._examine(out)

    def _examine(self, out: list[Packet]) -> None:
        """Release messages that pass, until none does."""
        while (ready := next(filter(self._passes, self._buffer), None)) is not None:
            self._buffer.remove(ready)
            self._pass_on(ready, out)

    def _pass_on(self, ready: Waiting[S], out: list[Packet]) -> None:
        self._count(ready)
        out.append(ready.packet)

    def _name(self, member: int) -> str:
        return self.stack.view.names[member]


def need(condition: bool, what: str) -> None:
    """Raise WireError unless the condition holds, which it does for all stamps that members of this scheme send."""
    if not condition:
        raise WireError("malformed", what)


def is_count(number: int) -> bool:
    return 0 < number <= COUNT_MAX
