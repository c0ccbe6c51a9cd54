"""Multicast, fan-out and TCP: all may lose, double and reorder, and the order is kept."""

from typing import Any

import pytest

import inga
from inga.net.carrier import BACKLOG_MAX
from inga.trial.workload import Workload

from .helpers import CARRIERS, LOOPS, Party, Run, take, until
from .trials import ROUGH, judged, play

pytestmark = pytest.mark.network

UNPROMISED = {"vector": set(), "fifo": {"causal"}, "none": {"causal", "fifo"}}


@pytest.mark.parametrize("order", UNPROMISED)
@pytest.mark.parametrize("via", CARRIERS)
def test_a_rough_network(run: Run, party: Party, via: str, order: str) -> None:
    workload = Workload(members=4, messages=200, size=200)

    async def main() -> tuple[Any, ...]:
        async with party(4, via, order=order, faults=ROUGH, seed=7) as groups:
            diaries = await play(groups, workload)
            counts = sum((group.stack.counts for group in groups), start=groups[0].stack.counts.__class__())
            return diaries, counts

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
            assert bytes((await anext(aiter(bob))).data) == b"after them"

    run(main())


def test_ones_own_multicasts_are_not_heard(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            before = alice.stack.counts["bytes"], dict(alice.stack.rejected)
            for _ in range(20):
                await (await alice.send(bytes(1000))).reached("confirmed")
            assert len(await take(aiter(bob), 20)) == 20
            assert dict(alice.stack.rejected) == before[1]
            assert set(alice.stack.addresses) == {1}

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
        async with party(2, faults=inga.Faults(loss=0.3), seed=5) as (alice, bob):
            sending = alice.send_many([bytes(1000)] * 400)
            await sending
            await alice.close()
            assert len(await take(aiter(bob), 400)) == 400

    run(main())
