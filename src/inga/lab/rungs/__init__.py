"""The ladder: order by weaker stamps, rung by rung, each as a layer that can be run and watched fail.

Teaching material. Every rung claims causal order (`pairwise` claims less, and keeps it), and all but
`history` break that claim or block: `inga lab ladder` shows how. The recipes are marked unsafe, so
`inga.join` refuses them unless told otherwise. `inga.recipes.find` imports this package when one is asked for.
"""

from typing import Any

from inga.lab.rungs.bent import BENT
from inga.lab.rungs.counters import (
    LastSender,
    LastSenderAtLeast,
    LastSenderOwn,
    Pairwise,
    RealTime,
    Scalar,
)
from inga.lab.rungs.history import History, HistoryBlind
from inga.lab.rungs.rung import Rung
from inga.lab.rungs.vectors import (
    AtOnceCount,
    AtOnceKeep,
    AtOnceReplace,
    Broadcast,
    HeadOnly,
    LiveVector,
    OwnCopy,
    Strict,
    Tree,
)
from inga.recipes import REPAIRED, causal, compose, find, plain

RUNGS: tuple[type[Rung[Any]], ...] = (
    Pairwise,
    RealTime,
    HistoryBlind,
    History,
    Scalar,
    LastSender,
    LastSenderAtLeast,
    LastSenderOwn,
    Strict,
    HeadOnly,
    AtOnceReplace,
    AtOnceKeep,
    AtOnceCount,
    Tree,
    OwnCopy,
    LiveVector,
    Broadcast,
)
"""From the ground up. Beside them stand those of BENT: the right layer but for one rule."""

__all__ = ["BENT", "RUNGS", "Rung"]

_VECTOR = find("vector")

for _rung in RUNGS:
    compose(_rung.name, plain(_rung), REPAIRED, guarantees=_rung.claims, level=_rung.level, unsafe=True)
for _layer in BENT:
    compose(
        _layer.name, causal(_layer), REPAIRED, guarantees=_VECTOR.guarantees, level=_VECTOR.level, unsafe=True
    )
