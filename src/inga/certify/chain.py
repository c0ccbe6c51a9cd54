"""The shortest causal chain between two messages, for a person to follow.

The search goes backwards from the effect. The messages that its sender had received before sending it are one hop
away, those that their senders had received before are two, and so on. Of each process only the latest message matters,
since whatever precedes an earlier one precedes it too; so a hop reads one place of each process, not all rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inga.certify.chunk import CONFIRM, DELIVER, RECEIPT, REQUEST, SEND, START, Chunk, Ints
from inga.certify.combine import Line, PlacedChunk
from inga.certify.scan import Summary

ReadChunk = Callable[[int], Chunk]
"""The chunk of a segment, by its number."""

MessageId = tuple[int, int]
"""Source and number."""


_BITS = {"deliver": DELIVER, "confirm": CONFIRM}


@dataclass(frozen=True, slots=True)
class Step:
    """One link of a chain: what happened to which message, where."""

    process: int
    pos: int
    step: str
    message: MessageId

    def to_json(self) -> dict[str, Any]:
        src, seq = self.message
        return {"process": self.process, "pos": self.pos, "step": self.step, "src": src, "seq": seq}


@dataclass(frozen=True, slots=True)
class _Node:
    """`message` leads to the effect: it was received before `then` was sent."""

    message: MessageId
    then: "_Node | None"


class Chains:
    """Finds chains in a trace whose chunks can be read again."""

    sends, sent = SEND, "send"
    receipts = RECEIPT

    def __init__(self, lines: list[Line], read: ReadChunk, receipt: str) -> None:
        self._lines = lines
        self._read = read
        self._receipt = receipt

    def find(self, cause: MessageId, effect: MessageId) -> list[Step]:
        """The chain from the send of the cause to the send of the effect; empty if nothing links them."""
        path = self._path(cause, effect)
        if path is None:
            return []
        steps = [self._sent(*cause)]
        node: _Node | None = self._shortened(path, cause)
        while node is not None:
            if node.message != cause:
                steps.append(self._sent(*node.message))
            if node.then is not None:
                steps.append(self._received(node.then.message[0], node.message))
            node = node.then
        return [step for step in steps if step is not None]

    def reached(self, message: MessageId, step: str, *, besides: int, view: int | None) -> Step | None:
        """The row with this step about a message at the first process that has one, leaving out the sender and `besides`."""
        source, seq = message
        bit = _BITS[step]
        for process, line in enumerate(self._lines):
            for link in line if process not in (source, besides) else ():
                if not self._may_have(link, step, source, seq):
                    continue
                chunk = self._read(link.segment)
                mine = ((chunk.kind & bit) != 0) & (chunk.src == source) & (chunk.seq == seq)
                if view is not None:
                    mine &= chunk.view == view
                if mine.any():
                    return Step(process, int(chunk.pos[int(mine.argmax())]), step, message)
        return None

    def _may_have(self, link: PlacedChunk, step: str, source: int, seq: int) -> bool:
        summary = link.summary
        if step == "confirm":
            return summary.confirms > 0 and max(link.received[source], summary.received_high[source]) >= seq
        return bool(summary.delivered_low[source] <= seq <= summary.delivered_high[source])

    def _shortened(self, path: _Node, cause: MessageId) -> _Node:
        """The path with the cause itself as its first message, if the next sender received it in time, and not only a later one."""
        if path.then is None:
            return path
        sent = self._sent(*path.then.message)
        received = self._received(path.then.message[0], cause)
        if sent is not None and received is not None and received.pos < sent.pos:
            return _Node(cause, path.then)
        return path

    def _path(self, cause: MessageId, effect: MessageId) -> _Node | None:
        source, seq = cause
        layer = [_Node(effect, None)]
        limits = {effect[0]: effect[1]}  # the latest message of each process that leads to the effect
        while layer:
            for node in layer:
                if node.message[0] == source and node.message[1] >= seq:
                    return node
            following = []
            for node in layer:
                for other, latest in enumerate(self._heard_before(node.message).tolist()):
                    if latest > limits.get(other, 0):
                        limits[other] = latest
                        following.append(_Node((other, latest), node))
            layer = following
        return None

    def _heard_before(self, message: MessageId) -> Ints:
        """The highest number that its sender had received of each process before sending it."""
        link = self._link_of_send(message)
        if link is None:
            return np.zeros(len(self._lines), np.int64)
        chunk = self._read(link.segment)
        heard = self._heard_of(link)
        end = int(np.flatnonzero(((chunk.kind & self.sends) != 0) & (chunk.seq == message[1]))[0])
        rows = np.flatnonzero(((chunk.kind[:end] & self.receipts) != 0) & (chunk.src[:end] != chunk.process))
        np.maximum.at(heard, chunk.src[rows], chunk.seq[rows])
        return heard

    # ---- what summaries say

    def _heard_of(self, link: PlacedChunk) -> Ints:
        """The highest number of each process that was received before a chunk."""
        return link.received.copy()

    def _numbers(self, summary: Summary) -> tuple[int, int]:
        """The lowest and the highest number sent in a chunk."""
        return summary.sent_low, summary.sent_high

    def _highest(self, summary: Summary) -> Ints:
        """The highest number of each process that was received in a chunk."""
        return summary.received_high

    def _link_of_send(self, message: MessageId) -> PlacedChunk | None:
        source, seq = message
        for link in self._lines[source]:
            low, high = self._numbers(link.summary)
            if low <= seq <= high:
                chunk = self._read(link.segment)
                if (((chunk.kind & self.sends) != 0) & (chunk.seq == seq)).any():
                    return link
        return None

    def _sent(self, source: int, seq: int) -> Step | None:
        link = self._link_of_send((source, seq))
        if link is None:
            return None
        chunk = self._read(link.segment)
        row = np.flatnonzero(((chunk.kind & self.sends) != 0) & (chunk.seq == seq))[0]
        return Step(source, int(chunk.pos[row]), self.sent, (source, seq))

    def _received(self, process: int, message: MessageId) -> Step | None:
        """The receipt of a message at a process. Chunks that received only lower numbers are not read."""
        source, seq = message
        for link in self._lines[process]:
            if self._highest(link.summary)[source] >= seq:
                chunk = self._read(link.segment)
                rows = np.flatnonzero(
                    ((chunk.kind & self.receipts) != 0) & (chunk.src == source) & (chunk.seq == seq)
                )
                if len(rows):
                    return Step(process, int(chunk.pos[rows[0]]), self._receipt, message)
        return None


class RequestChains(Chains):
    """Chains of requests: a request that an object began to execute may be a cause of the requests that it makes."""

    sends, sent = REQUEST, "request"
    receipts = START

    def __init__(self, lines: list[Line], read: ReadChunk) -> None:
        super().__init__(lines, read, "start")

    def _heard_of(self, link: PlacedChunk) -> Ints:
        heard = np.zeros(len(self._lines), np.int64)
        for earlier in self._lines[link.summary.process]:
            if earlier is link:
                break
            heard = np.maximum(heard, earlier.summary.started_high)
        return heard

    def _numbers(self, summary: Summary) -> tuple[int, int]:
        return summary.requested_low, summary.requested_high

    def _highest(self, summary: Summary) -> Ints:
        return summary.started_high
