"""What a member says before it leaves reaches those who are there."""

import asyncio
from typing import Any

import pytest

import inga
from inga.layers.shape import Faults

from .helpers import CARRIERS, Party, Place, Run, confirmed, texts, until

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


@pytest.mark.parametrize("order", ["none", "fifo", "vector", "co", "sco", "relay", "total"])
def test_the_others_go_on_while_somebody_has_not_come_yet(
    run: Run, place: Place, group_name: str, order: str
) -> None:
    """One leaves before another has come: that one gets from those who are left what was said to all."""

    async def main() -> None:
        where = {**place(members=3), "order": order}
        async with inga.join(group_name, "alice", **where) as alice:
            async with inga.join(group_name, "bob", **where) as bob:
                await asyncio.gather(alice.ready(2), bob.ready(2))
                await bob.send(b"one")
                await until(lambda: alice.stack.delivered or alice.stack.held)
                await bob.close(linger=0)
            await until(lambda: alice.stack.left)
            await alice.send(b"two")
            assert alice.view.number == 1
            async with inga.join(group_name, "cathy", **where) as cathy:
                await until(lambda: alice.view.left == cathy.view.left == ("bob",))
                await alice.send(b"three")
                heard = await texts(cathy, 3)
                assert (sorted(heard[:2]), heard[2]) == (["one", "two"], "three")
                assert "one" in await texts(alice, 1 if order != "total" else 3)

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
            await until(lambda: alice.view.number == bob.view.number == 2)
            assert alice.view == bob.view
            assert (alice.view.names, alice.view.left) == (("alice", "bob"), ("cathy",))
            await until(lambda: cathy.stack.has_left)
            assert alice.stack.counts["lost"] > 20 and bob.stack.counts["lost"] > 20

    run(main())


@pytest.mark.parametrize("via", CARRIERS)
def test_a_delay_stays_with_the_member_it_was_asked_for(run: Run, party: Party, via: str) -> None:
    """Members have other indices once somebody has left, and there are fewer of them."""

    async def main() -> None:
        async with party(3, via) as (alice, bob, cathy):
            alice.delay("cathy", 0.1)
            await bob.close()
            await until(lambda: alice.view.left == cathy.view.left == ("bob",))
            before = asyncio.get_running_loop().time()
            await alice.send(b"late")
            assert await texts(cathy, 1) == ["late"]
            assert asyncio.get_running_loop().time() - before >= 0.1
            await (await cathy.send(b"at once")).reached("confirmed")

    run(main())


@pytest.mark.parametrize("via", CARRIERS)
def test_what_was_to_leave_later_for_one_that_has_left_does_not_leave(
    run: Run, party: Party, via: str
) -> None:
    async def main() -> None:
        async with party(3, via) as (alice, bob, cathy):
            alice.delay("cathy", 0.05)
            alice.post(b"too late")
            await cathy.close(linger=0)
            await until(lambda: alice.view.left == bob.view.left == ("cathy",))
            await until(lambda: alice.stack.layer("shape").wake is None)  # type: ignore[union-attr]
            await (await bob.send(b"go on")).reached("confirmed")
            assert await texts(alice, 1) == ["go on"]

    run(main())
