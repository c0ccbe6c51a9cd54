"""What a member of the experiment does: answers, or asks and takes the time. One process, many trials.

A trial is a group of its own, by one of three stacks: `remiop` and `miop` as groups of inga, `sockets` bare: the
message cut into datagrams, put together where all of them arrive.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from struct import Struct
from time import perf_counter, sleep
from typing import Any, Protocol

from inga.corba.wire.miop import CONTROL
from inga.lab.remiop.trips import ANSWER, ANSWER_BYTES, DATAGRAM, MEMBERS, REQUEST
from inga.net import carrier
from inga.net.group import Group
from inga.net.join import join
from inga.runs.worker import WorkerLink

Hear = Callable[[bytes], None]

PIECE = Struct(">HIII")
"""Of a datagram on bare sockets: who, which message, which part, of how many."""


class ComparedStack(Protocol):
    """One of the three, as the job sees it."""

    async def send(self, data: bytes) -> None: ...

    def counts(self) -> dict[str, int]:
        """Data packets sent and received since the trial began, NACKs and repairs."""
        ...


async def member(config: dict[str, Any], link: WorkerLink) -> None:
    """Take part in one trial after the other, as told."""
    while (told := await link.hear())["kind"] == "trial":
        await _trial({**config, **told}, link)
    link.say("over")


async def _trial(config: dict[str, Any], link: WorkerLink) -> None:
    answers: asyncio.Queue[None] = asyncio.Queue()
    asks = config["me"] == 0
    waiting: set[asyncio.Task[None]] = set()

    def hear(data: bytes) -> None:
        if data[:1] == ANSWER:
            answers.put_nowait(None)
        elif not asks:
            task = asyncio.ensure_future(stack.send(ANSWER * ANSWER_BYTES))
            waiting.add(task)
            task.add_done_callback(waiting.discard)

    opened = _sockets if config["stack"] == "sockets" else _group
    async with opened(config, hear) as stack:
        link.say("ready")
        while (told := await link.hear())["kind"] != "end":
            if told["kind"] == "count":
                link.say("counts", **stack.counts())
            else:
                link.say("done", ms=await _ask(stack, config, answers))
    link.say("left")


async def _ask(stack: ComparedStack, config: dict[str, Any], answers: "asyncio.Queue[None]") -> float | None:
    """Milliseconds until everybody has answered; None if somebody does not."""
    while not answers.empty():
        answers.get_nowait()
    started = perf_counter()
    await stack.send(REQUEST * config["bytes"])
    await stack.send(ANSWER * ANSWER_BYTES)
    try:
        async with asyncio.timeout(config["patience"]):
            for _ in range(len(MEMBERS) - 1):
                await answers.get()
    except TimeoutError:
        return None
    return 1000 * (perf_counter() - started)


# By a group of inga


class _Group:
    """A group, whose datagrams are counted, and read slowly if so told."""

    def __init__(self, group: Group, pause: float) -> None:
        self._group = group
        self._pause = pause
        self.got = 0
        self._receive = group.stack.receive
        group.stack.receive = self._take  # type: ignore[method-assign]
        self._before = dict(group.stack.counts)

    def _take(self, batch: Any, *, now: float) -> None:
        self.got += sum(1 for data, _ in batch if not data[5] & CONTROL)
        if self._pause:
            sleep(self._pause * len(batch))
        self._receive(batch, now=now)

    @property
    def sent(self) -> int:
        return self._count("data")

    async def send(self, data: bytes) -> None:
        await self._group.send(data)

    def counts(self) -> dict[str, int]:
        found = {name: self._count(name) for name in ("nack", "repair")}
        return {**found, "sent": self.sent, "got": self.got}

    def _count(self, name: str) -> int:
        return self._group.stack.counts[name] - self._before.get(name, 0)


@asynccontextmanager
async def _group(config: dict[str, Any], hear: Hear) -> AsyncIterator[ComparedStack]:
    if config["buffer"]:
        carrier.RECEIVE_BUFFER = config["buffer"]  # this process is there for nothing else
    async with join(
        "lab-remiop",
        MEMBERS[config["me"]],
        members=MEMBERS,
        via=f"udp://{config['host']}:{config['port']}",
        interface="lo",
        order=config["stack"],
        detect=None,  # or members speak by themselves, which is not what is counted here
        protocol=config["protocol"],
    ) as group:
        await group.ready()
        listener = asyncio.ensure_future(_listen(group, hear))
        try:
            yield _Group(group, config["pause"])
        finally:
            listener.cancel()
            with suppress(asyncio.CancelledError):
                await listener


async def _listen(group: Group, hear: Hear) -> None:
    async for delivery in group:
        hear(bytes(delivery.data[:1]))


# By bare sockets


class _Sockets:
    """Messages in pieces; whole ones are handed over, nobody asks for what is missing."""

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
        """The message that this datagram completes."""
        who, number, index, count = PIECE.unpack_from(datagram)
        if who == self._me:
            return None
        self.got += 1
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
