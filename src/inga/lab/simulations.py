"""Run the simulations of an evaluation on the cores of this machine, or on Spark."""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from inga.lab.bench import SayProgress
from inga.pipeline.sweep import sweep
from inga.sim.workers import workers

Task = TypeVar("Task")
Answer = TypeVar("Answer")

TOLD = 10
"""How often progress is reported, in all."""


def simulate_all(
    simulate: Callable[[Task], Answer], tasks: Sequence[Task], progress: SayProgress, master: str | None
) -> list[Answer]:
    """Return the answers in the order of the tasks. Without a master, worker processes compute them: a few short simulations are
    done before Spark has started."""
    where = "" if master is None else f" on Spark ({master})"
    progress(f"{len(tasks)} simulations{where}")
    if master is None:
        return _by_processes(simulate, tasks)
    told = 0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told
        if done >= told + max(1, total // TOLD):
            told = done
            progress(f"{what}: {done} of {total}")

    return sweep(simulate, tasks, master=master, progress=tell)


def _by_processes(simulate: Callable[[Task], Answer], tasks: Sequence[Task]) -> list[Answer]:
    """Run one simulation per core at a time. A failure or an interrupt ends all of them."""
    with workers(os.cpu_count() or 1) as pool:
        futures = [pool.submit(simulate, task) for task in tasks]  # `map` would cancel them: `workers`
        return [future.result() for future in futures]
