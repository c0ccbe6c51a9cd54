"""The jobs of a benchmark's processes: members of groups, and the baselines that groups are compared with.

Every throughput job sends `messages` of `size` bytes and receives as many from each other member; a
first, shorter round warms everything up. The raw baselines limit what is in flight, as a window does.
"""

import asyncio
import gc
import io
import pstats
import resource
import select
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from cProfile import Profile
from resource import RUSAGE_SELF, getrusage
from statistics import quantiles
from time import perf_counter, process_time
from typing import Any, NamedTuple

from inga.model.delivery import Delivery
from inga.model.packet import Buffer
from inga.net import sieve
from inga.net.group import Group
from inga.net.join import join
from inga.net.options import DEFAULTS
from inga.runs.worker import WorkerLink

GROUP = "bench"

WARM_UP = 4
"""The first round has one in so many of the messages."""

ZMQ_PATIENCE_MS = 2000

RAW_PATIENCE = 2.0  # seconds
RAW_WINDOW = 8
"""Datagrams that each raw sender keeps in flight."""


async def throughput(config: dict[str, Any], link: WorkerLink) -> None:
    """Send as fast as the window allows, and read everything."""
    others = len(config["members"]) - 1
    data = b"x" * config["size"]
    write, read = _WRITERS[config["write"]], _READERS[config["read"]]
    async with join_bench(config) as group:
        await group.ready()
        reader = read(group)

        async def play(messages: int) -> None:
            received = asyncio.ensure_future(reader(messages * others))
            await write(group, messages, data)
            await received

        await _measure(config, link, play, group)


