"""The ladder: orders with weaker stamps, rung by rung, each as a layer that can be run and seen to fail.

Teaching material. Every rung claims causal order (`pairwise` claims less, and keeps it), and all but
`history` break that claim or block: `inga lab ladder` shows how. The recipes are marked unsafe, so
`inga.join` refuses them unless `unsafe` is set. `recipes` registers them.
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
"""The rungs, from the lowest on. `BENT` has further layers, which are right but for one rule."""

__all__ = ["BENT", "RUNGS", "Rung"]
