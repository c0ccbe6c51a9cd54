"""The numbers of processes in a directory that members share: no two get the same, whoever gives them."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

import inga
from inga.model.view import Member, View
from inga.net.traces import LiveTraces
from inga.recipes import Options, find
from inga.stack.stack import Stack
from inga.trace import read_processes
from inga.trace.reader import read_description
from inga.trial.manifest import manifest_of

from ..objects.classes import Counter

FOUNDERS = ("alice", "bob", "cathy")
Play = Callable[[], Coroutine[Any, Any, None]]


def stack_of(name: str, process: int, total: int = 3, order: str = "vector") -> Stack:
    """One that is alone in its view."""
    view = View(2, (Member(name),), order, traced=True, attempt=1, processes=(process,), total=total)
    return Stack(find(order).build(Options()), 0, view, rng=Random(0), now=0.0)


def traces_of(directory: Path, stack: Stack, *, hosted: bool = False) -> LiveTraces:
    recipe = find("object" if hosted else "vector")
    layout = recipe.layout(list(FOUNDERS), {"hits": Counter} if hosted else None, {})
    manifest = manifest_of(recipe, FOUNDERS, layout, group="lunch", source="live", full=True)
    return LiveTraces(directory, manifest, stack, founders=len(FOUNDERS), full=True)


def played(play: Play) -> None:
    asyncio.run(asyncio.wait_for(play(), 60))


def test_two_leaders_who_cannot_hear_each_other_give_no_number_twice(tmp_path: Path) -> None:
    async def play() -> None:
        here, there = (traces_of(tmp_path, stack_of(*who)) for who in (("alice", 0), ("bob", 1)))
        given = [here.reserve(1, 3), there.reserve(2, 3), here.reserve(2, 4), there.reserve(1, 6)]
        assert given == [[3], [4, 5], [6, 7], [8]]

    played(play)


def test_what_a_leader_has_reserved_stays_so_when_it_is_gone(tmp_path: Path) -> None:
    """Nobody ever was a process of these numbers: it lacks no rows, and others may be named after it."""

    async def play() -> None:
        assert traces_of(tmp_path, stack_of("alice", 0)).reserve(2, 3) == [3, 4]
        after = traces_of(tmp_path, stack_of("bob", 1))
        assert after.reserve(1, 3) == [5]
        dave = traces_of(tmp_path, stack_of("dave", 5, 6))
        dave.trace(5).row("view", 0.0, 2)
        assert [(file.name, file.complete) for file in read_processes(tmp_path)[3:]] == [
            ("process 3", True), ("process 4", True), ("dave", False),
        ]  # fmt: skip
        await dave.close(True)

    played(play)
    files = read_processes(tmp_path)
    assert [(file.complete, file.crashed, file.last_pos) for file in files[3:]] == [
        (True, True, 0), (True, True, 0), (True, False, 1),
    ]  # fmt: skip
    assert [file.complete for file in files[:3]] == [False] * 3, "founders were there, and lost what they had"


def test_a_number_is_reserved_with_those_of_the_copies_behind_it(tmp_path: Path) -> None:
    async def play() -> None:
        here = traces_of(tmp_path, stack_of("alice", 0, order="object"), hosted=True)
        assert here.reserve(1, 3) == [3]
        assert here.names == [*FOUNDERS, *(f"{name}/hits" for name in FOUNDERS)]
        assert here.numbers(3) == [6, 7]
        assert sorted(read_description(tmp_path).known) == [6, 7]

    played(play)


def test_nobody_begins_under_a_number_that_somebody_has(tmp_path: Path) -> None:
    """Who gave it had no trace, or could not reserve it."""

    async def play() -> None:
        dave, erin = (traces_of(tmp_path, stack_of(name, 3, 4)) for name in ("dave", "erin"))
        dave.trace(3)
        with pytest.raises(inga.UsageError, match="has a process 3 already, 'dave': two parts"):
            erin.trace(3)
        await dave.close(True)

    played(play)


def test_a_place_where_nothing_can_be_reserved_keeps_nobody_out(tmp_path: Path) -> None:
    async def play() -> None:
        stack = stack_of("alice", 0)
        here = traces_of(tmp_path, stack)
        assert here.reserve(1, 3) == [3]
        (tmp_path / "processes" / "3.json").unlink()
        (tmp_path / "processes").rmdir()
        (tmp_path / "processes").write_text("in the way")
        assert here.reserve(2, 4) == [4, 5]
        (notice,) = stack.ready().notices
        assert "may give newcomers the same numbers" in notice and "4.json cannot be written" in notice

    played(play)
