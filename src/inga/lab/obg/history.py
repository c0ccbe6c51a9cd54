"""What precedes what in a run, by the definitions and exactly: sets of messages instead of vectors and stamps.

m1 → m2, *significantly precedes*: one instance sent or received m1 and then sent m2; or an instance did the one and another of the same object
the other, that conflicts with it and began after it had committed; or by way of a third message. The counters of the
engine relate at least that, and more: they count messages of a place, whichever instance sent them.
"""

from typing import NamedTuple

from inga.lab.obg.printed import PrintedVectors
from inga.lab.obg.runs import RandomRun, RunEvent
from inga.model.invocation import Message, SendId
from inga.objects.instance import Instance

SENDS = ("request", "response", "data", "tell abort", "tell commit")


class Act(NamedTuple):
    """An instance sends a message, or gets one."""

    is_send: bool
    message: Message
    run: "InstanceRun"


class InstanceRun:
    """One instance, as the events show it."""

    def __init__(self, place: int, op: str, begun: int) -> None:
        self.place = place
        self.op = op
        self.begun = begun  # numbers of events
        self.committed: int | None = None
        self.past = 0  # a bit for each message that precedes what it sends next
        self.taken: list[Message] = []  # answers and data, in this order


class RunHistory:
    """The messages of a run, and which of them precede each."""

    def __init__(self, run: RandomRun) -> None:
        self.run = run
        self.roster = run.roster
        self.messages: list[Message] = []  # in the order in which they were sent
        self.number: dict[SendId, int] = {}
        self.before: list[int] = []  # of each message: a bit for each m1 with m1 → m
        self.starts: list[list[Message]] = [[] for _ in run.roster.places]  # requests, in order
        self.acts: list[list[Act]] = [[] for _ in run.roster.places]
        self.runs: dict[Instance, InstanceRun] = {}
        self.printed = PrintedVectors(len(run.roster.places))
        self._left: dict[int, list[tuple[str, int]]] = {}  # by place: methods that committed, and their pasts
        self._wins: set[Instance] = set()
        for at, event in enumerate(run.events):
            self._read(at, event)

    def precedes(self, one: Message, other: Message) -> bool:
        """m1 → m2."""
        return bool(self.before[self.number[other.id]] >> self.number[one.id] & 1)

    def conflict(self, place: int, one: str, other: str) -> bool:
        return other in self.roster.relations[place].of(one)

    def _read(self, at: int, event: RunEvent) -> None:
        step, place, message, instance = event
        if instance is None:
            return
        if step in ("start", "undo"):
            self._started(at, place, message, instance, is_undo=step == "undo")
        elif step in SENDS:
            assert message is not None
            self._sent(at, message, instance)
        elif step == "take":
            assert message is not None
            self.runs[instance].taken.append(message)
            self._got(message, instance)
        elif step in ("commit", "undone"):
            self._wins.add(instance)
        elif step == "end" and instance in self._wins:
            each = self.runs[instance]
            each.committed = at
            self.printed.commit(instance, place)
            if instance.request is not None:
                self._left.setdefault(place, []).append((each.op, each.past))

    def _started(
        self, at: int, place: int, message: Message | None, instance: Instance, *, is_undo: bool
    ) -> None:
        each = self.runs[instance] = InstanceRun(place, instance.call.op, at)
        self.printed.start(instance, place)
        for op, past in self._left.get(place, ()):
            if self.conflict(place, op, each.op):
                each.past |= past
        if message is not None:
            self._got(message, instance)
            if not is_undo:
                self.starts[place].append(message)

    def _got(self, message: Message, instance: Instance) -> None:
        each = self.runs[instance]
        number = self.number[message.id]
        each.past |= self.before[number] | 1 << number
        self.acts[each.place].append(Act(False, message, each))
        self.printed.deliver(instance, message)

    def _sent(self, at: int, message: Message, instance: Instance) -> None:
        if instance not in self.runs:  # the answer to a request that died waiting
            self.runs[instance] = InstanceRun(message.src, "", at)
            self.printed.start(instance, message.src)
            if instance.request is not None:
                self._got(instance.request, instance)
        each = self.runs[instance]
        self.number[message.id] = number = len(self.messages)
        self.messages.append(message)
        self.before.append(each.past)
        each.past |= 1 << number
        self.acts[each.place].append(Act(True, message, each))
        self.printed.send(instance, message)
