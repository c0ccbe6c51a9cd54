"""Packets larger than a datagram, in pieces.

It stands below the order layer, so a large packet is stamped once, and above reliability, so a lost
piece is repaired alone. The first piece carries stamp and trace, each carries `seq`, index and count.
What a layer attached in `ext` may be large as well: it is cut like the body, which follows it.

Above an order that is reliable itself (`Pieces`), each piece is a packet of its own with a number of its own.
The pieces of a packet have numbers in a row and come in their order; joined, it takes the place of the last.
"""

from inga.model.packet import Packet
from inga.stack.layer import Layer

ASSEMBLIES_MAX = 4096
"""Unfinished packets per sender: more than a window can hold."""


class _Assembly:
    """The pieces so far of one packet."""

    __slots__ = ("count", "pieces", "whole")

    def __init__(self, count: int) -> None:
        self.count = count
        self.whole: Packet | None = None  # the piece whose place the whole takes
        self.pieces: dict[int, tuple[bytes | bytearray | None, bytes]] = {}  # of `ext` and of the body


class Fragment(Layer):
    """Cuts on the way down, joins on the way up."""

    name = "fragment"
    grows = True

    def __init__(self) -> None:
        self._assemblies: dict[int, dict[int, _Assembly]] = {}
        self._bases: list[int] = []  # of a newcomer: packets up to here are not for it

    def adopt(self, bases: dict[str, list[int]]) -> None:
        self._bases = bases["seq"]

    def down(self, batch: list[Packet]) -> None:
        limit = self.stack.body_max
        if all(_fits(packet, limit) for packet in batch):
            self.below(batch)
            return
        out: list[Packet] = []
        for packet in batch:
            if _fits(packet, limit):
                out.append(packet)
            else:
                out.extend(_cut(packet, limit))
        self.below(out)

    def up(self, batch: list[Packet]) -> None:
        if all(packet.frag is None for packet in batch):
            self.above(batch)
            return
        out: list[Packet] = []
        for packet in batch:
            whole = packet if packet.frag is None else self._add(packet)
            if whole is not None:
                out.append(whole)
        if out:
            self.above(out)

    def _add(self, packet: Packet) -> Packet | None:
        """The whole packet, if this was its last piece."""
        assert packet.frag is not None
        index, count = packet.frag
        if packet.src < len(self._bases) and packet.seq <= self._bases[packet.src]:
            return None  # of whose earlier pieces we were no destination
        assemblies = self._assemblies.setdefault(packet.src, {})
        number = self._number(packet)
        assembly = assemblies.get(number)
        if assembly is None:
            if len(assemblies) >= ASSEMBLIES_MAX:
                self.stack.reject("fragments", packet)
                return None
            assembly = assemblies[number] = _Assembly(count)
        if assembly.count != count or index in assembly.pieces:
            self.stack.reject("fragments", packet)
            return None
        assembly.pieces[index] = packet.ext, bytes(packet.body)
        if index == self._place(count):
            packet.body = b""
            assembly.whole = packet
        if len(assembly.pieces) < count:
            return None
        del assemblies[number]
        whole = assembly.whole
        assert whole is not None
        pieces = [assembly.pieces[i] for i in range(count)]
        whole.body = b"".join([body for _, body in pieces])
        if whole.ext is not None:
            whole.ext = b"".join([ext for ext, _ in pieces if ext is not None])
        whole.frag = None
        return whole

    def _number(self, packet: Packet) -> int:
        """What the pieces of one packet have in common."""
        return packet.seq

    def _place(self, count: int) -> int:
        """The piece that has the packet's header."""
        return 0


class Pieces(Fragment):
    """Fragments above a reliable order: every piece has a number, its place in the order and its rows."""

    def _number(self, packet: Packet) -> int:
        assert packet.frag is not None
        return packet.seq - packet.frag[0]

    def _place(self, count: int) -> int:
        return count - 1


def _fits(packet: Packet, limit: int) -> bool:
    return len(packet.body) <= limit and (packet.ext is None or len(packet.ext) + len(packet.body) <= limit)


def _cut(packet: Packet, limit: int) -> list[Packet]:
    body, ext = memoryview(packet.body), packet.ext or b""
    count = -(-(len(ext) + len(body)) // limit)
    pieces = []
    for index in range(count):
        low, high = index * limit - len(ext), (index + 1) * limit - len(ext)  # as places in the body
        piece = Packet(packet.src, packet.view, body[max(low, 0) : max(high, 0)], packet.dst)
        if low < 0 or (index == 0 and packet.ext is not None):
            piece.ext = ext[index * limit : (index + 1) * limit]
        piece.seq = packet.seq
        piece.frag = (index, count)
        pieces.append(piece)
    pieces[0].stamp, pieces[0].trace = packet.stamp, packet.trace
    pieces[-1].receipt, pieces[-1].partial, pieces[-1].count = packet.receipt, packet.partial, packet.count
    for piece in pieces:
        piece.at = packet.at
    return pieces
