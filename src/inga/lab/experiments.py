"""The experiments that `inga lab` can run: one function each, found by name.

    run(out, quick, progress) -> Outcome

An experiment writes its pages and tables into `out`, and says of each published claim whether it holds. One that
sweeps on Spark also takes `master`, one that has more to do for those who wait longer also `long`.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from inga.lab.bench import SayProgress
from inga.model.errors import UsageError
from inga.model.text import suggest

HOLDS, ROUGHLY, NOT_REPRODUCED = "holds", "roughly", "not reproduced"
NOT_STATED = "not stated"
"""Measured as we derive it; the paper says nothing of it, so there is nothing that could hold."""
BY_CONSTRUCTION = "by construction"
"""As in the paper, because the experiment was set up so that it comes out: that it can come out is all that is shown."""

VERDICTS = (HOLDS, ROUGHLY, NOT_REPRODUCED, NOT_STATED, BY_CONSTRUCTION)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, what was measured, and whether that is the same."""

    id: str
    statement: str
    published: str
    measured: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers by column."""

    columns: list[str]
    rows: list[list[Any]]


@dataclass(slots=True)
class Outcome:
    """What an experiment found. `text` is for a person at a terminal, `pages` are the files to look at."""

    claims: list[Claim]
    tables: dict[str, Table] = field(default_factory=dict)
    text: str = ""
    pages: list[Path] = field(default_factory=list)
    is_binding: bool = False  # what is claimed is promised by us: a claim that does not hold is a failure

    @property
    def has_failed(self) -> bool:
        return self.is_binding and any(claim.verdict != HOLDS for claim in self.claims)

    def to_json(self) -> dict[str, Any]:
        return {
            "claims": [asdict(claim) for claim in self.claims],
            "tables": {name: asdict(table) for name, table in self.tables.items()},
        }


Experiment = Callable[[Path, bool, SayProgress], Outcome]

EXPERIMENTS = {
    "ladder": "inga.lab.ladder",
    "co": "inga.lab.co",
    "sco": "inga.lab.sco",
    "obg": "inga.lab.obg",
    "remiop": "inga.lab.remiop",
    "members": "inga.lab.members",
    "all": "inga.lab.papers",
}
"""Name and module, whose `run` is the experiment."""


def find_experiment(name: str, **more: Any) -> Experiment:
    """The experiment of that name, which is told what it takes of `more`."""
    if name not in EXPERIMENTS:
        raise UsageError(f"no experiment {name!r}{suggest(name, EXPERIMENTS)}")
    run = import_module(EXPERIMENTS[name]).run
    return partial(run, **{each: more[each] for each in more if each in signature(run).parameters})
