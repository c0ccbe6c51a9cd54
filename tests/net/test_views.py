"""Groups that change while they run: latecomers, another order, gates; over real sockets."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.certify.certificate import certify
from inga.certify.local import Chunks
from inga.pipeline.storage import open_trace, read_chunk
from inga.trace import read_processes, rows
from inga.trial.people import member_names

from .helpers import CARRIERS, LOOPS, FreePort, Party, Place, Run, take, text, texts, until
from .trials import ROUGH

pytestmark = pytest.mark.network

Come = Callable[..., Awaitable[inga.Group]]
Meeting = Callable[..., AbstractAsyncContextManager[tuple[list[inga.Group], Come]]]

CHECKED = ["integrity", "complete", "fifo", "stamps", "causal"]


@pytest.fixture
def meeting(place: Place, free_port: FreePort, group_name: str) -> Meeting:
    """A group whose members are here, and a way for others to come later."""

    @asynccontextmanager
    async def meet(
        members: int = 2, via: str = "udp", **options: Any
    ) -> AsyncIterator[tuple[list[inga.Group], Come]]:
        where = place(via, members)
        async with AsyncExitStack() as stack:

            async def come(name: str, **more: Any) -> inga.Group:
                address = None if via == "udp" else f"127.0.0.1:{free_port()}"
                late = {"late": True, "address": address, **options, **more}
                return await stack.enter_async_context(inga.join(group_name, name, **{**where, **late}))

            groups = [
                await stack.enter_async_context(inga.join(group_name, name, **where, **options))
                for name in member_names(members)
            ]
            await asyncio.gather(*(group.ready() for group in groups))
            yield groups, come

    return meet


# Coming late


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("via", CARRIERS)
def test_a_latecomer(run: Run, meeting: Meeting, via: str, loop: str) -> None:
    async def main() -> None:
        async with meeting(2, via) as ((alice, bob), come):
            alice.post(b"before")
            assert await texts(bob, 1) == ["before"]
            heard: list[str] = []
            alice.on_join(heard.append)
            cathy = await come("cathy")
            await asyncio.gather(alice.ready(3), bob.ready(3), cathy.ready())
            assert heard == ["bob", "cathy"]
            for group in (alice, bob, cathy):
                assert group.view.names == group.here == ("alice", "bob", "cathy")
                assert (group.view.number, group.view.joined) == (2, ("cathy",))
            for group in (alice, bob, cathy):
                group.post(group.me.encode())
            assert sorted(await texts(alice, 2)) == ["bob", "cathy"]
            assert sorted(await texts(bob, 2)) == ["alice", "cathy"]
            assert sorted(await texts(cathy, 2)) == ["alice", "bob"]
            receipt = await cathy.send(b"to one", to="bob")
            await receipt.reached("confirmed")
            assert await texts(bob, 1) == ["to one"]

    run(main(), loop=loop)


@pytest.mark.parametrize("via", CARRIERS)
def test_latecomers_at_once_while_the_others_talk(run: Run, meeting: Meeting, via: str) -> None:
    """Each gets exactly what was sent after it was let in: from some number on, all of every founder."""
    count = 300

    async def main() -> None:
        async with meeting(2, via, datagram_max=1400) as (founders, come):
            arrived = asyncio.Event()

            async def talk(group: inga.Group) -> None:
                for number in range(count):
                    await group.send(b"%d" % number)
                    if number == count // 2:
                        await arrived.wait()  # the second half is for all
                    if number % 5 == 0:
                        await asyncio.sleep(0)

            talking = [asyncio.create_task(talk(group)) for group in founders]
            late = await asyncio.gather(come("cathy"), come("dave"))
            for group in (*founders, *late):
                await group.ready(4)
            arrived.set()
            await asyncio.gather(*talking)
            assert {group.view.names[:2] for group in (*founders, *late)} == {("alice", "bob")}
            assert sorted(late[0].view.names) == ["alice", "bob", "cathy", "dave"]
            for group in late:
                seen: dict[str, list[int]] = {"alice": [], "bob": []}
                async for delivery in group:
                    seen[delivery.sender].append(int(text(delivery)))
                    if all(numbers and numbers[-1] == count - 1 for numbers in seen.values()):
                        break
                for numbers in seen.values():
                    assert numbers == list(range(numbers[0], count)) and numbers[0] <= count // 2 + 1
            for group, other in (founders, founders[::-1]):
                assert await texts(group, count) == [str(number) for number in range(count)], other.me

    run(main())


@pytest.mark.parametrize("via", CARRIERS)
def test_a_name_that_is_taken(run: Run, meeting: Meeting, via: str) -> None:
    async def main() -> None:
        async with meeting(2, via) as ((alice, bob), come):
            await come("cathy")
            with pytest.raises(
                inga.UsageError, match="'cathy' cannot join: there is a member 'cathy' already"
            ):
                await come("cathy")
            await asyncio.gather(alice.ready(3), bob.ready(3))
            await (await alice.send(b"still")).reached("confirmed")

    run(main())


def test_a_latecomer_who_cannot_stay_leaves_again(run: Run, meeting: Meeting, tmp_path: Path) -> None:
    """It was let in, and then its trace could not be written: nobody waits for it."""
    (tmp_path / "manifest.json").write_text("{")

    async def main() -> None:
        async with meeting(2) as ((alice, bob), come):
            with pytest.raises(inga.IngaError):
                await come("cathy", trace=tmp_path)
            await until(lambda: alice.view.left == bob.view.left == ("cathy",))
            assert alice.view == bob.view and alice.view.names == ("alice", "bob")
            await (await alice.send(b"still")).reached("confirmed")
            assert await texts(bob, 1) == ["still"]

    run(main())


def test_a_latecomer_with_a_list_of_another_group_is_told(run: Run, meeting: Meeting) -> None:
    async def main() -> None:
        async with meeting(2) as (_, come):
            with pytest.raises(inga.UsageError, match=r"other founders .* founded by alice, bob"):
                await come("cathy", members=["alice", "dora"])

    run(main())


def test_a_latecomer_that_nobody_hears_waits(
    run: Run, meeting: Meeting, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inga.net.join.WARN_AFTER", 0.01)

    async def main() -> None:
        async with meeting(2) as ((alice, bob), come):
            for group in (alice, bob):
                group.carrier.close()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(come("cathy"), 0.2)
            for group in (alice, bob):
                await group.close(linger=0)

    run(main())
    assert "cathy still waits to be let in" in caplog.text


# Another order


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("faults", [None, ROUGH])
def test_use_while_everybody_sends(run: Run, meeting: Meeting, loop: str, faults: inga.Faults | None) -> None:
    """Nothing is lost or doubled, and each view stands between the messages of before and after."""
    count, orders = 1500, ("fifo", "vector", "none", "fifo")

    async def main() -> None:
        async with meeting(3, faults=faults, seed=4, order="vector") as (groups, _):

            async def talk(group: inga.Group) -> None:
                for number in range(count):
                    await group.send(b"%05d" % number + bytes(100))
                    if number % 10 == 0:
                        await asyncio.sleep(0)

            async def listen(group: inga.Group) -> list[Any]:
                items: list[Any] = []
                left = 2 * count
                async for item in group.items():
                    items.append(item)
                    left -= isinstance(item, inga.Delivery)
                    if not left and group.view.number == items_views(items)[-1] == 1 + len(orders):
                        return items
                raise AssertionError

            async def change() -> None:
                for number, order in enumerate(orders):
                    view = await groups[number % 3].use(order)
                    assert (view.recipe, view.number) == (order, number + 2)

            talking = [asyncio.create_task(talk(group)) for group in groups]
            listening = [asyncio.create_task(listen(group)) for group in groups]
            await change()
            await asyncio.gather(*talking)
            for group, heard in zip(groups, await asyncio.gather(*listening), strict=True):
                assert items_views(heard) == [1, 2, 3, 4, 5]
                number, got = 0, []
                for item in heard:
                    if isinstance(item, inga.Delivery):
                        assert item.view == number
                        got.append((item.sender, int(bytes(item.data[:5]))))
                    else:
                        number = item.number
                others = [other.me for other in groups if other is not group]
                assert sorted(got) == [(name, n) for name in others for n in range(count)]

    run(main(), loop=loop)


def items_views(items: list[Any]) -> list[int]:
    return [item.number for item in items if not isinstance(item, inga.Delivery)]


def test_use_with_latecomers(run: Run, meeting: Meeting) -> None:
    """Who comes later joins by the order the group was founded with, and gets the one in force."""

    async def main() -> None:
        async with meeting(2, order="vector") as ((alice, bob), come):
            await bob.use("fifo")
            cathy = await come("cathy")
            assert cathy.view.recipe == cathy.recipe.name == "fifo"
            await cathy.use("none")
            assert cathy.view.names == ("alice", "bob", "cathy")
            await (await cathy.send(b"hello")).reached("confirmed")
            assert await texts(alice, 1) == await texts(bob, 1) == ["hello"]

    run(main())


def test_receipts_over_a_change(run: Run, meeting: Meeting) -> None:
    async def main() -> None:
        async with meeting(2) as ((alice, bob), _):
            receipt = await alice.send(b"one")
            await bob.use("fifo")
            await receipt.reached("confirmed")
            assert alice.stack.view.recipe == "fifo" and await texts(bob, 1) == ["one"]

    run(main())


# Gates


def test_a_gate(run: Run, meeting: Meeting) -> None:
    async def main() -> None:
        async with meeting(3) as ((alice, bob, cathy), _):
            alice.delay("cathy", 0.2)
            cathy.gate("open")
            alice.post(b"lunch?")
            assert await texts(bob, 1) == ["lunch?"]
            bob.post(b"yes")
            assert await texts(cathy, 2) == ["yes", "lunch?"]
            cathy.gate("closed")
            alice.post(b"where?")
            assert await texts(bob, 1) == ["where?"]
            bob.post(b"here")
            assert await texts(cathy, 2) == ["where?", "here"]

    run(main())


def test_a_gate_that_opens_lets_go_of_what_is_held(run: Run, meeting: Meeting) -> None:
    async def main() -> None:
        async with meeting(3) as ((alice, bob, cathy), _):
            alice.delay("cathy", 0.3)
            alice.post(b"lunch?")
            assert await texts(bob, 1) == ["lunch?"]
            bob.post(b"yes")
            await until(lambda: cathy.stack.held)
            cathy.gate("open")
            assert cathy.stack.held == 0
            assert await texts(cathy, 2) == ["yes", "lunch?"]

    run(main())


# What cannot be meant


def test_what_cannot_be_meant(run: Run, meeting: Meeting) -> None:
    async def main() -> None:
        async with meeting(2) as ((alice, bob), come):
            with pytest.raises(inga.UsageError, match="'bob' cannot join: there is a member 'bob' already"):
                await come("bob")
            with pytest.raises(inga.UsageError, match="a member needs a name"):
                await come("")
            with pytest.raises(inga.UsageError, match="a gate is 'open' or 'closed', not 'ajar'"):
                alice.gate("ajar")
            with pytest.raises(inga.UsageError, match="no order 'nonsense'; did you mean 'none'"):
                await alice.use("nonsense")
            with pytest.raises(inga.UsageError, match="order 'strict' is there to learn from"):
                await alice.use("strict")
            with pytest.raises(
                inga.UsageError, match="'dora' is not a member of this group; there are alice, bob"
            ):
                alice.post(b"x", to="dora")
            with pytest.raises(inga.UsageError, match="a delay and its jitter are not negative"):
                alice.delay("bob", -1)
            with pytest.raises(inga.UsageError, match="a delay and its jitter are not negative"):
                alice.delay("bob", 1, jitter=-1)
            await alice.use("none")
            with pytest.raises(inga.UsageError, match="order 'none' has no gate"):
                alice.gate("open")
            await until(lambda: bob.view.recipe == "none")
            await bob.close()
            for call in (lambda: bob.gate("open"), lambda: bob.delay("alice", 1)):
                with pytest.raises(inga.UsageError, match="the group is closed"):
                    call()
            with pytest.raises(inga.UsageError, match="the group is closed"):
                await bob.use("fifo")

    run(main())


@pytest.mark.parametrize("via", CARRIERS)
def test_a_group_goes_on_after_somebody_has_left(run: Run, meeting: Meeting, via: str) -> None:
    """The view shrinks, may have another order, and grows again: also by one of the same name, at the same place."""

    async def main() -> None:
        async with meeting(3, via) as ((alice, bob, cathy), come):
            await bob.close()
            await until(lambda: alice.view.left == cathy.view.left == ("bob",))
            assert alice.view.names == cathy.view.names == ("alice", "cathy")
            await cathy.use("fifo")
            again = await come("bob")
            assert again.view.names == ("alice", "cathy", "bob")
            assert (again.view.joined, again.view.processes, again.recipe.name) == (
                ("bob",),
                (0, 2, 3),
                "fifo",
            )
            await asyncio.gather(*(group.ready(3) for group in (alice, cathy, again)))
            await (await again.send(b"here again")).reached("confirmed")
            assert await texts(alice, 1) == await texts(cathy, 1) == ["here again"]
            await (await cathy.send(b"welcome", to="bob")).reached("confirmed")
            assert await texts(again, 1) == ["welcome"]

    run(main())


@pytest.mark.parametrize("via", ["unicast", "tcp"])
def test_where_a_latecomer_is_reached(run: Run, meeting: Meeting, via: str) -> None:
    async def main() -> None:
        async with meeting(2, via) as (_, come):
            with pytest.raises(inga.UsageError, match="with late=True needs address='host:port'"):
                await come("cathy", address=None)
            with pytest.raises(inga.UsageError, match="host:port"):
                await come("cathy", address="nowhere")

    run(main())


def test_use_that_is_under_way_when_the_group_closes(run: Run, meeting: Meeting) -> None:
    async def main() -> None:
        async with meeting(2) as ((alice, bob), _):
            bob.carrier.close()  # who answers nothing any more
            use = asyncio.create_task(alice.use("fifo"))
            await until(lambda: alice.stack.closing)
            with pytest.raises(inga.WouldBlock):
                alice.post(b"now?")
            await alice.close(linger=0)
            with pytest.raises(inga.UsageError, match="this member leaves the group"):
                await use
            await bob.close(linger=0)

    run(main())


# Traces


def verdicts(path: Path, checks: list[str] | None = None) -> dict[str, str]:
    """What the kernels say of a trace, without Spark."""
    trace = open_trace(str(path))
    chunks = [read_chunk(file, trace.n, trace.receipt) for file in trace.files]
    source = Chunks(chunks, trace.processes, trace.receipt)
    found = certify(source, checks or list(trace.manifest.guarantees))
    return {check.name: check.verdict for check in found.checks}


async def changing(groups: list[inga.Group], come: Come) -> None:
    """Everybody talks and answers while one joins and the order changes twice; and reads all of it."""
    count = 60
    everybody = list(groups)

    async def talk(group: inga.Group, first: int, last: int) -> None:
        for number in range(first, last):
            await group.send(b"%d" % number)
            if number % 4 == 0:
                await asyncio.sleep(0.001)

    async def listen(group: inga.Group) -> None:
        async for delivery in group:
            if delivery.index == 0 and int(text(delivery)) % 7 == 0 and group.stack.writable:
                group.post(b"1")

    listening = [asyncio.create_task(listen(group)) for group in groups]
    talking = [asyncio.create_task(talk(group, 0, count)) for group in groups]
    everybody.append(await come("dave"))
    listening.append(asyncio.create_task(listen(everybody[-1])))
    talking.append(asyncio.create_task(talk(everybody[-1], 0, count)))
    await groups[1].use("fifo")
    talking += [asyncio.create_task(talk(group, count, 2 * count)) for group in everybody]
    await everybody[-1].use("vector")
    await asyncio.gather(*talking)
    receipts = [await group.send(b"2") for group in everybody]
    for receipt in receipts:
        await receipt.reached("confirmed")
    # An answer may still be on its way when all questions have been read.
    await until(lambda: all(group.stack.settled and not group.stack.queued for group in everybody))
    for task in listening:
        task.cancel()


@pytest.mark.parametrize("faults", [None, ROUGH])
def test_the_trace_of_a_group_that_changes(
    run: Run, meeting: Meeting, tmp_path: Path, faults: inga.Faults | None
) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        async with meeting(3, trace=path, faults=faults, seed=2, datagram_max=1400) as (groups, come):
            await changing(groups, come)

    run(main())
    assert verdicts(path) == dict.fromkeys([*CHECKED[:4], "views"], "pass")
    assert verdicts(path, CHECKED) | {"causal": ""} == dict.fromkeys(CHECKED[:4], "pass") | {"causal": ""}
    # Three who founded it; one more joins; the order changes twice; then they leave one by one.
    steps = Counter(row.step for row in _rows(path) if row.step in ("flush", "view"))
    assert steps == {"flush": 3 + 4 + 4 + (3 + 2 + 1), "view": 3 + 4 + 4 + 4 + (3 + 2 + 1)}


def _rows(path: Path) -> Any:
    from inga.trace import rows

    return rows(path)


def test_a_trace_over_vector_views_is_causal(run: Run, meeting: Meeting, tmp_path: Path) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        async with meeting(2, trace=path, faults=ROUGH, seed=2) as (groups, come):
            for number in range(40):
                for group in groups:
                    group.post(b"%d" % number)
                if number == 20:
                    groups.append(await come("cathy"))
                await asyncio.sleep(0.001)
            for group in groups:
                await (await group.send(b"end")).reached("confirmed")
            for group in groups:
                while group.stack.queued:
                    await take(aiter(group), 1)

    run(main())
    assert verdicts(path) == dict.fromkeys([*CHECKED, "views"], "pass")


def test_a_latecomer_writes_a_trace_where_an_order_with_places_was_changed(
    run: Run, meeting: Meeting, tmp_path: Path
) -> None:
    """The order that the group was founded with knows its processes from the start; the one it has now does not."""
    path = tmp_path / "trace"

    async def main() -> None:
        async with meeting(2, order="total", trace=path) as ((alice, bob), come):
            await alice.use("causal")
            cathy = await come("cathy")
            cathy.post(b"here")
            assert await texts(bob, 1) == ["here"]

    run(main())
    processes = read_processes(path)
    assert [process.name for process in processes] == ["alice", "bob", "cathy"]
    assert all("total" in process.disclaims for process in processes)


def test_what_a_trace_claims_after_a_gate(run: Run, meeting: Meeting, tmp_path: Path) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        async with meeting(3, trace=path) as ((alice, bob, cathy), _):
            alice.delay("cathy", 0.1)
            cathy.gate("open")
            alice.post(b"lunch?")
            assert await texts(bob, 1) == ["lunch?"]
            bob.post(b"yes")
            assert await texts(cathy, 2) == ["yes", "lunch?"]
            assert await texts(alice, 1) == ["yes"]

    run(main())
    assert [process.disclaims for process in read_processes(path)] == [[], [], ["causal", "fifo", "stamps"]]
    assert verdicts(path) == {"integrity": "pass", "complete": "pass", "views": "pass"}
    assert verdicts(path, ["causal"]) != {"causal": "pass"}


def test_one_that_was_let_in_and_never_began_leaves_no_doubt(
    run: Run, meeting: Meeting, tmp_path: Path
) -> None:
    """Views name it, and it has no rows: not because they are lost."""
    path, elsewhere = tmp_path / "trace", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "manifest.json").write_text("{")

    async def main() -> None:
        async with meeting(2, trace=path) as ((alice, bob), come):
            with pytest.raises(inga.IngaError):
                await come("cathy", trace=elsewhere)
            await until(lambda: alice.view.left == bob.view.left == ("cathy",))
            alice.post(b"still")
            assert await texts(bob, 1) == ["still"]

    run(main())
    assert [process.name for process in read_processes(path)] == ["alice", "bob", "process 2"]
    assert any((row.dst or 0) >> 2 & 1 for row in _rows(path) if row.step == "view")
    assert verdicts(path, [*CHECKED, "views"]) == dict.fromkeys([*CHECKED, "views"], "pass")


def test_one_that_cannot_write_a_trace_when_it_comes_back_fails_and_the_others_go_on(
    run: Run, party: Party, tmp_path: Path
) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        async with party(2, trace=path, detect=0.3) as (alice, bob):
            reading = asyncio.create_task(take(aiter(bob), 1))
            (path / "events" / "2-00000.parquet").write_text("in the way")
            for one, other in ((alice, "bob"), (bob, "alice")):
                one.delay(other, 3600.0)
            await until(lambda: len(alice.view) == len(bob.view) == 1)
            for group in (alice, bob):
                shape: Any = group.stack.layer("shape")
                shape._peers.clear()  # also of those who are not in its view
            with pytest.raises(inga.UsageError, match="already has rows of process 2"):
                await reading
            await until(lambda: alice.view.left == ("bob",))

    run(main())


def test_one_that_comes_back_is_another_process(run: Run, party: Party, tmp_path: Path) -> None:
    """Cathy is cut off until both sides have gone on without each other, then they find together again: her trace as
    the old member ends, and that of the new one has what she delivers from then on."""
    path = tmp_path / "trace"

    async def main() -> None:
        async with party(3, trace=path, order="vector", detect=0.3, rejoin=True) as groups:
            alice, bob, cathy = groups
            heard: dict[str, list[str]] = {group.me: [] for group in groups}

            async def listen(group: inga.Group) -> None:
                async for delivery in group:
                    heard[group.me].append(text(delivery))

            readers = [asyncio.create_task(listen(group)) for group in groups]
            for group in groups:
                await group.send(b"before")
            for one, other in ((alice, "cathy"), (bob, "cathy"), (cathy, "alice"), (cathy, "bob")):
                one.delay(other, 3600.0)
            await until(lambda: len(alice.view) == len(bob.view) == 2 and len(cathy.view) == 1)
            for group in groups:
                await group.send(f"apart {group.me}".encode())
            for group in groups:
                shape: Any = group.stack.layer("shape")
                shape._peers.clear()  # also of those who are not in its view
            await until(lambda: len({group.view.text for group in groups}) == 1 and len(alice.view) == 3)
            for group in groups:
                await group.send(f"after {group.me}".encode())
            await until(
                lambda: all(sum("after" in each for each in heard[group.me]) == 2 for group in groups)
            )
            for reader in readers:
                reader.cancel()

    run(main())
    assert verdicts(path, ["integrity", "complete", "fifo", "stamps", "causal", "views"]) == dict.fromkeys(
        ["integrity", "complete", "fifo", "stamps", "causal", "views"], "pass"
    )
    names = [process.name for process in read_processes(path)]
    assert names == ["alice", "bob", "cathy", "cathy (3)"]
    assert [row.src for row in rows(path, 3) if row.step == "deliver"] != []
    assert [row.peer for row in rows(path, 2) if row.step == "crash"][-1] == 2, "it says so itself"
