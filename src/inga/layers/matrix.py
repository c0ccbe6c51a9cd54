"""Causal order for messages to subsets: a matrix of how many messages each member has sent to each other.

    send     count the message once for each destination; it carries the matrix as our application knows it
    receive  release the message when it is its sender's next one to us, and all messages that were sent to us before it are
             released: one column of the matrix decides
    take     the application now knows what the message's sender knew: the matrices are merged

`S[k][j]` counts the messages of k to j that this member's application knows of, where k may be this member
itself. Members that are not addressed get a bare header, because `reliable` detects gaps by number; this layer
ignores it. A message carries the cells that changed since our last message to the destination that has gone longest without
one: all destinations know the other cells already.

Flags and branches need vector time, so the full vector of the past travels, too.

From Dewan's "Causality" lectures, for subsets: docs/protocols/causality.md.
"""

from collections.abc import Iterable

from inga.causality.inbox import Inbox
from inga.layers.causal import Causal
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.packet import Packet
from inga.model.stamp import Cells, Delta, Deps, Stamp
from inga.model.view import View
from inga.wire import matrix as wire

CELLS_EXPECTED = 8
"""Cells of the matrix for which a bundle leaves room. Most packets carry fewer."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Column(Inbox[Packet]):
    """The hold queue for messages to this member: it numbers the messages of each sender to this member only."""

    def own(self, seq: int) -> None:
        """Nothing to count: our own messages are not in our own column."""

    def offer(self, src: int, seq: int, delta: Delta, item: Packet, out: list[Packet]) -> int:
        assert item.cells is not None
        position, column = self.column(item.cells, src)
        return super().offer(src, position, column, item, out)

    def column(self, cells: Cells, src: int) -> tuple[int, Delta]:
        """The message's number among its sender's messages to us (0: unknown), and how many messages of other members to us
        precede it."""
        mine = {k: value for k, j, value in cells if j == self.me}
        return mine.pop(src, 0), tuple(mine.items())


@mypyc_attr(allow_interpreted_subclasses=True)
class Matrix(Causal):
    """Counts messages for each pair of members, holds a message for others to this member only, and detects
    concurrency like `Causal`."""

    name = "matrix"

    def __init__(self, *, echo: bool = False, on_concurrent: str = "deliver") -> None:
        super().__init__(echo=echo, on_concurrent=on_concurrent)
        self._subsets = True  # vectors name messages that were not for this member

    def view(self, view: View) -> None:
        super().view(view)
        n = len(view)
        self.inbox = self._column = Column(self.me, n)
        self.sent_to = [[0] * n for _ in range(n)]  # [k][j]: messages of k to j that the application knows of
        # Cell -> the number of our first message that can carry its present value, in the order of changes.
        self._changed: dict[tuple[int, int], int] = {}
        self._last = [0] * n  # the number of our last message to each member
        self._released = [0] * n  # the highest number of each member that was released

    def sent(self) -> list[int]:
        """How many messages of ours are for each other member. Our own entry counts all of them."""
        counts = list(self.sent_to[self.me])
        counts[self.me] = self.clock.vector[self.me]
        return counts

    def has(self, counts: list[int]) -> bool:
        pairs = zip(self.inbox.vector, counts, strict=True)
        return all(have >= count for k, (have, count) in enumerate(pairs) if k != self.me)

    def gate(self, is_open: bool) -> None:
        """Refuse: there is no gate. A cell that a message does not list was sent before, so a message that passed early would hide
        causes from other members."""
        raise UsageError("a group with matrix=True has no gate; leave the option out to have one")

    def overhead(self, members: int) -> int:
        """Bytes for the vector and for a few cells. A packet with more cells may be cut into fragments."""
        return 4 * members + CELLS_EXPECTED * 6

    def released(self, member: int) -> int:
        return self._released[member]

    def holds(self) -> bool:
        return self.held > 0

    def conform(self, most: list[int]) -> None:
        """Release the held packets of each departed member up to the number in `most`, and drop the others.

        A lost message that precedes such a packet may have been for this member and not for another destination of the packet,
        which then has released it. If any member has released the packet, or a later one of its sender, no lost message to all
        members precedes it, so it is released here, too. The others may follow a lost message to all members."""
        column = self._column
        for gone in self.stack.left:
            positions = [
                self._number(packet)
                for packet in column.items()
                if packet.src == gone and packet.seq <= most[gone]
            ]
            self._dismissed(column.discard(gone, max(positions, default=column.vector[gone])))
        self._release_bereft(column.items())

    def _number(self, packet: Packet) -> int:
        return self._column.column(packet.cells or (), packet.src)[0]

    def restore(self, packet: Packet) -> None:
        """Put the stamp in front of the body again, as it was when the packet arrived."""
        if packet.cells is not None and packet.stamp is not None:
            deps = [0] * len(self.clock.vector)
            deps[packet.src] = packet.seq - 1
            for k, count in packet.stamp.delta:
                deps[k] = count
            packet.body = wire.put(tuple(deps), packet.cells) + packet.body
            packet.stamp = None

    # Sending

    def _sent(self, packet: Packet) -> None:
        super()._sent(packet)
        mine = self.sent_to[self.me]
        targets = [j for j in self.stack.others if packet.dst is None or packet.dst >> j & 1]
        for j in targets:
            mine[j] += 1
            self._note(self.me, j, packet.seq)
        packet.cells = self._since(self._heard_of_us(targets, packet.seq))
        for j in targets:
            self._last[j] = packet.seq

    def _echo(self, batch: list[Packet]) -> None:
        """Deliver the packets to our own application, if it gets them; then put the stamp in front of their bodies,
        for the other members."""
        super()._echo(batch)
        for packet in batch:
            assert packet.deps is not None and packet.cells is not None
            packet.body = wire.put(packet.deps, packet.cells) + packet.body
            packet.stamp = None

    def _heard_of_us(self, targets: Iterable[int], seq: int) -> int:
        """The oldest among our last messages to each of these members: one of them may not know cells that changed since."""
        return min([self._last[j] for j in targets], default=seq)

    def _since(self, seq: int) -> Cells:
        """The cells that changed after our message `seq`."""
        cells = []
        for (k, j), first in reversed(self._changed.items()):
            if first <= seq:
                break
            cells.append((k, j, self.sent_to[k][j]))
        return tuple(sorted(cells))

    def _note(self, k: int, j: int, first: int) -> None:
        self._changed.pop((k, j), None)
        self._changed[k, j] = first

    # Receiving

    def up(self, batch: list[Packet]) -> None:
        super().up([packet for packet in batch if not self._is_bare(packet) and self._unfold(packet)])

    def taken(self, packets: list[Packet]) -> None:
        super().taken(packets)
        for packet in packets:
            if packet.src != self.me:
                self._merge(packet)

    def _unfold(self, packet: Packet) -> bool:
        """Take the stamp off the body. False if the stamp is invalid."""
        if packet.cells is not None:
            return True  # taken off before, by the layer that held the packet until now
        try:
            deps, cells, at = wire.get(packet.body, self.stack.sizes[packet.view])
        except WireError as error:
            self.stack.reject(error.reason, packet)
            return False
        src = packet.src
        if deps[src] != packet.seq - 1 or not self._column.column(cells, src)[0]:
            self.stack.reject("malformed", packet)
            return False
        if self._is_forged(deps, cells):
            self.stack.reject("forged", packet)
            return False
        delta = tuple([(k, count) for k, count in enumerate(deps) if count and k != src])
        packet.stamp = Stamp(delta, sum(deps) + 1)
        packet.cells = cells
        packet.body = packet.body[at:]
        return True

    def _rebuild(self, out: list[Packet]) -> None:
        super()._rebuild(out)
        for packet in out:
            self._released[packet.src] = max(self._released[packet.src], packet.seq)

    def _has_past(self, packet: Packet) -> bool:
        return True  # the packet carries its full vector

    def _is_forged(self, deps: Deps, cells: Cells) -> bool:
        """Whether the stamp names messages of ours that we never sent."""
        me = self.me
        if deps[me] > self.clock.vector[me]:
            return True
        mine = self.sent_to[me]
        return any(k == me and value > mine[j] for k, j, value in cells)

    def _merge(self, packet: Packet) -> None:
        """Merge the matrix of a message that the application has taken: it now knows what the sender's application knew."""
        following = self.clock.vector[self.me] + 1
        assert packet.cells is not None
        for k, j, value in packet.cells:
            row = self.sent_to[k]
            if value > row[j]:
                row[j] = value
                self._note(k, j, following)
