"""How far a message got: the levels, and the slip of paper a sender holds."""

from collections.abc import Callable

from inga.model.compiled import mypyc_attr

LEVELS = ("received", "accepted", "causal", "confirmed", "acknowledged")
"""It came; nothing of its sender before it is missing; nothing that precedes it is missing; every
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
        """Nobody wants to be called back by this any more."""
        callbacks = self._callbacks.get(level, [])
        if callback in callbacks:
            callbacks.remove(callback)
            if not callbacks:
                del self._callbacks[level]
