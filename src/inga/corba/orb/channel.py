"""GIOP requests to a group over MIOP or ReMIOP, as ORBs send them: the same layers as in recipes, without inga's orders on top.

    async with open_requests("udp://225.6.7.8:12345?interface=lo", strategy="remiop") as channel:
        await channel.send(encode_request(1, profile, "greeting_oneway", body))
        async for delivery in channel:
            request = decode_request(delivery.data)     # of delivery.sender, a dotted quad

`send` takes whole messages, and the iteration yields them. The members of the group need not be known. Our own requests
are not delivered to us, unless `echo` is set.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from inga.corba.multicast.fragments import QUAD_NET, Strategy
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.requests import Requests
from inga.corba.multicast.transport import miop_layers
from inga.corba.wire.miop import quad, read_quad
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.view import View
from inga.net.address import choose_interface, parse_via
from inga.net.carrier import ArrivedDatagrams, Deliver, MulticastCarrier
from inga.net.group import Group
from inga.net.receipt import Receipts
from inga.recipes import Options
from inga.stack.stack import Stack

STRATEGIES: dict[str, type[Strategy[Any]] | None] = {"miop": None, "remiop": ReMiop}
"""Strategies by the names of the recipes that use them for inga's own packets."""

PRIVATE_NET = 240 << 24
"""The base of random sender numbers: they are nobody's IP address, since processes on one machine share theirs."""


@asynccontextmanager
async def open_requests(
    via: str,
    *,
    strategy: str | type[Strategy[Any]] = "remiop",
    sender: str | None = None,
    echo: bool = False,
    interface: str | None = None,
    datagram_max: int | None = None,
    queue_max: int = 16 << 20,
    protocol: Mapping[str, Any] | None = None,
    faults: Faults | None = None,
    seed: int | None = None,
    tap: Deliver | None = None,
) -> AsyncIterator[Group]:
    """Send requests to a multicast address, and receive those of others.

    `strategy` is `miop`, `remiop`, or a class of your own; `protocol` its options and those of the fragments.
    `sender` is our number as a dotted quad, which must be unique in the group; random by default.
    `tap` is called with the datagrams of each burst, and their source addresses, before they are read.
    """
    place = parse_via(via)
    if place.kind != "udp":
        raise UsageError(f"requests to a group go to a multicast address, udp://225.x.y.z:port, not {via!r}")
    name, kind = _strategy(strategy)
    carrier = MulticastCarrier(place, choose_interface(place, interface))
    if datagram_max is not None:
        carrier.datagram_max = datagram_max
    number = _sender(sender, carrier)
    options = Options(
        faults=faults, queue_max=queue_max, protocol=dict(protocol or {}), start=int(time.time())
    )
    # A receiver that was running when a sender started gets all its messages, even if the very first packets were lost.
    defaults = {"on_gap": "skip", "baseline": "start"} if kind is ReMiop else {}
    receipts = Receipts()
    me = quad(number)
    stack = Stack(
        [Requests(echo=echo), *miop_layers(name, kind, options, sender=number, **defaults)],
        0,
        View.of(me, recipe=name),
        rng=Random(seed),
        receipt=receipts,
        datagram_max=carrier.datagram_max,
        now=asyncio.get_running_loop().time(),
    )
    channel = Group(via, me, stack, carrier, receipts)

    def show_and_receive(burst: ArrivedDatagrams) -> None:
        assert tap is not None
        tap(burst)
        channel.receive(burst)

    try:
        await carrier.open(channel.receive if tap is None else show_and_receive)
        channel.begin()
        yield channel
    except BaseException:
        await channel.close(linger=0.2)
        raise
    else:
        await channel.close()


def _strategy(strategy: str | type[Strategy[Any]]) -> tuple[str, type[Strategy[Any]] | None]:
    """The name of the recipe that a strategy counts as, and its layer."""
    if not isinstance(strategy, str):
        return "remiop", strategy
    if strategy not in STRATEGIES:
        raise UsageError(f"requests travel by {' or '.join(STRATEGIES)}, not by {strategy!r}")
    return strategy, STRATEGIES[strategy]


def _sender(wanted: str | None, carrier: MulticastCarrier) -> int:
    if wanted is None:
        net = QUAD_NET if carrier.is_loopback else PRIVATE_NET
        return net | Random().randrange(1, 1 << 24)
    number = read_quad(wanted)
    if number is None:
        raise UsageError(f"sender is a dotted quad such as 127.0.0.7, not {wanted!r}")
    return number
