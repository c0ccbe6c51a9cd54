"""Where hosts are: names are looked up beside the loop, and again from time to time.

An address needs no looking up. A name that nobody has asked for yet is known a moment later, and until then nothing is sent
there. What was found stays until something else is: a name server that does not answer takes nobody's address away, and a
host that comes back somewhere else is found there.

    kept      the names of seeds and of members: looked up every LOOK_AGAIN seconds, sooner while they are not found
    others    named by strangers, or of views before: looked up when something is to be sent there, few at once

Threads do it, one for each name that is being looked up, and not those of the loop: the application may need these, and a
program that ends would wait for them as long as for a name server that is gone.
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
"""Seconds for which what was found is good enough."""

RETRY, RETRY_MAX = 0.5, 10.0
"""Seconds before a name is looked up again that was not found, at first and at most; and a random part of them."""

FIRST_WITHIN = 5.0
"""Seconds for which one who joins waits until all seeds and members were looked up once: as long as name servers are given."""

LOOKUPS_MAX, LOOKUPS_OF_OTHERS_MAX = 8, 4
"""Names that are looked up at once: in all, and those that strangers may have named, which leave room for members."""

OTHERS_MAX = PLACES_MAX
"""Names that are known and not kept, as many as places are remembered: of more, the one used longest ago is forgotten."""


class Hosts:
    """The hosts of one member's group."""

    def __init__(self, seeds: Iterable[str] = (), group: str | None = None) -> None:
        """`seeds` are places, `host:port`."""
        self._group = group
        self._seeds = _names_in(seeds)
        self._kept = self._seeds
        self._mine = ""  # our own host
        self._names: dict[str, _Name] = {}  # of the others, the one used longest ago first
        self._pending: set[str] = set()  # being looked up
        self._rng = Random()
        self._on_change: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._came = asyncio.Event()  # something that was looked up
        self._closed = False

    def find(self, place: str) -> HostPort | None:
        """Where that is; None if it is not known, or not yet."""
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
        """Where we are ourselves, which has to be known; of the `places` of members, and of seeds, it is good to know."""
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
        """Members are there."""
        self._kept = self._seeds | _names_in(places)
        self._look_round()

    def follow(self, on_change: Callable[[], None]) -> None:
        """From now on names that are kept are looked up again, and a change is told."""
        self._on_change = on_change
        self._look_round()

    def close(self) -> None:
        self._closed = True
        self._on_change = None
        if self._timer is not None:
            self._timer.cancel()

    def _name(self, host: str) -> "_Name":
        """What is known of a name, which is in use."""
        name = self._names.pop(host, None) or _Name()
        self._names[host] = name
        if len(self._names) > OTHERS_MAX:
            others = [each for each in self._names if each not in self._kept]
            if len(others) > OTHERS_MAX:
                del self._names[others[0]]
        return name

    def _look_up(self, host: str) -> None:
        """Ask where that is, unless it was asked a moment ago or too much is asked already."""
        loop, is_kept = asyncio.get_running_loop(), host in self._kept
        if self._closed or host in self._pending or self._names[host].due > loop.time():
            return
        others = len(self._pending - self._kept)
        if len(self._pending) < LOOKUPS_MAX and (is_kept or others < LOOKUPS_OF_OTHERS_MAX):
            self._pending.add(host)
            try:
                Thread(target=_look_up, args=(host, loop, self._found), daemon=True).start()
            except RuntimeError:  # there may be no more threads now
                loop.call_soon(self._found, host, [])

    def _look_round(self) -> None:
        """Look up what is due of the names that are kept; the timer is for what will be."""
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
        ):  # else what comes looks round
            self._timer = asyncio.get_running_loop().call_at(min(due), self._look_round)

    def _found(self, host: str, addresses: list[str]) -> None:
        """It was looked up; no addresses: it is not known, or nobody could say."""
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
    """What is known of the name of a host."""

    __slots__ = ("_pause", "address", "due", "is_missed", "is_tried")

    def __init__(self) -> None:
        self.address: str | None = None
        self.due = 0.0  # when it may be looked up again
        self.is_tried = False
        self.is_missed = False  # it was not found when it was looked up last
        self._pause = Backoff(RETRY, RETRY_MAX)

    def learn(self, addresses: list[str], now: float, rng: Random) -> None:
        """Name servers give several in any order: one that is among them is good as it is."""
        self.is_tried, self.is_missed = True, not addresses
        if addresses:
            self._pause.reset()
            self.due = now + LOOK_AGAIN
            if self.address not in addresses:
                self.address = addresses[0]
        else:
            self.due = now + self._pause.next(rng)


def _names_in(places: Iterable[str]) -> frozenset[str]:
    """The names among the hosts of places."""
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
    except (OSError, ValueError):  # the latter of what cannot be a name at all
        addresses = []
    with suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(found, host, addresses)
