"""Objects of a live group: calls, proxies, transactions, errors, and plain messages in one order with them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.layers.shape import Faults
from inga.obg import Abort, InvocationAborted, ObjectClass, RemoteError, method
from inga.recipes import OVER
from inga.trace.reader import read_manifest, rows

from ..objects.classes import Account, Counter, Teller
from .helpers import CARRIERS, OtherTask, Party, Run, take, text, texts, until

pytestmark = pytest.mark.network


class Waiter(ObjectClass):
    """What its methods wait for is nobody's business in the group."""

    gate: Any = None

    @method
    async def wait(self, ctx: Any) -> str:
        await type(self).gate
        return "waited"

    @method
    async def pause(self, ctx: Any, seconds: Any) -> None:
        await ctx.pause(float(seconds))

    @method
    async def explain(self, ctx: Any, size: int) -> None:
        raise ValueError("x" * size)

    @method
    async def explode(self, ctx: Any, account: str) -> None:
        await ctx.call(account, "deposit", 5)
        raise ValueError("too loud")


OBJECTS = {"hits": Counter, "a": Account, "b": (Account, ["bob"]), "teller": (Teller, ["cathy"])}


@pytest.mark.parametrize("via", CARRIERS)
def test_calls_and_proxies(run: Run, party: Party, via: str) -> None:
    async def main() -> None:
        async with party(3, via, order="object", objects=OBJECTS) as groups:
            alice, bob, cathy = groups
            counters = [group.proxy(Counter, "hits") for group in groups]
            await asyncio.gather(*(counter.inc(2) for counter in counters for _ in range(5)))
            assert await counters[0].show() == 30
            assert await bob.proxy(Counter, "hits", answers="all").show() == [30, 30, 30]
            await alice.call("b", "deposit", 50)
            assert await alice.call("teller", "transfer", "b", "a", 20) == [30, 20]
            counters[2].inc.oneway(4)
            bob.oneway("hits", "dec", k=1)
            assert await cathy.call("hits", "show") in (30, 33, 34)
            await until(lambda: all(group.state("hits") == 33 for group in groups))
            assert "inc" in dir(counters[0]) and "hits" in repr(counters[0])

    run(main())


@pytest.mark.parametrize("over", OVER)
def test_calls_without_an_answer_press_back(run: Run, party: Party, over: str) -> None:
    """What nobody waits for is limited by the window, or it would pile up here without end."""

    async def main() -> None:
        options = {"order": "object", "objects": {"hits": Counter}, "protocol": {"over": over}}
        async with party(2, window=20_000, **options) as (alice, bob):
            called = 0
            for _ in range(3):
                with pytest.raises(inga.WouldBlock):
                    while called < 10_000:
                        alice.oneway("hits", "inc", 1)
                        called += 1
                assert alice.stack.chain.waiting < 500
                await alice.writable()
            assert called < 2_000
            await until(lambda: bob.state("hits") == called)

    run(main())


@pytest.mark.parametrize("over", OVER)
def test_errors_cross_the_wire(run: Run, party: Party, over: str) -> None:
    objects = {**OBJECTS, "w": (Waiter, ["cathy"])}

    async def main() -> None:
        async with party(3, order="object", objects=objects, protocol={"over": over}) as (alice, bob, _):
            for words, call in {
                "insufficient funds": alice.call("b", "withdraw", 1),
                "has no method 'steal'": alice.call("b", "steal"),
                "positional argument": alice.call("b", "withdraw", 1, 2),
                "ValueError: too loud": alice.call("w", "explode", "b"),
                "a pause is a number of seconds from 0": alice.call("w", "pause", "nan"),
                "ValueError: xxxxxx": alice.call("w", "explain", 200_000),  # more than any datagram takes
            }.items():
                with pytest.raises(RemoteError, match=words):
                    await call
            await until(lambda: bob.state("b") == 0)  # what it had deposited is taken back
            with pytest.raises(inga.UsageError, match="no object 'nothing'"):
                await alice.call("nothing", "inc")
            for refused, words in (
                (
                    ("nothing", "inc"),
                    "no object 'nothing' in this group; the objects are hits, a, b, teller, w",
                ),
                (("@1", "free"), "no object '@1'"),
                (("hits", 5), "called by its name, not by 5"),
                ((5, "inc"), "called by its name, or several by theirs, not by 5"),
                (("hits", "inc", {1}), "not set"),
            ):
                with pytest.raises(inga.UsageError, match=words):
                    await alice.call(*refused)  # type: ignore[arg-type]
                with pytest.raises(inga.UsageError, match=words):
                    alice.oneway(*refused)  # type: ignore[arg-type]
                async with alice.transaction() as tx:
                    for ask in (tx.start, tx.oneway):
                        with pytest.raises(inga.UsageError, match=words):
                            ask(*refused)  # type: ignore[arg-type]
                    with pytest.raises(inga.UsageError, match=words):
                        await tx.call(*refused)  # type: ignore[arg-type]
                    assert await tx.call("b", "balance") == 0  # it goes on
            with pytest.raises(inga.UsageError, match="'hits' has no method 'steal'"):
                alice.oneway("hits", "steal")
            with pytest.raises(inga.UsageError, match="answers is 'first' or 'all', not 'one'"):
                await alice.call("hits", "show", answers="one")
            with pytest.raises(inga.UsageError, match="Account has no method 'steal'"):
                alice.proxy(Account, "b").steal()
            with pytest.raises(inga.UsageError, match=r"Account\.withdraw: missing a required argument"):
                alice.proxy(Account, "b").withdraw()
            with pytest.raises(inga.UsageError, match="answers is 'first' or 'all'"):
                alice.proxy(Account, "b", answers="some")
            with pytest.raises(inga.UsageError, match="start belongs in a transaction"):
                alice.proxy(Account, "b").balance.start()
            with pytest.raises(inga.UsageError, match="no copy of an object 'b' at this member"):
                alice.state("b")

    run(main())


