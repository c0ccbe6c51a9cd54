"""What carries the packets of an order.

    Repaired   flow and repair by layers of their own, over datagrams of ours
    Bare       datagrams of ours, for an order that repairs by itself

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
    """A layer that is to be made. Its settings are options of the recipe, but for those that the recipe gives."""

    layer: type[Layer]
    given: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(
        default_factory=dict
    )  # where the recipe prefers others than the layer
    gathers: bool = True  # of an order: a bundle may wait for company until the one before has arrived
    coarse: bool = False  # of an order: bundles stay open over takes, whatever is said
    mixes: bool = False  # of an order: messages of one packet may be for different members

    @property
    def options(self) -> tuple[str, ...]:
        """What can be said about it."""
        return tuple(
            name for name in names_of(getattr(self.layer, "settings", NoSettings)) if name not in self.given
        )

    def make(self, said: Mapping[str, Any]) -> Layer:
        """The layer, with those of the options that are its own."""
        own = {name: value for name, value in said.items() if name in self.options}
        return self.layer(**{**self.defaults, **own, **self.given})


class Transport:
    """What is beneath an order."""

    wire: ClassVar[str] = "inga"
    repairs: ClassVar[bool] = True  # nothing is lost on the way, and what has arrived is reported
    window: ClassVar[bool] = False  # it limits the bytes that are on their way
    lends: bool = True  # what a member has sent that is gone is kept by the others, and handed round
    fragment: type[Fragment] = Fragment

    def parts(self, order: Part, options: Options) -> list[Part]:
        """Layers whose settings are options of the recipe."""
        return []

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        """All of it, the parts that were `made` among them, from the top down."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Repaired(Transport):
    """Window, repair, and whatever faults are wanted, over datagrams of ours."""

    window = True
    reliable: type[Reliable] = Reliable

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        """Flow control, repair, and what stands below them in every recipe."""
        flow = Flow(**{"queue_max": options.queue_max, **options.flow})
        return [flow, self.reliable(**options.reliable), *_ground(options, name)]


class Bare(Transport):
    """Datagrams of ours, as the network has them."""

    repairs = False

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        return _ground(options, name)


def _ground(options: Options, name: str) -> list[Layer]:
    """What stands at the bottom of every recipe on our own wire."""
    return [changing_session(options, name), shaped(options.faults)]


def changing_session(options: Options, name: str) -> Session:
    """The session of a group whose members come, go and fail."""
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
    takes: tuple[str, ...] = ("coarse",)  # which of PLACED it has a place for
    echo: bool = False  # own messages are delivered too, unless something else is said
    window: bool = False  # it limits the bytes that are on their way, whatever is beneath


@dataclass(frozen=True, slots=True)
class Composition:
    """Layers of a recipe that is an order over a transport. Where there is a choice, the option `over` makes it."""

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
    """A layer for a recipe of that name, with what the user says about it: for recipes of your own."""
    part = Part(layer, given)
    refuse_unknown(name, options, part.options)
    made = part.make(options)
    assert isinstance(made, layer)
    return made


def options_of(parts: Sequence[Part]) -> tuple[str, ...]:
    """What can be said about any of them; what more than one knows is for all of those."""
    return tuple(dict.fromkeys(name for part in parts for name in part.options))


def repairs_itself(order: type[Layer]) -> bool:
    """An order whose messages are cut above it, and which needs nothing from below."""
    return "reliable" in order.provides
