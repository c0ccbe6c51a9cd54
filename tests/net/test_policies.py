"""Live groups that are cut, or have a member that does not read: who pauses, who is expelled, and what one is told."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import inga
from inga.obg import ObjectClass, method

from .helpers import Party, Place, Run, until

pytestmark = pytest.mark.network

DETECT = 0.5


class Counter(ObjectClass):
    def initial(self) -> int:
        return 0

    @method()
    async def inc(self, ctx: Any) -> None:
        ctx.effect(lambda count: count + 1)


async def items_of(group: inga.Group, found: list[Any]) -> None:
    async for item in group.items():
        found.append(item)  # noqa: PERF401  # as they come


def test_a_program_that_tries_again_and_again_leaves_time_for_what_ends_the_pause(
    run: Run, party: Party
) -> None:
    """Nothing that it awaits ever waits for anything."""

    async def insist(group: inga.Group, refused: list[inga.IngaError]) -> None:
        while True:
            try:
                await group.call("hits", "inc")
                await group.send(b"x")
            except inga.NoMajority as error:
                refused.append(error)

    async def main() -> None:
        async with party(3, order="total", detect=DETECT, objects={"hits": Counter}) as (alice, bob, cathy):
            alice.carrier.close()
            bob.carrier.close()
            refused: list[inga.IngaError] = []
            insisting = asyncio.create_task(insist(cathy, refused))
            await until(lambda: len(refused) > 5)
            await cathy.go_on()
            await until(lambda: cathy.view.names == ("cathy",))
            insisting.cancel()

    run(main())


def test_who_lost_the_majority_is_told_in_every_way(run: Run, party: Party) -> None:
    """Two of three die. Sends, calls and whoever waits hear of it; then a person decides, and the last one goes on."""

    async def main() -> None:
        async with party(3, order="total", detect=DETECT, objects={"hits": Counter}) as (alice, bob, cathy):
            await cathy.call("hits", "inc")
            found: list[Any] = []
            reader = asyncio.create_task(items_of(cathy, found))
            alice.carrier.close()
            bob.carrier.close()
            with pytest.raises(inga.NoMajority, match="not known"):
                await cathy.call("hits", "inc")  # under way when the pause begins
            for send in (
                lambda: cathy.send(b"x"),
                lambda: cathy.send_many([b"x"]),
                lambda: cathy.call("hits", "inc"),
                cathy.writable,
            ):
                with pytest.raises(inga.NoMajority, match="without alice, bob") as raised:
                    await send()
                assert raised.value.missing == ("alice", "bob")
            with pytest.raises(inga.NoMajority):
                cathy.post(b"x")
            with pytest.raises(inga.NoMajority):
                cathy.oneway("hits", "inc")
            with pytest.raises(inga.UsageError, match="the order stays 'total': paused"):
                await cathy.use("fifo")
            await until(lambda: any(isinstance(item, inga.Paused) for item in found))
            view = await cathy.go_on()
            assert not cathy._resuming and not cathy._changes
            assert view.names == ("cathy",) and view.failed == ("alice", "bob")
            await cathy.call("hits", "inc")
            assert cathy.state("hits") >= 2
            await until(lambda: isinstance(found[-1], inga.View))
            assert [type(item) for item in found[-3:]] == [inga.Paused, inga.Resumed, inga.View]
            reader.cancel()
            for group in (alice, bob):
                await group.close(linger=0)

    run(main())


def test_a_reader_that_never_reads_is_expelled_and_told(run: Run, place: Place, group_name: str) -> None:
    """The one that does not read is named, and nobody else is blamed for it."""

    async def main() -> None:
        where = {**place(members=3), "order": "fifo", "queue_max": 2000, "window": 4000}
        policy = {"slow": "expel", "patience": 1.0, "detect": 3.0}
        async with (
            inga.join(group_name, "alice", **where, **policy) as alice,
            inga.join(group_name, "bob", **where, **policy) as bob,
            inga.join(group_name, "cathy", **where, **policy) as cathy,
        ):
            await asyncio.gather(alice.ready(), bob.ready(), cathy.ready())
            reader = asyncio.create_task(items_of(bob, []))
            while len(alice.view) == 3:
                await alice.send(b"." * 3000)
            assert alice.view.names == ("alice", "bob") and alice.view.failed == ("cathy",)
            assert alice.waits.keys() == {"cathy"} and alice.waits["cathy"] >= 1.0
            with pytest.raises(inga.Excluded, match="too slow"):
                await items_of(cathy, [])
            reader.cancel()

    run(main())


def test_parts_that_come_together_are_told_at_their_place(run: Run, place: Place, group_name: str) -> None:
    async def main() -> None:
        async with inga.join(group_name, "alice", **place(members=1)) as alice:
            merged: list[tuple[tuple[str, ...], ...]] = []
            alice.on_merge(lambda view: merged.append(view.merged))
            parts = (("alice",), ("bob", "cathy"))
            alice._reading.add([replace(alice.view, merged=parts)])
            items = alice.items()
            assert await anext(items) == alice.view and merged == []
            assert (await anext(items)).merged == parts  # type: ignore[union-attr]
            assert merged == [parts]

    run(main())


def test_members_have_to_mean_the_same(run: Run, place: Place, group_name: str) -> None:
    async def main() -> None:
        where = place(members=2)
        async with (
            inga.join(group_name, "alice", **where) as alice,
            inga.join(group_name, "bob", **where, partition="primary"),
        ):
            with pytest.raises(inga.NotReady):
                await alice.ready(timeout=0.3)

    run(main())
