"""Members in virtual time: whole recipes over links that lose, double, delay and reorder.

A heap of events; each is one turn of one member. Everything random comes from one seed, drawn in the
order of events, so a run is the same on every machine. Applications read their queue after a random
pause, as real ones do.

    sim = Sim("alice", "bob", "cathy", order="causal", seed=1)
    sim.link("alice", "cathy").delay = 20
    sim["bob"].react = lambda d: b"yes" if bytes(d.data) == b"lunch?" else None
    sim["alice"].send(b"lunch?")
    sim.run()
    assert sim["cathy"].texts == ["lunch?", "yes"]
    sim.check()
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any

from inga.layers.shape import Faults
from inga.model.delivery import Batch, Delivery
from inga.model.errors import UsageError
from inga.model.invocation import ONE_WAY, SYNCHRONOUS
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.steps import Trace
from inga.model.view import Member, View
from inga.objects.declare import Target
from inga.objects.invoke import Body, Root
from inga.objects.layer import ObjectOrder
from inga.recipes import Options, Recipe, find, refuse_late
from inga.session.newcomer import Newcomer
from inga.sim.board import Board, lossless, sees_concurrency
from inga.sim.recorder import Recorder, Tap
from inga.sim.schedule import Schedule
from inga.stack.layer import Layer
from inga.stack.stack import Datagram, Stack, joined
from inga.trial.oracle import Oracle, agreed_orders
from inga.trial.result import packets_sent, recovered
from inga.trial.workload import HEADER, Workload, number_of

DELAY = Faults(delay_min=0.001, delay_max=0.01)
"""Links of a local network, unless said otherwise: 1 to 10 ms."""

PAUSE_MAX = 0.005
"""Seconds a delivery waits in the queue of the application, at most."""

LINGER = 30.0
"""Seconds that one who leaves waits for the others to have all it sent."""

LOOKS_AGAIN = 0.02
"""Seconds after which one who leaves looks again whether they have."""

EVENTS_MAX = 200_000
"""Events, besides a thousand for each copy of a message, after which a run is given up as unquiet."""

React = Callable[[Delivery], bytes | None]


class Unquiet(AssertionError):
    """A run did not end: somebody kept sending control messages."""


class Link:
    """One direction between two members."""

    __slots__ = ("faults",)

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    @property
    def delay(self) -> float:
        return self.faults.delay_max

    @delay.setter
    def delay(self, seconds: float) -> None:
        self.faults = Faults(self.faults.loss, self.faults.duplicate, self.faults.reorder, seconds, seconds)


class Site:
    """One member: its stack, its application, and what that has seen."""

    stack: Stack  # once it is a member

    def __init__(self, sim: "Sim", index: int, name: str, newcomer: Newcomer | None = None) -> None:
        self.index = index
        self.name = name
        self.newcomer = newcomer  # as long as it is no member
        self.view: View | None = None  # the last one we have seen installed
        self.react: React | None = None
        self.taken: list[Delivery] = []
        self._sim = sim
        self.queue: deque[Batch] = deque()
        self.waiting: deque[tuple[bytes, int | None]] = deque()  # sends the flow window keeps out
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
        self.awake_at = 0.0  # when anything reaches this member again
        self.leaves_by: float | None = None  # it is leaving, and waits until then for the others
        self.has_left = False  # or was never let in

    @property
    def texts(self) -> list[str]:
        """What the application took, as text."""
        return [bytes(delivery.data).decode(errors="replace") for delivery in self.taken]

    def send(self, data: bytes, to: str | Sequence[str] | None = None) -> None:
        """Send now, in a turn of its own."""
        self._sim.turn(self, data, self._sim.mask(to))

    def use(self, order: str) -> None:
        """Ask for another order in the whole group."""
        self._sim.use(self, order)

    def gate(self, state: str) -> None:
        """`open` or `closed`: whether anything is held here."""
        self._sim.gate(self, state)

    def leave(self) -> None:
        """Send nothing more, and go once the others have everything."""
        self._sim.leave(self)

    def pause(self, seconds: float) -> None:
        """Nothing happens here for a while, as on a machine that is overloaded; then everything at once."""
        self.awake_at = max(self.awake_at, self._sim.now + seconds)

    def stop_reading(self, seconds: float) -> None:
        """The application has something else to do."""
        self.reads_at = max(self.reads_at, self._sim.now + seconds)

    @property
    def is_member(self) -> bool:
        """Whether it is in the group and stays there."""
        return self.newcomer is None and self.leaves_by is None and not self.has_left

    def call(self, target: Target, op: str, /, *args: Any, **named: Any) -> Root:
        """Call a method of an object, or of several; what this gives has the outcome once the run is over."""
        call = self._sim.objects(self).host.calling.check(SYNCHRONOUS, target, op, args, named)
        return self.begin(lambda ctx: ctx.make(call))

    def oneway(self, target: Target, op: str, /, *args: Any, **named: Any) -> None:
        """Call without an answer."""
        call = self._sim.objects(self).host.calling.check(ONE_WAY, target, op, args, named)
        self.begin(lambda ctx: ctx.make(call))

    def begin(self, body: Body, *, retry_of: Root | None = None) -> Root:
        """Run `async def body(ctx)` as a transaction."""
        return self._sim.begin(self, body, retry_of)

    def state(self, name: str) -> Any:
        """The state of this member's copy of an object."""
        return self._sim.objects(self).host.state(name)


