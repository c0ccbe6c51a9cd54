"""Rules that are almost right and belong to no rung of the ladder, to see whether our checks see them.

Twice           a duplicate passes the test and is counted
NoHeartbeat     nobody says how far it got
CountsTwice     the acknowledged count goes up with a duplicate

The weaker schemes of the lecture are recipes of their own: `inga.lab.rungs`.
"""

from collections.abc import Callable
from typing import Any

from inga.causality.arrivals import Arrivals
from inga.causality.inbox import RELEASED, Inbox
from inga.layers.causal import Causal
from inga.layers.reliable import Reliable
from inga.model.packet import Packet
from inga.model.stamp import Delta
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.layer import Layer


class TwiceInbox(Inbox[Packet]):
    def offer(self, src: int, seq: int, delta: Delta, item: Packet, out: list[Packet]) -> int:
        if seq <= self.vector[src]:
            self.vector[src] += 1
            out.append(item)
            return RELEASED
        return super().offer(src, seq, delta, item, out)


class Twice(Causal):
    def view(self, view: View) -> None:
        super().view(view)
        self.inbox = TwiceInbox(self.stack.me, len(view))


class NoHeartbeat(Reliable):
    def _beat(self, now: float) -> None:
        self._beat_at = None


class DoubleArrivals(Arrivals):
    def add(self, number: int, size: int = 0) -> bool:
        is_new = super().add(number, size)
        if not is_new:
            self.expected += 1
        return is_new


class CountsTwice(Reliable):
    def view(self, view: View) -> None:
        super().view(view)
        self._arrived = [DoubleArrivals() for _ in view.members]


# Recipes with a layer exchanged

MUTANTS: dict[str, type[Layer]] = {
    "twice": Twice,
    "no-heartbeat": NoHeartbeat,
    "counts-twice": CountsTwice,
}


def with_mutant(name: str, options: Options) -> list[Layer]:
    """The recipe `vector` with that mutant in the place of the layer of its name."""
    mutant = MUTANTS[name]
    if issubclass(mutant, Causal):
        new: Layer = mutant(echo=bool(options.echo), on_concurrent=options.on_concurrent)
    else:
        new = mutant(**options.reliable)
    layers = find("vector").build(options)
    assert new.name in [layer.name for layer in layers]
    return [new if layer.name == new.name else layer for layer in layers]


def whole(name: str) -> Callable[[Options], list[Layer]]:
    """For a `Sim`: the whole recipe, or `vector` with that mutant in it."""
    return find(name).build if name not in MUTANTS else lambda options: with_mutant(name, options)


def on_board(scheme: str) -> Callable[[], list[Any]]:
    """For a `Board` or an `Explorer`: a recipe, or `vector` with a mutant in it."""
    build = whole(scheme)
    return lambda: build(Options(lossless=True))
