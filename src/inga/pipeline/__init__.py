"""Turn traces into small tables with Spark: certify, order, stamp, measure.

For jobs of one's own, in a session of one's own: `read`, `check`, `metrics`, `order`, `stamp`, `watch` take a session and a path,
and give DataFrames; `causal_order` puts the messages of a table or stream into causal order; `register` lets
`spark.readStream.format("inga")` read the log of an `inga tap`. `check_local` certifies a trace in this process, without Spark.
docs/pipeline.md and docs/python.md show them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inga.certify.verdict import Certificate
    from inga.pipeline.frames import CheckedTrace, Metrics, check, metrics, order, read, stamp, watch
    from inga.pipeline.jobs import check_local
    from inga.pipeline.ordering import causal_order, keep_state_on_disk
    from inga.pipeline.source import register

__all__ = [
    "Certificate",
    "CheckedTrace",
    "Metrics",
    "causal_order",
    "check",
    "check_local",
    "keep_state_on_disk",
    "metrics",
    "order",
    "read",
    "register",
    "stamp",
    "watch",
]

if not TYPE_CHECKING:
    _PLACES = {
        **dict.fromkeys(
            ("CheckedTrace", "Metrics", "read", "check", "metrics", "order", "stamp", "watch"),
            "inga.pipeline.frames",
        ),
        **dict.fromkeys(("causal_order", "keep_state_on_disk"), "inga.pipeline.ordering"),
        "check_local": "inga.pipeline.jobs",
        "register": "inga.pipeline.source",
        "Certificate": "inga.certify.verdict",
    }

    def __getattr__(name):
        """Import a name when it is first used: programs that need only `inga.pipeline.session` do not load all this."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_PLACES[name]), name)
