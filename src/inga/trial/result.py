"""The result of a trial, for a person and as JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from inga.model.html import html_table
from inga.trial.course import Course
from inga.trial.oracle import Oracle


@dataclass(slots=True)
class Result:
    """The outcome of one simulated or live run. `delivered` and `expected` count pairs of a message and a destination."""

    order: str
    members: int
    seed: int
    sent: int
    delivered: int
    expected: int
    violations: int  # of guarantees that the order promises
    unpromised: dict[str, int]  # violations of other guarantees, by name
    related: int  # pairs of messages of which one caused the other
    pdus: dict[str, int]
    bytes: int
    seconds: float
    cpu_seconds: float
    trace: str | None = None
    witnesses: list[str] = field(default_factory=list)  # the first violations of what the order promises
    examples: dict[str, str] = field(default_factory=dict)  # the first violation of each other guarantee
    recovery: dict[str, int] = field(default_factory=dict)  # counts of repair, where members share repair
    course: Course | None = None  # how the group recovered from mishaps
    judged: bool = True  # by the oracle; otherwise violations and relations are not known

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        found = {name: value for name, value in self.to_json().items() if value not in (None, {}, [])}
        rows = [(name, value) for name, value in found.items() if name != "witnesses"]
        rows += [("witness", text) for text in self.witnesses]
        verdict = "not judged" if not self.judged else "pass" if not self.violations else "fail"
        return html_table(("figure", "value"), rows, f"{self.order}: {verdict}")

    @property
    def pace(self) -> str:
        """The speed of a live run, and its cost in CPU time, in words."""
        rate, cpu = self.delivered / self.members / self.seconds, self.cpu_seconds / max(self.delivered, 1)
        return f"{rate:,.0f} messages/s and member, {1e6 * cpu:.2f} us of CPU per delivery"

    @classmethod
    def counted(
        cls, order: str, members: int, sent: int, delivered: int, expected: int, **measured: Any
    ) -> "Result":
        """The result of a run without an oracle."""
        counts: dict[str, Any] = {"sent": sent, "delivered": delivered, "expected": expected}
        return cls(order, members, **counts, violations=0, unpromised={}, related=0, judged=False, **measured)

    @classmethod
    def of(cls, oracle: Oracle, order: str, promised: tuple[str, ...], **measured: Any) -> "Result":
        """The findings of the oracle as a result, together with what was measured."""
        violations, unpromised = judge(oracle, promised)
        return cls(
            order=order,
            members=oracle.members,
            sent=oracle.sent,
            delivered=oracle.taken,
            expected=oracle.expected,
            violations=violations,
            unpromised=unpromised,
            related=oracle.related,
            witnesses=[text for name in (*promised, *ALWAYS) for text in oracle.accusations.get(name, ())],
            examples={name: first for name in unpromised for first in _first(oracle, name)},
            **measured,
        )


def _first(oracle: Oracle, guarantee: str) -> list[str]:
    """The first violation of a guarantee in words, as a list that is empty if none was recorded."""
    known = (*oracle.accusations.get(guarantee, ()), *oracle.witnesses)
    return [text.removeprefix(f"{guarantee}: ") for text in known if text.startswith(f"{guarantee}:")][:1]


def packets_sent(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """How many packets all members sent, from the counts of their stacks. Repairs are not included in `data`."""
    totals: Counter[str] = Counter()
    for each in counts:
        totals.update(each)
    return {
        "data": totals["data"] - totals["repair"],
        "control": totals["control"],
        "repair": totals["repair"],
    }


RECOVERY = "lost nack nack_suppressed repair repair_of_others repair_suppressed unrecoverable".split()


def recovered(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of the counts of loss and repair of all members, from their stacks."""
    totals: Counter[str] = Counter()
    for each in counts:
        totals.update(each)
    return {name: totals[name] for name in RECOVERY}


ALWAYS = ("flags", "views", "survivors")
"""Guarantees that every order promises."""

CHECKED_BY_ORACLE = ("integrity", "complete", "fifo", "causal", "total", "object")


def judge(oracle: Oracle, promised: tuple[str, ...]) -> tuple[int, dict[str, int]]:
    """The number of violations of promised guarantees, and those of other guarantees by name."""
    others = {
        name: oracle.violations[name]
        for name in CHECKED_BY_ORACLE
        if name not in promised and oracle.violations[name]
    }
    return sum(oracle.broken[name] for name in (*promised, *ALWAYS)), others
