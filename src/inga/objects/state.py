"""The state of an object, from which a committed effect can be removed again.

Effects are kept in a log until they can no longer be undone. To undo one, the others are applied again without it,
as if it had never been. Methods and effects get read-only values: a change in place could not be undone.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.readonly import read_only
from inga.objects.declare import Effect


@mypyc_attr(allow_interpreted_subclasses=True)
class _Applied:
    __slots__ = ("effects", "final")

    def __init__(self, effects: Sequence[Effect], final: bool) -> None:
        self.effects = effects
        self.final = final


@mypyc_attr(allow_interpreted_subclasses=True)
class State:
    """`value` is what methods see."""

    def __init__(self, initial: Any = None) -> None:
        self.value = read_only(initial)
        self.skipped = 0  # effects that failed when they were applied again
        self._base = self.value  # without the effects in the log
        self._log: deque[_Applied] = deque()
        self._open: dict[Hashable, _Applied] = {}

    @property
    def pending(self) -> int:
        """How many committed instances may still be undone."""
        return len(self._open)

    def after(self, effects: Sequence[Effect]) -> Any:
        """What the state would be after these effects; an exception of an effect goes to the caller."""
        value = self.value
        for effect in effects:
            value = read_only(effect(value))
        return value

    def apply(self, value: Any, effects: Sequence[Effect], name: Hashable = None) -> None:
        """Commit effects that lead to that value; with a name they can be undone until they are final."""
        self.value = value
        if name is None and not self._log:
            self._base = value
            return
        applied = _Applied(effects, name is None)
        if name is not None:
            self._open[name] = applied
        if effects or not applied.final:
            self._log.append(applied)

    def final(self, name: Hashable) -> None:
        """The effects committed under that name will not be undone."""
        applied = self._open.pop(name, None)
        if applied is not None:
            applied.final = True
            self._shorten()

    def undo(self, name: Hashable) -> None:
        """Remove the effects committed under that name, as if they had never been applied."""
        applied = self._open.pop(name, None)
        if applied is None:
            return
        applied.final = True
        if applied.effects:
            applied.effects = ()
            self._replay()
        self._shorten()

    def _replay(self) -> None:
        value = self._base
        for applied in self._log:
            value = self._played(value, applied)
        self.value = value

    def _shorten(self) -> None:
        while self._log and self._log[0].final:
            self._base = self._played(self._base, self._log.popleft())
        if not self._log:
            self._base = self.value

    def _played(self, value: Any, applied: _Applied) -> Any:
        for effect in applied.effects:
            try:
                value = read_only(effect(value))
            except Exception:  # the effect depended on one that has been undone
                self.skipped += 1
        return value
