"""Named lists of layers: what `order=` means. `register` adds your own."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeVar

from inga.layers.acks import Acknowledged
from inga.layers.bundle import Bundle
from inga.layers.causal import Causal
from inga.layers.co.layer import Co
from inga.layers.co.lossless import LosslessCo
from inga.layers.co.machine import CoMachine
from inga.layers.co.parts import LEVELS as CO_LEVELS
from inga.layers.co.parts import WINDOW_MAX
from inga.layers.envelope import PLACE, Envelope
from inga.layers.fifo import Fifo, Unordered, Unreliable
from inga.layers.flow import Flow
from inga.layers.fragment import Fragment, LossyFragment, Pieces
from inga.layers.ladder import BENT, RUNGS, Rung
from inga.layers.matrix import Matrix
from inga.layers.miop import MiopFragments, MiopPackets, Strategy
from inga.layers.order import Order
from inga.layers.relay import Hop, Relay
from inga.layers.reliable import Reliable
from inga.layers.remiop import ReMiop
from inga.layers.sco.layer import LEVELS as SCO_LEVELS
from inga.layers.sco.layer import Sco
from inga.layers.sco.lossless import LosslessSco
from inga.layers.sco.machine import ScoMachine
from inga.layers.shape import Faults, shaped
from inga.model.errors import UsageError
from inga.model.receipt import LEVELS
from inga.model.view import Member
from inga.objects.hosting import Layout
from inga.objects.layer import BareObjects, ObjectOrder
from inga.objects.messages import Messages
from inga.session.session import Session
from inga.stack.layer import Layer


@dataclass(frozen=True, slots=True)
class Options:
    """What a recipe may be asked for; each uses what it has a place for."""

    echo: bool | None = None  # deliver own messages too; None = as the recipe prefers
    on_concurrent: str = "deliver"
    coarse: bool = False
    matrix: bool = False  # vector: count per pair of members, so that subset sends name only what matters
    faults: Faults | None = None
    lossless: bool = False  # the network loses nothing: leave out repair and flow
    deliver: str | None = None  # level at which messages are handed over; None = the recipe's own
    unsafe: bool = True  # a group may change to orders that are there to learn from
    greet: bool = False  # say from the start that we are here, until everybody was met
    accepts: Callable[[Member], str | None] | None = None  # the driver's objections to newcomers
    config: Mapping[str, Any] = field(default_factory=dict)  # what members agree on, as people know it
    multicast: bool = True  # one datagram can reach everybody
    queue_max: int = 16 << 20  # unread bytes above which we let senders wait
    protocol: dict[str, Any] = field(default_factory=dict)  # of an order that is a protocol of its own
    objects: Mapping[str, Any] = field(default_factory=dict)  # of the group, by name: see `objects.hosting`
    reliable: dict[str, Any] = field(default_factory=dict)  # of the layer of that name
    flow: dict[str, Any] = field(default_factory=dict)
    realtime: dict[str, Any] = field(default_factory=dict)
    start: int = 0  # the second in which this member started; its MIOP packets are numbered from there
    place: tuple[str, int] = PLACE  # multicast address and port of the group, as MIOP requests name it


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a stack is made, and what a run with it claims."""

    name: str
    build: Callable[[Options], list[Layer]]
    guarantees: tuple[str, ...]
    receipt: str  # the trace step that makes a message a cause at its receiver
    level: str  # what `deliver` means here, unless another of the levels is asked for
    levels: tuple[str, ...] = ()  # all that can be asked for
    tunings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # options, with what hunts try
    unsafe: bool = False  # teaching material: refused on real sockets unless asked for
    direct: bool = True  # messages go from sender to receiver, so that schedules can say which arrives
    wire: str = "inga"  # what its datagrams are: packets of ours, or "miop"
    echo: bool = False  # own messages are delivered too, unless something else is said
    objects: bool = False  # a group with it can have objects

    def claims(self, *, full: bool, deliver: str | None = None, objects: bool = False) -> list[str]:
        """The guarantees that a trace can show; one of deliveries only holds no control rows. Of a group
        with objects it shows their order, whether or not there are messages besides."""
        if objects:
            return ["object"]
        return [name for name in self.promises(deliver) if full or name != "quiet"]

    def layout(
        self, names: Sequence[str], objects: Mapping[str, Any] | None, protocol: Mapping[str, Any]
    ) -> Layout | None:
        """Where the objects of a group are and what conflicts, if it can have objects."""
        if not self.objects:
            if objects:
                raise UsageError(f"order {self.name!r} has no objects: use order 'object' or 'total'")
            return None
        return Layout(objects, names, total="total" in self.guarantees, keys=protocol.get("keys"))

    def echoes(self, wanted: bool | None) -> bool:
        """Whether own messages are delivered, if that is wanted."""
        return self.echo if wanted is None else wanted

    def level_of(self, wanted: str | None) -> str:
        """The level at which to deliver; one that this recipe lacks is refused."""
        if wanted is None:
            return self.level
        if wanted not in self.levels:
            if wanted not in LEVELS:
                raise UsageError(f"deliver is one of {', '.join(LEVELS)}, not {wanted!r}")
            known = " or ".join(map(repr, self.levels))
            raise UsageError(f"order {self.name!r} delivers at level {known}, not {wanted!r}")
        return wanted

    def promises(self, deliver: str | None) -> tuple[str, ...]:
        """The guarantees of a run that delivers at that level; at another than its own, an order waits for less."""
        lost = NOT_YET.get(deliver, ()) if deliver is not None and deliver != self.level else ()
        return tuple(name for name in self.guarantees if name not in lost)


