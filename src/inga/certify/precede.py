"""Object runs: a request begins after the requests that precede it, where their methods conflict.

The requests that precede a request are in its vector, as the run recorded it. As for `causal`, late requests are found by
a running maximum along a process, here one for each method; so segments can be read in any order, and suspect ones again
with their carry.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from inga.certify.agree import Rules
from inga.certify.chunk import Chunk, Ints
from inga.certify.evidence import Evidence
from inga.certify.roots import Bad
from inga.certify.scan import NEVER
from inga.certify.work import RowKey


@dataclass(frozen=True, slots=True)
class RequiredNumbers:
    """By method and sender: the highest number of that sender on which a request that began depends, and that request."""

    required: Ints
    by: Ints  # position, sender and number of the request

    @classmethod
    def none(cls, methods: int, n: int) -> "RequiredNumbers":
        return cls(np.zeros((methods, n), np.int64), np.zeros((methods, n, 3), np.int64))

    def after(self, other: "RequiredNumbers") -> "RequiredNumbers":
        more = other.required > self.required
        return RequiredNumbers(
            np.where(more, other.required, self.required), np.where(more[:, :, None], other.by, self.by)
        )


@dataclass(frozen=True, slots=True)
class Began:
    """A summary of the requests that began in a chunk, by method and sender."""

    needs: RequiredNumbers
    low: Ints  # their lowest number
    judged: int  # how many have methods that the manifest's conflicts list
    unstamped: int  # how many of these have no vector
    late: list[tuple[RowKey, RowKey]]  # each with a request that began too early
    count: int


def began(chunk: Chunk, question: tuple[Rules, RequiredNumbers | None, int]) -> Began:
    """Judge the requests of a chunk; without a carry, as if none had begun before."""
    rules, carry, listed_max = question
    rows, codes = rules.rows(chunk)
    shape = (len(rules.methods), chunk.n)
    src, seq = chunk.src[rows], chunk.seq[rows]
    needs, low = RequiredNumbers.none(*shape), np.full(shape, NEVER)
    np.minimum.at(low, (codes, src), seq)
    start = carry or RequiredNumbers.none(*shape)
    late = np.zeros(len(rows), np.bool_)
    conflicts = rules.conflicts[chunk.process]
    for other in range(shape[0]):
        vectors = np.where((codes == other)[:, None], chunk.deps[rows], 0).astype(np.int64)
        if len(rows):
            most = rows[vectors.argmax(axis=0)]
            needs.required[other] = vectors.max(axis=0)
            needs.by[other] = np.stack([chunk.pos[most], chunk.src[most], chunk.seq[most]], axis=1)
        running = np.maximum.accumulate(np.vstack([start.required[other], vectors]), axis=0)[:-1]
        late |= conflicts[codes, other] & (running[np.arange(len(rows)), src] >= seq)
    which = np.flatnonzero(late)
    found = [_pair(chunk, rules, rows, codes, at, start) for at in which[:listed_max].tolist()]
    return Began(needs, low, len(rows), int((~chunk.stamped[rows]).sum()), found, len(which))


def _pair(
    chunk: Chunk, rules: Rules, rows: Ints, codes: Any, at: int, start: RequiredNumbers
) -> tuple[RowKey, RowKey]:
    """A late row, and a request that began before it and should have begun after it."""
    row, conflicts = rows[at], rules.conflicts[chunk.process, codes[at]]
    source, seq = int(chunk.src[row]), int(chunk.seq[row])
    before = np.flatnonzero(conflicts & (start.required[:, source] >= seq))
    if len(before):
        pos, *message = start.by[before[0], source].tolist()
        return _row(chunk, row), RowKey(chunk.process, pos, *message)
    early = (chunk.deps[rows[:at], source] >= seq) & conflicts[codes[:at]]
    return _row(chunk, row), _row(chunk, rows[int(np.argmax(early))])


def _row(chunk: Chunk, row: Any) -> RowKey:
    return RowKey(chunk.process, int(chunk.pos[row]), int(chunk.src[row]), int(chunk.seq[row]))


class LateRequests:
    """Finds requests that began too late. `judged` counts the requests that could be compared with others, `unstamped`
    those of them that have no vector."""

    def __init__(self, evidence: Evidence, rules: Rules) -> None:
        self._evidence = evidence
        self._rules = rules
        self.judged = self.unstamped = 0

    def late(self) -> Iterator[Bad]:
        lines = self._evidence.lines
        found = self._ask({link.segment: None for link in self._evidence.links if link.summary.starts})
        self.judged = sum(each.judged for each in found.values())
        self.unstamped = sum(each.unstamped for each in found.values())
        carries: dict[int, RequiredNumbers | None] = {}
        for line in lines:
            carry = RequiredNumbers.none(len(self._rules.methods), len(lines))
            for link in line:
                if link.segment in found:
                    part = found[link.segment]
                    if part.count or self._reaches(link.summary.process, carry.required, part.low):
                        carries[link.segment] = carry
                    carry = carry.after(part.needs)
        for part in self._ask(carries).values():
            yield from self._bad(part)

    def _ask(self, carries: dict[int, RequiredNumbers | None]) -> dict[int, Began]:
        questions = [
            (segment, (self._rules, carry, self._evidence.listed_max)) for segment, carry in carries.items()
        ]
        return dict(self._evidence.ask("requests held against what precedes them", began, questions))

    def _reaches(self, process: int, carry: Ints, low: Ints) -> bool:
        """Whether a request that began in an earlier chunk depends on, and conflicts with, one that begins in this chunk."""
        conflicts = self._rules.conflicts[process]
        return any((carry[other] >= low[one]).any() for one, other in np.argwhere(conflicts).tolist())

    def _bad(self, part: Began) -> Iterator[Bad]:
        """One violation for each listed request; requests that are not listed are counted with the first."""
        rest, names = part.count - len(part.late), self._evidence.names
        for row, early in part.late:
            blames = f"{names[row.process]} began requests of {names[row.src]} after others that they precede"
            yield Bad(
                "object", row.process, row.src, "precedence", 1 + rest, [row], blames=blames, early=early
            )
            rest = 0
