"""What a member says before it leaves reaches those who are there."""

import asyncio
from typing import Any

import pytest

import inga
from inga.layers.shape import Faults

from .helpers import Party, Place, Run, confirmed, texts, until

pytestmark = pytest.mark.network


def test_words_before_anybody_was_heard_are_not_lost(run: Run, place: Place) -> None:
    """The second and third wait for company of the first, which nobody has acknowledged yet."""

    async def main() -> None:
        where = place(members=2)
        async with inga.join("leaving", "bob", **where) as bob:
            async with inga.join("leaving", "alice", **where) as alice:
                for word in (b"one", b"two", b"three"):
                    await alice.send(word)
                    await asyncio.sleep(0)
            assert await texts(bob, 3) == ["one", "two", "three"]

    run(main())


@pytest.mark.parametrize("order", ["fifo", "vector", "co", "sco"])
def test_a_member_that_fails_blocks_nobody_over_links_that_lose(run: Run, party: Party, order: str) -> None:
    """Every third datagram is lost, of its goodbyes as well. It acknowledges nothing of what is sent now."""

    async def main() -> None:
        async with party(3, order=order, faults=Faults(loss=0.3), datagram_max=1472, seed=5) as groups:
            alice, bob, cathy = groups
            cathy.stack.fail(inga.IngaError("the disk is full"))
            cathy.receive([])
            with pytest.raises(inga.UsageError, match="the disk is full"):
                await cathy.send(b"nothing goes any more")
            receipts: list[Any] = []
            async with asyncio.TaskGroup() as tasks:
                for group in (alice, bob):
                    tasks.create_task(texts(group, 40))
                for _ in range(40):
                    receipts += [await group.send(b"." * 900) for group in (alice, bob)]
            await confirmed(receipts)
            assert alice.stack.left == bob.stack.left == {2}
            await until(lambda: cathy.stack.has_left)
            assert alice.stack.counts["lost"] > 20 and bob.stack.counts["lost"] > 20

    run(main())
