"""What one process of `inga live` does: it plays its part of the workload and keeps a diary.

The diary says what the application sent (its number) and took (its number, negative), in order, and
in which view it was when it sent. The launcher gives all diaries to the oracle.

Members that come later join while the others are at half of what they have to say. How much is to be
taken then depends on when they came: everybody says to whom it has sent, and the launcher adds up.
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
"""At most; then others in the loop get a turn."""

PROGRESS_SECONDS = 0.5
SILENCE_SECONDS = 1.0
"""Without anything to take, after which nothing more is expected of an order that may lose messages."""

LOOK_AGAIN = 0.002
"""Seconds before one looks again whether something has come about that nobody announces."""

IN_VIEW = 1 << 48
"""In a diary, plus the number of a view: what is sent from here on is sent in that one. Diaries begin in view 1."""


async def play(config: dict[str, Any], link: WorkerLink) -> None:
    """One member, from joining to leaving."""
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
    """Join as the launcher has written it, and serve metrics if it wants that."""
    said = {**config["join"], **more}
    faults = Faults(**said["faults"]) if said["faults"] else None
    async with AsyncExitStack() as around:
        group = await around.enter_async_context(join(**{**said, "faults": faults}))
        if config["metrics"] is not None:
            await around.enter_async_context(await serve_metrics(group, port=config["metrics"]))
        yield group


class Pace:
    """Keeps the times of a plan. What is late is done at once, so that the rate is kept on the whole."""

    def __init__(self, paced: bool) -> None:
        """Not `paced`: everything is due at once."""
        self._paced = paced
        self._time = asyncio.get_running_loop().time
        self._due = self._time()

    async def wait(self, gap: float) -> None:
        """Until so many seconds after what was due before."""
        if self._paced:
            self._due += gap
            await asyncio.sleep(max(self._due - self._time(), 0.0))


class MemberTraffic:
    """A member's sends and takes."""

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
        """`everybody`: how many members there are once all have come. `echo`: we take our own messages, too. Without a diary
        nobody can judge the run, and it costs what the group costs."""
        self.diary = array("q")
        self.taken = 0
        self._sent: Counter[tuple[int, int | None]] = Counter()  # by view and destinations
        self.views: dict[int, tuple[int, ...]] = {}  # in which we sent something: the processes of each
        self._everybody = everybody or workload.members
        self._view = 1  # as the diary has it
        self._group = group
        self._workload = workload
        self._me = me
        self._paced = paced
        self._rng = Random(f"{seed}/{me}")
        self._answers: deque[tuple[int, int | None]] = deque()  # sends that wait for a question
        self._names = group.view.names
        self._echo = echo
        self._keeps_diary = keeps_diary

    async def run(self, expected: int) -> None:
        """Send everything, and take everything that was sent to us."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._talk())
                tasks.create_task(self._listen(expected))
        except ExceptionGroup as failed:  # the first says why; a person reads one sentence
            raise failed.exceptions[0] from None

    async def run_until_silent(self) -> None:
        """Send everything, and take what comes of all that is sent: nobody knows how much that will be."""
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
        """The same, while members join: only when all have sent everything it is known what to take."""
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
        # What nobody gave occasion to answer is said all the same.
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
        """Write down what was sent just now, and in which view."""
        if view.number != self._view:
            self._view = view.number
            self.diary.append(IN_VIEW + view.number)
        self.diary.append(number)
        self.views[view.number] = view.processes
        self._sent[view.number, dst] += 1

    @property
    def _process(self) -> int:
        """Which of all that were ever in the group we are."""
        return self._group.view.processes[self._group.stack.me]

    def _sent_to(self) -> dict[int, int]:
        """How many messages of ours each process has to take."""
        mine, counts = self._process, Counter[int]()
        for (view, dst), count in self._sent.items():
            for process in self.views[view]:
                if self._echo if process == mine else dst is None or dst >> process & 1:
                    counts[process] += count
        return counts


def planned_sends(workload: Workload, me: int, rng: Random) -> list[tuple[float, int | None, bool]]:
    """Of each send of one member the gap before it, its destinations, and whether it answers; the launcher
    knows it too."""
    return [(gap, workload.destinations(rng, me), answers) for gap, answers in list(workload.plan(rng))]


async def _first_of(work: Coroutine[Any, Any, None], listening: "asyncio.Task[None]") -> None:
    """Do some work, unless listening fails first."""
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
