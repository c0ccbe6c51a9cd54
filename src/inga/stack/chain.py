"""Layers bound to each other: which layer passes packets to which, and which of them have which hook."""

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
"""Packets of layers' own kinds that are processed although they come from another address than their sender's, per second and at
once. The sender may have moved. The bound is a separate budget, so that a forger elsewhere cannot use up the sender's own."""


class Chain:
    """The layers of a stack from top to bottom, checked and bound once. A change of layers makes a new chain."""

    def __init__(self, stack: "Stack", layers: Sequence[Layer], beneath: frozenset[str]) -> None:
        """`beneath` names the services that the network itself provides."""
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
        """The layers that have the hook of that name, in the order in which they are asked."""
        return [self.layers[at] for at in self._places[name]]

    def hooks(self, name: str) -> list[Any]:
        """The hook of that name, from each layer that has it."""
        return [getattr(self.layers[at], name) for at in self._places[name]]

    def hook(self, name: str) -> Any:
        """The hook of that name from the first layer that has it, or None."""
        places = self._places[name]
        return getattr(self.layers[places[0]], name) if places else None

    def hook_of_kind(self, kind: int, name: str) -> Any:
        """The hook of that name from the layer whose own packets have that kind, or None."""
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
        """The number of packets that layers were given to send and have not passed on."""
        return sum(window.waiting for window in self.having("is_open"))

    @property
    def begun(self) -> int:
        """The number of object calls that have begun here in this view."""
        return sum(layer.begun for layer in self.having("begun"))

    def blockers(self) -> set[int]:
        """The members that closed windows wait for."""
        return {m for window in self.having("is_open") if not window.is_open for m in window.blockers()}

    def awaited(self) -> set[int]:
        """The members that held packets wait for."""
        return {m for layer in self.having("held") if layer.held for m in layer.awaited()}

    def account(self) -> Figures:
        """The figures that all layers fill in for a snapshot."""
        figures = Figures(len(self._stack.view))
        for account in self.hooks("account"):
            account(figures)
        return figures

    @property
    def order(self) -> Any:
        """The layer that counts sent and released packets, if there is one: see `hooks.OrderKeeping`."""
        return next(iter(self.having("sent")), None)

    @property
    def lender(self) -> Any:
        """The layer that keeps packets of others, if there is one: see `hooks.Lender`."""
        return next(iter(self.having("holdings")), None)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels a receipt can reach."""
        return tuple(level for layer in self.layers for level in layer.levels)

    def split(self, batch: list[Packet]) -> None:
        """Pass data packets up, and packets of a layer's own kind to that layer, in the order in which they arrived."""
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
                target.outside(packet, packet.where)  # type: ignore[attr-defined]  # without this hook the wire rejects it
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
        """We have said goodbye: silence all layers but those that stay when the recipe changes, and the transparent ones that
        carry their packets. An order with `flags` still handles `taken`, and flags unread packets as concurrent or not."""
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
        """Bind `above` of each layer, past layers that do not define `up`; return where packets enter from below."""
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
    """A placeholder for a layer that has been silenced."""


def _drop(batch: list[Packet]) -> None:
    """Drop packets, since the layers that would read them are silenced."""


@cache
def check(layers: tuple[type[Layer], ...], beneath: frozenset[str]) -> None:
    """Raise UsageError if these layers do not fit together; it names layers that could supply a missing service."""
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
    """For each hook, the positions of the layers that have it, in the order in which the hook is called."""
    return {
        name: [
            at
            for at in (reversed(range(len(kinds))) if bottom_up else range(len(kinds)))
            if _defines(kinds[at], name)  # type: ignore[arg-type]  # as in `has`
        ]
        for name, bottom_up in HOOKS.items()
    }


def has(layer: Layer, name: str) -> bool:
    """Whether a layer has a hook; a default inherited from `Layer` does not count."""
    return _defines(type(layer), name)  # type: ignore[arg-type]  # mypy: classes can be hashed, too


@cache
def _defines(kind: type[Layer], name: str) -> bool:
    return getattr(kind, name, None) is not getattr(Layer, name, None)


def _suppliers(missing: Iterable[str]) -> str:
    """The known layers that could supply the missing services, as the end of a sentence."""

    def known(cls: type[Layer]) -> Iterable[type[Layer]]:
        for sub in cls.__subclasses__():
            yield sub
            yield from known(sub)

    names = sorted({cls.name for cls in known(Layer) if cls.provides & set(missing)})
    return f"; {' or '.join(names)} could supply it" if names else ""
