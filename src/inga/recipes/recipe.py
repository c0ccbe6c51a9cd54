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
"""What is not promised at a level."""

BROUGHT: dict[str, tuple[str, ...]] = {
    "inga.corba.orders": tuple(
        "miop miop+acks remiop remiop+co remiop+object remiop+total remiop+vector".split()
    ),
}
"""Modules of rooms above us, and the orders that each registers when it is imported: on first use by name, be it by a
command, a simulation, or the process of a member that knows nothing of those rooms."""
TEACHING = "inga.lab.rungs.recipes"
"""Registers the orders that are only there to learn from. It is imported when a name is found nowhere else."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a stack is made, and what a run with it claims."""

    name: str
    make: Callable[[Options], list[Layer]]
    guarantees: tuple[str, ...] = ()
    receipt: str = "take"  # the trace step that makes a message a cause at its receiver
    level: str = "received"  # what `deliver` means here, unless another of the levels is asked for
    levels: tuple[str, ...] = ()  # all that can be asked for
    takes: tuple[str, ...] = ()  # which of PLACED it has a place for
    own: tuple[str, ...] | None = None  # options of its protocol; None = whoever makes it refuses others
    tunings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # options, with what hunts try
    unsafe: bool = False  # teaching material: refused on real sockets unless asked for
    direct: bool = True  # messages go from sender to receiver, so that schedules can say which arrives
    blames: bool = True  # a member that cannot send knows because of whom
    wire: str = "inga"  # what its datagrams are: packets of ours, or "miop"
    lends: bool = True  # what a member has sent that is gone is kept by the others, and handed round
    echo: bool = False  # own messages are delivered too, unless something else is said
    sequenced: bool = False  # a sequencer orders messages, unless there are objects
    window: bool = (
        True  # bytes on their way can be limited; elsewhere packets are, by options of the protocol
    )

    def build(self, options: Options) -> list[Layer]:
        """Its layers."""
        self.check(options)
        return self.make(options)

    def check(self, options: Options) -> None:
        """Refuse what is asked for and has no place here."""
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
        """Whether members come, go and fail: on wires of others that is so where failures are detected."""
        return self.lends and (self.wire == "inga" or detect is not None)

    def _expels(self, detect: float | None) -> bool:
        """Whether a member that holds up the others can be excluded."""
        return self.blames and self.changes_with(detect)

    def check_window(self, window: int | None) -> None:
        """Refuse a window in bytes, if one is asked for, where that means nothing."""
        if window is not None and not self.window:
            self._refuse("window", [each.name for each in _ordinary() if each.window])

    def _refuse(self, option: str, having: Sequence[str]) -> None:
        raise UsageError(f"{option} is an option of order {_listed(having)}; order {self.name!r} has none")

    def keep(self, options: Options, said_of: str) -> Options:
        """What of the options has a place here, of those that were said about another order. The rest waits until
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
        """Whether the order of objects is that of messages, in a group that has some or has none."""
        return self.objects and (objects or not self.sequenced)

    @property
    def partition(self) -> str:
        """Which parts of a group go on, unless something else is said."""
        return "primary" if self.objects else "all"

    def claims(self, *, full: bool, deliver: str | None = None, objects: bool = False) -> list[str]:
        """The guarantees that a trace can show; one of deliveries only holds no control rows. Of a group
        with objects it shows their order, whether or not there are messages besides. Where members that fail
        are excluded it shows that those who are left agree, on who they are and on what they delivered."""
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
    """Teaching material does not get onto real sockets by accident."""
    if recipe.unsafe and not unsafe:
        raise UsageError(
            f"order {recipe.name!r} is there to learn from and misorders messages or blocks: "
            "use causal, or say unsafe=True (on the command line --unsafe)"
        )


def refuse_late(recipe: Recipe, detect: float | None) -> None:
    """Who is in a group whose view cannot change is known from the start."""
    if not recipe.changes_with(detect):
        otherwise = ", or let failures be detected (detect)" if recipe.lends else ""
        raise UsageError(
            f"nobody can join a group of order {recipe.name!r} later: name all its members at the start{otherwise}"
        )


def refuse_unknown(order: str, said: Iterable[str], known: Sequence[str], where: str = "") -> None:
    """An option that the protocol of an order does not have; `where`: under which circumstances."""
    for name in said:
        if name not in known:
            having = [recipe.name for recipe in _ordinary() if recipe.own and name in recipe.own]
            there_are = suggest(name, known) if known else "; it has none of its own"
            hint = f"; it is one of order {_listed(having)}" if having else ""
            raise UsageError(f"order {order!r} has no option {name!r}{where}{there_are}{hint}")


def _bring(name: str) -> bool:
    """Whether there is a recipe of that name, after having it registered by whoever brings it."""
    for module, orders in BROUGHT.items():
        if name in orders:
            import_module(module)  # While that is being imported itself, this does nothing.
    return name in _recipes


def _ordinary() -> list[Recipe]:
    """All that are meant to be used."""
    for module in BROUGHT:
        import_module(module)
    return [recipe for recipe in _recipes.values() if not recipe.unsafe]


def _listed(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
