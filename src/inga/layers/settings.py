"""Settings of layers: frozen dataclasses that check their values, made from keyword arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.text import suggest

Made = TypeVar("Made")


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class NoSettings:
    """The settings of a layer that has none."""


def settle(kind: type[Made], layer: str, said: Mapping[str, Any]) -> Made:
    """Make settings of that kind from named values. An unknown name raises a UsageError, which suggests a similar one."""
    known = names_of(kind)  # type: ignore[arg-type]  # mypy: classes can be hashed, too
    for name in said:
        if name not in known:
            raise UsageError(f"layer {layer!r} has no setting {name!r}{suggest(name, known)}")
    return kind(**said)


@cache
def names_of(kind: type[Any]) -> tuple[str, ...]:
    """The names of these settings."""
    return tuple(each.name for each in fields(kind))
