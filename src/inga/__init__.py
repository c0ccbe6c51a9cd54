"""inga: group communication in which nothing arrives before its cause."""

from importlib import import_module
from typing import Any

_HOMES = {
    "join": "inga.net.join",
    "Group": "inga.net.group",
    "run": "inga.net.running",
    "Faults": "inga.layers.shape",
    "Batch": "inga.model.delivery",
    "Delivery": "inga.model.delivery",
    "View": "inga.model.view",
    "Missed": "inga.model.event",
    "Paused": "inga.model.event",
    "Resumed": "inga.model.event",
    "Receipt": "inga.model.receipt",
    "Stats": "inga.model.stats",
    "serve_metrics": "inga.net.serving",
    "picture": "inga.cli.picture",
    "Orb": "inga.corba.orb.orb",
    "Reference": "inga.corba.wire.reference",
    "Secret": "inga.keys.secret",
    "Authority": "inga.keys.authority",
    "Identity": "inga.keys.identity",
    "relation": "inga.causality.clock",
    "IngaError": "inga.model.errors",
    "UsageError": "inga.model.errors",
    "KeysError": "inga.model.errors",
    "WouldBlock": "inga.model.errors",
    "NotReady": "inga.model.errors",
    "Concurrent": "inga.model.errors",
    "Gap": "inga.model.errors",
    "NoMajority": "inga.model.errors",
    "Excluded": "inga.model.errors",
    "RemoteError": "inga.model.errors",
    "TraceError": "inga.model.errors",
    "WireError": "inga.model.errors",
    "compiled": "inga.model.compiled",
    "recipes": "inga",
}
"""Where each public name lives; imported when first asked for."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'inga' has no attribute {name!r}")
    value = import_module(f"inga.{name}") if home == "inga" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
