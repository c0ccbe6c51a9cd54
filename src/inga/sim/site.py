"""One member of a group in virtual time: its stack, and an application that sends, reads and leaves.

Each event is one turn of one site: a datagram arrives, a timer fires, or the application takes a delivery. At
the end of a turn `pump` does what the stack requests, as a driver over sockets would.
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
"""The most seconds that a delivery waits in the queue of the application, unless the application is slow or stopped."""

LINGER = 300.0
"""The most seconds that a leaving member waits until the others have all it sent: many, as some networks are slow."""

FAREWELL = 30.0
"""The most seconds that it then waits until they know that it has left: a member that leaves at the same time may not answer."""

LOOKS_AGAIN = 0.02
"""Seconds between two looks of a leaving member at whether the others have all it sent, or know that it has left."""

React = Callable[[Delivery], bytes | None]


class Site:
    """One member: its stack, its application, and what that has seen."""

    stack: Stack  # set once it is a member

    def __init__(
        self,
        sim: "Sim",
        index: int,
        name: str,
        newcomer: Newcomer | None = None,
    ) -> None:
        self.index = index  # among all sites
        self.number = -1  # the oracle's number of this member; another one for each incarnation
        self.name = name
        self.newcomer = newcomer  # as long as it is not a member
        self.view: View | None = None  # the last one that we have seen installed
        self.before: View | None = None  # and the one before it
        self.react: React | None = None
        self.taken: list[Delivery] = []
        self.items: list[View | Incident] = []  # views and incidents that were delivered
        self.sim = sim
        self._timeline = sim.timeline
        self.queue: deque[tuple[int, Batch | View]] = deque()  # each with our `number` when it was delivered
        self.states: SiteStates | None = (
            None  # the states that its application gives to newcomers, and takes as one
        )
        self.waiting: deque[tuple[list[bytes], int | None]] = deque()  # sends that flow control holds back
        self.taking = False  # a take is scheduled
        self.wake: float | None = None  # when a tick is due
        self.answers: deque[tuple[int, int | None]] = deque()  # sends that wait for a message to answer
        self.receipts: list[tuple[int, Receipt]] = []  # of each message it sent
        self.owed = self.owed_most = (
            0  # bytes that others sent to it and it has not taken: now, and the most so far
        )
        self.is_open = False  # its gate
        self.loose: set[int] = set()  # packets that passed the open gate and are not taken yet
        self.pause_max = PAUSE_MAX  # the most seconds that a delivery waits for the application
        self.reads_at = 0.0  # when the application reads again
        self.starts_at = 0.0  # when its process starts
        self.awake_at = 0.0  # until then the member is paused: no event reaches it
        self.leaves_by: float | None = None  # it is leaving, and waits for the others until then
        self.has_left = False  # it left, crashed, failed, or was never admitted
        self.waited_in = 0  # views in which it waited for a state, so that it read nothing
        self.has_crashed = False
        self.has_failed = False  # its stack failed, and it leaves for that reason
        self.ended_at = inf  # when it left or crashed
        self.excluded: Excluded | None = None  # the error with which its membership ended
        self.is_excluded = False  # the others excluded it

    # Actions

    @property
    def texts(self) -> list[str]:
        """What the application took, as text."""
        return [bytes(delivery.data).decode(errors="replace") for delivery in self.taken]

    def stats(self) -> Stats:
        """Return a snapshot of the group as this member sees it, like `group.stats()`, without the counts of sockets."""
        state = "failed" if self.is_excluded else "closed" if self.has_left else None
        return snapshot(self._member(), group="sim", now=self._timeline.now, state=state)

    @property
    def is_member(self) -> bool:
        """Whether it is in the group and is not leaving."""
        return self.newcomer is None and self.leaves_by is None and not self.has_left

    def members(self, sites: int) -> int:
        """Convert a bit set of sites to a bit set of members of the view in force here."""
        members = enumerate(self.stack.view.members)
        return sum(1 << i for i, person in members if sites >> self.sim.site_of(person).index & 1)

    def send(self, data: bytes, to: str | Sequence[str] | None = None) -> None:
        """Send now, in a turn of its own."""
        self.waiting.append(([data], self.sim.mask(to)))
        self.pump()

    def say(self, size: int, dst: int | None, count: int = 1, *, waits: bool = False) -> None:
        """Send `count` messages of that size now, in one call as `send_many` does, to a bit set of sites. `waits`: they
        leave in one turn with what is sent next."""
        self.waiting.append(([b"." * (size - HEADER)] * count, dst))
        if waits:  # if nothing follows, they leave at the end of this moment
            self._timeline.push(self._timeline.now, Site.act, self, self.pump)
        else:
            self.pump()

    def answer(self, size: int, dst: int | None, gives_up: float) -> None:
        """Send a message when the next message is taken, so that this is its cause; at the latest after `gives_up` seconds."""
        self._answer((size, dst))
        self._timeline.push(self._timeline.now + gives_up, Site._give_up, self, (size, dst))

    def load(self, workload: Workload, at: float) -> None:
        """Schedule the sends of a workload from that time on."""
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
        """Request another order for the whole group."""
        recipe = find(order)
        sim = self.sim
        before = len(sim.outcomes)
        self._member().propose(recipe.name, partial(sim.change_ended, self), now=self._timeline.now)
        if len(sim.outcomes) == before:
            sim.asked.append(self)
        sim.ledger.change(recipe)
        self.pump()

    def gate(self, state: str) -> None:
        """Open or close this member's gate: `state` is `open` or `closed`. While it is open, no message is held here."""
        self._member().gate(state, now=self._timeline.now)
        self.is_open = state == "open"
        self.sim.ledger.gate()
        self.pump()

    def go_on(self) -> None:
        """Let a paused part of the group go on without the missing members, as `group.go_on()` does when a person decides so."""
        stack = self._member()
        stack.advance(self._timeline.now)
        session_of(stack).go_on()
        self.pump()

    def leave(self) -> None:
        """Send nothing more, and leave once all other members were met and have everything, like a group that is closed. A
        newcomer withdraws its request for admission."""
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
        """Stop at once, without a goodbye."""
        if self.number >= 0:
            self.sim.oracle.crash(self.number)
        self.has_crashed = True
        self._end()

    def pause(self, seconds: float) -> None:
        """Process no events for a while, as on an overloaded machine; then all that were due meanwhile, at once."""
        self.awake_at = max(self.awake_at, self._timeline.now + seconds)

    def stop_reading(self, seconds: float) -> None:
        """Let the application read nothing for a while."""
        self.reads_at = max(self.reads_at, self._timeline.now + seconds)

    # Objects

    @property
    def objects(self) -> ObjectOrder:
        """The layer that hosts this member's objects."""
        order = self._member().layer("object")
        if not isinstance(order, ObjectOrder):
            raise UsageError(
                f"order {self.sim.order!r} has no objects: use order='object' or 'total', and objects="
            )
        return order

    def call(self, target: Target, op: str, /, *args: Any, **named: Any) -> Root:
        """Call a method of an object, or of several. The returned transaction has the outcome once the run is over."""
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
        """Process the arrival of a datagram: its bytes and its sender."""
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
        """Run an action that was scheduled from outside, with `Sim.at`."""
        what()

    def knock(self, due: float) -> None:
        """Let a newcomer ask for admission; it repeats this until it is admitted or refused."""
        newcomer = self.newcomer
        if newcomer is None or self.wake != due:
            return
        self.wake = None
        self._transmit(newcomer.tick(self._timeline.now))
        self._ask(newcomer)

    def _transmit(self, sends: Iterable[tuple[Address, Datagram]]) -> None:
        """Transmit datagrams of a newcomer."""
        for address, datagram in sends:
            self.sim.network.ask(self, address, datagram)

    def _ask(self, newcomer: Newcomer) -> None:
        """Make the newcomer a member if it was admitted, end it if it was refused; else schedule when it asks again."""
        if newcomer.view is not None:
            self.sim.let_in(self, newcomer)
        elif newcomer.refused is not None:
            self._end()
        elif self.wake is None or newcomer.wake < self.wake:
            self.wake = max(newcomer.wake, self._timeline.now)
            self._timeline.push(self.wake, Site.knock, self, self.wake)

    def _fail(self) -> None:
        """Leave because the stack has failed, with a goodbye, like a group that is closed by an error."""
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
        """Send an answer that has found no message to answer."""
        if planned in self.answers:
            self.answers.remove(planned)
            self.say(*planned)

    def _part(self, _: None) -> None:
        """Let a leaving member say goodbye once all others have what it sent, and end once they know that it has left."""
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
        """Let the application take the oldest batch or view of its queue."""
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
        """Drop from the queue what was delivered before this view: it is part of a state that the application has taken."""
        while self.queue[0][1] is not view:
            number, batch = self.queue.popleft()
            if isinstance(batch, Batch):
                self._begin(number, batch)

    def _begin(self, number: int, batch: Batch) -> None:
        """Note that the application has taken a packet, itself or as part of a state."""
        if batch.sender != self.name:
            self.owed -= sum(map(len, batch.payloads))
        loose = id(batch) in self.loose
        self.loose.discard(id(batch))
        self.stack.taken([batch.packet], now=self._timeline.now)
        self.sim.ledger.take(number, batch, loose=loose)

    # Effects

    def pump(self) -> None:
        """Send what the window admits, then carry out everything that the stack requests."""
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
                continue  # all its destinations are gone
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
        """Count bytes that are in flight to the members in `audience`; those that a member sends to itself do not count."""
        for target in self.sim.sites:
            if target is not self and target.number >= 0 and audience >> target.number & 1:
                target.owed += size
                target.owed_most = max(target.owed_most, target.owed)

    def _installed(self) -> None:
        """Note that a view was installed here: from now on sends go to its members."""
        sim, view = self.sim, self.stack.view
        self.before, self.view = self.view, view
        sim.ledger.install(self, view)
        if self.states is not None and self.states.transfer.stop_at is not None:
            self.waited_in += 1

    def _member(self) -> Stack:
        if self.newcomer is not None:
            raise UsageError(f"{self.name!r} is no member yet")
        return self.stack
