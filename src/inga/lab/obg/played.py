"""The load played by the product's engine: object order by declared conflicts, total order as "everything conflicts".

Each member has one object. The load determines the delays of requests; those of control packets are drawn, one to nine time units.
"""

from random import Random
from statistics import fmean
from time import process_time
from typing import Any

from inga.lab.obg.load import DELAY, METHODS, Load, LoadMeans, LoadRequest, pairs_with_a_common_destination
from inga.lab.obg.observed import see_some
from inga.model.invocation import Announce, Flush, Heartbeat, Message, Nack, Spoken
from inga.objects.actions import Transmit
from inga.objects.declare import ObjectClass, method
from inga.objects.instance import Instance
from inga.objects.invoke import Host
from inga.objects.options import EngineOptions
from inga.objects.roster import Pairs, Roster
from inga.trial.world import World
from inga.wire.invocation import encode

DELTA = 10.0
"""Time units between heartbeats."""


class ObjectSimulation(World[Spoken]):
    """A simulation of a load, with one host per member."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        self._load = load
        self._rng = Random(f"control {load.n} {load.seed}")
        self._names = [f"o{index}" for index in range(load.n)]
        pairs = Pairs([(_op(min(pair)), _op(max(pair))) for pair in load.conflicts])
        roster = Roster.of(load.n, {name: (pairs, [index]) for index, name in enumerate(self._names)})
        self._roster = roster
        self._hosts = self._make_hosts(dict.fromkeys(self._names, _served(load, self._names)))
        self._to_send: list[Transmit] = []
        self._sent: dict[int, float] = {}
        self._pasts = Pasts(load)
        self._received: dict[tuple[int, int], float] = {}
        self._waits: list[float] = []
        self._delays: list[float] = []
        self._missing = sum(len(request.dst) for request in load.requests.values())
        self._messages: dict[int, Message] = {}
        self._control = self._copies = self._bytes = self._numbers = 0
        self._cpu = 0.0

    def _make_hosts(self, classes: dict[str, type[ObjectClass]]) -> list[Host]:
        load = self._load
        callers = dict.fromkeys(self._names, range(load.invokers)) if load.told else {}
        options = EngineOptions(delta=DELTA, announce=True, invoking=callers)
        return [Host(index, self._roster, classes, options, observer=self) for index in range(load.n)]

    def run(self) -> LoadMeans:
        for root in self._load.plan:
            self.at(root.at, self._begin, root.obj, root.requests)
        while self._missing:
            begun = process_time()
            self.step()
            self._cpu += process_time() - begun
        return self._measured()

    def _begin(self, member: int, requests: tuple[LoadRequest, ...]) -> None:
        host = self._hosts[member]
        host.begin(self.now, _body(requests, self._names))
        self._to_send = host.sends(self.now)
        self.turn(member)

    def receive(self, member: int, packet: Spoken) -> None:
        self._to_send = self._hosts[member].receive(self.now, [packet])

    def tick(self, member: int) -> None:
        self._to_send = self._hosts[member].tick(self.now)

    def collect(self, member: int) -> float | None:
        for members, packet in self._to_send:
            self._count(packet, len(members))
            for target in members:
                self.arrives(self.now + self._delay(member, target, packet), target, packet)
        return self._hosts[member].wake

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None:
        """Note an event that an engine reports."""
        if instance is not None:
            self._pasts.note(step, place, message, instance)
        if message is None or message.kind != "o":
            return
        number, here = message.args[0], self._roster.member_of[place]
        if step == "request":
            self._sent[number] = now
            self._messages[number] = message
        elif step == "receive":
            self._received.setdefault((number, here), now)
        elif step == "start":
            self._missing -= 1
            if here != self._roster.member_of[message.src]:
                self._waits.append(now - self._received[number, here])
                self._delays.append(now - self._sent[number])

    def _measured(self) -> LoadMeans:
        load, precedes = self._load, self._pasts.precedes
        pairs = pairs_with_a_common_destination(load)
        needed = literal = precede = 0
        for one, other in pairs:
            methods = frozenset((load.requests[one].op, load.requests[other].op))
            conflict = methods in load.conflicts
            related = precedes(one, other) or precedes(other, one)
            needed += conflict
            precede += related
            literal += conflict or related
        messages = [self._messages[number] for number in sorted(self._messages)]
        seen = see_some(self._roster, messages, load.looked_at, f"pairs {load.n} {load.seed}")
        count = len(load.requests)
        return LoadMeans(
            100 * fmean(each.is_ordered for each in seen),
            fmean(self._waits),
            fmean(self._delays),
            100 * fmean(each.waits for each in seen),
            100 * needed / len(pairs),
            100 * literal / len(pairs),
            100 * precede / len(pairs),
            self._control / count,
            (self._copies + self._control) / count,
            self._bytes / count,
            self._numbers / count,
            1e6 * self._cpu / count,
        )

    def _count(self, packet: Spoken, copies: int) -> None:
        self._bytes += copies * len(encode(packet))
        self._numbers += copies * _entries(packet)
        if isinstance(packet, Message):
            self._copies += copies
        else:
            self._control += copies

    def _delay(self, member: int, target: int, packet: Spoken) -> float:
        if isinstance(packet, Message):
            return self._load.delay(packet.args[0], member, target)
        return self._rng.uniform(*DELAY)


class Pasts:
    """Significant precedence between requests, exactly, as sets. The vectors of the engine count
    messages of a place, so they also relate messages of two instances there that know nothing of each other."""

    def __init__(self, load: Load) -> None:
        self._rivals: dict[str, list[str]] = {}
        for pair in load.conflicts:
            one, other = _op(min(pair)), _op(max(pair))
            self._rivals.setdefault(one, []).append(other)
            self._rivals.setdefault(other, []).append(one)
        self._of: dict[Instance, set[int]] = {}
        self._committed: dict[tuple[int, str], set[int]] = {}  # by place and method
        self._before: dict[int, frozenset[int]] = {}

    def note(self, step: str, place: int, message: Message | None, instance: Instance) -> None:
        """Note a step of an instance: it starts with the past that precedes it, sends, and leaves its past to the object when it
        commits."""
        op = instance.call.op
        if step == "start":
            past = self._of[instance] = set()
            for rival in self._rivals.get(op, ()):
                past |= self._committed.get((place, rival), set())
            if message is not None:
                past |= self._before[message.args[0]] | {message.args[0]}
        elif step == "request" and message is not None:
            self._before[message.args[0]] = frozenset(self._of[instance])
            self._of[instance].add(message.args[0])
        elif step == "commit":
            self._committed.setdefault((place, op), set()).update(self._of.pop(instance))

    def precedes(self, one: int, other: int) -> bool:
        """Whether one request precedes another, both given by number."""
        return one in self._before[other]


def _entries(packet: Spoken) -> int:
    """Return how many counters of a packet its receiver merges or compares."""
    match packet:
        case Message():
            return len(packet.vector)
        case Heartbeat():
            return 4 + len(packet.evs)  # clock, sent, acknowledged, settled
        case Nack():
            return len(packet.numbers)
        case Announce():
            return 1
        case Flush():
            return sum(map(_entries, packet.messages))


def _op(number: int) -> str:
    return f"op{number}"


def _body(requests: tuple[LoadRequest, ...], names: list[str]) -> Any:
    async def body(ctx: Any) -> None:
        for request in requests:
            ctx.oneway([names[index] for index in request.dst], _op(request.op), request.number)

    return body


def _served(load: Load, names: list[str]) -> type[ObjectClass]:
    """Return a class with all methods; the load determines which requests an instance makes in turn."""

    async def serve(self: Any, ctx: Any, number: int) -> None:
        then = load.requests[number].then
        if then is not None:
            await _body((then,), names)(ctx)

    return type("Served", (ObjectClass,), {_op(number): method(serve) for number in range(METHODS)})
