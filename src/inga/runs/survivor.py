"""One process of `inga live` in a run with mishaps: it sends, takes messages, and keeps a diary.

The number of messages to take is not known beforehand: members fail, return and are cut off from each other. So the process
reports its progress, and the launcher decides when the run is over. The diary is written line by line, each line before any
effect of what it records leaves the process, so that it is also right for a process that was killed:

    {"view": ...}   the application has reached this view
    {"in": ...}     the sends that follow are in this view
    [7, null]       sent message 7, to all members or to those listed; with objects: made request 7, and in a later line its outcome
    -5              took message 5
    {"state": ...}  took the state that the others had at the next view
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from random import Random
from time import monotonic, process_time
from typing import Any

from inga.model.delivery import Delivery
from inga.model.errors import Excluded, IngaError
from inga.model.event import Missed
from inga.model.view import View
from inga.net.group import Group
from inga.objects.declare import Abort
from inga.objects.layer import ObjectOrder
from inga.runs.live_calls import AT_ONCE
from inga.runs.member import Pace, joined, planned_sends
from inga.runs.worker import WorkerLink
from inga.session.description import described
from inga.trial.calls import ClientRequest
from inga.trial.trial import SLOW_READ, Trial
from inga.trial.workload import number_of

TELL_SECONDS = 0.1
"""The interval of progress reports to the launcher."""

LOOK_SECONDS = 0.005
"""The interval at which we look for a new view, and try again to send after an error."""


async def play(config: dict[str, Any], link: WorkerLink) -> None:
    """Run one member, from joining to leaving."""
    trial = Trial(**config["trial"])
    heard = HeardState()
    more = heard.handlers if trial.echo and trial.objects is None else {}
    async with joined(config, objects=trial.classes(trial.misdeclare), **more) as group:
        group.on_merge(lambda view: link.say("merged", parts=view.merged))
        survivor = (Talker if trial.objects is None else Caller)(group, trial, config, link, heard)
        watching = asyncio.create_task(survivor.watch())
        if config["waits"]:
            await group.ready()
            link.say("ready")
            await link.hear()
        started = process_time()
        try:
            await survivor.run()
        except Excluded:
            link.say("excluded")
            return
        finally:
            watching.cancel()
        cpu, states = process_time() - started, survivor.states()
    link.say("closed", counts=dict(group.stack.counts), cpu=cpu, stopped=survivor.stopped, states=states)


class HeardState:
    """The state of the application: how many messages the group has delivered, and the sum of their numbers. If members take their
    own messages, too (`--echo`), all members have the same state, whatever the order of delivery, and give it to returning ones."""

    def __init__(self) -> None:
        self.count = self.total = 0
        self.note: Callable[[Any], None] = lambda entry: None  # writes an entry into the diary

    def add(self, number: int) -> None:
        self.count += 1
        self.total += number

    @property
    def handlers(self) -> dict[str, Any]:
        """The arguments of `join` for the transfer of states."""
        return {"on_state_request": self._give, "on_state": self._take}

    def _give(self) -> Iterator[bytes]:
        yield json.dumps([self.count, self.total]).encode()

    async def _take(self, chunks: AsyncIterator[bytes]) -> None:
        self.count, self.total = json.loads(b"".join([bytes(chunk) async for chunk in chunks]))
        self.note({"state": [self.count, self.total]})


class Survivor(ABC):
    """The behaviour of one member, whatever members come and go."""

    def __init__(
        self, group: Group, trial: Trial, config: dict[str, Any], link: WorkerLink, heard: HeardState
    ) -> None:
        self.done = 0  # messages taken, or requests that have ended
        self.stopped = 0.0  # the longest time between two of these, while we had more to send
        self._group = group
        self._trial = trial
        self._heard = heard
        heard.note = self._note
        self._me: int = config["me"]  # among all processes of the run
        self._everybody: int = config["processes"]
        self._link = link
        self._has_said_all = False
        self._reads = asyncio.Event()  # cleared while the application is to stall
        self._reads.set()
        self._came: float | None = None  # when `done` was last raised
        self._diary = Path(config["diary"]).open("ab", buffering=0)  # noqa: SIM115 — as long as the process

    @abstractmethod
    async def _talk(self) -> None:
        """Send all messages, or make all requests."""

    @abstractmethod
    async def _listen(self) -> None:
        """Read deliveries until the group ends."""

    @property
    def _is_idle(self) -> bool:
        return self._has_said_all and self._group.stack.settled

    @abstractmethod
    def states(self) -> dict[str, Any]:
        """By name, the states that must be equal at all members present at the end."""

    async def run(self) -> None:
        """Send and read, until the launcher ends the run."""
        tasks = [
            asyncio.ensure_future(each) for each in (self._over(), self._talk_and_wait(), self._listen())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()

    async def watch(self) -> None:
        """Report each new view as soon as it is in force, and our progress."""
        view, tell_at = None, 0.0
        while True:
            if self._group.view is not view:
                view = self._group.view
                process = view.processes[self._group.stack.me]
                told = {"number": view.number, "view": view.text, "members": view.names, "process": process}
                self._link.say("view", at=monotonic(), **told)
            if (now := monotonic()) > tell_at:
                tell_at = now + TELL_SECONDS
                self._link.say("far", done=self.done, idle=self._is_idle)
            await asyncio.sleep(LOOK_SECONDS)

    async def _over(self) -> None:
        while (told := (await self._link.hear())["kind"]) != "close":
            if told == "stall":
                self._reads.clear()
            elif told == "read":
                self._reads.set()

    async def _talk_and_wait(self) -> None:
        await self._talk()
        self._has_said_all = True
        await asyncio.Event().wait()

    def _moved(self) -> None:
        self.done += 1
        now = monotonic()
        if self._came is not None and not self._has_said_all:
            self.stopped = max(self.stopped, now - self._came)
        self._came = now

    def _note(self, entry: Any) -> None:
        self._diary.write(json.dumps(entry).encode() + b"\n")


class Talker(Survivor):
    """Sends messages, and takes those of others."""

    def __init__(
        self, group: Group, trial: Trial, config: dict[str, Any], link: WorkerLink, heard: HeardState
    ) -> None:
        super().__init__(group, trial, config, link, heard)
        self._slow = trial.slow == group.me and not trial.stalls
        self._sends_in: View | None = None  # the view of the last sends in the diary
        self._answers: deque[tuple[int, list[str] | None]] = deque()  # sends that wait to be answers

    async def _talk(self) -> None:
        trial, rng, pace = self._trial, Random(f"{self._trial.seed}/{self._me}"), Pace(True)
        for place, (gap, dst, answers) in enumerate(planned_sends(trial.workload, self._me, rng)):
            await pace.wait(gap)
            to = None if dst is None else [name for i, name in enumerate(trial.people) if dst >> i & 1]
            if answers:
                self._answers.append((place, to))
            else:
                await self._send(place, to)
        while self._answers:  # answers for which no message arrived are sent all the same
            await self._send(*self._answers.popleft())

    async def _listen(self) -> None:
        async for item in self._group.items():
            if isinstance(item, View):
                self._note({"view": self._described(item)})
            if isinstance(item, Missed):
                self._link.say("missed", messages=item.messages)
            if not isinstance(item, Delivery):
                continue
            number = number_of(item.data)
            self._note(-number)
            self._heard.add(number)
            self._moved()
            if self._answers and self._group.stack.writable:
                await self._send(*self._answers.popleft())
            if self._slow:
                await asyncio.sleep(SLOW_READ)
            await self._reads.wait()

    def states(self) -> dict[str, Any]:
        return {"heard": [self._heard.count, self._heard.total]} if self._trial.echo else {}

    async def _send(self, place: int, to: list[str] | None) -> None:
        """Send a message as soon as that is possible, without destinations that are not in the view."""
        group = self._group
        await self._until_writable()
        view = group.view
        if to is not None:
            to = [name for name in to if name in view.names and name != group.me]
            if not to:
                return
        if view is not self._sends_in:
            self._sends_in = view
            self._note({"in": self._described(view)})
        number = 1 + self._me + place * self._everybody
        self._note([number, to])
        group.post(self._trial.workload.payload(number), to)  # nothing was awaited since it was writable

    async def _until_writable(self) -> None:
        """Wait until we can send, even after errors: a part of the group without a majority may send again later."""
        while True:
            try:
                return await self._group.writable()
            except IngaError:  # an error that ends the run is raised in `_listen`, too
                await asyncio.sleep(LOOK_SECONDS)

    def _described(self, view: View) -> dict[str, Any]:
        """The description of a view for the judge, and our identity in it."""
        mine = next((each for each in view.members if each.name == self._group.me), None)
        return {**described(view), "me": None if mine is None else mine.identity}


class Caller(Survivor):
    """Calls objects, of which every member has copies."""

    async def _talk(self) -> None:
        plan = list(self._trial.load.plan(Random(f"{self._trial.seed}/{self._me}"), self._me))
        left, pace = iter(enumerate(plan)), Pace(True)

        async def worker() -> None:
            for number, (gap, asked) in left:
                await pace.wait(gap)
                self._note([number, None])
                self._note([number, await self._ask(asked)])
                self._moved()

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))

    async def _ask(self, asked: ClientRequest) -> str:
        """Make a request; return its outcome."""
        try:
            await self._group.transact(asked.body)
        except Abort:
            return "aborted"
        except IngaError as error:
            return f"{type(error).__name__}: {error}"
        return "committed"

    async def _listen(self) -> None:
        async for _ in self._group:
            pass

    @property
    def _is_idle(self) -> bool:
        order = self._group.stack.layer("object")
        assert isinstance(order, ObjectOrder)
        return super()._is_idle and order.host.idle

    def states(self) -> dict[str, Any]:
        return {name: list(self._group.state(name)) for name in self._trial.load.names}
