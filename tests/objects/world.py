"""Objects that run programs over a bad network, in virtual time, and a log of everything they do.

A program is a list of steps, and travels as the argument of the request that runs it:

    ["work", t]                    time passes
    ["s", dst, op, program]        call and wait; "a": call and go on; "o": one-way
    ["and", [call, ...]]           start all of them, wait for all
    ["or", [call, ...]]            start all of them, wait for one
    ["fail"]                       abort
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from inga.model.invocation import ABORT, REQUESTS, RESPONSE, Flush, Message, Spoken
from inga.objects.actions import Transmit
from inga.objects.declare import Abort, Method, ObjectClass
from inga.objects.instance import Instance
from inga.objects.invoke import Host, InstanceContext, Root
from inga.objects.options import EngineOptions
from inga.objects.roster import ConflictRelation, Pairs, Place, Roster
from inga.trial.world import World as VirtualWorld
from inga.wire.invocation import decode, encode

Program = list[Any]


class Event(NamedTuple):
    """One step, as an observer is told of it."""

    step: str
    time: float
    place: int
    message: Message | None
    instance: Instance | None


class Log:
    """All events of a run, in the order in which they happened."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.watch: list[Callable[[Event], None]] = []

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None:
        event = Event(step, now, place, message, instance)
        self.events.append(event)
        for watch in self.watch:
            watch(event)

    def requests(self) -> list[Message]:
        return [event.message for event in self.events if event.step == "request" and event.message]

    def responses(self) -> list[Message]:
        return [event.message for event in self.events if event.step == "response" and event.message]

    def index(self, step: str, op: str) -> int:
        """Where a step of that method is."""
        for at, event in enumerate(self.events):
            if event.step == step and event.message is not None and event.message.op == op:
                return at
        raise AssertionError(f"no {step} of {op}")


async def play(ctx: InstanceContext, program: Program) -> list[Any]:
    """Run a program; which alternatives were chosen."""
    chosen: list[Any] = []
    for what, *rest in program:
        if what == "work":
            await ctx.pause(rest[0])
        elif what == "fail":
            raise Abort("as it was told to")
        elif what == "s":
            await ctx.call(*rest)
        elif what == "a":
            ctx.start(*rest)
        elif what == "o":
            ctx.oneway(*rest)
        elif what == "and":
            await ctx.all(*[ctx.start(*call[1:]) for call in rest[0]])
        elif what == "or":
            chosen.append(await ctx.any(*[ctx.start(*call[1:]) for call in rest[0]]))
        else:
            raise AssertionError(what)
    return chosen


async def run_method(target: ObjectClass, ctx: InstanceContext, program: Program) -> Any:
    """Every method does what it is told; its effect is that it has been there, and what it has chosen."""
    call = ctx._instance.request.call  # type: ignore[union-attr]
    chosen = await play(ctx, program)
    ctx.effect(lambda state: (*state, call, *((call, repr(choice)) for choice in chosen)))
    return call


class _AnyMethod(dict[str, Method]):
    def get(self, op: str, default: Any = None) -> Method:
        return Method(op, run_method, (), False, (), None, None)


class Programmed(ObjectClass):
    """An object whose methods all run programs; its state are the calls that had an effect."""

    def initial(self) -> Any:
        return ()


Programmed.methods = _AnyMethod()


@dataclass
class Network:
    """How packets travel."""

    rng: Random
    delay: tuple[float, float] = (1.0, 1.0)
    loss: float = 0.0
    twice: float = 0.0
    encoded: bool = False  # through bytes and back

    reliable: bool = False  # messages come once; only what is said about them may be lost

    def arrivals(self, packet: Spoken) -> list[float]:
        """After how long each copy of a packet comes."""
        rng = self.rng
        if self.reliable and isinstance(packet, Message | Flush):
            return [rng.uniform(*self.delay)]
        if self.loss and rng.random() < self.loss:
            return []
        low, high = self.delay
        copies = 2 if self.twice and rng.random() < self.twice else 1
        return [low if low == high else rng.uniform(low, high) for _ in range(copies)]


@dataclass
class Plan:
    """What happens in a run."""

    roster: Roster
    roots: list[tuple[float, int, Program]]  # when, at which place, what
    options: EngineOptions = field(default_factory=lambda: EngineOptions(delta=10.0))
    crash: tuple[int, float, list[float]] | None = None  # who, when, and when each member suspects it
    classes: dict[str, type[ObjectClass]] | None = None


