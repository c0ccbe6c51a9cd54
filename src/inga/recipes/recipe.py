"""What `order=` means: recipes by name. `register` adds your own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from inga.model.errors import UsageError
from inga.model.receipt import LEVELS
from inga.model.text import suggest
from inga.objects.hosting import Layout
from inga.recipes.options import PLACED, UNSAID, Options
from inga.stack.layer import Layer

ALIASES = {"causal": "vector"}

NOT_YET = {"received": ("fifo", "causal"), "accepted": ("causal",)}
"""The guarantees of an order that do not hold if messages are delivered at a level below its own, by level."""

BROUGHT: dict[str, tuple[str, ...]] = {
    "inga.corba.orders": tuple(
        "miop miop+acks remiop remiop+co remiop+object remiop+total remiop+vector".split()
    ),
}
"""Modules of rooms above this one, and the orders that each registers when it is imported. That happens when one of them is
first used by name, even by a command, a simulation or a member's process that knows nothing of those rooms."""
TEACHING = "inga.lab.rungs.recipes"
"""Registers the orders that exist for teaching only. It is imported when a name is found nowhere else."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a stack is made, and what a run with it claims."""

    name: str
    make: Callable[[Options], list[Layer]]
    guarantees: tuple[str, ...] = ()
    receipt: str = "take"  # the trace step that makes a message a cause at its receiver
    level: str = "received"  # the level at which messages are delivered by default
    levels: tuple[str, ...] = ()  # all levels that `deliver` can name
    takes: tuple[str, ...] = ()  # the options of PLACED that it supports
    own: tuple[str, ...] | None = None  # options of its protocol; None = `make` refuses others by itself
    tunings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # options, and values that hunts try
    unsafe: bool = False  # for teaching: refused on real sockets unless asked for
    direct: bool = True  # messages go from sender to receiver, so that schedules can say which arrives
    blames: bool = True  # a member that cannot send knows which members it waits for
    wire: str = "inga"  # the format of its datagrams: "inga" or "miop"
    lends: bool = True  # members keep the packets of others, to exchange those of a member that is gone
    echo: bool = False  # a member's own messages are delivered to it by default
    sequenced: bool = False  # a sequencer orders messages, unless there are objects
    window: bool = (
        True  # `window` limits the bytes in flight; in other recipes options of the protocol limit packets
    )

    def build(self, options: Options) -> list[Layer]:
        """Its layers."""
        self.check(options)
        return self.make(options)

    def check(self, options: Options) -> None:
        """Raise UsageError for options that this order does not support."""
        for name in PLACED:
            if name not in self.takes and getattr(options, name) != getattr(UNSAID, name):
                self._refuse(name, [each.name for each in _ordinary() if name in each.takes])
        detect = options.detect
        if options.partition is not None and not self.changes_with(detect):
            self._refuse("partition", [each.name for each in _ordinary() if each.changes_with(detect)])
        if options.slow != UNSAID.slow and not self._expels(detect):
            self._refuse("slow", [each.name for each in _ordinary() if each._expels(detect)])
        if self.own is not None:
            refuse_unknown(self.name, options.protocol, self.own)

    def changes_with(self, detect: float | None) -> bool:
        """Whether the view can change: members join, leave and fail. With MIOP only if failures are detected."""
        return self.lends and (self.wire == "inga" or detect is not None)

    def _expels(self, detect: float | None) -> bool:
        """Whether a member that holds up the others can be excluded."""
        return self.blames and self.changes_with(detect)

    def check_window(self, window: int | None) -> None:
        """Raise UsageError if a window in bytes is given, and this order has none."""
        if window is not None and not self.window:
            self._refuse("window", [each.name for each in _ordinary() if each.window])

    def _refuse(self, option: str, having: Sequence[str]) -> None:
        raise UsageError(f"{option} is an option of order {_listed(having)}; order {self.name!r} has none")

    def keep(self, options: Options, said_of: str) -> Options:
        """The options for this order, from those that were given for the order `said_of`: without those that it does not
        support, and, unless it is the same order, without `protocol` and `deliver`. The originals are kept in `said`, until
        the group changes back."""
        left: dict[str, Any] = {name: getattr(UNSAID, name) for name in PLACED if name not in self.takes}
        if self.name != said_of:
            left |= {"protocol": {}, "deliver": None}
        return replace(options, said=(options, said_of), **left)

    @property
    def objects(self) -> bool:
        """Whether a group with it can have objects."""
        return "objects" in self.takes

    def engine(self, objects: bool) -> bool:
        """Whether the engine of objects orders messages, too; `objects`: whether the group has any."""
        return self.objects and (objects or not self.sequenced)

    @property
    def partition(self) -> str:
        """Which parts of a divided group go on by default."""
        return "primary" if self.objects else "all"

    def claims(self, *, full: bool, deliver: str | None = None, objects: bool = False) -> list[str]:
        """The guarantees that a trace can be checked for. A trace of deliveries only (not `full`) has no control rows, so
        it cannot show `quiet`. In a group with objects they are those of objects, even if there are plain messages, too.
        `views`: the remaining members agree on the view, and on what they delivered."""
        shown = ("object",) if objects else self.promises(deliver)
        views = ["views"] if self.wire == "inga" and not self.unsafe else []
        return [*(name for name in shown if full or name != "quiet"), *views]

    def layout(
        self, names: Sequence[str], objects: Mapping[str, Any] | None, protocol: Mapping[str, Any]
    ) -> Layout | None:
        """Where the objects of a group are and what conflicts, if it can have objects."""
        if not self.objects:
            return None
        keys, by_function = protocol.get("keys"), protocol.get("key") is not None
        total = "total" in self.guarantees
        return Layout(objects, names, total=total, keys=keys, by_function=by_function)

    def echoes(self, wanted: bool | None) -> bool:
        """Whether own messages are delivered, if that is wanted."""
        return self.echo if wanted is None else wanted

    def level_of(self, wanted: str | None) -> str:
        """The level at which to deliver; UsageError for one that this recipe does not have."""
        if wanted is None:
            return self.level
        if wanted not in self.levels:
            if wanted not in LEVELS:
                raise UsageError(f"deliver is one of {', '.join(LEVELS)}, not {wanted!r}")
            known = " or ".join(map(repr, self.levels))
            raise UsageError(f"order {self.name!r} delivers at level {known}, not {wanted!r}")
        return wanted

    def promises(self, deliver: str | None) -> tuple[str, ...]:
        """The guarantees of a run that delivers at that level: at a level below its own, an order waits for less."""
        lost = NOT_YET.get(deliver, ()) if deliver is not None and deliver != self.level else ()
        return tuple(name for name in self.guarantees if name not in lost)


