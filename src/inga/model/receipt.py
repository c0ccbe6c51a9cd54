"""How far a message got: the levels, and the receipt that a sender holds."""

from collections.abc import Callable

from inga.model.compiled import mypyc_attr

LEVELS = ("received", "accepted", "causal", "confirmed", "acknowledged")
"""In this order: it has arrived; no earlier message of its sender is missing; no message that precedes it is missing; every
destination is known to have accepted it; every destination is known to have confirmed it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Receipt:
    """Says how far a sent message got. Messages that share a bundle share their receipt."""

    __slots__ = ("_callbacks", "_reached")

    def __init__(self) -> None:
        self._reached: set[str] = set()
        self._callbacks: dict[str, list[Callable[[], None]]] = {}

    def has(self, level: str) -> bool:
        """Whether the level is reached."""
        return level in self._reached

    def is_awaited(self, level: str) -> bool:
        """Whether a callback or a task waits for this level."""
        return level in self._callbacks

    def reach(self, level: str) -> None:
        """Called by the layer that knows, once per level."""
        self._reached.add(level)
        for callback in self._callbacks.pop(level, ()):
            callback()

    def when(self, level: str, callback: Callable[[], None]) -> None:
        """Call `callback` when the level is reached: now, if it is already."""
        if level in self._reached:
            callback()
        else:
            self._callbacks.setdefault(level, []).append(callback)

    def forget(self, level: str, callback: Callable[[], None]) -> None:
        """Remove a callback, so that it is not called any more."""
        callbacks = self._callbacks.get(level, [])
        if callback in callbacks:
            callbacks.remove(callback)
            if not callbacks:
                del self._callbacks[level]
