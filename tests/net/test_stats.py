"""The snapshot of a live member: what went through its sockets, and what state it is in."""

import asyncio

import pytest

import inga

from .helpers import CARRIERS, Party, Run, skip, texts, until

pytestmark = pytest.mark.network


@pytest.mark.parametrize("via", CARRIERS)
def test_what_one_sends_is_what_the_other_gets(via: str, run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, via=via) as (alice, bob):
            for number in range(20):
                await alice.send(b"%d" % number * 1000)
            assert len(await texts(bob, 20)) == 20

            def is_quiet() -> bool:
                here, there = alice.stats().traffic, bob.stats().traffic
                return (here.datagrams_out, here.bytes_out) == (there.datagrams_in, there.bytes_in)

            await until(lambda: alice.stats().round_trip is not None and is_quiet())
            stats = alice.stats()
            assert stats.traffic.bytes_out > 20_000 > stats.traffic.bytes_in > 0
            assert stats.traffic.datagrams_out and stats.traffic.datagrams_in and not stats.traffic.dropped
            assert (stats.sent, stats.delivered, bob.stats().delivered) == (20, 0, 20)
            assert (stats.me, stats.here, stats.state) == ("alice", ("alice", "bob"), "open")
            assert stats.round_trip is not None and stats.round_trip < 10.0
        assert alice.stats().state == "closed"

    run(main())


def test_who_does_not_read_is_named(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, window=20_000, queue_max=10_000) as (alice, bob):
            waits = asyncio.ensure_future(alice.send_many([b"." * 4000] * 20))
            await until(lambda: alice.stats().state == "waiting")
            skip(2.0)
            await until(lambda: alice.stats().blocked_by == ("bob",) and bool(alice.waits))
            stats = alice.stats()
            assert stats.slowest is not None and stats.slowest.name == "bob"
            assert stats.blocked_for >= 2.0 and stats.slowest.waited >= 2.0
            assert bob.stats().unread_bytes >= 4000
            assert len(await texts(bob, 20)) == 20
            await waits

    run(main(), loop="skipping")


def test_noise_is_rejected_by_reason(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            await alice.send(b"hello")
            await texts(bob, 1)
            alice.receive([(memoryview(b"noise"), ("127.0.0.1", 9))])
            stats = alice.stats()
            assert stats.rejected == alice.rejected and sum(stats.rejected.values()) == 1
            assert isinstance(stats, inga.Stats)

    run(main())
