"""Rungs with a whole vector: the standard test for broadcasts, and wrong variants of it.

    broadcast        the standard test, full vectors, no headers to members that are not addressed
    strict           exactly one count larger by one, all others *equal*; only the head of the buffer is tested
    head-only        the standard test, of the head of the buffer only, duplicates not dropped
    at-once-replace  a stamp that lacks something I know is "concurrent": deliver it, replace my vector by its stamp
    at-once-keep     the same, and keep my vector
    at-once-count    the same, and count the message
    own-copy         a site's own messages go through the test as well
    live-vector      the vector itself is attached, not a copy of it
    tree             one vector and buffer for each branch of history

A buffer is sorted by (height, sender): the partial order of vectors cannot sort.
From Dewan's "Causality" lectures and code for them; the standard test is docs/protocols/causality.md.
"""

from dataclasses import dataclass, field

from inga.lab.rungs.rung import Rung, Waiting, is_count, need
from inga.model.packet import Packet
from inga.model.view import View
from inga.wire import varint
from inga.wire.packet import COUNT_MAX

VectorTime = tuple[int, ...]


class Broadcast(Rung[VectorTime]):
    """The standard test, which is right if every message goes to all members. It examines the whole buffer."""

    name = "broadcast"
    provides = frozenset({"fifo", "causal"})

    def view(self, view: View) -> None:
        super().view(view)
        self._vector = [0] * len(view)

    def state_text(self) -> str:
        return _text(self._vector)

    def _stamp(self, packet: Packet) -> list[int]:
        self._vector[packet.src] += 1
        return self._vector

    def _read(self, packet: Packet, numbers: list[int]) -> VectorTime:
        need(len(numbers) == len(self._vector), f"a vector of {len(numbers)} counts")
        need(is_count(numbers[packet.src]) and max(numbers) <= COUNT_MAX, "a count out of range")
        return tuple(numbers)

    def _show(self, stamp: VectorTime) -> str:
        return _text(stamp)

    def _passes(self, waiting: Waiting[VectorTime]) -> bool:
        return _succeeds(waiting, self._vector)

    def _count(self, waiting: Waiting[VectorTime]) -> None:
        src = waiting.packet.src
        self._vector[src] = waiting.stamp[src]


class HeadOnly(Broadcast):
    """Only the head of the buffer is tested: a blocked head blocks all, and a duplicate at the head does so for ever."""

    name = "head-only"
    drops_duplicates = False

    def _examine(self, out: list[Packet]) -> None:
        self._buffer.sort(key=_height)
        while self._buffer and self._passes(self._buffer[0]):
            self._pass_on(self._buffer.pop(0), out)


class Strict(HeadOnly):
    """The test as the lecture prints it: sound only as long as no two messages are concurrent."""

    name = "strict"

    def _passes(self, waiting: Waiting[VectorTime]) -> bool:
        return _succeeds_strictly(waiting, self._vector)


class AtOnce(Strict):
    """A message whose stamp lacks something I know counts as concurrent, and therefore as deliverable."""

    def _admit(self, waiting: Waiting[VectorTime], out: list[Packet]) -> None:
        if _lacks_something(waiting.stamp, self._vector):
            waiting.packet.concurrent = True
            self._adopt(waiting)
            out.append(waiting.packet)
            self._examine(out)
        else:
            super()._admit(waiting, out)

    def _adopt(self, waiting: Waiting[VectorTime]) -> None:
        """Update my own vector for such a message."""
        raise NotImplementedError


class AtOnceReplace(AtOnce):
    """My vector is replaced by the stamp: even my own count is lost."""

    name = "at-once-replace"

    def _adopt(self, waiting: Waiting[VectorTime]) -> None:
        self._vector = list(waiting.stamp)


class AtOnceKeep(AtOnce):
    """My vector stays as it is: later messages that depend on this one never pass."""

    name = "at-once-keep"

    def _adopt(self, waiting: Waiting[VectorTime]) -> None: ...


class AtOnceCount(AtOnce):
    """The message is counted. With the standard test for the others, only a duplicate can block, but no order is guaranteed."""

    name = "at-once-count"

    def _passes(self, waiting: Waiting[VectorTime]) -> bool:
        return _succeeds(waiting, self._vector)

    def _adopt(self, waiting: Waiting[VectorTime]) -> None:
        self._vector[waiting.packet.src] += 1


