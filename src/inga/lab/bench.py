"""The results of benchmarks: rows of a value, a baseline of the same run, and their ratio."""

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from inga.model.compiled import compiled

SayProgress = Callable[[str], None]
"""Called with a description of what is measured now."""


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One measured case. `ratio` is value / baseline."""

    case: str
    baseline: float
    value: float
    unit: str
    baseline_is: str = ""

    @property
    def ratio(self) -> float:
        return self.value / self.baseline if self.baseline else float("nan")

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}


def machine() -> dict[str, Any]:
    """Describe the machine and the interpreter."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "compiled": compiled,
    }


def table(rows: list[BenchRow]) -> str:
    """Return the rows as a table of text."""
    lines = [("case", "value", "unit", "baseline", "ratio", "baseline is")]
    lines += [
        (r.case, f"{r.value:,.6g}", r.unit, f"{r.baseline:,.6g}", f"{r.ratio:.2f}", r.baseline_is)
        for r in rows
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines
    )
