"""All or nobody: a message that one surviving destination delivered is delivered at all of them, and nothing
counts as confirmed that some destination never accepted.

If what was sent and what was delivered and accepted have equal sums everywhere, there is nothing to look for. Only
the sources for which some sum differs are looked at, a range of their numbers at a time.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inga.certify import compare, work
from inga.certify.chunk import Bools
from inga.certify.combine import unaccepted_sources
from inga.certify.compare import Range, Sends
from inga.certify.evidence import Evidence
from inga.certify.pairs import ROWS_AT_ONCE, closed_view, gone, meant_for
from inga.certify.roots import Bad
from inga.certify.work import Fates, RowKey


def atomic(evidence: Evidence) -> Iterator[Bad]:
    """Messages that some destinations have and others lack, by destination and source."""
    sources = {pair.source for pair in evidence.unequal if pair.source != pair.destination}
    if any(summary.confirms for summary in evidence.summaries):
        sources |= unaccepted_sources(evidence.lines, evidence.processes)
    judge = _Judge(evidence)
    width = max(ROWS_AT_ONCE // len(evidence.processes), 1)
    for source in sorted(sources):
        high = max((link.summary.sent_high for link in evidence.lines[source]), default=0)
        for low in range(1, high + 1, width):
            numbers = Range(low, min(low + width, high + 1))
            questions = [(link.segment, (evidence.keys, source, numbers)) for link in evidence.links]
            found = evidence.ask("segments compared", work.fates, questions)
            yield from judge.judge(source, numbers, [part for _, part in found])


class _Judge:
    def __init__(self, evidence: Evidence) -> None:
        self._processes = evidence.processes
        self._listed_max = evidence.listed_max
        self._closed_view = closed_view(evidence.lines)
        self._gone = gone(evidence.lines, evidence.processes)

    def judge(self, source: int, numbers: Range, parts: list[Fates]) -> Iterator[Bad]:
        n, width = len(self._processes), numbers.high - numbers.low
        delivered, accepted = np.zeros((2, n, width), np.bool_)
        confirmed = np.zeros(width, np.bool_)
        for part in parts:
            delivered[part.process, part.delivered - numbers.low] = True
            accepted[part.process, part.accepted - numbers.low] = True
            confirmed[part.confirmed - numbers.low] = True
        sends = compare.join_sends([part.sends for part in parts if part.sends is not None], n)
        for destination in range(n):
            if destination == source or self._gone[destination]:
                continue
            mine = meant_for(self._processes, sends, destination, source)
            mine &= sends.view > self._closed_view
            at = sends.seq - numbers.low
            others: Bools = np.any(delivered[self._witnesses(source, destination)], axis=0)
            name = self._processes[destination].name
            lacking = mine & others[at] & ~delivered[destination, at]
            told = f"was delivered, but never at {name}"
            yield from self._bad(sends, lacking, destination, source, told, "deliver")
            refuted = mine & confirmed[at] & ~accepted[destination, at]
            told = f"was confirmed, but {name} never accepted it"
            yield from self._bad(sends, refuted, destination, source, told, "confirm")

    def _witnesses(self, source: int, destination: int) -> NDArray[np.intp]:
        """The surviving destinations besides this one."""
        return np.array(
            [at for at, is_gone in enumerate(self._gone) if not is_gone and at not in (source, destination)],
            np.intp,
        )

    def _bad(
        self, sends: Sends, wrong: Bools, destination: int, source: int, what: str, step: str
    ) -> Iterator[Bad]:
        seqs = sends.seq[wrong]
        if len(seqs):
            rows = [RowKey(destination, 0, source, seq) for seq in seqs[: self._listed_max].tolist()]
            blames = f"a message of {self._processes[source].name} {what}"
            yield Bad("atomic", destination, source, what, len(seqs), rows, blames=blames, step=step)
