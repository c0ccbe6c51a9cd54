"""What one process of `inga live` does: it plays its part of the workload and keeps a diary.

The diary says what the application sent (its number) and took (its number, negative), in order. The
launcher gives all diaries to the oracle.
"""

import asyncio
from array import array
from collections import deque
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from inga.layers.shape import Faults
from inga.model.errors import WouldBlock
from inga.net.group import Group
from inga.net.join import join
from inga.net.worker import Link
from inga.trial.workload import Workload, number_of

SENDS_PER_TURN = 8
"""At most; then others in the loop get a turn."""

PROGRESS_SECONDS = 0.5


async def play(config: dict[str, Any], link: Link) -> None:
    """One member, from joining to leaving."""
    names = list(config["members"])
    me = config["me"]
    seed = config["seed"]
    async with join(
        config["group"],
        names[me],
        members=config["members"],
        via=config["via"],
        interface=config["interface"],
        order=config["order"],
        deliver=config["deliver"],
        protocol=config["protocol"],
        unsafe=config["unsafe"],
        trace=config["trace"],
        trace_level=config["trace_level"],
        echo=config["echo"],
        matrix=config["matrix"],
        window=config["window"],
        faults=Faults(**config["faults"]) if config["faults"] else None,
        seed=None if seed is None else seed * 1000 + me,
    ) as group:
        await group.ready()
        link.say("ready")
        await link.hear()
        started = process_time()
        part = Part(group, Workload(**config["workload"]), me, seed)
        reports = asyncio.create_task(_report(part, link))
        try:
            await part.run(config["expected"])
        finally:
            reports.cancel()
        cpu = process_time() - started
        link.say("done", taken=part.taken)
        await link.hear()
        Path(config["diary"]).write_bytes(part.diary.tobytes())
    link.say(
        "closed",
        counts=dict(group.stack.counts),
        rejected=dict(group.stack.rejected),
        carrier=dict(group.carrier.counts),
        cpu=cpu,
    )


class Part:
    """A member's sends and takes."""

    def __init__(self, group: Group, workload: Workload, me: int, seed: int) -> None:
        self.diary = array("q")
        self.taken = 0
        self._group = group
        self._workload = workload
        self._me = me
        self._rng = Random(f"{seed}/{me}")
        self._answers: deque[tuple[int, int | None]] = deque()  # sends that wait for a question
        self._names = group.view.names

    async def run(self, expected: int) -> None:
        """Send everything, and take everything that was sent to us."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._talk())
                tasks.create_task(self._listen(expected))
        except ExceptionGroup as failed:  # the first says why; a person reads one sentence
            raise failed.exceptions[0] from None

    async def _talk(self) -> None:
        turn = 0
        for place, (dst, answers) in enumerate(plan(self._workload, self._me, self._rng)):
            if answers:
                self._answers.append((place, dst))
                continue
            await self._send(place, dst)
            turn -= 1
            if turn <= 0:
                turn = 1 + int(self._rng.random() * SENDS_PER_TURN)
                await asyncio.sleep(0)
        # What nobody gave occasion to answer is said all the same.
        while self._answers:
            await self._send(*self._answers.popleft())

    async def _listen(self, expected: int) -> None:
        if not expected:
            return
        async for batch in self._group.batches():
            self.diary.extend([-number_of(payload) for payload in batch.payloads])
            self.taken += len(batch.payloads)
            if self._answers and self._group.stack.writable:
                await self._send(*self._answers.popleft())
            if self.taken >= expected:
                return

    async def _send(self, place: int, dst: int | None) -> None:
        number = 1 + self._me + place * self._workload.members
        to = None if dst is None else [n for i, n in enumerate(self._names) if dst >> i & 1]
        payload = self._workload.payload(number)
        group = self._group
        while True:
            try:
                group.post(payload, to)
            except WouldBlock:
                await group.writable()
            else:
                self.diary.append(number)
                return


def plan(workload: Workload, me: int, rng: Random) -> list[tuple[int | None, bool]]:
    """Destinations of each send of one member, and whether it answers; the launcher knows it too."""
    return [(workload.destinations(rng, me), answers) for _, answers in list(workload.plan(rng))]


async def _report(part: Part, link: Link) -> None:
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        link.say("progress", taken=part.taken)
