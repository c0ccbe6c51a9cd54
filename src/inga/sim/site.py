"""One member of a group in virtual time: its stack, and an application that sends, reads and leaves.

Each event is one turn of one site: something arrives, a time has come, the application takes what it was given. At
the end of a turn `pump` does what the stack asks for, as a driver over sockets would.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from inga.model.delivery import Batch, Delivery
from inga.model.errors import Excluded, UsageError
from inga.model.event import Incident
from inga.model.invocation import ONE_WAY, SYNCHRONOUS
from inga.model.receipt import Receipt
from inga.model.stats import Stats
from inga.model.view import View
from inga.objects.declare import Target
from inga.objects.invoke import Body, Root
from inga.objects.layer import ObjectOrder
from inga.recipes import find
from inga.session.newcomer import Newcomer
from inga.session.session import session_of
from inga.session.snapshot import snapshot
from inga.sim.states import SiteStates
from inga.stack.stack import Address, Datagram, Stack
from inga.trial.workload import HEADER, Workload

if TYPE_CHECKING:
    from inga.sim.simulator import Sim

PAUSE_MAX = 0.005
"""Seconds a delivery waits in the queue of the application, at most."""

LINGER = 300.0
"""Seconds that one who leaves waits for the others to have all it sent: many, as some networks are slow."""

FAREWELL = 30.0
"""Seconds that it then waits for them to know that it has left: one that leaves at the same time may not say so."""

LOOKS_AGAIN = 0.02
"""Seconds after which one who leaves looks again whether they have."""

React = Callable[[Delivery], bytes | None]


class Site:
    """One member: its stack, its application, and what that has seen."""

    stack: Stack  # once it is a member

    def __init__(
        self,
        sim: "Sim",
        index: int,
        name: str,
        newcomer: Newcomer | None = None,
    ) -> None:
        self.index = index  # among all sites
        self.number = -1  # by which the oracle knows it; another one for each incarnation
        self.name = name
        self.newcomer = newcomer  # as long as it is no member
        self.view: View | None = None  # the last one we have seen installed
        self.before: View | None = None  # and the one before it
        self.react: React | None = None
        self.taken: list[Delivery] = []
        self.items: list[View | Incident] = []  # what came besides messages
        self.sim = sim
        self._timeline = sim.timeline
        self.queue: deque[tuple[int, Batch | View]] = deque()  # and the number that we had when it came
        self.states: SiteStates | None = (
            None  # what its application gives to those who join, and takes as one
        )
        self.waiting: deque[tuple[list[bytes], int | None]] = deque()  # sends the flow window keeps out
        self.taking = False  # a take is due
        self.wake: float | None = None  # when a tick is due
        self.answers: deque[tuple[int, int | None]] = deque()  # sends that wait for something to answer
        self.receipts: list[tuple[int, Receipt]] = []  # of each message it sent
        self.owed = self.owed_most = (
            0  # bytes others sent to it and it has not taken: now, and at most so far
        )
        self.is_open = False  # its gate
        self.loose: set[int] = set()  # packets that came through the open gate and are not taken yet
        self.pause_max = PAUSE_MAX  # seconds a delivery waits for the application, at most
        self.reads_at = 0.0  # when the application reads again
        self.starts_at = 0.0  # nobody is here before
        self.awake_at = 0.0  # when anything reaches this member again
        self.leaves_by: float | None = None  # it is leaving, and waits until then for the others
        self.has_left = False  # or was never let in, or has crashed
        self.waited_in = 0  # views in which it waited for a state, so that it read nothing
        self.has_crashed = False
        self.has_failed = False  # it cannot go on, and leaves for that reason
        self.ended_at = inf  # when the one or the other was
        self.excluded: Excluded | None = None  # with which error its member ended
        self.is_excluded = False  # it was taken for one that has failed

    # What it is asked to do

    @property
    def texts(self) -> list[str]:
        """What the application took, as text."""
        return [bytes(delivery.data).decode(errors="replace") for delivery in self.taken]

    def stats(self) -> Stats:
        """All that is known about the group here and now, as `group.stats()` has it; there are no sockets to count at."""
        state = "failed" if self.is_excluded else "closed" if self.has_left else None
        return snapshot(self._member(), group="sim", now=self._timeline.now, state=state)

    @property
    def is_member(self) -> bool:
        """Whether it is in the group and stays there."""
        return self.newcomer is None and self.leaves_by is None and not self.has_left

    def members(self, sites: int) -> int:
        """A bit set of sites as one of members of the view in force here."""
        members = enumerate(self.stack.view.members)
        return sum(1 << i for i, person in members if sites >> self.sim.site_of(person).index & 1)

    def send(self, data: bytes, to: str | Sequence[str] | None = None) -> None:
        """Send now, in a turn of its own."""
        self.waiting.append(([data], self.sim.mask(to)))
        self.pump()

    def say(self, size: int, dst: int | None, count: int = 1, *, waits: bool = False) -> None:
        """Send a message of that size now, to a bit set of members, or several at once, as `send_many` does. `waits`: it
        leaves in one turn with what comes next."""
        self.waiting.append(([b"." * (size - HEADER)] * count, dst))
        if waits:  # if nothing comes, it leaves at the end of this moment
            self._timeline.push(self._timeline.now, Site.act, self, self.pump)
        else:
            self.pump()

    def answer(self, size: int, dst: int | None, gives_up: float) -> None:
        """Send a message with the next one that is taken as its cause; after a while without."""
        self._answer((size, dst))
        self._timeline.push(self._timeline.now + gives_up, Site._give_up, self, (size, dst))

    def load(self, workload: Workload, at: float) -> None:
        """Plan sends from that time on."""
        timeline = self._timeline
        for gap, answers in workload.plan(timeline.rng):
            at += gap
            planned = workload.size, workload.destinations(timeline.rng, self.index)
            if answers:
                timeline.push(at, Site._answer, self, planned)
                timeline.push(at + 5 / workload.rate, Site._give_up, self, planned)
            else:
                timeline.push(at, Site._say, self, planned)

    def use(self, order: str) -> None:
        """Ask for another order in the whole group."""
        recipe = find(order)
        sim = self.sim
        before = len(sim.outcomes)
        self._member().propose(recipe.name, partial(sim.change_ended, self), now=self._timeline.now)
        if len(sim.outcomes) == before:
            sim.asked.append(self)
        sim.ledger.change(recipe)
        self.pump()

    def gate(self, state: str) -> None:
        """`open` or `closed`: whether anything is held here."""
        self._member().gate(state, now=self._timeline.now)
        self.is_open = state == "open"
        self.sim.ledger.gate()
        self.pump()

    def go_on(self) -> None:
        """A person decides to do without those who are missing."""
        stack = self._member()
        stack.advance(self._timeline.now)
        session_of(stack).go_on()
        self.pump()

    def leave(self) -> None:
        """Send nothing more, and go once everybody else was heard and has everything, as a group does that is closed. Who is
        no member yet says that it does not want to be one."""
        if self.newcomer is not None:
            for address, datagram in self.newcomer.goodbye():
                self.sim.network.ask(self, address, datagram)
            self._end()
            return
        self._member().flush()
        self.leaves_by = self._timeline.now + LINGER
        self.waiting.clear()
        self.answers.clear()
        self._timeline.push(self._timeline.now, Site._part, self)
        self.pump()

    def crash(self) -> None:
        """It stops in the middle of whatever it does, and nobody is told."""
        if self.number >= 0:
            self.sim.oracle.crash(self.number)
        self.has_crashed = True
        self._end()

    def pause(self, seconds: float) -> None:
        """Nothing happens here for a while, as on a machine that is overloaded; then everything at once."""
        self.awake_at = max(self.awake_at, self._timeline.now + seconds)

    def stop_reading(self, seconds: float) -> None:
        """The application has something else to do."""
        self.reads_at = max(self.reads_at, self._timeline.now + seconds)

    # Objects

    @property
    def objects(self) -> ObjectOrder:
        """The layer that has this member's objects."""
        order = self._member().layer("object")
        if not isinstance(order, ObjectOrder):
            raise UsageError(
                f"order {self.sim.order!r} has no objects: use order='object' or 'total', and objects="
            )
        return order

    def call(self, target: Target, op: str, /, *args: Any, **named: Any) -> Root:
        """Call a method of an object, or of several; what this gives has the outcome once the run is over."""
        call = self.objects.host.calling.check(SYNCHRONOUS, target, op, args, named)
        return self.begin(lambda ctx: ctx.make(call))

    def oneway(self, target: Target, op: str, /, *args: Any, **named: Any) -> None:
        """Call without an answer."""
        call = self.objects.host.calling.check(ONE_WAY, target, op, args, named)
        self.begin(lambda ctx: ctx.make(call))

    def begin(self, body: Body, *, retry_of: Root | None = None) -> Root:
        """Run `async def body(ctx)` as a transaction, in a turn of its own."""
        order = self.objects
        self.stack.advance(self._timeline.now)
        root = order.begin(body, retry_of=retry_of)
        self.pump()
        return root

    def state(self, name: str) -> Any:
        """The state of this member's copy of an object."""
        return self.objects.host.state(name)

    # Events

    def arrive(self, datagram: tuple[bytes, str]) -> None:
        """A copy of a datagram, and who sent it."""
        newcomer = self.newcomer
        if newcomer is not None:
            if self._timeline.now < self.starts_at:
                return
            newcomer.receive([datagram], now=self._timeline.now)
            self._transmit(newcomer.output(self._timeline.now))
            self._ask(newcomer)
            return
        self.stack.receive([datagram], now=self._timeline.now)
        self.pump()

    def act(self, what: Callable[[], Any]) -> None:
        """Something that was planned from outside."""
        what()

    def knock(self, due: float) -> None:
        """One who wants to join asks everybody, until it is let in or refused."""
        newcomer = self.newcomer
        if newcomer is None or self.wake != due:
            return
        self.wake = None
        self._transmit(newcomer.tick(self._timeline.now))
        self._ask(newcomer)

    def _transmit(self, sends: Iterable[tuple[Address, Datagram]]) -> None:
        """As one that is no member yet."""
        for address, datagram in sends:
            self.sim.network.ask(self, address, datagram)

    def _ask(self, newcomer: Newcomer) -> None:
        """It is a member, was refused, or asks again when it wants to."""
        if newcomer.view is not None:
            self.sim.let_in(self, newcomer)
        elif newcomer.refused is not None:
            self._end()
        elif self.wake is None or newcomer.wake < self.wake:
            self.wake = max(newcomer.wake, self._timeline.now)
            self._timeline.push(self.wake, Site.knock, self, self.wake)

    def _fail(self) -> None:
        """It cannot go on, and says so, as a group does that is closed for it."""
        self.has_failed = True
        self.sim.oracle.crash(self.number)
        self.waiting.clear()
        self.answers.clear()
        self.leaves_by = self._timeline.now + FAREWELL
        self.stack.goodbye(now=self._timeline.now)
        self._timeline.push(self._timeline.now, Site._part, self)
        self.pump()

    def _end(self) -> None:
        self.has_left, self.ended_at = True, min(self.ended_at, self._timeline.now)

    def _say(self, planned: tuple[int, int | None]) -> None:
        self.say(*planned)

    def _answer(self, planned: tuple[int, int | None]) -> None:
        self.answers.append(planned)

    def _give_up(self, planned: tuple[int, int | None]) -> None:
        """Nothing came to be answered: send all the same."""
        if planned in self.answers:
            self.answers.remove(planned)
            self.say(*planned)

    def _part(self, _: None) -> None:
        """One who leaves looks whether it may, says goodbye, and is gone when everybody knows."""
        stack, timeline, sim = self.stack, self._timeline, self.sim
        assert self.leaves_by is not None
        if not stack.leaving:
            ready = stack.settled and all(peer in stack.met for peer in stack.peers)
            if not ready and timeline.now < self.leaves_by:
                timeline.push(timeline.now + LOOKS_AGAIN, Site._part, self)
                return
            if ready:
                sim.oracle.leave(self.number)
            else:
                sim.oracle.crash(self.number)
                sim.gave_up.append(self)
            self.leaves_by = timeline.now + FAREWELL
            stack.goodbye(now=timeline.now)
            self.pump()
        if stack.has_left or timeline.now >= self.leaves_by:
            self._end()
        else:
            timeline.push(timeline.now + LOOKS_AGAIN, Site._part, self)

    def _tick(self, due: float) -> None:
        if self.wake != due:
            return
        self.wake = None
        self.stack.tick(self._timeline.now)
        self.pump()

    def _take(self, _: None) -> None:
        """The application begins the oldest batch of its queue."""
        self.taking = False
        number, batch = self.queue[0]
        if isinstance(batch, View):
            assert self.states is not None
            if self.states.pass_by(batch):
                self.queue.popleft()
            self.pump()
            return
        self.queue.popleft()
        self._begin(number, batch)
        answers: list[bytes] = []
        for index, payload in enumerate(batch.payloads):
            delivery = Delivery(batch, index)
            delivery.data = payload[HEADER:]
            self.taken.append(delivery)
            answer = self.react(delivery) if self.react is not None else None
            if answer is not None:
                answers.append(answer)
        self.waiting.extend(([answer], None) for answer in answers)
        if self.answers:
            size, dst = self.answers.popleft()
            self.waiting.append(([b"." * (size - HEADER)], dst))
        self.pump()

    def skip_to(self, view: View) -> None:
        """What was delivered before this view is part of a state that the application has taken."""
        while self.queue[0][1] is not view:
            number, batch = self.queue.popleft()
            if isinstance(batch, Batch):
                self._begin(number, batch)

    def _begin(self, number: int, batch: Batch) -> None:
        """The application begins a packet, or knows of it by a state that it took."""
        if batch.sender != self.name:
            self.owed -= sum(map(len, batch.payloads))
        loose = id(batch) in self.loose
        self.loose.discard(id(batch))
        self.stack.taken([batch.packet], now=self._timeline.now)
        self.sim.ledger.take(number, batch, loose=loose)

    # Effects

    def pump(self) -> None:
        """Send what the window lets through, then act on everything the stack wants."""
        if self.newcomer is not None:
            return
        stack, timeline, sim = self.stack, self._timeline, self.sim
        now = timeline.now
        if stack.view is not self.view:
            self._installed()
        while self.waiting and stack.writable:
            texts, sites = self.waiting.popleft()
            dst = None if sites is None else self.members(sites)
            if dst == 0:
                continue  # those whom it was for are gone
            sent = [sim.ledger.send(self, data, dst) for data in texts]
            receipt = stack.send_many([payload for _, payload, _ in sent], dst, now=now)
            for message, payload, audience in sent:
                if self.states is not None and dst is None:
                    self.states.sent(payload)
                if sim.watched:
                    self.receipts.append((message, receipt))
                    self._owe(audience, len(payload))
        ready = stack.ready()
        if stack.view is not self.view:
            self._installed()
        for address, datagram in ready.send:
            sim.network.transmit(self, address, datagram)
        if self.states is not None:
            self.states.follow(ready.deliver)
        for item in ready.deliver:
            if isinstance(item, Batch):
                self.queue.append((self.number if self.number >= 0 else 0, item))
                if self.is_open:
                    self.loose.add(id(item))
            else:
                self.items.append(item)
                if isinstance(item, View):
                    self.is_open = False  # another view begins with a closed gate
                    if self.states is not None:
                        self.queue.append((self.number, item))
        if self.queue and not self.taking:
            self.taking = True
            at = now + self.pause_max * timeline.rng.random()
            timeline.push(max(at, self.reads_at), Site._take, self)
        if ready.wake is not None and (self.wake is None or ready.wake < self.wake):
            self.wake = max(ready.wake, now)
            timeline.push(self.wake, Site._tick, self, self.wake)
        if isinstance(ready.error, Excluded):
            self.is_excluded, self.excluded = True, ready.error
            self.crash()
        elif ready.error is not None and not self.has_failed:
            if sim.may_fail is not None and sim.may_fail(self, ready.error):
                self._fail()
            elif self.leaves_by is None:
                raise ready.error
        if self.waiting and stack.writable:
            self.pump()

    def _owe(self, audience: int, size: int) -> None:
        """So much more is under way to these; what one sends to oneself is one's own affair."""
        for target in self.sim.sites:
            if target is not self and target.number >= 0 and audience >> target.number & 1:
                target.owed += size
                target.owed_most = max(target.owed_most, target.owed)

    def _installed(self) -> None:
        """A view was installed here: what is sent from now on goes to its members."""
        sim, view = self.sim, self.stack.view
        self.before, self.view = self.view, view
        sim.ledger.install(self, view)
        if self.states is not None and self.states.transfer.stop_at is not None:
            self.waited_in += 1

    def _member(self) -> Stack:
        if self.newcomer is not None:
            raise UsageError(f"{self.name!r} is no member yet")
        return self.stack
