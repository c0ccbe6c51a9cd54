"""What a report is made of: one section per trace, all of it small tables."""

from dataclasses import dataclass, field
from typing import Any

from inga.trace import Row


@dataclass(frozen=True, slots=True)
class Section:
    """One trace: what it is, what was found, and some of its rows."""

    title: str
    names: list[str]
    facts: list[tuple[str, str]]  # label and value, in the order to show them
    certificate: dict[str, Any]  # the JSON of `inga check`
    rows: list[Row] = field(default_factory=list)  # in the order to draw them
    shown: str = ""  # which rows these are, in one sentence
    promised: frozenset[str] | None = None  # checks the run claims; None = not known
    is_timed: bool = True  # whether times of rows mean anything
