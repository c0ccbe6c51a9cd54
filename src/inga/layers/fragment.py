"""Fragmentation: packets larger than a datagram travel in pieces.

The layer is below the order, so that a large packet is stamped once, and above `reliable`, so that a lost piece is repaired alone.
The first piece carries the stamp and the trace vector; each piece carries `seq`, its index and the number of pieces. The section
that a layer attached in `ext` may be large as well: it is cut like the body, which follows it.

Above an order that is reliable itself (`Pieces`), each piece is a packet of its own with a number of its own.
The pieces of a packet have consecutive numbers and arrive in that order; the joined packet takes the place of the last one.
"""

from typing import ClassVar

from inga.model.compiled import mypyc_attr
from inga.model.packet import Buffer, Packet
from inga.stack.layer import Layer

ASSEMBLIES_MAX = 4096
"""The most unfinished packets per sender: more than a window can contain."""

LOSSY_MAX = 16
"""The same where nothing is repaired. The oldest unfinished packet is dropped for a new one, since its missing pieces are lost."""


@mypyc_attr(allow_interpreted_subclasses=True)
class _Assembly:
    """The pieces of one packet that have arrived so far."""

    __slots__ = ("count", "pieces", "size", "whole")

    def __init__(self, count: int) -> None:
        self.count = count
        self.whole: Packet | None = None  # the piece with the header that the whole packet gets
        self.pieces: dict[int, tuple[bytes | bytearray | None, Buffer]] = {}  # parts of `ext` and of the body
        self.size = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Fragment(Layer):
    """Cuts large packets on their way down, and joins their pieces on the way up."""

    name = "fragment"
    assemblies_max: ClassVar[int] = ASSEMBLIES_MAX

    def __init__(self) -> None:
        self._assemblies: dict[int, dict[int, _Assembly]] = {}

    @property
    def held(self) -> int:
        """Bytes of unfinished packets, without the oldest of each sender. If the oldest counted, the sender of a packet larger than
        its window could wait for us to have room while we wait for pieces that it has yet to send. Once a piece of a later packet has
        arrived, all pieces of the oldest were sent."""
        if not self._assemblies:
            return 0
        return sum(
            assembly.size
            for assemblies in self._assemblies.values()
            if len(assemblies) > 1
            for number, assembly in assemblies.items()
            if number != min(assemblies)
        )

    def awaited(self) -> list[int]:
        return [src for src, assemblies in self._assemblies.items() if assemblies]

    def bereft(self, member: int) -> None:
        self._assemblies.pop(member, None)

    def seen(self, member: int) -> int:
        return max(self._assemblies.get(member, ()), default=0)

    def down(self, batch: list[Packet]) -> None:
        limit = self._room
        out: list[Packet] = []
        for packet in batch:
            if _fits(packet, limit):
                out.append(packet)
            else:
                out.extend(self._cut(packet, limit))
        self.below(out)

    def up(self, batch: list[Packet]) -> None:
        out: list[Packet] = []
        for packet in batch:
            whole = packet if packet.frag is None else self._add(packet)
            if whole is not None:
                out.append(whole)
        if out:
            self.above(out)

    def _add(self, packet: Packet) -> Packet | None:
        """Add a piece. Returns the whole packet, if no piece is missing any more."""
        assert packet.frag is not None
        index, count = packet.frag
        assemblies = self._assemblies.setdefault(packet.src, {})
        number = self._number(packet)
        assembly = assemblies.get(number)
        if assembly is None:
            if len(assemblies) >= self.assemblies_max and not self._make_room(assemblies):
                self.stack.reject("fragments", packet)
                return None
            assembly = assemblies[number] = _Assembly(count)
        if assembly.count != count or index in assembly.pieces:
            self.stack.reject("fragments", packet)
            return None
        packet.keep()
        assembly.pieces[index] = packet.ext, packet.body
        assembly.size += len(packet.body)
        if index == self._place(count):
            assembly.whole = packet.copy_to(self.stack.me)  # other layers may need the piece as it arrived
        if len(assembly.pieces) < count:
            return None
        del assemblies[number]
        if not assemblies:
            del self._assemblies[packet.src]
        whole = assembly.whole
        assert whole is not None
        pieces = [assembly.pieces[i] for i in range(count)]
        whole.body = b"".join([body for _, body in pieces])
        if whole.ext is not None:
            whole.ext = b"".join([ext for ext, _ in pieces if ext is not None])
        whole.frag = None
        return whole

    def _cut(self, packet: Packet, limit: int) -> list[Packet]:
        body, ext = memoryview(packet.body), packet.ext or b""
        count = -(-(len(ext) + len(body)) // limit)
        packet.is_cut = True
        pieces = []
        for index in range(count):
            low, high = index * limit - len(ext), (index + 1) * limit - len(ext)  # as places in the body
            piece = Packet(packet.src, packet.view, body[max(low, 0) : max(high, 0)], packet.dst)
            if low < 0 or (index == 0 and packet.ext is not None):
                piece.ext = ext[index * limit : (index + 1) * limit]
            piece.seq, piece.frag, piece.at, piece.count = packet.seq, (index, count), packet.at, 0
            pieces.append(piece)
        pieces[0].stamp, pieces[0].trace = packet.stamp, packet.trace
        pieces[-1].receipt, pieces[-1].partial = packet.receipt, packet.partial
        pieces[self._place(count)].count = packet.count
        return pieces

    def _make_room(self, assemblies: dict[int, _Assembly]) -> bool:
        """Make room in a full table of unfinished packets, if possible; whether there is room now."""
        return False

    @property
    def _room(self) -> int:
        """The most bytes of a piece."""
        return self.stack.wire.body_max

    def _number(self, packet: Packet) -> int:
        """A number by which all pieces of one packet are recognised."""
        return packet.seq

    def _place(self, count: int) -> int:
        """The index of the piece that carries the header of the whole packet."""
        return 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Pieces(Fragment):
    """Fragments above a reliable order: every piece has a number, its place in the order and its rows."""

    def bereft(self, member: int) -> None:
        """Drop unfinished packets of that member, unless the order below holds packets: these may include pieces of it, which wait
        for packets of others. Then at most one packet stays unfinished, since the pieces of a packet are consecutive."""
        if not self.stack.chain.order.held:
            super().bereft(member)

    @property
    def _room(self) -> int:
        return self.stack.wire.payload_max  # leaves room for what the order adds to the packet

    def _number(self, packet: Packet) -> int:
        assert packet.frag is not None
        return packet.seq - packet.frag[0]

    def _place(self, count: int) -> int:
        return count - 1


@mypyc_attr(allow_interpreted_subclasses=True)
class LossyFragment(Fragment):
    """Fragments over a network that loses packets: missing pieces are not waited for."""

    assemblies_max = LOSSY_MAX

    @property
    def held(self) -> int:
        return 0

    def _make_room(self, assemblies: dict[int, _Assembly]) -> bool:
        del assemblies[min(assemblies)]
        return True


def _fits(packet: Packet, limit: int) -> bool:
    return len(packet.body) <= limit and (packet.ext is None or len(packet.ext) + len(packet.body) <= limit)
