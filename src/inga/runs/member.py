"""One process of `inga live`: it plays its part of the workload and keeps a diary.

The diary has the messages that the application sent (their numbers) and took (their numbers, negative), in order, and
the view in which it sent them. The launcher gives all diaries to the oracle.

Members that join later do so when the others have sent half of their messages. How many messages each has to
take then depends on when it joined: all members report to whom they have sent, and the launcher adds this up.
"""

import asyncio
from array import array
from collections import Counter, deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from inga.layers.shape import Faults
from inga.model.errors import WouldBlock
from inga.model.view import View
from inga.net.group import Group
from inga.net.join import join
from inga.net.serving import serve_metrics
from inga.runs.worker import WorkerLink
from inga.trial.trial import Trial
from inga.trial.workload import Workload, number_of

SENDS_PER_TURN = 8
"""The most sends in a row; then other tasks of the event loop get a turn."""

PROGRESS_SECONDS = 0.5
SILENCE_SECONDS = 1.0
"""Seconds without a delivery after which no more are expected, under an order that may lose messages."""

LOOK_AGAIN = 0.002
"""The interval in seconds at which conditions are polled."""

IN_VIEW = 1 << 48
"""An entry of this plus a view's number means in a diary: the sends that follow are in that view. Diaries begin in view 1."""


async def play(config: dict[str, Any], link: WorkerLink) -> None:
    """Run one member, from joining to leaving."""
    trial, me, late = Trial(**config["trial"]), config["me"], config["join"]["late"]
    if late:
        await link.hear()
    async with joined(config) as group:
        await group.ready()
        if not late:
            link.say("ready")
            await link.hear()
        started = process_time()
        everybody, paced = trial.members + trial.join, trial.rate is not None
        keeps = config["diary"] is not None
        part = MemberTraffic(
            group, trial.workload, me, trial.seed, everybody, paced=paced, echo=trial.echo, keeps_diary=keeps
        )
        reports = asyncio.create_task(_report(part, link))
        try:
            if "complete" not in group.recipe.guarantees:
                await part.run_until_silent()
            elif config["expected"] is not None:
                await part.run(config["expected"])
            else:
                await part.run_open_ended(link)
        finally:
            reports.cancel()
        cpu = process_time() - started
        link.say("done", taken=part.taken)
        await link.hear()
        if keeps:
            Path(config["diary"]).write_bytes(part.diary.tobytes())
    link.say(
        "closed",
        counts=dict(group.stack.counts),
        rejected=dict(group.stack.rejected),
        carrier=dict(group.carrier.counts),
        cpu=cpu,
    )


@asynccontextmanager
async def joined(config: dict[str, Any], **more: Any) -> AsyncIterator[Group]:
    """Join as the launcher's configuration says, and serve metrics if it asks for that."""
    said = {**config["join"], **more}
    faults = Faults(**said["faults"]) if said["faults"] else None
    async with AsyncExitStack() as around:
        group = await around.enter_async_context(join(**{**said, "faults": faults}))
        if config["metrics"] is not None:
            await around.enter_async_context(await serve_metrics(group, port=config["metrics"]))
        yield group


class Pace:
    """Keeps the times of a plan. A late action is done at once, so that the average rate is kept."""

    def __init__(self, paced: bool) -> None:
        """Without `paced`, all actions are due at once."""
        self._paced = paced
        self._time = asyncio.get_running_loop().time
        self._due = self._time()

    async def wait(self, gap: float) -> None:
        """Wait until `gap` seconds after the time at which the previous action was due."""
        if self._paced:
            self._due += gap
            await asyncio.sleep(max(self._due - self._time(), 0.0))


