"""What instances do: they begin, call, are answered, commit or abort, and are undone.

    call        the message goes to all its places; a place of ours gets it through the inbox, like any other
    answer      is taken after those that precede it
    commit      the effects are there now; whoever invoked it may still undo it, until the root commits
    abort       no effects, nor of anything it called: what has committed is undone, in its own place in the order

Copies of a replicated object that run the same instance make the same calls. The first of them that is alive, the
*speaker*, sends them; the answers go to all. See docs/protocols/obg.md, which has all the rules.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inga.model.invocation import (
    ABORT,
    CHILD,
    COMMIT,
    FAIL,
    ONE_WAY,
    REQUESTS,
    RESPONSE,
    CallId,
    Message,
    Path,
    Spoken,
)
from inga.objects.actions import Action, Ended, Observer, Resume, Run, Send
from inga.objects.hosted import ENDED, Hosted, Mark, Record, Unspoken, base_of, remember
from inga.objects.instance import ABORTED, COMMITTED, RUNNING, Alternatives, Instance, Pending, Wait
from inga.objects.links import Links, members_of
from inga.objects.options import Options
from inga.objects.order import Clock, precedes
from inga.objects.queue import Entry
from inga.objects.roster import Roster
from inga.objects.window import weight

SAID = {
    **dict.fromkeys(REQUESTS, "request"),
    RESPONSE: "response",
    COMMIT: "tell commit",
    ABORT: "tell abort",
}
"""The step of an observer for each kind of message."""


class Work:
    """All instances at the places of one member. `Engine` adds what comes from outside."""

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
        self.gone = 0  # members that are gone by common consent: what a message was said after
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
        self._flushed: dict[int, set[int]] = {}  # by member: those whose words it has handed round
        self._tick_at = now + self.options.delta
        self._is_awake = not self.options.quiet  # whether `tick` is wanted

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

    # Instances begin

    def _start(self, hosted: Hosted, entry: Entry) -> None:
        request, record = entry.message, entry.record
        base = base_of(request, hosted.object)
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

    def _enqueue(self, hosted: Hosted, entry: Entry) -> None:
        hosted.queue.add(entry)
        self._queues[hosted] = None
        entry.size = weight(entry.message)
        self.links.wait(self.roster.member_of[entry.message.src], entry.size)

    def _dequeued(self, entry: Entry) -> None:
        """It does not wait any more, if it ever did."""
        self.links.wait(self.roster.member_of[entry.message.src], -entry.size)
        entry.size = 0

    # What they say

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
            self.hosted[instance.place].unspoken.append(Unspoken(instance, kind, dst, rest))

    def _say(self, instance: Instance, kind: str, dst: tuple[int, ...], **rest: Any) -> None:
        """Send a message of an instance to places that are still there, our own through the inbox."""
        dst = self._alive_of(dst)
        if not dst:
            return
        members = members_of(self.roster, dst)
        others = sorted(members - {self.me})
        hosted = self.hosted[instance.place]
        message = hosted.order.send(instance, kind, dst, self.links.number(others), view=self.gone, **rest)
        self._note(SAID[kind], instance, message)
        self.links.transmit(self.now, message)
        if self.me in members:
            self._inbox.append(message)
        if self.options.announce and kind not in (RESPONSE, COMMIT) and self._is_ordered(message):
            self.links.announce(message.ts, members)

    def _respond(self, instance: Instance, **rest: Any) -> None:
        request = instance.request
        assert request is not None
        self._say(instance, RESPONSE, request.hosts[-1], call=request.call, op=request.op, **rest)

    def _answer_for(self, hosted: Hosted, request: Message, **rest: Any) -> None:
        """Answer a request that does not run here."""
        instance = hosted.order.start(request, "", (*request.path, hosted.object), ())
        hosted.order.abort()
        instance.status = ABORTED
        self._respond(instance, **rest)

    def _is_ordered(self, message: Message) -> bool:
        """Whether it conflicts with something somewhere, so that clocks are wanted there."""
        return any(self.roster.relations[place].of(message.op) for place in message.dst)

    # What they are answered

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
                remember(hosted.early, base, [])
            answers = hosted.early[base]
            if not any(each.call == response.call and each.src == response.src for each in answers):
                answers.append(response)

    def _is_lost(self, hosted: Hosted, base: CallId) -> bool:
        """Whether the request that was to start that instance went down with its sender."""
        if self.roster.member_of[base[1]] in self.alive:
            return False
        return not any(base_of(entry.message, hosted.object) == base for entry in hosted.queue)

    def _disown(self, hosted: Hosted, response: Message) -> None:
        """An answer to an instance that has come to nothing here before it had asked. If the copy that did ask is gone,
        and perhaps did not get round to it, take back what was done; as long as it is there, remember to."""
        if len(self.alive) == len(self.roster.members) or self._alive_of(response.dst)[:1] != (hosted.place,):
            remember(hosted.disowned, (*response.call, response.src), response)
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

    def _forget_early(self, hosted: Hosted, base: CallId, committed: bool = False) -> None:
        if self.roster.is_replicated[hosted.place]:
            remember(hosted.ended, base, committed)
            for response in hosted.early.pop(base, ()):
                if not committed:
                    self._disown(hosted, response)

    # How they end

    def _try_commit(self, instance: Instance) -> None:
        if instance.finished and instance.status == RUNNING and not instance.unanswered:
            self._commit(instance)

    def _commit(self, instance: Instance) -> None:
        hosted = self.hosted[instance.place]
        try:
            value = hosted.state.after(instance.effects)
        except Exception as error:  # the effect's, so the method's
            if instance.undoes is None:
                text = f"{instance.call.op}: an effect raised {type(error).__name__}: {error}"
                self._abort(instance, FAIL, text)
                return
            instance.effects, value = [], None  # the effects of what is undone are taken out instead
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
                    remember(hosted.cancelled, message.call)
            case Entry() if known.record is None:
                self._cancel(hosted, known)
            case Instance():
                self._abort(known, CHILD, "its invoker has aborted", respond=False)
            case Record() if not known.undoing:
                self._undo(hosted, known, message)
            case Mark():
                del hosted.known[message.call]

    def _cancel(self, hosted: Hosted, entry: Entry) -> None:
        """It will not be run."""
        hosted.queue.remove(entry)
        self._dequeued(entry)
        hosted.known.pop(entry.message.call, None)
        self._forget_early(hosted, base_of(entry.message, hosted.object))
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


def _with(places: tuple[int, ...], others: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({*places, *others}))


def _next_attempt(root: tuple[int, ...]) -> tuple[int, ...]:
    """As old as the attempt before, but not its descendant."""
    clock, place, *rest = root
    return (clock, place, 0, (rest[1] if len(rest) == 2 else 0) + 1)
