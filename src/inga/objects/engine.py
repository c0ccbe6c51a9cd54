"""Everything one member does for the objects it has: order, invocation, commit and abort, members that fail.

Time and packets go in, actions come out: `Transmit` a packet, `Run` an instance, `Resume` another one. Bodies are not
run here; `inga.objects.invoke.Host` does that, and is what drivers use. The engine connects its parts, passes each
message to the part that handles it, and makes all progress that is possible:

    links       numbers, gaps and clocks between members
    incoming    requests: they wait, start, die; their invoker commits or aborts them
    calls       what instances call, and how they are answered
    early       answers that reach a copy before it has made the call
    endings     how instances commit and abort
    speech      the messages of instances, and which of several copies sends them
    failures    members that are gone

See docs/protocols/obg.md, which has all the rules.
"""

from collections.abc import Iterable
from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.invocation import (
    ABORT,
    COMMIT,
    ONE_WAY,
    REQUESTS,
    RESPONSE,
    Announce,
    Flush,
    Heartbeat,
    Message,
    Nack,
    Path,
    Spoken,
)
from inga.objects.actions import EngineAction, Observer, Run
from inga.objects.calls import Calls
from inga.objects.early import Early
from inga.objects.endings import Endings
from inga.objects.failures import Failures
from inga.objects.incoming import Incoming
from inga.objects.instance import ABORTED, Instance
from inga.objects.local import Local
from inga.objects.options import EngineOptions
from inga.objects.queue import Queue
from inga.objects.roster import Roster
from inga.objects.speech import Speech


