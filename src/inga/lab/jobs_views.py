"""The jobs of `inga bench views`: processes join, leave, change the order and send, one command at a time.

Times are of the machine's monotonic clock, which all its processes share.
"""

import asyncio
from contextlib import AsyncExitStack
from time import monotonic, process_time
from typing import Any

from inga.lab.jobs import join_bench, resident
from inga.model.view import View
from inga.net.group import Group
from inga.net.join import join
from inga.runs.worker import WorkerLink

PART = 256
"""Messages that are sent at once."""


class BenchMember:
    """A member that executes commands: its public methods, each of which returns what is reported to the benchmark."""

    group: Group

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._inside = AsyncExitStack()
        self._reading: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._seen: dict[int, float] = {}  # when each view began here, by number
        self._came = asyncio.Event()
        self.delivered = 0  # number of messages

    async def join(self, late: bool) -> dict[str, Any]:
        """Become a member: a founder, or with `late` a newcomer to a running group."""
        config, began = self._config, monotonic()
        self.group = await self._inside.enter_async_context(join_bench(config, late=late))
        self._reading = asyncio.create_task(self._read(self.group))
        if not late:
            await self.group.ready()
        return {"began": began, "number": self.group.view.number}

    async def start(self, group: str, members: int) -> dict[str, Any]:
        """Join a group without a list of its founders, and wait until it has this many members, which all start at the same time."""
        config, began = self._config, monotonic()
        where = {"via": config["via"], "interface": "lo", "detect": config["detect"]}
        found = await self._inside.enter_async_context(join(group, config["name"], **where))
        await found.ready(members)
        return {"began": began, "at": monotonic()}

    async def leave(self) -> dict[str, Any]:
        began = monotonic()
        await self._stop(self._reading, self._sending)
        await self._inside.aclose()
        return {"began": began}

    async def use(self, order: str) -> dict[str, Any]:
        """Change the order of the whole group."""
        began = monotonic()
        await self.group.use(order)
        return {"began": began}

    async def view(self, number: int) -> dict[str, Any]:
        """Wait for the view of that number, or a later one, and return when it began here."""
        while not (found := [at for seen, at in self._seen.items() if seen >= number]):
            self._came.clear()
            await self._came.wait()
        return {"at": min(found)}

    async def send(self, size: int) -> dict[str, Any]:
        """Send as fast as the window allows, from now on."""
        self._sending = asyncio.create_task(self._send(b"x" * size))
        return {}

    async def rest(self) -> dict[str, Any]:
        await self._stop(self._sending)
        return {}

    async def measure(self, seconds: float) -> dict[str, Any]:
        """Wait for some seconds, and return what was used, delivered and sent in them."""
        began, cpu, delivered, datagrams = (
            monotonic(),
            process_time(),
            self.delivered,
            self.group.carrier.sent,
        )
        await asyncio.sleep(seconds)
        return {
            "seconds": monotonic() - began,
            "cpu": process_time() - cpu,
            "delivered": self.delivered - delivered,
            "datagrams": self.group.carrier.sent - datagrams,
            "resident": resident(),
            "view": self.group.view.number,
        }

    async def _read(self, group: Group) -> None:
        """Note when views begin, and count delivered messages."""
        async for item in group.items():
            if isinstance(item, View):
                self._seen[item.number] = monotonic()
                self._came.set()
            else:
                self.delivered += 1

    async def _send(self, data: bytes) -> None:
        part = [data] * PART
        while True:
            await self.group.send_many(part)

    async def _stop(self, *tasks: "asyncio.Task[None] | None") -> None:
        for task in tasks:
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    task.result()  # raises the error that has ended it, if any


async def views(config: dict[str, Any], link: WorkerLink) -> None:
    """Execute the commands of the benchmark and report their results, until it closes."""
    member = BenchMember(config)
    try:
        while (said := await link.hear()).pop("kind") != "close":
            what = said.pop("do")
            link.say(what, **await getattr(member, what)(**said))
    finally:
        await member.leave()
