"""Random runs: objects that invoke each other in all ways, abort, and exchange data, over a network that loses and reorders.

A program is a list of steps, and travels as the argument of the request that runs it:

    ["work", t]                    time passes
    ["s", objects, op, program]    call and wait; "a": call and go on; "o": one-way
    ["up"], ["down"]               data for the invoker; data for the instances started by the last call that is not waited for
    ["fail"]                       abort

Everything is determined by the seed. In runs with odd seeds no data is sent: answers then wait for other answers only by the rule
of the product, which data would hide. Events are kept as a list, from which `history` derives precedence.
"""

from random import Random
from typing import Any, NamedTuple

from inga.lab.obg.data import TalkingEngine, TalkingHost
from inga.model.invocation import ASYNCHRONOUS, ONE_WAY, Message, SendId, Spoken
from inga.objects.actions import Transmit
from inga.objects.declare import Abort, ObjectClass, method
from inga.objects.instance import Instance
from inga.objects.options import EngineOptions
from inga.objects.roster import ConflictRelation, Pairs, Place, Roster
from inga.trial.world import World

LIMIT = 3000.0
"""Time units within which a run has to end. A copy travels 20 at most, and at most 30 % of them are lost."""

DELTA = 10.0
DEPTH = 3
METHODS_MAX, OBJECTS_MAX, ROOTS_MAX = 4, 5, 5

RunProgram = list[list[Any]]


class RunEvent(NamedTuple):
    """One step, as the engines report it to an observer."""

    step: str
    place: int
    message: Message | None
    instance: Instance | None


class RandomRun(World[Spoken]):
    """One run, with one object per member."""

    def __init__(self, seed: int, *, engine: type[TalkingEngine] = TalkingEngine) -> None:
        super().__init__()
        self._rng = rng = Random(f"run {seed}")
        self._names = [f"o{index}" for index in range(rng.randint(2, OBJECTS_MAX))]
        self._ops = [f"m{index}" for index in range(rng.randint(1, METHODS_MAX))]
        low = rng.choice([0.5, 1.0, 5.0])
        self._delay = (low, rng.choice([low, 3 * low, 20.0]))
        self._loss = rng.choice([0.0, 0.0, 0.1, 0.3])
        self.events: list[RunEvent] = []
        self.happened: dict[SendId, frozenset[SendId]] = {}  # those before the send of each message
        self._knows: list[set[SendId]] = [set() for _ in self._names]
        self.roster = Roster([Place(at, name) for at, name in enumerate(self._names)], self._relations())
        options = EngineOptions(delta=DELTA, announce=rng.random() < 0.5)
        served = type("Programmed", (ObjectClass,), {op: method(_run_method) for op in self._ops})
        self._hosts = [
            TalkingHost(engine(at, self.roster, options, observer=self), dict.fromkeys(self._names, served))
            for at in range(len(self._names))
        ]
        for host in self._hosts:
            host.engine.data.is_used = seed % 2 == 0
        self._to_send: list[Transmit] = []
        self._to_come = 0  # messages in flight, and roots that have not begun
        for _ in range(rng.randint(1, ROOTS_MAX)):
            self._to_come += 1
            self.at(rng.uniform(0, 60), self._begin, rng.randrange(len(self._names)), self._program(DEPTH))

    def run(self, limit: float = LIMIT) -> bool:
        """Run until nothing is left to do. Return whether that was within the limit."""
        for member in range(len(self._hosts)):
            self.turn(member)
        check_at = 0.0
        while self._events[0][0] <= limit:
            if self._events[0][0] >= check_at:
                check_at = self._events[0][0] + DELTA
                if self._is_over:
                    return True
            self.step()
        return self._is_over

    @property
    def dropped(self) -> int:
        """The number of data messages for instances that had ended, or never began."""
        return sum(host.engine.data.dropped for host in self._hosts)

    @property
    def _is_over(self) -> bool:
        return not self._to_come and all(host.idle and not host.engine.undoable for host in self._hosts)

    # Random choices

    def _relations(self) -> dict[str, ConflictRelation]:
        shared = self._table() if self._rng.random() < 0.5 else None
        return {name: Pairs(self._table() if shared is None else shared) for name in self._names}

    def _table(self) -> list[tuple[str, str]]:
        density = self._rng.choice([0.0, 0.2, 0.5, 0.8, 1.0])
        return [
            (one, other)
            for at, one in enumerate(self._ops)
            for other in self._ops[at:]
            if self._rng.random() < density
        ]

    def _program(self, depth: int) -> RunProgram:
        rng = self._rng
        steps: RunProgram = []
        for _ in range(rng.randint(1, 3) if depth == DEPTH else rng.choice([0, 1, 1, 2, 3])):
            what = rng.random()
            if what < 0.4:
                steps.append([rng.choice(["up", "up", "down"])])
            elif depth == 0 or what < 0.5:
                steps.append(["work", rng.uniform(0, 15)])
            else:
                to = rng.sample(self._names, min(rng.choice([1, 1, 2, 3]), len(self._names)))
                steps.append([rng.choice("saaoo"), to, rng.choice(self._ops), self._program(depth - 1)])
        if rng.random() < 0.05:
            steps.append(["fail"])
        return steps

    # Events

    def _begin(self, member: int, program: RunProgram) -> None:
        self._to_come -= 1
        host = self._hosts[member]
        host.begin(self.now, lambda ctx: _play(ctx, program), at=member)
        self._to_send = host.sends(self.now)
        self.turn(member)

    def receive(self, member: int, packet: Spoken) -> None:
        if isinstance(packet, Message):
            self._to_come -= 1
            known = self._knows[member]
            known |= self.happened[packet.id]
            known.add(packet.id)
        self._to_send = self._hosts[member].receive(self.now, [packet])

    def tick(self, member: int) -> None:
        self._to_send = self._hosts[member].tick(self.now)

    def collect(self, member: int) -> float | None:
        sends, self._to_send = self._to_send, []
        for members, packet in sends:
            for target in members:
                if self._rng.random() >= self._loss:
                    self._to_come += isinstance(packet, Message)
                    self.arrives(self.now + self._rng.uniform(*self._delay), target, packet)
        return self._hosts[member].wake

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None:
        """Note an event that an engine reports."""
        self.events.append(RunEvent(step, place, message, instance))
        if message is not None and message.id not in self.happened:  # it is being sent
            self.happened[message.id] = frozenset(self._knows[place])
            self._knows[place].add(message.id)


async def _run_method(target: ObjectClass, ctx: Any, program: RunProgram) -> None:
    await _play(ctx, program)


async def _play(ctx: Any, program: RunProgram) -> None:
    host: TalkingHost = ctx._host
    instance: Instance = ctx._instance
    request, data, last = instance.request, host.engine.data, None
    for what, *rest in program:
        if what == "work":
            await ctx.pause(rest[0])
        elif what == "fail":
            raise Abort("as it was told to")
        elif what == "up":
            if data.is_used and request is not None and request.kind in (ASYNCHRONOUS, ONE_WAY):
                data.tell_invoker(instance, len(program))
        elif what == "down":
            if data.is_used and last is not None:
                data.tell_invoked(instance, last, len(program))
        elif what == "s":
            await ctx.call(*rest)
        else:
            to, op, inner = rest
            last = ctx.make(host.calling.check(what, to, op, (inner,), {})).call
