"""The same load in causal order: every request waits for all that precede it and are for its destination.

A matrix counts the messages from each member to each other, and held messages are kept by the same `Inbox` that the order
`vector` uses with `matrix=True`. Concurrent requests are not ordered, even if they conflict.
"""

from dataclasses import dataclass
from statistics import fmean

from inga.causality.inbox import Inbox
from inga.lab.obg.load import Load, LoadMeans, LoadRequest, pairs_with_a_common_destination
from inga.model.invocation import ONE_WAY, Message, SendId, StartId
from inga.trial.world import Agenda
from inga.wire.invocation import encode


@dataclass(slots=True)
class _Sent:
    """A request in flight, with its sender's matrix."""

    request: LoadRequest
    src: int
    at: float
    matrix: list[list[int]]  # [k][j]: messages from k to j before this one


class CausalSimulation(Agenda):
    """A simulation of a load under causal order."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        n = load.n
        self._load = load
        self._inboxes: list[Inbox[_Sent]] = [Inbox(-1, n) for _ in range(n)]
        self._matrices = [[[0] * n for _ in range(n)] for _ in range(n)]
        self._sent: dict[int, _Sent] = {}
        self._received: dict[tuple[int, int], float] = {}
        self._waits: list[float] = []
        self._delays: list[float] = []
        self._copies = self._bytes = 0

    def run(self) -> LoadMeans:
        for root in self._load.plan:
            for request in root.requests:
                self.at(root.at, self._send, root.obj, request)
        self.play()
        pairs = pairs_with_a_common_destination(self._load)
        waiting = self._observed()
        ordered = 100 * sum(pair in waiting for pair in pairs) / len(pairs)
        copies, count = self._copies, len(self._load.requests)
        return LoadMeans(
            ordered,
            fmean(self._waits),
            fmean(self._delays),
            waiting=ordered,
            packets=copies / count,
            bytes=self._bytes / count,
            numbers=copies * self._load.n**2 / count,
        )

    def _observed(self) -> set[tuple[int, int]]:
        """Return the pairs in which one request waits for the other. For that, each request in turn is held back at each
        destination until all others have arrived there. If neither waits for the other, it makes no difference which one is held
        back."""
        waiting: set[tuple[int, int]] = set()
        for me in range(self._load.n):
            here = [sent for sent in self._sent.values() if me in sent.request.dst]
            for late in here:
                inbox: Inbox[_Sent] = Inbox(-1, self._load.n)
                out: list[_Sent] = []
                for sent in here:
                    if sent is not late:
                        _offer(inbox, me, sent, out)
                held = {sent.request.number for sent in here} - {sent.request.number for sent in out}
                number = late.request.number
                waiting |= {(min(each, number), max(each, number)) for each in held - {number}}
        return waiting

    def _send(self, src: int, request: LoadRequest) -> None:
        matrix = self._matrices[src]
        sent = _Sent(request, src, self.now, [row.copy() for row in matrix])
        self._sent[request.number] = sent
        for dst in request.dst:
            matrix[src][dst] += 1
            if dst != src:
                self._copies += 1
                self._bytes += self._size(sent)
            self.at(self.now + self._load.delay(request.number, src, dst), self._receive, dst, sent)

    def _receive(self, me: int, sent: _Sent) -> None:
        self._received[sent.request.number, me] = self.now
        out: list[_Sent] = []
        _offer(self._inboxes[me], me, sent, out)
        for each in out:
            self._start(me, each)

    def _start(self, me: int, sent: _Sent) -> None:
        if me != sent.src:
            self._waits.append(self.now - self._received[sent.request.number, me])
            self._delays.append(self.now - sent.at)
        for k, row in enumerate(sent.matrix):
            mine = self._matrices[me][k]
            mine[:] = [max(pair) for pair in zip(mine, row, strict=True)]
        for dst in sent.request.dst:
            mine = self._matrices[me][sent.src]
            mine[dst] = max(mine[dst], sent.matrix[sent.src][dst] + 1)
        if sent.request.then is not None:
            self._send(me, sent.request.then)

    def _size(self, sent: _Sent) -> int:
        """Return the bytes of a copy, encoded like the product's requests, with the matrix in place of the vector."""
        entries = tuple(count for row in sent.matrix for count in row)
        start = StartId(len(self._sent), sent.src)
        numbers = tuple((dst, sent.matrix[sent.src][dst] + 1) for dst in sent.request.dst)
        request = sent.request
        message = Message(
            ONE_WAY, sent.src, request.dst, SendId(start, 0), 0, 0, entries, numbers, start, (*start, 0),
            f"op{request.op}", (request.number,), path=((*start, 0),),
        )  # fmt: skip
        return len(encode(message))


def _offer(inbox: Inbox[_Sent], me: int, sent: _Sent, out: list[_Sent]) -> None:
    needed = tuple((k, row[me]) for k, row in enumerate(sent.matrix) if k != sent.src and row[me])
    inbox.offer(sent.src, sent.matrix[sent.src][me] + 1, needed, sent, out)
