"""Rungs with a whole vector: the standard test for broadcasts, and what goes wrong around it.

    broadcast        the standard test, full vectors, no headers to those not addressed
    strict           exactly one count larger by one, all others *equal*; only the head is tested
    head-only        the standard test, of the head only, duplicates not dropped
    at-once-replace  a stamp that lacks something I know is "concurrent": deliver it, take over its stamp
    at-once-keep     the same, and leave my stamp
    at-once-count    the same, and count it
    own-copy         one's own copy goes through the test as well
    live-vector      the vector itself is attached, not a copy of it
    tree             one vector and buffer for each open end of history

A buffer is sorted by (height, sender): the order "smaller than" alone cannot sort.
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
    """Right if every message goes to everybody. The buffer is searched from end to end."""

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
    """A blocked head blocks all, and a stale copy at the head does so for ever."""

    name = "head-only"
    drops_duplicates = False

    def _examine(self, out: list[Packet]) -> None:
        self._buffer.sort(key=_height)
        while self._buffer and self._passes(self._buffer[0]):
            self._pass_on(self._buffer.pop(0), out)


class Strict(HeadOnly):
    """As printed: sound only while no two messages are concurrent."""

    name = "strict"

    def _passes(self, waiting: Waiting[VectorTime]) -> bool:
        return _succeeds_strictly(waiting, self._vector)


class AtOnce(Strict):
    """What lacks something I know is taken for concurrent, and that for deliverable."""

    def _admit(self, waiting: Waiting[VectorTime], out: list[Packet]) -> None:
        if _lacks_something(waiting.stamp, self._vector):
            waiting.packet.concurrent = True
            self._adopt(waiting)
            out.append(waiting.packet)
            self._examine(out)
        else:
            super()._admit(waiting, out)

    def _adopt(self, waiting: Waiting[VectorTime]) -> None:
        """What becomes of my own vector."""
        raise NotImplementedError


class AtOnceReplace(AtOnce):
    """Even my own count is forgotten."""

    name = "at-once-replace"

    def _adopt(self, waiting: Waiting[VectorTime]) -> None:
        self._vector = list(waiting.stamp)


class AtOnceKeep(AtOnce):
    """What follows the message never succeeds my vector."""

    name = "at-once-keep"

    def _adopt(self, waiting: Waiting[VectorTime]) -> None: ...


class AtOnceCount(AtOnce):
    """With the standard test beside it nothing blocks but a duplicate, and nothing is safe."""

    name = "at-once-count"

    def _passes(self, waiting: Waiting[VectorTime]) -> bool:
        return _succeeds(waiting, self._vector)

    def _adopt(self, waiting: Waiting[VectorTime]) -> None:
        self._vector[waiting.packet.src] += 1


class OwnCopy(HeadOnly):
    """The own copy equals the own vector, so it is no successor: it heads the buffer for ever."""

    name = "own-copy"

    def _sent(self, packet: Packet) -> None:
        super()._sent(packet)
        copy = packet.copy_to(packet.src)
        self._buffer.append(Waiting(tuple(self._vector), copy))
        self._hold(copy, len(self._buffer))


class LiveVector(Broadcast):
    """What still waits to leave changes with every later count."""

    name = "live-vector"

    def view(self, view: View) -> None:
        super().view(view)
        self._live = bytearray()  # the one that all packets share

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
    """An open end of history as the lecture draws it."""

    vector: list[int]
    buffer: list[Waiting[VectorTime]] = field(default_factory=list)


class Tree(Broadcast):
    """Larger than some leaf: into that leaf's buffer. Larger than none: a leaf of its own, at once.

    An own send goes on from every leaf. The history is a graph with merges, which this cannot follow.
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
    """The standard test: the next of its sender, and every cause is here."""
    src = waiting.packet.src
    return waiting.stamp[src] == vector[src] + 1 and all(
        count <= mine for k, (count, mine) in enumerate(zip(waiting.stamp, vector, strict=True)) if k != src
    )


def _succeeds_strictly(waiting: Waiting[VectorTime], vector: list[int]) -> bool:
    """One count larger by one, all others equal."""
    larger = [count - mine for count, mine in zip(waiting.stamp, vector, strict=True) if count != mine]
    return larger == [1]


def _lacks_something(stamp: VectorTime, vector: list[int]) -> bool:
    return any(count < mine for count, mine in zip(stamp, vector, strict=True))


def _height(waiting: Waiting[VectorTime]) -> tuple[int, int]:
    return sum(waiting.stamp), waiting.packet.src


def _text(vector: VectorTime | list[int]) -> str:
    return "(" + ",".join(map(str, vector)) + ")"
