"""Who came through a view delivered the same messages in it.

If what was sent in a view was delivered in it everywhere, there is nothing to look for. Only the sources for which
some sum differs are looked at, a range of their numbers at a time, as for `atomic`.
"""

from collections.abc import Iterator

import numpy as np

from inga.certify import compare, work
from inga.certify.chunk import Bools
from inga.certify.combine import is_member
from inga.certify.compare import Range
from inga.certify.evidence import Evidence
from inga.certify.pairs import ROWS_AT_ONCE, gone, meant_for
from inga.certify.roots import Bad
from inga.certify.scan import Summary
from inga.certify.work import Fates, RowKey

NOWHERE = -1  # the view of a message that was not delivered


def views(evidence: Evidence) -> Iterator[Bad]:
    """Messages that some survivor of a view delivered in it and another one did not."""
    if all(summary.installed < 0 for summary in evidence.summaries):
        evidence.leave_open("views", "no row tells of a view")
        return
    judge = _Judge(evidence)
    sources = {pair.source for pair in evidence.unequal if pair.source != pair.destination}
    width = max(ROWS_AT_ONCE // len(evidence.processes), 1)
    for source in sorted(sources):
        high = max((_high(summary, source) for summary in evidence.summaries), default=0)
        for low in range(1, high + 1, width):
            numbers = Range(low, min(low + width, high + 1))
            questions = [
                (link.segment, (evidence.keys, source, numbers))
                for link in evidence.links
                if link.summary.process == source or _has(link.summary, source, numbers)
            ]
            found = evidence.ask("segments compared", work.fates, questions)
            yield from judge.judge(source, numbers, [part for _, part in found])


def _high(summary: Summary, source: int) -> int:
    sent = summary.sent_high if summary.process == source else 0
    return max(sent, int(summary.delivered_high[source]) if summary.process != source else 0)


def _has(summary: Summary, source: int, numbers: Range) -> bool:
    low, high = summary.delivered_low[source], summary.delivered_high[source]
    return bool(low < numbers.high and high >= numbers.low)


class _Judge:
    def __init__(self, evidence: Evidence) -> None:
        lines = evidence.lines
        self._processes = evidence.processes
        self._listed_max = evidence.listed_max
        self._gone = gone(lines, evidence.processes)
        self._installed = [max((link.summary.installed for link in line), default=-1) for line in lines]

    def judge(self, source: int, numbers: Range, parts: list[Fates]) -> Iterator[Bad]:
        n, width = len(self._processes), numbers.high - numbers.low
        delivered_in = np.full((n, width), NOWHERE, np.int32)
        for part in reversed(parts):  # so that the first delivery is the one that counts
            at = part.delivered[::-1] - numbers.low
            delivered_in[part.process, at] = part.delivered_in[::-1]
        meant = self._meant(source, numbers, parts)
        for view in np.unique(delivered_in[delivered_in != NOWHERE]).tolist():
            survivors = [at for at in range(n) if at != source and self._survived(at, view)]
            delivered = delivered_in == view
            for here in survivors:
                for_both = [other for other in survivors if other != here]
                lacking = meant[here] & delivered[for_both].any(axis=0) & ~delivered[here]
                yield from self._bad(lacking, numbers, here, source, view)

    def _meant(self, source: int, numbers: Range, parts: list[Fates]) -> Bools:
        """By destination and number. Of what was lost with the end of a trace nothing is known."""
        n, width = len(self._processes), numbers.high - numbers.low
        sends = compare.join_sends([part.sends for part in parts if part.sends is not None], n)
        meant = np.zeros((n, width), np.bool_)
        for destination in range(n):
            mine = meant_for(self._processes, sends, destination, source)
            meant[destination, sends.seq[mine] - numbers.low] = True
        return meant

    def _survived(self, process: int, view: int) -> bool:
        """It was in the view, and in a later one or there to the end."""
        was_there = is_member(self._processes[process], view)
        return was_there and (self._installed[process] > view or not self._gone[process])

    def _bad(self, lacking: Bools, numbers: Range, here: int, source: int, view: int) -> Iterator[Bad]:
        seqs = np.flatnonzero(lacking) + numbers.low
        if len(seqs):
            name = self._processes[here].name
            what = f"was delivered in view {view} by others that came through it, but not in it at {name}"
            rows = [RowKey(here, 0, source, seq) for seq in seqs[: self._listed_max].tolist()]
            sender = self._processes[source].name
            blames = f"{name} lacks messages of {sender} that others delivered in the same view"
            yield Bad("views", here, source, what, len(seqs), rows, blames=blames, view=view)
