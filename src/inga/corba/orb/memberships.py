"""The channels to the groups that a broker's objects are members of, and to those it calls: one for each multicast address.

A channel opens when the first object becomes a member of a group at that address, or when a first request goes there;
it closes when the last member has left, unless we have sent requests over it, which may still have to be repaired. The reference
of a group says whether it uses MIOP or ReMIOP (see `inga.corba.broker.groups`); all groups at one address use the same.

Requests are executed one after the other, in the order of their arrival, also if a method is a coroutine: a slow member
slows down the senders of its group, and nothing else.
"""

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inga.corba.broker.dispatch import Broker, ServantCall
from inga.corba.broker.groups import NO_ADDRESS, is_reliable
from inga.corba.orb.channel import open_requests
from inga.corba.orb.iiop import is_cancelled
from inga.corba.wire.group_request import decode_request
from inga.corba.wire.reference import Uipmc
from inga.layers.shape import Faults
from inga.model.errors import IngaError, UsageError, WireError
from inga.net.group import Group
from inga.net.log import report

GroupAddress = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Multicast:
    """How groups are reached. `protocol` has the options of ReMIOP and MIOP, `faults` are for tests."""

    interface: str | None = None
    protocol: Mapping[str, Any] | None = None
    faults: Faults | None = None
    seed: int | None = None


class _Channel:
    """Requests to and from one multicast address."""

    def __init__(self, place: GroupAddress, reliable: bool, broker: Broker, how: Multicast) -> None:
        self.reliable = reliable
        self.sends = False
        self.executed = 0
        self._place = place
        self._broker = broker
        self._how = how
        self.opened: asyncio.Future[Group] = asyncio.get_running_loop().create_future()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_over(self) -> bool:
        """Whether it has ended or failed; then another one has to be opened."""
        return self._task.done()

    @property
    def is_open(self) -> bool:
        """Whether it was opened without an error."""
        return self.opened.done() and not self.opened.cancelled() and self.opened.exception() is None

    async def group(self) -> Group:
        """Wait until the channel is open; return its group."""
        return await asyncio.shield(self.opened)

    async def close(self) -> None:
        """Wait until the other members have our packets, then end."""
        if self.is_open:
            await self.opened.result().close()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        host, port = self._place
        try:
            async with open_requests(
                f"udp://{host}:{port}",
                strategy="remiop" if self.reliable else "miop",
                echo=True,  # Members in this process get its requests, too.
                interface=self._how.interface,
                protocol=self._how.protocol,
                faults=self._how.faults,
                seed=self._how.seed,
            ) as group:
                self.opened.set_result(group)
                async for delivery in group:
                    try:
                        found = self._broker.group_request(decode_request(delivery.data))
                    except WireError as error:
                        if delivery.sender != group.me:  # else we call a group without being a member
                            group.stack.reject(error.reason)
                        continue
                    await self._carry_out(found)
        except IngaError as error:
            if self.opened.done():
                report("orb.deaf", "requests to %s:%d are heard no more: %s", host, port, error)
            else:
                self.opened.set_exception(error)

    async def _carry_out(self, invocations: list[ServantCall]) -> None:
        for invocation in invocations:
            self.executed += 1
            try:
                result = invocation.call()
                if inspect.isawaitable(result):
                    await result
            except (Exception, asyncio.CancelledError) as error:
                if is_cancelled():
                    raise
                report("orb.failed", "%s failed", invocation.called.where, error=error)


class Channels:
    """All channels of a broker, as its memberships and requests need them."""

    def __init__(self, broker: Broker, how: Multicast) -> None:
        self._broker = broker
        self._how = how
        self._open: dict[GroupAddress, _Channel] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def places(self) -> list[GroupAddress]:
        """The addresses that are listened to."""
        return list(self._open)

    def group(self, way: Uipmc) -> Group | None:
        """The channel by which a group is reached, if one is open; what it refused is in its `stack.rejected`."""
        channel = self._open.get((way.address, way.port))
        return None if channel is None or not channel.is_open else channel.opened.result()

    async def follow(self) -> None:
        """Open the channels to groups that our objects are members of, close those to groups that they have left."""
        wanted = {}
        for way in self._broker.places:
            place = _place(way)
            wanted[place] = self._channel(place, way)
        for place, channel in list(self._open.items()):
            if place not in wanted and not channel.sends:
                del self._open[place]
                self._end(channel)
        for place, channel in wanted.items():
            await self._opened(place, channel)

    async def send(self, way: Uipmc, data: bytes) -> None:
        """Send a request to all members of a group."""
        place = _place(way)
        channel = self._channel(place, way)
        channel.sends = True
        await (await self._opened(place, channel)).send(data)
        # Lets the event loop run even if the caller sends in a loop, so that NACKs and reports of members are read.
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Leave all groups."""
        for channel in self._open.values():
            self._end(channel)
        self._open.clear()
        while self._closing:
            await asyncio.wait(self._closing)

    def _channel(self, place: GroupAddress, way: Uipmc) -> _Channel:
        reliable = is_reliable(way.components)
        channel = self._open.get(place)
        if channel is None or channel.is_over:
            channel = self._open[place] = _Channel(place, reliable, self._broker, self._how)
        elif channel.reliable != reliable:
            spoken, other = ("ReMIOP", "MIOP") if channel.reliable else ("MIOP", "ReMIOP")
            raise UsageError(
                f"{place[0]}:{place[1]} is used by {spoken} here; a group by {other} needs another address."
            )
        return channel

    async def _opened(self, place: GroupAddress, channel: _Channel) -> Group:
        try:
            return await channel.group()
        except IngaError:
            if self._open.get(place) is channel:
                del self._open[place]
            raise

    def _end(self, channel: _Channel) -> None:
        task = asyncio.get_running_loop().create_task(channel.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _place(way: Uipmc) -> GroupAddress:
    if way.address == NO_ADDRESS:
        raise UsageError("This group has no address yet: ask its manager for a newer reference.")
    return way.address, way.port
