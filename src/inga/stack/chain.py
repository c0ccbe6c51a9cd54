"""Layers bound to each other: who passes what to whom, and which of them have which hook."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from inga.model.errors import UsageError
from inga.model.packet import DATA, Packet
from inga.stack.budget import Supply
from inga.stack.figures import Figures
from inga.stack.hooks import HOOKS
from inga.stack.layer import Layer, Pass
from inga.wire.packet import OUTSIDE

if TYPE_CHECKING:
    from inga.stack.stack import Stack


ELSEWHERE, ELSEWHERE_MAX = 50.0, 32.0
"""Packets of layers that are heeded, a second and at once, although they come from another address than their sender's. It may
have moved; and whoever speaks in its name from somewhere else does not use up what its sender may ask for."""


class Chain:
    """The layers of a stack from top to bottom, checked and bound once. A change of layers makes a new chain."""

    def __init__(self, stack: "Stack", layers: Sequence[Layer], beneath: frozenset[str]) -> None:
        """`beneath` names services the network itself provides."""
        self._stack = stack
        self.layers = list(layers)
        kinds = tuple(map(type, self.layers))
        check(kinds, beneath)
        for layer in self.layers:
            layer.stack = stack
        self._places = _places(kinds)
        self._kinds = {layer.id: layer for layer in self.layers if layer.id}
        self._elsewhere = Supply(ELSEWHERE, ELSEWHERE_MAX)
        self._find_often_called()
        self._up = self._bind_up([layer for layer in self.layers if not layer.transparent], stack.deliver)
        self.lowest = self._bind_up([layer for layer in self.layers if layer.transparent], self.split)
        self.emit = self._bind_down(stack.wire.write)  # where layers send packets of their own kind

    def having(self, name: str) -> list[Any]:
        """The layers that have that hook, in the order in which they are asked."""
        return [self.layers[at] for at in self._places[name]]

    def hooks(self, name: str) -> list[Any]:
        """The hook of that name, of all layers that have it."""
        return [getattr(self.layers[at], name) for at in self._places[name]]

    def hook(self, name: str) -> Any:
        """The hook of that name, of the first layer that has it."""
        places = self._places[name]
        return getattr(self.layers[places[0]], name) if places else None

    def hook_of_kind(self, kind: int, name: str) -> Any:
        """The hook of the layer whose packets are of that kind."""
        layer = self._kinds.get(kind)
        return None if layer is None else getattr(layer, name, None)

    def ride(self, packet: Packet) -> None:
        """Let every layer put its counters on a packet."""
        for ride in self._riders:
            ride(packet)

    def acknowledged(self, lsn: int) -> None:
        """Tell the layers that some member has everything up to `lsn`."""
        for acknowledged in self._listeners:
            acknowledged(lsn)

    @property
    def waiting(self) -> int:
        """Packets that layers were given to send and have not passed on."""
        return sum(window.waiting for window in self.having("is_open"))

    @property
    def begun(self) -> int:
        """Calls of objects that have begun here in this view."""
        return sum(layer.begun for layer in self.having("begun"))

    def blockers(self) -> set[int]:
        """Members because of whom nothing more may be sent."""
        return {m for window in self.having("is_open") if not window.is_open for m in window.blockers()}

    def awaited(self) -> set[int]:
        """Members because of whom nothing that is held can be delivered."""
        return {m for layer in self.having("held") if layer.held for m in layer.awaited()}

    def account(self) -> Figures:
        """What the layers say of themselves."""
        figures = Figures(len(self._stack.view))
        for account in self.hooks("account"):
            account(figures)
        return figures

    @property
    def order(self) -> Any:
        """The layer that counts what was sent and released, if there is one: see `hooks.OrderKeeping`."""
        return next(iter(self.having("sent")), None)

    @property
    def lender(self) -> Any:
        """The layer that keeps what others sent, if there is one: see `hooks.Lender`."""
        return next(iter(self.having("holdings")), None)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels a receipt can reach."""
        return tuple(level for layer in self.layers for level in layer.levels)

    def split(self, batch: list[Packet]) -> None:
        """Data goes up; a layer's own packets go to that layer, in the order they came."""
        data: list[Packet] = []
        for packet in batch:
            if packet.kind == DATA:
                data.append(packet)
                continue
            if data:
                self._up(data)
                data = []
            target = self._kinds.get(packet.kind)
            if target is None:
                self._stack.reject("kind", packet)
            elif packet.view == OUTSIDE:
                target.outside(packet, packet.where)  # type: ignore[attr-defined]  # else it was not read
            elif not packet.is_for_others(self._stack.me):
                if self._stack.wire.is_elsewhere(packet) and not self._elsewhere.take(self._stack.now):
                    self._stack.reject("budget", packet)
                    continue
                target.control(packet)
                for note in self._noters:
                    note(packet)
        if data:
            self._up(data)

    def mute(self) -> None:
        """From now on only those speak that a change of recipe leaves alone, and what carries their packets. An order
        that says of packets as they are taken whether they are concurrent says so of those that are unread, too."""
        self._up = _drop
        speaking = [layer if layer.transparent or layer.stays else _Silent() for layer in self.layers]
        before, self._places = self._places, dict(_places(tuple(map(type, speaking))))
        for name in ("taken", "sent"):
            self._places[name] = [
                at
                for at in before[name]
                if at in self._places[name] or getattr(self.layers[at], "flags", False)
            ]
        self._kinds = {layer.id: now for layer, now in zip(self.layers, speaking, strict=True) if layer.id}
        self._find_often_called()

    def _find_often_called(self) -> None:
        self._noters, self._riders = self.hooks("note"), self.hooks("ride")
        self._listeners = self.hooks("acknowledged")

    def _bind_up(self, layers: list[Layer], above: Pass) -> Pass:
        """Past layers that take no interest in what comes in."""
        for layer in layers:
            layer.above = above
            if has(layer, "up"):
                above = layer.up
        return above

    def _bind_down(self, below: Pass) -> Pass:
        emit = below
        for layer in reversed(self.layers):
            layer.below = below
            if has(layer, "down"):
                below = layer.down
                if layer.transparent:
                    emit = below
        return emit