class MemberTraffic:
    """Sends and takes the messages of one member."""

    def __init__(
        self,
        group: Group,
        workload: Workload,
        me: int,
        seed: int,
        everybody: int | None = None,
        *,
        paced: bool = False,
        echo: bool = False,
        keeps_diary: bool = True,
    ) -> None:
        """`everybody`: the number of members when all have joined. `echo`: we take our own messages, too. Without a diary
        the run cannot be judged, but costs no more than the group itself."""
        self.diary = array("q")
        self.taken = 0
        self._sent: Counter[tuple[int, int | None]] = Counter()  # by view and destinations
        self.views: dict[int, tuple[int, ...]] = {}  # the processes of each view in which we sent messages
        self._everybody = everybody or workload.members
        self._view = 1  # the view of the last entry in the diary
        self._group = group
        self._workload = workload
        self._me = me
        self._paced = paced
        self._rng = Random(f"{seed}/{me}")
        self._answers: deque[tuple[int, int | None]] = deque()  # sends that wait for a message to answer
        self._names = group.view.names
        self._echo = echo
        self._keeps_diary = keeps_diary

    async def run(self, expected: int) -> None:
        """Send all messages, and take the `expected` number of messages."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._talk())
                tasks.create_task(self._listen(expected))
        except ExceptionGroup as failed:  # the first error is the reason; a person reads one sentence
            raise failed.exceptions[0] from None

    async def run_until_silent(self) -> None:
        """Send all messages, and take messages until none has arrived for a while: some may be lost, so their number is not known."""
        listening = asyncio.create_task(self._listen(None))
        try:
            await _first_of(self._talk(), listening)
            silence = SILENCE_SECONDS + (self._workload.longest_gap if self._paced else 0.0)
            before = -1
            while self.taken > before:
                before = self.taken
                await _first_of(asyncio.sleep(silence), listening)
        finally:
            listening.cancel()

    async def run_open_ended(self, link: WorkerLink) -> None:
        """The same, while members join: how many messages to take is known only when all members have sent theirs."""
        listening = asyncio.create_task(self._listen(None))
        try:
            await _first_of(self._talk(), listening)
            await _first_of(self._until_all_are_here(), listening)
            link.say("sent", process=self._process, to=self._sent_to(), views=self.views)
            expected = (await link.hear())["expected"]
            await _first_of(self._until_taken(expected), listening)
        finally:
            listening.cancel()

    async def _until_all_are_here(self) -> None:
        while len(self._group.view) < self._everybody:
            await asyncio.sleep(LOOK_AGAIN)

    async def _until_taken(self, expected: int) -> None:
        while self.taken < expected:
            await asyncio.sleep(LOOK_AGAIN)

    async def _talk(self) -> None:
        turn, pace = 0, Pace(self._paced)
        for place, (gap, dst, answers) in enumerate(planned_sends(self._workload, self._me, self._rng)):
            if place == self._workload.messages // 2:
                await self._until_all_are_here()
            await pace.wait(gap)
            if answers:
                self._answers.append((place, dst))
                continue
            await self._send(place, dst)
            turn -= 1
            if turn <= 0:
                turn = 1 + int(self._rng.random() * SENDS_PER_TURN)
                await asyncio.sleep(0)
        # Answers for which no message arrived are sent all the same.
        while self._answers:
            await self._send(*self._answers.popleft())

    async def _listen(self, expected: int | None) -> None:
        if expected == 0:
            return
        async for batch in self._group.batches():
            if self._keeps_diary:
                self.diary.extend([-number_of(payload) for payload in batch.payloads])
            self.taken += len(batch.payloads)
            if self._answers and self._group.stack.writable:
                await self._send(*self._answers.popleft())
            if expected is not None and self.taken >= expected:
                return

    async def _send(self, place: int, dst: int | None) -> None:
        number = 1 + self._me + place * self._everybody
        to = None if dst is None else [n for i, n in enumerate(self._names) if dst >> i & 1]
        payload = self._workload.payload(number)
        group = self._group
        while True:
            view = group.view
            try:
                group.post(payload, to)
            except WouldBlock:
                await group.writable()
            else:
                if self._keeps_diary:
                    self._note(number, dst, view)
                return

    def _note(self, number: int, dst: int | None, view: View) -> None:
        """Record a send and its view."""
        if view.number != self._view:
            self._view = view.number
            self.diary.append(IN_VIEW + view.number)
        self.diary.append(number)
        self.views[view.number] = view.processes
        self._sent[view.number, dst] += 1

    @property
    def _process(self) -> int:
        """Our process number, which no other member of the group ever has."""
        return self._group.view.processes[self._group.stack.me]

    def _sent_to(self) -> dict[int, int]:
        """How many of our messages each process has to take."""
        mine, counts = self._process, Counter[int]()
        for (view, dst), count in self._sent.items():
            for process in self.views[view]:
                if self._echo if process == mine else dst is None or dst >> process & 1:
                    counts[process] += count
        return counts


def planned_sends(workload: Workload, me: int, rng: Random) -> list[tuple[float, int | None, bool]]:
    """For each send of one member the gap before it, its destinations, and whether it is an answer. The launcher
    computes the same."""
    return [(gap, workload.destinations(rng, me), answers) for gap, answers in list(workload.plan(rng))]


async def _first_of(work: Coroutine[Any, Any, None], listening: "asyncio.Task[None]") -> None:
    """Do some work, but raise the error if listening fails first."""
    working = asyncio.create_task(work)
    try:
        await asyncio.wait([working, listening], return_when=asyncio.FIRST_COMPLETED)
        if listening.done():
            listening.result()
        await working
    finally:
        working.cancel()


async def _report(part: MemberTraffic, link: WorkerLink) -> None:
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        link.say("progress", taken=part.taken)
