"""The same load in causal order: every request waits for all that precede it and are for its destination.

Who sent how many to whom is counted by a matrix, and held messages are kept by the very inbox that the order
`vector` uses with `matrix=True`. Concurrent requests stay unordered, whatever they do.
"""

from dataclasses import dataclass
from statistics import fmean

from inga.causality.inbox import Inbox
from inga.lab.obg.load import Load, LoadMeans, LoadRequest, pairs_with_a_common_destination
from inga.trial.world import Agenda


@dataclass(slots=True)
class _Sent:
    """A request under way, with what its sender knew."""

    request: LoadRequest
    src: int
    at: float
    matrix: list[list[int]]  # messages of k to j before this one
    past: frozenset[int]  # numbers of requests that precede it


class CausalSimulation(Agenda):
    """One simulation of `load` under causal order."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        n = load.n
        self._load = load
        self._inboxes: list[Inbox[_Sent]] = [Inbox(-1, n) for _ in range(n)]
        self._matrices = [[[0] * n for _ in range(n)] for _ in range(n)]
        self._pasts: list[set[int]] = [set() for _ in range(n)]
        self._sent: dict[int, _Sent] = {}
        self._received: dict[tuple[int, int], float] = {}
        self._waits: list[float] = []
        self._delays: list[float] = []

    def run(self) -> LoadMeans:
        for root in self._load.plan:
            for request in root.requests:
                self.at(root.at, self._send, root.obj, request)
        self.play()
        pairs = pairs_with_a_common_destination(self._load)
        related = sum(1 for one, other in pairs if self._precedes(one, other) or self._precedes(other, one))
        return LoadMeans(100 * related / len(pairs), fmean(self._waits), fmean(self._delays))

    def _send(self, src: int, request: LoadRequest) -> None:
        matrix = self._matrices[src]
        sent = _Sent(request, src, self.now, [row.copy() for row in matrix], frozenset(self._pasts[src]))
        self._sent[request.number] = sent
        self._pasts[src].add(request.number)
        for dst in request.dst:
            matrix[src][dst] += 1
            self.at(self.now + self._load.delay(request.number, src, dst), self._receive, dst, sent)

    def _receive(self, me: int, sent: _Sent) -> None:
        self._received[sent.request.number, me] = self.now
        out: list[_Sent] = []
        needed = tuple((k, row[me]) for k, row in enumerate(sent.matrix) if k != sent.src and row[me])
        self._inboxes[me].offer(sent.src, sent.matrix[sent.src][me] + 1, needed, sent, out)
        for each in out:
            self._start(me, each)

    def _start(self, me: int, sent: _Sent) -> None:
        if me != sent.src:
            self._waits.append(self.now - self._received[sent.request.number, me])
            self._delays.append(self.now - sent.at)
        self._pasts[me] |= sent.past | {sent.request.number}
        for k, row in enumerate(sent.matrix):
            mine = self._matrices[me][k]
            mine[:] = [max(pair) for pair in zip(mine, row, strict=True)]
        for dst in sent.request.dst:
            mine = self._matrices[me][sent.src]
            mine[dst] = max(mine[dst], sent.matrix[sent.src][dst] + 1)
        if sent.request.then is not None:
            self._send(me, sent.request.then)

    def _precedes(self, one: int, other: int) -> bool:
        return one in self._sent[other].past