ALIASES = {"causal": "vector"}

NOT_YET = {"received": ("fifo", "causal"), "accepted": ("causal",)}
"""What is not promised at a level."""

UNLIMITED = 1 << 62
"""Unread bytes that no application has."""

REPEATS = 64
"""Requests for one lost packet before ReMIOP gives up, where a group fails of it: a few minutes."""

_recipes: dict[str, Recipe] = {}

Made = TypeVar("Made", bound=Layer)


def register(
    name: str,
    build: Callable[[Options], list[Layer]],
    *,
    guarantees: Sequence[str] = (),
    receipt: str = "take",
    level: str = "received",
    levels: Sequence[str] = (),
    tunings: Mapping[str, tuple[Any, ...]] | None = None,
    unsafe: bool = False,
    direct: bool = True,
    wire: str = "inga",
    echo: bool = False,
    objects: bool = False,
) -> Recipe:
    """Give a list of layers a name that `order=` understands from now on.

    `levels` are those at which it can deliver, `level` among them if nothing is said.
    """
    if name in ALIASES or name in _recipes:
        raise UsageError(f"there is a recipe {name!r} already")
    if levels and level not in levels:
        raise UsageError(f"recipe {name!r} delivers at {level!r}, which is not among its levels")
    chosen = tuple(levels) or (level,)
    more = (tunings or {}, unsafe, direct, wire, echo, objects)
    recipe = Recipe(name, build, tuple(guarantees), receipt, level, chosen, *more)
    _recipes[name] = recipe
    return recipe


def find(name: str) -> Recipe:
    """The recipe called so, or by an alias."""
    recipe = _recipes.get(ALIASES.get(name, name))
    if recipe is None:
        known = ", ".join(names())
        raise UsageError(f"no order {name!r}; there are {known}, and to learn from {', '.join(ladder())}")
    return recipe


def refuse_unsafe(recipe: Recipe, unsafe: bool) -> None:
    """Teaching material does not get onto real sockets by accident."""
    if recipe.unsafe and not unsafe:
        raise UsageError(
            f"order {recipe.name!r} is there to learn from and misorders messages or blocks: "
            "use causal, or say unsafe=True (on the command line --unsafe)"
        )


def names() -> list[str]:
    """All orders that are meant to be used, and their aliases."""
    return sorted({*(name for name, recipe in _recipes.items() if not recipe.unsafe), *ALIASES})


def ladder() -> list[str]:
    """All orders that are only there to learn from, from the ground up."""
    return [name for name, recipe in _recipes.items() if recipe.unsafe]


