"""Lists, dictionaries and sets that cannot be changed in place: the parts of objects' states.

All copies of an object apply the same effects in the same order, and can undo them. If a program changed a state
directly, the copies would differ, and nothing could undo that. So a committed state is handed out in
subclasses of its own, which are read, compared, copied and printed like their base classes, and
raise `UsageError` where those would change. Copies of them, and results of operators on them, are of the base classes.

Values of other classes are left as they are, and nothing guards them.
"""

from collections.abc import Collection, Iterable
from itertools import compress
from typing import Any

from inga.model.errors import UsageError

BY_EFFECT = (
    "the state of an object is changed by ctx.effect(f) and in no other way: f is given the state, leaves it as it is "
    "and returns a new one, which counts when the method commits"
)


class ReadOnlyList(list[Any]):
    """A list in a state."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


class ReadOnlyDict(dict[Any, Any]):
    """A dictionary in a state."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


class ReadOnlySet(set[Any]):
    """A set in a state."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return set, (set(self),)

    def __repr__(self) -> str:
        return repr(set(self))


PLAIN: dict[type[Any], type[Any]] = {ReadOnlyList: list, ReadOnlyDict: dict, ReadOnlySet: set}
"""The plain class that each of these stands for."""

_CHANGES = """__setitem__ __delitem__ __iadd__ __imul__ __ior__ __iand__ __isub__ __ixor__ add append clear
difference_update discard extend insert intersection_update pop popitem remove reverse setdefault sort
symmetric_difference_update update""".split()

_GUARDED = frozenset({list, dict, set, tuple})


def _refuse(self: Any, *args: Any, **named: Any) -> Any:
    raise UsageError(BY_EFFECT)


for _kind, _base in PLAIN.items():
    for _name in _CHANGES:
        if hasattr(_base, _name):
            setattr(_kind, _name, _refuse)


def read_only(value: Any) -> Any:
    """The same value, in which no list, dictionary or set can be changed."""
    kind = type(value)
    if kind not in _GUARDED:
        return value
    if kind is set:
        return ReadOnlySet(value)
    if kind is dict:
        table = ReadOnlyDict(value)
        for name, item in _unguarded(value.items(), value.values()):
            dict.__setitem__(table, name, read_only(item))
        return table
    inner = list(_unguarded(enumerate(value), value))
    if kind is tuple and not inner:
        return value
    items = ReadOnlyList(value)
    for at, item in inner:
        list.__setitem__(items, at, read_only(item))
    return items if kind is list else tuple(items)


def _unguarded(pairs: Iterable[tuple[Any, Any]], values: Collection[Any]) -> Iterable[tuple[Any, Any]]:
    """Those of the pairs whose value may contain something mutable. This runs after each effect, and states may be
    large, so it handles all pairs in a few calls, without a Python loop. A value with a hash contains no list, dictionary or
    set."""
    try:
        hash(tuple(values))
    except Exception:
        return compress(pairs, map(_GUARDED.__contains__, map(type, values)))
    return ()
