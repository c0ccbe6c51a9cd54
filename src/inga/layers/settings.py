"""Settings of layers: frozen dataclasses with their checks, made from what somebody says by name."""

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
    """Settings of that kind; a name that they do not have is refused."""
    known = names_of(kind)  # type: ignore[arg-type]  # mypy: classes can be hashed, too
    for name in said:
        if name not in known:
            raise UsageError(f"layer {layer!r} has no setting {name!r}{suggest(name, known)}")
    return kind(**said)


@cache
def names_of(kind: type[Any]) -> tuple[str, ...]:
    """What can be chosen."""
    return tuple(each.name for each in fields(kind))
