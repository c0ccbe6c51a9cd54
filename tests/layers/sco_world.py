"""SCO machines on links that lose, double and reorder, watched by an oracle of explicit sets.

The oracle knows messages by (source, number) and never looks at a stamp: the past of a message is the set of
what its sender had sent or accepted, with the pasts of that. It checks every event against the invariants of
docs/protocols/sco.md as it happens, so that a failure names the first wrong step.
"""

from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Any

from inga.layers.machine import Discarded
from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import mask, precedes
from inga.layers.sco.parts import (
    Control,
    Copies,
    Happened,
    Heard,
    Own,
    Released,
    ScoControlSent,
    ScoMessage,
    ScoNack,
    ScoSent,
    ScoSettings,
)
from inga.trial.world import World as VirtualWorld

from .sco_printed import variant

Id = tuple[int, int]

PATIENCE = 50_000.0
"""Virtual time after the last request by which a run must be over: many times what it takes."""


@dataclass(frozen=True)
class Links:
    """What happens to copies on their way. Delays are in the unit of the machines' clocks."""

    loss: float = 0.0
    duplicate: float = 0.0
    delay: tuple[float, float] = (1.0, 3.0)
    fifo: bool = False  # copies on one link keep their order


@dataclass(frozen=True)
class Plan:
    """One random run."""

    members: int
    settings: ScoSettings
    links: Links
    sends: int
    silent: frozenset[int] = frozenset()
    span: float = 40.0  # time over which requests are spread
    patience: float = PATIENCE
    printed: dict[str, Any] = field(default_factory=dict)  # see `variant`


class Broken(AssertionError):
    """An invariant does not hold."""


def clone(message: ScoMessage) -> ScoMessage:
    """The copy as its receiver gets it: the fields of the wire and nothing else."""
    m = message
    return ScoMessage(
        m.src,
        m.dst,
        m.seq,
        m.lsn,
        m.delta,
        ack=m.ack,
        buf=m.buf,
        have=m.have,
        body=m.body,
        whole=m.whole,
        noted=m.noted,
    )


class Judge:
    """What really happened, by sets."""

    def __init__(self, members: int, causal_acks: bool) -> None:
        self.members = members
        self.causal_acks = causal_acks
        self.dst: dict[Id, int] = {}
        self.causes: dict[Id, frozenset[Id]] = {}
        self.stamped: dict[Id, ScoMessage] = {}
        self.past: list[set[Id]] = [set() for _ in range(members)]
        self.reached: dict[str, list[list[Id]]] = {
            level: [[] for _ in range(members)] for level in ("received", "accepted", "causal", "confirmed")
        }
        self.released: set[Id] = set()

    def send(self, member: int, own: Own) -> None:
        key = (member, own.seq)
        if key in self.dst:
            raise Broken(f"{key} was sent twice")
        self.dst[key] = own.dst
        self.causes[key] = frozenset(self.past[member])
        self.past[member].add(key)

    def happened(self, member: int, level: str, message: ScoMessage) -> None:
        key = (message.src, message.seq)
        if key not in self.dst or not self.dst[key] >> member & 1:
            raise Broken(f"{member} got {key}, which is not for it")
        seen = self.reached[level][member]
        if key in seen:
            raise Broken(f"{key} is {level} twice at {member}")
        getattr(self, f"_{level}")(member, key, message)
        seen.append(key)

    def release(self, member: int, own: Own) -> None:
        key = (member, own.seq)
        level = "causal" if self.causal_acks else "accepted"
        for other in self._destinations(key):
            if other != member and key not in self.reached[level][other]:
                raise Broken(f"{key} was released before {other} had accepted it")
        self.released.add(key)

    def finish(self) -> None:
        """Everything that was sent got everywhere, to the end; and stamps are what precedes."""
        for key in self.dst:
            for member in self._destinations(key):
                if key not in self.reached["confirmed"][member]:
                    level = [x for x in self.reached if key in self.reached[x][member]]
                    raise Broken(f"{key} is never confirmed at {member}: it is {level}")
        if self.released != set(self.dst):
            raise Broken(f"{set(self.dst) - self.released} never released")
        for p, first in self.stamped.items():
            for q, second in self.stamped.items():
                if p != q and precedes(first, second) != (p in self.causes[q]):
                    raise Broken(
                        f"{p} before {q}: {p in self.causes[q]}, by stamps {precedes(first, second)}"
                    )

    def _received(self, member: int, key: Id, message: ScoMessage) -> None:
        pass

    def _accepted(self, member: int, key: Id, message: ScoMessage) -> None:
        on_link = [k for k in self.reached["accepted"][member] if k[0] == key[0]]
        sent = sorted(k for k, dst in self.dst.items() if k[0] == key[0] and dst >> member & 1)
        if sent[len(on_link)] != key:
            raise Broken(f"{member} accepted {key}, but {sent[len(on_link)]} is next on that link")
        if message.lsn != len(on_link) + 1:
            raise Broken(f"{key} is {message.lsn} on its link to {member}, not {len(on_link) + 1}")
        self.stamped[key] = message
        if member != key[0]:
            self.past[member] |= {key} | self.causes[key]

    def _causal(self, member: int, key: Id, message: ScoMessage) -> None:
        self._after_its_causes("causal", member, key)

    def _confirmed(self, member: int, key: Id, message: ScoMessage) -> None:
        self._after_its_causes("confirmed", member, key)
        level = "causal" if self.causal_acks else "accepted"
        for other in self._destinations(key):
            if key not in self.reached[level][other]:
                raise Broken(f"{member} holds {key} for confirmed, but {other} has not accepted it")
            if self.causal_acks:
                self._after_its_causes("causal", other, key)

    def _after_its_causes(self, level: str, member: int, key: Id) -> None:
        for cause in self.causes[key]:
            if self.dst[cause] >> member & 1 and cause not in self.reached[level][member]:
                raise Broken(f"{key} is {level} at {member} before its cause {cause}")

    def _destinations(self, key: Id) -> list[int]:
        return [m for m in range(self.members) if self.dst[key] >> m & 1]


