"""The judges of `integrity` and `complete`: where the sums of a destination and a source differ, their messages are compared one
by one, a range at a time."""

from collections.abc import Iterator

import numpy as np

from inga.certify import compare, work
from inga.certify.chunk import Bools, Ints
from inga.certify.combine import Line, Pair, PlacedChunk
from inga.certify.compare import Deliveries, Range, Sends
from inga.certify.copies import unlike_others
from inga.certify.evidence import Evidence
from inga.certify.fold import forgotten
from inga.certify.membership import Membership, crashed, has_left
from inga.certify.roots import Bad
from inga.certify.scan import NEVER
from inga.certify.work import FoundRows, RowKey, Wanted

ROWS_AT_ONCE = 1 << 22
PAIRS_AT_ONCE = 64


def integrity(evidence: Evidence) -> Iterator[Bad]:
    yield from (bad for bad in evidence.once(_compare) if bad.check == "integrity")
    yield from unlike_others(evidence)


def complete(evidence: Evidence) -> Iterator[Bad]:
    evidence.doubt_receivers("complete")
    return (bad for bad in evidence.once(_compare) if bad.check == "complete")


def _compare(evidence: Evidence) -> list[Bad]:
    """The violations of all these pairs. Rounds are so small that memory does not depend on the trace."""
    judge = _Judge(evidence)
    bad: list[Bad] = []
    for group, numbers in _rounds(evidence):
        questions = [
            (link.segment, (evidence.keys, wanted))
            for link in evidence.links
            if not (evidence.growing and link.summary.segments > 1)
            and (wanted := _wanted(link, group, numbers)) is not None
        ]
        if questions:
            found = evidence.ask("segments compared", work.collect, questions)
            bad += judge.judge(group, [part for _, part in found])
    return bad


def _rounds(evidence: Evidence) -> Iterator[tuple[list[Pair], Range]]:
    """Which pairs to compare, and which of their messages. In a growing trace, messages of which rows are in folds are left for the
    end: they were compared before these were folded."""
    lines, growing = evidence.lines, evidence.growing
    segments = [link.segment for link in evidence.links if not (growing and link.summary.segments > 1)]
    for first, group in _groups(lines, evidence.unequal, growing):
        width = ROWS_AT_ONCE // len(group)
        high = max(first - 1, *(sent_high(lines[pair.source]) for pair in group))
        sources = {pair.source for pair in group}
        for numbers in evidence.ranges(sources, first, high, width, segments):
            yield group, numbers
        yield group, Range(high + 1, NEVER)  # above all numbers that were sent


def _groups(lines: list[Line], pairs: list[Pair], growing: bool) -> Iterator[tuple[int, list[Pair]]]:
    """A bounded number of pairs at a time, with the first number to compare."""
    left: dict[int, list[Pair]] = {1: pairs}
    if growing and any(link.summary.segments > 1 for line in lines for link in line):
        left = {}
        for source in sorted({pair.source for pair in pairs}):
            mine = [pair for pair in pairs if pair.source == source]
            left.setdefault(forgotten(lines, source) + 1, []).extend(mine)
    for first, some in left.items():
        for start in range(0, len(some), PAIRS_AT_ONCE):
            yield first, some[start : start + PAIRS_AT_ONCE]


def sent_high(line: Line) -> int:
    return max((link.summary.sent_high for link in line), default=0)


def _wanted(link: PlacedChunk, pairs: list[Pair], numbers: Range) -> Wanted | None:
    """The rows to read from a chunk; None if it has none for these pairs and numbers."""
    summary = link.summary
    is_source = any(pair.source == summary.process for pair in pairs)
    sends = is_source and summary.sent_low < numbers.high and summary.sent_high >= numbers.low
    sources = [
        pair.source
        for pair in pairs
        if pair.destination == summary.process
        and summary.delivered_low[pair.source] < numbers.high
        and summary.delivered_high[pair.source] >= numbers.low
    ]
    return Wanted(numbers, sends, sources) if sends or sources else None