def _over_datagrams(order: Order, options: Options, reliable: type[Reliable] = Reliable) -> list[Layer]:
    """The common frame: bundles above the order, repair and flow beneath it."""
    if options.matrix and not isinstance(order, Matrix):
        raise UsageError("matrix=True is an option of order 'vector' alone; leave it out, or use that order")
    if options.protocol:
        raise UsageError(
            f"order {order.name!r} has no options of its own, so not {_listed(options.protocol)}"
        )
    layers: list[Layer] = [Bundle(gather=not options.lossless, coarse=options.coarse), order, Fragment()]
    if not options.lossless:
        flow = {"queue_max": options.queue_max, **options.flow}
        layers += [Flow(**flow), reliable(**options.reliable)]
        layers += _ground(options)
    return layers


def _ground(options: Options, own: str = "") -> list[Layer]:
    """What stands at the bottom of every recipe that meets a real network."""
    build = partial(_other, options=options, own=own)
    session = Session(build, greet=options.greet, config=options.config, accepts=options.accepts)
    return [session, shaped(options.faults)]


def _other(name: str, options: Options, own: str = "") -> list[Layer]:
    """The layers of the order that a group changes to. What was said about `own` alone, or about one that
    has a place for it, waits until the group changes back."""
    recipe = find(name)
    refuse_unsafe(recipe, options.unsafe)
    if recipe.name != own:
        options = replace(options, protocol={}, deliver=None)
    return recipe.build(replace(options, matrix=options.matrix and recipe.name == "vector"))


def refuse_late(recipe: Recipe) -> None:
    """Who is in a group that speaks MIOP is known from the start."""
    if recipe.wire != "inga":
        raise UsageError(
            f"nobody can join a group of order {recipe.name!r} later: name all its members at the start"
        )


def tuned(layer: type[Made], name: str, options: Mapping[str, Any], **given: Any) -> Made:
    """A layer that is a protocol of its own, with what the user says about it."""
    _refuse_unknown(name, options, [key for key in parameters(layer) if key not in given])
    return layer(**given, **options)


def tuned_together(
    name: str, options: Mapping[str, Any], kinds: Sequence[tuple[type[Layer], Mapping[str, Any]]]
) -> list[Layer]:
    """Layers that share the options of a recipe, each taking those it knows; one they all know is for all."""
    known = [[key for key in parameters(kind) if key not in given] for kind, given in kinds]
    _refuse_unknown(name, options, list(dict.fromkeys(key for keys in known for key in keys)))
    return [
        kind(**given, **{key: value for key, value in options.items() if key in keys})
        for (kind, given), keys in zip(kinds, known, strict=True)
    ]


def parameters(kind: type[Layer]) -> list[str]:
    """What can be said when a layer is made, also to the class it is made from, or about its settings."""
    found: dict[str, None] = {}
    for base in kind.__mro__:
        if "__init__" in vars(base) and issubclass(base, Layer):
            signature = inspect.signature(base)
            found |= dict.fromkeys(
                key for key, each in signature.parameters.items() if each.kind is each.KEYWORD_ONLY
            )
            if not any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
                break
    return (
        [*found, *(each.name for each in fields(kind.settings))] if hasattr(kind, "settings") else list(found)
    )


