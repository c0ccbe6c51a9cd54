"""Certifying a trace: summaries first, then only what they leave open.

    1  summarise every chunk                                   all rows, once
    2  scan suspect chunks again, with their carry             order and stamps
    3  compare messages of pairs whose sums disagree           integrity and completeness
    4  see who lacks what others have                          sources whose sums disagree
    5  look for control traffic that does not end              chunks with any after the deadline
    6  hold clocks of imported events against each other       chunks with events, one shuffle
    7  compare the orders that processes have                  messages meet by parts of the trace, one shuffle
    8  see what survivors of a view delivered in it            sources whose sums disagree
    9  explain: what came too early, by which chain, and why   a few segments

Who reads chunks and where the work is done is the business of a `Source`: a list in memory, files, Spark.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from inga.certify import clocks, work
from inga.certify.agree import Agreement, Rules
from inga.certify.atomic import divided
from inga.certify.chunk import NEVER_YET, Chunk
from inga.certify.combine import Line, Process, check_widths, line_up, suspects, unequal_pairs
from inga.certify.explain import Explainer
from inga.certify.fingerprint import Keys
from inga.certify.pairs import compare_pairs
from inga.certify.precede import Precedence, began
from inga.certify.roots import EXPLAINED_MAX, Bad, group_by_root
from inga.certify.verdict import FAIL, PASS, UNKNOWN, Certificate, Check
from inga.certify.views import disagreements, has_views
from inga.certify.work import Row

BUILT = ("integrity", "complete", "fifo", "stamps", "causal", "atomic", "quiet", "total", "views", "object")
"""Checks of runs that send and deliver messages."""

IMPORTED = ("clocks",)
"""Checks of logs that were imported."""

WITNESSES = 5
PLACES_SHOWN = 5  # of a warning


class Source(Protocol):
    """A trace whose chunks are numbered."""

    processes: Sequence[Process]
    receipt: str
    guarantees: Sequence[str]  # what the run claims
    segment_names: Sequence[str]
    quiet_seconds: float  # after the last progress, within which control traffic ends
    conflicts: dict[str, list[list[str]]] | None  # object runs: per process, pairs of methods

    def map(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: Sequence[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        """Apply a function to chunks, given as (number, question); `what` is for people who wait."""
        ...

    def exchange(
        self,
        what: str,
        ask: Callable[[Chunk, Any], dict[int, Any]],
        merge: Callable[[Any, Any], Any],
        answer: Callable[[Chunk, Any, Any], Any],
        questions: Sequence[tuple[int, Any]],
    ) -> list[tuple[int, Any]]:
        """Let chunks ask each other: `ask` gives, by chunk, what is asked of it; all of that, merged, goes there
        with that chunk's own question, and is answered."""
        ...

    def gather(
        self,
        what: str,
        function: Callable[[Chunk, Any], list[tuple[int, Any]]],
        questions: Sequence[tuple[int, Any]],
        join: Callable[[int, list[Any]], Any],
    ) -> list[Any]:
        """Apply a function to chunks that deals out what it finds under keys; `join` sees all of one key."""
        ...

    def read(self, segment: int) -> Chunk: ...


def certify(
    source: Source,
    checks: Sequence[str],
    *,
    witnesses: int = WITNESSES,
    seed: int | None = None,
    growing: bool = False,
) -> Certificate:
    """Answer the checks. A check that is not built yet answers *unknown*. Of a trace that is `growing`, a
    newcomer may be named before anybody has written a vector with room for it."""
    return _Certification(source, checks, witnesses, seed).run(growing)


