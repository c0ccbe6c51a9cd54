"""The rungs over real sockets, where somebody asked for them."""

from typing import Any

import pytest

import inga
from inga.recipes import ladder

from .helpers import Party, Run, text, texts

pytestmark = pytest.mark.network


@pytest.mark.parametrize("order", ladder())
def test_a_conversation(run: Run, party: Party, order: str) -> None:
    """Two messages of one member, one after the other, to all: even the weakest get that right."""

    async def talk() -> None:
        async with party(order=order, unsafe=True) as (alice, bob, cathy):
            assert alice.recipe.unsafe
            for word in ("one", "two"):
                await alice.send(word.encode())
                for other in (bob, cathy):
                    assert await texts(other, 1) == [word]

    run(talk())


@pytest.mark.parametrize(
    ("order", "seen"), [("pairwise", ["Yes!", "Lunch?"]), ("history", ["Lunch?", "Yes!"])]
)
def test_lunch(run: Run, party: Party, order: str, seen: list[str]) -> None:
    """The lecture's scene: the way from alice to cathy takes 0.2 s longer."""

    async def talk() -> None:
        async with party(order=order, unsafe=True) as (alice, bob, cathy):
            alice.delay(to="cathy", seconds=0.2)
            await alice.send(b"Lunch?")
            async for delivery in bob:
                assert text(delivery) == "Lunch?"
                await bob.send(b"Yes!")
                break
            assert await texts(cathy, 2) == seen

    run(talk())


@pytest.mark.parametrize("order", ladder())
def test_refused_unless_asked_for(run: Run, place: Any, order: str) -> None:
    async def enter() -> None:
        async with inga.join("lunch", "alice", order=order, **place()):
            pass

    with pytest.raises(inga.UsageError, match=f"order {order!r} is there to learn from.*unsafe=True"):
        run(enter())
