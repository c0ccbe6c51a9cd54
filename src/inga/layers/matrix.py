"""Causal order for messages to subsets: a matrix of how many messages each member sent to each other.

    send     count it once for each destination; the matrix as the application knows it goes along
    receive  release it when it is its sender's next to us, and all that were sent to us before it are
             released: one column of the matrix decides
    take     the application knows now what the message knew: the matrices are joined

`S[k][j]` counts the messages of k to j that this site's application knows of, itself as a sender
included. Members that are not addressed get a bare header, because `reliable` finds gaps by number; this layer
ignores it. A message carries the cells that changed since our last message to the destination that heard
from us longest ago: all destinations know the other cells already.

Flags and branches are a matter of vector time, so the vector of the past travels along.

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
"""Cells of the matrix for which a bundle leaves room; most packets tell fewer."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Column(Inbox[Packet]):
    """The hold queue for messages to this site alone: numbers count the messages of a sender to this site."""

    def own(self, seq: int) -> None:
        """Our own messages have no place in our own column."""

    def offer(self, src: int, seq: int, delta: Delta, item: Packet, out: list[Packet]) -> int:
        assert item.cells is not None
        position, column = self.column(item.cells, src)
        return super().offer(src, position, column, item, out)

    def column(self, cells: Cells, src: int) -> tuple[int, Delta]:
        """The message's number among its sender's messages to us (0: unknown), and the counts of others' messages to us that
        precede it."""
        mine = {k: value for k, j, value in cells if j == self.me}
        return mine.pop(src, 0), tuple(mine.items())


@mypyc_attr(allow_interpreted_subclasses=True)
class Matrix(Causal):
    """Counts for each pair, holds by what was sent here, and sees concurrency like `Causal`."""

    name = "matrix"

    def __init__(self, *, echo: bool = False, on_concurrent: str = "deliver") -> None:
        super().__init__(echo=echo, on_concurrent=on_concurrent)
        self._subsets = True  # vectors name messages that were not for this site

    def view(self, view: View) -> None:
        super().view(view)
        n = len(view)
        self.inbox = self._column = Column(self.me, n)
        self.sent_to = [[0] * n for _ in range(n)]  # messages of k to j that the application knows of
        # Cell -> our first message that can carry its new value, in order.
        self._changed: dict[tuple[int, int], int] = {}
        self._last = [0] * n  # our last message to each member
        self._released = [0] * n  # the highest number of each member that was released

    def sent(self) -> list[int]:
        """Counts of our messages to each other member; our own entry counts all of them."""
        counts = list(self.sent_to[self.me])
        counts[self.me] = self.clock.vector[self.me]
        return counts

    def has(self, counts: list[int]) -> bool:
        pairs = zip(self.inbox.vector, counts, strict=True)
        return all(have >= count for k, (have, count) in enumerate(pairs) if k != self.me)

    def gate(self, is_open: bool) -> None:
        """There is no gate: a cell that a message does not list was sent before, so a message that passed early would hide
        causes from other members."""
        raise UsageError("a group with matrix=True has no gate; leave the option out to have one")

    def overhead(self, members: int) -> int:
        """Bytes for the vector and for a few cells; a packet with more cells may be cut into fragments."""
        return 4 * members + CELLS_EXPECTED * 6

    def released(self, member: int) -> int:
        return self._released[member]

    def holds(self) -> bool:
        return self.held > 0

    def conform(self, most: list[int]) -> None:
        """What a member that is gone sent to others as well may lack nothing there, and only here what was for some. If
        one of them has released it, or anything later, no message to everybody is missing before it: release it here, too.
        Nobody has released the rest, which may follow a message to everybody that is lost: drop it."""
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
        """Put the stamp in front of the body again, as the packet travelled."""
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
        """Our own application gets the packets as they are; other members get them with the stamp in front."""
        super()._echo(batch)
        for packet in batch:
            assert packet.deps is not None and packet.cells is not None
            packet.body = wire.put(packet.deps, packet.cells) + packet.body
            packet.stamp = None

    def _heard_of_us(self, targets: Iterable[int], seq: int) -> int:
        """The oldest of our last messages to these members: cells that changed since may be unknown to one of them."""
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
        """Take the stamp off the body. False if it cannot be right."""
        if packet.cells is not None:
            return True  # done before, by the layer that held the packet until now
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
        return True  # the vector came whole

    def _is_forged(self, deps: Deps, cells: Cells) -> bool:
        """Whether the stamp names messages of ours that we never sent."""
        me = self.me
        if deps[me] > self.clock.vector[me]:
            return True
        mine = self.sent_to[me]
        return any(k == me and value > mine[j] for k, j, value in cells)

    def _merge(self, packet: Packet) -> None:
        """The application has taken a message: it knows now whatever the sender's application knew."""
        following = self.clock.vector[self.me] + 1
        assert packet.cells is not None
        for k, j, value in packet.cells:
            row = self.sent_to[k]
            if value > row[j]:
                row[j] = value
                self._note(k, j, following)