class _Certification:
    def __init__(self, source: Source, checks: Sequence[str], witnesses: int, seed: int | None) -> None:
        self._source = source
        self._checks = list(checks)
        self._witnesses = witnesses
        self._listed_max = max(witnesses, EXPLAINED_MAX)
        self._names = [process.name for process in source.processes]
        self._keys = Keys.draw(len(self._names), seed)
        self._lines: list[Line] = []
        self._bad: list[Bad] = []
        self._restarts: dict[int, Row] = {}
        self._open: dict[str, list[str]] = {}  # per check, why it cannot be decided
        self._warnings: list[str] = []  # about clocks

    def run(self, growing: bool = False) -> Certificate:
        source = self._source
        questions = [(segment, self._keys) for segment in range(len(source.segment_names))]
        found = source.map("segments read", work.summarise, questions)
        if not growing:
            check_widths([summary for _, summary in found], source.processes)
        self._lines = line_up(found, source.processes)
        summaries = [link.summary for line in self._lines for link in line]
        self._find_holes()
        self._look_again()
        self._compare()
        self._divide()
        self._listen()
        self._agree()
        self._survive()
        explainer = Explainer(self._names, self._lines, source.read, source.receipt, source.segment_names)
        self._compare_clocks(explainer)
        return Certificate(
            events=sum(summary.events for summary in summaries),
            messages=sum(summary.sends for summary in summaries),
            deliveries=sum(summary.deliveries for summary in summaries),
            payloads=sum(summary.payloads for summary in summaries),
            names=self._names,
            checks=[self._answer(name, explainer) for name in self._checks],
            groups=group_by_root(self._names, self._bad, self._restarts, explainer.effect),
        )

    def _find_holes(self) -> None:
        summaries = [link.summary for line in self._lines for link in line]
        for process, line in zip(self._source.processes, self._lines, strict=True):
            if not process.complete:
                last = line[-1].summary.last if line else 0
                what = f"after position {last:,}" if last else "altogether"
                self._leave_open((*BUILT, *IMPORTED), f"rows of {process.name} are missing {what}")
        if not any(summary.sends or summary.deliveries for summary in summaries):
            others = [check for check in BUILT if check != "object"]
            self._leave_open(others, "no message was sent or delivered")
        if not any(len(summary.runs) for summary in summaries):
            self._leave_open(IMPORTED, "there are no events of an imported log")
        unstamped = sum(summary.unstamped_events for summary in summaries)
        if unstamped:
            self._leave_open(IMPORTED, f"{unstamped:,} events have no clock")
        deliveries = sum(summary.unstamped_deliveries for summary in summaries)
        if deliveries:
            self._leave_open(("causal",), f"{deliveries:,} deliveries have no deps")
        known = sum(summary.unstamped_known for summary in summaries)
        if known:
            self._leave_open(("stamps",), f"{known:,} sends and receipts have no deps")

    def _leave_open(self, checks: Iterable[str], reason: str) -> None:
        for check in checks:
            self._open.setdefault(check, []).append(reason)

    def _look_again(self) -> None:
        """Scan suspect chunks with their carry."""
        links = {link.segment: link for link in suspects(self._lines, self._checks)}
        if not links:
            return
        questions = [(at, (self._keys, link.carry, self._listed_max)) for at, link in links.items()]
        for segment, findings in sorted(
            self._source.map("suspect segments read", work.rescan, questions), key=lambda pair: pair[0]
        ):
            process = links[segment].summary.process
            for check, broken in findings.broken.items():
                if check in self._checks and not (check == "stamps" and self._lacks_receipts(process)):
                    self._note(check, process, broken)
            if findings.restarts and "stamps" in self._checks:
                self._restarts.setdefault(process, findings.restarts[0])

    def _lacks_receipts(self, process: int) -> bool:
        """Where receipts have no vector, what a send should say is not known."""
        return any(link.summary.unstamped_known for link in self._lines[process])

    def _note(self, check: str, process: int, broken: work.Broken) -> None:
        for source in np.flatnonzero(broken.counts).tolist():
            rows = [row for row in broken.rows if row.src == source]
            self._bad.append(Bad(check, process, source, check, int(broken.counts[source]), rows))

    def _compare(self) -> None:
        wanted = [check for check in ("integrity", "complete") if check in self._checks]
        source = self._source
        pairs = unequal_pairs(self._lines, source.processes) if wanted else []

        def collect(questions: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
            return source.map("segments compared", work.collect, questions)

        for bad in compare_pairs(
            self._lines, source.processes, pairs, self._keys, collect, source.guarantees, self._listed_max
        ):
            if bad.check in wanted:
                self._bad.append(bad)

    def _divide(self) -> None:
        if "atomic" in self._checks:

            def ask(questions: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
                return self._source.map("segments compared", work.fates, questions)

            lines, processes = self._lines, self._source.processes
            self._bad += divided(lines, processes, self._keys, ask, self._listed_max)

    def _listen(self) -> None:
        """Find control traffic long after the last message got anywhere."""
        if "quiet" not in self._checks:
            return
        links = [link for line in self._lines for link in line]
        progress = max((link.summary.progress_last for link in links), default=NEVER_YET)
        if not any(link.summary.chatter for link in links):
            self._leave_open(("quiet",), "no row tells of control traffic, as in a trace of deliveries only")
        deadline = progress + round(self._source.quiet_seconds * 1e9)
        noisy = {link.segment: link for link in links if link.summary.chatter_last > deadline}
        if not noisy or progress == NEVER_YET:
            return
        questions = [(segment, (deadline, self._listed_max)) for segment in noisy]
        for segment, found in sorted(
            self._source.map("noisy segments read", work.noise, questions), key=lambda pair: pair[0]
        ):
            process = noisy[segment].summary.process
            _, time, step = found.first[0]
            what = (
                f"still sent control traffic ({step}) {(time - progress) / 1e9:.3g} s after the last message"
            )
            rows = [Row(process, pos, process, 0) for pos, _, _ in found.first]
            self._bad.append(Bad("quiet", process, process, what, found.count, rows))

    def _compare_clocks(self, explainer: Explainer) -> None:
        if "clocks" not in self._checks:
            return
        complete = [process.complete for process in self._source.processes]
        found, late = clocks.find_faults(self._source, self._lines, complete, self._listed_max)
        self._bad += clocks.to_bad(found, self._names, explainer.place)
        if late:
            shown = [explainer.place(each.process, each.pos) for each in late[:PLACES_SHOWN]]
            more = ", ..." if len(late) > len(shown) else ""
            places = "1 place" if len(late) == 1 else f"{len(late):,} places"
            self._warnings.append(f"file order contradicts the clocks in {places}: {', '.join(shown)}{more}")

    def _agree(self) -> None:
        """Hold the orders of processes against each other."""
        if "total" in self._checks:
            self._compare_orders("total", Rules.total(len(self._names)))
        if "object" not in self._checks:
            return
        if not any(link.summary.starts for line in self._lines for link in line):
            self._leave_open(("object",), "no object began with a request")
        if self._source.conflicts is None:
            self._leave_open(("object",), "the manifest does not say which methods conflict")
            return
        rules = Rules.objects(self._names, self._source.conflicts)
        if rules.methods:
            self._compare_orders("object", rules)
            self._compare_precedence(rules)

    def _compare_orders(self, check: str, rules: Rules) -> None:
        n = len(self._names)
        agreement = Agreement(self._lines, rules, self._source, max(self._witnesses, 1))
        for (process, _), count, clashes in agreement.clashes():
            rows = [Row(process, clash.pos, clash.key % n, clash.key // n) for clash in clashes]
            self._bad.append(Bad(check, process, rows[0].src, check, count, rows, clashes=clashes))
        if agreement.open is not None:
            self._leave_open((check,), agreement.open)

    def _compare_precedence(self, rules: Rules) -> None:
        def ask(questions: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
            return self._source.map("requests held against what precedes them", began, questions)

        precedence = Precedence(self._lines, rules, ask, self._listed_max)
        self._bad += precedence.late()
        if precedence.unstamped:
            self._leave_open(("object",), f"{precedence.unstamped:,} requests began without deps")

    def _survive(self) -> None:
        if "views" not in self._checks:
            return
        if not has_views(self._lines):
            self._leave_open(("views",), "no row tells of a view")
            return

        def ask(questions: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
            return self._source.map("segments compared", work.fates, questions)

        self._bad += disagreements(self._lines, self._source.processes, self._keys, ask, self._listed_max)

    def _answer(self, name: str, explainer: Explainer) -> Check:
        if name not in (*BUILT, *IMPORTED):
            return Check(name, UNKNOWN, reason=f"the check {name} is not built yet")
        bad = [each for each in self._bad if each.check == name]
        violations = sum(each.count for each in bad)
        reasons = self._open.get(name, [])
        verdict = FAIL if violations else UNKNOWN if reasons else PASS
        witnesses = [explainer.witness(row, each) for row, each in _spread(bad, self._witnesses)]
        warnings = self._warnings if name == "clocks" else []
        return Check(name, verdict, violations, "; ".join(reasons), witnesses, warnings)


def _spread(bad: Sequence[Bad], count: int) -> list[tuple[Row, Bad]]:
    """Some of the violations: the first of each process and sender, then others."""
    listed = [(row, each) for each in bad for row in each.rows]
    listed.sort(key=lambda pair: (pair[0].process, pair[0].pos, pair[0].seq))
    seen: set[tuple[int, int]] = set()
    firsts: list[tuple[Row, Bad]] = []
    others: list[tuple[Row, Bad]] = []
    for row, each in listed:
        key = (row.process, row.src)
        (others if key in seen else firsts).append((row, each))
        seen.add(key)
    return (firsts + others)[:count]
