"""A group as its users know it: sending, receiving, receipts, who is here, delays."""

import asyncio
import copy
import logging
import pickle
import socket
from contextlib import suppress
from itertools import pairwise
from random import Random
from typing import Any

import pytest

import inga
from inga.layers.bundle import MESSAGE_BYTES_MAX
from inga.net.group import Group
from inga.net.join import identity
from inga.net.receipt import Receipts
from inga.recipes import Options, find
from inga.runs.member import MemberTraffic
from inga.session.pressure import ASK_AFTER
from inga.stack.stack import Stack
from inga.trial.workload import Workload

from .helpers import (
    CARRIERS,
    LOOPS,
    OtherTask,
    Party,
    Place,
    Run,
    SkippingLoop,
    confirmed,
    skip,
    take,
    text,
    texts,
    until,
)

pytestmark = pytest.mark.network


# Sending


def test_everybody_one_or_some(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as (alice, bob, cathy):
            await alice.send(b"all")
            await alice.send(b"bob", to="bob")
            await alice.send(b"both", to=["bob", "cathy"])
            await alice.send(b"cathy", to=("cathy",))
            await alice.send(b"end", to={"bob": 1, "cathy": 2}.keys())
            assert await texts(bob, 4) == ["all", "bob", "both", "end"]
            assert await texts(cathy, 4) == ["all", "both", "cathy", "end"]
            assert not alice._reading.queue or isinstance(alice._reading.queue[0], inga.View), (
                "nothing for the sender"
            )

    run(main())


def test_the_first_message_of_an_idle_group_leaves_within_its_send(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            await (await alice.send(b"before")).reached("confirmed")
            packets = alice.stack.counts["data"]
            alice.post(b"first")
            assert alice.stack.counts["data"] == packets + 1
            alice.post(b"second")
            await alice.send(b"third")
            assert alice.stack.counts["data"] == packets + 1, "they wait for the end of the turn, in company"
            batches = bob.batches()
            assert [len(await anext(batches)) for _ in range(3)] == [1, 1, 2]

    run(main())


def test_an_answer_leaves_in_the_turn_in_which_the_question_was_read(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            answers = aiter(alice)
            answering = asyncio.create_task(_answer(bob))
            loop = asyncio.get_running_loop()
            assert isinstance(loop, SkippingLoop)
            before, turns = alice.stack.counts + bob.stack.counts, loop.selector.turns
            for _ in range(50):
                alice.post(b"question")
                await anext(answers)
            turns = loop.selector.turns - turns
            answering.cancel()
            after = alice.stack.counts + bob.stack.counts
            assert after["data"] - before["data"] == 100
            # A turn in which it comes, and one in which it is answered, at each side; a few for timers, on a slow machine.
            assert turns <= 50 * 4.5

    run(main())


async def _answer(group: Group) -> None:
    async for _ in group:
        await group.send(b"answer")


def test_an_own_name_among_the_destinations(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as (alice, bob, cathy):
            await alice.send(b"note", to=["alice", "bob"])
            await alice.send(b"to myself", to="alice")
            await bob.send(b"last")
            mine = await take(aiter(alice), 3)
            assert [(d.sender, text(d)) for d in mine] == [
                ("alice", "note"),
                ("alice", "to myself"),
                ("bob", "last"),
            ]
            assert await texts(bob, 1) == ["note"]
            assert await texts(cathy, 1) == ["last"]

    run(main())


@pytest.mark.parametrize("order", ["none", "fifo", "causal"])
def test_echo(run: Run, party: Party, order: str) -> None:
    async def main() -> None:
        async with party(2, order=order, echo=True) as (alice, bob):
            await alice.send(b"1")
            await bob.send(b"2")
            await alice.send(b"3", to="bob")
            heard = await take(aiter(alice), 3)
            assert [text(d) for d in heard if d.sender == "alice"] == ["1", "3"]
            assert not any(d.concurrent for d in heard if d.sender == "alice"), "echoes carry no flags"
            assert sorted(await texts(bob, 3)) == ["1", "2", "3"]

    run(main())


def test_whatever_holds_bytes(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            changing = bytearray(b"bytearray")
            await alice.send(changing)
            changing[:] = b"something"
            await alice.send(memoryview(b"a view")[2:])
            alice.post(memoryview(b"abc")[::2])
            await alice.send_many([bytearray(b"of"), memoryview(b"many")])
            assert await texts(bob, 5) == ["bytearray", "view", "ac", "of", "many"]

    run(main())


@pytest.mark.parametrize("data", ["text", 7, None, ["x"], object()])
def test_what_is_no_bytes(run: Run, party: Party, data: Any) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            kind = type(data).__name__
            for before in (False, True):  # also within a turn, where sending is cut short
                if before:
                    await alice.send(b"1")
                with pytest.raises(inga.UsageError, match=f"a message is bytes, not {kind}"):
                    await alice.send(data)
                with pytest.raises(inga.UsageError, match=f"a message is bytes, not {kind}"):
                    alice.post(data)
                with pytest.raises(inga.UsageError, match=f"a message is bytes, not {kind}"):
                    await alice.send_many([b"good", data])
            alice.post(b"2")
            assert await texts(bob, 2) == ["1", "2"], "of a refused call nothing is sent"

    run(main())


def test_destinations_that_are_none(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, _bob):
            for to, words in (
                ("carol", "'carol' is not a member of this group; there are alice, bob"),
                (["bob", "carol"], "'carol' is not a member"),
                ([], "a message needs at least one destination"),
                ("", "'' is not a member"),
            ):
                with pytest.raises(inga.UsageError, match=words):
                    await alice.send(b"x", to=to)
                with pytest.raises(inga.UsageError, match=words):
                    alice.post(b"x", to=to)
                with pytest.raises(inga.UsageError, match=words):
                    await alice.send_many([b"x"], to=to)

    run(main())


def test_too_large(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            huge = bytes(MESSAGE_BYTES_MAX + 1)
            with pytest.raises(inga.UsageError, match=f"a message of {MESSAGE_BYTES_MAX + 1} bytes: at most"):
                await alice.send(huge)
            with pytest.raises(inga.UsageError, match="at most"):
                alice.post(huge)
            await alice.send(b"small")
            assert await texts(bob, 1) == ["small"]

    run(main())


@pytest.mark.parametrize("via", CARRIERS)
def test_large_and_empty(run: Run, party: Party, via: str) -> None:
    """A megabyte goes in pieces; from 16 KiB a message is a view of memory of its own."""
    sizes = [0, 1, 16 * 1024 - 1, 16 * 1024, 60 * 1024, 1 << 20, 0, 0]
    messages = [(b"%d." % size * (size // 4 + 1))[:size] for size in sizes]

    async def main() -> None:
        async with party(3, via) as (alice, bob, cathy):
            for message in messages:
                await alice.send(message)
            for group in (bob, cathy):
                heard = await take(aiter(group), len(messages))
                assert [bytes(d.data) for d in heard] == messages
                assert {type(d.data) for d in heard if len(d.data) < 16 * 1024} == {bytes}
                assert {type(d.data) for d in heard if len(d.data) > 60 * 1024} == {memoryview}

    run(main())


def test_small_datagrams(run: Run, party: Party) -> None:
    """As on a wire whose datagrams are small: the same messages, many pieces."""
    messages = [b"%05d" % number + bytes(number) for number in range(0, 3000, 97)]

    async def main() -> None:
        async with party(2, datagram_max=256, faults=inga.Faults(loss=0.05), seed=3) as (alice, bob):
            sending = asyncio.create_task(alice.send_many(messages))
            assert [bytes(d.data) for d in await take(aiter(bob), len(messages))] == messages
            await (await sending).reached("confirmed")

    run(main())


def test_many_at_once(run: Run, party: Party) -> None:
    messages = [b"%d" % number for number in range(20_000)]

    async def main() -> None:
        async with party(2) as (alice, bob):
            with pytest.raises(inga.UsageError, match="send_many was given no messages"):
                await alice.send_many([])
            sending = asyncio.create_task(alice.send_many(iter(messages)))
            heard: list[Any] = []
            async for batch in bob.batches():
                heard += batch.payloads
                if len(heard) == len(messages):
                    break
            assert heard == messages
            receipt = await sending
            await receipt.reached("confirmed")
            assert bob.stack.counts["data"] == 0 and alice.stack.counts["data"] < 200

    run(main())


# The window


def test_a_slow_reader_closes_the_window(run: Run, party: Party) -> None:
    """Small window, small queue, a reader that does not read: `post` would block, `send` waits."""
    message = bytes(1000)

    async def main() -> None:
        async with party(2, window=20_000, queue_max=10_000) as (alice, bob):
            posted = 0
            with pytest.raises(inga.WouldBlock, match="the flow window is closed"):
                while posted < 10_000:
                    alice.post(message)
                    posted += 1
                    await asyncio.sleep(0)
            assert 10 <= posted < 100
            sending = asyncio.create_task(alice.send_many([message] * 40))
            waiting = asyncio.create_task(alice.writable())
            await asyncio.sleep(0)
            with pytest.raises(inga.WouldBlock):  # those who wait come first
                alice.post(message)
            assert not sending.done() and not waiting.done()
            assert bob.stack.queued < 40_000, "what is unread is bounded"
            heard = await take(aiter(bob), posted + 40)
            assert len(heard) == posted + 40
            await waiting
            await (await sending).reached("confirmed")
            alice.post(message)

    run(main())


def test_one_slow_reader_holds_up_all_and_is_named(
    run: Run, party: Party, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with party(3, window=20_000, queue_max=10_000) as (alice, bob, cathy):

            async def talk() -> None:
                for _ in range(100):
                    await alice.send(bytes(1000))

            sending = asyncio.create_task(talk())
            reading = asyncio.create_task(take(aiter(bob), 100))
            await until(lambda: not alice.stack.writable and not bob._reading.queue)
            for _ in range(40):  # more at once, and alice was stopped herself
                skip(ASK_AFTER / 2)
                await asyncio.sleep(0.01)
            assert not sending.done() and not reading.done()
            assert len(await take(aiter(cathy), 100)) == len(await reading) == 100
            await sending

    with caplog.at_level(logging.WARNING, logger="inga"):
        run(main())
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1, said
    assert said[0].endswith(": sending has waited 5 s for cathy")


def test_members_that_all_send_before_they_read(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as groups:
            await asyncio.gather(*(group.send_many([bytes(1000)] * 3000) for group in groups))
            for group in groups:
                count = 0
                async for batch in group.batches():
                    count += len(batch)
                    if count == 6000:
                        break

    run(main())


# Receipts


def test_who_no_longer_waits_for_a_receipt_leaves_nothing_behind(run: Run) -> None:
    async def main() -> None:
        receipts = Receipts()
        receipts.kind.levels = ("confirmed",)
        receipt = receipts()
        patient = asyncio.create_task(receipt.reached("confirmed"))
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await receipt.reached("confirmed")
        assert len(receipt._callbacks["confirmed"]) == len(receipt.waiting) == 1
        receipt.reach("confirmed")
        await patient
        impatient = receipts()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await impatient.reached("confirmed")
        assert not impatient.is_awaited("confirmed")
        assert not impatient.waiting

    run(main())


def test_what_is_concurrent_with_something_of_a_view_before(run: Run, party: Party) -> None:
    """It is read after the next view was installed, in which other messages have the same numbers."""

    async def main() -> None:
        async with party(3, on_concurrent="error") as (alice, bob, cathy):
            bob.post(b"in the first view")
            alice.post(b"at the same time")
            await cathy.close()
            await until(lambda: bob.view.number == 2)
            bob.post(b"in the second view")
            with pytest.raises(inga.Concurrent) as found:
                async for _ in bob:
                    pass
            now, other = found.value.messages
            assert text_of(now) == [b"at the same time"]
            assert other is None, "it is not kept that long, and what bob has sent since is another one"

    def text_of(batch: inga.Batch) -> list[bytes]:
        return [bytes(each) for each in batch.payloads]

    run(main())


def test_receipts(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as (alice, _bob, cathy):
            receipts = [await alice.send(b"1"), alice.post(b"2"), await alice.send_many([b"3", b"4"])]
            assert len(set(receipts)) == 2, "sends of one bundle share it, and the first has left"
            assert not receipts[0].has("confirmed")
            await confirmed(receipts)
            assert receipts[0].has("confirmed")
            await receipts[0].reached("confirmed")
            some = await alice.send(b"5", to="cathy")
            await some.reached("confirmed")
            assert await texts(cathy, 5) == ["1", "2", "3", "4", "5"], "which it was before it was read"
            with pytest.raises(
                inga.UsageError, match=r"'acknowledged' is not a level of this group's order; .*: confirmed"
            ):
                await some.reached("acknowledged")
            with pytest.raises(
                inga.UsageError, match="'famous' is not a level; a receipt here can reach: confirmed"
            ):
                await some.reached("famous")

    run(main())


def test_confirmed_means_by_the_slowest(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as (alice, bob, cathy):
            alice.delay("cathy", 20)
            receipt = await alice.send(b"x")
            assert await texts(bob, 1) == ["x"]
            waiting = asyncio.create_task(receipt.reached("confirmed"))
            skip(10)
            await asyncio.sleep(0.01)
            assert not waiting.done() and not receipt.has("confirmed")
            skip(10)
            await waiting
            assert await texts(cathy, 1) == ["x"]

    run(main())


def test_who_waits_for_a_receipt_hears_of_the_end(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, _bob):
            alice.delay("bob", 1000)
            receipt = await alice.send(b"x")
            waiting = asyncio.create_task(receipt.reached("confirmed"))
            given_up = asyncio.create_task(receipt.reached("confirmed"))
            await asyncio.sleep(0)
            given_up.cancel()
            await alice.close(linger=0)
            with pytest.raises(inga.UsageError, match="the group is closed"):
                await waiting
            with pytest.raises(
                inga.UsageError, match="whether it was confirmed will not be known: the group is"
            ):
                await receipt.reached("confirmed")

    run(main())


def test_a_member_that_leaves_confirms_no_more(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as (alice, bob, cathy):
            alice.delay("cathy", 1000)
            receipt = await alice.send(b"x")
            assert await texts(bob, 1) == ["x"]
            await cathy.close()
            await receipt.reached("confirmed")

    run(main())


# Receiving


def test_items_begin_with_the_view(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            await alice.send_many([b"1", b"2"])
            view, *deliveries = await take(bob.items(), 3)
            assert isinstance(view, inga.View)
            assert (view.number, view.names, view.joined) == (1, ("alice", "bob"), ("alice", "bob"))
            assert (view.recipe, view.left, view) == ("vector", (), bob.view)
            assert [(d.sender, d.seq, d.index, d.view, text(d)) for d in deliveries] == [
                ("alice", 1, 0, 1, "1"),
                ("alice", 1, 1, 1, "2"),
            ]

    run(main())


def test_batches_are_packets(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            batches = bob.batches()
            for number in range(1, 4):
                receipt = await alice.send_many([b"a", b"bc", b""])
                batch = await anext(batches)
                assert isinstance(batch, inga.Batch)
                assert (batch.sender, batch.seq, batch.payloads) == ("alice", number, [b"a", b"bc", b""])
                assert (batch.height, batch.deps, len(batch)) == (number, (number - 1, 0), 3)
                await receipt.reached("confirmed")

    run(main())


def test_one_iteration_at_a_time(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            first = aiter(bob)
            for another in (bob.__aiter__, bob.batches, bob.items):
                with pytest.raises(inga.UsageError, match="there is one iterator per group"):
                    another()
            waiting = asyncio.create_task(anext(first))
            await asyncio.sleep(0)
            with pytest.raises(inga.UsageError, match="there is one iterator per group"):
                bob.batches()
            alice.post(b"1")
            assert text(await waiting) == "1"
            await first.aclose()  # type: ignore[attr-defined]
            alice.post(b"2")
            assert await texts(bob, 1) == ["2"]

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_left_and_entered_again_loses_nothing(run: Run, party: Party, loop: str) -> None:
    """Also in the middle of a packet, and whichever way it goes on."""

    async def main() -> None:
        async with party(2) as (alice, bob):
            await alice.send_many([b"%d" % number for number in range(9)])
            async for delivery in bob:
                assert text(delivery) == "0"
                break
            async for delivery in bob:
                assert text(delivery) == "1"
                break
            async for item in bob.items():
                assert isinstance(item, inga.Delivery) and text(item) == "2", "its packet's view is past"
                break
            async for delivery in bob:
                assert (delivery.index, text(delivery)) == (3, "3")
                break
            async for batch in bob.batches():
                assert batch.payloads == [b"4", b"5", b"6", b"7", b"8"]
                assert (batch.sender, batch.seq) == ("alice", 1)
                break
            alice.post(b"next")
            assert await texts(bob, 1) == ["next"]

    run(main(), loop=loop)


def test_a_reader_with_much_to_read_lets_others_have_a_turn(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            for _ in range(100):
                await (await alice.send(b"x")).reached("confirmed")
            async with OtherTask() as others:
                assert len(await take(aiter(bob), 100)) == 100
                assert others.turns >= 5

    run(main())


@pytest.mark.parametrize("how", ["send", "send_many"])
def test_one_alone_that_only_sends_lets_others_have_a_turn(run: Run, party: Party, how: str) -> None:
    """No window ever closes; but somebody may want to join."""

    async def main() -> None:
        async with party(1) as (alice,), OtherTask() as others:
            for _ in range(100):
                await (alice.send(b"x") if how == "send" else alice.send_many([b"x", b"y"]))
            assert others.turns >= 50

    run(main())


def test_what_is_sent_after_a_take_has_it_as_its_cause(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as (alice, bob, cathy):
            alice.post(b"question")
            [question] = await take(aiter(bob), 1)
            bob.post(b"answer")
            one, other = await take(aiter(cathy), 2)
            assert [text(one), text(other)] == ["question", "answer"]
            assert inga.relation(one, other) == "<" and inga.relation(other, one) == ">"
            assert inga.relation(question, one) == "=="
            assert (other.deps, other.height) == ((1, 0, 0), 2)
            assert not one.concurrent and not other.concurrent

    run(main())


# Concurrency


def test_concurrent_messages_are_flagged_where_they_come_second(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as (alice, bob, cathy):
            alice.post(b"a")
            bob.post(b"b")
            at_cathy = await take(aiter(cathy), 2)
            assert [d.concurrent for d in at_cathy] == [False, True]
            first, second = at_cathy
            assert second.concurrent_with == [(first.src, 1, 1)]
            assert first.concurrent_with == []
            assert inga.relation(first, second) == "||"
            assert first.branch != second.branch
            [at_alice] = await take(aiter(alice), 1)
            assert at_alice.concurrent and at_alice.concurrent_with == [(0, 1, 1)], "with her own"
            cathy.post(b"both seen")
            await until(lambda: len(alice._reading.queue) and len(bob._reading.queue) >= 2)
            [last] = await take(aiter(alice), 1)
            assert not last.concurrent
            assert last.merged, "two branches become one"

    run(main())


def test_an_unread_message_is_no_cause(run: Run, party: Party) -> None:
    """V26: what waits in the queue when we send is concurrent with it."""

    async def main() -> None:
        async with party(2) as (alice, bob):
            await (await alice.send(b"unread")).reached("confirmed")
            await bob.send(b"meanwhile")
            [unread] = await take(aiter(bob), 1)
            assert unread.concurrent and unread.concurrent_with == [(1, 1, 1)]
            [meanwhile] = await take(aiter(alice), 1)
            assert meanwhile.deps == (0, 0) and meanwhile.concurrent

    run(main())


def test_concurrency_as_an_error(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, each={"bob": {"on_concurrent": "error"}}) as (alice, bob):
            alice.post(b"a1")
            iteration = aiter(bob)
            assert text(await anext(iteration)) == "a1"
            bob.post(b"b1")
            await (await alice.send(b"a2")).reached("confirmed")
            with pytest.raises(
                inga.Concurrent, match=r"alice:2 of 1.* is concurrent with \[\(1, 1, 1\)\]"
            ) as caught:
                await anext(iteration)
            now, known = caught.value.messages
            assert (now.sender, now.payloads) == ("alice", [b"a2"])
            assert (known.sender, known.seq, known.payloads) == ("bob", 1, [b"b1"])
            with pytest.raises(inga.Concurrent):
                await anext(aiter(bob))  # the stream has stopped for good; the group goes on
            await (await bob.send(b"b2")).reached("confirmed")
            [b1] = await take(aiter(alice), 1)
            assert b1.concurrent, "at the other site it is only flagged"

    run(main())


def test_all_destinations_of_the_lecture(run: Run, party: Party) -> None:
    """Others, all, the caller, those who did not call, one, several."""

    async def main() -> None:
        async with party(4) as (alice, bob, cathy, dave):
            await alice.send(b"question")
            [question] = await take(aiter(bob), 1)
            await bob.send(b"to the caller", to=question.sender)
            await bob.send(b"to the others", to=bob.all_but(question.sender))
            await bob.send(b"to all", to=bob.view.names)
            await bob.send(b"to some", to=["alice", "dave"])
            assert await texts(alice, 3) == ["to the caller", "to all", "to some"]
            assert await texts(bob, 1) == ["to all"]
            assert await texts(cathy, 3) == ["question", "to the others", "to all"]
            assert await texts(dave, 4) == ["question", "to the others", "to all", "to some"]
            with pytest.raises(inga.UsageError, match="'erin' is not a member"):
                bob.all_but("erin")

    run(main())


def test_concurrency_ignored(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, on_concurrent="ignore") as (alice, bob):
            alice.post(b"a")
            bob.post(b"b")
            for group in (alice, bob):
                [d] = await take(aiter(group), 1)
                assert (d.concurrent, d.branch, d.concurrent_with) == (False, 0, [])

    run(main())


# Who is here


def test_who_comes_and_goes(run: Run, place: Place, group_name: str) -> None:
    where = place("udp", 3)

    async def main() -> None:
        seen: list[str] = []
        async with inga.join(group_name, "alice", **where) as alice:
            assert alice.here == ("alice",)
            alice.on_join(lambda name: seen.append(f"+{name}"))
            alice.on_leave(lambda name: seen.append(f"-{name}"))
            await alice.ready(at_least=1)
            everybody = asyncio.create_task(alice.ready())
            async with inga.join(group_name, "cathy", **where) as cathy:
                await alice.ready(at_least=2)
                assert seen == ["+cathy"] and alice.here == ("alice", "cathy")
                assert not everybody.done()
                late: list[str] = []
                alice.on_join(late.append)
                assert late == ["cathy"], "who is here already is told at once"
                async with inga.join(group_name, "bob", **where) as bob:
                    await asyncio.gather(everybody, bob.ready(), cathy.ready())
                    assert late == ["cathy", "bob"]
                    bob.post(b"bye")
                assert await texts(cathy, 1) == ["bye"]
                await until(lambda: "-bob" in seen)
                assert alice.here == ("alice", "cathy")
            await until(lambda: "-cathy" in seen)
        assert seen == ["+cathy", "+bob", "-bob", "-cathy"]

    run(main())


def test_what_is_forged_is_told_once_a_second_however_much_it_is(
    run: Run, place: Place, group_name: str
) -> None:
    told: list[dict[str, int]] = []

    async def main() -> None:
        async with inga.join(group_name, "alice", on_forged=told.append, **place("udp", 1)) as alice:
            for _ in range(100):
                alice.receive([(b"noise", None)])
            assert told == [{"truncated": 1}]
            skip(1.1)
            alice.receive([])
            assert told == [{"truncated": 1}, {"truncated": 100}]
            skip(1.1)
            alice.receive([])
            assert len(told) == 2, "there is no more"

    run(main())


def test_ready_waits_for_nobody_who_has_left(run: Run, place: Place, group_name: str) -> None:
    """Bob was here and has left before cathy came: then all that are in the view are here."""
    where = place("udp", 3)

    async def main() -> None:
        async with inga.join(group_name, "alice", **where) as alice:
            everybody = asyncio.create_task(alice.ready())
            async with inga.join(group_name, "bob", **where):
                await alice.ready(2)
            async with inga.join(group_name, "cathy", **where):
                await everybody
                assert alice.view.names == alice.here == ("alice", "cathy")

    run(main())


def test_ready_for_more_than_there_are(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, _bob):
            await alice.ready(2)
            with pytest.raises(inga.UsageError, match=r"ready\(at_least=3\): the group has 2 members"):
                await alice.ready(at_least=3)

    run(main())


def test_ready_names_who_does_not_come_in_time(run: Run, place: Place, group_name: str) -> None:
    where = place("udp", 4)

    async def main() -> None:
        async with inga.join(group_name, "alice", **where) as alice:
            with pytest.raises(
                inga.NotReady, match=r"waited 0 s: 1 of 4 members are here, missing are bob, cathy, dave"
            ):
                await alice.ready(timeout=0)
            async with inga.join(group_name, "cathy", **where):
                await alice.ready(at_least=2, timeout=60)
                waiting = asyncio.create_task(alice.ready(at_least=3, timeout=60))
                await asyncio.sleep(0)
                skip(61)
                with pytest.raises(inga.NotReady) as late:
                    await waiting
                assert isinstance(late.value, TimeoutError) and late.value.missing == ("bob", "dave")
            assert not alice._company.watchers, "nobody waits any more"

    run(main())


def test_ready_warns_once_of_who_is_missing(
    run: Run, place: Place, group_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    where = place("udp", 3)

    def warnings() -> list[str]:
        return [record.getMessage() for record in caplog.records if "missing" in record.getMessage()]

    async def main() -> None:
        async with inga.join(group_name, "alice", **where) as alice:
            waiting = asyncio.create_task(alice.ready())
            await asyncio.sleep(0)
            skip(4.9)
            await asyncio.sleep(0)
            assert warnings() == []
            skip(0.2)
            await until(warnings)
            skip(60)
            await asyncio.sleep(0)
            async with (
                inga.join(group_name, "bob", **where) as bob,
                inga.join(group_name, "cathy", **where) as cathy,
            ):
                await asyncio.gather(waiting, bob.ready(), cathy.ready())
        text = f"group {group_name}: 1 of 3 members are here, missing are bob, cathy"
        assert warnings() == [text]

    with caplog.at_level(logging.WARNING, "inga"):
        run(main())


def test_a_wait_that_is_given_up_warns_of_nothing(
    run: Run, place: Place, group_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    where = place("udp", 2)

    async def main() -> None:
        async with inga.join(group_name, "alice", **where) as alice:
            waiting = asyncio.create_task(alice.ready())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert not alice._company.watchers
            skip(60)
            await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING, "inga"):
        run(main())
    assert not [record for record in caplog.records if "missing" in record.getMessage()]


def test_a_listener_that_fails_keeps_nobody_waiting(run: Run, place: Place, group_name: str) -> None:
    where = place("udp", 2)
    reported: list[dict[str, Any]] = []
    seen: list[str] = []

    def fail(name: str) -> None:
        raise ZeroDivisionError(name)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with inga.join(group_name, "alice", **where) as alice:
            for listen in (alice.on_join, alice.on_leave):
                listen(fail)
                listen(seen.append)
            async with inga.join(group_name, "bob", **where) as bob:
                await asyncio.gather(alice.ready(), bob.ready())
                assert seen == ["bob"], "the next listener was told"
                alice.on_join(fail)  # who is here already is told at once
                await bob.send(b"hello")
                assert await texts(alice, 1) == ["hello"]
            await until(lambda: seen == ["bob", "bob"])
        assert [str(context["exception"]) for context in reported] == ["bob"] * 3
        assert all("listener" in context["message"] for context in reported)

    run(main())


def test_what_was_sent_before_anybody_came(run: Run, place: Place, group_name: str) -> None:
    where = place("udp", 2)

    async def main() -> None:
        async with inga.join(group_name, "alice", **where) as alice:
            await alice.send(b"anybody?")
            async with inga.join(group_name, "bob", **where) as bob:
                assert await texts(bob, 1) == ["anybody?"]

    run(main())


def test_the_others_go_on_when_one_leaves(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, window=20_000) as (alice, bob, cathy):
            await cathy.close()
            sending = asyncio.create_task(alice.send_many([bytes(1000)] * 200))
            assert len(await take(aiter(bob), 200)) == 200
            await (await sending).reached("confirmed")

    run(main())


# Delays


def test_a_delayed_link_cannot_reorder_cause_and_effect(run: Run, party: Party) -> None:
    """The lecture's scene: the answer overtakes the question, and waits for it."""

    async def main() -> None:
        async with party(3) as (alice, bob, cathy):
            alice.delay("cathy", 20)
            alice.post(b"Lunch?")
            assert await texts(bob, 1) == ["Lunch?"]
            bob.post(b"yes")
            await until(lambda: cathy.stack.held)
            assert not any(isinstance(item, inga.Batch) for item in cathy._reading.queue)
            skip(20)
            assert await texts(cathy, 2) == ["Lunch?", "yes"]

    run(main())


def test_without_order_the_answer_comes_first(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="fifo") as (alice, bob, cathy):
            alice.delay(to="cathy", seconds=20)
            alice.post(b"Lunch?")
            assert await texts(bob, 1) == ["Lunch?"]
            bob.post(b"yes")
            assert await texts(cathy, 1) == ["yes"]
            skip(20)
            assert await texts(cathy, 1) == ["Lunch?"]

    run(main())


@pytest.mark.parametrize("keep_order", [True, False])
def test_jitter_reorders_unless_told_not_to(run: Run, party: Party, keep_order: bool) -> None:
    """Seen where nothing puts messages in order again."""

    async def main() -> list[int]:
        async with party(2, order="none", seed=1) as (alice, bob):
            alice.delay("bob", 0.001, jitter=0.05, keep_order=keep_order)
            sent = 0
            async with asyncio.TaskGroup() as tasks:
                heard = tasks.create_task(texts(bob, 20))
                while sent < 20:
                    alice.post(b"%d" % sent)
                    alice.stack.layer("bundle").flush()  # type: ignore[union-attr]  # each its own packet
                    sent += 1
                    await asyncio.sleep(0)
            return list(map(int, heard.result()))

    heard = run(main())
    assert sorted(heard) == list(range(20))
    assert all(a < b for a, b in pairwise(heard)) == keep_order


def test_a_delay_ends(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, seed=1) as (alice, bob):
            alice.delay("bob", 1000)
            alice.post(b"late")
            await asyncio.sleep(0)
            alice.delay("bob", 0)
            alice.post(b"soon")
            await until(lambda: bob.stack.held or bob.stack.counts["nack"])
            assert await texts(bob, 2) == ["late", "soon"], "for which the repair comes in time"

    run(main())


def test_delays_that_are_none(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, _bob):
            for seconds, jitter in ((-1, 0), (1, -1)):
                with pytest.raises(inga.UsageError, match="a delay and its jitter are not negative"):
                    alice.delay("bob", seconds, jitter)
            with pytest.raises(inga.UsageError, match="'carol' is not a member"):
                alice.delay("carol", 1)
            with pytest.raises(inga.UsageError, match="a delay to oneself has no effect"):
                alice.delay("alice", 1)

    run(main())


# The end


async def _use(group: Group) -> None:
    """Everything one can ask of a group; each raises for itself."""
    words = "the group (is closed|has failed: cathy did not repair)"
    for _ in range(2):
        for call in (
            lambda: group.send(b"x"),
            lambda: group.send(b"x", to="bob"),
            lambda: group.send_many([b"x"]),
            lambda: group.ready(),
            lambda: group.writable(),
        ):
            with pytest.raises(inga.UsageError, match=words):
                await call()
        for deed in (lambda: group.post(b"x"), lambda: group.delay("bob", 1)):
            with pytest.raises(inga.UsageError, match=words):
                deed()
        group._driver.schedule_end()  # as if something had been sent in this turn


def test_a_closed_group(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            await bob.send(b"unread")
            await until(lambda: any(isinstance(item, inga.Batch) for item in alice._reading.queue))
            await alice.close()
            await alice.close()
            await _use(alice)
            assert [text(d) async for d in alice] == ["unread"], "what came can still be read"
            assert [item async for item in alice.items()] == []

    run(main())


def test_a_failed_group(run: Run, party: Party) -> None:
    """Deliver first, then raise; afterwards nothing goes."""

    async def main() -> None:
        async with party(2) as (alice, bob):
            receipt = await alice.send(b"1")
            await receipt.reached("confirmed")
            alice.delay("bob", 1000)
            waiting = asyncio.create_task((await alice.send(b"2")).reached("confirmed"))
            bob.post(b"good")
            await until(lambda: any(isinstance(item, inga.Batch) for item in alice._reading.queue))
            alice.stack.fail(inga.Gap("cathy did not repair"))
            alice._driver.end_turn()
            iteration = aiter(alice)
            assert text(await anext(iteration)) == "good"
            with pytest.raises(inga.Gap, match="cathy did not repair"):
                await anext(iteration)
            with pytest.raises(inga.Gap):
                await anext(aiter(alice))
            with pytest.raises(inga.UsageError, match="has failed"):
                await waiting
            await _use(alice)
            await bob.close(linger=0)  # who would wait for alice

    run(main())


def test_repair_gives_up_after_a_minute(run: Run, place: Place, group_name: str) -> None:
    """Alice, whom we play by hand, loses her second message and never repairs it."""
    where = place("unicast", 2)
    view = inga.View.of("alice", "bob", recipe="vector")
    alice = Stack(
        find("vector").build(Options(greet=True)),
        0,
        view,
        rng=Random(),
        group=identity(group_name, "vector", view.names),
        lobby=group_name,
        birth=1,
    )
    alice.layer("bundle").gather = False  # type: ignore[union-attr]

    async def main() -> None:
        async with inga.join(group_name, "bob", detect=None, **where) as bob:
            alice.begin(now=0)
            alice.tick(0)
            greetings = [bytes(data) for _, data in alice.ready().send]
            datagrams = []
            for message in (b"good", b"lost", b"after"):
                alice.send(message, now=0)
                datagrams += [bytes(data) for _, data in alice.ready().send]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
                mouth.connect(("127.0.0.1", int(where["members"]["bob"].split(":")[1])))
                for greeting in greetings:
                    mouth.send(greeting)
                await until(lambda: bob.stack.met)
                for datagram in (datagrams[0], datagrams[2]):
                    mouth.send(datagram)
            iteration = aiter(bob)
            assert text(await anext(iteration)) == "good"
            reading = asyncio.create_task(anext(iteration))
            await until(lambda: bob.stack.counts["nack"])
            while not reading.done():
                skip(10)
                await asyncio.sleep(0.01)
            with pytest.raises(inga.Gap, match="alice did not repair what was lost within 60 s"):
                await reading

    run(main())


def test_the_part_of_a_live_run_says_what_went_wrong(run: Run, party: Party) -> None:
    """Of several tasks the first to fail speaks, in its own words."""

    async def main() -> None:
        async with party(2) as (alice, _bob):
            part = MemberTraffic(alice, Workload(members=2, messages=10), 0, 1)
            playing = asyncio.create_task(part.run(10))
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(playing), 0.01)
            alice.stack.fail(inga.Gap("lost for good"))
            alice._driver.end_turn()
            with pytest.raises(inga.Gap, match="lost for good"):
                await playing

    run(main())


def test_what_a_call_is_not_given(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, _bob):
            for to, words in (
                (5, "to is the name of a member, or several of them, not 5"),
                ([5], "5 is not a member"),
            ):
                with pytest.raises(inga.UsageError, match=words):
                    await alice.send(b"", to=to)
            with pytest.raises(inga.UsageError, match="send_many takes a list of messages, not 5"):
                await alice.send_many(5)  # type: ignore[arg-type]
            for number in ("two", 0, -1):
                with pytest.raises(
                    inga.UsageError, match="this is how many members have to be here, at least 1"
                ):
                    await alice.ready(number)  # type: ignore[arg-type]
            for told in (alice.on_join, alice.on_leave, alice.on_merge):
                with pytest.raises(
                    inga.UsageError, match=f"{told.__name__} is told a function to call, not 5"
                ):
                    told(5)  # type: ignore[operator]

    run(main())


def test_a_group_is_neither_copied_nor_pickled(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            await asyncio.gather(alice.ready(), bob.ready())
            for make in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="a Group is neither copied nor pickled"):
                    make(alice)
            assert repr(alice) == f"<inga.Group {alice.name!r}, 'alice' in it: alice, bob>"
        assert repr(alice) == f"<inga.Group {alice.name!r}, 'alice' in it: closed>"

    run(main())


def test_a_send_that_is_cancelled_while_it_waits_has_sent_nothing(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, queue_max=1024) as (alice, bob):
            await asyncio.gather(alice.ready(), bob.ready())
            sent = 0
            with suppress(TimeoutError):
                while True:
                    async with asyncio.timeout(0.05):
                        await alice.send(b"%4d" % sent + bytes(1000))
                    sent += 1
            await alice_is_heard(alice, bob, sent)

    async def alice_is_heard(alice: inga.Group, bob: inga.Group, sent: int) -> None:
        assert len(await take(aiter(bob), sent)) == sent
        await alice.send(b"last")
        assert await texts(bob, 1) == ["last"]

    run(main())
