"""Turn traces into small tables with Spark: certify, order, stamp, measure.

For jobs of one's own: `causal_order` puts the messages of a table or stream into causal order, `register` lets
`spark.readStream.format("inga")` read the log of an `inga tap`. docs/pipeline.md shows both.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Loaded when asked for: `inga.pipeline.session` is needed without all this."""
    if name in ("causal_order", "keep_state_on_disk"):
        from inga.pipeline import order

        return getattr(order, name)
    if name == "register":
        from inga.pipeline.source import register

        return register
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
