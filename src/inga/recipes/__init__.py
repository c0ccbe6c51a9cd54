"""Named lists of layers: what `order=` means. `register` and `compose` add your own."""

from inga.recipes.options import PLACED, Options
from inga.recipes.recipe import (
    ALIASES,
    Recipe,
    find,
    ladder,
    names,
    refuse_late,
    refuse_unsafe,
    register,
)
from inga.recipes.standard import NONE, OVER, REPAIRED, VECTOR, causal, plain
from inga.recipes.transports import Ordering, Part, Repaired, compose, tuned

__all__ = [
    "ALIASES",
    "NONE",
    "OVER",
    "PLACED",
    "REPAIRED",
    "VECTOR",
    "Options",
    "Ordering",
    "Part",
    "Recipe",
    "Repaired",
    "causal",
    "compose",
    "find",
    "ladder",
    "names",
    "plain",
    "refuse_late",
    "refuse_unsafe",
    "register",
    "tuned",
]