class World(VirtualWorld[Any]):
    """A group of machines in virtual time."""

    def __init__(self, plan: Plan, seed: int, make: type[ScoMachine] = ScoMachine) -> None:
        super().__init__()
        self.judges.append(self._check)
        self.plan = plan
        self.rng = Random(seed)
        make = variant(make, **plan.printed)
        self.machines = [make(m, plan.members, plan.settings) for m in range(plan.members)]
        self.judge = Judge(plan.members, plan.settings.ack_level == "causal")
        self.pdus = {"data": 0, "again": 0, "control": 0, "request": 0}
        self._last_due: dict[tuple[int, int], float] = {}
        self._before: list[tuple[int, ...]] = [()] * plan.members
        talkers = [m for m in range(plan.members) if m not in plan.silent]
        for _ in range(plan.sends):
            member = talkers[int(self.rng.random() * len(talkers))]
            self.push(self.rng.random() * plan.span, member, self._destinations())

    def run(self) -> None:
        """To the end, or raise Broken: nothing may be left to do, ever."""
        self.play()
        for machine in self.machines:
            if not machine.is_idle:
                raise Broken(f"{machine.me} has nothing to do but is not idle")
        self.judge.finish()

    def push(self, at: float, member: int, dst: int) -> None:
        """Let it send then."""
        self.at(at, self._send, member, dst)

    def _send(self, member: int, dst: int) -> None:
        machine = self.machines[member]
        machine.now = self.now
        machine.request(dst, None)
        machine.stages()
        self.turn(member)

    def receive(self, member: int, packet: Any) -> None:
        machine = self.machines[member]
        machine.now = self.now
        match packet:
            case ScoMessage():
                refused = machine.receive(packet)
            case Control():
                refused = machine.control(packet)
            case _:
                refused = machine.asked(packet)
        if refused is not None:
            raise Broken(f"{member} refused {packet} as {refused}")
        machine.stages()

    def tick(self, member: int) -> None:
        self.machines[member].tick(self.now)

    def _destinations(self) -> int:
        members = list(range(self.plan.members))
        self.rng.shuffle(members)
        return mask(members[: 1 + int(self.rng.random() * self.plan.members)])

    def collect(self, member: int) -> float | None:
        machine, me = self.machines[member], member
        events, machine.events = machine.events, []
        for event in events:
            match event:
                case ScoSent(own):
                    self.judge.send(me, own)
                case Copies(copies, to, _, again):
                    self.pdus["again" if again else "data"] += len(copies)
                    for member, copy in zip(to, copies, strict=True):
                        self._transmit(me, member, clone(copy))
                case ScoControlSent(to, Control() as control):
                    self.pdus["control"] += 1
                    self._transmit(me, to, control)
                case ScoControlSent(to, ScoNack() as request):
                    self.pdus["request"] += 1
                    self._transmit(me, to, request)
                case Happened(level, message):
                    self.judge.happened(me, level, message)
                case Released(own):
                    self.judge.release(me, own)
                case Heard() | Discarded():
                    pass
                case _:
                    raise Broken(f"{me} does not know what to make of {event}")
        return machine.wake

    def _transmit(self, src: int, to: int, what: Any) -> None:
        links, random = self.plan.links, self.rng.random
        if random() < links.loss:
            return
        for _ in range(2 if random() < links.duplicate else 1):
            low, high = links.delay
            due = self.now + low + (high - low) * random()
            if links.fifo:
                due = self._last_due[src, to] = max(due, self._last_due.get((src, to), 0.0))
            self.arrives(due, to, clone(what) if isinstance(what, ScoMessage) else what)

    def _check(self, me: int) -> None:
        """Numbers only grow, stay below what others know of themselves, and buffers are bounded."""
        n, machine = self.plan.members, self.machines[me]
        if self.now > self.plan.span + self.plan.patience:
            raise Broken(f"not quiet at {self.now}")
        numbers = (
            machine.seq,
            *machine.lsn,
            *machine.expected_lsn,
            *machine.covered,
            *machine.clock,
            *(machine.known_sent.get(j, 1) for j in range(n)),
            *(machine.accepted_by(h, j) for h in range(n) for j in range(n)),
        )
        before = self._before[me]
        if before and any(a > b for a, b in zip(before, numbers, strict=True)):
            raise Broken(f"a number of {me} fell")
        self._before[me] = numbers
        for j in range(n):
            if machine.accepted_by(me, j) > machine.covered[j]:
                raise Broken(f"{me} reports more of {j} than it has")
            for h in range(n):
                if machine.accepted_by(h, j) > self.machines[h].accepted_by(h, j):
                    raise Broken(f"{me} believes too much of {h} about {j}")
        if machine.held_in_all > machine.capacity or max(machine.held) > machine.settings.quota:
            raise Broken(f"{me} holds {machine.held}")
        if min(machine.held) < 0 or sum(machine.held) != machine.held_in_all:
            raise Broken(f"{me} miscounts what it holds: {machine.held}")


