"""Resolves host names beside the event loop, and again from time to time.

An IPv4 address needs no lookup. A name is resolved a moment after it is first used, and until then nothing is sent
there. A result is kept until a lookup gives another one: if a name server does not answer, known addresses stay, and a
host that returns at another address is found there.

    kept      the names of seeds and of members: looked up every LOOK_AGAIN seconds, sooner while they are not found
    others    named by strangers, or of earlier views: looked up when something is to be sent there, few at once

Each lookup has a thread of its own. The threads of the loop are not used: the application may need them, and a
program that ends would wait for them as long as for a dead name server.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from threading import Thread

from inga.model.errors import UsageError
from inga.net.address import HostPort, is_address, parse_host_port
from inga.net.log import report
from inga.session.alarms import Backoff
from inga.stack.places import PLACES_MAX

LOOK_AGAIN = 10.0
"""Seconds after which a name that was found is looked up again."""

RETRY, RETRY_MAX = 0.5, 10.0
"""Seconds before a name that was not found is looked up again, at first and at most; a random part is added."""

FIRST_WITHIN = 5.0
"""Seconds for which a joining member waits until all seeds and members were looked up once: the usual timeout of name servers."""

LOOKUPS_MAX, LOOKUPS_OF_OTHERS_MAX = 8, 4
"""The most lookups at once: in all, and of names that strangers may have named, so that these leave room for members."""

OTHERS_MAX = PLACES_MAX
"""The most known names that are not kept, as many as addresses are remembered; beyond that, the one used longest ago is forgotten."""


class Hosts:
    """The resolved hosts of one member's group."""

    def __init__(self, seeds: Iterable[str] = (), group: str | None = None) -> None:
        """`seeds` are addresses, `host:port`."""
        self._group = group
        self._seeds = _names_in(seeds)
        self._kept = self._seeds
        self._mine = ""  # our own host
        self._names: dict[str, _Name] = {}  # the name used longest ago first
        self._pending: set[str] = set()  # being looked up
        self._rng = Random()
        self._on_change: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._came = asyncio.Event()  # a lookup has ended
        self._closed = False

    def find(self, place: str) -> HostPort | None:
        """The resolved address of a `host:port`; None if it is not known, or not yet."""
        try:
            host, port = parse_host_port(place, "somebody")
        except UsageError:
            return None
        if is_address(host):
            return host, port
        name = self._name(host)
        self._look_up(host)
        return None if name.address is None else (name.address, port)

    async def open(self, mine: str, me: str, places: Iterable[str] = ()) -> HostPort:
        """Resolve our own address and return it; UsageError if that fails. Also look up the `places` of members, and seeds, as far as
        they can be resolved in time."""
        self._mine, _ = parse_host_port(mine, me)
        self.keep([mine, *places])
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_WITHIN):
                while not all(self._name(each).is_tried for each in self._kept):
                    self._came.clear()
                    await self._came.wait()
        found = self.find(mine)
        if found is None:
            raise UsageError(f"the host {self._mine!r} of {me} cannot be resolved")
        return found

    def keep(self, places: Iterable[str]) -> None:
        """Keep the names in these addresses of members."""
        self._kept = self._seeds | _names_in(places)
        self._look_round()

    def follow(self, on_change: Callable[[], None]) -> None:
        """From now on look up kept names repeatedly, and call `on_change` when an address changes."""
        self._on_change = on_change
        self._look_round()

    def close(self) -> None:
        self._closed = True
        self._on_change = None
        if self._timer is not None:
            self._timer.cancel()

    def _name(self, host: str) -> "_Name":
        """The entry of a name, which becomes the one used last."""
        name = self._names.pop(host, None) or _Name()
        self._names[host] = name
        if len(self._names) > OTHERS_MAX:
            others = [each for each in self._names if each not in self._kept]
            if len(others) > OTHERS_MAX:
                del self._names[others[0]]
        return name

    def _look_up(self, host: str) -> None:
        """Begin a lookup, unless the name is not due or too many lookups are running."""
        loop, is_kept = asyncio.get_running_loop(), host in self._kept
        if self._closed or host in self._pending or self._names[host].due > loop.time():
            return
        others = len(self._pending - self._kept)
        if len(self._pending) < LOOKUPS_MAX and (is_kept or others < LOOKUPS_OF_OTHERS_MAX):
            self._pending.add(host)
            try:
                Thread(target=_look_up, args=(host, loop, self._found), daemon=True).start()
            except RuntimeError:  # no more threads can be started now
                loop.call_soon(self._found, host, [])

    def _look_round(self) -> None:
        """Look up the kept names that are due, and set the timer for the next one."""
        if self._closed:
            return
        for host in self._kept:
            self._name(host)
            self._look_up(host)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = [self._names[host].due for host in self._kept - self._pending]
        if (
            self._on_change is not None and due and len(self._pending) < LOOKUPS_MAX
        ):  # if not, `_found` calls this again
            self._timer = asyncio.get_running_loop().call_at(min(due), self._look_round)

    def _found(self, host: str, addresses: list[str]) -> None:
        """Take the result of a lookup; no addresses: the name is unknown, or no name server answered."""
        self._pending.discard(host)
        name, now = self._names.get(host), asyncio.get_running_loop().time()
        is_other = False
        if name is not None:
            is_other = bool(addresses) and name.address not in addresses
            if not (addresses or name.is_missed) and host in self._kept and host != self._mine:
                report(
                    "host.unknown",
                    "the host %s cannot be resolved, and is looked up again",
                    host,
                    group=self._group,
                )
            name.learn(addresses, now, self._rng)
        self._came.set()
        if not self._closed:
            if is_other and host in self._kept and self._on_change is not None:
                self._on_change()
            self._look_round()


class _Name:
    """What is known about the name of a host."""

    __slots__ = ("_pause", "address", "due", "is_missed", "is_tried")

    def __init__(self) -> None:
        self.address: str | None = None
        self.due = 0.0  # when it may be looked up again
        self.is_tried = False
        self.is_missed = False  # the last lookup did not find it
        self._pause = Backoff(RETRY, RETRY_MAX)

    def learn(self, addresses: list[str], now: float, rng: Random) -> None:
        """Take the result of a lookup. Name servers return several addresses in any order: ours stays if it is among them."""
        self.is_tried, self.is_missed = True, not addresses
        if addresses:
            self._pause.reset()
            self.due = now + LOOK_AGAIN
            if self.address not in addresses:
                self.address = addresses[0]
        else:
            self.due = now + self._pause.next(rng)


def _names_in(places: Iterable[str]) -> frozenset[str]:
    """The host names (not IPv4 addresses) in these `host:port` texts."""
    found = set()
    for place in places:
        with suppress(UsageError):
            host, _ = parse_host_port(place, "somebody")
            if not is_address(host):
                found.add(host)
    return frozenset(found)


def _look_up(
    host: str, loop: asyncio.AbstractEventLoop, found: Callable[[str, list[str]], None]
) -> None:  # in a thread
    try:
        entries = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_DGRAM)
        addresses = [str(entry[4][0]) for entry in entries]
    except (OSError, ValueError):  # ValueError: the text cannot be a name at all
        addresses = []
    with suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(found, host, addresses)
