"""Turn traces into small tables with Spark: certify, order, stamp, measure.

For jobs of one's own, in a session of one's own: `read`, `check`, `metrics`, `order`, `stamp`, `watch` take a session and a path,
and give DataFrames; `causal_order` puts the messages of a table or stream into causal order; `register` lets
`spark.readStream.format("inga")` read the log of an `inga tap`. docs/pipeline.md and docs/python.md show them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inga.pipeline.frames import check, metrics, order, read, stamp, watch
    from inga.pipeline.ordering import causal_order, keep_state_on_disk
    from inga.pipeline.source import register

__all__ = [
    "causal_order",
    "check",
    "keep_state_on_disk",
    "metrics",
    "order",
    "read",
    "register",
    "stamp",
    "watch",
]

_PLACES = {
    **dict.fromkeys(("read", "check", "metrics", "order", "stamp", "watch"), "frames"),
    **dict.fromkeys(("causal_order", "keep_state_on_disk"), "ordering"),
    "register": "source",
}


def __getattr__(name: str) -> Any:
    """Loaded when asked for: `inga.pipeline.session` is needed without all this."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"inga.pipeline.{_PLACES[name]}"), name)
