"""The answers of checks: verdicts, counts, witnesses, and the causes they have in common."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any

from inga.certify.chain import MessageId, Step
from inga.model.html import html_table

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"

SHOWN = 20
"""The most violations that a notebook shows."""


def overall(verdicts: Iterable[str]) -> str:
    """One verdict for all: a failure outranks an unknown, an unknown outranks a pass."""
    found = set(verdicts)
    return next((verdict for verdict in (FAIL, UNKNOWN) if verdict in found), PASS)


@dataclass(slots=True)
class Witness:
    """One violation, with what a person needs to look it up."""

    check: str
    process: int
    pos: int  # of the wrong row; 0 if the violation is that a row is missing
    message: MessageId
    text: str
    segment: str | None = None  # the file with the row
    other: MessageId | None = None  # the one that came too early, or the event that is named
    other_pos: int = 0  # its position at the same process
    chain: list[Step] = field(default_factory=list)
    against: tuple[int, int, int] | None = None  # a process that has both the other way round, and where
    line: str | None = (
        None  # in an imported log: file and line of the row, or of the send of a missing message
    )

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "process": self.process,
            "pos": self.pos,
            "message": list(self.message),
            "other": None if self.other is None else list(self.other),
            "other_pos": self.other_pos,
            "chain": [step.to_json() for step in self.chain],
            "against": None if self.against is None else list(self.against),
            "segment": self.segment,
            "line": self.line,
            "text": self.text,
        }


@dataclass(slots=True)
class ViolationGroup:
    """Violations with one root. `first` is where to begin to look."""

    cause: str
    checks: list[str]
    count: int
    first: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"cause": self.cause, "checks": self.checks, "count": self.count, "first": self.first}


@dataclass(slots=True)
class Answer:
    """The answer to one check. `violations` is exact, `witnesses` are some of them."""

    name: str
    verdict: str
    violations: int = 0
    reason: str = ""
    witnesses: list[Witness] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what is strange, but breaks nothing

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "verdict": self.verdict,
            "violations": self.violations,
            "reason": self.reason,
            "witnesses": [witness.to_json() for witness in self.witnesses],
            "warnings": self.warnings,
        }


@dataclass(slots=True)
class Certificate:
    """All answers about one trace. Counts are of rows; `payloads` are the application's messages."""

    events: int
    messages: int
    deliveries: int
    payloads: int
    names: list[str]
    checks: list[Answer]
    groups: list[ViolationGroup]
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """`pass`, `fail` or `unknown`, of all checks together."""
        return overall(check.verdict for check in self.checks)

    @property
    def witnesses(self) -> list[Witness]:
        """The violations that are explained, of all checks."""
        return [witness for check in self.checks for witness in check.witnesses]

    def _repr_html_(self) -> str:
        from inga.certify.checks import CHECKS  # not at the top: judges import this module

        rows = [
            (check.name, check.verdict, check.violations, CHECKS[check.name].statement, check.reason)
            for check in self.checks
        ]
        caption = f"{self.verdict}: {self.events:,} events, {self.messages:,} messages, {self.deliveries:,} deliveries"
        sentences = [f"<li>{escape(each.check)}: {escape(each.text)}</li>" for each in self.witnesses[:SHOWN]]
        more = f"<ul>{''.join(sentences)}</ul>" if sentences else ""
        return html_table(("check", "verdict", "violations", "what it says", "reason"), rows, caption) + more

    def to_json(self) -> dict[str, Any]:
        """What `inga check --json` prints."""
        return {
            "verdict": self.verdict,
            "events": self.events,
            "messages": self.messages,
            "deliveries": self.deliveries,
            "payloads": self.payloads,
            "processes": len(self.names),
            "checks": [check.to_json() for check in self.checks],
            "groups": [group.to_json() for group in self.groups],
            "seconds": self.seconds,
        }
