"""Lists, dictionaries and sets that cannot be changed in place: what states of objects consist of.

All copies of an object apply the same effects in the same order, and can take them out again. A state that somebody
changes by hand is not the same at all copies any more, and nothing could undo that. So what has been committed is
handed out in kinds of its own, which are read, compared, copied and printed like the ones they are made from, and
raise `UsageError` where those would change. Copies of them, and what operators make of them, are of the plain kinds.

Values of other classes are left as they are, and nothing guards them.
"""

from collections.abc import Collection
from typing import Any

from inga.model.errors import UsageError

BY_EFFECT = (
    "the state of an object is changed by ctx.effect(f) and in no other way: f is given the state, leaves it as it is "
    "and returns a new one, which counts when the method commits"
)


class ReadOnlyList(list[Any]):
    """A list of a state."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


class ReadOnlyDict(dict[Any, Any]):
    """A dictionary of a state."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


class ReadOnlySet(set[Any]):
    """A set of a state."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return set, (set(self),)

    def __repr__(self) -> str:
        return repr(set(self))


PLAIN: dict[type[Any], type[Any]] = {ReadOnlyList: list, ReadOnlyDict: dict, ReadOnlySet: set}
"""What each of these stands for."""

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
    """The same value, of which no list, dictionary or set can be changed."""
    kind = type(value)
    if kind not in _GUARDED:
        return value
    if kind is set:
        return ReadOnlySet(value)
    if kind is dict:
        values = value.values()
        return ReadOnlyDict(value if _is_guarded(values) else zip(value, map(read_only, values), strict=True))
    if _is_guarded(value):
        return value if kind is tuple else ReadOnlyList(value)
    made = map(read_only, value)
    return tuple(made) if kind is tuple else ReadOnlyList(made)


def _is_guarded(values: Collection[Any]) -> bool:
    """Whether there is nothing among them to be made read-only. It is asked after each effect, and a state may be large:
    so at once of all values, by what is fast. Whatever can be hashed holds no plain list, dictionary or set."""
    try:
        hash(tuple(values))
    except Exception:  # or by the types; tuples are then looked into one by one
        return _GUARDED.isdisjoint(map(type, values))
    return True
