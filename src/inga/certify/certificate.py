"""Certifying a trace: summaries first, then only what they leave open.

    1  summarise every chunk                                   all rows, once
    2  let the judge of each check that is asked for look      at chunks that the summaries make suspect
    3  explain: what came too early, by which chain, and why   a few segments

A `Source` reads chunks and decides where the work is done: for a list in memory, for files, on Spark.
"""

from collections.abc import Sequence

from inga.certify import work
from inga.certify.checks import CHECKS
from inga.certify.combine import check_widths, line_up
from inga.certify.evidence import Evidence, Source
from inga.certify.explain import Explainer
from inga.certify.fingerprint import Keys
from inga.certify.roots import Bad, group_by_root
from inga.certify.verdict import FAIL, PASS, UNKNOWN, Answer, Certificate
from inga.certify.work import RowKey

WITNESSES = 5


def certify(
    source: Source,
    checks: Sequence[str],
    *,
    witnesses: int = WITNESSES,
    seed: int | None = None,
    growing: bool = False,
    explained: bool = True,
    seen: Sequence[int] = (),
) -> Certificate:
    """Answer the checks of these names. In a trace that is `growing`, a newcomer may be named before any vector has room
    for it. If not `explained`, violations are only counted. `seen`: by process, the position up to which violations
    were shown before; later ones are shown first."""
    keys = Keys.draw(len(source.processes), seed)
    questions = [(segment, keys) for segment in range(len(source.segment_names))]
    found = source.map("segments read", work.summarise, questions)
    if not growing:
        check_widths([summary for _, summary in found], source.processes)
    evidence = Evidence(source, line_up(found, source.processes), checks, keys, witnesses, growing)
    bad = [
        each for check in CHECKS.values() if check.name in evidence.wanted for each in check.judge(evidence)
    ]
    summaries, explainer = evidence.summaries, Explainer(evidence) if explained else None
    return Certificate(
        events=sum(summary.events for summary in summaries),
        messages=sum(summary.sends for summary in summaries),
        deliveries=sum(summary.deliveries for summary in summaries),
        payloads=sum(summary.payloads for summary in summaries),
        names=evidence.names,
        checks=[_answer(name, evidence, explainer, bad, seen) for name in checks],
        groups=group_by_root(evidence.names, bad, evidence.restarts, explainer) if explainer else [],
    )


def _answer(
    name: str, evidence: Evidence, explainer: Explainer | None, found: list[Bad], seen: Sequence[int]
) -> Answer:
    bad = [each for each in found if each.check == name]
    violations = sum(each.count for each in bad)
    reasons = evidence.open.get(name, [])
    verdict = FAIL if violations else UNKNOWN if reasons else PASS
    witnesses = []
    if explainer is not None:
        witnesses = [explainer.witness(row, each) for row, each in _spread(bad, evidence.witnesses, seen)]
    return Answer(name, verdict, violations, "; ".join(reasons), witnesses, evidence.warnings.get(name, []))


def _spread(bad: Sequence[Bad], count: int, seen: Sequence[int]) -> list[tuple[RowKey, Bad]]:
    """Some of the violations: of each process and sender the first, then others; those that were `seen` come last."""
    listed = [(row, each) for each in bad for row in each.rows]
    listed.sort(key=lambda pair: (pair[0].process, pair[0].pos, pair[0].seq))
    shown: set[tuple[int, int]] = set()
    parts: list[list[tuple[RowKey, Bad]]] = [[], [], []]
    for row, each in listed:
        key = (row.process, row.src)
        if seen and row.pos <= seen[row.process]:
            parts[2].append((row, each))
            continue
        parts[key in shown].append((row, each))
        shown.add(key)
    return [pair for part in parts for pair in part][:count]
