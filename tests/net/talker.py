"""A member in a process of its own that talks all the time, for tests that kill it. Workers import this by itself."""

import asyncio
from typing import Any

import inga
from inga.runs.worker import WorkerLink

PAUSE = 0.005
"""Seconds between two messages."""


class Diary:
    """What one member has seen, and how long it was kept from sending."""

    def __init__(self, group: inga.Group, may_lose: bool) -> None:
        self._group = group
        self._may_lose = may_lose  # some messages of each sender, but never their order
        self.sent = 0
        self.pause_max = 0.0  # seconds from one message to the next
        self.views: list[dict[str, Any]] = []
        self.heard: dict[str, dict[int, list[int]]] = {}  # by sender and view: first and last number

    async def talk(self) -> None:
        time = asyncio.get_running_loop().time
        before = time()
        while True:
            await self._group.send(b"%d" % self.sent)
            self.sent += 1
            self.pause_max, before = max(self.pause_max, time() - before), time()
            await asyncio.sleep(PAUSE)

    async def listen(self) -> None:
        following: dict[str, int] = {}
        async for item in self._group.items():
            if isinstance(item, inga.View):
                seen = {"names": item.names, "joined": item.joined, "left": item.left, "failed": item.failed}
                self.views.append({"number": item.number, **seen})
                for name in item.joined:  # one that comes back begins anew
                    following.pop(name, None)
                continue
            number, sender = int(bytes(item.data)), item.sender
            expected = following.setdefault(sender, number)
            is_next = number >= expected if self._may_lose else number == expected
            assert is_next, f"{number} of {sender}, not {expected}"
            following[sender] = number + 1
            ends = self.heard.setdefault(sender, {}).setdefault(item.view, [number, number])
            ends[1] = number

    def report(self) -> dict[str, Any]:
        return {
            "sent": self.sent,
            "pause_max": self.pause_max,
            "views": self.views,
            "heard": self.heard,
            "here": self._group.here,
        }


async def talk(config: dict[str, Any], link: WorkerLink) -> None:
    """Join when told to, if late; then talk and listen until told to stop."""
    options = config["join"]
    if options["late"]:
        await link.hear()
    async with inga.join(**options, faults=inga.Faults(loss=config["loss"])) as group:
        await group.ready()
        link.say("ready")
        if not options["late"]:
            await link.hear()
        diary = Diary(group, config["may_lose"])
        tasks = [asyncio.create_task(work) for work in (diary.talk(), diary.listen())]
        while (await link.hear())["kind"] != "close":
            for task in tasks:
                if task.done():
                    task.result()
            link.say("report", **diary.report())
        for task in tasks:
            task.cancel()
    link.say("closed")
