"""Whoever forgets `async with` is told so in one sentence."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import inga

from .helpers import Place, Run


async def sends() -> None:
    await joining().send(b"hello")


async def awaits() -> None:
    await joining()


async def iterates() -> None:
    async for _ in joining():
        pass


async def opens_plainly() -> None:
    with joining():
        pass


def joining() -> Any:
    return inga.join("lunch", "alice", members=["alice", "bob"], via="udp://239.7.7.7:7400?interface=lo")


@pytest.mark.parametrize(
    ("forgets", "said"),
    [
        (sends, r"\.send was asked of what is not a member yet"),
        (awaits, "it was awaited"),
        (iterates, "it was iterated over"),
        (opens_plainly, "`with` stands where `async with` is needed"),
    ],
)
def test_async_with_forgotten(forgets: Callable[[], Awaitable[None]], said: str) -> None:
    with pytest.raises(inga.UsageError, match=f"'alice' in 'lunch': {said}; write `async with inga.join"):
        asyncio.run(forgets())  # type: ignore[arg-type]


def test_a_join_that_nobody_enters_is_noticed() -> None:
    with pytest.warns(
        RuntimeWarning, match="'alice' in 'lunch': nothing was done with it; write `async with"
    ):
        joining()
        gc.collect()


def test_what_no_group_has_is_an_ordinary_error() -> None:
    with pytest.warns(RuntimeWarning), pytest.raises(AttributeError, match="no attribute 'sned'"):
        _ = joining().sned
    with pytest.warns(RuntimeWarning):
        assert "a member only inside `async with`" in repr(joining())


def test_one_join_is_one_membership(run: Run, place: Place) -> None:
    async def main() -> None:
        joining = inga.join("lunch", "alice", **place(members=1))
        async with joining:
            pass
        with pytest.raises(
            inga.UsageError, match=r"'alice' in 'lunch' was entered already: call inga.join again"
        ):
            async with joining:
                pass

    run(main())