class OwnCopy(HeadOnly):
    """The stamp of an own message equals the own vector, so it is not the next: it stays at the head of the buffer for ever."""

    name = "own-copy"

    def _sent(self, packet: Packet) -> None:
        super()._sent(packet)
        copy = packet.copy_to(packet.src)
        self._buffer.append(Waiting(tuple(self._vector), copy))
        self._hold(copy, len(self._buffer))


class LiveVector(Broadcast):
    """The stamps of packets that have not left yet change with every later count."""

    name = "live-vector"

    def view(self, view: View) -> None:
        super().view(view)
        self._live = bytearray()  # the stamp that all packets share

    def _number(self, packet: Packet) -> None:
        super()._number(packet)
        self._refresh()
        packet.ext = self._live

    def _count(self, waiting: Waiting[VectorTime]) -> None:
        super()._count(waiting)
        self._refresh()

    def _refresh(self) -> None:
        self._live[:] = varint.pack(self._vector)


@dataclass
class Leaf:
    """A leaf of history, as the lecture draws it: the end of a branch."""

    vector: list[int]
    buffer: list[Waiting[VectorTime]] = field(default_factory=list)


class Tree(Broadcast):
    """A message whose stamp lacks nothing of some leaf goes into that leaf's buffer; any other is delivered at once, as a new leaf.

    An own send continues every leaf. History is a graph with merges, which a tree cannot represent.
    """

    name = "tree"
    drops_duplicates = False

    def view(self, view: View) -> None:
        super().view(view)
        self._leaves = [Leaf([0] * len(view))]

    def drain(self) -> list[Packet]:
        packets = [waiting.packet for leaf in self._leaves for waiting in leaf.buffer]
        for leaf in self._leaves:
            leaf.buffer.clear()
        return self._dismissed(packets)

    def state_text(self) -> str:
        return "leaves " + " ".join(_text(leaf.vector) for leaf in self._leaves)

    def _stamp(self, packet: Packet) -> list[int]:
        for leaf in self._leaves:
            leaf.vector[packet.src] = self._vector[packet.src] + 1
        return super()._stamp(packet)

    def _admit(self, waiting: Waiting[VectorTime], out: list[Packet]) -> None:
        followed = [leaf for leaf in self._leaves if not _lacks_something(waiting.stamp, leaf.vector)]
        if not followed:
            waiting.packet.concurrent = True
            self._leaves.append(Leaf(list(waiting.stamp)))
            self._pass_on(waiting, out)
            return
        fits = (leaf for leaf in followed if _succeeds_strictly(waiting, leaf.vector))
        leaf = next(fits, followed[0])
        leaf.buffer.append(waiting)
        leaf.buffer.sort(key=_height)
        while leaf.buffer and _succeeds_strictly(leaf.buffer[0], leaf.vector):
            ready = leaf.buffer.pop(0)
            leaf.vector = list(ready.stamp)
            self._pass_on(ready, out)

    def _count(self, waiting: Waiting[VectorTime]) -> None:
        self._vector = list(map(max, self._vector, waiting.stamp))


def _succeeds(waiting: Waiting[VectorTime], vector: list[int]) -> bool:
    """The standard test: whether the message is the next of its sender, and all its causes are here."""
    src = waiting.packet.src
    return waiting.stamp[src] == vector[src] + 1 and all(
        count <= mine for k, (count, mine) in enumerate(zip(waiting.stamp, vector, strict=True)) if k != src
    )


def _succeeds_strictly(waiting: Waiting[VectorTime], vector: list[int]) -> bool:
    """The strict test: whether one count is larger by one, and all others are equal."""
    larger = [count - mine for count, mine in zip(waiting.stamp, vector, strict=True) if count != mine]
    return larger == [1]


def _lacks_something(stamp: VectorTime, vector: list[int]) -> bool:
    return any(count < mine for count, mine in zip(stamp, vector, strict=True))


def _height(waiting: Waiting[VectorTime]) -> tuple[int, int]:
    return sum(waiting.stamp), waiting.packet.src


def _text(vector: VectorTime | list[int]) -> str:
    return "(" + ",".join(map(str, vector)) + ")"
