"""What lets one source run both ways: interpreted as it is, and compiled by mypyc to an extension module.

mypyc reads two decorators, which do nothing in interpreted code, so mypy's package is needed to compile and
never to run. A compiled class has no `__dict__`: its attributes are those that it declares. This module itself stays
interpreted.
"""

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
    from mypy_extensions import trait as trait
else:

    def mypyc_attr(*_flags, **_options):
        return lambda kind: kind

    def trait(kind):
        return kind


_found = find_spec("inga.model.packet")
assert _found is not None and _found.origin is not None

compiled = _found.origin.endswith(tuple(EXTENSION_SUFFIXES))
"""Whether the protocol rooms run as machine code. They are compiled together or not at all."""


def restore(thing: object, state: dict[str, Any]) -> None:
    """Give an object the attributes that `state_of` named."""
    for name, value in state.items():
        setattr(thing, name, value)


def state_of(thing: object) -> dict[str, Any]:
    """All attributes of an object, by name. A compiled class lists those that it declares; interpreted classes,
    also those that inherit from a compiled class, have slots or a `__dict__`."""
    names = dict.fromkeys(getattr(type(thing), "__mypyc_attrs__", ()))
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names |= dict.fromkeys([slots] if isinstance(slots, str) else slots)
    names |= dict.fromkeys(getattr(thing, "__dict__", ()))
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}
