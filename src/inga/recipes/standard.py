"""The orders that inga has."""

from typing import Any

from inga.layers.causal import Causal
from inga.layers.co.layer import Co
from inga.layers.co.lossless import LosslessCo
from inga.layers.co.machine import CoMachine
from inga.layers.co.parts import WINDOW_MAX
from inga.layers.fifo import Fifo, Unordered
from inga.layers.matrix import Matrix
from inga.layers.order import Order
from inga.layers.relay import Hop, Relay
from inga.layers.sco.layer import Sco
from inga.layers.sco.lossless import LosslessSco
from inga.layers.sco.machine import ScoMachine
from inga.layers.sequenced import Sequenced
from inga.objects.layer import BareObjects, ObjectOrder
from inga.recipes.options import Options
from inga.recipes.recipe import refuse_unknown, register
from inga.recipes.transports import Bare, Composition, Ordering, Part, Repaired, compose
from inga.stack.layer import Layer

# Orders, and the options that their layers get


def plain(layer: type[Order], *takes: str) -> Ordering:
    """An order whose layer has no option but `echo`; `takes`: options of PLACED that it supports besides `coarse`."""
    return Ordering(lambda options, repaired: Part(layer, {"echo": bool(options.echo)}), ("coarse", *takes))


def causal(layer: type[Causal], matrix: type[Causal] | None = None) -> Ordering:
    """An order that detects concurrent messages. `matrix`: the layer to use instead with the option `matrix`."""

    def part(options: Options, repaired: bool) -> Part:
        given = {"echo": bool(options.echo), "on_concurrent": options.on_concurrent}
        return Part(matrix if matrix is not None and options.matrix else layer, given)

    return Ordering(part, ("coarse", "on_concurrent", *("matrix",) * (matrix is not None)))


def co(**defaults: Any) -> Ordering:
    """Order, repair and flow in one layer."""

    def part(options: Options, repaired: bool) -> Part:
        given = {
            "deliver": options.deliver or ("causal" if options.lossless else "acknowledged"),
            "machine": LosslessCo if options.lossless else CoMachine,
            "echo": bool(options.echo),
            "queue_max": options.queue_max,
            "window_bytes": None if options.lossless else options.flow.get("window"),
        }
        prefers = {"window": WINDOW_MAX} if options.lossless else defaults
        return Part(Co, given, prefers, gathers=False, coarse=True)

    return Ordering(part, (), window=True)


def _sco(options: Options, repaired: bool) -> Part:
    given = {
        "deliver": options.deliver or ("causal" if options.lossless else "confirmed"),
        "machine": LosslessSco if options.lossless else ScoMachine,
        "echo": bool(options.echo),
        "queue_max": options.queue_max,
        "window_bytes": options.flow.get("window"),
        "multicast": options.multicast,
    }
    together = options.multicast and options.protocol.get("multicast_from")  # one datagram for all
    return Part(Sco, given, coarse=True, mixes=not together)


def objects(*, total: bool = False, crowded: bool = False, **defaults: Any) -> Ordering:
    """The layer of objects. With `total` everything conflicts, so there are no keys."""

    def part(options: Options, repaired: bool) -> Part:
        given = {
            "echo": options.echo is not False,
            "objects": options.objects,
            "total": total,
            "crowded": crowded and not options.lossless,
            "queue_max": options.queue_max,
        }
        given |= {"key": None, "keys": None} if total else {}
        window = {"window": options.flow["window"]} if "window" in options.flow else {}
        layer = ObjectOrder if repaired else BareObjects
        return Part(layer, given, {**defaults, **window}, gathers=repaired)

    return Ordering(part, ("coarse", "objects"), echo=True, window=True)


def _sequenced(options: Options, repaired: bool) -> Part:
    return Part(Sequenced, {"echo": options.echo is not False})


NONE = plain(Unordered)
VECTOR = causal(Causal, Matrix)

# Transports

REPAIRED = Repaired()
BARE = Bare()
OVER = {"reliable": REPAIRED, "datagrams": BARE}
"""The transports for objects: layers that repair and have a window, or bare datagrams."""

# Recipes

SET = ("integrity", "complete", "stamps")
CAUSAL = ("integrity", "complete", "fifo", "stamps", "causal")
OBJECT = ("integrity", "complete", "object")

OBJECTS_TRIED = {"over": tuple(OVER), "delta": (0.005, 0.02, 0.1), "announce": (1, 0)}
KEYS = {"keys": (1, 2, 3)}

compose("none", NONE, REPAIRED, guarantees=SET)
compose("fifo", plain(Fifo), REPAIRED, guarantees=(*SET, "fifo"), level="accepted")
compose("vector", VECTOR, REPAIRED, guarantees=CAUSAL, level="causal")
compose("relay", plain(Relay), Repaired(Hop), guarantees=CAUSAL, level="causal", direct=False, blames=False)
compose(
    "co",
    co(),
    BARE,
    guarantees=(*CAUSAL, "atomic", "quiet"),
    receipt="accept",
    level="acknowledged",
    levels=Co.delivers,
    tunings={"window": (1, 2, 4, 8), "capacity": (None, 5, 10, 40), "confirm_every": (None, 0, 1)},
)
compose(
    "sco",
    Ordering(_sco, (), window=True),
    BARE,
    guarantees=(*CAUSAL, "atomic", "quiet"),
    receipt="accept",
    level="confirmed",
    levels=Sco.delivers,
    tunings={
        "ack_level": ("causal", "continuous"),
        "window": (1, 2, 8, 64),
        "quota": (1, 2, 8, 64),
        "probe_after": (0.0, 0.005, 0.05),
        "multicast_from": (0, 0, 2),
    },
)
compose(
    "object",
    objects(),
    OVER,
    guarantees=OBJECT,
    level="causal",
    tunings={**OBJECTS_TRIED, **KEYS},
    direct=False,
)
_SEQUENCED = Composition("total", Ordering(_sequenced, ("coarse",), echo=True), {"": REPAIRED})
_CALLED = Composition("total", objects(total=True), OVER)


def _total(options: Options) -> list[Layer]:
    """Without objects a sequencer orders the messages; with objects their layer orders messages and calls alike."""
    made = _CALLED if options.objects else _SEQUENCED
    refuse_unknown("total", options.protocol, made.own, "" if options.objects else " without objects")
    return made(options)


register(
    "total",
    _total,
    takes=_CALLED.order.takes,
    own=_CALLED.own,
    echo=True,
    guarantees=(*CAUSAL, "total"),
    level="causal",
    direct=False,
    sequenced=True,
)
