"""All or none: a message that one surviving destination delivered is delivered at all of them, and no message
counts as confirmed that some destination never accepted.

If the sums of sends, deliveries and acceptances are equal everywhere, there can be no violation. Only the messages
of sources for which some sum differs are compared, a range of their numbers at a time.
"""

from collections.abc import Iterator

import numpy as np

from inga.certify import compare, work
from inga.certify.chunk import Bools
from inga.certify.combine import unaccepted_sources
from inga.certify.compare import Range, Sends
from inga.certify.evidence import Evidence
from inga.certify.pairs import ROWS_AT_ONCE, meant_for
from inga.certify.roots import Bad
from inga.certify.work import Fates, RowKey


def atomic(evidence: Evidence) -> Iterator[Bad]:
    """Messages that some destinations have and others lack, by destination and source."""
    evidence.doubt_receivers("atomic")
    sources = {pair.source for pair in evidence.unequal if pair.source != pair.destination}
    if any(summary.confirms for summary in evidence.summaries):
        sources |= unaccepted_sources(evidence.lines, evidence.membership)
    judge = _Judge(evidence)
    width = max(ROWS_AT_ONCE // len(evidence.processes), 1)
    for source in sorted(sources):
        high = max((link.summary.sent_high for link in evidence.lines[source]), default=0)
        segments = [link.segment for link in evidence.links]
        for numbers in evidence.ranges([source], 1, high, width, segments):
            questions = [(link.segment, (evidence.keys, source, numbers)) for link in evidence.links]
            found = evidence.ask("segments compared", work.fates, questions)
            yield from judge.judge(source, numbers, [part for _, part in found])


class _Judge:
    def __init__(self, evidence: Evidence) -> None:
        self._processes = evidence.processes
        self._listed_max = evidence.listed_max
        self._membership = evidence.membership

    def judge(self, source: int, numbers: Range, parts: list[Fates]) -> Iterator[Bad]:
        n, width = len(self._processes), numbers.high - numbers.low
        delivered, accepted, confirmed = np.zeros((3, n, width), np.bool_)
        for part in parts:
            delivered[part.process, part.delivered - numbers.low] = True
            accepted[part.process, part.accepted - numbers.low] = True
            confirmed[part.process, part.confirmed - numbers.low] = True
        sends = compare.join_sends([part.sends for part in parts if part.sends is not None], n)
        at = sends.seq - numbers.low
        for view in np.unique(sends.view).tolist():
            for survivors in self._membership.survivors(source, view):
                for destination in survivors:
                    mine = meant_for(self._membership, sends, destination, source) & (sends.view == view)
                    witnesses = [other for other in survivors if other != destination]
                    others: Bools = np.any(delivered[witnesses], axis=0)
                    name = self._processes[destination].name
                    lacking = mine & others[at] & ~delivered[destination, at]
                    told = f"was delivered, but never at {name}"
                    yield from self._bad(sends, lacking, destination, source, told, "deliver")
                    told_by = [each for each in range(n) if self._is_told(each, destination, view)]
                    said: Bools = np.any(confirmed[told_by], axis=0)
                    refuted = mine & said[at] & ~accepted[destination, at]
                    told = f"was confirmed, but {name} never accepted it"
                    yield from self._bad(sends, refuted, destination, source, told, "confirm")

    def _is_told(self, process: int, destination: int, view: int) -> bool:
        """Whether a confirmation at a process covers this destination too: only if both are in the same part of the group."""
        return self._membership.is_together(process, destination, view)

    def _bad(
        self, sends: Sends, wrong: Bools, destination: int, source: int, what: str, step: str
    ) -> Iterator[Bad]:
        seqs = sends.seq[wrong]
        if len(seqs):
            rows = [RowKey(destination, 0, source, seq) for seq in seqs[: self._listed_max].tolist()]
            blames = f"a message of {self._processes[source].name} {what}"
            yield Bad("atomic", destination, source, what, len(seqs), rows, blames=blames, step=step)
