"""The manifest of a run, the same for live and simulated groups."""

from collections.abc import Mapping, Sequence
from typing import Any

from inga.objects.hosting import Layout
from inga.recipes import Recipe
from inga.trace.manifest import Manifest


def manifest_of(
    recipe: Recipe,
    members: Sequence[str],
    layout: Layout | None,
    *,
    group: str,
    source: str,
    full: bool,
    deliver: str | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> Manifest:
    """Make the manifest of a run. `layout` has the objects, for orders that support objects: each copy is a process of the trace,
    after the members. `full`: the trace also has the steps below the application, not only sends and deliveries."""
    return Manifest(
        group=group,
        processes=list(members) if layout is None else layout.processes.names,
        source=source,
        order=recipe.name,
        guarantees=recipe.claims(
            full=full, deliver=deliver, objects=layout is not None and bool(layout.hosted)
        ),
        receipt=recipe.receipt,
        options=dict(options or {}),
        seed=seed,
        clock="virtual" if source == "sim" else "wall",
        conflicts=None if layout is None else layout.conflicts,
        undecided=None if layout is None else layout.undecided,
    )
