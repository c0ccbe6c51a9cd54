"""Copies of a message whose send is lost with the end of a trace, held against each other.

What such a message was sent with nobody can say, but it was sent with one vector: where copies have different ones, all
but the most common are wrong for certain.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from inga.certify import work
from inga.certify.chunk import Bools, Ints
from inga.certify.compare import Range
from inga.certify.evidence import Evidence
from inga.certify.roots import Bad
from inga.certify.work import FirstCopies, RowKey

ROWS_AT_ONCE = 1 << 22


def unlike_others(evidence: Evidence) -> Iterator[Bad]:
    """Deliveries of what incomplete processes sent, with another vector than elsewhere."""
    delivered = [summary.delivered_high for summary in evidence.summaries]
    for source in np.flatnonzero(np.any(delivered, axis=0)).tolist() if delivered else ():
        if evidence.processes[source].complete:
            continue
        known = max((link.summary.sent_high for link in evidence.lines[source]), default=0)
        links = [link for link in evidence.links if link.summary.delivered_high[source] > known]
        if evidence.growing:  # what folds hold was compared when it came
            links = [link for link in links if link.summary.segments == 1]
        highs = sorted({int(link.summary.delivered_high[source]) for link in links})
        for numbers in _ranges(highs, known + 1, max(ROWS_AT_ONCE // len(evidence.processes), 1)):
            questions = [
                (link.segment, (evidence.keys, source, numbers))
                for link in links
                if link.summary.delivered_low[source] < numbers.high
            ]
            found = evidence.ask("copies compared", work.copies, questions)
            yield from _judge(evidence, source, [part for _, part in found])


def _ranges(highs: Sequence[int], low: int, width: int) -> Iterator[Range]:
    """Numbers from `low` on, some at a time. They end where a chunk has its highest: between those may be nothing at
    all, if a number is wrong."""
    for high, following in pairwise([*highs, None]):
        assert high is not None
        if following is None or following - low >= width:
            yield Range(low, high + 1)
            low = high + 1


def _judge(evidence: Evidence, source: int, parts: list[FirstCopies]) -> Iterator[Bad]:
    process = np.concatenate([np.full(len(part.seq), part.process) for part in parts])
    seq, pos, word = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("seq", "pos", "word")
    )
    wrong = _is_uncommon(process, seq, word)
    sender = evidence.names[source]
    for here in np.unique(process[wrong]).tolist():
        at = np.flatnonzero(wrong & (process == here))
        rows = [
            RowKey(here, int(pos[each]), source, int(seq[each]))
            for each in at[: evidence.listed_max].tolist()
        ]
        blames = f"{evidence.names[here]} delivered messages of {sender} with other vectors than others"
        yield Bad(
            "integrity", here, source, "carries another vector than elsewhere", len(at), rows, blames=blames
        )


def _is_uncommon(process: Ints, seq: Ints, word: Ints) -> Bools:
    """Which copies differ from most of their number; of equally many, those of the lowest process are believed."""
    order = np.lexsort((process, word, seq))
    is_first = np.ones(len(order), np.bool_)  # of copies that are alike
    is_first[1:] = (seq[order][1:] != seq[order][:-1]) | (word[order][1:] != word[order][:-1])
    begins = np.flatnonzero(is_first)
    counts = np.diff(np.append(begins, len(order)))
    first, number = process[order][begins], seq[order][begins]
    ranked = np.lexsort((-first, counts, number))  # so that the kind to believe is the last of its number
    believed = np.zeros(len(begins), np.bool_)
    believed[ranked[np.append(number[ranked][1:] != number[ranked][:-1], True)]] = True
    wrong = np.zeros(len(order), np.bool_)
    wrong[order] = ~np.repeat(believed, counts)
    return wrong
