"""What a run has to fulfil, decided from its log by explicit sets of messages, never from vectors or keys alone.

I1 order      conflicting m1, m2 started at one place with m1 → m2 are started in this order
I2 agreement  two conflicting requests are started in the same order wherever both are
I3 key        conflicting requests of a place are started, and commit, in the order of their keys
I4 answers    what one instance takes respects →
I5 exclusion  conflicting instances that overlap are ancestor and descendant
I6 vectors    → is within the order of vectors, and that within happened-before
I7 stamps     m1 → m2 gives ts(m1) < ts(m2)
I8 liveness   every root ends; nothing waits, nothing is held, everything is acknowledged
I9 atomicity  an aborted or undone instance leaves no effect of its calls, a committed one has those of all
I10 cleanup   nothing can be undone at the end
I12 crash     a one-way request of a crashed member is started at all its surviving places, or at none
I13 abort     an abort leaves the pasts of methods as they were
I14 freedom   a request that conflicts with nothing starts when it comes
copies        copies of an object end with the same effects; what they call is asked for once, and started once
"""

from collections.abc import Iterable
from itertools import combinations
from typing import Any, NamedTuple

from inga.model.invocation import ABORT, ONE_WAY, REQUESTS, Message, SendId
from inga.objects.instance import Instance
from inga.objects.order import precedes

from .world import Event, World

SENDS = ("request", "response", "tell abort", "tell commit")


class Fault(NamedTuple):
    """One broken invariant."""

    invariant: str
    text: str


class Execution:
    """One instance, as the log shows it."""

    def __init__(self, place: int, message: Message | None, op: str, at: int, past: set[SendId]) -> None:
        self.place = place
        self.message = message  # that started it
        self.op = op
        self.at = at
        self.end: int | None = None
        self.outcome = ""
        self.past = past
        self.taken: list[Message] = []
        self.calls: dict[Any, Message] = {}
        self.recalled: set[Any] = set()
        self.undone = False
        self.is_undo = False


