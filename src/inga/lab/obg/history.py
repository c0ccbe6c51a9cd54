"""Precedence in a run, exactly by the definitions: with sets of messages instead of vectors and stamps.

m1 → m2, *m1 significantly precedes m2*: an instance sent or received m1, and then sent m2; or one instance sent or received m1,
and another one of the same object, which conflicts with the first and began after it had committed, sent m2; or there is a third
message between them. The counters of the engine relate at least these messages, and more: they count messages of a place,
whichever instance sent them.
"""

from typing import NamedTuple

from inga.lab.obg.printed import PrintedVectors
from inga.lab.obg.runs import RandomRun, RunEvent
from inga.model.invocation import Message, SendId
from inga.objects.instance import Instance

SENDS = ("request", "response", "data", "tell abort", "tell commit")


class Act(NamedTuple):
    """An instance sends or receives a message."""

    is_send: bool
    message: Message
    run: "InstanceRun"


class InstanceRun:
    """One instance, according to the events."""

    def __init__(self, place: int, op: str, begun: int) -> None:
        self.place = place
        self.op = op
        self.begun = begun  # the number of an event, like `committed`
        self.committed: int | None = None
        self.past = 0  # a bit for each message that precedes its next send
        self.taken: list[Message] = []  # answers and data, in the order in which it took them


class RunHistory:
    """The messages of a run, and which of them precede each."""

    def __init__(self, run: RandomRun) -> None:
        self.run = run
        self.roster = run.roster
        self.messages: list[Message] = []  # in the order in which they were sent
        self.number: dict[SendId, int] = {}
        self.before: list[int] = []  # for each message m: a bit for each m1 with m1 → m
        self.starts: list[list[Message]] = [[] for _ in run.roster.places]  # requests as they started
        self.acts: list[list[Act]] = [[] for _ in run.roster.places]
        self.runs: dict[Instance, InstanceRun] = {}
        self.printed = PrintedVectors(len(run.roster.places))
        self._left: dict[int, list[tuple[str, int]]] = {}  # by place: methods that committed, and their pasts
        self._wins: set[Instance] = set()
        for at, event in enumerate(run.events):
            self._read(at, event)

    def precedes(self, one: Message, other: Message) -> bool:
        """Whether one message significantly precedes the other."""
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
        if instance not in self.runs:  # the answer to a request that died while it waited
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