_recipes: dict[str, Recipe] = {}


def register(name: str, make: Callable[[Options], list[Layer]], **about: Any) -> Recipe:
    """Give a list of layers a name that `order=` understands from now on.

    `about` are fields of `Recipe`: what it guarantees, at which `levels` it can deliver (`level` among them if nothing
    is said), and which options of PLACED it `takes`.
    """
    recipe = Recipe(name, make, **about)
    if name in ALIASES or _bring(name):
        raise UsageError(f"there is a recipe {name!r} already")
    if recipe.levels and recipe.level not in recipe.levels:
        raise UsageError(f"recipe {name!r} delivers at {recipe.level!r}, which is not among its levels")
    _recipes[name] = recipe = replace(recipe, levels=recipe.levels or (recipe.level,))
    return recipe


def find(name: str) -> Recipe:
    """The recipe called so, or by an alias."""
    if not isinstance(name, str):
        raise UsageError(f"an order is a name, not {name!r}{suggest('', names())}")
    called = ALIASES.get(name, name)
    if not _bring(called):
        import_module(TEACHING)
    if called not in _recipes:
        resembled = suggest(name, [*names(), *_recipes])
        if "did you mean" not in resembled:
            resembled = f"{suggest(name, names())}; those to learn from are listed by inga.recipes.ladder()"
        raise UsageError(f"no order {name!r}{resembled}")
    return _recipes[called]


def names() -> list[str]:
    """All orders that are meant to be used, and their aliases."""
    brought = (name for orders in BROUGHT.values() for name in orders)
    return sorted({*(recipe.name for recipe in _recipes.values() if not recipe.unsafe), *brought, *ALIASES})


def ladder() -> list[str]:
    """All orders that are only there to learn from, from the ground up."""
    import_module(TEACHING)
    return [name for name, recipe in _recipes.items() if recipe.unsafe]


def refuse_unsafe(recipe: Recipe, unsafe: bool) -> None:
    """Raise UsageError for an order that exists for teaching only, unless `unsafe` allows it."""
    if recipe.unsafe and not unsafe:
        raise UsageError(
            f"order {recipe.name!r} is there to learn from and misorders messages or blocks: "
            "use causal, or say unsafe=True (on the command line --unsafe)"
        )


def refuse_late(recipe: Recipe, detect: float | None) -> None:
    """Raise UsageError if nobody can join a group of this order later, since its view cannot change."""
    if not recipe.changes_with(detect):
        otherwise = ", or let failures be detected (detect)" if recipe.lends else ""
        raise UsageError(
            f"nobody can join a group of order {recipe.name!r} later: name all its members at the start{otherwise}"
        )


def refuse_unknown(order: str, said: Iterable[str], known: Sequence[str], where: str = "") -> None:
    """Raise UsageError for an option that the order's protocol does not have. `where`: a condition for that, as text."""
    for name in said:
        if name not in known:
            having = [recipe.name for recipe in _ordinary() if recipe.own and name in recipe.own]
            there_are = suggest(name, known) if known else "; it has none of its own"
            hint = f"; it is one of order {_listed(having)}" if having else ""
            raise UsageError(f"order {order!r} has no option {name!r}{where}{there_are}{hint}")


def _bring(name: str) -> bool:
    """Whether there is a recipe of that name. Imports the module of BROUGHT that registers it, if there is one."""
    for module, orders in BROUGHT.items():
        if name in orders:
            import_module(module)  # Does nothing while that module is being imported.
    return name in _recipes


def _ordinary() -> list[Recipe]:
    """All recipes but those for teaching."""
    for module in BROUGHT:
        import_module(module)
    return [recipe for recipe in _recipes.values() if not recipe.unsafe]


def _listed(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
