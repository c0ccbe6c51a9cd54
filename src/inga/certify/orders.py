"""Whether processes have the same messages in the same order: the judges of `total` and `object`."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from inga.certify.agree import Agreement, Rules, message_of, pairs_at
from inga.certify.chunk import START, Chunk
from inga.certify.evidence import Evidence
from inga.certify.precede import LateRequests
from inga.certify.roots import Bad
from inga.certify.work import RowKey
from inga.model.invocation import ANY_KEY

KEYS_MAX = 64
"""The most keys of messages that are compared, if a function computes them: each costs a pass over the messages."""

DeclaredPairs = dict[str, list[list[str]]]


def total(evidence: Evidence) -> Iterator[Bad]:
    return _clashes(evidence, "total", Rules.total(len(evidence.names), evidence.membership.orders))


def objects(evidence: Evidence) -> Iterator[Bad]:
    """Requests conflict if the manifest lists their methods; for some methods the arguments decide, which are not
    in a trace."""
    declared = evidence.source.conflicts
    if declared is None:
        evidence.leave_open("object", "the manifest does not say which methods conflict")
        return
    undecided = evidence.source.undecided or {}
    if undecided or any([ANY_KEY, ANY_KEY] in pairs for pairs in declared.values()):
        began = _began(evidence)
        _leave_undecided(evidence, undecided, began)
        declared = _with_keys(evidence, declared, began)
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


def _began(evidence: Evidence) -> dict[str, Counter[str]]:
    """By process: how many requests of each method began."""
    began = {name: Counter[str]() for name in evidence.names}
    links = {link.segment: link for link in evidence.links if link.summary.starts}
    for segment, counts in evidence.ask("methods counted", _methods, [(segment, None) for segment in links]):
        began[evidence.names[links[segment].summary.process]] += counts
    return began


def _methods(chunk: Chunk, _: None) -> Counter[str]:
    assert chunk.method is not None, "methods are read if this check is asked for"
    codes, counts = np.unique(chunk.method[(chunk.kind & START) > 0], return_counts=True)
    return Counter({chunk.methods[code]: count for code, count in zip(codes, counts.tolist(), strict=True)})


def _leave_undecided(evidence: Evidence, undecided: DeclaredPairs, began: dict[str, Counter[str]]) -> None:
    """Leave the check undecided for undecided pairs of methods of which two requests began at one process."""
    found: dict[str, list[str]] = {}
    for process, counts in began.items():
        for one, other in pairs_at(process, undecided):
            if counts[one] and counts[other] and (one != other or counts[one] > 1):
                found.setdefault(f"{one} and {other}", []).append(process)
    for methods, processes in found.items():
        where = ", ".join(processes)
        evidence.leave_open("object", f"arguments decide whether {methods} conflict, at {where}: not judged")


def _with_keys(evidence: Evidence, declared: DeclaredPairs, began: dict[str, Counter[str]]) -> DeclaredPairs:
    """The manifest's conflicts, with `ANY_KEY` replaced by the keys that messages have in the trace."""
    prefix = ANY_KEY.removesuffix("*")
    keys = sorted({method for counts in began.values() for method in counts if method.startswith(prefix)})
    if len(keys) > KEYS_MAX:
        evidence.leave_open(
            "object", f"messages have {len(keys):,} keys: only {KEYS_MAX} of them are compared"
        )
    alike = [[key, key] for key in keys[:KEYS_MAX]]
    return {process: alike if [ANY_KEY, ANY_KEY] in pairs else pairs for process, pairs in declared.items()}


def _clashes(evidence: Evidence, check: str, rules: Rules) -> Iterator[Bad]:
    n = len(evidence.names)
    agreement = Agreement(evidence.lines, rules, evidence.source, max(evidence.witnesses, 1))
    for (process, _), count, clashes in agreement.clashes():
        rows = [RowKey(process, clash.pos, *message_of(clash.key, n)) for clash in clashes]
        yield Bad(check, process, rows[0].src, check, count, rows, clashes=clashes)
    if agreement.open is not None:
        evidence.leave_open(check, agreement.open)
