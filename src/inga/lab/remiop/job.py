"""A member process of the experiment: it answers, or asks and measures the time. One process takes part in many trials.

A trial is a group of its own, over one of three stacks: `remiop` and `miop` as an ORB uses them, with each message as one GIOP
request to all; or bare `sockets`: the message is cut into datagrams, and joined by receivers that get all of them.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from struct import Struct
from time import perf_counter, sleep
from typing import Any, Protocol

from inga.corba.orb.channel import open_requests
from inga.corba.wire.giop import Tagged
from inga.corba.wire.group_request import decode_request, encode_request
from inga.corba.wire.miop import CONTROL
from inga.corba.wire.reference import GroupIdentity, group_reference
from inga.lab.remiop.trips import ANSWER, ANSWER_BYTES, DATAGRAM, MEMBERS, REQUEST
from inga.net import carrier
from inga.net.carrier import ArrivedDatagrams
from inga.net.group import Group
from inga.runs.worker import WorkerLink

Hear = Callable[[bytes], None]

LENGTH = Struct(">I")
OPERATIONS = {REQUEST: "ask", ANSWER: "answer"}
"""The operations of a request to the group, by the first octet of the message."""

PIECE = Struct(">HIII")
"""The header of a datagram on bare sockets: sender, message, index of the part, number of parts."""


class ComparedStack(Protocol):
    """One of the three stacks, as the job uses it."""

    async def send(self, data: bytes) -> None: ...

    def counts(self) -> dict[str, int]:
        """Return how many data packets were sent and received since the trial began, NACKs and repairs."""
        ...


async def member(config: dict[str, Any], link: WorkerLink) -> None:
    """Take part in one trial after the other, on command."""
    while (told := await link.hear())["kind"] == "trial":
        await _trial({**config, **told}, link)
    link.say("over")


async def _trial(config: dict[str, Any], link: WorkerLink) -> None:
    answers: asyncio.Queue[None] = asyncio.Queue()
    waiting: set[asyncio.Task[None]] = set()

    def hear(data: bytes) -> None:
        if data[:1] == ANSWER:
            answers.put_nowait(None)
        else:
            task = asyncio.ensure_future(stack.send(ANSWER * ANSWER_BYTES))
            waiting.add(task)
            task.add_done_callback(waiting.discard)

    opened = _sockets if config["stack"] == "sockets" else _requests
    async with opened(config, hear) as stack:
        link.say("ready")
        while (told := await link.hear())["kind"] != "end":
            if told["kind"] == "count":
                link.say("counts", **stack.counts())
            else:
                link.say("done", ms=await _ask(stack, config, answers))
    link.say("left")


async def _ask(stack: ComparedStack, config: dict[str, Any], answers: "asyncio.Queue[None]") -> float | None:
    """Send a request, and return the milliseconds until all members have answered; None if some answer does not arrive."""
    while not answers.empty():
        answers.get_nowait()
    started = perf_counter()
    await stack.send(REQUEST * config["bytes"])
    try:
        async with asyncio.timeout(config["patience"]):
            for _ in MEMBERS:  # ourselves among them
                await answers.get()
    except TimeoutError:
        return None
    return 1000 * (perf_counter() - started)


# By requests to a group of objects


class _Arrivals:
    """Counts datagrams that carry messages, and pauses at each if this member is to read slowly."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self.count = 0

    def __call__(self, burst: ArrivedDatagrams) -> None:
        self.count += sum(1 for data, _ in burst if not data[5] & CONTROL)
        if self._pause:
            sleep(self._pause * len(burst))