def _refuse_unknown(name: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in options:
        if key not in known:
            raise UsageError(f"order {name!r} has no option {key!r}; there are {', '.join(known)}")


def _listed(options: Mapping[str, Any]) -> str:
    return ", ".join(options)


def _none(options: Options) -> list[Layer]:
    return _over_datagrams(Unordered(echo=bool(options.echo)), options)


def _fifo(options: Options) -> list[Layer]:
    return _over_datagrams(Fifo(echo=bool(options.echo)), options)


def _vector(options: Options) -> list[Layer]:
    return _causal(Matrix if options.matrix else Causal)(options)


def _co(options: Options) -> list[Layer]:
    """Order, repair and flow in one layer: bundles and fragments are above it, and its messages are theirs."""
    own: dict[str, Any] = dict(options.protocol)
    if options.lossless:
        own = {"window": WINDOW_MAX, **own}
    level = options.deliver or ("causal" if options.lossless else "acknowledged")
    given = {
        "deliver": level,
        "machine": LosslessCo if options.lossless else CoMachine,
        "echo": bool(options.echo),
        "queue_max": options.queue_max,
        "window_bytes": None if options.lossless else options.flow.get("window"),
    }
    order = tuned(Co, "co", own, **given)
    layers: list[Layer] = [Bundle(gather=False, coarse=True), Pieces(), order]
    if not options.lossless:
        layers += _ground(options, "co")
    return layers


def _sco(options: Options) -> list[Layer]:
    """The same for messages to some: an order that sends nothing to those who are not addressed."""
    given = {
        "deliver": options.deliver or ("causal" if options.lossless else "confirmed"),
        "echo": bool(options.echo),
        "machine": LosslessSco if options.lossless else ScoMachine,
        "queue_max": options.queue_max,
        "window_bytes": options.flow.get("window"),
        "multicast": options.multicast,
    }
    order = tuned(Sco, "sco", options.protocol, **given)
    layers: list[Layer] = [Bundle(gather=not options.lossless, coarse=True), Pieces(), order]
    if not options.lossless:
        layers += _ground(options, "sco")
    return layers


def miop_layers(
    name: str,
    strategy: type[Strategy] | None,
    options: Options,
    *,
    sender: int | None = None,
    also: Sequence[tuple[type[Layer], Mapping[str, Any]]] = (),
    defaults: Mapping[str, Any] | None = None,
) -> list[Layer]:
    """Fragments, a strategy or none, and packets on the wire: what is beneath everything that travels by MIOP.

    The options of the recipe `name` are shared out among them, and the layers `also`, which come first and of
    which given values are not for the user to say. `sender` is for groups in which anybody may speak.
    `defaults` are those of the strategy in this recipe.
    """
    first = options.start << 16 or 1
    kinds: list[tuple[type[Layer], Mapping[str, Any]]] = [*also, (MiopFragments, {"first": first})]
    if strategy is not None:
        known = parameters(strategy)
        mine = {
            "first": first,
            "announced": options.greet and sender is None,
            "queue_max": options.queue_max,
            "confirms": not also,
        }
        kinds.append((strategy, {key: value for key, value in mine.items() if key in known}))
    made = tuned_together(name, {**(defaults or {}), **options.protocol}, kinds)
    return [
        *made,
        shaped(options.faults),
        MiopPackets(sender=sender),
    ]


def over_miop(
    name: str, order: Order, strategy: type[Strategy] | None, options: Options, **defaults: Any
) -> list[Layer]:
    """An order whose packets travel as requests by MIOP, with that strategy against loss."""
    if options.matrix and not isinstance(order, Matrix):
        raise UsageError("matrix=True is an option of order 'vector' alone; leave it out, or use that order")
    below = miop_layers(name, strategy, options, defaults=defaults)
    fragment = Fragment() if strategy is not None else LossyFragment()
    top: list[Layer] = [Bundle(gather=False, coarse=options.coarse), order, fragment]
    if options.lossless:
        return top
    return [*top, _fixed_session(options), Envelope(place=options.place), *below]


def _fixed_session(options: Options) -> Session:
    """Of a group whose members and order stay as they are."""
    return Session(greet=options.greet, config=options.config)


def _miop(options: Options) -> list[Layer]:
    return over_miop("miop", Unreliable(echo=bool(options.echo)), None, options)


def _miop_acks(options: Options) -> list[Layer]:
    return over_miop("miop+acks", Unordered(echo=bool(options.echo)), Acknowledged, options)


def _remiop(options: Options) -> list[Layer]:
    order = Unordered(echo=bool(options.echo))
    return over_miop("remiop", order, ReMiop, options, repeats=REPEATS)


def _remiop_vector(options: Options) -> list[Layer]:
    order = Causal(echo=bool(options.echo), on_concurrent=options.on_concurrent)
    return over_miop("remiop+vector", order, ReMiop, options, repeats=REPEATS)


def _remiop_co(options: Options) -> list[Layer]:
    """CO repairs by itself, too; here it gives the strategy beneath it time to do so first."""
    if options.lossless:
        return _co(options)
    given = {
        "deliver": options.deliver or "acknowledged",
        "machine": CoMachine,
        "echo": bool(options.echo),
        "queue_max": options.queue_max,
        "window_bytes": options.flow.get("window"),
    }
    patient = {
        "confirm_delay": 0.02,
        "nack_delay": 1.0,
        "nack_again": 2.0,
        "resend": 2.0,
        "poll": 1.0,
    }
    defaults = {**patient, "repeats": REPEATS}
    # CO itself lets senders wait for slow readers; what it says to go on must not wait for that beneath it.
    beneath = replace(options, queue_max=UNLIMITED)
    order, *below = miop_layers("remiop+co", ReMiop, beneath, also=[(Co, given)], defaults=defaults)
    envelope = Envelope(receipts=False, place=options.place)
    return [Bundle(gather=False, coarse=True), Pieces(), order, _fixed_session(options), envelope, *below]


OVER = ("reliable", "datagrams")
"""What objects can stand on: the layers that repair and keep a window, or nothing at all."""


def _objects(name: str, options: Options, *, total: bool = False) -> list[Layer]:
    own = dict(options.protocol)
    over = own.pop("over", OVER[0])
    if over not in OVER:
        raise UsageError(f"order {name!r} stands over {' or '.join(OVER)}, not {over!r}")
    order = objects_order(name, replace(options, protocol=own), bare=over == "datagrams", total=total)
    messages = Messages(order, gather=order.reliable, coarse=options.coarse)
    if options.lossless:
        return [messages, Pieces(), order]
    if over == "datagrams":
        return [messages, Pieces(), order, *_ground(options, name)]
    flow = {"queue_max": options.queue_max, **options.flow}
    reliable = Reliable(**options.reliable)
    return [messages, order, Fragment(), Flow(**flow), reliable, *_ground(options, name)]


def _remiop_objects(name: str, options: Options, *, total: bool = False) -> list[Layer]:
    if options.lossless:
        return _objects(name, options, total=total)
    given = {**_objects_given(options, total=total), "crowded": True}
    # Here heartbeats are repaired as well, and go to everybody: they need not be repeated soon.
    defaults = {"repeats": REPEATS, "delta": 0.5}
    order, *below = miop_layers(name, ReMiop, options, also=[(ObjectOrder, given)], defaults=defaults)
    assert isinstance(order, ObjectOrder)
    envelope = Envelope(place=options.place)
    top: list[Layer] = [Messages(order, coarse=options.coarse), order, Fragment(), _fixed_session(options)]
    return [*top, envelope, *below]


def objects_order(name: str, options: Options, *, bare: bool = False, total: bool = False) -> ObjectOrder:
    """The layer of objects alone, for recipes that put something else beneath it."""
    layer: type[ObjectOrder] = BareObjects if bare or options.lossless else ObjectOrder
    window = {"window": options.flow["window"]} if "window" in options.flow else {}
    return tuned(layer, name, {**window, **options.protocol}, **_objects_given(options, total=total))


def _objects_given(options: Options, *, total: bool) -> dict[str, Any]:
    """What the layer of objects is told that is not for the user of the recipe to say."""
    given: dict[str, Any] = {
        "echo": options.echo is not False,
        "objects": options.objects,
        "total": total,
        "crowded": False,
        "queue_max": options.queue_max,
    }
    return {**given, "key": None, "keys": None} if total else given


def _relay(options: Options) -> list[Layer]:
    return _over_datagrams(Relay(echo=bool(options.echo)), options, Hop)


def _rung(rung: type[Rung[Any]]) -> Callable[[Options], list[Layer]]:
    def build(options: Options) -> list[Layer]:
        more = options.realtime if rung.name == "realtime" else {}
        return _over_datagrams(rung(echo=bool(options.echo), **more), options)

    return build


def _causal(order: type[Causal]) -> Callable[[Options], list[Layer]]:
    def build(options: Options) -> list[Layer]:
        layer = order(echo=bool(options.echo), on_concurrent=options.on_concurrent)
        return _over_datagrams(layer, options)

    return build


CAUSAL = ("integrity", "complete", "fifo", "stamps", "causal")

register("none", _none, guarantees=("integrity", "complete", "stamps"), level="received")
register("fifo", _fifo, guarantees=("integrity", "complete", "fifo", "stamps"), level="accepted")
register("vector", _vector, guarantees=CAUSAL, level="causal")
register("relay", _relay, guarantees=CAUSAL, level="causal", direct=False)
for _each in RUNGS:
    register(_each.name, _rung(_each), guarantees=_each.claims, level=_each.level, unsafe=True)
for _other_rule in BENT:
    register(_other_rule.name, _causal(_other_rule), guarantees=CAUSAL, level="causal", unsafe=True)
register(
    "co",
    _co,
    guarantees=(*CAUSAL, "atomic", "quiet"),
    receipt="accept",
    level="acknowledged",
    levels=CO_LEVELS,
    tunings={
        "window": (1, 2, 4, 8),
        "capacity": (None, 5, 10, 40),
        "confirm_every": (None, 0, 1),
    },
)
register(
    "sco",
    _sco,
    guarantees=("integrity", "complete", "fifo", "stamps", "causal", "atomic", "quiet"),
    receipt="accept",
    level="confirmed",
    levels=SCO_LEVELS,
    tunings={
        "ack_level": ("causal", "continuous"),
        "window": (1, 2, 8, 64),
        "quota": (1, 2, 8, 64),
        "probe_after": (0.0, 0.005, 0.05),
        "multicast_from": (0, 0, 2),
    },
)
_REMIOP_TUNINGS: dict[str, tuple[Any, ...]] = {
    "size": (4, 32, 512),
    "tnack": (0.01, 0.05),
    "trepair": (0.0, 0.05),
    "rmin": (20_000, 1_000_000),
    "rmax": (1_000_000, 1_000_000_000),
    "state_every": (None, 0),
    "datagram": (256, 1472),
}
register(
    "miop",
    _miop,
    guarantees=("integrity", "stamps"),
    level="received",
    tunings={"datagram": (256, 1472)},
    wire="miop",
)
register(
    "miop+acks",
    _miop_acks,
    guarantees=("integrity", "complete", "stamps"),
    level="received",
    tunings={
        "size": (4, 32, 512),
        "resend": (0.02, 0.05),
        "ack_delay": (0.0, 0.005),
        "datagram": (256, 1472),
    },
    wire="miop",
)
register(
    "remiop",
    _remiop,
    guarantees=("integrity", "complete", "stamps"),
    level="received",
    tunings=_REMIOP_TUNINGS,
    wire="miop",
)
register(
    "remiop+vector", _remiop_vector, guarantees=CAUSAL, level="causal", tunings=_REMIOP_TUNINGS, wire="miop"
)
register(
    "remiop+co",
    _remiop_co,
    guarantees=(*CAUSAL, "atomic"),
    receipt="accept",
    level="acknowledged",
    levels=CO_LEVELS,
    tunings={
        **_REMIOP_TUNINGS,
        "rmin": (1_000_000,),
        "window": (1, 2, 4, 8),
    },
    wire="miop",
)
_TRIED = {"over": OVER, "delta": (0.005, 0.02, 0.1), "announce": (1, 0)}
register(
    "object",
    partial(_objects, "object"),
    guarantees=("integrity", "complete", "object"),
    level="causal",
    tunings={**_TRIED, "keys": (1, 2, 3)},
    direct=False,
    echo=True,
    objects=True,
)
register(
    "total",
    partial(_objects, "total", total=True),
    guarantees=(*CAUSAL, "total"),
    level="causal",
    tunings=_TRIED,
    direct=False,
    echo=True,
    objects=True,
)
register(
    "remiop+object",
    partial(_remiop_objects, "remiop+object"),
    guarantees=("integrity", "complete", "object"),
    level="causal",
    tunings={**_REMIOP_TUNINGS, "rmin": (1_000_000,), "keys": (1, 2, 3)},
    direct=False,
    echo=True,
    objects=True,
    wire="miop",
)
register(
    "remiop+total",
    partial(_remiop_objects, "remiop+total", total=True),
    guarantees=(*CAUSAL, "total"),
    level="causal",
    tunings={**_REMIOP_TUNINGS, "rmin": (1_000_000,)},
    direct=False,
    echo=True,
    objects=True,
    wire="miop",
)
