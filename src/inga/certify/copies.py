"""Compare copies of messages whose sends are among the missing rows at the end of a trace.

The vector with which such a message was sent is unknown, but there was only one. If copies have different vectors, some of
them are certainly wrong, and the most common one is believed.
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
    """Deliveries of messages of incomplete processes with another vector than elsewhere."""
    delivered = [summary.delivered_high for summary in evidence.summaries]
    for source in np.flatnonzero(np.any(delivered, axis=0)).tolist() if delivered else ():
        if evidence.processes[source].complete:
            continue
        known = max((link.summary.sent_high for link in evidence.lines[source]), default=0)
        links = [link for link in evidence.links if link.summary.delivered_high[source] > known]
        if evidence.growing:  # the deliveries in folds were compared before
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
    """Ranges of numbers, from `low` on. Each ends at the highest number of a chunk: if one number is wrong, there may be no
    messages at all between those."""
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
    """Which copies differ from the most common ones of their number; if several are equally common, those of the lowest process
    are believed."""
    order = np.lexsort((process, word, seq))
    is_first = np.ones(len(order), np.bool_)  # of equal copies
    is_first[1:] = (seq[order][1:] != seq[order][:-1]) | (word[order][1:] != word[order][:-1])
    begins = np.flatnonzero(is_first)
    counts = np.diff(np.append(begins, len(order)))
    first, number = process[order][begins], seq[order][begins]
    ranked = np.lexsort((-first, counts, number))  # the copies to believe come last of each number
    believed = np.zeros(len(begins), np.bool_)
    believed[ranked[np.append(number[ranked][1:] != number[ranked][:-1], True)]] = True
    wrong = np.zeros(len(order), np.bool_)
    wrong[order] = ~np.repeat(believed, counts)
    return wrong
