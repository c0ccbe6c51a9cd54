"""Multicast, fan-out and TCP: all may lose, double and reorder, and the order is kept."""

import asyncio
from collections import Counter
from typing import Any

import pytest

import inga
from inga.net.address import choose_interface, parse_via
from inga.net.carrier import BACKLOG_MAX, BURST, SINGLES, MulticastCarrier, ReadingPace
from inga.trial.workload import Workload

from .helpers import CARRIERS, LOOPS, Party, Place, Run, take, until
from .trials import ROUGH, judged, play

pytestmark = pytest.mark.network

UNPROMISED = {"vector": set(), "fifo": {"causal"}, "none": {"causal", "fifo"}}


@pytest.mark.parametrize("order", UNPROMISED)
@pytest.mark.parametrize("via", CARRIERS)
def test_a_rough_network(run: Run, party: Party, via: str, order: str) -> None:
    workload = Workload(members=4, messages=150, size=500)

    async def main() -> tuple[Any, ...]:
        async with party(4, via, order=order, faults=ROUGH, seed=7, datagram_max=1500) as groups:
            diaries = await play(groups, workload)
            return diaries, sum((group.stack.counts for group in groups), start=Counter())

    diaries, counts = run(main())
    assert judged(diaries, workload).keys() <= UNPROMISED[order]
    assert counts["repair"] and counts["nack"], "or nothing was lost"


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("via", CARRIERS)
def test_subsets_on_a_rough_network(run: Run, party: Party, via: str, echo: bool) -> None:
    workload = Workload(members=4, messages=100, size=3000, subset=2)

    async def main() -> Any:
        async with party(4, via, faults=ROUGH, seed=8, echo=echo) as groups:
            return await play(groups, workload, echo=echo)

    assert judged(run(main()), workload, echo=echo) == {}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("via", CARRIERS)
def test_as_fast_as_it_goes(run: Run, party: Party, via: str, loop: str) -> None:
    workload = Workload(members=4, messages=1000, size=1024)

    async def main() -> Any:
        async with party(4, via) as groups:
            return await play(groups, workload)

    assert judged(run(main(), loop=loop), workload) == {}


def test_two_groups_of_one_name_at_different_places(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob), party(2) as (other, another):
            alice.post(b"here")
            other.post(b"there")
            assert bytes((await anext(aiter(bob))).data) == b"here"
            assert bytes((await anext(aiter(another))).data) == b"there"

    run(main())


