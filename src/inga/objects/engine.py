"""Everything one member does for the objects it has: order, invocation, commit and abort, members that fail.

Time and packets go in, actions come out: `Send` these, `Run` that instance, `Resume` another one. Bodies are not
run here; `inga.objects.invoke.Host` does that, and is what drivers use.

    request     waits until it is clear, first and ready, or starts at once if it conflicts with nothing
    response    is taken by the instance that waits for it, after those that precede it
    commit      the effects are there now; whoever invoked it may still undo it, until the root commits
    abort       no effects, nor of anything it called: what has committed is undone, in its own place in the order
    die         a request that could wait for ever ends with an abort: the younger of two gives way

Copies of a replicated object that run the same instance make the same calls. The first of them that is alive, the
*speaker*, sends them; the answers go to all. See docs/protocols/obg.md, which has all the rules.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from inga.model.invocation import (
    ABORT,
    ASYNCHRONOUS,
    CHILD,
    COMMIT,
    DEADLOCK,
    FAIL,
    GONE,
    ONE_WAY,
    ORPHAN,
    REQUESTS,
    RESPONSE,
    SYNCHRONOUS,
    Announce,
    CallId,
    Flush,
    Heartbeat,
    Message,
    Nack,
    Path,
    Spoken,
)
from inga.objects.instance import ABORTED, COMMITTED, RUNNING, Alternatives, Instance, Pending, Wait
from inga.objects.links import Links, members_of
from inga.objects.options import Options
from inga.objects.order import Clock, Precedence, call_of, precedes
from inga.objects.queue import Entry, Queue
from inga.objects.roster import Roster
from inga.objects.state import State

__all__ = ["Action", "Ended", "Engine", "Observer", "Options", "Resume", "Run", "Send"]

REMEMBERED_MAX = 4096
"""Calls and instances of each kind that a place remembers after their end or before their beginning, so that what
comes late for them is told from what comes early."""


AHEAD_MAX = 1 << 16
"""Messages of a view that is not installed here yet."""


class Send(NamedTuple):
    """Transmit this to these members."""

    members: tuple[int, ...]
    packet: Spoken


class Run(NamedTuple):
    """Begin with the body of this instance; `finish` or `fail` ends it."""

    instance: Instance


class Resume(NamedTuple):
    """What the instance waited for has come."""

    instance: Instance
    value: Any


class Ended(NamedTuple):
    """The instance has committed, or was aborted: end its body, if it has not ended itself."""

    instance: Instance
    reason: str  # empty if it committed
    text: str


Action = Send | Run | Resume | Ended


class Observer(Protocol):
    """Told of every step: request, receive, start, response, take, hold, commit, abort, end, die, cancel, undo, undone,
    tell commit, tell abort. The message is the one that is sent or taken, else the one that started the instance."""

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None: ...


class Record:
    """A committed instance that its invoker may still undo."""

    __slots__ = ("instance", "undoing")

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.undoing = False


SAID = {
    **dict.fromkeys(REQUESTS, "request"),
    RESPONSE: "response",
    COMMIT: "tell commit",
    ABORT: "tell abort",
}
"""The step of an observer for each kind of message."""


class _Mark:
    """What is known of a request that neither waits nor runs nor can be undone."""


ENDED = _Mark()
"""Aborted here, and its invoker has not said so yet."""


class _Unspoken(NamedTuple):
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
        self.known: dict[CallId, Entry | Instance | Record | _Mark] = {}  # calls that somebody waits for
        self.cancelled: OrderedDict[CallId, None] = OrderedDict()  # aborted before they came
        self.early: OrderedDict[CallId, list[Message]] = (
            OrderedDict()
        )  # answers to what has not begun, by base
        self.bases: dict[CallId, Instance] = {}  # running instances of which there are copies
        self.ended: OrderedDict[CallId, bool] = (
            OrderedDict()
        )  # of such instances; whether they have committed
        self.seen: OrderedDict[CallId, Instance | None] = (
            OrderedDict()
        )  # calls of replicated invokers, and what
        # has committed for good
        self.unspoken: deque[_Unspoken] = deque(maxlen=REMEMBERED_MAX)  # left to another copy of the object


class Engine:
    """One member's part in the objects of its group."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        options: Options | None = None,
        *,
        now: float = 0.0,
        observer: Observer | None = None,
    ) -> None:
        self.me = me
        self.roster = roster
        self.options = options or Options()
        self.now = now
        self.observer = observer
        self.counts: Counter[str] = Counter()  # started, committed, aborted, died, undone, held, rejected
        self.clock = Clock()
        self.links = Links(me, roster, self.clock, self.options, self._send, self._evs)
        invoking = self.options.invoking
        self.hosted = {
            place: Hosted(
                place,
                roster,
                self.clock,
                frozenset(invoking[name]) if (name := roster.places[place].object) in invoking else None,
            )
            for place in roster.at.get(me, ())
        }
        self.alive = set(roster.members)
        self.views = 0  # installed so far
        self._ahead: list[Message] = []  # of a view that is not installed here yet
        self._out: list[Action] = []
        self._inbox: deque[Message] = deque()  # from ourselves
        self._answered: deque[tuple[int, Message]] = deque()  # answers that were there before the question
        self._lost: deque[tuple[Instance, Pending]] = deque()  # calls of those who are gone
        self._awaiting: dict[tuple[int, CallId], Instance] = {}
        self._holding: dict[Instance, None] = {}  # instances with answers that wait for others
        self._running: dict[Instance, None] = {}
        self._queues: dict[Hosted, None] = {}  # places where something waits
        self._suspects: set[int] = set()
        self._flushed: dict[int, Flush] = {}  # the newest of each member
        self._tick_at = now + self.options.delta

    # From the network and the clock

    def receive(self, now: float, packet: Spoken) -> list[Action]:
        """Something came; whatever it is, nothing is raised."""
        self.now = now
        self._hear(packet)
        return self.actions(now)

    def tick(self, now: float) -> list[Action]:
        """Time has passed: heartbeats, repair, deaths."""
        self.now = now
        if now >= self._tick_at:
            self._tick_at = now + self.options.delta
            self.links.tick(now, self._waited_for() if self.options.quiet else ())
            self._let_die()
        return self.actions(now)

    def suspect(self, now: float, member: int) -> list[Action]:
        """A member is taken for dead: hear nothing of it any more, and hand round what it said."""
        self.now = now
        if member in self.links.peers and member not in self._suspects:
            self._suspects.add(member)
            self._flush()
        return self.actions(now)

    def view(self, now: float, members: Iterable[int]) -> list[Action]:
        """Only these are left, says whoever agrees on it."""
        self.now = now
        gone = set(self.links.peers) - set(members) - self._suspects
        if gone:
            self._suspects |= gone
            self._flush()
        return self.actions(now)

    def actions(self, now: float) -> list[Action]:
        """What is to be done since the last time."""
        self.now = now
        self._settle()
        out, self._out = self._out, []
        return out

    @property
    def wake(self) -> float | None:
        """When `tick` is wanted."""
        if self.options.quiet and not self.links.is_busy and not self._is_waiting:
            return None
        return self._tick_at

    # From bodies

    def begin(self, now: float, place: int, *, retry_of: Path | None = None) -> Instance:
        """A root. A retry is told the path of the attempt before: it stays as old, and so cannot starve."""
        self.now = now
        order = self.hosted[place].order
        path = None if retry_of is None else (_next_attempt(retry_of[0]),)
        instance = order.root(path)
        instance.hosts = ((place,),)
        self._running[instance] = None
        self._note("start", instance, None)
        self._out.append(Run(instance))
        return instance

    def call(
        self,
        instance: Instance,
        kind: str,
        dst: tuple[int, ...],
        op: str,
        args: tuple[Any, ...] = (),
        named: Mapping[str, Any] | None = None,
        *,
        first: bool = False,
    ) -> Pending:
        """Invoke `op` at these places."""
        name = (*instance.base, instance.number)
        early = self._take_early(instance, name)  # some of them perhaps from members that are gone since
        alive = self._alive_of(dst)
        there = alive if len(alive) == len(dst) else _with(alive, (answer.src for answer in early))
        call = Pending(name, kind, there, first)
        call.request = (op, args, tuple((named or {}).items()))
        if instance.status != RUNNING:
            return call  # it has been aborted, and will be told
        instance.number += 1
        instance.calls[call.id] = call
        if kind == ONE_WAY:
            call.missing.clear()
        else:
            self._awaiting[instance.place, call.id] = instance
        # Answers are taken once the body waits, when it is known for what; so is it that there will be none.
        if kind != ONE_WAY and self._objects(call.dst) != self._objects(dst):
            call.missing = set(dst)
            self._lost.append((instance, call))
        else:
            self._request(instance, call)
            self._answered.extend((instance.place, answer) for answer in early)
        return call

    def wait(self, instance: Instance, calls: Sequence[Pending], *, any: bool = False) -> None:
        """The body waits; a `Resume` follows with these calls, or with the one that won, once they are answered."""
        if instance.status != RUNNING:
            return
        alternatives = None
        if any:
            alternatives = Alternatives(calls)
            for call in calls:
                call.alternatives = alternatives
        instance.waits = Wait(calls, alternatives)
        self._look_at_wait(instance)

    def finish(self, instance: Instance, result: Any) -> None:
        """The body has ended. It commits once all its calls have."""
        if instance.status == RUNNING:
            instance.finished, instance.result = True, result
            self._try_commit(instance)

    def fail(self, instance: Instance, text: str, reason: str = FAIL) -> None:
        """The body has failed, or does not want to go on. What undoes something cannot fail: without a body, the
        effects are taken out."""
        if instance.undoes is not None:
            instance.effects = []
            self.finish(instance, None)
        elif instance.status == RUNNING:
            self._abort(instance, reason, text)

    # Questions

    def precedes(self, one: Message, other: Message) -> bool:
        """Whether `one` is known to precede `other` significantly."""
        return precedes(one, other)

    def blocked(self) -> list[tuple[int, Message, list[Instance]]]:
        """Requests that wait, where, and the running instances they wait for."""
        return [
            (hosted.place, entry.message, sorted(blockers, key=lambda each: each.start))
            for hosted in self.hosted.values()
            for entry, blockers in hosted.queue.blockers().items()
        ]

    @property
    def idle(self) -> bool:
        """Whether nothing runs, waits or is on its way from here."""
        return not (self._running or self._holding or self._inbox or self.links.unacknowledged or self.queued)

    @property
    def queued(self) -> int:
        """Requests that wait."""
        return sum(len(hosted.queue) for hosted in self._queues)

    @property
    def undoable(self) -> int:
        """Committed instances that somebody may still undo."""
        return sum(len(hosted.known) + len(hosted.cancelled) for hosted in self.hosted.values())

    # Receipt

    def _hear(self, packet: Spoken) -> None:
        member = self.roster.member_of[packet.src] if isinstance(packet, Message) else packet.member
        if member not in self.links.peers or member in self._suspects:
            self.counts["ignored"] += 1
            return
        self._take_from(member, packet)

    def _take_from(self, member: int, packet: Spoken) -> None:
        match packet:
            case Message() if packet.view > self.views:
                # It may build on what is still to be handed round. What is too much is repaired, or never was.
                if len(self._ahead) < AHEAD_MAX:
                    self._ahead.append(packet)
            case Message():
                self.clock.see(packet.ts)
                if self.links.take(self.now, member, packet):
                    self._dispatch(packet)
            case Heartbeat():
                self.clock.see(packet.ts)
                self.links.hear(self.now, packet)
            case Announce():
                self.clock.see(packet.ts)
                self.links.show(packet.ts, packet.dst)
            case Nack():
                self.links.asked(self.now, packet)
            case Flush():
                self.clock.see(packet.ts)
                if self.links.take(self.now, member, packet):
                    self._take_flush(packet)

    def _dispatch(self, message: Message) -> None:
        """Hand a message to each place of ours that it is for."""
        if (message.kind in REQUESTS or message.kind == ABORT) and self._is_ordered(message):
            self.links.show(message.ts, members_of(self.roster, message.dst))
        for place in message.dst:
            hosted = self.hosted.get(place)
            if hosted is None:
                continue
            if message.kind in REQUESTS:
                self._requested(hosted, message)
            elif message.kind == RESPONSE:
                self._answer(place, message)
            elif message.kind == ABORT:
                self._told_to_abort(hosted, message)
            else:
                self._told_to_commit(hosted, message)

    def _is_ordered(self, message: Message) -> bool:
        """Whether it conflicts with something somewhere, so that clocks are wanted there."""
        return any(self.roster.relations[place].of(message.op) for place in message.dst)

    # Requests

    def _requested(self, hosted: Hosted, request: Message) -> None:
        if request.call in hosted.cancelled:
            del hosted.cancelled[request.call]
            self._forget_early(hosted, _base(request, hosted.object))
            self._note_at("cancel", hosted.place, request)
            return
        if request.call in hosted.known:
            return  # another speaker has said the same; all copies will be answered
        if request.call in hosted.seen:
            self._answer_again(hosted, request)
            return
        if self.roster.is_replicated[request.src]:
            _remember(hosted.seen, request.call)
        self._note_at("receive", hosted.place, request)
        entry = Entry(request, call_of(request), request.path, self.now)
        if self._is_orphan(request):
            self._give_up_entry(hosted, entry)
        elif hosted.order.relation.of(request.op):
            self._enqueue(hosted, entry)
            if request.kind != ONE_WAY:
                hosted.known[request.call] = entry
        else:
            self._start(hosted, entry)

    def _enqueue(self, hosted: Hosted, entry: Entry) -> None:
        hosted.queue.add(entry)
        self._queues[hosted] = None

    def _answer_again(self, hosted: Hosted, request: Message) -> None:
        """A copy asks what another has asked before it, and is not aware that this has been told the end of it."""
        if request.kind == ONE_WAY:
            return
        done = hosted.seen[request.call]
        if done is None:
            self._answer_for(hosted, request, reason=ORPHAN, text="another copy has taken it back")
        else:
            self._answer_for(hosted, request, value=done.result)

    def _answer_for(self, hosted: Hosted, request: Message, **rest: Any) -> None:
        """Answer a request that does not run here."""
        instance = hosted.order.start(request, "", (*request.path, hosted.object), ())
        hosted.order.abort()
        instance.status = ABORTED
        self._respond(instance, **rest)

    def _start(self, hosted: Hosted, entry: Entry) -> None:
        request, record = entry.message, entry.record
        base = _base(request, hosted.object)
        path = entry.path if record is not None else (*entry.path, hosted.object)
        instance = hosted.order.start(request, entry.call.op, path, base)
        instance.call = entry.call
        self._running[instance] = None
        hosted.queue.started(instance, entry)
        if record is not None:
            instance.undoes = record
            self.counts["undone"] += 1
            self._note("undo", instance, request)
        else:
            instance.copies = self._copies(hosted, request)
            instance.hosts = (*request.hosts, instance.copies)
            instance.holds = request.holds or bool(hosted.order.relation.of(request.op))
            if len(instance.copies) > 1:
                hosted.bases[base] = instance
            if request.kind != ONE_WAY:
                hosted.known[request.call] = instance
            self.counts["started"] += 1
            self._note("start", instance, request)
        self._out.append(Run(instance))

    def _copies(self, hosted: Hosted, request: Message) -> tuple[int, ...]:
        """The places that run the same instance."""
        object_of = self.roster.object_of
        return tuple(place for place in request.dst if object_of[place] == hosted.object)

    # Calls of instances

    def _speaks(self, instance: Instance) -> bool:
        """Whether it is this copy that sends what all copies say."""
        return next(iter(self._alive_of(instance.copies)), None) == instance.place

    def _objects(self, places: Iterable[int]) -> set[int]:
        return {self.roster.object_of[place] for place in places}

    def _alive_of(self, places: tuple[int, ...]) -> tuple[int, ...]:
        if len(self.alive) == len(self.roster.members):
            return places
        return tuple(place for place in places if self.roster.member_of[place] in self.alive)

    def _request(self, instance: Instance, call: Pending) -> None:
        op, args, named = call.request
        rest: dict[str, Any] = {"call": call.id, "op": op, "args": args, "named": named}
        if call.kind == ONE_WAY:
            rest["path"] = (call.id,)
        else:
            rest |= {
                "path": (*instance.path, call.id[-1]),
                "hosts": instance.hosts,
                "holds": instance.holds,
            }
        self._say_once(instance, call.kind, call.dst, **rest)

    def _say_once(self, instance: Instance, kind: str, dst: tuple[int, ...], **rest: Any) -> None:
        """Say what all copies of the instance say, if it is for us to do so."""
        if self._speaks(instance):
            self._say(instance, kind, dst, **rest)
        else:
            self.hosted[instance.place].unspoken.append(_Unspoken(instance, kind, dst, rest))

    def _say(self, instance: Instance, kind: str, dst: tuple[int, ...], **rest: Any) -> None:
        """Send a message of an instance to places that are still there, our own through the inbox."""
        dst = self._alive_of(dst)
        if not dst:
            return
        members = members_of(self.roster, dst)
        others = sorted(members - {self.me})
        hosted = self.hosted[instance.place]
        message = hosted.order.send(instance, kind, dst, self.links.number(others), view=self.views, **rest)
        self._note(SAID[kind], instance, message)
        self.links.transmit(self.now, message)
        if self.me in members:
            self._inbox.append(message)
        if self.options.announce and kind not in (RESPONSE, COMMIT) and self._is_ordered(message):
            self.links.announce(message.ts, members)

    # Answers

    def _answer(self, place: int, response: Message) -> None:
        instance = self._awaiting.get((place, response.call))
        if instance is None:
            self._keep_early(self.hosted[place], response)
            return
        call = instance.calls[response.call]
        if response.src not in call.missing or any(
            held.src == response.src and held.call == response.call for held in instance.held
        ):
            return
        if self._is_next(instance, response):
            self._take_answer(instance, response)
            self._take_held(instance)
        else:
            instance.held.append(response)
            self.counts["held"] += 1
            self._note("hold", instance, response)
            self._holding[instance] = None

    def _take_held(self, instance: Instance) -> None:
        """Take what nothing has to come before, in whatever order that allows."""
        while instance.status == RUNNING:
            response = next((each for each in instance.held if self._is_next(instance, each)), None)
            if response is None:
                return
            instance.held.remove(response)
            if not instance.held:
                self._holding.pop(instance, None)
            self._take_answer(instance, response)

    def _is_next(self, instance: Instance, response: Message) -> bool:
        """Whether no answer to the same instance can still come that precedes this one."""
        received, vector = self.links.received, response.vector
        for call in instance.calls.values():
            if call.dropped:
                continue
            for place in call.missing:
                if (place != response.src or call.id != response.call) and received[place] < vector[place]:
                    return False
        return not any(precedes(held, response) for held in instance.held if held is not response)

    def _take_answer(self, instance: Instance, response: Message) -> None:
        call = instance.calls[response.call]
        self.hosted[instance.place].order.deliver(instance, response)
        self._note("take", instance, response)
        if call.dropped:
            return
        call.missing.discard(response.src)
        if response.reason:
            self._branch_failed(instance, call, response.reason, response.text)
            return
        call.answers[response.src] = response.value
        self._look_at_wait(instance)
        self._try_commit(instance)

    def _branch_failed(self, instance: Instance, call: Pending, reason: str, text: str) -> None:
        """A call has aborted: an alternative less, or the end of the instance."""
        if call.alternatives is None:
            self._abort(instance, CHILD if reason == FAIL else reason, text)
            return
        self._drop(instance, call)
        if all(each.dropped for each in call.alternatives.calls):
            self._abort(instance, CHILD if reason == FAIL else reason, text)
        else:
            self._look_at_wait(instance)
            self._try_commit(instance)

    def _drop(self, instance: Instance, call: Pending) -> None:
        """An alternative that is not wanted any more, and is taken back."""
        call.dropped = True
        self._awaiting.pop((instance.place, call.id), None)
        instance.held = [each for each in instance.held if each.call != call.id]
        if not instance.held:
            self._holding.pop(instance, None)
        self._recall(instance, call)

    def _recall(self, instance: Instance, call: Pending) -> None:
        self._say_once(instance, ABORT, call.dst, call=call.id, op=call.request[0])

    def _look_at_wait(self, instance: Instance) -> None:
        wait = instance.waits
        if wait is None:
            return
        if wait.alternatives is None:
            if all(call.done for call in wait.calls):
                instance.waits = None
                self._out.append(Resume(instance, wait.calls))
            return
        winner = self._winner(instance, wait.alternatives)
        if winner is not None:
            instance.waits = None
            wait.alternatives.winner = winner
            for call in wait.alternatives.calls:
                if call is not winner and not call.dropped:
                    self._drop(instance, call)
            self._out.append(Resume(instance, winner))
            self._take_held(instance)

    def _winner(self, instance: Instance, alternatives: Alternatives) -> Pending | None:
        """The first alternative that all its places have committed. Copies of a replicated object hear answers in
        different orders: they wait for all, and choose the first in the order in which they were called."""
        left = [call for call in alternatives.calls if not call.dropped]
        if len(instance.copies) > 1 and any(call.missing for call in left):
            return None
        return next((call for call in left if not call.missing), None)

    # Answers to copies that are not there yet

    def _keep_early(self, hosted: Hosted, response: Message) -> None:
        """Copies of an instance may be behind the one whose call this answers."""
        base = response.call[:-1]
        if len(base) < 4 or not self.roster.is_replicated[hosted.place] or hosted.ended.get(base):
            return
        instance = hosted.bases.get(base)
        if base in hosted.ended or (instance is None and self._is_lost(hosted, base)):
            self._disown(hosted, response)
        elif instance is None or response.call not in instance.calls:
            if base not in hosted.early:
                _remember(hosted.early, base, [])
            answers = hosted.early[base]
            if not any(each.call == response.call and each.src == response.src for each in answers):
                answers.append(response)

    def _is_lost(self, hosted: Hosted, base: CallId) -> bool:
        """Whether the request that was to start that instance went down with its sender."""
        if self.roster.member_of[base[1]] in self.alive:
            return False
        return not any(_base(entry.message, hosted.object) == base for entry in hosted.queue)

    def _disown(self, hosted: Hosted, response: Message) -> None:
        """An answer to a copy that is gone, of an instance that has come to nothing at the others before it had asked:
        take back what was done."""
        if len(self.alive) == len(self.roster.members) or self._alive_of(response.dst)[:1] != (hosted.place,):
            return
        nobody = hosted.order.root()
        hosted.order.abort()
        self._say(nobody, ABORT, (response.src,), call=response.call, op=response.op)

    def _take_early(self, instance: Instance, call: CallId) -> list[Message]:
        early = self.hosted[instance.place].early
        answers = early.get(instance.base)
        if not answers:
            return []
        mine = [each for each in answers if each.call == call]
        rest = [each for each in answers if each.call != call]
        if rest:
            early[instance.base] = rest
        else:
            del early[instance.base]
        return mine

    # The end of an instance

    def _try_commit(self, instance: Instance) -> None:
        if instance.finished and instance.status == RUNNING and not instance.unanswered:
            self._commit(instance)

    def _commit(self, instance: Instance) -> None:
        hosted = self.hosted[instance.place]
        try:
            value = hosted.state.after(instance.effects)
        except Exception as error:  # the effect's, so the method's
            self._abort(
                instance, FAIL, f"{instance.call.op}: an effect raised {type(error).__name__}: {error}"
            )
            return
        instance.status = COMMITTED
        if instance.undoes is not None:
            self._undone(hosted, instance, value)
        else:
            self._committed(hosted, instance, value)
        hosted.order.commit(instance, instance.call.op)
        self._leave(hosted, instance)
        self._out.append(Ended(instance, "", ""))

    def _committed(self, hosted: Hosted, instance: Instance, value: Any) -> None:
        request = instance.request
        name = request.call if request is not None and instance.awaited else None
        hosted.state.apply(value, instance.effects, name)
        self.counts["committed"] += 1
        self._note("commit", instance, request)
        if name is not None:
            assert request is not None
            self._respond(instance, value=instance.result)
            hosted.known[name] = Record(instance)
        else:
            for call in instance.calls.values():
                if call.kind != ONE_WAY and not call.dropped:
                    self._say_once(instance, COMMIT, call.dst, call=call.id)

    def _respond(self, instance: Instance, **rest: Any) -> None:
        request = instance.request
        assert request is not None
        self._say(instance, RESPONSE, request.hosts[-1], call=request.call, op=request.op, **rest)

    def _abort(self, instance: Instance, reason: str, text: str, *, respond: bool = True) -> None:
        """End without effect, and take back what was called."""
        hosted = self.hosted[instance.place]
        instance.status = ABORTED
        request = instance.request
        self.counts["aborted"] += 1
        self._note("abort", instance, request)
        for call in instance.calls.values():
            if call.kind != ONE_WAY and not call.dropped:
                self._recall(instance, call)
        if request is not None and instance.awaited:
            if respond:
                hosted.known[request.call] = ENDED
                self._respond(instance, reason=reason, text=text)
            else:
                hosted.known.pop(request.call, None)
        hosted.order.abort()
        self._leave(hosted, instance)
        self._out.append(Ended(instance, reason, text))

    def _leave(self, hosted: Hosted, instance: Instance) -> None:
        """It runs no more."""
        self._running.pop(instance, None)
        self._holding.pop(instance, None)
        instance.waits, instance.held = None, []
        for call in instance.calls:
            self._awaiting.pop((instance.place, call), None)
        self._note("end", instance, instance.request)
        hosted.bases.pop(instance.base, None)
        self._forget_early(hosted, instance.base, instance.status == COMMITTED)
        hosted.queue.ended(instance)

    def _forget_early(self, hosted: Hosted, base: CallId, committed: bool = False) -> None:
        if self.roster.is_replicated[hosted.place]:
            _remember(hosted.ended, base, committed)
            for response in hosted.early.pop(base, ()):
                if not committed:
                    self._disown(hosted, response)

    def _undone(self, hosted: Hosted, instance: Instance, value: Any) -> None:
        """The undoing of a committed instance has run: what it called is taken back, too."""
        record: Record = instance.undoes
        request = record.instance.request
        assert request is not None
        if instance.effects:
            hosted.state.final(request.call)
            hosted.state.apply(value, instance.effects)
        else:
            hosted.state.undo(request.call)
        hosted.known.pop(request.call, None)
        self._note("undone", instance, instance.request)
        self._pass_on(record, ABORT)

    # Commit and abort from the invoker

    def _told_to_commit(self, hosted: Hosted, message: Message) -> None:
        record = hosted.known.get(message.call)
        if isinstance(record, Record) and not record.undoing:
            self._final(hosted, record)

    def _final(self, hosted: Hosted, record: Record) -> None:
        """Nobody will undo it, nor what it called."""
        request = record.instance.request
        assert request is not None
        del hosted.known[request.call]
        if request.call in hosted.seen:
            hosted.seen[request.call] = record.instance
        hosted.state.final(request.call)
        self._pass_on(record, COMMIT)

    def _pass_on(self, record: Record, kind: str) -> None:
        for call in record.instance.calls.values():
            if call.kind != ONE_WAY and not call.dropped:
                op = call.request[0] if kind == ABORT else ""
                self._say_once(record.instance, kind, call.dst, call=call.id, op=op)

    def _told_to_abort(self, hosted: Hosted, message: Message) -> None:
        known = hosted.known.get(message.call)
        match known:
            case None:
                if message.call not in hosted.seen:
                    _remember(hosted.cancelled, message.call)
            case Entry() if known.record is None:
                self._cancel(hosted, known)
            case Instance():
                self._abort(known, CHILD, "its invoker has aborted", respond=False)
            case Record() if not known.undoing:
                self._undo(hosted, known, message)
            case _Mark():
                del hosted.known[message.call]

    def _cancel(self, hosted: Hosted, entry: Entry) -> None:
        """It will not be run."""
        hosted.queue.remove(entry)
        hosted.known.pop(entry.message.call, None)
        self._forget_early(hosted, _base(entry.message, hosted.object))
        self._note_at("cancel", hosted.place, entry.message)

    def _undo(self, hosted: Hosted, record: Record, message: Message) -> None:
        """Put the undoing of a committed instance where it belongs in the order."""
        record.undoing = True
        instance = record.instance
        entry = Entry(message, instance.call, instance.path, self.now, record)
        if hosted.order.relation.of(instance.call.op):
            self._enqueue(hosted, entry)
        else:
            self._start(hosted, entry)

    # Progress

    def _settle(self) -> None:
        """Let everything happen that can."""
        while True:
            while self._inbox:
                self._dispatch(self._inbox.popleft())
            while self._answered:
                self._answer(*self._answered.popleft())
            while self._lost:
                instance, call = self._lost.popleft()
                if instance.status == RUNNING and not call.dropped:
                    text = f"{call.request[0]}: nobody is left who could do it"
                    self._branch_failed(instance, call, GONE, text)
            if self._holding and self.links.moved:
                self.links.moved = False
                for instance in list(self._holding):
                    self._take_held(instance)
                continue
            if not self._start_one() and not self._inbox:
                return

    def _start_one(self) -> bool:
        for hosted in list(self._queues):
            entry = hosted.queue.next_startable(self.links.frontier_of(hosted.invoking))
            if not len(hosted.queue):
                del self._queues[hosted]
            if entry is not None:
                self._start(hosted, entry)
                return True
        return False

    @property
    def _is_waiting(self) -> bool:
        """Whether something here waits for others' clocks or for its death."""
        return bool(self._holding or self._suspects or self._queues)

    def _waited_for(self) -> set[int]:
        """Members whose clocks or messages something here waits for."""
        members: set[int] = set()
        for hosted in self._queues:
            key = hosted.queue.unclear
            if key is not None:
                members.update(self.links.laggards(key))
        if self._holding:
            members.update(self.links.peers)
        return members

    # Deadlock

    def _let_die(self) -> None:
        """Requests that have waited long enough for something older that waits itself give way."""
        for hosted in list(self._queues):
            oldest = hosted.queue.oldest()
            if oldest is None:
                continue
            mortal = {
                entry
                for entry in hosted.queue
                if entry.message.holds
                and entry.record is None
                and entry.message.kind in (SYNCHRONOUS, ASYNCHRONOUS)
                and self.now - entry.entered >= self.options.patience
                and oldest < entry.path
            }
            while (entry := self._doomed(hosted, mortal)) is not None:
                mortal.discard(entry)
                self._die(hosted, entry)

    def _doomed(self, hosted: Hosted, mortal: set[Entry]) -> Entry | None:
        """One of these that waits for something older that waits itself."""
        if mortal:
            for entry, blockers in hosted.queue.blockers().items():
                if entry in mortal and any(each.unanswered and each.path < entry.path for each in blockers):
                    return entry
        return None

    def _die(self, hosted: Hosted, entry: Entry) -> None:
        self.counts["died"] += 1
        self._refuse(
            hosted, entry, DEADLOCK, f"{entry.call.op} gave way to something older, to avoid a deadlock"
        )

    def _refuse(self, hosted: Hosted, entry: Entry, reason: str, text: str) -> None:
        """Answer a request without running it."""
        request = entry.message
        hosted.queue.remove(entry)
        hosted.known[request.call] = ENDED
        self._forget_early(hosted, _base(request, hosted.object))
        self._note_at("die", hosted.place, request)
        self._answer_for(hosted, request, reason=reason, text=text)

    # Members that are gone

    def _flush(self) -> None:
        """Hand round what the suspects said to more than one."""
        suspects = tuple(sorted(self._suspects))
        others = [member for member in self.links.peers if member not in self._suspects]
        held = tuple(message for suspect in suspects for message in self.links.peers[suspect].kept)
        flush = Flush(self.me, self.clock.next(), self.links.number(others), suspects, held)
        self.links.transmit(self.now, flush)
        self._try_install()

    def _take_flush(self, flush: Flush) -> None:
        self._flushed[flush.member] = flush
        for message in flush.messages:
            member = self.roster.member_of[message.src]
            if (
                member in flush.suspects
                and any(to == self.me for to, _ in message.sq)
                and member in self.links.peers
            ):
                self._take_from(member, message)
        self._try_install()

    def _try_install(self) -> None:
        """Once everybody left has flushed, nothing of the suspects can still come."""
        suspects = self._suspects
        others = [member for member in self.links.peers if member not in suspects]
        if not suspects or not all(
            member in self._flushed and set(self._flushed[member].suspects) == suspects for member in others
        ):
            return
        gone, self._suspects = self._suspects, set()
        self._flushed.clear()
        self._settle()  # what was handed round counts as received before they left
        for member in sorted(gone):
            self.links.remove(member)
            self.alive.discard(member)
        self.views += 1
        self._bury()
        ahead, self._ahead = self._ahead, []
        for message in ahead:
            self._hear(message)

    def _bury(self) -> None:
        """End what depends on members that are gone, and say what their copies of objects had to say."""
        for instance in list(self._holding):
            self._take_held(instance)
        for hosted in self.hosted.values():
            for entry in list(hosted.queue):
                if entry.record is None and not entry.out and self._is_orphan(entry.message):
                    self._give_up_entry(hosted, entry)
        for instance in list(self._running):
            if instance.status == RUNNING:
                self._mourn(instance)
        for hosted in self.hosted.values():
            for record in [each for each in hosted.known.values() if isinstance(each, Record)]:
                self._inherit(hosted, record)
            for base in [
                base for base in hosted.early if base not in hosted.bases and self._is_lost(hosted, base)
            ]:
                for response in hosted.early.pop(base):
                    self._disown(hosted, response)
            unspoken, hosted.unspoken = hosted.unspoken, deque(maxlen=REMEMBERED_MAX)
            for said in unspoken:
                self._speak_up(said)

    def _mourn(self, instance: Instance) -> None:
        """End an instance whose invoker is gone, or somebody it called of whom no copy is left."""
        request = instance.request
        if request is not None and instance.undoes is None and self._is_orphan(request):
            respond = self._has_invoker(request)
            self._abort(instance, ORPHAN, "a member that called it is gone", respond=respond)
            return
        for call in list(instance.calls.values()):
            if instance.status != RUNNING:
                return
            alive = self._alive_of(call.dst)
            if call.dropped or not call.missing.difference(alive):
                continue
            if self._objects(alive) != self._objects(call.dst):
                self._branch_failed(
                    instance, call, GONE, f"{call.request[0]}: a member that it called is gone"
                )
            else:
                call.missing.intersection_update(alive)
        if instance.status == RUNNING:
            self._look_at_wait(instance)
            self._take_held(instance)
            self._try_commit(instance)

    def _speak_up(self, said: _Unspoken) -> None:
        """Say what was left to a copy that is gone; whoever has heard it already passes over it."""
        instance, kind, dst, rest = said
        if kind in (SYNCHRONOUS, ASYNCHRONOUS):
            call = instance.calls[rest["call"]]
            if instance.status != RUNNING or call.dropped or not call.missing:
                return
        self._say_once(instance, kind, dst, **rest)

    def _give_up_entry(self, hosted: Hosted, entry: Entry) -> None:
        if self._has_invoker(entry.message):
            self._refuse(hosted, entry, ORPHAN, "a member that called it is gone")
        else:
            self._cancel(hosted, entry)

    def _inherit(self, hosted: Hosted, record: Record) -> None:
        """A committed instance whose invoker is gone, without a word that it has committed, is undone: other copies
        of the object may not have got as far. There is no message to say where, so it comes before all that waits."""
        request = record.instance.request
        assert request is not None
        if not record.undoing and not self._has_invoker(request):
            self._undo(hosted, record, request)

    def _is_orphan(self, request: Message) -> bool:
        """Whether some instance in its lineage has no copy left."""
        return len(self.alive) < len(self.roster.members) and not all(map(self._alive_of, request.hosts))

    def _has_invoker(self, request: Message) -> bool:
        return bool(request.hosts) and bool(self._alive_of(request.hosts[-1]))

    # Small steps

    def _send(self, members: tuple[int, ...], packet: Spoken) -> None:
        self._out.append(Send(members, packet))

    def _evs(self) -> tuple[int, ...]:
        return tuple(hosted.order.ev for hosted in self.hosted.values())

    def _note(self, step: str, instance: Instance, message: Message | None) -> None:
        if self.observer is not None:
            self.observer.note(step, self.now, instance.place, message, instance)

    def _note_at(self, step: str, place: int, message: Message) -> None:
        if self.observer is not None:
            self.observer.note(step, self.now, place, message, None)


def _base(request: Message, object: int) -> CallId:
    """What names of calls begin with, of the instance that a request starts: the same at all copies."""
    (clock, place), number = request.id
    return clock, place, number, object


def _with(places: tuple[int, ...], others: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({*places, *others}))


def _next_attempt(root: tuple[int, ...]) -> tuple[int, ...]:
    """As old as the attempt before, but not its descendant."""
    clock, place, *rest = root
    return (clock, place, 0, (rest[1] if len(rest) == 2 else 0) + 1)


def _remember(memory: "OrderedDict[CallId, Any]", name: CallId, what: Any = None) -> None:
    memory[name] = what
    if len(memory) > REMEMBERED_MAX:
        memory.popitem(last=False)
