"""Late deliveries and wrong vectors: `fifo`, `causal` and `stamps`, which one scan judges together.

Summaries say which chunks are suspect. Those are scanned again, with their carry.
"""

from collections.abc import Iterator

import numpy as np

from inga.certify import work
from inga.certify.combine import suspects
from inga.certify.evidence import Evidence
from inga.certify.roots import Bad
from inga.certify.work import RowKey


def fifo(evidence: Evidence) -> Iterator[Bad]:
    return _found(evidence, "fifo")


def causal(evidence: Evidence) -> Iterator[Bad]:
    unstamped = sum(summary.unstamped_deliveries for summary in evidence.summaries)
    if unstamped:
        evidence.leave_open("causal", f"{unstamped:,} deliveries have no deps")
    return _found(evidence, "causal")


def stamps(evidence: Evidence) -> Iterator[Bad]:
    unstamped = sum(summary.unstamped_known for summary in evidence.summaries)
    if unstamped:
        evidence.leave_open("stamps", f"{unstamped:,} sends and receipts have no deps")
    evidence.restarts = evidence.once(_rescan)[1]
    for bad in _found(evidence, "stamps"):
        # If receipts have no vector, the right vector of a send is not known.
        if not any(link.summary.unstamped_known for link in evidence.lines[bad.process]):
            yield bad


def _found(evidence: Evidence, check: str) -> Iterator[Bad]:
    return (bad for bad in evidence.once(_rescan)[0] if bad.check == check)


def _rescan(evidence: Evidence) -> tuple[list[Bad], dict[int, RowKey]]:
    """The violations in suspect chunks, and where processes began to count their messages again."""
    links = {link.segment: link for link in suspects(evidence.lines, evidence.wanted)}
    before = {
        link.segment: max((earlier.summary.sent_high for earlier in line[:at]), default=0)
        for line in evidence.lines
        for at, link in enumerate(line)
        if link.segment in links
    }
    questions = [
        (at, (evidence.keys, link.carry, before[at], evidence.listed_max)) for at, link in links.items()
    ]
    bad: list[Bad] = []
    restarts: dict[int, RowKey] = {}
    for segment, findings in evidence.ask("suspect segments read", work.rescan, questions):
        process = links[segment].summary.process
        for check, broken in findings.broken.items():
            for source in np.flatnonzero(broken.counts).tolist():
                rows = [row for row in broken.rows if row.src == source]
                bad.append(Bad(check, process, source, check, int(broken.counts[source]), rows))
        if findings.restarts:
            restarts.setdefault(process, findings.restarts[0])
    return bad, restarts
