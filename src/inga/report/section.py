"""The content of a report: one section for each trace. All of it is small, except the columns of events to draw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inga.trace import Row
from inga.trace.drawing import Drawing


@dataclass(frozen=True, slots=True)
class Section:
    """One trace in a report: its description, its verdicts, its measurements, and the events to draw."""

    title: str
    names: list[str]
    facts: list[tuple[str, str]]  # label and value, in the order to show them
    certificate: dict[str, Any]  # the JSON of `inga check`
    rows: list[Row] = field(default_factory=list)  # the events to draw, if there is no `drawing`
    shown: str = ""  # which events of the trace are drawn, in one sentence
    promised: frozenset[str] | None = None  # checks the run claims; None = not known
    drawing: Drawing | None = None
    order: str = ""  # the name of the order that ran
    measured: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Rows of the tables of `inga metrics`, by name of the table; tables may be missing."""
    reason: str = ""  # why delays between members were not measured
    is_timed: bool = True  # whether times are those of a clock; if not, events only have an order
    receipt: str = "take"  # the step that makes a message a cause at its receiver

    def is_promised(self, check: str) -> bool:
        return self.promised is None or check in self.promised