def test_parameters_called_as_options_are(run: Run, party: Party) -> None:
    class Named(ObjectClass):
        @method(identity=True)
        async def tell(self, ctx: Any, first: Any = 0, answers: Any = 0, target: Any = 0) -> list[Any]:
            return [first, answers, target]

        @method(identity=True)
        async def plain(self, ctx: Any) -> str:
            return "plain"

    async def main() -> None:
        async with party(2, order="object", objects={"n": Named}) as (alice, bob):
            assert await alice.call("n", "tell", first=1, answers="some", target=2) == [1, "some", 2]
            assert await bob.call("n", "plain", answers="all") == ["plain", "plain"]
            every = bob.proxy(Named, "n", answers="all")
            assert await every.tell(answers=3) == [[0, 3, 0]] * 2
            async with alice.transaction() as tx:
                assert await tx.call("n", "tell", first=4) == [4, 0, 0]
                assert await tx.start("n", "tell", answers=5) == [0, 5, 0]
                assert await tx.proxy(Named, "n", answers="all").tell.start(first=6) == [[6, 0, 0]] * 2
                assert await tx.start("n", "plain", answers="all", first=True) == ["plain", "plain"]

    run(main())


def test_transactions_commit_or_leave_nothing(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="object", objects=OBJECTS) as (alice, bob, cathy):
            async with alice.transaction() as tx:
                first = tx.start("a", "deposit", 10)
                await tx.proxy(Account, "b").deposit(10)
                await first
                assert await tx.all(tx.start("a", "balance"), tx.start("b", "balance")) == [10, 10]
                tx.oneway("hits", "inc", 3)
            with pytest.raises(ValueError, match="no"):
                async with alice.transaction() as tx:
                    await tx.call("a", "deposit", 1)
                    raise ValueError("no")
            with pytest.raises(Abort, match="changed"):
                async with alice.transaction() as tx:
                    await tx.call("b", "withdraw", 1)
                    tx.abort("changed my mind")
            with pytest.raises(RemoteError, match="insufficient funds"):
                async with alice.transaction() as tx:
                    await tx.call("a", "deposit", 1)
                    await tx.call("b", "withdraw", 1000)
            with pytest.raises(RemoteError, match="insufficient funds"):
                async with alice.transaction() as tx:
                    await tx.call("a", "deposit", 1)
                    with pytest.raises(RemoteError):
                        await tx.call("b", "withdraw", 1000)
                    # Whoever catches that has still lost the transaction.
            async with cathy.transaction() as tx:
                won = await tx.any(tx.start("a", "withdraw", 10), tx.start("b", "withdraw", 1000))
                assert won is None
            await until(lambda: {group.state("a") for group in (alice, bob, cathy)} == {0})
            assert await cathy.call("b", "balance") == 10
            await until(lambda: {group.state("hits") for group in (alice, bob, cathy)} == {3})
            with pytest.raises(inga.UsageError, match="inside `async with`"):
                await alice.transaction().call("a", "balance")
            with pytest.raises(inga.UsageError, match="this transaction is over"):
                await tx.call("a", "balance")

    run(main())