class Sim:
    """A group in virtual time."""

    def __init__(
        self,
        *names: str,
        order: str = "causal",
        deliver: str | None = None,
        seed: int = 0,
        faults: Faults = DELAY,
        options: Options | None = None,
        objects: Mapping[str, Any] | None = None,
        build: Callable[[Options], list[Layer]] | None = None,
        traces: Sequence[Trace] | None = None,
        datagram_max: int = 60 * 1024,
        record: bool = True,
        like: "Sim | None" = None,
    ) -> None:
        """`deliver` is the level at which messages are handed over. `objects` are those of the group, as `inga.join`
        has them. `build` replaces the recipe's layers (a mutation, say). `record` keeps the run as a
        schedule. `like` plays the same sends and arrivals as another run, at once, under this order
        and over links that lose nothing."""
        if not names:
            raise UsageError("a group needs at least one member")
        if len(set(names)) < len(names):
            raise UsageError(f"members have names of their own, not {', '.join(names)}")
        recipe = find(order)
        options = options or Options()
        options = replace(options, deliver=recipe.level_of(deliver or options.deliver))
        if objects:
            options = replace(options, objects=objects)
        self.order = recipe.name
        self.seed = seed
        self.guarantees = recipe.promises(options.deliver)
        self._recipe = recipe  # the first
        self.rng = Random(seed)
        self.now = 0.0
        self.oracle = Oracle(len(names))
        self._options = options
        self._promise(1, recipe)
        self.watched = False  # keep receipts, and how much was under way to each member
        self.bytes = 0
        self.sent_at = 0.0  # when the last datagram was
        self.lost = 0  # copies
        self._recorder = Recorder() if record else None
        self._finished = False
        self._names = {name: index for index, name in enumerate(names)}
        self._messages = 0
        self._sends: dict[int, tuple[int, bytes, int | None]] = {}
        self._keys: dict[int, Any] = {}  # of messages that are in order with others of their key
        self._epochs = {1: 1}  # of views: the number of the first that had their order
        self._heap: list[tuple[float, int, int, Site, Any]] = []
        self._pushed = 0
        self._founders = len(names)
        self.outcomes: list[str | None] = []  # of changes asked for: None, or why they did not come about
        self.asked: list[Site] = []  # whose changes have not ended
        self.gave_up: list[Site] = []  # who left although others lacked something
        view = View.of(*names, recipe=recipe.name, traced=traces is not None)
        self._build = build or recipe.build
        self._datagram_max = datagram_max
        self._faults = faults
        self._late_trace: LateTrace | None = None
        self.sites = [Site(self, index, name) for index, name in enumerate(names)]
        for site in self.sites:
            trace = self._trace(site.index, None if traces is None else traces[site.index])
            self._begin(site, self._build(options), view, trace)
        # Flags are exact, unless nobody wants them or coarse bundles may hide concurrency.
        wanted = options.on_concurrent != "ignore" and not options.coarse
        self._flags = wanted and sees_concurrency(self.sites[0].stack)
        n = len(names)
        self._links = [[Link(faults) for _ in range(n)] for _ in range(n)]
        if like is not None:
            self._play(like)

    # Who is there

    def __getitem__(self, name: str) -> Site:
        try:
            return self.sites[self._names[name]]
        except KeyError:
            raise UsageError(f"no member {name!r}; there are {', '.join(self._names)}") from None

    def link(self, source: str, target: str) -> Link:
        """The way from one member to another."""
        return self._links[self[source].index][self[target].index]

    def mask(self, to: str | Sequence[str] | None) -> int | None:
        """Names as a bit set."""
        if to is None:
            return None
        names = [to] if isinstance(to, str) else list(to)
        if not names:
            raise UsageError("a message needs at least one destination")
        return sum({1 << self[name].index for name in names})

    @property
    def schedule(self) -> Schedule:
        """The run so far, message by message: sends, arrivals and takes."""
        if self._recorder is None:
            raise UsageError("the run was made with record=False")
        return Schedule(tuple(self._recorder.events))

    @property
    def pdus(self) -> dict[str, int]:
        """Packets sent; one for everybody counts once."""
        return packets_sent([site.stack.counts for site in self.sites])

    @property
    def recovery(self) -> dict[str, int]:
        """What was lost, and what members did about it."""
        return recovered([{"lost": self.lost}, *(site.stack.counts for site in self.sites)])

    def join(self, name: str, at: float | None = None, workload: Workload | None = None) -> Site:
        """Somebody joins, now or at that time, and then has a workload of its own."""
        if self._recorder is not None:
            raise UsageError("a run with newcomers cannot be recorded: record=False")
        if name in self._names:
            raise UsageError(f"there is a member {name!r} already")
        refuse_late(find(self.order))
        self._names[name] = index = len(self.sites)
        at = self.now if at is None else at
        site = Site(self, index, name, Newcomer("", Member(name), now=at))
        self.sites.append(site)
        for row in self._links:
            row.append(Link(self._faults))
        self._links.append([Link(self._faults) for _ in self.sites])
        self._push(at, _KNOCK, site, None)
        if workload is not None:
            self._load(site, workload, at)
        return site

    def trace_newcomers(self, trace: "LateTrace") -> None:
        """What makes the trace of a newcomer, once its index is known."""
        self._late_trace = trace

    def use(self, site: Site, order: str) -> None:
        """Change the order of the whole group, as `site` wishes."""
        recipe = find(order)
        before = len(self.outcomes)
        self._member(site).propose(recipe.name, partial(self._end_of_change, site), now=self.now)
        if len(self.outcomes) == before:
            self.asked.append(site)
        self.guarantees = tuple(name for name in self.guarantees if name in recipe.guarantees)
        self._flags = self._flags and recipe.name == "vector"
        self._pump(site)

    def gate(self, site: Site, state: str) -> None:
        """Stop or resume holding at one site; what others may expect of it ends with that."""
        self._member(site).gate(state, now=self.now)
        site.is_open = state == "open"
        self.guarantees = tuple(name for name in self.guarantees if name not in ("fifo", "causal"))
        self._flags = False
        self._pump(site)

    def leave(self, site: Site) -> None:
        """`site` leaves when everybody else was heard and has all it sent, as a group does that is closed."""
        self._member(site).flush()
        site.leaves_by = self.now + LINGER
        site.waiting.clear()
        site.answers.clear()
        self._push(self.now, _PART, site, None)
        self._pump(site)

    def calm(self) -> None:
        """From now on nothing is lost, doubled or disordered, and applications read what comes."""
        for site in self.sites:
            site.pause_max = PAUSE_MAX
        for row in self._links:
            for link in row:
                link.faults = _calmed(link.faults)
        self._faults = _calmed(self._faults)

    def begin(self, site: Site, body: Body, retry_of: Root | None = None) -> Root:
        """A transaction of one member, in a turn of its own."""
        order = self.objects(site)
        site.stack.advance(self.now)
        root = order.begin(body, retry_of=retry_of)
        self._pump(site)
        return root

    def objects(self, site: Site) -> ObjectOrder:
        """The layer that has a member's objects."""
        order = self._member(site).layer("object")
        if not isinstance(order, ObjectOrder):
            raise UsageError(f"order {self.order!r} has no objects: use order='object' or 'total'")
        return order

    def _end_of_change(self, site: Site, why: str | None) -> None:
        if site in self.asked:
            self.asked.remove(site)
        self.outcomes.append(why)

    def _promise(self, epoch: int, recipe: Recipe) -> None:
        """What is sent from that view on is under this order."""
        deliver = self._options.deliver if recipe is self._recipe else None
        promised = recipe.promises(deliver)
        self.oracle.promises[epoch] = promised
        self.oracle.agree(agreed_orders(promised, self._agreed_key))

    def _agreed_key(self, message: int) -> Any:
        """Which others a message is to be taken in one order with: those of its key and of its epoch."""
        key = self._keys.get(message)
        return None if key is None else (self.oracle.epoch_of(message), key)

    def _member(self, site: Site) -> Stack:
        if site.newcomer is not None:
            raise UsageError(f"{site.name!r} is no member yet")
        return site.stack

    def _begin(
        self,
        site: Site,
        layers: list[Layer],
        view: View,
        trace: Trace | None,
        *,
        sizes: dict[int, int] | None = None,
        bases: dict[str, list[int]] | None = None,
    ) -> None:
        site.stack = Stack(
            layers,
            site.index,
            view,
            rng=self.rng,
            trace=trace,
            datagram_max=self._datagram_max,
            now=self.now,
            sizes=sizes,
        )
        site.view = view
        site.is_open = False
        site.stack.begin(bases)

    def _let_in(self, site: Site, newcomer: Newcomer) -> None:
        """It has all it needs to be a member."""
        view = newcomer.view
        assert view is not None and newcomer.bases is not None
        trace = None
        if self._late_trace is not None:
            trace = self._late_trace(site.index, site.name, len(view), newcomer)
        site.newcomer = None
        # A stamp names what was sent before its writer came; a relay passes on what it got, in that order.
        self.oracle.join(site.index, knows=view.recipe != "relay")
        recipe = find(view.recipe)
        layers = recipe.build(recipe.keep(self._options, self._recipe.name))
        self._begin(site, layers, view, trace, sizes=newcomer.sizes, bases=newcomer.bases)
        site.stack.receive(newcomer.backlog, now=self.now)
        self._pump(site)

    # Running

    def load(self, workload: Workload) -> None:
        """Give every member its sends, spread over virtual time."""
        for site in self.sites:
            self._load(site, workload, 0.0)

    def _load(self, site: Site, workload: Workload, at: float) -> None:
        for gap, answers in workload.plan(self.rng):
            at += gap
            dst = workload.destinations(self.rng, site.index)
            self._push(at, _ANSWER if answers else _SEND, site, (workload.size, dst))
            if answers:
                self._push(at + 5 / workload.rate, _GIVE_UP, site, (workload.size, dst))

    def at(self, time: float, site: Site, act: Callable[[], Any]) -> None:
        """Let something happen at that time."""
        self._push(time, _ACT, site, act)

    def run(self, until: float | None = None) -> None:
        """Go on until nothing is left to do, or until that time."""
        heap = self._heap
        events = 0
        while heap and (until is None or heap[0][0] <= until):
            self.now, _, what, site, argument = heappop(heap)
            events += 1
            if events > EVENTS_MAX and events > 1000 * self.oracle.expected:
                raise Unquiet(f"not quiet after {events} events, at {self.now:.3f} s of virtual time")
            if site.has_left:
                continue
            if site.awake_at > self.now:
                self._push(site.awake_at, what, site, argument)
                continue
            _HANDLERS[what](self, site, argument)
        if until is not None and self.now < until:
            self.now = until

    def check(self) -> None:
        """Raise AssertionError unless the run kept every promise of its order."""
        assert not self.finish().broken, f"seed {self.seed}: " + "; ".join(self.oracle.witnesses)

    def finish(self) -> Oracle:
        """The verdict, once the run is over."""
        if not self._finished:
            self._finished = True
            self.oracle.finish()
        return self.oracle

    def turn(self, site: Site, data: bytes, dst: int | None) -> None:
        """One send by one member."""
        site.waiting.append((data, dst))
        self._pump(site)

    def say(self, site: Site, size: int, dst: int | None) -> None:
        """A message of that size, now."""
        self.turn(site, b"." * (size - HEADER), dst)

    def answer(self, site: Site, size: int, dst: int | None, gives_up: float) -> None:
        """A message with the next one that is taken as its cause; after a while without."""
        site.answers.append((size, dst))
        self._push(self.now + gives_up, _GIVE_UP, site, (size, dst))

    # Events

    def _push(self, at: float, what: int, site: Site, argument: Any) -> None:
        self._pushed += 1
        heappush(self._heap, (at, self._pushed, what, site, argument))

    def _on_send(self, site: Site, argument: tuple[int, int | None]) -> None:
        self.say(site, *argument)

    def _on_act(self, site: Site, argument: Callable[[], Any]) -> None:
        argument()

    def _on_answer(self, site: Site, argument: tuple[int, int | None]) -> None:
        site.answers.append(argument)

    def _on_give_up(self, site: Site, argument: tuple[int, int | None]) -> None:
        """Nothing came to be answered: send all the same."""
        if argument in site.answers:
            site.answers.remove(argument)
            self._on_send(site, argument)

    def _on_knock(self, site: Site, argument: None) -> None:
        newcomer = site.newcomer
        if newcomer is not None:
            if newcomer.refused is not None:
                site.has_left = True
                if newcomer.view is not None:  # some had let it in
                    self.oracle.crash(site.index)
                return
            for _, datagram in newcomer.tick(self.now):
                for other in self.sites:
                    if other.newcomer is None:
                        self._send_copy(site, other, joined(datagram))
            self._push(newcomer.wake, _KNOCK, site, None)

    def _on_arrive(self, site: Site, datagram: tuple[bytes, str]) -> None:
        newcomer = site.newcomer
        if newcomer is not None:
            newcomer.receive([datagram], now=self.now)
            if newcomer.bases is not None:
                self._let_in(site, newcomer)
            return
        site.stack.receive([datagram], now=self.now)
        self._pump(site)

    def _on_part(self, site: Site, argument: None) -> None:
        """One who leaves looks whether it may, says goodbye, and is gone when everybody knows."""
        stack = site.stack
        assert site.leaves_by is not None
        if not stack.leaving:
            ready = stack.settled and all(peer in stack.met for peer in stack.peers())
            if not ready and self.now < site.leaves_by:
                self._push(self.now + LOOKS_AGAIN, _PART, site, None)
                return
            if ready:
                self.oracle.leave(site.index)
            else:
                self.oracle.crash(site.index)
                self.gave_up.append(site)
            site.leaves_by = self.now + LINGER
            stack.goodbye(now=self.now)
            self._pump(site)
        if stack.has_left or self.now >= site.leaves_by:
            site.has_left = True
        else:
            self._push(self.now + LOOKS_AGAIN, _PART, site, None)

    def _on_tick(self, site: Site, due: float) -> None:
        if site.wake != due:
            return
        site.wake = None
        site.stack.tick(self.now)
        self._pump(site)

    def _on_take(self, site: Site, argument: None) -> None:
        site.taking = False
        batch = site.queue.popleft()
        if batch.src != site.index:
            site.owed -= sum(map(len, batch.payloads))
        loose = id(batch) in site.loose
        site.loose.discard(id(batch))
        site.stack.taken([batch.packet], now=self.now)
        answers: list[bytes] = []
        for index, payload in enumerate(batch.payloads):
            message = number_of(payload)
            if self._recorder is not None:
                self._recorder.take(site.index, message)
            concurrent = self.oracle.take(site.index, message, loose=loose)
            judged = self._flags and index == 0 and not site.stack.leaving
            if judged and concurrent != batch.concurrent:
                self.oracle.blame("flags", f"{site.name} saw message {message} as {batch.concurrent=}")
            delivery = Delivery(batch, index)
            delivery.data = payload[HEADER:]
            site.taken.append(delivery)
            answer = site.react(delivery) if site.react is not None else None
            if answer is not None:
                answers.append(answer)
        site.waiting.extend((answer, None) for answer in answers)
        if site.answers:
            size, dst = site.answers.popleft()
            site.waiting.append((b"." * (size - HEADER), dst))
        self._pump(site)

    # Effects

    def _pump(self, site: Site) -> None:
        """Send what the window lets through, then act on everything the stack wants."""
        if site.newcomer is not None:
            return
        stack = site.stack
        if stack.view is not site.view:
            self._installed(site)
        while site.waiting and stack.writable:
            data, dst = site.waiting.popleft()
            self._messages += 1
            message = self._messages
            self._sends[message] = (site.index, data, dst)
            if self._recorder is not None:
                self._recorder.send(site.index, message, dst)
            audience = dst
            if dst is None and len(self.sites) > self._founders:
                audience = ((1 << len(stack.view)) - 1) & ~(1 << site.index)
            if find(stack.view.recipe).echoes(self._options.echo):
                audience = ((1 << len(stack.view)) - 1) if dst is None else dst | 1 << site.index
            epoch = self._epochs[stack.view.number]
            payload = message.to_bytes(HEADER, "big") + data
            self.oracle.send(site.index, message, audience, epoch=epoch)
            if "object" in self.oracle.promises[epoch]:
                self._keys[message] = self.objects(site).key_of(payload)
            receipt = stack.send(payload, dst, now=self.now)
            if self.watched:
                site.receipts.append((message, receipt))
                self._owe(site, audience, len(payload))
        ready = stack.ready()
        for address, datagram in ready.send:
            self._transmit(site, address if isinstance(address, int) else None, datagram)
        if ready.deliver:
            for item in ready.deliver:
                if isinstance(item, Batch):
                    site.queue.append(item)
                    if site.is_open:
                        site.loose.add(id(item))
                elif not item.joined:
                    site.is_open = False  # another order begins with a closed gate
        if site.queue and not site.taking:
            site.taking = True
            at = self.now + site.pause_max * self.rng.random()
            self._push(max(at, site.reads_at), _TAKE, site, None)
        if ready.wake is not None and (site.wake is None or ready.wake < site.wake):
            site.wake = max(ready.wake, self.now)
            self._push(site.wake, _TICK, site, site.wake)
        if ready.error is not None:
            raise ready.error
        if site.waiting and stack.writable:
            self._pump(site)

    def _owe(self, site: Site, audience: int | None, size: int) -> None:
        """So much more is under way to these; what one sends to oneself is one's own affair."""
        for target in self.sites:
            if target is not site and (audience is None or audience >> target.index & 1):
                target.owed += size
                target.owed_most = max(target.owed_most, target.owed)

    def _transmit(self, site: Site, address: int | None, datagram: Datagram) -> None:
        data = joined(datagram)
        # A datagram for everybody reaches those too who are about to join.
        targets = range(len(self.sites)) if address is None else (address,)
        self.bytes += len(data)
        self.sent_at = self.now
        trace = site.stack.trace
        full = trace is not None and trace.full
        for target in targets:
            if target == site.index:
                continue
            if full and target < len(site.stack.view):
                assert trace is not None
                number = site.stack.view.number
                trace.row("datagram_out", self.now, number, peer=target, n=len(data))
            self._send_copy(site, self.sites[target], data)

    def _send_copy(self, site: Site, target: Site, data: bytes) -> None:
        fates = self._links[site.index][target.index].faults.fates(self.rng)
        if not fates:
            self.lost += 1
        for delay in fates:
            self._arrive_at(self.now + delay, site, target, data)

    def _arrive_at(self, at: float, site: Site, target: Site, data: bytes) -> None:
        self._push(at, _ARRIVE, target, (data, site.name))

    def _installed(self, site: Site) -> None:
        """A view was installed here: what is sent from now on goes to its members."""
        view = site.stack.view
        before = 0 if site.view is None else len(site.view)
        site.view = view
        if view.number not in self._epochs:
            is_extended = len(view) > before
            self._epochs[view.number] = self._epochs[view.number - 1] if is_extended else view.number
            self._promise(self._epochs[view.number], find(view.recipe))
        for newcomer in range(before, len(view)):
            self._seat(self[view.names[newcomer]], newcomer)
            self.oracle.admit(site.index, newcomer)

    def _seat(self, site: Site, index: int) -> None:
        """The leader decides who comes first of those who want to join."""
        other = self.sites[index]
        if other is not site:
            self.sites[site.index], self.sites[index] = other, site
            site.index, other.index = index, site.index
            self._names[site.name], self._names[other.name] = site.index, other.index

    def _trace(self, index: int, trace: Trace | None) -> Trace | None:
        return trace if self._recorder is None else Tap(self._recorder, index, trace)

    # The same arrivals, another order

    def _play(self, like: "Sim") -> None:
        """Replay another run's messages on a board, and show the result as if it had run here."""
        board = Board(len(self.sites), lossless(self.order), flags=self._flags)
        board.oracle.promises[0] = self.guarantees
        self.oracle = board.play(like.schedule)
        for site, messages in zip(self.sites, board.taken, strict=True):
            for message in messages:
                sender, data, _ = like._sends[message]
                site.taken.append(_replayed(self.sites[sender].name, data))


def _calmed(faults: Faults) -> Faults:
    return Faults(delay_min=faults.delay_min, delay_max=faults.delay_max)


def _replayed(sender: str, data: bytes) -> Delivery:
    packet = Packet(0, 1)
    packet.payloads = [data]
    return Delivery(Batch(sender, packet), 0)


LateTrace = Callable[[int, str, int, Newcomer], Trace]
"""Makes the trace of a newcomer: its index, its name, the size of its first view, and what it learned."""

_SEND, _ANSWER, _GIVE_UP, _ARRIVE, _TICK, _TAKE, _KNOCK, _ACT, _PART = range(9)
_HANDLERS: list[Callable[[Sim, Site, Any], None]] = [
    Sim._on_send,
    Sim._on_answer,
    Sim._on_give_up,
    Sim._on_arrive,
    Sim._on_tick,
    Sim._on_take,
    Sim._on_knock,
    Sim._on_act,
    Sim._on_part,
]