class History:
    """The definition of significant precedence, applied to a log."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.roster = world.roster
        self.messages: dict[SendId, Message] = {}
        self.before: dict[SendId, frozenset[SendId]] = {}  # all m1 with m1 → m
        self.executions: dict[int, Execution] = {}  # by identity of the instance
        self.by_call: dict[tuple[int, Any], Execution] = {}
        self.sender: dict[SendId, Execution] = {}
        self.committed: dict[int, list[tuple[str, frozenset[SendId]]]] = {}
        self.keep: list[Any] = []
        for at, event in enumerate(world.log.events):
            self._read(at, event)

    def _read(self, at: int, event: Event) -> None:
        step, _, place, message, instance = event
        if step in ("start", "undo"):
            assert instance is not None
            self._started(at, place, message, instance, step == "undo")
        elif step in SENDS:
            assert message is not None and instance is not None
            self._sent(at, message, instance)
        elif step == "take":
            assert message is not None and instance is not None
            execution = self.executions[id(instance)]
            execution.past |= self.before[message.id] | {message.id}
            execution.taken.append(message)
        elif step in ("commit", "abort", "undone"):
            assert instance is not None
            execution = self.executions[id(instance)]
            execution.outcome = "abort" if step == "abort" else "commit"
            if step == "undone":
                assert message is not None
                self.by_call[place, message.call].undone = True

        elif step == "end":
            assert instance is not None
            execution = self.executions[id(instance)]
            execution.end = at
            if execution.outcome == "commit" and execution.message is not None:
                self.committed.setdefault(place, []).append((execution.op, frozenset(execution.past)))

    def _started(
        self, at: int, place: int, message: Message | None, instance: Instance, is_undo: bool
    ) -> None:
        self.keep.append(instance)
        op = instance.call.op
        past: set[SendId] = set()
        for earlier_op, earlier_past in self.committed.get(place, ()):
            if self._conflict(place, earlier_op, op):
                past |= earlier_past
        if message is not None:
            past |= self.before[message.id] | {message.id}
        execution = Execution(place, message, op, at, past)
        execution.is_undo = is_undo
        self.executions[id(instance)] = execution
        if message is not None and not is_undo:
            self.by_call[place, message.call] = execution

    def _sent(self, at: int, message: Message, instance: Instance) -> None:
        execution = self.executions.get(id(instance))
        if execution is None:  # the answer of one that died waiting, or of nobody
            self.keep.append(instance)
            request = instance.request
            past = set() if request is None else {*self.before[request.id], request.id}
            execution = Execution(message.src, request, "", at, past)
            execution.end, execution.outcome = at, "died"
            self.executions[id(instance)] = execution
        self.messages[message.id] = message
        self.before[message.id] = frozenset(execution.past)
        execution.past.add(message.id)
        self.sender[message.id] = execution
        if message.kind in REQUESTS:
            execution.calls[message.call] = message
        elif message.kind == ABORT and not execution.undone:
            execution.recalled.add(message.call)

    def _conflict(self, place: int, one: str, other: str) -> bool:
        return other in self.roster.relations[place].of(one)

    def logical(self, execution: Execution) -> Any:
        """The same for copies of one instance."""
        if execution.message is None:
            return execution
        return self.roster.object_of[execution.place], execution.message.call

    def ancestors(self, execution: Execution) -> list[Any]:
        """Those that wait for it, one by way of the other."""
        found: list[Any] = []
        message = execution.message
        if execution.is_undo:
            assert message is not None
            message = self.by_call[execution.place, message.call].message
        while message is not None and message.kind != ONE_WAY and message.id in self.sender:
            sender = self.sender[message.id]
            found.append(self.logical(sender))
            message = sender.message
        return found


class Judge:
    """Everything that is wrong with a run."""

    def __init__(self, world: World, settled: bool) -> None:
        self.world = world
        self.settled = settled
        self.history = History(world)
        self.crashed = world.plan.crash is not None
        starts = [
            each
            for each in self.history.executions.values()
            if each.message is not None
            and each.op
            and not (each.is_undo and each.message.kind in REQUESTS)  # after a crash: no message says where
        ]
        self.starts = sorted(starts, key=lambda each: each.at)

    def faults(self) -> list[Fault]:
        found = [*self.order(), *self.answers(), *self.vectors(), *self.liveness(), *self.freedom()]
        if self.settled:
            found += self.copies()
        if self.crashed:
            found += self.crash()
        elif self.settled:
            found += [*self.atomicity(), *self.cleanup()]
        return found

    def order(self) -> Iterable[Fault]:
        """I1, I2, I3, I5."""
        history = self.history
        first: dict[tuple[SendId, SendId], int] = {}
        by_place: dict[int, list[Execution]] = {}
        for execution in self.starts:
            by_place.setdefault(execution.place, []).append(execution)
        for place, executions in by_place.items():
            relation = self.world.roster.relations[place]
            for one, other in combinations(executions, 2):
                if other.op not in relation.of(one.op):
                    continue
                m1, m2 = one.message, other.message
                assert m1 is not None and m2 is not None
                if m2.id in history.before[m1.id]:
                    yield Fault("I1", f"{m1.id} before {m2.id} at {place}")
                first.setdefault((m1.id, m2.id), place)
                if (m2.id, m1.id) in first:
                    yield Fault("I2", f"{m1.id}, {m2.id} at {place} and {first[m2.id, m1.id]}")
                if m2.key < m1.key:
                    yield Fault("I3", f"{m1.id} {m1.key} before {m2.id} {m2.key} at {place}")
                overlap = one.end is None or one.end > other.at
                if overlap and history.logical(one) not in history.ancestors(other):
                    yield Fault("I5", f"{m1.id} and {m2.id} overlap at {place}")

    def answers(self) -> Iterable[Fault]:
        """I4."""
        before = self.history.before
        for execution in self.history.executions.values():
            for one, other in combinations(execution.taken, 2):
                if other.id in before[one.id]:
                    yield Fault("I4", f"{one.id} taken before {other.id}")

    def vectors(self) -> Iterable[Fault]:
        """I6, I7."""
        history, world = self.history, self.world
        for one in history.messages.values():
            for other in history.messages.values():
                if one is other:
                    continue
                known = one.id in history.before[other.id]
                counted = precedes(one, other)
                if known and not counted:
                    yield Fault("I6", f"{one.id} → {other.id} is not in the vector")
                if counted and one.id not in world.before[other.id]:
                    yield Fault("I6", f"{one.id} in the vector of {other.id} did not happen before")
                if known and one.ts >= other.ts:
                    yield Fault("I7", f"{one.id} → {other.id}, stamps {one.ts}, {other.ts}")

    def liveness(self) -> Iterable[Fault]:
        """I8."""
        if not self.settled:
            open_roots = len(self.world.open_roots())
            waiting = [
                (place, message.op, [each.call.op for each in blockers])
                for host in self.world.hosts.values()
                for place, message, blockers in host.engine.blocked()
            ]
            yield Fault("I8", f"{open_roots} roots have not ended; waiting: {waiting}")

    def freedom(self) -> Iterable[Fault]:
        """I13, I14."""
        events = self.world.log.events
        for at, event in enumerate(events):
            if event.step != "receive" or event.message is None:
                continue
            if self.world.roster.relations[event.place].of(event.message.op):
                continue
            following = events[at + 1]
            is_start = following.step == "start" and following.message is event.message
            is_orphan = self.crashed and following.step in ("die", "cancel")
            if not is_start and not is_orphan:
                yield Fault("I14", f"{event.message.id} came and did not start")
        yield from self.world.faults

    def atomicity(self) -> Iterable[Fault]:
        """I9."""
        effects = {
            place: hosted.state.value or ()
            for host in self.world.hosts.values()
            for place, hosted in host.engine.hosted.items()
        }
        history = self.history
        todo = [
            (execution, execution.outcome == "commit")
            for execution in history.executions.values()
            if execution.message is None or execution.message.kind == ONE_WAY
        ]
        for execution, stands in todo:
            if execution.message is not None and not execution.is_undo:
                there = execution.message.call in effects[execution.place]
                if there != stands:
                    yield Fault(
                        "I9", f"{execution.message.id} at {execution.place}: {stands=}, effect {there}"
                    )
            for call, message in execution.calls.items():
                if message.kind == ONE_WAY:
                    continue
                wanted = stands and call not in execution.recalled
                for place in message.dst:
                    child = history.by_call.get((place, call))
                    if child is not None:
                        todo.append((child, wanted))
                    elif wanted:
                        yield Fault("I9", f"{message.id} has no effect at {place}")
        for place, calls in effects.items():
            unique = [each for each in calls if not isinstance(each[-1], str)]
            if len(set(unique)) < len(unique):
                yield Fault("I9", f"an effect twice at {place}")

    def copies(self) -> Iterable[Fault]:
        """What a replicated object does, it does once, and all its copies do it."""
        roster = self.world.roster
        for name, places in roster.copies.items():
            hosts = [(self.world.hosts.get(roster.member_of[place]), place) for place in places]
            states = [set(host.engine.hosted[place].state.value) for host, place in hosts if host is not None]
            if any(state != states[0] for state in states):
                yield Fault("copies", f"{name} ends differently: {[state ^ states[0] for state in states]}")
        asked: set[Any] = set()
        for message in self.history.messages.values():
            if message.kind not in REQUESTS or self.crashed:
                continue
            if message.call in asked:
                yield Fault("copies", f"{message.call} is asked for twice")
            asked.add(message.call)
            if message.kind == ONE_WAY:
                for place in message.dst:
                    if (place, message.call) not in self.history.by_call:
                        yield Fault("copies", f"one-way {message.call} is not started at {place}")

    def cleanup(self) -> Iterable[Fault]:
        """I10."""
        for member, host in self.world.hosts.items():
            engine = host.engine
            pending = sum(hosted.state.pending for hosted in engine.hosted.values())
            early = sum(len(hosted.early) for hosted in engine.hosted.values())
            if engine.undoable or pending or early:
                yield Fault(
                    "I10", f"member {member}: {engine.undoable} known, {pending} undoable, {early} early"
                )

    def crash(self) -> Iterable[Fault]:
        """I12."""
        assert self.world.plan.crash is not None
        gone = self.world.plan.crash[0]
        member_of = self.world.roster.member_of
        started = {(each.place, each.message.call) for each in self.starts if each.message is not None}
        for message in self.history.messages.values():
            if message.kind != ONE_WAY or member_of[message.src] != gone:
                continue
            alive = [place for place in message.dst if member_of[place] != gone]
            count = sum((place, message.call) in started for place in alive)
            if self.settled and count not in (0, len(alive)):
                yield Fault("I12", f"{message.id} started at {count} of {len(alive)}")
