"""What processes of a cluster do in tests. Workers import this module by itself."""

import asyncio
from typing import Any

import inga
from inga.runs.worker import WorkerLink


async def chatter(config: dict[str, Any], link: WorkerLink) -> None:
    """Send and take as fast as it goes, until told to stop; then take all that was sent."""
    names = list(config["members"])
    async with inga.join(
        config["group"],
        names[config["me"]],
        members=config["members"],
        via=config["via"],
        interface=config["interface"],
        order=config.get("order", "causal"),
        trace=config.get("trace"),
    ) as group:
        if config.get("segment_rows"):
            trace: Any = group.stack.trace
            trace._segment_rows = config["segment_rows"]
            trace._set_limit()
        await group.ready()
        link.say("ready")
        await link.hear()
        sent = 0
        taken = dict.fromkeys(names, 0)
        enough = asyncio.Event()
        wanted: dict[str, int] = {}

        async def talk() -> None:
            nonlocal sent
            while True:
                await group.send(sent.to_bytes(4, "big") + bytes(1020))
                sent += 1
                if sent % 8 == 0:
                    await asyncio.sleep(0)

        order: Any = group.stack.layer("co")  # with buffers of its own
        held_max = 0

        async def listen() -> None:
            nonlocal held_max
            async for batch in group.batches():
                if order is not None:
                    held_max = max(held_max, *order.machine.held)
                for payload in batch.payloads:
                    number = int.from_bytes(payload[:4], "big")
                    assert number == taken[batch.sender], f"{number} of {batch.sender} after {taken}"
                    taken[batch.sender] += 1
                if wanted and taken == wanted:
                    enough.set()

        talking, listening = asyncio.create_task(talk()), asyncio.create_task(listen())
        while (line := await link.hear())["kind"] != "close":
            if listening.done():
                listening.result()
            if line["kind"] == "report":
                link.say("report", sent=sent, taken=taken, queued=group.stack.queued, held_max=held_max)
            elif line["kind"] == "stop":
                talking.cancel()
                await asyncio.wait([talking])
                link.say("stopped", sent=sent)
            elif line["kind"] == "finish":
                wanted.update(line["sent"])
                wanted[group.me] = 0
                if taken != wanted:
                    await enough.wait()
                link.say("done", taken=taken)
        listening.cancel()
    link.say("closed")


async def fail(config: dict[str, Any], link: WorkerLink) -> None:
    """End as told."""
    link.say("ready")
    await link.hear()
    if config["how"] == "error":
        raise inga.UsageError("the soup is cold")
    if config["how"] == "crash":
        raise ZeroDivisionError("one by none")
    if config["how"] == "exit":
        raise SystemExit(3)
    await asyncio.Event().wait()