@mypyc_attr(allow_interpreted_subclasses=True)
class Engine:
    """One member's part in the objects of its group."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        options: EngineOptions | None = None,
        *,
        now: float = 0.0,
        observer: Observer | None = None,
    ) -> None:
        self.me = me
        self.options = options or EngineOptions()
        self.local = local = Local(me, roster, self.options, now=now, observer=observer)
        self.links, self.hosted, self.counts = local.links, local.hosted, local.counts
        self.speech = Speech(local)
        self.early = Early(local, self.speech)
        self.calls = Calls(local, self.speech, self.early)
        self.endings = self.calls.ends = Endings(local, self.speech, self.calls, self.early)
        self.incoming = Incoming(local, self.speech, self.early, self.endings)
        self.failures = Failures(
            local,
            self.speech,
            self.early,
            self.calls,
            self.endings,
            self.incoming,
            hear=self._take_from,
            settle=self._settle,
        )
        self._tick_at = now + self.options.delta
        self._is_awake = not self.options.quiet  # whether `tick` is wanted

    def begin(self, now: float, place: int, *, retry_of: Path | None = None) -> Instance:
        """Begin a root. A retry gets the path of the attempt before it: it counts as equally old, and so cannot starve."""
        local = self.local
        local.now = now
        path = None if retry_of is None else (_next_attempt(retry_of[0]),)
        instance = self.hosted[place].order.root(path)
        instance.hosts = ((place,),)
        local.running[instance] = None
        local.note("start", instance, None)
        local.out.append(Run(instance))
        return instance

    def tell(self, now: float, place: int, dst: tuple[int, ...], op: str, args: tuple[Any, ...]) -> None:
        """Begin a root that only sends one request without an answer: it commits at once."""
        self.local.now = now
        order = self.hosted[place].order
        instance = order.root()
        instance.hosts = ((place,),)
        self.calls.call(instance, ONE_WAY, dst, op, args)
        order.commit(instance, "")

    # From the network and the clock

    def receive(self, now: float, packet: Spoken) -> list[EngineAction]:
        """Handle an arriving packet. Never raises, whatever the packet holds."""
        local = self.local
        local.now = now
        member = local.roster.member_of[packet.src] if isinstance(packet, Message) else packet.member
        if member not in self.links.peers or member in self.failures.suspects:
            self.counts["ignored"] += 1
        else:
            self._take_from(member, packet)
        return self.actions(now)

    def tick(self, now: float) -> list[EngineAction]:
        """Do what is due: heartbeats, repair, giving up requests that may die."""
        self.local.now = now
        if now >= self._tick_at:
            self.links.tick(now, self.awaited() if self.options.quiet else ())
            self.incoming.let_die()
            queues = self.incoming.queues
            is_patient = self.options.quiet and all(each.queue.oldest() is None for each in queues)
            self._tick_at = self.links.next_tick(now) if is_patient else now + self.options.delta
        return self.actions(now)

    def suspect(self, now: float, member: int) -> list[EngineAction]:
        """Suspect a member: ignore it from now on, and flush its messages to the other members."""
        self.local.now = now
        self.failures.suspect((member,))
        return self.actions(now)

    def view(self, now: float, members: Iterable[int]) -> list[EngineAction]:
        """The group has agreed that these members remain: suspect all others."""
        self.local.now = now
        self.failures.suspect(set(self.links.peers) - set(members))
        return self.actions(now)

    def close(self) -> list[Instance]:
        """Stop: drop waiting requests and messages in flight. Returns the instances that were running."""
        local = self.local
        running = list(local.running)
        for instance in running:
            instance.status = ABORTED
        for hosted in self.hosted.values():
            hosted.queue = Queue(hosted.order.relation)
        for table in (local.running, self.incoming.queues, self.links.peers):
            table.clear()
        local.inbox.clear()
        local.out.clear()
        self.calls.clear()
        self.failures.clear()
        self.links.held = self.links.own = 0
        return running

    def actions(self, now: float) -> list[EngineAction]:
        """The actions since the last call."""
        local = self.local
        local.now = now
        self._settle()
        out, local.out = local.out, []
        return out

    @property
    def wake(self) -> float | None:
        """When `tick` has to be called. Computed only here, since a driver asks once for several actions."""
        self._rearm()
        return self._tick_at if self._is_awake else None

    # Questions

    @property
    def is_stirred(self) -> bool:
        """Whether there are actions to return, or messages to ourselves that may lead to some."""
        return bool(self.local.out or self.local.inbox)

    def blocked(self) -> list[tuple[int, Message, list[Instance]]]:
        """The waiting requests, each with its place and the running instances that it waits for."""
        return [
            (hosted.place, entry.message, sorted(blockers, key=lambda each: each.start))
            for hosted in self.hosted.values()
            for entry, blockers in hosted.queue.blockers().items()
        ]

    @property
    def settled(self) -> bool:
        """Whether nothing runs here, and no message of ours waits or is unacknowledged. Waiting requests of other members do
        not count: there may always be more of them."""
        local = self.local
        return not (local.running or local.inbox or self.links.unacknowledged or self.links.own)

    @property
    def idle(self) -> bool:
        """Whether nothing at all is under way here."""
        return self.settled and not (self.calls.holding or self.queued)

    @property
    def queued(self) -> int:
        """The number of waiting requests."""
        return sum(len(hosted.queue) for hosted in self.incoming.queues)

    @property
    def undoable(self) -> int:
        """The number of calls here that their invokers may still abort, and of aborts that arrived before their requests."""
        return sum(len(hosted.asked) + len(hosted.cancelled) for hosted in self.hosted.values())

    def awaited(self) -> set[int]:
        """The members for whose clocks or messages requests or held answers here wait."""
        return self.incoming.unclear().union(self.links.peers if self.calls.holding else ())

    # Each message to the part that handles it

    def _take_from(self, member: int, packet: Spoken) -> None:
        local, links = self.local, self.links
        match packet:
            case Message():
                if not self.failures.is_ahead(packet):
                    local.clock.see(packet.ts)
                    if links.take(local.now, member, packet):
                        self._dispatch(packet)
            case Heartbeat():
                local.clock.see(packet.ts)
                links.hear(local.now, packet)
            case Announce():
                local.clock.see(packet.ts)
                links.show(packet.ts, packet.dst)
            case Nack():
                links.asked(local.now, packet)
            case Flush():
                local.clock.see(packet.ts)
                if links.take(local.now, member, packet):
                    self.failures.take_flush(packet)

    def _dispatch(self, message: Message) -> None:
        """Handle a message at each place of ours that is among its destinations."""
        local, kind = self.local, message.kind
        if self.options.announce and kind not in (RESPONSE, COMMIT) and local.is_ordered(message):
            self.links.show(message.ts, local.roster.members_at(message.dst))
        for place in message.dst:
            hosted = self.hosted.get(place)
            if hosted is None:
                continue
            if kind in REQUESTS:
                self.incoming.take(hosted, message)
            elif kind == RESPONSE:
                self.calls.answer(place, message)
            elif kind == ABORT:
                self.incoming.told_to_abort(hosted, message)
            else:
                self.incoming.told_to_commit(hosted, message)

    # Progress

    def _settle(self) -> None:
        """Handle messages to ourselves, take answers and start requests, until no further progress is possible."""
        inbox, calls, links = self.local.inbox, self.calls, self.links
        while True:
            while inbox:
                self._dispatch(inbox.popleft())
            calls.settle()
            if links.moved and calls.holding:
                links.moved = False
                for instance in list(calls.holding):
                    calls.take_held(instance)
                continue
            if not self.incoming.start_one() and not inbox:
                return

    def _rearm(self) -> None:
        """A quiet group sets no timer while nothing is under way; the next tick is a delta after something has happened."""
        was_awake = self._is_awake
        self._is_awake = not self.options.quiet or self.links.is_busy or self._is_waiting
        if self._is_awake and not was_awake:
            self._tick_at = self.local.now + self.options.delta
        elif self.links.stirred:
            self._tick_at = min(self._tick_at, self.local.now + self.options.delta)
        self.links.stirred = False

    @property
    def _is_waiting(self) -> bool:
        """Whether requests or held answers here wait, or suspects have not been removed yet."""
        return bool(self.calls.holding or self.failures.suspects or self.incoming.queues)


def _next_attempt(root: tuple[int, ...]) -> tuple[int, ...]:
    """The root in the path of a retry: as old as the previous attempt, but not its descendant."""
    clock, place, *rest = root
    return (clock, place, 0, (rest[1] if len(rest) == 2 else 0) + 1)