class _Judge:
    def __init__(self, evidence: Evidence) -> None:
        self._lines = evidence.lines
        self._processes = evidence.processes
        self._membership = evidence.membership
        self._guarantees = evidence.source.guarantees
        self._relayed = evidence.source.order == "relay"
        self._listed_max = evidence.listed_max
        self._crashed = crashed(self._lines, self._processes)

    def judge(self, pairs: list[Pair], parts: list[FoundRows]) -> Iterator[Bad]:
        n = len(self._processes)
        for pair in pairs:
            sent = [part.sends for part in parts if part.process == pair.source and part.sends is not None]
            received = [
                part.deliveries[pair.source]
                for part in parts
                if part.process == pair.destination and pair.source in part.deliveries
            ]
            sends, delivered = compare.join_sends(sent, n), compare.join_deliveries(received)
            mine = meant_for(self._membership, sends, pair.destination, pair.source)
            yield from self._wrong(pair, sends, mine, delivered)
            yield from self._lost(pair, sends, mine, delivered)

    def _wrong(self, pair: Pair, sends: Sends, mine: Bools, delivered: Deliveries) -> Iterator[Bad]:
        echo = pair.destination == pair.source
        # The last sends of a process may be among its missing rows, but not the send of a message whose echo it wrote.
        is_known = echo or self._processes[pair.source].complete
        known_upto = NEVER if is_known else sent_high(self._lines[pair.source])
        wrong = compare.judge_deliveries(sends, mine, delivered, echo=echo, known_upto=known_upto)
        for reason in np.unique(wrong[wrong > 0]).tolist():
            rows = np.flatnonzero(wrong == reason)
            what = compare.REASONS[reason]
            blames = "{here} delivered a message of {source} that " + what
            yield self._bad("integrity", pair, what, blames, delivered.seq[rows], delivered.pos[rows])

    def _lost(self, pair: Pair, sends: Sends, mine: Bools, delivered: Deliveries) -> Iterator[Bad]:
        if pair.destination == pair.source:
            return
        lost = compare.missing(sends, mine, delivered)
        passed = self._passed(pair)
        owed = np.zeros(len(lost), np.bool_)
        for view in np.unique(sends.view[lost]).tolist():
            inside = sends.view[lost] == view
            is_owed = self._membership.owes(pair.destination, pair.source, view, relayed=self._relayed)
            owed[inside] = sends.seq[lost[inside]] <= passed if is_owed is None else is_owed
        lost = lost[owed]
        if len(lost):
            blames = "messages of {source} were never delivered at {here}"
            yield self._bad(
                "complete", pair, "was never delivered", blames, sends.seq[lost], np.zeros_like(lost)
            )

    def _passed(self, pair: Pair) -> int:
        """The last number of the source that the destination must have delivered, in the view in which one of the two ended: no
        limit if both were present to the end. A member that left must have delivered every message that, in the order that
        the run claims, comes before another one that it delivered: it did not miss that by leaving."""
        if self._crashed[pair.destination] or self._crashed[pair.source]:
            return 0
        if not has_left(self._lines[pair.destination]):
            return NEVER
        summaries = [link.summary for link in self._lines[pair.destination]]
        if "causal" in self._guarantees:
            return max(int(summary.required[pair.source]) for summary in summaries)
        if "fifo" in self._guarantees:
            return max(int(summary.delivered_high[pair.source]) for summary in summaries)
        return 0

    def _bad(self, check: str, pair: Pair, what: str, blames: str, seqs: Ints, positions: Ints) -> Bad:
        rows = [
            RowKey(pair.destination, pos, pair.source, seq)
            for pos, seq in zip(
                positions[: self._listed_max].tolist(), seqs[: self._listed_max].tolist(), strict=True
            )
        ]
        here, source = self._processes[pair.destination].name, self._processes[pair.source].name
        return Bad(
            check,
            pair.destination,
            pair.source,
            what,
            len(seqs),
            rows,
            blames=blames.format(here=here, source=source),
        )


def meant_for(membership: Membership, sends: Sends, destination: int, source: int) -> Bools:
    """Which sends are for a destination, given the views they were sent in."""
    mine = sends.addressed[:, destination].copy()
    for view in np.unique(sends.view).tolist():
        inside = sends.view == view
        mine[inside & sends.to_all] = membership.meant(source, view)[destination]
        if not membership.reachable(source, view)[destination]:
            mine[inside] = False
    return mine
