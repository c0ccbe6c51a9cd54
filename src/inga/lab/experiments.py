"""The experiments that `inga lab` can run: one function each, found by name.

    run(out, quick, progress) -> Outcome

An experiment writes its pages and tables into `out`, and returns for each published claim whether it holds. One that
runs simulations on Spark also takes `master`, one that can do more if it has more time also `long`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
"""Measured as we derive it; the paper makes no such claim, so none can hold."""
BY_CONSTRUCTION = "by construction"
"""As in the paper, because the parameters of the experiment were chosen for that result: it shows only that the result is possible."""

VERDICTS = (HOLDS, ROUGHLY, NOT_REPRODUCED, NOT_STATED, BY_CONSTRUCTION)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper, what was measured, and the verdict on whether it holds."""

    id: str
    statement: str
    published: str
    measured: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of results."""

    columns: list[str]
    rows: list[list[Any]]


@dataclass(slots=True)
class Outcome:
    """The result of an experiment. `text` is for the terminal, `pages` are the files that it wrote for people."""

    claims: list[Claim]
    tables: dict[str, Table] = field(default_factory=dict)
    text: str = ""
    pages: list[Path] = field(default_factory=list)
    is_binding: bool = False  # the claims are promises of inga: one that does not hold is a failure

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
"""Experiments by name: the module whose `run` is the experiment."""


def find_experiment(name: str, **more: Any) -> Experiment:
    """Return the experiment of that name, bound to those arguments in `more` that it takes."""
    if name not in EXPERIMENTS:
        raise UsageError(f"no experiment {name!r}{suggest(name, EXPERIMENTS)}")
    run = import_module(EXPERIMENTS[name]).run
    return partial(run, **{each: more[each] for each in more if each in signature(run).parameters})


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Report a directory that cannot be written to as what it is: an argument that does not work."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{out} cannot be written to: {error.strerror}") from error
