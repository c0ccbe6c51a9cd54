"""Named lists of layers: what `order=` means. `register` adds your own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from inga.layers.bundle import Bundle
from inga.layers.causal import Causal
from inga.layers.fifo import Fifo, Unordered
from inga.layers.flow import Flow
from inga.layers.fragment import Fragment
from inga.layers.matrix import Matrix
from inga.layers.order import Order
from inga.layers.relay import Hop, Relay
from inga.layers.reliable import Reliable
from inga.layers.shape import Faults, Shape, Unshaped
from inga.model.errors import UsageError
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
    reliable: dict[str, Any] = field(default_factory=dict)  # of the layer of that name
    flow: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a stack is made, and what a run with it claims."""

    name: str
    build: Callable[[Options], list[Layer]]
    guarantees: tuple[str, ...]
    receipt: str  # the trace step that makes a message a cause at its receiver
    level: str  # what `deliver` means here
    direct: bool = True  # messages go from sender to receiver, so that schedules can say which arrives


ALIASES = {"causal": "vector"}

LATER = frozenset("co sco object total remiop remiop+vector remiop+co".split())

_recipes: dict[str, Recipe] = {}


def register(
    name: str,
    build: Callable[[Options], list[Layer]],
    *,
    guarantees: Sequence[str] = (),
    receipt: str = "take",
    level: str = "received",
    direct: bool = True,
) -> Recipe:
    """Give a list of layers a name that `order=` understands from now on."""
    if name in ALIASES or name in _recipes:
        raise UsageError(f"there is a recipe {name!r} already")
    recipe = Recipe(name, build, tuple(guarantees), receipt, level, direct)
    _recipes[name] = recipe
    return recipe


def find(name: str) -> Recipe:
    """The recipe called so, or by an alias."""
    recipe = _recipes.get(ALIASES.get(name, name))
    if recipe is None:
        known = ", ".join(sorted({*_recipes, *ALIASES}))
        if name in LATER:
            raise UsageError(f"order {name!r} is not built yet; there are {known}")
        raise UsageError(f"no order {name!r}; there are {known}")
    return recipe


def names() -> list[str]:
    """Everything `find` knows."""
    return sorted({*_recipes, *ALIASES})


def _over_datagrams(order: Order, options: Options, reliable: type[Reliable] = Reliable) -> list[Layer]:
    """The common frame: bundles above the order, repair and flow beneath it."""
    if options.matrix and not isinstance(order, Matrix):
        raise UsageError("matrix=True is an option of order 'vector' alone; leave it out, or use that order")
    layers: list[Layer] = [Bundle(gather=not options.lossless, coarse=options.coarse), order, Fragment()]
    if not options.lossless:
        layers += [Flow(**options.flow), reliable(**options.reliable)]
        layers.append(Unshaped() if options.faults is None else Shape(options.faults))
    return layers


def _none(options: Options) -> list[Layer]:
    return _over_datagrams(Unordered(echo=bool(options.echo)), options)


def _fifo(options: Options) -> list[Layer]:
    return _over_datagrams(Fifo(echo=bool(options.echo)), options)


def _vector(options: Options) -> list[Layer]:
    layer = Matrix if options.matrix else Causal
    order = layer(echo=bool(options.echo), on_concurrent=options.on_concurrent)
    return _over_datagrams(order, options)


def _relay(options: Options) -> list[Layer]:
    return _over_datagrams(Relay(echo=bool(options.echo)), options, Hop)


register("none", _none, guarantees=("integrity", "complete", "stamps"), level="received")
register("fifo", _fifo, guarantees=("integrity", "complete", "fifo", "stamps"), level="accepted")
register("vector", _vector, guarantees=("integrity", "complete", "fifo", "stamps", "causal"), level="causal")
register(
    "relay",
    _relay,
    guarantees=("integrity", "complete", "fifo", "stamps", "causal"),
    level="causal",
    direct=False,
)
