"""What a member keeps for one of its places: order, queue, state, and what is known of calls."""

from collections import OrderedDict, deque
from enum import Enum, auto
from typing import Any, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.model.invocation import CallId, Message
from inga.objects.instance import Instance
from inga.objects.order import Clock, Precedence
from inga.objects.queue import Queue, QueueEntry
from inga.objects.roster import Roster
from inga.objects.state import State

REMEMBERED_MAX = 4096
"""The most calls and instances of each kind that a place remembers after their end or before their beginning, so that it can
tell late messages about them from early ones."""


class Stage(Enum):
    """How far a call has come at one place: see `incoming`."""

    WAITING = auto()
    RUNNING = auto()
    DONE = auto()  # committed, and can be undone
    UNDOING = auto()
    REFUSED = auto()  # answered with an abort; its invoker has not aborted it yet


@mypyc_attr(allow_interpreted_subclasses=True)
class HostedCall:
    """A call with an answer, as one of the called places knows it."""

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
    """A message that an instance did not send because another copy of its object sends it."""

    instance: Instance
    kind: str
    dst: tuple[int, ...]
    rest: dict[str, Any]


@mypyc_attr(allow_interpreted_subclasses=True)
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
        self.asked: dict[CallId, HostedCall] = {}  # calls with an answer: see `incoming`
        self.cancelled: OrderedDict[CallId, int] = OrderedDict()  # aborted before they arrived, by that place
        # Of instances that several copies run, by the common beginning of the names of their calls: those that run,
        # those that have ended and whether they committed, and answers to those that have not begun.
        self.bases: dict[CallId, Instance] = {}
        self.ended: OrderedDict[CallId, bool] = OrderedDict()
        self.early: OrderedDict[CallId, list[Message]] = OrderedDict()
        self.disowned: OrderedDict[CallId, Message] = OrderedDict()  # answers to instances that have aborted
        self.unspoken: deque[Unspoken] = deque(maxlen=REMEMBERED_MAX)  # left to another copy of the object
        # Calls of replicated invokers, which another copy of the invoker may repeat; with the instance, once it is final.
        self.seen: OrderedDict[CallId, Instance | None] = OrderedDict()


def base_of(request: Message, object: int) -> CallId:
    """The common beginning of the names of all calls of the instance that a request starts: the same at all copies."""
    (clock, place), number = request.id
    return clock, place, number, object


def remember(memory: "OrderedDict[CallId, Any]", name: CallId, what: Any = None) -> None:
    """Put an entry into one of the bounded memories; the oldest is dropped if there are too many."""
    memory[name] = what
    if len(memory) > REMEMBERED_MAX:
        memory.popitem(last=False)