async def _measure(
    config: dict[str, Any],
    link: WorkerLink,
    play: Callable[[int], Awaitable[None]],
    group: Group | None = None,
) -> None:
    """Play two rounds, each of which all processes begin together, and report the measurements of the second."""
    link.say("ready")
    await link.hear()
    await play(config["messages"] // WARM_UP)
    gc.collect()
    gc.freeze()
    link.say("warm")
    await link.hear()
    profiler = Profile() if config.get("profile") else None
    started, cpu = perf_counter(), process_time()
    if profiler is not None:
        profiler.enable()
    await play(config["messages"])
    if profiler is not None:
        profiler.disable()
    seconds, cpu = perf_counter() - started, process_time() - cpu
    counts = {} if group is None else group.stack.counts
    extra = {} if profiler is None else {"profile": _profile(profiler)}
    link.say("done", seconds=seconds, cpu=cpu, repairs=counts.get("repair", 0), memory=resident(), **extra)
    await link.hear()


def resident() -> float:
    """Return the resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def join_bench(config: dict[str, Any], **more: Any) -> Any:
    """Join the measured group, as the configuration of the job describes it."""
    return join(
        GROUP,
        config["name"],
        members=config["members"],
        via=config["via"],
        interface="lo",
        order=config["order"],
        echo=False,  # only messages of others are counted
        detect=config.get("detect", DEFAULTS["detect"]),
        secret=config.get("secret"),
        **more,
    )


def _batches(group: Group) -> Callable[[int], Awaitable[None]]:
    batches = group.batches()

    async def read(wanted: int) -> None:
        async for batch in batches:
            wanted -= len(batch.payloads)
            if wanted <= 0:
                return

    return read


def _one_by_one(group: Group) -> Callable[[int], Awaitable[None]]:
    deliveries = aiter(group)

    async def read(wanted: int) -> None:
        async for _ in deliveries:
            wanted -= 1
            if wanted <= 0:
                return

    return read


async def _send_many(group: Group, messages: int, data: bytes) -> None:
    part = [data] * 256
    for first in range(0, messages, 256):
        await group.send_many(part[: messages - first])


async def _send_one_by_one(group: Group, messages: int, data: bytes) -> None:
    send = group.send
    for _ in range(messages):
        await send(data)


_READERS = {"batches": _batches, "each": _one_by_one}
_WRITERS = {"many": _send_many, "each": _send_one_by_one}


async def raw_throughput(config: dict[str, Any], link: WorkerLink) -> None:
    """Exchange the same datagrams over bare sockets, in a plain loop: no order, no repair, no messages."""
    shared, own, target = _raw_sockets(config)
    members = len(config["members"])
    per_datagram = max(1, config["datagram"] // config["size"])
    datagram = b"x" * (per_datagram * config["size"])
    buffer = bytearray(65536)
    me = own.getsockname()

    def drain(wait: bool) -> int:
        got = 0
        if wait:
            select.select([shared], [], [], 0.5)
        try:
            while True:
                _, source = shared.recvfrom_into(buffer)
                got += source != me
        except BlockingIOError:
            return got

    async def play(messages: int) -> None:
        sends = -(-messages // per_datagram)
        sent = received = 0
        wanted = sends * (members - 1)
        heard = perf_counter()
        while received < wanted:
            while sent < sends and received >= (sent - RAW_WINDOW) * (members - 1):
                own.sendto(datagram, target)
                sent += 1
            more = drain(wait=True)
            received += more
            if more:
                heard = perf_counter()
            elif perf_counter() - heard > RAW_PATIENCE:
                break  # datagrams were lost, and there is no repair

    await _measure(config, link, play)
    shared.close()
    own.close()


async def zmq_throughput(config: dict[str, Any], link: WorkerLink) -> None:
    """Exchange the messages by PUB/SUB of pyzmq over TCP: in order per sender, one by one."""
    import zmq

    context = zmq.Context()
    publish, subscribe = context.socket(zmq.XPUB), context.socket(zmq.SUB)
    publish.setsockopt(zmq.XPUB_VERBOSE, 1)  # report every subscriber, not only the first
    publish.set_hwm(0)
    subscribe.set_hwm(0)
    names = config["members"]
    me = names.index(config["name"])
    publish.bind(f"tcp://127.0.0.1:{config['ports'][me]}")
    for other, port in enumerate(config["ports"]):
        if other != me:
            subscribe.connect(f"tcp://127.0.0.1:{port}")
    subscribe.subscribe(b"")
    data = b"x" * config["size"]
    for _ in range(len(names) - 1):
        publish.recv()  # a subscription has arrived

    async def play(messages: int) -> None:
        wanted = messages * (len(names) - 1)
        sent = received = 0
        while received < wanted:
            for _ in range(min(256, messages - sent)):
                publish.send(data, copy=True)
                sent += 1
            if sent == messages and not subscribe.poll(ZMQ_PATIENCE_MS):
                break  # messages were lost, and there is no repair
            try:
                for _ in range(min(1024, wanted - received)):
                    subscribe.recv(zmq.NOBLOCK)
                    received += 1
            except zmq.Again:
                continue

    await _measure(config, link, play)
    context.destroy(linger=0)


class _Ends(NamedTuple):
    """How a member sends and reads in a measurement of round trips."""

    send: Callable[[bytes], Awaitable[Any]]
    read: Callable[[], Awaitable[Buffer]]


async def latency(config: dict[str, Any], link: WorkerLink) -> None:
    """Measure round trips: the first member multicasts, all others answer, and it multicasts again when it has every answer.

    In this and the next two jobs `name` is the member that this process runs; without it, the process runs all of them."""
    await _play_round_trips(config, link, _group_ends)


async def loop_latency(config: dict[str, Any], link: WorkerLink) -> None:
    """Measure the same without a group, but with the same kind of sockets and event loop: the part that asyncio itself takes."""
    await _play_round_trips(config, link, _loop_ends)


async def raw_latency(config: dict[str, Any], link: WorkerLink) -> None:
    """Measure the same with blocking bare sockets."""
    await _play_round_trips(config, link, _raw_ends)


@asynccontextmanager
async def _group_ends(config: dict[str, Any]) -> AsyncIterator[_Ends]:
    async with join_bench(config) as group:
        await group.ready()
        deliveries = aiter(group)

        async def read() -> Buffer:
            delivery: Delivery = await anext(deliveries)
            return delivery.data

        yield _Ends(group.send, read)


@asynccontextmanager
async def _loop_ends(config: dict[str, Any]) -> AsyncIterator[_Ends]:
    shared, own, target = _raw_sockets(config)
    sieve.attach(shared, own.getsockname(), None)
    loop = asyncio.get_running_loop()
    arrived: deque[bytes] = deque()
    reader: asyncio.Future[None] | None = None

    def receive() -> None:
        arrived.append(shared.recvfrom(2048)[0])
        if reader is not None and not reader.done():
            reader.set_result(None)

    async def send(data: bytes) -> None:
        own.sendto(data, target)

    async def read() -> Buffer:
        nonlocal reader
        while not arrived:
            reader = loop.create_future()
            await reader
        return arrived.popleft()

    loop.add_reader(shared, receive)
    yield _Ends(send, read)
    loop.remove_reader(shared)
    shared.close()
    own.close()


@asynccontextmanager
async def _raw_ends(config: dict[str, Any]) -> AsyncIterator[_Ends]:
    shared, own, target = _raw_sockets(config)
    own.setblocking(True)
    shared.settimeout(5)
    sieve.attach(shared, own.getsockname(), None)

    async def send(data: bytes) -> None:
        own.sendto(data, target)

    async def read() -> Buffer:
        return shared.recvfrom(2048)[0]

    yield _Ends(send, read)
    shared.close()
    own.close()


async def _play_round_trips(
    config: dict[str, Any],
    link: WorkerLink,
    ends_of: Callable[[dict[str, Any]], AbstractAsyncContextManager[_Ends]],
) -> None:
    """Run the members of this process. The first member reports percentiles of round trips, every process its CPU time of all rounds."""
    members: list[str] = config["members"]
    names = [config["name"]] if "name" in config else members
    async with AsyncExitStack() as stack:
        opening = [stack.enter_async_context(ends_of({**config, "name": name})) for name in names]
        ends = await asyncio.gather(*opening)
        link.say("ready")
        await link.hear()
        before = getrusage(RUSAGE_SELF)
        answers = [
            asyncio.ensure_future(_answer(each))
            for name, each in zip(names, ends, strict=True)
            if name != members[0]
        ]
        times = await _ask(ends[0], len(members) - 1, config["rounds"]) if names[0] == members[0] else []
        await asyncio.gather(*answers)
        after = getrusage(RUSAGE_SELF)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        link.say("done", user=user, system=system, **(_percentiles(times) if times else {}))
        await link.hear()


async def _ask(ends: _Ends, others: int, rounds: int) -> list[float]:
    """Ask `rounds` times, each time wait for the answers of all others, and return the seconds of each round."""
    send, read = ends
    times: list[float] = []
    for _ in range(rounds):
        started = perf_counter()
        await send(b"ping")
        for _ in range(others):
            while await read() != b"pong":
                pass
        times.append(perf_counter() - started)
    await send(b"end")
    return times


async def _answer(ends: _Ends) -> None:
    send, read = ends
    while (data := await read()) != b"end":
        if data == b"ping":
            await send(b"pong")


def _raw_sockets(config: dict[str, Any]) -> tuple[socket.socket, socket.socket, tuple[str, int]]:
    host, port = config["via"].removeprefix("udp://").split(":")
    loopback = socket.inet_aton("127.0.0.1")
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
    own.bind(("127.0.0.1", 0))
    shared = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    shared.bind((host, int(port)))
    shared.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(host) + loopback)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    shared.setblocking(False)
    own.setblocking(False)
    return shared, own, (host, int(port))


def _profile(profiler: Profile) -> str:
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(25)
    return text.getvalue()


def _percentiles(times: list[float]) -> dict[str, float]:
    steady = times[len(times) // 10 :]
    cuts = quantiles(steady, n=100)
    return {"p50": 1e6 * cuts[49], "p99": 1e6 * cuts[98]}
