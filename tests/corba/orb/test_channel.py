"""Requests of an ORB over MIOP and ReMIOP: whole GIOP messages in, whole GIOP messages out."""

import asyncio
from contextlib import AsyncExitStack

import pytest

import inga
from inga.corba.orb.channel import open_requests
from inga.corba.wire import reference
from inga.corba.wire.group_request import decode_request, encode_request
from inga.layers.shape import Faults
from inga.net.group import Group

from ...net.helpers import FreePort, Run, take, until

pytestmark = pytest.mark.network

QUICK = {"tnack": 0.01, "trepair": 0.01, "state_interval": 0.05}


def requests(port: int, count: int, size: int = 10) -> list[bytes]:
    group = reference.encode_group(reference.GroupIdentity("Test", 1))
    profile = reference.encode_uipmc(reference.Uipmc("225.6.7.8", port, (group,)))
    return [
        encode_request(number, profile, "put", lambda encoder: encoder.octets(bytes(size)))
        for number in range(count)
    ]


async def numbers(channel: Group, count: int) -> list[tuple[str, int]]:
    """Who sent which."""
    got = await take(aiter(channel), count)
    return [(delivery.sender, decode_request(delivery.data).request_id) for delivery in got]


@pytest.mark.parametrize("strategy", ["miop", "remiop"])
def test_requests_of_each_reach_the_others(run: Run, free_port: FreePort, strategy: str) -> None:
    port = free_port()
    via = f"udp://225.6.7.8:{port}?interface=lo"

    async def main() -> None:
        async with (
            open_requests(via, strategy=strategy, sender="127.0.0.7") as one,
            open_requests(via, strategy=strategy, sender="127.0.0.8") as two,
        ):
            for request in requests(port, 5, 4000):
                await one.send(request)
            assert sorted(await numbers(two, 5)) == [("127.0.0.7", number) for number in range(5)]
            await two.send(requests(port, 1)[0])
            assert await numbers(one, 1) == [("127.0.0.8", 0)]

    run(main())


def test_lost_requests_are_recovered_and_carried_out_once(run: Run, free_port: FreePort) -> None:
    port = free_port()
    via = f"udp://225.6.7.8:{port}?interface=lo"

    async def main() -> None:
        async with AsyncExitStack() as stack:
            channels = [
                await stack.enter_async_context(
                    open_requests(via, protocol=QUICK, faults=Faults(loss=0.2), seed=seed)
                )
                for seed in range(3)
            ]
            for request in requests(port, 60, 500):
                for channel in channels:
                    await channel.send(request)
            for channel in channels:
                got = await numbers(channel, 120)
                assert len(set(got)) == 120
            assert all(not channel.stack.counts["unrecoverable"] for channel in channels)

    run(main())


def test_an_echo_for_members_in_this_process(run: Run, free_port: FreePort) -> None:
    port = free_port()

    async def main() -> None:
        async with open_requests(f"udp://225.6.7.8:{port}?interface=lo", echo=True) as channel:
            await channel.send(requests(port, 1)[0])
            assert await numbers(channel, 1) == [(channel.me, 0)]
            assert channel.me.startswith("127.")

    run(main())


def test_nobody_there_is_no_reason_to_wait(run: Run, free_port: FreePort) -> None:
    port = free_port()

    async def main() -> None:
        via = f"udp://225.6.7.8:{port}?interface=lo"
        async with open_requests(via, protocol={"size": 4}) as channel:
            for request in requests(port, 50):
                await channel.send(request)
            await until(lambda: channel.stack.counts["data"] == 50)
            assert channel.stack.settled

    run(main())


def test_what_cannot_be_meant(run: Run, free_port: FreePort) -> None:
    via = f"udp://225.6.7.8:{free_port()}?interface=lo"

    async def main() -> None:
        for wrong, why in (
            ({"via": "tcp"}, "requests to a group go to a multicast address"),
            ({"strategy": "iiop"}, "requests travel by miop or remiop, not by 'iiop'"),
            ({"sender": "0.1.2.3"}, "sender is a dotted quad such as 127.0.0.7"),
            ({"protocol": {"widow": 1}}, "'remiop' has no option 'widow'"),
        ):
            with pytest.raises(inga.UsageError, match=why):
                async with open_requests(**{"via": via, **wrong}):  # type: ignore[arg-type]
                    pass
        async with open_requests(via) as channel:
            with pytest.raises(inga.UsageError, match="not a oneway request to a group"):
                await channel.send(b"hello")
            with pytest.raises(inga.UsageError, match="at most 16777216 can be sent by MIOP"):
                await channel.send(bytes(17 << 20))
        await asyncio.sleep(0)

    run(main())