def test_a_full_socket_is_waited_for(run: Run, party: Party) -> None:
    """What the kernel does not take at once waits, up to a bound; beyond it is dropped, and repaired."""
    datagram = bytes(50_000)

    async def main() -> None:
        async with party(2, "unicast") as (alice, bob):
            carrier: Any = alice.carrier
            carrier._own.setsockopt(1, 7, 4096)  # SO_SNDBUF, as small as it goes
            for _ in range(2 * BACKLOG_MAX // len(datagram)):
                carrier._wait(datagram, carrier._members[1])  # as if the socket were full
            assert carrier._backlog and carrier._backlog_bytes <= BACKLOG_MAX
            assert carrier.counts["dropped"] > 0
            await (await alice.send(b"after them")).reached("confirmed")
            assert not carrier._backlog and carrier._backlog_bytes == 0
            is_watched = asyncio.get_running_loop().remove_writer(carrier._own)
            assert not is_watched, "a socket with room for more would wake the loop for ever"
            assert bytes((await anext(aiter(bob))).data) == b"after them"

    run(main())


def test_ones_own_multicasts_are_not_heard(run: Run, place: Place) -> None:
    """The kernel drops them; what others multicast, and what is meant for us alone, comes."""
    via = parse_via(place("udp", 2)["via"])

    async def main() -> None:
        heard: list[list[bytes]] = [[], []]
        carriers = [MulticastCarrier(via, choose_interface(via, "lo")) for _ in heard]
        for carrier, ear in zip(carriers, heard, strict=True):
            await carrier.open(lambda burst, ear=ear: ear.extend(bytes(data) for data, _ in burst))
        one, other = carriers
        one.transmit(None, b"1")
        one.transmit(None, [b"2, ", b"gathered"])
        await until(lambda: len(heard[1]) == 2)
        other.transmit(None, b"3")
        other.addresses[0] = one._own.getsockname()  # type: ignore[union-attr]
        other.transmit(0, b"4")
        await until(lambda: len(heard[0]) >= 2)
        assert (sorted(heard[0]), heard[1]) == ([b"3", b"4"], [b"1", b"2, gathered"])
        assert (one.sent, other.sent) == (2, 2)
        for carrier in carriers:
            carrier.close()
            carrier.close()
            carrier.transmit(None, b"too late")

    run(main())


def test_the_window_fits_what_the_kernel_granted(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(4) as groups:
            for group in groups:
                flow: Any = group.stack.layer("flow")
                assert group.carrier.granted > 0
                assert 3 * flow.window <= max(group.carrier.granted, 3 * (64 << 10))

    run(main())


def test_addresses_are_learned_from_what_members_send(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3) as groups:
            await until(lambda: all(len(group.stack.addresses) == 2 for group in groups))
            ports = {
                group.me: group.carrier._own.getsockname()  # type: ignore[attr-defined]
                for group in groups
            }
            for group in groups:
                for member, address in group.stack.addresses.items():
                    assert ports[group.view.names[member]] == address

    run(main())


def test_leaving_waits_until_the_others_have_all(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, faults=inga.Faults(loss=0.2), seed=0) as (alice, bob):
            await alice.send_many([bytes(1000)] * 400)
            await alice.close()
            assert len(await take(aiter(bob), 400)) == 400

    run(main())


def test_leaving_waits_for_what_the_window_keeps_back(run: Run, party: Party) -> None:
    """The other has all that was let through, and no room for the rest until it reads."""

    async def main() -> None:
        async with party(2, window=20_000, queue_max=10_000) as (alice, bob):
            await alice.send_many([bytes(1000)] * 400)
            leaving = asyncio.create_task(alice.close())
            await until(lambda: bob.stack.queued > 10_000)
            await asyncio.sleep(0.05)
            assert not leaving.done()
            assert len(await take(aiter(bob), 400)) == 400
            await leaving

    run(main())


def test_a_second_datagram_is_not_looked_for_where_they_come_one_by_one() -> None:
    pace, reads = ReadingPace(), []
    for _ in range(3 * (SINGLES + 1)):
        reads.append(pace.most)
        pace.note(1)
    assert reads == [BURST] * (SINGLES + 1) + ([1] * SINGLES + [BURST]) * 2
    while pace.most == 1:
        pace.note(1)
    pace.note(2)
    for _ in range(SINGLES + 1):
        assert pace.most == BURST, "there were more: they may come together again"
        pace.note(1)
    assert pace.most == 1


def test_what_is_not_read_at_once_is_read_soon(run: Run, party: Party) -> None:
    """Datagrams that come together while they are read one by one."""

    async def main() -> list[str]:
        async with party(2, "udp", echo=False) as (alice, bob):
            taken, received = [], aiter(bob)
            for turn in range(4):
                for _ in range(SINGLES * 2):  # so that they are read one by one
                    await alice.send(b"alone")
                    await anext(received)
                for number in range(12):
                    alice.post(b"%d.%d" % (turn, number))
                    alice.stack.flush()
                    alice._driver.end_turn()
                taken += [bytes(delivery.data).decode() for delivery in await take(received, 12)]
            return taken

    assert run(main()) == [f"{turn}.{number}" for turn in range(4) for number in range(12)]


def test_members_have_other_numbers_in_another_view(run: Run, party: Party) -> None:
    """Whoever has another's number now has not moved there from where the other was."""

    async def main() -> None:
        async with party(3, via="udp") as (alice, bob, cathy):
            carrier, places = alice.carrier, alice.carrier._strangers
            of_bob, of_cathy = bob.carrier._own.getsockname(), cathy.carrier._own.getsockname()
            places.locate({1: of_bob}, 0.0)
            places.note(of_bob, 1, 1000.0)
            await bob.close()
            await until(lambda: len(alice.view) == 2 and 1 in carrier.addresses)
            assert carrier.addresses[1] == of_cathy
            places.locate(carrier.addresses, 1000.0)
            assert places.members == {f"127.0.0.1:{of_cathy[1]}"}

    run(main())
