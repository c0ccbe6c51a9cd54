"""The orders that processes have of the same messages: the judges of `total` and `object`."""

from collections.abc import Iterator

from inga.certify.agree import Agreement, Rules, message_of
from inga.certify.evidence import Evidence
from inga.certify.precede import LateRequests
from inga.certify.roots import Bad
from inga.certify.work import RowKey


def total(evidence: Evidence) -> Iterator[Bad]:
    return _clashes(evidence, "total", Rules.total(len(evidence.names), evidence.membership.camps))


def objects(evidence: Evidence) -> Iterator[Bad]:
    """Which requests conflict is known by their methods, from the manifest."""
    declared = evidence.source.conflicts
    if declared is None:
        evidence.leave_open("object", "the manifest does not say which methods conflict")
        return
    rules = Rules.objects(evidence.names, declared, evidence.membership.camps)
    precedence = LateRequests(evidence, rules)
    if rules.methods:
        yield from _clashes(evidence, "object", rules)
        yield from precedence.late()
    if precedence.unstamped:
        evidence.leave_open("object", f"{precedence.unstamped:,} requests began without deps")
    if not precedence.judged and any(summary.starts for summary in evidence.summaries):
        evidence.leave_open(
            "object",
            "no request that began has a method that the manifest's conflicts name: arguments may decide",
        )


def _clashes(evidence: Evidence, check: str, rules: Rules) -> Iterator[Bad]:
    n = len(evidence.names)
    agreement = Agreement(evidence.lines, rules, evidence.source, max(evidence.witnesses, 1))
    for (process, _), count, clashes in agreement.clashes():
        rows = [RowKey(process, clash.pos, *message_of(clash.key, n)) for clash in clashes]
        yield Bad(check, process, rows[0].src, check, count, rows, clashes=clashes)
    if agreement.open is not None:
        evidence.leave_open(check, agreement.open)
