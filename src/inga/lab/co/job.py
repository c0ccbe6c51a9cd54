"""One process of the delay measurement."""

import asyncio
from random import Random
from struct import pack, unpack_from
from time import monotonic, process_time
from typing import Any

from inga.lab.co.played import SIZE
from inga.net.join import join
from inga.runs.worker import WorkerLink


async def paced(config: dict[str, Any], link: WorkerLink) -> None:
    """Send at a steady rate, and measure the age of each message on delivery: all processes of a machine share its clock."""
    names = config["members"]
    me, messages, interval = config["me"], config["messages"], config["interval"]
    async with join(
        "lab-co",
        names[me],
        members=names,
        via=config["via"],
        interface=config["interface"],
        order="co",
        deliver="acknowledged",
    ) as group:
        await group.ready()
        link.say("ready")
        await link.hear()
        started = process_time()
        delays: list[float] = []

        async def listen() -> None:
            async for delivery in group:
                delays.append(monotonic() - unpack_from("d", delivery.data)[0])
                if len(delays) == messages * (len(names) - 1):
                    return

        listening = asyncio.ensure_future(listen())
        due = monotonic() + interval * Random(me).random()
        for _ in range(messages):
            await asyncio.sleep(max(0.0, due - monotonic()))
            due += interval
            await group.send(pack("d", monotonic()).ljust(SIZE, b"."))
        await listening
        link.say("done", delays=delays, cpu=process_time() - started)
        await link.hear()
