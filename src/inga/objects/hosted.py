"""What a member keeps for one of its places: order, queue, state, and what is known of calls."""

from collections import OrderedDict, deque
from enum import Enum, auto
from typing import Any, NamedTuple

from inga.model.invocation import CallId, Message
from inga.objects.instance import Instance
from inga.objects.order import Clock, Precedence
from inga.objects.queue import Queue, QueueEntry
from inga.objects.roster import Roster
from inga.objects.state import State

REMEMBERED_MAX = 4096
"""Calls and instances of each kind that a place remembers after their end or before their beginning, so that what
comes late for them is told from what comes early."""


class Stage(Enum):
    """How far a call has come at one place: see `incoming`."""

    WAITING = auto()
    RUNNING = auto()
    DONE = auto()  # committed, and can be undone
    UNDOING = auto()
    REFUSED = auto()  # aborted here, and its invoker has not said so yet


class HostedCall:
    """A call that somebody waits for, as one place knows it."""

    __slots__ = ("_entry", "_instance", "stage")

    def __init__(
        self, stage: Stage, *, entry: QueueEntry | None = None, instance: Instance | None = None
    ) -> None:
        self.stage = stage
        self._entry = entry
        self._instance = instance

    @property
    def entry(self) -> QueueEntry:
        """The request in the queue, while the call waits."""
        assert self._entry is not None
        return self._entry

    @property
    def run(self) -> Instance:
        """The instance that runs the call, or has run it."""
        assert self._instance is not None
        return self._instance


class Unspoken(NamedTuple):
    """What an instance would have said, had not another copy said it."""

    instance: Instance
    kind: str
    dst: tuple[int, ...]
    rest: dict[str, Any]


class Hosted:
    """One place of ours: its order, its queue, its state."""

    def __init__(self, place: int, roster: Roster, clock: Clock, invoking: frozenset[int] | None) -> None:
        relation = roster.relations[place]
        self.place = place
        self.object = roster.object_of[place]
        self.invoking = invoking
        self.order = Precedence(place, len(roster.places), relation, clock)
        self.queue = Queue(relation)
        self.state = State()
        self.asked: dict[CallId, HostedCall] = {}  # calls that somebody waits for
        self.cancelled: OrderedDict[CallId, None] = OrderedDict()  # aborted before they came
        # Of instances of which there are copies, by what the names of their calls begin with: those that run, those
        # that have ended and whether they have committed, answers to those that have not begun.
        self.bases: dict[CallId, Instance] = {}
        self.ended: OrderedDict[CallId, bool] = OrderedDict()
        self.early: OrderedDict[CallId, list[Message]] = OrderedDict()
        self.disowned: OrderedDict[CallId, Message] = OrderedDict()  # answers to those that have aborted
        self.unspoken: deque[Unspoken] = deque(maxlen=REMEMBERED_MAX)  # left to another copy of the object
        # Calls of invokers with copies, one of which may ask again; with the instance, once it is there for good.
        self.seen: OrderedDict[CallId, Instance | None] = OrderedDict()


def base_of(request: Message, object: int) -> CallId:
    """What names of calls begin with, of the instance that a request starts: the same at all copies."""
    (clock, place), number = request.id
    return clock, place, number, object


def remember(memory: "OrderedDict[CallId, Any]", name: CallId, what: Any = None) -> None:
    """Put something into one of the bounded memories; the oldest is forgotten."""
    memory[name] = what
    if len(memory) > REMEMBERED_MAX:
        memory.popitem(last=False)
