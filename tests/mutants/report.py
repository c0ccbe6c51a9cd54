"""What came of the mutants: as a list for people, as JSON for programs, and which survivors are accepted.

A mutant is written as a block, which is also how `equivalent.txt` names those that change nothing that matters:

    layers/reliable.py:301 Reliable._settle [boundary]
      - if everywhere > self._everywhere:
      + if everywhere >= self._everywhere:
      There is nothing to forget then, and nothing is forgotten.

The line number and the kind are for the reader. A block means the mutants with that change in that function, wherever
it moves.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .kinds import Mutant

KILLED_MIN = 0.85
"""Below this share the tests do not do their work."""

Change = tuple[str, str, str, str]


@dataclass(frozen=True)
class Result:
    """How the tests took one mutant."""

    mutant: Mutant
    outcome: str  # failed, timeout, died, survived, unexecuted, equivalent
    test: str  # the one that noticed
    ran: int  # how many tests were started
    seconds: float

    @property
    def is_killed(self) -> bool:
        return self.outcome in {"failed", "timeout", "died"}

    @property
    def is_open(self) -> bool:
        """Neither noticed by a test nor accepted by us."""
        return self.outcome in {"survived", "unexecuted"}


def block(mutant: Mutant, remark: str = "") -> str:
    head = f"{mutant.file}:{mutant.line} {mutant.function or '-'} [{mutant.kind}]"
    lines = [
        *(f"- {line}" for line in mutant.before.split("\n")),
        *(f"+ {line}" for line in mutant.after.split("\n")),
    ]
    return "\n".join([head, *(f"  {line}" for line in [*lines, *filter(None, [remark])])])


def read_equivalents(text: str) -> dict[Change, str]:
    """The reasons, by what is changed."""
    reasons = {}
    for lines in _blocks(text):
        place, function = lines[0].split()[:2]
        parts: dict[str, list[str]] = {"-": [], "+": [], "": []}
        for line in lines[1:]:
            sign = line[0] if line[0] in "-+" else ""
            parts[sign].append(line.removeprefix(sign).strip())
        before, after, reason = ("\n".join(part) for part in parts.values())
        if not (before and after and reason):
            raise ValueError(f"a mutant that is called equivalent needs its change and a reason: {lines[0]}")
        reasons[place.partition(":")[0], "" if function == "-" else function, before, after] = reason
    return reasons


def _blocks(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip() and not line.startswith("#"):
            lines.append(line.strip())
        elif lines:
            yield lines
            lines = []


def killed_share(results: Iterable[Result]) -> float:
    """Of all mutants; those that are called equivalent count as not killed."""
    outcomes = [result.is_killed for result in results]
    return sum(outcomes) / len(outcomes) if outcomes else 1.0


def summary(results: list[Result]) -> str:
    """Shares by room and by kind."""
    lines = []
    groupings: Mapping[str, Callable[[Result], str]] = {
        "room": lambda result: result.mutant.room,
        "kind": lambda result: result.mutant.kind,
    }
    for title, of in groupings.items():
        groups: dict[str, list[Result]] = defaultdict(list)
        for result in results:
            groups[of(result)].append(result)
        lines.append(f"{title:<12} planted  killed  equivalent  open")
        for name, some in sorted(groups.items(), key=lambda group: killed_share(group[1])):
            named = sum(result.outcome == "equivalent" for result in some)
            left = sum(result.is_open for result in some)
            lines.append(f"{name:<12} {len(some):>7}  {killed_share(some):>6.0%}  {named:>10}  {left:>4}")
        lines.append("")
    outcomes = Counter(result.outcome for result in results)
    lines.append(", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    lines.append(
        f"killed: {killed_share(results):.1%} of {len(results)}; at least {KILLED_MIN:.0%} are wanted"
    )
    return "\n".join(lines)


def survivors(results: Iterable[Result]) -> str:
    """The open ones as blocks, in the order of the sources. With a reason in the place of the remark a block can go
    to `equivalent.txt` as it is."""
    left = sorted(
        (each for each in results if each.is_open), key=lambda each: (each.mutant.file, each.mutant.line)
    )
    remarks = {"unexecuted": "(no test executes it)"}
    blocks = [block(each.mutant, remarks.get(each.outcome, f"({each.ran} tests pass)")) for each in left]
    return "\n\n".join(blocks) + "\n" * bool(blocks)


def as_row(result: Result) -> dict[str, Any]:
    """For JSON."""
    mutant = result.mutant
    names = "id file line function kind before after".split()
    row = {name: getattr(mutant, name) for name in names}
    return row | {
        "outcome": result.outcome,
        "test": result.test,
        "ran": result.ran,
        "seconds": result.seconds,
    }