class _Requests:
    """A channel for requests, with counts of its datagrams."""

    def __init__(self, channel: Group, profile: Tagged, arrivals: _Arrivals) -> None:
        self._channel = channel
        self._profile = profile
        self._arrivals = arrivals
        self._number = 0
        self._before = dict(channel.stack.counts)
        self._came_before = arrivals.count

    async def send(self, data: bytes) -> None:
        """Send a message as one GIOP request, however large: a sequence of octets, for the operation `ask` or `answer`."""
        self._number += 1
        operation = OPERATIONS[data[:1]]
        body = LENGTH.pack(len(data)) + data
        await self._channel.send(encode_request(self._number, self._profile, operation, body))

    def counts(self) -> dict[str, int]:
        found = {name: self._count(name) for name in ("nack", "repair")}
        return {**found, "sent": self._count("data"), "got": self._arrivals.count - self._came_before}

    def _count(self, name: str) -> int:
        return self._channel.stack.counts[name] - self._before.get(name, 0)


@asynccontextmanager
async def _requests(config: dict[str, Any], hear: Hear) -> AsyncIterator[ComparedStack]:
    if config["buffer"]:
        carrier.RECEIVE_BUFFER = config["buffer"]  # global, but this process does nothing else
    host, port = config["host"], config["port"]
    profile = group_reference("", GroupIdentity("lab", 1), host, port).profiles[0]
    arrivals = _Arrivals(config["pause"])
    async with open_requests(
        f"udp://{host}:{port}",
        strategy=config["stack"],
        echo=True,  # the asking member answers as well
        interface="lo",
        protocol=config["protocol"],
        tap=arrivals,
    ) as channel:
        listener = asyncio.ensure_future(_listen(channel, hear))
        try:
            yield _Requests(channel, profile, arrivals)
        finally:
            listener.cancel()
            with suppress(asyncio.CancelledError):
                await listener


async def _listen(channel: Group, hear: Hear) -> None:
    kinds = {operation: kind for kind, operation in OPERATIONS.items()}
    async for delivery in channel:
        hear(kinds[decode_request(delivery.data).operation])


# By bare sockets


class _Sockets:
    """Messages in pieces; complete ones are delivered, missing pieces are not requested."""

    def __init__(self, own: socket.socket, target: tuple[str, int], me: int) -> None:
        self._own = own
        self._target = target
        self._me = me
        self._number = 0
        self._open: dict[tuple[int, int], dict[int, bytes]] = {}
        self.sent = self.got = 0

    async def send(self, data: bytes) -> None:
        room = DATAGRAM - PIECE.size
        self._number += 1
        parts = [data[at : at + room] for at in range(0, len(data), room)]
        for index, part in enumerate(parts):
            head = PIECE.pack(self._me, self._number, index, len(parts))
            self._own.sendto(head + part, self._target)
            self.sent += 1

    def take(self, datagram: bytes) -> bytes | None:
        """Take a datagram, and return the message that it completes, if any."""
        who, number, index, count = PIECE.unpack_from(datagram)
        self.got += who != self._me
        pieces = self._open.setdefault((who, number), {})
        pieces[index] = datagram[PIECE.size :]
        if len(pieces) < count:
            return None
        del self._open[who, number]
        return b"".join(pieces[k] for k in range(count))

    def counts(self) -> dict[str, int]:
        return {"nack": 0, "repair": 0, "sent": self.sent, "got": self.got}


@asynccontextmanager
async def _sockets(config: dict[str, Any], hear: Hear) -> AsyncIterator[ComparedStack]:
    host, port = config["host"], config["port"]
    loopback = socket.inet_aton("127.0.0.1")
    loop = asyncio.get_running_loop()
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as shared,
    ):
        own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        own.bind(("127.0.0.1", 0))
        shared.setblocking(False)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.bind((host, port))
        shared.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(host) + loopback)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config["buffer"] or 4 << 20)
        stack = _Sockets(own, (host, port), config["me"])

        def drain() -> None:
            for _ in range(16):
                try:
                    datagram = shared.recv(65536)
                except BlockingIOError:
                    return
                if config["pause"]:
                    sleep(config["pause"])
                if (message := stack.take(datagram)) is not None:
                    hear(message[:1])

        loop.add_reader(shared, drain)
        try:
            yield stack
        finally:
            loop.remove_reader(shared)
