"""Many simulations of an evaluation: in this process, or on Spark."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from inga.lab.bench import SayProgress
from inga.pipeline.sweep import sweep

Task = TypeVar("Task")
Answer = TypeVar("Answer")

TOLD = 10
"""How often it is said how far they are."""


def simulate_all(
    simulate: Callable[[Task], Answer], tasks: Sequence[Task], progress: SayProgress, master: str | None
) -> list[Answer]:
    """The answers in the order of the tasks. Without a master they are worked out here: few and short ones are done
    before Spark has started."""
    where = "" if master is None else f" on Spark ({master})"
    progress(f"{len(tasks)} simulations{where}")
    if master is None:
        return [simulate(task) for task in tasks]
    told = 0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told
        if done >= told + max(1, total // TOLD):
            told = done
            progress(f"{what}: {done} of {total}")

    return sweep(simulate, tasks, master=master, progress=tell)