class World(VirtualWorld[Spoken]):
    """Members with their objects, and the packets between them."""

    def __init__(self, plan: Plan, network: Network) -> None:
        super().__init__()
        self.plan = plan
        self.network = network
        self.roster = plan.roster
        self.log = Log()
        classes = plan.classes or dict.fromkeys(plan.roster.objects, Programmed)
        self.hosts = {
            member: Host(member, plan.roster, classes, plan.options, observer=self.log)
            for member in plan.roster.members
        }
        self.roots: list[Root] = []
        self.knows: dict[int, set[Any]] = {
            member: set() for member in self.hosts
        }  # happened before, at a member
        self.before: dict[Any, frozenset[Any]] = {}  # what happened before a message
        self.packets = 0
        self._under_way = 0  # messages, not heartbeats
        self._planned = 0  # events that are not of the network
        self.log.watch += [self._sent, self._watch_aborts]
        self.faults: list[Any] = []  # found while it runs
        self._aborting: tuple[int, Any] | None = None
        for at, place, program in plan.roots:
            self._plan(at, self._root, self.roster.member_of[place], place, program)
        if plan.crash is not None:
            member, at, suspicions = plan.crash
            self._plan(at, self._crash, member)
            for other, when in zip(self.hosts, suspicions, strict=True):
                if other != member:
                    self._plan(when, self._suspect, other, member)
        for member in self.hosts:
            self.turn(member)

    @classmethod
    def of_vector(cls, vector: dict[str, Any]) -> "World":
        names = vector["objects"]
        places = [Place(at, name) for at, name in enumerate(names)]
        relations: dict[str, ConflictRelation] = {
            name: Pairs(pairs) for name, pairs in vector["conflicts"].items()
        }
        roots = [(root["at"], names.index(root["obj"]), root["body"]) for root in vector["roots"]]
        return cls(Plan(Roster(places, relations), roots, EngineOptions(delta=5.0)), Network(Random(0)))

    # Time

    def run(self, limit: float) -> bool:
        """Until nothing is left to do, or the limit; whether nothing was left."""
        check_at = 0.0
        while self._events and self._events[0][0] <= limit:
            at = self._events[0][0]
            if at >= check_at:
                check_at = at + self.plan.options.delta
                if self.settled:
                    return True
            self.step()
        return self.settled

    @property
    def upcoming(self) -> tuple[int, Spoken] | None:
        """Which packet arrives next and where, if that is what comes next."""
        _, _, act, arguments = self._events[0]
        return (arguments[0], arguments[1]) if act == self._arrive else None

    def _plan(self, at: float, act: Callable[..., None], *arguments: Any) -> None:
        self._planned += 1
        self.at(at, self._happen, act, arguments)

    def _happen(self, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._planned -= 1
        act(*arguments)

    def _root(self, member: int, place: int, program: Program) -> None:
        host = self.hosts.get(member)
        if host is not None:
            self.roots.append(host.begin(self.now, lambda ctx: play(ctx, program), at=place))
            self._transmit(member, host.sends(self.now))
            self.turn(member)

    def _suspect(self, member: int, other: int) -> None:
        if member in self.hosts:
            self._transmit(member, self.hosts[member].suspect(self.now, other))
            self.turn(member)

    def _crash(self, member: int) -> None:
        del self.hosts[member]

    def receive(self, member: int, packet: Spoken) -> None:
        if isinstance(packet, Message | Flush):
            self._under_way -= 1
        if member in self.hosts:
            self._learn(member, packet)
            self._transmit(member, self.hosts[member].receive(self.now, [packet]))

    def tick(self, member: int) -> None:
        if member in self.hosts:
            self._transmit(member, self.hosts[member].tick(self.now))

    def collect(self, member: int) -> float | None:
        return self.hosts[member].wake if member in self.hosts else None

    @property
    def settled(self) -> bool:
        """Whether all roots have ended and nothing waits or is under way, but heartbeats."""
        if self._under_way or self._planned:
            return False
        return all(
            host.idle and (self.plan.crash or not host.engine.undoable) for host in self.hosts.values()
        )

    def open_roots(self) -> list[Root]:
        return [
            root
            for root in self.roots
            if not root.done and self.roster.member_of[root.instance.place] in self.hosts
        ]

    def started_ops(self, name: str) -> list[str]:
        """The methods that were started at an object, in order."""
        (place,) = self.roster.copies[name]
        return [
            event.message.op
            for event in self.log.events
            if event.step == "start" and event.place == place and event.message is not None
        ]

    # The network

    def _transmit(self, src: int, sends: Iterable[Transmit]) -> None:
        for members, packet in sends:
            self.packets += 1
            if self.network.encoded:
                packet = decode(encode(packet), self.roster)
            for member in members:
                for delay in self.network.arrivals(packet):
                    if isinstance(packet, Message | Flush):
                        self._under_way += 1
                    self.arrives(self.now + delay, member, packet)

    # What happened before what, by explicit sets

    def _sent(self, event: Event) -> None:
        """A message left: everything its member knew happened before it."""
        if event.step in ("request", "response", "tell abort", "tell commit"):
            assert event.message is not None
            known = self.knows[self.roster.member_of[event.place]]
            self.before[event.message.id] = frozenset(known)
            known.add(event.message.id)

    def _watch_aborts(self, event: Event) -> None:
        """An abort leaves the pasts of methods as they were: seen at whatever happens next."""
        if self._aborting is not None:
            place, past = self._aborting
            if self._past(place) not in (past, None):
                self.faults.append(("I13", f"an abort at {place} has left something"))
            self._aborting = None
        if event.step == "abort":
            self._aborting = (event.place, self._past(event.place))

    def _past(self, place: int) -> Any:
        host = self.hosts.get(self.roster.member_of[place])
        if host is None:
            return None
        return {op: tuple(past) for op, past in host.engine.hosted[place].order.past.items()}

    def _learn(self, member: int, packet: Spoken) -> None:
        messages = packet.messages if isinstance(packet, Flush) else (packet,)
        known = self.knows[member]
        for message in messages:
            if isinstance(message, Message) and message.id not in known:
                known |= self.before[message.id]
                known.add(message.id)


def is_undo(event: Event) -> bool:
    return event.message is not None and event.message.kind == ABORT


def is_request(message: Message) -> bool:
    return message.kind in REQUESTS


def is_response(message: Message) -> bool:
    return message.kind == RESPONSE
