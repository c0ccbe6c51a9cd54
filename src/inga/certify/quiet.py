"""Control traffic that does not end: control rows long after the last progress of a message."""

from collections.abc import Iterator

from inga.certify import work
from inga.certify.chunk import NEVER_YET
from inga.certify.evidence import Evidence
from inga.certify.roots import Bad
from inga.certify.work import RowKey


def quiet(evidence: Evidence) -> Iterator[Bad]:
    progress = max((summary.progress_last for summary in evidence.summaries), default=NEVER_YET)
    if not any(summary.chatter for summary in evidence.summaries):
        evidence.leave_open("quiet", "no row tells of control traffic, as in a trace of deliveries only")
    # Missing rows may include later progress of a message, which would explain all this traffic.
    if progress == NEVER_YET or not all(process.complete for process in evidence.processes):
        return
    deadline = progress + round(evidence.source.quiet_seconds * 1e9)
    noisy = {link.segment: link for link in evidence.links if link.summary.chatter_last > deadline}
    questions = [(segment, (deadline, evidence.listed_max)) for segment in noisy]
    for segment, found in evidence.ask("noisy segments read", work.noise, questions):
        process = noisy[segment].summary.process
        _, time, step = found.first[0]
        what = f"still sent control traffic ({step}) {(time - progress) / 1e9:.3g} s after the last message"
        rows = [RowKey(process, pos, process, 0) for pos, _, _ in found.first]
        blames = f"{evidence.names[process]} did not go quiet"
        yield Bad("quiet", process, process, what, found.count, rows, blames=blames)
