"""SCO over real sockets: the triangle, every carrier, levels, side conversations, silence, leaving."""

import asyncio

import pytest

import inga
from inga.layers.sco.layer import Sco
from inga.trial.workload import Workload

from .helpers import CARRIERS, Party, Run, texts, until
from .trials import ROUGH, judged, play

pytestmark = pytest.mark.network


@pytest.mark.parametrize("via", CARRIERS)
def test_the_triangle(run: Run, party: Party, via: str) -> None:
    """1 to 3, 1 to 2, 2 to 3, and the first copy is late."""

    async def main() -> None:
        async with party(3, via, order="sco") as (alice, bob, cathy):
            alice.delay(to="cathy", seconds=0.2)
            await alice.send(b"cause", to="cathy")
            await alice.send(b"hint", to="bob")
            assert await texts(bob, 1) == ["hint"]
            await bob.send(b"effect", to="cathy")
            assert await texts(cathy, 2) == ["cause", "effect"]

    run(main())


@pytest.mark.parametrize("via", CARRIERS)
@pytest.mark.parametrize("deliver", ["causal", "confirmed"])
def test_a_rough_network(run: Run, party: Party, via: str, deliver: str) -> None:
    workload = Workload(4, 80, 300, subset=2)

    async def main() -> None:
        async with party(4, via, order="sco", deliver=deliver, faults=ROUGH, seed=3) as groups:
            diaries = await play(groups, workload)
            assert judged(diaries, workload) == {}

    run(main())


def test_one_datagram_for_all(run: Run, party: Party) -> None:
    workload = Workload(4, 60, 100, subset=2)

    async def main() -> None:
        async with party(4, order="sco", protocol={"multicast_from": 2}, faults=ROUGH, seed=5) as groups:
            diaries = await play(groups, workload)
            assert judged(diaries, workload) == {}

    run(main())


def test_nobody_is_sent_what_is_not_for_them(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, "unicast", order="sco") as (alice, bob, cathy):
            for number in range(20):
                await alice.send(f"{number}".encode(), to="bob")
                assert await texts(bob, 1) == [f"{number}"]
            machine = _machine(cathy)
            assert machine.expected_lsn[0] == 1
            assert machine.covered[0] == 1, "cathy knows nothing of them, not even that there are any"
            await alice.send(b"end", to=["bob", "cathy"])
            assert await texts(cathy, 1) == ["end"]
            assert machine.covered[0] == 22

    run(main())


def test_a_member_that_never_speaks_blocks_nobody(run: Run, party: Party) -> None:
    """Bob hears of what dave was told, and dave says nothing: dave is asked."""

    async def main() -> None:
        async with party(4, order="sco") as (alice, bob, cathy, dave):
            await alice.send(b"to dave", to="dave")
            await alice.send(b"to cathy", to="cathy")
            assert await texts(cathy, 1) == ["to cathy"]
            await cathy.send(b"to bob", to="bob")
            assert await texts(bob, 1) == ["to bob"]
            assert await texts(dave, 1) == ["to dave"]

    run(main())


def test_receipts_echo_and_levels(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="sco", deliver="causal") as (alice, bob, _cathy):
            receipt = await alice.send(b"x", to=["alice", "bob"])
            await receipt.reached("confirmed")
            assert await texts(alice, 1) == ["x"]
            assert await texts(bob, 1) == ["x"]
            with pytest.raises(inga.UsageError, match="'acknowledged' is not a level of this group's order"):
                await receipt.reached("acknowledged")

    run(main())


@pytest.mark.parametrize("deliver", ["received", "accepted", "causal", "confirmed"])
def test_large_messages_at_every_level(run: Run, party: Party, deliver: str) -> None:
    large = bytes(range(256)) * 400

    async def main() -> None:
        async with party(3, order="sco", deliver=deliver, datagram_max=1472) as (alice, bob, cathy):
            await alice.send(large, to="bob")
            await alice.send(b"all")
            assert {bytes((await anext(aiter(bob))).data) for _ in range(2)} == {large, b"all"}
            assert await texts(cathy, 1) == ["all"]

    run(main())


def test_levels_and_options_that_are_none(run: Run, party: Party) -> None:
    async def main() -> None:
        for options, why in (
            (
                {"deliver": "acknowledged"},
                "'sco' delivers at level 'received' or 'accepted' or 'causal' or 'conf",
            ),
            ({"protocol": {"widow": 1}}, "'sco' has no option 'widow'"),
            ({"protocol": {"window": 0}}, "window is a whole number of at least 1, not 0"),
            ({"protocol": {"window": "many"}}, "window is a whole number of at least 1, not 'many'"),
            ({"protocol": {"window": 5000}}, "window is a whole number from 0 to 4096, not 5000"),
            ({"protocol": {"poll_after": "soon"}}, "poll_after is a number of seconds"),
            ({"protocol": {"confirm_every": -1}}, "confirm_every is a whole number of at least 0, not -1"),
            ({"protocol": {"ack_level": "soon"}}, "ack_level is causal or continuous, not 'soon'"),
            ({"protocol": {"mode": "wait"}}, "'sco' has no option 'mode'"),
        ):
            with pytest.raises(inga.UsageError, match=why):
                async with party(2, order="sco", **options):
                    pass

    run(main())


def test_when_all_is_said_nobody_speaks(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="sco", detect=None) as groups:
            alice, bob, cathy = groups
            await alice.send(b"x", to="bob")
            await cathy.send(b"y")
            assert sorted(await texts(bob, 2)) == ["x", "y"]
            assert await texts(alice, 1) == ["y"]
            await until(lambda: all(_machine(group).is_idle for group in groups))
            await until(lambda: all(group.stack.ready().wake is None for group in groups))
            before = [dict(group.stack.counts) for group in groups]
            await asyncio.sleep(
                0.05
            )  # with no timer set, only what is under way could still make anybody speak
            assert [dict(group.stack.counts) for group in groups] == before

    run(main())


def test_the_others_go_on_when_one_leaves(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="sco") as (alice, bob, cathy):
            await alice.send(b"one")
            assert await texts(bob, 1) == await texts(cathy, 1) == ["one"]
            await cathy.close()
            await until(lambda: alice.view.left == bob.view.left == ("cathy",))
            receipt = await alice.send(b"two")
            await receipt.reached("confirmed")
            assert await texts(bob, 1) == ["two"]

    run(main())


def test_to_another_order_and_back(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="vector") as (alice, bob, cathy):
            await alice.send(b"by vector")
            await bob.use("sco")
            await alice.send(b"by sco", to="cathy")
            assert await texts(cathy, 2) == ["by vector", "by sco"]
            await alice.use("fifo")
            await cathy.send(b"by fifo")
            assert await texts(bob, 2) == ["by vector", "by fifo"]

    run(main())


def test_a_slow_reader_closes_the_door_and_opens_it_again(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, order="sco", deliver="causal", queue_max=20_000) as (alice, bob):
            sending = asyncio.ensure_future(alice.send_many([b"x" * 1000] * 3000))
            await until(lambda: not alice.stack.writable and _machine(bob).is_behind)
            received = 0
            async for batch in bob.batches():
                received += len(batch)
                if received == 3000:
                    break
            await sending

    run(main())


def _machine(group: inga.Group) -> "object":
    layer = group.stack.layer("sco")
    assert isinstance(layer, Sco)
    return layer.machine
