"""The return value of `inga.join`: a membership that begins with `async with` and ends with its block."""

import warnings
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, final

from inga.model.errors import UsageError
from inga.net.group import Group


@final
class Joining:
    """Not a member yet: `async with inga.join(...) as group:` joins, gives a `Group`, and leaves at the end.

    If `async with` is forgotten, type checkers report it, and an error says what to write.
    """

    __slots__ = ("_begun", "_entered", "_membership", "_who")

    def __init__(self, who: str, membership: AbstractAsyncContextManager[Group]) -> None:
        self._who = who
        self._membership = membership
        self._entered = self._begun = False

    async def __aenter__(self) -> Group:
        if self._begun:
            raise UsageError(
                f"inga.join of {self._who} was entered already: call inga.join again for each `async with`"
            )
        self._entered = self._begun = True
        return await self._membership.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._membership.__aexit__(kind, error, traceback)

    def __del__(self) -> None:
        if not self._entered:
            warnings.warn(self._advice("nothing was done with it"), RuntimeWarning, stacklevel=2)

    def __repr__(self) -> str:
        return f"<inga.join of {self._who}: a member only inside `async with`>"

    def _advice(self, wrong: str) -> str:
        return f"inga.join of {self._who}: {wrong}; write `async with inga.join(...) as group:` and use `group` inside"

    if not TYPE_CHECKING:  # type checkers refuse these by themselves

        def _refuse(self, wrong: str) -> NoReturn:
            self._entered = True  # the error is enough: no warning in `__del__`
            raise UsageError(self._advice(wrong))

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(Group, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self._refuse(f".{name} was asked of what is not a member yet")

        def __await__(self) -> Iterator[Any]:
            self._refuse("it was awaited")

        def __aiter__(self) -> Any:
            self._refuse("it was iterated over")

        def __enter__(self) -> Any:
            self._refuse("`with` stands where `async with` is needed")

        def __exit__(self, *_: object) -> None:
            pass
