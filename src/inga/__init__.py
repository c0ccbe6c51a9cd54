"""inga: group communication in which nothing arrives before its cause.

`join` makes a program a member of a group; `inga.sim.Sim` plays a group in virtual time; `inga.obg` declares replicated
objects; `inga.pipeline` certifies traces with Spark. Names are imported when they are first used, so that `import inga`
costs nothing: type checkers see the imports below, the interpreter sees `__getattr__`.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from inga import recipes as recipes
    from inga.causality.clock import relation as relation
    from inga.cli.picture import picture as picture
    from inga.corba.orb.orb import Orb as Orb
    from inga.corba.wire.reference import Reference as Reference
    from inga.keys.authority import Authority as Authority
    from inga.keys.identity import Identity as Identity
    from inga.keys.secret import Secret as Secret
    from inga.layers.shape import Faults as Faults
    from inga.model.compiled import compiled as compiled
    from inga.model.delivery import Batch as Batch
    from inga.model.delivery import Delivery as Delivery
    from inga.model.errors import Concurrent as Concurrent
    from inga.model.errors import Excluded as Excluded
    from inga.model.errors import Gap as Gap
    from inga.model.errors import IngaError as IngaError
    from inga.model.errors import KeysError as KeysError
    from inga.model.errors import NoMajority as NoMajority
    from inga.model.errors import NotReady as NotReady
    from inga.model.errors import RemoteError as RemoteError
    from inga.model.errors import TraceError as TraceError
    from inga.model.errors import UsageError as UsageError
    from inga.model.errors import WireError as WireError
    from inga.model.errors import WouldBlock as WouldBlock
    from inga.model.event import Missed as Missed
    from inga.model.event import Paused as Paused
    from inga.model.event import Resumed as Resumed
    from inga.model.receipt import Receipt as Receipt
    from inga.model.stats import Stats as Stats
    from inga.model.view import Member as Member
    from inga.model.view import View as View
    from inga.net.group import Group as Group
    from inga.net.join import join as join
    from inga.net.receipt import LiveReceipt as LiveReceipt
    from inga.net.running import run as run
    from inga.net.serving import serve_metrics as serve_metrics
else:
    _HOMES = {
        "recipes": "inga",
        "relation": "inga.causality.clock",
        "picture": "inga.cli.picture",
        "Orb": "inga.corba.orb.orb",
        "Reference": "inga.corba.wire.reference",
        "Authority": "inga.keys.authority",
        "Identity": "inga.keys.identity",
        "Secret": "inga.keys.secret",
        "Faults": "inga.layers.shape",
        "compiled": "inga.model.compiled",
        "Batch": "inga.model.delivery",
        "Delivery": "inga.model.delivery",
        "Concurrent": "inga.model.errors",
        "Excluded": "inga.model.errors",
        "Gap": "inga.model.errors",
        "IngaError": "inga.model.errors",
        "KeysError": "inga.model.errors",
        "NoMajority": "inga.model.errors",
        "NotReady": "inga.model.errors",
        "RemoteError": "inga.model.errors",
        "TraceError": "inga.model.errors",
        "UsageError": "inga.model.errors",
        "WireError": "inga.model.errors",
        "WouldBlock": "inga.model.errors",
        "Missed": "inga.model.event",
        "Paused": "inga.model.event",
        "Resumed": "inga.model.event",
        "Receipt": "inga.model.receipt",
        "Stats": "inga.model.stats",
        "Member": "inga.model.view",
        "View": "inga.model.view",
        "Group": "inga.net.group",
        "join": "inga.net.join",
        "LiveReceipt": "inga.net.receipt",
        "run": "inga.net.running",
        "serve_metrics": "inga.net.serving",
    }
    """Where each public name lives. A test compares this with the imports above."""

    def __getattr__(name):
        from importlib import import_module

        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'inga' has no attribute {name!r}")
        value = import_module(f"inga.{name}") if home == "inga" else getattr(import_module(home), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *_HOMES})


__all__ = [
    # being a member
    "join", "Group", "run", "Delivery", "Batch", "Receipt", "LiveReceipt", "View", "Member", "Missed", "Paused", "Resumed",
    "relation", "Faults", "recipes",
    # looking at it
    "Stats", "serve_metrics", "picture",
    # who may be one
    "Secret", "Authority", "Identity",
    # CORBA
    "Orb", "Reference",
    # errors
    "IngaError", "UsageError", "KeysError", "WouldBlock", "NotReady", "Concurrent", "Gap", "NoMajority", "Excluded",
    "RemoteError", "TraceError", "WireError",
    # about this installation
    "__version__", "compiled",
]  # fmt: skip
