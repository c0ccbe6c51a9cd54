"""What the processes of a benchmark do."""

import asyncio
import gc
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

from inga.net.group import Group
from inga.net.join import join
from inga.net.worker import Link


async def throughput(config: dict[str, Any], link: Link) -> None:
    """All members send `messages` of `size` bytes as fast as the window lets them, and read all."""
    async with join(
        "bench",
        config["name"],
        members=config["members"],
        via=config["via"],
        interface="lo" if config["via"].startswith("udp") else None,
        order=config["order"],
        window=config.get("window"),
    ) as group:
        await group.ready()
        link.say("ready")
        await link.hear()
        gc.collect()
        gc.freeze()
        started, cpu = perf_counter(), _cpu()
        wanted = config["messages"] * (len(config["members"]) - 1)
        received = asyncio.create_task(_READERS[config["read"]](group, wanted))
        await _WRITERS[config["write"]](group, config["messages"], b"x" * config["size"])
        await received
        seconds, cpu = perf_counter() - started, _cpu() - cpu
        counts = group.stack.counts
        link.say("done", seconds=seconds, cpu=cpu, repairs=counts["repair"], nacks=counts["nack"])
        await link.hear()


async def _read_batches(group: Group, wanted: int) -> None:
    count = 0
    async for batch in group.batches():
        count += len(batch.payloads)
        if count >= wanted:
            return


async def _read_one_by_one(group: Group, wanted: int) -> None:
    count = 0
    async for _ in group:
        count += 1
        if count >= wanted:
            return


async def _send_many(group: Group, messages: int, data: bytes) -> None:
    part = [data] * 256
    for first in range(0, messages, 256):
        await group.send_many(part[: messages - first])


async def _send_one_by_one(group: Group, messages: int, data: bytes) -> None:
    for _ in range(messages):
        await group.send(data)


_READERS = {"batches": _read_batches, "each": _read_one_by_one}
_WRITERS = {"many": _send_many, "each": _send_one_by_one}


def _cpu() -> float:
    usage = getrusage(RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
