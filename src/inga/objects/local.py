"""The state that all parts of an engine share: the places of one member, its clock and links, and the actions to return.

Any part may change instances and places; only `failures` changes `alive` and `gone`.
"""

from collections import Counter, deque
from collections.abc import Iterable

from inga.model.compiled import mypyc_attr
from inga.model.invocation import Message, Spoken
from inga.objects.actions import EngineAction, Observer, Transmit
from inga.objects.hosted import Hosted
from inga.objects.instance import Instance
from inga.objects.links import Links
from inga.objects.options import EngineOptions
from inga.objects.order import Clock
from inga.objects.roster import Roster


@mypyc_attr(allow_interpreted_subclasses=True)
class Local:
    """The shared state of one member's engine."""

    def __init__(
        self, me: int, roster: Roster, options: EngineOptions, *, now: float, observer: Observer | None
    ) -> None:
        self.me = me
        self.roster = roster
        self.options = options
        self.now = now
        self.counts: Counter[str] = Counter()  # started, committed, aborted, died, undone, held, ignored
        self.clock = Clock()
        self.links = Links(me, roster, self.clock, options, self._send, self._evs)
        self.hosted = {
            place: Hosted(place, roster, self.clock, self._callers(place)) for place in roster.at.get(me, ())
        }
        self.alive = set(roster.members)
        self.gone = 0  # how many members are gone, as agreed by all that remain
        self.running: dict[Instance, None] = {}
        self.inbox: deque[Message] = deque()  # messages to ourselves
        self.out: list[EngineAction] = []
        self._observer = observer

    def alive_of(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """Those of the places whose members are not gone."""
        if self.is_complete:
            return places
        return tuple(place for place in places if self.roster.member_of[place] in self.alive)

    @property
    def is_complete(self) -> bool:
        """Whether no member is gone."""
        return not self.gone

    def objects_of(self, places: Iterable[int]) -> set[int]:
        return {self.roster.object_of[place] for place in places}

    def is_orphan(self, request: Message) -> bool:
        """Whether some instance in its lineage has no copy left."""
        return not self.is_complete and not all(map(self.alive_of, request.hosts))

    def has_invoker(self, request: Message) -> bool:
        return bool(request.hosts) and bool(self.alive_of(request.hosts[-1]))

    def is_ordered(self, message: Message) -> bool:
        """Whether its method can conflict at some destination, which then needs clocks."""
        relations, op = self.roster.relations, message.op
        for place in message.dst:  # noqa: SIM110, which costs more
            if relations[place].of(op):
                return True
        return False

    def note(self, step: str, instance: Instance, message: Message | None) -> None:
        """Notify the observer of a step of an instance."""
        if self._observer is not None:
            self._observer.note(step, self.now, instance.place, message, instance)

    def note_at(self, step: str, place: int, message: Message) -> None:
        """The same for a request that has no instance."""
        if self._observer is not None:
            self._observer.note(step, self.now, place, message, None)

    def _callers(self, place: int) -> frozenset[int] | None:
        """The members that may call the object at this place; None: all."""
        members = self.options.invoking.get(self.roster.places[place].object)
        return None if members is None else frozenset(members)

    def _send(self, members: tuple[int, ...], packet: Spoken) -> None:
        self.out.append(Transmit(members, packet))

    def _evs(self) -> tuple[int, ...]:
        return tuple(hosted.order.ev for hosted in self.hosted.values())
