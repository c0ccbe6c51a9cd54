"""Transports: the layers that carry the packets of an order.

    Repaired   flow and repair by layers of their own, over inga's own datagrams
    Bare       inga's own datagrams, for an order that repairs by itself

MIOP is a third, in `inga.corba`. A recipe is an order over one of them: `compose`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

from inga.layers.bundle import Bundle
from inga.layers.flow import Flow
from inga.layers.fragment import Fragment, Pieces
from inga.layers.reliable import Reliable
from inga.layers.settings import NoSettings, names_of
from inga.layers.shape import shaped
from inga.model.errors import UsageError
from inga.objects.layer import ObjectOrder
from inga.objects.messages import Messages
from inga.recipes.options import UNSAID, Options
from inga.recipes.recipe import Recipe, find, refuse_unknown, refuse_unsafe, register
from inga.session.session import Session
from inga.stack.layer import Layer

Made = TypeVar("Made", bound=Layer)


@dataclass(frozen=True, slots=True)
class Part:
    """A layer that is to be made. Its settings are options of the recipe, except those in `given`."""

    layer: type[Layer]
    given: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(
        default_factory=dict
    )  # of the recipe, where they differ from the layer's
    gathers: bool = True  # of an order: bundles wait for further messages while earlier ones are in flight
    coarse: bool = False  # of an order: bundles stay open over takes, whatever the option `coarse` is
    mixes: bool = False  # of an order: messages of one packet may be for different members

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its settings that options can set."""
        return tuple(
            name for name in names_of(getattr(self.layer, "settings", NoSettings)) if name not in self.given
        )

    def make(self, said: Mapping[str, Any]) -> Layer:
        """Make the layer, with those of the options that are its own."""
        own = {name: value for name, value in said.items() if name in self.options}
        return self.layer(**{**self.defaults, **own, **self.given})


class Transport:
    """The layers beneath an order."""

    wire: ClassVar[str] = "inga"
    repairs: ClassVar[bool] = True  # no packet is lost, and arrivals are acknowledged
    window: ClassVar[bool] = False  # it limits the bytes in flight
    lends: bool = True  # members keep the packets of others, to exchange those of a member that is gone
    fragment: type[Fragment] = Fragment

    def parts(self, order: Part, options: Options) -> list[Part]:
        """Layers whose settings are options of the recipe."""
        return []

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        """All layers of the transport, with the parts that were `made`, from top to bottom."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Repaired(Transport):
    """Flow control, repair, and the faults of the options, over inga's own datagrams."""

    window = True
    reliable: type[Reliable] = Reliable

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        """Flow control, repair, and what stands below them in every recipe."""
        flow = Flow(**{"queue_max": options.queue_max, **options.flow})
        return [flow, self.reliable(**options.reliable), *_ground(options, name)]


class Bare(Transport):
    """Inga's own datagrams, which the network may lose, duplicate and reorder."""

    repairs = False

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        return _ground(options, name)


def _ground(options: Options, name: str) -> list[Layer]:
    """The lowest layers of every recipe with inga's own datagrams."""
    return [changing_session(options, name), shaped(options.faults)]


def changing_session(options: Options, name: str) -> Session:
    """The session of a group whose view can change."""
    said, said_of = options.said or (options, name)
    build = partial(_changed, options=said, said_of=said_of)
    return Session(
        build,
        greet=options.greet,
        config=options.config,
        accepts=options.accepts,
        detect=options.detect,
        rejoin=options.rejoin,
        partition=options.partition,
        slow=options.slow,
        patience=options.patience,
        open=options.open,
        gives=options.gives,
        wants=options.wants,
    )


def _changed(name: str, options: Options, said_of: str) -> list[Layer]:
    """The layers of the order that a group changes to."""
    recipe = find(name)
    if recipe.wire != find(said_of).wire or not recipe.changes_with(options.detect):
        raise UsageError(f"a group that runs already cannot change to the order {name!r}")
    refuse_unsafe(recipe, options.unsafe)
    return recipe.build(recipe.keep(options, said_of))


@dataclass(frozen=True, slots=True)
class Ordering:
    """An order as recipes use it: the layer for given options, over a transport that repairs or not."""

    part: Callable[[Options, bool], Part]
    takes: tuple[str, ...] = ("coarse",)  # the options of PLACED that it supports
    echo: bool = False  # a member's own messages are delivered to it by default
    window: bool = False  # it limits the bytes in flight itself, over any transport


@dataclass(frozen=True, slots=True)
class Composition:
    """Makes the layers of a recipe that is an order over a transport. If there are several, the option `over` selects one."""

    name: str
    order: Ordering
    transports: Mapping[str, Transport]

    @property
    def own(self) -> tuple[str, ...]:
        """The options of the protocol."""
        transport = next(iter(self.transports.values()))
        part = self.order.part(UNSAID, transport.repairs)
        over = ("over",) if len(self.transports) > 1 else ()
        return (*options_of([part, *transport.parts(part, UNSAID)]), *over)

    def __call__(self, options: Options) -> list[Layer]:
        said = dict(options.protocol)
        transport = self._transport(said.pop("over", next(iter(self.transports))))
        part = self.order.part(options, transport.repairs and not options.lossless)
        order, *made = [each.make(said) for each in (part, *transport.parts(part, options))]
        coarse = options.coarse or part.coarse
        gather = part.gathers and transport.wire == "inga" and not options.lossless
        if isinstance(order, ObjectOrder):
            top: Bundle = Messages(order, gather=gather, coarse=coarse)
        else:
            top = Bundle(gather=gather, coarse=coarse, mixes=part.mixes)
        cut = [Pieces(), order] if repairs_itself(part.layer) else [order, transport.fragment()]
        below = [] if options.lossless else transport.layers(order, made, options, self.name)
        return [top, *cut, *below]

    def _transport(self, over: str) -> Transport:
        if over not in self.transports:
            raise UsageError(f"order {self.name!r} stands over {' or '.join(self.transports)}, not {over!r}")
        return self.transports[over]


def compose(
    name: str, order: Ordering, transport: Transport | Mapping[str, Transport], **about: Any
) -> Recipe:
    """Register an order over a transport, or over a choice of them by name; `about` are fields of `Recipe`."""
    choice = {"": transport} if isinstance(transport, Transport) else transport
    made = Composition(name, order, choice)
    beneath = next(iter(choice.values()))
    window = order.window or beneath.window
    return register(
        name,
        made,
        takes=order.takes,
        own=made.own,
        wire=beneath.wire,
        lends=beneath.lends,
        echo=order.echo,
        window=window,
        **about,
    )


def tuned(layer: type[Made], name: str, options: Mapping[str, Any], **given: Any) -> Made:
    """Make a layer for a recipe of that name, with the user's `options`: for recipes of your own."""
    part = Part(layer, given)
    refuse_unknown(name, options, part.options)
    made = part.make(options)
    assert isinstance(made, layer)
    return made


def options_of(parts: Sequence[Part]) -> tuple[str, ...]:
    """The options of all these layers. One that several of them have goes to each of those."""
    return tuple(dict.fromkeys(name for part in parts for name in part.options))


def repairs_itself(order: type[Layer]) -> bool:
    """Whether an order repairs by itself: then it needs nothing from below, and its messages are fragmented above it."""
    return "reliable" in order.provides