def plan(seed: int, **fixed: Any) -> Plan:
    """The run of one seed; `fixed` settings replace drawn ones."""
    rng = Random(f"plan {seed}")

    def pick(*choices: Any) -> Any:
        return choices[int(rng.random() * len(choices))]

    members = pick(2, 3, 3, 4, 4, 5, 6)
    k = pick(0.0, 1.0, 4.0)
    mode = pick("csn", "csn", "wait")
    settings = ScoSettings(
        ack_level=pick("causal", "causal", "continuous"),
        window=pick(1, 2, 4, 8),
        quota=pick(1, 2, 4, 16),
        confirm_delay=k,
        confirm_every=0,
        nack_delay=0.0,
        patience=inf,
        nack_again=pick(6.0, 8.0),
        resend_after=8.0 + k,
        poll_after=8.0 + 2 * k,
        probe_after=pick(0.0, 1.0, 4.0),
        multicast_from=pick(0, 0, 2),
    )
    silent = frozenset(m for m in range(1, members) if rng.random() < 0.2)
    settings = replace(settings, noted_max=Random(f"noted {seed}").choice((0, 3, 512)))
    printed = {"mode": fixed.pop("mode", mode), "fifo": fixed.pop("fifo", False)}
    return Plan(
        members,
        replace(settings, **fixed),
        Links(
            loss=pick(0.0, 0.1, 0.4),
            duplicate=pick(0.0, 0.2),
            delay=pick((1.0, 1.0), (1.0, 3.0), (0.5, 9.0)),
            fifo=pick(True, False),
        ),
        sends=1 + int(rng.random() * 24),
        silent=silent,
        span=pick(4.0, 20.0, 60.0),
        printed=printed,
    )


def run_seed(
    seed: int, make: type[ScoMachine] = ScoMachine, *, patience: float = PATIENCE, **fixed: Any
) -> World:
    """One random schedule, to its end."""
    world = World(replace(plan(seed, **fixed), patience=patience), seed, make)
    try:
        world.run()
    except Broken as error:
        raise Broken(f"seed {seed}: {error}") from None
    return world