class _Silent(Layer):
    """Takes the place of a layer whose work has ended."""


def _drop(batch: list[Packet]) -> None:
    """Drop packets that no layer is left to read."""


@cache
def check(layers: tuple[type[Layer], ...], beneath: frozenset[str]) -> None:
    """Every layer's needs are met from below, or the error names who could meet them."""
    provided = set(beneath)
    seen_opaque = False
    for layer in reversed(layers):
        if layer.transparent and seen_opaque:
            raise UsageError(f"layer {layer.name!r} must stand below all that are not transparent")
        seen_opaque = seen_opaque or not layer.transparent
        missing = layer.requires - provided
        if missing:
            need = ", ".join(sorted(missing))
            raise UsageError(f"layer {layer.name!r} needs {need} from below{_suppliers(missing)}")
        provided |= layer.provides
    kinds = [layer.id for layer in layers if layer.id]
    if len(set(kinds)) < len(kinds):
        raise UsageError("two layers of one id cannot tell their packets apart: give each an id of its own")
    if not _places(layers)["send"]:
        raise UsageError("no layer takes what the application sends: put `bundle` on top")


@cache
def _places(kinds: tuple[type[Layer], ...]) -> dict[str, list[int]]:
    """Where in a list of such layers each hook is found, in the order in which it is called."""
    return {
        name: [
            at
            for at in (reversed(range(len(kinds))) if bottom_up else range(len(kinds)))
            if _defines(kinds[at], name)  # type: ignore[arg-type]  # as in `has`
        ]
        for name, bottom_up in HOOKS.items()
    }


def has(layer: Layer, name: str) -> bool:
    """Whether a layer has a hook; one that it inherits from `Layer` does not count."""
    return _defines(type(layer), name)  # type: ignore[arg-type]  # mypy: classes can be hashed, too


@cache
def _defines(kind: type[Layer], name: str) -> bool:
    return getattr(kind, name, None) is not getattr(Layer, name, None)


def _suppliers(missing: Iterable[str]) -> str:
    """Which known layers could supply what is missing, as the end of a sentence."""

    def known(cls: type[Layer]) -> Iterable[type[Layer]]:
        for sub in cls.__subclasses__():
            yield sub
            yield from known(sub)

    names = sorted({cls.name for cls in known(Layer) if cls.provides & set(missing)})
    return f"; {' or '.join(names)} could supply it" if names else ""