def test_a_deadlock_is_tried_again(run: Run, party: Party) -> None:
    class Lock(ObjectClass):
        def initial(self) -> int:
            return 0

        @method
        async def enter(self, ctx: Any, other: str = "") -> None:
            ctx.effect(lambda s: s + 1)
            if other:
                entered.append(other)
                if set(entered) == {"x", "y"} and not both.done():
                    both.set_result(None)
                await both  # each has one of them before it wants the other
                await ctx.call(other, "enter")

    entered: list[str] = []
    both: asyncio.Future[None]

    async def main() -> None:
        nonlocal both
        both = asyncio.get_running_loop().create_future()
        locks = {"x": (Lock, ["alice"]), "y": (Lock, ["bob"])}
        async with party(2, order="object", objects=locks) as (alice, bob):
            await asyncio.gather(
                alice.transact(lambda ctx: ctx.call("x", "enter", "y")),
                bob.transact(lambda ctx: ctx.call("y", "enter", "x")),
            )
            assert alice.state("x") == 2
            await until(lambda: bob.state("y") == 2)
            assert len(entered) > 2, "one of them was given up, and began again"
            with pytest.raises(InvocationAborted):
                await alice.transact(lambda ctx: ctx.call("x", "leave"), retries=3)

    run(main())


def test_a_call_that_is_given_up_is_taken_back(run: Run, party: Party) -> None:
    async def main() -> None:
        Waiter.gate = asyncio.get_running_loop().create_future()
        objects = {"w": (Waiter, ["bob"]), "hits": Counter}
        async with party(2, order="object", objects=objects) as (alice, bob):

            async def body(ctx: Any) -> None:
                await ctx.call("hits", "inc")
                await ctx.call("w", "wait")

            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await alice.transact(body)
            await until(lambda: bob.state("hits") == alice.state("hits") == 0)
            waiting = asyncio.ensure_future(alice.call("w", "wait"))
            await asyncio.sleep(0)
            Waiter.gate.set_result(None)
            assert await waiting == "waited"

    run(main())


def test_one_alone_that_only_calls_lets_others_have_a_turn(run: Run, party: Party) -> None:
    """Its calls end as soon as they begin; but somebody may want to join."""

    async def main() -> None:
        alone = party(1, order="object", objects={"hits": Counter})
        async with alone as (alice,), OtherTask() as others:
            for _ in range(100):
                await alice.call("hits", "inc", 1)
            assert others.turns >= 50

    run(main())


def test_a_group_that_closes_ends_its_calls(run: Run, party: Party) -> None:
    async def main() -> None:
        Waiter.gate = asyncio.get_running_loop().create_future()
        async with party(2, order="object", objects={"w": (Waiter, ["bob"])}) as (alice, bob):
            waiting = asyncio.ensure_future(alice.call("w", "wait"))
            await asyncio.sleep(0.05)
            await alice.close(linger=0.1)
            with pytest.raises(inga.UsageError, match="the group is closed"):
                await waiting
            with pytest.raises(inga.UsageError, match="the group is closed"):
                await alice.call("w", "wait")
            await bob.close(linger=0.1)

    run(main())


def test_a_group_that_ends_ends_transactions_whose_blocks_are_at_something_else(
    run: Run, party: Party
) -> None:
    """What they ask for afterwards, or their end, would wait for ever."""

    async def main() -> None:
        async with party(2, order="object", objects={"hits": Counter}) as (alice, bob):
            with pytest.raises(inga.UsageError, match="the group is closed"):
                async with bob.transaction() as tx:
                    await tx.call("hits", "inc")
                    await bob.close(linger=0.1)
            with pytest.raises(inga.UsageError, match="the group has failed: no luck"):
                async with alice.transaction() as tx:
                    await tx.call("hits", "inc")
                    alice.stack.fail(inga.IngaError("no luck"))
                    alice._driver.end_turn()
                    await tx.call("hits", "inc")

    run(main())


def test_a_member_that_leaves_ends_what_others_wait_for_there(run: Run, party: Party) -> None:
    async def main() -> None:
        Waiter.gate = asyncio.get_running_loop().create_future()
        async with party(3, order="object", objects={"w": (Waiter, ["bob"]), "hits": Counter}) as groups:
            alice, bob, cathy = groups
            waiting = asyncio.ensure_future(alice.call("w", "wait"))
            await asyncio.sleep(0.05)
            await bob.close(linger=0.1)
            with pytest.raises(InvocationAborted) as raised:
                await waiting
            assert raised.value.reason == "gone"
            await alice.call("hits", "inc")
            assert await cathy.call("hits", "show") == 1

    run(main())


