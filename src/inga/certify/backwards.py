"""Clocks that go back: rows with an earlier time than a row before them at the same process."""

from collections.abc import Iterator

from inga.certify import work
from inga.certify.chunk import NEVER_YET
from inga.certify.evidence import Evidence
from inga.certify.roots import Bad
from inga.certify.work import RowKey


def time(evidence: Evidence) -> Iterator[Bad]:
    """A process has one clock, so its rows can be compared; those of different processes cannot, unless they are on one machine."""
    suspects: dict[int, tuple[int, int]] = {}  # by segment: process, and the latest time before
    for process, line in enumerate(evidence.lines):
        latest = NEVER_YET
        for link in line:
            if link.summary.times_back or link.summary.time_low < latest:
                suspects[link.segment] = process, latest
            latest = max(latest, link.summary.time_high)
    questions = [(segment, (latest, evidence.listed_max)) for segment, (_, latest) in suspects.items()]
    for segment, found in evidence.ask("times read", work.backwards, questions):
        process, name = suspects[segment][0], evidence.names[suspects[segment][0]]
        what = "has a time that is earlier than one before it"
        if found.count == 1:
            what = f"has a time that is {found.first[0][1] / 1e9:.3g} s earlier than one before it"
        rows = [RowKey(process, pos, process, 0) for pos, _ in found.first]
        blames = f"the clock of {name} went back"
        yield Bad("time", process, process, what, found.count, rows, blames=blames)
