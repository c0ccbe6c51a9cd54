"""A group in virtual time whose run is written as a trace, for runs that are driven by hand, in a notebook, say.

    with recorded("lunch", "alice", "bob", "cathy", order="fifo") as sim:
        sim["alice"].send(b"Lunch?")

`inga sim` plays workloads that are described by numbers; here the workload is whatever the block does with the members.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inga.layers.shape import Faults
from inga.recipes import find
from inga.sim.recording import Recording
from inga.sim.simulator import DELAY, Sim
from inga.sim.trials import QUIET, QUIET_DELAYS
from inga.trial.manifest import manifest_of


@contextmanager
def recorded(
    directory: str | Path,
    *names: str,
    order: str = "causal",
    deliver: str | None = None,
    seed: int = 0,
    faults: Faults = DELAY,
    full: bool = True,
    **more: Any,
) -> Iterator[Sim]:
    """Open a group with the arguments of `Sim` and write its trace. When the block ends, the group runs until no events are left,
    and the trace in `directory` is complete; if the block raises, it is marked as incomplete. `full`: with rows for what no
    application sees."""
    recipe = find(order)
    layout = recipe.layout(names, more.get("objects") or {}, {})
    quiet = QUIET + QUIET_DELAYS * faults.delay_max
    manifest = manifest_of(
        recipe,
        names,
        layout,
        group="sim",
        source="sim",
        full=full,
        deliver=deliver,
        options={"deliver": recipe.level_of(deliver), "quiet_seconds": quiet},
        seed=seed,
    )
    recording = Recording(Path(directory), manifest, len(names), full=full)
    sim = Sim(
        *names,
        order=order,
        deliver=deliver,
        seed=seed,
        faults=faults,
        recording=recording,
        record=False,
        **more,
    )
    complete = False
    try:
        yield sim
        sim.run()
        complete = True
    finally:
        recording.end(sim, complete=complete)