def test_plain_messages_and_calls_in_one_group(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="total", objects={"hits": Counter}) as groups:
            alice, bob, cathy = groups
            for number in range(10):
                await alice.send(f"a{number}".encode())
                await bob.send(f"b{number}".encode())
                await cathy.call("hits", "inc")
            sequences = [await texts(group, 20) for group in groups]
            assert sequences[0] == sequences[1] == sequences[2]
            assert await alice.call("hits", "show") == 10

    run(main())


def test_total_order_is_the_same_for_all_under_loss(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="total", faults=Faults(loss=0.05), seed=1) as groups:
            for number in range(40):
                for group in groups:
                    await group.send(f"{group.me} {number}".encode())
                await asyncio.sleep(0)
            sequences = [[text(each) for each in await take(aiter(group), 120)] for group in groups]
            assert sequences[0] == sequences[1] == sequences[2]

    run(main())


def test_a_change_of_the_order_waits_for_calls_and_keeps_what_they_did(run: Run, party: Party) -> None:
    async def main() -> None:
        Waiter.gate = asyncio.get_running_loop().create_future()
        objects = {"w": (Waiter, ["bob"]), "hits": Counter}
        async with party(2, order="object", objects=objects) as (alice, bob):
            await alice.call("hits", "inc", 3)
            waiting = asyncio.ensure_future(alice.call("w", "wait"))
            await asyncio.sleep(0)
            using = asyncio.ensure_future(bob.use("total"))
            await until(lambda: alice.stack.closing and bob.stack.closing)
            assert not using.done()
            Waiter.gate.set_result(None)
            assert await waiting == "waited"
            await using
            for group in (alice, bob):
                assert await group.call("hits", "show") == 3

    run(main())


def test_calls_that_take_too_long_end_when_the_order_changes(run: Run, party: Party) -> None:
    async def main() -> None:
        Waiter.gate = asyncio.get_running_loop().create_future()
        objects = {"w": (Waiter, ["bob"]), "hits": Counter}
        async with party(2, order="object", objects=objects) as (alice, _):
            await alice.call("hits", "inc")
            waiting = asyncio.ensure_future(alice.call("w", "wait"))
            await asyncio.sleep(0)
            await alice.use("fifo")
            with pytest.raises(InvocationAborted, match="it takes too long: the view of the group changes"):
                await waiting
            with pytest.raises(inga.UsageError, match="'fifo' has no objects"):
                await alice.call("hits", "inc")

    run(main())


def test_whoever_has_other_objects_is_in_another_group(run: Run, party: Party) -> None:
    async def main() -> None:
        each = {"bob": {"objects": {"hits": Account}}}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                async with party(2, order="object", objects={"hits": Counter}, each=each):
                    pass

    run(main())


def test_orders_without_objects_say_so(run: Run, party: Party) -> None:
    async def main() -> None:
        with pytest.raises(inga.UsageError, match="objects is an option of order object, total"):
            async with party(2, order="causal", objects={"hits": Counter}):
                pass
        async with party(2, order="causal") as (alice, _):
            with pytest.raises(inga.UsageError, match="'vector' has no objects: join with order='object'"):
                await alice.call("hits", "inc")

    run(main())


def test_members_write_rows_of_their_copies(run: Run, party: Party, tmp_path: Path) -> None:
    async def main() -> None:
        async with party(2, order="object", objects={"hits": Counter}, trace=tmp_path / "run") as (
            alice,
            bob,
        ):
            await alice.call("hits", "inc")
            await bob.call("hits", "show")
            with pytest.raises(RemoteError):
                await bob.call("hits", "nothing")

    run(main())
    manifest = read_manifest(tmp_path / "run")
    assert manifest.processes == ["alice", "bob", "alice/hits", "bob/hits"]
    assert manifest.conflicts is not None and manifest.guarantees == ["object", "views"]
    for copy in (2, 3):
        found = [(row.step, row.op, row.src) for row in rows(tmp_path / "run", copy)]
        assert [each for each in found if each[0] == "start"][:2] == [
            ("start", "inc", 0),
            ("start", "show", 1),
        ]
        assert ("abort", "nothing", 1) in found and ("response", "inc", copy) in found
    steps = {row.step for row in rows(tmp_path / "run", 0)}
    assert {"request", "commit", "view"} <= steps
