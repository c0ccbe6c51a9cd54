"""The driver between sockets, stack and application: what it does when something goes wrong in a turn."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import inga
from inga.net.driver import Driver
from inga.stack.stack import Ready

from .helpers import Party, Run, until

TURNS: dict[str, Callable[[inga.Group], object]] = {
    "datagrams": lambda group: group.receive([]),
    "its end": lambda group: group._driver.end_turn(),
    "time": lambda group: group._driver._on_timer(),
    "a send": lambda group: group._driver.hand_over(),
}


class Mistaken:
    """In the place of what follows every turn: raises something so many times."""

    def __init__(self, times: int, error: Exception) -> None:
        self.left = times
        self._error = error

    def follow(self, _: object) -> None:
        if self.left:
            self.left -= 1
            raise self._error

    def is_clear(self, _: object) -> bool:
        return True

    def waits_at(self, _: object) -> bool:
        return False


async def failed_by(alice: inga.Group, turn: str, mistaken: Mistaken) -> tuple[BaseException, list[Any]]:
    """What ends the iteration after such a turn, and what the loop was told."""
    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    states: Any = mistaken
    alice._reading.states = states
    TURNS[turn](alice)
    with pytest.raises(inga.IngaError) as caught:
        async for _ in alice:
            pass
    return caught.value, told


@pytest.mark.network
@pytest.mark.parametrize("turn", TURNS)
def test_a_mistake_in_a_turn_fails_the_group_and_the_others_are_told(
    run: Run, party: Party, turn: str
) -> None:
    async def main() -> None:
        async with party(2, "unicast", detect=30.0) as (alice, bob):
            mistake = ZeroDivisionError("of ours")
            error, told = await failed_by(alice, turn, Mistaken(1, mistake))
            assert str(error) == "a mistake inside inga, please report it: ZeroDivisionError: of ours"
            assert error.__cause__ is mistake and told == [mistake]
            await until(lambda: bob.view.names == ("bob",))
            with pytest.raises(inga.UsageError, match="the group has failed: a mistake inside inga"):
                alice.post(b"more")

    run(main())


@pytest.mark.network
def test_what_cannot_take_its_leave_is_asked_nothing_more(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, "unicast") as (alice, _):
            mistaken = Mistaken(1000, ZeroDivisionError("of ours"))
            error, told = await failed_by(alice, "datagrams", mistaken)
            assert str(error).endswith("ZeroDivisionError: of ours")
            for turn in TURNS:
                if turn != "time":  # it was stopped with the driver
                    TURNS[turn](alice)
            assert mistaken.left == 998 and len(told) == 1

    run(main())


@pytest.mark.network
def test_an_error_of_ours_in_a_turn_is_the_one_that_is_raised(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, "unicast") as (alice, _):
            gap = inga.IngaError("lost")
            assert (await failed_by(alice, "its end", Mistaken(1, gap)))[0] is gap

    run(main())


def test_the_timer_is_for_the_earliest_time_that_was_asked_for(run: Run) -> None:
    async def main() -> None:
        nothing: Any = SimpleNamespace(transmit=None, add=None, states=None)
        stack: Any = SimpleNamespace(view=None, paused=None)
        driver = Driver(stack, nothing, nothing, nothing, on_view=skip_it, on_pause=skip_it, on_error=skip_it)
        now = asyncio.get_running_loop().time()
        for wake, due in ((now + 60, 60), (now + 90, 60), (now + 30, 30), (None, 30), (now + 45, 30)):
            driver.act(Ready([], [], wake, True, None, []))
            assert driver._timer is not None
            assert driver._timer.when() == now + due
        driver.stop()

    def skip_it(*_: object) -> None:
        raise AssertionError

    run(main())
